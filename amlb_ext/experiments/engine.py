"""One engine for whatever repeats an experiment: keyed, resumable, on several processes.

A repetition is a pure function of its arguments. Its result is a JSON file that carries a key, the
hash of everything the result depends on. A finished repetition of the same key is never computed
again, so the same command continues a run that was stopped; workers change nothing but time.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amlb_ext.core.files import remove_temporary_files, write_text
from amlb_ext.core.parallel import available_cores, run_jobs
from amlb_ext.core.progress import Bar
from amlb_ext.core.version import __version__
from amlb_ext.suite.sealed_json import json_text


@dataclass(frozen=True)
class Repetition:
    """One repetition: what computes it, and where its result stands.

    Attributes
    ----------
    path : Path
        The result's file; other files of the repetition stand beside it.
    key : str
        See :func:`hash_key`.
    compute : callable
        Returns the result, a dictionary of JSON values; a function of a module, so that another
        process can import it.
    arguments : tuple
    """

    path: Path
    key: str
    compute: Callable[..., dict[str, Any]]
    arguments: tuple[Any, ...]


def hash_key(*parts: Any) -> str:
    """Return the sha256 of everything a result depends on, this package's version included.

    Parameters
    ----------
    *parts
        JSON values; others count by their text.
    """
    text = json.dumps([__version__, *parts], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def run_repetitions(
    repetitions: Sequence[Repetition],
    *,
    name: str,
    unit: str,
    workers: int = 0,
    quiet: bool = True,
) -> list[dict[str, Any]]:
    """Compute the repetitions that are not finished yet, and return the results of all.

    Parameters
    ----------
    repetitions : sequence of Repetition
    name, unit : str
        What the progress bar says.
    workers : int
        Processes; 0 for every core.
    quiet : bool
        Show no progress bar.

    Returns
    -------
    list of dict
        In the order of ``repetitions``, as read from their files.

    Examples
    --------
    >>> with open_results_folder(None) as folder:
    ...     path = folder / "draw_0.json"
    ...     repetition = Repetition(path, hash_key(7), dict, ([("answer", 42)],))
    ...     results = run_repetitions([repetition], name="example", unit="draw", workers=1)
    >>> results[0]["answer"]
    42
    """
    # of a run that was killed while it wrote
    for folder in {repetition.path.parent for repetition in repetitions}:
        if folder.exists():
            remove_temporary_files(folder)
    unfinished = []
    for repetition in repetitions:
        if read_finished(repetition.path, repetition.key) is None:
            unfinished.append((repetition,))
    # no more processes than there is work: each takes a second to start
    workers = min(workers or available_cores(), max(1, len(unfinished)))
    with Bar(total=len(unfinished), desc=name, unit=unit, disable=quiet) as bar:
        for _ in run_jobs(_compute_and_write, unfinished, workers):
            bar.update()
    # from their files, so that a result just computed equals one read later
    return [
        json.loads(repetition.path.read_text(encoding="utf-8"))
        for repetition in repetitions
    ]


def read_finished(path: Path, key: str) -> dict[str, Any] | None:
    """Return the result of a finished repetition, None where there is none of that key."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    # an older result of other settings is computed again, and written over
    is_same = isinstance(result, dict) and result.get("key") == key
    return result if is_same else None


@contextmanager
def open_results_folder(out: Path | None) -> Iterator[Path]:
    """Yield the folder of the results; a temporary one where nobody asked to keep them."""
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def _compute_and_write(repetition: Repetition) -> None:
    result = repetition.compute(*repetition.arguments)
    write_text(repetition.path, json_text({"key": repetition.key, **result}))
