"""Data frames with further columns."""

from __future__ import annotations

import pandas as pd

from amlb_ext.core.frames import with_columns


def test_a_table_of_many_categories_takes_a_column_without_a_warning():
    # pandas warns beyond a hundred columns that it cannot keep in one block; here that is an error
    categories = {f"c{number}": pd.Categorical(["a", "b"]) for number in range(150)}
    frame = pd.DataFrame(categories, index=[5, 3])
    labels = pd.Series(pd.Categorical(["no", "yes"]), index=[5, 3])
    found = with_columns(frame, {"c7": [1, 2], "y": labels})
    assert list(found)[-2:] == ["c7", "y"]
    assert found.loc[3, ["c7", "y"]].tolist() == [2, "yes"]
    assert found["y"].dtype == labels.dtype
    pd.testing.assert_frame_equal(found[list(frame)[:7]], frame.iloc[:, :7])
