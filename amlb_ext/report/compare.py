"""Frameworks against F and against each other on one task, on real rows only.

What is compared are losses on the untouched test folds: weighted by P(F fails | x), the *region*,
and unweighted. Made rows and rows chosen by F's errors get no interval and no verdict, because
being chosen by F's errors flatters every other model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from amlb_ext.report.predictions import TaskPredictions
from amlb_ext.stats.contrasts import (
    SMALLEST_EFFECTIVE_SIZE,
    Weighting,
    choose_weighting,
    compare_with_f,
)
from amlb_ext.stats.pairwise import compare_pairs
from amlb_ext.validity import Certificate

#: Integrations that are F itself: they stand beside the candidates, not among them.
CONTROLS = ("HardsynthBaseline", "HardsynthNull")
WHERE = ("region", "all rows")
_STRESS = "stress-test only"


@dataclass(frozen=True)
class TaskComparison:
    """One task's comparisons; the frames are those of :class:`~amlb_ext.report.model.TaskReport`.

    Attributes
    ----------
    contrasts, pairs : DataFrame
    weights : ndarray of shape (n,) or None
        P(F fails | x) of each row; None where it is not known. Each comparison decides for its
        own rows whether they are used, see the column ``weighted``.
    is_weighted : bool
        Whether comparisons on all rows of the task use them.
    weighting, no_claim : str
    warnings : tuple of str
    """

    contrasts: pd.DataFrame
    pairs: pd.DataFrame
    weights: np.ndarray | None
    is_weighted: bool
    weighting: str
    no_claim: str
    warnings: tuple[str, ...]


def is_baseline_framework(framework: str) -> bool:
    """Whether a framework is F itself, fitted on all training rows.

    Examples
    --------
    >>> is_baseline("HardsynthBaseline_mine"), is_baseline_framework("HardsynthNull")
    (True, False)
    """
    return is_control_framework(framework) and framework.startswith(CONTROLS[0])


def is_control_framework(framework: str) -> bool:
    """Whether a framework is F or a re-fit of it.

    ``hardsynth install --name NAME`` appends ``_NAME`` to theirs.

    Examples
    --------
    >>> is_control_framework("HardsynthNull (hardsynth_quick)"), is_control_framework("flaml")
    (True, False)
    >>> is_control_framework("HardsynthBaseline_mine"), is_control_framework("HardsynthBaseline2")
    (True, False)
    """
    name = framework.split(" ")[0]
    return name.startswith(tuple(f"{control}_" for control in CONTROLS)) or name in CONTROLS


def compare_frameworks(
    task: str,
    full: TaskPredictions,
    certificate: Certificate | None,
    null: pd.DataFrame | None,
    incomplete: Mapping[str, str],
    folds: int,
    level: float = 0.95,
    alarm: str = "",
) -> TaskComparison:
    """Compare every framework with F and with every other one.

    Parameters
    ----------
    task : str
    full : Predicted
        The untouched test folds.
    certificate : Certificate or None
    null : DataFrame or None
        See :func:`amlb_ext.validity.certificate_store.read_null`.
    incomplete : mapping of str to str
        Why a framework's results on this task are not whole, by framework: folds that failed,
        vanished or were refused. Such a framework gets no verdict, for the folds that are left
        may be the easy ones.
    folds : int
        Of the task.
    level : float
    alarm : str
        Why the failures are not those of the F that was run; then nothing is claimed.

    Returns
    -------
    Compared
    """
    loss_f = full.rows["loss"].to_numpy(dtype=float)
    clusters = full.rows["source_row"].to_numpy()
    twins, warnings = _aligned(null, full)
    weights = region_weights(full)
    whole = choose_weighting(weights, clusters)
    smallest = SMALLEST_EFFECTIVE_SIZE
    no_claim, no_gain = (alarm, "") if alarm else reasons_for_no_claim(task, certificate)
    names = sorted(full.f)
    losses = pd.DataFrame({name: full.loss(name) for name in names}, index=full.rows.index)
    # F's own predictions, written to a file and read again, differ from F by rounding
    same = np.isclose(losses, loss_f[:, None], rtol=1e-9, atol=1e-12)
    losses = losses.mask(same, np.broadcast_to(loss_f[:, None], losses.shape))
    scored = losses.notna()
    found = []
    for where, w in zip(WHERE, (weights, None), strict=True):
        # F's own controls are no candidates: they do not count in the candidates' adjustment
        for group in (
            [n for n in names if not is_control_framework(n)],
            [n for n in names if is_control_framework(n)],
        ):
            if group:
                table = compare_with_f(
                    losses[group], loss_f, w, clusters, twins, level, scored[group], smallest
                )
                table.insert(0, "task", task)
                found.append(table.rename(columns={"candidate": "framework"}).assign(where=where))
    if not found:  # nobody has run: no rows, but the columns of any other task
        nobody = compare_with_f(losses, loss_f).rename(columns={"candidate": "framework"})
        found = [nobody.assign(task=task, where="")]
    table = pd.concat(found, ignore_index=True)
    table["relative"] = table["difference"] / table["loss_f"]
    counts = {name: full.rows.loc[scored[name], "fold"].nunique() for name in names}
    table["folds"] = [f"{counts[name]}/{folds}" for name in table["framework"]]
    _withhold(table, no_claim or no_gain, incomplete)
    table = _with_absent(table, task, folds, incomplete, no_claim or no_gain)
    controls = [name for name in names if is_control_framework(name)]
    pairs = compare_pairs(
        losses, loss_f, weights, clusters, twins, level, scored, controls, smallest
    )
    pairs.insert(0, "task", task)
    both = zip(pairs["framework"], pairs["other"], strict=True)
    pairs["folds"] = [f"{_shared(full, scored, *pair)}/{folds}" for pair in both]
    for column in ("framework", "other"):
        _withhold(pairs, no_claim, incomplete, column)
    return TaskComparison(
        contrasts=table,
        pairs=pairs,
        weights=weights,
        is_weighted=whole.is_weighted,
        weighting=_weighting_words(whole, table),
        no_claim=no_claim or no_gain,
        warnings=tuple(warnings),
    )


def region_weights(full: TaskPredictions) -> np.ndarray | None:
    """Return P(F fails | x) of each row; None where it is not known."""
    w = full.rows["weight"].to_numpy(dtype=float)
    return w if np.isfinite(w).all() and w.sum() > 0 else None


def _weighting_words(whole: Weighting, table: pd.DataFrame) -> str:
    """Say how rows count on the whole task, and for which frameworks it is otherwise."""
    text = f"{whole.reason[0].upper()}{whole.reason[1:]}."
    if not len(table):
        return text
    compared = table[(table["where"] == "region") & (table["rows"] > 0)]
    other = compared[compared["weighted"].astype(bool) != whole.is_weighted]
    if not len(other):
        return text
    names = ", ".join(other["framework"])
    if whole.is_weighted:
        return (
            f"{text} Not so for {names}: on the folds that were run the weights are worth fewer "
            f"than {SMALLEST_EFFECTIVE_SIZE:.0f} rows, so there all rows count alike."
        )
    return f"{text} Not so for {names}: on the folds that were run the weights are worth enough."


def reasons_for_no_claim(task: str, certificate: Certificate | None) -> tuple[str, str]:
    """Return why no claim may be made at all, and why none about a gain over F; empty if it may.

    Examples
    --------
    >>> reasons_for_no_claim("iris", None)[0]
    'iris has no certificate; hardsynth certify writes it, and F is fitted again for the null'
    """
    if certificate is None:
        word = "hardsynth certify writes it, and F is fitted again for the null"
        return f"{task} has no certificate; {word}", ""
    if certificate.verdict == _STRESS:
        return f"certified as {_STRESS}: {certificate.reason}", ""
    failed = {m.name for m in certificate.measures if m.passed is False and m.value is not None}
    if "null on region" in failed:
        return "", (
            "F's own re-fits seem to beat it on the region, so a gain over F proves nothing here; "
            "compare candidates with each other only"
        )
    return "", ""


def _aligned(
    null: pd.DataFrame | None, full: TaskPredictions
) -> tuple[pd.DataFrame | None, list[str]]:
    """Return the re-fits' losses row for row with ``full``, or None and why."""
    if null is None:
        return None, ["No re-fit of F is kept beside the certificate: the null control is missing."]
    twins = [name for name in null.columns if name.startswith("refit_")]
    if not twins:
        return None, ["F could not be fitted again: the null control is missing."]
    key = ["fold", "row"]
    both = full.rows[[*key, "loss"]].merge(null, on=key, how="left", suffixes=("", "_then"))
    same = np.isclose(both["loss"], both["loss_then"], rtol=1e-6, atol=1e-9).all()
    if len(null) != len(full) or not same:
        return None, [
            "The kept re-fits of F belong to other rows: certify the suite again; until then the "
            "null control is missing."
        ]
    return both[twins], []


def _with_absent(
    table: pd.DataFrame, task: str, folds: int, incomplete: Mapping[str, str], no_claim: str
) -> pd.DataFrame:
    """Add frameworks of which nothing is left on this task, lest their losses be hidden."""
    rows = [
        {
            "task": task,
            "framework": name,
            "where": where,
            "folds": f"0/{folds}",
            "rows": 0,
            "weighted": False,
            "verdict": "no claim" if no_claim else "incomplete",
            "reason": no_claim or f"{name}: {why}",
        }
        for where in WHERE
        for name, why in incomplete.items()
        if not len(table) or name not in set(table["framework"])
    ]
    if not rows:
        return table
    extra = pd.DataFrame(rows).reindex(columns=[*table.columns, *({*rows[0]} - {*table.columns})])
    return pd.concat([table, extra], ignore_index=True) if len(table) else extra


def _withhold(
    table: pd.DataFrame,
    no_claim: str,
    incomplete: Mapping[str, str],
    column: str = "framework",
) -> None:
    """Take back verdicts that the certificate or failed jobs forbid."""
    for name, why in incomplete.items():
        at = table[column] == name
        table.loc[at, "verdict"] = "incomplete"
        table.loc[at, "reason"] = f"{name}: {why}"
    if no_claim:
        table["verdict"], table["reason"] = "no claim", no_claim


def _shared(full: TaskPredictions, scored: pd.DataFrame, one: str, two: str) -> int:
    return int(full.rows.loc[scored[one] & scored[two], "fold"].nunique())
