"""Checks that may refute what an interval assumes of the labelled rows.

Passing a check proves nothing. Each refutes at the level ``REFUTED``, so each wrongly refutes one
sound sample in a hundred; the comparisons of :mod:`~amlb_ext.estimate.drawing` share that level.
"""

# Dense for its size: most functions are one formula of statistics.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from amlb_ext.stats.support import Support

#: p-value below which an assumption counts as refuted.
REFUTED = 0.01
#: Expected count in every cell from which the chi-square distribution is close enough.
EXPECTED = 5
#: Tables to draw where it is not.
TABLES = 9_999


@dataclass(frozen=True)
class Finding:
    """The outcome of a check: ``refuted``, and one sentence."""

    refuted: bool
    text: str


def class_shares(codes: np.ndarray, priors: np.ndarray) -> Finding:
    """Compare the classes of the labelled rows with the population's known shares.

    The test is chi-square or, if a class is expected in fewer than five rows, exact over draws of
    the multinomial distribution.

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
    # An impossible class needs no test, and chi-square could not divide by its share.
    if counts[priors == 0].any():
        return Finding(
            True, "labelled rows of a class that the population does not have"
        )
    has_share = priors > 0
    counts = counts[has_share]
    shares = priors[has_share] / priors[has_share].sum()
    n = int(counts.sum())
    expected = shares * n
    if expected.min() >= EXPECTED:
        p = float(stats.chisquare(counts, expected).pvalue)
    else:
        # A fixed seed: the same rows must get the same verdict.
        drawn = np.random.default_rng(0).multinomial(n, shares, TABLES)
        observed = _chi_square(counts, expected)
        p = _share_as_extreme(observed, _chi_square(drawn, expected))
    if p < REFUTED:
        return Finding(
            True,
            f"the classes of the labelled rows do not match the priors ({p_text(p)})",
        )
    return Finding(
        False, f"the classes of the labelled rows match the priors ({p_text(p)})"
    )


def chi_square_or_exact(counts: np.ndarray) -> float:
    """Return the p-value for two rows of counts with the same shares.

    The test is chi-square or, if fewer than five are expected in some cell, exact over permutations
    of the rows (draws with the same margins). The p-value is 1 if only one column has counts.

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
    row_sums = table.sum(axis=1)
    column_sums = table.sum(axis=0)
    if table.shape[1] < 2 or (row_sums == 0).any():
        return 1.0
    expected = np.outer(row_sums, column_sums) / column_sums.sum()
    if expected.min() >= EXPECTED:
        return float(stats.chi2_contingency(table, correction=False).pvalue)
    # With both margins fixed the first row is a draw without replacement, the second the rest.
    rng = np.random.default_rng(0)
    first_rows = rng.multivariate_hypergeometric(
        column_sums, int(row_sums[0]), TABLES, method="marginals"
    )
    second_rows = column_sums - first_rows
    drawn = _chi_square(first_rows, expected[0]) + _chi_square(second_rows, expected[1])
    observed = _chi_square(table[0], expected[0]) + _chi_square(table[1], expected[1])
    return _share_as_extreme(observed, drawn)


def _chi_square(counts: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return the chi-square statistic of each row of counts."""
    terms = (counts - expected) ** 2 / expected
    return np.asarray(terms.sum(axis=-1))


def _share_as_extreme(observed: np.ndarray, drawn: np.ndarray) -> float:
    """Return the p-value of a statistic from draws of it under the null hypothesis."""
    # Statistics of equal tables may differ in the last bits.
    n_as_extreme = (drawn >= observed - 1e-9).sum()
    # The observed table counts as a draw, without which p could be 0.
    return float((1 + n_as_extreme) / (1 + len(drawn)))


def absent_classes(
    codes: np.ndarray,
    train: np.ndarray,
    labels: Sequence[str],
    shares: np.ndarray | None = None,
) -> Finding:
    """Check whether the labelled rows lack a class of the training rows, and not by chance.

    A different share is no finding, since training rows may be drawn differently. A class without
    any labelled row is one, if chance leaves it out in less than one case in a hundred.

    Parameters
    ----------
    codes, train : ndarray of shape (n,), (n_train,)
    labels : sequence of str
    shares : ndarray of shape (C,), optional
        Shares to use instead of those of the training rows.

    Examples
    --------
    >>> absent_classes(np.zeros(60), np.repeat([0, 1], [80, 20]), ["no", "yes"]).text
    'no labelled row of yes (20.0% of the training rows)'
    """
    counts = np.bincount(codes.astype(int), minlength=len(labels))
    if shares is None:
        train_counts = np.bincount(train.astype(int), minlength=len(labels))
        shares = train_counts / max(len(train), 1)
    chance_of_none = (1 - shares) ** len(codes)
    is_absent = (counts == 0) & (chance_of_none < REFUTED)
    if not is_absent.any():
        return Finding(False, "every class of the training rows has labelled rows")
    listed = []
    for code in np.flatnonzero(is_absent):
        listed.append(f"{labels[int(code)]} ({shares[code]:.1%} of the training rows)")
    return Finding(True, f"no labelled row of {', '.join(listed)}")


def support_finding(support: Support, others: str) -> Finding:
    """Return a support check as a finding; ``others`` is a word such as ``unlabelled``."""
    return Finding(support.refused, support.describe(others))


def join_findings(findings: Sequence[Finding]) -> Finding | None:
    """Return all findings as one, refuted if any of them is; None without any."""
    if not findings:
        return None
    refuted = [finding for finding in findings if finding.refuted]
    # What passed is of no interest beside what refutes.
    decisive = refuted or findings
    text = "; ".join(finding.text for finding in decisive)
    return Finding(bool(refuted), text)


def p_text(p: float) -> str:
    """Return a p-value as papers print it.

    Examples
    --------
    >>> p_text(0.0312), p_text(1e-9)
    ('p = .031', 'p < .001')
    """
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".")
