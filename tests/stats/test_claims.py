"""Three questions of each candidate, on losses whose truth is planted."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from amlb_ext.core.errors import DataError
from amlb_ext.stats.claims import CONCENTRATED, OVERALL, REGION, answer_questions
from amlb_ext.stats.contrasts import ComparedUnits
from amlb_ext.stats.step_down import concentration_interval
from amlb_ext.stats.weighted_mean import weighted_mean_interval

N = 400


class Planted:
    """F loses .5 on the first half of the rows, the region, and .1 elsewhere."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.region = np.arange(N) < N // 2
        self.scale = np.where(self.region, 0.5, 0.1)
        self.loss_f = self.like_f()
        self.weights = np.where(self.region, 0.9, 0.01)
        self.refits = pd.DataFrame({i: self.like_f() for i in range(5)})

    def like_f(self):
        return self.scale * (1 + 0.1 * self.rng.standard_normal(N))

    def model(self, inside, outside):
        return self.like_f() * np.where(self.region, inside, outside)

    def answer(self, losses, **more):
        rows = {"weights": self.weights, "refits": self.refits, **more}
        return answer_questions(
            pd.DataFrame(losses), ComparedUnits(loss_f=self.loss_f, **rows)
        )


def verdicts(table):
    return table.set_index(["candidate", "question"])["verdict"].to_dict()


def test_each_question_has_its_own_answer():
    planted = Planted()
    found = verdicts(
        planted.answer(
            {
                "there": planted.model(0.8, 3.0),
                "elsewhere": planted.model(1.0, 0.5),
                "twin": planted.like_f(),
            }
        )
    )
    assert found["there", REGION] == "better"
    assert found["there", OVERALL] == "worse"
    assert found["there", CONCENTRATED] == "opposite"
    assert found["elsewhere", OVERALL] == "better"
    assert found["elsewhere", REGION] == "undecided"
    assert found["elsewhere", CONCENTRATED] == "smaller gain"
    assert found["twin", OVERALL] == found["twin", REGION] == "undecided"
    assert ("twin", CONCENTRATED) not in found


def test_overall_needs_no_refits_and_no_weights():
    planted = Planted()
    losses = {"g": planted.model(0.9, 0.9)}
    for more in ({"refits": None}, {"weights": None}, {"weights": np.eye(N)[0]}):
        table = planted.answer(losses, **more)
        assert table["verdict"].tolist() == ["better", "no claim"]
        # the family is one test: nothing is paid for a question that nobody asked
        assert table["p_adjusted"][0] == table["p"][0]
        assert np.isnan(table["p_adjusted"][1])


def test_a_lucky_refit_of_f_is_stopped_where_f_fails_only():
    """F was unlucky: its re-fits are all better than it, and so is one more."""
    planted = Planted()
    planted.loss_f = planted.loss_f + 0.05
    table = planted.answer({"twin": planted.like_f()}).set_index("question")
    assert table.loc[OVERALL, "verdict"] == "better"  # than this F, it is
    assert table.loc[REGION, "verdict"] == "undecided"
    assert "a re-fit of F may be as good" in table.loc[REGION, "reason"]


def test_clusters_are_one_row_in_every_answer():
    planted = Planted()
    losses = pd.DataFrame({"g": planted.model(0.8, 0.95)})
    rows = np.tile(np.arange(N), 3)
    once = planted.answer(losses)
    thrice = answer_questions(
        losses.iloc[rows],
        ComparedUnits(
            loss_f=planted.loss_f[rows],
            weights=planted.weights[rows],
            refits=planted.refits.iloc[rows],
            clusters=rows,
        ),
    )
    numbers = ["difference", "low", "high", "p", "p_adjusted"]
    assert len(once) == 3
    pd.testing.assert_frame_equal(thrice[numbers], once[numbers], rtol=1e-6)


def test_weights_that_scatter_widen_the_answers_they_are_in():
    planted = Planted()
    losses = {"g": planted.model(0.8, 0.95)}
    same = np.tile(planted.weights, (5, 1))
    other = np.where(planted.region, 0.9, np.linspace(0.01, 0.6, 5)[:, None])
    known, fixed, learnt = (
        planted.answer(losses, reweighted=given).set_index("question")
        for given in (None, same, other)
    )
    pd.testing.assert_frame_equal(known, fixed)
    width = learnt["high"] - learnt["low"]
    known_width = known["high"] - known["low"]
    assert width[OVERALL] == known_width[OVERALL]
    assert width[REGION] > 1.2 * known_width[REGION]
    assert width[CONCENTRATED] > 1.2 * known_width[CONCENTRATED]
    # G = 5: v = 4/5 sum (e_g - mean)^2 beside the variance over rows
    d = losses["g"] - planted.loss_f
    e = [np.average(d, weights=w) for w in other]
    row = weighted_mean_interval(d, planted.weights)
    from_weights = 0.8 * ((e - np.mean(e)) ** 2).sum()
    both = row.se**2 + from_weights
    df = both**2 / (row.se**4 / row.df + from_weights**2 / 4)
    half = t.ppf(0.975, df) * np.sqrt(both)
    assert width[REGION] / 2 == pytest.approx(half)


def test_the_difference_of_two_means_covers():
    rng = np.random.default_rng(0)
    hits = 0
    w = np.where(np.arange(200) < 60, 0.9, 0.1)
    for _ in range(400):
        d = rng.standard_normal(200) - np.where(np.arange(200) < 60, 0.5, 0)
        truth = -0.5 * (60 * 0.9 / w.sum() - 0.3)
        found = concentration_interval(d, w)
        hits += found.low <= truth <= found.high
    assert 0.91 < hits / 400 < 0.98


def test_a_loss_that_is_no_number_names_the_candidate():
    planted = Planted()
    broken = planted.like_f()
    broken[3] = np.nan
    with pytest.raises(DataError, match="candidate 'b'"):
        planted.answer({"a": planted.like_f(), "b": broken})
