"""What tests of hostile files, suites and servers share."""

import contextlib
import io
import json
import os
import tarfile
import zipfile

from sklearn.linear_model import LinearRegression

from amlb_ext.core.files import sha256_file
from amlb_ext.suite.sealed_json import json_text, sealed_text


class Bomb(LinearRegression):
    """A model that leaves a folder when it is unpickled."""

    def __init__(self, mark=""):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


def reseal(suite, change=lambda entry: None):
    """Change a manifest as whoever means harm does: its checksums are right again."""
    path = suite / "hardsynth" / "manifest.json"
    entry = json.loads(path.read_text())
    del entry["sha256"]
    change(entry)
    if isinstance(entry.get("files"), dict):
        for relative in entry["files"]:
            with contextlib.suppress(OSError, ValueError):
                entry["files"][relative] = sha256_file(suite / relative)
    path.write_text(sealed_text(entry))


def reseal_records(suite):
    """Write the checksums of changed files into the records of their folds, too."""
    for path in suite.glob("hardsynth/*/fold_*/record.json"):
        entry = json.loads(path.read_text())
        for relative in entry["files"]:
            entry["files"][relative] = sha256_file(suite / relative)
        path.write_text(json_text(entry))


def tree(folder):
    """Return what stands below a folder, its links by what they name."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = os.readlink(path)
        else:
            found[name] = path.read_bytes() if path.is_file() else None
    return found


def zipped(path, *members, method=zipfile.ZIP_DEFLATED):
    """Write a zip file of names and contents."""
    with zipfile.ZipFile(path, "w", method) as out:
        for name, data in members:
            out.writestr(name, data)
    return path


def tarred(path, *members, mode="w:gz"):
    """Write a tar file of names, or entries, and contents."""
    with tarfile.open(path, mode) as out:
        for name, data in members:
            info = tarfile.TarInfo(name) if isinstance(name, str) else name
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))
    return path
