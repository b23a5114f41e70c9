"""The loss by which a task's models are compared: the suite's own, or one that a user names.

A suite measured F and its re-fits by Brier losses, or by squared errors of the target scaled by its
training range, and chose its bad rows by F's errors; that stays. Another loss is computed anew from
what F and the frameworks predict, in the target's own unit, as :func:`hardsynth.compare` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.errors import ConfigError, DataError, SuiteError
from amlb_ext.core.losses import Loss, Predicted, read_loss
from amlb_ext.core.task import Kind
from amlb_ext.report.predictions import TaskPredictions
from amlb_ext.stats.bounded_loss import NO_CAP, ErrorCap, cap_from_baseline

#: The metric of the scores that goes with a loss.
METRICS = {
    "zero_one": "acc",
    "balanced": "balacc",
    "log_loss": "logloss",
    "auc": "auc",
    "absolute": "mae",
    "squared_log": "rmsle",
}


@dataclass(frozen=True, kw_only=True)
class TaskLosses:
    """What F and the frameworks lose on the untouched test rows of a task.

    Attributes
    ----------
    loss : Loss
    title : str
        The loss with its unit.
    f : ndarray of shape (n,)
        Of F.
    by_framework : DataFrame of shape (n, frameworks)
        Plain losses; NaN where a framework has no prediction. Those that equal F's but for rounding
        are set to F's.
    cap : ErrorCap
        Of squared errors; a framework that ran on some rows has the same.
    span : ndarray of shape (n,) or None
        Of squared errors the length of 1 in the target's own unit.
    is_own : bool
        Whether the suite has measured F's re-fits by it.
    notes : tuple of str
    """

    loss: Loss
    title: str
    f: np.ndarray
    by_framework: pd.DataFrame
    cap: ErrorCap = NO_CAP
    span: np.ndarray | None = None
    is_own: bool = True
    notes: tuple[str, ...] = ()

    @property
    def metric(self) -> str:
        """The metric of the scores that goes with the loss; empty for the usual one."""
        return METRICS.get(self.loss.name, "")


def read_report_loss(
    given: Any, *, labels: Sequence[str], is_classification: bool
) -> Loss | None:
    """Return the loss that a user names for a task; None for the suite's own.

    Parameters
    ----------
    given : optional
        See :func:`amlb_ext.core.losses.read_loss`.
    labels : sequence of str
        Of the task, in its order; empty for a regression.
    is_classification : bool

    Raises
    ------
    ConfigError
        No such loss, or one that does not fit the task.

    Examples
    --------
    >>> read_report_loss("brier", labels=("no", "yes"), is_classification=True) is None
    True
    >>> read_report_loss("absolute", labels=(), is_classification=False).title
    'absolute error'
    """
    if given is None:
        return None
    loss = read_loss(given, labels=labels, is_classification=is_classification)
    return None if loss.name == "brier" else loss


def unfit_loss(
    given: Any, *, labels: Sequence[str], is_classification: bool
) -> ConfigError | None:
    """Return why a loss that a user names does not fit a task; None where it does."""
    try:
        read_report_loss(given, labels=labels, is_classification=is_classification)
    except ConfigError as error:
        return error
    return None


def measure_losses(full: TaskPredictions, given: Any = None) -> TaskLosses:
    """Return the losses of F and of all frameworks on the untouched test rows of a task.

    Parameters
    ----------
    full : TaskPredictions
    given : optional
        The loss, see :func:`amlb_ext.core.losses.read_loss`. A task that it does not fit is judged
        by the suite's own, and says so. By default that, or what models decide where one of them
        names labels alone.

    Raises
    ------
    ConfigError
        The loss needs probabilities, and a framework names labels alone.
    DataError
        A loss that is no finite number for each row.
    SuiteError
        The suite keeps no predictions of F.
    """
    is_class = full.kind is not Kind.REGRESSION
    notes = []
    name_labels = sorted(full.only_labels)
    if given is None and name_labels:
        given = "zero_one"
        notes.append(
            f"{name_labels[0]} names labels and gives no probabilities, so models are compared by "
            "what they decide"
        )
    try:
        loss = read_report_loss(given, labels=full.labels, is_classification=is_class)
        own = predicted_by_f(full)
        if loss is not None and own is not None and loss.is_of_pairs:
            # of few rows of a class nothing can be said by it
            loss(own)
    except (ConfigError, DataError) as error:
        loss = None
        notes.append(f"{error.message}, so the task is judged by the suite's own loss")
    needs_probabilities = loss is None or loss.basis == "probabilities"
    if is_class and name_labels and needs_probabilities:
        name = "brier" if loss is None else loss.name
        raise ConfigError(
            f"the loss {name} needs probabilities, and {name_labels[0]} names labels alone on "
            f"{full.name}",
            "compare by loss zero_one or a cost matrix, or give probabilities",
        )
    is_own = loss is None
    if loss is None:
        loss = _loss_of_suite(full)
        f, title, span = full.rows["loss"].to_numpy(dtype=float), loss.title, full.span
    else:
        if own is None:
            raise SuiteError(
                f"the suite keeps no predictions of F on {full.name}, so its {loss.title} is not "
                "known",
                "leave the loss out, or generate the suite again",
            )
        # errors are in the target's own unit already
        f, title, span = loss(own), loss.text("the target"), np.ones(len(full))
    columns = {}
    # sorted, so that tables do not depend on the order in which folders were read
    for name in sorted(full.f):
        rows = full.scored(name)
        said = as_predicted(full, full.f[name], full.chosen.get(name), rows=rows)
        columns[name] = np.full(len(full), np.nan)
        try:
            columns[name][rows] = full.loss(name)[rows] if is_own else loss(said)
        except DataError:
            # where folds are missing, too few rows of a class may be left
            if not loss.is_of_pairs:
                raise
    losses = pd.DataFrame(columns, index=full.rows.index)
    # F's own predictions, written to a file and read again, differ from F by rounding
    is_same = np.isclose(losses, f[:, None], rtol=1e-9, atol=1e-12)
    losses = losses.mask(is_same, np.broadcast_to(f[:, None], losses.shape))
    is_squared = loss.name in ("squared", "scaled squared")
    cap = NO_CAP
    if is_squared:
        cap = cap_from_baseline(f, full.rows["source_row"].to_numpy())
    return TaskLosses(
        loss=loss,
        title=title,
        f=f,
        by_framework=losses,
        cap=cap,
        span=span if is_squared else None,
        is_own=is_own,
        notes=tuple(notes),
    )


def _loss_of_suite(full: TaskPredictions) -> Loss:
    """Return the loss by which the suite was made."""
    if full.kind is Kind.REGRESSION:
        return Loss(
            name="scaled squared",
            title="squared error of the scaled target",
            basis="numbers",
            of_units=lambda predicted: full.loss_of(predicted.f),
        )
    return Loss(
        name="brier",
        title="Brier loss",
        basis="probabilities",
        of_units=lambda predicted: full.loss_of(predicted.f),
    )


def predicted_by_f(full: TaskPredictions) -> Predicted | None:
    """Return what F predicts, as the provenance has it; None in suites that lack it."""
    own = full.own()
    if own is None:
        return None
    return as_predicted(full, own, own.argmax(axis=1) if full.labels else None)


def predicted_by(full: TaskPredictions, framework: str) -> Predicted:
    """Return what a framework predicts of all rows."""
    return as_predicted(full, full.f[framework], full.chosen.get(framework))


def as_predicted(
    full: TaskPredictions,
    f: np.ndarray,
    decided: np.ndarray | None,
    rows: np.ndarray | slice = slice(None),
) -> Predicted:
    """Return predictions of some rows as losses take them."""
    given = np.array(full.labels)[full.y] if full.labels else full.y
    return Predicted(
        y=full.y[rows],
        f=f[rows],
        decided=None if decided is None else decided[rows],
        labels=full.labels,
        given=given[rows],
    )
