"""Attempts at rows that add information: each design proposes rows, a corrected teacher labels.

A design proposes rows x; the target is drawn from the corrected teacher *given that F is bad*
there, and a row is kept with a chance in proportion to ``P_T(bad | x)``. So made rows are what
the best model of the data at hand expects of F's failures. Each stands in three forms: half the
few bad rows and half made rows (plain name), made rows ``_alone``, and ``_shrunk``, where the
share of the made rows is fitted by cross-validation on the real bad rows: over random halves A, B
of the real rows, a mixture of A's mean with what made rows and the teacher say is a prediction of
B's mean, and its weights have the least squared error over all splits. Means differ by a constant
that no ranking sees, so each is centred over the models first.

None of them has an interval: made rows carry the teacher's error.

Notation
--------
e : residual of real rows: ``y - T(x)``, or ``1[y = c] - T_c(x)`` per class
k : neighbours;  s : rows that the belief "T is right here" counts for

``T'(x) = T(x) + sum of e over the k nearest real rows / (k + s)``: training rows with
out-of-fold T, and the rows of S, which T never saw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.neighbors import NearestNeighbors

from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.hardening.made_rows.population_teacher import (
    FLOOR,
    draw_outcomes,
    failing_chance,
)
from benchmarks.studies.fidelity.draw import Draw, Points, once
from benchmarks.studies.fidelity.proposals import PROPOSALS
from benchmarks.studies.fidelity.sample import (
    METHODS,
    Answer,
    Function,
    Method,
    Sample,
    expected_contrasts,
    method,
    without_interval,
)

# Dense lines below: each is one of the formulas above.

#: k
NEIGHBOURS = 40
#: s: with as many rows as neighbours, a residual common to all of them is half believed.
BELIEF = 40.0


class CorrectedTeacher:
    """The corrected teacher of a sample.

    Parameters
    ----------
    draw : Draw
    points : Points
        The rows of S.
    y : ndarray of shape (n,)
        Their targets.

    Attributes
    ----------
    residuals_ : ndarray of shape (N, 1) or (N, C)
        e of the training rows and of S.
    neighbours_ : NearestNeighbors
        Over the same rows.
    """

    def __init__(self, draw: Draw, points: Points, y: np.ndarray) -> None:
        models = draw.prepared.models
        self.draw = draw
        self.n_classes = models.n_classes

        T = np.concatenate([models.targets[0].oracle.out_of_fold_, points.t])
        labels = np.concatenate([models.y[:, 0], y])
        observed = labels
        if self.n_classes:
            # 1[y = c], one column per class
            observed = np.eye(self.n_classes)[labels.astype(int)]
        self.residuals_ = (observed - T).reshape(len(labels), -1)

        Z = np.vstack([models.Z, points.Z])
        self.neighbours_ = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(Z)))
        self.neighbours_.fit(fill_missing(Z))

    def predict_outcomes(self, points: Points) -> tuple[np.ndarray, np.ndarray]:
        """Return possible targets and their probabilities, ``(n, q)`` each."""
        nearest = self.neighbours_.kneighbors(
            fill_missing(points.Z), return_distance=False
        )
        n_neighbours = nearest.shape[1]
        shift = self.residuals_[nearest].sum(axis=1) / (n_neighbours + BELIEF)
        if self.n_classes:
            # a shift may leave [0, 1]; the floor keeps every class possible
            p = np.clip(points.t + shift, FLOOR, None)
            return points.outcomes, p / p.sum(axis=1, keepdims=True)
        return self.draw.teacher.outcomes(points.Z, points.t + shift[:, 0])


# Dense lines below: each is one equation of least squares, in the names of its docstring.

#: Splits into halves from which the shares are fitted.
SPLITS = 40
#: Fewer bad rows than these give no two halves with two rows each.
FEWEST_BAD = 4
#: Ridge of :func:`fit_mixture`, relative to the mean of the Gram matrix's diagonal.
PULL = 0.1


def fit_share(
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
    >>> fit_share(few, np.array([1.0, 0.0]), rng) > 0.95
    True
    """
    if len(few) < FEWEST_BAD:
        return 0.5
    row_weights = np.ones(len(few)) if weights is None else weights
    centred_made = made - made.mean()
    # least squares in one unknown: mean_B - made = weight * (mean_A - made)
    numerator = 0.0
    denominator = 0.0
    for _ in range(SPLITS):
        order = rng.permutation(len(few))
        gaps = []
        for half in np.array_split(order, 2):
            mean = np.average(few[half], axis=0, weights=row_weights[half])
            gaps.append(mean - mean.mean() - centred_made)
        gap_a, gap_b = gaps
        numerator += float(gap_a @ gap_b)
        denominator += float(gap_a @ gap_a)
    share = 0.5
    if denominator > 0:
        share = float(np.clip(numerator / denominator, 0.0, 1.0))
    return 2 * share / (1 + share)


def fit_mixture(
    few: np.ndarray,
    is_bad: np.ndarray,
    *,
    tau: np.ndarray,
    beta: np.ndarray,
    made: np.ndarray,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return the shares of the teacher on S and of made rows; the bad rows have the rest.

    Parameters
    ----------
    few : ndarray of shape (n, m + 1)
        delta of the rows of S, 0 where a row is not bad.
    is_bad : ndarray of shape (n,), bool
    tau, beta : ndarray of shape (n, m + 1), (n,)
        The teacher's ``E[b delta | x]`` and ``E[b | x]`` of the same rows.
    made : ndarray of shape (m + 1,)
        Mean delta of the made rows.
    rng : Generator
    """
    gram = np.zeros((2, 2))
    right = np.zeros(2)
    # the last model is the twin of F, which is no candidate
    centred_made = made[:-1] - made[:-1].mean()
    for _ in range(SPLITS):
        order = rng.permutation(len(few))
        sides = []
        for half in np.array_split(order, 2):
            if not is_bad[half].any():
                break
            real = few[half].sum(axis=0)[:-1] / is_bad[half].sum()
            teacher = tau[half].sum(axis=0)[:-1] / beta[half].sum()
            sides.append((real - real.mean(), teacher - teacher.mean()))
        if len(sides) < 2:
            continue
        (real, teacher), (target, _) = sides
        # target - real = b (teacher - real) + c (made - real): shares that add up to one
        X = np.column_stack([teacher - real, centred_made - real])
        gram += X.T @ X
        right += X.T @ (target - real)
    # ridge towards half and half without the teacher, the best of the fixed mixtures
    prior = np.array([0.0, 0.5])
    pull = PULL * np.trace(gram) / 2 + 1e-12
    shares = np.linalg.solve(gram + pull * np.eye(2), right + pull * prior)
    return float(shares[0]), float(shares[1])


#: What made rows stand for: rows on which F fails, or any rows where failures are likely.
Aim = Literal["failures", "region"]
#: Most rows kept.
MOST_KEPT = 1500
#: With fewer rows than these a design says nothing.
FEWEST_KEPT = 10


@dataclass(frozen=True)
class Design:
    """Where rows come from, what they stand for, and whether the teacher is corrected.

    Attributes
    ----------
    name : str
        Also keys the random streams of labels and shares.
    text : str
    proposal : str, optional
        Of :data:`~.proposals.PROPOSALS`, the design's own name when omitted; an empty one takes
        the unlabelled real rows U as they stand, the ceiling of what made features can give.
    aim : {'failures', 'region'}
    corrected : bool
    """

    name: str
    text: str
    proposal: str | None = None
    aim: Aim = "failures"
    corrected: bool = True


def average_made_rows(s: Sample, design: Design) -> tuple[np.ndarray, int] | None:
    """Return the mean delta of the made rows per model, and their number.

    None where no proposal can be a failure. The three forms of a design share the rows, so they
    are made once for each sample.
    """
    # without a bad row there is nothing that the made rows could stand beside
    if not len(s.bad):
        return None
    made = once(s.shared, design.name, lambda: _draw_labels(s, design))
    if made is None:
        return None
    points, y = made
    return points.delta(y).mean(axis=0), len(y)


def _score_proposal(s: Sample, design: Design) -> Points:
    """Return proposed rows, scored; designs that share a proposal share its rows."""
    proposal = design.name if design.proposal is None else design.proposal
    if not proposal:
        return s.draw.unlabelled
    stage = f"proposed by {proposal}"

    def score() -> Points:
        rows = PROPOSALS[proposal](s, s.stage_stream(stage))
        # to features and back: categories and ranges become those that a table can hold
        encoder = s.draw.prepared.models.encoder
        return s.draw.score_rows(encoder.transform(encoder.inverse(rows)))

    return once(s.shared, stage, score)


def _draw_labels(s: Sample, design: Design) -> tuple[Points, np.ndarray] | None:
    rng = s.stage_stream(f"{design.name} labels")
    points = _score_proposal(s, design)
    if not len(points):
        return None
    outcomes, chance = points.outcomes, points.chance
    if design.corrected:
        # fitted once for all designs
        teacher = once(
            s.shared, "corrected", lambda: CorrectedTeacher(s.draw, s.points, s.y)
        )
        outcomes, chance = teacher.predict_outcomes(points)
    mass = points.w
    if design.aim == "failures":
        # joint with F being bad, so that the targets are drawn given a failure
        rule = s.draw.prepared.models.rule
        chance = failing_chance(rule, points.f, points.t, outcomes, chance)
        mass = chance.sum(axis=1)
    kept, y = draw_outcomes(outcomes, chance, rng, MOST_KEPT, mass)
    # kept without repeats, so few rows with any chance leave few
    if len(kept) < FEWEST_KEPT:
        return None
    return points.take_rows(kept), y


def _mix_with_real_rows(design: Design, share: float | None) -> Function:
    """Return the form of a design in which real rows have a share; None: a fitted one."""

    def run(s: Sample) -> Answer | None:
        made = average_made_rows(s, design)
        if made is None:
            return None
        made_delta, n_made = made
        # the real side has the made rows' aim: the bad rows alike, or all of S by w
        delta, w = s.delta, s.points.w
        if design.aim == "failures":
            delta = s.delta[s.bad]
            w = np.ones(len(s.bad))
        weight = share
        # None: as much as the bad rows themselves say, by cross-validation
        if weight is None:
            # the twin, last, is no candidate and does not decide about the share
            rng = s.stage_stream(f"{design.name} share")
            weight = fit_share(delta[:, :-1], made_delta[:-1], rng, w)
        # in this order: another rounds differently, and published numbers would move
        real_part = weight * (w @ delta) / w.sum()
        mixed = real_part + (1 - weight) * made_delta
        n_real = len(delta) if weight else 0
        return without_interval(mixed, n_made + n_real)

    return run


#: The design that ``population_stacked`` mixes, too.
_POPULATION = Design("population", "F's failures among moved rows of the population")
for _design in (
    _POPULATION,
    Design(
        "population_plain", "the same, T not corrected", "population", corrected=False
    ),
    Design("failures", "rows of a copula of all failures known"),
    Design("searched", "rows searched for reducible hardness"),
    Design("neighbourhoods", "rows along the local covariance of failures"),
    Design("swarm", "rows of a swarm that was searched for ranking fidelity"),
    Design("swarm_start", "rows of the same generators without a search"),
    Design("unlabelled", "F's expected failures among real rows U: no generator", ""),
    Design(
        "population_region",
        "moved rows of the population, drawn by w",
        "population",
        aim="region",
    ),
    Design(
        "unlabelled_region", "real rows U drawn by w: no generator", "", aim="region"
    ),
):
    _real = "bad rows" if _design.aim == "failures" else "S weighted by w"
    for _form, _share, _text in (
        ("", 0.5, f"half {_real}, half {_design.text}"),
        ("_alone", 0.0, _design.text),
        ("_shrunk", None, f"{_real} and, by cross-validation, {_design.text}"),
    ):
        _mixed = _mix_with_real_rows(_design, _share)
        METHODS[_design.name + _form] = Method(_mixed, _text)


@method
def population_stacked(s: Sample) -> Answer | None:
    """Bad rows, the teacher on S and population, shares by cross-validation.

    Shares add up to one, so half and half and the prediction-powered estimate (1, -1, 1) are
    among the mixtures; they are pulled towards (1/2, 0, 1/2).
    """
    made = average_made_rows(s, _POPULATION)
    if made is None:
        return None
    made_delta, n_made = made
    tau, beta = expected_contrasts(s.draw, s.points)
    is_bad = np.isin(np.arange(len(s.y)), s.bad)
    teacher_share, made_share = fit_mixture(
        s.delta * is_bad[:, None],
        is_bad,
        tau=tau,
        beta=beta,
        made=made_delta,
        rng=s.stage_stream("population mixture"),
    )
    real_delta = s.delta[s.bad].mean(axis=0)
    teacher_delta = tau.sum(axis=0) / beta.sum()
    real_share = 1 - teacher_share - made_share
    mixed = real_share * real_delta + teacher_share * teacher_delta
    mixed = mixed + made_share * made_delta
    return without_interval(mixed, n_made + len(s.y))
