"""Do made rows carry true labels? A fresh oracle's opinion, set against that of real bad rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.stats import t as student

from amlb_ext.core.config import AgreementConfig
from amlb_ext.hardening.oracle import check_labels
from amlb_ext.stats.weighted_mean import MeanEstimate, weighted_mean_interval
from amlb_ext.validity.measures import (
    MIN_ROWS,
    Measure,
    make_measure,
    missing_measure,
    too_few_text,
)

#: Share of labels by which made rows may surely agree less than real bad rows.
AGREEMENT_MARGIN = 0.05
#: Plausibility by which made rows may surely fall short of real bad rows.
CLASS_MARGIN, REGRESSION_MARGIN = -0.02, -0.1
#: One absurd label must not outweigh all others.
LEAST_PLAUSIBLE = -5.0


def judge_labels(
    T: np.ndarray,
    y: np.ndarray,
    rmse: float,
    agreement: AgreementConfig,
    n_classes: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return how plausible each label is to an oracle, and whether it supports it.

    Plausible: the oracle's probability of the label beyond what it expects where the row
    stands, ``p_y - sum_c p_c^2``, so that rows which moved to uncertain places are not taken
    for mislabelled ones; regression: minus the distance to the oracle in its RMSEs.

    Parameters
    ----------
    T : ndarray of shape (n,) or (n, C)
        What the oracle predicts.
    y : ndarray of shape (n,)
    rmse : float
        Of the oracle; regression only.
    agreement : AgreementConfig
    n_classes : int
        C, or 0 for regression.

    Examples
    --------
    >>> found = judge_labels(np.array([[0.1, 0.9]]), np.array([0]), 0.0, AgreementConfig(), 2)
    >>> found[0].round(2).tolist(), found[1].tolist()  # .1 - (.01 + .81)
    ([-0.72], [False])
    """
    support, agrees = check_labels(T, y, agreement, rmse=None if n_classes else rmse)
    if n_classes:
        support = support - (T**2).sum(axis=1)
    return np.maximum(support, LEAST_PLAUSIBLE), agrees


def measure_labels(
    made: tuple[np.ndarray, np.ndarray, np.ndarray],
    bad: tuple[np.ndarray, np.ndarray, np.ndarray],
    real: np.ndarray,
    recorded: float,
    n_classes: int,
) -> list[Measure]:
    """Return whether made rows carry labels that an oracle supports as it does real ones.

    The oracle is fitted anew for the certificate: the one of the generation has filtered the
    made rows by its own opinion, so its agreement (``recorded``) proves nothing.

    Parameters
    ----------
    made, bad : tuple of ndarray (n,)
        Per row, as :func:`judge_labels` returns them: how plausible its label is, whether the
        oracle supports it; and its cluster.
    real : ndarray of bool
        Whether it suffices, for all real test rows.
    recorded : float
        Share of made rows that agree according to their provenance.
    n_classes : int
        C, or 0 for regression.
    """
    margin = CLASS_MARGIN if n_classes else REGRESSION_MARGIN
    source = "docs/validity.md, 6"
    bad_rows = len(np.unique(bad[2]))
    if bad_rows < MIN_ROWS or len(made[2]) == 0:
        why = too_few_text(bad_rows) if bad_rows < MIN_ROWS else "no made rows"
        return [
            missing_measure("label agreement", why, source, None, ">="),
            missing_measure("label support", why, source, margin, ">="),
        ]
    made_support, made_agrees, made_clusters = made[0], made[1].astype(float), made[2]
    bad_support, bad_agrees, bad_clusters = bad[0], bad[1].astype(float), bad[2]

    bad_share = float(bad[1].mean())
    made_share = weighted_mean_interval(made_agrees, None, made_clusters)
    agreement = make_measure(
        "label agreement",
        made_share.point,
        f"made rows whose label a freshly fitted oracle supports; real bad rows {bad_share:.0%}, "
        f"all real rows {real.mean():.0%}; as generated {recorded:.0%}",
        source,
        low=made_share.low,
        high=made_share.high,
        threshold=round(max(0.0, bad_share - AGREEMENT_MARGIN), 4),
        sense=">=",
    )
    # below its limit it fails only where that is sure: few rows are no fault of the labels
    gap = _mean_difference(made_agrees, made_clusters, bad_agrees, bad_clusters)
    may_hold = _one_sided_upper_limit(gap) >= -AGREEMENT_MARGIN
    agreement = replace(agreement, passed=bool(agreement.passed or may_hold))

    gap = _mean_difference(made_support, made_clusters, bad_support, bad_clusters)
    support = make_measure(
        "label support",
        gap.point,
        "plausibility of made rows' labels minus that of bad rows'; fails if surely (one-sided "
        "95 %) below limit",
        source,
        low=gap.low,
        high=gap.high,
        threshold=margin,
        sense=">=",
    )
    may_hold = _one_sided_upper_limit(gap) >= margin
    return [agreement, replace(support, passed=bool(support.passed or may_hold))]


def _one_sided_upper_limit(mean: MeanEstimate) -> float:
    """Upper limit, one-sided 95 %: the question is whether made labels are *worse*."""
    if not mean.has_interval:
        return mean.high
    return mean.point + mean.se * float(student.ppf(0.95, mean.df))


def _mean_difference(
    a: np.ndarray, a_clusters: np.ndarray, b: np.ndarray, b_clusters: np.ndarray
) -> MeanEstimate:
    """Mean of a minus mean of b as one linear statistic of their joint clusters."""
    gap = a.mean() - b.mean()
    influence = np.concatenate([(a - a.mean()) / len(a), (b.mean() - b) / len(b)])
    clusters = np.concatenate([a_clusters, b_clusters])
    return weighted_mean_interval(gap + influence * len(clusters), None, clusters)
