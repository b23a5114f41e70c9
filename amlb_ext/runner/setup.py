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
from amlb_ext.runner.subprocesses import (
    Say,
    locked,
    nonempty_lines,
    run_command,
    say_nothing,
    say_on_stderr,
)

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
        Gets the whole output.
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
    setup_option = option_value(extra, "-s", "--setup") or "auto"
    mode = option_value(extra, "-m", "--mode") or "local"
    if framework is None or not framework.has_setup:
        return Readiness()
    # A container sets up inside itself; skip and only say that the user minds the set-up.
    if mode != "local" or setup_option in ("skip", "only"):
        return Readiness()
    say: Say = say_nothing if quiet else say_on_stderr
    environment = _FrameworkEnvironment(framework, checkout)
    with locked(checkout.root / ".setup" / "hardsynth.lock", say) as lock:
        fault = environment.find_fault()
        if fault and setup_option != "force":
            say(
                f"{framework.name} {fault}: setting it up in {framework.folder}, some minutes"
            )
        if fault or setup_option == "force":
            environment.remove()
            failure = _install_framework(
                environment,
                asked,
                extra=without_setup(extra),
                log=log,
                quiet=quiet,
                lock=lock,
            )
            if failure:
                # AMLB calls it complete whatever failed, and would run it.
                environment.unmark()
                text = f"{framework.name} could not be set up: {failure}"
                with log.open("a", encoding="utf-8") as sink:
                    sink.write(f"\nSetupError: {text}\n")
                return Readiness(failure=text)
            environment.mark_complete()
    # AMLB would look at it again, outside the lock, while another run may be at work there.
    return Readiness(arguments=("-s", "skip"))


class _FrameworkEnvironment:
    """A framework's environment in a checkout, and the marks that say what state it is in.

    AMLB writes the versions that it set up into ``.setup/installed``; our mark beside it repeats
    that text once the environment was tried. So a set-up by AMLB itself voids our mark.
    """

    def __init__(self, framework: Framework, checkout: Checkout) -> None:
        self.framework = framework
        self.checkout = checkout
        self.environment = framework.folder / "venv"
        self._installed = framework.folder / ".setup" / "installed"
        self._mark = framework.folder / ".setup" / "hardsynth-complete"

    def find_fault(self) -> str:
        """Return what is wrong with the environment; nothing where it is whole."""
        installed = _read_text(self._installed)
        versions = [line.strip() for line in installed.splitlines()]
        if self.framework.version not in versions:
            if installed.strip():
                return f"is set up, but not in version {self.framework.version}"
            if self.environment.exists():
                return "is half set up, by a run that was stopped or failed"
            return "is not set up yet"
        # os.access follows the link: false when the base interpreter has been removed.
        interpreter = self.environment / "bin" / "python"
        if self.environment.exists() and not os.access(interpreter, os.X_OK):
            return "has lost its Python"
        if _read_text(self._mark) == installed:
            return ""
        # Set up by AMLB itself, which does not notice a command that failed.
        failure = self.try_import()
        if failure:
            return f"is set up, but does not work ({failure})"
        self.mark_complete()
        return ""

    def try_import(self) -> str:
        """Import what the framework runs, with its own Python; return the error, if any."""
        python = self.environment / "bin" / "python"
        script = self.framework.folder / "exec.py"
        if not python.exists() or not script.is_file():
            return ""  # it runs in AMLB's own environment
        root = str(self.checkout.root)
        environment = {**os.environ, "PYTHONPATH": root, "AMLB_PATH": root}
        environment.pop("PYTHONHOME", None)
        try:
            completed = subprocess.run(
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
        if not completed.returncode:
            return ""
        reason = framework_error(completed.stderr)
        lines = nonempty_lines(completed.stderr)
        if not reason and lines:
            reason = lines[-1]
        return reason or f"exit status {completed.returncode}"

    def mark_complete(self) -> None:
        """Note that the environment is whole, as it now stands."""
        self._mark.write_text(_read_text(self._installed), encoding="utf-8")

    def unmark(self) -> None:
        """Remove what says, to us and to AMLB, that the environment is whole."""
        self._mark.unlink(missing_ok=True)
        self._installed.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the environment: what a half-made one lacks cannot be seen."""
        self.unmark()
        # A link is the user's own doing, and so is what it leads to.
        if self.environment.is_dir() and not self.environment.is_symlink():
            shutil.rmtree(self.environment, ignore_errors=True)


def _install_framework(
    environment: _FrameworkEnvironment,
    asked: Sequence[str],
    *,
    extra: Sequence[str],
    log: Path,
    quiet: bool,
    lock: int,
) -> str:
    """Let AMLB set a framework up; return why that failed, or nothing."""
    checkout = environment.checkout
    constraints = pip_constraints(environment.framework, checkout.version)
    log_start = log.stat().st_size if log.exists() else 0
    # AMLB writes a run's folder even where it only sets up: into one that nobody reads.
    with tempfile.TemporaryDirectory(prefix="hardsynth-setup-") as folder:
        command = [*checkout.command, *asked]
        command += ["-o", folder, "--session", "setup", "-Xsetup.live_output=False"]
        command += [*extra, "-s", "only"]
        status = run_amlb(
            command,
            root=checkout.root,
            python=checkout.python,
            log=log,
            quiet=quiet,
            settings=_pip_settings(constraints, Path(folder), checkout.python),
            held=[lock],  # a set-up that outlives us must keep others out
        )
    with log.open("rb") as source:
        source.seek(log_start)
        output = source.read().decode("utf-8", "replace")
    import_error = environment.try_import()
    if not status and not import_error:
        return ""
    # The error of what installs tells more than that a module is then missing.
    install_errors = []
    for line in output.splitlines():
        if line.startswith(("ERROR: ", "fatal: ")):
            install_errors.append(line)
    return (
        framework_error("\n".join(install_errors))
        or import_error
        or framework_error(output)
        or f"AMLB ended with status {status}"
    )


def pip_constraints(framework: Framework, version: str) -> tuple[str, ...]:
    """Return the versions that pip is held to in a framework's set-up, a line each.

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
    folder = asset_path("resources", "amlb_setup")
    path = folder / f"v{version}.yaml"
    if not path.is_file():
        path = max(folder.glob("*.yaml"), key=lambda table: table.stem)
    text = path.read_text(encoding="utf-8")
    table: dict[str, dict[str, Any]] = yaml.safe_load(text)
    # The table knows the versions of AMLB's "stable" frameworks, not those of "latest".
    entry = table.get(name) if framework.version == "stable" else None
    return tuple((entry or table["default"])["constraints"])


def _pip_settings(
    constraints: Sequence[str], folder: Path, python: Path
) -> dict[str, str]:
    """Return variables that hold pip to versions, those that the user asked for included."""
    if not constraints:
        return {}
    path = folder / "constraints.txt"
    path.write_text("\n".join(constraints) + "\n", encoding="utf-8")
    # pip splits the variable at spaces, which an address does not have.
    files = [*_user_constraint_files(python), path.as_uri()]
    return {"PIP_CONSTRAINT": " ".join(files)}


def _user_constraint_files(python: Path) -> list[str]:
    """Return the user's own constraint files, which the variable would hide from pip."""
    variable = os.environ.get("PIP_CONSTRAINT")
    if variable is not None:
        return variable.split()
    command = [str(python), "-m", "pip", "config", "list"]
    try:
        settings = run_command(command, "pip", timeout=60)
    except RunError:
        return []
    files = []
    for quoted in re.findall(r"^(?:global|install)\.constraint=(.*)$", settings, re.M):
        # pip prints the value as Python would, and splits it at spaces and line ends itself.
        for value in shlex.split(quoted):
            files += value.split()
    return files


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
    kept = []
    remaining = iter(arguments)
    for word in remaining:
        if word in ("-s", "--setup"):
            next(remaining, None)  # its value
        elif not word.startswith("--setup="):
            kept.append(word)
    return kept


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
