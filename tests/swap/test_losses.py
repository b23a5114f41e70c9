"""Losses by name: each has the mean of scikit-learn's metric; what fits no target is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.metrics import get_scorer, make_scorer

from amlb_ext.core.auc import misranked
from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.core.losses import Predicted, read_loss

RNG = np.random.default_rng(0)
Y = RNG.gamma(2.0, size=200)
F = Y * RNG.uniform(0.5, 1.5, 200)
NUMBERS = Predicted(y=Y, f=F, given=Y)
CODES = RNG.integers(0, 2, 200)
P = np.clip(0.5 + 0.3 * (2 * CODES - 1) + 0.3 * RNG.normal(size=200), 0.01, 0.99)
PROBABILITIES = np.column_stack([1 - P, P])
NAMES = np.array(["no", "yes"])
CLASSES = Predicted(
    y=CODES,
    f=PROBABILITIES,
    decided=PROBABILITIES.argmax(axis=1),
    labels=("no", "yes"),
    given=NAMES[CODES],
)
DECIDED = CLASSES.decided


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("squared", metrics.mean_squared_error(Y, F)),
        ("absolute", metrics.mean_absolute_error(Y, F)),
        ("squared_log", metrics.mean_squared_log_error(Y, F)),
        ("pinball:.9", metrics.mean_pinball_loss(Y, F, alpha=0.9)),
        ("neg_root_mean_squared_error", metrics.mean_squared_error(Y, F)),
        ("r2", metrics.mean_squared_error(Y, F)),
        ("mae", metrics.mean_absolute_error(Y, F)),
        ("rmse", metrics.mean_squared_error(Y, F)),
        (
            make_scorer(metrics.mean_pinball_loss, alpha=0.2),
            metrics.mean_pinball_loss(Y, F, alpha=0.2),
        ),
        (get_scorer("neg_mean_absolute_error"), metrics.mean_absolute_error(Y, F)),
        (lambda y, f: np.abs(y - f) ** 3, np.mean(np.abs(Y - F) ** 3)),
    ],
)
def test_a_loss_of_numbers_has_the_mean_of_the_metric(name, expected):
    loss = read_loss(name, is_classification=False)
    assert loss(NUMBERS).mean() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("brier", 2 * metrics.brier_score_loss(CODES, P)),
        ("log_loss", metrics.log_loss(CODES, PROBABILITIES)),
        ("zero_one", metrics.zero_one_loss(CODES, DECIDED)),
        ("accuracy", metrics.zero_one_loss(CODES, DECIDED)),
        ("balanced", 1 - metrics.balanced_accuracy_score(CODES, DECIDED)),
        ("auc", 1 - metrics.roc_auc_score(CODES, P)),
        ("roc_auc", 1 - metrics.roc_auc_score(CODES, P)),
        ("logloss", metrics.log_loss(CODES, PROBABILITIES)),
        (
            {"yes": {"no": 10}, "no": {"yes": 1}},
            np.mean(
                10 * ((CODES == 1) & (DECIDED == 0)) + ((CODES == 0) & (DECIDED == 1))
            ),
        ),
        (
            [[0, 1], [10, 0]],
            np.mean(
                10 * ((CODES == 1) & (DECIDED == 0)) + ((CODES == 0) & (DECIDED == 1))
            ),
        ),
        (
            pd.DataFrame([[0, 1], [1, 0]], index=["no", "yes"], columns=["no", "yes"]),
            metrics.zero_one_loss(CODES, DECIDED),
        ),
        (lambda y, p: (y == "yes") * (1 - p[:, 1]), np.mean(CODES * (1 - P))),
    ],
)
def test_a_loss_of_classes_has_the_mean_of_the_metric(given, expected):
    loss = read_loss(given, labels=("no", "yes"), is_classification=True)
    assert loss(CLASSES).mean() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("given", "labels", "culprit"),
    [
        ("f1", ("no", "yes"), "f1"),
        ("squared", ("no", "yes"), "squared"),
        ("brier", (), "brier"),
        ("auc", ("a", "b", "c"), "auc"),
        ("absolut", (), "absolut"),
        ("pinball:2", (), "pinball"),
        (3, (), "int"),
        ({"yes": {"maybe": 1}}, ("no", "yes"), "maybe"),
        ({"yes": 3}, ("no", "yes"), "yes"),
        ({"yes": {"no": -1}, "no": {"yes": 1}}, ("no", "yes"), "negative"),
        ({"yes": {"no": 1}}, ("no", "yes"), "missing"),
        ([[0, 0], [0, 0]], ("no", "yes"), "0"),
        ([[0, 1]], ("no", "yes"), "(1, 2)"),
        ([[0, 1], [1, 0]], (), "number"),
        (make_scorer(metrics.f1_score), ("no", "yes"), "f1_score"),
        (make_scorer(metrics.fbeta_score, beta=2), ("no", "yes"), "beta"),
    ],
)
def test_what_is_no_loss_of_the_target_is_refused(given, labels, culprit):
    with pytest.raises(ConfigError) as caught:
        read_loss(given, labels=labels, is_classification=bool(labels))
    assert culprit in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize(
    "function",
    [
        lambda y, f: np.zeros(3),
        lambda y, f: np.full(len(y), np.nan),
        lambda y, f: 1 / 0,
        lambda y, f: np.array(["a"] * len(y)),
        lambda y, f: np.mean(f),
    ],
)
def test_a_function_that_gives_no_loss_for_each_row_is_refused(function):
    with pytest.raises(DataError, match="loss"):
        read_loss(function, is_classification=False)(NUMBERS)


def test_an_auc_of_few_rows_of_a_class_is_refused():
    p = np.linspace(0.1, 0.9, 60)
    y = np.zeros(60, dtype=int)
    y[:19] = 1
    rows = Predicted(y=y, f=np.column_stack([1 - p, p]), decided=y)
    auc = read_loss("auc", labels=("no", "yes"), is_classification=True)
    with pytest.raises(DataError, match="one class has 19 rows, and an AUC needs 20"):
        auc(rows)


def test_the_rows_numbers_of_an_auc_have_its_variance():
    areas, errors = [], []
    for draw in range(400):
        rng = np.random.default_rng(draw)
        is_positive = rng.random(150) < 0.3
        numbers = misranked(is_positive, is_positive + rng.normal(size=150))
        areas.append(numbers.mean())
        errors.append(numbers.var(ddof=1) / 150)
    assert np.sqrt(np.mean(errors)) == pytest.approx(np.std(areas), rel=0.12)


def test_a_function_that_writes_into_what_it_is_given_changes_nothing():
    def clipped(y, prediction):
        prediction[prediction > 1] = 1
        y -= prediction
        return np.abs(y)

    before = F.copy()
    read_loss(clipped, is_classification=False)(NUMBERS)
    np.testing.assert_array_equal(NUMBERS.f, before)
    np.testing.assert_array_equal(NUMBERS.given, Y)


def gold_first(gold, predicted_labels):
    return np.asarray(gold != predicted_labels.argmax(axis=1), dtype=float)


def test_what_parameters_are_called_is_read_whole():
    assert read_loss(gold_first, is_classification=True)(CLASSES).shape == (200,)


@pytest.mark.parametrize(
    "costs",
    [
        pd.DataFrame([[0, 1], [5, 0], [0, 7]], ["no", "yes", "yes"], ["no", "yes"]),
        pd.DataFrame([[0, 1, 2], [5, 0, 3]], ["no", "yes"], ["no", "yes", "yes"]),
    ],
)
def test_a_label_that_a_cost_matrix_names_twice_is_refused(costs):
    with pytest.raises(ConfigError, match="names 'yes' twice"):
        read_loss(costs, labels=["no", "yes"], is_classification=True)
