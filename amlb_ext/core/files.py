"""Files that are whole or absent: each is written beside its place, then renamed."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from amlb_ext.core.errors import SuiteError
from amlb_ext.core.paths import check_no_links

#: Ending of files, and of one folder, that are not yet in their place.
TEMPORARY_SUFFIX = ".hardsynth-part"
#: Codes of a full disk or quota; Windows has no quota code.
_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
#: Codes of a folder that cannot be written.
_LOCKED = {errno.EROFS, errno.EACCES, errno.EPERM}


def write_file(path: Path, write: Callable[[Path], object]) -> str:
    """Let ``write`` fill a temporary file, then rename it to ``path``.

    The temporary file has a name of its own in every call, so that processes that write the
    same file at once never mix their bytes: the last one to finish stands.

    Parameters
    ----------
    path : Path
        Place of the file; its folder is made if missing.
    write : callable
        Called with the temporary path.

    Returns
    -------
    str
        The sha256 of the file, as 64 hexadecimal digits.

    Raises
    ------
    SuiteError
        When the disk or the quota is full or the folder cannot be written; nothing is left behind.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     digest = write_file(Path(folder, "a.txt"), lambda part: part.write_text("hello"))
    ...     digest[:8], [path.name for path in Path(folder).iterdir()]
    ('2cf24dba', ['a.txt'])
    """
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(6)}{TEMPORARY_SUFFIX}")
    with explain_disk_errors(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write(temporary)
            digest = sha256_file(temporary)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
    return digest


@contextlib.contextmanager
def explain_disk_errors(path: Path) -> Iterator[None]:
    """Turn the error of a full or read-only disk into one line with a remedy.

    Parameters
    ----------
    path : Path
        The file that is being written, renamed or removed.

    Raises
    ------
    SuiteError
        Instead of every ``OSError``, also those of pandas and pyarrow.

    Examples
    --------
    >>> with explain_disk_errors(Path("hard/config.yaml")):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.SuiteError: cannot write hard/config.yaml: No space left on device (free \
some space or choose another folder with -o, then run the same command again)
    """
    try:
        yield
    except OSError as error:
        # pyarrow raises errors without a code, whose text may have several lines.
        if error.errno:
            problem = os.strerror(error.errno)
        else:
            problem = " ".join(str(error).split())
        remedy = "choose another folder with -o, then run the same command again"
        if error.errno in _LOCKED:
            remedy = f"make the folder writable or {remedy}"
        elif error.errno in _FULL or not error.errno:
            remedy = f"free some space or {remedy}"
        raise SuiteError(f"cannot write {path}: {problem}", remedy) from error


def write_text(path: Path, text: str) -> str:
    """Write ``text`` as UTF-8 with Unix line ends, and return the sha256."""
    return write_file(
        path, lambda part: part.write_text(text, encoding="utf-8", newline="\n")
    )


def remove_file(path: Path) -> None:
    """Remove a file that may be missing; ``SuiteError`` if the disk does not allow it."""
    with explain_disk_errors(path):
        path.unlink(missing_ok=True)


def move_file(path: Path, to: Path) -> None:
    """Rename a file and replace any file there; ``SuiteError`` if the disk does not allow it."""
    with explain_disk_errors(to):
        to.parent.mkdir(parents=True, exist_ok=True)
        path.replace(to)


def sha256_file(path: Path) -> str:
    """Return the sha256 of a file as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        for block in iter(lambda: handle.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def remove_temporary_files(folder: Path) -> None:
    """Remove temporary files and folders that a killed run left below ``folder``."""
    # a list, since removing a folder would confuse a walk that is under way
    for part in list(folder.rglob(f"*{TEMPORARY_SUFFIX}")):
        if part.is_dir():
            with explain_disk_errors(part):
                shutil.rmtree(part)
        else:
            remove_file(part)


# One process at a time: locks that the operating system releases when their holder dies.
#
# :func:`lock_folder` keeps two processes from writing one suite. The file hardsynth/.lock exists
# while a process writes, and names it. The lock is the system's lock on that file, not the file
# itself, so a killed process leaves nothing behind that blocks the next one.
#
# :func:`lock_open_file` locks a file that stays open, so that a child process can inherit the lock.


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
            _write_without_link(path, json.dumps(_describe_this_process()))
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


def _try_to_lock(descriptor: int) -> bool:
    try:
        import fcntl
    except ImportError:
        # Windows
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # a file system without locks, such as some network drives
        return True
    return True


def _write_without_link(path: Path, text: str) -> None:
    """Write a file that another process may swap for a link meanwhile."""
    flags = os.O_WRONLY | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    with open(os.open(path, flags), "w", encoding="utf-8") as file:
        file.write(text)


def _describe_this_process() -> dict[str, str | int]:
    since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    return {"process": os.getpid(), "host": socket.gethostname(), "since": since}


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
