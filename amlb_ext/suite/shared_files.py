"""The files of a suite that belong to no task: definitions, settings, frameworks and their code.

All of it follows from the manifest's entries, so it can be written again without any source.
"""

from __future__ import annotations

import hashlib
import shlex
import shutil
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from amlb_ext.amlb.definition import read_definition
from amlb_ext.core.assets import asset_path
from amlb_ext.core.errors import DefinitionError
from amlb_ext.core.estimators import packaged_folder
from amlb_ext.core.files import TEMPORARY_SUFFIX, write_file, write_text
from amlb_ext.core.yaml_reader import Loader
from amlb_ext.suite.definition import yaml_text
from amlb_ext.suite.layout import TABLE_INTEGRATION, Layout, files_below
from amlb_ext.suite.reader import Suite

#: Code of an integration that stands elsewhere in the package, by its place in a suite.
CODE_ELSEWHERE = {
    "extensions/HardsynthForecast/local_methods.py": Path(__file__).parents[1]
    / "models"
    / "local_methods.py"
}
#: What Python, or a set-up of it, leaves beside the code of an integration.
_LEFTOVERS = frozenset({"__pycache__", "venv", "programs", "lib"})
#: What the names of the entries that hardsynth writes begin with.
_RESERVED_PREFIXES = ("Hardsynth", "LLMCoder_", "hardsynth", "weirdml")


def write_shared_files(
    suite: Suite, *, frameworks: Mapping[str, Any]
) -> dict[str, str]:
    """Write every file that belongs to no task, except the manifest and the request.

    Parameters
    ----------
    suite : Suite
        Of its manifest everything but the files.
    frameworks : mapping
        Content of ``frameworks.yaml``; the integrations that it names are copied to
        ``extensions/``. Entries of the user's own that stand there and among the constraints are
        kept.

    Returns
    -------
    dict of str to str
        The sha256 of each file, by relative path. A definition that names the suite's folder has
        none.

    Raises
    ------
    SuiteError
        The disk cannot be written.
    """
    layout = suite.layout
    digests = {layout.config: write_text(layout.config, suite.configuration())}
    for path, text in suite.definition_texts().items():
        digest = write_text(path, text)
        if not suite.manifest.names_its_folder:
            digests[path] = digest
    # the comments of the packaged constraints stay
    grown = {
        layout.frameworks: yaml_text(dict(frameworks)),
        layout.constraints: suite.manifest.constraints,
    }
    for path, text in grown.items():
        digests[path] = write_suite_part(path, text)
    files = {layout.relative(path): digest for path, digest in digests.items()}
    modules = {*suite.manifest.integrations, *named_integrations(frameworks)}
    for module in sorted(modules):
        files |= copy_integration(layout, module)
    return files


def named_integrations(frameworks: Mapping[str, Any]) -> list[str]:
    """Return the folders of ``extensions/`` whose code framework definitions run.

    Examples
    --------
    >>> named_integrations({"a": {"module": "extensions.One"}, "b": {"extends": "a"}})
    ['One']
    """
    modules = set()
    for entry in frameworks.values():
        package, _, module = str(entry.get("module", "")).partition(".")
        if package == "extensions" and module:
            modules.add(module.split(".")[0])
        # a model of ours is run from a copy, too
        params = entry.get("params") or {}
        for family in ("classifier", "regressor"):
            modules.add(packaged_folder(str(params.get(family) or "")))
    return sorted(modules - {""})


def copy_integration(layout: Layout, module: str, name: str = "") -> dict[str, str]:
    """Copy a packaged integration to ``extensions/``; return the sha256 of each copy.

    Its folder there bears another name where it is a user's addition to a suite.
    """
    source = asset_path("frameworks", module)
    folder = layout.extensions / (name or module)
    copies = {}
    for relative in _code(source):
        copies[folder / relative] = source / relative
    for place, path in CODE_ELSEWHERE.items():
        if place.startswith(f"extensions/{module}/"):
            copies[folder / path.name] = path
    if module == TABLE_INTEGRATION:
        # it tells how a framework of one's own is added
        copies[layout.extensions / "README.md"] = source.parent / "README.md"
    written = {}
    for target, path in copies.items():
        copy = partial(shutil.copyfile, path)
        written[layout.relative(target)] = write_file(target, copy)
    return written


def _code(source: Path) -> Iterable[str]:
    """Yield the files of a packaged integration, without what would differ between machines."""
    for relative in files_below(source):
        steps = relative.split("/")
        # editors and killed runs leave files, too
        is_hidden = any(step.startswith(".") for step in steps)
        is_leftover = relative.endswith((".pyc", TEMPORARY_SUFFIX))
        if not (is_hidden or is_leftover or _LEFTOVERS & set(steps)):
            yield relative


# Entries of the user's own. AMLB reads the frameworks and the constraints of a suite from one file
# each, which is where a user adds one. The manifest promises the part that hardsynth wrote; a
# repair or another generation makes that part again, and the user's entries stay, letter by letter.


def is_own_entry(name: str) -> bool:
    """Return whether an entry is the user's.

    Examples
    --------
    >>> is_own_entry("my_forest"), is_own_entry("HardsynthNull")
    (True, False)
    """
    return not name.startswith(_RESERVED_PREFIXES)


def split_own_entries(text: str) -> tuple[str, str]:
    """Return the part of a file that hardsynth wrote, and the user's entries.

    Comments and empty lines before an entry go with it.

    Parameters
    ----------
    text : str

    Returns
    -------
    suite_part, own_part : str
        The whole text and nothing, where the entries cannot be told apart: no YAML, no mapping,
        or several entries on a line.

    Examples
    --------
    >>> split_own_entries("---\\nHardsynthNull: {version: a}\\n\\n# mine\\nfast:\\n  version: b\\n")
    ('---\\nHardsynthNull: {version: a}\\n', '\\n# mine\\nfast:\\n  version: b\\n')
    """
    try:
        node = Loader(text).get_single_node()
    except (yaml.YAMLError, RecursionError):
        return text, ""
    if not isinstance(node, yaml.MappingNode) or node.flow_style:
        return text, ""
    keys = {key.start_mark.line: str(key.value) for key, _ in node.value}
    if len(keys) < len(node.value):
        return text, ""
    parts: dict[bool, list[str]] = {False: [], True: []}
    waiting: list[str] = []
    is_own = False
    for number, line in enumerate(text.splitlines(keepends=True)):
        if number in keys:
            is_own = is_own_entry(keys[number])
        waiting.append(line)
        # whose comments and empty lines are tells the next line that is none
        if line.strip() and not line.strip().startswith("#"):
            parts[is_own] += waiting
            waiting = []
    parts[is_own] += waiting
    return "".join(parts[False]), "".join(parts[True])


def read_own_entries(path: Path) -> str:
    """Return the user's entries of a file as they stand there; empty where it has none."""
    return split_own_entries(_read_text(path))[1]


def read_suite_part(path: Path) -> str:
    """Return what hardsynth wrote of a file, without the user's entries."""
    return split_own_entries(_read_text(path))[0]


def write_suite_part(path: Path, text: str) -> str:
    """Write the part that hardsynth writes, and leave the user's entries behind it.

    Returns
    -------
    str
        The sha256 of that part, which is what a manifest promises.
    """
    own_part = read_own_entries(path)
    if own_part and not text.endswith("\n"):
        text += "\n"
    write_text(path, text + own_part)
    return sha256_text(text)


def sha256_text(text: str) -> str:
    """Return the sha256 of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _read_text(path: Path) -> str:
    # Line ends stay as they are: the digest is one of bytes.
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


# Definitions that name the folder of their suite, where that folder was moved. The files of a long
# table have an absolute path in every definition, so what was written elsewhere is stale. It is
# then made anew from the manifest, in the suite or beside the results.


def has_text(path: Path, text: str) -> bool:
    """Whether a file is there and holds this text, byte for byte."""
    try:
        return path.read_bytes() == text.encode("utf-8")
    except OSError:
        return False


def placed_texts(suite: Suite, root: Path | None = None) -> dict[Path, str]:
    """Return the text of each definition that names the suite's folder, by its file.

    Parameters
    ----------
    suite : Suite
    root : Path, optional
        Where the suite stands, if not where it was opened.
    """
    return suite.definition_texts(root) if suite.manifest.names_its_folder else {}


def stale_definitions(suite: Suite, *, where_it_stands: bool) -> list[str]:
    """Return a sentence for each definition that is missing, changed or names another folder.

    Parameters
    ----------
    suite : Suite
    where_it_stands : bool
        Whether they must name the folder where the suite stands now.
    """
    former = None if where_it_stands else _former_root(suite)
    former_texts = placed_texts(suite, former)
    mend = f"hardsynth verify {shlex.quote(str(suite.layout.root))} --repair"
    sentences = []
    for path, text in placed_texts(suite).items():
        relative = suite.layout.relative(path)
        if not path.is_file():
            sentences.append(f"{relative} is missing; {mend} writes it")
            continue
        if has_text(path, text) or has_text(path, former_texts[path]):
            continue
        sentences.append(
            f"{relative} names files where the suite no longer stands, or has changed; {mend} "
            "writes it anew"
        )
    return sentences


def place_definitions(suite: Suite) -> list[str]:
    """Write the definitions anew for the place where the suite stands; return which changed.

    Raises
    ------
    SuiteError
        The disk cannot be written.
    """
    changed = []
    for path, text in placed_texts(suite).items():
        if not has_text(path, text):
            write_text(path, text)
            changed.append(suite.layout.relative(path))
    return changed


def runnable_definition(suite: Suite, benchmark: str, results: Path) -> str:
    """Return a definition of a suite that AMLB can run where the suite stands.

    That is the suite's own where its paths are right, else a copy beside the results, of the same
    name: a suite may stand on a disk that cannot be written.

    Parameters
    ----------
    suite : Suite
    benchmark : str
        A name; that of another definition is returned as it is.
    results : Path
    """
    path = suite.layout.definition(benchmark)
    text = placed_texts(suite).get(path)
    if text is None or has_text(path, text):
        return benchmark
    copy = results / "definitions" / path.name
    write_text(copy, text)
    return str(copy)


def _former_root(suite: Suite) -> Path | None:
    """Return where the suite stood when its main definition was written, if that can be told."""
    if not suite.manifest.names_its_folder:
        return None
    try:
        written = dict(read_definition(suite.layout.definition(suite.name)))
    except (DefinitionError, OSError):
        return None
    for task in suite.manifest.listed:
        dataset = written.get(task.name, {}).get("dataset", {})
        named = Path(str(dataset.get("path", "")))
        for file in task.data_files:
            steps = tuple(file.split("/"))
            if named.is_absolute() and named.parts[-len(steps) :] == steps:
                return named.parents[len(steps) - 1]
    return None
