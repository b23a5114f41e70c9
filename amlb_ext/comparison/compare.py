"""Compare fitted models with F on one table: over all rows, where F fails, and which of the two."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import Any, Literal

import numpy as np
import pandas as pd

from amlb_ext.comparison import models
from amlb_ext.comparison.failures import compare_on_slices
from amlb_ext.comparison.result import ModelComparison
from amlb_ext.core.checked_call import (
    CountOrNone,
    Level,
    Seed,
    check_candidates,
    checked_call,
)
from amlb_ext.core.config import HardnessConfig
from amlb_ext.core.display import format_number
from amlb_ext.core.errors import ConfigError, ModelError
from amlb_ext.core.row_order import RowOrder
from amlb_ext.core.version import __version__
from amlb_ext.hardening.split import OLDEST
from amlb_ext.models.adapter import ModelAdapter
from amlb_ext.models.checks import refuse_seen_rows
from amlb_ext.models.columns import Align, check_align, columns_of_model
from amlb_ext.models.given_table import GivenTable
from amlb_ext.models.native import check_kind
from amlb_ext.stats.claims import REGION
from amlb_ext.units.judged import answer
from amlb_ext.units.labelled import (
    LabelledRows,
    read_labelled_rows,
    read_row_order,
)
from amlb_ext.units.rows import hardness_config, judge_rows

#: Rows on which F loses most that an answer shows.
MOST_WORST = 10
#: Where F is fitted again for the null control.
Null = Literal["auto", "train", "rows", "none"]
#: What is lost without a null control.
_NO_CONTROL = "without this null control no model is called better where F fails"


@checked_call
def compare(
    F: Any,
    candidates: Any,
    X: Any,
    y: Any,
    *,
    train: tuple[Any, Any] | None = None,
    kind: Literal["classification", "regression", "binary", "multiclass"] | None = None,
    rule: str = "auto",
    alpha: float | None = None,
    null: Null = "auto",
    refits: CountOrNone = 5,
    level: Level = 0.95,
    seed: Seed = 0,
    groups: Any = None,
    time: Any = None,
    train_groups: Any = None,
    train_time: Any = None,
    align: Align = "auto",
) -> ModelComparison:
    """Compare models with F on rows that none of them was fitted on.

    Three questions are answered side by side for each candidate: is it better than F over all
    rows, is it better where F fails, and is its gain larger there than elsewhere? "Where F fails"
    weights each row by its chance to be a bad row of F, learnt from features alone on other rows.

    Parameters
    ----------
    F : estimator, function or predictions
        Today's model: fitted, with ``predict`` (and ``predict_proba`` for classes), of any library
        (see :mod:`amlb_ext.models`); a function of the rows; or its predictions of the rows, see
        :func:`amlb_ext.models.predictions.interpret_predictions`. A bare array has one column for
        each class in the order of ``sklearn.utils.multiclass.unique_labels``.
    candidates : mapping of str to estimator or predictions
        The models that might replace it, by name.
    X : DataFrame of pandas or polars, or array, of shape (n, d)
        At least 50 rows. No model may have been fitted on them.
    y : array-like of shape (n,)
        Their true targets.
    train : tuple of (X, y), optional
        The rows that F was fitted on. F is cloned and fitted again on parts of them: the null
        control, what "no difference" looks like. X is checked for copies of them.
    kind : {'classification', 'regression'}, optional
        Where F does not tell.
    rule, alpha : str, float, optional
        The rule that calls a row of F bad, and its threshold, as in ``hardsynth generate``: by
        default what F decides wrongly, or of numbers the tenth of the rows with the largest loss.
    null : {'auto', 'train', 'rows', 'none'}
        Where F is fitted again: on ``train``; cross-fitted on ``X`` where there is no ``train``;
        or not at all. Without a null control no model is called better where F fails.
    refits : int
        How often F is fitted again.
    level : float
        Coverage of the intervals.
    seed : int
        Same input and seed, same numbers.
    groups, time : str or array-like of shape (n,), optional
        Rows of one group belong together; times order the rows. A column of ``X``, or values.
        Where F fails is then learnt from other groups, or from earlier rows; re-fits leave out
        whole groups or blocks of time; and intervals are clustered by group.
    train_groups, train_time : array-like of shape (m,), optional
        The same of the rows of ``train``, where ``groups`` or ``time`` names no column.
    align : {'auto', 'index', 'position'}
        How rows of ``y``, of ``groups`` and of predictions belong to those of ``X``. By default
        what has no index is meant by position, and an index by its labels; where both readings
        make sense, they are refused. See :mod:`amlb_ext.models.columns`.

    Returns
    -------
    ModelComparison
        ``table``, ``slices``, ``plot()``, ``to_html()``.

    Raises
    ------
    DataError
        Too few rows, training rows among them, no or only bad rows.
    ModelError
        A model that fails or does not fit the table.
    ConfigError
        A setting that is not allowed.

    Notes
    -----
    Losses are the Brier loss (where a model names labels alone: wrong decisions), or the squared
    error of the target scaled to [0, 1] by ``y``, no larger than that of the worst 2 % of F
    (:mod:`amlb_ext.stats.bounded_loss`). Where the largest errors would decide there is no
    verdict, and the plain figures stand (:mod:`amlb_ext.stats.heavy_tails`).
    Over all rows a verdict rests on a paired t test. Where F fails, a candidate must also differ
    from the re-fits of F. Both questions of all candidates are adjusted together, with the
    correlations that they have; see :func:`amlb_ext.stats.claims.answer_questions`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(800, n_informative=4, random_state=0)
    >>> F = LogisticRegression().fit(X[:400], y[:400])
    >>> forest = RandomForestClassifier(30, random_state=0).fit(X[:400], y[:400])
    >>> result = compare(F, {"forest": forest}, X[400:], y[400:], train=(X[:400], y[:400]))
    >>> result.table["overall"].tolist()
    ['better']
    """
    check_align(align)
    _check_settings(candidates, null=null, refits=refits, train=train)
    orders: list[RowOrder | None] = [None, None]
    columns: set[str] = set()
    if groups is not None or time is not None:
        table = GivenTable.of(X)
        orders[0], columns = read_row_order(table, groups, time, align=align)
        X = _without_order_columns(X, table, columns, [F, *candidates.values()])
    if train is not None:
        named = [value if isinstance(value, str) else None for value in (groups, time)]
        old = GivenTable.of(train[0], "train")
        here = [name if name in old.frame.columns else None for name in named]
        own_groups = train_groups if train_groups is not None else here[0]
        own_time = train_time if train_time is not None else here[1]
        orders[1], _ = read_row_order(
            old, own_groups, own_time, align=align, what="train"
        )
        train = (_without_order_columns(train[0], old, columns, [F]), train[1])
    return compare_labelled(
        F,
        candidates,
        X,
        y,
        train=train,
        kind=kind,
        config=hardness_config(rule, alpha),
        null=null,
        refits=refits,
        level=level,
        seed=seed,
        order=orders[0],
        train_order=orders[1],
        align=align,
        left_out=columns,
    )


def _without_order_columns(
    X: Any, table: GivenTable, columns: Collection[str], given: Sequence[Any]
) -> Any:
    """Return the rows without what orders them, unless a model was fitted on it."""
    needed: set[str] = set()
    for model in given:
        needed.update(columns_of_model(model)[0] or ())
    dropped = [name for name in columns if name not in needed]
    if not dropped:
        return X
    return table.frame.drop(columns=[name for name in dropped if name in table.frame])


def compare_labelled(
    F: Any,
    candidates: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    train: tuple[Any, Any] | None,
    kind: str | None,
    config: HardnessConfig,
    null: Null,
    refits: int,
    level: float,
    seed: int,
    order: RowOrder | None,
    train_order: RowOrder | None,
    align: Align = "auto",
    left_out: Collection[str] = (),
    declared: Sequence[str] = (),
    about: Mapping[str, str] | None = None,
) -> ModelComparison:
    """Compare models where groups and times are read already; see :func:`compare`.

    Parameters
    ----------
    left_out : collection of str
        Columns that tell nothing of where F fails.
    declared : sequence of str
        Classes in the order in which the source lists them.
    about : mapping of str to str, optional
        What F and the table are called, by ``F`` and ``table``.
    """
    _check_settings(candidates, null=null, refits=refits, train=train)
    baseline = ModelAdapter(F, "F", align=align)
    others = [ModelAdapter(m, str(name), align=align) for name, m in candidates.items()]
    rows = read_labelled_rows(
        X,
        y,
        models=[baseline, *others],
        kind=kind,
        order=order,
        align=align,
        left_out=left_out,
        declared=declared,
    )
    for model in (baseline, *others):
        check_kind(
            model.model,
            model.name,
            target=repr(rows.task.target_name),
            is_classification=rows.is_classification,
        )
    old = None
    if train is not None:
        old = models.read_training_rows(train, align=align)
        refuse_seen_rows(rows.table, old[0])
    f = models.predict_rows(baseline, rows)
    answers = {model.name: models.predict_rows(model, rows) for model in others}
    loss_name, row_loss = models.choose_loss(rows, [f, *answers.values()])
    loss_f = row_loss(f)
    losses = pd.DataFrame({name: row_loss(said) for name, said in answers.items()})
    judged = judge_rows(rows, f, loss_f, config, seed=seed, level=level)
    notes = [*rows.notes, *f.notes]
    for said in answers.values():
        notes += said.notes
    notes += _class_order_notes(rows, baseline, others)
    if rows.task.order is not None:
        notes += _order_notes(rows.task.order)
    refit_losses, null_note = _refit_losses(
        baseline,
        rows,
        row_loss,
        train=old,
        null=null,
        refits=refits,
        seed=seed,
        train_order=train_order,
    )
    notes.append(null_note)
    judged = judged.with_refits(refit_losses)
    contrasts = answer(judged, losses)
    notes += _mean_of_refits(contrasts, judged.verb)
    given = rows.table.frame.iloc[rows.task.row_ids]
    by_row = losses.set_axis(given.index).assign(
        is_bad=judged.is_bad, weight=judged.compared.weights, F=loss_f
    )
    hardest = np.argsort(-loss_f, kind="stable")[:MOST_WORST]
    worst, target = given.iloc[hardest], str(rows.task.target_name)
    return ModelComparison.of(
        judged,
        contrasts,
        loss_name=loss_name,
        slices=compare_on_slices(rows, judged, losses, seed=seed),
        seed=seed,
        notes=tuple(dict.fromkeys(notes)),
        about={
            "F": baseline.description,
            "table": f"{len(rows)} rows, {rows.task.features.shape[1]} columns",
            **(about or {}),
            "made": f"{date.today().isoformat()} by hardsynth {__version__}",
        },
        rows=by_row[["is_bad", "weight", "F", *losses.columns]],
        worst=worst.assign(
            **{target: rows.y_given[hardest], "loss of F": loss_f[hardest]}
        ),
    )


def _class_order_notes(
    rows: LabelledRows, baseline: ModelAdapter, others: Sequence[ModelAdapter]
) -> list[str]:
    """Return how arrays without names are read, where F has its classes in another order."""
    own = rows.labels.codes(baseline.classes or []).tolist()
    bare = [
        model.name
        for model in (baseline, *others)
        if model.is_predictions and not hasattr(model.model, "columns")
    ]
    if not bare or own == sorted(own):
        return []
    order = ", ".join(rows.labels.names)
    return [
        f"F has its classes in the order {', '.join(map(str, baseline.classes or ()))}; the "
        f"probabilities of {', '.join(bare)} are read in sorted order, {order}"
    ]


def _check_settings(
    candidates: Mapping[str, Any],
    *,
    null: str,
    refits: int,
    train: tuple[Any, Any] | None,
) -> None:
    check_candidates(candidates, '{"boosting": model}')
    if null not in ("auto", "train", "rows", "none"):
        raise ConfigError(f"null is {null!r}", "give 'auto', 'train', 'rows' or 'none'")
    if null == "train" and train is None:
        raise ConfigError("null='train' without training rows", "add train=(X0, y0)")
    if train is not None and (not isinstance(train, tuple) or len(train) != 2):
        raise ConfigError("train is no pair", "give train=(X0, y0)")
    if refits < 2:
        raise ConfigError(f"{refits} re-fits", "give 2 or more, or null='none'")


def _refit_losses(
    F: ModelAdapter,
    rows: LabelledRows,
    row_loss: models.RowLoss,
    *,
    train: tuple[GivenTable, np.ndarray] | None,
    null: str,
    refits: int,
    seed: int,
    train_order: RowOrder | None,
) -> tuple[pd.DataFrame | None, str]:
    """Return the losses of F's re-fits, ``(n, R)``, and a note on where they were fitted."""
    if null == "none":
        return None, f"F was not fitted again: {_NO_CONTROL}"
    if not F.can_fit_again:
        return None, f"F cannot be cloned, so it was not fitted again: {_NO_CONTROL}"
    has_time = rows.task.order is not None and rows.task.order.time is not None
    try:
        if train is not None and null != "rows":
            answers = models.refit_on_training_rows(
                F, train, rows, refits=refits, seed=seed, order=train_order
            )
            what = "80 % of its training rows"
            if train_order is not None and train_order.splits:
                by_time = train_order.time is not None
                what = "all but one block of time" if by_time else "80 % of its groups"
            note = f"null control: F was fitted again {len(answers)} times on {what}"
        elif has_time:
            return None, (
                "F's training rows are not given, and it cannot be fitted again on rows that come "
                f"later: {_NO_CONTROL}; give train=(X0, y0)"
            )
        else:
            answers = models.refit_across_rows(F, rows, refits=refits, seed=seed)
            note = (
                f"null control: for lack of F's training rows, F was fitted again {refits} times "
                "on halves of X, each row predicted by the half that it is not in, so it includes "
                "the difference between F's training rows and these; give train=(X0, y0) for a "
                "better control"
            )
    except ModelError as error:
        # what F cannot do again is no reason to say nothing of the candidates
        if null in ("train", "rows"):
            raise
        return None, f"{error.message}: {_NO_CONTROL}"
    by_refit = {number: row_loss(said) for number, said in enumerate(answers)}
    return pd.DataFrame(by_refit), note


def _order_notes(order: RowOrder) -> list[str]:
    """Return how the order of the rows counts."""
    notes = [f"where F fails is learnt {order.text}"] if order.splits else []
    if order.time is not None:
        notes.append(
            f"the oldest {OLDEST:.0%} of the rows only teach where F fails; they count over all "
            "rows"
        )
    if order.cluster_text:
        notes.append(order.cluster_text)
    return notes


def _mean_of_refits(contrasts: pd.DataFrame, verb: str) -> list[str]:
    """Return how far the re-fits of F are from F where it fails, in words; none without them."""
    where_f_fails = contrasts[contrasts["question"] == REGION]
    first = where_f_fails.iloc[0]
    if not np.isfinite(first["null_difference"]):
        return []
    # verdicts rest on the scatter between re-fits, so this mean cannot make one
    difference = format_number(first["null_difference"], sign=True)
    error = f" ± {format_number(first['null_se'])}"
    # the largest errors decide: a plain mean without an interval
    if not np.isfinite(first["null_se"]):
        error = " (as errors are, without a cap; it has no standard error)"
    return [
        f"where F {verb}, F fitted again differs from F by {difference}{error} in mean loss; a "
        "model must differ from F, and from F fitted again by more than the re-fits differ from "
        "one another"
    ]
