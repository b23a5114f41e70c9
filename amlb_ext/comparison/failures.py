"""Where a fitted model fails on a table: rows, slices, and which other model mends them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from amlb_ext.comparison.models import as_predicted, choose_loss, predict_rows
from amlb_ext.core.checked_call import Seed, checked_call
from amlb_ext.core.display import format_percent
from amlb_ext.core.rng import random_stream
from amlb_ext.core.task import Column
from amlb_ext.models.adapter import ModelAdapter
from amlb_ext.models.columns import Align
from amlb_ext.models.given_table import GivenTable
from amlb_ext.stats.heavy_tails import contrast_plainly
from amlb_ext.stats.weighted_mean import (
    holm_adjusted,
    p_value,
    weighted_mean_interval,
)
from amlb_ext.units.judged import Judged
from amlb_ext.units.labelled import read_labelled_rows, read_row_order
from amlb_ext.units.rows import hardness_config, judge_rows
from amlb_ext.units.slices import JudgedSlices, search_and_judge

#: What is known of a slice, whichever model is compared in it.
_OF_SLICE = ("slice", "rows", "bad", "share", "base")


@dataclass(frozen=True, kw_only=True)
class FailureReport:
    """Where F fails.

    Attributes
    ----------
    rows : DataFrame of shape (n, 3)
        By position in X: ``loss`` of F, ``is_bad``, and ``weight``, the chance to be bad by
        features alone (missing where features do not foresee failures).
    slices : DataFrame
        See :func:`amlb_ext.units.slices.search_and_judge`.
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
            # what tells no rows apart calls none bad, which is no praise of F
            lines = [self.problem, *(lines if n_bad else [])]
        lines += [
            f"  where {row['slice']}: on {format_percent(row['share'])} of {row['rows']} rows, "
            f"{row['lift']:.1f} times as often"
            for row in self.slices.to_dict("records")
        ]
        if not (len(self.slices) or self.problem):
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
    loss: Any = None,
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
    kind, rule, alpha, loss, groups, time, align : optional
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
    order, columns = read_row_order(GivenTable.of(X), groups, time, align=align)
    model = ModelAdapter(F, "F", align=align)
    rows = read_labelled_rows(
        X, y, models=[model], kind=kind, order=order, align=align, left_out=columns
    )
    answers = predict_rows(model, rows)
    chosen = choose_loss(rows, {"F": answers}, loss)
    judged = judge_rows(
        rows,
        answers,
        chosen(as_predicted(rows, answers)),
        hardness_config(rule, alpha),
        loss=chosen,
        seed=seed,
    )
    known = judged.by_row()
    known.pop("where_f_fails")
    by_row = pd.DataFrame(
        {"loss": judged.compared.loss_f, **known}, index=rows.task.row_ids
    )
    found = _find_slices(rows.task.features, rows.task.columns, judged, seed)
    return FailureReport(
        rows=by_row,
        slices=found.table,
        rule=judged.rule,
        verb=judged.verb,
        problem=judged.no_claim,
        notes=(*rows.notes, *answers.notes),
    )


def _find_slices(
    features: pd.DataFrame, columns: Sequence[Column], judged: Judged, seed: int
) -> JudgedSlices:
    """Return the slices in which F fails."""
    rng = random_stream(seed, "compare", "slices")
    # units of a group stay in one half, and count as the group that they are
    return search_and_judge(
        features, columns, judged.is_bad, judged.compared.groups, rng
    )


def compare_on_slices(
    features: pd.DataFrame,
    columns: Sequence[Column],
    judged: Judged,
    losses: pd.DataFrame,
    *,
    seed: int,
) -> pd.DataFrame:
    """Return the slices in which F fails, with each model's difference from F inside.

    Slices are found on one half of the units. Everything that is returned is counted on the other
    half, so being chosen flatters no slice and no model.

    Parameters
    ----------
    features : DataFrame of shape (n, d)
        What is known of each unit beforehand.
    columns : sequence of Column
    judged : Judged
        The same units.
    losses : DataFrame of shape (n, candidates)
        As they are.
    seed : int

    Returns
    -------
    DataFrame
        One row for each slice and model: ``slice`` (conditions), ``rows`` and ``bad`` inside,
        ``share`` of bad rows there and ``base`` among all rows, ``model``, ``difference`` of mean
        loss from F's with its interval, ``p_holm`` over all slices and models, ``verdict``,
        ``by`` and ``reason`` as in :func:`amlb_ext.stats.claims.answer_questions`.
    """
    units = judged.compared
    found = _find_slices(features, columns, judged, seed)
    records = []
    for slice_row, inside in zip(
        found.table.to_dict("records"), found.inside, strict=True
    ):
        for name in losses.columns:
            loss_g, own_f = losses[name].to_numpy()[inside], units.loss_f[inside]
            capped = weighted_mean_interval(
                units.cap.apply(loss_g) - units.cap.apply(own_f),
                clusters=units.groups[inside],
                level=units.level,
            )
            plain = contrast_plainly(loss_g, own_f, cap=units.cap)
            estimate, veto = plain.judge(capped)
            records.append(
                {
                    **{key: slice_row[key] for key in _OF_SLICE},
                    "model": name,
                    "difference": estimate.point,
                    "low": estimate.low,
                    "high": estimate.high,
                    "p": p_value(estimate),
                    "by": plain.by(veto),
                    "reason": veto,
                }
            )
    names = [*_OF_SLICE, "model", "difference", "low", "high", "p", "by", "reason"]
    table = pd.DataFrame(records, columns=names)
    is_withheld = (table["reason"] != "").to_numpy(dtype=bool)
    # what may not be claimed stays in the family, and is never rejected
    tested = table["p"].mask(is_withheld, 1.0).to_numpy(dtype=float)
    table["p_holm"] = np.where(is_withheld, np.nan, holm_adjusted(tested))
    is_significant = table["p_holm"] < 1 - units.level
    is_gain = table["difference"] < 0
    table["verdict"] = np.select(
        [is_withheld, is_significant & is_gain, is_significant & ~is_gain],
        ["no claim", "better", "worse"],
        default="undecided",
    )
    return table
