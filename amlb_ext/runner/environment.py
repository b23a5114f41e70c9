"""The virtual environment that AMLB runs in, apart from ours.

AMLB pins libraries of 2023, which install on Python 3.9, 3.10 and 3.11 alone (3.12 has no
``distutils`` and no wheels of pandas 1.5). One environment serves every checkout with the same
``requirements.txt``: its folder is named by the hash of that file and of the Python version.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

from amlb_ext.core.errors import RunError
from amlb_ext.runner.subprocesses import Say, locked, run_command, say_nothing

#: The oldest first, which AMLB tests with.
VERSIONS = ("3.9", "3.10", "3.11")
#: Written last; without it an environment is half made and is made again.
_COMPLETE = "hardsynth-complete"
#: Prints the version, where environments can be made.
_PROBE = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
#: What AMLB's main process imports.
_SMOKE = (
    "import sys, numpy, pandas, sklearn, openml, arff, psutil, filelock, ruamel.yaml; "
)
_SMOKE += "print('%d.%d' % sys.version_info[:2])"
_REMEDY = (
    "install Python 3.11 (e.g. 'uv python install 3.11', or your system's python3.11 and "
    "python3.11-venv) so that python3.11 is on PATH, or give an environment with AMLB's "
    "requirements as --python"
)


def ensure_interpreter(
    root: Path,
    cache: Path,
    python: str | Path | None = None,
    say: Say = say_nothing,
) -> Path:
    """Return an interpreter that has AMLB's requirements, making its environment if needed.

    Parameters
    ----------
    root : Path
        The checkout.
    cache : Path
    python : path, optional
        Taken as it is, after a check; else ``root/venv``, as AMLB's documentation makes it,
        where it stands that check; else an environment in the cache.
    say : callable
        Takes progress messages.

    Raises
    ------
    RunError
    """
    if python is not None:
        interpreter = Path(python).expanduser().absolute()
        if not _has_requirements(interpreter):
            raise RunError(
                f"{interpreter} lacks packages that AMLB needs",
                f"{interpreter} -m pip install -r {root / 'requirements.txt'}",
            )
        return interpreter
    interpreter = root / "venv" / "bin" / "python"
    if interpreter.exists() and _has_requirements(interpreter):
        return interpreter
    base, version = find_python()
    folder = environment_dir(root, cache, version)
    with locked(folder.with_name(f".{folder.name}.lock"), say):
        # Asked under the lock: another process may just have made it.
        if not _is_complete(folder):
            _make_environment(folder, base, root / "requirements.txt", say)
    return folder / "bin" / "python"


def environment_dir(root: Path, cache: Path, version: str) -> Path:
    """Return where the environment of a checkout stands, for a Python version like ``3.11``."""
    try:
        pins = (root / "requirements.txt").read_bytes()
    except OSError as error:
        raise RunError(
            f"cannot read {root / 'requirements.txt'}: {error.strerror}"
        ) from None
    key = hashlib.sha256(pins).hexdigest()[:12]  # short: the folder is read by people
    return cache / "environments" / f"amlb-{key}-py{version}"


def find_python() -> tuple[str, str]:
    """Return an interpreter that AMLB can use, and its version; the oldest first.

    Raises
    ------
    RunError
        When there is only 3.12 or later, or what is there cannot make environments.
    """
    this_version = f"{sys.version_info.major}.{sys.version_info.minor}"
    last_finding = f"this is {this_version}"
    candidates = [shutil.which(f"python{version}") for version in VERSIONS]
    for interpreter in [*candidates, sys.executable]:
        if not interpreter:
            continue
        try:
            version = run_command([interpreter, "-c", _PROBE], interpreter, timeout=60)
        except RunError as error:  # often a Python of the system without venv
            last_finding = error.message
            continue
        if version in VERSIONS:
            return interpreter, version
    raise RunError(
        f"AMLB needs Python {', '.join(VERSIONS)} with venv, none was found: {last_finding}",
        _REMEDY,
    )


def _is_complete(folder: Path) -> bool:
    # os.access follows the link: false when the base interpreter has been removed.
    has_python = os.access(folder / "bin" / "python", os.X_OK)
    return has_python and (folder / _COMPLETE).exists()


def _has_requirements(python: Path) -> bool:
    """Whether an interpreter is one that AMLB runs on, and imports what AMLB imports."""
    try:
        version = run_command([str(python), "-c", _SMOKE], str(python), timeout=120)
    except RunError:
        return False
    return version in VERSIONS


def _make_environment(folder: Path, base: str, requirements: Path, say: Say) -> None:
    # In place, not renamed: an environment's scripts hold its absolute path.
    say(f"making AMLB's environment in {folder}, about a minute")
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        run_command(
            [base, "-m", "venv", str(folder)],
            "AMLB's environment could not be made",
            _REMEDY,
        )
        python = str(folder / "bin" / "python")
        run_command(
            [python, "-m", "pip", "install", "--quiet", "-r", str(requirements)],
            "AMLB's requirements could not be installed",
            "check the network, or give an environment that has them as --python",
        )
        run_command(
            [python, "-c", _SMOKE], "AMLB's environment does not work", "run it again"
        )
        (folder / _COMPLETE).touch()
    except OSError as error:
        raise RunError(
            f"AMLB's environment could not be made: {error}",
            "set HARDSYNTH_CACHE to a folder of yours with 1 GB of free space",
        ) from None
    finally:
        if not (folder / _COMPLETE).exists():
            shutil.rmtree(folder, ignore_errors=True)
