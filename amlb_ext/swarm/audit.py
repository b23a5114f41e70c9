"""What one generator is worth: on a fresh sample, to other models, to an auditor, on real rows.

Nothing of this took part in the search: the rows are fresh, the auditor's rows and the test fold
were seen by nobody, and the takers stand beside their re-fits on other rows and families that the
search never saw.

Notation
--------
A : the auditor's predictions, (n,) or (n, C)
w : (r,) density ratio of made to real rows, for real rows of the test fold
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import kendalltau
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.hardening.oracle import Oracle
from amlb_ext.stats.weighted_mean import kish_size, weighted_mean_interval
from amlb_ext.swarm.arena import Arena, MadeBatch
from amlb_ext.swarm.labels import best_labels, performance
from amlb_ext.swarm.takers import Panel
from amlb_ext.validity.measures import finite_or_none

#: Fresh rows of an audit, and those held out of the test that tells made from real.
AUDIT_ROWS, HELD_OUT_ROWS = 1500, 800
#: A label is rejected where the auditor gives it a smaller chance, or where a number lies more of
#: the auditor's errors away.
REJECTED_CHANCE, REJECTED_ERRORS = 0.2, 2.5
#: Below this share of supported rows, or this effective size, too few real rows are there.
LEAST_SUPPORTED, LEAST_SIZE = 0.2, 50
#: Largest density ratio.
LARGEST_RATIO = 20.0


@dataclass(frozen=True, kw_only=True)
class Court:
    """Who judges in the end: none of them took part in the search.

    Attributes
    ----------
    auditor : Oracle
    panels : dict of str to Panel
        ``seen``, ``refits`` and ``unseen``.
    Z, y : ndarray of shape (r, d), (r,)
        Real rows of the test fold.
    """

    auditor: Oracle
    panels: Mapping[str, Panel]
    Z: np.ndarray
    y: np.ndarray
    _answers: dict[str, np.ndarray] = field(default_factory=dict)

    def real_performance(self, who: str) -> np.ndarray:
        """Return how a panel does on the real rows by their labels, ``(M, r)``."""
        if who not in self._answers:
            predicted = self.panels[who].predict(self.Z)
            self._answers[who] = own_performance(predicted, self.y, self._is_classes)
        return self._answers[who]

    def auditor_performance(self) -> np.ndarray:
        """Return how the auditor does on the real rows, ``(r,)``."""
        if "auditor" not in self._answers:
            predicted = best_labels(self.auditor.predict(self.Z))
            [s] = own_performance(predicted[None], self.y, self._is_classes)
            self._answers["auditor"] = s
        return self._answers["auditor"]

    @property
    def _is_classes(self) -> bool:
        return self.auditor.n_classes > 0


def own_performance(
    predicted: np.ndarray, y: np.ndarray, is_classes: bool
) -> np.ndarray:
    """Return s by the rows' own labels, ``(M, n)``; see :mod:`amlb_ext.swarm.labels`."""
    # the labels "own" ask nothing of the teacher but what kind of target it is
    t = np.zeros((len(y), 1)) if is_classes else np.zeros(len(y))
    return performance(predicted, "own", y=y, t=t)


def mendable(
    s: np.ndarray, auditor: np.ndarray, weights: np.ndarray | None = None
) -> dict[str, float | None]:
    """Return by how much the auditor beats the best taker on real rows, with its standard error.

    Above zero there is something that a better model could mend.

    Parameters
    ----------
    s : ndarray of shape (M, r)
        Performance of the takers.
    auditor : ndarray of shape (r,)
        The auditor's.
    weights : ndarray of shape (r,), optional

    Examples
    --------
    >>> s = np.array([[1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0]])
    >>> mendable(s, np.array([1.0, 1.0, 0.0, 1.0]))["gain"]
    0.25
    """
    best = int(np.average(s, axis=1, weights=weights).argmax())
    estimate = weighted_mean_interval(auditor - s[best], weights)
    return {"gain": finite_or_none(estimate.point), "se": finite_or_none(estimate.se)}


def audit_generator(
    arena: Arena, court: Court, theta: np.ndarray, name: str
) -> dict[str, Any]:
    """Return what a fresh sample of a generator is worth.

    Parameters
    ----------
    arena : Arena
    court : Court
    theta : ndarray of shape (D,)
        Weights of the generator.
    name : str
        Of the generator, for its random stream.
    """
    made = arena.make_rows(
        theta, AUDIT_ROWS, random_stream(arena.seed, *arena.key, "audit", name)
    )
    held = arena.make_rows(
        theta, HELD_OUT_ROWS, random_stream(arena.seed, *arena.key, "audit held", name)
    )
    return audit_rows(arena, court, made, held)


def audit_rows(
    arena: Arena, court: Court, made: MadeBatch, held: MadeBatch
) -> dict[str, Any]:
    """Return what rows are worth; ``held`` are others of the same source."""
    record: dict[str, Any] = {}
    t = arena.teacher.predict(made.Z)
    # by the search's own measure, guard included: set against what the search reported
    [fresh] = arena.score([made])
    record["fresh"] = float(arena.objective(fresh))
    answers = {who: panel.predict(made.Z) for who, panel in court.panels.items()}
    by_labels: dict[str, np.ndarray] = {}
    for who, predicted in answers.items():
        s = performance(predicted, arena.labels, y=made.y, t=t)
        excess = performance(predicted, "excess", y=made.y, t=t)
        by_labels[who] = s.mean(axis=1)
        record[who] = {
            "difficult": float(1 - s.mean(axis=1).max()),
            "separate": float(np.ptp(s.mean(axis=1)) / max(1, len(s) - 1)),
            "excess": float(1 - excess.mean(axis=1).max()),
        }
    written = arena.written_labels(made)
    record["labels"] = _audit_labels(court.auditor, made.Z, written, t)
    supported, _ = arena.guard.nearest(made.Z)
    record["supported"] = float(supported.mean())
    weights, c2st = _density_ratio(arena, court, made, held)
    record["c2st"] = c2st
    size = kish_size(weights)
    record["effective_size"] = size
    has_real_rows = record["supported"] >= LEAST_SUPPORTED and size >= LEAST_SIZE
    # a ratio that is the same for all rows looks like a full sample and says nothing
    record["real"] = None
    if has_real_rows:
        record["real"] = _audit_region(court, weights, by_labels)
    return record


def _audit_labels(
    auditor: Oracle, Z: np.ndarray, y: np.ndarray, t: np.ndarray
) -> dict[str, float]:
    """Return the auditor's opinion of labels."""
    a = auditor.predict(Z)
    if a.ndim == 1:
        assert auditor.rmse_ is not None
        scale = max(auditor.rmse_, 1e-9)
        errors = np.abs(a - y) / scale
        return {
            "plausibility": float(1 - (errors**2).mean()),
            "rejected": float((errors > REJECTED_ERRORS).mean()),
            "contradicted": float((np.abs(a - t) > REJECTED_ERRORS * scale).mean()),
        }
    chance = a[np.arange(len(a)), y.astype(int)]
    return {
        # what it gives the label beyond what it expects to give where the row stands
        "plausibility": float((chance - (a**2).sum(axis=1)).mean()),
        "rejected": float((chance < REJECTED_CHANCE).mean()),
        "contradicted": float((a.argmax(axis=1) != t.argmax(axis=1)).mean()),
    }


def _density_ratio(
    arena: Arena, court: Court, made: MadeBatch, held: MadeBatch
) -> tuple[np.ndarray, float]:
    """Return w of the real rows, and the AUC by which unseen made rows are told from real ones.

    Real rows are dealt in halves: each half gets its ratio from a test that saw the other.
    """
    made_Z, held_Z = fill_missing(made.Z), fill_missing(held.Z)
    real = fill_missing(court.Z)
    half = np.arange(len(real)) % 2
    odds = np.empty(len(real))
    aucs = []
    for part in (0, 1):
        learn = real[half != part]
        rows = np.vstack([made_Z, learn])
        is_made = np.r_[np.ones(len(made_Z)), np.zeros(len(learn))]
        test = HistGradientBoostingClassifier(
            max_iter=40,
            max_leaf_nodes=12,
            early_stopping=False,
            class_weight="balanced",
            random_state=derive_int_seed(arena.seed, *arena.key, "density", part),
        ).fit(rows, is_made)
        chance = test.predict_proba(real[half == part])[:, 1]
        odds[half == part] = chance / (1 - chance).clip(1e-9)
        both = np.r_[test.predict_proba(held_Z)[:, 1], chance]
        truth = np.r_[np.ones(len(held_Z)), np.zeros(len(chance))]
        aucs.append(roc_auc_score(truth, both))
    return np.clip(odds, 0.0, LARGEST_RATIO), float(np.mean(aucs))


def _audit_region(
    court: Court, weights: np.ndarray, made: Mapping[str, np.ndarray]
) -> dict[str, Any]:
    """Return difficulty, separation, mendable rest and order on real rows of the region."""
    record: dict[str, Any] = {}
    auditor = court.auditor_performance()
    for who in court.panels:
        s = court.real_performance(who)
        p = np.average(s, axis=1, weights=weights)
        record[who] = {
            "difficult": float(1 - p.max()),
            "separate": float(np.ptp(p) / max(1, len(p) - 1)),
            "tau": finite_or_none(kendalltau(made[who], p).statistic),
            **mendable(s, auditor, weights),
        }
    return record
