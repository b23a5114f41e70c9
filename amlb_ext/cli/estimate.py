"""``hardsynth estimate``: the true error of a model from few labelled rows."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from amlb_ext.cli.flags import add_level_flag, add_output_flags, is_quiet
from amlb_ext.cli.numbers import SEED, real_number, whole_number
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import check_file, check_model_file, has_model_ending

if TYPE_CHECKING:
    from amlb_ext.estimate.answers import EstimateReport

_INDEPENDENT = (
    "its intervals take the rows of DATA for independent draws, which {rows} are not; "
    "use 'hardsynth compare' with {flags}"
)
_ORDERED = _INDEPENDENT.format(rows="rows in time order", flags="--time")
_GROUPED = _INDEPENDENT.format(
    rows="rows of one group", flags="--cluster-by or --group"
)
_SERIES = _INDEPENDENT.format(
    rows="values of a series",
    flags="--series, --time and --horizon",
)
#: Flags of other commands, and why rows that they describe are refused.
_REFUSED = {
    "--time": _ORDERED,
    "--gap": _ORDERED,
    "--group": _GROUPED,
    "--cluster-by": _GROUPED,
    "--series": _SERIES,
    "--horizon": _SERIES,
}


def add_parser(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "estimate",
        help="estimate the true error of a model from few labelled rows",
        examples="hardsynth estimate model.skops labelled.csv --target price --train train.csv",
        description="Estimate the error of a model with every estimator that the given rows allow. "
        "Each gives an interval, names what it assumes, and says whether the data refute the "
        "assumption; the one to quote comes first. Exit status 1: none can be quoted.",
    )
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="fitted model (.skops), predictions for the rows of DATA in their order (.csv or "
        ".parquet), or short name or import path of a model to fit on --train",
    )
    parser.add_argument(
        "data", metavar="DATA", help="file of labelled rows that the model has not seen"
    )
    _add_row_flags(parser)
    _add_loss_flags(parser)
    _add_generator_flags(parser)
    parser.add_argument(
        "--trust-pickle",
        action="store_true",
        help="load a pickle or joblib file; such a file can run any code, so use this for your own "
        "files only",
    )
    parser.add_argument(
        "--seed",
        type=SEED,
        default=0,
        metavar="N",
        help="random seed (default: 0)",
    )
    parser.add_argument(
        "-o",
        "--out",
        metavar="DIR",
        help="write estimates.csv, estimate.json and estimate.svg to this folder",
    )
    add_output_flags(parser)
    parser.refuse_flags(_REFUSED)
    parser.show_first(
        {
            "the model and its rows": ("model", "data", "--target", "--kind"),
            "other rows": ("--train", "--unlabelled", "--class-prior"),
            "the error": ("--loss", "--range", "--level"),
            "files and output": ("--out", "--trust-pickle", "--seed", "-q", "--json"),
        }
    )
    parser.set_defaults(run_command=run_command)


def _add_row_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "rows", "the target, other rows, and the draw of DATA"
    )
    group.add_argument(
        "--target",
        metavar="NAME",
        help="column to predict (default: the column that AMLB would choose)",
    )
    group.add_argument(
        "--kind",
        choices=("regression", "binary", "multiclass"),
        help="kind of the target (default: inferred from DATA)",
    )
    group.add_argument(
        "--train",
        metavar="FILE",
        help="file of training rows, on which a named model or a synthesizer is fitted, which give "
        "the range of a regression target, and with which DATA is compared",
    )
    group.add_argument(
        "--unlabelled",
        metavar="FILE",
        help="file of real rows without labels from the same population",
    )
    group.add_argument(
        "--class-prior",
        metavar="CLASS=SHARE,...",
        help="shares of the classes in the population, if DATA was drawn class by class, e.g. "
        "yes=.12,no=.88, or 'train' for the shares in --train",
    )
    group.add_argument(
        "--drawn-at-random",
        action="store_true",
        help="trust that DATA was drawn at random from the population whose error is estimated, "
        "even if the training rows contradict it",
    )


def _add_loss_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("loss", "the error to estimate, and the level")
    group.add_argument(
        "--loss",
        metavar="NAME",
        help="loss whose mean is estimated: zero_one (default), brier or log for classes, squared "
        "(default) or absolute for numbers",
    )
    group.add_argument(
        "--clip",
        type=real_number(0, 0.5),
        metavar="P",
        help="smallest probability in the log loss (default: 0.001)",
    )
    group.add_argument(
        "--range",
        nargs=2,
        type=real_number(),
        metavar=("LOW", "HIGH"),
        help="range of a regression target, which bounds the loss (default: its range in --train)",
    )
    group.add_argument(
        "--error-cap",
        type=real_number(0),
        metavar="E",
        help="cap on the error in the squared and absolute loss, in the unit of the target; the "
        "intervals are narrower, and hold for the capped loss",
    )
    add_level_flag(group)


def _add_generator_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "generated rows", "bounds from generated rows, to look at and never to quote"
    )
    # Either a synthesizer makes the rows, or a file has them.
    origin = group.add_mutually_exclusive_group()
    origin.add_argument(
        "--synthesizer",
        metavar="NAME",
        help="synthesizer that generates rows like those of --train: copula, vae, ...",
    )
    origin.add_argument(
        "--synthetic", metavar="FILE", help="file of generated rows with their targets"
    )
    group.add_argument(
        "--generated",
        type=whole_number(1),
        default=100_000,
        metavar="N",
        help="number of rows to generate (default: 100000)",
    )
    group.add_argument(
        "--osyn",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="setting of OSYN, chosen before looking at the data: g, b, delta1, delta2, a_hat, k "
        "or regions=labels; repeat the flag for several",
    )
    group.add_argument(
        "--explore",
        action="store_true",
        help="also write the bound of OSYN for every b and delta2, to look at and never to quote; "
        "needs -o",
    )


def run_command(arguments: argparse.Namespace) -> int:
    """Estimate the error of a model; see :func:`amlb_ext.estimate.estimate.estimate`."""
    if has_model_ending(arguments.model):
        check_model_file(Path(arguments.model))
    check_file(Path(arguments.data))
    from amlb_ext.estimate import estimate
    from amlb_ext.suite.sealed_json import json_text

    if arguments.explore and not arguments.out:
        raise ConfigError(
            "--explore was given without a folder to write to", "add -o DIR"
        )
    if arguments.explore and not (arguments.synthesizer or arguments.synthetic):
        raise ConfigError(
            "--explore was given without generated rows",
            "add --synthesizer or --synthetic",
        )
    target_range = None if arguments.range is None else tuple(arguments.range)
    osyn_settings = dict(_split_pair(text, "--osyn") for text in arguments.osyn)
    report = estimate(
        arguments.model,
        arguments.data,
        target=arguments.target,
        kind=arguments.kind,
        train=arguments.train,
        unlabelled=arguments.unlabelled,
        synthesizer=arguments.synthesizer,
        synthetic=arguments.synthetic,
        generated=arguments.generated,
        class_prior=_parse_class_prior(arguments.class_prior),
        drawn_at_random=arguments.drawn_at_random,
        loss=arguments.loss,
        clip=arguments.clip,
        target_range=target_range,
        error_cap=arguments.error_cap,
        level=arguments.level,
        osyn=osyn_settings,
        explore=arguments.explore,
        seed=arguments.seed,
        trust_pickle=arguments.trust_pickle,
        quiet=is_quiet(arguments),
    )
    if arguments.out:
        _write_report(report, Path(arguments.out))
    if arguments.json:
        print(json_text(report.to_json()), end="")
    elif not arguments.quiet or report.refused:
        print(report.text())
        if arguments.out:
            picture = Path(arguments.out) / "estimate.svg"
            print(f"\nwritten: {picture}, estimates.csv, estimate.json")
    return 1 if report.refused else 0


def _write_report(report: EstimateReport, folder: Path) -> None:
    from amlb_ext.core.files import write_file, write_text
    from amlb_ext.estimate.plot import draw_estimates
    from amlb_ext.suite.sealed_json import json_text

    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file", "choose a folder with -o")
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "estimates.csv", report.table().to_csv(index=False))
    write_text(folder / "estimate.json", json_text(report.to_json()))
    picture = draw_estimates(report)
    write_file(folder / "estimate.svg", lambda path: path.write_bytes(picture))
    if report.osyn is not None and report.osyn.sweep is not None:
        write_text(folder / "explore.csv", report.osyn.sweep.to_csv(index=False))


def _parse_class_prior(text: str | None) -> dict[str, float] | Literal["train"]:
    """Return the share of each class as ``--class-prior`` gives it; empty without the flag."""
    text = (text or "").strip()
    if text == "train":
        return "train"
    shares = {}
    for item in text.split(","):
        if not item.strip():
            continue
        name, share = _split_pair(item.strip(), "--class-prior")
        try:
            shares[name] = float(share)
        except ValueError:
            raise ConfigError(
                f"--class-prior {item}: {share!r} is not a number",
                "write yes=.12,no=.88",
            ) from None
    return shares


def _split_pair(text: str, flag: str) -> tuple[str, str]:
    """Return the two sides of ``KEY=VALUE``; of a class prior the key may hold ``=``."""
    if flag == "--class-prior":
        key, sign, value = text.rpartition("=")
    else:
        key, sign, value = text.partition("=")
    if not sign or not key:
        raise ConfigError(
            f"{flag} {text}: there is no '=' in it", f"write {flag} KEY=VALUE"
        )
    return key.strip(), value.strip()
