"""Commands that take series in place of rows: whether they were given any, and what series lack."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from amlb_ext.cli.command import Flag, Form, Parts
from amlb_ext.cli.display import Answer
from amlb_ext.core.config import SourceConfig, build_config
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import BUNDLED_SERIES_SPECS, table_ending

if TYPE_CHECKING:
    from amlb_ext.comparison import ModelComparison
    from amlb_ext.sources.series_tasks import SeriesTask

_ROLES = "a long table of series"
_READING = "gaps and further columns of series"
_ORIGINS = "origins of series"
#: What declares the flags of a benchmark of series, by the titles of their groups.
ORIGINS = {
    _READING: "amlb_ext.sources.series_tasks.SeriesReading",
    _ORIGINS: "amlb_ext.models.given_series.Origins",
}
#: The same of long tables, whose columns the command line names.
SERIES = {_ROLES: "amlb_ext.models.given_series.SeriesRoles", **ORIGINS}
_FOR_SERIES = {*SERIES, "as_rows"}
_ON_SERIES = Form(
    where="on series",
    only=(
        *_FOR_SERIES,
        # of compare
        *("target", "baseline", "candidate", "html", "rows", "segment"),
        *("rule", "alpha", "loss", "refits", "seed"),
        # of commands that make a suite
        *("out", "force", "certificate", "name"),
        *("split.time", "baseline.model", "search.copies"),
        *("hardness.rule", "hardness.alpha", "source.target", "source.sep"),
        *("source.decimal", "source.amlb", "source.userdir", "source.max_file_size"),
    ),
    instead="leave it out; docs/how-to/forecasting.md has what they take",
)
#: Windows of series are rows then, with the settings of rows.
_AS_ROWS = Form(
    where="with --as-rows, whose rows are split by time",
    unused=(
        "origins",
        "learning_origins",
        "cutoff",
        "split.group",
        "split.gap",
        "split.cluster_by",
    ),
    instead="leave it out; --folds says how many blocks of time are tested on",
)
#: Begins the names of sources that are tables for sure.
_TABLES = ("bundled", "openml/", "test.openml/")
#: Real rows alone: a search that moves lags one by one makes windows of no series.
_ROW_DEFAULTS: dict[str, Any] = {
    "composition": ["weighted"],
    "train_hard": False,
    "search": {"copies": 0},
    "synthesizer": {"times": 0.0},
    "relations": {"mine": False},
}


def takes_series(
    sources: Sequence[str], typed: Mapping[str, Flag], settings: Mapping[str, Any]
) -> bool:
    """Return whether a command was given series.

    Parameters
    ----------
    sources : sequence of str
    typed : mapping of str to str
        The flags of the command line by name.
    settings : mapping

    Raises
    ------
    ConfigError
        Some of the flags of series, but not all that are needed; some that the sources say
        themselves, or that have no effect on series; or series beside tables.
    """
    defined = [source for source in sources if _says_its_roles(source, settings)]
    are_defined = len(defined) == len(sources)
    # --time alone orders the rows of a plain table
    if not (are_defined or {"series", "horizon"} & set(typed)):
        _refuse_flags_of_series(typed)
        if defined:
            other = next(source for source in sources if source not in defined)
            raise ConfigError(
                f"{defined[0]} is of series and {other} is not",
                "make a suite of each; for a long table give --series NAME --time NAME "
                "--horizon N",
            )
        return False
    if are_defined:
        _refuse_roles(sources, typed)
    form = _AS_ROWS if "as_rows" in typed else _ON_SERIES
    # without --series the others may be meant for a table
    if are_defined or "series" in typed:
        form.check(typed)
    needed = {"series": "series", "split.time": "time", "horizon": "horizon"}
    missing = [flag for name, flag in needed.items() if name not in typed]
    if missing and not are_defined:
        raise ConfigError(
            f"series need --{' and --'.join(missing)}, too",
            "give --series NAME --time NAME --target NAME --horizon N",
        )
    return True


def _refuse_flags_of_series(typed: Mapping[str, Flag]) -> None:
    for name, flag in typed.items():
        if {name, flag.group} & _FOR_SERIES:
            raise ConfigError(
                f"{flag.title} is for series",
                "give --series NAME --time NAME --horizon N with a long table, or leave it out",
            )


def _refuse_roles(sources: Sequence[str], typed: Mapping[str, Flag]) -> None:
    """Refuse columns and horizons that all of the sources say themselves."""
    own = {"series", "split.time", "source.target", "target"}
    bundled = set(sources) & set(BUNDLED_SERIES_SPECS)
    if not bundled:
        own |= {"horizon", "season", "frequency"}
    elif bundled == set(sources):
        own |= {"source.sep", "source.decimal"}
    form = Form(
        where=f"on {sources[0]}",
        unused=own,
        instead="leave it out: the source says which columns its series have",
    )
    form.check(typed)


def _says_its_roles(source: str, settings: Mapping[str, Any]) -> bool:
    """Return whether a source says itself which columns its series have, and how far to go."""
    if source in BUNDLED_SERIES_SPECS:
        return True
    # the simplest sources are told apart without the import
    if source.startswith(_TABLES) or table_ending(source):
        return False
    from amlb_ext.sources.series_definitions import find_series_tasks

    return find_series_tasks(source, _reading_options(settings)) is not None


def _reading_options(settings: Mapping[str, Any]) -> SourceConfig:
    """Return how sources are read; other settings may be wrong, which is said elsewhere."""
    return build_config({"source": settings.get("source", {})}).source


def _how_to_read(parts: Parts, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return which columns a long table of series has, and what becomes of gaps."""
    from amlb_ext.models.given_series import SeriesRoles
    from amlb_ext.sources.series_tasks import SeriesReading

    return {
        "roles": SeriesRoles(**parts.get(_ROLES, {})),
        "reading": SeriesReading(**parts[_READING]),
        "time": settings.get("split", {}).get("time"),
    }


def _find_task(
    source: str,
    target: str | None,
    parts: Parts,
    settings: Mapping[str, Any],
) -> SeriesTask:
    from amlb_ext.models.given_series import find_series, one_task

    tasks = find_series(
        source,
        **_how_to_read(parts, settings),
        target=target,
        options=_reading_options(settings),
    )
    return one_task(tasks, source)


def compare_series(
    table: str,
    target: str | None,
    baseline: str,
    candidates: Mapping[str, str],
    *,
    how: Mapping[str, Any],
    parts: Parts,
    settings: Mapping[str, Any],
) -> ModelComparison:
    """Compare forecasters; see :func:`amlb_ext.comparison.forecasts.compare_forecasts`."""
    from amlb_ext.comparison.forecasts import compare_forecasts
    from amlb_ext.models.given_series import read_forecaster

    options = _reading_options(settings)
    task = _find_task(table, target, parts, settings).open()
    roles = task.roles
    origins = parts[_ORIGINS]
    result = compare_forecasts(
        task.frame,
        read_forecaster(baseline, "F", roles, options),
        {
            name: read_forecaster(word, name, roles, options)
            for name, word in candidates.items()
        },
        **vars(roles),
        rule="mase" if how["rule"] == "auto" else how["rule"],
        alpha=how["alpha"],
        loss=how["loss"] or "mase",
        segments=how["segments"],
        origins=origins["origins"] or task.origins or 1,
        learning=origins["learning_origins"],
        step=origins["step"] or task.step,
        cutoff=origins["cutoff"],
        first_cutoff=task.first_cutoff,
        twins=how["refits"],
        seed=how["seed"],
    )
    return replace(result, notes=(*result.notes, *task.notes))


def hardens_series(
    benchmark: str, typed: Mapping[str, Flag], settings: Mapping[str, Any]
) -> bool:
    """Return whether a benchmark to harden is one of series.

    Raises
    ------
    ConfigError
        The benchmark is of tables, and a flag is for series; or it is not AMLB's.
    """
    if benchmark not in BUNDLED_SERIES_SPECS and _says_its_roles(benchmark, settings):
        from amlb_ext.sources.series_definitions import is_fev_definition

        if is_fev_definition(benchmark, _reading_options(settings)):
            raise ConfigError(
                f"{benchmark} is a definition of fev's, and a hard twin is one of AMLB's",
                f"hardsynth generate {shlex.quote(benchmark)} -o DIR",
            )
        _refuse_roles([benchmark], typed)
        _ON_SERIES.check(typed)
        return True
    _refuse_flags_of_series(typed)
    return False


def generate_series(
    sources: Sequence[str],
    parts: Parts,
    settings: Mapping[str, Any],
    *,
    name: str = "hardsynth",
    is_twin: bool = False,
) -> Answer:
    """Write a suite of forecasting tasks; see :mod:`amlb_ext.pipeline.generate_series`.

    Parameters
    ----------
    sources : sequence of str
    parts, settings : mapping
    name : str
        Of the main definition, where the user names none.
    is_twin : bool
        Also write the hard twin of the one source, an AMLB benchmark.
    """
    from amlb_ext.pipeline.generate_series import (
        SeriesOrder,
        SeriesRequest,
        fulfil_order,
    )
    from amlb_ext.pipeline.twin import benchmark_name
    from amlb_ext.suite.finish import check_twin

    name = settings.get("name", name)
    benchmark = benchmark_name(sources[0]) if is_twin else None
    if benchmark is not None:
        check_twin(benchmark, name)
    making = parts["the suite"]
    word = settings.get("baseline", {}).get("model", "theta")
    hardness = settings.get("hardness", {})
    alpha = hardness.get("alpha")
    request = SeriesRequest(
        name=name,
        **parts[_ORIGINS],
        rule=hardness.get("rule", "mase"),
        alpha=None if alpha is None else float(alpha),
        seed=int(settings.get("seed", 0)),
        force=making["force"],
        settings={"baseline": Path(word).name},
        benchmark=benchmark,
        copies=build_config({"search": settings.get("search", {})}).search.copies,
        certificate=None if making["certificate"] == "none" else making["certificate"],
    )
    order = SeriesOrder(
        sources=tuple(sources),
        **_how_to_read(parts, settings),
        target=settings.get("source", {}).get("target"),
        baseline=word,
        request=request,
    )
    generated = fulfil_order(order, making["out"], _reading_options(settings))
    for task, reason in generated.left_out.items():
        print(f"{task} is left out: {reason}", file=sys.stderr)
    return Answer(
        generated.text, generated.to_json, status=1 if generated.left_out else 0
    )


def generate_rows(
    sources: Sequence[str],
    lags: int,
    parts: Parts,
    *,
    settings: Mapping[str, Any],
    **making: Any,
) -> Answer:
    """Write windows of series as rows of a plain table beside the suite, and the suite.

    See :mod:`amlb_ext.sources.series_as_rows`.
    """
    from amlb_ext.cli.generate import make_suite
    from amlb_ext.core.files import inputs_folder, write_file
    from amlb_ext.sources.panel import read_panel
    from amlb_ext.sources.series_as_rows import CUTOFF, SERIES, series_to_rows

    if len(sources) > 1:
        raise ConfigError(
            f"--as-rows takes one table, and {len(sources)} are given",
            "run the command for each, with its own -o",
        )
    source = settings.get("source", {})
    task = _find_task(sources[0], source.get("target"), parts, settings)
    table = task.open()
    name = f"{task.name}_ahead_{table.roles.horizon}"
    panel = read_panel(table.frame, table.roles, task.name)
    rows = series_to_rows(panel, lags, parts[_ORIGINS]["step"])
    # the suite is then one of a table, and its settings say how its rows are split; how the file
    # of the series is written says nothing of the rows, which are a file of ours
    source = {key: source[key] for key in source if key not in ("sep", "decimal")}
    own = {"time": CUTOFF, "gap": str(rows.gap), "cluster_by": SERIES}
    split = settings.get("split", {})
    settings = {
        **settings,
        "source": {**source, "target": rows.target},
        "split": {**split, **own},
    }
    if not making["quiet"]:
        notes = (*panel.notes, *table.notes, *rows.notes)
        print(*(f"note: {note}" for note in notes), sep="\n", file=sys.stderr)

    def make(folder: Path) -> Answer:
        path = folder / f"{name}.parquet"
        write_file(path, lambda part: rows.frame.to_parquet(part, index=False))
        return make_suite(
            (str(path),), defaults=_ROW_DEFAULTS, settings=settings, **making
        )

    if making["dry_run"]:
        with TemporaryDirectory(prefix="hardsynth-") as place:
            return make(Path(place))
    with inputs_folder(making["out"]) as folder:
        return make(folder)
