"""What the user asks for, what comes back, and what must hold before any work begins.

A suite keeps the request, see :class:`~amlb_ext.suite.SuiteRequest`: its sources are named there
without local folders, so that the same sources give the same bytes wherever they stand.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import ConfigError, ModelError, SuiteError
from amlb_ext.core.files import sha256_file
from amlb_ext.core.parallel import Execution
from amlb_ext.core.paths import check_model_file, portable_spec
from amlb_ext.core.task import Kind, Task
from amlb_ext.hardening.baseline.fitted import check_baseline_file
from amlb_ext.hardening.fold import check_several_targets
from amlb_ext.models.files import comes_fitted, is_baseline_file
from amlb_ext.models.registry import BASELINES, resolve_model
from amlb_ext.models.service import is_service
from amlb_ext.sources.reading import TableReading
from amlb_ext.suite import Layout, SuiteFiles, SuiteRequest, safe_names
from amlb_ext.suite.layout import (
    BASELINE_FRAMEWORK,
    INTEGRATION,
    NULL_FRAMEWORK,
)
from amlb_ext.suite.writer import check_suite_root
from amlb_ext.synthesizers import make_synthesizer
from amlb_ext.validity.task_rows import NULL_SHARE


@dataclass(frozen=True)
class Request:
    """What the user asked for.

    Attributes
    ----------
    sources : tuple of str
    config : GenerateConfig
    out : Path
        The suite's folder.
    execution : Execution
        Where folds are computed, and what each may cost.
    force : bool
        Replace a suite made with other settings.
    dry_run : bool
        Load the sources, write nothing.
    quiet : bool
        No progress bars.
    certificate : str
        Zoo that the certificates are measured with: ``quick``, ``full``, or ``none``.
    twin : bool
        Also write a definition with the names, limits and metrics of the one benchmark that
        ``sources`` names.
    logs : Path, optional
        Folder for a log of each fold. Without one only folds that were lost leave theirs, in the
        suite's ``hardsynth/logs``.
    names : tuple of str
        What the suite calls each source; empty for the specs without local folders. A repair
        names them as the suite did, wherever they stand now.
    """

    sources: tuple[str, ...]
    config: GenerateConfig
    out: Path
    execution: Execution = field(default_factory=Execution)
    force: bool = False
    dry_run: bool = False
    quiet: bool = False
    certificate: str = "quick"
    twin: bool = False
    logs: Path | None = None
    names: tuple[str, ...] = ()

    @property
    def source_names(self) -> tuple[str, ...]:
        """What the suite calls each source, without local folders."""
        return tuple(portable_spec(name) for name in self.names or self.sources)


@dataclass
class GenerationReport:
    """What was made; the command prints it.

    Attributes
    ----------
    out : str
    written : bool
        Whether a finished suite stands in ``out``.
    tasks : list of dict
        Per task: kind, rows, folds, counts, F's scores.
    failures : list of dict
        Per task that was left out: its name and why; for a fold that was left out, its number
        too.
    notes : list of str
    verdicts : dict of str to dict
        Per task the certificate's ``verdict`` and its ``reason``.
    twin : str
        Name of the hard twin's definition, see :attr:`Request.twin`.
    benchmark : str
        Name of the main definition, which holds the untouched test folds.
    absent : list of str
        Tasks that could not be loaded.
    readings : list of TableReading
        How each table was read.
    """

    out: str
    written: bool = False
    tasks: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    verdicts: dict[str, dict[str, str]] = field(default_factory=dict)
    twin: str = ""
    benchmark: str = ""
    absent: list[str] = field(default_factory=list)
    readings: list[TableReading] = field(default_factory=list)


def result_settings(config: GenerateConfig) -> dict[str, Any]:
    """Return the settings that decide a result, as JSON values, free of local paths.

    Sources are identified by their content, a model file by its sha256; how several targets are
    combined is no setting of a single one. Of how sources are read only what is done to columns is
    a setting, where any are named, for nothing else tells which those were. The
    permission to load a pickle is one of a command, so it is never kept: the entry stands, as no,
    for the sake of suites that have it.
    """
    # Through JSON, so that they compare with what a suite keeps: lists, not tuples.
    text = config.model_dump_json(exclude={"source"})
    settings: dict[str, Any] = json.loads(text)
    keep, drop = sorted(config.source.keep), sorted(config.source.drop)
    reading = config.source.model_dump(
        include={"read_as", "sep", "decimal"}, exclude_defaults=True
    )
    if keep or drop or reading:
        settings["source"] = {"keep": keep, "drop": drop, **reading}
    settings["baseline"]["trust_pickle"] = False
    if config.baseline.ask_at_most is None:
        # as in suites that were made before there was a limit
        del settings["baseline"]["ask_at_most"]
    if not config.source.targets:
        del settings["hardness"]["over"]
    if is_service(config.baseline.model):
        # how it is asked decides no result, and where its key stands is nobody's business
        settings["baseline"]["params"] = {}
    # A file is what it holds, wherever it stands.
    model_file = Path(config.baseline.model)
    if is_baseline_file(config.baseline) and model_file.is_file():
        settings["baseline"]["model"] = model_file.name
        settings["baseline"]["sha256"] = sha256_file(model_file)
    return settings


def check_settings(config: GenerateConfig) -> None:
    """Raise early for settings that no task could satisfy."""
    loadable_name = safe_names([config.name])[0]
    if loadable_name != config.name:
        raise ConfigError(
            f"{config.name!r} is not a name that AMLB can load",
            f"use letters, digits, - and _, e.g. --name {loadable_name}",
        )
    make_synthesizer(config.synthesizer)  # raises for unknown names and parameters
    _check_target_options(config)
    if comes_fitted(config.baseline):
        check_baseline_file(config.baseline)
        return
    name = config.baseline.model
    if name not in BASELINES and Path(name).is_file():
        check_model_file(Path(name))
    # A model of one family, a classifier say, serves the tasks of that family; a short name stands
    # for one of each, so its parameters are checked when a task's kind is known.
    is_short = name.partition(":")[0] in BASELINES
    if not is_short and not integration_params(config):
        resolve_model(config.baseline, Kind.REGRESSION)  # raises what is wrong with it


def _check_target_options(config: GenerateConfig) -> None:
    """Raise for settings that contradict ``--targets``, or mean nothing without it."""
    targets, over = config.source.targets, config.hardness.over
    if not targets and over != "mean":
        raise ConfigError(
            f"--over {over} combines several targets, none were named",
            f"name them with --targets A B, or leave --over {over} out",
        )
    if not targets:
        return
    check_several_targets(config)
    if comes_fitted(config.baseline):
        raise ModelError(
            f"--targets names {len(targets)} targets, each needs an F of its own, and "
            f"{config.baseline.model} is one",
            "name a model for --baseline, e.g. random_forest, or use the one with --target",
        )


def check_output(layout: Layout, settings: dict[str, Any], force: bool) -> None:
    """Raise when the output folder is not ours, or holds a suite of other settings.

    Raises
    ------
    SuiteError
    """
    check_suite_root(layout)
    # --force replaces a suite of other settings, never a folder that is none of ours.
    if force or not layout.request.is_file():
        return
    stored = stored_settings(layout)
    if stored != settings:
        different = "unreadable"
        if isinstance(stored, dict):
            different = _find_difference(stored, settings)
        raise SuiteError(
            f"{layout.root} holds a suite made with other settings ({different})",
            "choose another folder with -o, or --force to replace it",
        )


def check_tables(layout: Layout, tasks: Iterable[Task], force: bool) -> None:
    """Raise when a finished suite there is of tables that have changed since.

    Raises
    ------
    SuiteError
    """
    try:
        stored = {} if force else SuiteFiles.load(layout.root).tasks
    except SuiteError:
        # none, or one that is unfinished: nothing whole would be replaced
        return
    for task in tasks:
        entry = stored.get(task.name)
        if entry is not None and entry.content_hash != task.content_hash:
            raise SuiteError(
                f"the table of {task.name} has changed since the suite in {layout.root} was made",
                "choose another folder with -o, or --force to replace it",
            )


def stored_settings(layout: Layout) -> Any:
    """Return the settings of the suite that stands or grows there, or None."""
    try:
        record = json.loads(layout.request.read_text(encoding="utf-8"))
        return record["settings"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _find_difference(
    stored: dict[str, Any], wanted: dict[str, Any], prefix: str = ""
) -> str:
    """Return the first setting that differs, with both values."""
    keys = sorted({*stored, *wanted})
    key = next(key for key in keys if stored.get(key) != wanted.get(key))
    old, new = stored.get(key), wanted.get(key)
    if isinstance(old, dict) and isinstance(new, dict):
        return _find_difference(old, new, f"{prefix}{key}.")
    return f"{prefix}{key}: {old!r} there, {new!r} now"


def suite_request(request: Request) -> SuiteRequest:
    """Return what the suite keeps of a request."""
    options = request.config.source
    names = request.source_names
    return SuiteRequest(
        command=command_text(names, options.targets, twin=request.twin),
        sources=list(names),
        target=options.target,
        targets=list(options.targets),
        kind=options.kind,
        twin=request.twin,
    )


def command_text(
    sources: tuple[str, ...], targets: tuple[str, ...] = (), *, twin: bool = False
) -> str:
    """Return the command that makes a suite of these sources.

    Examples
    --------
    >>> command_text(("bundled/toy", "my data.csv"))
    "hardsynth generate bundled/toy 'my data.csv' -o DIR --config FILE"
    >>> command_text(("flats.csv",), targets=("price", "rent"))
    'hardsynth generate flats.csv --targets price rent -o DIR --config FILE'
    """
    words = ["hardsynth", "harden" if twin else "generate", *sources]
    words += ["--targets", *targets] if targets else []
    return f"{shlex.join(words)} -o DIR --config FILE"


# What the suite offers AMLB beside its tasks.


#: How far the null's seed stands from F's.
NULL_OFFSET = 1000


def framework_definitions(
    config: GenerateConfig, seeds: Mapping[str, Sequence[int]]
) -> dict[str, Any]:
    """Return ``frameworks.yaml``: F itself, its re-seeded null, and a candidate to begin with.

    Parameters
    ----------
    config : GenerateConfig
    seeds : mapping of str to sequence of int
        With which F was fitted on each fold, by task: with AMLB's seed it would be another F.
    """
    entry = {"module": INTEGRATION, "version": "stable"}
    candidate = {
        "classifier": "sklearn.ensemble.HistGradientBoostingClassifier",
        "regressor": "sklearn.ensemble.HistGradientBoostingRegressor",
        "encoding": "ordinal",
    }
    frameworks: dict[str, Any] = {}
    # AMLB does not have the model: its clones are fitted when the suite is made, and not by AMLB.
    if not comes_fitted(config.baseline):
        params = integration_params(config)
        # How much F's scores vary with seed and rows alone: a smaller gain over F means nothing.
        null = params | {"seed_offset": NULL_OFFSET, "train_share": NULL_SHARE}
        own = {"seeds": {task: list(seeds[task]) for task in sorted(seeds)}}
        frameworks[BASELINE_FRAMEWORK] = entry | {
            "description": "the baseline F of this suite",
            "params": params | own,
        }
        frameworks[NULL_FRAMEWORK] = entry | {
            "description": "the null: F with another seed, on another part of the training rows",
            "params": null,
        }
    frameworks["HardsynthCandidate"] = entry | {
        "description": "a candidate for comparison: histogram gradient boosting",
        "params": candidate,
    }
    return frameworks


def fold_seeds(folds: Mapping[str, Iterable[Any]]) -> dict[str, list[int]]:
    """Return the seeds of F, fold by fold, of records or entries of folds by task."""
    return {
        task: [fold.summary["seed"] for fold in records]
        for task, records in folds.items()
    }


def integration_params(config: GenerateConfig) -> dict[str, Any]:
    """Return AMLB parameters of F for each family of tasks that it serves."""
    params: dict[str, Any] = {}
    for kind, family in ((Kind.BINARY, "classifier"), (Kind.REGRESSION, "regressor")):
        try:
            spec = resolve_model(config.baseline, kind)
        except ModelError:  # a model of the other family only
            continue
        params[family] = spec.path
        # Sorted, as the manifest gives them back: a repair writes the same bytes.
        params[f"{family}_params"] = dict(sorted(spec.params.items()))
        params["encoding"] = spec.encoding
    return params
