"""A framework's set-up: one at a time, under known versions, tried before it is believed.

AMLB makes an environment beside a framework's code and installs what the framework's authors
publish today. Its scripts go on after a command that failed, so AMLB calls a broken environment
complete and never looks at it again; and two runs at once write into the same environment. So the
set-up is a step of its own here: under a lock of the checkout, with pip held to versions that are
known to work, and followed by an import of what the framework will run.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from amlb_ext.amlb.frameworks import Framework
from amlb_ext.core.assets import asset_path
from amlb_ext.core.errors import RunError
from amlb_ext.runner.amlb_process import run_amlb
from amlb_ext.runner.checkout import Checkout
from amlb_ext.runner.run_folder import framework_error
from amlb_ext.runner.subprocesses import Say, locked, run_command

#: Modes of AMLB that run in a container, and set up there.
CONTAINERS = ("docker", "singularity")
#: Seconds that the import of a framework may take.
IMPORT_TIME = 600.0
#: Runs a framework's script up to where it would begin to work.
_IMPORT = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='hardsynth_check')"


@dataclass(frozen=True, kw_only=True)
class Readiness:
    """Whether a framework can be run.

    Attributes
    ----------
    arguments : tuple of str
        More arguments for the run.
    failure : str
        Why the framework cannot be run; empty where it can.
    """

    arguments: tuple[str, ...] = ()
    failure: str = ""


def set_up_framework(
    framework: Framework | None,
    asked: Sequence[str],
    *,
    checkout: Checkout,
    extra: Sequence[str],
    log: Path,
    quiet: bool,
) -> Readiness:
    """Set a framework up where it is not, or not whole.

    Parameters
    ----------
    framework : Framework or None
        None, and one that installs nothing, is left to AMLB.
    asked : sequence of str
        Framework, benchmark, constraint and user directory, as ``runbenchmark.py`` takes them.
    checkout : Checkout
    extra : sequence of str
        The user's own arguments of ``runbenchmark.py``.
    log : Path
        Gets all that is said.
    quiet : bool
        Repeat nothing on stderr.

    Returns
    -------
    Readiness

    Raises
    ------
    RunError
        The checkout cannot be written.
    """
    wish = option_value(extra, "-s", "--setup") or "auto"
    mode = option_value(extra, "-m", "--mode") or "local"
    if (
        framework is None
        or not framework.has_setup
        or mode != "local"
        or wish in ("skip", "only")
    ):
        return Readiness()
    say: Say = _silent if quiet else _to_stderr
    place = _Place(framework, checkout)
    with locked(checkout.root / ".setup" / "hardsynth.lock", say) as lock:
        state = place.state()
        if state and wish != "force":
            say(
                f"{framework.name} {state}: setting it up in {framework.folder}, some minutes"
            )
        if state or wish == "force":
            place.clear()
            failure = _install(
                place,
                asked,
                extra=without_setup(extra),
                log=log,
                quiet=quiet,
                lock=lock,
            )
            if failure:
                place.forget()
                text = f"{framework.name} could not be set up: {failure}"
                with log.open("a", encoding="utf-8") as sink:
                    sink.write(f"\nSetupError: {text}\n")
                return Readiness(failure=text)
            place.believe()
    # what is known to be whole is not looked at by AMLB again, outside the lock
    return Readiness(arguments=("-s", "skip"))


class _Place:
    """A framework's environment in a checkout, and what is known of it."""

    def __init__(self, framework: Framework, checkout: Checkout) -> None:
        self.framework, self.checkout = framework, checkout
        self.environment = framework.folder / "venv"
        self._installed = framework.folder / ".setup" / "installed"
        self._mark = framework.folder / ".setup" / "hardsynth-complete"

    def state(self) -> str:
        """Say what is wrong with the environment; nothing where it is whole."""
        installed = _read(self._installed)
        if self.framework.version not in [
            line.strip() for line in installed.splitlines()
        ]:
            if installed.strip():
                return f"is set up, but not in version {self.framework.version}"
            if self.environment.exists():
                return "is half set up, by a run that was stopped or failed"
            return "is not set up yet"
        # os.access follows the link: false when the base interpreter has been removed
        interpreter = self.environment / "bin" / "python"
        if self.environment.exists() and not os.access(interpreter, os.X_OK):
            return "has lost its Python"
        if _read(self._mark) == installed:
            return ""
        failure = self.import_failure()  # set up by AMLB itself
        if failure:
            return f"is set up, but does not work ({failure})"
        self.believe()
        return ""

    def import_failure(self) -> str:
        """Import what the framework runs, with its own Python; return the error, if any."""
        python = self.environment / "bin" / "python"
        script = self.framework.folder / "exec.py"
        if not python.exists() or not script.is_file():
            return ""  # it runs in AMLB's own environment
        root = str(self.checkout.root)
        environment = {**os.environ, "PYTHONPATH": root, "AMLB_PATH": root}
        environment.pop("PYTHONHOME", None)
        try:
            done = subprocess.run(
                [str(python), "-W", "ignore", "-c", _IMPORT, str(script)],
                cwd=root,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=IMPORT_TIME,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"its import did not finish within {IMPORT_TIME:g} s"
        except OSError as error:
            return f"{python}: {error.strerror}"
        if not done.returncode:
            return ""
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        last = lines[-1] if lines else f"exit status {done.returncode}"
        return framework_error(done.stderr) or last

    def believe(self) -> None:
        """Note that the environment is whole, as it now stands."""
        self._mark.write_text(_read(self._installed), encoding="utf-8")

    def forget(self) -> None:
        """Take back what says that the environment is whole."""
        self._mark.unlink(missing_ok=True)
        self._installed.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove the environment: what a half-made one lacks cannot be seen."""
        self.forget()
        if self.environment.is_dir() and not self.environment.is_symlink():
            shutil.rmtree(self.environment, ignore_errors=True)


def _install(
    place: _Place,
    asked: Sequence[str],
    *,
    extra: Sequence[str],
    log: Path,
    quiet: bool,
    lock: int,
) -> str:
    """Let AMLB set a framework up; return why that failed, or nothing."""
    checkout = place.checkout
    lines = pip_constraints(place.framework, checkout.version)
    before = log.stat().st_size if log.exists() else 0
    with tempfile.TemporaryDirectory(prefix="hardsynth-setup-") as folder:
        order = [str(checkout.python), str(checkout.root / "runbenchmark.py"), *asked]
        order += ["-o", folder, "--session", "setup", "-Xsetup.live_output=False"]
        order += [*extra, "-s", "only"]
        status = run_amlb(
            order,
            root=checkout.root,
            python=checkout.python,
            log=log,
            quiet=quiet,
            settings=_pip_settings(lines, Path(folder), checkout.python),
            held=[lock],
        )
    with log.open("rb") as source:
        source.seek(before)
        said = source.read().decode("utf-8", "replace")
    failure = place.import_failure()
    if not status and not failure:
        return ""
    # The error of what installs tells more than that a module is then missing.
    installs = [
        line for line in said.splitlines() if line.startswith(("ERROR: ", "fatal: "))
    ]
    return (
        framework_error("\n".join(installs))
        or failure
        or framework_error(said)
        or (f"AMLB ended with status {status}")
    )


def pip_constraints(framework: Framework, version: str) -> tuple[str, ...]:
    """Return what pip is held to in a framework's set-up, a line each.

    Parameters
    ----------
    framework : Framework
    version : str
        AMLB's; the table of the newest release stands in for one without a table.

    Returns
    -------
    tuple of str
        Empty for frameworks that are not AMLB's own.

    Examples
    --------
    >>> own = Framework(name="x", version="1", module="extensions.x", folder=Path(), has_setup=True)
    >>> pip_constraints(own, "2.1.7")
    ()
    """
    package, _, name = framework.module.partition(".")
    if package != "frameworks":
        return ()
    tables = {
        path.stem: path
        for path in sorted(asset_path("resources", "amlb_setup").glob("*.yaml"))
    }
    path = tables.get(f"v{version}") or max(tables.items())[1]
    table: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    entry = table.get(name) if framework.version == "stable" else None
    return tuple((entry or table["default"])["constraints"])


def _pip_settings(lines: Sequence[str], folder: Path, python: Path) -> dict[str, str]:
    """Return variables that hold pip to versions, those that the user asked for included."""
    if not lines:
        return {}
    path = folder / "constraints.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    # pip splits the variable at spaces, which an address does not have
    return {"PIP_CONSTRAINT": " ".join([*_own_constraints(python), path.as_uri()])}


def _own_constraints(python: Path) -> list[str]:
    """Return the user's own constraint files, which the variable would hide from pip."""
    given = os.environ.get("PIP_CONSTRAINT")
    if given is not None:
        return given.split()
    try:
        known = run_command(
            [str(python), "-m", "pip", "config", "list"], "pip", timeout=60
        )
    except RunError:
        return []
    found = re.findall(r"^(?:global|install)\.constraint=(.*)$", known, re.M)
    return [
        word
        for quoted in found
        for text in shlex.split(quoted)
        for word in text.split()
    ]


def option_value(arguments: Sequence[str], short: str, long: str) -> str:
    """Return an option's last value among arguments of ``runbenchmark.py``, or nothing.

    Examples
    --------
    >>> option_value(["-k", "-m", "docker"], "-m", "--mode")
    'docker'
    >>> option_value(["--mode=aws"], "-m", "--mode")
    'aws'
    """
    value = ""
    for word, following in itertools.pairwise([*arguments, ""]):
        if word in (short, long):
            value = following
        elif word.startswith(f"{long}="):
            value = word.removeprefix(f"{long}=")
    return value


def without_setup(arguments: Sequence[str]) -> list[str]:
    """Return arguments of ``runbenchmark.py`` without ``-s``.

    Examples
    --------
    >>> without_setup(["-s", "force", "-Xa=b", "--setup=auto"])
    ['-Xa=b']
    """
    kept, is_value = [], False
    for word in arguments:
        if (
            not is_value
            and word not in ("-s", "--setup")
            and not word.startswith("--setup=")
        ):
            kept.append(word)
        is_value = not is_value and word in ("-s", "--setup")
    return kept


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _silent(text: str) -> None:
    """Say nothing."""


def _to_stderr(text: str) -> None:
    print(f"hardsynth: {text}", file=sys.stderr, flush=True)
