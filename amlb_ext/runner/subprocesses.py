"""Commands with errors of one line, and a lock between processes."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from amlb_ext.core.display import escape_controls, redact_text
from amlb_ext.core.errors import RunError
from amlb_ext.core.locks import lock_open_file

#: Takes a progress message.
Say = Callable[[str], None]


def say_nothing(text: str) -> None:
    """Take a progress message and drop it."""


def say_on_stderr(text: str) -> None:
    """Print a progress message, with what could steer a terminal written out."""
    print(escape_controls(f"hardsynth: {text}"), file=sys.stderr, flush=True)


def run_command(
    arguments: Sequence[str], failing: str, remedy: str = "", timeout: float = 1800
) -> str:
    """Run a command; return its output, stripped.

    Raises
    ------
    RunError
        ``failing`` and the command's last line of complaint, without any credentials.
    """
    # A question on a terminal that nobody watches would wait for ever.
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "PIP_NO_INPUT": "1"}
    # The interpreters that run here are others than ours, and have libraries of their own.
    for name in ("PYTHONPATH", "PYTHONHOME"):
        environment.pop(name, None)
    try:
        completed = subprocess.run(
            list(arguments),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env=environment,
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError:
        missing = Path(arguments[0]).name
        raise RunError(f"{failing}: {missing} is not installed", remedy) from None
    except subprocess.TimeoutExpired:
        raise RunError(
            f"{failing}: it did not finish within {timeout:.0f} s", remedy
        ) from None
    except OSError as error:
        raise RunError(f"{failing}: {error.strerror}", remedy) from None
    if completed.returncode:
        complaint = _last_complaint(completed.stderr)
        if not complaint:
            complaint = f"exit status {completed.returncode}"
        raise RunError(f"{failing}: {redact_text(complaint)}", remedy)
    return completed.stdout.strip()


def _last_complaint(stderr: str) -> str:
    """Return the last line that calls itself an error, else the last line, else nothing."""
    lines = nonempty_lines(stderr)
    for line in reversed(lines):
        if line.lower().startswith(("error", "fatal")):
            return line
    return lines[-1] if lines else ""


def nonempty_lines(text: str) -> list[str]:
    """Return the lines of a command's output that hold something, stripped."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line]


def shareable(text: str) -> str:
    """Remove credentials and the folders of this machine from a text that others may read.

    Examples
    --------
    >>> shareable("Command '/home/me/amlb/frameworks/GAMA/setup.sh' failed")
    "Command '.../setup.sh' failed"
    >>> shareable("see https://host.org/a/b/c, or/and 1/2/3")
    'see https://host.org/a/b/c, or/and 1/2/3'
    """
    # Two folders and more before a last name; not after a word, as in and/or, nor in an address.
    folders = r"(?<![\w:/.])(?:/[^\s/'\",:;]+){2,}/(?=[^\s/'\",:;])"
    return re.sub(folders, ".../", redact_text(text))


@contextlib.contextmanager
def locked(path: Path, say: Say) -> Iterator[int]:
    """Hold a lock file against other processes; it is freed even when its holder is killed.

    Yields
    ------
    int
        The open file. A child that gets it holds the lock, too, until it ends.
    """
    if sys.platform == "win32":
        raise RunError(
            "AMLB runs on Linux and macOS only",
            "on Windows use the Subsystem for Linux",
        )

    def say_waiting() -> None:
        say(f"waiting for another process that sets up AMLB ({path})")

    # An exit stack, so that errors of taking the lock are told from errors of the caller's block.
    with contextlib.ExitStack() as stack:
        try:
            descriptor = stack.enter_context(lock_open_file(path, say_waiting))
        except OSError as error:
            raise RunError(
                f"{path.parent} cannot be written: {error.strerror}",
                "set HARDSYNTH_CACHE to a folder of yours, or give a checkout of yours with --amlb",
            ) from None
        yield descriptor
