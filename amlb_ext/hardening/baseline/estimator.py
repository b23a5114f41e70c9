"""The interface of the baseline model F, what it may be asked, and F as a scikit-learn estimator.

Notation
--------
Z : (n, d) encoded rows, see :mod:`amlb_ext.hardening.encode`
f : (n,) scaled predictions (regression) or (n, C) class probabilities
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from amlb_ext.core.errors import HardsynthError, ModelError
from amlb_ext.core.rng import derive_int_seed
from amlb_ext.core.task import Kind
from amlb_ext.hardening.baseline import forests
from amlb_ext.hardening.encode import Encoder
from amlb_ext.hardening.split import CvSplits
from amlb_ext.models.adapter import describe_error
from amlb_ext.models.registry import ModelSpec, build_estimator


@dataclass(kw_only=True)
class AskLedger:
    """The rows that F and its re-fits are asked about in one fold.

    Attributes
    ----------
    limit : int
        Most rows.
    rows, calls : int
        Asked so far.
    reserved : int
        Rows that must still be asked about: re-fits judge each row that is kept.
    proposed, confirmed : int
        Made rows that the surrogate called bad and that F was then asked about, and those of them
        that F called bad as well.

    Examples
    --------
    >>> ledger = AskLedger(limit=1000)
    >>> ledger.count(rows=300)
    >>> ledger.reserved = 100
    >>> ledger.afford(share=0.5), ledger.afford(share=0.5, cost=3)
    (300, 100)
    """

    limit: int
    rows: int = 0
    calls: int = 0
    reserved: int = 0
    proposed: int = 0
    confirmed: int = 0

    def count(self, rows: int, calls: int = 1) -> None:
        """Note that F was asked."""
        self.rows += rows
        self.calls += calls

    def check(self, rows: int) -> None:
        """Raise where so many more rows are not to be had.

        Raises
        ------
        ModelError
        """
        needed = self.rows + rows
        if needed > self.limit:
            raise ModelError(
                f"this fold needs F's answers for {needed:,} rows at least, and it may be asked "
                f"about {self.limit:,}",
                f"--ask-at-most {2 * needed}, or make fewer rows, e.g. with "
                "--no-train-hard",
            )

    def afford(self, share: float, cost: int = 1) -> int:
        """Return how many rows a share of what is left pays for, at so many answers a row."""
        left = max(0, self.limit - self.rows - self.reserved)
        return int(share * left) // cost

    def to_json(self) -> dict[str, int | float]:
        """Return the fields for the fold's summary."""
        return {
            "limit": self.limit,
            "rows": self.rows,
            "calls": self.calls,
            "proposed": self.proposed,
            "confirmed": self.confirmed,
        }


class Baseline(ABC):
    """F within one fold.

    Attributes
    ----------
    can_search : bool
        Whether F predicts rows it has never seen, as the search needs.
    comes_fitted : bool
        Whether F was fitted elsewhere. Then it may refuse rows that its encoder gives, and what it
        predicts for training rows is its own opinion, not that of fits without them.
    ledger : AskLedger or None
        What F was asked in this fold; None where its answers cost next to nothing.
    refit_problem_ : str
        Why :meth:`cross_fit` could not fit F again; empty where it did, or was not called.
    decided_ : ndarray of shape (n,) or None
        Codes of the classes that F decides for on the rows of :meth:`cross_fit`; None where these
        are the most probable ones.
    """

    can_search = True
    comes_fitted = False
    ledger: AskLedger | None = None
    refit_problem_ = ""
    decided_: np.ndarray | None = None

    def fit(self, Z: np.ndarray, y: np.ndarray, seed: int) -> Baseline:
        """Fit on the training rows; where F came fitted there is nothing to do."""
        return self

    @abstractmethod
    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Predict any rows."""

    def predict_rows(self, Z: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Predict rows of the table, given encoded and by position."""
        return self.predict(Z)

    def decide_rows(self, Z: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Return the classes that F decides for; None where its probabilities tell."""
        return None

    def predict_table(self, encoder: Encoder, features: pd.DataFrame) -> np.ndarray:
        """Predict rows in canonical form, those with values unknown to the training rows too."""
        return self.predict(encoder.transform(features))

    def cross_fit(
        self, Z: np.ndarray, y: np.ndarray, rows: np.ndarray, parts: CvSplits, seed: int
    ) -> tuple[np.ndarray, list[Baseline]]:
        """Predict the training rows by fits that did not see them; F that came fitted by itself.

        An F that came fitted was fitted on other rows, so it judges the training rows as it is;
        its clones are fitted on the parts beside it.

        Parameters
        ----------
        Z, y : ndarray of shape (n, d), (n,)
            Encoded training rows and their targets.
        rows : ndarray of shape (n,), int
            Their positions in the table.
        parts : list of (ndarray, ndarray)
            Positions to fit on and to predict, see
            :func:`amlb_ext.hardening.split.cross_folds`.
        seed : int
            Every fit has a seed of its own, derived from it.

        Returns
        -------
        f : ndarray of shape (n,) or (n, C)
            NaN of rows that no part holds out and F did not come fitted to predict.
        fits : list of Baseline
            The fit of each part; empty where F cannot be fitted again, see
            :attr:`refit_problem_`, or where a part holds one class only, which is then what is
            expected of its rows.
        """
        return self.predict_rows(Z, rows), []


class EstimatorBaseline(Baseline):
    """An estimator that is fitted on each fold's training rows.

    Parameters
    ----------
    spec : ModelSpec
    kind : Kind
    n_classes : int
        C, or 0 for regression.
    n_categorical : int
        M_c, the leading columns that hold category codes.
    """

    def __init__(
        self, spec: ModelSpec, kind: Kind, n_classes: int, n_categorical: int
    ) -> None:
        self.spec = spec
        self.kind = kind
        self.n_classes = n_classes
        self.n_categorical = n_categorical

    def fit(self, Z: np.ndarray, y: np.ndarray, seed: int) -> EstimatorBaseline:
        """Fit preprocessing and model; see :class:`Baseline`."""
        model = self._with_preprocessing(build_estimator(self.spec, self.kind, seed))
        classes = np.array([])
        target = y
        if self.n_classes:
            # contiguous codes: a training part may lack a class, and XGBoost insists
            classes, target = np.unique(y, return_inverse=True)
            if not hasattr(model, "predict_proba"):
                raise ModelError(
                    f"{self.spec.path} has no predict_proba, which classification needs",
                    "choose a model with probabilities, e.g. wrap it in "
                    "sklearn.calibration.CalibratedClassifierCV",
                )
        with warnings.catch_warnings():
            # a baseline that is not fitted to the end is a baseline all the same
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                model.fit(Z, target)
            except HardsynthError:
                raise
            except Exception as error:
                reason = describe_error(error)
                raise ModelError(f"{self.spec.path} failed in fit: {reason}") from error
        self.model_, self.classes_ = model, classes
        return self

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Return f; see the module's notation."""
        with warnings.catch_warnings():
            # a category the training part lacked is a zero row, as intended
            warnings.filterwarnings("ignore", "Found unknown categories", UserWarning)
            try:
                if not self.n_classes:
                    f = np.asarray(forests.predict(self.model_, Z), dtype=float)
                    # linear models may return a column
                    return f.reshape(len(Z))
                p = np.asarray(forests.predict_proba(self.model_, Z), dtype=float)
            except Exception as error:
                reason = describe_error(error)
                raise ModelError(
                    f"{self.spec.path} failed in predict: {reason}"
                ) from error
        f = np.zeros((len(Z), self.n_classes))
        codes = self.classes_.astype(int)
        # of a single class some models still return two columns
        f[:, codes] = p if len(codes) > 1 else 1.0
        return f

    def cross_fit(
        self, Z: np.ndarray, y: np.ndarray, rows: np.ndarray, parts: CvSplits, seed: int
    ) -> tuple[np.ndarray, list[Baseline]]:
        """Fit F once per part, each with its own seed; see :class:`Baseline`."""
        classes = (self.n_classes,) if self.n_classes else ()
        f = np.full((len(y), *classes), np.nan)
        fits: list[Baseline] = []
        for number, (train, held_out) in enumerate(parts):
            if self.n_classes and np.ptp(y[train]) == 0:
                # many classifiers refuse a single class, which is then what they would predict
                only_class = int(y[train][0])
                f[held_out] = 0.0
                f[held_out, only_class] = 1.0
                continue
            fit = EstimatorBaseline(
                self.spec, self.kind, self.n_classes, self.n_categorical
            )
            part_seed = derive_int_seed(seed, number)
            fit.fit(Z[train], y[train], part_seed)
            f[held_out] = fit.predict(Z[held_out])
            fits.append(fit)
        # callers ask the fits part by part: an incomplete list would be out of step
        return f, fits if len(fits) == len(parts) else []

    def _with_preprocessing(self, estimator: BaseEstimator) -> BaseEstimator:
        """Return a pipeline that gives the estimator rows it can read."""
        steps: list[BaseEstimator] = [
            FilledColumns(fills_missing=not self.spec.reads_missing)
        ]
        if self.spec.encoding == "onehot" and self.n_categorical:
            # rare categories of a column with very many share one column, and so do unknown ones
            one_hot = OneHotEncoder(
                handle_unknown="infrequent_if_exist",
                max_categories=50,
                sparse_output=False,
            )
            steps.append(LeadingOneHot(one_hot, self.n_categorical))
        return make_pipeline(*steps, estimator)


#: Rows that are made one-hot at once.
_ROWS_AT_ONCE = 4096


class LeadingOneHot(TransformerMixin, BaseEstimator):
    """The first columns one-hot, and the others as they are.

    NOTE[OWN] A ColumnTransformer returns the same array, but takes twice as long for a few rows,
    which the search asks for many times.

    Parameters
    ----------
    encoder : OneHotEncoder
        Returns a dense array.
    n_leading : int

    Examples
    --------
    >>> encoder = OneHotEncoder(sparse_output=False)
    >>> LeadingOneHot(encoder, 1).fit_transform(np.array([[0, 0.5], [1, 0.25]])).tolist()
    [[1.0, 0.0, 0.5], [0.0, 1.0, 0.25]]
    """

    def __init__(self, encoder: OneHotEncoder, n_leading: int) -> None:
        self.encoder = encoder
        self.n_leading = n_leading

    def fit(self, Z: np.ndarray, y: np.ndarray | None = None) -> LeadingOneHot:
        """Learn the categories of the first columns."""
        self.encoder_ = clone(self.encoder).fit(Z[:, : self.n_leading])
        return self

    def transform(self, Z: np.ndarray) -> np.ndarray:
        """Return the one-hot columns, then the others."""
        # block by block: the one-hot columns of all rows are never held beside the result
        first = self._widen(Z[:_ROWS_AT_ONCE])
        if len(Z) <= _ROWS_AT_ONCE:
            return first
        wide = np.empty((len(Z), first.shape[1]), dtype=first.dtype)
        wide[:_ROWS_AT_ONCE] = first
        for start in range(_ROWS_AT_ONCE, len(Z), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            wide[rows] = self._widen(Z[rows])
        return wide

    def _widen(self, Z: np.ndarray) -> np.ndarray:
        one_hot = self.encoder_.transform(Z[:, : self.n_leading])
        return np.hstack([one_hot, Z[:, self.n_leading :]])


class FilledColumns(BaseEstimator):
    """A column without any training value is 0, whatever rows have there; gaps are medians.

    Histogram gradient boosting reads missing numbers, but not a column of nothing else.

    NOTE[OWN] SimpleImputer fills in the same medians, but checks its rows for longer than a tree
    takes to predict the few that the search asks for, and learns from masked copies of all.

    Parameters
    ----------
    fills_missing : bool
        Whether missing numbers become the median of their column's training values.

    Examples
    --------
    >>> Z = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, np.nan]])
    >>> FilledColumns(fills_missing=True).fit(Z).transform(Z).tolist()
    [[1.0, 0.0], [3.0, 0.0], [2.0, 0.0]]
    """

    def __init__(self, fills_missing: bool) -> None:
        self.fills_missing = fills_missing

    def fit(self, Z: np.ndarray, y: np.ndarray | None = None) -> FilledColumns:
        """Learn which columns are empty, and the medians of the others."""
        self.is_empty_ = np.isnan(Z).all(axis=0)
        self.median_ = np.zeros(Z.shape[1])
        if self.fills_missing:
            for j in np.flatnonzero(~self.is_empty_):
                self.median_[j] = np.median(Z[~np.isnan(Z[:, j]), j])
        return self

    def transform(self, Z: np.ndarray) -> np.ndarray:
        """Return filled rows; where there is nothing to fill, the rows themselves."""
        if self.fills_missing:
            # a copy in any case: a user's estimator may work in place
            return np.where(self.is_empty_ | np.isnan(Z), self.median_, Z)
        return np.where(self.is_empty_, 0.0, Z) if self.is_empty_.any() else Z


def fill_missing(Z: np.ndarray) -> np.ndarray:
    """Return Z with missing numbers as -1, a value outside the range: for trees.

    Without any it is Z itself.
    """
    is_missing = np.isnan(Z)
    return np.where(is_missing, -1.0, Z) if is_missing.any() else Z
