"""``hardsynth compare``: which fitted model is better than F, overall and where F fails."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.cli.display import print_json
from amlb_ext.cli.flags import (
    ORDER_SETTINGS,
    READING_SETTINGS,
    add_output_flags,
    add_setting_flags,
    is_quiet,
    layer_from,
    named_files,
)
from amlb_ext.cli.forecasting import add_series_flags, compare_series, takes_series
from amlb_ext.cli.numbers import SEED, real_number, whole_number
from amlb_ext.core.candidates import check_candidate_name
from amlb_ext.core.config import build_config
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import (
    check_file,
    check_model_file,
    check_pickle_trusted,
    has_model_ending,
)

if TYPE_CHECKING:
    from amlb_ext.comparison import ModelComparison


def add_parser(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "compare",
        help="which of your models is better than F, overall and where F fails",
        description="Compare fitted models on a table that none of them was fitted on. Each is "
        "better than F, worse, or undecided: over all rows, and where F fails.",
        examples="hardsynth compare new.csv --target churn --baseline deployed.skops "
        "--candidate boosting=boosting.skops --train old.csv --html answer.html",
    )
    parser.add_argument(
        "table", metavar="TABLE", help="file of labelled rows that no model has seen"
    )
    parser.add_argument("--target", metavar="NAME", help="column to predict")
    parser.add_argument(
        "--baseline",
        required=True,
        metavar="FILE",
        help="the current model F: a fitted model (.skops, or .joblib and .pkl with "
        "--trust-pickle), its predictions for the rows (.csv, .parquet, ...; docs/how-to/models.md "
        "has the format), or the address of a service (https://...; docs/how-to/in_context.md). "
        "For series: theta, ets, seasonal_naive, drift, ridge, boosting, module:Class, or a file "
        "of forecasts",
    )
    parser.add_argument(
        "--candidate",
        action="append",
        required=True,
        metavar="[NAME=]FILE",
        help="a model that might replace F, or its predictions; repeat the flag for several",
    )
    add_comparison_flags(parser)
    parser.add_argument(
        "--html", metavar="FILE", help="also write the answer as a page"
    )
    parser.add_argument(
        "--rows",
        metavar="FILE",
        help="also write, for each row of the table, whether F fails on it and each model's loss "
        "(.csv)",
    )
    parser.add_argument(
        "--loss",
        choices=("mase", "sql"),
        default="mase",
        help="loss of forecasts that is compared (default: mase)",
    )
    add_series_flags(parser)
    add_setting_flags(parser, only=READING_SETTINGS | ORDER_SETTINGS)
    add_output_flags(parser)
    parser.show_first(
        {
            "what is compared": ("table", "--target", "--baseline", "--candidate"),
            "how": ("--train", "--rule", "--alpha", "--kind", "--drop", "--as"),
            "files and output": ("--html", "--trust-pickle", "--seed", "-q", "--json"),
        }
    )
    parser.set_defaults(run_command=run_command)


def add_comparison_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say how models are compared on a table."""
    parser.add_argument(
        "--train",
        metavar="FILE",
        help="the rows that F was fitted on: F is fitted again on parts of them, as a control",
    )
    parser.add_argument(
        "--rule",
        default="auto",
        metavar="RULE",
        help="rule that calls a row bad: absolute, squared, band, wrong, quantile or reducible; "
        "for series also mase or sql (default: auto, by the kind of the target)",
    )
    parser.add_argument(
        "--alpha",
        type=real_number(),
        metavar="X",
        help="threshold of the rule (default: the rule's usual threshold)",
    )
    parser.add_argument(
        "--kind",
        choices=("regression", "classification"),
        help="kind of the target (default: the kind of F)",
    )
    parser.add_argument(
        "--refits",
        type=whole_number(0),
        default=5,
        metavar="N",
        help="how often F is fitted again (default: 5)",
    )
    parser.add_argument(
        "--seed",
        type=SEED,
        default=0,
        metavar="N",
        help="random seed (default: 0)",
    )
    parser.add_argument(
        "--trust-pickle",
        action="store_true",
        help="load pickles, which run any code that is in them: only files that you made",
    )


def run_command(arguments: argparse.Namespace) -> int:
    """Read the files, compare, and print the answer."""
    if takes_series(arguments, [arguments.table]):
        return compare_series(arguments)
    if arguments.target is None:
        raise ConfigError("no target is named", "add --target NAME")
    result = compare_files(arguments)
    if arguments.html:
        result.to_html(arguments.html)
    if arguments.rows:
        from amlb_ext.core.files import write_file

        write_file(Path(arguments.rows), result.rows.to_csv)
    from amlb_ext.core.json_values import to_json_values

    if arguments.json:
        # every row of the table would hide the answer: --rows writes them
        print_json(to_json_values(result, omit=("rows",)))
    elif not arguments.quiet:
        print(result.text(), end="")
    return 0


def compare_files(
    arguments: argparse.Namespace, level: float = 0.95
) -> ModelComparison:
    """Read the table and the models that the flags name, and compare them.

    Raises
    ------
    HardsynthError
        As :func:`amlb_ext.comparison.compare`, or a file that cannot be read.
    """
    files = named_files(arguments.candidate, "--candidate")
    for name in files:
        check_candidate_name(name)
    # all that can be said without the table comes first
    hardness = {"rule": arguments.rule, "alpha": arguments.alpha}
    rule = build_config({"hardness": hardness}).hardness
    if arguments.refits < 2:
        raise ConfigError(f"--refits {arguments.refits}", "give 2 or more")
    config = build_config(layer_from(arguments))
    options = config.source
    check_file(Path(arguments.table))
    if arguments.train:
        check_file(Path(arguments.train))
    for file in (arguments.baseline, *files.values()):
        # a service has an address, and no file
        if "://" in file:
            continue
        check_model_file(Path(file))
        # a file of predictions is no model
        if has_model_ending(file):
            check_pickle_trusted(Path(file), arguments.trust_pickle)
    from amlb_ext.comparison.compare import compare_labelled
    from amlb_ext.comparison.files import (
        describe_table,
        join_predictions,
        read_labelled_table,
        with_order,
    )
    from amlb_ext.models.columns import columns_of_model
    from amlb_ext.models.files import read_model
    from amlb_ext.sources.reading import reading_text

    table = read_labelled_table(Path(arguments.table), arguments.target, options)
    kind = arguments.kind
    if kind is None and options.read_as.get(arguments.target) == "category":
        kind = "classification"
    trust_pickle = arguments.trust_pickle
    baseline = read_model(arguments.baseline, trust_pickle)
    baseline = join_predictions(baseline, table, Path(arguments.baseline).name)
    candidates = {
        name: join_predictions(read_model(file, trust_pickle), table, Path(file).name)
        for name, file in files.items()
    }
    needed: set[str] = set()
    for model in (baseline, *candidates.values()):
        needed.update(columns_of_model(model)[0] or ())
    table, order = with_order(table, config.split, needed)
    train, train_order = None, None
    if arguments.train:
        old = read_labelled_table(Path(arguments.train), arguments.target, options)
        old, train_order = with_order(old, config.split, needed)
        train = (old.features, old.target)
    if not is_quiet(arguments):
        reading = describe_table(table, model=baseline, kind=kind)
        lines = [reading_text([reading]), *(f"note: {note}" for note in table.notes)]
        print(*lines, sep="\n", file=sys.stderr)
    return compare_labelled(
        baseline,
        candidates,
        table.features,
        table.target,
        train=train,
        kind=kind,
        config=rule,
        null="auto",
        refits=arguments.refits,
        level=level,
        seed=arguments.seed,
        order=order,
        train_order=train_order,
        declared=table.declared,
        about={
            "F": Path(arguments.baseline).name,
            "table": f"{Path(arguments.table).name}, {len(table.target)} rows",
        },
    )
