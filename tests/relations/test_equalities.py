"""Equalities that tables have, planted: kept by made rows, and not found where they do not hold."""

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.config import RelationsConfig
from amlb_ext.relations.declared import settle_relations


def planted(seed, n=600):
    """Formulas of three and four columns, shares, a one-hot group of numbers, a product."""
    rng = np.random.default_rng(seed)
    u, v, w = rng.gamma(2, 30, (3, n)).round(2)
    table = pd.DataFrame({"u": u, "v": v, "w": w})
    table["excess"] = (2 * u - v - w).round(2)
    table["mean"] = ((u + v + w) / 3).round(3)
    colour = rng.integers(0, 3, n)
    for code, name in enumerate(("red", "green", "blue")):
        table[name] = (colour == code).astype(float)
    table["quantity"] = rng.integers(1, 40, n).astype(float)
    table["price"] = rng.gamma(2, 20, n).round(2)
    table["total"] = (table["quantity"] * table["price"]).round(2)
    shares = (100 * rng.dirichlet([2, 3, 4, 5], n)).round(1)
    for part, name in enumerate(("sand", "silt", "clay", "loam")):
        table[name] = shares[:, part]
    return table


def settled(table):
    return settle_relations(RelationsConfig(mine=True), table, ["no target"])[0]


KEPT = {
    "excess": lambda t: (t["excess"] - (2 * t["u"] - t["v"] - t["w"])).abs() < 0.016,
    "mean": lambda t: (t["mean"] - (t["u"] + t["v"] + t["w"]) / 3).abs() < 0.006,
    "one-hot": lambda t: t[["red", "green", "blue"]].sum(axis=1) == 1,
    "product": lambda t: (t["total"] - t["quantity"] * t["price"]).abs() < 0.006,
    "shares": lambda t: (
        (t[["sand", "silt", "clay", "loam"]].sum(axis=1) - 100).abs() < 0.25
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_made_rows_keep_what_is_planted(name):
    parents = planted(0)
    relations = settled(parents)
    made = planted(1).sample(frac=1, random_state=0, ignore_index=True)
    # every column of another row: nothing holds
    rng = np.random.default_rng(2)
    for column in made:
        made[column] = rng.permutation(made[column].to_numpy())
    assert not KEPT[name](made).all()
    corrected = relations.correct(made, parents)
    mended, _, _ = relations.put_back(corrected, parents)
    assert KEPT[name](mended).all()
    again, _, _ = relations.put_back(mended, parents)
    pd.testing.assert_frame_equal(again, mended)


def test_what_holds_but_for_noise_is_no_relation():
    table = planted(3)
    rng = np.random.default_rng(4)
    noisy = table.assign(
        excess=table["excess"] * (1 + 0.01 * rng.normal(size=len(table))),
        total=table["total"] * (1 + 0.01 * rng.normal(size=len(table))),
        mean=rng.permutation(table["mean"]),
    ).drop(columns=["sand", "red"])
    texts = " ".join(relation.text for relation in settled(noisy).relations)
    assert not any(name in texts for name in ("excess ==", "total ==", "mean =="))


def test_a_column_of_zeros_is_the_quotient_of_nothing():
    rng = np.random.default_rng(5)
    gain = np.where(rng.random(600) < 0.1, rng.gamma(2, 500, 600).round(), 0.0)
    loss = np.where((gain == 0) & (rng.random(600) < 0.1), 300.0, 0.0)
    noise = rng.normal(size=600)
    table = pd.DataFrame({"gain": gain, "loss": loss, "noise": noise})
    assert not any("/" in relation.text for relation in settled(table).relations)


def test_the_closest_of_product_and_quotient_is_kept():
    rng = np.random.default_rng(6)
    table = pd.DataFrame({"cost": rng.normal(60, 9, 400).round(1)})
    table["hours"] = rng.uniform(2, 9, 400).round(2)
    table["rate"] = (table["cost"] / table["hours"]).round(3)
    relations = settled(table)
    texts = [relation.text for relation in relations.relations]
    assert "rate == cost / hours within 0.0005" in texts
    assert not any("*" in text for text in texts)
    made = table.assign(hours=rng.permutation(table["hours"]))
    mended = relations.correct(made, table)
    miss = (mended["rate"] - mended["cost"] / mended["hours"]).abs()
    assert (mended["hours"] == made["hours"]).all()
    in_range = mended["rate"].between(table["rate"].min(), table["rate"].max())
    assert (miss[in_range] < 0.00051).all()


@pytest.mark.parametrize("decimals", [1, 2])
def test_rounding_of_one_column_hides_no_noise_of_another(decimals):
    rng = np.random.default_rng(7)
    table = pd.DataFrame(rng.normal(size=(400, 3)).round(decimals), columns=list("abc"))
    exact = 2 * table["a"] - table["b"] - table["c"]
    table["near"] = (exact + 0.02 * rng.normal(size=400)).round(3)
    assert not any("near" in relation.text for relation in settled(table).relations)
    table["near"] = exact.round(1)
    assert any("near" in relation.text for relation in settled(table).relations)
