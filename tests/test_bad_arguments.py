"""Bad arguments of every public function: an error of ours in one line, whatever is given.

A new argument gets its row here.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import amlb_ext as hs
from amlb_ext.core.errors import HardsynthError
from amlb_ext.sources.bundled_series import simulate_series

NAN = float("nan")
#: What is no number of things.
NO_COUNTS = ("x", "3", 2.5, NAN, float("inf"), -1, True, [3])
NO_LEVELS = ("0.95", NAN, 0, 1, 2, -0.1, None, True)
NO_WORDS = ("wron", 1, ["a"])

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(160, 2)), columns=["a", "b"])
Y = np.where(X["a"] + 0.5 * X["b"] + 0.3 * RNG.normal(size=160) > 0, "yes", "no")
F = LogisticRegression().fit(X[:80], Y[:80])
G = LogisticRegression(C=0.01).fit(X[:80], Y[:80])
ROWS = {"F": F, "X": X[80:], "y": Y[80:]}
P = F.predict_proba(X[80:])
SERIES = simulate_series(6, 60)
CONTRAST = {
    "task": "t", "framework": "G", "where": "all rows", "relative": -0.1, "low": -0.03,
    "high": -0.01, "loss_f": 0.2, "verdict": "better", "reason": "",
}  # fmt: skip


def compare(**given):
    return hs.compare(**{**ROWS, "candidates": {"g": G}, **given})


def failures(**given):
    return hs.failures(**{**ROWS, **given})


def estimate_error(**given):
    return hs.estimate_error(**{**ROWS, **given})


def compare_forecasts(**given):
    usual = {
        "table": SERIES, "baseline": "theta", "candidates": {"n": "drift"}, "horizon": 6,
        "series": "item_id", "time": "timestamp", "target": "target",
    }  # fmt: skip
    return hs.compare_forecasts(**{**usual, **given})


def check_gate(**given):
    return hs.check_gate(**{"answer": pd.DataFrame([CONTRAST]), **given})


BAD_ROWS = {
    "F": [None, 5, "x", [], P * 0.5, P[:3], np.full(80, np.inf), LogisticRegression],
    "X": [None, 5, "x", [], X[:0], np.zeros((80, 3)), [[1, 2]]],
    "y": [None, 5, [], Y[:50], [None] * 80, np.full(80, NAN), ["yes"] * 80],
    "align": ["x", None],
}
BAD_RULES = {
    "rule": NO_WORDS,
    "alpha": ["x", NAN, float("inf"), -1, True],
    "seed": NO_COUNTS,
    "groups": ["nope", [1, 2], 5],
    "time": ["nope", [1]],
    "kind": NO_WORDS,
}
TABLE = [
    (compare, {
        **BAD_ROWS, **BAD_RULES,
        "refits": (*NO_COUNTS, 1),
        "level": NO_LEVELS,
        "claim": NO_WORDS,
        "train": [5, (X,), (X[:80], None), "ab", [X, Y]],
        "candidates": [
            None, {}, [G], "g", {"F": G}, {"": G}, {" ": G}, {1: G}, {"weight": G},
            {"is_bad": G}, {"HardsynthNull": G}, {"g": None}, {"g": 5}, {"g": "ridge"},
            {"g": P * 2}, {"g": P + 0.1}, {"g": P[:40]}, {"g": np.full((80, 2), NAN)},
            {"g": np.full((80, 2), -1.0)}, {"g": [None] * 80}, {"g": np.zeros((80, 2, 2))},
            {"g": np.zeros((80, 3))},
        ],
        "unknown": [1],
    }),
    (failures, {**BAD_ROWS, **BAD_RULES, "unknown": [1]}),
    (compare_forecasts, {
        "horizon": (*NO_COUNTS, 0, None, 10_000),
        "origins": (*NO_COUNTS, 0, None, 100),
        "learning": (*NO_COUNTS, None),
        "step": (*NO_COUNTS, 0),
        "season": (*NO_COUNTS, 0),
        "twins": (*NO_COUNTS, 1),
        "seed": NO_COUNTS,
        "level": NO_LEVELS,
        "rule": (*NO_WORDS, None),
        "alpha": ["x", NAN],
        "loss": (*NO_WORDS, None),
        "frequency": ["nope", 5],
        "cutoff": ["nope", 5],
        "first_cutoff": ["nope", 5],
        "series": ["nope", "", None, 1],
        "time": ["nope", "", None],
        "target": ["nope", "", "item_id"],
        "table": [None, 5, "x", [], SERIES[:0]],
        "baseline": [None, 5, "nope", "os:abort", "builtins:exit", "os:path", "nope:X", SERIES],
        "candidates": [
            None, {}, ["drift"], {"F": "drift"}, {"": "drift"}, {1: "drift"}, {"n": None},
            {"n": "os:abort"},
        ],
        "unknown": [1],
    }),
    (estimate_error, {
        **BAD_ROWS,
        "loss": NO_WORDS,
        "level": NO_LEVELS,
        "clip": ["x", NAN, 0, 0.9, -1],
        "seed": NO_COUNTS,
        "class_prior": [{"yes": 2}, {"yes": NAN}, {"yes": "x"}, {"x": 0.5}, 5, "yes"],
        "train": [5, "ab", (X,)],
        "unlabelled": [5, "x"],
        "unknown": [1],
    }),
    (check_gate, {
        "answer": [None, 5, "x", pd.DataFrame()],
        "need": (*NO_WORDS, None),
        "where": (*NO_WORDS, None),
        "margin": ["x", NAN, 0, 1, 5, -1, None, True],
        "level": ("x", 2, NAN),
        "candidates": [["nope"], "G", 5, [5]],
        "tasks": [["nope"], "t", 5],
        "unknown": [1],
    }),
]  # fmt: skip
CASES = [
    (function, name, value)
    for function, arguments in TABLE
    for name, values in arguments.items()
    for value in values
]


@pytest.mark.parametrize(
    ("function", "name", "value"),
    CASES,
    ids=[
        f"{function.__name__}-{name}-{n}" for n, (function, name, _) in enumerate(CASES)
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_one_line_of_ours(function, name, value):
    with pytest.raises(HardsynthError) as caught:
        function(**{name: value})
    assert "\n" not in str(caught.value)
    assert "pydantic" not in str(caught.value)


HARDEN = {
    "target": ["nope", "", 5],
    # tests/cli/test_bad_values.py has the settings themselves
    "settings": [5, [1], "x", {1: 2}, {"splt": {}}, {"split": {"folds": True}}],
    "certificate": [None, "x", 1],
    "model": ["nope", "os.abort", "os:abort", "lightgbm", 5, P, LogisticRegression],
    "table": [None, 5, "nope.csv", [], X[:0]],
    "out": [None, 5, ""],
    "force": ["yes", 1, None],
}  # fmt: skip


@pytest.mark.parametrize("name", HARDEN)
def test_harden_writes_nothing(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    usual = {"table": X.assign(y=Y), "target": "y", "model": "ridge", "out": "hard"}
    for value in HARDEN[name]:
        with pytest.raises(HardsynthError) as caught:
            hs.harden(**{**usual, name: value})
        assert "\n" not in str(caught.value)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("directory", [None, 5, "", "nope", []])
def test_a_suite_that_is_none(directory, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HardsynthError):
        hs.Suite.load(directory)


def test_numbers_of_numpy_are_numbers():
    level = np.float64(0.9)
    result = compare(refits=np.int64(2), seed=np.int32(1), level=level)
    assert result.level == 0.9
