"""Tables to matrices to predictions, the same way as the generator of the suite does it.

Runs in AMLB's environment (Python 3.9, scikit-learn 1.2, pandas 1.5 and later), so it imports
scikit-learn, pandas and numpy alone, and nothing of AMLB: it can be tested without it.

Notation
--------
Z : (n, d) float64, the encoded rows; the first M_c columns are category codes, the rest are
    numeric columns, min-max scaled by the training rows. ``NaN`` is a missing number; a category
    that is missing, or that no training row has, is the last code of its column.
"""

from __future__ import annotations

import dataclasses
import importlib
import warnings
from typing import Any, Dict, Optional

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

#: Models that read a missing number as it is; all others get the training median.
READS_MISSING = ("HistGradientBoosting", "XGB", "LGBM", "CatBoost")


@dataclasses.dataclass(frozen=True)
class Settings:
    """The ``params`` of a framework definition.

    Attributes
    ----------
    classifier, regressor : str
        Import paths; a random forest where neither is given.
    classifier_params, regressor_params : dict
        Parameters of the model.
    encoding : str
        What the model sees of categories: ``ordinal`` or ``onehot``.
    seed_offset : int
        Added to AMLB's seed: several definitions of one model differ by it.
    seeds : dict of str to list of int
        Seeds in place of AMLB's for each fold of a task and of the tasks that are named after it:
        those of the generator, so that the same model comes again.
    train_share : float
        Part of the training rows, drawn by the seed, to fit on; below 1 for a null control.
    """

    classifier: str = ""
    classifier_params: Dict[str, Any] = dataclasses.field(default_factory=dict)
    regressor: str = ""
    regressor_params: Dict[str, Any] = dataclasses.field(default_factory=dict)
    encoding: str = "ordinal"
    seed_offset: int = 0
    seeds: Dict[str, Any] = dataclasses.field(default_factory=dict)
    train_share: float = 1.0

    @classmethod
    def from_params(cls, params: Any) -> Settings:
        """Read a mapping or an AMLB namespace; unknown keys and values raise ``ValueError``."""
        given = plain(params or {})
        known = [field.name for field in dataclasses.fields(cls)]
        for key in given:
            if key not in known:
                raise ValueError(f"unknown parameter {key!r}; known: {', '.join(known)}")
        given = {key: value for key, value in given.items() if value is not None}
        if not given.get("classifier") and not given.get("regressor"):
            given["classifier"] = "sklearn.ensemble.RandomForestClassifier"
            given["regressor"] = "sklearn.ensemble.RandomForestRegressor"
        settings = cls(**given)
        if settings.encoding not in ("ordinal", "onehot"):
            raise ValueError(f"encoding is {settings.encoding!r}; choose ordinal or onehot")
        if not 0 < settings.train_share <= 1:
            raise ValueError(f"train_share is {settings.train_share}; choose above 0, at most 1")
        return settings

    def seed_of(self, task: str, fold: int, seed: Optional[int]) -> Optional[int]:
        """Return the seed of a fold: the generator's where it is known, else AMLB's."""
        for name in sorted(self.seeds, key=len, reverse=True):
            is_of_task = task == name or task.startswith(name + "_")
            if is_of_task and fold < len(self.seeds[name]):
                return int(self.seeds[name][fold])
        return seed


def plain(value: Any) -> Any:
    """Return nested mappings and namespaces as dictionaries."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if type(value).__name__ == "Namespace":
        return plain(vars(value))
    return value


class Encoder:
    """Min-max for numbers, ordinal codes for everything else (boolean and text included).

    Columns are taken by position, as AMLB does. The generator (``hardening/encode.py``) numbers
    categories by what it writes of them, in text order; what it writes is never a number, so the
    order by value serves other benchmarks' files alone. A column without any training value is
    read as numbers and counts as such there too.

    Attributes
    ----------
    categories_ : list of list of str
        The training categories of each categorical column, numbers by value, else by text;
        the code after the last one means missing or unseen.
    low_, span_ : ndarray
        Minimum and range of each numeric column over the training rows; range 1 where constant.
    """

    def fit(self, frame: pd.DataFrame) -> Encoder:
        """Learn categories and ranges from the training rows."""
        numeric = [_is_numeric(dtype) for dtype in frame.dtypes]
        self.numeric_ = [j for j, yes in enumerate(numeric) if yes]
        self.categorical_ = [j for j, yes in enumerate(numeric) if not yes]
        self.categories_ = []
        for j in self.categorical_:
            texts = _texts(frame.iloc[:, j])
            self.categories_.append(_natural_order({t for t in texts if t is not None}))
        values = self._numbers(frame)
        seen = ~np.isnan(values)
        low = np.where(seen, values, np.inf).min(axis=0, initial=np.inf)
        high = np.where(seen, values, -np.inf).max(axis=0, initial=-np.inf)
        self.low_ = np.where(np.isfinite(low), low, 0.0)
        span = np.where(np.isfinite(high), high, 0.0) - self.low_
        self.span_ = np.where(span > 0, span, 1.0)
        return self

    def transform(self, frame: pd.DataFrame) -> np.ndarray:
        """Return Z, ``(n, d)``."""
        codes = np.empty((len(frame), len(self.categorical_)))
        for position, (j, categories) in enumerate(zip(self.categorical_, self.categories_)):
            code = {category: float(i) for i, category in enumerate(categories)}
            last = float(len(categories))
            codes[:, position] = [code.get(text, last) for text in _texts(frame.iloc[:, j])]
        return np.hstack([codes, (self._numbers(frame) - self.low_) / self.span_])

    def _numbers(self, frame: pd.DataFrame) -> np.ndarray:
        out = np.empty((len(frame), len(self.numeric_)))
        for position, j in enumerate(self.numeric_):
            out[:, position] = pd.to_numeric(frame.iloc[:, j], errors="coerce").astype(float)
        return out


def _is_numeric(dtype: Any) -> bool:
    return pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)


def _texts(values: pd.Series) -> list:
    """Return values as ``str``, missing ones as ``None``."""
    present = values.notna().to_numpy()
    return [str(v) if here else None for v, here in zip(values.astype(object), present)]


def _natural_order(values: set) -> list:
    try:
        return sorted(values, key=lambda value: (float(value), value))
    except ValueError:
        return sorted(values)


class Model:
    """A scikit-learn model behind the generator's preprocessing.

    Parameters
    ----------
    settings : Settings
    classes : bool
        Whether labels are predicted (else numbers).
    seed : int or None
        AMLB's seed; goes into every ``random_state`` that the settings leave open.
    cores : int
        Goes into ``n_jobs`` where the model has it.

    Attributes
    ----------
    labels_ : list of str
        Class labels, sorted as text: the order of the probability columns.
    low_, span_ : float
        Minimum and range of the training rows' target (numbers).
    """

    def __init__(
        self, settings: Settings, classes: bool, seed: Optional[int] = None, cores: int = 1
    ) -> None:
        kind = "classifier" if classes else "regressor"
        self.path = getattr(settings, kind)
        if not self.path:
            raise ValueError(f"this task needs a {kind}; give its import path as params.{kind}")
        self.settings = settings
        self.classes = classes
        self.params = getattr(settings, kind + "_params")
        self.seed = None if seed is None else (int(seed) + int(settings.seed_offset)) % 2**32
        self.cores = int(cores)

    def fit(self, frame: pd.DataFrame, target: pd.Series) -> Model:
        """Fit on the training rows."""
        self.encoder_ = Encoder().fit(frame)
        Z = self.encoder_.transform(frame)
        if self.classes:
            texts = target.astype(str).to_numpy(dtype=object)
            self.labels_ = sorted(set(texts))
            code = {label: i for i, label in enumerate(self.labels_)}
            y = np.array([code[text] for text in texts])
        else:
            # scaled as the generator scales it: not every model is indifferent to the unit
            y = target.to_numpy(dtype=float)
            self.low_, self.span_ = float(y.min()), float(y.max() - y.min()) or 1.0
            y = (y - self.low_) / self.span_
        rows = self._rows(y)
        Z, y = Z[rows], y[rows]
        self.empty_ = np.isnan(Z).all(axis=0)
        Z = np.where(self.empty_, 0.0, Z)  # boosting cannot bin a column without any value
        self.model_ = self._pipeline()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            # scikit-learn 1.8 on: some models have the parameter but no use for it
            warnings.filterwarnings("ignore", "'n_jobs' has no effect", FutureWarning)
            self.model_.fit(Z, y)
        return self

    def _rows(self, y: np.ndarray) -> np.ndarray:
        """Return the rows to fit on: all, or a random share that keeps a row of each class."""
        if self.settings.train_share >= 1:
            return np.arange(len(y))
        rng = np.random.default_rng(self.seed)
        rows = rng.permutation(len(y))
        kept = rows[: max(2, int(round(self.settings.train_share * len(y))))]
        if self.classes:
            first = [rows[np.flatnonzero(y[rows] == code)[0]] for code in np.unique(y)]
            kept = np.union1d(kept, first)
        return np.sort(kept)

    def predict(self, frame: pd.DataFrame) -> tuple:
        """Return predictions and probabilities (``None`` for numbers).

        A classifier without ``predict_proba`` gets the softmax of its decision function: its
        ranking is kept, its log loss means little.
        """
        Z = np.where(self.empty_, 0.0, self.encoder_.transform(frame))
        with warnings.catch_warnings():
            # a category that the training rows lack is a row of zeros, as intended
            warnings.filterwarnings("ignore", "Found unknown categories", UserWarning)
            if not self.classes:
                scaled = np.asarray(self.model_.predict(Z), dtype=float).reshape(len(Z))
                return scaled * self.span_ + self.low_, None
            if hasattr(self.model_, "predict_proba"):
                p = np.asarray(self.model_.predict_proba(Z), dtype=float)
            else:
                p = _softmax(np.asarray(self.model_.decision_function(Z), dtype=float))
            labels = np.array(self.labels_, dtype=object)
            return labels[np.asarray(self.model_.predict(Z)).astype(int).reshape(len(Z))], p

    def _pipeline(self) -> Any:
        estimator = self._estimator()
        steps = []
        if not type(estimator).__name__.startswith(READS_MISSING):
            steps.append(SimpleImputer(strategy="median", keep_empty_features=True))
        n_categorical = len(self.encoder_.categorical_)
        if self.settings.encoding == "onehot" and n_categorical:
            one_hot = OneHotEncoder(
                handle_unknown="infrequent_if_exist", max_categories=50, sparse_output=False
            )
            columns = list(range(n_categorical))
            steps.append(
                ColumnTransformer([("categories", one_hot, columns)], remainder="passthrough")
            )
        return make_pipeline(*steps, estimator)

    def _estimator(self) -> Any:
        estimator = import_class(self.path)()
        known = estimator.get_params()
        for key in self.params:
            if key not in known:
                raise ValueError(f"{self.path} has no parameter {key!r}; known: {sorted(known)}")
        estimator.set_params(**self.params)
        known = estimator.get_params(deep=True)
        linear = self.path.startswith("sklearn.linear_model.")  # there n_jobs does nothing
        if "n_jobs" in known and "n_jobs" not in self.params and not linear:
            estimator.set_params(n_jobs=self.cores)
        if self.seed is not None:
            for key in sorted(known):
                seeded = key == "random_state" or key.endswith("__random_state")
                if seeded and key not in self.params:
                    estimator.set_params(**{key: self.seed})
        return estimator


def import_class(path: str) -> Any:
    """Return the class at an import path such as ``sklearn.linear_model.Ridge``.

    Raises
    ------
    ValueError
        Naming what cannot be found.
    """
    module_name, _, class_name = str(path).rpartition(".")
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"cannot import the model {path!r} ({error}); give an import path that AMLB's Python "
            "knows, e.g. sklearn.ensemble.RandomForestClassifier"
        ) from None
    if not hasattr(found, "get_params"):
        raise ValueError(f"{path!r} is no scikit-learn model: it has no get_params")
    return found


def _softmax(scores: np.ndarray) -> np.ndarray:
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros_like(scores), scores])
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)
