"""The verdict: the first failing rule decides, and no two outputs of a suite contradict."""

from dataclasses import replace

import numpy as np
import pytest
from sample_reports import sample_report

from amlb_ext.core.unit import ROW, WINDOW
from amlb_ext.report.tables import ranking_sentence
from amlb_ext.validity import Certificate, decide_verdict
from amlb_ext.validity.measures import (
    LabelOpinion,
    measure_labels,
    plan_measure,
)
from amlb_ext.validity.ranking_measures import measure_null


def at_least(name, value, limit=0.5):
    return plan_measure(name, "", ">=", limit).found(value, "")


def at_most(name, value, limit=0.02):
    return plan_measure(name, "", "<=", limit).found(value, "")


def order(part, value, low):
    found = plan_measure(f"{part}: order", "", ">=", -0.05).found(value, "", low=low)
    return replace(found, passed=low >= -0.05)


def saving(finding, high):
    passed = {"mendable": True, "nothing to mend": False, "not shown": None}[finding]
    measure = plan_measure("solvability", "").found(0.1, "", low=0.0, high=high)
    return replace(measure, passed=passed, finding=finding)


#: What a ranking rests on beside the orders of made parts.
SOUND = (
    at_least("region", 0.8),
    saving("mendable", 0.5),
    at_least("target check", 0.9),
    at_least("null on region", 0.1, -2.0),
    at_least("label agreement", 0.9),
    at_least("label support", 0.1, -0.1),
    at_most("exact copies", 0.0),
    at_least("effective size", 99.0, 50.0),
)
GA, SYNTHETIC = order("ga", 0.07, -0.02), order("synthetic", 0.05, -0.04)
WRONG_QUESTION = at_least("target check", 0.1)
REACH = "that of ga rows is 0.07 (lower limit -0.02, required -0.05)"


def sound(*changed, without=()):
    """Measures that allow a ranking, with some in place of those of the same name."""
    names = {measure.name for measure in changed} | set(without)
    return [*(m for m in SOUND if m.name not in names), *changed]


def missing(name):
    return plan_measure(name, "", ">=", 0.5).missing("not enough rows")


@pytest.mark.parametrize(
    ("measures", "verdict", "words"),
    [
        (sound(GA), "rank", f"on ga rows. Beside * {REACH}. Their"),
        (
            sound(GA, SYNTHETIC),
            "rank",
            f"on ga and synthetic rows * {REACH} and that of synthetic rows 0.05 (lower limit "
            "-0.04, required -0.05).",
        ),
        # parts that fail are not made up for by others, which are not named
        (
            sound(order("ga", -0.1, -0.4), SYNTHETIC),
            "describe",
            "ga rows is -0.1 (lower limit -0.4, required -0.05). Decide on the whole fold",
        ),
        (
            sound(order("ga", -0.1, -0.4), order("synthetic", -0.4, -0.6)),
            "describe",
            "required -0.05) and that of synthetic rows -0.4 (lower limit -0.6",
        ),
        (
            sound(missing("ga: order"), SYNTHETIC),
            "describe",
            "'ga: order' is missing (not enough rows)",
        ),
        (sound(), "describe", "There are no made rows"),
        (
            sound(GA, without=["null on region"]),
            "describe",
            "missing (F cannot be fitted)",
        ),
        (
            sound(GA, without=["exact copies"]),
            "describe",
            "'exact copies' is missing (it",
        ),
        # what asks the wrong question is said before wrong orders
        (
            sound(WRONG_QUESTION, order("ga", -0.4, -0.6)),
            "describe",
            "Rows chosen by F's errors ask another * bad, ga and synthetic rows.",
        ),
        # a saving counts where little of it is shown
        (sound(saving("nothing to mend", 0.031), GA), "describe", "more than 3.1 % of"),
        (sound(saving("not shown", 0.9), GA), "rank", ""),
        (sound(at_least("null on region", -3.0, -2.0), GA), "describe", "own twins"),
        (
            sound(at_least("effective size", 12.0, 50.0), GA),
            "describe",
            "worth only 12 rows * do not rank here: the test folds hold only 36 rows",
        ),
        (sound(at_most("infeasible rows", 0.5), GA), "describe", "could not exist"),
        (sound(at_most("written form", 0.5, 0.0), GA), "describe", "not written as"),
        # no claim about models at all
        (sound(at_least("region", 0.52, 0.6), GA), "stress-test only", "(AUC 0.52)"),
        (sound(at_most("contradictions", 0.5), GA), "stress-test only", "contradict"),
        (sound(at_least("closest record", 0.0), GA), "stress-test only", "near copies"),
        (
            sound(at_least("label agreement", 0.1), GA),
            "stress-test only",
            "a fresh oracle supports a share of 0.1",
        ),
        (
            sound(at_most("exact copies", 0.9), at_least("effective size", 12.0, 50.0)),
            "stress-test only",
            "repeat the features of real ones: a share of 0.9",
        ),
    ],
)
def test_the_first_failing_rule_decides(measures, verdict, words):
    found, reason = decide_verdict(
        measures, ROW, n_real=36, no_twins="F cannot be fitted"
    )
    assert found == verdict
    place = 0
    for part in words.split(" * "):
        place = reason.index(part, place)


def test_rows_that_were_searched_for_rank_nothing():
    assert decide_verdict(sound(GA), ROW, is_searched=True)[0] == "describe"


@pytest.mark.parametrize(
    ("measures", "verdict"),
    [
        (sound(GA), "rank"),
        (sound(order("ga", -0.1, -0.3)), "describe"),
        (sound(WRONG_QUESTION, GA), "describe"),
        (sound(at_least("effective size", 12.0, 50.0), GA), "describe"),
        (sound(at_least("region", 0.52, 0.6), GA), "stress-test only"),
        (sound(at_most("time order", 3.2, 2.0), GA), "stress-test only"),
        (sound(at_least("AMLB's scale", 0.9, 1.0), GA), "stress-test only"),
        (sound(at_least("closest record", 0.0), GA), "stress-test only"),
    ],
)
def test_of_windows_no_sentence_speaks_of_rows(measures, verdict):
    found, reason = decide_verdict(measures, WINDOW, n_real=36)
    assert found == verdict
    text = certificate(measures, WINDOW).text()
    for said in (reason, text):
        assert "window" in said
        assert " row" not in said
        assert "fold" not in said


# No two outputs of a suite contradict.


def certificate(measures, unit=ROW):
    verdict, reason = decide_verdict(measures, unit)
    rows = {"full": 36, "ga": 9}
    return Certificate("t", "binary", verdict, reason, tuple(measures), unit, rows)


def lucky_twins():
    """Twins that win 4 of 4 comparisons by far less than fits scatter."""
    loss = np.random.default_rng(0).random(40)
    return measure_null(
        loss[:, None] - np.array([0.001, 0.002, 0.1, 0.2]),
        loss,
        clusters=np.arange(40),
        fold=np.zeros(40),
        weights=np.ones(40),
        where="region",
        unit=ROW,
    )


def doubted_labels():
    """Labels of which the oracle supports none, whether real or made."""
    none = LabelOpinion(
        support=np.zeros(20), agrees=np.zeros(20, bool), clusters=np.arange(20)
    )
    return measure_labels(
        none, none, ROW, all_agree=none.agrees, recorded=1.0, n_classes=2
    )


@pytest.mark.parametrize(
    ("measures", "said", "unsaid"),
    [
        # a ranking beside checks that failed says that they decide nothing
        (
            sound(GA, at_most("two-sample test", 0.8, 0.75)),
            ["no say in this: two-sample test.", "failed: two-sample test"],
            [],
        ),
        (sound(GA), ["0 of 9 checks failed"], ["no say"]),
        # what wins every comparison does not gain nothing
        (sound(GA, lucky_twins()), ["they win 4 and lose 0 of 4"], ["gain nothing"]),
        # labels are not said to hold by a check that nothing can fail
        (sound(GA, *doubted_labels()), ["no limit"], ["labels hold"]),
        # what is not shown is not foreseen, and is no reason to rank
        (
            sound(GA, at_least("region", 0.52, 0.6)),
            ["not shown", "no region to read: features are not shown to foresee"],
            ["is foreseen", "read the region"],
        ),
        # the report allows what the certificate does, and nothing else
        (
            sound(GA),
            [
                "Decide on full; ga is shown to order models as well; no ranking rests on bad"
            ],
            [],
        ),
        (
            sound(GA, SYNTHETIC),
            [
                "on ga and synthetic rows",
                "Decide on full; ga, synthetic are shown to order models as well",
                "; no ranking rests on bad",
            ],
            [],
        ),
        (
            sound(order("ga", -0.1, -0.3)),
            [
                "on full; no ranking rests on bad, ga",
                "read the region",
            ],
            ["on ga rows"],
        ),
        # where no region is shown nobody is sent there
        (
            sound(missing("region"), order("ga", -0.1, -0.3)),
            [
                "Decide on the whole fold.",
                "on full; no ranking rests on bad, ga",
                "there is no region to read: not",
            ],
            ["read the region"],
        ),
    ],
)
def test_no_two_outputs_contradict(measures, said, unsaid):
    made = certificate(measures)
    [task] = sample_report(n_tasks=1).tasks
    task = replace(task, certificate=made)
    outputs = " ".join([made.text(), made.reason, ranking_sentence(task)])
    outputs = " ".join(outputs.split())
    assert [words for words in said if words not in outputs] == []
    assert [words for words in unsaid if words in outputs] == []
    assert ("may be ranked on ga" in made.reason) == ("ga" in made.ranked_parts)


def test_the_failed_checks_are_counted_and_named():
    measures = (
        at_least("good", 0.9),
        at_least("low", 0.1),
        plan_measure("plain", "").found(0.1, ""),
        saving("not shown", 0.9),
        missing("absent"),
    )
    made = Certificate("t", "binary", "describe", "Because.", measures, ROW)
    assert made.failed == ("low",)
    assert made.checks == "1 of 3 checks failed; 1 could not be measured"
    text = made.text()
    assert "  1 of 3 checks failed: low; 1 could not be measured\n" in text
    [line] = [each for each in text.splitlines() if each.startswith("  solvability")]
    assert line.endswith("not shown")
