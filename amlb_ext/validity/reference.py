"""What the order of candidates on made rows is held to: every labelled row on which F fails.

The bad rows of a test fold are few, and few rows order a dozen models only roughly. The training
rows on which F fails out of fold are several times as many, and say the same if the candidates,
too, are asked out of fold: each is fitted once without each part of the cross-fitting, which
:mod:`amlb_ext.hardening.prepare` notes in the provenance of the training rows. This costs some
five fits of the zoo, so it is done for one fold, and only where the test folds hold few of the
labelled rows.

Rows made for the region, not from failures, are held to all these rows instead, weighted by
``P(bad | x)``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from amlb_ext.core import row_losses
from amlb_ext.core.rng import derive_int_seed
from amlb_ext.core.unit import Unit
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.models.registry import ModelSpec
from amlb_ext.validity.candidates import MIN_CANDIDATES, fit_zoo
from amlb_ext.validity.measures import MIN_ROWS, Losses, too_few_text
from amlb_ext.validity.task_rows import MADE, POPULATION, TaskRows, baseline_spec

#: Test folds that hold this share of the labelled rows need no training rows beside them.
ENOUGH_TESTED = 2 / 3
#: Columns of the training rows' provenance, see :mod:`amlb_ext.hardening.assemble`.
PART, LOSS, BAD, WEIGHT = "oof_part", "oof_loss", "oof_bad", "oof_weight"


@dataclass(frozen=True, kw_only=True)
class ReferenceRows:
    """Real rows with what candidates and F lose on them.

    Attributes
    ----------
    losses : Losses
        Clusters are real rows.
    weights : ndarray of shape (n,)
    y : ndarray of shape (n,)
        Class codes, or scaled targets.
    """

    losses: Losses
    weights: np.ndarray
    y: np.ndarray

    def take(self, rows: np.ndarray) -> ReferenceRows:
        """Return some of the rows, by position or as a mask."""
        return ReferenceRows(
            losses=self.losses.take(rows), weights=self.weights[rows], y=self.y[rows]
        )

    def with_columns(self, columns: np.ndarray) -> ReferenceRows:
        """Return the rows with some of the candidates."""
        losses = self.losses.with_candidates(columns)
        return replace(self, losses=losses)

    def join(self, other: ReferenceRows) -> ReferenceRows:
        """Return these rows and others, for the same candidates."""
        return ReferenceRows(
            losses=Losses.join([self.losses, other.losses]),
            weights=np.concatenate([self.weights, other.weights]),
            y=np.concatenate([self.y, other.y]),
        )


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What made rows of a task are held to.

    Attributes
    ----------
    columns : ndarray of int
        Candidates that could be fitted for all rows of the reference, by position; the rows have
        the losses of these.
    failures : ReferenceRows
        Rows on which F fails.
    region : ReferenceRows
        All test rows, and all training rows where some made rows are held to these.
    tested_failures, tested_rows : int
        Real rows of ``failures`` and of ``region`` that the test folds hold.
    n_classes : int
        0 for regression.
    note : str
        Why training rows that were wanted are not among them; empty otherwise.
    """

    columns: np.ndarray
    failures: ReferenceRows
    region: ReferenceRows
    tested_failures: int
    tested_rows: int
    n_classes: int
    note: str = ""

    def why_no_failures(self, unit: Unit) -> str:
        """Return why nothing can be held to the failures; empty where it can."""
        n_rows = self.failures.losses.n_real_rows
        if n_rows < MIN_ROWS:
            return too_few_text(n_rows, f"{unit.many} on which F fails", unit)
        if self.n_classes and len(np.unique(self.failures.y)) < 2:
            return (
                f"all {n_rows} failures are of one class, on which the model that always names "
                "it is best"
            )
        return ""


@dataclass(frozen=True, kw_only=True)
class TrainingRows:
    """Training rows of one fold that join the reference.

    Attributes
    ----------
    fold : int
    position : ndarray of shape (n,), int
        Place in the training file.
    part : ndarray of shape (n,), int
        The part of the cross-fitting that each was left out with.
    loss, bad, weight : ndarray of shape (n,)
        Of F, by the fit that has not seen the row.
    source_row : ndarray of shape (n,)
        The real row.
    are_all : bool
        Whether rows that are not bad are among them.
    """

    fold: int
    position: np.ndarray
    part: np.ndarray
    loss: np.ndarray
    bad: np.ndarray
    weight: np.ndarray
    source_row: np.ndarray
    are_all: bool

    @property
    def parts(self) -> list[int]:
        """The parts that have a row, ascending."""
        return [int(part) for part in np.unique(self.part)]


def choose_training_rows(rows: TaskRows) -> tuple[TrainingRows | None, str]:
    """Return the training rows that join the reference, or None.

    Returns
    -------
    chosen : TrainingRows or None
        Of the first fold, without rows that any fold tests on; only those that are bad where no
        made row asks for others.
    note : str
        Why rows that are wanted cannot be had; empty where they can, or are not wanted.
    """
    parts_made = set()
    for _, parts in rows.folds.values():
        parts_made |= {part for part in MADE if part in parts}
    if not parts_made:
        return None, ""
    fold = min(rows.folds)
    train, _ = rows.folds[fold]
    about = train.provenance
    if not {PART, LOSS, BAD, WEIGHT} <= set(about.columns):
        return None, _why_unknown(rows) if _tests_few_rows(rows) else ""
    if not _tests_few_rows(rows):
        return None, ""
    source_row = about["source_row"].to_numpy()
    bad = about[BAD].to_numpy(dtype=bool)
    is_free = ~np.isin(source_row, _tested_rows(rows))
    are_all = POPULATION in parts_made
    position = np.flatnonzero(is_free & (are_all | bad))
    if not bad[position].any():
        return None, ""
    chosen = TrainingRows(
        fold=fold,
        position=position,
        part=about[PART].to_numpy()[position],
        loss=about[LOSS].to_numpy(dtype=float)[position],
        bad=bad[position],
        weight=about[WEIGHT].to_numpy(dtype=float)[position],
        source_row=source_row[position],
        are_all=are_all,
    )
    return chosen, ""


def _tested_rows(rows: TaskRows) -> np.ndarray:
    """Return the real rows that any fold tests on, each once."""
    tested = []
    for _, parts in rows.folds.values():
        if "full" in parts:
            tested.append(parts["full"].provenance["parent_row"].to_numpy())
    return np.unique(np.concatenate(tested))


def _tests_few_rows(rows: TaskRows) -> bool:
    """Whether the test folds hold less than two thirds of the labelled rows."""
    tested = _tested_rows(rows)
    # the training rows of the smallest fold and the test rows of all: as many as there are
    most_rows = 0
    for train, parts in rows.folds.values():
        most_rows = max(most_rows, len(train) + len(parts.get("full", ())))
    return len(tested) < ENOUGH_TESTED * most_rows


def _why_unknown(rows: TaskRows) -> str:
    """Return why a suite does not say on which training rows F fails out of fold."""
    alone = "so the order of made rows is held to the failures of the test folds alone"
    if baseline_spec(rows.settings, rows.kind) is None:
        return (
            "F is a file that cannot be fitted again: on which training rows it fails unseen is "
            f"not known, {alone}"
        )
    return (
        "training rows are judged forward in time, which leaves the oldest out: on which of them F "
        f"fails unseen is not known for all, {alone}"
    )


@dataclass(frozen=True, kw_only=True)
class PartLosses:
    """What the candidates lose on the chosen rows of one part, fitted without it.

    Attributes
    ----------
    candidates : ndarray of shape (n, m)
        NaN for a candidate that could not be fitted.
    y : ndarray of shape (n,)
    """

    candidates: np.ndarray
    y: np.ndarray


def score_training_part(
    rows: TaskRows,
    chosen: TrainingRows,
    part: int,
    specs: Mapping[str, ModelSpec],
    whole: Collection[str],
    most: int | None,
    seed: int,
) -> PartLosses:
    """Fit the candidates without a part of the training rows and ask them about its rows.

    Parameters
    ----------
    rows : TaskRows
        Only the fold of ``chosen`` is read.
    chosen : TrainingRows
    part : int
    specs, whole, most
        As in :func:`amlb_ext.validity.candidates.fit_zoo`.
    seed : int
        The certificate's.
    """
    train, _ = rows.folds[chosen.fold]
    # encoded as for the fits on all training rows, and as F was cross-fitted
    encoder = Encoder(rows.columns).fit(train.features)
    scale = TargetEncoder(rows.kind, rows.labels, train.target)
    Z = encoder.transform(train.features)
    y = scale.transform(train.target)
    is_seen = train.provenance[PART].to_numpy() != part
    asked = chosen.position[chosen.part == part]
    models, _ = fit_zoo(
        specs,
        kind=rows.kind,
        n_classes=scale.n_classes,
        n_categorical=encoder.n_categorical_,
        Z=Z[is_seen],
        y=y[is_seen],
        seed=derive_int_seed(seed, rows.name, chosen.fold, "zoo"),
        most=most,
        whole=whole,
    )
    losses = np.full((len(asked), len(specs)), np.nan)
    for column, name in enumerate(specs):
        if name in models:
            predicted = models[name].predict(Z[asked])
            losses[:, column] = row_losses.row_loss(y[asked], predicted)
    return PartLosses(candidates=losses, y=y[asked])


def build_reference(
    test: ReferenceRows,
    test_failures: ReferenceRows,
    *,
    chosen: TrainingRows | None,
    scored: Sequence[PartLosses],
    names: Sequence[str],
    asked: np.ndarray,
    n_classes: int,
    note: str,
) -> Reference:
    """Put test rows and training rows together.

    Parameters
    ----------
    test, test_failures : ReferenceRows
        Of the test folds.
    chosen : TrainingRows or None
    scored : sequence of PartLosses
        Of ``chosen.parts``, for the candidates that are asked.
    names : sequence of str
        The candidates.
    asked : ndarray of int
        Positions among them of those that made rows are to order.
    n_classes : int
    note : str
        As :func:`choose_training_rows` returns it.
    """
    tests_alone = Reference(
        columns=asked,
        failures=test_failures.with_columns(asked),
        region=test.with_columns(asked),
        tested_failures=test_failures.losses.n_real_rows,
        tested_rows=test.losses.n_real_rows,
        n_classes=n_classes,
        note=note,
    )
    if chosen is None:
        return tests_alone
    candidates = np.concatenate([part.candidates for part in scored])
    # a candidate that could not be fitted without some part leaves all parts
    is_known = ~np.isnan(candidates).any(axis=0)
    columns = asked[is_known]
    if len(columns) < MIN_CANDIDATES:
        note = (
            f"only {len(columns)} candidates could be fitted without each part of the training "
            "rows, so the order of made rows is held to the failures of the test folds alone"
        )
        return replace(tests_alone, note=note)
    lost = [names[column] for column in asked[~is_known]]
    if lost:
        note = (
            f"{', '.join(lost)} could not be fitted without each part of the training rows, so "
            "the order of made rows is judged without"
        )
    # scored part by part
    order = np.argsort(chosen.part, kind="stable")
    training = ReferenceRows(
        losses=Losses(candidates, chosen.loss[order], chosen.source_row[order]),
        weights=chosen.weight[order],
        y=np.concatenate([part.y for part in scored]),
    ).with_columns(np.flatnonzero(is_known))
    region = test.with_columns(columns)
    if chosen.are_all:
        region = region.join(training)
    failures = training.take(chosen.bad[order])
    return replace(
        tests_alone,
        columns=columns,
        failures=test_failures.with_columns(columns).join(failures),
        region=region,
        note=note,
    )
