"""Whether a path that a user typed leads anywhere, asked before anything heavy is imported.

A command asks here first, so that a mistyped path is told at once; the readers ask the same
functions, so that the error is the same whoever meets it.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from amlb_ext.core.errors import ModelError, SourceError, SuiteError

#: The folder of a suite that AMLB does not look at.
OWN_FOLDER = "hardsynth"
#: Files in it, one of which every suite has: the request or the order is written first, and the
#: manifest last.
_SUITE_RECORDS = ("manifest.json", "request.json", "order.json")
#: Endings of the tables that are read.
TABLE_ENDINGS = (
    ".csv",
    ".parquet",
    ".arff",
    ".tsv",
    ".xlsx",
    ".feather",
    ".arrow",
    ".jsonl",
    ".ndjson",
)
#: Endings of a packed table, behind that of the table; of a zip file with one table, alone, too.
PACKED_ENDINGS = (".gz", ".bz2", ".xz", ".zip")
#: Series that come with the installation, and need no other flag.
BUNDLED_SERIES_SPECS = ("bundled/series", "bundled/macrodata")
#: Endings of AMLB's benchmark definitions.
DEFINITION_ENDINGS = (".yaml", ".yml")

#: Endings of fitted models: those of pickles may be followed by that of a compressor.
_PICKLE_ENDINGS = (".pkl", ".pickle", ".joblib", ".sav")
_COMPRESSED_ENDINGS = (".z", ".gz", ".bz2", ".xz", ".lzma")


def table_ending(name: str) -> str:
    """Return the ending of a file's name that says how its table is written; else nothing.

    Examples
    --------
    >>> [table_ending(name) for name in ("a.CSV", "b.tsv.gz", "c.zip", "d.pkl.gz", "e.csv.txt")]
    ['.csv', '.tsv', '.zip', '', '']
    """
    path = Path(name)
    ending = path.suffix.lower()
    if ending in TABLE_ENDINGS:
        return ending
    if ending not in PACKED_ENDINGS:
        return ""
    inner = Path(path.stem).suffix.lower()
    if inner in TABLE_ENDINGS:
        return inner
    # which table a zip file holds stands in it
    return ending if ending == ".zip" else ""


def table_stem(name: str) -> str:
    """Return the name of a table's file without its endings.

    Examples
    --------
    >>> table_stem("data/a.b.csv.gz"), table_stem("a.b")
    ('a.b', 'a')
    """
    path = Path(name)
    is_packed = path.suffix.lower() in PACKED_ENDINGS
    return Path(path.stem).stem if is_packed else path.stem


def portable_spec(spec: str) -> str:
    """Return a source spec; of an absolute path only the last part.

    Examples
    --------
    >>> portable_spec("/home/me/my data.csv"), portable_spec("openml/t/31")
    ('my data.csv', 'openml/t/31')
    """
    path = Path(spec)
    return path.name if path.is_absolute() else spec


def is_suite_folder(root: Path) -> bool:
    """Whether a folder holds a suite, finished or not."""
    own = root / OWN_FOLDER
    return any((own / name).is_file() for name in _SUITE_RECORDS)


def is_export_folder(root: Path) -> bool:
    """Whether a folder holds an export of a suite, which has a record in place of a manifest."""
    return (root / OWN_FOLDER / "export.json").is_file()


def no_suite_error(root: Path) -> SuiteError:
    """Return the error for a folder without a suite."""
    return SuiteError(
        f"{root} holds no suite of hardsynth",
        f"make one: hardsynth generate SOURCE -o {shlex.quote(str(root))}",
    )


def amlb_places(userdir: str | Path, results: str | Path = "results") -> str:
    """Return AMLB's options of a user directory and of a folder for results.

    ``python runbenchmark.py`` is typed in AMLB's own folder, so the places are whole.

    Examples
    --------
    >>> amlb_places("/data/my suite", "/data/results")
    "-u '/data/my suite' -o /data/results"
    """
    places = [shlex.quote(str(Path(each).absolute())) for each in (userdir, results)]
    return f"-u {places[0]} -o {places[1]}"


def check_suite_folder(root: Path) -> None:
    """Raise where there is no suite.

    Raises
    ------
    SuiteError

    Examples
    --------
    >>> check_suite_folder(Path("nope"))
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.SuiteError: nope holds no suite of hardsynth (make one: hardsynth \
generate SOURCE -o nope)
    """
    if not is_suite_folder(root):
        raise no_suite_error(root)


def check_file(path: Path) -> None:
    """Raise where there is no such file.

    Raises
    ------
    SourceError
    """
    if not path.exists():
        raise SourceError(f"no such file: {path}", "check the path")


def has_model_ending(word: str) -> bool:
    """Whether a word ends as the file of a fitted model does.

    Examples
    --------
    >>> [has_model_ending(word) for word in ("m.skops", "m.joblib.gz", "sklearn.svm.SVC")]
    [True, True, False]
    """
    endings = [ending.lower() for ending in Path(word).suffixes]
    if endings and endings[-1] in _COMPRESSED_ENDINGS:
        endings.pop()
        return bool(endings) and endings[-1] in _PICKLE_ENDINGS
    return bool(endings) and endings[-1] in (".skops", *_PICKLE_ENDINGS)


def check_model_file(path: Path) -> None:
    """Raise where there is no such file of a model or of predictions, or its name tells neither.

    Raises
    ------
    ModelError
    """
    is_named = has_model_ending(str(path)) or bool(table_ending(path.name))
    if path.is_file() and is_named:
        return
    if path.is_file():
        raise ModelError(
            f"the name of the file {path} does not say what it holds",
            "let it end in .skops, .joblib or .pkl (a fitted model), or in .csv or .parquet "
            "(predictions); load a file of another library (.cbm, .ubj, .onnx) with that library, "
            "and save the model with joblib.dump, or give it to hs.compare in Python",
        )
    remedy = "check the path of the model"
    if not is_named:
        # a short name, as other commands take it, or an import path
        remedy = (
            "give a file: predictions (.csv or .parquet), or a fitted model (.skops, or .joblib "
            "and .pkl with --trust-pickle)"
        )
    raise ModelError(f"there is no model file {path}", remedy)


def check_predictions_file(path: Path) -> None:
    """Raise where there is no such file of predictions.

    Raises
    ------
    ModelError
    """
    if not path.is_file():
        raise ModelError(f"there is no file of predictions {path}", "check the path")


def check_pickle_trusted(path: Path, trust_pickle: bool) -> None:
    """Raise for the file of a model that nobody permitted to load; nothing of it is read.

    Raises
    ------
    ModelError
        Any file but a ``.skops`` one, without ``--trust-pickle``.
    """
    if path.suffix.lower() != ".skops" and not trust_pickle:
        raise ModelError(
            f"{path.name} is a pickle, and loading a pickle runs any code that is in it",
            "save the model with skops.io.dump, or add --trust-pickle if you made it yourself",
        )


def missing_source_file(spec: str) -> Path | None:
    """Return the file that a source names if it is not there, else None.

    Examples
    --------
    >>> missing_source_file("nope.csv"), missing_source_file("bundled/toy")
    (PosixPath('nope.csv'), None)
    """
    # an address is no path, whatever it ends in; after "#" stands a task of a definition
    if "://" in spec:
        return None
    path = Path(spec).expanduser()
    if not table_ending(path.name):
        path = Path(spec.partition("#")[0]).expanduser()
        if path.suffix.lower() not in DEFINITION_ENDINGS:
            return None
    return None if path.exists() else path


def check_sources(specs: tuple[str, ...]) -> None:
    """Raise where every source is a file that is not there.

    Where others can be read, a missing one is left out and reported with them.

    Raises
    ------
    SourceError
    """
    missing = []
    for spec in specs:
        path = missing_source_file(spec)
        if path is None:
            return
        missing.append(path)
    if missing:
        check_file(missing[0])


def check_compared(
    table: Path,
    models: Iterable[str],
    *,
    train: Path | None = None,
    trust_pickle: bool = False,
) -> None:
    """Raise where a file of a comparison is missing, or a pickle that nobody permitted to load.

    Raises
    ------
    SourceError, ModelError
    """
    check_file(table)
    if train is not None:
        check_file(train)
    for file in models:
        # a service has an address, and no file
        if "://" in file:
            continue
        check_model_file(Path(file))
        # a file of predictions is no model
        if has_model_ending(file):
            check_pickle_trusted(Path(file), trust_pickle)


# Where the files of a folder may stand: plain names, paths inside it, and no links.
#
# A suite may be a stranger's. So a name or a path that its manifest gives is held to these rules
# before a path is made of it, and nothing in it is read, written, locked or packed through a link.


_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,249}")
#: A step of a path: ASCII that no file system, shell or program takes for anything else.
_STEP = re.compile(r"[A-Za-z0-9_.+@=,~()\[\]{}' -]{1,250}")
#: What Windows takes for a device, whatever ending follows.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
#: AMLB reads a task of this name as defaults of all others.
DEFAULTS = "__defaults__"
#: Folders of a framework in ``extensions/`` that its set-up fills, environments with links among
#: them, by the steps of their path.
_SET_UP = re.compile(r"extensions/[^/]+/(?:venv|lib|programs|\.setup)(?:/|$)")


def is_device(name: str) -> bool:
    """Whether Windows would take a file of this name for a device.

    Examples
    --------
    >>> [is_device(name) for name in ("nul", "Con.csv", "console")]
    [True, True, False]
    """
    return bool(_DEVICE.fullmatch(name))


def is_plain_name(name: object) -> bool:
    """Whether a text may name a task, a definition or a framework, and so a folder or a file.

    What :func:`amlb_ext.suite.layout.safe_names` gives is one, and so is a framework's name with
    dots.

    Examples
    --------
    >>> [is_plain_name(name) for name in ("iris_full", "../iris", "a/b", "-u", "nul", "", None)]
    [True, False, False, False, False, False, False]
    """
    if not isinstance(name, str) or not _PLAIN_NAME.fullmatch(name):
        return False
    return not (is_device(name) or name.endswith(".") or name == DEFAULTS)


def is_inside(relative: object) -> bool:
    """Whether a text is a relative path with ``/`` that stays inside its folder.

    Examples
    --------
    >>> [is_inside(path) for path in ("data/a.csv", "../a.csv", "/etc/passwd", "C:\\\\a", "a//b")]
    [True, False, False, False, False]
    >>> [is_inside(path) for path in ("data/-u", "nul", "a.", "a\\x00", "~/a")]
    [False, False, False, False, False]
    """
    if not isinstance(relative, str) or len(relative) > 2000:
        return False
    # what a set-up made may hold links
    if _SET_UP.match(relative):
        return False
    return all(map(_is_step, relative.split("/")))


def _is_step(step: str) -> bool:
    if not _STEP.fullmatch(step) or is_device(step):
        return False
    # "." and ".." end in a dot, too, which Windows leaves out, as it does a space
    return step[0] not in "-~ " and step[-1] not in ". "


def find_collision(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two names that are one on a file system that does not tell "A" from "a".

    Examples
    --------
    >>> find_collision(["data/a.csv", "data/A.csv"]), find_collision(["a", "b"])
    (('data/a.csv', 'data/A.csv'), None)
    >>> find_collision(["data", "data/a.csv"])
    ('data', 'data/a.csv')
    """
    by_key: dict[str, str] = {}
    for name in names:
        other = by_key.setdefault(name.casefold(), name)
        if other != name:
            return other, name
    for key, name in by_key.items():
        for end in (match.start() for match in re.finditer("/", key)):
            if key[:end] in by_key:
                return by_key[key[:end]], name
    return None


def find_links(root: Path) -> Iterator[str]:
    """Yield whatever below a folder is a link, or neither a file nor a folder, by relative path.

    A file with a second name is a link, too: whoever writes to it writes elsewhere. What the set-up
    of a framework made is not looked into; nothing but AMLB reads there. Neither is the folder
    itself: how it is reached is its user's own choice.
    """
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(root / folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            # there is no suite yet, or another process has just removed a folder
            continue
        for entry in found:
            relative = f"{folder}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if not _SET_UP.fullmatch(relative):
                    waiting.append(f"{relative}/")
            elif not _is_file_of_one_name(entry):
                yield relative


def _is_file_of_one_name(entry: os.DirEntry[str]) -> bool:
    try:
        about = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        # a temporary file that another process has just put in its place
        return True
    return stat.S_ISREG(about.st_mode) and about.st_nlink <= 1


def check_no_links(root: Path) -> None:
    """Raise where anything in a folder is a link, before any of it is read or written.

    Raises
    ------
    SuiteError
        It names the first of them, or the folder that cannot be looked into.
    """
    try:
        link = next(find_links(root), None)
    except OSError as error:
        raise SuiteError(
            f"cannot look into {error.filename}: {error.strerror}",
            "make the folder readable",
        ) from None
    if link is not None:
        raise SuiteError(
            f"{link} in {root} is a link, or no file; nothing was read or written",
            "put the file itself there, or remove it",
        )
