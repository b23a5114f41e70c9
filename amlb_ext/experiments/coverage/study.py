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

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from amlb_ext.core.display import markdown_table
from amlb_ext.core.errors import ConfigError, suggest_nearest
from amlb_ext.core.rng import draw_int_seed, random_stream
from amlb_ext.experiments.coverage.populations import MAKERS, Population
from amlb_ext.stats import bounded_mean
from amlb_ext.stats.error_estimate import ErrorEstimate
from amlb_ext.stats.prediction_powered import prediction_powered_error
from amlb_ext.stats.stratified_mean import stratified_interval
from amlb_ext.stats.surrogate import Surrogate

#: Shares of the classes in ``by_class``: two that are hard get most rows.
FAVOUR = np.array([1, 6, 1, 6, 1]) / 15
UNLABELLED = 5_000
DESIGNS = ("iid", "by_class", "drifted")
COLUMNS = [
    *("population", "model", "loss", "design", "n", "level", "estimator", "draws"),
    *("coverage", "coverage_se", "width", "bias", "share_without", "covered", "holds"),
]


def coverage_study(
    draws: int = 1000,
    levels: Sequence[float] = (0.9, 0.95),
    n: Sequence[int] = (50, 200, 500),
    seed: int = 0,
    populations: Sequence[str] = ("tree", "logistic", "boosting"),
    pool: int = 200_000,
    bca_draws: int = 100,
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
    ...     20, [0.9], [50], populations=["logistic"], pool=20_000, bca_draws=0, quiet=True
    ... )
    >>> one = table.query("loss == 'zero_one' and design == 'iid' and estimator == 'wilson'")
    >>> int(one["draws"].iloc[0]), bool(one["coverage"].iloc[0] > 0.6)
    (20, True)
    """
    if draws < 1:
        raise ConfigError(f"{draws} draws", "give at least 1")
    for name in populations:
        if name not in MAKERS:
            raise ConfigError(
                f"unknown population {name!r}", suggest_nearest(name, MAKERS)
            )
    rows: list[dict[str, Any]] = []
    total = len(n) * draws * sum(2 if name == "boosting" else 3 for name in populations)
    with tqdm(total=total, desc="coverage", unit="draw", disable=quiet) as bar:
        for name in populations:
            population = MAKERS[name](pool, seed)
            for design in DESIGNS:
                if design == "by_class" and not len(population.classes):
                    continue
                for size in n:
                    found: dict[tuple[str, float, str], list[ErrorEstimate]] = {}
                    for r in range(draws):
                        rng = random_stream(seed, "coverage", name, design, size, r)
                        for key, e in _draw(
                            population, design, size, levels, rng, r < bca_draws
                        ):
                            found.setdefault(key, []).append(e)
                        bar.update()
                    rows += _summary(population, design, size, found)
    return pd.DataFrame(rows, columns=COLUMNS)


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
        lines += [f"## {', '.join(map(str, names))}, level {level}", ""]
        sizes = list(dict.fromkeys(part["n"]))
        rows = []
        for estimator, group in part.groupby("estimator", sort=False):
            by_n = {row.n: row for row in group.itertuples()}
            cells = [
                _coverage_text(by_n[size]) if size in by_n else "" for size in sizes
            ]
            rows.append([estimator, *cells])
        headers = ["estimator", *(f"n = {size}" for size in sizes)]
        lines += [markdown_table(headers, rows), ""]
    return "\n".join(lines)


def _coverage_text(row: Any) -> str:
    if np.isnan(row.coverage):
        return "no interval"
    text = f"{row.coverage:.3f}".removeprefix("0") + ("" if row.holds else "!")
    text += f" ({f'{row.width:.4f}'.removeprefix('0')})"
    return text + (f" -{row.share_without:.0%}" if row.share_without > 0.0005 else "")


def _draw(
    population: Population,
    design: str,
    n: int,
    levels: Sequence[float],
    rng: np.random.Generator,
    bootstrap: bool,
) -> Iterator[tuple[tuple[str, float, str], ErrorEstimate]]:
    """Yield (loss, level, estimator) and the answer of each estimator on one draw of S."""
    drifted = design == "drifted"
    first = population.pools[0]
    if design == "by_class":
        sizes = np.floor(n * FAVOUR).astype(int)
        sizes[: n - sizes.sum()] += 1
        ends = np.cumsum(np.round(population.priors * len(first.losses)).astype(int))
        i = population.order[
            np.concatenate(
                [
                    rng.integers(start, end, k)
                    for start, end, k in zip([0, *ends[:-1]], ends, sizes, strict=True)
                ]
            )
        ]
    else:
        i = rng.integers(0, len(first.drifted if drifted else first.losses), n)
    u = rng.integers(0, len(first.losses), UNLABELLED)
    g = rng.integers(0, len(first.drifted), UNLABELLED)
    boot = draw_int_seed(rng)
    codes = population.classes_drifted if drifted else population.classes
    for pool in population.pools:
        loss = pool.loss
        v = (pool.drifted if drifted else pool.losses)[i]
        tau = (pool.tau_drifted if drifted else pool.tau)[i]
        real = Surrogate(tau, pool.tau[u], "given")
        made = Surrogate(tau, pool.tau_drifted[g], "given")
        for level in levels:
            answers = [bounded_mean.t_interval(v, level, loss.bound)]
            if loss.binary:
                answers = [
                    bounded_mean.wilson_interval(v, level),
                    _clopper_pearson(int(v.sum()), n, level),
                    *answers,
                ]
            if bootstrap:
                answers.append(
                    bounded_mean.bca_interval(v, level, loss.bound, seed=boot)
                )
            answers.append(bounded_mean.empirical_bernstein(v, level, loss.bound))
            if not loss.binary:
                answers.append(bounded_mean.hall_interval(v, level, loss.bound))
                quoted = bounded_mean.interval_for_skewness(v)
                if bootstrap or quoted == "betting":  # it takes milliseconds, too
                    bet = bounded_mean.betting_interval(v, level, loss.bound, seed=boot)
                    answers += [bet] if bootstrap else []
                by_name = {e.name: e for e in answers}
                if design != "by_class":
                    which = bet if quoted == "betting" else by_name[quoted]
                    answers.append(replace(which, name="quoted"))
            if len(codes):
                answers.append(
                    stratified_interval(
                        v, codes[i], population.priors, level, loss.bound, loss.binary
                    )
                )
            answers.append(prediction_powered_error(v, real, level, loss.bound))
            answers.append(
                prediction_powered_error(v, made, level, loss.bound, generated=True)
            )
            for e in answers:
                yield (loss.name, level, e.name), e


@cache
def _clopper_pearson(errors: int, n: int, level: float) -> ErrorEstimate:
    """Return the interval by its counts: draws share few of them, and each takes a root search."""
    return bounded_mean.clopper_pearson(np.arange(n) < errors, level)


def _summary(
    population: Population,
    design: str,
    n: int,
    found: dict[tuple[str, float, str], list[ErrorEstimate]],
) -> list[dict[str, Any]]:
    truth = {pool.loss.name: pool.losses.mean() for pool in population.pools}
    rows = []
    for (loss, level, name), answers in found.items():
        theta = truth[loss]
        given = [e for e in answers if e.has_interval]
        points = np.array([e.point for e in answers if np.isfinite(e.point)])
        k = max(len(given), 1)
        nan = float("nan")
        cover = (
            float(np.mean([e.low <= theta <= e.high for e in given])) if given else nan
        )
        rows.append(
            {
                "population": population.name,
                "model": population.model,
                "loss": loss,
                "design": design,
                "n": n,
                "level": level,
                "estimator": name,
                "draws": len(answers),
                "coverage": cover,
                "coverage_se": float(np.sqrt(cover * (1 - cover) / k)),
                "width": float(np.mean([e.width for e in given])) if given else nan,
                "bias": float(points.mean() - theta) if len(points) else nan,
                "share_without": 1 - len(given) / len(answers),
                "covered": float(np.mean([e.low <= theta <= e.high for e in answers])),
                "holds": bool(cover >= level - 2 * np.sqrt(level * (1 - level) / k)),
            }
        )
    return rows
