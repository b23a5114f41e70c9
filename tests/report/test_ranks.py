"""Ranks over tasks, against a published table and SciPy, and the bars that join them."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import friedmanchisquare, wilcoxon

from amlb_ext.report.ranks import alike_runs, mean_losses, rank_tasks

#: Demsar (2006), JMLR 7, table 6: AUC of four variants of C4.5 on 14 data sets. He ranks the two
#: .975 of voting 2 and 3, from more digits than he prints: here they have a fourth.
DEMSAR = pd.DataFrame(
    [
        (0.763, 0.768, 0.771, 0.798),
        (0.599, 0.591, 0.590, 0.569),
        (0.954, 0.971, 0.968, 0.967),
        (0.628, 0.661, 0.654, 0.657),
        (0.882, 0.888, 0.886, 0.898),
        (0.936, 0.931, 0.916, 0.931),
        (0.661, 0.668, 0.609, 0.685),
        (0.583, 0.583, 0.563, 0.625),
        (0.775, 0.838, 0.866, 0.875),
        (1.000, 1.000, 1.000, 1.000),
        (0.940, 0.962, 0.965, 0.962),
        (0.619, 0.666, 0.614, 0.669),
        (0.972, 0.981, 0.9751, 0.9749),
        (0.957, 0.978, 0.946, 0.970),
    ],
    columns=["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"],
    index=[
        "adult",
        "cancer",
        "wisconsin",
        "cmc",
        "ionosphere",
        "iris",
        "liver",
        "lung",
        "lympho",
        "mushroom",
        "tumor",
        "rheum",
        "voting",
        "wine",
    ],
)


def test_the_example_of_demsar():
    """Mean ranks 3.143, 2.000, 2.893, 1.964 (section 3.2.4)."""
    ranks = rank_tasks(1 - DEMSAR)
    told = {"C4.5": 3.143, "C4.5+m": 2.000, "C4.5+cf": 2.893, "C4.5+m+cf": 1.964}
    assert ranks.mean.round(3).to_dict() == told
    assert list(ranks.mean.index) == ["C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5"]
    assert ranks.tasks == tuple(DEMSAR.index)
    expected = friedmanchisquare(*(1 - DEMSAR).to_numpy().T).pvalue
    assert ranks.friedman_p == pytest.approx(expected)
    assert ranks.friedman_p < 0.05
    # critical difference at .10: 2.291 sqrt(4 (5) / (6 (14))) = 1.12; at .05: 2.569 (.488) = 1.25
    # C4.5 and C4.5+m+cf are 3.143 - 1.964 = 1.18 apart: between the two
    assert 0.05 < ranks.p.loc["C4.5", "C4.5+m+cf"] < 0.10
    # C4.5 and C4.5+m are 1.143 apart: so are they
    assert 0.05 < ranks.p.loc["C4.5", "C4.5+m"] < 0.10
    assert ranks.p.loc["C4.5", "C4.5+cf"] > 0.10
    np.testing.assert_array_equal(ranks.p, ranks.p.T)


def test_ranks_do_not_depend_on_the_scale_or_order_of_tasks():
    losses = 1 - DEMSAR
    other = rank_tasks(losses.mul(np.arange(1, 15), axis=0).iloc[::-1])
    ranks = rank_tasks(losses)
    pd.testing.assert_series_equal(other.mean, ranks.mean)
    assert other.friedman_p == pytest.approx(ranks.friedman_p)


def test_two_tasks_are_ranked_but_not_tested():
    ranks = rank_tasks(1 - DEMSAR.iloc[:2])
    # adult 4 3 2 1, cancer 1 2 3 4
    assert (ranks.mean == 2.5).all()
    assert np.isnan(ranks.friedman_p)
    assert not len(ranks.p)
    assert "2 tasks: the ranks only describe. There is no diagram" in ranks.about
    assert "1 task:" in rank_tasks(1 - DEMSAR.iloc[:1]).about


def test_two_entrants_are_wilcoxons():
    losses = 1 - DEMSAR[["C4.5", "C4.5+cf"]].drop(index="mushroom")
    ranks = rank_tasks(losses)
    expected = wilcoxon(losses["C4.5"], losses["C4.5+cf"]).pvalue
    assert np.isnan(ranks.friedman_p)
    assert ranks.p.loc["C4.5", "C4.5+cf"] == pytest.approx(expected)
    assert np.diag(ranks.p).tolist() == [1, 1]
    assert f"p = {expected:.3f}" in ranks.about


def test_tasks_without_a_loss_are_left_out_by_name():
    losses = 1 - DEMSAR
    losses.loc["iris", ["C4.5", "C4.5+m"]] = np.nan
    losses.loc["wine", "C4.5"] = np.nan
    ranks = rank_tasks(losses, {"adult2": "no certificate"})
    assert ranks.left_out == {
        "adult2": "no certificate",
        "iris": "no losses of C4.5, C4.5+m",
        "wine": "no losses of C4.5",
    }
    assert ranks.tasks == tuple(DEMSAR.index.drop(["iris", "wine"]))
    expected = rank_tasks((1 - DEMSAR).drop(index=["iris", "wine"]))
    pd.testing.assert_series_equal(ranks.mean, expected.mean)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(),
        pd.DataFrame({"F": [0.1, 0.2]}),
        pd.DataFrame({"F": [0.1], "a": [np.nan]}),
    ],
)
def test_nothing_to_rank(table):
    ranks = rank_tasks(table)
    assert not len(ranks.mean)
    assert not len(ranks.p)
    assert ranks.tasks == ()
    assert np.isnan(ranks.friedman_p)
    assert "nothing to rank" in ranks.about


def test_mean_losses_are_of_shared_rows():
    losses = pd.DataFrame({"a": [1.0, 5.0, np.nan], "b": [2.0, 4.0, 6.0]})
    means = mean_losses(losses, np.array([3.0, 1.0, 9.0]))
    assert means.to_dict() == {"F": 2.0, "a": 3.0, "b": 3.0}


def test_a_bar_joins_the_longest_runs_only():
    apart = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    assert alike_runs(np.where(apart <= 2, 0.5, 0.01), 0.05) == [(0, 2), (1, 3), (2, 4)]
    assert alike_runs(np.where(apart <= 4, 0.5, 0.01), 0.05) == [(0, 4)]
    assert alike_runs(np.where(apart == 0, 1.0, 0.01), 0.05) == []
