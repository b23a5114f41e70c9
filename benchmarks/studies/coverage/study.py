"""How often intervals for the true error cover it, on populations where it is known.

Notation
--------
pool : (M,) rows that *are* the population; rows are drawn from it with replacement, so that the
    mean loss of the pool is the true error exactly
S : (n,) labelled rows of one draw, by one of three designs
    ``iid`` drawn at random · ``by_class`` a fixed number from each class, most from two hard
    ones · ``drifted`` drawn at random from a shifted population, whose error is another one:
    nothing is promised there
theta : true error;  m_r, [L_r, U_r] : point and interval of draw r
coverage = mean_r 1[L_r <= theta <= U_r] over the draws with an interval
covered : the same over all draws; an estimator that refuses just where it would miss (no error
    among few rows) has a flattering ``coverage``, and shows here what it left out

Estimators: those of ``intervals`` from S alone; ``quoted``, which ``hardsynth estimate`` puts first
for a loss other than 0-1 (``t``, ``hall`` or ``betting``, as the losses are skewed); ``ppi`` with
unlabelled rows of the pool; ``ppi_generated`` with rows from a generator that is off by the same
shift as ``drifted``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from amlb_ext.core.rng import draw_int_seed, random_stream
from amlb_ext.stats import bounded_mean
from amlb_ext.stats.bounded_mean import stratified_interval
from amlb_ext.stats.error_estimate import ErrorEstimate
from amlb_ext.stats.prediction_powered import Surrogate, prediction_powered_error
from benchmarks.studies.coverage.populations import (
    Pool,
    Population,
    make_population,
)
from benchmarks.studies.engine import Labels, Rows, Seeded, Study, flat_rows, grid
from benchmarks.studies.page import Part, Table, text_tables

#: Shares of the classes in ``by_class``: two that are hard get most rows.
FAVOUR = np.array([1, 6, 1, 6, 1]) / 15
#: Rows without labels, and generated rows, of each draw.
UNLABELLED = 5_000
DESIGNS = ("iid", "by_class", "drifted")
LABELS = ["population", "model", "loss", "design", "n", "level", "estimator"]
NOTE = """Coverage (mean width) over the draws with an interval. An ! marks a coverage that does not
hold: it is below the level less two standard errors of that many draws. -x%: share of draws without
an interval, which do not count. On drifted rows no interval promises to hold."""

FIGURES = [
    "draws",
    "coverage",
    "coverage_se",
    "width",
    "bias",
    "share_without",
    "covered",
    "holds",
]

#: Name of the loss, level, name of the estimator.
_Key = tuple[str, float, str]


class CoverageSettings(Seeded):
    """What the study of coverage may be told.

    Attributes
    ----------
    draws : int
        Labelled samples per population, design and n.
    levels : tuple of float
    n : tuple of int
        Labelled rows.
    seed : int
        A draw depends on it, the population, the design, n and its number alone.
    populations : tuple of str
        By their models: ``tree`` and ``logistic`` on the mixture, ``boosting`` on a regression.
    pool : int
        Rows of the population.
    bca_draws : int
        The bootstrap and the betting interval, which are slow, see the first so many draws.
    """

    # a cell has all draws of a setting: each takes a millisecond
    chooses: ClassVar[frozenset[str]] = frozenset({"n", "populations"})

    levels: tuple[float, ...] = (0.9, 0.95)
    n: tuple[int, ...] = (50, 200, 500)
    populations: tuple[Literal["tree", "logistic", "boosting"], ...] = (
        "tree",
        "logistic",
        "boosting",
    )
    pool: int = Field(200_000, ge=100)
    bca_draws: int = Field(100, ge=0)


def _cells(settings: CoverageSettings, _: Path | None) -> Iterator[Labels]:
    # population by population, so that each is made once
    for labels in grid(model="populations", design=DESIGNS, n="n")(settings):
        # a regression has no classes to draw by
        if (labels["model"], labels["design"]) != ("boosting", "by_class"):
            yield labels


def _summarize(rows: pd.DataFrame, settings: CoverageSettings) -> list[Part]:
    """Return the coverage of every estimator, one table per setting."""
    figures = rows.pivot_table(
        index=LABELS, columns="figure", values="value", sort=False
    ).reset_index()
    # all answers may lack an interval
    figures = figures.reindex(columns=[*LABELS, *FIGURES])
    texts = [_coverage_text(row) for row in figures.itertuples()]
    by = ["population", "model", "loss", "design", "level"]
    shown = figures.assign(n="n = " + figures["n"])
    return [
        Table(heading="Coverage", note=NOTE, data=figures, file="coverage.csv"),
        *text_tables(shown, texts, by, index="estimator", columns="n"),
    ]


def _coverage_text(row: Any) -> str:
    """Return ``.951 (.0412)``, with marks; see :data:`NOTE`."""
    if np.isnan(row.coverage):
        return "no interval"
    mark = "" if row.holds else "!"
    # less than a draw in two thousand rounds to 0 %
    without = f" -{row.share_without:.0%}" if row.share_without > 0.0005 else ""
    return f"{row.coverage:.3f}{mark} ({row.width:.4f}){without}"


def cover(settings: CoverageSettings, *, model: str, design: str, n: int) -> Rows:
    """Return the figures of every estimator over all draws of one setting."""
    # made once for all cells of a model that one process computes
    population = make_population(model, settings.pool, settings.seed)
    estimates: dict[_Key, list[ErrorEstimate]] = {}
    for number in range(settings.draws):
        # keyed by its number, so that more draws begin with the same ones
        rng = random_stream(settings.seed, "coverage", model, design, n, number)
        draw = _draw_rows(population, design, n, rng)
        is_slow = number < settings.bca_draws
        for pool in population.pools:
            for level in settings.levels:
                for estimate in _estimate_error(pool, draw, level, is_slow=is_slow):
                    estimate_key = (pool.loss.name, level, estimate.name)
                    estimates.setdefault(estimate_key, []).append(estimate)
    # rows are drawn with replacement, so the pool's mean is the true error exactly
    true_errors = {pool.loss.name: pool.losses.mean() for pool in population.pools}
    rows: Rows = []
    for (loss, level, name), answers in estimates.items():
        figures = _coverage_figures(answers, true_errors[loss], level)
        labels = {"loss": loss, "level": level, "estimator": name}
        rows += flat_rows(figures, "figure", population=population.name, **labels)
    return rows


@dataclass(frozen=True, kw_only=True)
class _DrawnRows:
    """Which rows of a population one draw has; positions, with repeats.

    Attributes
    ----------
    design : str
    labelled : ndarray of shape (n,)
        S: of the pool, or for ``drifted`` of the shifted population.
    unlabelled : ndarray of shape (UNLABELLED,)
        Of the pool.
    generated : ndarray of shape (UNLABELLED,)
        Of the shifted population, which stands for a generator that is off.
    classes : ndarray of shape (n,)
        Of S; empty for regression.
    priors : ndarray of shape (C,)
    interval_seed : int
        Of the intervals that draw.
    """

    design: str
    labelled: np.ndarray
    unlabelled: np.ndarray
    generated: np.ndarray
    classes: np.ndarray
    priors: np.ndarray
    interval_seed: int


def _draw_rows(
    population: Population, design: str, n: int, rng: np.random.Generator
) -> _DrawnRows:
    # all pools of a population share their rows; the order of the draws decides every number
    first_pool = population.pools[0]
    n_pool = len(first_pool.losses)
    n_drifted = len(first_pool.drifted)
    codes = population.classes
    if design == "by_class":
        labelled = _draw_by_class(population, n, rng)
    elif design == "drifted":
        labelled = rng.integers(0, n_drifted, n)
        codes = population.classes_drifted
    else:
        labelled = rng.integers(0, n_pool, n)
    return _DrawnRows(
        design=design,
        labelled=labelled,
        unlabelled=rng.integers(0, n_pool, UNLABELLED),
        generated=rng.integers(0, n_drifted, UNLABELLED),
        classes=codes[labelled] if len(codes) else codes,
        priors=population.priors,
        interval_seed=draw_int_seed(rng),
    )


def _draw_by_class(
    population: Population, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Return positions of a fixed number of rows from each class."""
    sizes = np.floor(n * FAVOUR).astype(int)
    # what rounding left over goes to the first classes, one row each
    sizes[: n - sizes.sum()] += 1
    drawn = [
        rows[rng.integers(0, len(rows), size)]
        for rows, size in zip(population.by_class, sizes, strict=True)
    ]
    return np.concatenate(drawn)


def _estimate_error(
    pool: Pool, draw: _DrawnRows, level: float, *, is_slow: bool
) -> list[ErrorEstimate]:
    """Return the answer of each estimator for one loss, on one draw.

    Parameters
    ----------
    pool : Pool
    draw : _DrawnRows
    level : float
    is_slow : bool
        Include the estimators that take milliseconds.
    """
    bound = pool.loss.bound
    is_drifted = draw.design == "drifted"
    losses = (pool.drifted if is_drifted else pool.losses)[draw.labelled]
    seed = draw.interval_seed
    estimates = []
    if pool.loss.binary:
        n_errors = int(losses.sum())
        estimates.append(bounded_mean.wilson_interval(losses, level))
        estimates.append(_clopper_pearson(n_errors, len(losses), level))
    estimates.append(bounded_mean.t_interval(losses, level, bound))
    if is_slow:
        estimates.append(bounded_mean.bca_interval(losses, level, bound, seed=seed))
    estimates.append(bounded_mean.empirical_bernstein(losses, level, bound))
    if not pool.loss.binary:
        estimates.append(bounded_mean.hall_interval(losses, level, bound))
        quoted_name = bounded_mean.interval_for_skewness(losses)
        by_name = {estimate.name: estimate for estimate in estimates}
        if is_slow or quoted_name == "betting":  # it takes milliseconds, too
            by_name["betting"] = bounded_mean.betting_interval(
                losses, level, bound, seed=seed
            )
        if is_slow:
            estimates.append(by_name["betting"])
        # rows drawn by class are quoted by the stratified interval, which has a row of its own
        if draw.design != "by_class":
            estimates.append(replace(by_name[quoted_name], name="quoted"))
    if len(draw.classes):
        stratified = stratified_interval(
            losses,
            draw.classes,
            draw.priors,
            level,
            bound=bound,
            binary=pool.loss.binary,
        )
        estimates.append(stratified)

    # the surrogate of S is that of the population S is from
    tau = (pool.tau_drifted if is_drifted else pool.tau)[draw.labelled]
    real = Surrogate(tau, pool.tau[draw.unlabelled])
    generated = Surrogate(tau, pool.tau_drifted[draw.generated])
    estimates.append(prediction_powered_error(losses, real, level, bound))
    of_generated = prediction_powered_error(losses, generated, level, bound)
    estimates.append(replace(of_generated, name="ppi_generated"))
    return estimates


@cache
def _clopper_pearson(errors: int, n: int, level: float) -> ErrorEstimate:
    """Return the interval by its counts: draws share few of them, and each takes a root search."""
    return bounded_mean.clopper_pearson(np.arange(n) < errors, level)


def _coverage_figures(
    answers: Sequence[ErrorEstimate], theta: float, level: float
) -> dict[str, Any]:
    """Return the figures of one estimator; see the module's notation."""
    # a comparison with NaN is False, so a draw without an interval covers nothing
    covers = [answer.low <= theta <= answer.high for answer in answers]
    has_interval = [answer.has_interval for answer in answers]
    n_intervals = sum(has_interval)
    coverage = width = math.nan
    if n_intervals:
        coverage = float(np.mean(np.array(covers)[has_interval]))
        widths = [answer.width for answer in answers if answer.has_interval]
        width = float(np.mean(widths))
    # an estimator may have a point and no interval, or a limit and no point
    points = np.array([answer.point for answer in answers])
    points = points[np.isfinite(points)]
    # of the nominal level, by the number of draws: how far chance alone may fall below it
    n_draws = max(n_intervals, 1)
    level_se = np.sqrt(level * (1 - level) / n_draws)
    return {
        "draws": len(answers),
        "coverage": coverage,
        "coverage_se": float(np.sqrt(coverage * (1 - coverage) / n_draws)),
        "width": width,
        "bias": float(points.mean() - theta) if len(points) else math.nan,
        "share_without": 1 - n_intervals / len(answers),
        "covered": float(np.mean(covers)),
        "holds": bool(coverage >= level - 2 * level_se),
    }


STUDIES = (
    Study(
        name="coverage",
        title="How often the intervals of estimate hold, on populations whose error is known",
        group="intervals",
        settings=CoverageSettings(draws=1000),
        cells=_cells,
        compute=cover,
        summarize=_summarize,
        small={
            "draws": 20,
            "levels": (0.9,),
            "n": (50,),
            "populations": ("logistic", "boosting"),
            "pool": 5_000,
            "bca_draws": 2,
        },
    ),
)
