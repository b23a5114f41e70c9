"""What an answer assumes of how the rows were drawn, and what to do where that was refuted."""

from __future__ import annotations

from collections.abc import Sequence

from amlb_ext.estimate.drawing import Against, Comparison

AT_RANDOM = "the labelled rows were drawn at random from the population whose error is asked for"
BY_CLASS = (
    "the rows of each class were drawn at random from that class of the population whose error is "
    "asked for, and the class priors are that population's"
)
VOUCH = (
    "if the labelled rows were drawn at random from the population whose error is asked for, and "
    "it is the training rows that were drawn otherwise, add --drawn-at-random"
)


def assumed(quoted: str, comparisons: Sequence[Comparison], overruled: bool = False) -> str:
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
    >>> assumed("wilson", []).split("; ", 1)[1]
    'nothing given here can test that; --train FILE or --unlabelled FILE can'
    """
    if not quoted:
        return ""
    text = BY_CLASS if quoted == "stratified" else AT_RANDOM
    if overruled:
        return f"{text}, as --drawn-at-random says against what the training rows say"
    if not comparisons:
        return f"{text}; nothing given here can test that; --train FILE or --unlabelled FILE can"
    told = []
    for against in dict.fromkeys(c.against for c in comparisons):
        compared = dict.fromkeys(c.what for c in comparisons if c.against == against)
        told.append(f"the {against} ({', '.join(compared)})")
    return f"{text}; compared with {' and '.join(told)}, which did not refute it"


def what_to_do(
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
    parts = []
    if has_classes and not has_priors and (about_labels or "rows without labels" in against):
        train = " or, where the training rows have them, --class-prior train" if by_train else ""
        parts.append(
            "if the labelled rows were drawn class by class, give the population's shares of the "
            f"classes, --class-prior CLASS=SHARE,...{train}"
        )
    elif against:
        parts.append("label rows that are drawn at random")
    if "training rows" in against:
        parts.append(VOUCH)
    return "; ".join(parts)
