"""Files that are whole or absent: each is written beside its place, then renamed."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from amlb_ext.core.errors import HardsynthError, SuiteError

#: Ending of files, and of one folder, that are not yet in their place.
TEMPORARY_SUFFIX = ".hardsynth-part"
#: Codes of a full disk or quota; Windows has no quota code.
_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
#: Codes of a folder that cannot be written.
_LOCKED = {errno.EROFS, errno.EACCES, errno.EPERM}


def cache_folder(*parts: str) -> Path:
    """Return a folder for what is fetched once, below the user's cache; it is not made.

    ``$HARDSYNTH_CACHE``, ``$XDG_CACHE_HOME/hardsynth`` or ``~/.cache/hardsynth``.

    Parameters
    ----------
    *parts : str
        Path below it.

    Examples
    --------
    >>> cache_folder("archives").name
    'archives'
    """
    own = os.environ.get("HARDSYNTH_CACHE")
    # set but empty counts as not set, as the XDG specification demands
    user_cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    root = Path(own or Path(user_cache, "hardsynth"))
    return root.expanduser().absolute().joinpath(*parts)


@contextlib.contextmanager
def inputs_folder(out: Path) -> Iterator[Path]:
    """Lend the folder beside a suite that keeps what it is made of, so that a repair finds it.

    It is removed again where no suite was made, unless it was there before.

    Parameters
    ----------
    out : Path
        The suite's folder.
    """
    folder = out.with_name(f"{out.name}_inputs")
    was_there = folder.exists()
    try:
        yield folder
    except HardsynthError:
        if not was_there:
            shutil.rmtree(folder, ignore_errors=True)
        raise


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
some space or choose another folder, then run the same command again)
    """
    try:
        yield
    except OSError as error:
        # pyarrow raises errors without a code, whose text may have several lines.
        if error.errno:
            problem = os.strerror(error.errno)
        else:
            problem = " ".join(str(error).split())
        remedy = "choose another folder, then run the same command again"
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
