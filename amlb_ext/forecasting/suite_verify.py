"""Check a suite of forecasting tasks, and put its paths right where it was moved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from amlb_ext.amlb.definition import read_definition
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import DefinitionError, SuiteError
from amlb_ext.core.files import write_text
from amlb_ext.core.parquet import read_frame
from amlb_ext.forecasting.fev_files import fev_data_path, fev_definition_path
from amlb_ext.forecasting.losses import seasonal_scale
from amlb_ext.forecasting.made_files import PROVENANCE, read_provenance
from amlb_ext.forecasting.made_windows import GA
from amlb_ext.forecasting.suite_definitions import amlb_definitions, definitions
from amlb_ext.forecasting.suite_files import (
    ITEM,
    TARGET,
    TIME,
    ForecastSuite,
    ForecastTable,
    item_id,
)
from amlb_ext.forecasting.suite_manifest import ForecastTask, PanelEntry, manifest_path
from amlb_ext.forecasting.window_judge import window_scale
from amlb_ext.forecasting.window_moves import WindowMove, move_window
from amlb_ext.sources.definition_check import check_definition
from amlb_ext.suite.definition import amlb_configuration, yaml_text
from amlb_ext.suite.folder_faults import WARNING, SuiteContents, folder_faults

#: What a finding says of a definition that names another place.
STALE = "names files where the suite no longer stands"
_RUNS = "hardsynth run works all the same, "


def verify_forecasts(folder: str | Path, *, where_it_stands: bool = True) -> list[str]:
    """Return what is wrong with a suite: changed files, stale paths, what AMLB would mis-score.

    Parameters
    ----------
    folder : path
    where_it_stands : bool
        Whether definitions must name the place where the suite stands now; a run gives AMLB copies
        that do.

    Raises
    ------
    SuiteError
        There is no such suite, or its manifest is damaged.
    """
    suite = ForecastSuite.load(folder)
    layout = suite.layout
    findings = [*folder_faults(_suite_contents(suite))]
    former = None if where_it_stands else _former_root(suite)
    texts_before = definitions(suite, former or layout.root)
    for path, text in definitions(suite, layout.root).items():
        relative = layout.relative(path)
        if not path.is_file():
            findings.append(
                f"{relative} is missing; hardsynth verify --repair writes it"
            )
        elif path.read_bytes() not in (text.encode(), texts_before[path].encode()):
            # fev is started by the user, who has the file alone
            runs = "" if path == fev_definition_path(layout) else _RUNS
            findings.append(
                f"{relative} {STALE}, or has changed; {runs}hardsynth verify --repair writes it "
                "anew"
            )
    if any(not finding.startswith(WARNING) for finding in findings):
        return findings
    if where_it_stands:
        path = layout.definition_all(suite.name)
        findings += check_definition(str(path), SourceConfig()).problems
    return findings + verify_made_windows(suite)


def _suite_contents(suite: ForecastSuite) -> SuiteContents:
    """Return what stands in a suite; definitions follow its place, so they have no checksum."""
    layout, manifest = suite.layout, suite.manifest
    own = {task.path for task in suite.tasks}
    for table in suite.tables:
        own.update(fev_data_path(task) for task in table.main_tasks)
        for name in ("series", "windows"):
            own.add(layout.relative(table.folder / f"{name}.parquet"))
    made = {layout.relative(table.folder / PROVENANCE) for table in suite.tables}
    certificates = {
        layout.relative(layout.task_certificate(task.name)) for task in suite.tasks
    }
    configuration = amlb_configuration(manifest.seed, constraints=True)
    unlisted = {manifest_path(layout.root), *definitions(suite, layout.root)}
    return SuiteContents(
        layout=layout,
        files=manifest.files,
        needed=frozenset(own),
        belongs=(own | made | certificates).__contains__,
        texts={layout.config: yaml_text(configuration)},
        unlisted=frozenset(layout.relative(path) for path in unlisted),
    )


def repair_forecasts(folder: str | Path) -> list[str]:
    """Write the definitions anew for the place where the suite stands; return which changed."""
    suite = ForecastSuite.load(folder)
    changed = []
    for path, text in definitions(suite, suite.layout.root).items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            write_text(path, text)
            changed.append(suite.layout.relative(path))
    return changed


def follow_move(suite: ForecastSuite) -> list[str]:
    """Let the definitions of a suite that was moved name its new place; return which did not.

    Only what the move made stale is written: a definition that was changed by hand stays, as does
    everything on a disk that cannot be written.
    """
    root = suite.layout.root.absolute()
    written: list[str] = []
    texts = definitions(suite, root)
    former = _former_root(suite)
    if former is None or former == root:
        return written
    texts_before = definitions(suite, former)
    for path, text in texts.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != texts_before[path]:
            continue
        try:
            write_text(path, text)
        except SuiteError:
            break
        written.append(suite.layout.relative(path))
    return written


def _former_root(suite: ForecastSuite) -> Path | None:
    """Return where the suite stood when its main definition was written, if that can be told."""
    path = suite.layout.definition(suite.name)
    for entry in amlb_definitions(suite)[suite.name]:
        inside = Path(entry["dataset"]["path"])
        try:
            task = dict(read_definition(path)).get(entry["name"], {})
        except (DefinitionError, OSError):
            return None
        named = Path(str(task.get("dataset", {}).get("path", "")))
        depth = len(inside.parts)
        if named.is_absolute() and named.parts[-depth:] == inside.parts:
            return Path(*named.parts[:-depth])
    return None


def runnable_definition(suite: ForecastSuite, benchmark: str, results: Path) -> str:
    """Return a definition of a suite that AMLB can run where the suite stands.

    That is the suite's own where its paths are right, else a copy beside the results, of the same
    name: a suite may stand on a disk that cannot be written.

    Parameters
    ----------
    suite : ForecastSuite
    benchmark : str
        A name; that of another definition is returned as it is.
    results : Path
    """
    for path, text in definitions(suite, suite.layout.root).items():
        if path.stem != benchmark:
            continue
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            return benchmark
        copy = results / "definitions" / path.name
        write_text(copy, text)
        return str(copy)
    return benchmark


#: Two values that differ by more than this share are not one.
_TOLERANCE = 1e-9


def verify_made_windows(suite: ForecastSuite) -> list[str]:
    """Return what is wrong with the made windows of a suite, the first of each kind by task.

    Raises
    ------
    SuiteError
        The provenance cannot be read.
    """
    findings = []
    for table in suite.tables:
        tasks = [task for task in table.tasks if task.kind == GA]
        if not tasks:
            continue
        provenance = read_provenance(table)
        series = read_frame(table.folder / "series.parquet")
        for task in tasks:
            rows = provenance[provenance["task"] == task.name].reset_index(drop=True)
            items = pd.read_csv(suite.layout.at(task.path))
            problems = _check_ids(task, rows, items)
            problems = problems or _check_sources(table, task, rows)
            problems = problems or _check_windows(table, rows, items, series)
            findings += [f"task {task.name}: {problem}" for problem in problems]
    return findings


def _check_ids(
    task: ForecastTask, rows: pd.DataFrame, items: pd.DataFrame
) -> list[str]:
    wanted = [item_id(number) for number in range(len(task.items))]
    if list(rows[ITEM]) != wanted:
        return [f"its provenance has {len(rows)} windows, the manifest {len(wanted)}"]
    if list(items[ITEM].unique()) != wanted:
        return [
            f"its table has {items[ITEM].nunique()} items, and {len(wanted)} were made; or their "
            "ids are others"
        ]
    return []


def _check_sources(
    table: ForecastTable, task: ForecastTask, rows: pd.DataFrame
) -> list[str]:
    """Check that sources are those of the manifest, and end before any test begins."""
    if not np.array_equal(rows["series"].to_numpy(), np.array(task.items)):
        return [
            "its windows come from other series than the manifest says",
        ]
    if rows["cutoff"].nunique() != 1:
        return [
            "its windows have several cutoffs, so one's past may hold another's future"
        ]
    last_used = int(rows["cutoff"].iloc[0]) + table.horizon
    first_test = min(table.entry.origins.test)
    if last_used > first_test:
        return [
            f"its windows use values {last_used - first_test} steps behind the cutoff of the "
            "first test origin, which no made window may"
        ]
    return []


def _check_windows(
    table: ForecastTable, rows: pd.DataFrame, items: pd.DataFrame, series: pd.DataFrame
) -> list[str]:
    """Check each window's times, length and scale, and that moved ones come out again."""
    panel = table.entry.panel
    horizon, season, calendar = panel.horizon, panel.season, table.entry.calendar
    groups = dict(list(items.groupby(ITEM, sort=True)))
    for row in rows.itertuples():
        window = groups[getattr(row, ITEM)]
        values = window[TARGET].to_numpy(dtype=float)
        named = f"window {getattr(row, ITEM)!r} of series {row.series_name!r}"
        if len(values) != row.length + horizon:
            return [
                f"{named} has {len(values)} values, and {row.length} + {horizon} were made"
            ]
        last = row.cutoff + horizon
        times = calendar[last + 1 - len(values) : last + 1]
        if not np.array_equal(pd.DatetimeIndex(window[TIME]), times):
            return [
                f"{named} does not lie at the {len(values)} times up to {times[-1]}"
            ]
        scale = window_scale(values[:-horizon], season)
        if not np.isclose(scale, row.scale, rtol=1e-6):
            return [f"{named} has the scale {scale:.6g}, and {row.scale:.6g} was noted"]
        if not _comes_again(row, values, series, panel):
            return [
                f"{named} is not what its move makes of the series up to {times[-1]}"
            ]
    return []


def _comes_again(
    row: object, values: np.ndarray, series: pd.DataFrame, panel: PanelEntry
) -> bool:
    """Whether a moved window is its source, cut behind its horizon and moved again."""
    horizon, season = panel.horizon, panel.season
    entry = series.iloc[row.series]  # type: ignore[attr-defined]
    seen = int(row.cutoff - entry["start"] + 1)  # type: ignore[attr-defined]
    # nothing behind the source's own horizon is there to be used
    source = np.asarray(entry["values"], dtype=float)[: seen + horizon]
    past, future = source[:seen], source[seen:]
    move = WindowMove(
        genes=np.asarray(row.genes),  # type: ignore[attr-defined]
        noise_key=int(row.noise_key),  # type: ignore[attr-defined]
    )
    again = move_window(
        past, future, move, season=season, scale=seasonal_scale(past, season)
    )
    both = np.concatenate(again)
    size = np.abs(both).max()
    return bool(np.abs(both - values).max() <= _TOLERANCE * max(size, 1.0))
