"""Definitions that name the folder of their suite, where that folder was moved.

The files of a long table have an absolute path in every definition, so what was written elsewhere
is stale. A definition is then made anew from the manifest, in the suite or beside the results.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from amlb_ext.amlb.definition import read_definition
from amlb_ext.core.errors import DefinitionError
from amlb_ext.core.files import write_text
from amlb_ext.suite.folder_faults import has_text
from amlb_ext.suite.reader import Suite


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
