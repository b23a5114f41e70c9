"""Made rows of one side of a fold: judged, screened, and collected.

Everything made is *snapped* first: decoded to the table's own form (whole numbers, categories),
held against the relations between columns (:mod:`amlb_ext.hardening.feasibility`) and encoded
again, so that F and K judge the very row that is written.

A made row repeats the features of no real row and of no other made row, whatever its target: a
copy would stand on both sides of a fold, or contradict the label of the row that it repeats.

Notation as in :mod:`amlb_ext.hardening.judged_rows`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from amlb_ext.core.frames import number_rows, repeats_earlier
from amlb_ext.hardening.hardness import hardness_by_target
from amlb_ext.hardening.judged_rows import FoldModels, JudgedRows
from amlb_ext.suite.notes import Note

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
        real_numbers = taken[: len(self.real)]
        made_numbers = taken[len(self.real) :]
        # nothing may have been made before, and concatenating nothing is an error
        nothing = np.zeros(0, dtype=numbers.dtype)
        all_real = np.concatenate([nothing, *real_numbers])
        all_made = np.concatenate([nothing, *made_numbers])
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
    holds_to_rule : bool
        Whether a row must be bad under K; not so for rows that stand for any row.

    Attributes
    ----------
    dropped : Counter
        Rows that were not kept, by :data:`amlb_ext.suite.fold_notes.REASONS`.
    """

    def __init__(
        self,
        models: FoldModels,
        real: JudgedRows,
        taken: TakenRows,
        *,
        holds_to_rule: bool = True,
    ) -> None:
        self.models = models
        self.real = real
        self.taken = taken
        self.holds_to_rule = holds_to_rule
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

        Parameters as in :func:`judge_made_rows` and :func:`screen_made_rows`.
        """
        made = judge_made_rows(
            self.models, self.real, Z=Z, y=y, parent=parent, repairs=repairs
        )
        kept, dropped = screen_made_rows(
            self.models,
            made,
            self.real,
            self.taken,
            asks_oracle=asks_oracle,
            holds_to_rule=self.holds_to_rule,
        )
        self.dropped.update(dropped)
        return made.take(kept)

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
    n = len(Z)
    features = models.encoder.inverse(Z)
    put_back = np.full(n, "", dtype=object)
    is_feasible = np.ones(n, dtype=bool)
    if models.relations is not None:
        corrected = models.relations.correct(
            features,
            y,
            parent_features=real.features.iloc[parent].reset_index(drop=True),
            parent_y=real.y[parent],
            repairs=repairs,
        )
        features = corrected.features
        y = corrected.y
        put_back = corrected.put_back
        is_feasible = ~corrected.is_broken
    Z = models.encoder.transform(features)
    if models.relations is None:
        # decoded once more: a number that went through the scale may differ in its last bit
        features = models.encoder.inverse(Z)

    t = models.predict_oracle(Z)
    f = models.predict_baseline(Z) if models.can_search else models.no_predictions(n)
    support, agrees = models.support_labels(t, y)
    if models.least_support is not None:
        # in a table of cells the label rests on the oracle alone
        agrees = agrees & (support >= models.least_support)
    hardness = np.full(n, np.nan)
    reducible = np.full(y.shape, np.nan)
    if models.can_search:
        hardness = models.rule.hardness(y, f, t)
        reducible = np.stack(hardness_by_target("reducible", y, f, t), axis=1)
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


def screen_made_rows(
    models: FoldModels,
    made: JudgedRows,
    real: JudgedRows,
    taken: TakenRows,
    *,
    asks_oracle: bool = True,
    holds_to_rule: bool = True,
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
    holds_to_rule : bool
        Whether rows on which F does well are dropped, where the settings apply K again.

    Returns
    -------
    kept : ndarray of int
        Positions.
    dropped : Counter
        How many are not kept, by :data:`amlb_ext.suite.fold_notes.REASONS`.
    """
    passes_oracle = np.ones(len(made), dtype=bool)
    if asks_oracle or models.least_support is not None:
        passes_oracle = label_passes(models, made, real)
    repeats_real, repeats_made = taken.repeated(made.features)
    # in this order: a row counts for the first reason that applies
    checks = {}
    if models.relations is not None:
        checks["relation"] = ~made.is_feasible
    checks["real_row"] = repeats_real
    if holds_to_rule and models.config.search.operators.reapply and models.can_search:
        checks["good"] = ~made.is_bad
    checks["label"] = ~passes_oracle
    checks["made_row"] = repeats_made
    passes = np.ones(len(made), dtype=bool)
    dropped: Counter[str] = Counter()
    for reason, applies in checks.items():
        dropped[reason] = int((passes & applies).sum())
        passes &= ~applies
    # of several rows alike the first one that passed stays, so this check comes last
    kept = np.flatnonzero(passes)
    [numbers] = number_rows(made.features.iloc[kept])
    repeats = repeats_earlier(numbers)
    dropped["made_row"] += int(repeats.sum())
    return kept[~repeats], dropped
