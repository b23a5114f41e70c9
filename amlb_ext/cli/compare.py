"""``hardsynth compare``: which fitted model is better than F, overall and where F fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.cli.command import Flag, Parts, command
from amlb_ext.cli.display import Answer
from amlb_ext.cli.series import SERIES, compare_series, takes_series
from amlb_ext.cli.settings import ORDER_SETTINGS, READING_SETTINGS
from amlb_ext.cli.values import named_files
from amlb_ext.core.checked_call import check_candidate_name
from amlb_ext.core.config import build_config
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import check_compared

if TYPE_CHECKING:
    from amlb_ext.comparison import ModelComparison

#: What declares how models are compared on a table, and what of it is no flag.
COMPARISON = {"how": "amlb_ext.comparison.files.compare_files"}
NO_FLAGS = ("candidates", "level", "config", "segments")


@command(
    group="daily",
    of=COMPARISON | SERIES,
    without=NO_FLAGS,
    settings=READING_SETTINGS | ORDER_SETTINGS,
    everyday={
        "what is compared": ("table", "target", "baseline", "candidate"),
        "how": (
            "train",
            "loss",
            "segment",
            "cv",
            "rule",
            "alpha",
            "kind",
            "--drop",
            "--as",
        ),
        "files and output": ("html", "trust_pickle", "seed", "quiet", "json"),
    },
)
def compare(
    table: str,
    *,
    target: str | None = None,
    baseline: str,
    candidate: list[str],
    html: Path | None = None,
    rows: Path | None = None,
    segment: Sequence[str] = (),
    quiet: bool = False,
    settings: dict[str, Any],
    typed: Mapping[str, Flag],
    parts: Parts,
) -> Answer:
    """Compare your models: which is better than F, overall and where F fails.

    Compare fitted models on a table that none of them was fitted on. Each is better than F, worse,
    or undecided: over all rows, and where F fails. Before you replace F: who is harmed, who gains,
    how your segments change, and which mixture would do better.

    Parameters
    ----------
    table : TABLE
        file of labelled rows that no model has seen
    target : NAME
        column to predict
    baseline : FILE
        the current model F: a fitted model (.skops, or .joblib and .pkl with --trust-pickle), its
        predictions for the rows (.csv, .parquet, ...; docs/how-to/models.md has the format), or the
        address of a service (https://...; docs/how-to/in_context.md). For series: theta, ets,
        seasonal_naive, drift, ridge, boosting, module:Class, or a file of forecasts
    candidate : [NAME=]FILE
        a model that might replace F, or its predictions; repeat the flag for several
    html : FILE
        also write the answer as a page
    rows : FILE
        also write, for each row or window, whether F fails on it and each model's loss (.csv)
    segment : COLUMN|CONDITION
        a group of rows that matters to you, e.g. region or "age < 25"; repeat the flag for several

    Examples
    --------
    $ hardsynth compare new.csv --target churn --baseline deployed.skops --candidate \
boosting=boosting.skops --train old.csv --html answer.html
    """
    files = read_candidates(candidate)
    how = {**parts["how"], "segments": list(segment)}
    if takes_series([table], typed, settings):
        result = compare_series(
            table,
            target,
            baseline,
            files,
            how=how,
            parts=parts,
            settings=settings,
        )
    else:
        if target is None:
            raise ConfigError("no target is named", "add --target NAME")
        result = compare_rows(
            Path(table),
            target,
            baseline,
            files,
            settings=settings,
            quiet=quiet,
            **how,
        )
    from amlb_ext.core.files import write_file
    from amlb_ext.core.json_values import to_json_values

    if html:
        result.to_html(html)
    if rows:
        write_file(rows, result.rows.to_csv)
    # every row of the table would hide the answer: --rows writes them
    return Answer(result.text, lambda: to_json_values(result.summary()))


def compare_rows(
    table: Path,
    target: str,
    baseline: str,
    files: dict[str, str],
    *,
    settings: dict[str, Any],
    **how: Any,
) -> ModelComparison:
    """Compare models on a plain table, as :func:`amlb_ext.comparison.files.compare_files` does."""
    # all that can be said without the table comes first
    build_config({"hardness": {"rule": how["rule"], "alpha": how["alpha"]}})
    config = build_config(settings)
    check_compared(
        table,
        [baseline, *files.values()],
        train=how["train"],
        trust_pickle=how["trust_pickle"],
    )
    from amlb_ext.comparison.files import compare_files

    return compare_files(table, target, baseline, files, config=config, **how)


def read_candidates(words: Sequence[str]) -> dict[str, str]:
    """Return the files of ``--candidate`` by the names of their models."""
    files = named_files(words, "--candidate")
    for name in files:
        check_candidate_name(name)
    return files
