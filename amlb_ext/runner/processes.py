"""AMLB as a subprocess: its environment, its output, its end."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from amlb_ext.core.assets import asset_path
from amlb_ext.core.display import escape_controls, redact_text
from amlb_ext.core.errors import RunError
from amlb_ext.core.locks import lock_open_file

#: Seconds that AMLB gets to end by itself after Ctrl-C.
GRACE = 30.0


def run_amlb(
    command: Sequence[str],
    *,
    root: Path,
    python: Path,
    log: Path,
    quiet: bool,
    settings: Mapping[str, str] | None = None,
    held: Sequence[int] = (),
) -> int:
    """Run AMLB; add its output to the log, and repeat it on stderr unless ``quiet``.

    Parameters
    ----------
    command : sequence of str
    root, python : Path
        The checkout, and the interpreter of its environment.
    log : Path
    quiet : bool
    settings : mapping, optional
        More environment variables.
    held : sequence of int
        Files that stay open in AMLB: locks that last until it has ended.

    Returns
    -------
    int
        AMLB's exit status.
    """
    bin_dir = python.parent
    search_path = [str(bin_dir), os.environ.get("PATH", os.defpath)]
    # An activated environment: AMLB's `setup_cmd` calls the `pip` that stands first on PATH.
    environment: dict[str, Any] = {
        **os.environ,
        "PATH": os.pathsep.join(search_path),
        # Without it AMLB takes a child that is on its way out for one that hangs.
        "PYTHONPATH": str(asset_path("resources", "amlb_sitecustomize")),
        "PYTHONUNBUFFERED": "1",
        # AMLB ends with us, even when we are killed
        "HARDSYNTH_RUNNER": str(os.getpid()),
        **(settings or {}),
    }
    # Ours would lead AMLB's interpreters to our libraries.
    environment.pop("PYTHONHOME", None)
    environment.pop("VIRTUAL_ENV", None)
    if (bin_dir.parent / "pyvenv.cfg").is_file():
        environment["VIRTUAL_ENV"] = str(bin_dir.parent)
    with log.open("a", encoding="utf-8") as sink:
        try:
            process = subprocess.Popen(
                list(command),
                cwd=root,
                env=environment,
                pass_fds=tuple(held),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            raise RunError(
                f"cannot start {command[0]}: {error.strerror}", "check --amlb"
            ) from None
        assert process.stdout is not None
        # A thread, so that a stray grandchild that keeps the pipe open cannot hold us up.
        reader = threading.Thread(
            target=_copy_lines,
            args=(process.stdout, sink, quiet),
            daemon=True,
            name="amlb-output",
        )
        reader.start()
        try:
            with _stopped_by_sigterm():
                process.wait()
        except BaseException as stop:
            # Ctrl-C reaches AMLB by itself
            end_tree(process, ask=not isinstance(stop, KeyboardInterrupt))
            raise
        finally:
            reader.join(timeout=10)
            if not reader.is_alive():
                process.stdout.close()
    return process.returncode


@contextlib.contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """Let SIGTERM and a closed terminal end this process as an exception: children end with it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    signals = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, stop) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


def end_tree(process: subprocess.Popen[str], *, ask: bool) -> None:
    """End a process and all that it started: a framework outlives an AMLB that is ended alone.

    Parameters
    ----------
    process : Popen
    ask : bool
        Whether they have to be asked to end, by SIGTERM.
    """
    import psutil

    tree: list[psutil.Process] = []
    # it may have ended meanwhile
    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(process.pid)
        tree = [parent, *parent.children(recursive=True)]
    for member in tree if ask else ():
        with contextlib.suppress(psutil.Error):
            member.terminate()
    _, alive = psutil.wait_procs(tree, timeout=GRACE)
    for member in alive:
        with contextlib.suppress(psutil.Error):
            member.kill()
    process.wait()


def _copy_lines(source: IO[str], sink: IO[str], quiet: bool) -> None:
    """Copy AMLB's output into the log as it comes, and onto stderr unless ``quiet``."""
    for line in source:
        if sink.closed:  # AMLB has ended; only a stray grandchild still writes
            return
        sink.write(line)
        if not quiet:
            sys.stderr.write(escape_controls(line))
            sys.stderr.flush()


# Commands with errors of one line, and a lock between processes.

#: Takes a progress message.
Say = Callable[[str], None]


def say_nothing(text: str) -> None:
    """Take a progress message and drop it."""


def say_on_stderr(text: str) -> None:
    """Print a progress message, with what could steer a terminal written out."""
    print(escape_controls(f"hardsynth: {text}"), file=sys.stderr, flush=True)


def run_command(
    arguments: Sequence[str],
    failing: str,
    remedy: str = "",
    timeout: float = 1800,
    **settings: str,
) -> str:
    """Run a command; return its output, stripped.

    Parameters
    ----------
    arguments : sequence of str
    failing, remedy : str
        Of the error.
    timeout : float
        Seconds.
    **settings
        Environment variables.

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
    environment |= settings
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
        # the last line that is an error, else the last line
        lines = [f"exit status {completed.returncode}"]
        lines += nonempty_lines(completed.stderr)
        complaint = framework_error(completed.stderr) or lines[-1]
        raise RunError(f"{failing}: {redact_text(complaint)}", remedy)
    return completed.stdout.strip()


COLOUR = re.compile(r"\x1b\[[0-9;]*m")
#: Of an error's line, which may hold a whole data frame.
MAX_CHARACTERS = 300
_OWN_ERROR = re.compile(
    # Python's, but AMLB's own ones, which say no more than that a process failed.
    r"^(?:\w+\.)*(?!CalledProcessError|NoResultError|StaleProcessError)"
    r"\w*(?:Error|Exception|Interrupt|NotFound)\b: .*$"
    # pip's, git's, apt's; not pip's remark on packages that nobody asked for
    r"|^(?:ERROR|error|fatal|E): (?!pip's dependency resolver|Command ).*$",
    re.M,
)


def framework_error(log: str) -> str:
    """Return the last line that is an error of the framework's own, or of what installs it.

    Examples
    --------
    >>> framework_error("ERROR: No matching distribution found for x\\nCalledProcessError: 1")
    'ERROR: No matching distribution found for x'
    >>> framework_error("all is well")
    ''
    """
    errors = _OWN_ERROR.findall(COLOUR.sub("", log))
    return errors[-1].strip()[:MAX_CHARACTERS] if errors else ""


def nonempty_lines(text: str) -> list[str]:
    """Return the lines of a command's output that hold something, stripped."""
    return [line.strip() for line in text.splitlines() if line.strip()]


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
