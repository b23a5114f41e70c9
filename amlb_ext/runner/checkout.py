"""AMLB's source: the user's own checkout, or a clone of the pinned release in our cache.

The package index's ``amlb`` is an empty placeholder, so AMLB is used from a checkout of its
repository, https://github.com/openml/automlbenchmark. It writes into that checkout (framework
set-ups), which therefore must be writable, and it runs in a virtual environment of its own
(:mod:`amlb_ext.runner.environment`).
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from amlb_ext.core.errors import RunError
from amlb_ext.runner.environment import ensure_interpreter
from amlb_ext.runner.subprocesses import (
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
        See :func:`cache_dir`.
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
    cache = cache or cache_dir()
    say = say_nothing if quiet else say_on_stderr
    folder = amlb or os.environ.get("AMLB_HOME")
    if folder:
        root = _checked_checkout(Path(folder).expanduser().absolute())
    else:
        root = clone_release(cache, say=say)
    interpreter = ensure_interpreter(root, cache, python, say)
    return Checkout(root, interpreter, amlb_version(root))


def cache_dir() -> Path:
    """Return ``$HARDSYNTH_CACHE``, ``$XDG_CACHE_HOME/hardsynth`` or ``~/.cache/hardsynth``."""
    own = os.environ.get("HARDSYNTH_CACHE")
    if own:
        return Path(own).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    folder = Path(base).expanduser() if base else Path.home() / ".cache"
    return folder.absolute() / "hardsynth"


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
        commit = run_command(command, "git")
    except RunError:
        commit = ""
    return f"dev {commit}".strip()


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
