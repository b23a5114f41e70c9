"""One engine for whatever repeats an experiment: keyed, resumable, on several processes.

A repetition is a pure function of its arguments. Its result is a JSON file that carries a key, the
hash of everything the result depends on. A finished repetition of the same key is never computed
again, so the same command continues a run that was stopped; workers change nothing but time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from amlb_ext.core.files import remove_temporary_files, write_text
from amlb_ext.core.parallel import available_cores, run_jobs
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
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "one.json"
    ...     one = Repetition(path, hash_key(7), dict, ([("answer", 42)],))
    ...     result = run_repetitions([one], name="example", unit="draw", workers=1)
    >>> result[0]["answer"]
    42
    """
    for folder in {repetition.path.parent for repetition in repetitions}:
        if folder.exists():
            remove_temporary_files(folder)
    unfinished = [
        (one,) for one in repetitions if read_finished(one.path, one.key) is None
    ]
    workers = min(workers or available_cores(), max(1, len(unfinished)))
    with tqdm(total=len(unfinished), desc=name, unit=unit, disable=quiet) as bar:
        for _ in run_jobs(_compute, unfinished, workers):
            bar.update()
    return [json.loads(one.path.read_text(encoding="utf-8")) for one in repetitions]


def read_finished(path: Path, key: str) -> dict[str, Any] | None:
    """Return the result of a finished repetition, None where there is none of that key."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return result if isinstance(result, dict) and result.get("key") == key else None


def _compute(repetition: Repetition) -> None:
    result = repetition.compute(*repetition.arguments)
    write_text(repetition.path, json_text({"key": repetition.key, **result}))
