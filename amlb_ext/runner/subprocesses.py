"""Commands with errors of one line, and a lock between processes."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from amlb_ext.core.errors import RunError
from amlb_ext.core.locks import lock_open_file
from amlb_ext.core.redact import redact_text

#: Takes a progress message.
Say = Callable[[str], None]


def run_command(
    arguments: Sequence[str], failing: str, remedy: str = "", timeout: float = 1800
) -> str:
    """Run a command; return its output, stripped.

    Raises
    ------
    RunError
        ``failing`` and the command's last line of complaint, without any credentials.
    """
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "PIP_NO_INPUT": "1"}
    for name in ("PYTHONPATH", "PYTHONHOME"):
        environment.pop(name, None)
    try:
        done = subprocess.run(
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
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        told = [line for line in lines if line.lower().startswith(("error", "fatal"))]
        last = (told or lines or [f"exit status {done.returncode}"])[-1]
        raise RunError(f"{failing}: {redact_text(last)}", remedy)
    return done.stdout.strip()


def shareable(text: str) -> str:
    """Remove credentials and the folders of this machine from a text that others may read.

    Examples
    --------
    >>> shareable("Command '/home/me/amlb/frameworks/GAMA/setup.sh' failed")
    "Command '.../setup.sh' failed"
    >>> shareable("see https://host.org/a/b/c, or/and 1/2/3")
    'see https://host.org/a/b/c, or/and 1/2/3'
    """
    return re.sub(
        r"(?<![\w:/.])(?:/[^\s/'\",:;]+){2,}/(?=[^\s/'\",:;])",
        ".../",
        redact_text(text),
    )


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
    with contextlib.ExitStack() as stack:
        try:
            descriptor = stack.enter_context(
                lock_open_file(
                    path,
                    lambda: say(
                        f"waiting for another process that sets up AMLB ({path})"
                    ),
                )
            )
        except OSError as error:
            raise RunError(
                f"{path.parent} cannot be written: {error.strerror}",
                "set HARDSYNTH_CACHE to a folder of yours, or give a checkout of yours with --amlb",
            ) from None
        yield descriptor
