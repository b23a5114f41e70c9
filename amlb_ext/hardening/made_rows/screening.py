"""Made rows of one side of a fold: judged, screened, and collected.

Everything made is *snapped* first: decoded to the table's own form (whole numbers, categories),
held against the relations between columns (:mod:`amlb_ext.hardening.feasibility`) and encoded
again, so that F and K judge the very row that is written.

A made row repeats the features of no real row and of no other made row, whatever its target: a
copy would stand on both sides of a fold, or contradict the label of the row that it repeats.

Where every column has few values, each row is a cell of the table. No small step leads from one
cell to another, so a made row cannot inherit its label from a neighbour: it rests on the oracle
alone, and the oracle is asked about just those cells where F and the label disagree. How often it
is right *there* is seen on the training rows: it is asked about each of them with every label
under which F would fail, all predictions being out of fold, and the row's own label tells which
answers were right.

Notation as in :mod:`amlb_ext.hardening.judged_rows`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.isotonic import IsotonicRegression

from amlb_ext.core.frames import number_rows, repeats_earlier
from amlb_ext.core.notes import Note
from amlb_ext.hardening.encode import Encoder
from amlb_ext.hardening.hardness import BadRule
from amlb_ext.hardening.judged_rows import FoldModels, JudgedRows, judge_rows
from amlb_ext.suite.fold_notes import REASONS

#: How much less plausible a label may be than that of the row it came from: as a probability, and
#: in the oracle's RMSEs.
CLASS_SLACK, REGRESSION_SLACK = 0.02, 0.1


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
    notes : tuple of Note
        Remarks for the manifest.
    """

    rows: JudgedRows
    asked: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    notes: tuple[Note, ...] = ()

    def dropped_by_reason(self) -> dict[str, int]:
        """Return the counts in the order of the reasons."""
        # a fold without relations has no count of rows that break them, nor has one in which F may
        # be asked about any row a count of those that it was not asked about
        return {
            reason: int(self.dropped[reason])
            for reason in REASONS
            if reason not in ("relation", "unasked") or reason in self.dropped
        }


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
    notes : tuple of Note
        Remarks for the manifest, in the order of the stages.
    """

    augmented: MadeRows
    synthetic: MadeRows
    bad: int
    least_support: float | None
    notes: tuple[Note, ...]

    @property
    def made(self) -> list[JudgedRows]:
        """The rows that were made, by kind."""
        return [self.augmented.rows, self.synthetic.rows]

    def counts(self) -> dict[str, Any]:
        """Return the side's counts for the manifest."""
        return {
            "bad": self.bad,
            "augmented_asked": self.augmented.asked,
            "augmented": len(self.augmented.rows),
            "synthetic_asked": self.synthetic.asked,
            "synthetic": len(self.synthetic.rows),
            "dropped": {
                "augmented": self.augmented.dropped_by_reason(),
                "synthetic": self.synthetic.dropped_by_reason(),
            },
            "least_support": self.least_support,
        }


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

    def with_made(self, *made: JudgedRows) -> TakenRows:
        """Return these rows and others that were made."""
        features = [rows.features for rows in made]
        return replace(self, made=(*self.made, *features))

    def repeated(self, features: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows repeat a real row, and which one that was made before."""
        # rows that are alike have the same number, whichever table they stand in
        numbers, *taken = number_rows(features, *self.real, *self.made)
        # nothing may have been made before, and concatenating nothing is an error
        nothing = np.zeros(0, dtype=numbers.dtype)
        all_real = np.concatenate([nothing, *taken[: len(self.real)]])
        all_made = np.concatenate([nothing, *taken[len(self.real) :]])
        return np.isin(numbers, all_real), np.isin(numbers, all_made)


def find_parents(real: JudgedRows) -> np.ndarray:
    """Return the positions of the bad rows that rows may be made from: those that are feasible."""
    return np.flatnonzero(real.is_bad & real.is_feasible)


class MadeRowsCollector:
    """Judges rows as they are made from one side, and collects those that may be kept.

    Parameters
    ----------
    models : FoldModels
    real : JudgedRows
        The real rows of the side.
    taken : TakenRows
        Rows that no made row may repeat.

    Attributes
    ----------
    dropped : Counter
        Rows that were not kept, by :data:`amlb_ext.suite.fold_notes.REASONS`.
    """

    def __init__(self, models: FoldModels, real: JudgedRows, taken: TakenRows) -> None:
        self.models = models
        self.real = real
        self.taken = taken
        self.dropped: Counter[str] = Counter()
        # a block of no rows: where none are kept, the columns still have their types
        self._blocks = [no_made_rows(models, real)]

    def screen(
        self,
        *,
        Z: np.ndarray,
        y: np.ndarray,
        parent: np.ndarray,
        repairs: bool,
        asks_oracle: bool = True,
    ) -> JudgedRows:
        """Judge made rows, count those that must be dropped, and return the others.

        A row that is dropped counts for the first reason that applies.

        Parameters
        ----------
        Z, y, parent, repairs
            As in :func:`judge_made_rows`.
        asks_oracle : bool
            Whether the oracle is asked about the labels; in a table of cells it always is.
        """
        models = self.models
        made = judge_made_rows(
            models, self.real, Z=Z, y=y, parent=parent, repairs=repairs
        )
        passes_oracle = np.ones(len(made), dtype=bool)
        if asks_oracle or models.least_support is not None:
            passes_oracle = label_passes(models, made, self.real)
        repeats_real, repeats_made = self.taken.repeated(made.features)
        # in the order of the reasons
        checks = {}
        if models.relations is not None:
            checks["relation"] = ~made.is_feasible
        checks["real_row"] = repeats_real
        if models.config.search.operators.reapply and models.can_search:
            checks["good"] = ~made.is_bad
        checks["label"] = ~passes_oracle
        checks["made_row"] = repeats_made
        passes = np.ones(len(made), dtype=bool)
        for reason, applies in checks.items():
            self.dropped[reason] += int((passes & applies).sum())
            passes &= ~applies
        # of several rows alike the first one that passed stays, so this check comes last
        kept = np.flatnonzero(passes)
        [numbers] = number_rows(made.features.iloc[kept])
        repeats = repeats_earlier(numbers)
        self.dropped["made_row"] += int(repeats.sum())
        return made.take(kept[~repeats])

    def keep(self, rows: JudgedRows) -> None:
        """Keep rows that passed; rows made later must not repeat them."""
        self._blocks.append(rows)
        self.taken = self.taken.with_made(rows)

    def collected(self) -> JudgedRows:
        """Return the rows that were kept, in order."""
        return JudgedRows.stack_blocks(self._blocks)


def no_made_rows(models: FoldModels, real: JudgedRows) -> JudgedRows:
    """Return a block of no rows, with columns of the types that made rows have."""
    nothing = real.take(np.zeros(0, dtype=int))
    return replace(nothing, features=models.encoder.inverse(nothing.Z))


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
        Encoded rows, at least one and not yet snapped, and their targets.
    parent : ndarray of shape (n,), int
        Of each row the bad row it came from.
    repairs : bool
        Give a row that breaks a relation its parent's values back; otherwise it is marked.
    """
    corrected = models.correct(
        models.encoder.inverse(Z), y, real=real, parent=parent, repairs=repairs
    )
    features = corrected.features
    y = corrected.y
    Z = models.encoder.transform(features)
    if models.relations is None:
        # decoded once more: a number that went through the scale may differ in its last bit
        features = models.encoder.inverse(Z)

    t = models.predict_oracle(Z)
    # NaN where F cannot be asked: what nobody said must not look like an answer
    f = models.predict_baseline(Z) if models.can_search else np.full(t.shape, np.nan)
    judged = judge_rows(
        models,
        features=features,
        Z=Z,
        y=y,
        f=f,
        t=t,
        parent=parent,
        row=np.full(len(Z), -1, dtype=np.int64),
        put_back=corrected.put_back,
        is_feasible=~corrected.is_broken,
    )
    if models.least_support is None:
        return judged
    # in a table of cells the label rests on the oracle alone
    is_vouched_for = judged.support >= models.least_support
    return replace(judged, agrees=judged.agrees & is_vouched_for)


def label_passes(models: FoldModels, made: JudgedRows, real: JudgedRows) -> np.ndarray:
    """Return which made rows have labels that the oracle lets pass.

    Many real failures carry labels that the oracle contradicts: that is why they are failures.
    Made rows without such labels would stand for other rows than those they came from, so a
    label passes where it is supported, or (nearly) as plausible as at the row it came from. Of
    several targets each must pass. In a table of cells nothing is inherited: the oracle must
    vouch for the label.
    """
    if not models.config.search.operators.agreement:
        return np.ones(len(made), dtype=bool)
    passes = made.agrees
    if models.least_support is None:
        slack = CLASS_SLACK if models.n_classes else REGRESSION_SLACK
        parent_support = real.support[made.parent]
        as_plausible = made.support >= parent_support - slack
        if models.n_classes:
            # another label than the parent's has nothing to lean on
            as_plausible &= made.y == real.y[made.parent]
        passes = passes | as_plausible
    # of several targets each must pass
    return np.all(passes, axis=1)


# Labels where the rows of a table are cells.


#: A numeric column with more distinct values than this makes its rows no cells of a table.
MOST_VALUES = 10
#: Share of labels that shall be right among those the oracle vouches for.
RIGHT_SHARE = 0.8


def with_least_support(models: FoldModels, train: JudgedRows) -> FoldModels:
    """Return the models with what a label needs of the oracle, where rows are cells of a table."""
    if not models.n_classes or not has_cells_only(models.encoder, models.Z):
        return models
    oracle = models.targets[0].oracle
    least = least_support(
        models.rule,
        y=train.y[:, 0],
        f=train.f[:, 0],
        t=oracle.out_of_fold_[oracle.judged_],
    )
    return replace(models, least_support=least)


def has_cells_only(encoder: Encoder, Z: np.ndarray) -> bool:
    """Return whether every numeric column of the encoded training rows has few values.

    Examples
    --------
    >>> import pandas as pd
    >>> from amlb_ext.core.task import Column
    >>> table = pd.DataFrame({"a": [1.0, 2.0] * 20, "b": np.arange(40.0)})
    >>> for names in ("a", "ab"):
    ...     encoder = Encoder([Column(name, "integer") for name in names]).fit(table)
    ...     has_cells_only(encoder, encoder.transform(table))
    True
    False
    """
    for j in range(encoder.n_categorical_, Z.shape[1]):
        if len(np.unique(Z[:, j])) > MOST_VALUES:
            return False
    # a category is a value of a few by itself
    return True


def least_support(
    rule: BadRule, *, y: np.ndarray, f: np.ndarray, t: np.ndarray
) -> float:
    """Return the support from which on the oracle's labels are right in four of five cases.

    Both where they are supported just so much (by isotonic regression) and of all that are
    supported as much or more. The latter share is Laplace's, ``(right + 1) / (asked + 2)``, so
    that one or two cases vouch for nothing.

    Parameters
    ----------
    rule : BadRule
    y : ndarray of shape (n,)
        Class codes of the training rows.
    f, t : ndarray of shape (n, C)
        Out-of-fold predictions of F and of the oracle.

    Returns
    -------
    float
        Infinite where no support suffices.

    Examples
    --------
    >>> y, f = np.array([1, 1, 1, 0]), np.tile([0.9, 0.1], (4, 1))
    >>> t = np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]])
    >>> rule = BadRule(rule="wrong", threshold=0.5, alpha=0.5, reason="given")
    >>> least_support(rule, y=y, f=f, t=t)
    0.7
    """
    # rules read rows with an axis of targets, and classes have one
    f_rows = f[:, None]
    t_rows = t[:, None]
    supports = []
    hits = []
    for label in range(t.shape[1]):
        asked = np.full((len(y), 1), label)
        hardness = rule.hardness(asked, f_rows, t_rows)
        fails = rule.select(hardness)
        own_labels = y[fails]
        supports.append(t[fails, label])
        hits.append(own_labels == label)
    support = np.concatenate(supports)
    is_right = np.concatenate(hits)
    if not is_right.any():
        return np.inf
    # from the best supported label down: how often right there, and so far
    order = np.argsort(-support, kind="stable")
    isotonic = IsotonicRegression(y_min=0.0, y_max=1.0)
    isotonic.fit(support, is_right)
    right_there = isotonic.predict(support)[order]
    n_asked = np.arange(1, len(order) + 1)
    n_right = np.cumsum(is_right[order])
    right_so_far = (n_right + 1) / (n_asked + 2)
    suffices = (right_so_far >= RIGHT_SHARE) & (right_there >= RIGHT_SHARE)
    # of equal supports all are in or none
    support = support[order]
    suffices[:-1] &= np.diff(support) < 0
    sufficient = support[suffices]
    return float(sufficient.min(initial=np.inf))
