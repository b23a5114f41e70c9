"""A target that is zero for most rows, as amounts and counts are: every step must bear it."""

import hardsynth as hs
import numpy as np
import pandas as pd
import pytest
from planted_suites import certify_rows, make_suite
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from amlb_ext.suite import SuiteFiles
from amlb_ext.validity import read_task

pytestmark = pytest.mark.usefixtures("light_models")

FEW = (
    "ridge",
    "knn",
    "sklearn.dummy.DummyRegressor",
    "sklearn.tree.DecisionTreeRegressor:max_depth=2",
    "sklearn.tree.DecisionTreeRegressor:max_depth=8",
)


def claims_table(n=900):
    """Amounts that are 0 unless a score is high, and largest in a corner."""
    rng = np.random.default_rng(3)
    X = rng.random((n, 4))
    amount = np.where(X[:, 0] > 0.7, 1 + 5 * X[:, 1] * (X[:, 2] > 0.5), 0.0)
    amount += (amount > 0) * rng.exponential(0.2, n)
    return pd.DataFrame(X, columns=list("abcd")).assign(y=amount.round(3))


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("point_mass")
    suite = make_suite(folder, claims_table(), split={"folds": 1})
    return read_task(SuiteFiles.load(suite), "planted")


def test_a_certificate_is_taken_and_every_number_is_one(rows):
    found = certify_rows(rows, candidates=FEW)
    assert len(found.candidates) == len(FEW)
    for name in ("region", "solvability", "effective size"):
        assert np.isfinite(found[name].value), name
    # F (a line) errs on every row, so there is a largest error to cap by
    for means in found.candidates.values():
        assert np.isfinite(means["full"])
        assert np.isfinite(means["region"])
    assert found["region"].passed
    assert found.verdict in ("rank", "describe")


def test_made_rows_stay_within_the_targets_range(rows):
    _, parts = rows.folds[0]
    train, _ = rows.folds[0]
    seen = np.concatenate([train.target, parts["full"].target]).astype(float)
    made = 0
    for part in ("ga", "synthetic"):
        if part in parts and len(parts[part]):
            target = parts[part].target.astype(float)
            assert target.min() >= 0
            assert target.max() <= seen.max()
            made += len(target)
    assert made > 0


@pytest.fixture(scope="module")
def labelled():
    table = claims_table(1200)
    X, y = table.drop(columns="y"), table["y"]
    return X[:500], y[:500], X[500:], y[500:]


def test_an_f_that_is_exact_on_most_rows_is_not_capped_to_nothing(labelled):
    X0, y0, X1, y1 = labelled
    F = DecisionTreeRegressor(max_depth=6, random_state=0).fit(X0, y0)
    assert (F.predict(X1) == y1).mean() > 0.6
    line = LinearRegression().fit(X0, y0)
    row = hs.compare(F, {"line": line}, X1, y1, train=(X0, y0)).row("line", "overall")
    # most errors of F are 0, the cap is one of the others; it takes most of F's loss
    squares = np.square(F.predict(X1) - y1)
    assert row["loss_f"] == pytest.approx(squares.mean())
    assert row["difference"] > 0
    assert (row["verdict"], row["by"]) == ("no claim", "plain")
