"""Slices: planted regions come back, noise does not, and the numbers are those of the judges.

Their conditions: words that say which rows are meant, and bounds that are short but exact.
"""

import itertools

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.task import Column
from amlb_ext.units.conditions import (
    WIDTH,
    CodedColumn,
    Condition,
    plain_number,
)
from amlb_ext.units.slices import (
    COLUMNS,
    _p_value,
    _share_interval,
    search_and_judge,
)

SCHEMA = (
    Column("x1", "numeric"),
    Column("x2", "numeric", (), True),
    Column("k", "integer"),
    Column("c", "categorical", tuple("abcd")),
)


def table(n, rng):
    return pd.DataFrame(
        {
            "x1": rng.random(n),
            "x2": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "k": rng.integers(0, 6, n).astype(float),
            "c": pd.Categorical(rng.choice(list("abcd"), n)),
        }
    )


def planted(n, rng, inside=0.7, outside=0.03):
    x = table(n, rng)
    region = ((x["x1"] > 0.7) & (x["c"] == "a")).to_numpy()
    return x, rng.random(n) < np.where(region, inside, outside)


def slices(x, bad, schema=SCHEMA, groups=None, seed=0, **settings):
    groups = np.arange(len(x)) if groups is None else groups
    rng = np.random.default_rng(seed)
    return search_and_judge(x, schema, bad, groups, rng, **settings).table


@pytest.mark.parametrize("seed", range(2))
def test_a_planted_region_is_found(seed):
    found = slices(*planted(1200, np.random.default_rng(seed)), seed=seed)
    text = found["slice"][0]
    assert "x1 > 0.7" in text or "x1 > 0.6" in text
    assert "c is a" in text
    assert found["share"][0] > 0.5
    assert (found["low"] > found["base"]).all()
    assert tuple(found.columns) == COLUMNS


def test_noise_gives_no_slice():
    hits = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        hits += len(slices(table(400, rng), rng.random(400) < 0.1, seed=seed)) > 0
    # at level .05, P(more than 4 of 20) = .003
    assert hits <= 4


def test_repeats_of_a_row_do_not_pass_for_evidence():
    hits = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        ids = np.repeat(np.arange(120), 10)
        x, bad = (
            table(120, rng).iloc[ids].reset_index(drop=True),
            (rng.random(120) < 0.2)[ids],
        )
        hits += len(slices(x, bad, groups=ids, seed=seed)) > 0
    assert hits <= 4  # P(more than 4 of 20) = .003


def grouped(rng, effect):
    """Rows of 150 groups that fail together, with features of their own."""
    groups = np.repeat(np.arange(150), rng.integers(1, 9, 150))
    n = len(groups)
    shared = rng.normal(size=(150, 4))[groups]
    x = pd.DataFrame(0.7 * shared + 0.7 * rng.normal(size=(n, 4)), columns=list("pqrs"))
    logit = rng.normal(size=150)[groups] - 2 + effect * (x["p"] > 0.8)
    return x, (rng.random(n) < 1 / (1 + np.exp(-logit))).to_numpy(), groups


def test_rows_of_a_group_are_inside_a_slice_by_their_own_features():
    """The first row of a group does not tell for the others, and groups that fail are no slice."""
    schema = [Column(name, "numeric") for name in "pqrs"]
    found, falsely = 0, 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x, bad, groups = grouped(rng, effect=2.0)
        judged = search_and_judge(x, schema, bad, groups, rng)
        found += len(judged.table) > 0
        for rows, n_bad, inside in zip(
            judged.table["rows"], judged.table["bad"], judged.inside, strict=True
        ):
            assert (rows, n_bad) == (inside.sum(), bad[inside].sum())
        x, bad, groups = grouped(rng, effect=0.0)
        falsely += len(search_and_judge(x, schema, bad, groups, rng).table) > 0
    # .9 each, P(fewer than 6 of 10) = .002; by first rows .4
    assert found >= 6
    assert falsely <= 3  # P(more of 10) = .001


def test_numbers_are_those_of_the_judging_half():
    x, bad = planted(1200, np.random.default_rng(3))
    found = slices(x, bad)
    for text, rows, failing in found[["slice", "rows", "bad"]].itertuples(index=False):
        if "(" in text or "is" not in text.split() or "=" in text:
            continue
        query = text.replace("c is a", "c == 'a'")
        inside = x.eval(query).to_numpy()
        assert 0.4 * inside.sum() < rows < 0.6 * inside.sum()
        assert failing <= (inside & bad).sum()
    assert found["lift"].to_numpy() == pytest.approx(found["share"] / found["base"])
    assert (found["p_holm"] >= found["p"]).all()
    assert found["p"].is_monotonic_increasing


def test_p_values_agree_with_all_splits():
    times, hits = np.array([2.0, 1, 3, 1, 2, 1]), np.array([2.0, 0, 1, 1, 0, 0])
    inside = np.array([True, False, False, True, False, False])
    excess = hits - hits.sum() / times.sum() * times
    sums = [excess[list(s)].sum() for s in itertools.combinations(range(6), 2)]
    exact = np.mean(np.array(sums) >= excess[inside].sum() - 1e-9)
    p = _p_value(times, hits, inside=inside, rng=np.random.default_rng(0))
    assert p == pytest.approx(exact, abs=0.006)  # 3.8 standard errors of 99,999 draws
    # once each: of 4 rows 2 bad, both inside a slice of 2: 1 of 6 splits
    flags = np.array([1.0, 1, 0, 0])
    rng = np.random.default_rng(0)
    p = _p_value(np.ones(4), flags, inside=flags > 0, rng=rng)
    assert p == pytest.approx(1 / 6)


def test_wilson_covers():
    rng = np.random.default_rng(0)
    for share, n in ((0.05, 60), (0.3, 25)):
        covered = 0
        for count in rng.binomial(n, share, 2000):
            low, high = _share_interval(count / n, n)
            covered += low <= share <= high
        assert covered / 2000 > 0.92


def test_few_rows_constant_and_empty_columns():
    rng = np.random.default_rng(0)
    assert len(slices(table(30, rng), rng.random(30) < 0.5)) == 0
    assert len(slices(table(0, rng), np.zeros(0, bool))) == 0
    x = pd.DataFrame(
        {
            "one": np.ones(300),
            "none": np.full(300, np.nan),
            "no": pd.Categorical([None] * 300, categories=["u"]),
            "same": pd.Categorical(["u"] * 300),
        }
    )
    schema = [
        Column(c, "numeric" if c in ("one", "none") else "categorical") for c in x
    ]
    bad = rng.random(300) < 0.3
    assert len(slices(x, bad, schema)) == 0
    x["real"] = np.where(bad, 5.0, 1.0)
    assert slices(x, bad, [*schema, Column("real", "numeric")])["slice"].tolist() == [
        "real = 5"
    ]


def test_missing_values_are_said():
    rng = np.random.default_rng(0)
    gap = rng.random(600) < 0.2
    x = pd.DataFrame({"income": np.where(gap, np.nan, rng.normal(size=600))})
    bad = rng.random(600) < np.where(gap, 0.6, 0.05)
    schema = [Column("income", "numeric", (), True)]
    assert slices(x, bad, schema)["slice"][0] == "income is missing"
    x = pd.DataFrame(
        {"job": pd.Categorical(np.where(gap, None, rng.choice(["u", "v"], 600)))}
    )
    assert (
        slices(x, bad, [Column("job", "categorical")])["slice"][0] == "job is missing"
    )
    bad = rng.random(600) < np.where(gap | (x["job"] == "u"), 0.6, 0.05)
    assert (
        slices(x, bad, [Column("job", "categorical")])["slice"][0]
        == "job is u or missing"
    )


def test_text_of_the_user_is_tamed():
    rng = np.random.default_rng(0)
    evil = ["<script>", "a, b (c)", "", "line\nbreak", "x" * 200]
    values = rng.choice(evil, 900)
    name = "n" * 80 + "\n</td>"
    x = pd.DataFrame({name: pd.Categorical(values)})
    bad = rng.random(900) < np.where(np.isin(values, evil[1:]), 0.5, 0.02)
    text = slices(x, bad, [Column(name, "text")])["slice"][0]
    assert "\n" not in text
    assert text == "n" * (WIDTH - 1) + "… is not <script>"
    bad = rng.random(900) < np.where(np.isin(values, evil[1:3]), 0.6, 0.02)
    text = slices(x, bad, [Column(name, "text")])["slice"][0]
    assert "“a, b (c)”" in text
    assert "“”" in text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (2.0, np.inf, "n > 2"),
        (-np.inf, 2.0, "n <= 2"),
        (1.0, 4.0, "1 < n <= 4"),
        (2.0, 3.0, "n = 3"),
        (4.0, np.inf, "n = 5"),
        (-np.inf, 0.0, "n = 0"),
        (-1.0, 9.0, ""),
    ],
)
def test_ranges_of_whole_numbers(low, high, text):
    x = np.arange(6.0)
    coded = CodedColumn(name="n", x=x, distinct=x, is_whole=True)
    assert coded.describe(Condition(low, high), is_alone=True) == text


def test_rounding_moves_no_row_of_the_finding_half():
    rng = np.random.default_rng(0)
    x = np.sort(rng.normal(size=500) * 1000 + 123456)
    coded = CodedColumn(name="n", x=x, distinct=x)
    for i in range(1, 499):
        t = float((x[i] + x[i + 1]) / 2)
        raw, settled = Condition(high=t), coded.rounded(Condition(high=t))
        np.testing.assert_array_equal(coded.matches(raw), coded.matches(settled))
        assert len(plain_number(settled.high)) <= len(plain_number(t))


@pytest.mark.parametrize("flags", ["none", "all", "two"])
def test_too_little_to_judge_gives_an_empty_table(flags):
    x = table(200, np.random.default_rng(0))
    bad = np.full(200, flags == "all")
    bad[:2] |= flags == "two"
    found = slices(x, bad)
    assert len(found) == 0
    assert tuple(found.columns) == COLUMNS
