"""Rows judged by F, K and the oracle: the real ones of a fold, and those that were made.

Everything made is *snapped* first: decoded to the table's own form (whole numbers, categories),
held against the relations between columns (:mod:`amlb_ext.hardening.feasibility`) and encoded
again, so that F and K judge the very row that is written.

A made row repeats the features of no real row and of no other made row, whatever its target: a
copy would stand on both sides of a fold, or contradict the label of the row that it repeats.

Notation
--------
n, d : rows, encoded columns
k : targets of a row, at least one; C : classes (k is then 1)
Z : (n, d) encoded rows
y : (n, k) scaled targets, or (n, 1) class codes
f, t : predictions of F and of the oracle T, (n, k) or (n, 1, C); axis 1 is always the target
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core import row_losses
from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.equal_rows import number_rows, repeats_earlier
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline.estimator import Baseline
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.feasibility import FoldRelations
from amlb_ext.hardening.hardness import BadRule, hardness_by_target
from amlb_ext.hardening.oracle import Oracle, check_labels
from amlb_ext.suite.fold_notes import REASONS

#: A label may be less plausible by this much than at the row it came from: a probability, and
#: the oracle's RMSEs.
CLASS_SLACK, REGRESSION_SLACK = 0.02, 0.1


@dataclass(frozen=True, kw_only=True)
class TargetModels:
    """What is fitted for one target of a fold, on its training rows.

    Attributes
    ----------
    scale : TargetEncoder
    baseline : Baseline
        F.
    oracle : Oracle
        T.
    refits : sequence of Baseline
        F without each part of the training rows, the null control; see
        :mod:`amlb_ext.hardening.prepare`.
    """

    scale: TargetEncoder
    baseline: Baseline
    oracle: Oracle
    refits: Sequence[Baseline] = ()


@dataclass(frozen=True, kw_only=True)
class FoldModels:
    """What both sides of a fold share, fitted on its training rows.

    Attributes
    ----------
    encoder : Encoder
    targets : tuple of TargetModels
        One per target.
    rule : BadRule
        K, over all targets.
    Z, y : ndarray of shape (n, d), (n, k)
        The training rows.
    config : GenerateConfig
    key : tuple
        Of the fold's random streams.
    least_support : float or None
        What a made row's label needs of the oracle where the table consists of cells, see
        :func:`amlb_ext.hardening.oracle.least_support`; None elsewhere.
    relations : FoldRelations or None
        What made rows must satisfy; None where nothing is mined or declared.
    """

    encoder: Encoder
    targets: tuple[TargetModels, ...]
    rule: BadRule
    Z: np.ndarray
    y: np.ndarray
    config: GenerateConfig
    key: tuple[str | int, ...]
    least_support: float | None = None
    relations: FoldRelations | None = None

    @property
    def n_classes(self) -> int:
        """C, or 0 for regression."""
        return self.targets[0].scale.n_classes

    @property
    def can_search(self) -> bool:
        """Whether F predicts rows it has never seen; a file of predictions does not."""
        return all(target.baseline.can_search for target in self.targets)

    def predict_baseline(self, Z: np.ndarray) -> np.ndarray:
        """Return f of any rows; see the module's notation."""
        return np.stack([target.baseline.predict(Z) for target in self.targets], axis=1)

    def predict_oracle(self, Z: np.ndarray) -> np.ndarray:
        """Return t of rows the oracle was not fitted on; see the module's notation."""
        return np.stack([target.oracle.predict(Z) for target in self.targets], axis=1)

    def no_predictions(self, n: int) -> np.ndarray:
        """Return predictions of n rows that nobody was asked about: NaN."""
        # NaN, not 0: what nobody said must not look like an answer
        classes = (self.n_classes,) if self.n_classes else ()
        return np.full((n, len(self.targets), *classes), np.nan)

    def snap_targets(self, y: np.ndarray) -> np.ndarray:
        """Return targets as they will be written: whole numbers where all are whole."""
        return np.stack(
            [target.scale.snap(y[:, j]) for j, target in enumerate(self.targets)],
            axis=1,
        )


@dataclass(frozen=True, kw_only=True)
class JudgedRows:
    """Rows of one side of a fold, real or made, with what F, K and the oracle say of each.

    Attributes
    ----------
    features : DataFrame
        The rows as they are written, in canonical form.
    Z : ndarray of shape (n, d)
        The same, encoded.
    y, f : ndarray
        Targets and F's predictions, see the module's notation; f is NaN where F cannot be asked.
    hardness : ndarray of shape (n,)
        Under the fold's rule, over all targets.
    is_bad : ndarray of shape (n,), bool
        Whether K calls the row bad.
    reducible, support, agrees : ndarray of shape (n, k)
        ``(T - F)^2``; how strongly the oracle supports the label, and whether that suffices.
    weight : ndarray of shape (n,)
        ``P(bad | x)`` of a test row; NaN of any other.
    parent : ndarray of shape (n,), int
        Position, among the real rows of this side, of the bad row that a made row came from; a
        real row's own position.
    row : ndarray of shape (n,), int
        Position in the table; -1 for a made row.
    substituted : ndarray of shape (n,), str
        Written names of the columns whose cells were replaced, with commas between.
    put_back : ndarray of shape (n,), str
        Names of the columns in which a made row was given back its parent's value because it
        broke a relation, with commas between.
    is_feasible : ndarray of shape (n,), bool
        Whether the row satisfies the relations that made rows must satisfy.
    """

    features: pd.DataFrame
    Z: np.ndarray
    y: np.ndarray
    f: np.ndarray
    hardness: np.ndarray
    is_bad: np.ndarray
    reducible: np.ndarray
    support: np.ndarray
    agrees: np.ndarray
    weight: np.ndarray
    parent: np.ndarray
    row: np.ndarray
    substituted: np.ndarray
    put_back: np.ndarray
    is_feasible: np.ndarray

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: np.ndarray) -> JudgedRows:
        """Return some of the rows, by position or by mask."""
        # rows are counted by position everywhere, so labels of the table's index must not survive
        taken: dict[str, Any] = {
            "features": self.features.iloc[rows].reset_index(drop=True)
        }
        for name in _ARRAYS:
            taken[name] = getattr(self, name)[rows]
        return JudgedRows(**taken)

    @classmethod
    def concatenate(cls, blocks: Sequence[JudgedRows]) -> JudgedRows:
        """Return the rows of all blocks, in order; at least one block."""
        features = [block.features for block in blocks]
        joined: dict[str, Any] = {"features": pd.concat(features, ignore_index=True)}
        for name in _ARRAYS:
            joined[name] = np.concatenate([getattr(block, name) for block in blocks])
        return cls(**joined)


_ARRAYS = [each.name for each in fields(JudgedRows) if each.name != "features"]


@dataclass(frozen=True, kw_only=True)
class MadeRows:
    """Rows made in one way, and what became of those that were tried.

    Attributes
    ----------
    rows : JudgedRows
        Those that are kept.
    asked : int
        How many were wanted.
    dropped : Counter
        Rows that were tried and not kept, by :data:`amlb_ext.suite.fold_notes.REASONS`.
    notes : tuple of str
        Remarks for the manifest.
    """

    rows: JudgedRows
    asked: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MadeSide:
    """What was made from the bad rows of one side.

    Attributes
    ----------
    augmented, synthetic : MadeRows
    bad : int
        Bad rows of the side.
    least_support : float or None
        As in :class:`FoldModels`.
    notes : tuple of str
        Remarks for the manifest, in the order of the stages.
    """

    augmented: MadeRows
    synthetic: MadeRows
    bad: int
    least_support: float | None
    notes: tuple[str, ...]

    def counts(self) -> dict[str, Any]:
        """Return the side's counts for the manifest."""
        return {
            "bad": self.bad,
            "augmented_asked": self.augmented.asked,
            "augmented": len(self.augmented.rows),
            "synthetic_asked": self.synthetic.asked,
            "synthetic": len(self.synthetic.rows),
            "dropped": {
                "augmented": _by_reason(self.augmented.dropped),
                "synthetic": _by_reason(self.synthetic.dropped),
            },
            "least_support": self.least_support,
        }


def _by_reason(dropped: Mapping[str, int]) -> dict[str, int]:
    # a fold without relations has no count of rows that break them
    return {
        reason: int(dropped.get(reason, 0))
        for reason in REASONS
        if reason != "relation" or reason in dropped
    }


def judge_real_rows(
    models: FoldModels,
    *,
    features: pd.DataFrame,
    Z: np.ndarray,
    y: np.ndarray,
    f: np.ndarray,
    t: np.ndarray,
    row: np.ndarray,
    substituted: np.ndarray | None = None,
    weight: np.ndarray | None = None,
) -> JudgedRows:
    """Let K and the oracle judge real rows, of which F and T have said f and t already.

    Parameters
    ----------
    models : FoldModels
    features, Z, y, row, substituted, weight
        As in :class:`JudgedRows`.
    f, t : ndarray
        Predictions by fits that did not see the rows.
    """
    n = len(y)
    hardness = models.rule.hardness(y, f, t)
    reducible = hardness_by_target("reducible", y, f, t)
    support, agrees = _support_labels(models, t, y)
    is_feasible = np.ones(n, dtype=bool)
    if models.relations is not None:
        is_feasible = ~models.relations.breaks(features, y)
    return JudgedRows(
        features=features,
        Z=Z,
        y=y,
        f=f,
        hardness=hardness,
        is_bad=models.rule.select(hardness),
        reducible=np.stack(reducible, axis=1),
        support=support,
        agrees=agrees,
        weight=np.full(n, np.nan) if weight is None else weight,
        parent=np.arange(n),
        row=row,
        substituted=np.full(n, "", dtype=object)
        if substituted is None
        else substituted,
        put_back=np.full(n, "", dtype=object),
        is_feasible=is_feasible,
    )


def judge_made_rows(
    models: FoldModels,
    real: JudgedRows,
    *,
    Z: np.ndarray,
    y: np.ndarray,
    parent: np.ndarray,
    repairs: bool = False,
) -> JudgedRows:
    """Snap made rows, put the relations to them, and let F, K and the oracle judge them.

    Parameters
    ----------
    models : FoldModels
    real : JudgedRows
        The real rows of the side, among which ``parent`` counts.
    Z, y : ndarray of shape (n, d), (n, k)
        Encoded rows, not yet snapped, and their targets.
    parent : ndarray of shape (n,), int
        Of each row the bad row it came from.
    repairs : bool
        Give a row that breaks a relation its parent's values back; otherwise it is marked.
    """
    features = models.encoder.inverse(Z)
    n = len(Z)
    put_back, is_feasible = np.full(n, "", dtype=object), np.ones(n, dtype=bool)
    if models.relations is not None and n:
        corrected = models.relations.correct(
            features,
            y,
            parent_features=real.features.iloc[parent].reset_index(drop=True),
            parent_y=real.y[parent],
            repairs=repairs,
        )
        features, y = corrected.features, corrected.y
        put_back, is_feasible = corrected.put_back, ~corrected.is_broken
    Z = models.encoder.transform(features)
    # of no rows at all most models refuse to predict anything
    f = t = models.no_predictions(n)
    hardness = np.full(n, np.nan)
    reducible = np.full(y.shape, np.nan)
    if n:
        t = models.predict_oracle(Z)
    if n and models.can_search:
        f = models.predict_baseline(Z)
        hardness = models.rule.hardness(y, f, t)
        reducible = np.stack(hardness_by_target("reducible", y, f, t), axis=1)
    support, agrees = _support_labels(models, t, y)
    if models.least_support is not None:
        # in a table of cells the label rests on the oracle alone
        agrees = agrees & (support >= models.least_support)
    if models.relations is None or not n:
        # decoded once more: a number that went through the scale may differ in its last bit
        features = models.encoder.inverse(Z)
    return JudgedRows(
        features=features,
        Z=Z,
        y=y,
        f=f,
        hardness=hardness,
        is_bad=models.rule.select(hardness),
        reducible=reducible,
        support=support,
        agrees=agrees,
        weight=np.full(n, np.nan),
        parent=parent,
        row=np.full(n, -1, dtype=np.int64),
        substituted=np.full(n, "", dtype=object),
        put_back=put_back,
        is_feasible=is_feasible,
    )


def no_made_rows(models: FoldModels, real: JudgedRows) -> JudgedRows:
    """Return made rows of which there are none."""
    return judge_made_rows(
        models, real, Z=real.Z[:0], y=real.y[:0], parent=np.zeros(0, dtype=int)
    )


def _support_labels(
    models: FoldModels, t: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the oracles' support of each label and whether it suffices, ``(n, k)`` each."""
    supports, agreements = [], []
    for j, target in enumerate(models.targets):
        support, agrees = check_labels(
            t[:, j], y[:, j], models.config.agreement, rmse=target.oracle.rmse_
        )
        supports.append(support)
        agreements.append(agrees)
    return np.stack(supports, axis=1), np.stack(agreements, axis=1)


# Which made rows are kept.


@dataclass(frozen=True)
class TakenRows:
    """Features that no made row may repeat, as they are written and without the target.

    Attributes
    ----------
    real : tuple of DataFrame
        Of real rows on both sides of a fold, in canonical form.
    made : tuple of DataFrame
        Of rows made before.
    """

    real: tuple[pd.DataFrame, ...]
    made: tuple[pd.DataFrame, ...] = ()

    @classmethod
    def of_fold(cls, task: Task, written: pd.DataFrame) -> TakenRows:
        """Return the rows of the table, and the fold's test rows as they are written."""
        return cls((task.features, written))

    def with_made(self, *made: JudgedRows) -> TakenRows:
        """Return these rows and others that were made."""
        return replace(self, made=(*self.made, *(rows.features for rows in made)))

    def repeated(self, features: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows repeat a real row, and which one that was made before."""
        asked, *others = number_rows(features, *self.real, *self.made)
        n_real = len(self.real)
        real, made = others[:n_real], others[n_real:]
        # nothing may have been made before, and concatenating nothing is an error
        nothing = np.zeros(0, dtype=asked.dtype)
        repeats_real = np.isin(asked, np.concatenate([nothing, *real]))
        repeats_made = np.isin(asked, np.concatenate([nothing, *made]))
        return repeats_real, repeats_made


def label_passes(models: FoldModels, made: JudgedRows, real: JudgedRows) -> np.ndarray:
    """Return which made rows have labels that the oracle lets pass.

    Many real failures carry labels that the oracle contradicts: that is why they are failures.
    Made rows without such labels would stand for other rows than those they came from, so a
    label passes where it is supported, or (nearly) as plausible as at the row it came from. Of
    several targets each must pass. In a table of cells nothing is inherited: the oracle must
    vouch for the label.
    """
    if not models.config.agreement.filter:
        return np.ones(len(made), dtype=bool)
    passes = made.agrees
    if models.least_support is None:
        slack = CLASS_SLACK if models.n_classes else REGRESSION_SLACK
        as_plausible = made.support >= real.support[made.parent] - slack
        if models.n_classes:
            # another label than the parent's has nothing to lean on
            as_plausible &= made.y == real.y[made.parent]
        passes = passes | as_plausible
    return np.all(passes, axis=1)


def screen_made_rows(
    models: FoldModels,
    made: JudgedRows,
    real: JudgedRows,
    taken: TakenRows,
    *,
    asks_oracle: bool = True,
) -> tuple[np.ndarray, Counter[str]]:
    """Decide which made rows are kept, and count the others by the first reason that applies.

    Parameters
    ----------
    models : FoldModels
    made, real : JudgedRows
        Made rows, and the real rows they came from.
    taken : TakenRows
        The real rows, and what was made before.
    asks_oracle : bool
        Whether the oracle is asked about the labels; in a table of cells it always is.

    Returns
    -------
    kept : ndarray of int
        Positions.
    dropped : Counter
        How many are not kept, by :data:`amlb_ext.suite.fold_notes.REASONS`.
    """
    repeats_real, repeats_made = taken.repeated(made.features)
    checks = {}
    if models.relations is not None:
        checks["relation"] = ~made.is_feasible
    checks["real_row"] = repeats_real
    if models.config.search.reapply and models.can_search:
        checks["good"] = ~made.is_bad
    if asks_oracle or models.least_support is not None:
        checks["label"] = ~label_passes(models, made, real)
    checks["made_row"] = repeats_made
    keep = np.ones(len(made), dtype=bool)
    dropped: Counter[str] = Counter()
    for reason, applies in checks.items():
        dropped[reason] = int((keep & applies).sum())
        keep &= ~applies
    # of several rows alike the first one that passed stays, so this check comes last
    kept = np.flatnonzero(keep)
    repeats = repeats_earlier(number_rows(made.features.iloc[kept])[0])
    dropped["made_row"] += int(repeats.sum())
    return kept[~repeats], dropped


def refit_losses(
    refits: Sequence[Baseline], Z: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """Return the losses ``(n, R)`` of F's re-fits on one target ``y (n,)``: the null control."""
    table = np.empty((len(y), len(refits)))
    if not len(y):
        return table
    for number, refit in enumerate(refits):
        table[:, number] = row_losses.row_loss(y, refit.predict(Z))
    return table
