"""Contrasts and the null control: truth planted and found."""

import numpy as np
import pandas as pd
import pytest
from exhaustive import count_of

from amlb_ext.stats.claims import COLUMNS, OVERALL, REGION, answer_questions
from amlb_ext.stats.contrasts import (
    SMALLEST_EFFECTIVE_SIZE,
    ComparedUnits,
    choose_weighting,
    compare_candidate,
    mean_contrast,
)


def fit_of_f(rng, base, between=0.0):
    """Losses of one fit of F: the rows' own, noise per row, and luck of the fit."""
    return base + 0.1 * rng.standard_normal(len(base)) + between * rng.standard_normal()


def region_answers(losses, f, **rows):
    """The answers where F fails, by candidate; all rows count alike unless weights are given."""
    rows = {"weights": np.ones(len(f)), **rows}
    table = answer_questions(pd.DataFrame(losses), ComparedUnits(loss_f=f, **rows))
    return table[table["question"] == REGION].set_index("candidate")


def verdict_rates(between, refits, seed, n=300):
    """Share of draws with a claim about a re-seeded F, and with a true claim about a better G."""
    rng = np.random.default_rng(seed)
    false, true = [], []
    for _ in range(count_of(40, 200)):
        base = rng.random(n)
        f = fit_of_f(rng, base, between)
        null = pd.DataFrame({i: fit_of_f(rng, base, between) for i in range(refits)})
        g = {"again": fit_of_f(rng, base, between), "good": 0.7 * base}
        table = region_answers(g, f, refits=null)
        false.append(table.loc["again", "verdict"] != "undecided")
        true.append(table.loc["good", "verdict"] == "better")
    return np.mean(false), np.mean(true)


class TestContrasts:
    def test_by_hand(self):
        # d = -1, 0, 1, -2 with weights 2, 1, 1, 4: (-2 + 0 + 1 - 8) / 8 = -9/8.
        e = mean_contrast(
            np.array([0.0, 2, 3, 0]), np.array([1.0, 2, 2, 2]), np.array([2.0, 1, 1, 4])
        )
        assert e.point == -9 / 8

    def test_table(self):
        rng = np.random.default_rng(0)
        f = rng.random(300)
        losses = pd.DataFrame({"b": f - 0.2, "same": f, "w": f + 0.2})
        losses[["b", "w"]] += 0.1 * rng.standard_normal((300, 2))
        table = answer_questions(losses, ComparedUnits(loss_f=f))
        assert list(table.columns) == COLUMNS
        table = table[table["question"] == OVERALL]
        assert table["verdict"].tolist() == ["better", "undecided", "worse"]
        assert table["effective_size"].tolist() == pytest.approx([300] * 3)
        assert table["null_difference"].isna().all()
        assert (table["p_adjusted"] >= table["p"]).all()
        assert table.loc[1, ["low", "high", "p"]].tolist() == [0.0, 0.0, 1.0]

    def test_effective_size_is_of_clusters(self):
        # Two rows in each of 50 clusters, all weights 1: cluster weights 2, (100)^2 / (50 * 4).
        f = np.arange(100.0)
        table = region_answers({"g": f + 1}, f, clusters=np.arange(100) // 2)
        assert table["effective_size"].tolist() == [50.0]

    def test_of_one_cluster_nothing_is_claimed(self):
        f = np.arange(10.0)
        table = answer_questions(
            pd.DataFrame({"g": f - 1}), ComparedUnits(loss_f=f, clusters=np.zeros(10))
        )
        assert table.loc[0, "verdict"] == "no claim"
        assert table.loc[0, "reason"].startswith("only 1 cluster")
        assert table.loc[0, ["low", "high", "p", "p_adjusted"]].isna().all()


def control(refits, f):
    """The null control of re-fits, a column of losses each."""
    table = pd.DataFrame(refits, index=range(len(f)))
    return compare_candidate("g", f, ComparedUnits(loss_f=f, refits=table))


class TestNull:
    def test_by_hand(self):
        # Re-fits differ from F by +-1 about .5 and -.5 (rows alternate): points .5, -.5, mean 0,
        # S^2 = .5; the mean of the re-fits is F +- 1: s_rows^2 = (4/3)(4 / 16) = 1/3.
        f = np.zeros(4)
        turn = np.array([1.0, -1, 1, -1])
        got = control({0: turn + 0.5, 1: turn - 0.5}, f)
        assert got.null_difference == 0.0
        assert got.null_se == pytest.approx(np.sqrt(1 / 3 + 0.5 / 2))

    def test_a_reseeded_f_is_no_discovery(self):
        false, true = verdict_rates(between=0.0, refits=3, seed=3)
        assert false <= 0.05
        assert true >= 0.95

    def test_nor_when_fits_differ_by_luck(self):
        # s.e. of a contrast by rows .14 / sqrt(300) = .008, luck .03: the rows alone would call
        # it real in most draws. 3 s.e. of a rate of .05 in 200 draws: .046.
        rng = np.random.default_rng(4)
        rows_alone = [
            mean_contrast(fit_of_f(rng, b, 0.03), fit_of_f(rng, b, 0.03))
            for b in rng.random((200, 300))
        ]
        assert np.mean([e.low > 0 or e.high < 0 for e in rows_alone]) > 0.5
        false, _ = verdict_rates(between=0.03, refits=4, seed=5)
        assert false <= 0.05 + 0.046


class TestWeights:
    def test_small_effective_size_counts_all_rows(self):
        found = choose_weighting(np.r_[np.ones(49), np.zeros(500)])
        assert (found.is_weighted, found.weights, found.effective_size) == (
            False,
            None,
            49,
        )
        assert (
            f"worth only 49 rows, below {SMALLEST_EFFECTIVE_SIZE:.0f}" in found.reason
        )

    def test_large_enough_is_kept(self):
        given = np.r_[np.ones(50), np.zeros(500)]
        found = choose_weighting(given)
        assert found.is_weighted
        assert found.weights is given

    def test_rows_of_one_source_row_count_once(self):
        clusters = np.repeat(np.arange(30), 3)
        assert choose_weighting(np.ones(90)).is_weighted
        assert choose_weighting(np.ones(90), clusters).effective_size == 30
        assert not choose_weighting(np.ones(90), clusters).is_weighted

    def test_no_weight_at_all(self):
        for unknown in (None, np.zeros(80), np.full(80, np.nan)):
            assert choose_weighting(unknown).weights is None
            assert "no place where F fails is known" in choose_weighting(unknown).reason

    def test_each_candidate_decides_on_its_own_rows(self):
        rng = np.random.default_rng(6)
        f, w = rng.random(160), np.tile([1.0, 0.01], 80)
        g = pd.DataFrame({"whole": f - 0.1, "half": f - 0.1}) + 0.1 * rng.random(
            (160, 2)
        )
        scored = pd.DataFrame(
            {"whole": np.ones(160, bool), "half": np.arange(160) < 80}
        )
        rows = ComparedUnits(loss_f=f, weights=w)
        table = answer_questions(g, rows, scored=scored).set_index(
            ["candidate", "question"]
        )
        assert table.loc[("whole", REGION), "weighted"]
        assert not table.loc[("half", REGION), "weighted"]
        assert table.loc[("half", OVERALL), "difference"] == pytest.approx(
            (g["half"] - f)[:80].mean()
        )
