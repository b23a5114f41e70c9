"""The losses that models can be compared by: one table, and a user's own.

A loss is a number for each row, smaller is better, and its mean over rows is what is compared. A
score that is no mean over rows (F1, say) cannot be compared row by row and is refused. The area
under the ROC curve is the one exception: it is a mean over pairs of rows, see
:class:`amlb_ext.swap.contrast.AucContrast`.

Notation
--------
y : (n,) targets in their own unit, or class codes 0..C-1
f : (n,) predictions in that unit, or (n, C) probabilities in the order of the labels
c : (n,) classes that a model decides for
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from amlb_ext.core import row_losses
from amlb_ext.core.auc import misranked
from amlb_ext.core.display import shorten_text
from amlb_ext.core.errors import ConfigError, DataError, suggest_nearest
from amlb_ext.core.unit import ROW, Unit

#: A probability below this counts as this, as for scikit-learn and so AMLB: the logarithm of 0 is
#: no number.
SMALLEST_PROBABILITY = float(np.finfo(float).eps)
#: What a loss is computed from.
Basis = Literal[
    "probabilities", "decisions", "numbers", "mean", "median", "quantiles", "anything"
]


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """What one model says of some rows, and what is true.

    Attributes
    ----------
    y, f : ndarray
        See the module's notation.
    decided : ndarray of shape (n,) or None
        Class codes; None for a regression.
    labels : tuple
        Labels of the classes; empty for a regression.
    given : ndarray of shape (n,)
        Targets as the user gave them.
    only_labels : bool
        Whether the model names labels and gives no probabilities.
    """

    y: np.ndarray
    f: np.ndarray
    decided: np.ndarray | None = None
    labels: Sequence[Any] = ()
    given: np.ndarray | None = None
    only_labels: bool = False

    @property
    def is_classification(self) -> bool:
        """Whether the target is a class."""
        return self.decided is not None


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A loss of single rows, or of windows of series.

    Attributes
    ----------
    name : str
        What a user types: ``pinball:0.9``.
    title : str
        What a reader sees: ``pinball loss at .9``.
    meaning, formula : str
        In words, and as one writes it, where the title does not tell.
    unit : {'', 'target', 'target squared', 'scales', 'cost', 'nats'}
        What a mean loss is measured in; empty for a share or a loss without unit.
    basis : {'probabilities', 'decisions', 'numbers', 'mean', 'median', 'quantiles', 'anything'}
        What it is computed from; of windows, the forecast that has the least expected loss.
    counted : Unit
        What it is a number for.
    of_units : callable
        From what a model says to a loss for each unit.
    is_of_pairs : bool
        Whether it is a mean over pairs of rows: the area under the ROC curve.
    """

    name: str
    title: str
    meaning: str = ""
    formula: str = ""
    unit: str = ""
    basis: Basis
    counted: Unit = ROW
    of_units: Callable[[Any], np.ndarray] = field(repr=False)
    is_of_pairs: bool = False

    def text(self, target: str = "the target") -> str:
        """Return what is compared, with its unit."""
        if self.meaning:
            return f"{self.title}: {self.meaning}"
        units = {
            "": "",
            "target": f" of {target}, in its own unit",
            "target squared": f" of {target}, in the square of its unit",
            "cost": ", in the unit of your costs",
            "nats": ", in nats",
        }
        return f"{self.title}{units[self.unit]}"

    def __call__(self, predicted: Any) -> np.ndarray:
        """Return the loss of each unit, ``(n,)``.

        Raises
        ------
        DataError
            A loss that is missing, not finite or negative, or losses of another shape.
        """
        losses = np.asarray(self.of_units(predicted))
        # a window without a scale has no loss
        if self.counted is not ROW:
            return losses
        is_own = self.basis == "anything"
        return checked_unit_losses(losses, self.name, len(predicted.y), is_own=is_own)


def checked_unit_losses(
    losses: np.ndarray,
    name: str,
    n: int,
    unit: Unit = ROW,
    *,
    is_own: bool = True,
) -> np.ndarray:
    """Return losses as numbers, one for each unit.

    Parameters
    ----------
    losses : ndarray
    name : str
        Of the loss.
    n : int
        How many units there are.
    unit : Unit
    is_own : bool
        Whether they come from a user's function. Of a named loss some may be infinite or negative:
        the square of an absurd prediction, which a cap makes count as large, or one row of a loss
        of pairs.

    Raises
    ------
    DataError
        A loss that is missing, not finite or negative, or losses of another shape or type.
    """
    if losses.shape != (n,):
        raise DataError(
            f"the loss {name} returns an array of shape {losses.shape} for {n} {unit.many}",
            f"return one number for each {unit.one}, shape ({n},)",
        )
    try:
        if np.iscomplexobj(losses):
            raise TypeError
        losses = losses.astype(float)
    except (TypeError, ValueError):
        raise DataError(
            f"the loss {name} returns values of type {losses.dtype}",
            f"return one number for each {unit.one}",
        ) from None
    is_known = np.isfinite(losses) if is_own else ~np.isnan(losses)
    broken = int((~is_known).sum())
    if broken:
        raise DataError(
            f"the loss {name} is NaN or infinite on {broken} of {n} {unit.many}",
            f"return a finite number for each {unit.one}",
        )
    negative = int((losses < 0).sum()) if is_own else 0
    if negative:
        raise DataError(
            f"the loss {name} is negative on {negative} of {n} {unit.many}",
            "return a loss, smaller is better and 0 is none: of a score, the largest less it",
        )
    return losses


def _log_loss(rows: Predicted) -> np.ndarray:
    p = row_losses.true_probability(rows.y, rows.f)
    return np.asarray(-np.log(np.clip(p, SMALLEST_PROBABILITY, 1.0)))


def _zero_one(rows: Predicted) -> np.ndarray:
    """Return ``1[c != y]``."""
    return np.asarray(rows.decided != rows.y, dtype=float)


def _balanced(rows: Predicted) -> np.ndarray:
    """Return ``1[c != y] n / (C n_y)``: each class counts alike."""
    codes, counts = np.unique(rows.y.astype(int), return_counts=True)
    weight = np.zeros(codes.max() + 1)
    weight[codes] = len(rows.y) / (len(codes) * counts)
    return _zero_one(rows) * weight[rows.y.astype(int)]


def _squared_log(rows: Predicted) -> np.ndarray:
    """Return ``(log(1 + f) - log(1 + y))^2``."""
    for what, values in (("target", rows.y), ("prediction", rows.f)):
        if (values <= -1).any():
            raise DataError(
                f"squared_log needs numbers above -1, and a {what} is {values.min():g}",
                "compare by loss 'squared' or 'absolute'",
            )
    return row_losses.squared_error(np.log1p(rows.y), np.log1p(rows.f))


#: Of fewer rows of a class the AUC's error is not known. Two models of noise on 200 rows differed
#: at the level .05 in .36 of 4,000 draws where two rows are positive, .093 of ten, .062 of twenty.
FEWEST_OF_CLASS = 20


def _misranked(rows: Predicted) -> np.ndarray:
    """Return what has the share of pairs of classes that f_1 orders wrongly as its mean."""
    is_positive = rows.y == 1
    n_fewest = min(is_positive.sum(), (~is_positive).sum())
    if n_fewest < FEWEST_OF_CLASS:
        raise DataError(
            f"one class has {n_fewest} rows, and an AUC needs {FEWEST_OF_CLASS} of each to tell "
            "models apart",
            "give more rows of that class, or compare by log_loss",
        )
    return misranked(is_positive, rows.f[:, 1])


#: Every loss that has a name but no parameter.
LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss(
            name="brier",
            title="Brier loss",
            basis="probabilities",
            of_units=lambda rows: row_losses.brier_loss(rows.y, rows.f),
        ),
        Loss(
            name="log_loss",
            title="log loss",
            unit="nats",
            basis="probabilities",
            of_units=_log_loss,
        ),
        Loss(
            name="zero_one",
            title="share of wrong decisions",
            basis="decisions",
            of_units=_zero_one,
        ),
        Loss(
            name="balanced",
            title="balanced error",
            basis="decisions",
            of_units=_balanced,
        ),
        Loss(
            name="auc",
            title="1 - AUC",
            basis="probabilities",
            of_units=_misranked,
            is_of_pairs=True,
        ),
        Loss(
            name="squared",
            title="squared error",
            unit="target squared",
            basis="numbers",
            of_units=lambda rows: row_losses.squared_error(rows.y, rows.f),
        ),
        Loss(
            name="absolute",
            title="absolute error",
            unit="target",
            basis="numbers",
            of_units=lambda rows: row_losses.absolute_error(rows.y, rows.f),
        ),
        Loss(
            name="squared_log",
            title="squared logarithmic error",
            basis="numbers",
            of_units=_squared_log,
        ),
    )
}

#: scikit-learn's scorers, the function that each calls, and the loss whose mean orders models as
#: they do.
_SCORED = (
    ("accuracy", "accuracy_score", "zero_one"),
    ("balanced_accuracy", "balanced_accuracy_score", "balanced"),
    ("neg_brier_score", "brier_score_loss", "brier"),
    ("neg_log_loss", "log_loss", "log_loss"),
    ("neg_mean_absolute_error", "mean_absolute_error", "absolute"),
    ("neg_mean_squared_error", "mean_squared_error", "squared"),
    ("neg_mean_squared_log_error", "mean_squared_log_error", "squared_log"),
    ("neg_root_mean_squared_error", "root_mean_squared_error", "squared"),
    ("neg_root_mean_squared_log_error", "root_mean_squared_log_error", "squared_log"),
    ("r2", "r2_score", "squared"),
    ("roc_auc", "roc_auc_score", "auc"),
)
#: By the name of a scorer; None of one that is no mean of losses of rows.
SCORERS: dict[str, str | None] = {scorer: loss for scorer, _, loss in _SCORED}
SCORERS |= {"neg_max_error": None, "explained_variance": None}
#: As AMLB calls them.
SCORERS |= {"acc": "zero_one", "balacc": "balanced", "logloss": "log_loss"}
SCORERS |= {"mae": "absolute", "mse": "squared", "rmse": "squared"}
SCORERS |= {"rmsle": "squared_log"}
#: By the function that a scorer calls; one has no scorer of its own.
_SCORED_BY = {function: loss for _, function, loss in _SCORED}
_SCORED_BY["zero_one_loss"] = "zero_one"


def read_loss(
    given: Any, *, labels: Sequence[Any] = (), is_classification: bool
) -> Loss:
    """Return the loss that a user means.

    Parameters
    ----------
    given : str, callable, scorer, mapping, DataFrame or array
        A name of :data:`LOSSES` or ``pinball:Q``; a scorer of scikit-learn or its name, where it
        is a mean over rows; a function ``(y, prediction) -> loss`` of all rows at once, see
        :func:`_own_loss`; or a cost matrix, see :func:`_cost_loss`.
    labels : sequence
        Labels of the classes, for a cost matrix.
    is_classification : bool

    Raises
    ------
    ConfigError
        No such loss, or one that does not fit the target; the remedy says what does.

    Examples
    --------
    >>> read_loss("pinball:.9", is_classification=False).title
    'pinball loss at 0.9'
    >>> read_loss("neg_log_loss", is_classification=True).name
    'log_loss'
    """
    if isinstance(given, Loss):
        loss = given
    elif isinstance(given, str):
        loss = _named_loss(given)
    elif hasattr(given, "_score_func"):
        loss = _scorer_loss(given)
    elif callable(given):
        loss = _own_loss(given)
    elif isinstance(given, Mapping | pd.DataFrame | np.ndarray | list):
        loss = _cost_loss(given, labels)
    else:
        raise ConfigError(
            f"the loss is a {type(given).__name__}",
            f"give a name ({', '.join(LOSSES)}, pinball:.9), a cost matrix or a function",
        )
    _check_fits(loss, len(labels), is_classification)
    return loss


def _check_fits(loss: Loss, n_classes: int, is_classification: bool) -> None:
    """Refuse a loss of classes for numbers, and one of numbers for classes."""
    if loss.basis == "anything":
        return
    is_of_classes = loss.basis != "numbers"
    if is_of_classes != is_classification:
        fitting = [
            name
            for name, other in LOSSES.items()
            if (other.basis != "numbers") == is_classification
        ]
        what = "classes" if is_classification else "numbers"
        raise ConfigError(
            f"the loss {loss.name} does not fit a target of {what}",
            f"give {', '.join(fitting)}",
        )
    if loss.is_of_pairs and n_classes and n_classes != 2:
        raise ConfigError(
            f"the loss auc is of two classes, and the target has {n_classes}",
            "give log_loss or brier",
        )


def _named_loss(name: str) -> Loss:
    if name in LOSSES:
        return LOSSES[name]
    q = pinball_quantile(name)
    if q is not None:
        return _pinball(q)
    if (mapped := SCORERS.get(name)) is not None:
        return LOSSES[mapped]
    from sklearn.metrics import get_scorer_names

    if name in SCORERS or name in get_scorer_names():
        raise ConfigError(
            f"rows cannot be compared by the scorer {name}: no loss of single rows is known that "
            "orders models as it does",
            f"give one of {', '.join(LOSSES)}, or a function (y, prediction) -> loss of each row",
        )
    nearest = suggest_nearest(name, [*LOSSES, *SCORERS])
    raise ConfigError(f"no loss is called {name!r}", nearest)


def pinball_quantile(name: str) -> float | None:
    """Return the quantile of ``pinball:.9``; None of another name.

    Raises
    ------
    ConfigError
        It is not between 0 and 1.

    Examples
    --------
    >>> pinball_quantile("pinball:.9"), pinball_quantile("squared")
    (0.9, None)
    """
    matched = re.fullmatch(r"pinball:(\d*\.?\d+)", name)
    if not matched:
        return None
    q = float(matched.group(1))
    if not 0 < q < 1:
        raise ConfigError(f"{name} is no quantile", "give pinball:.9, say")
    return q


def _pinball(q: float) -> Loss:
    def of_rows(rows: Predicted) -> np.ndarray:
        return row_losses.pinball_error(rows.y, rows.f, q)

    return Loss(
        name=f"pinball:{q:g}",
        title=f"pinball loss at {q:g}",
        unit="target",
        basis="numbers",
        of_units=of_rows,
    )


def _scorer_loss(scorer: Any) -> Loss:
    """Return the loss of a scorer that ``make_scorer`` or ``get_scorer`` returned."""
    function = getattr(scorer, "_score_func", None)
    name = getattr(function, "__name__", "")
    kwargs = dict(getattr(scorer, "_kwargs", {}))
    if name == "mean_pinball_loss":
        return _pinball(float(kwargs.get("alpha", 0.5)))
    if name in _SCORED_BY and not kwargs:
        return LOSSES[_SCORED_BY[name]]
    with_what = f" with {', '.join(kwargs)}" if kwargs else ""
    raise ConfigError(
        f"the scorer of {name or function!r}{with_what} is not known as a mean of losses of rows",
        "give a function (y, prediction) that returns a loss for each row",
    )


def _own_loss(function: Callable[..., Any]) -> Loss:
    """Return a user's own loss.

    The function is given the targets of all rows as the user gave them, and the predictions:
    numbers, or probabilities of shape ``(n, C)``, columns in the order of the sorted labels.
    """
    name = function_name(function)

    def of_rows(rows: Predicted) -> np.ndarray:
        given = rows.y if rows.given is None else rows.given
        shape = rows.f.shape
        return ask_own_loss(
            function,
            given,
            rows.f,
            f"the targets, shape ({len(given)},), and the predictions, shape {shape}"
            + (", probabilities" if len(shape) > 1 else ""),
        )

    return Loss(
        name=name,
        title=f"your loss {name}",
        basis="anything",
        of_units=of_rows,
    )


def function_name(function: Callable[..., Any]) -> str:
    """Return what a function, or an object that is called like one, is called."""
    return str(getattr(function, "__name__", type(function).__name__))


#: What parameters of targets and of predictions are called.
_TRUE = re.compile(
    r"true|truth|target|actual|expect|gold|refer|label|observ|predictand|^obs$|^y$|^t$",
    re.I,
)
_SAID = re.compile(
    r"pred(?!ictand)|forecast|estim|prob|score|output|hat$|^p$|^f$", re.I
)


#: Parameters that are given by their place.
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def ask_own_loss(
    function: Callable[..., Any], y: np.ndarray, said: Any, given: str
) -> np.ndarray:
    """Return what a user's own loss returns for the units, unchecked.

    Parameters
    ----------
    function : callable
    y : ndarray
        What is true.
    said : object
        What is predicted, or forecast.
    given : str
        Both in words, for the error.

    Raises
    ------
    DataError
        The function raises, takes predictions first, or returns losses of other rows.
    """
    _check_order_of_parameters(function)
    try:
        # a function may write into what it is given
        losses = function(y.copy(), copy.deepcopy(said))
    except Exception as error:
        name, message = function_name(function), shorten_text(error, 160)
        raise DataError(
            f"the loss {name} raises {type(error).__name__}: {message}",
            f"it is given {given}",
        ) from error
    if isinstance(losses, pd.Series):
        # y and the predictions are arrays, so an index can only count their rows
        if not losses.index.sort_values().equals(pd.RangeIndex(len(losses))):
            raise DataError(
                f"the loss {function_name(function)} returns a Series whose index does not count "
                "the rows",
                "return one loss for each row, in the order of the rows",
            )
        losses = losses.sort_index()
    return np.asarray(losses)


def _check_order_of_parameters(function: Callable[..., Any]) -> None:
    """Refuse a function whose names say that it takes predictions first."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return
    names = [each.name for each in parameters if each.kind in _BY_PLACE][:2]
    if len(names) < 2 or _SAID.search(names[1]):
        return
    is_said_first = _SAID.search(names[0]) or not _TRUE.search(names[0])
    if is_said_first and _TRUE.search(names[1]):
        raise DataError(
            f"the loss {function_name(function)} takes {names[0]} before {names[1]}, and is given "
            "the targets first",
            f"write it as a function of ({names[1]}, {names[0]})",
        )


def read_cost_matrix(given: Any, labels: Sequence[Any]) -> np.ndarray:
    """Return what each decision costs, ``(C, C)``, by true label, then by decision.

    Parameters
    ----------
    given : mapping of mapping, DataFrame, or array of shape (C, C)
        Cost by true label, then by the label that is decided for; what is not named costs 0 where
        both are alike. Of an array, rows and columns are in the order of the labels.
    labels : sequence
        Empty for a target that is a number.

    Raises
    ------
    ConfigError
        No classes, a label that is unknown, or costs that are missing, negative or all 0.

    Examples
    --------
    >>> costs = {"ill": {"well": 10}, "well": {"ill": 1}}
    >>> read_cost_matrix(costs, ["ill", "well"]).tolist()
    [[0.0, 10.0], [1.0, 0.0]]
    """
    if not labels:
        raise ConfigError(
            "a cost matrix is for classes, and the target is a number",
            "give absolute, squared, pinball:.9 or a function",
        )
    costs = _read_costs(given, labels)
    if not np.isfinite(costs).all():
        raise ConfigError(
            "a cost is missing or not finite", "give a number for each pair of labels"
        )
    if (costs < 0).any():
        raise ConfigError(
            f"a cost is negative: {costs.min():g}",
            "add the same amount to all costs of a true label: it changes no comparison",
        )
    if not costs.any():
        raise ConfigError("all costs are 0", "give a cost above 0 for some decision")

    return costs


def _cost_loss(given: Any, labels: Sequence[Any]) -> Loss:
    """Return the cost of what a model decides, see :func:`read_cost_matrix`."""
    costs = read_cost_matrix(given, labels)

    def of_rows(rows: Predicted) -> np.ndarray:
        assert rows.decided is not None
        decided = rows.decided.astype(int)
        if (decided < 0).any():
            raise DataError(
                "a model decides for a class that no cost is known of",
                f"the labels are {', '.join(map(str, labels))}",
            )
        return np.asarray(costs[rows.y.astype(int), decided])

    return Loss(
        name="cost",
        title="cost of decisions",
        unit="cost",
        basis="decisions",
        of_units=of_rows,
    )


def _read_costs(given: Any, labels: Sequence[Any]) -> np.ndarray:
    """Return costs of shape ``(C, C)``, NaN where one is not given."""
    n = len(labels)
    if not isinstance(given, Mapping | pd.DataFrame):
        try:
            costs = np.asarray(given, dtype=float)
        except (TypeError, ValueError):
            raise ConfigError(
                "the cost matrix holds what is no number",
                "give one number for each pair",
            ) from None
        if costs.shape != (n, n):
            raise ConfigError(
                f"the cost matrix has shape {costs.shape}, and the target {n} classes",
                f"give shape ({n}, {n}), in the order {', '.join(map(str, labels))}",
            )
        return costs
    names = list(map(str, given))
    if isinstance(given, pd.DataFrame):
        names += [f"row {name}" for name in given.index]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                f"the cost matrix names {name.removeprefix('row ')!r} twice",
                "give one row and one column for each class",
            )
    if isinstance(given, pd.DataFrame):
        given = {true: dict(row) for true, row in given.T.items()}
    codes = {str(label): code for code, label in enumerate(labels)}
    costs = np.full((n, n), np.nan)
    np.fill_diagonal(costs, 0.0)
    for true, row in given.items():
        if not isinstance(row, Mapping):
            raise ConfigError(
                f"the costs of {true!r} are a {type(row).__name__}",
                'give {"yes": {"no": 10}, "no": {"yes": 1}}: by true, then by decided label',
            )
        unknown = [label for label in map(str, (true, *row)) if label not in codes]
        if unknown:
            raise ConfigError(
                f"the cost matrix names {unknown[0]!r}, which is no class of the target",
                f"the classes are {', '.join(codes)}",
            )
        for decided, cost in row.items():
            costs[codes[str(true)], codes[str(decided)]] = cost
    return costs
