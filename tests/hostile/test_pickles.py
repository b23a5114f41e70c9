"""No pickle is loaded unless the user says so, whatever file it hides in."""

import contextlib
import io
import pickle
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile_files import Bomb, zipped
from sklearn.linear_model import LinearRegression

from amlb_ext.core.errors import HardsynthError, ModelError
from amlb_ext.models.files import load_model
from amlb_ext.models.predictions import read_predictions
from amlb_ext.sources.dataset_files import unpack
from amlb_ext.sources.read_table import read_table


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(40), "y": rng.random(40)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


@pytest.mark.parametrize("name", ["m.pkl", "m.pickle", "m.joblib", "M.PKL", "m.JOBLIB"])
def test_a_pickled_baseline_is_refused(tmp_path, mark, name):
    path = tmp_path / name
    path.write_bytes(pickle.dumps(Bomb(mark)))
    with pytest.raises(ModelError, match="runs any code"):
        load_model(path, trust_pickle=False)


def test_a_pickled_baseline_stops_the_command(tmp_path, mark, table, refused):
    path = tmp_path / "m.pkl"
    path.write_bytes(pickle.dumps(Bomb(mark)))
    words = ["generate", str(table), "-o", str(tmp_path / "out")]
    words += ["--baseline", str(path)]
    assert "--trust-pickle" in refused(words, "--folds 1 --certificate none -j 1 -q")
    assert not [file for file in tmp_path.glob("out/**/*") if file.is_file()]


def test_a_pickle_is_a_bomb_when_it_is_trusted(tmp_path):
    """The tests above would see one."""
    path = tmp_path / "m.pkl"
    path.write_bytes(pickle.dumps(Bomb(tmp_path / "ran")))
    load_model(path, trust_pickle=True)
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["m.skops", "m.SKOPS"])
def test_a_pickle_under_the_name_of_skops(tmp_path, mark, name):
    pytest.importorskip("skops.io", reason="skops is an optional extra")
    path = tmp_path / name
    path.write_bytes(pickle.dumps(Bomb(mark)))
    with pytest.raises(ModelError, match="cannot load"):
        load_model(path, trust_pickle=False)


def test_arrays_with_pickled_objects_inside_skops(tmp_path, mark):
    """skops loads arrays by numpy, which must not unpickle what stands in them."""
    skops_io = pytest.importorskip("skops.io", reason="skops is an optional extra")
    path, inside = tmp_path / "m.skops", io.BytesIO()
    skops_io.dump(LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0]), path)
    np.save(inside, np.array([Bomb(mark)], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(path) as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    assert any(name.endswith(".npy") for name in members)
    with zipfile.ZipFile(path, "w") as packed:
        for name, data in members.items():
            packed.writestr(name, inside.getvalue() if name.endswith(".npy") else data)
    with pytest.raises(ModelError, match="cannot load"):
        load_model(path, trust_pickle=False)


def test_archives_keep_no_pickle(tmp_path, mark):
    names = ("t_train.pkl", "t.pickle", "t.joblib", "t.npy", "__init__.py")
    bombs = [(name, pickle.dumps(Bomb(mark))) for name in names]
    path = zipped(tmp_path / "a.zip", ("t.csv", "a,y\n1,2\n"), *bombs)
    found = unpack(path, tmp_path / "cache")
    assert [file.name for file in found.rglob("*")] == ["t.csv"]


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.arff"])
def test_a_pickle_under_the_name_of_a_table(tmp_path, mark, name):
    path = tmp_path / name
    path.write_bytes(pickle.dumps(Bomb(mark)))
    with pytest.raises(HardsynthError):
        read_table(path)


def parquet(path, column, **metadata):
    schema = pa.schema(
        [pa.field("a", column.type, metadata=metadata), pa.field("y", pa.int64())]
    )
    plain = pa.table([column, pa.array(range(len(column)))], schema=schema)
    pq.write_table(plain, path)


def test_parquet_types_and_objects_that_are_pickles(tmp_path, mark):
    """Arrow's old Python extension types carried pickles (CVE-2023-47248)."""
    bomb = pickle.dumps(Bomb(mark))
    path = tmp_path / "t.parquet"
    names = {
        "ARROW:extension:name": "arrow.py_extension_type",
        "ARROW:extension:metadata": bomb,
    }
    parquet(path, pa.array([1.0, 2.0]), **names)
    with contextlib.suppress(HardsynthError):
        read_table(path)
    parquet(path, pa.array([bomb, bomb]))
    with pytest.raises(HardsynthError, match="bytes"):
        read_table(path)


def test_predictions_that_are_pickles(tmp_path, mark):
    for name in ("p.csv", "p.parquet"):
        path = tmp_path / name
        path.write_bytes(pickle.dumps(Bomb(mark)))
        with pytest.raises(ModelError):
            read_predictions(path, None)
