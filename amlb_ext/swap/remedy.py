"""What to do instead of replacing F by G outright: a mixture of both.

Notation
--------
p_F, p_G : what the models predict, numbers or probabilities
w : weight of G, on the grid 0, .1, ..., 1: the prediction is w p_G + (1 - w) p_F
bad : rows in which G is foreseen to lose (:mod:`amlb_ext.swap.foresee`)

Two mixtures are judged cross-fitted, with the weights of the other folds: a ``blend`` with one w,
and ``two weights``, one where bad and one elsewhere. The latter contains the blend, either model
alone (``keep F``, ``take G``) and a ``route`` (F where bad, else G). Two weights are proposed only
where they save more than the blend by over one standard error: on 500 rows both tie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas.util import hash_pandas_object
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from amlb_ext.models.adapter import ModelAdapter
from amlb_ext.models.answers import Answers, Labels
from amlb_ext.models.given_table import GivenTable
from amlb_ext.swap.contrast import Change, standard_error
from amlb_ext.swap.foresee import (
    Foresight,
    TableCoder,
    foreseen_change,
    mean_of_passes,
    predictions_as_columns,
)

#: Weights of G that are tried.
WEIGHTS = np.linspace(0, 1, 11)


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """What is proposed, and what it is worth.

    Attributes
    ----------
    kind : {'keep F', 'take G', 'blend', 'route', 'two weights'}
    weight_bad, weight : float
        Of G where G is foreseen to lose, and elsewhere; alike but for a route and two weights.
    change : Change
        Of F's mean loss under the proposal, cross-fitted.
    worst : Change
        The same in the fifth of rows where G is foreseen to lose most.
    model : BaseEstimator or None
        The mixture as a fitted scikit-learn estimator; None where F or G are predictions alone.
    """

    kind: str
    weight_bad: float
    weight: float
    change: Change
    worst: Change
    model: Any = None

    def formula(self, name: str) -> str:
        """Return the proposal in words.

        Parameters
        ----------
        name : str
            Of G.
        """
        if self.kind in ("keep F", "take G"):
            return self.kind.replace("G", name)
        if self.weight_bad == self.weight:
            return _mixture(self.weight, name)
        return (
            f"{_mixture(self.weight_bad, name)} where {name} is foreseen to lose, "
            f"{_mixture(self.weight, name)} elsewhere"
        )


def _mixture(weight: float, name: str) -> str:
    if weight in (0.0, 1.0):
        return name if weight else "F"
    return f"{weight:.1f} {name} + {1 - weight:.1f} F"


#: From the weight of G to the loss of each row of the mixture, ``(n,)``.
MixtureLoss = Callable[[float], np.ndarray]


def find_remedy(
    loss_of: MixtureLoss,
    passes: Sequence[Foresight],
    clusters: np.ndarray | None,
    *,
    is_of_rows: bool = True,
) -> Remedy:
    """Return the mixture that the evidence chooses.

    Parameters
    ----------
    loss_of : callable
    passes : sequence of Foresight
        Of G.
    clusters : ndarray of shape (n,), int, optional
    is_of_rows : bool
        Whether a row's loss is its own. Of pairs of rows, as for the AUC, one weight must serve
        all rows: the scores of two mixtures have no common order.
    """
    losses = np.column_stack([loss_of(float(weight)) for weight in WEIGHTS])
    gains = [_gains_of_pass(losses, foresight) for foresight in passes]
    more = mean_of_passes([_change(two - one, clusters) for one, two in gains])
    takes_two = is_of_rows and more.value + more.se < 0
    score = np.mean([foresight.score for foresight in passes], axis=0)
    bad = score >= 0
    weight_bad = weight = _best_weight(losses)
    if takes_two and bad.any() and not bad.all():
        weight_bad, weight = _best_weight(losses[bad]), _best_weight(losses[~bad])
    chosen = [two if takes_two else one for one, two in gains]
    change = mean_of_passes([_change(gain, clusters) for gain in chosen])
    in_worst = [
        _change(gain, clusters, foresight.rank <= 0.2)
        for foresight, gain in zip(passes, chosen, strict=True)
    ]
    worst = mean_of_passes(in_worst)
    if change.value >= 0 or weight_bad == weight == 0:
        # what does not save on other rows is no proposal: F stays, and nothing changes
        weight_bad = weight = 0.0
        change = worst = Change(value=0.0, se=0.0, df=1.0, share=1.0)
    kind = "route" if (weight_bad, weight) == (0.0, 1.0) else "two weights"
    if weight_bad == weight:
        kind = {0.0: "keep F", 1.0: "take G"}.get(weight, "blend")
    return Remedy(
        kind=kind,
        weight_bad=weight_bad,
        weight=weight,
        change=change,
        worst=worst,
    )


def _best_weight(losses: np.ndarray) -> float:
    return float(WEIGHTS[np.argmin(losses.mean(axis=0))])


def _gains_of_pass(
    losses: np.ndarray, foresight: Foresight
) -> tuple[np.ndarray, np.ndarray]:
    """Return the change of each row's loss from F by a blend and by two weights, ``(n,)`` each."""
    loss_f, bad = losses[:, 0], foresight.score >= 0
    by_blend, by_two = loss_f.copy(), loss_f.copy()
    every = np.ones(len(bad), dtype=bool)
    for fold in np.unique(foresight.fold):
        held = foresight.fold == fold
        for side, chosen in ((every, by_blend), (bad, by_two), (~bad, by_two)):
            if (~held & side).any():
                best = int(np.argmin(losses[~held & side].mean(axis=0)))
                chosen[held & side] = losses[held & side, best]
    return by_blend - loss_f, by_two - loss_f


def _change(
    gain: np.ndarray, clusters: np.ndarray | None, inside: np.ndarray | None = None
) -> Change:
    """Return the mean of a gain over some rows."""
    weights = np.ones(len(gain)) if inside is None else inside.astype(float)
    total = weights.sum()
    mean = float((weights * gain).sum() / total)
    changed = (weights > 0) & (gain != 0)
    se, df = standard_error(weights * (gain - mean) / total, clusters, changed)
    return Change(value=mean, se=se, df=df, share=float(weights.mean()))


def mix_models(
    F: Any,
    G: Any,
    remedy: Remedy,
    table: pd.DataFrame,
    passes: Sequence[Foresight],
    labels: Labels,
    targets: np.ndarray,
) -> MixedClassifier | MixedRegressor:
    """Return a remedy as a fitted estimator.

    Parameters
    ----------
    F, G : estimator
        Fitted.
    remedy : Remedy
    table : DataFrame of n rows
        What G's loss was foreseen from.
    passes : sequence of Foresight
        Of G.
    labels : Labels
        Empty for a regression.
    targets : ndarray of shape (n,)
        As the user gave them: classes are returned alike.
    """
    kind = MixedClassifier if len(labels) else MixedRegressor
    mixture = kind(F, G, weight=remedy.weight, weight_bad=remedy.weight_bad)
    mixture.learn(table, passes, labels)
    if isinstance(mixture, MixedClassifier):
        own = dict(zip(labels.codes(targets).tolist(), targets, strict=True))
        classes = [own.get(code, name) for code, name in enumerate(labels.names)]
        mixture.classes_ = np.array(classes)
    return mixture


class Mixture(BaseEstimator):
    """A mixture of two fitted models, by one weight or by two.

    Parameters
    ----------
    F, G : estimator
        Fitted.
    weight, weight_bad : float
        Of G; ``weight_bad`` in rows where G is foreseen to lose.
    """

    def __init__(self, F: Any, G: Any, weight: float, weight_bad: float) -> None:
        self.F = F
        self.G = G
        self.weight = weight
        self.weight_bad = weight_bad

    def learn(
        self, table: pd.DataFrame, passes: Sequence[Foresight], labels: Labels
    ) -> Mixture:
        """Keep what foresees where G loses.

        Parameters
        ----------
        table : DataFrame of n rows
            Labelled rows that neither model has seen, with the columns that were foreseen from.
        passes : sequence of Foresight
        labels : Labels
            Empty for a regression.
        """
        self.labels_ = labels
        self.n_features_in_ = table.shape[1]
        self.feature_names_in_ = np.array([str(name) for name in table.columns])
        self.coder_ = TableCoder().fit(table)
        self.passes_ = list(passes) if self.weight_bad != self.weight else []
        self.rows_seen_ = hash_pandas_object(table, index=False).to_numpy()
        return self

    def has_seen(self, table: pd.DataFrame) -> bool:
        """Whether the weights were chosen on most rows of a table, which flatter the mixture."""
        rows = hash_pandas_object(table[list(self.feature_names_in_)], index=False)
        return bool(np.isin(rows, self.rows_seen_).mean() > 0.5)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coder_")

    def _mix(self, X: Any) -> Answers:
        """Return the mixture of what both models answer, and what it decides for.

        Where a model stands alone its own decisions count, as they did when the mixture was chosen.
        """
        table = GivenTable.of(X)
        F = ModelAdapter(self.F, "F").answer(table, self.labels_)
        G = ModelAdapter(self.G, "G").answer(table, self.labels_)
        weight = np.full(len(F.f), self.weight)
        if self.passes_:
            columns = self.coder_.transform(table.frame)
            Z = np.column_stack([columns, predictions_as_columns(F.f, G.f)])
            weight[foreseen_change(self.passes_, Z) >= 0] = self.weight_bad
        if F.decided is None or G.decided is None:
            return Answers(f=weight * G.f + (1 - weight) * F.f)
        mixed = weight[:, None] * G.f + (1 - weight[:, None]) * F.f
        decided = np.argmax(mixed, axis=1)
        for own, alone in ((F, weight == 0), (G, weight == 1)):
            decided = np.where(alone, own.decided, decided)
        return Answers(f=mixed, decided=decided)


class MixedRegressor(RegressorMixin, Mixture):
    """A mixture of two models of a number; see :class:`Mixture`."""

    def predict(self, X: Any) -> np.ndarray:
        """Return the prediction of each row, ``(n,)``, in the target's unit."""
        return self._mix(X).f


class MixedClassifier(ClassifierMixin, Mixture):
    """A mixture of two models of a class; see :class:`Mixture`."""

    classes_: np.ndarray

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes, ``(n, C)``."""
        return self._mix(X).f

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row; of one model alone, what it decides."""
        return self.classes_[self._mix(X).decided]
