"""The paths of a suite, and names that AMLB and every file system accept.

The suite is an AMLB user directory; all paths below are relative to its root, so it can be
moved, zipped or mounted.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from amlb_ext.amlb.safe_text import is_safe_text
from amlb_ext.core.files import TEMPORARY_SUFFIX
from amlb_ext.core.paths import DEFAULTS, OWN_FOLDER, is_device

#: What is appended to a task's name to name its AMLB tasks, in the order in which definitions list
#: them: the whole test folds, which decide, before the main one, ''.
SUFFIXES = ("full", "", "hard", "region", "bad", "ga", "synthetic")
#: The AMLB tasks of the main definition; the others stand in ``<name>_all`` only.
MAIN_SUFFIXES = ("full", "")
#: Longest task name; AMLB appends fold and framework to it to name folders.
MAX_NAME = 150
#: The integration of suites of tables, and how AMLB names it as a module.
TABLE_INTEGRATION = "HardsynthSklearn"
INTEGRATION = f"extensions.{TABLE_INTEGRATION}"
#: The suite's frameworks that are F itself, fitted on all training rows, and F fitted again on
#: a part of them: they stand beside the candidates, not among them.
BASELINE_FRAMEWORK = "HardsynthBaseline"
NULL_FRAMEWORK = "HardsynthNull"
#: Name of the lock in the folder that AMLB does not look at.
LOCK = ".lock"


def amlb_name(task: str, suffix: str) -> str:
    """Return the name of the AMLB task of ``task`` with ``suffix``.

    Examples
    --------
    >>> amlb_name("iris", ""), amlb_name("iris", "full")
    ('iris', 'iris_full')
    """
    return f"{task}_{suffix}" if suffix else task


def safe_names(names: Sequence[str]) -> list[str]:
    """Return names that AMLB and every file system accept, one per input, in order.

    Parameters
    ----------
    names : sequence of str
        Any text, doublets and empty text included.

    Returns
    -------
    list of str
        Of letters, digits, ``_`` and ``-``, at most :data:`MAX_NAME` characters. They stay
        unique, whatever the case, when any of :data:`SUFFIXES` is appended to any of them.

    Examples
    --------
    >>> safe_names(["a b/c", "A.b.c", "a", "a_full", "", "Zürich", "007"])
    ['a_b_c', 'A_b_c_2', 'a', 'a_full_2', 'task', 'Zurich', 'task_007']
    """
    taken: set[str] = {DEFAULTS}
    unique = []
    for name in names:
        base = _safe_name(name)
        candidate = base
        number = 1
        # a name is taken with all its suffixes: "a_full" is no name beside "a"
        while taken & _names_with_suffixes(candidate):
            number += 1
            end = f"_{number}"
            candidate = base[: MAX_NAME - len(end)] + end
        taken |= _names_with_suffixes(candidate)
        unique.append(candidate)
    return unique


def _safe_name(name: str) -> str:
    # decomposed, a letter stays when its accent goes
    decomposed = unicodedata.normalize("NFKD", name)
    plain = decomposed.encode("ascii", "ignore").decode()
    text = re.sub(r"[^A-Za-z0-9_-]", "_", plain)
    # a leading "-" would read as a flag: runbenchmark.py ... -t -name
    if text.startswith("-"):
        text = "_" + text[1:]
    if not text:
        return "task"
    # AMLB reads its own results.csv back: '007' as 7, 'null' as missing; and Windows has devices
    if not is_safe_text(text) or is_device(text):
        text = f"task_{text}"
    return text[:MAX_NAME]


def _names_with_suffixes(name: str) -> set[str]:
    # in lower case: some file systems do not tell "A" from "a"
    return {amlb_name(name, suffix).lower() for suffix in SUFFIXES}


class _Place:
    """A file or folder that every suite has at the same place; of the class, relative to a root."""

    def __init__(self, *steps: str) -> None:
        self.steps = steps

    def __get__(self, layout: Layout | None, owner: type) -> Path:
        root = Path() if layout is None else layout.root
        return root.joinpath(*self.steps)


@dataclass(frozen=True)
class Layout:
    """The paths of a suite.

    Attributes
    ----------
    root : Path
        The suite's directory, the ``-u`` of ``runbenchmark.py``.

    Examples
    --------
    >>> layout = Layout(Path("hard"))
    >>> layout.relative(layout.test("iris_full", 2))
    'data/iris_full/iris_full_test_2.csv'
    """

    root: Path

    #: AMLB's configuration.
    config = _Place("config.yaml")
    #: AMLB's framework definitions of our integrations.
    frameworks = _Place("frameworks.yaml")
    #: AMLB's constraint definitions.
    constraints = _Place("constraints.yaml")
    #: The integrations' code.
    extensions = _Place("extensions")
    #: The folder that AMLB does not look at.
    own = _Place(OWN_FOLDER)
    #: Metadata for a hub, beside a card, where the suite was exported for one.
    croissant = _Place("croissant.json")
    #: What the suite is made of; written last.
    manifest = _Place(OWN_FOLDER, "manifest.json")
    #: Mark of a folder that is being written, for the same command after an interruption.
    started = _Place(OWN_FOLDER, "started")
    #: The manifest of the generation before, while a new one is under way.
    previous = _Place(OWN_FOLDER, "manifest.previous.json")
    #: The request; written when a generation begins.
    request = _Place(OWN_FOLDER, "request.json")
    #: The order of a suite without folds, beside that in its manifest.
    order = _Place(OWN_FOLDER, "order.json")
    #: Lock of the process that writes the suite; not a part of the suite.
    lock = _Place(OWN_FOLDER, LOCK)
    #: The page that tells what candidates are worth.
    report = _Place(OWN_FOLDER, "report.html")
    #: How each column of each table was read, for people.
    columns = _Place(OWN_FOLDER, "columns.csv")
    #: What happened while the suite was made, a sentence a line.
    notes = _Place(OWN_FOLDER, "notes.txt")
    #: Logs of folds that were lost.
    logs = _Place(OWN_FOLDER, "logs")

    def relative(self, path: Path) -> str:
        """Return ``path`` relative to the root, with ``/`` on every system."""
        return path.relative_to(self.root).as_posix()

    def at(self, relative: str) -> Path:
        """Return the path of a file given relative to the root."""
        return self.root.joinpath(*relative.split("/"))

    def definition(self, name: str) -> Path:
        """The definition of the whole test folds, and of the main tasks beside them."""
        return self.root / "benchmarks" / f"{name}.yaml"

    def train(self, amlb_task: str, fold: int) -> Path:
        """Training file of an AMLB task; ``fold`` is the source's fold number."""
        return self.root / "data" / amlb_task / f"{amlb_task}_train_{fold}.csv"

    def test(self, amlb_task: str, fold: int) -> Path:
        """Test file of an AMLB task; ``fold`` is the source's fold number."""
        return self.root / "data" / amlb_task / f"{amlb_task}_test_{fold}.csv"

    def fold(self, amlb_task: str, fold: int) -> Path:
        """Folder of a fold's record and provenance; ``fold`` is the source's fold number."""
        return self.own / amlb_task / f"fold_{fold}"

    def provenance(self, amlb_task: str, fold: int) -> Path:
        """Where the rows of a test file come from, row for row."""
        return self.fold(amlb_task, fold) / "provenance.parquet"

    def train_provenance(self, amlb_task: str, fold: int) -> Path:
        """Where the rows of an AMLB task's own training file come from, row for row."""
        return self.fold(amlb_task, fold) / "train_provenance.parquet"

    def record(self, task: str, fold: int) -> Path:
        """Record of a finished fold; written after all its files."""
        return self.fold(task, fold) / "record.json"

    def task_certificate(self, task: str) -> Path:
        """What the task may be used for."""
        return self.own / task / "certificate.json"

    def task_null(self, task: str) -> Path:
        """Losses of F's re-fits on the rows of the untouched test folds."""
        return self.own / task / "null.parquet"

    def publication(self, host: str) -> Path:
        """Journal of what was published to a server."""
        return self.own / "publish" / f"{host}.jsonl"

    def certificate(self, task: str, fold: int) -> Path:
        """What the fold may be used for."""
        return self.fold(task, fold) / "certificate.json"


# Names of tasks and hosts are any text without "/"; only what a suite writes itself matches.

#: A table of a fold and what AMLB derives from it, and what we know of the fold.
_OF_FOLD = re.compile(
    r"data/([^/]+)/\1_(?:train|test)_\d+\.(?:csv|parquet|arff)"
    r"|hardsynth/[^/]+/fold_\d+/"
    r"(?:(?:train_)?provenance\.parquet|(?:record|certificate)\.json)"
)
#: What AMLB derives from tables, and what ``certify``, the report and publishing write.
_WRITTEN_LATER = re.compile(
    r"data/([^/]+)/\1_(?:train|test)_\d+\.(?:parquet|arff)"
    r"|hardsynth/(?:[^/]+/(?:certificate\.json|null\.parquet)|notes\.txt|report\.html"
    r"|report/[\w-]+\.(?:csv|json|html|txt|tex|svg)|logs/[^/]+\.log"
    r"|publish/[A-Za-z0-9._-]+\.jsonl)"
)
#: Texts for readers, as a repository or an archive has them.
_NOTE = re.compile(r"[^/]+\.(?:md|rst|txt|cff)|LICENSE|\.git(?:ignore|attributes)")


def is_fold_file(relative: str) -> bool:
    """Whether a path has the form of a fold's file, so that hardsynth wrote it."""
    return bool(_OF_FOLD.fullmatch(relative))


def is_written_later(relative: str) -> bool:
    """Whether AMLB, the report or publishing may write such a file into a finished suite.

    Examples
    --------
    >>> is_written_later("data/a/a_test_0.parquet"), is_written_later("data/a/a_test_0.csv")
    (True, False)
    """
    return bool(_WRITTEN_LATER.fullmatch(relative))


def is_note(relative: str) -> bool:
    """Whether a file is a text for people, such as a README, which no program reads.

    Examples
    --------
    >>> is_note("README.md"), is_note("data/notes.txt"), is_note("setup.py")
    (True, False, False)
    """
    return bool(_NOTE.fullmatch(relative))


def files_below(root: Path) -> list[str]:
    """Return the relative paths of all files below ``root``, sorted, without a suite's lock."""
    layout = Layout(root)
    paths = [path for path in root.rglob("*") if path.is_file() and path != layout.lock]
    return sorted(map(layout.relative, paths))


def is_fresh(root: Path) -> bool:
    """Whether a folder is empty, apart from temporary files of a killed run."""
    # all files in a temporary folder are temporary
    temporary = re.compile(rf"(?:.*/)?[^/]*{re.escape(TEMPORARY_SUFFIX)}(?:/.*)?")
    return all(map(temporary.fullmatch, files_below(root)))
