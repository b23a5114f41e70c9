"""Verdicts on data whose truth is known: who is better where F fails, and when nobody may say."""

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.task import Kind
from amlb_ext.core.unit import ROW
from amlb_ext.report.compare import compare_frameworks
from amlb_ext.report.predictions import TaskPredictions, read_task_predictions
from amlb_ext.runner import read_jobs
from amlb_ext.stats.contrasts import SMALLEST_EFFECTIVE_SIZE, ComparedUnits
from amlb_ext.stats.pairwise import compare_pairs
from amlb_ext.suite import SuiteFiles
from amlb_ext.validity import Certificate
from amlb_ext.validity.measures import plan_measure

N = 1200


class Planted:
    """A regression of scaled target 0: losses are squares of what a model predicts.

    F errs by .5 on 20 % of the rows, the region, and by .1 elsewhere.
    """

    def __init__(self, n=N, seed=0):
        rng = np.random.default_rng(seed)
        self.rng, self.n = rng, n
        self.region = np.arange(n) % 5 < 1
        self.scale = np.where(self.region, 0.5, 0.1)
        self.f = self.scale * (1 + 0.3 * rng.standard_normal(n))
        half = np.arange(n) < n // 2
        rows = pd.DataFrame(
            {
                "fold": np.where(half, 3, 7),  # the source's numbers
                "amlb_fold": np.where(half, 0, 1),
                "row": np.r_[np.arange(n // 2), np.arange(n - n // 2)],
                "origin": "good",
                "source_row": np.arange(n),
                "loss": self.f**2,
                "weight": np.where(self.region, 0.95, 0.01),
                "f": self.f,
            }
        )
        zero = np.zeros(n)
        self.full = TaskPredictions(
            name="t_full",
            suffix="full",
            kind=Kind.REGRESSION,
            labels=(),
            rows=rows,
            y=zero,
            low=zero,
            span=zero + 1,
        )
        self.null = rows[["fold", "row", "loss"]].copy()
        for number in range(5):
            self.null[f"refit_{number}"] = self.like_f() ** 2

    def like_f(self):
        """Another fit of F: errors of the same size, in part other ones."""
        return self.f + 0.1 * self.scale * self.rng.standard_normal(self.n)

    def add(self, name, inside=1.0, outside=1.0):
        """A framework whose errors are F's times a factor in the region and outside."""
        factor = np.where(self.region, inside, outside)
        self.full.f[name] = factor * self.like_f()
        return self

    def compare(self, certificate="rank", null=True, incomplete=None, **more):
        if isinstance(certificate, str):
            certificate = certified(certificate)
        null = self.null if null is True else null
        return compare_frameworks(
            "t", self.full, certificate, null, incomplete or {}, 2, **more
        )


def certified(verdict="rank", *measures):
    return Certificate("t", "regression", verdict, "because.", tuple(measures), ROW)


def row(found, framework, where="region"):
    table = found.contrasts
    (out,) = table[
        (table["framework"] == framework) & (table["where"] == where)
    ].to_dict("records")
    return out


def test_better_in_the_region_only():
    """A fifth less error there and five times as much elsewhere."""
    found = Planted().add("there", 0.8, 5.0).add("elsewhere", 1.2, 0.1).compare()
    assert found.judged.no_claim == ""
    assert found.warnings == ()
    # the verdict is over all rows; what opposes it is described, and told as such
    told = row(found, "there")
    assert told["verdict"] == "undecided"
    assert told["high"] < 0 < row(found, "there", "all rows")["difference"]
    assert row(found, "there", "all rows")["verdict"] == "worse"
    assert row(found, "there", "region minus elsewhere")["verdict"] == "opposite"
    assert row(found, "elsewhere")["verdict"] == "worse"
    (pair,) = found.pairs.to_dict("records")
    assert (pair["framework"], pair["other"], pair["verdict"]) == (
        "elsewhere",
        "there",
        "worse",
    )


def test_the_numbers_are_means_over_the_region_and_over_all_rows():
    planted = Planted().add("g", 0.8, 2.0)
    # the fifth with the largest weights
    found, w = planted.compare(), planted.region.astype(float)
    cap = np.sort(planted.f**2)[-24]
    loss = np.minimum(planted.full.f["g"] ** 2, cap)
    loss_f = np.minimum(planted.f**2, cap)
    for where, weights in (("region", w), ("all rows", None)):
        told = row(found, "g", where)
        assert told["loss"] == pytest.approx(np.average(loss, weights=weights))
        assert told["loss_f"] == pytest.approx(np.average(loss_f, weights=weights))
        assert told["difference"] == pytest.approx(told["loss"] - told["loss_f"])
        assert told["relative"] == pytest.approx(told["difference"] / told["loss_f"])
        assert told["low"] < told["difference"] < told["high"]
        assert (told["folds"], told["rows"]) == ("2/2", N)
    np.testing.assert_array_equal(found.judged.compared.weights, w)
    weighting = found.judged.compared.weighting
    assert weighting.is_weighted
    assert row(found, "g")["weighted"]
    assert not row(found, "g", "all rows")["weighted"]
    assert row(found, "g")["effective_size"] == 240
    assert "the 240 rows with the largest P(F fails | x)" in weighting.reason


def test_large_errors_of_a_regression_count_no_more_than_the_cap():
    """2 % of 1,200 rows is 24: a large error of a framework costs no more than one of F's."""
    planted = Planted().add("g", 0.8)
    planted.full.f["g"][7] = 3.0
    found = planted.compare()
    cap = np.sort(planted.f**2)[-24]
    told = row(found, "g", "all rows")
    loss, loss_f = np.minimum(planted.full.f["g"] ** 2, cap), planted.f**2
    assert told["loss"] == pytest.approx(loss.mean())
    assert told["loss_f"] == pytest.approx(np.minimum(loss_f, cap).mean())
    assert (told["verdict"], told["by"]) == ("better", "capped")
    assert told["rmse"] == pytest.approx(np.sqrt((planted.full.f["g"] ** 2).mean()))
    assert found.judged.compared.cap.sentence().endswith(
        "(F errs by as much on 24 of 1 200 rows)"
    )


@pytest.mark.parametrize("error", [1e6, 1e209])
def test_one_absurd_error_leaves_no_verdict_by_the_cap(error):
    planted = Planted().add("g", 0.8).add("h", 0.9)
    planted.full.f["g"][5] = error
    found = planted.compare()
    for where in ("all rows", "region"):
        told = row(found, "g", where)
        assert (told["verdict"], told["by"]) == ("no claim", "plain")
        assert np.isnan(told["low"])
        assert np.isnan(told["p_adjusted"])
    assert row(found, "h", "all rows")["verdict"] == "better"
    (pair,) = found.pairs.to_dict("records")
    assert pair["verdict"] == "no claim"
    overall = row(found, "g", "all rows")
    parts = overall["from_region"] + overall["from_elsewhere"]
    assert (
        np.isnan(parts)
        if error > 1e200
        else parts == pytest.approx(overall["relative"])
    )


def test_f_itself_as_a_candidate(scored):
    """Difference exactly 0, interval 0 to 0, p = 1; on every kind of task."""
    suite = SuiteFiles.load(scored.suite)
    jobs = read_jobs(suite, scored.results).table
    for task in ("toy", "titanic", "wine"):
        full, _ = read_task_predictions(suite, f"{task}_full", jobs)
        full.f.clear()
        full.f["twin"] = full.own()
        full.rows["loss"] = full.loss("twin")
        found = compare_frameworks(task, full, certified(), None, {}, 2)
        for where in ("region", "all rows"):
            told = row(found, "twin", where)
            if where == "region" and not told["weighted"]:
                continue  # too few rows where F fails
            assert [told[name] for name in ("difference", "low", "high", "p")] == [
                0,
                0,
                0,
                1,
            ]
        assert row(found, "twin", "all rows")["p_adjusted"] == 1
        assert row(found, "twin", "all rows")["verdict"] == "undecided"


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_last_digits_of_a_number_decide_nothing(sign):
    """F's own predictions, as many decimals as a file keeps: that is no improvement."""
    planted = Planted()
    planted.full.f["F again"] = planted.f * (1 + sign * 1e-13 * planted.rng.random(N))
    found = planted.compare()
    assert row(found, "F again")["verdict"] == "undecided"
    assert row(found, "F again", "all rows")["verdict"] == "undecided"


def test_another_fit_of_f_is_not_better():
    """Chosen as the best of all seeds it would be; over 40 seeds at most a few may be."""
    called = sum(
        row(Planted(N, seed).add("twin").compare(), "twin")["verdict"] != "undecided"
        for seed in range(40)
    )
    assert called <= 0.05 * 40 + 2 * np.sqrt(40 * 0.05 * 0.95)


def in_region(found):
    return found.contrasts[found.contrasts["where"] == "region"]


def test_without_a_certificate_there_is_no_claim_where_f_fails():
    found = Planted().add("a", 0.5).add("b", 2.0).compare(None)
    for table in (in_region(found), found.pairs):
        assert set(table["verdict"]) == {"no claim"}
        assert (
            table["reason"]
            .str.startswith("t has no certificate; hardsynth certify")
            .all()
        )
        assert np.isfinite(table["difference"]).all()  # what was measured is still told
    assert found.judged.no_claim.startswith("t has no certificate")
    # a paired t test on all rows of F as it stands needs none
    assert row(found, "a", "all rows")["verdict"] == "better"
    assert row(found, "b", "all rows")["verdict"] == "worse"
    # nor is it said where a gain comes from
    asked = found.contrasts[found.contrasts["where"] == "region minus elsewhere"]
    assert set(asked["verdict"]) == {"no claim"}


def test_when_refits_beat_f_only_candidates_are_compared():
    failed = plan_measure("null on region", "", ">=", 0.0).found(-0.2, "")
    assert failed.passed is False
    found = Planted().add("a", 0.5).add("b", 2.0).compare(certified("describe", failed))
    region = in_region(found)
    assert set(region["verdict"]) == {"no claim"}
    assert region["reason"].str.startswith("F's own re-fits seem to beat it").all()
    assert found.pairs["verdict"].tolist() == ["better"]
    assert found.judged.no_claim == region["reason"].iloc[0]


def test_an_f_that_is_not_the_suites_spoils_every_contrast():
    found = Planted().add("a", 0.5).compare(alarm="another F was run")
    assert set(found.contrasts["verdict"]) == {"no claim"}
    assert set(found.contrasts["reason"]) == {"another F was run"}


@pytest.mark.parametrize("verdict", ["rank", "describe"])
def test_other_checks_forbid_nothing(verdict):
    other = plan_measure("synthetic: order", "", ">=", 0.65).found(0.1, "")
    unknown = plan_measure("null on region", "", ">=", 0.0).found(0.1, "")
    found = Planted().add("a", 0.5).compare(certified(verdict, other, unknown))
    assert row(found, "a")["verdict"] == "better"


def test_weights_worth_few_rows_are_left_out():
    planted = Planted().add("a", 0.8, 5.0)
    planted.full.rows["weight"] = np.where(np.arange(N) < 100, 1.0, 0.0)
    found = planted.compare()
    # of 100 rows with weight, all in one fold, a fifth
    expected = (
        "he place where F fails is worth only 20 rows, below "
        f"{SMALLEST_EFFECTIVE_SIZE:.0f}: all rows count alike"
    )
    weighting = found.judged.compared.weighting
    assert expected in weighting.reason
    assert not weighting.is_weighted
    told = row(found, "a")
    assert not told["weighted"]
    # one test is not made twice: the numbers of all rows stand with that question
    assert np.isnan([told["difference"], told["low"], told["p_adjusted"]]).all()
    assert (told["verdict"], told["effective_size"]) == ("no claim", 20)
    assert told["reason"].startswith("not enough rows where F fails")
    assert row(found, "a", "all rows")["verdict"] == "worse"
    # the family is that of one question: the p-value of a single test is not adjusted
    assert row(found, "a", "all rows")["p_adjusted"] == row(found, "a", "all rows")["p"]


def test_where_some_folds_were_run_their_rows_decide_on_the_region():
    """In fold 7 only 200 rows have a weight, of which 40 are where F fails."""
    planted = Planted().add("all", 0.8).add("light", 0.8).add("heavy", 0.8)
    fold = planted.full.rows["fold"]
    nothing_known = np.arange(N) >= N // 2 + 200
    planted.full.rows.loc[nothing_known, "weight"] = 0.0
    planted.full.f["light"][fold == 3] = np.nan
    planted.full.f["heavy"][fold == 7] = np.nan
    found = planted.compare()
    weighted = {
        name: bool(row(found, name)["weighted"]) for name in ("all", "light", "heavy")
    }
    assert weighted == {"all": True, "light": False, "heavy": True}
    told, plain = row(found, "light"), row(found, "light", "all rows")
    # half of the folds tell nothing in any case
    assert told["verdict"] == plain["verdict"] == "incomplete"
    assert plain["effective_size"] == plain["rows"] == told["rows"] == N // 2
    weighting = found.judged.compared.weighting
    assert weighting.is_weighted
    assert weighting.reason.startswith(
        "where F fails are the 160 rows with the largest"
    )
    pairs = found.pairs.set_index(["framework", "other"])
    assert pairs["weighted"].astype(bool).to_dict() == {
        ("all", "heavy"): True,
        ("all", "light"): False,
        ("heavy", "light"): False,
    }
    assert pairs.loc[("heavy", "light"), "rows"] == 0


@pytest.mark.parametrize("value", [np.nan, 0.0])
def test_without_weights_all_rows_count_alike(value):
    planted = Planted().add("a", 0.8)
    planted.full.rows["weight"] = value
    found = planted.compare()
    weighting = found.judged.compared.weighting
    assert "o place where F fails is known: all rows count alike" in weighting.reason
    assert row(found, "a")["effective_size"] == 0
    assert row(found, "a")["verdict"] == "no claim"
    assert row(found, "a", "all rows")["effective_size"] == N


def test_a_framework_with_a_failed_fold_gets_no_verdict():
    planted = Planted().add("broken", 0.5).add("whole", 0.5).add("other", 2.0)
    planted.full.f["broken"][planted.full.rows["fold"] == 7] = np.nan
    found = planted.compare(incomplete={"broken": "fold 1 failed (out of memory)"})
    for where in ("region", "all rows"):
        told = row(found, "broken", where)
        assert (told["verdict"], told["folds"], told["rows"]) == (
            "incomplete",
            "1/2",
            N // 2,
        )
        assert told["reason"] == "broken: fold 1 failed (out of memory)"
    assert row(found, "whole")["verdict"] == "better"
    assert row(found, "whole")["folds"] == "2/2"
    pairs = found.pairs.set_index(["framework", "other"])
    assert pairs.loc[("broken", "other"), "verdict"] == "incomplete"
    assert pairs.loc[("broken", "whole"), "folds"] == "1/2"
    assert pairs.loc[("broken", "whole"), "rows"] == N // 2
    assert pairs.loc[("other", "whole"), "verdict"] == "worse"


def test_a_fold_that_was_never_run_takes_every_verdict_back():
    planted = Planted().add("half", 0.5).add("row", 0.5).add("whole", 0.5)
    planted.full.f["half"][planted.full.rows["fold"] == 7] = np.nan
    planted.full.f["row"][0] = np.nan
    found = planted.compare()
    for name, folds in (("half", "1/2"), ("row", "2/2")):
        for where in ("all rows", "region"):
            told = row(found, name, where)
            assert (told["verdict"], told["folds"]) == ("incomplete", folds)
            assert "rows have no prediction" in told["reason"]
    assert row(found, "whole")["verdict"] == "better"
    verdicts = found.pairs.set_index(["framework", "other"])["verdict"]
    assert set(verdicts) == {"incomplete"}


def test_the_null_stands_beside():
    planted = Planted().add("a", 0.5)
    told = row(planted.compare(), "a")
    assert np.isfinite([told["null_difference"], told["null_se"], told["p_null"]]).all()
    w = planted.region
    cap = np.sort(planted.f**2)[-24]
    refits = planted.null.filter(like="refit_").clip(upper=cap)
    again = refits.mean(axis=1) - np.minimum(planted.f**2, cap)
    assert told["null_difference"] == pytest.approx(np.average(again, weights=w))


def _shorter(null):
    return null.iloc[:-1]


def _other_losses(null):
    return null.assign(loss=null["loss"] + 0.01)


def _other_folds(null):
    return null.assign(fold=null["fold"] + 1)


@pytest.mark.parametrize("change", [_shorter, _other_losses, _other_folds])
def test_refits_of_other_rows_are_not_used(change):
    planted = Planted().add("a", 0.5)
    found = planted.compare(null=change(planted.null))
    assert len(found.warnings) == 1
    assert "belong to other rows: certify the suite again" in found.warnings[0]
    assert np.isnan(row(found, "a")["p_null"])
    told = row(found, "a")
    assert (told["verdict"], told["reason"][:24]) == (
        "no claim",
        "F was not fitted again, ",
    )
    assert np.isfinite([told["difference"], told["low"]]).all()
    assert row(found, "a", "all rows")["verdict"] == "better"


def adjusted(planted):
    """Adjusted p-values over all rows."""
    table = planted.compare().contrasts
    table = table[table["where"] == "all rows"]
    return table.set_index(["framework", "where"])["p_adjusted"]


def test_controls_do_not_cost_the_candidates():
    """F's own twins are not in the candidates' adjustment, nor the other way round."""
    planted = Planted().add("a", 0.98).add("b", 0.97)
    before = adjusted(planted)
    planted.add("HardsynthNull").add("HardsynthBaseline (1h)")
    after = adjusted(planted)
    pd.testing.assert_series_equal(after[before.index], before)
    planted.add("c", 0.5)
    more = adjusted(planted)
    # up to the ± .0015 of a simulated p-value
    assert (more[before.index] >= before - 0.01).all()
    null = ("HardsynthNull", "all rows")
    assert more[null] == after[null]


def three(n=200, seed=0):
    rng = np.random.default_rng(seed)
    f = rng.random(n)
    losses = pd.DataFrame({"a": f - 0.1, "b": f, "c": f + 0.3}) + 0.2 * rng.random(
        (n, 3)
    )
    null = pd.DataFrame(
        {f"refit_{k}": f + 0.05 * rng.standard_normal(n) for k in range(5)}
    )
    units = ComparedUnits(loss_f=f, weights=rng.random(n), refits=null)
    return losses, units


def test_pairs_use_the_rows_that_both_have():
    losses, units = three()
    scored = pd.DataFrame(True, losses.index, losses.columns)
    scored.loc[:79, "a"] = False
    scored.loc[150:, "b"] = False
    found = compare_pairs(losses.where(scored), units, scored=scored)
    found = found.set_index(["framework", "other"])
    assert found["rows"].to_dict() == {("a", "b"): 70, ("a", "c"): 120, ("b", "c"): 150}
    both = slice(80, 149)
    gap = losses.loc[both, "a"] - losses.loc[both, "b"]
    expected = np.average(gap, weights=units.weights[80:150])
    assert found.loc[("a", "b"), "difference"] == pytest.approx(expected)


def test_two_fits_of_one_algorithm_are_rarely_called_different():
    """A fit's mean loss scatters by S = .02, five standard errors of a mean over the rows.

    F, its 5 re-fits, G and H are all fits of one algorithm. By the rows alone G and H would
    nearly always differ; beyond what two fits differ by they may in 5 % of draws.
    """
    rng = np.random.default_rng(0)
    draws, n = 200, 60
    differ = by_rows = 0
    for _ in range(draws):
        fits = rng.random(n)[:, None] + 0.02 * rng.standard_normal(8)
        fits += 0.03 * rng.standard_normal((n, 8))
        null = pd.DataFrame({f"refit_{k}": fits[:, k + 1] for k in range(5)})
        losses = pd.DataFrame({"G": fits[:, 6], "H": fits[:, 7]})
        told = compare_pairs(
            losses, ComparedUnits(loss_f=fits[:, 0], refits=null)
        ).iloc[0]
        differ += told["verdict"] != "undecided"
        by_rows += told["p_holm"] < 0.05
    assert by_rows > 0.4 * draws
    assert differ <= 0.05 * draws + 2 * np.sqrt(draws * 0.05 * 0.95)


def test_whether_the_gain_is_larger_is_asked_where_something_was_claimed():
    """Half the error in the region, a tenth less everywhere, and F fitted again."""
    planted = Planted().add("there", 0.5).add("everywhere", 0.7, 0.7).add("twin")
    table = planted.compare().contrasts
    asked = table[table["where"] == "region minus elsewhere"].set_index("framework")
    assert asked["verdict"].to_dict() == {
        "there": "larger gain",
        "everywhere": "undecided",
    }
    assert asked.loc["there", "high"] < 0
    told = row(planted.compare(), "there", "region minus elsewhere")
    cap = np.sort(planted.f**2)[-24]
    loss = np.minimum(planted.full.f["there"] ** 2, cap)
    loss_f = np.minimum(planted.f**2, cap)
    there, elsewhere = (
        (loss[w].sum() - loss_f[w].sum()) / loss_f[w].sum()
        for w in (planted.region, ~planted.region)
    )
    assert told["difference"] == pytest.approx(there - elsewhere)


def test_rows_that_stand_in_several_folds_are_one_row_in_all_answers():
    """The same 600 rows twice: intervals as wide as those of 600 rows."""
    once = Planted(600)
    once.add("a", 0.8)
    twice = Planted(1200)
    order = np.tile(np.arange(600), 2)
    for column in ("loss", "weight"):
        twice.full.rows[column] = once.full.rows[column].to_numpy()[order]
    twice.full.rows["source_row"] = order
    twice.full.f["a"] = once.full.f["a"][order]
    twice.f, twice.region = once.f[order], once.region[order]
    refits = once.null.filter(like="refit_")
    twice.null = twice.full.rows[["fold", "row", "loss"]].join(
        refits.iloc[order].reset_index(drop=True)
    )
    names = ["difference", "low", "high"]
    for where in ("all rows", "region", "region minus elsewhere"):
        one, two = row(once.compare(), "a", where), row(twice.compare(), "a", where)
        assert [two[n] for n in names] == pytest.approx([one[n] for n in names])


def test_a_stress_test_allows_no_claim():
    found = Planted().add("a", 0.5).add("b", 2.0).compare("stress-test only")
    assert set(in_region(found)["verdict"]) == {"no claim"}
    assert set(found.pairs["verdict"]) == {"no claim"}
    assert row(found, "a", "all rows")["verdict"] == "better"
    assert found.judged.no_claim == "certified as stress-test only: because."


def test_missing_refits_are_told():
    planted = Planted().add("a", 0.5)
    assert "the null control is missing" in planted.compare(null=None).warnings[0]
    bare = planted.null[["fold", "row", "loss"]]
    assert "could not be fitted again" in planted.compare(null=bare).warnings[0]


def test_controls_do_not_cost_pairs_of_candidates():
    planted = Planted().add("a", 0.98).add("b", 0.97)
    before = planted.compare().pairs.set_index(["framework", "other"])["p_holm"]
    planted.add("HardsynthNull").add("HardsynthBaseline")
    after = planted.compare().pairs.set_index(["framework", "other"])["p_holm"]
    assert after["a", "b"] == before["a", "b"]


def test_pairs_are_antisymmetric():
    losses, units = three()
    there = compare_pairs(losses, units).set_index(["framework", "other"])
    back = compare_pairs(losses[["c", "b", "a"]], units).set_index(
        ["other", "framework"]
    )
    opposite = {"better": "worse", "worse": "better", "undecided": "undecided"}
    assert set(there["verdict"]) <= set(opposite)
    for pair, told in there.iterrows():
        other = back.loc[pair]
        assert told["difference"] == -other["difference"]
        assert (told["low"], told["high"]) == pytest.approx(
            (-other["high"], -other["low"])
        )
        assert told[["p", "p_holm", "p_null"]].tolist() == pytest.approx(
            other[["p", "p_holm", "p_null"]].tolist()
        )
        assert told["verdict"] == opposite[other["verdict"]]
    assert there.loc[("a", "c"), "verdict"] == "better"


def test_equal_candidates_are_not_different():
    losses, units = three()
    losses["a"] = losses["b"]
    told = compare_pairs(losses[["a", "b"]], units).iloc[0]
    assert (told["difference"], told["p_holm"], told["verdict"]) == (0, 1, "undecided")
