"""A teacher corrected on real rows: its mean moves by what real neighbours say it misses.

Notation
--------
e : residual of real rows: ``y - T(x)``, or ``1[y = c] - T_c(x)`` per class
k : neighbours;  s : rows that the belief "T is right here" counts for

``T'(x) = T(x) + sum of e over the k nearest real rows / (k + s)``: training rows with
out-of-fold T, and the rows of S, which T never saw.
"""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestNeighbors

from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.hardening.made_rows.population_teacher import FLOOR
from benchmarks.studies.fidelity.draw import Draw, Points

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
