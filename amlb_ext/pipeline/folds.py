"""All folds of all tasks: which are finished, which must be computed, on several processes.

A job is one fold of one task, or of all tasks of a group, which share their rows; it runs in a
worker.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import (
    ConfigError,
    DataError,
    HardsynthError,
    ModelError,
    ServiceError,
    SuiteError,
)
from amlb_ext.core.files import remove_file, remove_temporary_files, write_text
from amlb_ext.core.memory import release_memory
from amlb_ext.core.notes import NO_FAILURES
from amlb_ext.core.parallel import Unit, UnitOutcome, run_units
from amlb_ext.core.progress import Bar, StageDisplay, begin_stage
from amlb_ext.core.task import Task
from amlb_ext.core.version import __version__
from amlb_ext.hardening.assemble import HardFold
from amlb_ext.hardening.fold import harden_group
from amlb_ext.hardening.prepare import cross_fit
from amlb_ext.hardening.split import Tasks, group_tasks
from amlb_ext.pipeline.request import (
    Request,
    result_settings,
    stored_settings,
)
from amlb_ext.suite import (
    Coding,
    FoldRecord,
    Layout,
    begin_suite,
    read_finished_fold,
    write_fold,
)
from amlb_ext.suite.contradictions import SETTINGS_OF_NO_FOLD
from amlb_ext.suite.shared_files import sha256_text
from amlb_ext.suite.writer import check_in_folds, pack_folds
from amlb_ext.validity.calibration import Calibration, calibrate, wants_calibration
from amlb_ext.validity.held_out_parts import HeldOutCandidates
from amlb_ext.validity.reference import PART

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
    """Harden a fold, with kappa settled on its training rows where the user names none."""
    begin_stage("fitting F and the oracle")
    # Fitted once: kappa is calibrated on the very fits that judge the fold.
    cross = cross_fit(group, fold, config)
    release_memory()
    held_out = HeldOutCandidates(group, config, cross)
    calibrations: Sequence[Calibration] = ()
    if wants_calibration(config):
        begin_stage("calibrating the search")
        release_memory()
        calibrations = calibrate(group, fold, config, held_out)
    losses = [held_out.unseen_losses(target) for target in range(len(group))]
    # its candidates and rows are not needed any more, and memory is
    del held_out
    release_memory()
    if calibrations:
        # One search serves all targets, so they have one kappa.
        search = config.search.model_copy(update={"kappa": calibrations[0].kappa})
        config = config.model_copy(update={"search": search})
    # With kappa 0 no value is mutated, but numbers still get their jitter.
    has_numbers = any(column.is_numeric for column in group[0].columns)
    jitters = has_numbers and config.search.operators.jitter > 0
    hard_folds = harden_group(group, fold, config, cross)
    # none where the user has named kappa
    for hard, calibration in zip(hard_folds, calibrations, strict=False):
        hard.summary["calibration"] = calibration.to_json()
        hard.summary["jittered"] = jitters and hard.summary["augmented"] > 0
        if hard.summary["bad"] and calibration.why is not None:
            hard.notes.append(calibration.why)
    for hard, unseen in zip(hard_folds, losses, strict=True):
        about = hard.train.provenance
        if unseen is not None and PART in about:
            about[unseen.columns] = unseen
    return hard_folds


@dataclass
class HardenedTasks:
    """What came of the folds, collected while they finish.

    Attributes
    ----------
    records : dict of str to dict
        By task and fold; in the end of tasks that have hard folds alone.
    errors : dict of str to HardsynthError
        Tasks that cannot be made hard, and why.
    failures : list of dict
        Tasks and folds that were left out, and why.
    notes : list of str
        Why folds were run again.
    """

    records: dict[str, dict[int, FoldRecord]]
    errors: dict[str, HardsynthError] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def waiting(self) -> list[str]:
        """Tasks that wait for a service: their finished folds stay."""
        errors = self.errors.items()
        return [name for name, error in errors if isinstance(error, ServiceError)]

    def finished(self, task: str) -> list[FoldRecord]:
        """Return the records of the task's folds, in order."""
        records = self.records[task]
        return [records[fold] for fold in sorted(records)]

    def add_records(
        self, group: Tasks, fold: int, records: Sequence[FoldRecord | None]
    ) -> None:
        """Take the finished records of a fold, one for each task of its group."""
        for task, record in zip(group, records, strict=True):
            if record is not None:
                self.records[task.name][fold] = record


def harden_all(layout: Layout, tasks: list[Task], request: Request) -> HardenedTasks:
    """Run all folds that are not finished yet; leave out tasks that failed or show no failure.

    A fold that came to a limit, or whose process died again and again, is left out and reported;
    the task's other folds stay.

    Raises
    ------
    HardsynthError
        No task can be made hard; the reason of the first one.
    """
    if layout.root.exists():
        remove_temporary_files(layout.root)  # of a run that was killed
    total = sum(len(task.folds) for task in tasks)
    with Bar(total=total, desc="folds", unit="fold", disable=request.quiet) as bar:
        hardened = _run_folds(layout, tasks, request, bar)
    errors, records = hardened.errors, hardened.records
    if errors and len(errors) == len(tasks):
        first_error = next(iter(errors.values()))
        # a service may answer tomorrow: the folds that are done wait for it
        if not (isinstance(first_error, ServiceError) and any(records.values())):
            withdraw(layout)
        raise first_error
    failed = [{"task": name, "reason": str(error)} for name, error in errors.items()]
    hardened.failures = failed + hardened.failures
    for name, by_fold in list(records.items()):
        if name not in errors and any(fold.summary["bad"] for fold in by_fold.values()):
            continue
        del records[name]
        if by_fold and name not in errors:
            # Without a failure of F in any fold there is nothing to make hard. The fold with the
            # most test rows says so best.
            largest = max(by_fold.values(), key=lambda fold: fold.summary["test"])
            [reason] = [note for note in largest.notes if note.kind in NO_FAILURES]
            hardened.failures.append({"task": name, "reason": reason.text})
    return hardened


def _run_folds(
    layout: Layout, tasks: list[Task], request: Request, bar: Any
) -> HardenedTasks:
    """Compute the folds that are not finished, and return the records of all."""
    results = HardenedTasks({task.name: {} for task in tasks})
    settings = result_settings(request.config)
    begun: list[tuple[Tasks, int]] = []
    display = StageDisplay(bar)

    def unfinished_folds() -> Iterator[Unit]:
        # Asked for one by one while others run, so a task that failed is not begun again.
        for group in group_tasks(tasks):
            for fold in range(len(group[0].folds)):
                keys = fold_keys(group, fold, settings)
                records = [
                    read_finished_fold(layout, task.name, fold, key=key)
                    for task, key in zip(group, keys, strict=True)
                ]
                # An error of one fold, a model that cannot be built say, is that of all.
                if all(records) or group[0].name in results.errors:
                    results.add_records(group, fold, records)
                    bar.update(len(group))
                    continue
                # The folder is ours from the first file on, so that a killed run can continue; a
                # finished suite, or one of other settings, counts as unfinished from here on.
                if layout.manifest.exists() or stored_settings(layout) != settings:
                    begin_suite(layout, {"settings": settings, "version": __version__})
                begun.append((group, fold))
                arguments: tuple[Any, ...] = (group, fold, request.config, keys)
                job: Callable[..., Any] = send_job
                # Workers of a cluster do not see the suite's folder, and send a fold's files back.
                if not request.execution.cluster:
                    job, arguments = write_job, (*arguments, str(layout.root))
                name = f"{group[0].stream_name} fold {fold}"
                yield Unit(name, keys[0], job, arguments)

    # A damaged suite, unlike a fold that fails, ends the whole run.
    for outcome in run_units(
        unfinished_folds(),
        request.execution,
        raises=(SuiteError,),
        on_stage=None if request.quiet else display.show,
    ):
        group, fold = begun[outcome.index]
        display.forget(outcome.unit.name)
        bar.update(len(group))
        # Before anything else: a fold that was lost has its reason nowhere but there.
        log = f"{group[0].name}_fold_{fold}.log"
        if request.logs is not None:
            write_text(request.logs / log, _log_text(outcome))
        if outcome.lost:
            write_text(layout.logs / log, _log_text(outcome))
        for reason in outcome.attempts:
            results.notes.append(f"{outcome.unit.name}: run again, {reason}")
        if outcome.lost:
            reason = f"fold {fold}: {outcome.lost}"
            for task in group:
                entry = {"task": task.name, "fold": fold, "reason": reason}
                results.failures.append(entry)
        elif isinstance(outcome.result, HardsynthError):
            # Folds finish in any order, but any error of a task tells what to mend.
            for task in group:
                results.errors.setdefault(task.name, outcome.result)
        else:
            records = outcome.result
            if request.execution.cluster:
                records, contents = outcome.result
                check_in_folds(layout, records, contents)
            results.add_records(group, fold, records)
            # of a fold that was lost before
            remove_file(layout.logs / log)
            if layout.logs.is_dir() and not any(layout.logs.iterdir()):
                layout.logs.rmdir()
    return results


def fold_keys(group: Tasks, fold: int, settings: dict[str, Any]) -> list[str]:
    """Return per task the hash of everything a fold's files depend on, the other targets too."""
    keys = [fold_key(task, fold, settings) for task in group]
    if len(group) == 1:
        return keys
    # The targets share rows, so a change of one of them changes the files of all.
    all_keys = json.dumps([group[0].group, *keys])
    return [sha256_text(key + all_keys) for key in keys]


def fold_key(task: Task, fold: int, settings: dict[str, Any]) -> str:
    """Return the hash of a task, a fold and the settings that decide it.

    How rows were split and columns chosen counts by what came of it: the columns and rows.
    """
    # What these settings come to is hashed by the task's content and rows; a name changes neither.
    deciding = {k: v for k, v in settings.items() if k not in SETTINGS_OF_NO_FOLD}
    parts = {
        "version": __version__,
        "settings": deciding,
        "task": task.name,
        "content": task.table_hash,
        "rows": task.rows_hash(fold),
        "fold": fold,
    }
    # how rows were split within the training rows, too
    if task.order is not None:
        parts["order"] = task.order.digest
    return sha256_text(json.dumps(parts, sort_keys=True))


def withdraw(layout: Layout) -> None:
    """Remove a folder in which nothing was finished; a finished suite there stays."""
    if layout.manifest.exists():
        return
    has_logs = layout.logs.exists()  # of lost folds, which the user is told to read
    if layout.request.exists() and not has_logs:
        shutil.rmtree(layout.root)


def _log_text(outcome: UnitOutcome) -> str:
    """Return what became of a fold, where, how long, and what it printed."""
    lines = [outcome.unit.name, f"key: {outcome.unit.key}"]
    for number, reason in enumerate(outcome.attempts, start=1):
        lines.append(f"attempt {number}: {reason}")
    if outcome.lost:
        lines.append(f"lost: {outcome.lost}")
    else:
        memory = f"at most {outcome.peak / 1e6:,.0f} MB" if outcome.peak else ""
        cost = (f"finished in {outcome.seconds:.1f} s", memory, outcome.where)
        lines.append(", ".join(filter(None, cost)))
    if outcome.log:
        lines += ["", outcome.log.rstrip()]
    return "\n".join(lines) + "\n"
