"""The true error by costs and balanced: intervals that hold, and what is refused in one line."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import amlb_ext as hs
from amlb_ext.cli import main
from amlb_ext.core.errors import ConfigError
from amlb_ext.stats.bounded_mean import (
    balanced_interval,
    cost_interval,
    stratified_interval,
)

COSTS = {"yes": {"no": 10}, "no": {"yes": 1}}


def made(n, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    y = np.where(X["a"] + rng.logistic(size=n) > 1.2, "yes", "no")
    return X, y


@pytest.fixture(scope="module")
def F():
    return LogisticRegression().fit(*made(500, 0))


def test_a_cost_matrix_is_estimated_from_decisions(F):
    X, y = made(300, 1)
    report = hs.estimate_error(F, X, y, loss=COSTS)
    decided = F.predict(X)
    cost = np.where(decided == y, 0, np.where(y == "yes", 10, 1))
    best = report.recommended
    assert best.name == "cost"
    assert best.point == pytest.approx(cost.mean())
    assert report.bound == 10
    large, truth = made(40_000, 2)
    wrong = F.predict(large) != truth
    assert best.low < np.where(wrong, np.where(truth == "yes", 10, 1), 0).mean()
    assert np.where(wrong, np.where(truth == "yes", 10, 1), 0).mean() < best.high
    # costs of 0 and 1 are the 0-1 loss, whose interval is another
    alike = {"yes": {"no": 1}, "no": {"yes": 1}}
    assert hs.estimate_error(F, X, y, loss=alike).recommended.name == "wilson"


def test_costs_hold_where_the_dear_mistake_is_too_rare_to_be_seen():
    rng = np.random.default_rng(5)
    costs = np.array([[0.0, 10.0], [1.0, 0.0]])
    covered = []
    for _ in range(400):
        u = rng.random(300)
        sample = np.where(u < 0.002, 10.0, np.where(u < 0.102, 1.0, 0.0))
        found = cost_interval(sample, costs)
        covered.append(found.low <= 0.12 <= found.high)
    assert np.mean(covered) >= 0.93


def test_costs_of_rows_drawn_by_class_hold_for_few_rows():
    rng = np.random.default_rng(6)
    costs = np.array([[0.0, 10.0], [1.0, 0.0]])
    classes, priors = np.repeat([0, 1], [40, 80]), [0.1, 0.9]
    true = 0.1 * 10 * 0.3 + 0.9 * 1 * 0.05
    covered = []
    for _ in range(400):
        wrong = rng.random(120) < np.where(classes == 0, 0.3, 0.05)
        sample = wrong * np.where(classes == 0, 10.0, 1.0)
        found = stratified_interval(sample, classes, priors, bound=10.0, costs=costs)
        covered.append(found.low <= true <= found.high)
    assert np.mean(covered) >= 0.93


def test_the_balanced_error_is_the_same_however_classes_were_drawn(F):
    X, y = made(6000, 4)
    few = np.flatnonzero(y == "yes")[:150]
    many = np.flatnonzero(y == "no")[:600]
    rows = np.r_[few, many]
    best = hs.estimate_error(F, X.iloc[rows], y[rows], loss="balanced").recommended
    assert best.name == "balanced"
    wrong = F.predict(X) != y
    true = np.mean([wrong[y == label].mean() for label in ("no", "yes")])
    assert best.low < true < best.high
    by_scorer = hs.estimate_error(F, X.iloc[rows], y[rows], loss="balanced_accuracy")
    assert by_scorer.recommended.point == best.point


@pytest.mark.parametrize(
    ("loss", "more", "culprit"),
    [
        ("auc", {}, "of pairs of rows"),
        ("squared_log", {}, "bound is not known"),
        (lambda y, f: np.zeros(len(y)), {}, "largest value of your own loss"),
        ({"yes": {"no": -1}, "no": {"yes": 1}}, {}, "negative: -1"),
        ({"yes": {"no": 1}}, {}, "missing or not finite"),
        ({"maybe": {"no": 1}}, {}, "no class of the target"),
        ([[0, 1, 2]], {}, "shape"),
        ("balanced", {"class_prior": {"no": 0.5, "yes": 0.5}}, "counts alike"),
        ("balanced", {"unlabelled": made(50, 9)[0]}, "counts alike"),
    ],
)
def test_what_has_no_interval_is_refused_in_one_line(F, loss, more, culprit):
    X, y = made(100, 1)
    with pytest.raises(ConfigError, match=culprit) as caught:
        hs.estimate_error(F, X, y, loss=loss, **more)
    assert "\n" not in str(caught.value)


def test_the_shell_reads_costs_from_a_file(F, tmp_path, refused, capsys):
    X, y = made(200, 1)
    X.assign(y=y).to_csv(tmp_path / "new.csv", index=False)
    table = pd.DataFrame(F.predict_proba(X), columns=F.classes_)
    table.to_csv(tmp_path / "f.csv", index=False)
    (tmp_path / "costs.csv").write_text(",no,yes\nno,0,1\nyes,10,0\n")
    words = ["estimate", str(tmp_path / "f.csv"), str(tmp_path / "new.csv")]
    words += ["--target", "y", "--loss"]
    assert main([*words, str(tmp_path / "costs.csv")]) == 0
    expected = hs.estimate_error(F, X, y, loss=COSTS).recommended
    assert f"cost: {expected.point:.4f}" in capsys.readouterr().out
    (tmp_path / "negative.csv").write_text(",no,yes\nno,0,-1\nyes,10,0\n")
    assert "negative: -1" in refused(words, tmp_path / "negative.csv")


def test_a_class_without_rows_has_no_balanced_error():
    found = balanced_interval(
        np.zeros(20), np.zeros(20, dtype=int), names=["no", "yes"]
    )
    assert not found.has_interval
    assert "no labelled row of class yes" in found.reason
