"""Flags and steps of the commands that take series in place of rows."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.cli.display import print_json
from amlb_ext.cli.flags import flag_name, layer_from
from amlb_ext.core.config import build_config
from amlb_ext.core.display import escape_controls
from amlb_ext.core.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

    from amlb_ext.forecasting.forecasters import Forecaster
    from amlb_ext.forecasting.panel import PanelRoles
    from amlb_ext.forecasting.suite_files import ForecastSuite

#: The simulated series, which need no other flag.
SIMULATED = "bundled/series"
#: Settings of ``generate`` that series have, too.
_SETTINGS = {
    ("name",),
    ("seed",),
    ("source", "target"),
    ("source", "sep"),
    ("source", "decimal"),
    ("source", "amlb"),
    ("source", "userdir"),
    ("source", "inputdir"),
    ("source", "cache_dir"),
    ("source", "max_download"),
    ("source", "max_unpacked"),
    ("source", "download_time"),
    ("source", "retries"),
    ("split", "time"),
    ("baseline", "model"),
    ("hardness", "rule"),
    ("hardness", "alpha"),
}
_TABLE_ENDINGS = (".csv", ".parquet")


def add_series_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that make a table one of series; ``--time`` is a setting of every table."""
    group = parser.add_argument_group(
        "series",
        "for a long table, one row for each series and time: forecasting "
        "(docs/how-to/forecasting.md)",
    )
    group.add_argument(
        "--series",
        metavar="NAME",
        help="column that says which series a row belongs to",
    )
    group.add_argument("--horizon", type=int, metavar="N", help="steps to forecast")
    group.add_argument(
        "--season",
        type=int,
        metavar="N",
        help="steps of a season (default: what is usual for the frequency)",
    )
    group.add_argument(
        "--frequency",
        metavar="TEXT",
        help="frequency as pandas spells it, e.g. MS, D, H (default: seen from the times)",
    )
    group.add_argument(
        "--origins",
        type=int,
        metavar="N",
        help="test origins: calendar times behind which is forecast (default: 1, or the folds of "
        "an AMLB definition)",
    )
    group.add_argument(
        "--learning-origins",
        type=int,
        default=3,
        metavar="N",
        help="origins before them, on which F's failures are learnt (default: 3)",
    )
    group.add_argument(
        "--step",
        type=int,
        metavar="N",
        help="steps between two test origins (default: the horizon)",
    )
    group.add_argument(
        "--cutoff",
        metavar="TIME",
        help="last time that is seen at the last test origin (default: the latest that keeps most "
        "series)",
    )


def takes_series(arguments: argparse.Namespace, sources: list[str]) -> bool:
    """Return whether a command was given series.

    Raises
    ------
    ConfigError
        Some of the flags of series, but not all that are needed.
    """
    # --time alone orders the rows of a plain table
    given = [flag for flag in ("series", "horizon") if _is_given(arguments, flag)]
    if sources == [SIMULATED]:
        return True
    if not given:
        if len(sources) == 1 and _is_definition_of_series(arguments, sources[0]):
            return True
        others = ("season", "frequency", "origins", "step", "cutoff", "as_rows")
        lonely = [flag for flag in others if _is_given(arguments, flag)]
        if lonely:
            raise ConfigError(
                f"--{lonely[0].replace('_', '-')} is for series",
                "add --series NAME --time NAME --horizon N, or leave it out",
            )
        return False
    if _is_given(arguments, "split.time"):
        given.append("time")
    for name in ("group", "gap", "cluster_by"):
        if _is_given(arguments, f"split.{name}"):
            flag = flag_name(("split", name))
            raise ConfigError(
                f"--{flag} is for the rows of a plain table, and these are series",
                f"leave --{flag} out: origins lie in time, and a series is a group",
            )
    missing = [flag for flag in ("series", "time", "horizon") if flag not in given]
    if missing:
        raise ConfigError(
            f"series need --{' and --'.join(missing)}, too",
            "give --series NAME --time NAME --target NAME --horizon N",
        )
    if len(sources) != 1:
        raise ConfigError(
            f"{len(sources)} sources of series", "give the file of one long table"
        )
    return True


def _is_definition_of_series(arguments: argparse.Namespace, source: str) -> bool:
    # the simplest sources are told apart without the import
    if source == "bundled" or source.lower().endswith(_TABLE_ENDINGS):
        return False
    from amlb_ext.forecasting.definition_source import find_defined_series

    options = build_config(_reading_layer(arguments)).source
    return find_defined_series(source, options) is not None


def _reading_layer(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of the source alone; others may be wrong, which is said elsewhere."""
    return {"source": layer_from(arguments).get("source", {})}


def _is_given(arguments: argparse.Namespace, flag: str) -> bool:
    return getattr(arguments, flag, None) is not None


def read_series(
    arguments: argparse.Namespace, source: str, target: str | None
) -> tuple[pd.DataFrame, PanelRoles]:
    """Return a long table and its roles, as the flags say.

    Raises
    ------
    ConfigError
        No target is named.
    """
    import dataclasses

    from amlb_ext.forecasting.panel import PanelRoles
    from amlb_ext.forecasting.simulator import SIMULATED_ROLES, simulate_series

    if source == SIMULATED:
        given = {
            flag: getattr(arguments, flag)
            for flag in ("horizon", "season", "frequency")
            if getattr(arguments, flag) is not None
        }
        return simulate_series(), dataclasses.replace(SIMULATED_ROLES, **given)
    reading = layer_from(arguments).get("source", {})
    if arguments.series is None:
        from amlb_ext.forecasting.definition_source import load_defined_series

        options = build_config(_reading_layer(arguments)).source
        defined = load_defined_series(source, options)
        if arguments.origins is None:
            arguments.origins = defined.folds
        return _read_long_table(defined.path, defined.roles, reading), defined.roles
    if target is None:
        raise ConfigError("series need --target", "name the column to forecast")
    roles = PanelRoles(
        series=arguments.series,
        time=getattr(arguments, "split.time"),
        target=target,
        horizon=arguments.horizon,
        season=arguments.season,
        frequency=arguments.frequency,
    )
    return _read_long_table(Path(source), roles, reading), roles


def _read_long_table(
    path: Path, roles: PanelRoles, reading: Mapping[str, Any]
) -> pd.DataFrame:
    from amlb_ext.sources.read_table import CsvFormat, read_table

    how = CsvFormat(
        separator=reading.get("sep"),
        decimal=reading.get("decimal", "."),
        # ids such as 007 stay as the file writes them
        texts=frozenset({roles.series}),
    )
    return read_table(path, how).frame


def read_forecaster(
    word: str, name: str, roles: PanelRoles, reading: Mapping[str, Any]
) -> Forecaster:
    """Return the forecaster of a name, of ``module:Class``, or of a file of forecasts."""
    from amlb_ext.forecasting.forecasters import forecasts_from_table, make_forecaster

    if word.endswith(_TABLE_ENDINGS):
        table = _read_long_table(Path(word), roles, reading)
        return forecasts_from_table(table, name, series=roles.series, time=roles.time)
    return make_forecaster(word, name)


def compare_series(arguments: argparse.Namespace) -> int:
    """Compare forecasters on a long table; see :func:`amlb_ext.forecasting.compare_forecasts`."""
    from amlb_ext.core.json_values import to_json_values
    from amlb_ext.forecasting import compare_forecasts

    for flag in ("train", "kind"):
        if getattr(arguments, flag) is not None:
            raise ConfigError(f"--{flag} has no effect on series", "leave it out")
    layer = layer_from(arguments)
    _check_layer(layer)
    reading = layer.get("source", {})
    table, roles = read_series(arguments, arguments.table, arguments.target)
    candidates = {}
    for word in arguments.candidate:
        name, sign, what = word.partition("=")
        name, what = (name, what) if sign else (Path(word).stem, word)
        if not name or name in candidates:
            raise ConfigError(
                f"--candidate {word}: the name {name!r} is empty or given twice",
                "write --candidate NAME=WHAT with another name",
            )
        candidates[name] = read_forecaster(what, name, roles, reading)
    result = compare_forecasts(
        table,
        read_forecaster(arguments.baseline, "F", roles, reading),
        candidates,
        series=roles.series,
        time=roles.time,
        target=roles.target,
        horizon=roles.horizon,
        season=roles.season,
        frequency=roles.frequency,
        rule="mase" if arguments.rule == "auto" else arguments.rule,
        alpha=arguments.alpha,
        loss=arguments.loss,
        origins=1 if arguments.origins is None else arguments.origins,
        learning=arguments.learning_origins,
        step=arguments.step,
        cutoff=arguments.cutoff,
        twins=arguments.refits,
        seed=arguments.seed,
    )
    if arguments.html:
        result.to_html(arguments.html)
    if arguments.json:
        print_json(to_json_values(result.summary()))
    elif not arguments.quiet:
        print(result.text(), end="")
    return 0


def generate_series(arguments: argparse.Namespace, source: str) -> int:
    """Write a suite of forecasting tasks; see :mod:`amlb_ext.forecasting.generate`."""
    layer = layer_from(arguments)
    _check_settings(arguments, layer)
    from amlb_ext.forecasting.generate import OriginPlan, generate_forecasts

    baseline = layer.get("baseline", {}).get("model", "theta")
    hardness = layer.get("hardness", {})
    table, roles = read_series(arguments, source, layer.get("source", {}).get("target"))
    alpha = hardness.get("alpha")
    generated = generate_forecasts(
        table,
        roles,
        read_forecaster(baseline, "F", roles, layer.get("source", {})),
        Path(arguments.out),
        name=layer.get("name", "hardsynth"),
        task=task_name(source),
        source=source if source == SIMULATED else Path(source).name,
        origins=OriginPlan(
            test=1 if arguments.origins is None else arguments.origins,
            learning=arguments.learning_origins,
            step=arguments.step,
            cutoff=arguments.cutoff,
        ),
        rule=hardness.get("rule", "mase"),
        alpha=None if alpha is None else float(alpha),
        seed=int(layer.get("seed", 0)),
        force=arguments.force,
        settings={"baseline": Path(baseline).name},
    )
    if arguments.json:
        entries = [vars(task) for task in generated.tasks]
        print_json({"out": str(generated.out), "tasks": entries})
    elif not arguments.quiet:
        out = shlex.quote(str(generated.out))
        print(generated.text())
        print(f"next: hardsynth run HardsynthForecast -u {out} -r out")
        print(f"      hardsynth report {out} --results out")
    return 0


def task_name(source: str) -> str:
    """Return what the tasks of a source are called: the table, or the definition's task."""
    if source == SIMULATED:
        return "series"
    base, _, task = source.partition("#")
    return task or Path(base).stem


def _check_settings(arguments: argparse.Namespace, layer: dict[str, Any]) -> None:
    """Refuse settings that series do not have, rather than to look away."""
    _check_layer(layer)
    if arguments.certificate == "full":
        raise ConfigError(
            "suites of series have no certificate yet", "leave --certificate out"
        )
    for flag in ("config", "relations", "dry_run", "cluster", "logs"):
        if getattr(arguments, flag, None):
            raise ConfigError(
                f"--{flag.replace('_', '-')} has no effect on series", "leave it out"
            )


def _check_layer(layer: Mapping[str, Any]) -> None:
    for stage, value in layer.items():
        paths = (
            [(stage, key) for key in value] if isinstance(value, dict) else [(stage,)]
        )
        for path in paths:
            if path not in _SETTINGS:
                raise ConfigError(
                    f"--{flag_name(path)} has no effect on series",
                    "leave it out; docs/how-to/forecasting.md has what they take",
                )


def verify_series(arguments: argparse.Namespace) -> int:
    """Check a suite of forecasting tasks, and write its paths anew on request."""
    from amlb_ext.forecasting.suite_verify import repair_forecasts, verify_forecasts

    if arguments.source:
        raise ConfigError(
            "forecasting tasks are not made again from a source",
            "run hardsynth generate again; --repair puts paths right",
        )
    mended = repair_forecasts(arguments.suite) if arguments.repair else []
    problems = verify_forecasts(arguments.suite)
    if arguments.json:
        entry = {"suite": arguments.suite, "problems": problems, "warnings": []}
        print_json({**entry, "mended": mended} if arguments.repair else entry)
        return 1 if problems else 0
    if not arguments.quiet:
        for path in mended:
            print(f"{path} was made again.")
    stream = sys.stderr if arguments.quiet else sys.stdout
    for problem in problems:
        print(escape_controls(problem), file=stream)
    if not problems and not arguments.quiet:
        print(f"{shlex.quote(arguments.suite)}: checksums, paths and AMLB's rules hold")
    return 1 if problems else 0


def report_series(arguments: argparse.Namespace) -> int:
    """Set AMLB's frameworks against F; see :mod:`amlb_ext.forecasting.suite_report`."""
    from amlb_ext.core.files import write_text
    from amlb_ext.core.json_values import to_json_values
    from amlb_ext.forecasting.suite_report import report_forecasts

    if not arguments.results:
        suite = shlex.quote(arguments.suite)
        raise ConfigError(
            "a report of forecasting tasks needs results",
            f"hardsynth run HardsynthForecast -u {suite} -r out, then --results out",
        )
    report = report_forecasts(arguments.suite, arguments.results, level=arguments.level)
    comparison = report.comparison
    if arguments.json:
        entry = {} if comparison is None else comparison.summary()
        entry["incomplete"] = report.incomplete
        print_json(to_json_values(entry))
    else:
        if comparison is not None and arguments.text:
            print(comparison.text(), end="")
        elif comparison is not None:
            out = (
                Path(arguments.out)
                if arguments.out
                else Path(arguments.suite, "hardsynth")
            )
            comparison.to_html(out / "report.html")
            csv = comparison.windows.to_csv(index=False, lineterminator="\n")
            write_text(out / "report" / "windows.csv", csv)
            if not arguments.quiet:
                print(*comparison.headline(), comparison.advice, sep="\n")
                print(out / "report.html")
        for framework, reason in report.incomplete.items():
            print(f"{framework} is not compared: {reason}", file=sys.stderr)
    return 1 if report.incomplete or comparison is None else 0


def refuse_publishing(suite: str) -> None:
    """Refuse to publish a suite of forecasting tasks, and say why.

    Raises
    ------
    PublishError
        The suite holds forecasting tasks.
    """
    from amlb_ext.core.errors import PublishError
    from amlb_ext.suite.layout import holds_forecasts

    if holds_forecasts(suite):
        raise PublishError(
            f"{suite} holds forecasting tasks, and OpenML has no task type for them",
            "hand out the folder itself: hardsynth run works wherever it stands",
        )


def load_series_suite(userdir: Path) -> ForecastSuite | None:
    """Return the suite of forecasting tasks in a folder; None where it holds none."""
    from amlb_ext.suite.layout import holds_forecasts

    if not holds_forecasts(userdir):
        return None
    from amlb_ext.forecasting.suite_files import ForecastSuite

    return ForecastSuite.load(userdir)


def runnable_definitions(
    suite: ForecastSuite, benchmarks: Sequence[str], results: Path
) -> list[str]:
    """Return definitions that AMLB can run where the suite stands now."""
    from amlb_ext.forecasting.suite_verify import runnable_definition

    return [runnable_definition(suite, name, results) for name in benchmarks]
