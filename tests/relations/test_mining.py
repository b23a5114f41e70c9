"""Planted relations are found, near-relations and accidents are not."""

import numpy as np
import pandas as pd
import pytest
from planted_relations import planted_table, shuffled

from amlb_ext.relations.mining import mine_relations
from amlb_ext.relations.values import Rounding, learn_rounding


@pytest.mark.parametrize("seed", range(2))
def test_planted_relations_are_found_with_evidence(seed):
    rows, planted = planted_table(seed)
    found = {relation.text: relation for relation in mine_relations(rows, 30).relations}
    assert set(planted) <= set(found)
    for relation in found.values():
        assert not relation.breaks(rows).any()


@pytest.mark.parametrize("seed", range(2))
def test_what_half_a_percent_of_rows_breaks_is_no_relation(seed):
    rows, planted = planted_table(seed, n=4000, exceptions=0.005)
    found = {relation.text for relation in mine_relations(rows).relations}
    assert not found & set(planted)


def test_columns_that_have_nothing_to_do_with_each_other_have_few_relations():
    counts = []
    for seed in range(8):
        rows, _ = planted_table(seed)
        counts.append(len(mine_relations(shuffled(rows, seed)).relations))
    assert np.mean(counts) < 0.5


def test_evidence_is_the_number_of_rows_that_would_break_a_relation():
    rows, _ = planted_table(0, n=3000)
    relations = mine_relations(rows).relations
    broken = np.zeros((20, len(relations)))
    for seed in range(20):
        mixed = shuffled(rows, seed)
        broken[seed] = [relation.breaks(mixed).sum() for relation in relations]
    for relation, mean in zip(relations, broken.mean(axis=0), strict=True):
        if relation.kind in ("order", "exclusive", "implies", "never"):
            assert mean == pytest.approx(relation.evidence, rel=0.25), relation.text


def test_the_written_form_of_numbers():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "price": np.round(rng.gamma(2, 100, 500), 2),
            "grade": rng.integers(1, 6, 500) / 2,
            "measure": rng.normal(size=500),
        }
    )
    forms = {form.column: form for form in mine_relations(rows).forms}
    assert (forms["price"].rounding, forms["price"].values) == (Rounding(2), None)
    assert forms["grade"].values.tolist() == [0.5, 1.0, 1.5, 2.0, 2.5]
    assert forms["measure"].rounding is None
    assert not forms["price"].breaks(rows["price"].to_numpy()).any()
    assert forms["price"].breaks(np.array([1.005])).all()
    assert learn_rounding(np.array([1e6 + 0.1])) == Rounding(1)
    # cents beside a number that stands for none, and cents of large sums
    money = np.random.default_rng(0).lognormal(3, 1, 300).round(2)
    for prices in (np.append(money, 1e13), (1e9 * money + 0.01).round(2)):
        assert learn_rounding(prices) == Rounding(2)


def test_missing_values_are_values_of_their_own():
    rng = np.random.default_rng(0)
    works = rng.random(400) < 0.8
    rows = pd.DataFrame(
        {
            "job": pd.Categorical(np.where(works, rng.choice(["a", "b"], 400), None)),
            "salary": np.where(works, rng.integers(1, 99, 400), np.nan),
        }
    )
    texts = {relation.text for relation in mine_relations(rows).relations}
    assert "job == missing implies salary == missing" in texts


def test_few_rows_and_empty_columns_say_nothing():
    assert (
        mine_relations(pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 3.0]})).relations == ()
    )
    rows = pd.DataFrame({"a": np.full(50, np.nan), "b": np.arange(50.0)})
    assert mine_relations(rows).relations == ()
