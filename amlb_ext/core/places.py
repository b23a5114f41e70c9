"""Where the files of a folder may stand: plain names, paths inside it, and no links.

A suite may be a stranger's. So a name or a path that its manifest gives is held to these rules
before a path is made of it, and nothing in it is read, written, locked or packed through a link.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from amlb_ext.core.errors import SuiteError

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,249}")
#: A step of a path: ASCII that no file system, shell or program takes for anything else.
_STEP = re.compile(r"[A-Za-z0-9_.+@=,~()\[\]{}' -]{1,250}")
#: What Windows takes for a device, whatever ending follows.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
#: AMLB reads a task of this name as defaults of all others.
DEFAULTS = "__defaults__"
#: Folders of a framework in ``extensions/`` that its set-up fills, environments with links among
#: them, by the steps of their path.
_SET_UP = re.compile(r"extensions/[^/]+/(?:venv|lib|programs|\.setup)(?:/|$)")


def is_device(name: str) -> bool:
    """Whether Windows would take a file of this name for a device.

    Examples
    --------
    >>> [is_device(name) for name in ("nul", "Con.csv", "console")]
    [True, True, False]
    """
    return bool(_DEVICE.fullmatch(name))


def is_plain_name(name: object) -> bool:
    """Whether a text may name a task, a definition or a framework, and so a folder or a file.

    What :func:`amlb_ext.suite.layout.safe_names` gives is one, and so is a framework's name with
    dots.

    Examples
    --------
    >>> [is_plain_name(name) for name in ("iris_full", "../iris", "a/b", "-u", "nul", "", None)]
    [True, False, False, False, False, False, False]
    """
    if not isinstance(name, str) or not _PLAIN_NAME.fullmatch(name):
        return False
    return not (is_device(name) or name.endswith(".") or name == DEFAULTS)


def is_inside(relative: object) -> bool:
    """Whether a text is a relative path with ``/`` that stays inside its folder.

    Examples
    --------
    >>> [is_inside(path) for path in ("data/a.csv", "../a.csv", "/etc/passwd", "C:\\\\a", "a//b")]
    [True, False, False, False, False]
    >>> [is_inside(path) for path in ("data/-u", "nul", "a.", "a\\x00", "~/a")]
    [False, False, False, False, False]
    """
    if not isinstance(relative, str) or len(relative) > 2000:
        return False
    # what a set-up made may hold links
    if _SET_UP.match(relative):
        return False
    return all(map(_is_step, relative.split("/")))


def _is_step(step: str) -> bool:
    if not _STEP.fullmatch(step) or is_device(step):
        return False
    # "." and ".." end in a dot, too, which Windows leaves out, as it does a space
    return step[0] not in "-~ " and step[-1] not in ". "


def find_collision(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two names that are one on a file system that does not tell "A" from "a".

    Examples
    --------
    >>> find_collision(["data/a.csv", "data/A.csv"]), find_collision(["a", "b"])
    (('data/a.csv', 'data/A.csv'), None)
    >>> find_collision(["data", "data/a.csv"])
    ('data', 'data/a.csv')
    """
    by_key: dict[str, str] = {}
    for name in names:
        other = by_key.setdefault(name.casefold(), name)
        if other != name:
            return other, name
    for key, name in by_key.items():
        for end in (match.start() for match in re.finditer("/", key)):
            if key[:end] in by_key:
                return by_key[key[:end]], name
    return None


def find_links(root: Path) -> Iterator[str]:
    """Yield whatever below a folder is a link, or neither a file nor a folder, by relative path.

    A file with a second name is a link, too: whoever writes to it writes elsewhere. What the set-up
    of a framework made is not looked into; nothing but AMLB reads there. Neither is the folder
    itself: how it is reached is its user's own choice.
    """
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(root / folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            # there is no suite yet, or another process has just removed a folder
            continue
        for entry in found:
            relative = f"{folder}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if not _SET_UP.fullmatch(relative):
                    waiting.append(f"{relative}/")
            elif not _is_file_of_one_name(entry):
                yield relative


def _is_file_of_one_name(entry: os.DirEntry[str]) -> bool:
    try:
        about = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        # a temporary file that another process has just put in its place
        return True
    return stat.S_ISREG(about.st_mode) and about.st_nlink <= 1


def check_no_links(root: Path) -> None:
    """Raise where anything in a folder is a link, before any of it is read or written.

    Raises
    ------
    SuiteError
        It names the first of them, or the folder that cannot be looked into.
    """
    try:
        link = next(find_links(root), None)
    except OSError as error:
        raise SuiteError(
            f"cannot look into {error.filename}: {error.strerror}",
            "make the folder readable",
        ) from None
    if link is not None:
        raise SuiteError(
            f"{link} in {root} is a link, or no file; nothing was read or written",
            "put the file itself there, or remove it",
        )
