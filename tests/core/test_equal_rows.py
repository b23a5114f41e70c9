"""Equal rows are found as a join of texts finds them, in time that grows with the rows."""

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.frames import number_rows, repeats_earlier


def table(rows, seed, levels=3, columns=4, numbers=1):
    rng = np.random.default_rng(seed)
    out = {}
    for j in range(columns):
        codes = rng.integers(-1, levels, rows)
        out[f"c{j}"] = pd.Categorical.from_codes(
            codes, categories=[f"v{k}" for k in range(levels)]
        )
    for j in range(numbers):
        values = rng.integers(0, levels, rows) / 7
        out[f"n{j}"] = np.where(rng.random(rows) < 0.1, np.nan, values)
    return pd.DataFrame(out)


def keys(frame):
    return list(
        map(tuple, frame.astype(object).where(frame.notna(), "missing").to_numpy())
    )


@pytest.mark.parametrize(("columns", "numbers"), [(4, 0), (3, 2), (0, 3)])
def test_numbers_are_those_of_a_join_of_the_values(columns, numbers):
    asked, *others = (
        table(n, seed, 3, columns, numbers) for n, seed in ((80, 0), (60, 1), (5, 2))
    )
    own, *rest = number_rows(asked, *others)
    number = dict(zip(keys(asked), own, strict=True))
    assert len(set(own.tolist())) == len(number)
    assert [number[key] for key in keys(asked)] == own.tolist()
    for frame, found in zip(others, rest, strict=True):
        assert [number.get(key, -1) for key in keys(frame)] == found.tolist()
    first = pd.Series(keys(asked)).duplicated()
    assert repeats_earlier(own).tolist() == first.tolist()


def test_a_number_that_was_scaled_and_back_is_the_same_and_its_neighbour_is_not():
    values = pd.DataFrame({"n": np.random.default_rng(0).random(2000) * 997 + 0.1})
    low, span = values["n"].min(), np.ptp(values["n"])
    back = pd.DataFrame({"n": (values["n"] - low) / span * span + low})
    assert not back.equals(values)
    own, other = number_rows(values, back)
    np.testing.assert_array_equal(own, other)
    assert (number_rows(values, values + 1e-9)[1] == -1).all()


def test_negative_zero_is_zero_and_missing_equals_missing():
    one = pd.DataFrame({"n": [0.0, np.nan]})
    own, other = number_rows(one, pd.DataFrame({"n": [np.nan, -0.0]}))
    assert own.tolist() == other.tolist()[::-1]


def test_tables_without_rows():
    one = table(3, 0)
    assert [len(n) for n in number_rows(one[:0], one, one[:0])] == [0, 3, 0]
    assert number_rows(one[:0], one)[1].tolist() == [-1, -1, -1]
    assert len(number_rows(one, one[:0])[0]) == 3


def test_many_rows_of_few_values_cost_no_pairs():
    """A billion pairs would take minutes."""
    asked, many = (
        table(n, n, levels=1, columns=12, numbers=0) for n in (10_000, 100_000)
    )
    own, other = number_rows(asked, many)
    inside = many.merge(asked.drop_duplicates(), how="inner")
    assert (other >= 0).sum() == len(inside) > 50_000
    assert len(np.unique(own)) == len(asked.drop_duplicates())
