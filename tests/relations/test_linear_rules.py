"""Numbers on a line: found with their rounding, kept by made rows, and not taken from codes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from amlb_ext.relations.equations import Equation, read_equation
from amlb_ext.relations.feasible import Relations
from amlb_ext.relations.kinds import parse_relation
from amlb_ext.relations.mining import mine_relations


def linear_texts(rows):
    mined = mine_relations(rows)
    return [found.text for found in mined.relations if found.kind == "linear"]


def mined_relations(rows, targets=()):
    mined = mine_relations(rows)
    forms = {form.column: form for form in mined.forms}
    return Relations(relations=mined.relations, forms=forms, targets=targets)


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def test_the_shortest_line_that_fits_is_written(rng):
    x = rng.normal(15, 8, 300).round(2)
    rows = pd.DataFrame({"x": x, "exact": 3 - 2 * x, "rounded": (1.0832 * x).round(2)})
    assert linear_texts(rows[["x", "exact"]]) == ["exact == -2 * x + 3"]
    assert linear_texts(rows[["x", "rounded"]]) == [
        "rounded == 1.0832 * x within 0.005"
    ]
    # the column with fewer digits follows from the other
    fine = rng.uniform(0, 900, 400).round(2)
    [text] = linear_texts(pd.DataFrame({"coarse": (fine / 10).round(), "fine": fine}))
    assert text == "coarse == 0.1 * fine within 0.5"


def test_what_is_no_line_is_not_taken_for_one(rng):
    x = rng.normal(size=300).round(3)
    off = x * 2
    off[7] += 0.01
    rows = pd.DataFrame({"x": x, "off": off, "noisy": x + rng.normal(0, 0.01, 300)})
    assert linear_texts(rows) == []
    # two codes of two values always lie on a line
    codes = pd.DataFrame({"a": rng.integers(0, 2, 300) * 1.0})
    assert linear_texts(codes.assign(b=5 - 3 * codes["a"])) == []
    # equal columns are a sum of one summand
    assert linear_texts(pd.DataFrame({"a": x, "b": x})) == []


def test_of_many_columns_on_one_line_each_is_tied_to_one_other(rng):
    x = rng.normal(0, 50, 200).round(2)
    # as exact as x is, so that each lies on a line with each other one
    rows = pd.DataFrame({f"x{k}": (k + 1) * x + k for k in range(12)})
    relations = mined_relations(rows)
    assert len(linear_texts(rows)) == 11
    assert len(relations.derived) == 11
    made = rows + rng.normal(0, 5, rows.shape)
    assert not relations.broken(relations.correct(made, rows)).any()


def test_made_rows_stay_on_the_line_and_move_along_it(rng):
    gross = rng.gamma(3, 20, 500).round(2)
    net = (0.81 * gross).round(2)
    real = pd.DataFrame({"net": net, "gross": gross, "tax": (gross - net).round(2)})
    relations = mined_relations(real)
    parents = real.iloc[:200].reset_index(drop=True)
    made = parents.assign(gross=parents["gross"] + rng.normal(0, 5, 200))
    corrected = relations.correct(made, parents)
    assert (corrected["gross"] != parents["gross"]).mean() > 0.9
    assert np.abs(corrected["net"] - 0.81 * corrected["gross"]).max() <= 0.005 + 1e-9
    # a sum of two rounded multiples may be off by a unit, and then all three are put back
    rows, _, _ = relations.put_back(corrected, parents)
    assert not relations.broken(rows, parents).any()
    assert (rows["gross"] != parents["gross"]).mean() > 0.5


@pytest.mark.parametrize(
    ("scale", "decimals"), [(2.0, 1), (-1.0832, 2), (1e-07, None), (1.0, 3)]
)
def test_a_mined_line_that_is_declared_is_computed_as_well(rng, scale, decimals):
    x = rng.normal(30, 200, 300).round(1)
    y = scale * x - 7
    if decimals is not None:
        y = y.round(decimals)
    rows = pd.DataFrame({"x": x, "two words": y})
    [text] = linear_texts(rows)
    mined = mine_relations(rows).relations[0]
    declared = read_equation(parse_relation(text, rows), rows)
    assert (declared.text, declared.solvable) == (mined.text, mined.solvable)
    assert declared.terms == mined.terms


@pytest.mark.parametrize(
    "text",
    ["a * a == 4", "t == u", "a % 2 == b", "a == b or b == 2", "a / (b + c) == 2"],
)
def test_a_declared_rule_that_computes_nothing_stays_a_rule(text):
    numbers = {name: [1.0, 2.0] for name in "abc"}
    texts = {name: pd.Categorical(["x", "y"]) for name in "tu"}
    rows = pd.DataFrame({**numbers, **texts})
    assert not isinstance(read_equation(parse_relation(text, rows), rows), Equation)


@pytest.mark.parametrize("shares_gaps", [True, False])
def test_gaps_are_those_of_real_rows(rng, shares_gaps):
    x = rng.normal(size=300).round(2)
    y = 4 * x + 1
    x[:20] = np.nan
    y[:20] = np.nan
    if not shares_gaps:
        y[20:40] = np.nan
    real = pd.DataFrame({"x": x, "y": y})
    # a number beyond all real ones becomes the largest, as everywhere
    made = pd.DataFrame({"x": [0.5, 0.5, np.nan], "y": [90.0, np.nan, 90.0]})
    corrected = mined_relations(real).correct(made, made)
    expected = [3.0, 3.0, np.nan] if shares_gaps else [3.0, np.nan, real["y"].max()]
    np.testing.assert_array_equal(corrected["y"], expected)
