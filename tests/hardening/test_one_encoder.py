"""The generator's matrix is the integration's, read from the CSV files as AMLB reads them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from amlb_scripts import ask_amlb, read_as_amlb
from exhaustive import count_of, first_of
from imported_files import sklearn_pipeline

from amlb_ext.amlb.coding import write_csv
from amlb_ext.core.assets import asset_path
from amlb_ext.core.tables import make_task
from amlb_ext.hardening.encode import Encoder
from amlb_ext.suite import Coding, fit_to_train

SEEDS = 120


@pytest.fixture(scope="module")
def pipeline():
    return sklearn_pipeline()


def random_frame(rng, n):
    """Columns of every type; declared orders differ from text order, some values are rare."""

    def lose(values, share):
        return pd.Series(values, dtype=object).mask(pd.Series(rng.random(n) < share))

    words = [
        "red",
        "Blue",
        "green",
        "NA",
        "10",
        "9",
        "1e5",
        "x y",
        "Z",
        "a,b",
        "ünï",
        "true",
    ]
    pool = list(rng.permutation(words)[: rng.integers(1, len(words))])
    odds = rng.dirichlet(np.full(len(pool), 0.4))
    days = pd.Series(pd.date_range("2020-01-01", periods=n)).dt.strftime("%d.%m.%Y")
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n) * 10.0 ** rng.integers(-9, 9),
            "gaps": lose(rng.normal(size=n), 0.3).astype(float),
            "whole": rng.integers(-9, 99, n),
            "flag": rng.random(n) < rng.choice([0.5, 0.05]),
            "maybe": lose(rng.random(n) < 0.5, 0.2),
            "text": lose(
                rng.choice(np.array(pool, object), n, p=odds), rng.choice([0, 0.2])
            ),
            "numberlike": rng.choice(np.array(["2", "10", "007", "1.0"], object), n),
            "date": lose(days, rng.choice([0, 0.1])),
            "constant": "same",
            "zero": 0.0,
        }
    )
    frame["level"] = lose(rng.choice(np.array(["low", "mid", "high"], object), n), 0.1)
    # values in the last rows alone: a column without any value in the training rows
    frame["late"] = pd.Series(rng.choice(np.array(["p", "q"], object), n)).mask(
        frame.index < n / 2
    )
    frame["late_number"] = pd.Series(rng.normal(size=n)).mask(frame.index < n / 2)
    frame = frame[list(rng.permutation(frame.columns))]
    frame["y"] = np.resize(["Yes", "no"], n)
    return frame


def random_task(seed):
    rng = np.random.default_rng(seed)
    frame = random_frame(rng, int(rng.integers(30, 80)))
    types = {"text": "categorical", "numberlike": "categorical", "level": "categorical"}
    categories = {}
    for name in (*types, "date"):
        values = sorted(frame[name].dropna().unique())
        categories[name] = tuple(rng.permutation(values))  # a declared order
    types |= {
        "flag": "boolean",
        "maybe": "boolean",
        "date": "date",
        "late": "categorical",
    }
    return make_task(frame, "y", name="t", types=types, categories=categories)


def written_pair(task, folder):
    """Write the first half for training, the other for test; return their features as written."""
    half = (len(task) + 1) // 2
    train, test = task.features.iloc[:half], task.features.iloc[half:]
    fitted = fit_to_train(train, test, task.columns).features
    coding = Coding.of(task)
    folder.mkdir(parents=True, exist_ok=True)
    for rows, name in ((train, "train"), (fitted, "test")):
        write_csv(
            coding.encode(rows, task.target.loc[rows.index]), folder / f"{name}.csv"
        )
    return train, fitted


def both(encoder, train, test):
    encoder = encoder.fit(train)
    return encoder.transform(train), encoder.transform(test)


@pytest.mark.parametrize("seed", first_of(range(SEEDS), 12))
def test_the_integration_sees_the_generators_matrix(pipeline, tmp_path, seed):
    task = random_task(seed)
    ours = both(Encoder(task.columns), *written_pair(task, tmp_path))
    files = read_as_amlb(tmp_path / "train.csv", tmp_path / "test.csv")
    theirs = both(pipeline.Encoder(), *[rows.iloc[:, :-1] for rows in files])
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", first_of(range(20), 5))
def test_unknown_categories_have_a_code_of_their_own_in_both(pipeline, seed):
    """As they come, before anything is replaced."""
    task = random_task(seed)
    half = (len(task) + 1) // 2
    ours = Encoder(task.columns).fit(task.features.iloc[:half])
    codes = ours.transform(task.features.iloc[half:])
    frame = Coding.of(task).encode(task.features, task.target).iloc[:, :-1]
    # pandas reads a column without any training value as numbers: both have it elsewhere
    frame = frame.drop(columns=[c for c in frame if frame[c].iloc[:half].isna().all()])
    theirs = pipeline.Encoder().fit(frame.iloc[:half]).transform(frame.iloc[half:])
    m = ours.n_categorical_
    assert m == len(ours.cards_)
    np.testing.assert_array_equal(codes[:, :m], theirs[:, :m])
    assert (codes[:, :m] <= np.array(ours.cards_) - 1).all()
    for j, column in enumerate(ours.categorical_):
        train = task.features[column.name].iloc[:half]
        values = task.features[column.name].iloc[half:]
        unknown = (~values.isin(train.dropna())).to_numpy()
        assert (codes[unknown, j] == ours.cards_[j] - 1).all()
        assert (codes[~unknown, j] < ours.cards_[j] - 1).all()


def test_made_rows_come_back_as_what_is_written(tmp_path):
    for seed in range(count_of(6, 20)):
        task = random_task(seed)
        train, fitted = written_pair(task, tmp_path)
        encoder = Encoder(task.columns).fit(train)
        for rows in (train, fitted):
            back = encoder.inverse(encoder.transform(rows))
            known = rows.reset_index(drop=True)
            names = [c.name for c in encoder.categorical_]
            pd.testing.assert_frame_equal(back[names], known[names])


AMLB_SCRIPT = r"""
spec = importlib.util.spec_from_file_location("hardsynth_pipeline", cases["script"])
pipeline = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = pipeline
spec.loader.exec_module(pipeline)
for folder in cases["folders"]:
    data = FileLoader(tempfile.mkdtemp()).load(
        ns(train=[folder + "/train.csv"], test=[folder + "/test.csv"], target="y",
           type="binary", features=None, timestamp_column=None), fold=0)
    encoder = pipeline.Encoder().fit(data.train.X)
    np.savez(folder + "/theirs.npz", train=encoder.transform(data.train.X),
             test=encoder.transform(data.test.X))
answers = pd.__version__
"""


@pytest.mark.amlb
def test_amlbs_own_reader_and_old_pandas_see_the_generators_matrix(amlb, tmp_path):
    ours, folders = {}, []
    for seed in range(count_of(12, 40)):
        task, folder = random_task(seed), tmp_path / str(seed)
        ours[folder] = both(Encoder(task.columns), *written_pair(task, folder))
        folders.append(str(folder))
    script = asset_path("frameworks", "HardsynthSklearn", "pipeline.py")
    cases = {"folders": folders, "script": str(script)}
    assert ask_amlb(amlb, AMLB_SCRIPT, cases, tmp_path).startswith("1.")
    for folder, pair in ours.items():
        theirs = np.load(folder / "theirs.npz")
        for a, name in zip(pair, ("train", "test"), strict=True):
            np.testing.assert_allclose(a, theirs[name], rtol=1e-9, atol=1e-12)
