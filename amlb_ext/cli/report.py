"""``hardsynth report``: which framework improves on F where F fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from amlb_ext.cli.command import Jobs, Suite, command
from amlb_ext.cli.display import print_json
from amlb_ext.cli.values import named_files
from amlb_ext.core.checked_call import Level
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import (
    OWN_FOLDER,
    check_suite_folder,
)

if TYPE_CHECKING:
    from amlb_ext.report.model import BuiltReport


@command(group="benchmark")
def report(
    suite: Suite,
    *,
    results: Sequence[str] = (),
    predictions: Sequence[str] = (),
    segment: Sequence[str] = (),
    loss: str | None = None,
    text: bool = False,
    out: Path | None = None,
    level: Level = 0.95,
    jobs: Jobs = 0,
    quiet: bool = False,
    json: bool = False,
) -> int:
    """Compare frameworks where the baseline F fails.

    Join AMLB's predictions, or your own, to the suite row by row, compare every framework with F
    and with the others on the failure region, and write one page, hardsynth/report.html in the
    suite, with its tables beside it. Exit status 1: a job failed, has no result, or does not belong
    to the suite, or a verdict needs jobs that have not been run; the commands that run them are
    printed.

    Parameters
    ----------
    results : OUT
        output folders of AMLB, its option -o, and folders in which TabArena's models ran (default:
        none; the report then describes the suite alone)
    predictions : [NAME=]FILE
        predictions of the suite's test rows (.csv, .parquet, ...; docs/how-to/predictions.md has
        the format), which stand in the report beside AMLB's frameworks; of series, those that were
        made with fev, a .parquet file or a folder of them (docs/how-to/forecasting.md)
    segment : COLUMN|CONDITION
        rows whose change of loss is told for itself: the values of a column, or a condition such as
        "age < 25"; repeatable; a task without that column says so
    loss : LOSS
        what is compared: brier, log_loss, zero_one, balanced or auc; squared, absolute, squared_log
        or pinball:.9; a scorer of scikit-learn; or a file of costs (.csv), a row for each true
        label and a column for each decision (default: brier, or squared of the scaled target); a
        task that it does not fit keeps the default and says so
    text : bool
        print the report as text instead of writing files
    out : FOLDER
        folder to write to (default: in the suite)

    Examples
    --------
    $ hardsynth report hard --results results
    $ hardsynth report hard --predictions mine=mine.csv
    $ hardsynth report hard --results results --segment "age < 25"
    """
    check_suite_folder(suite)
    from amlb_ext.report import (
        report_as_json,
        report_summary,
        report_text,
        write_report,
    )

    named = named_files(predictions, "--predictions")
    build = _report_builder(suite, workers=jobs, quiet=quiet or json, loss=loss)
    built = build(
        suite,
        results,
        predictions={name: Path(file) for name, file in named.items()},
        segments=segment,
        level=level,
        # they take most of the time, and only the page shows them
        charts=not (text or json),
    )
    if json:
        print_json(report_as_json(built.report))
    elif text:
        print(report_text(built.report), end="")
    else:
        page = write_report(built, out or suite / OWN_FOLDER)
        if not quiet:
            print(report_summary(built.report, page))
    return 0 if built.report.is_complete else 1


def _report_builder(
    suite: Path, *, workers: int, quiet: bool, loss: str | None
) -> Callable[..., BuiltReport]:
    """Return what builds the report of a suite, by the form of its tasks.

    Raises
    ------
    ConfigError
        A loss is named for what is no suite of tables.
    """
    from amlb_ext.suite import open_suite
    from amlb_ext.suite.series_manifest import SeriesManifest
    from amlb_ext.suite.task_folder import TaskFolder

    manifest = open_suite(suite).manifest
    if loss is not None and isinstance(manifest, SeriesManifest | TaskFolder):
        raise ConfigError(
            "--loss is for suites of tables",
            "leave it out: series are compared by MASE, folders of tasks by AMLB's scores",
        )
    if isinstance(manifest, SeriesManifest):
        from amlb_ext.report.series import build_series_report

        return build_series_report
    if isinstance(manifest, TaskFolder):
        from amlb_ext.report.runs import build_run_report

        return build_run_report
    from amlb_ext.comparison.files import read_costs
    from amlb_ext.report import build_report

    if loss is not None:
        loss = read_costs(loss)
    return partial(build_report, workers=workers, quiet=quiet, loss=loss)
