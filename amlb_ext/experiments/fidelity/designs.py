"""Attempts at rows that add information: each design proposes rows, a corrected teacher labels.

A design proposes rows x; the target is drawn from the corrected teacher *given that F is bad*
there, and a row is kept with a chance in proportion to ``P_T(bad | x)``. So made rows are what
the best model of the data at hand expects of F's failures. Each stands in three forms: half the
few bad rows and half made rows (plain name), made rows ``_alone``, and ``_shrunk``, where the
share of the made rows is fitted by cross-validation on the real bad rows.

None of them has an interval: made rows carry the teacher's error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from amlb_ext.experiments.fidelity import proposals
from amlb_ext.experiments.fidelity.corrected import Corrected
from amlb_ext.experiments.fidelity.draw import Answer, Points, without_interval
from amlb_ext.experiments.fidelity.sample import (
    Function,
    Method,
    Sample,
    expected_contrasts,
)
from amlb_ext.hardening.made_rows.population_teacher import (
    draw_outcomes,
    failing_chance,
)

#: What made rows stand for: rows on which F fails, or any rows where failures are likely.
Aim = Literal["failures", "region"]
Propose = Callable[[Sample, np.random.Generator], np.ndarray]
#: Most rows kept; with fewer than the second number a design says nothing.
KEPT, FEWEST = 1500, 10
#: Splits of the bad rows from which the share of made rows is fitted.
SPLITS = 40


@dataclass(frozen=True)
class Design:
    """Where rows come from, what they stand for, and whether the teacher is corrected."""

    name: str
    text: str
    propose: Propose
    aim: Aim = "failures"
    corrected: bool = True


def made_rows(s: Sample, design: Design) -> tuple[Points, np.ndarray] | None:
    """Return made rows and their targets; None where no proposal can be a failure."""
    if design.name not in s.shared:
        s.shared[design.name] = _label(s, design, s.rng(f"{design.name} labels"))
    return s.shared[design.name]


def made_point(s: Sample, design: Design) -> tuple[np.ndarray, int] | None:
    """Return the mean delta of the made rows per model, and their number."""
    made = made_rows(s, design) if len(s.bad) else None
    if made is None:
        return None
    points, y = made
    return points.delta(y).mean(axis=0), len(y)


def _proposed(s: Sample, propose: Propose) -> Points:
    """Return proposed rows, scored; designs that share a proposal share its rows."""
    if propose is proposals.real:
        return s.draw.unlabelled
    word = f"proposed by {propose.__name__}"
    if word not in s.shared:
        encoder = s.draw.ready.models.encoder
        rows = propose(s, s.rng(word))
        s.shared[word] = s.draw.points(encoder.transform(encoder.inverse(rows)))
    return s.shared[word]


def _label(
    s: Sample, design: Design, rng: np.random.Generator
) -> tuple[Points, np.ndarray] | None:
    points = _proposed(s, design.propose)
    if not len(points):
        return None
    outcomes, chance = points.outcomes, points.chance
    if design.corrected:
        if "corrected" not in s.shared:
            s.shared["corrected"] = Corrected(s.draw, s.points, s.y)
        outcomes, chance = s.shared["corrected"].outcomes(points)
    mass = points.w
    if design.aim == "failures":
        rule = s.draw.ready.models.rule
        chance = failing_chance(rule, points.f, points.t, outcomes, chance)
        mass = chance.sum(axis=1)
    kept, y = draw_outcomes(outcomes, chance, rng, KEPT, mass)
    return (points.take(kept), y) if len(kept) >= FEWEST else None


def fitted_share(
    few: np.ndarray,
    made: np.ndarray,
    rng: np.random.Generator,
    weights: np.ndarray | None = None,
) -> float:
    """Return the weight of the few bad rows against made rows, by cross-validation.

    Over random halves A, B of the bad rows, the weight in [0, 1] with the least squared error
    of ``weight * mean_A + (1 - weight) * made`` as a prediction of ``mean_B``, differences
    between models only. Half the rows stand for all, so the fitted weight is a lower bound: the
    full set deserves ``2 w / (1 + w)`` (its variance is half of a half's).

    Parameters
    ----------
    few : ndarray of shape (n_b, m)
    made : ndarray of shape (m,)
    rng : Generator
    weights : ndarray of shape (n_b,), optional

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> few = np.array([0.0, 1.0]) + 0.01 * rng.standard_normal((20, 2))
    >>> fitted_share(few, np.array([1.0, 0.0]), rng) > 0.95
    True
    """
    if len(few) < 4:
        return 0.5
    up = down = 0.0
    w = np.ones(len(few)) if weights is None else weights
    target = made - made.mean()
    for _ in range(SPLITS):
        order = rng.permutation(len(few))
        a, b = (
            np.average(few[h], axis=0, weights=w[h]) for h in np.array_split(order, 2)
        )
        a, b = a - a.mean() - target, b - b.mean() - target
        up, down = up + float(a @ b), down + float(a @ a)
    share = float(np.clip(up / down, 0.0, 1.0)) if down > 0 else 0.5
    return 2 * share / (1 + share)


def _form(design: Design, share: float | None) -> Function:
    def run(s: Sample) -> Answer | None:
        made = made_point(s, design)
        if made is None:
            return None
        point, size = made
        delta, w = s.delta, s.points.w
        if design.aim == "failures":
            delta, w = s.delta[s.bad], np.ones(len(s.bad))
        weight = share
        if weight is None:
            weight = fitted_share(
                delta[:, :-1], point[:-1], s.rng(f"{design.name} share"), w
            )
        point = weight * (w @ delta) / w.sum() + (1 - weight) * point
        return without_interval(point, size + (len(delta) if weight else 0))

    return run


def _stacked(design: Design) -> Function:
    """Few bad rows, the teacher on S, and made rows, with shares by cross-validation.

    Shares add up to one, so half and half and the prediction-powered estimate (1, -1, 1) are
    among the mixtures; they are pulled towards (1/2, 0, 1/2).
    """

    def run(s: Sample) -> Answer | None:
        made = made_point(s, design)
        if made is None:
            return None
        point, size = made
        tau, beta = expected_contrasts(s.draw, s.points)
        flags = np.isin(np.arange(len(s.y)), s.bad)
        few = s.delta * flags[:, None]
        b, c = fitted_mixture(
            few, flags, tau, beta, point, s.rng(f"{design.name} mixture")
        )
        teacher = tau.sum(axis=0) / beta.sum()
        mixed = (1 - b - c) * s.delta[s.bad].mean(axis=0) + b * teacher + c * point
        return without_interval(mixed, size + len(s.y))

    return run


def fitted_mixture(
    few: np.ndarray,
    flags: np.ndarray,
    tau: np.ndarray,
    beta: np.ndarray,
    made: np.ndarray,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return the shares of the teacher on S and of made rows; see :func:`_stacked`."""
    gram, right = np.zeros((2, 2)), np.zeros(2)
    centred = made[:-1] - made[:-1].mean()
    for _ in range(SPLITS):
        order = rng.permutation(len(few))
        sides = []
        for half in np.array_split(order, 2):
            if not flags[half].any():
                break
            real = few[half].sum(axis=0)[:-1] / flags[half].sum()
            guess = tau[half].sum(axis=0)[:-1] / beta[half].sum()
            sides.append((real - real.mean(), guess - guess.mean()))
        if len(sides) < 2:
            continue
        (real, guess), (target, _) = sides
        X = np.column_stack([guess - real, centred - real])
        gram += X.T @ X
        right += X.T @ (target - real)
    prior = np.array([0.0, 0.5])
    pull = 0.1 * np.trace(gram) / 2 + 1e-12
    b, c = np.linalg.solve(gram + pull * np.eye(2), right + pull * prior)
    return float(b), float(c)


_DESIGNS = (
    Design("population", "F's failures among moved rows of the population", proposals.population),
    Design("population_plain", "the same, T not corrected", proposals.population,
           corrected=False),
    Design("population_vae", "F's failures among a VAE's rows", proposals.population_vae),
    Design("failures", "rows of a copula of all failures known", proposals.failures),
    Design("searched", "rows searched for reducible hardness", proposals.searched),
    Design("neighbourhoods", "rows along the local covariance of failures",
           proposals.neighbourhoods),
    Design("unlabelled", "F's expected failures among real rows U: no generator", proposals.real),
    Design("population_region", "moved rows of the population, drawn by w", proposals.population,
           "region"),
    Design("unlabelled_region", "real rows U drawn by w: no generator", proposals.real, "region"),
)  # fmt: skip
DESIGNS: dict[str, Method] = {}
for _design in _DESIGNS:
    _joined = "bad rows" if _design.aim == "failures" else "S weighted by w"
    _half, _none, _fitted = (_form(_design, share) for share in (0.5, 0.0, None))
    DESIGNS |= {
        _design.name: Method(_half, f"half {_joined}, half {_design.text}"),
        f"{_design.name}_alone": Method(_none, _design.text),
        f"{_design.name}_shrunk": Method(
            _fitted, f"{_joined} and, by cross-validation, {_design.text}"
        ),
    }
DESIGNS["population_stacked"] = Method(
    _stacked(_DESIGNS[0]),
    "bad rows, the teacher on S and population, shares by cross-validation",
)
