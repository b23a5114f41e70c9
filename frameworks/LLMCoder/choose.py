"""Which confinement a run takes: the first that has just stopped every attack of the battery."""

from __future__ import annotations

import shutil
import sys
from typing import Dict, List, Tuple

from .battery import failed_attacks
from .containers import CONTAINERS, missing_container
from .sandbox import TIERS, Sandbox, SandboxError

_CHOSEN: Dict[Tuple[str, str], Tuple[Sandbox, dict]] = {}


def choose_sandbox(wanted="auto", python=sys.executable):
    """Return the best confinement that stops every attack now, and what each one did.

    Parameters
    ----------
    wanted : {'auto', 'bwrap', 'builtin', 'podman', 'docker', 'none'}
    python : str

    Returns
    -------
    sandbox : Sandbox
    tests : dict
        By tier: what failed, empty where nothing did.

    Raises
    ------
    SandboxError
        Nothing holds, and ``none`` was not written.
    """
    if wanted not in ("auto", "none", *TIERS):
        raise SandboxError(
            f"sandbox is {wanted!r}; choose auto, {', '.join(TIERS)}, or none, which confines nothing"
        )
    if wanted == "none":
        return Sandbox("none", python), {}
    # tested once in a process: AMLB runs all folds in one
    if (wanted, python) in _CHOSEN:
        return _CHOSEN[wanted, python]
    tests: Dict[str, List[str]] = {}
    for tier in TIERS if wanted == "auto" else (wanted,):
        if tier == "bwrap" and shutil.which("bwrap") is None:
            tests[tier] = ["bubblewrap is not installed"]
            continue
        missing = missing_container(tier) if tier in CONTAINERS else ""
        if missing:
            tests[tier] = [missing]
            continue
        sandbox = Sandbox(tier, python)
        tests[tier] = failed_attacks(sandbox)
        if not tests[tier]:
            _CHOSEN[wanted, python] = (sandbox, tests)
            return sandbox, tests
    said = "; ".join(f"{tier}: {', '.join(failed)}" for tier, failed in tests.items())
    raise SandboxError(
        f"no confinement for the model's programs holds on this machine ({said}); install "
        "bubblewrap, use Linux 6.2 or later, or write params sandbox: none on a machine that you "
        "can lose"
    )
