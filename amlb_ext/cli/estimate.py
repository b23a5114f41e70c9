"""``hardsynth estimate``: the true error of a model from few labelled rows."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from amlb_ext.cli.flags import add_output_flags, is_quiet
from amlb_ext.core.display import text_table
from amlb_ext.core.errors import ConfigError

if TYPE_CHECKING:
    from amlb_ext.estimate.answers import EstimateReport


def add(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "estimate",
        help="the true error of a model from few labelled rows",
        description="Estimate the error of a model by every estimator that the rows at hand allow. "
        "Each gives an interval, names what it assumes, and says whether the data refute that; "
        "the one to quote comes first. Exit status 1: none can be quoted.",
    )
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a fitted model (.skops); predictions for the rows of DATA, in order (.csv or "
        ".parquet); or the short name or import path of a model to fit on --train",
    )
    parser.add_argument(
        "data", metavar="DATA", help="file of labelled rows that the model has not seen"
    )
    parser.add_argument(
        "--target",
        metavar="NAME",
        help="column to predict (default: the one that AMLB would choose)",
    )
    parser.add_argument(
        "--kind",
        choices=("regression", "binary", "multiclass"),
        help="kind of the target (default: inferred from DATA)",
    )
    parser.add_argument(
        "--train",
        metavar="FILE",
        help="file of training rows, to fit a model given by name or a synthesizer, and to bound a "
        "regression target; DATA is compared with them",
    )
    parser.add_argument(
        "--unlabelled",
        metavar="FILE",
        help="file of real rows of the same population, without labels",
    )
    generated = parser.add_mutually_exclusive_group()
    generated.add_argument(
        "--synthesizer",
        metavar="NAME",
        help="generates rows like those of --train: copula, vae, ...",
    )
    generated.add_argument(
        "--synthetic", metavar="FILE", help="file of generated rows with their targets"
    )
    parser.add_argument(
        "--generated",
        type=int,
        default=100_000,
        metavar="N",
        help="rows to generate (default: 100000)",
    )
    parser.add_argument(
        "--class-prior",
        metavar="CLASS=SHARE,...",
        help="shares of the classes in the population, if DATA was drawn class by class: "
        "yes=.12,no=.88, or 'train' for their shares in --train",
    )
    parser.add_argument(
        "--drawn-at-random",
        action="store_true",
        help="trust that DATA was drawn at random from the population whose error is asked for, "
        "even where the training rows contradict it",
    )
    parser.add_argument(
        "--loss",
        metavar="NAME",
        help="loss whose mean is estimated: zero_one (the default), brier or log for classes, "
        "squared (the default) or absolute for numbers",
    )
    parser.add_argument(
        "--clip",
        type=float,
        metavar="P",
        help="smallest probability in the log loss (default: .001)",
    )
    parser.add_argument(
        "--range",
        nargs=2,
        type=float,
        metavar=("LOW", "HIGH"),
        help="range of a regression target, which bounds the loss (default: its range in --train)",
    )
    parser.add_argument(
        "--error-cap",
        type=float,
        metavar="E",
        help="largest error that counts in the squared and absolute loss, in the target's unit; "
        "the intervals are narrower and hold for the capped loss",
    )
    parser.add_argument(
        "--level",
        type=float,
        default=0.95,
        metavar="P",
        help="confidence level (default: .95)",
    )
    parser.add_argument(
        "--osyn",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of OSYN, chosen before looking at the data: g, b, delta1, delta2, a_hat, k "
        "or regions=labels; repeat the flag for several",
    )
    parser.add_argument(
        "--explore",
        action="store_true",
        help="also write OSYN's bound for every b and delta2; to look at, not to quote (needs -o)",
    )
    parser.add_argument(
        "--trust-pickle",
        action="store_true",
        help="load a pickle or joblib file; it can run any code, so use this for your own only",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="random seed (default: 0)"
    )
    parser.add_argument(
        "-o",
        "--out",
        metavar="DIR",
        help="write estimates.csv, estimate.json and estimate.svg to this folder",
    )
    add_output_flags(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run it; see :func:`amlb_ext.estimate.estimate.estimate`. Exit status 1: none to quote."""
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
        class_prior=_shares(arguments.class_prior),
        drawn_at_random=arguments.drawn_at_random,
        loss=arguments.loss,
        clip=arguments.clip,
        target_range=None if arguments.range is None else tuple(arguments.range),
        error_cap=arguments.error_cap,
        level=arguments.level,
        osyn=dict(_pair(word, "--osyn") for word in arguments.osyn),
        explore=arguments.explore,
        seed=arguments.seed,
        trust_pickle=arguments.trust_pickle,
        quiet=is_quiet(arguments),
    )
    if arguments.out:
        _write(report, Path(arguments.out))
    if arguments.json:
        print(json_text(report.to_json()), end="")
    elif not arguments.quiet or report.refused:
        print(_text(report))
        if arguments.out:
            print(
                f"\nwritten: {Path(arguments.out) / 'estimate.svg'}, estimates.csv, estimate.json"
            )
    return 1 if report.refused else 0


def _write(report: EstimateReport, folder: Path) -> None:
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


def _text(report: EstimateReport) -> str:
    """Return the headline, the table, and why a check failed."""
    best = report.recommended
    if best is None:
        head = f"no estimate can be recommended: {report.refused}"
        if report.advice:
            head += f"\nwhat to do: {report.advice}"
    else:
        head = (
            f"{best.name}: {_number(best.point)}, {report.level:.0%} interval "
            f"{_number(best.low)} to {_number(best.high)} ({report.loss}, {report.unit}; "
            f"{report.n} labelled rows)\nassumes that {report.assumption}"
        )
        head += _approximate(report)
    headers = ["estimator", "point", "low", "high", "check"]
    rows = [
        [
            row.name + (" *" if row.recommended else ""),
            _number(row.point),
            _number(row.low),
            _number(row.high),
            row.check,
        ]
        for row in report.rows
    ]
    found = _grouped((row.name, row.reason) for row in report.rows)
    assumed = _grouped((row.name, row.assumes) for row in report.rows)
    told = [
        *(["found:"] if found else []),
        *(f"  {', '.join(names)}: {text}" for text, names in found.items()),
        "assumed:",
        *(f"  {', '.join(names)}: {text}" for text, names in assumed.items()),
        *(f"note: {note}" for note in report.notes),
    ]
    return "\n".join([head, "", text_table(headers, rows), "", *told])


def _approximate(report: EstimateReport) -> str:
    """Return a line with the narrower interval beside one that holds for every bounded loss."""
    row = next((row for row in report.rows if row.name == report.approximate), None)
    if row is None:
        return ""
    hint = (
        "; --error-cap E narrows the first"
        if report.loss in ("squared", "absolute")
        else ""
    )
    return (
        f"\napproximately ({row.name}): {_number(row.point)}, {_number(row.low)} to "
        f"{_number(row.high)}, if no rare rows lose far more than any labelled row: the losses are "
        f"too skewed, or too few, to rely on that{hint}"
    )


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return each text once, with the estimators it is about."""
    out: dict[str, list[str]] = {}
    for name, text in pairs:
        if text:
            out.setdefault(text, []).append(name)
    return out


def _number(value: float) -> str:
    if not math.isfinite(value):
        return ""
    # four decimals would leave nothing of the squared losses of a good model
    return f"{value:.3g}" if 0 < value < 0.005 else f"{value:.4f}"


def _shares(text: str | None) -> dict[str, float] | Literal["train"]:
    if (text or "").strip() == "train":
        return "train"
    found = {}
    for word in (text or "").split(","):
        if not word.strip():
            continue
        name, share = _pair(word.strip(), "--class-prior")
        try:
            found[name] = float(share)
        except ValueError:
            raise ConfigError(
                f"--class-prior {word}: {share!r} is not a number",
                "write yes=.12,no=.88",
            ) from None
    return found


def _pair(word: str, flag: str) -> tuple[str, str]:
    key, sign, value = (
        word.rpartition("=") if flag == "--class-prior" else word.partition("=")
    )
    if not sign or not key:
        raise ConfigError(
            f"{flag} {word}: there is no '=' in it", f"write {flag} KEY=VALUE"
        )
    return key.strip(), value.strip()
