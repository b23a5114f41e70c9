"""What the order of candidates on made rows is held to: every labelled row, weighted and alike.

The test folds hold few of the labelled rows, and few rows order a dozen models only roughly. The
training rows say the same if F and the candidates are asked about them out of fold: each is fitted
once without each part of the cross-fitting, which :mod:`amlb_ext.hardening.prepare` notes in the
provenance of the training rows. Of few rows the candidates' losses stand there, too: those fits
also calibrate kappa. Else this costs some five fits of the zoo, so it is
done for one fold, and only where the test folds hold few of the labelled rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from amlb_ext.suite.copy_counts import MADE_PARTS
from amlb_ext.validity.candidates import MIN_CANDIDATES
from amlb_ext.validity.measures import Losses, ScoredUnits
from amlb_ext.validity.task_rows import (
    EncodedFold,
    FoldRequest,
    TaskRows,
    baseline_spec,
    losses_of_candidates,
)

#: Test folds that hold this share of the labelled rows need no training rows beside them.
ENOUGH_TESTED = 2 / 3
#: So many tested rows order the candidates as all rows do, within .04 of tau, and their failures
#: within .1 (docs/evidence/speed.md). The training rows would cost five fits of the zoo on all.
MANY_TESTED = 10_000
#: Columns of the training rows' provenance, see :mod:`amlb_ext.hardening.assemble`.
PART, LOSS, WEIGHT = "oof_part", "oof_loss", "oof_weight"


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What made units of a task are held to.

    Attributes
    ----------
    columns : ndarray of int
        Candidates that could be fitted for all of the reference, by position; its losses are of
        these.
    losses : Losses
        Of all labelled units that the models have not seen: those tested, and training rows.
    weights : ndarray of shape (n,)
        ``P(bad | x)`` there.
    tested : int
        Those of them that the test folds hold.
    note : str
        Why training rows that were wanted are not among them; empty otherwise.
    """

    columns: np.ndarray
    losses: Losses
    weights: np.ndarray
    tested: int
    note: str = ""

    @classmethod
    def of_tests(
        cls, full: ScoredUnits, columns: np.ndarray, note: str = ""
    ) -> Reference:
        """Return the reference of the tested units alone, by some of the candidates."""
        losses = full.losses.with_candidates(columns)
        return cls(
            columns=columns,
            losses=losses,
            weights=full.weight,
            tested=losses.n_real_rows,
            note=note,
        )


def choose_training_rows(rows: TaskRows) -> tuple[pd.DataFrame | None, str]:
    """Return the training rows that join the reference, or None.

    Returns
    -------
    chosen : DataFrame or None
        Their provenance, by place in the training file of the first fold, part after part. Without
        rows that any fold tests on.
    note : str
        Why rows that are wanted cannot be had; empty where they can, or are not wanted.
    """
    tests, most_rows, is_any_made = [], 0, False
    for train, parts in rows.folds.values():
        is_any_made |= any(part in parts for part in MADE_PARTS)
        # the training rows of the smallest fold and the test rows of all: as many as there are
        most_rows = max(most_rows, len(train) + len(parts.get("full", ())))
        if "full" in parts:
            tests.append(parts["full"].provenance["parent_row"].to_numpy())
    tested = np.unique(np.concatenate(tests))
    are_enough = len(tested) >= min(MANY_TESTED, ENOUGH_TESTED * most_rows)
    if not is_any_made or are_enough:
        return None, ""
    train, _ = rows.folds[min(rows.folds)]
    about = train.provenance
    if not {PART, LOSS, WEIGHT} <= set(about.columns):
        # the suite does not say on which training rows F fails out of fold
        why = (
            "training rows are judged forward in time, which leaves the oldest out: what F loses "
            "on them unseen is not known for all"
        )
        if baseline_spec(rows.settings, rows.kind) is None:
            why = (
                "F is a file that cannot be fitted again: what it loses on training rows unseen is "
                "not known"
            )
        return (
            None,
            f"{why}, so the order of made rows is held to the test folds alone",
        )
    is_free = ~np.isin(about["source_row"].to_numpy(), tested)
    position = np.flatnonzero(is_free)
    if not len(position):
        return None, ""
    chosen = about.iloc[position].set_axis(position)
    return chosen.sort_values(PART, kind="stable"), ""


def stored_losses(chosen: pd.DataFrame, names: Collection[str]) -> np.ndarray | None:
    """Return the candidates' losses on training rows, ``(n, m)``, where the suite holds them.

    They are of the quick zoo, noted when the suite was made; None where they are not. NaN for a
    candidate that could not be fitted without some part.
    """
    columns = [f"{LOSS}_{name}" for name in names]
    if not any(column in chosen for column in columns):
        return None
    return chosen.reindex(columns=columns).to_numpy(dtype=float)


def score_training_part(
    rows: TaskRows,
    chosen: pd.DataFrame,
    part: int,
    request: FoldRequest,
) -> np.ndarray:
    """Fit the candidates without a part of the training rows and ask them about its rows.

    Parameters
    ----------
    rows : TaskRows
        Only the first fold is read.
    chosen : DataFrame
    part : int
    request : FoldRequest
        Its candidates are those that are asked.

    Returns
    -------
    ndarray of shape (n, m)
        Losses on the chosen rows of the part; NaN for a candidate that could not be fitted.
    """
    # encoded as for the fits on all training rows, and as F was cross-fitted
    fold = EncodedFold(rows, min(rows.folds), request)
    train, _ = rows.folds[fold.fold]
    seen = np.flatnonzero(train.provenance[PART].to_numpy() != part)
    asked = chosen.index[chosen[PART] == part].to_numpy()
    models, _ = fold.fit_zoo(request.specs, seen)
    predicted = {name: model.predict(fold.Z[asked]) for name, model in models.items()}
    return losses_of_candidates(request.specs, predicted, fold.y[asked])


def join_training_rows(
    reference: Reference,
    chosen: pd.DataFrame,
    losses: np.ndarray,
    names: Sequence[str],
) -> Reference:
    """Return a reference of test rows with training rows beside them.

    Parameters
    ----------
    reference : Reference
        Of the test folds alone.
    chosen : DataFrame
        See :func:`choose_training_rows`.
    losses : ndarray of shape (n, m)
        Of the reference's candidates on these rows, by models that have not seen them.
    names : sequence of str
        Of these candidates.
    """
    # a candidate that could not be fitted without some part leaves all parts
    is_known = ~np.isnan(losses).any(axis=0)
    n_known = int(is_known.sum())
    if n_known < MIN_CANDIDATES:
        note = (
            f"only {n_known} candidates could be fitted without each part of the training rows, "
            "so the order of made rows is held to the test folds alone"
        )
        return replace(reference, note=note)
    lost = [name for name, known in zip(names, is_known, strict=True) if not known]
    note = reference.note
    if lost:
        note = (
            f"{', '.join(lost)} could not be fitted without each part of the training rows, so "
            "the order of made rows is judged without"
        )
    known = np.flatnonzero(is_known)
    training = Losses(
        losses[:, known],
        chosen[LOSS].to_numpy(dtype=float),
        chosen["source_row"].to_numpy(),
    )
    return replace(
        reference,
        columns=reference.columns[known],
        losses=Losses.join([reference.losses.with_candidates(known), training]),
        weights=np.r_[reference.weights, chosen[WEIGHT].to_numpy(dtype=float)],
        note=note,
    )
