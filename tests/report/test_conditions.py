"""Conditions: words that say which rows are meant, and bounds that are short but exact."""

import numpy as np
import pytest

from amlb_ext.report.conditions import (
    CodedColumn,
    Condition,
    plain_number,
    quote_category,
)


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


def test_texts_of_names_and_numbers():
    assert quote_category("x" * 61) == "x" * 59 + "…"
    assert quote_category("it's") == "it's"
    assert quote_category(" a") == "“a”"
    assert plain_number(1234567.0) == "1234567"
