"""Which estimate to quote, what it assumes about the draw, and what to do if there is none."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from amlb_ext.core.display import format_level, text_table
from amlb_ext.estimate.drawing import About, Against, Comparison
from amlb_ext.estimate.inputs import EstimateInputs
from amlb_ext.stats.bounded_mean import interval_for_skewness
from amlb_ext.stats.error_estimate import FAILED, ErrorEstimate

if TYPE_CHECKING:
    from amlb_ext.estimate.answers import EstimateReport


#: Rows of each class from which on the stratified interval of a bounded loss is reliable
#: (docs/evidence/coverage.md).
LARGE_CLASS = 200

# What an interval may assume about the draw.
AT_RANDOM = "the labelled rows were drawn at random from the population whose error is estimated"
BY_CLASS = (
    "the rows of each class were drawn at random from that class of the population whose error is "
    "asked for, and the class priors are that population's"
)
OF_EACH_CLASS = (
    "the rows of each class were drawn at random from that class of the population whose error is "
    "asked for"
)
#: How a user can vouch for the labelled rows.
VOUCH = (
    "if the labelled rows were drawn at random from the population whose error is estimated, and "
    "the training rows were drawn differently, add --drawn-at-random"
)
#: An upper limit so many times the estimate says little of the error.
FAR_LIMIT = 10.0


@dataclass(frozen=True, kw_only=True)
class Preference:
    """Names of the estimators to quote, best first; if none, the reason and what to do."""

    names: tuple[str, ...]
    reason: str = ""
    advice: str = ""


def choose_preference(inputs: EstimateInputs, by_class: bool) -> Preference:
    """Return which estimators to quote.

    Parameters
    ----------
    inputs : EstimateInputs
    by_class : bool
        Whether the labelled rows were drawn class by class.
    """
    if inputs.loss.is_balanced:
        return Preference(names=("balanced",))
    if not by_class:
        if inputs.loss.binary:
            return Preference(names=("wilson",))
        if inputs.loss.costs is not None:
            return Preference(names=("cost",))
        # Betting holds for every bounded loss, and is wide.
        return Preference(names=(interval_for_skewness(inputs.losses), "betting"))
    # The intervals of the 0-1 loss and of costs hold for few rows as well.
    holds_for_few = inputs.loss.binary or inputs.loss.costs is not None
    small_classes = []
    if not holds_for_few:
        # Only priors show that rows were drawn by class.
        assert inputs.priors is not None
        counts = np.bincount(inputs.y.astype(int), minlength=len(inputs.labels))
        for code in np.flatnonzero((inputs.priors > 0) & (counts < LARGE_CLASS)):
            small_classes.append(f"{counts[code]} of {inputs.labels[code]}")
    if not small_classes:
        return Preference(names=("stratified",))
    return Preference(
        names=(),
        reason=(
            f"for the {inputs.loss.name} loss of rows drawn class by class the stratified interval "
            f"holds from {LARGE_CLASS} labelled rows of every class on, and there are "
            + ", ".join(small_classes)
        ),
        advice=(
            f"label more rows of these classes, until each has {LARGE_CLASS}; or estimate the 0-1 "
            "loss, for which fewer are enough: --loss zero_one"
        ),
    )


def choose_quoted(rows: Sequence[ErrorEstimate], preference: Preference) -> str:
    """Return the name of the best estimate with an interval that did not fail, or empty text."""
    by_name = {row.name: row for row in rows}
    for name in preference.names:
        row = by_name.get(name)
        if row is not None and row.has_interval and row.check != FAILED:
            return name
    return ""


def why_none_quoted(rows: Sequence[ErrorEstimate], preference: Preference) -> str:
    """Return the reasons of the estimators that might have been quoted, each once."""
    if preference.reason:
        return preference.reason
    clauses: list[str] = []
    for row in rows:
        if row.name in preference.names and row.reason:
            clauses += row.reason.split("; ")
    if not clauses:
        return "no estimator gives an interval on these rows"
    # Two estimators share most of their findings; a dict keeps the first of each.
    return "; ".join(dict.fromkeys(clauses))


def describe_assumption(
    quoted: str, comparisons: Sequence[Comparison], overruled: bool = False
) -> str:
    """Return what the quoted interval assumes about the draw, and how that was tested.

    Parameters
    ----------
    quoted : str
        Name of the estimator; empty if none is quoted.
    comparisons : sequence of Comparison
    overruled : bool
        Whether the user vouches for the rows against a finding.

    Examples
    --------
    >>> describe_assumption("wilson", []).split("; ", 1)[1]
    'nothing given here can test that; --train FILE or --unlabelled FILE can'
    """
    if not quoted:
        return ""
    text = {"stratified": BY_CLASS, "balanced": OF_EACH_CLASS}.get(quoted, AT_RANDOM)
    if overruled:
        return f"{text}, as --drawn-at-random says against what the training rows say"
    if not comparisons:
        return f"{text}; nothing given here can test that; --train FILE or --unlabelled FILE can"
    # Two models may compare the same aspect, which is listed once.
    aspects_by_rows: dict[Against, list[str]] = {}
    for comparison in comparisons:
        aspects = aspects_by_rows.setdefault(comparison.against, [])
        if comparison.what not in aspects:
            aspects.append(comparison.what)
    listed = []
    for against, aspects in aspects_by_rows.items():
        listed.append(f"the {against} ({', '.join(aspects)})")
    return f"{text}; compared with {' and '.join(listed)}, which did not refute it"


def advise(
    refuted: Sequence[tuple[Against, About]],
    *,
    lacks_class: bool,
    has_classes: bool,
    has_priors: bool,
) -> str:
    """Return what to do, and what to type, if the labelled rows were not drawn as others were.

    Parameters
    ----------
    refuted : sequence of (str, str)
        Rows that differ from the labelled ones, and in what.
    lacks_class : bool
        Whether a class of the training rows has no labelled row.
    has_classes, has_priors : bool

    Returns
    -------
    str
        Empty if nothing was refuted.
    """
    # Nothing else helps: no weight makes up for a class without rows.
    if lacks_class:
        return f"label rows of that class, too; {VOUCH}"
    against = {rows for rows, _ in refuted}
    by_training_rows = {about for rows, about in refuted if rows == "training rows"}
    # A draw by class would explain these findings, and priors correct it.
    may_be_by_class = "rows without labels" in against or (
        by_training_rows - {"place"} == {"labels"}
    )
    advice = []
    if may_be_by_class and has_classes and not has_priors:
        train = ""
        if by_training_rows - {"place"}:
            train = " or, where the training rows have them, --class-prior train"
        advice.append(
            "if the labelled rows were drawn class by class, give the population's shares of the "
            f"classes, --class-prior CLASS=SHARE,...{train}"
        )
    elif against:
        advice.append("label rows that are drawn at random")
    if "training rows" in against:
        advice.append(VOUCH)
    return "; ".join(advice)


# Estimates in words: the one to quote, all of them as a table, and why a check failed.


def report_text(report: EstimateReport) -> str:
    """Return the headline, the table, and why a check failed."""
    headers = ["estimator", "point", "low", "high", "check"]
    rows = []
    for row in report.rows:
        mark = " *" if row.recommended else ""
        numbers = [format_loss(value) for value in (row.point, row.low, row.high)]
        rows.append([row.name + mark, *numbers, row.check])
    lines = [headline(report), "", text_table(headers, rows), ""]

    if findings := _lines_by_text((row.name, row.reason) for row in report.rows):
        lines += ["found:", *findings]
    lines.append("assumed:")
    lines += _lines_by_text((row.name, row.assumes) for row in report.rows)
    lines += [f"note: {note}" for note in report.notes]
    return "\n".join(lines)


def headline(report: EstimateReport) -> str:
    """Return the estimate to quote and what it assumes, or why none can be quoted."""
    best = report.recommended
    if best is None:
        text = f"no estimate can be recommended: {report.refused}"
        if report.advice:
            text += f"\nwhat to do: {report.advice}"
        return text
    interval = f"{format_loss(best.low)} to {format_loss(best.high)}"
    return (
        f"{best.name}: {format_loss(best.point)}, {format_level(report.level)} interval {interval} "
        f"({report.loss}, {report.unit}; {report.n} labelled rows)\n"
        f"assumes that {report.assumption}{_approximate_line(report)}{_tail_line(report)}"
    )


def _tail_line(report: EstimateReport) -> str:
    """Return what few rows cannot decide, where the upper limit is far from the estimate."""
    best = report.recommended
    if best is None or not report.median or not best.high > FAR_LIMIT * best.point:
        return ""
    median, low, high = (format_loss(value) for value in report.median)
    cap = ""
    if report.loss in ("squared", "absolute"):
        cap = ", or cap the error, --error-cap E"
    return (
        f"\nthe upper limit is {best.high / best.point:.0f} times the estimate, since a rare row "
        f"may lose up to {format_loss(report.bound)}. What rare rows cannot move: half of the rows "
        f"lose at most {median} ({low} to {high}){cap}"
    )


def _approximate_line(report: EstimateReport) -> str:
    """Return a line with the narrower interval beside one that holds for every bounded loss."""
    rows = {row.name: row for row in report.rows}
    if report.approximate not in rows:
        return ""
    row = rows[report.approximate]
    interval = f"{format_loss(row.low)} to {format_loss(row.high)}"
    # Only these losses can be capped.
    hint = ""
    if report.loss in ("squared", "absolute"):
        hint = "; --error-cap E narrows the first"
    return (
        f"\napproximately ({row.name}): {format_loss(row.point)}, {interval}, if no rare rows "
        f"lose far more than any labelled row: the losses are too skewed, or too few, to rely on "
        f"that{hint}"
    )


def _lines_by_text(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each text, with the estimators that it is about; none for empty ones."""
    names_by_text: dict[str, list[str]] = {}
    for name, text in pairs:
        if text:
            names_by_text.setdefault(text, []).append(name)
    return [f"  {', '.join(names)}: {text}" for text, names in names_by_text.items()]


def format_loss(value: float) -> str:
    """Return a mean loss with four decimals, or three digits of a small one; empty for none."""
    if not math.isfinite(value):
        return ""
    # four decimals would leave nothing of the squared losses of a good model
    return f"{value:.3g}" if 0 < value < 0.005 else f"{value:.4f}"
