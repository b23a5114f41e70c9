"""Can the labelled rows be what an interval takes them for? Checks that may say no.

Each check can refute an assumption; passing proves nothing. One is refuted at ``REFUTED``, so one
run in a hundred with sound rows is told no by each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from amlb_ext.stats.support import Support

#: p-value below which an assumption counts as refuted.
REFUTED = 0.01


@dataclass(frozen=True)
class Finding:
    """What a check found: ``refuted``, and one sentence."""

    refuted: bool
    text: str


def class_shares(codes: np.ndarray, priors: np.ndarray) -> Finding:
    """Compare the labelled rows' classes with the population's known shares (chi-square).

    Parameters
    ----------
    codes : ndarray of shape (n,)
    priors : ndarray of shape (C,)

    Examples
    --------
    >>> class_shares(np.repeat([0, 1], [300, 200]), np.array([0.9, 0.1])).refuted
    True
    """
    counts = np.bincount(codes.astype(int), minlength=len(priors))
    if counts[priors == 0].any():
        return Finding(True, "labelled rows of a class that the population does not have")
    use = priors > 0
    p = float(stats.chisquare(counts[use], priors[use] * counts.sum()).pvalue)
    if p < REFUTED:
        return Finding(True, f"the classes of the labelled rows do not have these priors ({_p(p)})")
    return Finding(False, f"the classes of the labelled rows agree with the priors ({_p(p)})")


def absent_classes(
    codes: np.ndarray, train: np.ndarray, labels: Sequence[str], shares: np.ndarray | None = None
) -> Finding:
    """Ask whether a class of the training rows is missing more often than by chance.

    A share that differs is no finding, since training rows may be drawn otherwise; a class that
    is not there at all is, when chance would leave it out in less than one case in a hundred.

    Parameters
    ----------
    codes, train : ndarray of shape (n,), (n_train,)
    labels : sequence of str
    shares : ndarray of shape (C,), optional
        In place of the training rows'.

    Examples
    --------
    >>> absent_classes(np.zeros(60), np.repeat([0, 1], [80, 20]), ["no", "yes"]).text
    'no labelled row of yes (20.0% of the training rows)'
    """
    n = len(codes)
    counts = np.bincount(codes.astype(int), minlength=len(labels))
    if shares is None:
        shares = np.bincount(train.astype(int), minlength=len(labels)) / max(len(train), 1)
    lacking = np.flatnonzero((counts == 0) & ((1 - shares) ** n < REFUTED))
    if not len(lacking):
        return Finding(False, "every class of the training rows has labelled ones")
    listed = ", ".join(f"{labels[int(c)]} ({shares[c]:.1%} of the training rows)" for c in lacking)
    return Finding(True, f"no labelled row of {listed}")


def same_predictions(f: np.ndarray, far: np.ndarray) -> Finding:
    """Compare the model's predictions of labelled rows and of real rows without labels.

    Predicted classes by a chi-square test of the 2 × C table, numbers by Kolmogorov and Smirnov.

    Parameters
    ----------
    f, far : ndarray of shape (n,) or (n, C), (N,) or (N, C)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> same_predictions(rng.random(200), rng.random(900) + 0.3).refuted
    True
    """
    if f.ndim == 1:
        p, what = float(stats.ks_2samp(f, far).pvalue), "predictions"
    else:
        C = f.shape[1]
        table = np.array([np.bincount(part.argmax(axis=1), minlength=C) for part in (f, far)])
        table = table[:, table.sum(axis=0) > 0]
        if table.shape[1] < 2:
            return Finding(False, "the model predicts one class everywhere")
        p, what = float(stats.chi2_contingency(table).pvalue), "predicted classes"
    if p < REFUTED:
        return Finding(
            True,
            f"{what} of the labelled rows and of the rows without labels differ ({_p(p)}): they "
            "are not draws from one population",
        )
    return Finding(False, f"{what} of both agree ({_p(p)})")


def of_support(found: Support, whose: str) -> Finding:
    """Return a support check as a finding.

    Parameters
    ----------
    found : Support
    whose : str
        ``unlabelled`` or ``generated``.
    """
    return Finding(found.refused, found.reason.replace("other rows", f"{whose} rows"))


def together(findings: Sequence[Finding]) -> Finding | None:
    """Return all findings as one, refuted when any is; None without any."""
    if not findings:
        return None
    refuted = [finding for finding in findings if finding.refuted]
    return Finding(bool(refuted), "; ".join(finding.text for finding in refuted or findings))


def _p(p: float) -> str:
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".")
