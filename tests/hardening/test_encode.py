import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from amlb_ext.core.task import Column
from amlb_ext.hardening.encode import Encoder

COLUMNS = (
    Column("whole", "integer", (), True),
    Column("color", "categorical", ("red", "green", "blue"), True),
    Column("real", "numeric", (), True),
    Column("empty", "numeric", (), True),
    Column("flag", "boolean", ("False", "True"), False),
)


def tables(rows):
    missing_int = st.one_of(st.none(), st.integers(-(10**6), 10**6))
    # nine decimals: a range of 1e-309, which hypothesis finds now and then, divides nothing
    real = st.floats(-1e6, 1e6).map(lambda number: round(number, 9))
    missing_real = st.one_of(st.none(), real)
    return st.fixed_dictionaries(
        {
            "whole": st.lists(missing_int, min_size=rows, max_size=rows),
            "color": st.lists(
                st.sampled_from(["red", "green", "blue", None]),
                min_size=rows,
                max_size=rows,
            ),
            "real": st.lists(missing_real, min_size=rows, max_size=rows),
            "flag": st.lists(
                st.sampled_from(["False", "True"]), min_size=rows, max_size=rows
            ),
        }
    ).map(canonical)


def canonical(values):
    n = len(values["whole"])
    return pd.DataFrame(
        {
            "whole": pd.Series(values["whole"], dtype="float64"),
            "color": pd.Categorical(values["color"], categories=COLUMNS[1].categories),
            "real": pd.Series(values["real"], dtype="float64"),
            "empty": np.full(n, np.nan),
            "flag": pd.Categorical(values["flag"], categories=COLUMNS[4].categories),
        }
    )


@settings(max_examples=60, deadline=None)
@given(tables(8), tables(5))
def test_there_and_back(train, test):
    encoder = Encoder(COLUMNS).fit(train)
    back = encoder.inverse(encoder.transform(test))
    # of a category that the training rows lack nothing is known: it comes back as missing
    known = test.assign(
        color=test["color"].where(test["color"].isin(train["color"].dropna()))
    )
    pd.testing.assert_frame_equal(back, known, rtol=1e-9, atol=1e-6)
    # whole numbers and categories come back exactly
    for name in ("whole", "color", "flag"):
        assert back[name].equals(known[name])


@settings(max_examples=60, deadline=None)
@given(tables(8), tables(5))
def test_all_categories_of_the_table_come_back_where_they_are_asked_for(train, test):
    encoder = Encoder(COLUMNS, known="table").fit(train)
    back = encoder.inverse(encoder.transform(test))
    pd.testing.assert_frame_equal(back, test, rtol=1e-9, atol=1e-6)


def test_snapping_twice_changes_nothing():
    rng = np.random.default_rng(0)
    train = canonical(
        {
            "whole": [0, 3, 10, None],
            "color": ["red", "blue", None, "red"],
            "real": [0.0, 1.5, 2.0, 7.0],
            "flag": ["True", "False", "True", "True"],
        }
    )
    encoder = Encoder(COLUMNS).fit(train)
    Z = np.column_stack(
        [rng.integers(0, 4, 50), rng.integers(0, 2, 50), rng.random((50, 3))]
    )
    once = encoder.transform(encoder.inverse(Z))
    np.testing.assert_array_equal(once, encoder.transform(encoder.inverse(once)))
