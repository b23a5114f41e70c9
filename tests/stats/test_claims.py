"""Three questions of each candidate, on losses whose truth is planted."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from amlb_ext.core.errors import DataError
from amlb_ext.stats.claims import CONCENTRATED, OVERALL, REGION, answer_questions
from amlb_ext.stats.contrasts import ComparedUnits, compare_candidate

N = 400


class Planted:
    """F loses .5 on the first half of the rows, the region, and .1 elsewhere."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.region = np.arange(N) < N // 2
        self.scale = np.where(self.region, 0.5, 0.1)
        self.loss_f = self.like_f()
        self.weights = np.where(self.region, 1.0, 0.0)
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
    # described there: a verdict of its own needs one over all rows in the same direction
    assert found["there", REGION] == "undecided"
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
        assert table["verdict"].tolist()[:2] == ["better", "no claim"]
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


def test_the_gap_of_two_relative_changes_covers():
    rng = np.random.default_rng(0)
    hits = 0
    inside = np.arange(250) < 60
    for _ in range(400):
        loss_f = np.where(inside, 0.5, 0.2) + 0.05 * rng.standard_normal(250)
        # a third less loss inside, a tenth less elsewhere
        loss_g = loss_f * np.where(inside, 2 / 3, 0.9) + 0.1 * rng.standard_normal(250)
        units = ComparedUnits(loss_f=loss_f, weights=inside.astype(float))
        _, _, gap = compare_candidate("g", loss_g, units).relative_difference()
        hits += gap.low <= 0.1 - 1 / 3 <= gap.high
    assert 0.92 < hits / 400 < 0.98


def test_few_units_where_f_fails_are_described_and_not_judged():
    planted = Planted()
    few = np.where(np.arange(N) < 100, 1.0, 0.0)
    table = planted.answer({"g": planted.model(0.5, 0.5)}, weights=few)
    row = table[table["question"] == REGION].iloc[0]
    assert row["verdict"] == "no claim"
    assert row["reason"] == "described, not judged: 100 rows where F fails, below 200"
    assert row["low"] < row["difference"] < row["high"] < 0


def test_a_claim_on_recipes_counts_how_much_fits_differ():
    planted = Planted()
    # each sample moves both recipes, and the candidate's by far more
    shifts = np.array([-0.05, -0.02, 0.0, 0.01, 0.04])
    fits = {
        "g": pd.DataFrame(
            {i: planted.like_f() - 0.01 + s for i, s in enumerate(shifts)}
        )
    }
    losses = pd.DataFrame({"g": fits["g"][0]})
    units = ComparedUnits(loss_f=planted.loss_f, refits=planted.refits)
    model = answer_questions(losses, units).iloc[0]
    recipe = answer_questions(losses, units, fits=fits).iloc[0]
    assert model["verdict"] == "better"
    assert recipe["verdict"] == "undecided"
    d = fits["g"].to_numpy() - planted.refits.to_numpy()
    assert recipe["difference"] == pytest.approx(d.mean())
    # rows scatter, and so does the mean over five samples of what another one gives
    rows = d.mean(axis=1).var(ddof=1) / N
    between = d.mean(axis=0).var(ddof=1) * (1 + 1 / 5)
    df = (rows + between) ** 2 / (rows**2 / (N - 1) + between**2 / 4)
    half = t.ppf(0.975, df) * np.sqrt(rows + between)
    assert recipe["high"] - recipe["difference"] == pytest.approx(half)


def test_a_loss_that_is_no_number_names_the_candidate():
    planted = Planted()
    broken = planted.like_f()
    broken[3] = np.nan
    with pytest.raises(DataError, match="candidate 'b'"):
        planted.answer({"a": planted.like_f(), "b": broken})


def test_all_of_alpha_is_spent_over_all_rows():
    """What is asked where F fails costs the first question nothing."""
    planted = Planted()
    losses = {"g": planted.model(0.97, 0.97), "h": planted.model(1.0, 1.02)}
    asked = planted.answer(losses)
    alone = planted.answer(losses, weights=None)
    columns = ["candidate", "p", "p_adjusted", "verdict"]
    both = [table[table["question"] == OVERALL][columns] for table in (asked, alone)]
    pd.testing.assert_frame_equal(*both)
