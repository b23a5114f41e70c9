"""``hardsynth install`` and ``uninstall``: a suite in the user's own AMLB configuration."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from amlb_ext.cli.command import command
from amlb_ext.cli.display import Answer
from amlb_ext.cli.verify import check_verified
from amlb_ext.core.paths import check_suite_folder

if TYPE_CHECKING:
    from amlb_ext.runner.install import Change

#: ``-u`` names the suite in other commands, and AMLB's directory in AMLB.
_NO_LETTER = {
    "flag_names": {"suite": "", "userdir": "--userdir"},
    "refused": {
        "-u": "the suite has no flag here, and your AMLB user directory is --userdir"
    },
}


@command(group="benchmark", **_NO_LETTER)
def install(
    suite: Path,
    *,
    name: str | None = None,
    userdir: Path | None = None,
    dry_run: bool = False,
    unverified: bool = False,
) -> Answer:
    """Add a suite to your AMLB configuration.

    Add a suite's benchmarks, frameworks and constraints to an AMLB user directory, so that
    'runbenchmark.py FRAMEWORK hardsynth' works beside what is already there. The command shows how
    config.yaml changes and keeps a backup; 'uninstall' removes the suite again. AMLB executes code
    that stands in the suite, so a suite that hardsynth verify does not pass is not installed.

    Parameters
    ----------
    name : NAME
        install the benchmarks as NAME and NAME_all, and append NAME to the names of the frameworks
        (default: the suite's own name)
    userdir : USERDIR
        your AMLB user directory (default: ~/.config/automlbenchmark, AMLB's own)
    dry_run : bool
        show the changes without making them
    unverified : bool
        install although hardsynth verify does not pass the suite: AMLB executes whatever code and
        commands are in it

    Examples
    --------
    $ hardsynth install hard --dry-run
    """
    check_suite_folder(suite)
    if not unverified:
        check_verified(suite, "installation")
    from amlb_ext.runner.install import install as install_suite

    change = install_suite(suite, userdir, name=name, dry_run=dry_run)
    return _describe_change(change, userdir)


@command(group="benchmark", **_NO_LETTER)
def uninstall(
    suite: Path,
    *,
    name: str | None = None,
    userdir: Path | None = None,
    dry_run: bool = False,
) -> Answer:
    """Remove a suite from your AMLB configuration.

    Remove exactly what 'install' added. The suite itself stays.

    Parameters
    ----------
    name : NAME
        the name that the suite was installed under, where it is installed under several
    userdir : USERDIR
        your AMLB user directory (default: ~/.config/automlbenchmark, AMLB's own)
    dry_run : bool
        show the changes without making them

    Examples
    --------
    $ hardsynth uninstall hard
    """
    from amlb_ext.runner.install import uninstall as take_back

    change = take_back(suite, userdir, dry_run, name)
    return _describe_change(change, userdir)


def _describe_change(change: Change, userdir: Path | None) -> Answer:
    return Answer(
        lambda: change.text(None if userdir is None else str(userdir)),
        lambda: dataclasses.asdict(change),
    )
