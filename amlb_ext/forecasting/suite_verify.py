"""Check a suite of forecasting tasks, and put its paths right where it was moved."""

from __future__ import annotations

from pathlib import Path

from amlb_ext.amlb.definition import read_definition
from amlb_ext.amlb.series_rules import check_series_task
from amlb_ext.core.errors import DefinitionError
from amlb_ext.core.files import sha256_file, write_text
from amlb_ext.forecasting.fev_files import fev_definition_path
from amlb_ext.forecasting.made_verify import verify_made_windows
from amlb_ext.forecasting.suite_definitions import amlb_definitions, definitions
from amlb_ext.forecasting.suite_files import ForecastSuite
from amlb_ext.suite.own_frameworks import is_suite_part_whole

#: What a finding says of a definition that names another place.
STALE = "names files where the suite no longer stands"
_RUNS = "hardsynth run works all the same, "


def verify_forecasts(folder: str | Path) -> list[str]:
    """Return what is wrong with a suite: changed files, stale paths, what AMLB would mis-score.

    Raises
    ------
    SuiteError
        There is no such suite, or its manifest is damaged.
    """
    suite = ForecastSuite.load(folder)
    layout = suite.layout
    findings = []
    for relative, digest in suite.manifest["files"].items():
        path = layout.at(relative)
        if not path.is_file():
            findings.append(f"{relative} is missing")
        elif path == layout.frameworks:
            # entries of the user's own may stand behind those of the suite
            if not is_suite_part_whole(path, digest):
                findings.append(f"{relative} has changed")
        elif sha256_file(path) != digest:
            findings.append(f"{relative} has changed")
    for path, text in definitions(suite, layout.root).items():
        relative = layout.relative(path)
        if not path.is_file():
            findings.append(
                f"{relative} is missing; hardsynth verify --repair writes it"
            )
        elif path.read_text(encoding="utf-8") != text:
            # fev is started by the user, who has the file alone
            runs = "" if path == fev_definition_path(layout) else _RUNS
            findings.append(
                f"{relative} {STALE}, or has changed; {runs}hardsynth verify --repair writes it "
                "anew"
            )
    if findings:
        return findings
    findings = check_definition(layout.definition_all(suite.name))
    return findings + verify_made_windows(suite)


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
        except OSError:
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
