"""One adapter between any model and everything else.

What kind is it, which columns in which order and form does it want, which classes in which order,
what does ``predict`` decide, what are its probabilities, can it be fitted again: each question is
answered by a module of this wing, and every door asks them here.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from amlb_ext.core.dates import look_like_dates
from amlb_ext.core.errors import HardsynthError, ModelError
from amlb_ext.core.numbers import COMMA_REMEDY, has_decimal_comma
from amlb_ext.models.answers import (
    Answers,
    Labels,
    RawAnswers,
    answers_of_numbers,
    classes_of_columns,
    flat_rows,
    read_labels,
    read_probabilities,
)
from amlb_ext.models.columns import (
    Align,
    align_rows,
    describe_expected,
    list_names,
    select_features,
)
from amlb_ext.models.given_table import GivenTable
from amlb_ext.models.native import (
    as_native,
    attribute_of,
    classes_of_model,
    kind_of_model,
    refuse_scores,
    with_native_categories,
)
from amlb_ext.models.predictions import (
    answers_of_labels,
    are_predictions,
    as_rows,
    check_order,
    decision_notes,
    interpret_predictions,
)


class ModelAdapter:
    """A fitted model, a function, or predictions, asked in one way.

    Parameters
    ----------
    model : object
        Fitted, with ``predict``, for classes with ``predict_proba``; a booster of LightGBM or
        XGBoost; results of statsmodels; a function of the rows; or predictions of them.
    name : str
        For errors and notes.
    align : {'auto', 'index', 'position'}
        How predictions with an index belong to the rows, see :mod:`amlb_ext.models.columns`.

    Raises
    ------
    ModelError
        An object that answers nothing.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = pd.DataFrame({"age": [39, 50]})
    >>> tree = DecisionTreeClassifier().fit(X, ["no", "yes"])
    >>> ModelAdapter(tree, "F").answer(GivenTable.of(X), Labels(("no", "yes"))).decided
    array([0, 1])
    """

    def __init__(self, model: Any, name: str, *, align: Align = "auto") -> None:
        if isinstance(model, type):
            raise ModelError(
                f"{name} is the class {model.__name__}", "give a fitted model of it"
            )
        if not (callable(model) or hasattr(model, "predict") or are_predictions(model)):
            raise ModelError(
                f"{name} is a {type(model).__name__}, which has no predict",
                "give a fitted model, a function of the rows, or an array of predictions",
            )
        self.model = model
        self.name = name
        self.align = align
        self._asked = as_native(model) or model
        refuse_scores(self._asked, name)

    @property
    def is_predictions(self) -> bool:
        """Whether it stands for its answers alone, and answers about no other row."""
        return are_predictions(self.model)

    @property
    def description(self) -> str:
        """What it is called on a page: its class, and that of a pipeline's last step."""
        if self.is_predictions:
            return "predictions"
        name = getattr(self.model, "__name__", type(self.model).__name__)
        steps = getattr(self.model, "steps", None)
        return f"{name} of {type(steps[-1][1]).__name__}" if steps else str(name)

    @property
    def kind(self) -> str | None:
        """``classification`` or ``regression``; None where the model does not tell."""
        if self.is_predictions:
            # a column for each class says so; the targets tell of one column
            is_matrix = np.ndim(self.model) == 2 and np.shape(self.model)[1] > 1
            is_frame = hasattr(self.model, "columns")
            return "classification" if is_matrix and not is_frame else None
        return kind_of_model(self.model)

    @property
    def classes(self) -> list[Any] | None:
        """The classes in the model's own order; None where it names none."""
        return None if self.is_predictions else classes_of_model(self._asked)

    @property
    def has_codes(self) -> bool:
        """Whether its classes are codes that its library gave them."""
        return bool(getattr(self._asked, "has_codes", False))

    @property
    def can_fit_again(self) -> bool:
        """Whether a clone of it can be fitted."""
        has_all = hasattr(self.model, "get_params") and hasattr(self.model, "fit")
        return has_all and not self.is_predictions

    def answer(
        self,
        table: GivenTable,
        labels: Labels,
        target: str = "",
        rows: np.ndarray | None = None,
    ) -> Answers:
        """Return what the model answers to rows of a table, which it is given whole.

        Parameters
        ----------
        table : GivenTable of n rows
        labels : Labels
            Empty for a regression.
        target : str, optional
            Its name: predictions may have a copy of it beside them.
        rows : ndarray of shape (m,), int, optional
            Positions of the rows that are asked for, all when omitted: of the others predictions
            may lack.

        Returns
        -------
        Answers

        Raises
        ------
        ModelError
            The model fails, lacks a column, or answers something else than was asked for.
        """
        if self.is_predictions:
            return interpret_predictions(
                self.model,
                labels,
                self.name,
                n=len(table),
                beside=table.rows,
                features=table.frame,
                target=target,
                align=self.align,
                rows=rows,
            )
        if not hasattr(self._asked, "predict"):
            said = self._ask(None, table)
            answers = interpret_predictions(said, labels, self.name, n=len(table))
        elif not len(labels):
            said = self._ask("predict", table)
            answers = answers_of_numbers(said, len(table), self.name)
        else:
            answers = self._answer_classes(table, labels)
        return answers if rows is None else answers.take(rows)

    def _answer_classes(self, table: GivenTable, labels: Labels) -> Answers:
        n = len(table)
        if not getattr(self._asked, "gives_labels", True):
            p = self._ask("predict_proba", table)
            f = read_probabilities(p, labels, n, self.name, classes=self.classes)
            return Answers(f=f, decided=f.argmax(axis=1))
        said = self._ask("predict", table)
        if not callable(attribute_of(self._asked, "predict_proba")):
            flat = np.asarray(said)
            if flat.ndim == 1 and flat.dtype.kind != "f":
                return answers_of_labels(said, labels, n, self.name)
            return interpret_predictions(said, labels, self.name, n=n)
        # one label a row: what a model of several targets answers is told from that first
        decided = read_labels(said, labels, n, self.name)
        p = self._ask("predict_proba", table)
        classes = classes_of_columns(p, self.classes)
        f = read_probabilities(p, labels, n, self.name, classes=classes)
        check_order(f, decided, self.name, has_names=classes is not None)
        raw_p = np.asarray(p, dtype=float)
        raw = RawAnswers(
            decided=flat_rows(said, n, self.name),
            p=raw_p if raw_p.ndim == 2 and raw_p.shape[1] > 1 else None,
            classes=classes,
        )
        notes = decision_notes(f, decided, self.name)
        return Answers(f=f, decided=decided, raw=raw, notes=notes)

    def _ask(self, method: str | None, table: GivenTable) -> Any:
        """Return what a method answers, in the order of the table's rows."""
        rows = select_features(self._asked, table, self.name)
        ask = self._asked if method is None else getattr(self._asked, method)
        try:
            said = self._call(ask, rows)
        except ModelError as refusal:
            # text where the model was fitted on categories
            recast = with_native_categories(
                self._asked, select_features(self._asked, table, self.name)
            )
            if recast is None:
                raise refusal
            said = self._call(ask, recast)
        if isinstance(said, tuple):
            flat_rows(said, len(table), self.name)
        said = as_rows(said)
        has_index = isinstance(said, pd.Series | pd.DataFrame)
        is_frame = isinstance(rows, pd.DataFrame)
        # labels of other rows, such as a fresh index, say nothing of these
        if has_index and is_frame and set(said.index) == set(table.frame.index):
            what = f"the answer of {self.name}"
            return align_rows(said, table.frame, what=what, align=self.align)
        return said

    def _call(self, ask: Any, rows: Any) -> Any:
        try:
            return ask(rows)
        except NotFittedError:
            raise ModelError(
                f"{self.name} holds an estimator that was never fitted",
                "fit it, and give it then",
            ) from None
        except HardsynthError:
            # of a service: it says already what was wrong
            raise
        except Exception as error:
            hint = describe_expected(self._asked)
            if isinstance(rows, pd.DataFrame):
                hint += f"; the table has {list_names(rows.columns)}"
                texts = [
                    name
                    for name in rows
                    if pd.api.types.infer_dtype(rows[name]) == "string"
                ]
                dates = [name for name in texts if look_like_dates(rows[name].dropna())]
                if dates:
                    hint += (
                        f"; {list_names(dates)} came as text: Parquet keeps the type of dates, "
                        "a text file does not"
                    )
                numbers = [name for name in rows if has_decimal_comma(rows[name])]
                if numbers:
                    hint += f"; {list_names(numbers)} came as text: {COMMA_REMEDY}"
            raise ModelError(
                f"{self.name} failed in predict: {describe_error(error)}", hint
            ) from error

    def fit_again(
        self, table: GivenTable, y: np.ndarray, seed: int, *, n_jobs: int | None = None
    ) -> ModelAdapter:
        """Return a clone that is fitted on other rows; the model is never changed.

        Parameters
        ----------
        table : GivenTable of n rows
        y : ndarray of shape (n,)
            Targets as the model knows them.
        seed : int
            Becomes every ``random_state`` in the model, those of its parts included.
        n_jobs : int, optional
            Becomes every ``n_jobs`` that the model sets; as the model has it when omitted.

        Raises
        ------
        ModelError
            It cannot be cloned, or its clone cannot be fitted.

        Examples
        --------
        >>> from sklearn.linear_model import Ridge
        >>> X = np.arange(6.0).reshape(6, 1)
        >>> model = ModelAdapter(Ridge(alpha=0).fit(X, X[:, 0]), "F")
        >>> twin = model.fit_again(GivenTable.of(X), -X[:, 0], seed=1).model
        >>> round(float(twin.coef_[0]), 6)
        -1.0
        """
        rows = select_features(self.model, table, self.name, what="train")
        try:
            try:
                twin = clone(self.model)
            except RuntimeError:
                # CatBoost keeps cat_features in another form than it was given
                twin = type(self.model)(**self.model.get_params())
            settings = {}
            for key, value in twin.get_params().items():
                parameter = key.split("__")[-1]
                # a generator would be used up by the first clone, and is left as it is
                if parameter == "random_state" and not isinstance(
                    value, np.random.Generator
                ):
                    settings[key] = seed % 2**31
                # one thread is what None means, and setting it makes some models warn
                elif parameter == "n_jobs" and n_jobs is not None and value is not None:
                    settings[key] = n_jobs
            if settings:
                twin.set_params(**settings)
            with warnings.catch_warnings():
                # a model that is not fitted to the end is one all the same, as F was
                warnings.simplefilter("ignore", ConvergenceWarning)
                twin = twin.fit(rows, y)
        except HardsynthError:
            raise
        except Exception as error:
            raise ModelError(
                f"F could not be fitted again: {describe_error(error)}"
            ) from error
        return ModelAdapter(twin, f"{self.name}, fitted again,", align=self.align)


def describe_error(error: Exception) -> str:
    """Return the type of an exception and the first line of its text."""
    first_line = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first_line}"
