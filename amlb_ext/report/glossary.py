"""The words of a report: one text for each, in the page's glossary and beside the word."""

from __future__ import annotations

from dataclasses import dataclass

from amlb_ext.core.unit import Unit
from amlb_ext.stats.claims import FEWEST_JUDGED
from amlb_ext.stats.contrasts import SMALLEST_EFFECTIVE_SIZE


@dataclass(frozen=True, kw_only=True)
class GlossarySection:
    """Entries of the glossary that belong together.

    Attributes
    ----------
    heading : str
    terms : dict of str to (str, str)
        By key: the words that are explained, behind commas, and the text.
    is_badge : bool
        Whether the words are shown as badges: verdicts, certificates.
    """

    heading: str
    terms: dict[str, tuple[str, str]]
    is_badge: bool = False


def comparison_glossary(unit: Unit) -> dict[str, GlossarySection]:
    """Return the words of a report in which frameworks are set against F.

    Keys of sections and of terms are anchors in the page: a word may stand for a term, or for all
    of a section.

    Parameters
    ----------
    unit : Unit
        What is counted.

    Examples
    --------
    >>> from amlb_ext.core.unit import WINDOW
    >>> comparison_glossary(WINDOW)["words"].terms["whole"][0]
    'All windows'
    """
    return {
        "words": GlossarySection(heading="", terms=_words(unit)),
        "certificates": GlossarySection(
            heading="What a certificate allows",
            terms=_certificates(unit),
            is_badge=True,
        ),
        "verdicts": GlossarySection(
            heading="What a verdict says", terms=_VERDICTS, is_badge=True
        ),
    }


def _words(unit: Unit) -> dict[str, tuple[str, str]]:
    many = unit.many
    failing = f"P(F fails | {unit.given})"
    return {
        "f": ("F", "Today’s model, the one to be improved on."),
        "change": (
            "Change of F’s loss",
            "The framework’s mean loss minus F’s, in percent of F’s. −20 % is a fifth less loss "
            "than F, +54 % is half as much again. Means over tasks are geometric: twice F’s loss "
            "on one task and half of it on another cancel.",
        ),
        "whole": (
            f"All {many}",
            f"All real test {many}, each counting alike. Decide on these.",
        ),
        "region": (
            "Region, where F fails",
            f"The fifth of each fold’s real test {many} with the largest {failing}, each counting "
            "alike. That chance is learned from "
            f"{unit.features} alone, and from nothing that is tested, so no test {unit.one} takes "
            "part in choosing it. It tells where a change comes from, and how large it is there; "
            f"decide on all {many}.",
        ),
        "bad": (
            f"Bad {many}",
            f"{many.capitalize()} on which F’s realised error is largest. Part of that error is "
            f"noise. Bad {many}, and the {many} made from them (ga, synthetic), tell how a model "
            "behaves under stress. They cannot tell which model is better: any model that errs "
            f"differently from F gains on {many} chosen because F erred.",
        ),
        "made": (
            f"Made {many}, ga, synthetic",
            f"ga: copies of bad {many}, changed a little; synthetic: {many} sampled from a model "
            f"of them. They descend from few real {many}, so they are not independent, and an "
            f"interval that counts them as {many} is far too narrow.",
        ),
        "difference": (
            "Difference",
            f"The framework’s loss minus F’s, {unit.one} by {unit.one}, as a mean. "
            "Negative is better than F. If no other loss is asked for, classification uses the "
            "Brier loss, regression the squared error of the scaled target. Squared errors are no "
            f"larger than that of the worst 2 % of F’s {many}: otherwise a few decide, and no "
            "interval holds. Forecasts are compared by MASE, whose errors are not capped.",
        ),
        "interval": (
            "Interval",
            f"A cluster-robust t interval over the real {many}. Where too few carry the weight "
            "there is no interval, and the table says why.",
        ),
        "adjusted": (
            "Adjusted p, counting all comparisons",
            "Many tries must not make a finding. Within a task the p-value is adjusted for all "
            "frameworks, question by question (Westfall and Young’s step-down method; Holm’s where "
            "F fails, for pairs and slices). ✓✓ stays better when all tasks are counted as well "
            "(Holm); ✓ does so only while its task is looked at alone.",
        ),
        "null": (
            "Null difference, null control",
            f"The {unit.refits} of F, fitted on other parts of the training data, minus F. They "
            "are not better than F, so the difference that they show is what chance and selection "
            f"give away. A framework has to beat that as well where F fails. On all {many} it is "
            "set against F as it stands.",
        ),
        "effective": (
            f"Effective {many}",
            f"How many {many} there are, each group of them counting once. Where F fails, below "
            f"{SMALLEST_EFFECTIVE_SIZE:.0f} nothing is said, and below {FEWEST_JUDGED:.0f} a "
            "change is described and not judged.",
        ),
        "elsewhere": (
            "Elsewhere",
            f"All real test {many} but the fifth where F is foreseen to fail most. The parts "
            "from where F fails and from elsewhere add up to the change on "
            f"all {many}.",
        ),
    }


def _certificates(unit: Unit) -> dict[str, tuple[str, str]]:
    many = unit.many
    return {
        "rank": (
            "rank",
            f"Frameworks may be ranked on real {many}, and on made ones too.",
        ),
        "describe": (
            "describe",
            f"Estimates on the weighted real {many} hold, as far as the reason given allows. "
            f"Made {many} and bad {many} must not rank.",
        ),
        "stress": (
            "stress-test only",
            f"No claim about which model is better where F fails. The {many} show robustness "
            "only.",
        ),
    }


_VERDICTS = {
    "better": (
        "better, worse",
        "The difference is larger than chance and, where F fails, than the null control explain.",
    ),
    "undecided": (
        "undecided",
        "The data allow both. This is not a proof of equality.",
    ),
    "withheld": (
        "incomplete, no claim",
        "Withheld: results are missing, the task supports no claim, or the largest errors decide.",
    ),
}


#: The words of a report on a folder of tasks, where there is no F.
RUN_SECTIONS = {
    "words": GlossarySection(
        heading="",
        terms={
            "run": (
                "Run",
                "A fold. Unless the data are the same in all folds, each is another draw, so "
                "intervals speak of other draws as well. An interval needs three runs.",
            ),
            "selected": (
                "Selected",
                "AMLB’s result. Of a coder: the submission that did best on training rows that "
                "were hidden among the test rows, run once more on all training rows. Five "
                "submissions without valid predictions count as 0.",
            ),
        },
    )
}
#: The same where language models are among the frameworks.
CODER_SECTIONS = RUN_SECTIONS | {
    "coders": GlossarySection(
        heading="Coders",
        terms={
            "max": (
                "Max@5 on test",
                "The best of a run’s submissions by the labels of the test rows: WeirdML’s score, "
                "too high by luck, and for no comparison with other frameworks.",
            ),
            "luck": (
                "Of it luck",
                "How far the best of equally good submissions would lie above their mean.",
            ),
            "failed": (
                "Failed",
                "Share of the submissions without valid predictions. What the endpoint (llm) or "
                "the confinement (harness) broke is never counted against the model.",
            ),
            "cost": (
                "Cost, spent",
                "What the answers are worth, and what was sent this time. “–”: no price is set, "
                "or the server did not count tokens. Unknown is not zero.",
            ),
        },
    )
}
