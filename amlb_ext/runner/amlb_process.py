"""AMLB as a subprocess: its environment, its output, its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from amlb_ext.core.assets import asset_path
from amlb_ext.core.display import escape_controls
from amlb_ext.core.errors import RunError

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
