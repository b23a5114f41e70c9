"""Where a fitted model fails on a table, without any other model beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from amlb_ext.comparison.compare import hardness_config
from amlb_ext.comparison.labelled import read_labelled_rows, read_row_order
from amlb_ext.comparison.models import choose_loss, predict_rows
from amlb_ext.comparison.region import find_region
from amlb_ext.core.checked_call import Seed, checked_call
from amlb_ext.core.display import format_percent
from amlb_ext.core.rng import random_stream
from amlb_ext.hardening.rules import failing_text
from amlb_ext.models.adapter import ModelAdapter
from amlb_ext.models.columns import Align, check_align
from amlb_ext.models.given_table import GivenTable
from amlb_ext.models.native import check_kind
from amlb_ext.report.slices import search_and_judge
from amlb_ext.stats.claims import NO_REGION


@dataclass(frozen=True, kw_only=True)
class FailureReport:
    """Where F fails.

    Attributes
    ----------
    rows : DataFrame of shape (n, 3)
        By position in X: ``loss`` of F, ``is_bad``, and ``weight``, the chance to be bad by
        features alone (missing where features do not foresee failures).
    slices : DataFrame
        See :func:`amlb_ext.report.slices.search_and_judge`.
    rule : str
        The rule that calls a row bad, with its threshold and why.
    verb : {'fails', 'is unsure'}
        What F does on bad rows, by the rule.
    problem : str
        Why nothing foretells where F fails; empty where features do.
    notes : tuple of str
    """

    rows: pd.DataFrame
    slices: pd.DataFrame
    rule: str
    verb: str = "fails"
    problem: str = ""
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        n_bad = int(self.rows["is_bad"].sum())
        lines = [f"F {self.verb} on {n_bad} of {len(self.rows)} rows ({self.rule})"]
        if self.problem:
            lines.append(f"  {self.problem}")
        for row in self.slices.to_dict("records"):
            lines.append(
                f"  where {row['slice']}: on {format_percent(row['share'])} of {row['rows']} rows, "
                f"{row['lift']:.1f} times as often"
            )
        if not len(self.slices):
            lines.append(
                f"  no slice was found in which F {self.verb} more often than elsewhere"
            )
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)


@checked_call
def failures(
    F: Any,
    X: Any,
    y: Any,
    *,
    kind: Literal["classification", "regression", "binary", "multiclass"] | None = None,
    rule: str = "auto",
    alpha: float | None = None,
    seed: Seed = 0,
    groups: Any = None,
    time: Any = None,
    align: Align = "auto",
) -> FailureReport:
    """Find the rows on which a model fails, and slices of the features in which it fails often.

    Parameters
    ----------
    F : estimator or predictions
        See :func:`amlb_ext.comparison.compare.compare`.
    X : DataFrame or array of shape (n, d)
        Rows that F was not fitted on.
    y : array-like of shape (n,)
    kind, rule, alpha, groups, time, align : optional
        As of :func:`amlb_ext.comparison.compare.compare`.
    seed : int

    Returns
    -------
    FailureReport

    Raises
    ------
    DataError, ModelError, ConfigError
        As :func:`amlb_ext.comparison.compare.compare`.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"age": rng.integers(18, 90, 600)})
    >>> y = np.where(X["age"] > 70, "ill", "well")
    >>> F = DummyClassifier().fit(X, y)
    >>> failures(F, X, y).slices["slice"].tolist()
    ['age > 70']
    """
    check_align(align)
    order, columns = read_row_order(GivenTable.of(X), groups, time, align=align)
    model = ModelAdapter(F, "F", align=align)
    rows = read_labelled_rows(
        X, y, models=[model], kind=kind, order=order, align=align, left_out=columns
    )
    check_kind(
        F,
        "F",
        target=repr(rows.task.target_name),
        is_classification=rows.is_classification,
    )
    answers = predict_rows(model, rows)
    _, row_loss = choose_loss(rows, [answers])
    config = hardness_config(rule, alpha)
    region = find_region(rows, answers, config, seed, with_jackknife=False)
    by_row = pd.DataFrame(
        {
            "loss": row_loss(answers),
            "is_bad": region.is_bad,
            "weight": np.nan if region.weights is None else region.weights,
        },
        index=rows.task.row_ids,
    )
    found = search_and_judge(
        rows.task.features,
        rows.task.columns,
        region.is_bad,
        np.arange(len(rows))
        if order is None or order.clusters is None
        else order.clusters,
        random_stream(seed, "compare", "slices"),
    )
    problem = region.problem
    if region.weights is None and not problem:
        problem = NO_REGION
    return FailureReport(
        rows=by_row,
        slices=found.table,
        rule=region.text,
        verb=failing_text(region.rule.rule),
        problem=problem,
        notes=(*rows.notes, *answers.notes),
    )
