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
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.display import markdown_table
from amlb_ext.core.errors import ConfigError, suggest_nearest
from amlb_ext.core.rng import draw_int_seed, random_stream
from benchmarks.studies.coverage.populations import (
    MAKERS,
    Pool,
    Population,
    make_population,
)
from benchmarks.studies.engine import (
    Repetition,
    hash_key,
    open_results_folder,
    run_repetitions,
)
from amlb_ext.stats import bounded_mean
from amlb_ext.stats.error_estimate import ErrorEstimate
from amlb_ext.stats.prediction_powered import prediction_powered_error
from amlb_ext.stats.stratified_mean import stratified_interval
from amlb_ext.stats.surrogate import Surrogate

#: Shares of the classes in ``by_class``: two that are hard get most rows.
FAVOUR = np.array([1, 6, 1, 6, 1]) / 15
#: Rows without labels, and generated rows, of each draw.
UNLABELLED = 5_000
DESIGNS = ("iid", "by_class", "drifted")
COLUMNS = [
    "population",
    "model",
    "loss",
    "design",
    "n",
    "level",
    "estimator",
    "draws",
    "coverage",
    "coverage_se",
    "width",
    "bias",
    "share_without",
    "covered",
    "holds",
]
#: Folder of the results of :class:`Cell`.
CELLS = "cells"

#: Name of the loss, level, name of the estimator.
_Key = tuple[str, float, str]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """All draws of one population, design and n: one repetition of the engine.

    A single draw takes a millisecond, less than reading it back from a file would; so the engine
    repeats cells, and keeps their summaries.

    Attributes
    ----------
    model : str
        Names the population.
    design : str
    n : int
    levels : tuple of float
    draws, bca_draws : int
    pool : int
        Rows of the population.
    seed : int
    """

    model: str
    design: str
    n: int
    levels: tuple[float, ...]
    draws: int
    bca_draws: int
    pool: int
    seed: int


def coverage_study(
    draws: int = 1000,
    levels: Sequence[float] = (0.9, 0.95),
    n: Sequence[int] = (50, 200, 500),
    seed: int = 0,
    populations: Sequence[str] = ("tree", "logistic", "boosting"),
    pool: int = 200_000,
    bca_draws: int = 100,
    *,
    out: Path | None = None,
    workers: int = 0,
    quiet: bool = False,
) -> pd.DataFrame:
    """Return how often each estimator's interval covers the true error.

    Parameters
    ----------
    draws : int
        Labelled samples per population, design and n.
    levels : sequence of float
    n : sequence of int
        Labelled rows.
    seed : int
        A draw depends on it, the population, the design, n and its number alone.
    populations : sequence of str
        By their models: ``tree`` and ``logistic`` on the mixture, ``boosting`` on a regression.
    pool : int
        Rows of the population.
    bca_draws : int
        The bootstrap and the betting interval, which are slow, see the first so many draws.
    out : Path, optional
        Folder that keeps the results, so that the same call continues a study that was stopped.
    workers : int
        Processes; 0 for every core.
    quiet : bool
        Without a progress bar.

    Returns
    -------
    DataFrame
        One row per population, loss, design, n, level and estimator: ``coverage`` over the draws
        with an interval and its standard error, mean ``width``, ``bias`` of the point,
        ``share_without`` an interval, share ``covered`` of all draws, and whether the coverage
        ``holds``: at least the level less two standard errors of that many draws.

    Raises
    ------
    ConfigError
        For an unknown population or fewer than one draw.

    Examples
    --------
    >>> table = coverage_study(
    ...     20,
    ...     [0.9],
    ...     [50],
    ...     populations=["logistic"],
    ...     pool=20_000,
    ...     bca_draws=0,
    ...     workers=1,
    ...     quiet=True,
    ... )
    >>> wilson = table.query("loss == 'zero_one' and design == 'iid' and estimator == 'wilson'")
    >>> int(wilson["draws"].iloc[0]), bool(wilson["coverage"].iloc[0] > 0.6)
    (20, True)
    """
    if draws < 1:
        raise ConfigError(f"{draws} draws", "give at least 1")
    for name in populations:
        if name not in MAKERS:
            raise ConfigError(
                f"unknown population {name!r}", suggest_nearest(name, MAKERS)
            )
    # population by population, so that each is made once
    cells = []
    for name in populations:
        for design in DESIGNS:
            # a regression has no classes to draw by
            if design == "by_class" and name == "boosting":
                continue
            for size in n:
                cell = Cell(
                    model=name,
                    design=design,
                    n=size,
                    levels=tuple(levels),
                    draws=draws,
                    bca_draws=bca_draws,
                    pool=pool,
                    seed=seed,
                )
                cells.append(cell)
    with open_results_folder(out) as folder:
        repetitions = [_repeat_cell(cell, folder) for cell in cells]
        results = run_repetitions(
            repetitions,
            name="coverage",
            unit="cell",
            workers=workers,
            quiet=quiet,
        )
    rows = []
    for result in results:
        rows += [_restore_nan(row) for row in result["rows"]]
    return pd.DataFrame(rows, columns=COLUMNS)


def _repeat_cell(cell: Cell, folder: Path) -> Repetition:
    return Repetition(
        path=folder / CELLS / f"{cell.model}_{cell.design}_{cell.n}.json",
        key=hash_key(asdict(cell)),
        compute=compute_cell,
        arguments=(cell,),
    )


def _restore_nan(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with NaN for null, which JSON writes in its place."""
    return {
        column: math.nan if value is None else value for column, value in row.items()
    }


def coverage_markdown(table: pd.DataFrame) -> str:
    """Return the study as Markdown: coverage (mean width) per n, one table per setting.

    An ``!`` marks a coverage that does not hold; ``-x%`` the share of draws without interval.

    Examples
    --------
    >>> row = ["mixture", "tree", "zero_one", "iid", 50, 0.9, "t", 100]
    >>> row += [0.8, 0.04, 0.1, 0.0, 0.02, 0.784, False]
    >>> print(coverage_markdown(pd.DataFrame([row], columns=COLUMNS)))
    ## mixture, tree, zero_one, iid, level 0.9
    <BLANKLINE>
    | estimator | n = 50 |
    | --- | --- |
    | t | .800! (.1000) -2% |
    <BLANKLINE>
    """
    lines: list[str] = []
    keys = ["population", "model", "loss", "design", "level"]
    for key, part in table.groupby(keys, sort=False):
        *names, level = key
        heading = ", ".join(str(name) for name in names)
        lines += [f"## {heading}, level {level}", ""]
        sizes = list(dict.fromkeys(part["n"]))
        rows = []
        for estimator, group in part.groupby("estimator", sort=False):
            row_by_n = {row.n: row for row in group.itertuples()}
            texts = [estimator]
            for size in sizes:
                texts.append(_coverage_text(row_by_n[size]) if size in row_by_n else "")
            rows.append(texts)
        headers = ["estimator", *(f"n = {size}" for size in sizes)]
        lines += [markdown_table(headers, rows), ""]
    return "\n".join(lines)


def _coverage_text(row: Any) -> str:
    """Return ``.951 (.0412)``, with marks; see :func:`coverage_markdown`."""
    if np.isnan(row.coverage):
        return "no interval"
    coverage = f"{row.coverage:.3f}".removeprefix("0")
    width = f"{row.width:.4f}".removeprefix("0")
    mark = "" if row.holds else "!"
    # less than a draw in two thousand rounds to 0 %
    without = f" -{row.share_without:.0%}" if row.share_without > 0.0005 else ""
    return f"{coverage}{mark} ({width}){without}"


def compute_cell(cell: Cell) -> dict[str, Any]:
    """Return the rows of the study for one cell under ``rows``."""
    # made once for all cells of a model that one process computes
    population = make_population(cell.model, cell.pool, cell.seed)
    estimates: dict[_Key, list[ErrorEstimate]] = {}
    for number in range(cell.draws):
        # keyed by its number, so that more draws begin with the same ones
        key = ("coverage", cell.model, cell.design, cell.n, number)
        draw = _draw_rows(population, cell, random_stream(cell.seed, *key))
        is_slow = number < cell.bca_draws
        for pool in population.pools:
            for level in cell.levels:
                for estimate in _estimate_error(pool, draw, level, is_slow=is_slow):
                    estimate_key = (pool.loss.name, level, estimate.name)
                    estimates.setdefault(estimate_key, []).append(estimate)
    return {"rows": _summarize_cell(population, cell, estimates)}


@dataclass(frozen=True, kw_only=True)
class _DrawnRows:
    """Which rows of a population one draw has; positions, with repeats.

    Attributes
    ----------
    cell : Cell
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

    cell: Cell
    labelled: np.ndarray
    unlabelled: np.ndarray
    generated: np.ndarray
    classes: np.ndarray
    priors: np.ndarray
    interval_seed: int


def _draw_rows(
    population: Population, cell: Cell, rng: np.random.Generator
) -> _DrawnRows:
    # all pools of a population share their rows; the order of the draws decides every number
    first_pool = population.pools[0]
    n_pool = len(first_pool.losses)
    n_drifted = len(first_pool.drifted)
    codes = population.classes
    if cell.design == "by_class":
        labelled = _draw_by_class(population, cell.n, rng)
    elif cell.design == "drifted":
        labelled = rng.integers(0, n_drifted, cell.n)
        codes = population.classes_drifted
    else:
        labelled = rng.integers(0, n_pool, cell.n)
    return _DrawnRows(
        cell=cell,
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
    class_sizes = np.round(population.priors * len(population.order)).astype(int)
    ends = np.cumsum(class_sizes)
    starts = ends - class_sizes
    positions = []
    for start, end, size in zip(starts, ends, sizes, strict=True):
        positions.append(rng.integers(start, end, size))
    # positions in a pool that is sorted by class
    return population.order[np.concatenate(positions)]


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
    is_drifted = draw.cell.design == "drifted"
    losses = (pool.drifted if is_drifted else pool.losses)[draw.labelled]
    if pool.loss.binary:
        estimates = _estimate_binary(losses, level, draw=draw, is_slow=is_slow)
    else:
        estimates = _estimate_bounded(
            losses,
            level,
            draw=draw,
            bound=bound,
            is_slow=is_slow,
        )
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
    real = Surrogate(tau, pool.tau[draw.unlabelled], "given")
    generated = Surrogate(tau, pool.tau_drifted[draw.generated], "given")
    estimates.append(prediction_powered_error(losses, real, level, bound))
    estimates.append(
        prediction_powered_error(losses, generated, level, bound, generated=True)
    )
    return estimates


def _estimate_binary(
    losses: np.ndarray, level: float, *, draw: _DrawnRows, is_slow: bool
) -> list[ErrorEstimate]:
    """Return the intervals for a 0-1 loss from S alone."""
    n_errors = int(losses.sum())
    estimates = [
        bounded_mean.wilson_interval(losses, level),
        _clopper_pearson(n_errors, len(losses), level),
        bounded_mean.t_interval(losses, level),
    ]
    if is_slow:
        seed = draw.interval_seed
        estimates.append(bounded_mean.bca_interval(losses, level, seed=seed))
    estimates.append(bounded_mean.empirical_bernstein(losses, level))
    return estimates


def _estimate_bounded(
    losses: np.ndarray,
    level: float,
    *,
    draw: _DrawnRows,
    bound: float,
    is_slow: bool,
) -> list[ErrorEstimate]:
    """Return the intervals for a loss in [0, bound] from S alone."""
    seed = draw.interval_seed
    by_name = {"t": bounded_mean.t_interval(losses, level, bound)}
    if is_slow:
        by_name["bca"] = bounded_mean.bca_interval(losses, level, bound, seed=seed)
    by_name["empirical_bernstein"] = bounded_mean.empirical_bernstein(
        losses, level, bound
    )
    by_name["hall"] = bounded_mean.hall_interval(losses, level, bound)
    estimates = list(by_name.values())

    quoted_name = bounded_mean.interval_for_skewness(losses)
    if is_slow or quoted_name == "betting":  # it takes milliseconds, too
        by_name["betting"] = bounded_mean.betting_interval(
            losses, level, bound, seed=seed
        )
    if is_slow:
        estimates.append(by_name["betting"])
    # rows drawn by class are quoted by the stratified interval, which has a row of its own
    if draw.cell.design != "by_class":
        estimates.append(replace(by_name[quoted_name], name="quoted"))
    return estimates


@cache
def _clopper_pearson(errors: int, n: int, level: float) -> ErrorEstimate:
    """Return the interval by its counts: draws share few of them, and each takes a root search."""
    return bounded_mean.clopper_pearson(np.arange(n) < errors, level)


def _summarize_cell(
    population: Population,
    cell: Cell,
    estimates: dict[_Key, list[ErrorEstimate]],
) -> list[dict[str, Any]]:
    # rows are drawn with replacement, so the pool's mean is the true error exactly
    true_errors = {pool.loss.name: pool.losses.mean() for pool in population.pools}
    rows = []
    for (loss, level, name), answers in estimates.items():
        row = {
            "population": population.name,
            "model": population.model,
            "loss": loss,
            "design": cell.design,
            "n": cell.n,
            "level": level,
            "estimator": name,
            "draws": len(answers),
        }
        rows.append(row | _coverage_figures(answers, true_errors[loss], level))
    return rows


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
        "coverage": coverage,
        "coverage_se": float(np.sqrt(coverage * (1 - coverage) / n_draws)),
        "width": width,
        "bias": float(points.mean() - theta) if len(points) else math.nan,
        "share_without": 1 - n_intervals / len(answers),
        "covered": float(np.mean(covers)),
        "holds": bool(coverage >= level - 2 * level_se),
    }
