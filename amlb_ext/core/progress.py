"""What a unit of work is doing, told to whoever shows it while it runs.

A unit says which stage it begins, :func:`begin_stage`; the words reach a progress bar from this
process, and from the processes of this machine by way of a file. Nobody needs to listen.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tqdm import tqdm

#: Takes the words for a stage.
Listener = Callable[[str], None]

_listener: Listener | None = None


def begin_stage(words: str) -> None:
    """Say what is done next, such as ``fitting F``; without a listener nothing happens.

    Examples
    --------
    >>> with listening(print):
    ...     begin_stage("fitting F")
    fitting F
    """
    if _listener is not None:
        _listener(words)


@contextlib.contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Give the stages that begin in this process to a listener."""
    global _listener
    before = _listener
    _listener = listener
    try:
        yield
    finally:
        _listener = before


def write_stages_to(path: Path) -> Listener:
    """Return a listener that keeps the present stage in a file, for another process to read."""

    def write(words: str) -> None:
        # only a display: a full disk must not end the unit
        with contextlib.suppress(OSError):
            path.write_text(words, encoding="utf-8")

    return write


class Bar(tqdm):
    """A progress bar of tqdm; where no terminal shows it, a line for each unit that is done."""

    @staticmethod
    def status_printer(file: Any) -> Callable[[str], None]:
        """Return what writes the state of the bar."""
        if getattr(file, "isatty", lambda: False)():
            return tqdm.status_printer(file)
        written = ""

        def write_line(text: str) -> None:
            nonlocal written
            # times and stages behind the count change without a unit that is done
            count = text.strip().partition("[")[0]
            if not count or count == written or " 0/" in count:
                return
            written = count
            file.write(f"{text.strip()}\n")
            file.flush()

        return write_line


class StageDisplay:
    """The stages of all units that run, behind a progress bar.

    Parameters
    ----------
    bar : tqdm
    """

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._stages: dict[str, str] = {}

    def show(self, unit: str, words: str) -> None:
        """Show what a unit does now."""
        self._stages[unit] = words
        self._refresh()

    def forget(self, unit: str) -> None:
        """Show a unit no more: it has ended."""
        self._stages.pop(unit, None)
        self._refresh()

    def _refresh(self) -> None:
        if self._bar.disable:  # with --quiet; such a bar has no file to write to
            return
        texts = [f"{unit}: {words}" for unit, words in self._stages.items()]
        # in a log every refresh would be another line, so there the next count shows it
        is_terminal = getattr(self._bar.fp, "isatty", lambda: False)()
        self._bar.set_postfix_str(" | ".join(texts), refresh=is_terminal)
