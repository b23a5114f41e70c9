"""Compare fitted models with F on one table: over all rows, where F fails, and which of the two."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from amlb_ext.comparison import models
from amlb_ext.comparison.failures import compare_on_slices
from amlb_ext.comparison.models import predict_rows
from amlb_ext.comparison.out_of_fold import Folds, predict_out_of_fold, read_folds
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
from amlb_ext.core.losses import Loss
from amlb_ext.core.row_order import RowOrder
from amlb_ext.core.version import __version__
from amlb_ext.hardening.split import OLDEST
from amlb_ext.models.adapter import ModelAdapter
from amlb_ext.models.answers import Answers
from amlb_ext.models.checks import refuse_seen_rows
from amlb_ext.models.columns import Align, check_align, columns_of_model
from amlb_ext.models.given_table import GivenTable
from amlb_ext.models.native import check_kind
from amlb_ext.stats.claims import REGION
from amlb_ext.swap.answer import Side, SwapRows, judge_swaps
from amlb_ext.swap.segments import read_segments
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
    loss: Any = None,
    segments: Any = None,
    cv: Any = None,
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
    loss : str, callable, cost matrix or scorer, optional
        What is compared: a name of :data:`amlb_ext.core.losses.LOSSES` or ``pinball:.9``, a cost by
        true and decided label, a function ``(y, prediction)`` of all rows, or a scorer of
        scikit-learn that is a mean over rows. By default the Brier loss or the squared error.
    segments : optional
        Groups of rows that matter to you: columns, conditions, masks; see
        :func:`amlb_ext.swap.segments.read_segments`.
    cv : int, splitter, folds, or fold of each row, optional
        Compare recipes by cross-validation: F and the candidates are cloned and fitted on the same
        folds, and X, y are all rows. See :func:`amlb_ext.comparison.out_of_fold.read_folds`.
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
        ``table``, ``harm``, ``segments``, ``flips``, ``remedy``, ``slices``, ``plot()``,
        ``to_html()``.

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
    _check_settings(candidates, null=null, refits=refits, train=train, cv=cv)
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
        loss=loss,
        segments=segments,
        cv=cv,
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
    loss: Any = None,
    segments: Any = None,
    cv: Any = None,
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
    _check_settings(candidates, null=null, refits=refits, train=train, cv=cv)
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
    named = read_segments(segments, rows.table.frame)
    old = None
    if train is not None:
        old = models.read_training_rows(train, align=align)
        refuse_seen_rows(rows.table, old[0])
    all_rows = rows
    folds = None if cv is None else read_folds(cv, rows, seed)
    if folds is None:
        answers = {
            model.name: [predict_rows(model, rows)] for model in (baseline, *others)
        }
    else:
        answers = {
            model.name: predict_out_of_fold(model, rows, folds, seed)
            for model in (baseline, *others)
        }
        tested = np.flatnonzero(folds.tested)
        answers = {
            name: [said.take(tested) for said in each] for name, each in answers.items()
        }
        rows = rows.take(tested)
    first = {name: each[0] for name, each in answers.items()}
    chosen = models.choose_loss(rows, first, loss)
    sides = {name: _side(rows, chosen, each) for name, each in answers.items()}
    f, side_f = first["F"], sides.pop("F")
    losses = pd.DataFrame({name: side.losses for name, side in sides.items()})
    judged = judge_rows(
        rows, f, side_f.losses, config, loss=chosen, seed=seed, level=level
    )
    notes = [*rows.notes, *f.notes]
    for model in others:
        notes += first[model.name].notes
    notes += _class_order_notes(rows, baseline, others)
    if rows.task.order is not None:
        notes += _order_notes(rows.task.order)
    again = _Again(
        F=baseline,
        rows=rows,
        all_rows=all_rows,
        loss=chosen,
        train=old,
        null=null,
        refits=refits,
        seed=seed,
        train_order=train_order,
        folds=folds,
    )
    refit_losses, null_note = again.null_control()
    notes.append(null_note)
    judged = judged.with_refits(refit_losses)
    if folds is not None:
        judged = replace(
            judged, compared=replace(judged.compared, widening=folds.widening)
        )
        notes.append(folds.text)
    contrasts = answer(judged, losses)
    notes += _mean_of_refits(contrasts, judged.verb)
    swap = judge_swaps(
        SwapRows(
            judged=judged,
            table=rows.task.features,
            f=side_f,
            refits=tuple(again.bootstrap()),
            loss=chosen,
        ),
        sides,
        segments=[segment.take(rows.task.row_ids) for segment in named],
        seed=seed,
    ).with_models({"F": F, **candidates}, rows.task.features, rows.labels, rows.y_given)
    given = rows.table.frame.iloc[rows.task.row_ids]
    by_row = losses.set_axis(given.index).assign(
        is_bad=judged.is_bad, weight=judged.compared.weights, F=side_f.losses
    )
    hardest = np.argsort(-side_f.losses, kind="stable")[:MOST_WORST]
    worst, target = given.iloc[hardest], str(rows.task.target_name)
    slices = pd.DataFrame()
    if not chosen.is_of_pairs:
        slices = compare_on_slices(rows, judged, losses, seed=seed)
    return ModelComparison.of(
        judged,
        contrasts,
        loss_name=chosen.text(str(rows.task.target_name)),
        slices=slices,
        swap=swap,
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
            **{
                target: rows.y_given[hardest],
                "loss of F": side_f.losses[hardest],
            }
        ),
    )


def _side(rows: LabelledRows, loss: Loss, answers: Sequence[Answers]) -> Side:
    """Return what a model loses on each row, the mean of repetitions, and what it predicts."""
    predicted = [models.as_predicted(rows, said) for said in answers]
    losses = np.mean([loss(each) for each in predicted], axis=0)
    return Side(losses=losses, predicted=predicted[0])


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
    cv: Any,
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
    if cv is not None and train is not None:
        raise ConfigError(
            "cv and train at once",
            "with cv, X and y are all rows and models are fitted on its folds: leave train out",
        )


@dataclass(kw_only=True)
class _Again:
    """F fitted again: the null control where F fails, and the null of harm."""

    F: ModelAdapter
    rows: LabelledRows
    all_rows: LabelledRows
    loss: Loss
    train: tuple[GivenTable, np.ndarray] | None
    null: str
    refits: int
    seed: int
    train_order: RowOrder | None
    folds: Folds | None

    def bootstrap(self) -> list[Side]:
        """Return F's recipe on bootstrap samples; none where its training rows are not known."""
        if self.null == "none" or not self.F.can_fit_again:
            return []
        if self.folds is None and (self.train is None or self.null == "rows"):
            return []
        try:
            if self.folds is not None:
                return self._out_of_fold
            assert self.train is not None
            answers = models.refit_on_bootstrap_samples(
                self.F,
                self.train,
                self.rows,
                refits=self.refits,
                seed=self.seed,
                order=self.train_order,
            )
        except ModelError:
            # the null control has said why
            return []
        return [_side(self.rows, self.loss, [said]) for said in answers]

    @cached_property
    def _out_of_fold(self) -> list[Side]:
        """F's recipe on bootstrap samples of the rows of each fold, predicted out of fold."""
        assert self.folds is not None
        sides = []
        for number in range(self.refits):
            answers = predict_out_of_fold(
                self.F,
                self.all_rows,
                self.folds,
                self.seed + number + 1,
                is_bootstrapped=True,
            )
            tested = np.flatnonzero(self.folds.tested)
            answers = [said.take(tested) for said in answers]
            sides.append(_side(self.rows, self.loss, answers))
        return sides

    def null_control(self) -> tuple[pd.DataFrame | None, str]:
        """Return the losses of F's re-fits, ``(n, R)``, and a note on where they were fitted."""
        if self.null == "none":
            return None, f"F was not fitted again: {_NO_CONTROL}"
        if not self.F.can_fit_again:
            return (
                None,
                f"F cannot be cloned, so it was not fitted again: {_NO_CONTROL}",
            )
        try:
            if self.folds is not None:
                losses = {
                    number: side.losses for number, side in enumerate(self._out_of_fold)
                }
                return pd.DataFrame(losses), (
                    f"null control: F's recipe was fitted again {self.refits} times on bootstrap "
                    "samples of the rows of each fold"
                )
            answers, note = self._fit()
        except ModelError as error:
            # what F cannot do again is no reason to say nothing of the candidates
            if self.null in ("train", "rows"):
                raise
            return None, f"{error.message}: {_NO_CONTROL}"
        if not answers:
            return None, note
        sides = [_side(self.rows, self.loss, [said]) for said in answers]
        return pd.DataFrame(dict(enumerate(side.losses for side in sides))), note

    def _fit(self) -> tuple[list[Answers], str]:
        """Return what F's re-fits answer, and where they were fitted; or none, and why."""
        order = self.rows.task.order
        if self.train is not None and self.null != "rows":
            answers = models.refit_on_training_rows(
                self.F,
                self.train,
                self.rows,
                refits=self.refits,
                seed=self.seed,
                order=self.train_order,
            )
            what = "80 % of its training rows"
            if self.train_order is not None and self.train_order.splits:
                by_time = self.train_order.time is not None
                what = "all but one block of time" if by_time else "80 % of its groups"
            return (
                answers,
                f"null control: F was fitted again {len(answers)} times on {what}",
            )
        if order is not None and order.time is not None:
            return [], (
                "F's training rows are not given, and it cannot be fitted again on rows that come "
                f"later: {_NO_CONTROL}; give train=(X0, y0)"
            )
        answers = models.refit_across_rows(
            self.F, self.rows, refits=self.refits, seed=self.seed
        )
        return answers, (
            f"null control: for lack of F's training rows, F was fitted again {self.refits} times "
            "on halves of X, each row predicted by the half that it is not in, so it includes the "
            "difference between F's training rows and these; give train=(X0, y0) for a better "
            "control"
        )


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
