"""One fold of a task, or of all tasks of a group: what runs in a worker."""

from __future__ import annotations

import tempfile
from pathlib import Path

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import ConfigError, DataError, HardsynthError, ModelError
from amlb_ext.core.task import Task
from amlb_ext.hardening.fold import HardFold, harden_fold
from amlb_ext.hardening.prepare import CrossFit, cross_fit
from amlb_ext.hardening.shared import harden_shared
from amlb_ext.suite import Coding, FoldRecord, Layout, write_fold
from amlb_ext.suite.writer import pack_folds
from amlb_ext.validity.calibrate_shared import calibrate_shared
from amlb_ext.validity.calibration import calibrate, wants_calibration

#: Tasks whose folds are hardened by one job.
Tasks = tuple[Task, ...]
#: Records of a fold, by task, and the files that were sent with them.
Sent = tuple[list[FoldRecord], dict[str, bytes]]


def write_job(
    group: Tasks, fold: int, config: GenerateConfig, keys: list[str], root: str
) -> list[FoldRecord] | HardsynthError:
    """Harden one fold and write it; what the user can mend comes back as an error.

    Parameters
    ----------
    group : tuple of Task
    fold : int
    config : GenerateConfig
    keys : list of str
        Per task the hash of all that the fold's files depend on.
    root : str
        The suite's folder.
    """
    try:
        made = _calibrated(group, fold, config)
    except (ModelError, ConfigError, DataError) as error:
        return error
    return [
        write_fold(
            Layout(Path(root)),
            task.name,
            Coding.of(task),
            fold,
            hard.train,
            hard.parts,
            key,
            hard.summary,
        )
        for task, hard, key in zip(group, made, keys, strict=True)
    ]


def send_job(
    group: Tasks, fold: int, config: GenerateConfig, keys: list[str]
) -> Sent | HardsynthError:
    """Harden one fold where the suite's folder cannot be seen; its files are sent back."""
    with tempfile.TemporaryDirectory(prefix="hardsynth-") as folder:
        records = write_job(group, fold, config, keys, folder)
        if isinstance(records, HardsynthError):
            return records
        return records, pack_folds(Layout(Path(folder)), records)


def _calibrated(group: Tasks, fold: int, config: GenerateConfig) -> list[HardFold]:
    """Harden a fold, with a kappa settled on its training rows where the user named none."""
    crosses = [cross_fit(task, fold, config) for task in group]
    if not wants_calibration(config):
        return _hardened(group, fold, config, crosses)
    if group[0].group:
        found = calibrate_shared(group, fold, config, crosses)
    else:
        found = [calibrate(group[0], fold, config, crosses[0])]
    search = config.search.model_copy(update={"kappa": found[0].kappa})
    numeric = any(column.is_numeric for column in group[0].columns)
    jitters = numeric and config.search.jitter > 0
    made = _hardened(group, fold, config.model_copy(update={"search": search}), crosses)
    for hard, one in zip(made, found, strict=True):
        hard.summary["calibration"] = one.to_json()
        hard.summary["jittered"] = jitters and hard.summary["augmented"] > 0
        if hard.summary["bad"] and not one.passed:
            what = "rows are jittered only" if hard.summary["jittered"] else "no row is moved"
            hard.summary["notes"].append(f"kappa 0, {what}: {one.reason}")
    return made


def _hardened(
    group: Tasks, fold: int, config: GenerateConfig, crosses: list[CrossFit]
) -> list[HardFold]:
    if group[0].group:
        return harden_shared(group, fold, config, crosses)
    return [harden_fold(group[0], fold, config, crosses[0])]
