"""Unlabelled rows: how they are read, and what they add to a certificate."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from planted_suites import certify_rows

from amlb_ext.core.config import build_config
from amlb_ext.core.errors import ConfigError, DataError, SourceError
from amlb_ext.core.row_losses import brier_loss, squared_error
from amlb_ext.core.task import Column
from amlb_ext.pipeline import Request, generate_suite
from amlb_ext.sources.features import find_copies, read_features
from amlb_ext.stats.prediction_powered import prediction_powered_mean
from amlb_ext.suite import SuiteFiles
from amlb_ext.validity import Certificate, certify_suite, read_task
from amlb_ext.validity.unlabelled import (
    assign_unlabelled_files,
    expected_contrast,
    read_unlabelled,
)

# what is planted here is plain to a few trees, too
pytestmark = pytest.mark.usefixtures("light_models")

COLUMNS = (Column("a", "numeric"), Column("b", "categorical", ("u", "v"), True))


def draw(n, rng):
    X = rng.random((n, 3))
    y = (X[:, 0] > 0.5) ^ ((X[:, 1] > 0.6) & (X[:, 2] > 0.4)) ^ (rng.random(n) < 0.05)
    frame = pd.DataFrame(X, columns=list("abc")).assign(d=rng.choice(["u", "v"], n))
    return frame.assign(y=np.where(y, "yes", "no"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("unlabelled"), np.random.default_rng(0)
    draw(700, rng).to_csv(folder / "planted.csv", index=False)
    draw(3000, rng).drop(columns="y").to_csv(folder / "more.csv", index=False)
    config = build_config(
        {
            "baseline": {"model": "ridge"},
            "synthesizer": {"name": "local", "times": 1},
            "source": {"target": "y"},
            "split": {"folds": 2},
            "hardness": {"rule": "wrong"},
            "search": {"kappa": 0.0, "copies": 1},
            "composition": ["weighted"],
            "train_hard": False,
        }
    )
    request = Request(
        (str(folder / "planted.csv"),),
        config,
        folder / "suite",
        quiet=True,
        certificate="none",
    )
    assert generate_suite(request).written
    return folder


@pytest.fixture(scope="module")
def rows(folder):
    return read_task(SuiteFiles.load(folder / "suite"), "planted")


@pytest.fixture(scope="module")
def certificates(rows, folder):
    words = ("random_forest", "knn")
    return certify_rows(rows, candidates=words), certify_rows(
        rows, candidates=words, unlabelled=folder / "more.csv"
    )


def table(path, **changes):
    frame = pd.DataFrame({"a": np.arange(30) / 7, "b": ["u", "v"] * 15})
    frame.assign(**changes).to_csv(path, index=False)
    return path


def test_the_features_come_back_in_canonical_form(tmp_path):
    path = table(tmp_path / "t.csv", y=1, z=2, b=["u", "w", None] * 10)
    features, notes = read_features(path, COLUMNS, "y")
    assert list(features) == ["a", "b"]
    assert list(features["b"].cat.categories) == ["u", "v"]
    assert int(features["b"].isna().sum()) == 20
    assert "'y' is ignored" in notes[0]
    assert "1 other columns ignored: z" in notes[1]
    assert "10 values of 'b' are unknown" in notes[2]


def test_what_cannot_be_read_says_so(tmp_path):
    with pytest.raises(DataError, match="lacks the feature 'a'"):
        read_features(_without(tmp_path / "u.csv", "a"), COLUMNS, "y")
    with pytest.raises(DataError, match=r"column 'a' holds 'x' in row 1"):
        read_features(table(tmp_path / "t.csv", a=["1.5", "x", "2"] * 10), COLUMNS, "y")
    short = tmp_path / "short.csv"
    short.write_text("a,b\n1,u\n")
    with pytest.raises(DataError, match="1 rows, but at least 20"):
        read_features(short, COLUMNS, "y")


def _without(path, name):
    table(path)
    pd.read_csv(path).drop(columns=name).to_csv(path, index=False)
    return path


def test_files_are_assigned_to_tasks(tmp_path):
    path = table(tmp_path / "t.csv")
    assert assign_unlabelled_files([str(path)], ["one"]) == {"one": path}
    assert assign_unlabelled_files([f"two={path}"], ["one", "two"]) == {"two": path}
    with pytest.raises(ConfigError, match=r"names no task.*one, two"):
        assign_unlabelled_files([str(path)], ["one", "two"])
    with pytest.raises(ConfigError, match=r"'twoo'.*did you mean 'two'"):
        assign_unlabelled_files([f"twoo={path}"], ["one", "two"])
    with pytest.raises(ConfigError, match="twice"):
        assign_unlabelled_files([f"one={path}", f"one={path}"], ["one", "two"])
    with pytest.raises(SourceError, match=r"no such file: nowhere\.csv"):
        assign_unlabelled_files(["one=nowhere.csv"], ["one", "two"])
    assert assign_unlabelled_files([], ["one", "two"]) == {}
    assert isinstance(assign_unlabelled_files([str(path)], ["one"])["one"], Path)


def test_the_expected_contrast_is_the_mean_over_labels():
    rng = np.random.default_rng(0)
    g, f, t = (rng.dirichlet(np.ones(3), 50) for _ in range(3))
    wanted = sum(
        t[:, c] * (brier_loss(np.full(50, c), g) - brier_loss(np.full(50, c), f))
        for c in range(3)
    )
    assert np.allclose(expected_contrast(g, f, t), wanted)
    g, f, t = rng.random((3, 50))
    noise = np.array([-1.0, 1.0])[:, None]
    labels = t + noise
    wanted = (squared_error(labels, g) - squared_error(labels, f)).mean(axis=0)
    assert np.allclose(expected_contrast(g, f, t), wanted)


def test_unlabelled_rows_change_no_verdict_and_no_other_measure(certificates):
    plain, more = certificates
    assert plain.powered == {}
    assert "unlabelled" not in plain.text()
    assert (more.verdict, more.reason) == (plain.verdict, plain.reason)
    assert more.measures[: len(plain.measures)] == plain.measures
    assert [m.name for m in more.measures[len(plain.measures) :]] == [
        "unlabelled support",
        "ppi gain",
    ]


def test_the_intervals_are_in_json_and_text(certificates):
    plain, more = certificates
    assert set(more.powered) == {"random_forest", "knn"}
    for name, entry in more.powered.items():
        want = plain.candidates[name]["region"] - plain.null["region"]["F"]
        assert entry["difference"] == pytest.approx(
            want, abs=1e-9
        )  # refitted weights are the same
        assert entry["low"] < entry["difference"] < entry["high"]
        assert entry["ppi_low"] < entry["ppi_difference"] < entry["ppi_high"]
        assert 0 <= entry["lam"] <= 1
        assert name in more.text()
    assert more["ppi gain"].value < 1
    assert "narrower with 3000 unlabelled rows" in more["ppi gain"].text
    assert not any("stored" in note for note in more.notes)
    assert Certificate.from_json(more.to_json()) == more
    assert max(map(len, more.text().splitlines())) <= 110


def test_copies_of_labelled_rows_are_left_out(folder, rows, tmp_path):
    both = pd.concat(
        [pd.read_csv(folder / name) for name in ("planted.csv", "more.csv")]
    )
    both.to_csv(tmp_path / "both.csv", index=False)
    far = read_unlabelled(tmp_path / "both.csv", rows, 1)
    assert len(far.features) == 3000
    assert any("700 rows are copies" in note for note in far.notes)
    twice = pd.DataFrame({"a": [1.0, 1.0, 1.0]})
    assert find_copies(twice, [twice[:2], twice[:1]]).tolist() == [True, True, False]


def test_rows_from_elsewhere_are_refused(folder, rows, tmp_path):
    away = pd.read_csv(folder / "more.csv")
    away[["a", "b"]] += 2
    away.to_csv(tmp_path / "away.csv", index=False)
    found = certify_rows(rows, candidates=("knn",), unlabelled=tmp_path / "away.csv")
    assert found["unlabelled support"].passed is False
    assert found["ppi gain"].value is None
    assert "were not used" in found["ppi gain"].text
    assert found.powered == {}


def test_f_as_a_file_is_refused(folder, rows):
    from dataclasses import replace

    settings = {**rows.settings, "baseline": {"model": "f.csv", "sha256": "0"}}
    with pytest.raises(ConfigError, match="leave --unlabelled out"):
        read_unlabelled(folder / "more.csv", replace(rows, settings=settings), 1)


def test_a_stored_certificate_knows_its_unlabelled_file(folder):
    how = {"refits": 1, "candidates": ("knn",), "workers": 1}
    suite, files = folder / "suite", {"planted": folder / "more.csv"}
    assert certify_suite(suite, **how, unlabelled=files)[0].powered
    assert not certify_suite(suite, **how)[0].powered


def test_intervals_cover_and_are_narrower():
    """G and F are lines, T a cubic fitted on other rows; the truth is known from many rows."""

    def world(n, rng):
        x = rng.uniform(-1, 1, n)
        return x, np.sin(3 * x) + 0.3 * rng.standard_normal(n)

    def losses(fit, x, y):
        g, f = np.polyval(fit[0], x), np.polyval(fit[1], x)
        return squared_error(y, g), squared_error(y, f)

    rng = np.random.default_rng(0)
    x, y = world(200, rng)
    fit = [np.polyfit(x, y, degree) for degree in (1, 0, 3)]
    x, y = world(400_000, rng)
    w = np.exp(x)
    g, f = losses(fit, x, y)
    truth = np.average(g - f, weights=w)
    inside, ratios = [], []
    for _ in range(60):
        x, y = world(100, rng)
        far = world(2000, rng)[0]
        tau, tau_far = (
            expected_contrast(*(np.polyval(p, z) for p in fit)) for z in (x, far)
        )
        loss_g, loss_f = losses(fit, x, y)
        both = prediction_powered_mean(
            loss_g - loss_f,
            tau,
            tau_far,
            weights=np.exp(x),
            weights_unlabelled=np.exp(far),
        )
        inside.append(both.estimate.low <= truth <= both.estimate.high)
        ratios.append(both.width_ratio)
    assert np.mean(inside) >= 0.85
    assert np.mean(ratios) < 0.95
