"""``hardsynth report``: which framework improves on F where F fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from amlb_ext.cli.command import Form, Jobs, Suite, command
from amlb_ext.cli.display import Answer
from amlb_ext.cli.values import named_files
from amlb_ext.core.checked_call import CountOrNone, Level
from amlb_ext.core.config import SourceConfig, build_config
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import (
    OWN_FOLDER,
    check_suite_folder,
    is_suite_folder,
)

#: Where the definition of an ordinary benchmark and its data are.
_PLACES = frozenset({("source", "openml_cache"), ("source", "amlb")})


def _is_of_a_suite(given: Mapping[str, Any]) -> bool:
    suite = given["suite"]
    return given["baseline"] is None and suite is not None and is_suite_folder(suite)


_FORMS = [
    Form(
        where="on a suite, which has its own rows",
        holds=_is_of_a_suite,
        unused=("benchmark", "source"),
        instead="leave it out; it goes with --baseline",
    ),
    Form(where="with --json", holds=itemgetter("json"), unused=("out", "text")),
    Form(where="with --text", holds=itemgetter("text"), unused=("out",)),
]


@command(group="benchmark", settings=_PLACES, forms=_FORMS)
def report(
    suite: Suite | None = None,
    *,
    results: Sequence[str] = (),
    baseline: str | None = None,
    benchmark: str | None = None,
    predictions: Sequence[str] = (),
    segment: Sequence[str] = (),
    loss: str | None = None,
    refits: CountOrNone = 0,
    text: bool = False,
    out: Path | None = None,
    level: Level = 0.95,
    jobs: Jobs = 0,
    quiet: bool = False,
    json: bool = False,
    settings: dict[str, Any],
) -> Answer:
    """Compare frameworks where the baseline F fails.

    Join AMLB's predictions, or your own, to the suite row by row, compare every framework with F
    and with the others on the failure region, and write one page, hardsynth/report.html in the
    suite, with its tables beside it. Exit status 1: a job failed, has no result, or does not belong
    to the suite, or a verdict needs jobs that have not been run; the commands that run them are
    printed.

    With --baseline the results are those of any benchmark of AMLB, and one of its frameworks is F:
    tasks and test rows come from the benchmark's definition, and nothing is run again.

    Parameters
    ----------
    suite : DIR
        the suite's folder; with --baseline AMLB's user directory, its option -u (default: AMLB's
        own)
    results : OUT
        output folders of AMLB, its option -o, and folders in which TabArena's models ran (default:
        none; the report then describes the suite alone)
    baseline : FRAMEWORK
        the framework of ordinary results that is F
    benchmark : NAME|FILE
        the definition that was run, or openml/s/ID (default: the one that the runs are named after)
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
        label and a column for each decision; of series mase, rmsse, mae, sql, wql or crps (default:
        brier, squared of the scaled target, or mase); a task that it does not fit keeps the default
        and says so
    refits : COUNT
        fit F so often again in each fold, on bootstrap samples of its training rows, to tell harm
        from what training again does by itself, e.g. 5 (default: 0, no verdict on harm)
    text : bool
        print the report as text instead of writing files
    out : FOLDER
        folder to write to (default: in the suite, or in the first folder of ordinary results)

    Examples
    --------
    $ hardsynth report hard --results results
    $ hardsynth report hard --predictions mine=mine.csv
    $ hardsynth report hard --results results --segment "age < 25"
    $ hardsynth report --results results --baseline RandomForest
    """
    if baseline is None:
        if suite is None:
            raise ConfigError(
                "neither a suite nor --baseline is given",
                "hardsynth report DIR for a suite; hardsynth report --results OUT "
                "--baseline FRAMEWORK for ordinary results of AMLB",
            )
        check_suite_folder(suite)
    elif refits:
        raise ConfigError(
            f"--refits {refits}: F is the framework {baseline} of AMLB, which is not fitted here",
            "leave --refits out",
        )
    from amlb_ext.report import (
        report_as_json,
        report_summary,
        report_text,
        write_report,
    )
    from amlb_ext.report.suites import build_suite_report
    from amlb_ext.runner.run_folder import output_folder

    # they take most of the time, and only the page shows them
    charts = not (text or json)
    how: dict[str, Any] = {
        "segments": segment,
        "loss": loss,
        "workers": jobs,
        "level": level,
        "charts": charts,
        "quiet": quiet,
    }
    if baseline is not None:
        source = _places_of_benchmark(suite, baseline, predictions, settings)
        from amlb_ext.report.results_folder import build_results_report

        report = build_results_report(
            results, baseline, options=source, benchmark=benchmark, **how
        )
        home = output_folder(Path(results[0]))
    else:
        assert suite is not None
        named = named_files(predictions, "--predictions")
        report = build_suite_report(
            suite,
            results,
            predictions={name: Path(file) for name, file in named.items()},
            refits=refits,
            **how,
        )
        home = suite
    if not charts:
        shown = partial(report_text, report)
    else:
        page = write_report(report, out or home / OWN_FOLDER)
        shown = partial(report_summary, report, page)
    return Answer(
        shown,
        lambda: report_as_json(report),
        status=0 if report.is_complete else 1,
        is_urgent=text,
    )


def _places_of_benchmark(
    userdir: Path | None,
    baseline: str,
    predictions: Sequence[str],
    settings: dict[str, Any],
) -> SourceConfig:
    """Return where an ordinary benchmark is defined; raise for what is only a suite's."""
    if predictions:
        raise ConfigError(
            "--predictions goes with a suite", "give AMLB's results with --results"
        )
    if userdir is not None and is_suite_folder(userdir):
        raise ConfigError(
            f"--baseline {baseline}: {userdir} is a suite, which has an F of its own",
            "leave out --baseline",
        )
    source = build_config(settings).source
    if userdir is not None:
        source = source.model_copy(update={"userdir": str(userdir)})
    return source
