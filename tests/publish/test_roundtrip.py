"""What was published, read back: by a plain OpenML client in a fresh cache, and as a source."""

import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from exhaustive import first_of
from small_suites import publish, write_suite

from amlb_ext.core.config import SourceConfig
from amlb_ext.publish import plan_suite
from amlb_ext.sources import open_specs
from amlb_ext.suite import SuiteFiles

#: Two pairs that fit one of the procedures exactly, small and large, and two that fit none.
#: Training and test rows, and how they are fitted; `test_rows` has the arithmetic for all sizes.
SIZES = [
    (900, 100, "repeat"),
    (336, 164, "drop"),
    (34, 16, "repeat"),
    (41, 9, "drop"),
    (41, 9, "repeat"),
    (34, 16, "drop"),
    (333, 80, "repeat"),
    (333, 80, "drop"),
    (900, 100, "drop"),
    (336, 164, "repeat"),
    (401, 99, "repeat"),
    (401, 99, "drop"),
]


@contextmanager
def plain_client(loopback, folder):
    """The client as anyone has it, but for its server and an empty cache."""
    import openml

    config = openml.config
    was = (config.server, config.apikey, config._root_cache_directory)
    config.server, config.apikey = loopback.url, ""
    config.set_root_cache_directory(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield openml
    finally:
        config.server, config.apikey = was[:2]
        config.set_root_cache_directory(was[2])


@pytest.mark.parametrize(("train", "test", "fit"), first_of(SIZES, 2))
def test_a_plain_client_splits_as_we_do(tmp_path, loopback, train, test, fit):
    tasks = {
        kind: (kind, train, test) for kind in ("binary", "multiclass", "regression")
    }
    root = write_suite(tmp_path / "hard", tasks)
    report = publish(root, loopback, only=list(tasks), fit=fit)
    assert report.ok
    units = {
        p.unit.name: p.unit for p in plan_suite(root, only=list(tasks), fit=fit).units
    }
    with plain_client(loopback, tmp_path / "cache") as openml:
        suite = openml.study.get_suite(report.suite_id)
        assert suite.tasks == [o.task_id for o in report.outcomes]
        assert suite.data == [o.data_id for o in report.outcomes]
        for outcome in report.outcomes:
            unit = units[outcome.name]
            task = openml.tasks.get_task(
                outcome.task_id, download_data=False, download_qualities=False
            )
            data = openml.datasets.get_dataset(
                task.dataset_id, download_data=True, download_qualities=False
            )
            assert task.get_split_dimensions() == (1, 1, 1)
            trained, tested = task.get_train_test_split_indices(
                fold=0, repeat=0, sample=0
            )
            wanted = unit.rows.test_positions
            assert tested.tolist() == wanted.tolist()
            assert (
                trained.tolist()
                == np.setdiff1d(np.arange(len(unit.rows)), wanted).tolist()
            )
            features, target, _, names = data.get_data(target=task.target_name)
            assert names == [a.name for a in unit.attributes[:-5]]
            _check_rows(unit, features, target, trained, tested)
            hidden, _, _, _ = data.get_data(
                include_row_id=True, include_ignore_attribute=True
            )
            side = hidden["hardsynth_split"].astype(str).to_numpy()
            assert set(side[trained]) == {"train"}
            assert set(side[tested]) == {"test"}


def _check_rows(unit, features, target, trained, tested):
    """Every row of the client is the row of the suite's file that it names."""
    assert len(trained) == len(unit.rows.train)
    paths = unit.suite.pair(unit.amlb_task.name, unit.fold)
    repeated = np.tile(unit.rows.test, unit.rows.repeats)
    for path, rows, own in zip(
        paths, (trained, tested), (unit.rows.train, repeated), strict=True
    ):
        raw = pd.read_csv(path, keep_default_na=False, na_values=[""], dtype=str).iloc[
            own
        ]
        for column, name in zip(
            raw.columns, [*features.columns, unit.target], strict=True
        ):
            came = (target if name == unit.target else features[name]).iloc[rows]
            wanted = raw[column].to_numpy(dtype=object)
            if pd.api.types.is_numeric_dtype(came) and came.dtype != bool:
                np.testing.assert_array_equal(came.astype(float), wanted.astype(float))
            else:
                texts = came.astype(object).where(came.notna(), None)
                absent = pd.isna(wanted)
                assert pd.isna(texts).tolist() == absent.tolist()
                assert [str(v) for v in texts[~absent]] == wanted[~absent].tolist()


@pytest.mark.parametrize(
    ("kind", "fit"),
    first_of(
        [
            ("binary", "repeat"),
            ("multiclass", "drop"),
            ("regression", "repeat"),
            ("regression", "drop"),
            ("binary", "drop"),
            ("multiclass", "repeat"),
        ],
        3,
    ),
)
def test_a_published_suite_is_a_source_of_the_same_rows(
    tmp_path, own_cache, loopback, kind, fit
):
    root = write_suite(tmp_path / "hard", {"t": (kind, (150, 31), (90, 20))})
    report = publish(root, loopback, only=["t", "t_region"], fit=fit)
    assert report.ok
    options = SourceConfig(
        openml_server=loopback.url,
        openml_cache=str(tmp_path / "cache"),
    )
    suite = SuiteFiles.load(root)
    units = {
        p.unit.name: p.unit
        for p in plan_suite(root, only=["t", "t_region"], fit=fit).units
    }
    refs = list(open_specs([f"openml/s/{report.suite_id}"], options))
    assert len(refs) == 4
    for ref in refs:
        task = ref.load()
        unit = units[task.name]
        assert task.kind.value == kind
        assert task.origin.licence == "CC BY 4.0"
        assert task.target_name == unit.target
        assert [c.name for c in task.columns] == [a.name for a in unit.attributes[:-5]]
        (fold,) = task.folds
        for rows, own, path in zip(
            (fold.train, fold.test),
            (unit.rows.train, np.tile(unit.rows.test, unit.rows.repeats)),
            suite.pair(unit.amlb_task.name, unit.fold),
            strict=True,
        ):
            # one way to the table: the suite's own coding, whose written values are the source's
            raw = suite.coding("t").read_csv(path).iloc[own].reset_index(drop=True)
            came = task.features.iloc[rows].reset_index(drop=True)
            came[unit.target] = task.target.iloc[rows].reset_index(drop=True)
            for theirs, ours in zip(came.columns, raw.columns, strict=True):
                left, right = came[theirs].astype(object), raw[ours].astype(object)
                assert (
                    left.where(left.notna(), None).tolist()
                    == right.where(right.notna(), None).tolist()
                )
        once = set(unit.rows.test)
        assert len(fold.test) == unit.rows.repeats * len(once)
