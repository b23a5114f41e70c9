"""Swarms of sources, written as a suite that AMLB runs unchanged.

Each task becomes ``<task>_swarm_<objective>``, tested on the swarm's rows, and its ``_full`` twin,
tested on the untouched test folds.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from amlb_ext.core.config import (
    BaselineConfig,
    GenerateConfig,
    SourceConfig,
    SplitConfig,
)
from amlb_ext.core.errors import ConfigError, HardsynthError, SuiteError
from amlb_ext.core.files import write_text
from amlb_ext.core.locks import lock_folder
from amlb_ext.core.parallel import available_cores, run_jobs
from amlb_ext.core.paths import portable_spec
from amlb_ext.core.task import Task
from amlb_ext.core.version import __version__
from amlb_ext.hardening.identifiers import RequiredColumns, select_columns
from amlb_ext.hardening.split import split_task
from amlb_ext.models.seen_rows import refuse_seen_test_rows
from amlb_ext.sources import open_specs
from amlb_ext.sources.features import read_features
from amlb_ext.suite import (
    Coding,
    FoldRecord,
    Layout,
    Manifest,
    SuiteRequest,
    SuiteTask,
    begin_suite,
    finish_suite,
    read_finished_fold,
    safe_names,
    write_fold,
)
from amlb_ext.suite.layout import INTEGRATION
from amlb_ext.suite.writer import check_suite_root
from amlb_ext.swarm.fold import SwarmFold, swarm_fold
from amlb_ext.swarm.objectives import parse_objective
from amlb_ext.swarm.page import page_text
from amlb_ext.swarm.prepare import SwarmRequest
from amlb_ext.validity.certificate_store import certify_suite

#: The suite's page, in its root, and the benchmark's name in AMLB, which is that of all suites.
PAGE, BENCHMARK = "swarm.md", "hardsynth"


@dataclass(frozen=True, kw_only=True)
class SwarmRun:
    """What the user asked for.

    Attributes
    ----------
    source : str
    out : Path
    request : SwarmRequest
    options : SourceConfig
    folds : int
        Folds to search, of a source's own the first.
    user_rows : Path or None
    jobs : int
        Processes; they change nothing but time.
    force : bool
        Replace a suite made with other settings.
    """

    source: str
    out: Path
    request: SwarmRequest
    options: SourceConfig = field(default_factory=SourceConfig)
    folds: int = 1
    user_rows: Path | None = None
    jobs: int = 1
    force: bool = False


@dataclass(frozen=True, kw_only=True)
class SwarmReport:
    """What was made.

    Attributes
    ----------
    manifest : Manifest
    records : dict of str to list of dict
        By task, one record per fold.
    page : str
        The text of the page.
    verdicts : dict of str to str
        By task, what its certificate says, and why.
    failures : list of dict
        Tasks that were left out, and why.
    """

    manifest: Manifest
    records: dict[str, list[dict[str, Any]]]
    page: str
    verdicts: dict[str, str]
    failures: list[dict[str, Any]]


def swarm_suite(run: SwarmRun) -> SwarmReport:
    """Search swarms on the tasks of a source and write the suite, or continue one.

    Raises
    ------
    HardsynthError
        Bad input, or no task on which a swarm can be searched; nothing is lost that was there.
    """
    parse_objective(run.request.objective)
    if "personalised" in run.request.objective and run.user_rows is None:
        raise ConfigError(
            "the objective 'personalised' likens made rows to those of a user, and none are given",
            "--user-rows FILE",
        )
    tasks, source_names = _load_tasks(run)
    layout = Layout(run.out.absolute())
    settings = _settings(run)
    _check_output(layout, settings, run.force)
    with lock_folder(layout.lock, layout.root):
        records, failures = _search_all(layout, tasks, settings, run)
        suite_tasks = []
        for task in tasks:
            if task.name in records:
                suite_tasks.append(
                    _suite_task(task, records[task.name], source_names[task.name])
                )
        manifest = finish_suite(
            layout,
            name=BENCHMARK,
            config=settings,
            seed=run.request.seed,
            tasks=suite_tasks,
            failures=failures,
            version=__version__,
            integrations=_candidate(),
            request=SuiteRequest(
                command=f"hardsynth swarm {portable_spec(run.source)} -o DIR",
                sources=[portable_spec(run.source)],
                target=run.options.target,
                kind=run.options.kind,
            ),
        )
        by_task = {}
        for made in suite_tasks:
            by_task[made.name] = [fold.summary["swarm"] for fold in made.folds]
        page = page_text(by_task)
        write_text(layout.root / PAGE, page)
    # after the lock is given back, which certifying takes itself
    verdicts = {}
    for certificate in certify_suite(layout.root):
        verdicts[certificate.task] = f"{certificate.verdict}: {certificate.reason}"
    return SwarmReport(
        manifest=manifest,
        records=by_task,
        page=page,
        verdicts=verdicts,
        failures=failures,
    )


def objective_slug(objective: str) -> str:
    """Return an objective as a part of a name.

    Examples
    --------
    >>> objective_slug("difficult"), objective_slug("difficult=.6,novel=.4")
    ('difficult', 'difficult_6_novel_4')
    """
    return re.sub(r"[^a-z0-9]+", "_", objective.lower()).strip("_")


def _load_tasks(run: SwarmRun) -> tuple[list[Task], dict[str, str]]:
    """Return the source's tasks with folds, under the names of the suite, and their own names."""
    slug = objective_slug(run.request.objective)
    loaded = [ref.load() for ref in open_specs([run.source], run.options)]
    names = safe_names([f"{task.name}_swarm_{slug}" for task in loaded])
    tasks = []
    for task, name in zip(loaded, names, strict=True):
        # the random streams are keyed by the task, so the same split serves every objective
        split = split_task(task, SplitConfig(folds=run.folds), run.request.seed)
        chosen = select_columns(split, run.options, RequiredColumns())
        if run.options.test_file:
            refuse_seen_test_rows(chosen)
        tasks.append(chosen.renamed(name))
    own_names = [task.name for task in loaded]
    return tasks, dict(zip(names, own_names, strict=True))


def _settings(run: SwarmRun) -> dict[str, Any]:
    """Return the settings that decide a result, as JSON values, free of local paths."""
    config = GenerateConfig(seed=run.request.seed, baseline=BaselineConfig())
    settings: dict[str, Any] = json.loads(config.model_dump_json(exclude={"source"}))
    request = run.request
    digest = ""
    if run.user_rows is not None:
        digest = hashlib.sha256(_read_bytes(run.user_rows)).hexdigest()
    settings["swarm"] = {
        "objective": request.objective,
        "plan": asdict(request.plan),
        "initial": asdict(request.initial),
        "takers": list(request.takers),
        "user_rows": digest,
        "rows": request.rows,
        "least_rows": request.least_rows,
        "anyway": request.anyway,
        "baselines": request.with_baselines,
        "folds": run.folds,
    }
    # through JSON: what is read back from the suite has lists, not tuples
    normal: dict[str, Any] = json.loads(json.dumps(settings))
    return normal


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"cannot read the user's rows {path.name}: {error.strerror}",
            "--user-rows FILE",
        ) from None


def _check_output(layout: Layout, settings: dict[str, Any], force: bool) -> None:
    """Raise where the folder holds something else, or a suite of other settings."""
    check_suite_root(layout)
    try:
        stored = json.loads(layout.request.read_text(encoding="utf-8"))["settings"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if stored != settings and not force:
        raise SuiteError(
            f"{layout.root} holds a suite made with other settings",
            "choose another folder with -o, or --force to replace it",
        )


def _search_all(
    layout: Layout, tasks: list[Task], settings: dict[str, Any], run: SwarmRun
) -> tuple[dict[str, dict[int, FoldRecord]], list[dict[str, Any]]]:
    """Search the folds that are not finished; return records by task and fold, and failures."""
    records: dict[str, dict[int, FoldRecord]] = {}
    jobs, keys = [], []
    for task in tasks:
        request = run.request
        if run.user_rows is not None:
            rows, _ = read_features(run.user_rows, task.columns, task.target_name)
            request = replace(request, user_rows=rows)
        for fold in range(len(task.folds)):
            key = _fold_key(task, fold, settings)
            finished = read_finished_fold(layout, task.name, fold, key=key)
            if finished is not None:
                records.setdefault(task.name, {})[fold] = finished
                continue
            jobs.append((task, fold, request))
            keys.append(key)
    errors: dict[str, HardsynthError] = {}
    was_suite = layout.manifest.exists() or layout.previous.exists()
    has_begun = False
    for index, found in run_jobs(_search_job, jobs, run.jobs or available_cores()):
        task, fold, _ = jobs[index]
        if isinstance(found, HardsynthError):
            errors.setdefault(task.name, found)
            continue
        if not has_begun:
            # not earlier: where every search is refused, nothing is touched
            begin_suite(layout, {"settings": settings, "version": __version__})
            has_begun = True
        record = _write_found(layout, task, fold, found, key=keys[index])
        records.setdefault(task.name, {})[fold] = record
    # a task of which one fold cannot be searched is left out whole
    for name in errors:
        records.pop(name, None)
    if not records:
        if has_begun and not was_suite:
            # some folds of the only task could be searched, and others not
            shutil.rmtree(layout.root)
        raise next(iter(errors.values()))
    failures = [{"task": name, "reason": str(error)} for name, error in errors.items()]
    return records, failures


def _search_job(
    task: Task, fold: int, request: SwarmRequest
) -> SwarmFold | HardsynthError:
    """Search one fold; what the user can mend comes back as an error."""
    try:
        return swarm_fold(task, fold, request)
    except HardsynthError as error:
        return error


def _write_found(
    layout: Layout, task: Task, fold: int, found: SwarmFold, *, key: str
) -> FoldRecord:
    return write_fold(
        layout,
        task.name,
        Coding.of(task),
        fold=fold,
        train=found.train,
        parts=found.parts,
        key=key,
        summary={"swarm": found.record, "notes": []},
    )


def _fold_key(task: Task, fold: int, settings: dict[str, Any]) -> str:
    parts = {
        "version": __version__,
        "settings": settings,
        "task": task.name,
        "content": task.table_hash,
        "rows": task.rows_hash(fold),
        "fold": fold,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _suite_task(
    task: Task, folds: dict[int, FoldRecord], source_name: str
) -> SuiteTask:
    return SuiteTask(
        name=task.name,
        kind=task.kind,
        target=task.target_name,
        coding=Coding.of(task),
        origin=replace(task.origin, spec=portable_spec(task.origin.spec)),
        content_hash=task.content_hash,
        notes=task.notes,
        folds=tuple(folds[fold] for fold in sorted(folds)),
        source_name=source_name,
    )


def _candidate() -> dict[str, Any]:
    """Return ``frameworks.yaml``: a candidate to begin with."""
    return {
        "HardsynthCandidate": {
            "module": INTEGRATION,
            "version": "stable",
            "description": "a candidate for comparison: histogram gradient boosting",
            "params": {
                "classifier": "sklearn.ensemble.HistGradientBoostingClassifier",
                "regressor": "sklearn.ensemble.HistGradientBoostingRegressor",
                "encoding": "ordinal",
            },
        }
    }
