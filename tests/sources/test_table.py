"""Joining tables and recognising rows across folds."""

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from amlb_ext.sources.table import Table, join_folds


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=4, max_size=12),
    st.integers(2, 4),
    st.integers(0, 99),
)
def test_cross_validation_files_become_the_table_again(values, folds, seed):
    """Each row once, duplicates included, and each fold holds exactly its files' rows."""
    frame = pd.DataFrame({"a": values, "b": [str(v) if v else None for v in values]})
    part = np.random.default_rng(seed).integers(0, folds, len(frame))
    pairs = [
        (
            Table("train", frame[part != k].reset_index(drop=True)),
            Table("test", frame[part == k].reset_index(drop=True)),
        )
        for k in range(folds)
    ]
    table = join_folds(pairs)
    assert sorted(table.frame["a"]) == sorted(values)
    for fold, (train, test) in zip(table.folds, pairs, strict=True):
        assert not set(fold.train) & set(fold.test)
        for positions, file in ((fold.train, train), (fold.test, test)):
            assert (
                table.frame["a"].to_numpy()[positions].tolist()
                == file.frame["a"].tolist()
            )


def test_folds_of_different_rows_keep_all_rows():
    parts = [Table(str(k), pd.DataFrame({"a": [10 * k, 10 * k + 1]})) for k in range(4)]
    table = join_folds([(parts[0], parts[1]), (parts[2], parts[3])])
    assert len(table.frame) == 8
    assert table.folds[1].test.tolist() == [6, 7]
