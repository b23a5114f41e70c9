"""Frameworks against F and against each other on one task, on real rows only.

What is compared are losses on the untouched test folds: on all rows, and on the *region*, the
fifth of them with the largest P(F fails | x). The first is a paired t test of two models and needs
no certificate. Made rows and rows chosen by F's errors get no interval and no verdict, because
being chosen by F's errors flatters every other model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.rng import random_stream
from amlb_ext.core.unit import F
from amlb_ext.report.losses import TaskLosses, measure_losses
from amlb_ext.report.predictions import (
    TaskPredictions,
    region_weights,
    row_clusters,
)
from amlb_ext.stats.best_saving import best_saving
from amlb_ext.stats.claims import CONCENTRATED, OVERALL, REGION
from amlb_ext.stats.contrasts import SMALLEST_EFFECTIVE_SIZE, ComparedUnits
from amlb_ext.stats.heavy_tails import BY_CAPPED
from amlb_ext.stats.pairwise import compare_pairs
from amlb_ext.suite.layout import BASELINE_FRAMEWORK, NULL_FRAMEWORK
from amlb_ext.units.judged import Judged, answer
from amlb_ext.units.rows import OF_PAIRS
from amlb_ext.validity import Certificate

#: The column ``where`` of contrasts: the three questions of :mod:`amlb_ext.stats.claims`.
WHERE = {
    OVERALL: "all rows",
    REGION: "region",
    CONCENTRATED: "region minus elsewhere",
}
_STRESS_ONLY = "stress-test only"
#: Why there is no null control under a loss that a user names.
NO_REFITS = (
    "The suite keeps the losses of F's re-fits by its own loss alone: under this one the null "
    "control is missing, so no framework is called better where F fails."
)


@dataclass(frozen=True, kw_only=True)
class TaskComparison:
    """One task's comparisons; the frames are those of :class:`~amlb_ext.report.model.TaskReport`.

    Attributes
    ----------
    contrasts, pairs : DataFrame
    judged : Judged
        The units, as F was judged on them; why nothing is claimed where F fails.
    losses : DataFrame of shape (n, frameworks)
        What was compared, before errors are capped.
    duels : DataFrame
        Every two candidates on all units, see :func:`duels_on_all_units`.
    gains : list of dict
        What is left to gain, see :func:`left_to_gain`.
    warnings : tuple of str
    """

    contrasts: pd.DataFrame
    pairs: pd.DataFrame
    judged: Judged
    losses: pd.DataFrame
    duels: pd.DataFrame
    gains: list[dict[str, Any]]
    warnings: tuple[str, ...] = ()


def is_baseline_framework(framework: str) -> bool:
    """Whether a framework is F itself, fitted on all training rows.

    Examples
    --------
    >>> is_baseline_framework("HardsynthBaseline_mine")
    True
    >>> is_baseline_framework("HardsynthNull")
    False
    """
    return is_control_framework(framework) and framework.startswith(BASELINE_FRAMEWORK)


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
    # A framework run under several constraints carries each in parentheses.
    name = framework.split(" ")[0]
    control, _, _ = name.partition("_")
    return control in (BASELINE_FRAMEWORK, NULL_FRAMEWORK)


def best_first(contrasts: pd.DataFrame) -> list[str]:
    """Return candidates by their contrast on all rows, the best first."""
    if not len(contrasts):
        return []
    overall = contrasts[contrasts["where"] == "all rows"]
    compared = overall.dropna(subset=["difference"])
    best_first = compared.sort_values("difference", kind="stable")
    names = [str(name) for name in best_first["framework"]]
    return [name for name in names if not is_control_framework(name)]


def compare_frameworks(
    task: str,
    full: TaskPredictions,
    certificate: Certificate | None,
    null: pd.DataFrame | None,
    incomplete: Mapping[str, str],
    folds: int,
    level: float = 0.95,
    alarm: str = "",
    losses: TaskLosses | None = None,
) -> TaskComparison:
    """Compare every framework with F and with every other one.

    Parameters
    ----------
    task : str
    full : TaskPredictions
        The untouched test folds.
    certificate : Certificate or None
    null : DataFrame or None
        See :func:`amlb_ext.validity.certify.read_null`.
    incomplete : mapping of str to str
        Why a framework's results on this task are not whole, by framework: folds that failed,
        vanished, were refused or not run. Such a framework gets no verdict, for the folds that are
        left may be the easy ones; nor does any other that lacks a row.
    folds : int
        Number of folds of the task.
    level : float
    alarm : str
        Why the failures are not those of the F that was run; then nothing is claimed.
    losses : TaskLosses, optional
        What is compared; the suite's own loss when omitted.

    Returns
    -------
    TaskComparison
    """
    losses = losses or measure_losses(full)
    refits, refits_warning = _aligned_refits(null, full)
    if refits is not None and not losses.is_own:
        refits, refits_warning = None, NO_REFITS
    # Why nothing is claimed where F fails; the alarm first, for the certificate is of another F.
    no_claim, no_gain = alarm, ""
    if not alarm:
        no_claim, no_gain = reasons_for_no_claim(task, certificate)
    place, no_region = region_weights(full), no_claim or no_gain
    if losses.loss.is_of_pairs:
        place, no_region = None, OF_PAIRS
    judged = Judged(
        compared=ComparedUnits(
            loss_f=losses.f,
            weights=place,
            clusters=row_clusters(full.rows),
            refits=refits,
            level=level,
            cap=losses.cap,
            span=losses.span,
        ),
        is_bad=(full.rows["origin"] == "bad").to_numpy(),
        no_claim=no_region,
    )
    comparison = compare_units(
        task,
        judged,
        losses.by_framework,
        fold_of=full.rows["fold"].to_numpy(),
        folds=folds,
        incomplete=incomplete,
        alarm=alarm,
        no_claim=no_claim,
    )
    warnings = (refits_warning,) if refits_warning else ()
    return replace(comparison, warnings=warnings)


def compare_units(
    task: str,
    judged: Judged,
    losses: pd.DataFrame,
    *,
    fold_of: np.ndarray,
    folds: int,
    incomplete: Mapping[str, str],
    alarm: str = "",
    no_claim: str = "",
) -> TaskComparison:
    """Compare every framework with F and with every other one, on rows or windows.

    Parameters
    ----------
    task : str
    judged : Judged
        The units, as F was judged on them; why nothing is claimed where F fails.
    losses : DataFrame of shape (n, frameworks)
        NaN where a framework has no prediction.
    fold_of : ndarray of shape (n,)
        The fold of each unit.
    folds, incomplete, alarm
        See :func:`compare_frameworks`.
    no_claim : str
        Why no two frameworks are compared where F fails.

    Returns
    -------
    TaskComparison
    """
    scored = losses.notna()
    controls = [name for name in losses.columns if is_control_framework(name)]
    many = judged.unit.many
    lacking = {
        str(name): f"{int(n)} of {len(losses)} {many} have no prediction"
        for name, n in (~scored).sum().items()
        if n
    }
    incomplete = {**lacking, **incomplete}
    # F's own controls are no candidates: they do not count in the candidates' adjustment.
    answers = answer(judged, losses, scored=scored, apart=controls)
    table = answers.rename(columns={"candidate": "framework"})
    table.insert(0, "task", task)
    table["where"] = table.pop("question").map(WHERE)
    # behind it, where readers of the file expect it
    table["relative"] = table.pop("relative")
    # one question after the other, candidates before F's controls
    order = pd.Categorical(table["where"], categories=list(WHERE.values())).codes
    table = table.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)
    table = _with_shares(table, losses, judged.compared)

    def shared_folds(*frameworks: str) -> str:
        """Return on how many folds all these frameworks are scored."""
        is_scored = scored[list(frameworks)].all(axis=1).to_numpy()
        return f"{len(np.unique(fold_of[is_scored]))}/{folds}"

    table["folds"] = [shared_folds(name) for name in table["framework"]]
    # an F that is not the suite's spoils every contrast; all else concerns the region alone
    table = _withhold_verdicts(table, alarm, incomplete)
    table = _withhold_verdicts(
        table, judged.no_claim, {}, among=table["where"] != WHERE[OVERALL]
    )
    table = _with_absent(
        table,
        task,
        folds=folds,
        incomplete=incomplete,
        no_claim={"all rows": alarm, "region": judged.no_claim},
    )

    pairs = compare_pairs(
        losses,
        judged.compared,
        scored=scored,
        apart=controls,
        smallest=SMALLEST_EFFECTIVE_SIZE,
    )
    pairs.insert(0, "task", task)
    pairs["folds"] = [
        shared_folds(first, second)
        for first, second in zip(pairs["framework"], pairs["other"], strict=True)
    ]
    # A pair is as incomplete as either of the two; whether F may be beaten is no matter here.
    candidates = [name for name in losses.columns if name not in controls]
    duels = duels_on_all_units(losses, judged.compared, scored=scored, names=candidates)
    for column in ("framework", "other"):
        pairs = _withhold_verdicts(pairs, no_claim, incomplete, column=column)
        duels = _withhold_verdicts(duels, "", incomplete, column=column)
    capped = judged.compared.capped()
    # where the largest errors would decide nobody is called the best
    asked = table[table["where"] == WHERE[OVERALL]]
    unfit = {*incomplete, *asked.loc[asked["verdict"] == "no claim", "framework"]}
    whole = losses[[name for name in candidates if name not in unfit]]

    return TaskComparison(
        contrasts=table,
        pairs=pairs,
        judged=judged,
        losses=losses,
        duels=duels,
        gains=left_to_gain(
            task, capped.cap.apply(whole), capped, judged.compared.level
        ),
    )


def _with_shares(
    table: pd.DataFrame, losses: pd.DataFrame, units: ComparedUnits
) -> pd.DataFrame:
    """Add how much of the change on all rows comes from the region, and how much from elsewhere.

    A row belongs to the region by its weight P(F fails | x) and to elsewhere by the rest of 1, so
    both parts, in units of F's whole loss, add up to ``relative``.
    """
    table = table.assign(from_region=np.nan, from_elsewhere=np.nan)
    weights = units.weights
    if weights is None:
        return table
    region = table[table["where"] == WHERE[REGION]]
    weighted = set(region.loc[region["weighted"].astype(bool), "framework"])
    for index, row in table[table["where"] == WHERE[OVERALL]].iterrows():
        name = row["framework"]
        # Too few rows where F fails: their part of the change would be chance.
        if name not in weighted:
            continue
        is_scored = losses[name].notna().to_numpy()
        loss_g = losses[name].to_numpy(dtype=float)[is_scored]
        loss_f = units.loss_f[is_scored]
        if row["by"] == BY_CAPPED:
            loss_g, loss_f = units.cap.apply(loss_g), units.cap.apply(loss_f)
        change, whole_loss = loss_g - loss_f, loss_f.sum()
        if not (0 < whole_loss < np.inf and np.isfinite(change).all()):
            continue
        region_part = float((weights[is_scored] * change).sum() / whole_loss)
        table.loc[index, "from_region"] = region_part
        table.loc[index, "from_elsewhere"] = change.sum() / whole_loss - region_part
    return table


def reasons_for_no_claim(task: str, certificate: Certificate | None) -> tuple[str, str]:
    """Return why no claim may be made where F fails, and why none about a gain over F there.

    Both are empty where it may.

    Examples
    --------
    >>> reasons_for_no_claim("iris", None)[0]
    'iris has no certificate; hardsynth certify writes it, and F is fitted again for the null'
    """
    if certificate is None:
        remedy = "hardsynth certify writes it, and F is fitted again for the null"
        return f"{task} has no certificate; {remedy}", ""
    if certificate.verdict == _STRESS_ONLY:
        return f"certified as {_STRESS_ONLY}: {certificate.reason}", ""
    for measure in certificate.measures:
        # A measure without a value was not made: it fails the certificate, but shows nothing.
        is_shown = measure.passed is False and measure.value is not None
        if measure.name == "null on region" and is_shown:
            return "", (
                "F's own re-fits seem to beat it on the region, so a gain over F proves nothing "
                "here; compare candidates with each other only"
            )
    return "", ""


def _aligned_refits(
    null: pd.DataFrame | None, full: TaskPredictions
) -> tuple[pd.DataFrame | None, str]:
    """Return the re-fits that the certificate keeps, by the rows of ``full``, or why not."""
    if null is None:
        return (
            None,
            "The certificate has no re-fits of F: the null control is missing.",
        )
    refit_columns = [name for name in null.columns if name.startswith("refit_")]
    # The file then holds F's own losses alone.
    if not refit_columns:
        return None, "F could not be fitted again: the null control is missing."
    key = ["fold", "row"]
    joined = full.rows[[*key, "loss"]].merge(
        null, on=key, how="left", suffixes=("", "_then")
    )
    # The file keeps F's losses too: rows that were generated anew have other ones.
    is_same = np.isclose(
        joined["loss"], joined["loss_then"], rtol=1e-6, atol=1e-9
    ).all()
    if len(null) != len(full) or not is_same:
        return None, (
            "The stored re-fits of F belong to other rows: certify the suite again; until then the "
            "null control is missing."
        )
    return joined[refit_columns], ""


def _with_absent(
    table: pd.DataFrame,
    task: str,
    *,
    folds: int,
    incomplete: Mapping[str, str],
    no_claim: Mapping[str, str],
) -> pd.DataFrame:
    """Add frameworks without any usable result on this task, so that they are not forgotten."""
    compared = set(table["framework"]) if len(table) else set()
    rows = []
    for where, why_no_claim in no_claim.items():
        for name, why in incomplete.items():
            if name in compared:
                continue
            row = {
                "task": task,
                "framework": name,
                "where": where,
                "folds": f"0/{folds}",
                "rows": 0,
                "weighted": False,
                "by": "",
                "verdict": "no claim" if why_no_claim else "incomplete",
                "reason": why_no_claim or f"{name}: {why}",
            }
            rows.append(row)
    if not rows:
        return table
    added_columns = set(rows[0]) - set(table.columns)
    absent = pd.DataFrame(rows).reindex(columns=[*table.columns, *added_columns])
    # pandas warns of a table without rows: it might change the types of the columns.
    return pd.concat([table, absent], ignore_index=True) if len(table) else absent


def _withhold_verdicts(
    table: pd.DataFrame,
    no_claim: str,
    incomplete: Mapping[str, str],
    *,
    column: str = "framework",
    among: pd.Series | None = None,
) -> pd.DataFrame:
    """Return the table, withholding verdicts that the certificate or failed jobs forbid.

    ``among`` are the rows that may not be claimed; all when omitted.
    """
    table = table.copy()
    for name, why in incomplete.items():
        is_incomplete = table[column] == name
        table.loc[is_incomplete, "verdict"] = "incomplete"
        table.loc[is_incomplete, "reason"] = f"{name}: {why}"
    # What may not be claimed of anyone outweighs what is wrong with one framework.
    if no_claim:
        rows = pd.Series(True, index=table.index) if among is None else among
        table.loc[rows, "verdict"] = "no claim"
        table.loc[rows, "reason"] = no_claim
    return table


def duels_on_all_units(
    losses: pd.DataFrame,
    units: ComparedUnits,
    *,
    scored: pd.DataFrame,
    names: Sequence[str],
) -> pd.DataFrame:
    """Return every two frameworks compared on all units, which count alike.

    Parameters
    ----------
    losses, scored : DataFrame of shape (n, frameworks)
    units : ComparedUnits
    names : sequence of str
        Of candidates.

    Returns
    -------
    DataFrame
        See :func:`amlb_ext.stats.pairwise.compare_pairs`, with ``loss`` and ``loss_other``, the
        mean losses on the units that both are scored on, capped.

    Examples
    --------
    >>> losses = pd.DataFrame({"a": np.linspace(0, 1, 100), "b": np.linspace(0.2, 1.1, 100)})
    >>> units = ComparedUnits(loss_f=np.ones(100))
    >>> table = duels_on_all_units(losses, units, scored=losses.notna(), names=["a", "b"])
    >>> table[["framework", "other", "verdict", "loss", "loss_other"]].values.tolist()
    [['a', 'b', 'better', 0.5, 0.65]]
    """
    own, is_scored = losses[list(names)], scored[list(names)]
    table = compare_pairs(own, units.alike(), scored=is_scored)
    counted = pd.DataFrame(units.cap.apply(own), columns=own.columns, index=own.index)
    means = []
    for first, second in zip(table["framework"], table["other"], strict=True):
        both = is_scored[first] & is_scored[second]
        means.append(counted.loc[both, [first, second]].mean().to_numpy())
    shape = np.reshape(means, (-1, 2))
    return table.assign(loss=shape[:, 0], loss_other=shape[:, 1])


def left_to_gain(
    task: str, losses: pd.DataFrame, units: ComparedUnits, level: float
) -> list[dict[str, Any]]:
    """Return what the best of the candidates saves of F's loss, on all units and where F fails.

    Parameters
    ----------
    task : str
    losses : DataFrame of shape (n, candidates)
        Of those with whole results, capped.
    units : ComparedUnits
        Capped.
    level : float

    Returns
    -------
    list of dict
        Rows of the table of what is left to gain; none without a candidate, or where F loses
        nothing.

    Examples
    --------
    >>> loss_f = np.linspace(0.5, 1, 200)
    >>> losses = pd.DataFrame({"half": loss_f / 2, "worse": 2 * loss_f})
    >>> [record] = left_to_gain("t", losses, ComparedUnits(loss_f=loss_f), 0.95)
    >>> record["best"], round(record["low"], 2), round(record["high"], 2)
    ('half', 0.5, 0.5)
    """
    n = len(units.loss_f)
    weights = {"all rows": np.ones(n)}
    if units.weighting.effective_size >= SMALLEST_EFFECTIVE_SIZE:
        weights["region"] = np.asarray(units.weights, dtype=float)
    records = []
    for where, counted in weights.items():
        if losses.empty or not (counted * units.loss_f).sum() > 0:
            continue
        found = best_saving(
            losses.to_numpy(dtype=float),
            units.loss_f,
            counted,
            units.groups,
            random_stream(0, task, "report", "left to gain", where),
            level,
        )
        best, share = next(iter(found.chosen.items()))
        records.append(
            {
                "task": task,
                "where": where,
                "rows": n,
                "saved": found.point,
                "low": found.low,
                "high": found.high,
                "best": F if best < 0 else str(losses.columns[best]),
                "chosen": share,
                "reason": found.reason,
            }
        )
    return records
