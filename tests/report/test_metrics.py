import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from amlb_ext.report.metrics import DIRECTION, area_of_pairs, score_rows

BINARY = {"acc", "balacc", "logloss", "brier", "auc", "f1"}
MULTICLASS = (BINARY - {"auc"}) | {"auc_ovo", "auc_ovr", "f1_weighted"}
REGRESSION = {"mse", "rmse", "mae", "r2", "smape", "rmsle"}

# Golden values: results.csv of AMLB v2.1.7 (scikit-learn 1.2.2),
#   python runbenchmark.py FRAMEWORK tiny hardsynth_quick -u USERDIR -o OUT
# on a few hard rows of bundled/titanic, bundled/cpu and bundled/penguins; the predictions are
# those of OUT/*/predictions/*/0/predictions.csv.
P_BINARY = np.array(
    [
        0.45,
        0.39,
        0.4596507936507937,
        0.44,
        0.4,
        0.46,
        0.17,
        0.64,
        0.6,
        0.4,
        0.45,
        0.5,
        0.11,
        0.61,
    ]
)
Y_BINARY = np.array([0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1])
NAMED_BINARY = np.array([0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1])
AMLB_BINARY = {
    "acc": 0.928571,
    "auc": 0.95,
    "balacc": 0.875,
    "f1": 0.857143,
    "logloss": 0.509452,
}
Y_MULTI = np.array([0] * 5 + [1] * 5 + [2] * 3)
SOFT = np.array(
    [
        *([0.5, 0.49, 0.01], [0.38, 0.44, 0.18], [0.37, 0.41, 0.22], [0.5, 0.49, 0.01]),
        *([0.42, 0.58, 0], [0.08, 0.8, 0.12], [0.13, 0.76, 0.11], [0.07, 0.83, 0.1]),
        *([0.3, 0.6, 0.1], [0.1, 0.78, 0.12], [0.04, 0.08, 0.88], [0.5, 0.14, 0.36]),
        [0.04, 0.06, 0.9],
    ]
)
AMLB_SOFT = {  # HardsynthBaseline: a random forest
    "acc": 0.692308,
    "auc_ovo": 0.958974,
    "auc_ovr": 0.961538,
    "balacc": 0.688889,
    "f1_weighted": 0.672781,
    "logloss": 0.531821,
}
HARD = np.eye(3)[[0, 2, 2, 0, 1, 1, 1, 1, 1, 1, 2, 1, 2]]
AMLB_HARD = {  # DecisionTree: probabilities 0 and 1, so logloss shows the clipping
    "acc": 0.692308,
    "auc_ovo": 0.769231,
    "auc_ovr": 0.775,
    "balacc": 0.688889,
    "f1_weighted": 0.672161,
    "logloss": 11.0904,
}
F_CPU = np.array(
    [193.25, 232.78, 245.43, 114.77, 309.06, 307.66, 108.5, 224.58, 281.81, 204.01]
)
Y_CPU = np.array([157.0, 153, 127, 157, 350, 350, 157, 345, 157, 140])
AMLB_CPU = {
    "mae": 71.771,
    "mse": 6348.48,
    "r2": 0.241467,
    "rmse": 79.6773,
    "rmsle": 0.396368,
}


def two(p):
    return np.column_stack([1 - np.asarray(p), p])


@pytest.mark.parametrize(
    ("scores", "amlb"),
    [
        (score_rows(Y_BINARY, two(P_BINARY), predicted=NAMED_BINARY), AMLB_BINARY),
        (score_rows(Y_MULTI, SOFT), AMLB_SOFT),
        (score_rows(Y_MULTI, HARD), AMLB_HARD),
        (score_rows(Y_CPU, F_CPU), AMLB_CPU),
    ],
    ids=["binary", "multiclass soft", "multiclass hard", "regression"],
)
def test_equal_to_amlb(scores, amlb):
    assert {name: float(f"{scores[name]:.6g}") for name in amlb} == amlb


def test_names_and_directions():
    assert set(score_rows(Y_BINARY, two(P_BINARY))) == BINARY
    assert set(score_rows(Y_MULTI, SOFT)) == MULTICLASS
    assert set(score_rows(Y_CPU, F_CPU)) == REGRESSION
    assert set(DIRECTION) == BINARY | MULTICLASS | REGRESSION


def test_smape_ends_at_two_and_counts_zero_over_zero_as_right():
    assert score_rows(np.array([1.0, -1.0]), np.array([-3.0, 0.0]))["smape"] == 2.0
    assert score_rows(np.array([0.0, 1.0]), np.array([0.0, -1.0]))["smape"] == 1.0


def test_macro_f1_by_hand():
    # class 0: precision 2/2, recall 2/3 -> 4/5; class 1: 1/2, 1/1 -> 2/3; class 2 nowhere
    y, named = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    s = score_rows(y, np.eye(3)[named])
    assert s["f1"] == pytest.approx((4 / 5 + 2 / 3) / 2)
    assert s["f1_weighted"] == pytest.approx((3 * 4 / 5 + 2 / 3) / 4)


def test_named_labels_decide_only_what_is_made_of_labels():
    named = 1 - NAMED_BINARY
    a = score_rows(Y_BINARY, two(P_BINARY), predicted=NAMED_BINARY)
    b = score_rows(Y_BINARY, two(P_BINARY), predicted=named)
    assert b["acc"] == pytest.approx(1 - a["acc"])
    assert {k: a[k] for k in ("auc", "logloss", "brier")} == {
        k: b[k] for k in ("auc", "logloss", "brier")
    }
    none = score_rows(Y_BINARY, two(P_BINARY), predicted=np.full(14, -1))
    assert (none["acc"], none["balacc"], none["f1"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("y", "f", "without"),
    [(Y_BINARY, two(P_BINARY), ()), (Y_MULTI, SOFT, ("auc_ovo",)), (Y_CPU, F_CPU, ())],
    ids=["binary", "multiclass", "regression"],
)
def test_a_weight_of_k_is_the_row_k_times(y, f, without):
    k = np.arange(len(y)) % 4  # zeros too
    weighted, repeated = (
        score_rows(y, f, k),
        score_rows(np.repeat(y, k), np.repeat(f, k, axis=0)),
    )
    for name, value in weighted.items():
        if name in without:
            assert np.isnan(value)
        else:
            assert value == pytest.approx(repeated[name]), name
    scaled = score_rows(y, f, k / 7)
    assert scaled == pytest.approx(weighted, nan_ok=True)


def undefined(scores):
    return {name for name, value in scores.items() if np.isnan(value)}


def test_undefined_in_regression():
    y = np.full(4, 0.1)
    assert undefined(score_rows(y, y)) == {"r2"}  # a constant target
    assert undefined(score_rows(y, np.full(4, 0.3), np.full(4, 0.1))) == {"r2"}
    assert undefined(score_rows(y[:1], y[:1])) == {"r2"}
    assert undefined(score_rows(np.array([1.0, -0.5]), np.array([1.0, 1.0]))) == {
        "rmsle"
    }
    assert undefined(score_rows(np.array([1.0, 2.0]), np.array([1.0, -0.5]))) == {
        "rmsle"
    }
    assert undefined(score_rows(Y_CPU, F_CPU * np.nan)) == REGRESSION


def test_undefined_in_classes():
    ones, zeros = np.ones(3, dtype=int), np.zeros(3, dtype=int)
    p = two([0.9, 0.8, 0.2])
    assert undefined(score_rows(ones, p)) == {"auc"}
    assert undefined(score_rows(zeros, p)) == {
        "auc"
    }  # f1 is 0: two positives named, none true
    assert undefined(score_rows(zeros, two([0.1, 0.2, 0.3]))) == {"auc", "f1"}
    gone = undefined(
        score_rows(Y_BINARY, two(P_BINARY * np.nan), predicted=NAMED_BINARY)
    )
    assert gone == {"auc", "logloss", "brier"}
    one_class = score_rows(zeros, SOFT[:3])
    assert undefined(one_class) == {"auc_ovo", "auc_ovr"}
    assert one_class["balacc"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("n_classes", [3, 7, 40])
def test_the_area_of_pairs_is_that_of_scikit_learn(n_classes):
    """With ties, and with a class that no row has."""
    rng = np.random.default_rng(n_classes)
    y = rng.integers(0, n_classes - 1, 300)
    p = rng.dirichlet(np.ones(n_classes), 300).round(2)
    p[:, 0] += 1 - p.sum(axis=1)
    wanted = roc_auc_score(
        y, p, labels=np.arange(n_classes), multi_class="ovo", average="weighted"
    )
    assert area_of_pairs(y, p) == pytest.approx(wanted, rel=1e-12)


def test_better_predictions_are_better_in_every_direction():
    cases = [
        (Y_CPU, (Y_CPU + F_CPU) / 2, F_CPU),
        (Y_BINARY, two((Y_BINARY + P_BINARY) / 2), two(1 - P_BINARY)),
        (Y_MULTI, (np.eye(3)[Y_MULTI] + SOFT) / 2, SOFT),
    ]
    for y, good, bad in cases:
        better, worse = score_rows(y, good), score_rows(y, bad)
        for name, value in better.items():
            sign = 1 if DIRECTION[name] == "higher" else -1
            assert sign * value > sign * worse[name], name


def test_huge_errors_do_not_warn():
    assert score_rows(np.array([1.0, 2.0]), np.array([1e300, 1.0]))["mse"] == np.inf
