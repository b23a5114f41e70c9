"""Real rows without labels: how they are read and judged, and what they add to a certificate.

Notation
--------
T : mean prediction of the judges, fitted on a fold's training rows
G, F : predictions of a candidate and of the baseline, ``(n,)`` or ``(n, C)``
tau = E_T[l_G - l_F | x] : the contrast that T expects at x, no label needed
w : region weight of a row, ``P(bad | x)``; k numbers the folds
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from amlb_ext.core.config import HardnessConfig
from amlb_ext.core.errors import ConfigError, SourceError, suggest_nearest
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline, fill_missing
from amlb_ext.hardening.encode import Encoder
from amlb_ext.hardening.hardness import settle_rule
from amlb_ext.hardening.oracle import Oracle
from amlb_ext.hardening.split import PARTS, cross_folds
from amlb_ext.hardening.weights import Region
from amlb_ext.sources.features import find_copies, read_features
from amlb_ext.stats.prediction_powered import prediction_powered_mean
from amlb_ext.stats.support import Support, check_support
from amlb_ext.validity.measures import (
    Losses,
    Measure,
    finite_or_none,
    plan_measure,
)
from amlb_ext.validity.task_rows import TaskRows, baseline_spec

#: Unlabelled rows that the support check looks at, at most.
SUPPORT_ROWS = 5000
#: Refitted weights may differ from the stored ones by this much.
DRIFT = 1e-3
PPI_SOURCE = "Angelopoulos et al. 2023, prediction-powered inference"


@dataclass(frozen=True)
class Unlabelled:
    """The unlabelled rows of one task.

    Attributes
    ----------
    features : DataFrame
        In the task's canonical form, copies of labelled rows left out.
    support : Support
    notes : tuple of str
        What was ignored, left out or made missing.
    """

    features: pd.DataFrame
    support: Support
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FoldView:
    """Labelled and unlabelled rows as the models of one fold see them; see the module's notation.

    Attributes
    ----------
    tau, far : dict of str to ndarray
        Per candidate, on the fold's test rows and on the unlabelled rows.
    weight, far_weight : ndarray
        From one and the same refitted region model.
    drift : float
        Largest difference of ``weight`` from the stored weights.
    """

    tau: dict[str, np.ndarray]
    far: dict[str, np.ndarray]
    weight: np.ndarray
    far_weight: np.ndarray
    drift: float


def read_unlabelled(path: Path, rows: TaskRows, seed: int) -> Unlabelled:
    """Read the unlabelled rows of a task, drop copies of labelled ones, check their support.

    Raises
    ------
    ConfigError
        F is a file: it cannot judge rows that it has not seen.
    SourceError, DataError
        See :func:`~amlb_ext.sources.features.read_features`.
    """
    if baseline_spec(rows.settings, rows.kind) is None:
        raise ConfigError(
            f"F of {rows.name} came as a file and cannot be fitted to judge unlabelled rows",
            "leave --unlabelled out, or generate with a model's name after --baseline",
        )
    if any("shared" in summary for summary in rows.summaries):
        raise ConfigError(
            f"{rows.name} shares its region with other targets, and its own files are not enough "
            "to find that region again",
            "leave --unlabelled out for it, or generate with --target in place of --targets",
        )
    # folds differ in their rows, not in their columns
    any_train, _ = next(iter(rows.folds.values()))
    features, notes = read_features(path, rows.columns, str(any_train.target.name))
    labelled = [
        pd.concat([train.features, parts["full"].features], ignore_index=True)
        for train, parts in rows.folds.values()
    ]
    # a copy of a labelled row has a label: counted as unlabelled it would count twice
    is_copy = find_copies(features, labelled)
    if is_copy.any():
        notes.append(
            f"{path.name}: {is_copy.sum()} rows are copies of labelled rows and left out"
        )
        features = features[~is_copy].reset_index(drop=True)
    # on one scale for all folds, that of the real test rows
    tests = pd.concat([parts["full"].features for _, parts in rows.folds.values()])
    encoder = Encoder(rows.columns, known="table").fit(tests)
    sample = np.arange(len(features))
    if len(sample) > SUPPORT_ROWS:
        rng = random_stream(seed, rows.name, "support")
        sample = np.sort(rng.choice(len(features), SUPPORT_ROWS, replace=False))
    labelled_points, points = (
        fill_missing(encoder.metric(encoder.transform(table)))
        for table in (tests, features.iloc[sample])
    )
    support = check_support(labelled_points, points)
    return Unlabelled(features, support, tuple(notes))


def fit_region(
    rows: TaskRows, fold: int, Z: np.ndarray, y: np.ndarray, baseline: EstimatorBaseline
) -> Region:
    """Fit ``P(bad | x)`` of a fold again as :mod:`amlb_ext.hardening.prepare` did."""
    # the keys of the generation's streams: the same parts, the same fits
    key = (rows.name, fold)
    cross_seed = derive_int_seed(rows.seed, *key, "cross")
    parts = cross_folds(y, baseline.n_classes, PARTS, cross_seed)
    every_row = np.arange(len(y))
    f_out, _ = baseline.cross_fit(Z, y, every_row, parts, cross_seed)
    config = HardnessConfig(**rows.settings["hardness"])
    # rules read rows with an axis of targets, and here there is one
    y_k = y[:, None]
    f_k = f_out[:, None]
    t_k = None
    # the other rules do not look at the oracle, whose fit is the most expensive of all
    if config.rule == "reducible":
        oracle_seed = derive_int_seed(rows.seed, *key, "oracle")
        oracle = Oracle(baseline.n_classes, oracle_seed).fit(Z, y, parts)
        t_k = oracle.out_of_fold_[:, None]
    # settled on the training rows alone, so it comes out as it did when the suite was made
    rule = settle_rule(config, rows.kind, rows.labels, y=y_k, f=f_k, t=t_k)
    bad = rule.select(rule.hardness(y_k, f_k, t_k))
    region_seed = derive_int_seed(rows.seed, *key, "weights")
    return Region(region_seed).fit(Z, bad)


def expected_contrast(g: np.ndarray, f: np.ndarray, t: np.ndarray) -> np.ndarray:
    r"""Return tau; see the module's notation.

    Squared error and Brier loss alike give :math:`|g|^2 - |f|^2 - 2 t \cdot (g - f)`.

    Examples
    --------
    >>> expected_contrast(np.array([1.0]), np.array([0.0]), np.array([0.8])).round(6).tolist()
    [-0.6]
    """
    terms = g**2 - f**2 - 2 * t * (g - f)
    # one term per class; a regression has a single one
    return terms if terms.ndim == 1 else terms.sum(axis=1)


def measure_unlabelled_gain(
    names: Sequence[str], full: Losses, views: Sequence[FoldView], far: Unlabelled
) -> tuple[list[Measure], dict[str, dict[str, float | None]], list[str]]:
    """Measure how much narrower intervals are with unlabelled rows, where they may be used.

    Labelled rows are judged by their own fold; an unlabelled row counts once, with the mean
    weight over folds and the weighted mean of tau.

    Parameters
    ----------
    names : sequence of str
        The candidates, as the columns of ``full.candidates``.
    full : Losses
        All rows of the untouched test folds.
    views : sequence of FoldView
        Of every fold, in the order of the rows of ``full``.
    far : Unlabelled

    Returns
    -------
    measures : list of Measure
        Whether the rows may be used, and by how much they narrow intervals.
    intervals : dict of str to dict
        Per candidate both intervals, see :class:`amlb_ext.validity.certificate.Certificate`.
    notes : list of str
    """
    source = "docs/validity.md; nearly as many as of the labelled rows among themselves"
    least = finite_or_none(far.support.least)
    text = f"of {len(far.features)} unlabelled rows, share that lies where labelled test rows do"
    inside = plan_measure("unlabelled support", source, ">=", least)
    inside = inside.found(far.support.share_inside, text)
    planned = plan_measure("ppi gain", PPI_SOURCE)
    if far.support.refused:
        reason = f"unlabelled rows were not used: {far.support.reason}"
        return [inside, planned.missing(reason)], {}, []
    notes = []
    drift = max(view.drift for view in views)
    if not drift <= DRIFT:  # so that NaN, weights that were not stored, is noted too
        notes.append(
            f"region weights fitted again differ from the stored ones by up to {drift:.2g}; "
            "intervals with unlabelled rows use the new ones"
        )
    intervals = {}
    ratios = []
    for column, name in enumerate(names):
        difference = full.candidates[:, column] - full.baseline
        ratio, intervals[name] = _powered_intervals(
            name, difference, full.clusters, views
        )
        if np.isfinite(ratio):
            ratios.append(ratio)
    if not ratios:
        gain = planned.missing("no candidate has an interval")
        return [inside, gain], intervals, notes
    ratio = float(np.mean(ratios))
    text = (
        f"intervals of candidates minus F on the region are {1 - ratio:.0%} narrower with "
        f"{len(far.features)} unlabelled rows; the value is the mean ratio of widths"
    )
    return [inside, planned.found(ratio, text)], intervals, notes


def _powered_intervals(
    name: str,
    difference: np.ndarray,
    clusters: np.ndarray,
    views: Sequence[FoldView],
) -> tuple[float, dict[str, float | None]]:
    """Return a candidate's ratio of widths, and both intervals as a certificate stores them."""
    # an unlabelled row is seen by every fold's models, a labelled one by those of its own fold
    far_weights = np.mean([view.far_weight for view in views], axis=0)
    far_terms = [view.far_weight * view.far[name] for view in views]
    powered = prediction_powered_mean(
        difference,
        np.concatenate([view.tau[name] for view in views]),
        np.mean(far_terms, axis=0) / far_weights,
        weights=np.concatenate([view.weight for view in views]),
        weights_unlabelled=far_weights,
        clusters=clusters,
    )
    without, with_far = powered.classical, powered.estimate
    return powered.width_ratio, {
        "difference": finite_or_none(without.point),
        "low": finite_or_none(without.low),
        "high": finite_or_none(without.high),
        "lam": finite_or_none(powered.lam),
        "ppi_difference": finite_or_none(with_far.point),
        "ppi_low": finite_or_none(with_far.low),
        "ppi_high": finite_or_none(with_far.high),
    }


def assign_unlabelled_files(
    arguments: Sequence[str], tasks: Sequence[str]
) -> dict[str, Path]:
    """Return the file of each task, from the arguments of ``--unlabelled``.

    Raises
    ------
    ConfigError
        A task that is unknown or named twice, or a bare file where there are several tasks.
    SourceError
        No such file.

    Examples
    --------
    >>> assign_unlabelled_files(["a=there.csv"], ["a", "b"])
    Traceback (most recent call last):
    amlb_ext.core.errors.SourceError: no such file: there.csv (check the path after --unlabelled)
    """
    files: dict[str, Path] = {}
    for argument in arguments:
        task, file = _split_task_and_file(argument, tasks)
        if task in files:
            raise ConfigError(
                f"--unlabelled names {task!r} twice",
                "give one file per task, joined if need be",
            )
        files[task] = Path(file).expanduser()
        if not files[task].is_file():
            raise SourceError(
                f"no such file: {file}", "check the path after --unlabelled"
            )
    return files


def _split_task_and_file(argument: str, tasks: Sequence[str]) -> tuple[str, str]:
    """Split ``TASK=FILE``; the file alone suffices where the suite has a single task."""
    task, sign, file = argument.partition("=")
    if sign and task in tasks:
        return task, file
    # the name of a file may hold a "="
    is_bare_file = not sign or (len(tasks) == 1 and Path(argument).exists())
    if not is_bare_file:
        raise ConfigError(
            f"--unlabelled names the task {task!r}", suggest_nearest(task, tasks)
        )
    if len(tasks) > 1:
        raise ConfigError(
            f"--unlabelled {argument} names no task, but the suite has {len(tasks)}",
            f"use --unlabelled TASK={argument} with one of {', '.join(tasks)}",
        )
    return tasks[0], argument
