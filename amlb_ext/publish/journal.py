"""Record what was sent to a server: ``hardsynth/publish/<host>.jsonl`` in the suite.

One line before each POST and one after, on disk before the program goes on. Lines are keyed by
content, so what was published of an earlier state of the suite is not mixed up with the present.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from amlb_ext.core.errors import PublishError
from amlb_ext.core.locks import lock_open_file
from amlb_ext.suite import Layout

#: Every line has these.
_REQUIRED_KEYS = {"key", "step", "state"}


class Journal:
    """A server's journal in a suite; a context manager that keeps others out.

    Parameters
    ----------
    path : Path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Journal(Path(folder) / "a.jsonl").held() as journal:
    ...         journal.write("key", "data", "posted", id=7)
    ...     Journal(Path(folder) / "a.jsonl").last("key", "data")["id"]
    7
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last: dict[tuple[str, str], dict[str, Any]] = {}
        # the last line of a step wins
        for entry in self.entries():
            key = entry["key"]
            step = entry["step"]
            self._last[key, step] = entry

    @classmethod
    def of(cls, layout: Layout, host: str) -> Journal:
        """Return the journal of a server in a suite."""
        return cls(layout.publication(host))

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield the lines; one that was cut off by a crash is left out."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise PublishError(
                f"cannot read {self.path}: {reason}", "repair or remove it"
            ) from None
        for line in text.splitlines():
            with suppress(ValueError):
                entry = json.loads(line)
                if isinstance(entry, dict) and set(entry) >= _REQUIRED_KEYS:
                    yield entry

    def last(self, key: str, step: str) -> dict[str, Any]:
        """Return the last line of a step; empty when it was never begun."""
        return self._last.get((key, step), {})

    def write(self, key: str, step: str, state: str, **about: object) -> None:
        """Add a line and wait until it is on disk.

        Parameters
        ----------
        key : str
            Of the content.
        step : str
            ``data``, ``active``, ``task``, ``split``, ``tag``, ``suite``.
        state : str
            ``posting``, ``posted``, ``found``, ``refused`` and the like.
        **about
            Numbers and names; never a key of a server.
        """
        now = datetime.now(timezone.utc)
        entry = {
            "key": key,
            "step": step,
            "state": state,
            **about,
            "time": now.isoformat(timespec="seconds"),
        }
        line = json.dumps(entry, ensure_ascii=True) + "\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a+b") as handle:
                # a line that a crash cut off is ended, so that it does not spoil this one
                if handle.tell():
                    handle.seek(-1, os.SEEK_END)
                    if handle.read(1) != b"\n":
                        handle.write(b"\n")
                handle.write(line.encode())
                handle.flush()
                os.fsync(handle.fileno())
        except OSError as error:
            raise self._write_error(error) from None
        self._last[key, step] = entry

    @contextmanager
    def held(self) -> Iterator[Journal]:
        """Hold the journal, so that no second command publishes the same suite meanwhile.

        Raises
        ------
        PublishError
            Another command holds it, or the folder cannot be written.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(
                    lock_open_file(self.path, self._refuse_a_second_command)
                )
            except OSError as error:
                raise self._write_error(error) from None
            yield self

    def _refuse_a_second_command(self) -> None:
        raise PublishError(
            f"another hardsynth publish is using {self.path}", "wait until it ends"
        )

    def _write_error(self, error: OSError) -> PublishError:
        return PublishError(
            f"cannot write {self.path}: {error.strerror or error}",
            "make the suite's folder writable: without a journal something could be sent twice",
        )
