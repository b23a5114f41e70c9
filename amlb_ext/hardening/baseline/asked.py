"""F whose answers cost: counted, remembered and limited, with a forest that stands in for it.

A model in a table's context reads its context again with every call, and a service takes time for
every row. Such an F is asked in few calls about few rows, and never twice about one row. While rows
are searched a surrogate takes its place; what that proposes, F must confirm.
"""

from __future__ import annotations

from copy import copy

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.task import Kind
from amlb_ext.hardening.baseline import forests
from amlb_ext.hardening.baseline.estimator import AskLedger, Baseline, fill_missing
from amlb_ext.hardening.split import CvSplits
from amlb_ext.models.files import is_baseline_file
from amlb_ext.models.registry import READERS, import_estimator, parse_model
from amlb_ext.models.service import is_service

#: Most rows of a fold where F's answers cost and the user names no limit.
DEFAULT_LIMIT = 100_000
#: Packages whose models predict in the context of the table.
IN_CONTEXT = ("tabpfn", "tabpfn_client", "tabicl")
#: Attribute by which the class of any other model says what to ask of it in a fold.
DECLARATION = "hardsynth_ask_at_most"


def ask_limit(config: BaselineConfig, kind: Kind) -> int | None:
    """Return how many rows of a fold F may be asked about; None where there is no limit.

    What the user says counts first, then what the model is: a service, a model of
    :data:`IN_CONTEXT`, or one whose class has the attribute :data:`DECLARATION`.

    Examples
    --------
    >>> ask_limit(BaselineConfig(model="ridge"), Kind.REGRESSION)
    >>> ask_limit(BaselineConfig(model="https://models.org/f"), Kind.REGRESSION)
    100000
    >>> ask_limit(BaselineConfig(model="ridge", ask_at_most=5000), Kind.REGRESSION)
    5000
    """
    if config.ask_at_most is not None:
        return config.ask_at_most or None
    if is_service(config.model):
        return DEFAULT_LIMIT
    name, _, _ = config.model.partition(":")
    if name in READERS:
        return READERS[name].ask_at_most
    # a short name, and a file, of which only the user knows what its answers cost
    if "." not in config.model or is_baseline_file(config):
        return None
    path = parse_model(config, kind).path
    package, _, _ = path.partition(".")
    if package in IN_CONTEXT:
        return DEFAULT_LIMIT
    return int(getattr(import_estimator(path), DECLARATION, 0)) or None


class AskedBaseline(Baseline):
    """Another F, whose answers are counted and remembered.

    Parameters
    ----------
    inner : Baseline
    ledger : AskLedger
        Of the fold; F and its re-fits share it.
    """

    def __init__(self, inner: Baseline, ledger: AskLedger) -> None:
        self.inner = inner
        self.ledger: AskLedger = ledger
        self.can_search = inner.can_search
        self.comes_fitted = inner.comes_fitted
        self.refit_problem_ = inner.refit_problem_
        self._answers: dict[bytes, np.ndarray] = {}

    def fit(self, Z: np.ndarray, y: np.ndarray, seed: int) -> AskedBaseline:
        """Fit the other F; what it said before is forgotten, unless it came fitted."""
        self.inner = copy(self.inner).fit(Z, y, seed)
        if not self.inner.comes_fitted:
            self._answers = {}
        return self

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Ask about the rows that are new, in one call, and remember the answers.

        Raises
        ------
        ModelError
            F may not be asked about so many.
        """
        if not len(Z):
            return self.inner.predict(Z)
        keys = _row_keys(Z)
        first_at: dict[bytes, int] = {}
        for position, key in enumerate(keys):
            if key not in self._answers:
                first_at.setdefault(key, position)
        if first_at:
            new = np.fromiter(first_at.values(), dtype=np.int64)
            self.ledger.check(len(new))
            answers = self.inner.predict(Z[new])
            self.ledger.count(len(new))
            self._answers.update(zip(first_at, answers, strict=True))
        return np.stack([self._answers[key] for key in keys])

    def decide_rows(self, Z: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Ask the other F what it decides, where its probabilities do not tell."""
        decided = self.inner.decide_rows(Z, rows)
        if decided is not None:
            self.ledger.count(len(Z))
        return decided

    def remember(self, Z: np.ndarray, f: np.ndarray) -> None:
        """Take answers that were given elsewhere."""
        self._answers.update(zip(_row_keys(Z), f, strict=True))

    @property
    def answered(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows that have an answer, ``(n, d)``, and the answers, ``(n,)`` or ``(n, C)``."""
        rows = np.stack([np.frombuffer(key) for key in self._answers])
        return rows, np.stack(list(self._answers.values()))

    def cross_fit(
        self, Z: np.ndarray, y: np.ndarray, rows: np.ndarray, parts: CvSplits, seed: int
    ) -> tuple[np.ndarray, list[Baseline]]:
        """Cross-fit the other F; its fits are counted in the same ledger."""
        self.ledger.check(len(Z))
        f, fits = self.inner.cross_fit(Z, y, rows, parts, seed)
        self.refit_problem_ = self.inner.refit_problem_
        self.decided_ = self.inner.decided_
        asked = [AskedBaseline(fit, self.ledger) for fit in fits]
        if self.inner.comes_fitted:
            # it judged all rows itself, and so did each of its clones
            self.ledger.count(len(Z) * (1 + len(fits)), calls=1 + len(fits))
            self.remember(Z, f)
            return f, [*asked]
        self.ledger.count(len(Z), calls=len(parts))
        for fit, (_, held) in zip(asked, parts, strict=False):
            fit.remember(Z[held], f[held])
        return f, [*asked]


def _row_keys(Z: np.ndarray) -> list[bytes]:
    """Return what tells rows apart; zero and minus zero are the same."""
    contiguous = np.ascontiguousarray(Z, dtype=float) + 0.0
    return [row.tobytes() for row in contiguous]


# A stand-in for F.


#: Trees of the forest.
TREES = 100


class SurrogateBaseline(Baseline):
    """What F would say, by extremely randomised trees fitted to its answers.

    Their regression is of F's very output: of two classes the probability of the second.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Encoded rows that F was asked about.
    f : ndarray of shape (n,) or (n, C)
        Its answers.
    seed : int

    Examples
    --------
    >>> Z = np.random.default_rng(0).random((500, 2))
    >>> surrogate = SurrogateBaseline(Z, Z[:, 0] + Z[:, 1], seed=0)
    >>> round(float(surrogate.predict(np.array([[0.5, 0.5]]))[0]), 1)
    1.0
    """

    def __init__(self, Z: np.ndarray, f: np.ndarray, seed: int) -> None:
        self.n_classes = f.shape[1] if f.ndim == 2 else 0
        # of two classes one number says all, and forests of one number are asked faster
        answers = f[:, 1] if self.n_classes == 2 else f
        forest = ExtraTreesRegressor(TREES, max_features=None, random_state=seed)
        self.forest_ = forest.fit(fill_missing(Z), answers)

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Return what F is expected to say."""
        f = forests.predict(self.forest_, fill_missing(Z))
        if self.n_classes == 2:
            return np.column_stack([1 - f, f])
        return f
