"""Can the labelled rows be what an interval takes them for? Checks that may say no.

Each check can refute an assumption; passing proves nothing. One is refuted at ``REFUTED``, so one
run in a hundred with sound rows is told no by each; the comparisons of
:mod:`~amlb_ext.estimate.drawing` share that level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from amlb_ext.stats.support import Support

#: p-value below which an assumption counts as refuted.
REFUTED = 0.01
#: Expected count from which the chi-square distribution serves, and tables drawn where it does not.
EXPECTED, TABLES = 5, 9_999


@dataclass(frozen=True)
class Finding:
    """What a check found: ``refuted``, and one sentence."""

    refuted: bool
    text: str


def class_shares(codes: np.ndarray, priors: np.ndarray) -> Finding:
    """Compare the labelled rows' classes with the population's known shares.

    By chi-square; exactly, over draws of the multinomial, where a class is expected in fewer than
    five rows.

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
        return Finding(
            True, "labelled rows of a class that the population does not have"
        )
    has_share = priors > 0
    counts, shares = counts[has_share], priors[has_share] / priors[has_share].sum()
    n = int(counts.sum())
    expected = shares * n
    if expected.min() >= EXPECTED:
        p = float(stats.chisquare(counts, expected).pvalue)
    else:
        drawn = np.random.default_rng(0).multinomial(n, shares, TABLES)
        p = _share_as_extreme(
            _chi_square(counts, expected), _chi_square(drawn, expected)
        )
    if p < REFUTED:
        text = (
            f"the classes of the labelled rows do not have these priors ({p_text(p)})"
        )
        return Finding(True, text)
    return Finding(
        False, f"the classes of the labelled rows agree with the priors ({p_text(p)})"
    )


def chi_square_or_exact(counts: np.ndarray) -> float:
    """Return the p-value for two rows of counts with the same shares.

    By chi-square; over permutations of the rows (draws with the same margins) where fewer than
    five are expected somewhere. 1 where only one column has counts.

    Parameters
    ----------
    counts : ndarray of shape (2, C)

    Examples
    --------
    >>> chi_square_or_exact(np.array([[3, 1], [300, 100]]))
    1.0
    >>> chi_square_or_exact(np.array([[100, 100], [780, 220]])) < 1e-9
    True
    """
    table = np.asarray(counts)
    table = table[:, table.sum(axis=0) > 0]
    row_sums, column_sums = table.sum(axis=1), table.sum(axis=0)
    if table.shape[1] < 2 or (row_sums == 0).any():
        return 1.0
    expected = np.outer(row_sums, column_sums) / column_sums.sum()
    if expected.min() >= EXPECTED:
        return float(stats.chi2_contingency(table, correction=False).pvalue)
    # With both margins fixed the first row is a draw without replacement, the second the rest.
    rng = np.random.default_rng(0)
    first = rng.multivariate_hypergeometric(
        column_sums, int(row_sums[0]), TABLES, method="marginals"
    )
    second = column_sums - first
    drawn = _chi_square(first, expected[0]) + _chi_square(second, expected[1])
    observed = _chi_square(table[0], expected[0]) + _chi_square(table[1], expected[1])
    return _share_as_extreme(observed, drawn)


def _chi_square(counts: np.ndarray, expected: np.ndarray) -> np.ndarray:
    return np.asarray(((counts - expected) ** 2 / expected).sum(axis=-1))


def _share_as_extreme(observed: np.ndarray, drawn: np.ndarray) -> float:
    """Return the p-value of a statistic by draws of it under the null."""
    # Statistics of equal tables may differ in the last bits.
    as_extreme = (drawn >= observed - 1e-9).sum()
    return float((1 + as_extreme) / (1 + len(drawn)))


def absent_classes(
    codes: np.ndarray,
    train: np.ndarray,
    labels: Sequence[str],
    shares: np.ndarray | None = None,
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
    counts = np.bincount(codes.astype(int), minlength=len(labels))
    if shares is None:
        shares = np.bincount(train.astype(int), minlength=len(labels)) / max(
            len(train), 1
        )
    chance_of_none = (1 - shares) ** len(codes)
    lacking = np.flatnonzero((counts == 0) & (chance_of_none < REFUTED))
    if not len(lacking):
        return Finding(False, "every class of the training rows has labelled ones")
    listed = [
        f"{labels[int(c)]} ({shares[c]:.1%} of the training rows)" for c in lacking
    ]
    return Finding(True, f"no labelled row of {', '.join(listed)}")


def support_finding(support: Support, others: str) -> Finding:
    """Return a support check as a finding; ``others`` is a word such as ``unlabelled``."""
    return Finding(support.refused, support.describe(others))


def join_findings(findings: Sequence[Finding]) -> Finding | None:
    """Return all findings as one, refuted when any is; None without any."""
    if not findings:
        return None
    refuted = [finding for finding in findings if finding.refuted]
    return Finding(
        bool(refuted), "; ".join(finding.text for finding in refuted or findings)
    )


def p_text(p: float) -> str:
    """Return a p-value as it is printed.

    Examples
    --------
    >>> p_text(0.0312), p_text(1e-9)
    ('p = .031', 'p < .001')
    """
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".")
