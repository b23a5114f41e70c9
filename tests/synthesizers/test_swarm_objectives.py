"""Objectives: identities of the paper's, and what honest forms refuse to reward."""

import numpy as np
import pytest

from amlb_ext.synthesizers.swarm.objectives import (
    MixedObjective,
    ScoredRows,
    consistent_as_sample,
    difficult,
    novel,
    novel_confirmed,
    performance,
    personalised_as_sample,
    separate,
    separate_pairs,
)

RNG = np.random.default_rng(0)
N_ROWS = 400


def scored(s, real=None, **changes):
    n = s.shape[1]
    given = {
        "s": s,
        "real": s if real is None else real,
        "nearest": np.arange(n),
        "supported": np.ones(n, bool),
        "metric_rows": RNG.random((n, 3)),
    }
    return ScoredRows(**{**given, **changes})


def answers(*accuracies, n=N_ROWS):
    """Rows answered right with these chances."""
    return (RNG.random((len(accuracies), n)) < np.array(accuracies)[:, None]) * 1.0


def test_separate_telescopes_to_the_range():
    s = answers(0.9, 0.8, 0.75, 0.5, 0.3)
    p = np.sort(s.mean(axis=1))
    gaps = np.diff(p).sum() / (len(p) - 1)
    assert separate(scored(s)) == pytest.approx(gaps)
    assert separate(scored(s)) == pytest.approx((p[-1] - p[0]) / (len(p) - 1))


def test_flipped_labels_win_literally_and_gain_nothing_honestly():
    """A generator that flips labels which all takers get right."""
    truth = RNG.integers(0, 2, N_ROWS)
    t = np.where(truth[:, None] == [0, 1], 0.97, 0.03)
    predicted = np.tile(truth, (4, 1))
    flipped = 1 - truth
    literal = difficult(scored(performance(predicted, "literal", y=flipped, t=t)))
    honest = difficult(scored(performance(predicted, "honest", y=flipped, t=t)))
    assert literal >= 0.9
    assert honest <= 0.01


def test_an_error_as_large_as_the_spread_of_the_target_is_a_wrong_class():
    t = np.array([0.5, 0.5, 0.5])
    y = np.array([0.5, 0.5, 0.4])
    predicted = np.array([[0.5, 0.6, 0.55]])
    honest = performance(predicted, "honest", y=y, t=t, variance=0.01)
    assert honest.tolist() == [[1.0, pytest.approx(0.0), pytest.approx(0.75)]]
    literal = performance(predicted, "literal", y=y, t=t, variance=0.01)
    assert literal.tolist() == [[1.0, pytest.approx(0.0), 0.0]]


def test_a_taker_broken_off_the_data_separates_only_literally():
    s = answers(0.9, 0.9, 0.9, 0.1)
    real = answers(0.8, 0.8, 0.8, 0.8)
    off = {"supported": np.zeros(N_ROWS, bool)}
    assert separate(scored(s, real, **off)) > 0.2
    assert separate_pairs(scored(s, real, **off)) == 0


def test_pairs_count_where_real_rows_agree():
    s = answers(0.9, 0.5)
    assert separate_pairs(scored(s)) == pytest.approx(0.4, abs=0.1)
    assert separate_pairs(scored(s, real=s[::-1])) == 0
    # a gap that chance makes is none
    assert separate_pairs(scored(answers(0.7, 0.7))) == 0


def test_novelty_needs_real_rows_of_the_region():
    made = answers(0.3, 0.5, 0.7, 0.9)
    # takers of the opposite order everywhere, but in the region the made order holds
    region = np.repeat(np.arange(100), N_ROWS // 100)
    real = np.concatenate(
        [answers(0.3, 0.5, 0.7, 0.9, n=100), answers(0.95, 0.8, 0.5, 0.2, n=900)],
        axis=1,
    )
    confirmed = scored(made, real, nearest=region)
    assert novel(confirmed) > 0.05
    assert novel_confirmed(confirmed) == pytest.approx(2.0)
    elsewhere = scored(made, real, nearest=region + 500)
    assert novel(elsewhere) > 0.05
    assert novel_confirmed(elsewhere) == 0


def test_consistency_of_an_independent_sample_is_best():
    independent = np.mean(
        [consistent_as_sample(scored(answers(0.6, 0.7, 0.8))) for _ in range(40)]
    )
    # a collapsed generator gives the same rows in every draw
    once = answers(0.6, 0.7, 0.8, n=N_ROWS // 5)
    assert consistent_as_sample(scored(np.tile(once, 5))) < 0.2 < independent


def test_copies_of_the_user_are_no_personal_rows():
    user = RNG.random((200, 3))
    alike = scored(answers(0.5, 0.6, n=200), user_rows=user)
    copies = scored(answers(0.5, 0.6, n=200), user_rows=user, metric_rows=user + 1e-6)
    assert personalised_as_sample(alike) > 0.7
    assert personalised_as_sample(copies) < 0.1


def test_an_objective_of_small_numbers_counts_as_much():
    weights = {"difficult": 0.5, "novel": 0.5}
    initial = [scored(answers(a, 0.5), answers(0.6, 0.5)) for a in (0.5, 0.7, 0.9)]
    mixed = MixedObjective(weights, "literal")
    mixed.settle_units(initial)
    difficulties = [difficult(rows) / mixed.units["difficult"] for rows in initial]
    novelties = [novel(rows) / mixed.units["novel"] for rows in initial]
    assert np.std(difficulties) == pytest.approx(1) == np.std(novelties)
    expected = 0.5 * difficulties[0] + 0.5 * novelties[0]
    assert mixed(initial[0]) == pytest.approx(expected)
