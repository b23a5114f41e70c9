"""The words of a report: one text for each, in the page's glossary and beside the word."""

from __future__ import annotations

from dataclasses import dataclass

from amlb_ext.stats.contrasts import SMALLEST_EFFECTIVE_SIZE


@dataclass(frozen=True, kw_only=True)
class Term:
    """One entry of the glossary.

    Attributes
    ----------
    names : tuple of str
        The words that the text explains; verdicts are shown as badges.
    text : str
    is_badge : bool
    """

    names: tuple[str, ...]
    text: str
    is_badge: bool = False


@dataclass(frozen=True, kw_only=True)
class Section:
    """Entries of the glossary that belong together.

    Attributes
    ----------
    heading : str
    terms : dict of str to Term
        By key.
    """

    heading: str
    terms: dict[str, Term]


_WORDS = {
    "f": Term(names=("F",), text="Today’s model, the one to be improved on."),
    "change": Term(
        names=("Change of F’s loss",),
        text="The framework’s mean loss minus F’s, in percent of F’s. −20 % is a fifth less "
        "loss than F, +54 % is half as much again. Means over tasks are geometric: twice "
        "F’s loss on one task and half of it on another cancel.",
    ),
    "whole": Term(
        names=("Whole test folds", "all rows"),
        text="All real test rows, each counting alike. Decide on these.",
    ),
    "region": Term(
        names=("Region", "where F fails"),
        text="All real test rows, each weighted by P(F fails | x). That chance is learned "
        "from features of the training rows alone, so no label of a test row takes part in "
        "choosing it. It tells where a change comes from, and how large it is there; decide "
        "on all rows.",
    ),
    "bad": Term(
        names=("Bad rows",),
        text="Rows on which F’s realised error is largest. Part of that error is noise in the "
        "labels. Bad rows, and the rows made from them (ga, synthetic), tell how a model "
        "behaves under stress. They cannot tell which model is better: any model that errs "
        "differently from F gains on rows chosen because F erred.",
    ),
    "made": Term(
        names=("Made rows", "ga", "synthetic"),
        text="ga: copies of bad rows, changed a little; synthetic: rows sampled from a model "
        "of them. No interval is given on either. They descend from few real rows, so they "
        "are not independent, and an interval that counts them as rows is far too narrow.",
    ),
    "difference": Term(
        names=("Difference",),
        text="The framework’s loss minus F’s, row by row, as a weighted mean. Classification "
        "uses the Brier loss, regression the squared error of the scaled target, no larger "
        "than that of the worst 2 % of F’s rows: otherwise a few rows decide, and no interval "
        "holds. Negative is better than F.",
    ),
    "interval": Term(
        names=("Interval",),
        text="A cluster-robust t interval over the real rows. Where too few rows carry the "
        "weight there is no interval, and the table says why.",
    ),
    "adjusted": Term(
        names=("Adjusted p", "counting all comparisons"),
        text="Many tries must not make a finding. Within a task the p-value is adjusted for "
        "all frameworks and both questions (Westfall and Young’s step-down method; Holm’s for "
        "pairs and slices). ✓✓ stays better when all tasks are counted as well (Holm); ✓ does "
        "so only while its task is looked at alone.",
    ),
    "null": Term(
        names=("Null difference", "null control"),
        text="F fitted again on other parts of the training data, minus F. Such re-fits are "
        "not better than F, so the difference that they show is what chance and selection "
        "give away. A framework has to beat that as well where F fails. On all rows it is set "
        "against F as it stands.",
    ),
    "effective": Term(
        names=("Effective rows",),
        text="How many rows of equal weight the weighted rows are worth. Below "
        f"{SMALLEST_EFFECTIVE_SIZE:.0f} nothing is claimed where F fails.",
    ),
    "elsewhere": Term(
        names=("Elsewhere",),
        text="All real test rows, each weighted by the chance that F does not fail. The parts "
        "from where F fails and from elsewhere add up to the change on the whole test folds.",
    ),
}
_CERTIFICATES = {
    "rank": Term(
        names=("rank",),
        text="Frameworks may be ranked on real rows, and on the main task and synthetic rows too.",
        is_badge=True,
    ),
    "describe": Term(
        names=("describe",),
        text="Estimates on the weighted real rows hold, as far as the reason given allows. "
        "Synthetic rows and bad rows must not rank.",
        is_badge=True,
    ),
    "stress": Term(
        names=("stress-test only",),
        text="No claim about which model is better where F fails. The rows show robustness "
        "only.",
        is_badge=True,
    ),
}
_VERDICTS = {
    "better": Term(
        names=("better", "worse"),
        text="The difference is larger than chance and, where F fails, than the null control "
        "explain.",
        is_badge=True,
    ),
    "undecided": Term(
        names=("undecided",),
        text="The data allow both. This is not a proof of equality.",
        is_badge=True,
    ),
    "withheld": Term(
        names=("incomplete", "no claim"),
        text="Withheld: results are missing, the task supports no claim, or the largest errors "
        "decide.",
        is_badge=True,
    ),
}
#: Sections by key. Keys of sections and of terms are anchors in the page: a word may stand for a
#: term, or for all of a section.
GLOSSARY = {
    "words": Section(heading="", terms=_WORDS),
    "certificates": Section(heading="What a certificate allows", terms=_CERTIFICATES),
    "verdicts": Section(heading="What a verdict says", terms=_VERDICTS),
}
