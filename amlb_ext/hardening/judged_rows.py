"""Rows that were made: judged by F, K and the oracle, and kept or not.

Everything made is *snapped* first: decoded to the table's own form (whole numbers, categories)
and encoded again, so that F and K judge the very row that is written.

A made row repeats the features of no real row and of no other made row, whatever its target: a
copy would stand on both sides of a fold, or contradict the label of the row that it repeats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core import row_losses
from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline.estimator import Baseline
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.hardness import BadRule, raw_hardness
from amlb_ext.hardening.oracle import Oracle, check_labels
from amlb_ext.hardening.taken_rows import TakenRows, repeated_within
from amlb_ext.suite import Rows

#: A label may be less plausible by this much than at the row it came from: a probability, and
#: the oracle's RMSEs.
CLASS_SLACK, REGRESSION_SLACK = 0.02, 0.1


@dataclass(frozen=True)
class FoldModels:
    """What both sides of a fold share, fitted on its training rows.

    ``Z, y`` are the encoded training rows and targets; ``key`` names the fold's streams;
    ``fits`` are F without each part of the training rows, see :mod:`amlb_ext.hardening.prepare`.
    ``least_support`` is what a made row's label needs of the oracle where the table consists of
    cells, see :mod:`amlb_ext.hardening.vouch`; None elsewhere.
    """

    encoder: Encoder
    target: TargetEncoder
    baseline: Baseline
    rule: BadRule
    oracle: Oracle
    Z: np.ndarray
    y: np.ndarray
    config: GenerateConfig
    key: tuple[str | int, ...]
    fits: Sequence[Baseline] = ()
    least_support: float | None = None


@dataclass
class MadeRows:
    """Rows that were made, encoded, with what is known of each.

    Attributes
    ----------
    Z, y : ndarray of shape (n, d), (n,)
        Of a group of tasks y is ``(n, k)``, and so are f, reducible, support and agrees.
    parent : ndarray of shape (n,), int
        Position of the bad row each came from, among the bad rows given.
    f : ndarray
        F's predictions; empty when F cannot predict new rows.
    hardness, reducible, support, agrees : ndarray of shape (n,)
        Under the fold's rule; ``(T - F)^2``; the oracle on the label.
    """

    Z: np.ndarray
    y: np.ndarray
    parent: np.ndarray
    f: np.ndarray
    hardness: np.ndarray
    reducible: np.ndarray
    support: np.ndarray
    agrees: np.ndarray

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: np.ndarray) -> MadeRows:
        """Return some of the rows."""
        return MadeRows(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def of_target(self, j: int) -> MadeRows:
        """Return the rows with one of their k targets, and what is known of it."""
        own = ("y", "f", "reducible", "support", "agrees")
        return replace(self, **{name: getattr(self, name)[:, j] for name in own})

    @classmethod
    def merge(cls, parts: list[MadeRows]) -> MadeRows:
        """Return the rows of all parts, in order; at least one part."""
        names = cls.__dataclass_fields__
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@dataclass(frozen=True)
class Failures:
    """Bad rows that rows are made from.

    Attributes
    ----------
    Z, y : ndarray of shape (n, d), (n,) or (n, k)
        Encoded.
    support : ndarray of shape (n,) or (n, k)
        How strongly the oracle supports each label, by fits that did not see the row.
    """

    Z: np.ndarray
    y: np.ndarray
    support: np.ndarray

    def __len__(self) -> int:
        return len(self.y)

    @classmethod
    def of(cls, models: FoldModels, Z: np.ndarray, y: np.ndarray) -> Failures:
        """Ask the fold's oracle, which has not seen these rows, for the support."""
        support, _ = check_labels(
            models.oracle, models.oracle.predict(Z), y, models.config.agreement
        )
        return cls(Z, y, support)


@dataclass
class Side:
    """Augmented and synthetic rows of one side, with counts and remarks for the manifest.

    ``counts["dropped"]`` says per kind of row how many that were tried were dropped, by
    :data:`amlb_ext.suite.fold_notes.REASONS`.
    """

    augmented: MadeRows
    synthetic: MadeRows
    counts: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def of_target(self, j: int) -> Side:
        """Return the same rows with one of their k targets."""
        return replace(
            self, augmented=self.augmented.of_target(j), synthetic=self.synthetic.of_target(j)
        )

    def taken_after(self, taken: TakenRows, models: FoldModels) -> TakenRows:
        """Return what is taken, with the rows of this side."""
        for made in (self.augmented, self.synthetic):
            taken = taken.with_made(models.encoder.inverse(made.Z))
        return taken


@dataclass(frozen=True)
class Screened:
    """Positions of the made rows that are kept; how many are not, by ``fold_notes.REASONS``."""

    rows: np.ndarray
    dropped: Counter[str]


def judge(models: FoldModels, Z: np.ndarray, y: np.ndarray, parent: np.ndarray) -> MadeRows:
    """Snap made rows and let F, K and the oracle judge them."""
    Z = models.encoder.transform(models.encoder.inverse(Z))
    t = models.oracle.predict(Z) if len(Z) else np.zeros((0, *models.oracle.out_of_fold_.shape[1:]))
    support, agrees = check_labels(models.oracle, t, y, models.config.agreement)
    if models.least_support is not None:
        agrees &= support >= models.least_support
    if models.baseline.can_search and len(Z):
        f = models.baseline.predict(Z)
        hardness = models.rule.hardness(y, f, t)
        reducible = raw_hardness("reducible", y, f, t) if y.ndim == 1 else (t - f) ** 2
    else:
        f = np.full((len(Z), *models.oracle.out_of_fold_.shape[1:]), np.nan)
        hardness = np.full(len(Z), np.nan)
        reducible = hardness if y.ndim == 1 else f
    return MadeRows(Z, y, parent, f, hardness, reducible, support, agrees)


def fails_baseline(models: FoldModels, made: MadeRows) -> np.ndarray:
    """Return which made rows K still calls bad."""
    if models.config.search.reapply and models.baseline.can_search:
        return models.rule.select(made.hardness)
    return np.ones(len(made), dtype=bool)


def label_passes(models: FoldModels, made: MadeRows, failures: Failures) -> np.ndarray:
    """Return which made rows have labels that the oracle lets pass.

    Many real failures carry labels that the oracle contradicts: that is why they are failures.
    Made rows without such labels would stand for other rows than those they came from, so a
    label passes where it is supported, or (nearly) as plausible as at the row it came from. Of
    several targets each must pass. In a table of cells nothing is inherited: the oracle must
    vouch for the label.
    """
    if not models.config.agreement.filter:
        return np.ones(len(made), dtype=bool)
    if models.least_support is not None:
        return made.agrees
    classes = bool(models.target.n_classes)
    slack = CLASS_SLACK if classes else REGRESSION_SLACK
    as_true = made.support >= failures.support[made.parent] - slack
    if classes:
        as_true &= made.y == failures.y[made.parent]
    passes = made.agrees | as_true
    return passes if passes.ndim == 1 else passes.all(axis=1)


def screen(
    models: FoldModels, made: MadeRows, failures: Failures, taken: TakenRows, labels: bool = True
) -> Screened:
    """Decide which made rows are kept, and count the others by the first reason that applies.

    Parameters
    ----------
    models : FoldModels
    made : MadeRows
    failures : Failures
        The rows they came from.
    taken : TakenRows
        The real rows, and what was made before.
    labels : bool
        Whether the oracle is asked about the labels; in a table of cells it always is.
    """
    features = models.encoder.inverse(made.Z)
    repeats_real, repeats_made = taken.repeated(features)
    labels |= models.least_support is not None
    passes = label_passes(models, made, failures) if labels else np.ones(len(made), dtype=bool)
    checks = {
        "real_row": repeats_real,
        "good": ~fails_baseline(models, made),
        "label": ~passes,
        "made_row": repeats_made,
    }
    keep = np.ones(len(made), dtype=bool)
    dropped: Counter[str] = Counter()
    for reason, applies in checks.items():
        dropped[reason] = int((keep & applies).sum())
        keep &= ~applies
    # of several rows alike the first one that passed stays, so this check comes last
    rows = np.flatnonzero(keep)
    again = repeated_within(features.iloc[rows])
    dropped["made_row"] += int(again.sum())
    return Screened(rows[~again], dropped)


# Rows of a fold as the suite wants them: features and target in canonical form, provenance.


@dataclass(frozen=True)
class RealRows:
    """The real rows of one side, with what is known of each.

    ``features`` are the rows as they are written, ``substituted`` the columns with replaced cells;
    ``null`` are the losses ``(n, R)`` of F's re-fits, none where the rows are training rows.
    """

    rows: np.ndarray
    features: pd.DataFrame
    substituted: np.ndarray
    Z: np.ndarray
    y: np.ndarray
    f: np.ndarray
    hardness: np.ndarray
    reducible: np.ndarray
    support: np.ndarray
    agrees: np.ndarray
    weight: np.ndarray
    bad: np.ndarray
    null: np.ndarray


def null_losses(fits: Sequence[Baseline], Z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the losses ``(n, R)`` of F's fits without each part of the training rows."""
    out = np.empty((len(y), len(fits)))
    for k, fit in enumerate(fits if len(y) else ()):
        out[:, k] = row_losses.row_loss(y, fit.predict(Z))
    return out


def failures(side: RealRows) -> Failures:
    """Return the bad rows of a side, with the oracle's opinion of their labels."""
    return Failures(side.Z[side.bad], side.y[side.bad], side.support[side.bad])


def training_rows(task: Task, rows: np.ndarray) -> Rows:
    """Return the rows F was trained on."""
    provenance = pd.DataFrame({"source_row": task.row_ids[rows]})
    return Rows(_reset(task.features.iloc[rows]), _reset(task.target.iloc[rows]), provenance)


def real_rows(task: Task, target: TargetEncoder, side: RealRows, chosen: Any) -> Rows:
    """Real rows as they are written."""
    rows = side.rows[chosen]
    ids = task.row_ids[rows].astype(np.int64)
    provenance = pd.DataFrame(
        {
            "origin": np.where(side.bad[chosen], "bad", "good"),
            "source_row": ids,
            "parent_row": ids,
            "hardness": side.hardness[chosen],
            "loss": row_losses.row_loss(side.y[chosen], side.f[chosen]),
            "reducible": side.reducible[chosen],
            "label_support": side.support[chosen],
            "label_agrees": side.agrees[chosen],
            "weight": side.weight[chosen],
            **_predicted(target, side.f[chosen]),
            **_null(side.null[chosen]),
            "substituted": side.substituted[chosen],
        }
    )
    return Rows(_reset(side.features.iloc[chosen]), _reset(task.target.iloc[rows]), provenance)


def made_rows(
    task: Task, models: FoldModels, made: MadeRows, origin: str, parents: np.ndarray
) -> Rows:
    """Made rows, decoded to the table's form; ``parents`` are source ids of the bad rows."""
    provenance = pd.DataFrame(
        {
            "origin": np.full(len(made), origin, dtype=object),
            "source_row": np.full(len(made), -1, dtype=np.int64),
            "parent_row": parents[made.parent].astype(np.int64),
            "hardness": made.hardness,
            "loss": row_losses.row_loss(made.y, made.f),
            "reducible": made.reducible,
            "label_support": made.support,
            "label_agrees": made.agrees,
            "weight": np.full(len(made), np.nan),
            **_predicted(models.target, made.f),
            **_null(null_losses(models.fits, made.Z, made.y)),
            "substituted": np.full(len(made), "", dtype=object),
        }
    )
    target = models.target.inverse(made.y, task.target_name)
    return Rows(models.encoder.inverse(made.Z), target, provenance)


def stack(blocks: list[Rows]) -> Rows:
    """Return the rows of all blocks, in order."""
    features = pd.concat([b.features for b in blocks], ignore_index=True)
    target = pd.concat([b.target for b in blocks], ignore_index=True)
    provenance = pd.concat([b.provenance for b in blocks], ignore_index=True)
    return Rows(features, target, provenance)


def blocks_by_origin(task: Task, models: FoldModels, real: RealRows, side: Side) -> dict[str, Rows]:
    """Rows by origin, those with none left out."""
    parents = task.row_ids[real.rows[real.bad]]
    blocks = {"bad": real_rows(task, models.target, real, np.flatnonzero(real.bad))}
    if len(side.augmented):
        blocks["ga"] = made_rows(task, models, side.augmented, "ga", parents)
    if len(side.synthetic):
        blocks["synthetic"] = made_rows(task, models, side.synthetic, "synthetic", parents)
    return blocks


def judged_again(
    task: Task, models: FoldModels, features: pd.DataFrame, target: pd.Series
) -> dict[str, np.ndarray]:
    """Return the columns of the provenance that F, K and the oracle give rows as they now stand.

    The hardness of rows with several targets is not among them: no target alone decides it.
    """
    Z, y = models.encoder.transform(features), models.target.transform(target)
    f, t = models.baseline.predict(Z), models.oracle.predict(Z)
    support, agrees = check_labels(models.oracle, t, y, models.config.agreement)
    hardness = {} if task.group else {"hardness": models.rule.hardness(y, f, t)}
    return {
        **hardness,
        "loss": row_losses.row_loss(y, f),
        "reducible": raw_hardness("reducible", y, f, t),
        "label_support": support,
        "label_agrees": agrees,
        **_predicted(models.target, f),
        **_null(null_losses(models.fits, Z, y)),
    }


def _predicted(target: TargetEncoder, f: np.ndarray) -> dict[str, np.ndarray]:
    """F's predictions as columns: ``f`` in the target's own unit, or ``f_0``, ... per label."""
    if f.ndim == 1:
        return {"f": f * target.span + target.low}
    return {f"f_{code}": f[:, code] for code in range(f.shape[1])}


def _null(table: np.ndarray) -> dict[str, np.ndarray]:
    """Losses of F's re-fits as columns ``null_0``, ..."""
    return {f"null_{k}": table[:, k] for k in range(table.shape[1])}


def _reset(values: Any) -> Any:
    return values.reset_index(drop=True)
