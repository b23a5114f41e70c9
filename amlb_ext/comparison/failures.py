"""Where a fitted model fails on a table, without any other model beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.comparison.labelled import read_labelled_rows
from amlb_ext.comparison.models import predict_rows
from amlb_ext.comparison.region import find_region
from amlb_ext.core import row_losses
from amlb_ext.core.config import HardnessConfig
from amlb_ext.core.display import format_percent
from amlb_ext.core.rng import random_stream
from amlb_ext.report.slices import search_and_judge


@dataclass(frozen=True, kw_only=True)
class FailureReport:
    """Where F fails.

    Attributes
    ----------
    rows : DataFrame of shape (n, 3)
        By position in X: ``loss`` of F, ``is_bad``, and ``weight``, the chance to be bad by
        features alone (missing where features do not foresee failures).
    slices : DataFrame
        See :func:`amlb_ext.report.slices.find_slices`.
    rule : str
        The rule that calls a row bad, with its threshold and why.
    """

    rows: pd.DataFrame
    slices: pd.DataFrame
    rule: str

    def __repr__(self) -> str:
        n_bad = int(self.rows["is_bad"].sum())
        lines = [f"F fails on {n_bad} of {len(self.rows)} rows ({self.rule})"]
        for row in self.slices.to_dict("records"):
            lines.append(
                f"  where {row['slice']}: on {format_percent(row['share'])} of {row['rows']} rows, "
                f"{row['lift']:.1f} times as often"
            )
        if not len(self.slices):
            lines.append(
                "  no slice was found in which F fails more often than elsewhere"
            )
        return "\n".join(lines)


def failures(
    F: Any,
    X: Any,
    y: Any,
    *,
    kind: str | None = None,
    rule: str = "auto",
    alpha: float | None = None,
    seed: int = 0,
) -> FailureReport:
    """Find the rows on which a model fails, and slices of the features in which it fails often.

    Parameters
    ----------
    F : estimator or predictions
        See :func:`amlb_ext.comparison.compare.compare`.
    X : DataFrame or array of shape (n, d)
        Rows that F was not fitted on.
    y : array-like of shape (n,)
    kind, rule, alpha : optional
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
    >>> failures(F, X, y, rule="wrong", alpha=0.5).slices["slice"].tolist()
    ['age > 70']
    """
    rows = read_labelled_rows(X, y, model=F, kind=kind)
    f = predict_rows(F, rows, "F")
    config = HardnessConfig(rule=rule, alpha=alpha)
    region = find_region(rows, f, config, seed, with_jackknife=False)
    by_row = pd.DataFrame(
        {
            "loss": row_losses.row_loss(rows.y, f),
            "is_bad": region.is_bad,
            "weight": np.nan if region.weights is None else region.weights,
        },
        index=rows.task.row_ids,
    )
    found = search_and_judge(
        rows.task.features,
        rows.task.columns,
        region.is_bad,
        np.arange(len(rows)),
        random_stream(seed, "compare", "slices"),
    )
    return FailureReport(
        rows=by_row,
        slices=found.table,
        rule=region.text,
    )
