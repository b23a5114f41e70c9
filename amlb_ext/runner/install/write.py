"""Files of a user directory, written and removed for :mod:`amlb_ext.runner.install`."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import shutil

from amlb_ext.core.atomic import sha256_file
from amlb_ext.core.errors import RunError
from amlb_ext.runner.install.files import FOLDER, Copies
from amlb_ext.runner.install.state import (
    Home,
    Installed,
    State,
    read_state,
    write_bytes,
    write_json,
)
from amlb_ext.runner.install.text import strip


def read_texts(home: Home) -> tuple[str, str | None]:
    """Return the user's own configuration, and the file as it stands (None where there is none).

    Raises
    ------
    RunError
        It cannot be read.
    """
    if not home.config.exists():
        return "", None
    try:
        raw = home.config.read_bytes()
        text = raw.decode("utf-8")
    except OSError as error:
        raise RunError(f"cannot read {home.config}: {error.strerror}", "make it readable") from None
    except UnicodeDecodeError as error:
        raise RunError(
            f"{home.config} is not in UTF-8 (byte {error.start})", "save it as UTF-8"
        ) from None
    state = read_state(home)
    if state.after == hashlib.sha256(raw).hexdigest():
        backup = home.backup.read_bytes() if home.backup.is_file() else b""
        if (hashlib.sha256(backup).hexdigest() if home.backup.is_file() else "") == state.before:
            return backup.decode("utf-8"), text
    return strip(text, state.inline, f"/{FOLDER}/"), text


def stands(home: Home, record: Installed) -> bool:
    """Whether every installed file is as it was written."""
    for relative, digest in record.files.items():
        path = home.suite(record.name).joinpath(*relative.split("/"))
        if not path.is_file() or sha256_file(path) != digest:
            return False
    return True


def check_writable(home: Home) -> None:
    """Raise before anything is changed."""
    target = home.config.resolve()  # through a link, which stays one
    for path in (target, target.parent, home.root, home.folder):
        if path.exists() and not os.access(path, os.W_OK):
            raise RunError(
                f"{path} is read-only; nothing was changed",
                "make it writable, or choose another --userdir",
            )


def write_copies(home: Home, new: Copies, earlier: Installed | None) -> None:
    """Write a suite's copies; remove those that an earlier installation had beside them."""
    folder = home.suite(new.name)
    for relative, content in new.files.items():
        write_bytes(folder.joinpath(*relative.split("/")), content)
    for relative in set(earlier.files if earlier else ()) - set(new.files):
        folder.joinpath(*relative.split("/")).unlink(missing_ok=True)


def write_config(home: Home, own: str, text: str | None, wanted: str, state: State) -> None:
    """Write backup, state and configuration, in this order.

    Parameters
    ----------
    home : Home
    own : str
        The user's own configuration.
    text : str or None
        The file as it stands; None where there is none.
    wanted : str
        The file as it shall be.
    state : State
        Its hashes and ``created`` are filled in.
    """
    earlier = read_state(home)
    created = text is None or bool(earlier.suites and earlier.created)
    keeps = bool(own.strip()) or not created  # a file of the user's stands behind ours
    before, after = own.encode("utf-8"), wanted.encode("utf-8")
    target = home.config.resolve()  # through a link, which stays one
    mode = target.stat().st_mode & 0o7777 if target.exists() else None
    if state.suites:
        if keeps and not (home.backup.is_file() and home.backup.read_bytes() == before):
            write_bytes(home.backup, before, mode)
        if not keeps:
            home.backup.unlink(missing_ok=True)
        state = dataclasses.replace(
            state,
            before=hashlib.sha256(before).hexdigest() if keeps else "",
            after=hashlib.sha256(after).hexdigest(),
            created=created,
        )
        write_json(home.state, state)
    if not state.suites and not keeps:
        target.unlink(missing_ok=True)
    elif wanted != text:
        write_bytes(target, after, mode)


def remove(home: Home, record: Installed, others: bool) -> list[str]:
    """Remove a suite's folder and, after the last suite, all that is ours."""
    folder, notes = home.suite(record.name), []
    home.record(record.name).unlink(missing_ok=True)
    for relative in record.files:
        folder.joinpath(*relative.split("/")).unlink(missing_ok=True)
    # AMLB keeps its own notes, and what an integration installs, beside each integration
    shutil.rmtree(folder / "extensions", ignore_errors=True)
    if folder.is_dir():
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()
        if any(folder.iterdir()):
            notes.append(f"{folder} holds files that are not ours; they stay")
        else:
            folder.rmdir()
    if not others:
        made = read_state(home).made
        home.state.unlink(missing_ok=True)
        home.backup.unlink(missing_ok=True)
        shutil.rmtree(home.folder / "__pycache__", ignore_errors=True)
        with contextlib.suppress(OSError):
            home.folder.rmdir()
        if made:
            with contextlib.suppress(OSError):
                home.root.rmdir()
    return notes
