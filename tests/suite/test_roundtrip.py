"""Random tasks: written pairs keep AMLB's rules, and files lead back to the values.

``random_task`` is shared with ``test_suite_amlb``, which asks AMLB itself.
"""

from __future__ import annotations

import pandas as pd
from exhaustive import count_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_tasks import random_task, split
from written_suites import put_fold

from amlb_ext.amlb.coding import write_csv
from amlb_ext.core.json_values import to_json_values
from amlb_ext.suite import Coding, Layout, Part, check_pair
from amlb_ext.suite.read_record import record_from_json

QUICK = settings(
    max_examples=count_of(12, 25),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
SEEDS = st.integers(0, 2**32 - 1)


@QUICK
@given(seed=SEEDS)
def test_files_lead_back_to_the_values(tmp_path, seed):
    task = random_task(seed)
    coding = record_from_json(Coding, to_json_values(Coding.of(task)))
    path = tmp_path / "part.csv"
    write_csv(coding.encode(task.features, task.target), path)
    features, target = coding.decode(coding.read_csv(path))
    pd.testing.assert_frame_equal(features, task.features)
    pd.testing.assert_series_equal(target, task.target)


@QUICK
@given(seed=SEEDS)
def test_every_pair_keeps_the_rules_and_only_said_cells_change(tmp_path, seed):
    task, layout = random_task(seed), Layout(tmp_path / str(seed))
    coding = Coding.of(task)
    train, test = split(task, seed)
    record = put_fold(layout, task, train, {"": Part(test)})
    if "" not in record.parts:
        assert any("left out" in note for note in record.notes)
        assert train.target.nunique() < 2 or not set(test.target) & set(train.target)
        return
    part = record.parts[""]
    pair = layout.at(part.train), layout.at(part.test)
    assert check_pair(*pair, coding.written_target, task.kind.value) == []
    back, target = coding.decode(coding.read_csv(pair[1]))
    about = pd.read_parquet(layout.at(part.provenance))
    source = task.features.iloc[about["source_row"]].reset_index(drop=True)
    truth = task.target.iloc[about["source_row"]].reset_index(drop=True)
    pd.testing.assert_series_equal(target, truth)
    assert len(test) - len(target) == part.dropped
    same = (back.astype(object) == source.astype(object)) | (
        back.isna() & source.isna()
    )
    written = {column.name: column.written for column in coding.columns}
    changed = {
        written[name]: int((~same[name]).sum()) for name in same if not same[name].all()
    }
    assert changed == part.substituted
    said = about["substituted"].map(lambda text: len(text) > 0)
    assert list(said) == list((~same).any(axis=1))
