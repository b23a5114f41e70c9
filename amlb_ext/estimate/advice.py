"""Which estimate to quote, what it assumes of the draw, and what to do where none can be quoted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from amlb_ext.estimate.drawing import Against, Comparison
from amlb_ext.estimate.inputs import EstimateInputs
from amlb_ext.stats.bounded_mean import interval_for_skewness
from amlb_ext.stats.error_estimate import FAILED, ErrorEstimate

#: Rows of each class from which the stratified interval of a bounded loss held (docs/coverage.md).
LARGE_CLASS = 200

AT_RANDOM = "the labelled rows were drawn at random from the population whose error is asked for"
BY_CLASS = (
    "the rows of each class were drawn at random from that class of the population whose error is "
    "asked for, and the class priors are that population's"
)
VOUCH = (
    "if the labelled rows were drawn at random from the population whose error is asked for, and "
    "it is the training rows that were drawn otherwise, add --drawn-at-random"
)


@dataclass(frozen=True, kw_only=True)
class Preference:
    """What to quote, best first; where it is nothing, why and what to do."""

    names: tuple[str, ...]
    reason: str = ""
    advice: str = ""


def choose_preference(inputs: EstimateInputs, by_class: bool) -> Preference:
    """Return what to quote.

    Parameters
    ----------
    inputs : EstimateInputs
    by_class : bool
        Whether the labelled rows were drawn class by class.
    """
    if not by_class:
        if inputs.loss.binary:
            return Preference(names=("wilson",))
        return Preference(names=(interval_for_skewness(inputs.losses), "betting"))
    small_classes = [] if inputs.loss.binary else _small_classes(inputs)
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
    """Return the name of the best estimate that has an interval and did not fail; else empty."""
    by_name = {row.name: row for row in rows}
    for name in preference.names:
        row = by_name.get(name)
        if row is not None and row.has_interval and row.check != FAILED:
            return name
    return ""


def why_none_quoted(rows: Sequence[ErrorEstimate], preference: Preference) -> str:
    """Return the reasons of those that might have been quoted, each once."""
    if preference.reason:
        return preference.reason
    clauses: list[str] = []
    for row in rows:
        if row.name in preference.names and row.reason:
            # Two estimators share most of their findings, of which each is told once.
            clauses += row.reason.split("; ")
    return (
        "; ".join(dict.fromkeys(clauses))
        or "no estimator gives an interval on these rows"
    )


def _small_classes(inputs: EstimateInputs) -> list[str]:
    """Return the population's classes with too few rows for an interval of a bounded loss."""
    assert (
        inputs.priors is not None
    )  # rows are known to be drawn by class only beside priors
    counts = np.bincount(inputs.y.astype(int), minlength=len(inputs.labels))
    small = np.flatnonzero((inputs.priors > 0) & (counts < LARGE_CLASS))
    return [f"{counts[c]} of {inputs.labels[c]}" for c in small]


def describe_assumption(
    quoted: str, comparisons: Sequence[Comparison], overruled: bool = False
) -> str:
    """Return what the quoted interval assumes of the draw, and whether anything could test it.

    Parameters
    ----------
    quoted : str
        Name of the estimator; empty when none is quoted.
    comparisons : sequence of Comparison
    overruled : bool
        Whether a contradiction was found that the user vouches for.

    Examples
    --------
    >>> describe_assumption("wilson", []).split("; ", 1)[1]
    'nothing given here can test that; --train FILE or --unlabelled FILE can'
    """
    if not quoted:
        return ""
    text = BY_CLASS if quoted == "stratified" else AT_RANDOM
    if overruled:
        return f"{text}, as --drawn-at-random says against what the training rows say"
    if not comparisons:
        return f"{text}; nothing given here can test that; --train FILE or --unlabelled FILE can"
    compared: dict[Against, list[str]] = {}
    for c in comparisons:
        aspects = compared.setdefault(c.against, [])
        if c.what not in aspects:
            aspects.append(c.what)
    listed = [
        f"the {against} ({', '.join(aspects)})" for against, aspects in compared.items()
    ]
    return f"{text}; compared with {' and '.join(listed)}, which did not refute it"


def advise(
    refuted: Sequence[Comparison],
    *,
    lies_elsewhere: Sequence[Against],
    lacks_class: bool,
    has_classes: bool,
    has_priors: bool,
) -> str:
    """Return what to do, and what to type, where the labelled rows were not drawn as others were.

    Parameters
    ----------
    refuted : sequence of Comparison
    lies_elsewhere : sequence of str
        What the support check was refuted by.
    lacks_class : bool
        Whether a class of the training rows has no labelled row.
    has_classes, has_priors : bool

    Returns
    -------
    str
        Empty when nothing was refuted.
    """
    if lacks_class:
        return f"label rows of that class, too; {VOUCH}"
    against = {c.against for c in refuted} | set(lies_elsewhere)
    by_train = [c for c in refuted if c.against == "training rows"]
    about_labels = bool(by_train) and all(c.about == "labels" for c in by_train)
    advice = []
    if (
        has_classes
        and not has_priors
        and (about_labels or "rows without labels" in against)
    ):
        train = (
            " or, where the training rows have them, --class-prior train"
            if by_train
            else ""
        )
        advice.append(
            "if the labelled rows were drawn class by class, give the population's shares of the "
            f"classes, --class-prior CLASS=SHARE,...{train}"
        )
    elif against:
        advice.append("label rows that are drawn at random")
    if "training rows" in against:
        advice.append(VOUCH)
    return "; ".join(advice)
