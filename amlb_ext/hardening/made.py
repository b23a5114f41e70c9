"""Rows that were made: judged by F, K and the oracle, and kept or not.

Everything made is *snapped* first: decoded to the table's own form (whole numbers, categories)
and encoded again, so that F and K judge the very row that is written.

A made row repeats the features of no real row and of no other made row, whatever its target: a
copy would stand on both sides of a fold, or contradict the label of the row that it repeats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from amlb_ext.core.config import GenerateConfig
from amlb_ext.hardening.baseline import Baseline
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.hardness import BadRule, raw_hardness
from amlb_ext.hardening.oracle import Oracle, check_labels
from amlb_ext.hardening.taken import TakenRows, repeated_within

#: A label may be less plausible by this much than at the row it came from: a probability, and
#: the oracle's RMSEs.
CLASS_SLACK, REGRESSION_SLACK = 0.02, 0.1


@dataclass(frozen=True)
class FoldModels:
    """What both sides of a fold share, fitted on its training rows.

    ``Z, y`` are the encoded training rows and targets; ``key`` names the fold's streams;
    ``fits`` are F without each part of the training rows, see :mod:`amlb_ext.hardening.crossfit`.
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
