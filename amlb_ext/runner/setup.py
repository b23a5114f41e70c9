"""A framework's set-up: one at a time, under known versions, tried before it is believed.

AMLB makes an environment beside a framework's code and installs what the framework's authors
publish today. Its scripts go on after a command that failed, so AMLB calls a broken environment
complete and never looks at it again; and two runs at once write into the same environment. So the
set-up is a step of its own here: under a lock of the checkout, with pip held to versions that are
known to work (:mod:`amlb_ext.runner.setup`), and followed by an import of what the
framework will run.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from amlb_ext.amlb.frameworks import Framework
from amlb_ext.core.assets import asset_path
from amlb_ext.core.errors import RunError
from amlb_ext.runner.checkout import Checkout
from amlb_ext.runner.processes import (
    Say,
    framework_error,
    locked,
    run_amlb,
    run_command,
    say_nothing,
    say_on_stderr,
)

#: Modes of AMLB that run in a container, and set up there.
CONTAINERS = ("docker", "singularity")
#: Seconds that the import of a framework may take.
IMPORT_TIME = 600.0
#: Runs a framework's script up to where it would begin to work.
_IMPORT = (
    "import os, runpy, sys; os.chdir(sys.argv[1]); "
    "runpy.run_path(sys.argv[2], run_name='hardsynth_check')"
)
#: What pip shows of the build of a package that failed.
_BUILD_OUTPUT = re.compile(
    r"╰─> \[\d+ lines of output\]\n(.*?)^ *\[end of output\]", re.S | re.M
)


def set_up_framework(
    framework: Framework | None,
    asked: Sequence[str],
    *,
    checkout: Checkout,
    extra: Sequence[str],
    log: Path,
    quiet: bool,
) -> tuple[Sequence[str], str]:
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
    arguments : sequence of str
        More arguments for the run.
    failure : str
        Why the framework cannot be run; empty where it can.

    Raises
    ------
    RunError
        The checkout cannot be written.
    """
    setup_option = option_value(extra, "-s", "--setup") or "auto"
    mode = option_value(extra, "-m", "--mode") or "local"
    if framework is None or not framework.has_setup:
        return (), ""
    # A container sets up inside itself; skip and only say that the user minds the set-up.
    if mode != "local" or setup_option in ("skip", "only"):
        return (), ""
    say: Say = say_nothing if quiet else say_on_stderr
    known = look_up(framework, checkout.version)
    environment = _FrameworkEnvironment(framework, checkout, known)
    # AMLB would look at it again, outside the lock, while another run may be at work there.
    whole = ("-s", "skip")
    # What was tried before needs no lock: the set-up of another framework may hold it for minutes.
    is_forced = setup_option == "force"
    if not is_forced and not environment.damage and environment.is_marked:
        return whole, ""
    # One lock for all frameworks: their scripts call apt-get, of which a second one fails at once.
    with locked(checkout.root / ".setup" / "hardsynth.lock", say) as lock:
        fault = environment.find_fault()
        if fault and not is_forced:
            say(
                f"{framework.name} {fault}: setting it up in {framework.folder}, some minutes"
            )
        if fault or is_forced:
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
                return (), text
            environment.mark_complete()
    return whole, ""


class _FrameworkEnvironment:
    """A framework's environment in a checkout, and the marks that say what state it is in.

    AMLB writes the versions that it set up into ``.setup/installed``; our mark beside it repeats
    that text once the environment was tried. So a set-up by AMLB itself voids our mark.
    """

    def __init__(
        self, framework: Framework, checkout: Checkout, known: KnownFramework
    ) -> None:
        self.framework = framework
        self.checkout = checkout
        self.known = known
        self.environment = framework.folder / "venv"
        self.installed = framework.folder / ".setup" / "installed"
        self._mark = framework.folder / ".setup" / "hardsynth-complete"

    def find_fault(self) -> str:
        """Return what is wrong with the environment; nothing where it is whole."""
        if self.damage or self.is_marked:
            return self.damage
        # Set up by AMLB itself, which does not notice a command that failed.
        failure = self.try_import()
        if failure:
            return f"is set up, but does not work ({failure})"
        self.mark_complete()
        return ""

    @property
    def is_marked(self) -> bool:
        """Whether the environment was tried, and nothing was installed since."""
        return _read_text(self._mark) == _read_text(self.installed)

    @property
    def damage(self) -> str:
        """What the files alone tell to be wrong, without trying the environment."""
        installed = _read_text(self.installed)
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
        return ""

    def try_import(self) -> str:
        """Import what the framework runs, with its own Python; return the error, if any."""
        for program, remedy in self.known.programs.items():
            if shutil.which(program) is None:
                return f"the program {program} is not installed ({remedy})"
        python = self.environment / "bin" / "python"
        script = self.framework.folder / "exec.py"
        if not python.exists() or not script.is_file():
            return ""  # it runs in AMLB's own environment
        root = str(self.checkout.root)
        failing = "its import"
        try:
            run_command(
                [str(python), "-W", "ignore", "-c", _IMPORT, root, str(script)],
                failing,
                timeout=IMPORT_TIME,
                PYTHONPATH=root,
                AMLB_PATH=root,
            )
        except RunError as error:
            return error.message.removeprefix(f"{failing}: ")
        return ""

    def mark_complete(self) -> None:
        """Note that the environment is whole, as it now stands."""
        self._mark.write_text(_read_text(self.installed), encoding="utf-8")

    def unmark(self) -> None:
        """Remove what says, to us and to AMLB, that the environment is whole."""
        self._mark.unlink(missing_ok=True)
        self.installed.unlink(missing_ok=True)

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
            settings=_pip_settings(
                environment.known.constraints, Path(folder), checkout.python
            ),
            held=[lock],  # a set-up that outlives us must keep others out
        )
    output = log.read_bytes()[log_start:].decode("utf-8", "replace")
    import_error = environment.try_import()
    if not status and not import_error and environment.installed.is_file():
        return ""
    # AMLB may end well without having set anything up, on a full disk for example
    return (
        explain_failed_setup(output, import_error)
        or f"AMLB ended with status {status} and set nothing up; {log} tells more"
    )


def explain_failed_setup(output: str, import_error: str) -> str:
    """Return the one line that tells best why a set-up failed, or nothing.

    Parameters
    ----------
    output : str
        What the set-up printed.
    import_error : str
        The error of the import that followed; may be empty.

    Examples
    --------
    >>> output = "ERROR: No matching distribution found for gama"
    >>> explain_failed_setup(output, "ModuleNotFoundError: No module named 'gama'")
    'ERROR: No matching distribution found for gama'
    >>> explain_failed_setup(output, "AttributeError: `np.Inf` was removed")
    'AttributeError: `np.Inf` was removed'
    """
    is_missing = import_error.startswith("ModuleNotFoundError")
    # Scripts install extras that nobody misses; but the cause of a missing module stands there.
    if import_error and not is_missing:
        return import_error
    # pip frames what a package's own build said, and says itself no more than that it failed.
    builds = _BUILD_OUTPUT.findall(output)
    build_error = framework_error(textwrap.dedent(builds[-1])) if builds else ""
    install_errors = re.findall("^(?:ERROR|fatal): .*", output, re.M)
    install_error = framework_error("\n".join(install_errors))
    if build_error and install_error.startswith("ERROR: Failed to build"):
        return f"{install_error}: {build_error}"  # which package, and why
    return build_error or install_error or import_error or framework_error(output)


def _pip_settings(
    constraints: Sequence[str], folder: Path, python: Path
) -> dict[str, str]:
    """Return variables that hold pip to versions, those that the user asked for included."""
    if not constraints:
        return {}
    path = folder / "constraints.txt"
    path.write_text("\n".join(constraints) + "\n", encoding="utf-8")
    # the user's own, which the variable would hide from pip
    own = os.environ.get("PIP_CONSTRAINT")
    if own is None:
        command = [str(python), "-m", "pip", "config", "list"]
        settings = ""
        with suppress(RunError):
            settings = run_command(command, "pip", timeout=60)
        quoted = re.findall(r"^(?:global|install)\.constraint=(.*)$", settings, re.M)
        # pip prints the value as Python would, and splits it at spaces and line ends itself
        own = " ".join(shlex.split(" ".join(quoted)))
    files = []
    for file in own.split():
        # AMLB runs in its checkout, where a path of the user's would lead elsewhere.
        is_path = "://" not in file and not file.startswith("file:")
        files.append(os.path.abspath(file) if is_path else file)
    # pip splits the variable at spaces, which an address does not have
    return {"PIP_CONSTRAINT": " ".join([*files, path.as_uri()])}


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


# What is known of AMLB's frameworks: the versions that pip is held to, and what came of it.
#
# The tables stand in ``resources/amlb_setup``, one for each release of AMLB that was tried.


@dataclass(frozen=True)
class KnownFramework:
    """What the table has on one framework.

    Attributes
    ----------
    constraints : tuple of str
        As in a constraints file of pip, a line each.
    programs : mapping of str to str
        Programs that pip cannot install, each with what to type to install it.
    """

    constraints: tuple[str, ...] = ()
    programs: Mapping[str, str] = field(default_factory=dict)


def look_up(framework: Framework, version: str) -> KnownFramework:
    """Return what is known of a framework under a release of AMLB.

    Parameters
    ----------
    framework : Framework
    version : str
        AMLB's; the table of the newest release stands in for one without a table.

    Returns
    -------
    KnownFramework
        Empty for frameworks that are not AMLB's own, the default for versions other than
        ``stable`` and for frameworks that have no entry.

    Examples
    --------
    >>> own = Framework(name="x", version="1", module="extensions.x", folder=Path(), has_setup=True)
    >>> look_up(own, "2.1.7").constraints
    ()
    """
    package, _, name = framework.module.partition(".")
    if package != "frameworks":
        return KnownFramework()
    folder = asset_path("resources", "amlb_setup")
    path = folder / f"v{version}.yaml"
    if not path.is_file():
        # by numbers, so that 2.1.10 comes after 2.1.9
        path = max(
            folder.glob("*.yaml"),
            key=lambda file: list(map(int, re.findall(r"\d+", file.stem))),
        )
    table: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    # The table knows the versions of AMLB's "stable" frameworks, not those of "latest".
    is_listed = framework.version == "stable" and name in table
    entry = table[name if is_listed else "default"]
    return KnownFramework(tuple(entry["constraints"]), entry.get("programs", {}))
