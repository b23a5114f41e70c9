"""The streams that commands print to: text for any terminal, and an error where output fails.

A terminal that can show ASCII only gets ``+/-`` for ``±``, and an escape for a character without
such a spelling. A failure to write to standard output is an error of its own, since the command's
work may be done; a failure to write to standard error is ignored, since there is no place left to
report it.
"""

from __future__ import annotations

import codecs
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

from amlb_ext.core.display import escape_controls
from amlb_ext.core.errors import ConfigError, is_utf8

#: Name under which :mod:`codecs` knows the error handler :func:`spell_out`.
PLAIN = "hardsynth.plain"

#: ASCII spellings of the signs that this package prints.
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
#: What begins a command of a pipeline's runner; a line may end in a carriage return.
_COMMAND = re.compile(r"((?:\A|[\r\n])\s*):(:)")
_OLD_COMMAND = re.compile(r"#(?=#(?:vso|teamcity)?\[)")


class OutputError(Exception):
    """Standard output cannot be written."""


def spell_out(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that an encoding lacks; an error handler for :mod:`codecs`.

    Examples
    --------
    >>> _ = codecs.register_error(PLAIN, spell_out)
    >>> "0.2 ± 0.1, é".encode("ascii", PLAIN)
    b'0.2 +/- 0.1, \\\\xe9'
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = ""
    for sign in error.object[error.start : error.end]:
        escape = sign.encode("ascii", "backslashreplace").decode("ascii")
        text += _SPELLINGS.get(sign, escape)
    return text, error.end


class _Stream:
    """A stream with its own ``write`` and ``flush``; the rest is that of the wrapped stream."""

    def __init__(
        self,
        stream: Any,
        guard: Callable[[], AbstractContextManager[None]],
        clean: Callable[[str], str],
    ) -> None:
        self._stream = stream
        self._guard = guard
        self._clean = clean
        self._is_blank = True

    def write(self, text: str) -> int:
        with self._guard():
            self._stream.write(self._without_commands(self._clean(text)))
        return len(text)

    def flush(self) -> None:
        with self._guard():
            self._stream.flush()

    def _without_commands(self, text: str) -> str:
        """Return text that a runner of pipelines takes for no command, such as ``::error::``.

        GitHub, *Workflow commands*: a line that begins with two colons, after blanks or none;
        ``##[`` in older ones anywhere, as ``##vso[`` on Azure and ``##teamcity[``.
        """
        # what is no blank stands before it, though it was written earlier
        before = "" if self._is_blank else "."
        safe = _COMMAND.sub(r"\g<1>\\x3a\g<2>", before + text)[len(before) :]
        last_line = re.split(r"[\r\n]", before + text)[-1]
        self._is_blank = not last_line.strip()
        return _OLD_COMMAND.sub(r"\\x23", safe)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def print_commands(lines: Sequence[str], stream: Any) -> None:
    """Print lines that are meant for a runner of pipelines."""
    with _raise_output_error():
        print(*lines, sep="\n", file=getattr(stream, "_stream", stream))


@contextmanager
def _raise_output_error() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        # an OSError too, but no failure: the reader of the pipe wants no more
        raise
    except OSError as error:
        raise OutputError(
            f"cannot write to standard output: {error.strerror}"
        ) from None


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Let standard output and standard error accept any text, and write all of it.

    Raises
    ------
    OutputError
        Standard output is full or fails, and is closed.
    BrokenPipeError
        The reader of standard output has gone, as ``| head`` does, and it is closed.
    """
    codecs.register_error(PLAIN, spell_out)
    output = sys.stdout
    messages = sys.stderr
    with _any_text(output), _any_text(messages):
        # A stream is None in a process without a console.
        # names and labels of others may hold what moves a terminal's cursor, as a progress bar may
        sys.stdout = output and _Stream(output, _raise_output_error, escape_controls)
        sys.stderr = messages and _Stream(messages, lambda: suppress(OSError), str)
        try:
            try:
                yield
            finally:
                # a full disk shows up here, not before Python flushes at exit
                if sys.stdout is not None:
                    sys.stdout.flush()
        except (OutputError, BrokenPipeError):
            _discard_rest(output)
            raise
        finally:
            # Restored for a caller in the same process, such as a notebook.
            sys.stdout = output
            sys.stderr = messages
            try:
                if messages is not None:
                    messages.flush()
            except OSError:
                _discard_rest(messages)


@contextmanager
def _any_text(stream: Any) -> Iterator[None]:
    """Let a stream spell out what its encoding lacks."""
    errors = getattr(stream, "errors", None)
    if errors is None or not hasattr(stream, "reconfigure"):
        yield
        return
    stream.reconfigure(errors=PLAIN)
    try:
        yield
    finally:
        stream.reconfigure(errors=errors)


def _discard_rest(stream: Any) -> None:
    """Send what is left to nowhere; else Python writes it at exit, and fails again."""
    # A stream without a descriptor, as a test has it, raises ValueError.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def check_words(words: Sequence[str]) -> None:
    """Refuse arguments that are not text, before anything is written.

    Python passes such bytes on as lone surrogates, which no file of a suite can hold.

    Raises
    ------
    ConfigError
        Names the argument, and the locale if that is the cause.
    """
    for word in words:
        if is_utf8(word):
            continue
        # The bytes as they were typed: UTF-8 that the locale cannot hold, or no UTF-8 at all.
        try:
            text = os.fsencode(word).decode("utf-8")
        except UnicodeDecodeError:
            shown = os.fsencode(word).decode("ascii", "backslashreplace")
            raise ConfigError(
                f"'{shown}' is not UTF-8",
                "rename the file or folder, or convert the argument to UTF-8",
            ) from None
        raise ConfigError(
            f"the locale's encoding, {sys.getfilesystemencoding()}, cannot hold {text!a}",
            "set LC_ALL=C.UTF-8 or PYTHONUTF8=1, or rename the file or folder",
        )
