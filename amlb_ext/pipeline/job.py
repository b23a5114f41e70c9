"""One fold of a task, or of all tasks of a group: what runs in a worker."""

from __future__ import annotations

import tempfile
from pathlib import Path

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import ConfigError, DataError, HardsynthError, ModelError
from amlb_ext.core.memory import release_memory
from amlb_ext.core.progress import begin_stage
from amlb_ext.core.task import Task
from amlb_ext.hardening.assemble import HardFold
from amlb_ext.hardening.fold import harden_group
from amlb_ext.hardening.prepare import cross_fit
from amlb_ext.suite import Coding, FoldRecord, Layout, write_fold
from amlb_ext.suite.transfer import pack_folds
from amlb_ext.validity.calibration import calibrate, wants_calibration
from amlb_ext.validity.composition import CompositionChoice, choose_composition
from amlb_ext.validity.held_out_parts import HeldOutCandidates

#: Tasks whose folds are hardened by one job: one, or those of a table with several targets.
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
    # Returned, not raised: it is a finding about this task, and the others go on.
    try:
        hard_folds = harden_calibrated(group, fold, config)
    except (ModelError, ConfigError, DataError) as error:
        return error
    begin_stage("writing its files")
    # its models are gone, and tables are written in one piece
    release_memory()
    layout = Layout(Path(root))
    records = []
    for task, hard, key in zip(group, hard_folds, keys, strict=True):
        record = write_fold(
            layout,
            task.name,
            Coding.of(task),
            fold=fold,
            train=hard.train,
            parts=hard.parts,
            key=key,
            summary=hard.summary,
            notes=hard.notes,
        )
        records.append(record)
    return records


def send_job(
    group: Tasks, fold: int, config: GenerateConfig, keys: list[str]
) -> Sent | HardsynthError:
    """Harden one fold where the suite's folder cannot be seen; its files are sent back."""
    with tempfile.TemporaryDirectory(prefix="hardsynth-") as folder:
        records = write_job(group, fold, config, keys, folder)
        if isinstance(records, HardsynthError):
            return records
        return records, pack_folds(Layout(Path(folder)), records)


def harden_calibrated(
    group: Tasks, fold: int, config: GenerateConfig
) -> list[HardFold]:
    """Harden a fold, with kappa and composition settled on its training rows.

    What the user has named is taken as it stands.
    """
    begin_stage("fitting F and the oracle")
    # Fitted once: kappa is calibrated on the very fits that judge the fold.
    cross = cross_fit(group, fold, config)
    held_out = HeldOutCandidates(group, config, cross)
    if "auto" in config.composition:
        begin_stage("choosing what the main task holds")
    choice = choose_composition(group, fold, config, cross, held_out)
    if not wants_calibration(config):
        hard_folds = harden_group(group, fold, config, cross, choice.composition)
        return _with_choice(hard_folds, choice)
    begin_stage("calibrating the search")
    calibrations = calibrate(group, fold, config, held_out)
    # its candidates and rows are not needed any more, and memory is
    del held_out
    # One search serves all targets, so they have one kappa.
    search = config.search.model_copy(update={"kappa": calibrations[0].kappa})
    config = config.model_copy(update={"search": search})
    # With kappa 0 no value is mutated, but numbers still get their jitter.
    has_numbers = any(column.is_numeric for column in group[0].columns)
    jitters = has_numbers and config.search.operators.jitter > 0
    hard_folds = harden_group(group, fold, config, cross, choice.composition)
    for hard, calibration in zip(hard_folds, calibrations, strict=True):
        hard.summary["calibration"] = calibration.to_json()
        hard.summary["jittered"] = jitters and hard.summary["augmented"] > 0
        if hard.summary["bad"] and calibration.why is not None:
            hard.notes.append(calibration.why)
    return _with_choice(hard_folds, choice)


def _with_choice(
    hard_folds: list[HardFold], choice: CompositionChoice
) -> list[HardFold]:
    """Note in each fold's summary what its mixture was chosen from."""
    for hard in hard_folds:
        hard.summary["composition"] = choice.to_json()
    return hard_folds
