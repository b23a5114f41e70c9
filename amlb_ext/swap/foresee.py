"""Where G is foreseen to lose: a score of each row that never saw the row's own change.

Notation
--------
d : (n,) change of loss, G minus F
Z : (n, q) what is known beforehand: columns of the table and what both models predict
u : (n,) rank of a row's score within its fold, 0 foreseen worst, 1 foreseen best

Trees are fitted on the other folds. The rows that they put into the worst fifth are a group that
was chosen without their own d, so its mean is no selected maximum. Ranks are taken within a fold:
across folds they would be sorted against the noise of the folds' means. One division into folds
states too small an error (coverage .91); three are averaged, with the mean of their variances.

Trees learn from no more than :data:`MOST_LEARNT` rows and score all: intervals get narrower with
the rows that are scored, and what is foreseen hardly gains from more rows than these. The more rows
they learn from, the more a leaf holds, see :func:`make_trees`.

References
----------
Chernozhukov, Demirer, Duflo & Fernandez-Val (2018), *Generic machine learning inference on
heterogeneous treatment effects*; Imai & Li (2025), *Statistical inference for heterogeneous
treatment effects discovered by generic machine learning*, J. Business & Econ. Statistics 43;
Yadlowsky et al. (2025), *Evaluating treatment prioritization rules via rank-weighted average
treatment effects*, J. Amer. Statist. Assoc. 120, for the curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.pipeline import Pipeline, make_pipeline

from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.swap.contrast import Change, Contrast
from amlb_ext.units.conditions import middle_and_spread

#: Parts of the rows; each is scored by what the others teach.
FOLDS = 4
#: Divisions into folds that are averaged.
PASSES = 3
#: Rows that trees learn from at most.
MOST_LEARNT = 12_000
#: Trees of each fold of each division: three divisions average what few trees scatter.
TREES = 5
#: Rows that a leaf holds at least, ...
LEAST_LEAF = 10
#: ... and leaves that a tree has at most: a change of loss is mostly noise, which more would learn.
MOST_LEAVES = 150
#: Larger numbers have no range that a double could hold.
LARGEST = 1e30
#: Classes of which each probability is a column of its own for the trees.
MOST_CLASSES = 6


@dataclass(frozen=True, kw_only=True)
class Foresight:
    """The scores of one division into folds.

    Attributes
    ----------
    fold : ndarray of shape (n,), int
    score : ndarray of shape (n,)
        The change that other rows foretell, as a share of the largest change of a row.
    models : tuple of Pipeline
        What scored the rows of each fold.
    """

    fold: np.ndarray
    score: np.ndarray
    models: tuple[Pipeline, ...] = field(repr=False)

    @cached_property
    def rank(self) -> np.ndarray:
        """u of each row, ``(n,)``."""
        ranks = np.empty(len(self.score))
        for number in np.unique(self.fold):
            rows = np.flatnonzero(self.fold == number)
            worst_first = rows[np.argsort(-self.score[rows], kind="stable")]
            ranks[worst_first] = (np.arange(len(rows)) + 0.5) / len(rows)
        return ranks


def draw_folds(
    n: int, n_folds: int, rng: np.random.Generator, clusters: np.ndarray | None
) -> np.ndarray:
    """Return a fold for each row; rows of a cluster share theirs."""
    n_units = n if clusters is None else int(clusters.max()) + 1
    fold = rng.permutation(np.arange(n_units) % n_folds)
    return fold if clusters is None else np.asarray(fold[clusters])


def foresee(contrast: Contrast, Z: np.ndarray, seed: int) -> list[Foresight]:
    """Return the scores of :data:`PASSES` divisions into folds.

    Parameters
    ----------
    contrast : Contrast of n rows
    Z : ndarray of shape (n, q)
    seed : int
    """
    rng = random_stream(seed, "swap", "folds")
    Z = np.clip(Z, -LARGEST, LARGEST)
    # of size 1, since trees call changes of 1e-8 none; and rounded, since predictions from a file
    # differ from a model's in the last digit, by which trees break ties
    largest = float(np.abs(contrast.d).max()) or 1.0
    d = (contrast.d / largest).astype(np.float32).astype(float)
    passes = []
    # a fold that no group falls into would learn from all rows, and judge none
    n_folds = FOLDS
    if contrast.clusters is not None:
        n_folds = min(FOLDS, int(contrast.clusters.max()) + 1)
    for number in range(PASSES):
        fold = draw_folds(len(contrast), n_folds, rng, contrast.clusters)
        score = np.zeros(len(contrast))
        models = []
        for left_out in range(n_folds):
            held = fold == left_out
            learnt = np.flatnonzero(~held)
            if len(learnt) > MOST_LEARNT:
                learnt = rng.choice(learnt, MOST_LEARNT, replace=False)
            trees = make_trees(
                derive_int_seed(seed, "swap", "trees", number), len(learnt)
            )
            trees.fit(Z[learnt], d[learnt])
            score[held] = trees.predict(Z[held])
            models.append(trees)
        passes.append(Foresight(fold=fold, score=score, models=tuple(models)))
    return passes


def foreseen_change(passes: Sequence[Foresight], Z: np.ndarray) -> np.ndarray:
    """Return the mean score that the models of all passes give k new rows, ``(k,)``."""
    models = [model for foresight in passes for model in foresight.models]
    Z = np.clip(Z, -LARGEST, LARGEST)
    return np.asarray(np.mean([model.predict(Z) for model in models], axis=0))


def group_change(
    contrast: Contrast, passes: Sequence[Foresight], low: float, high: float
) -> Change:
    """Return the change of the rows whose rank is between two shares.

    The mean of the passes; its variance is the mean of theirs, which is no less than that of the
    mean, whatever they have in common.
    """
    ranks = [foresight.rank for foresight in passes]
    inside = [((rank >= low) & (rank <= high)).astype(float) for rank in ranks]
    return mean_of_passes([contrast.change(each) for each in inside])


def mean_of_passes(changes: Sequence[Change]) -> Change:
    """Return the mean of several estimates of one change."""
    variance = np.mean([change.se**2 for change in changes])
    return Change(
        value=float(np.mean([change.value for change in changes])),
        se=float(np.sqrt(variance)),
        df=min(change.df for change in changes),
        share=float(np.mean([change.share for change in changes])),
    )


class TableCoder:
    """Columns of a table as numbers that trees can split.

    A number stays what it is, a date is its time, text counts in the order of its first appearance
    in the table that was fitted. What is missing is below every number; a text that was not there
    is -1.

    Examples
    --------
    >>> table = pd.DataFrame({"a": [2.0, None], "b": ["x", "y"]})
    >>> TableCoder().fit(table).transform(table).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """

    def fit(self, table: pd.DataFrame) -> TableCoder:
        """Look at the columns."""
        self.names_ = list(table.columns)
        self.lowest_: dict[Any, float] = {}
        self.codes_: dict[Any, dict[Any, int]] = {}
        for name, column in table.items():
            numbers = _as_numbers(column)
            if numbers is None:
                values = column.astype(str).unique()
                self.codes_[name] = {value: code for code, value in enumerate(values)}
                continue
            known = numbers[~np.isnan(numbers)]
            if not len(known):
                known = np.zeros(1)
            _, spread = middle_and_spread(known)
            self.lowest_[name] = known.min() - spread
        return self

    def transform(self, table: pd.DataFrame) -> np.ndarray:
        """Return the columns that were fitted, ``(n, d)``."""
        columns = []
        for name in self.names_:
            if name in self.codes_:
                codes = table[name].astype(str).map(self.codes_[name])
                columns.append(codes.fillna(-1).to_numpy(dtype=float))
                continue
            numbers = _as_numbers(table[name])
            if numbers is None:
                numbers = np.full(len(table), np.nan)
            columns.append(np.nan_to_num(numbers, nan=self.lowest_[name]))
        return np.column_stack(columns) if columns else np.empty((len(table), 0))


def _as_numbers(column: pd.Series) -> np.ndarray | None:
    """Return a column of numbers or dates, what is missing or infinite as NaN; None of text."""
    if pd.api.types.is_datetime64_any_dtype(column):
        times = column.astype("int64").to_numpy(dtype=float)
        return np.where(column.notna(), times, np.nan)
    if not pd.api.types.is_numeric_dtype(column):
        return None
    numbers = column.to_numpy(dtype=float, na_value=np.nan)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def make_trees(seed: int, n: int) -> Pipeline:
    """Return the learner of n rows: of those tried it foresaw d best for its time.

    On ten tables, five pairs of models and 400, 1,200 and 4,000 rows, the mean change in the
    foreseen worst fifth of new rows was that of 20 trees on .6 of the columns or more, in half the
    time; small boosting took as long and foresaw less.
    """
    trees = ExtraTreesRegressor(
        TREES,
        min_samples_leaf=max(LEAST_LEAF, n // MOST_LEAVES),
        max_features=1.0,
        random_state=seed,
    )
    return make_pipeline(_Scaled(), trees)


class _Scaled(TransformerMixin, BaseEstimator):
    """Columns on a scale on which trees see them, see :func:`middle_and_spread`."""

    def fit(self, Z: np.ndarray, y: Any = None) -> _Scaled:
        self.scales_ = np.array([middle_and_spread(column) for column in Z.T])
        return self

    def transform(self, Z: np.ndarray) -> np.ndarray:
        middles, spreads = self.scales_.T
        return np.clip((Z - middles) / spreads, -LARGEST, LARGEST)


def predictions_as_columns(f: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Return what the trees see of two models: both predictions, their difference, their distance.

    Parameters
    ----------
    f, g : ndarray of shape (n,) or (n, C)
        Numbers or probabilities.
    """
    if f.ndim == 1:
        gap = np.abs(g - f)
        return np.column_stack([f, g, g - f, gap])
    gap = np.sqrt(((g - f) ** 2).sum(axis=1))
    if f.shape[1] > MOST_CLASSES:
        return np.column_stack([f.max(axis=1), g.max(axis=1), gap])
    # of two classes one probability says all
    first = 1 if f.shape[1] == 2 else 0
    own, other = f[:, first:], g[:, first:]
    return np.column_stack([own, other, other - own, gap])
