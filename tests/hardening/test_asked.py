"""F whose answers cost is asked about few rows, in few calls, and confirms every row it is for."""

import numpy as np
import pandas as pd
import pytest
from costly_models import LIMIT, PATH, CostlyRidge

from amlb_ext.core.config import BaselineConfig, build_config
from amlb_ext.core.errors import ModelError
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Kind
from amlb_ext.hardening.baseline.asked import (
    DEFAULT_LIMIT,
    AskedBaseline,
    SurrogateBaseline,
    ask_limit,
)
from amlb_ext.hardening.baseline.estimator import AskLedger
from amlb_ext.hardening.split import split_task
from amlb_ext.pipeline.folds import harden_calibrated

pytestmark = pytest.mark.usefixtures("light_models")


def planted(n=400):
    """y = x0 + x1, but 1 lower where x0 > .7 and x2 > .6: ridge cannot see it."""
    rng = np.random.default_rng(0)
    X = rng.random((n, 4))
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(4)])
    broken = (X[:, 0] > 0.7) & (X[:, 2] > 0.6)
    table["y"] = X[:, 0] + X[:, 1] - 1.0 * broken + rng.normal(0, 0.02, n)
    return make_task(table, "y", name="planted")


def harden(**baseline):
    """Harden one fold with a calibrated search."""
    model = {"model": PATH, "encoding": "onehot"}
    config = build_config(
        {
            "baseline": {**model, **baseline},
            "split": {"folds": 1, "test_size": 0.3},
            "synthesizer": {"name": "local", "times": 1},
            "hardness": {"rule": "absolute", "alpha": 0.25},
            "composition": ["bad", "synthetic"],
            "seed": 4,
        }
    )
    task = split_task(planted(), config.split, config.seed)
    CostlyRidge.asked.clear()
    [hard] = harden_calibrated((task,), 0, config)
    return hard, CostlyRidge.asked.copy()


@pytest.fixture(scope="module")
def costly():
    with pytest.MonkeyPatch.context() as patch:
        # how good the surrogate is does not matter here, and it takes most of the time
        patch.setattr("amlb_ext.hardening.baseline.asked.TREES", 20)
        return harden()


def test_the_summary_tells_what_f_was_asked(costly):
    hard, asked = costly
    told = hard.summary["asked"]
    assert (told["calls"], told["rows"]) == (len(asked), sum(asked))
    assert told["rows"] <= told["limit"] == LIMIT
    assert told["calls"] <= 30
    [note] = [note for note in hard.notes if note.kind == "asked"]
    assert f"F was asked about {sum(asked)} rows in {len(asked)} calls" in note.text


def test_every_made_row_has_f_s_own_word(costly):
    hard, _ = costly
    ga = hard.parts["ga"].test
    assert len(ga) > 10
    assert (ga.provenance["hardness"] >= 0.25).all()
    # ridge is linear, as no forest is
    X = np.column_stack([np.ones(len(ga)), ga.features])
    _, residual, rank, _ = np.linalg.lstsq(X, ga.provenance["f"], rcond=None)
    assert rank == X.shape[1]
    assert residual[0] < 1e-12


def test_no_limit_asks_f_itself():
    # a search with F is asked for more rows than the costly one was allowed
    hard, asked = harden(ask_at_most=0)
    assert "asked" not in hard.summary
    assert sum(asked) > LIMIT


def test_who_says_that_answers_cost():
    def limit(**settings):
        return ask_limit(BaselineConfig(**settings), Kind.REGRESSION)

    assert limit(model="random_forest") is None
    assert limit(model="sklearn.svm.SVR") is None
    assert limit(model="folder/f.pkl") is None
    assert limit(model="tabpfn.TabPFNRegressor") == DEFAULT_LIMIT
    assert limit(model=PATH) == LIMIT
    assert limit(model=PATH, ask_at_most=7) == 7


def test_no_row_is_asked_about_twice():
    Z = np.arange(12.0).reshape(6, 2)
    Z[5, 1] = np.nan
    inner = SurrogateBaseline(Z, Z[:, 0], seed=0)
    ledger = AskLedger(limit=6)
    F = AskedBaseline(inner, ledger)
    first = F.predict(Z[[0, 1, 1]])
    again = F.predict(Z)
    assert first.tolist() == again[[0, 1, 1]].tolist()
    assert (ledger.calls, ledger.rows) == (2, 6)
    with pytest.raises(ModelError, match="12 rows at least"):
        F.predict(Z + 0.5)


def test_what_f_decides_apart_from_its_probabilities_is_asked_and_counted():
    class Apart(SurrogateBaseline):
        """It decides for class 0, whatever its probabilities are."""

        def __init__(self):
            self.refit_problem_ = ""

        def decide_rows(self, Z, rows):
            return np.zeros(len(Z), dtype=int)

    asked = AskedBaseline(Apart(), AskLedger(limit=100))
    assert asked.decide_rows(np.ones((7, 2)), np.arange(7)).tolist() == [0] * 7
    assert asked.ledger.rows == 7
