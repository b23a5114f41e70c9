"""``hardsynth estimate``: the true error of a model from few labelled rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from amlb_ext.cli.command import Parts, check_written, command
from amlb_ext.cli.display import Answer
from amlb_ext.cli.values import split_pairs
from amlb_ext.core.paths import check_file, check_model_file, has_model_ending

#: What a folder of results gets.
FILES = ("estimates.csv", "estimate.json", "estimate.svg")
#: Flags of rows that depend on each other.
_DEPENDENT = ("--time", "--gap", "--group", "--cluster-by", "--series", "--horizon")
_WHY_NOT = (
    "its intervals take the rows of DATA for independent draws, which rows in time order, of one "
    "group or of a series are not; use 'hardsynth compare', which has that flag"
)


@command(
    group="daily",
    of={"how": "amlb_ext.estimate.estimate.estimate"},
    without=("given", "align"),
    flag_names={"target_range": "--range"},
    everyday={
        "the model and its rows": ("model", "data", "target", "kind"),
        "other rows": ("train", "unlabelled", "class_prior"),
        "the error": ("loss", "target_range", "level"),
        "files and output": ("out", "trust_pickle", "seed", "quiet", "json"),
    },
    refused=dict.fromkeys(_DEPENDENT, _WHY_NOT),
)
def estimate(
    model: str,
    data: str,
    *,
    class_prior: str = "",
    loss: str | None = None,
    osyn: Mapping[str, str] | None = None,
    out: Path | None = None,
    quiet: bool = False,
    parts: Parts,
) -> Answer:
    """Estimate the true error of a model from few labelled rows.

    Estimate the error of a model with every estimator that the given rows allow. Each gives an
    interval, names what it assumes, and says whether the data refute the assumption; the one to
    quote comes first. Exit status 1: none can be quoted.

    Parameters
    ----------
    model : MODEL
        fitted model (.skops), predictions for the rows of DATA in their order (.csv or .parquet),
        or short name or import path of a model to fit on --train
    data : DATA
        file of labelled rows that the model has not seen
    class_prior : CLASS=SHARE,...
        shares of the classes in the population, if DATA was drawn class by class, e.g.
        yes=.12,no=.88, or 'train' for the shares in --train
    loss : LOSS
        loss whose mean is estimated: zero_one (default), balanced, brier or log_loss for classes,
        squared (default), absolute or pinball:.9 for numbers; or a file of costs (.csv), a row for
        each true label and a column for each decision
    osyn : KEY=VALUE
        setting of OSYN, chosen before looking at the data: g, b, delta1, delta2, a_hat or k;
        repeat the flag for several
    out : DIR
        write estimates.csv, estimate.json and estimate.svg to this folder

    Examples
    --------
    $ hardsynth estimate model.skops labelled.csv --target price --train train.csv
    """
    if has_model_ending(model):
        check_model_file(Path(model))
    check_file(Path(data))
    if out:
        for name in FILES:
            check_written({"-o": out / name}, [model, data, parts["how"]])
    from amlb_ext.comparison.files import read_costs
    from amlb_ext.estimate import estimate as estimate_error
    from amlb_ext.estimate.plot import write_report
    from amlb_ext.suite.sealed_json import json_text

    report = estimate_error(
        model,
        data,
        class_prior=class_prior or None,
        loss=None if loss is None else read_costs(loss),
        osyn=split_pairs(osyn or (), "--osyn", example="g=2"),
        quiet=quiet,
        **parts["how"],
    )
    written = ""
    if out:
        write_report(report, out)
        written = f"\n\nwritten: {out / 'estimate.svg'}, estimates.csv, estimate.json"
    return Answer(
        lambda: report.text() + written,
        lambda: json_text(report.to_json()),
        status=1 if report.refused else 0,
    )
