"""From tables of series to a suite of forecasting tasks."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext.core.checked_call import check_refits
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.display import format_percent, text_table
from amlb_ext.core.errors import ConfigError, HardsynthError, SourceError
from amlb_ext.core.json_values import to_json_values
from amlb_ext.core.memory import release_memory
from amlb_ext.core.paths import portable_spec, table_ending
from amlb_ext.core.unit import WINDOW
from amlb_ext.making.made_windows import COPIES, make_windows
from amlb_ext.models.forecast_files import FileForecaster
from amlb_ext.models.forecasters import Forecaster, describe_known
from amlb_ext.models.given_series import (
    SeriesRoles,
    find_series,
    read_forecaster,
)
from amlb_ext.pipeline.series_suite import SuitePart, check_folder, write_suite
from amlb_ext.sources.panel import Panel, PanelRoles, read_panel
from amlb_ext.sources.series_tasks import SeriesReading, SeriesTable, SeriesTask
from amlb_ext.suite.layout import Layout, amlb_name
from amlb_ext.suite.series_manifest import GA
from amlb_ext.suite.twin import Original
from amlb_ext.units.failing_windows import (
    FailingWindows,
    describe_heavy_windows,
    describe_left_out,
    describe_zeros,
    find_failing_windows,
)
from amlb_ext.units.origins import plan_origins
from amlb_ext.units.rolling import roll_forecaster
from amlb_ext.units.stored_windows import ForecastSuite
from amlb_ext.units.window_rules import check_rule, window_rule_text
from amlb_ext.validity.candidates import Size
from amlb_ext.validity.window_certificate import certify_windows


@dataclass(frozen=True, kw_only=True)
class SeriesRequest:
    """What suite to make of series.

    Attributes
    ----------
    name : str
        Of the benchmark definition.
    origins, learning_origins, step, cutoff
        Which origins it has, see :func:`~amlb_ext.units.origins.plan_origins`. None stands for what
        a task's definition says, and for 1 origin and the horizon's steps where it says nothing.
    rule, alpha, twins, seed
        As in :func:`~amlb_ext.comparison.forecasts.compare_forecasts`.
    force : bool
        Replace a suite of forecasting tasks.
    settings : mapping
        More for the manifest.
    benchmark : str, optional
        Name of the AMLB benchmark that the tasks are of; its hard twin is written, too.
    copies : int
        Windows made of each bad one of earlier origins; 0 makes none.
    certificate : {'quick', 'full'}, optional
        How many candidates the certificates are measured with; None for no certificate.
    """

    name: str = "hardsynth"
    origins: int | None = None
    learning_origins: int = 3
    step: int | None = None
    cutoff: str | None = None
    rule: str = "mase"
    alpha: float | None = None
    twins: int = 4
    seed: int = 0
    force: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    benchmark: str | None = None
    copies: int = COPIES
    certificate: Size | None = "quick"


@dataclass(frozen=True, kw_only=True)
class SeriesOrder:
    """A suite of series as a command asks for it; a repair asks for the same again.

    Attributes
    ----------
    sources : tuple of str
    roles, reading, time, target
        See :func:`amlb_ext.models.given_series.find_series`.
    baseline : str
        F, see :func:`amlb_ext.models.given_series.read_forecaster`.
    request : SeriesRequest
    """

    sources: tuple[str, ...]
    roles: SeriesRoles
    reading: SeriesReading
    time: str | None
    target: str | None
    baseline: str
    request: SeriesRequest

    def to_json(self, options: SourceConfig) -> dict[str, Any]:
        """Return the order and how its tables are written, without local folders."""
        portable = replace(
            self,
            sources=tuple(portable_spec(source) for source in self.sources),
            baseline=portable_spec(self.baseline),
            request=replace(self.request, force=False),
        )
        written = options.model_dump(include={"sep", "decimal"}, exclude_defaults=True)
        entry: dict[str, Any] = to_json_values(portable)
        return {**entry, "written": written}


def fulfil_order(
    order: SeriesOrder, out: Path, options: SourceConfig
) -> GeneratedForecasts:
    """Find the series of an order, and make the suite that it asks for.

    Parameters
    ----------
    order : SeriesOrder
    out : Path
    options : SourceConfig
        How tables are read.

    Raises
    ------
    HardsynthError
        See :func:`generate_forecasts`; or forecasts of one table are F of several.
    """
    find = partial(
        find_series,
        roles=order.roles,
        reading=order.reading,
        time=order.time,
        target=order.target,
        options=options,
    )
    series = [*chain.from_iterable(map(find, order.sources))]
    word = order.baseline
    if len(series) > 1 and table_ending(word):
        raise ConfigError(
            f"--baseline {word} has forecasts of one table, and there are {len(series)}",
            "make a suite of each, or name a method, e.g. --baseline theta",
        )
    return generate_forecasts(
        series,
        lambda roles: read_forecaster(word, "F", roles, options),
        out,
        order.request,
        order=order.to_json(options),
    )


@dataclass(frozen=True, kw_only=True)
class GeneratedForecasts:
    """What was written.

    Attributes
    ----------
    suite : ForecastSuite
    parts : dict of str to SuitePart
        What was written, by the names of the suite's tables.
    left_out : dict of str to str
        Tasks that could not be made hard, and why.
    """

    suite: ForecastSuite
    parts: dict[str, SuitePart]
    left_out: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        """Return what was written, and the verdicts, as JSON values."""
        verdicts = {}
        for table, part in self.parts.items():
            for kind, certificate in part.certificates.items():
                verdicts[amlb_name(table, kind)] = certificate.verdict
        entry: dict[str, Any] = {
            "out": str(self.suite.root),
            "tasks": [vars(task) for task in self.suite.manifest.listed],
            "verdicts": verdicts,
        }
        return {**entry, "left_out": self.left_out} if self.left_out else entry

    def text(self) -> str:
        """Return what was written, as text for a terminal."""
        rows = []
        for table in self.suite.tables:
            part = self.parts[table.name]
            for task in table.tasks:
                cutoff = part.failing.origins.test[task.origin]
                if task.kind == GA and part.made.windows is not None:
                    cutoff = part.made.windows.cutoff
                seen = part.failing.panel.time_text(cutoff)
                rows.append([task.name, len(task.items), seen])
        lines = [text_table(["AMLB task", "series", "last value seen"], rows), ""]
        for name, part in self.parts.items():
            # the only table needs no name
            where = f"{name}: " if len(self.parts) > 1 else ""
            said = [*_describe(part.failing, part.notes), *part.made.notes]
            lines += [where + line for line in said]
            for kind, certificate in part.certificates.items():
                lines.append(f"{amlb_name(name, kind)}: {certificate.verdict}")
                lines.append(f"  {certificate.reason}")
        chosen = ""
        if (pair := self.suite.manifest.pair) is not None:
            lines += [f"{pair.name}: {t.name} has the {t.what}" for t in pair.tasks]
            chosen = f" -b {pair.name}+{self.suite.name}"
        out = shlex.quote(str(self.suite.root))
        lines.append(f"next: hardsynth run HardsynthForecast -u {out}{chosen} -r out")
        lines.append(f"      hardsynth report {out} --results out")
        return "\n".join(lines)


def _describe(failing: FailingWindows, notes: Sequence[str]) -> list[str]:
    bad = failing.is_bad
    return [
        f"F fails on {int(bad.sum())} of {len(bad)} windows "
        f"({format_percent(float(bad.mean()))}) · {window_rule_text(failing.rule)}",
        # whether that foresees anything is for the certificate to say
        failing.weighting.reason
        or f"windows have weights, P(F fails | {WINDOW.given})",
        *describe_left_out(failing.left_out),
        *describe_heavy_windows(failing),
        *describe_zeros(failing),
        *failing.panel.notes,
        *notes,
    ]


def generate_forecasts(
    series: Sequence[SeriesTask],
    make_baseline: Callable[[PanelRoles], Forecaster],
    out: Path,
    request: SeriesRequest,
    order: Mapping[str, Any] | None = None,
) -> GeneratedForecasts:
    """Find the windows on which F fails, make others of them, and write a suite for AMLB v2.1.7.

    Everything is computed before anything is written. Of several tasks those that cannot be made
    hard are left out.

    Parameters
    ----------
    series : sequence of SeriesTask
        Each becomes a table of the suite.
    make_baseline : callable
        Returns F for a table that is read by some roles.
    out : Path
    request : SeriesRequest
    order : mapping, optional
        What the manifest keeps of the command, for a repair.

    Raises
    ------
    DataError, ModelError, ConfigError, SourceError
        The only task cannot be made hard, or none of several can; nothing was written.
    SuiteError
        The folder cannot be written to.
    """
    check_folder(Layout(out), request.force)
    if request.copies < 0:
        raise ConfigError(f"{request.copies} copies of each window", "give 0 or more")
    check_refits(request.twins, "twins")
    # what is wrong for all tasks is told once
    check_rule(request.rule, request.alpha)
    parts, entries = [], {}
    left_out: dict[str, str] = {}
    for task in series:
        try:
            table, panel = _read_series(task)
            forecaster = make_baseline(table.roles)
            part = prepare_part(task, table, panel, forecaster, request)
        except HardsynthError as error:
            if len(series) == 1:
                raise
            left_out[task.name] = str(error)
            continue
        parts.append(part)
        entries[task.name] = task.entry
    if not parts:
        reasons = [f"{task}: {reason}" for task, reason in left_out.items()]
        raise SourceError(
            f"none of the {len(series)} tasks can be made hard: {'; '.join(reasons)}"
        )
    release_memory()
    suite = write_suite(
        out,
        parts,
        name=request.name,
        seed=request.seed,
        force=request.force,
        original=Original(request.benchmark, entries) if request.benchmark else None,
        order=order,
    )
    tables = [table.name for table in suite.tables]
    return GeneratedForecasts(
        suite=suite,
        parts=dict(zip(tables, parts, strict=True)),
        left_out=left_out,
    )


def _read_series(task: SeriesTask) -> tuple[SeriesTable, Panel]:
    """Return a task's table without its rows, and the panel that holds them.

    The panel is a third of the size of a table, which need not be kept beside it.
    """
    table = task.open()
    frames = [table.frame]
    table = replace(table, frame=pd.DataFrame())
    # popped, so that nothing else holds the table and its columns can go while it is read
    panel = read_panel(frames.pop(), table.roles, task.source)
    release_memory()
    return table, panel


def prepare_part(
    task: SeriesTask,
    table: SeriesTable,
    panel: Panel,
    forecaster: Forecaster,
    request: SeriesRequest,
) -> SuitePart:
    """Find the windows of a table on which F fails, and make others of them.

    Parameters
    ----------
    task : SeriesTask
    table : SeriesTable
        Its rows are not looked at.
    panel : Panel
        Its series.
    forecaster : Forecaster
        F.
    request : SeriesRequest

    Raises
    ------
    DataError, ModelError, ConfigError
        The table has no windows, F fails, or fails nowhere.
    """
    seed = request.seed
    test = table.origins if request.origins is None else request.origins
    chosen = plan_origins(
        panel,
        test=1 if test is None else test,
        learning=request.learning_origins,
        step=table.step if request.step is None else request.step,
        cutoff=request.cutoff,
        first_cutoff=table.first_cutoff,
    )
    failing = find_failing_windows(
        forecaster, panel, chosen, rule=request.rule, alpha=request.alpha, seed=seed
    )
    # what the models of the region took
    release_memory()
    panel_notes = (*panel.notes, *describe_known(panel, {"F": forecaster}))
    failing = replace(failing, panel=replace(panel, notes=panel_notes))
    rolled_twins = [
        roll_forecaster(twin, panel, failing.tests, seed, keep_quantiles=False)
        for twin in forecaster.twins(request.twins, panel.season)
    ]
    made = make_windows(forecaster, failing, request.copies, seed)
    certificates = {}
    if request.certificate is not None:
        certificates = certify_windows(
            forecaster, failing, made, rolled_twins, size=request.certificate, seed=seed
        )
    about = {
        "source": task.source,
        "roles": vars(table.roles),
        "baseline": forecaster.name,
        "is_file": isinstance(forecaster, FileForecaster),
        "settings": {**request.settings, "making": {"copies": request.copies}},
    }
    return SuitePart(
        task=task.name,
        failing=failing,
        twins=rolled_twins,
        about=about,
        made=made,
        certificates=certificates,
        notes=table.notes,
    )
