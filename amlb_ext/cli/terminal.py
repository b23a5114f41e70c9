"""The streams that commands print to: any terminal can show the text, and a full one is named.

A terminal that knows ASCII alone gets ``+/-`` for ``±``, and an escape for what has no such
spelling. What cannot be written to standard output is an error of its own, since the command's
work may be done; what cannot be written to standard error is dropped, since there is no place
left to say so.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from amlb_ext.core.display import escape_controls
from amlb_ext.core.errors import ConfigError, is_utf8

#: Name of the error handler of :func:`spelled_out`.
PLAIN = "hardsynth.plain"

#: How signs that are not ASCII are spelled out.
_SPELLINGS = {
    "±": "+/-",
    "−": "-",
    "–": "-",
    "—": "-",
    "·": "-",
    "→": "->",
    "≤": "<=",
    "≥": ">=",
    "×": "x",
    "²": "^2",
    "…": "...",
    "κ": "kappa",
    "δ": "delta",
    "Σ": "Sum",
    "“": '"',
    "”": '"',
    "‘": "'",
    "’": "'",
}


class OutputError(Exception):
    """Standard output cannot be written."""


def spelled_out(error: UnicodeError) -> tuple[str, int]:
    """Replace what an encoding lacks; an error handler of :mod:`codecs`.

    Examples
    --------
    >>> _ = codecs.register_error(PLAIN, spelled_out)
    >>> "0.2 ± 0.1, é".encode("ascii", PLAIN)
    b'0.2 +/- 0.1, \\\\xe9'
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    texts = [
        _SPELLINGS.get(sign) or sign.encode("ascii", "backslashreplace").decode("ascii")
        for sign in error.object[error.start : error.end]
    ]
    return "".join(texts), error.end


class _Stream:
    """A stream whose ``write`` and ``flush`` treat errors in their own way."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Output(_Stream):
    def write(self, text: str) -> int:
        with _named():
            # names and labels of others may hold what moves a terminal's cursor
            self._stream.write(escape_controls(text))
        return len(text)

    def flush(self) -> None:
        with _named():
            self._stream.flush()


class _Messages(_Stream):
    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


@contextmanager
def _named() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(
            f"cannot write to standard output: {error.strerror}"
        ) from None


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Make standard output and standard error take any text, and see that all was written.

    Raises
    ------
    OutputError
        Standard output is full or fails; it is closed then.
    BrokenPipeError
        Its reader has gone, as ``| head`` does; it is closed then.
    """
    codecs.register_error(PLAIN, spelled_out)
    output, messages = sys.stdout, sys.stderr
    before = [_take_any_text(stream) for stream in (output, messages)]
    sys.stdout = output and _Output(output)
    sys.stderr = messages and _Messages(messages)
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except (OutputError, BrokenPipeError):
        _close(output)
        raise
    finally:
        sys.stdout, sys.stderr = output, messages
        try:
            if messages is not None:
                messages.flush()
        except OSError:
            _close(messages)
        for stream, errors in zip((output, messages), before, strict=True):
            if errors is not None:
                stream.reconfigure(errors=errors)  # type: ignore[union-attr]


def _close(stream: Any) -> None:
    """Let what is left go nowhere; else Python writes it when it ends, and fails again."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _take_any_text(stream: Any) -> str | None:
    """Set the stream's error handler; return the one it had, None where it has none."""
    errors = getattr(stream, "errors", None)
    if errors is None or not hasattr(stream, "reconfigure"):
        return None
    stream.reconfigure(errors=PLAIN)
    return str(errors)


def check_words(words: Sequence[str]) -> None:
    """Refuse words of a command line that are no text, before anything is written.

    Python passes such bytes on as lone surrogates, which no file of a suite can hold.

    Raises
    ------
    ConfigError
        Naming the word, and the locale where that is to blame.
    """
    for word in words:
        if is_utf8(word):
            continue
        try:
            text = os.fsencode(word).decode("utf-8")
        except UnicodeDecodeError:
            shown = os.fsencode(word).decode("ascii", "backslashreplace")
            raise ConfigError(
                f"'{shown}' is not UTF-8",
                "rename the file or folder, or convert the word",
            ) from None
        raise ConfigError(
            f"the locale's encoding, {sys.getfilesystemencoding()}, cannot hold {text!a}",
            "set LC_ALL=C.UTF-8 or PYTHONUTF8=1, or rename the file or folder",
        )
