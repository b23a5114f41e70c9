"""Check a suite of forecasting tasks, and put its paths right where it was moved."""

from __future__ import annotations

from pathlib import Path

from amlb_ext.amlb.definition import read_definition
from amlb_ext.amlb.series_rules import check_series_task
from amlb_ext.core.errors import DefinitionError, SuiteError
from amlb_ext.core.files import write_text
from amlb_ext.forecasting.fev_files import fev_data_path, fev_definition_path
from amlb_ext.forecasting.made_files import PROVENANCE
from amlb_ext.forecasting.made_verify import verify_made_windows
from amlb_ext.forecasting.suite_definitions import amlb_definitions, definitions
from amlb_ext.forecasting.suite_files import ForecastSuite
from amlb_ext.forecasting.suite_manifest import manifest_path
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
        findings += check_definition(layout.definition_all(suite.name))
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


def check_definition(path: Path) -> list[str]:
    """Return what AMLB would fail on or mis-score, of all forecasting tasks of a definition.

    Raises
    ------
    DefinitionError
        The definition cannot be read.
    """
    findings = []
    for name, task in read_definition(path):
        dataset = task.get("dataset")
        if not isinstance(dataset, dict) or dataset.get("type") != "timeseries":
            continue
        if "path" not in dataset or "target" not in dataset:
            raise DefinitionError(
                f"{path.name}: task {name!r} has no path or no target",
                "add 'path: ...' and 'target: ...' to its dataset",
            )
        for problem in check_series_task(name, task):
            findings.append(f"task {name}: {problem}")
    return findings


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
    root = suite.layout.root
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
