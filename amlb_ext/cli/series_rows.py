"""``hardsynth generate --series ... --as-rows L``: windows of series as rows of a plain table."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from amlb_ext.cli.flags import is_quiet, layer_from
from amlb_ext.cli.forecasting import find_one_series
from amlb_ext.cli.make_suite import make_suite
from amlb_ext.core.errors import ConfigError, HardsynthError
from amlb_ext.core.files import write_file

#: Real rows alone: a search that moves lags one by one makes windows of no series.
DEFAULTS: dict[str, Any] = {
    "composition": ["weighted"],
    "train_hard": False,
    "search": {"copies": 0},
    "synthesizer": {"times": 0.0},
    "relations": {"mine": False},
}
#: Flags of series that rows have no use for.
_UNUSED = ("origins", "cutoff")


def generate_rows(arguments: argparse.Namespace, sources: Sequence[str]) -> int:
    """Write the rows beside the suite, and the suite; see :mod:`amlb_ext.forecasting.as_rows`."""
    from amlb_ext.forecasting.as_rows import CUTOFF, SERIES, series_to_rows
    from amlb_ext.forecasting.panel import read_panel

    for flag in _UNUSED:
        if getattr(arguments, flag) is not None:
            raise ConfigError(
                f"--{flag} is for suites of forecasting, and --as-rows makes plain tables",
                "leave it out; --folds says how many blocks of time are tested on",
            )
    if len(sources) > 1:
        raise ConfigError(
            f"--as-rows takes one table, and {len(sources)} are given",
            "run the command for each, with its own -o",
        )
    target = layer_from(arguments).get("source", {}).get("target")
    task = find_one_series(arguments, sources[0], target)
    table = task.open()
    name = f"{task.name}_ahead_{table.roles.horizon}"
    rows = series_to_rows(
        read_panel(table.frame, table.roles, task.name),
        arguments.as_rows,
        arguments.step,
    )
    # the suite is then one of a table, and its settings say how its rows are split
    settings = {
        "source.target": rows.target,
        "split.time": CUTOFF,
        "split.gap": str(rows.gap),
        "split.cluster_by": SERIES,
        # it was for the series, and the rows are a file of ours
        "source.sep": None,
        "source.decimal": None,
    }
    for path, value in settings.items():
        setattr(arguments, path, value)
    if not is_quiet(arguments):
        print(*(f"note: {note}" for note in rows.notes), sep="\n", file=sys.stderr)

    def write(folder: Path) -> tuple[str]:
        path = folder / f"{name}.parquet"
        write_file(path, lambda part: rows.frame.to_parquet(part, index=False))
        return (str(path),)

    if arguments.dry_run:
        with TemporaryDirectory(prefix="hardsynth-") as folder:
            return make_suite(arguments, write(Path(folder)), defaults=DEFAULTS)
    out = Path(arguments.out)
    # kept, so that a repair finds what the suite was made of
    inputs = out.with_name(f"{out.name}_inputs")
    had_inputs = inputs.exists()
    try:
        return make_suite(arguments, write(inputs), defaults=DEFAULTS)
    except HardsynthError:
        if not had_inputs:
            shutil.rmtree(inputs, ignore_errors=True)
        raise
