"""One process at a time: locks that the operating system releases when their holder dies.

:func:`lock_folder` keeps two processes from writing one suite. The file ``hardsynth/.lock`` exists
while a process writes, and names it. The lock is the system's lock on that file, not the file
itself, so a killed process leaves nothing behind that blocks the next one.

:func:`lock_open_file` locks a file that stays open, so that a child process can inherit the lock.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from amlb_ext.core.errors import SuiteError
from amlb_ext.core.files import explain_disk_errors
from amlb_ext.core.paths import check_no_links


@contextlib.contextmanager
def lock_folder(lock_file: Path, folder: Path) -> Iterator[None]:
    """Hold a folder for this process; the holder may enter again.

    Folders that are made for the lock are removed with it if nothing else was written there.

    Parameters
    ----------
    lock_file : Path
        In the folder; exists while the lock is held.
    folder : Path
        The folder that is held.

    Raises
    ------
    SuiteError
        Another process writes to this folder, something in it is a link, or the lock file cannot
        be written.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp(), "hard")
    >>> lock_file = folder / "hardsynth" / ".lock"
    >>> with lock_folder(lock_file, folder), lock_folder(lock_file, folder):
    ...     lock_file.exists()
    True
    >>> folder.exists()
    False
    """
    # before anything is written, the lock included
    check_no_links(folder)
    # one lock for every way to the folder, which may lie behind a link
    path = Path(os.path.realpath(folder), lock_file.relative_to(folder))
    new_folders = [parent for parent in path.parents if not parent.exists()]
    # A singleton is one object for the path in this process, so the holder may enter again.
    lock = FileLock(path, timeout=0, is_singleton=True)
    if lock.is_locked:
        with lock:
            yield
        return
    try:
        try:
            with explain_disk_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                lock.acquire()
        except SuiteError as error:
            if isinstance(error.__cause__, Timeout):
                raise _folder_is_held(folder, path) from None
            raise
        # On a full disk the file stays empty, and the lock holds all the same.
        with contextlib.suppress(OSError):
            since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
            holder = {"process": os.getpid(), "host": socket.gethostname()}
            _write_without_link(path, json.dumps({**holder, "since": since}))
        try:
            yield
        finally:
            # Removed while it is held: a process that opened it meanwhile sees the file is gone.
            with contextlib.suppress(OSError):
                path.unlink()
            lock.release()
    finally:
        for new_folder in new_folders:
            with contextlib.suppress(OSError):
                new_folder.rmdir()


#: Seconds between two attempts to lock a file that another process holds.
POLL_SECONDS = 0.2


@contextlib.contextmanager
def lock_open_file(path: Path, when_held: Callable[[], None]) -> Iterator[int]:
    """Lock a file that stays open, for this process and the children that inherit it.

    If the system or the file system has no such locks, the block runs without one.

    NOTE[OWN] ``filelock`` gives no access to the open file, and releases a lock for the children
    too. Here the lock lasts until the last process that has the file open ends.

    Parameters
    ----------
    path : Path
        Created with its folder if missing; never removed and never emptied.
    when_held : callable
        Called once if another process holds the lock. It raises to give up, or returns to wait.

    Yields
    ------
    int
        The file descriptor, for ``pass_fds`` of :class:`subprocess.Popen`.

    Raises
    ------
    OSError
        The file cannot be opened.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        has_waited = False
        while not _try_to_lock(file.fileno()):
            if not has_waited:
                when_held()
                has_waited = True
            time.sleep(POLL_SECONDS)
        yield file.fileno()


def is_locked(path: Path) -> bool:
    """Whether another process holds the lock of :func:`lock_open_file` on a file.

    Examples
    --------
    >>> is_locked(Path("no such file"))
    False
    """
    try:
        with path.open("rb") as file:
            return not _try_to_lock(file.fileno())
    except OSError:
        return False


def _try_to_lock(descriptor: int) -> bool:
    try:
        import fcntl
    except ImportError:
        # Windows
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # other errors are of a file system without locks, such as some network drives
        return not isinstance(error, BlockingIOError)
    return True


def _write_without_link(path: Path, text: str) -> None:
    """Write a file that another process may swap for a link meanwhile."""
    flags = os.O_WRONLY | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    with open(os.open(path, flags), "w", encoding="utf-8") as file:
        file.write(text)


def _folder_is_held(folder: Path, path: Path) -> SuiteError:
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        who = f"process {holder['process']} on {holder['host']} since {holder['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        who = "another process"
    return SuiteError(
        f"{folder} is being written by {who}",
        "wait until it has ended, then run the same command again, or choose another folder",
    )
