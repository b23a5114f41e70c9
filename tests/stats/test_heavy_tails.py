"""A capped loss never decides a sign: where the largest errors do, the plain figures stand."""

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.row_losses import squared_error
from amlb_ext.stats.bounded_loss import NO_CAP, cap_from_baseline
from amlb_ext.stats.claims import CONCENTRATED, OVERALL, REGION, answer_questions
from amlb_ext.stats.contrasts import ComparedUnits
from amlb_ext.stats.heavy_tails import contrast_plainly
from amlb_ext.stats.pairwise import compare_pairs

N = 1000


class Planted:
    """Errors of F, light ones unless a test makes some of them large."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.e = self.rng.normal(size=N)
        self.weights = np.where(np.arange(N) < N // 2, 0.9, 0.02)
        self.candidates = {}

    def like_f(self, factor=1.0):
        return factor * (self.e + 0.2 * self.rng.normal(size=N))

    def answer(self, *, cap=True, weights=None, refits=True):
        loss_f = squared_error(self.e, np.zeros(N))
        losses = {
            name: squared_error(e, np.zeros(N)) for name, e in self.candidates.items()
        }
        again = {i: self.like_f() ** 2 for i in range(5)} if refits else None
        table = answer_questions(
            pd.DataFrame(losses),
            ComparedUnits(
                loss_f=loss_f,
                weights=weights,
                refits=None if again is None else pd.DataFrame(again),
                cap=cap_from_baseline(loss_f) if cap else NO_CAP,
                span=np.full(N, 10.0),
            ),
        )
        return table.set_index(["candidate", "question"])


def row(table, name="g", question=OVERALL):
    return table.loc[(name, question)]


def assert_withheld(found, loss_g, loss_f, weights=None):
    assert found["verdict"] == "no claim"
    assert found["by"] == "plain"
    assert found["reason"].startswith("the largest errors decide: ")
    assert found["reason"].endswith("another loss, e.g. the absolute error")
    mean_g, mean_f = (np.average(x, weights=weights) for x in (loss_g, loss_f))
    assert found["loss"] == pytest.approx(mean_g)
    assert found["loss_f"] == pytest.approx(mean_f)
    assert found["difference"] == pytest.approx(mean_g - mean_f)
    assert found[["low", "high", "p", "p_adjusted", "p_null"]].isna().all()


def test_claims_among_rows_of_nearly_nothing():
    """F misses 15 large values; a candidate that finds them is a little worse elsewhere."""
    planted = Planted()
    planted.e[:15] = 300.0
    planted.candidates["g"] = np.where(np.arange(N) < 15, 20.0, 1.2 * planted.e + 0.5)
    table = planted.answer(weights=np.ones(N))
    for question in (OVERALL, REGION):
        found = row(table, question=question)
        assert_withheld(found, planted.candidates["g"] ** 2, planted.e**2)
        assert found["difference"] < 0
        assert "20 of 1 000 rows hold 100 % of F's squared error" in found["reason"]
    assert ("g", CONCENTRATED) not in table.index
    # the re-fits err as F does on these rows: what they differ by is plain, too
    assert np.isnan(row(table, question=REGION)["null_se"])
    assert row(table)["rmse"] == pytest.approx(
        10 * np.sqrt(np.mean(planted.candidates["g"] ** 2))
    )


def test_better_on_all_rows_but_a_few():
    """The cap takes little of F's loss, and still the signs differ."""
    planted = Planted()
    planted.candidates = {"g": planted.like_f(0.8), "plain": planted.like_f(0.8)}
    planted.candidates["g"][3] = 60.0
    table = planted.answer()
    assert_withheld(row(table), planted.candidates["g"] ** 2, planted.e**2)
    assert "more than F's, and with these errors capped" in row(table)["reason"]
    assert row(table, "plain")["verdict"] == "better"
    assert row(table, "plain")["by"] == "capped"


def test_what_may_not_be_claimed_makes_no_other_test_easier():
    planted = Planted()
    planted.candidates = {"g": planted.like_f(0.8), "weak": planted.like_f(0.97)}
    planted.candidates["g"][3] = 60.0
    beside = row(planted.answer(refits=False), "weak")["p_adjusted"]
    del planted.candidates["g"]
    alone = row(planted.answer(refits=False), "weak")["p_adjusted"]
    assert beside >= alone


@pytest.mark.parametrize("error", [1e4, 1e209])
@pytest.mark.parametrize("factor", [0.8, 0.98, 1.3])
def test_one_absurd_prediction(error, factor):
    """Whatever the capped loss says, but that finite losses may agree on worse."""
    planted = Planted()
    planted.candidates["g"] = planted.like_f(factor)
    planted.candidates["g"][3] = error
    for capped in (True, False):
        found = row(planted.answer(cap=capped))
        if error == 1e209:
            assert found["verdict"] == "no claim"
            assert "too large for a number on 1 of 1 000 rows" in found["reason"]
            assert found["rmse"] == np.inf
        elif capped:
            wanted = "worse" if factor == 1.3 else "no claim"
            assert found["verdict"] == wanted
    found = row(planted.answer())
    assert found["rmse_f"] == pytest.approx(10 * np.sqrt(np.mean(planted.e**2)))


def test_a_tail_that_is_where_f_fails_alone():
    """Few large errors elsewhere: where F fails the change is described with its interval."""
    planted = Planted()
    planted.e[-15:] = 200.0
    planted.candidates["g"] = np.where(np.arange(N) < N - 15, planted.like_f(0.7), 180)
    weights = np.where(np.arange(N) < N - 15, planted.weights, 0.0)
    table = planted.answer(weights=weights)
    assert_withheld(row(table), planted.candidates["g"] ** 2, planted.e**2)
    there = row(table, question=REGION)
    assert there["verdict"] == "undecided"
    assert there["high"] < 0
    assert CONCENTRATED not in set(table.index.get_level_values("question"))


@pytest.mark.parametrize("seed", range(5))
def test_light_tails_keep_their_verdicts(seed):
    """What capped losses said before is said still, bit for bit, for all three questions."""
    planted = Planted(seed)
    planted.candidates = {
        f"g{factor}": planted.like_f(factor) for factor in (0.7, 0.97, 1.0, 1.05, 1.5)
    }
    table = planted.answer(weights=planted.weights)
    planted.rng = np.random.default_rng(99)  # the same re-fits for both
    loss_f, cap = planted.e**2, cap_from_baseline(planted.e**2)
    refits = pd.DataFrame({i: planted.like_f() ** 2 for i in range(5)})
    losses = pd.DataFrame({k: e**2 for k, e in planted.candidates.items()})
    given = {"weights": planted.weights}
    now = answer_questions(
        losses, ComparedUnits(loss_f=loss_f, refits=refits, cap=cap, **given)
    )
    before = answer_questions(
        cap.apply(losses),
        ComparedUnits(loss_f=cap.apply(loss_f), refits=cap.apply(refits), **given),
    )
    pd.testing.assert_frame_equal(now.drop(columns="by"), before.drop(columns="by"))
    assert set(now["by"]) == {"capped"}
    assert set(before["by"]) == {"plain"}
    assert "better" in set(table["verdict"])


def test_pairs_by_the_same_rule():
    planted = Planted()
    a, b = planted.like_f(0.8), planted.like_f(1.0)
    losses, loss_f = pd.DataFrame({"a": a**2, "b": b**2}), planted.e**2
    units = ComparedUnits(loss_f=loss_f, cap=cap_from_baseline(loss_f))
    (pair,) = compare_pairs(losses, units).to_dict("records")
    assert pair["verdict"] == "better"
    losses.loc[3, "a"] = 60.0**2
    (pair,) = compare_pairs(losses, units).to_dict("records")
    assert pair["verdict"] == "no claim"
    assert "more than b's" in pair["reason"]
    assert pair["difference"] > 0
    assert np.isnan(pair["low"])


def test_a_re_fit_that_differs_by_a_few_rows():
    """Better than F by both losses, than F's re-fits by the capped one only."""
    planted = Planted()
    planted.e[:8] = 8.0
    planted.candidates["g"] = planted.like_f(0.8)
    planted.candidates["g"][:8] = 7.0
    loss_f = planted.e**2
    mended = np.where(np.arange(N) < 8, 1.0, planted.e)
    refits = pd.DataFrame(
        {i: (mended + 0.1 * planted.rng.normal(size=N)) ** 2 for i in range(5)}
    )
    table = answer_questions(
        pd.DataFrame({"g": planted.candidates["g"] ** 2}),
        ComparedUnits(
            loss_f=loss_f,
            weights=np.ones(N),
            refits=refits,
            cap=cap_from_baseline(loss_f),
        ),
    ).set_index(["candidate", "question"])
    assert row(table)["verdict"] == "better"
    found = row(table, question=REGION)
    assert found["verdict"] == "no claim"
    assert "more than that of F fitted again" in found["reason"]


def test_an_absurd_prediction_of_f():
    planted = Planted()
    planted.candidates["g"] = planted.like_f(0.8)
    planted.e[3] = 1e209
    found = row(planted.answer(refits=False))
    assert found["verdict"] == "no claim"
    assert found["reason"].startswith("F's squared error is too large")


def test_weights_on_the_tail():
    """A fifth of the loss overall, most of it under the weights."""
    planted = Planted()
    planted.e[:12] = 9.0
    planted.candidates["g"] = planted.like_f(0.7)
    weights = np.where(np.arange(N) < 12, 1.0, 0.02)
    loss_g, loss_f = planted.candidates["g"] ** 2, planted.e**2
    cap = cap_from_baseline(loss_f)
    alike = contrast_plainly(loss_g, loss_f, cap=cap)
    weighted = contrast_plainly(loss_g, loss_f, cap=cap, weights=weights)
    assert not alike.f.is_tail
    assert weighted.f.is_tail
    assert weighted.f.capped == pytest.approx(
        np.average(np.minimum(loss_f, cap.loss), weights=weights)
    )
