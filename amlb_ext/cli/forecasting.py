"""Flags and steps of the commands that take series in place of rows."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.cli.display import print_json
from amlb_ext.cli.flags import flag_name, layer_from
from amlb_ext.cli.numbers import whole_number
from amlb_ext.core.candidates import check_candidate_name
from amlb_ext.core.config import SourceConfig, build_config
from amlb_ext.core.display import escape_controls
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import table_ending, table_stem

if TYPE_CHECKING:
    from amlb_ext.forecasting.forecasters import Forecaster
    from amlb_ext.forecasting.generate import GeneratedForecasts
    from amlb_ext.forecasting.panel import PanelRoles
    from amlb_ext.forecasting.series_tasks import SeriesTable, SeriesTask

#: Series that come with the installation, and need no other flag.
BUNDLED = ("bundled/series", "bundled/macrodata")
#: Settings of ``generate`` that series have, too.
_SETTINGS = {
    ("name",),
    ("seed",),
    ("source", "target"),
    ("source", "sep"),
    ("source", "decimal"),
    ("source", "amlb"),
    ("source", "userdir"),
    ("source", "cache_dir"),
    ("source", "max_download"),
    ("source", "max_unpacked"),
    ("source", "download_time"),
    ("source", "retries"),
    ("split", "time"),
    ("baseline", "model"),
    ("hardness", "rule"),
    ("hardness", "alpha"),
    ("search", "copies"),
}
#: Begins the names of sources that are tables for sure.
_TABLES = ("bundled", "openml/", "test.openml/")


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
        help="column that names the series of a row",
    )
    group.add_argument(
        "--horizon",
        type=whole_number(1),
        metavar="N",
        help="number of steps to forecast",
    )
    group.add_argument(
        "--season",
        type=whole_number(1),
        metavar="N",
        help="number of steps in a season (default: the usual one for the frequency)",
    )
    group.add_argument(
        "--frequency",
        metavar="TEXT",
        help="frequency as pandas spells it, e.g. MS, D, H (default: inferred from the times)",
    )
    add_origin_flags(group)


def add_origin_flags(group: Any) -> None:
    """Add the flags that say at which calendar times is forecast."""
    group.add_argument(
        "--origins",
        type=whole_number(1),
        metavar="N",
        help="number of test origins: calendar times after which is forecast (default: 1, or the "
        "folds of an AMLB definition)",
    )
    group.add_argument(
        "--learning-origins",
        type=whole_number(0),
        default=3,
        metavar="N",
        help="number of earlier origins, on which F's failures are learnt (default: 3)",
    )
    group.add_argument(
        "--step",
        type=whole_number(1),
        metavar="N",
        help="steps between two test origins (default: the horizon)",
    )
    group.add_argument(
        "--cutoff",
        metavar="TIME",
        help="last observed time at the last test origin (default: the latest that keeps most "
        "series)",
    )


def takes_series(arguments: argparse.Namespace, sources: list[str]) -> bool:
    """Return whether a command was given series.

    Raises
    ------
    ConfigError
        Some of the flags of series, but not all that are needed; or series beside tables.
    """
    # --time alone orders the rows of a plain table
    given = [flag for flag in ("series", "horizon") if _is_given(arguments, flag)]
    defined = [source for source in sources if _says_its_roles(arguments, source)]
    if len(defined) == len(sources):
        return True
    if not given:
        others = ("season", "frequency", "origins", "step", "cutoff", "as_rows")
        lonely = [flag for flag in others if _is_given(arguments, flag)]
        if lonely:
            raise ConfigError(
                f"--{lonely[0].replace('_', '-')} is for series",
                "add --series NAME --time NAME --horizon N, or leave it out",
            )
        if defined:
            other = next(source for source in sources if source not in defined)
            raise ConfigError(
                f"{defined[0]} is of series and {other} is not",
                "make a suite of each; for a long table give --series NAME --time NAME "
                "--horizon N",
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
    return True


def _says_its_roles(arguments: argparse.Namespace, source: str) -> bool:
    """Return whether a source says itself which columns its series have, and how far to go."""
    if source in BUNDLED:
        return True
    # the simplest sources are told apart without the import
    if source.startswith(_TABLES) or table_ending(source):
        return False
    from amlb_ext.forecasting.definition_source import find_series_tasks

    return find_series_tasks(source, _reading_options(arguments)) is not None


def _reading_options(arguments: argparse.Namespace) -> SourceConfig:
    """Return how sources are read; other settings may be wrong, which is said elsewhere."""
    return build_config({"source": layer_from(arguments).get("source", {})}).source


def _is_given(arguments: argparse.Namespace, flag: str) -> bool:
    return getattr(arguments, flag, None) is not None


def find_series(
    arguments: argparse.Namespace, source: str, target: str | None
) -> list[SeriesTask]:
    """Return the forecasting tasks of a source; their tables are not read yet.

    Parameters
    ----------
    arguments : Namespace
    source : str
    target : str, optional
        As the command's own flag says; for a long table.

    Raises
    ------
    ConfigError
        A long table without a target.
    """
    from amlb_ext.forecasting.definition_source import find_series_tasks
    from amlb_ext.forecasting.panel import PanelRoles
    from amlb_ext.forecasting.series_tasks import SeriesTask

    options = _reading_options(arguments)
    if source in BUNDLED:
        own = Path(source).name
        read: Callable[[], SeriesTable] = partial(_read_bundled, own, arguments)
        return [SeriesTask(name=own, source=source, open=read)]
    if not table_ending(source):
        tasks = find_series_tasks(source, options)
        if tasks is not None:
            return tasks
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
    read = partial(_read_file, Path(source), roles, options)
    return [SeriesTask(name=table_stem(source), source=Path(source).name, open=read)]


def _read_bundled(name: str, arguments: argparse.Namespace) -> SeriesTable:
    import dataclasses

    from amlb_ext.forecasting.bundled_series import BUNDLED_SERIES
    from amlb_ext.forecasting.series_tasks import SeriesTable

    given = {}
    for flag in ("horizon", "season", "frequency"):
        if getattr(arguments, flag) is not None:
            given[flag] = getattr(arguments, flag)
    bundled = BUNDLED_SERIES[name]
    roles = dataclasses.replace(bundled.roles, **given)
    return SeriesTable(frame=bundled.read(), roles=roles)


def _read_file(path: Path, roles: PanelRoles, options: SourceConfig) -> SeriesTable:
    from amlb_ext.forecasting.long_table import read_long_table
    from amlb_ext.forecasting.series_tasks import SeriesTable

    frame = read_long_table(path, roles, options, only_roles=True)
    return SeriesTable(frame=frame, roles=roles)


def find_one_series(
    arguments: argparse.Namespace, source: str, target: str | None
) -> SeriesTask:
    """Return the forecasting task of a source for a command that takes one table.

    Raises
    ------
    ConfigError
        The source has several.
    """
    tasks = find_series(arguments, source, target)
    if len(tasks) > 1:
        raise ConfigError(
            f"{source} has {len(tasks)} forecasting tasks, and this command takes one",
            f"name it: {source.partition('#')[0]}#{tasks[0].name}",
        )
    return tasks[0]


def read_forecaster(
    word: str, name: str, roles: PanelRoles, options: SourceConfig
) -> Forecaster:
    """Return the forecaster of a name, of ``module:Class``, or of a file of forecasts."""
    from amlb_ext.forecasting.forecasters import forecasts_from_table, make_forecaster
    from amlb_ext.forecasting.long_table import read_long_table

    if table_ending(word):
        table = read_long_table(Path(word), roles, options)
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
    options = _reading_options(arguments)
    table = find_one_series(arguments, arguments.table, arguments.target).open()
    roles = table.roles
    candidates = {}
    for word in arguments.candidate:
        name, sign, what = word.partition("=")
        name, what = (name, what) if sign else (Path(word).stem, word)
        if not name or name in candidates:
            raise ConfigError(
                f"--candidate {word}: the name {name!r} is empty or given twice",
                "write --candidate NAME=WHAT with another name",
            )
        check_candidate_name(name)
        candidates[name] = read_forecaster(what, name, roles, options)
    result = compare_forecasts(
        table.frame,
        read_forecaster(arguments.baseline, "F", roles, options),
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
        origins=_first_given(arguments.origins, table.origins, 1),
        learning=arguments.learning_origins,
        step=_first_given(arguments.step, table.step),
        cutoff=arguments.cutoff,
        first_cutoff=table.first_cutoff,
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


def _first_given(*values: Any) -> Any:
    """Return the first value that is given; None where none is."""
    return next((value for value in values if value is not None), None)


def generate_series(arguments: argparse.Namespace, sources: Sequence[str]) -> int:
    """Write a suite of forecasting tasks; see :mod:`amlb_ext.forecasting.generate`."""
    layer = layer_from(arguments)
    _check_settings(arguments, layer)
    target = layer.get("source", {}).get("target")
    series = []
    for source in sources:
        series += find_series(arguments, source, target)
    return _write_series(arguments, series, name=layer.get("name", "hardsynth"))


def hardens_series(arguments: argparse.Namespace) -> bool:
    """Return whether a benchmark to harden is one of series.

    Raises
    ------
    ConfigError
        The benchmark is of tables, and a flag is for series; or it is not AMLB's.
    """
    benchmark = arguments.benchmark
    if benchmark not in BUNDLED and _says_its_roles(arguments, benchmark):
        from amlb_ext.forecasting.definition_source import is_fev_definition

        if is_fev_definition(benchmark, _reading_options(arguments)):
            raise ConfigError(
                f"{benchmark} is a definition of fev's, and a hard twin is one of AMLB's",
                f"hardsynth generate {shlex.quote(benchmark)} -o DIR",
            )
        return True
    for flag in ("origins", "step", "cutoff"):
        if _is_given(arguments, flag):
            raise ConfigError(f"--{flag} is for series", "leave it out")
    return False


def harden_series(arguments: argparse.Namespace, name: str) -> int:
    """Write a suite with the hard twin of an AMLB benchmark of series.

    Parameters
    ----------
    arguments : Namespace
    name : str
        Of the main definition, where the user names none.
    """
    from amlb_ext.pipeline.twin import benchmark_name
    from amlb_ext.suite.finish import check_twin

    layer = layer_from(arguments)
    _check_settings(arguments, layer)
    name = layer.get("name", name)
    original = benchmark_name(arguments.benchmark)
    check_twin(original, name)
    series = find_series(arguments, arguments.benchmark, None)
    return _write_series(arguments, series, name=name, benchmark=original)


def _write_series(
    arguments: argparse.Namespace,
    series: Sequence[SeriesTask],
    *,
    name: str,
    benchmark: str | None = None,
) -> int:
    """Write the suite of some tasks, and print what came of it."""
    from amlb_ext.forecasting.generate import OriginPlan, generate_forecasts

    layer = layer_from(arguments)
    word = layer.get("baseline", {}).get("model", "theta")
    if len(series) > 1 and table_ending(word):
        raise ConfigError(
            f"--baseline {word} has forecasts of one table, and there are {len(series)}",
            "make a suite of each, or name a method, e.g. --baseline theta",
        )
    hardness = layer.get("hardness", {})
    alpha = hardness.get("alpha")
    options = _reading_options(arguments)
    generated = generate_forecasts(
        series,
        lambda roles: read_forecaster(word, "F", roles, options),
        Path(arguments.out),
        name=name,
        origins=OriginPlan(
            test=arguments.origins,
            learning=arguments.learning_origins,
            step=arguments.step,
            cutoff=arguments.cutoff,
        ),
        rule=hardness.get("rule", "mase"),
        alpha=None if alpha is None else float(alpha),
        seed=int(layer.get("seed", 0)),
        force=arguments.force,
        settings={"baseline": Path(word).name},
        benchmark=benchmark,
        copies=build_config({"search": layer.get("search", {})}).search.copies,
        certificate=None if arguments.certificate == "none" else arguments.certificate,
    )
    _print_generated(arguments, generated)
    return 1 if generated.left_out else 0


def _print_generated(
    arguments: argparse.Namespace, generated: GeneratedForecasts
) -> None:
    from amlb_ext.suite.layout import amlb_name

    for task, reason in generated.left_out.items():
        print(escape_controls(f"{task} is left out: {reason}"), file=sys.stderr)
    suite = generated.suite
    if arguments.json:
        entries = [vars(task) for task in suite.tasks]
        verdicts = {}
        for table, part in generated.parts.items():
            for kind, certificate in part.certificates.items():
                verdicts[amlb_name(table, kind)] = certificate.verdict
        entry: dict[str, Any] = {
            "out": str(generated.out),
            "tasks": entries,
            "verdicts": verdicts,
        }
        if generated.left_out:
            entry["left_out"] = generated.left_out
        print_json(entry)
        return
    if arguments.quiet:
        return
    print(generated.text())
    chosen = ""
    pair = suite.manifest.pair
    if pair is not None:
        for twin in pair.tasks:
            print(f"{pair.name}: {twin.name} has the {twin.what}")
        chosen = f" -b {pair.name}+{suite.name}"
    out = shlex.quote(str(generated.out))
    print(f"next: hardsynth run HardsynthForecast -u {out}{chosen} -r out")
    print(f"      hardsynth report {out} --results out")


def _check_settings(arguments: argparse.Namespace, layer: dict[str, Any]) -> None:
    """Refuse settings that series do not have, rather than to look away."""
    _check_layer(layer)
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
