"""AMLB's source: the user's own checkout, or a clone of the pinned release in our cache.

The package index's ``amlb`` is an empty placeholder, so AMLB is used from a checkout of its
repository, https://github.com/openml/automlbenchmark. It writes into that checkout (framework
set-ups), which therefore must be writable, and it runs in a virtual environment of its own
(:mod:`amlb_ext.runner.checkout`).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from amlb_ext.core.errors import RunError
from amlb_ext.core.files import cache_folder
from amlb_ext.runner.processes import (
    Say,
    locked,
    run_command,
    say_nothing,
    say_on_stderr,
)

URL = "https://github.com/openml/automlbenchmark"
TAG = "v2.1.7"
_NEEDED = ("runbenchmark.py", "requirements.txt", "amlb", "resources")


@dataclass(frozen=True)
class Checkout:
    """AMLB, ready to run.

    Attributes
    ----------
    root : Path
        The checkout, absolute.
    python : Path
        The interpreter of its virtual environment.
    version : str
        AMLB's version.
    """

    root: Path
    python: Path
    version: str

    @property
    def command(self) -> list[str]:
        """What starts AMLB: its interpreter and its script."""
        return [str(self.python), str(self.root / "runbenchmark.py")]


def ensure_checkout(
    amlb: str | Path | None = None,
    python: str | Path | None = None,
    *,
    cache: Path | None = None,
    quiet: bool = False,
) -> Checkout:
    """Find AMLB, or clone it, and make its environment where that is missing.

    Parameters
    ----------
    amlb : path, optional
        A checkout; else ``AMLB_HOME``; else :data:`TAG` is cloned into the cache.
    python : path, optional
        Interpreter of an environment that has AMLB's requirements; else the checkout's own
        ``venv`` where it has them; else one is made in the cache.
    cache : Path, optional
        See :func:`~amlb_ext.core.files.cache_folder`.
    quiet : bool
        Say nothing on stderr while cloning and installing.

    Returns
    -------
    Checkout

    Raises
    ------
    RunError
        No checkout there, no network, no git, no suitable Python, or a failing installation.
    """
    cache = cache or cache_folder()
    say = say_nothing if quiet else say_on_stderr
    folder = amlb or os.environ.get("AMLB_HOME")
    if folder:
        root = _checked_checkout(Path(folder).expanduser().absolute())
    else:
        root = clone_release(cache, say=say)
    interpreter = ensure_interpreter(root, cache, python, say)
    return Checkout(root, interpreter, amlb_version(root))


def amlb_version(root: Path) -> str:
    """Return a checkout's version, e.g. ``2.1.7``, or ``dev dfe8d21`` between releases.

    Raises
    ------
    RunError
        When the checkout does not say.
    """
    path = root / "amlb" / "__version__.py"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}", _REMEDY) from None
    match = re.search(r"^__version__\s*=\s*[\"']([^\"']+)", text, re.MULTILINE)
    if match:
        return match.group(1)
    # Between releases AMLB's file asks git, too, and holds no version.
    command = ["git", "-C", str(root), "rev-parse", "--short", "HEAD"]
    try:
        return f"dev {run_command(command, 'git')}"
    except RunError:
        return "dev"


_REMEDY = f"give a checkout with --amlb DIR or AMLB_HOME: git clone --depth 1 --branch {TAG} {URL}"


def _checked_checkout(root: Path) -> Path:
    """Return a folder that is a checkout of AMLB; raise for another."""
    for name in _NEEDED:
        if not (root / name).exists():
            raise RunError(f"{root} is not an AMLB checkout: it has no {name}", _REMEDY)
    return root


def clone_release(
    cache: Path, url: str = URL, tag: str = TAG, say: Say | None = None
) -> Path:
    """Return the cached clone of ``tag``, cloning it first where it is missing.

    The clone is made under a temporary name and renamed, so a killed one leaves no half of
    AMLB behind; of two processes the second waits for the first.

    Raises
    ------
    RunError
        Without git or network, or when the cache cannot be written.
    """
    say = say or say_nothing
    target = cache / f"automlbenchmark-{tag}"
    with locked(cache / f".automlbenchmark-{tag}.lock", say):
        if target.is_dir():
            return _checked_checkout(target)
        say(f"cloning AMLB {tag} into {target}")
        # What killed clones left behind: under the lock no other is at work.
        for leftover in cache.glob(f".automlbenchmark-{tag}.part-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        part = Path(tempfile.mkdtemp(prefix=f".automlbenchmark-{tag}.part-", dir=cache))
        try:
            command = ["git", "-c", "advice.detachedHead=false", "clone", "--quiet"]
            command += ["--depth", "1", "--branch", tag, url, str(part / "amlb")]
            run_command(
                command,
                f"AMLB {tag} could not be cloned",
                f"check the network, or {_REMEDY}",
            )
            os.replace(_checked_checkout(part / "amlb"), target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return target


# The virtual environment that AMLB runs in, apart from ours.
#
# AMLB pins libraries of 2023, which install on Python 3.9, 3.10 and 3.11 alone (3.12 has no
# ``distutils`` and no wheels of pandas 1.5). One environment serves every checkout with the same
# ``requirements.txt``: its folder is named by the hash of that file and of the Python version.

#: The oldest first, which AMLB tests with.
VERSIONS = ("3.9", "3.10", "3.11")
#: Written last; without it an environment is half made and is made again.
_COMPLETE = "hardsynth-complete"
#: Prints the version, where environments can be made.
_PROBE = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
#: What AMLB's main process imports.
_SMOKE = f"import numpy, pandas, sklearn, openml, arff, psutil, filelock, ruamel.yaml; {_PROBE}"
_PYTHON_REMEDY = (
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
    interpreter = folder / "bin" / "python"
    with locked(folder.with_name(f".{folder.name}.lock"), say):
        # Asked under the lock: another process may just have made it. os.access follows the link:
        # false when the base interpreter has been removed.
        is_complete = os.access(interpreter, os.X_OK) and (folder / _COMPLETE).exists()
        if not is_complete:
            _make_environment(folder, base, root / "requirements.txt", say)
    return interpreter


def environment_dir(root: Path, cache: Path, version: str) -> Path:
    """Return where the environment of a checkout stands, for a Python version like ``3.11``."""
    pins = (root / "requirements.txt").read_bytes()
    key = hashlib.sha256(pins).hexdigest()[:12]  # short: the folder is read by people
    return cache / "environments" / f"amlb-{key}-py{version}"


def find_python() -> tuple[str, str]:
    """Return an interpreter that AMLB can use, and its version; the oldest first.

    Raises
    ------
    RunError
        When there is only 3.12 or later, or what is there cannot make environments.
    """
    last_finding = f"this is {sys.version_info.major}.{sys.version_info.minor}"
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
        _PYTHON_REMEDY,
    )


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
            _PYTHON_REMEDY,
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
