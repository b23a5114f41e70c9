"""Compare fitted models with F on one table: over all rows, where F fails, and which of the two."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from amlb_ext.comparison import models
from amlb_ext.comparison.answer import answer_units
from amlb_ext.comparison.models import predict_rows
from amlb_ext.comparison.out_of_fold import (
    Folds,
    predict_out_of_fold,
    read_fold_column,
    read_folds,
)
from amlb_ext.comparison.result import ModelComparison
from amlb_ext.core.checked_call import (
    CountOrNone,
    Level,
    Pair,
    Seed,
    check_candidates,
    check_refits,
    checked_call,
)
from amlb_ext.core.display import format_count, format_number
from amlb_ext.core.errors import ConfigError, ModelError
from amlb_ext.core.losses import Loss
from amlb_ext.core.rng import derive_seed
from amlb_ext.core.row_order import RowOrder
from amlb_ext.core.version import __version__
from amlb_ext.hardening.split import OLDEST
from amlb_ext.models.adapter import ModelAdapter
from amlb_ext.models.answers import Answers
from amlb_ext.models.checks import refuse_seen_rows
from amlb_ext.models.columns import Align, columns_of_model
from amlb_ext.models.given_table import GivenTable
from amlb_ext.stats.claims import REGION
from amlb_ext.swap.answer import Side, SwapRows
from amlb_ext.swap.harm import bootstrap_rows
from amlb_ext.swap.remedy import Mixture
from amlb_ext.swap.segments import read_segments
from amlb_ext.units.labelled import (
    LabelledRows,
    read_labelled_rows,
    read_row_order,
)
from amlb_ext.units.rows import hardness_config, judge_rows

if TYPE_CHECKING:
    from amlb_ext.core.config import HardnessConfig

#: Share of the rows that F decides wrongly, from which on a candidate without a mistake is doubted.
LEAST_WRONG = 0.05
#: Rows on which F loses most that an answer shows.
MOST_WORST = 10
#: What is claimed of a candidate: that this model is better than this F, or its recipe than F's.
Claim = Literal["models", "recipes"]
#: How candidates are given.
_EXAMPLE = '{"boosting": model}'
#: What is lost without re-fits of F.
_NO_CONTROL = "without re-fits there is no verdict where F fails, and none on harm"


@checked_call
def compare(
    F: Any,
    candidates: Any,
    X: Any,
    y: Any,
    *,
    train: Pair | None = None,
    kind: Literal["classification", "regression", "binary", "multiclass"] | None = None,
    rule: str = "auto",
    alpha: float | None = None,
    refits: CountOrNone = 5,
    claim: Claim = "models",
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

    The verdict is over all rows. Where F fails, the fifth of the rows where that is foreseen most
    from features alone, each candidate's change is described, and whether it differs from that
    elsewhere, as a share of F's loss. Who is harmed, and what to do, is in ``harm`` and ``remedy``.

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
        The rows that F was fitted on. F is cloned and fitted again on bootstrap samples of them:
        what training again does by itself. X is checked for copies of them.
    kind : {'classification', 'regression'}, optional
        Where F does not tell.
    rule, alpha : str, float, optional
        The rule that calls a row of F bad, and its threshold, as in ``hardsynth generate``: by
        default what F decides wrongly, or of numbers the tenth of the rows with the largest loss.
    refits : int
        How often F is fitted again; 0 for not at all, and then without a verdict where F fails or
        on harm.
    claim : {'models', 'recipes'}
        What a verdict over all rows is of: these fitted models, or what their recipes make of
        such training rows. For recipes, candidates are fitted again on ``train``, too, on the
        samples that F is fitted on, and intervals count how much fits differ.
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
        folds, or given as out-of-fold predictions of them, and X, y are all rows. A column of
        ``X``, or values. See :func:`amlb_ext.comparison.out_of_fold.read_folds`.
    groups, time : str or array-like of shape (n,), optional
        Rows of one group belong together; times order the rows. A column of ``X``, or values.
        Where F fails is then learnt from other groups, or from earlier rows; re-fits draw whole
        groups; and intervals are clustered by group.
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
    Over all rows a verdict rests on a paired t test, adjusted over candidates. Where F fails there
    is one only for candidates that are called over all rows, and they must differ from the re-fits
    of F as well; see :func:`amlb_ext.stats.claims.answer_questions`.

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
    check_candidates(candidates, _EXAMPLE)
    table = GivenTable.of(X)
    order, columns = read_row_order(table, groups, time, align=align)
    if isinstance(cv, str):
        columns = {*columns, cv}
        cv = read_fold_column(cv, table.frame)
    X = _without_order_columns(X, table, columns, [F, *candidates.values()])
    train_order = None
    if train is not None:
        old = GivenTable.of(train[0], "train")
        # a column of X that train has, too, says the same of its rows
        named = [name if isinstance(name, str) else None for name in (groups, time)]
        here = [name if name in old.frame.columns else None for name in named]
        train_order, _ = read_row_order(
            old,
            here[0] if train_groups is None else train_groups,
            here[1] if train_time is None else train_time,
            align=align,
            what="train",
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
        refits=refits,
        claim=claim,
        level=level,
        seed=seed,
        loss=loss,
        segments=segments,
        cv=cv,
        order=order,
        train_order=train_order,
        align=align,
        left_out=columns,
    )


def _without_order_columns(
    X: Any, table: GivenTable, columns: Collection[str], given: Sequence[Any]
) -> Any:
    """Return the rows without what orders them, unless a model was fitted on it."""
    needed: set[str] = set()
    for model in given:
        needed.update(columns_of_model(model, table.names)[0] or ())
    dropped = [name for name in columns if name not in needed]
    return table.frame.drop(columns=dropped, errors="ignore") if dropped else X


def compare_labelled(
    F: Any,
    candidates: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    train: tuple[Any, Any] | None,
    kind: str | None,
    config: HardnessConfig,
    refits: int,
    claim: Claim,
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
    check_candidates(candidates, _EXAMPLE)
    check_refits(refits)
    if claim == "recipes" and cv is None and (train is None or not refits):
        raise ConfigError(
            "a claim on recipes without fits",
            "give train=(X0, y0) and refits of 2 or more, or cv",
        )
    if cv is not None and train is not None:
        raise ConfigError(
            "cv and train at once",
            "with cv, X and y are all rows and models are fitted on its folds: leave train out",
        )
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
    named = read_segments(
        segments, rows.table.frame, beside=rows.table.rows, align=align
    )
    old = None
    if train is not None:
        old = models.read_training_rows(train, align=align)
        refuse_seen_rows(rows.table, old[0])
    all_rows = rows
    folds = None if cv is None else read_folds(cv, rows, seed, align=align)
    for model in (baseline, *others):
        if model.is_predictions and isinstance(cv, int | np.integer):
            raise ConfigError(
                f"{model.name} is given as predictions, and cv={cv} does not tell the fold of each "
                "row",
                "give cv the fold of each row, as a column or values, or (train, test) positions",
            )
    answers = {
        model.name: _answers(model, rows, folds, seed) for model in (baseline, *others)
    }
    if folds is not None:
        rows = rows.take(np.flatnonzero(folds.tested))
    first = {name: each[0] for name, each in answers.items()}
    chosen = models.choose_loss(rows, first, loss)
    sides = {name: _side(rows, chosen, each) for name, each in answers.items()}
    f, side_f = first["F"], sides.pop("F")
    judged = judge_rows(
        rows, f, side_f.losses, config, loss=chosen, seed=seed, level=level
    )
    notes = [*rows.notes]
    for said in first.values():
        notes += said.notes
    notes += _class_order_notes(rows, baseline, others)
    notes += _position_notes(rows, (baseline, *others))
    notes += [
        f"the weights of {model.name} were chosen on these rows, which flatter it: compare it on "
        "other rows"
        for model in others
        if isinstance(model.model, Mixture) and model.model.has_seen(rows.task.features)
    ]
    if folds is None:
        notes += _fitted_here_notes(side_f, sides)
    if rows.task.order is not None:
        notes += _order_notes(rows.task.order)
        if train_order is not None:
            notes += _shared_group_notes(rows.task.order, train_order)
    again = _Again(
        rows=rows,
        all_rows=all_rows,
        loss=chosen,
        train=old,
        refits=refits,
        seed=seed,
        train_order=train_order,
        folds=folds,
    )
    refit_sides, refit_note = again.fits_of_f(baseline)
    notes.append(refit_note)
    compared = replace(judged.compared, refits=_losses_of_fits(refit_sides))
    if folds is not None:
        compared = replace(compared, widening=folds.widening)
        notes += folds.notes
    judged = replace(judged, compared=compared)
    fits = None
    if claim == "recipes" and folds is None:
        fits = {model.name: _losses_of_fits(again.fits(model)) for model in others}
    given = rows.table.frame.iloc[rows.task.row_ids]
    losses = {name: side.losses for name, side in sides.items()}
    by_row = pd.DataFrame(
        {**judged.by_row(), "F": side_f.losses, **losses}, index=given.index
    )
    hardest = np.argsort(-side_f.losses, kind="stable")[:MOST_WORST]
    worst, target = given.iloc[hardest], str(rows.task.target_name)
    result = answer_units(
        SwapRows(
            judged=judged,
            table=rows.task.features,
            f=side_f,
            refits=tuple(refit_sides),
            no_refits=(
                "it is given as predictions"
                if baseline.is_predictions
                else "give its training rows"
            ),
            loss=chosen,
        ),
        sides,
        columns=() if chosen.is_of_pairs else rows.task.columns,
        fits=fits,
        segments=[segment.take(rows.task.row_ids) for segment in named],
        seed=seed,
        loss_name=chosen.text(target),
        about={
            "F": baseline.description,
            "table": f"{len(rows)} rows, {rows.task.features.shape[1]} columns",
            **(about or {}),
            "made": f"{date.today().isoformat()} by hardsynth {__version__}",
        },
        rows=by_row,
        claim="models" if fits is None and folds is None else "recipes",
        worst=worst.assign(
            **{
                target: rows.y_given[hardest],
                "loss of F": side_f.losses[hardest],
            }
        ),
    )
    notes += _mean_of_refits(result.contrasts, judged.verb)
    swap = result.swap.with_models(
        {"F": F, **candidates}, rows.task.features, rows.labels, rows.y_given
    )
    return replace(result, swap=swap, notes=tuple(dict.fromkeys(notes)))


def _answers(
    model: ModelAdapter,
    rows: LabelledRows,
    folds: Folds | None,
    seed: int,
    *,
    is_bootstrapped: bool = False,
) -> list[Answers]:
    """Return what a model answers to the rows that are compared, by repetition of the folds."""
    if folds is None:
        return [predict_rows(model, rows)]
    tested = np.flatnonzero(folds.tested)
    if model.is_predictions:
        # they were made out of fold already; what is never tested may lack
        return [predict_rows(model, rows.take(tested))]
    said = predict_out_of_fold(
        model, rows, folds, seed, is_bootstrapped=is_bootstrapped
    )
    return [each.take(tested) for each in said]


def _side(rows: LabelledRows, loss: Loss, answers: Sequence[Answers]) -> Side:
    """Return what a model loses on each row, the mean of repetitions, and what it predicts."""
    predicted = [models.as_predicted(rows, said) for said in answers]
    losses = np.mean([loss(each) for each in predicted], axis=0)
    return Side(losses=losses, predicted=predicted[0])


def _fitted_here_notes(f: Side, sides: Mapping[str, Side]) -> list[str]:
    """Return who seems to have been fitted on these rows: who decides all of them rightly.

    Nothing but its predictions is known of a candidate. A model that knows the answers shows it by
    making no mistake where F makes many.
    """
    right_f = f.right
    if right_f is None or (~right_f).mean() < LEAST_WRONG:
        return []
    return [
        f"{name} decides all {len(right_f)} rows rightly, and F {(~right_f).sum()} wrongly: if "
        f"{name} was fitted on these rows, nothing that is said of it holds"
        for name, side in sides.items()
        if side.right is not None and side.right.all()
    ]


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


def _position_notes(rows: LabelledRows, given: Sequence[ModelAdapter]) -> list[str]:
    """Return which models know no names of columns, where the table has such."""
    if rows.table.is_unnamed:
        return []
    known = {
        model.name: columns_of_model(model.model, rows.table.names)
        for model in given
        if not model.is_predictions
    }
    blind = [name for name, (names, count) in known.items() if count and not names]
    if not blind:
        return []
    verb = "was" if len(blind) == 1 else "were"
    return [
        f"{', '.join(blind)} {verb} fitted on an array, without names of columns: those of the "
        "table are taken by their position"
    ]


@dataclass(frozen=True, kw_only=True)
class _Again:
    """Models fitted again: what training again does by itself."""

    rows: LabelledRows
    all_rows: LabelledRows
    loss: Loss
    train: tuple[GivenTable, np.ndarray] | None
    refits: int
    seed: int
    train_order: RowOrder | None
    folds: Folds | None

    def fits_of_f(self, F: ModelAdapter) -> tuple[list[Side], str]:
        """Return F's recipe on bootstrap samples, and a note; none where that cannot be had."""
        if not self.refits:
            return [], f"F was not fitted again: {_NO_CONTROL}"
        if not F.can_fit_again:
            return [], f"F cannot be cloned, so it was not fitted again: {_NO_CONTROL}"
        if self.train is None and self.folds is None:
            return [], (
                f"F was not fitted again, since its training rows are not given: {_NO_CONTROL}; "
                "give train=(X0, y0)"
            )
        try:
            sides = self.fits(F)
        except ModelError as error:
            # what F cannot do again is no reason to say nothing of the candidates
            return [], f"{error.message}: {_NO_CONTROL}"
        whose = "its training rows" if self.folds is None else "the rows of each fold"
        return sides, (
            f"F was fitted again {len(sides)} times on bootstrap samples of {whose}"
        )

    def fits(self, model: ModelAdapter) -> list[Side]:
        """Return a model's recipe on bootstrap samples; the same samples for every model."""
        if self.folds is None:
            assert self.train is not None
            table, y = self.train
            group = None if self.train_order is None else self.train_order.group
            sides = []
            for number in range(self.refits):
                seed = derive_seed(self.seed, "compare", "bootstrap", number)
                part = bootstrap_rows(len(y), np.random.default_rng(seed), group)
                twin = model.fit_again(table.take(part), y[part], self.seed + number)
                said = predict_rows(twin, self.rows)
                sides.append(_side(self.rows, self.loss, [said]))
            return sides
        sides = []
        for seed in range(self.seed + 1, self.seed + self.refits + 1):
            of_folds = _answers(
                model, self.all_rows, self.folds, seed, is_bootstrapped=True
            )
            sides.append(_side(self.rows, self.loss, of_folds))
        return sides


def _losses_of_fits(sides: Sequence[Side]) -> pd.DataFrame | None:
    """Return the losses of fits of one recipe, ``(n, R)``; None where there are none."""
    if not sides:
        return None
    return pd.DataFrame(dict(enumerate(side.losses for side in sides)))


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
    first = contrasts[contrasts["question"] == REGION].iloc[0]
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


def _shared_group_notes(order: RowOrder, of_train: RowOrder) -> list[str]:
    """Return that groups of the rows have rows that models were fitted on, too."""
    shared = order.groups & of_train.groups
    if not shared:
        return []
    return [
        f"{len(shared)} of {format_count(len(order.groups), 'group')} of {order.group_name!r} have "
        "rows in train, too: what is said is of new rows of groups that the models know"
    ]
