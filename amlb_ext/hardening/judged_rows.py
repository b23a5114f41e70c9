"""The models of a fold, and rows judged by them: by F, by K and by the oracle.

Real rows are judged here; how made rows come about, and which of them are kept, is told in
:mod:`amlb_ext.hardening.made_rows`.

Notation
--------
n, d : rows, encoded columns
k : targets of a row, at least one; C : classes (k is then 1)
Z : (n, d) encoded rows
y : (n, k) scaled targets, or (n, 1) class codes
f, t : predictions of F and of the oracle T, (n, k) or (n, 1, C); axis 1 is always the target
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.config import GenerateConfig
from amlb_ext.hardening.baseline.estimator import AskLedger, Baseline
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.feasibility import CorrectedRows, FoldRelations
from amlb_ext.hardening.hardness import BadRule, hardness_by_target
from amlb_ext.hardening.oracle import Oracle, check_labels


def side_by_side(of_targets: Sequence[np.ndarray]) -> np.ndarray:
    """Stack what belongs to the targets along axis 1; of a single one it is a view, no copy."""
    [first, *others] = of_targets
    return np.stack(of_targets, axis=1) if others else first[:, None]


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
        F without each part of the training rows, or of their time, the null control; see
        :mod:`amlb_ext.hardening.prepare`.
    cross_fits : sequence of Baseline
        F without each part that the fold is cross-fitted on; empty where it cannot be fitted
        again, see :meth:`amlb_ext.hardening.baseline.estimator.Baseline.cross_fit`.
    """

    scale: TargetEncoder
    baseline: Baseline
    oracle: Oracle
    refits: Sequence[Baseline] = ()
    cross_fits: Sequence[Baseline] = ()


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
    f, t : ndarray or None
        What fits of F and of the oracle say of these rows that never saw them, see the module's
        notation; NaN of a row that no fit is for. None where nobody knows which rows F saw.
    config : GenerateConfig
    key : tuple
        Of the fold's random streams.
    least_support : float or None
        What a made row's label needs of the oracle where the table consists of cells, see
        :func:`amlb_ext.hardening.made_rows.screening.least_support`; None elsewhere.
    relations : FoldRelations or None
        What made rows must satisfy; None where nothing is mined or declared.
    omega : ndarray or None
        Slopes of the target, see :class:`amlb_ext.hardening.search.Domain`; None until a search
        learns them.
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
    f: np.ndarray | None = None
    t: np.ndarray | None = None
    omega: np.ndarray | None = None

    @property
    def n_classes(self) -> int:
        """C, or 0 for regression."""
        return self.targets[0].scale.n_classes

    @property
    def can_search(self) -> bool:
        """Whether F predicts rows it has never seen; a file of predictions does not."""
        return all(target.baseline.can_search for target in self.targets)

    @property
    def ledger(self) -> AskLedger | None:
        """What F was asked in this fold; None where its answers cost next to nothing."""
        return self.targets[0].baseline.ledger

    def predict_baseline(self, Z: np.ndarray) -> np.ndarray:
        """Return f of any rows; see the module's notation."""
        return side_by_side([target.baseline.predict(Z) for target in self.targets])

    def predict_oracle(self, Z: np.ndarray) -> np.ndarray:
        """Return t of rows the oracle was not fitted on; see the module's notation."""
        return side_by_side([target.oracle.predict(Z) for target in self.targets])

    def snap_targets(self, y: np.ndarray) -> np.ndarray:
        """Return targets as they will be written: whole numbers where all are whole."""
        return side_by_side(
            [target.scale.snap(y[:, j]) for j, target in enumerate(self.targets)]
        )

    def correct(
        self,
        features: pd.DataFrame,
        y: np.ndarray,
        *,
        real: JudgedRows,
        parent: np.ndarray,
        repairs: bool,
    ) -> CorrectedRows:
        """Put the relations to made rows; without any they stay as they are.

        Parameters
        ----------
        features, y : DataFrame of shape (n, d), ndarray of shape (n, k)
            Of made rows, decoded.
        real : JudgedRows
            The real rows of the side.
        parent : ndarray of shape (n,), int
            Of each made row the one of them that it came from.
        repairs : bool
            As in :meth:`amlb_ext.hardening.feasibility.FoldRelations.correct`.
        """
        if self.relations is None:
            return CorrectedRows(
                features=features,
                y=y,
                is_broken=np.zeros(len(features), dtype=bool),
                put_back=np.full(len(features), "", dtype=object),
            )
        return self.relations.correct(
            features,
            y,
            parent_features=real.features.iloc[parent].reset_index(drop=True),
            parent_y=real.y[parent],
            repairs=repairs,
        )

    def reducible_hardness(
        self, y: np.ndarray, f: np.ndarray, t: np.ndarray
    ) -> np.ndarray:
        """Return ``(T - F)^2`` by target, ``(n, k)``: rows are weighed by it whatever K is."""
        return side_by_side(hardness_by_target("reducible", y, f, t))

    def support_labels(
        self, t: np.ndarray, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the oracles' support of each label and whether it suffices, ``(n, k)`` each."""
        checked = []
        for j, target in enumerate(self.targets):
            checked.append(check_labels(t[:, j], y[:, j], rmse=target.oracle.rmse_))
        supports, agreements = zip(*checked, strict=True)
        return side_by_side(supports), side_by_side(agreements)


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
        features = self.features.iloc[rows].reset_index(drop=True)
        taken = {name: getattr(self, name)[rows] for name in _ARRAYS}
        return JudgedRows(features=features, **taken)

    @classmethod
    def stack_blocks(cls, blocks: Sequence[JudgedRows]) -> JudgedRows:
        """Return the rows of all blocks, in order; at least one block."""
        features = [block.features for block in blocks]
        joined = {}
        for name in _ARRAYS:
            joined[name] = np.concatenate([getattr(block, name) for block in blocks])
        return cls(features=pd.concat(features, ignore_index=True), **joined)


#: Fields with one entry per row; features are a DataFrame and are picked by ``iloc``.
_ARRAYS = [column.name for column in fields(JudgedRows) if column.name != "features"]


def judge_rows(
    models: FoldModels,
    *,
    features: pd.DataFrame,
    y: np.ndarray,
    f: np.ndarray,
    t: np.ndarray,
    decided: np.ndarray | None = None,
    **columns: np.ndarray,
) -> JudgedRows:
    """Let K and the oracle judge rows, of which F and T have said f and t already.

    Parameters
    ----------
    models : FoldModels
    features, y, f
        As in :class:`JudgedRows`.
    t : ndarray of the shape of f
    decided : ndarray of shape (n,), optional
        Codes of the classes that F decides for, where its probabilities do not tell.
    **columns : ndarray
        Other fields of :class:`JudgedRows`: ``Z``, ``row`` and ``is_feasible`` always.
    """
    n = len(y)
    support, agrees = models.support_labels(t, y)
    hardness = models.rule.hardness(y, f, t, decided)
    usual = {
        "weight": np.full(n, np.nan),
        # a real row comes from itself
        "parent": np.arange(n),
        "substituted": np.full(n, "", dtype=object),
        "put_back": np.full(n, "", dtype=object),
    }
    return JudgedRows(
        features=features,
        y=y,
        f=f,
        hardness=hardness,
        is_bad=models.rule.select(hardness),
        reducible=models.reducible_hardness(y, f, t),
        support=support,
        agrees=agrees,
        **{**usual, **columns},
    )


def judge_real_rows(
    models: FoldModels, *, features: pd.DataFrame, y: np.ndarray, **given: Any
) -> JudgedRows:
    """Let K and the oracle judge real rows; parameters as in :func:`judge_rows`."""
    # real rows may break a declared relation; no rows are made from those
    is_feasible = np.ones(len(y), dtype=bool)
    if models.relations is not None:
        is_feasible = ~models.relations.breaks(features, y)
    return judge_rows(models, features=features, y=y, is_feasible=is_feasible, **given)


def without_single_axis(values: np.ndarray) -> np.ndarray:
    """Return values of a single target without the axis of targets, those of several as they are.

    The search and the synthesizers read ``(n,)`` for one target and ``(n, k)`` for k.
    """
    return values[:, 0] if values.shape[1] == 1 else values
