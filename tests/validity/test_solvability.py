"""What a certificate makes of the best candidate's saving."""

import numpy as np
import pytest

from amlb_ext.core.errors import DataError
from amlb_ext.core.unit import ROW
from amlb_ext.stats.best_saving import best_saving
from amlb_ext.validity import measures
from amlb_ext.validity.certificate import nothing_to_mend
from amlb_ext.validity.measures import Losses
from benchmarks.claims.planted_saving import Planted

NAMES = [f"model {number}" for number in range(12)]


def taken(planted, rows, seed=0):
    G, F, w = planted.draw(rows, seed)
    return measures.measure_solvability(
        Losses(G, F, np.arange(rows)), w, NAMES, np.random.default_rng(seed), ROW
    )


@pytest.mark.parametrize("rows", [80, 240])
@pytest.mark.parametrize("case", ["much", "one of twelve"])
def test_few_failures_never_prove_that_nothing_can_be_mended(case, rows):
    """The best saves more than half of F's loss."""
    for kind in ("binary", "multiclass", "regression"):
        planted = Planted(case, kind)
        for seed in range(20):
            found = taken(planted, rows, seed)
            assert found.finding in ("mendable", "not shown")
            assert nothing_to_mend([found]) == ""


@pytest.mark.parametrize("case", ["much", "one of twelve"])
def test_enough_failures_show_that_much_can_be_mended(case):
    found = taken(Planted(case, "multiclass"), 800)
    assert (found.finding, found.passed) == ("mendable", True)
    assert found.text.startswith(
        f"a candidate mends {100 * found.low:.0f} % or more of F's loss"
    )
    if case == "one of twelve":
        assert "most often chosen: model 3;" in found.text


def test_nothing_to_mend_is_said_where_it_is_shown():
    planted = Planted("twins", "multiclass")
    shown, few = taken(planted, 800), taken(Planted("nothing", "multiclass"), 80)
    assert (shown.finding, shown.passed, shown.low) == ("nothing to mend", False, 0.0)
    assert shown.text.startswith(
        "nothing to mend: none of 12 candidates saves more than"
    )
    assert 0 <= shown.high <= measures.NOTHING_LEFT
    assert "no candidate tried saves more than" in nothing_to_mend([shown])
    assert (few.finding, few.passed, few.low) == ("not shown", None, 0.0)
    assert few.high > measures.NOTHING_LEFT
    assert few.text.startswith(
        "not shown: the best of 12 candidates may save none or up to"
    )


def test_nothing_to_mend_needs_a_match_of_f_where_candidates_saw_fewer_rows():
    planted = Planted("twins", "multiclass")
    G, F, w = planted.draw(800, 0)

    def finding(**how):
        rng = np.random.default_rng(0)
        return measures.measure_solvability(
            Losses(G, F, np.arange(800)), w, NAMES, rng, ROW, **how
        )

    assert finding(capped=NAMES[:5]).finding == "nothing to mend"
    assert (
        "5 of the candidates saw fewer training rows" in finding(capped=NAMES[:5]).text
    )
    unmatched = finding(capped=NAMES[:5], has_match=False)
    assert (unmatched.finding, unmatched.passed) == ("not shown", None)
    assert "--size full" in unmatched.text
    assert nothing_to_mend([unmatched]) == ""
    # all saw as many rows as F: whatever F is, there is nothing to make up for
    assert finding(has_match=False).finding == "nothing to mend"


def test_a_candidate_that_is_f_saves_nothing():
    rng = np.random.default_rng(0)
    F = 0.5 + rng.random(400)
    G = np.column_stack([F * (1 + 1e-14 * rng.random(400)), F])
    found = measures.measure_solvability(
        Losses(G, F, np.arange(400)), F, ["a", "b"], rng, ROW
    )
    assert (found.low, found.high, found.finding) == (0.0, 0.0, "nothing to mend")


def test_an_f_without_errors_has_nothing_to_save():
    zero = np.zeros(50)
    with pytest.raises(DataError, match="F makes no error"):
        best_saving(
            np.ones((50, 2)), zero, zero + 1, np.arange(50), np.random.default_rng(0)
        )
    found = measures.measure_solvability(
        Losses(np.ones((50, 2)), zero, np.arange(50)),
        zero + 1,
        NAMES[:2],
        np.random.default_rng(0),
        ROW,
    )
    assert (found.value, found.finding) == (None, "not shown")


def test_candidates_that_are_far_worse_do_not_make_the_upper_limit_negative():
    rng = np.random.default_rng(0)
    F = 0.5 + rng.random(400)
    found = measures.measure_solvability(
        Losses(np.column_stack([2 * F, 3 * F]), F, np.arange(400)),
        F,
        ["a", "b"],
        rng,
        ROW,
    )
    assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)
    assert found.finding == "nothing to mend"
    assert "F" in found.text
