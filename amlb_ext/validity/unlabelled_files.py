"""Tables of real rows without labels: which file is whose."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from amlb_ext.core.errors import ConfigError, SourceError, nearest


def assign(words: Sequence[str], tasks: Sequence[str]) -> dict[str, Path]:
    """Return the file of each task from what follows ``--unlabelled``.

    Raises
    ------
    ConfigError
        A task that is unknown or named twice, or a bare file where there are several tasks.
    SourceError
        No such file.

    Examples
    --------
    >>> assign(["a=there.csv"], ["a", "b"])
    Traceback (most recent call last):
    amlb_ext.core.errors.SourceError: no such file: there.csv (check the path after --unlabelled)
    """
    found: dict[str, Path] = {}
    for word in words:
        task, sign, file = word.partition("=")
        if not (sign and task in tasks):
            if sign and not (len(tasks) == 1 and Path(word).exists()):
                raise ConfigError(f"--unlabelled names the task {task!r}", nearest(task, tasks))
            if len(tasks) > 1:
                raise ConfigError(
                    f"--unlabelled {word} names no task, the suite has {len(tasks)}",
                    f"use --unlabelled TASK={word} with one of {', '.join(tasks)}",
                )
            task, file = tasks[0], word
        if task in found:
            raise ConfigError(
                f"--unlabelled names {task!r} twice", "give one file per task, joined if need be"
            )
        found[task] = Path(file).expanduser()
        if not found[task].is_file():
            raise SourceError(f"no such file: {file}", "check the path after --unlabelled")
    return found
