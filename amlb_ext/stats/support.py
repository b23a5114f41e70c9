"""Whether other rows lie where the labelled ones do.

Notation
--------
s_i : labelled rows, i = 1..n;  x_j : other rows, generated or without label
r_i : distance from s_i to its k-th nearest other labelled row
x_j is inside when its nearest s_i is no farther than r_i.
q : share of the labelled rows that are inside the spheres of the others

In many columns spheres leave out much even of independent draws (14 % on Adult's 108), so the share
is held against q, which by exchangeability is what independent draws give: refused below
q - max(.05, 3 standard errors of q).

Measured on a mixture of five Gaussians, k = 10, 30 samples of 200 or 500 labelled rows: .985 to
1.00 of the mass is inside when these are independent draws, .80 to 1.00 when they lack one class:
a large class far from the others is seen, a rare one or one amid others is not. With 50 rows
independent draws gave .95 to 1.00. k = 5 gave .94 to .98 on independent draws and no better sight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.neighbors import NearestNeighbors

from amlb_ext.core.errors import DataError

# Array arithmetic and sentences made of its results: denser than other modules.

#: Neighbours that set the radius of a sphere.
NEIGHBOURS = 10
#: How far below the labelled rows' share others may stay, and the same in standard errors.
TOLERANCE, ERRORS = 0.05, 3.0
#: Columns named when no labels tell classes apart.
COLUMNS = 3


@dataclass(frozen=True, kw_only=True)
class Support:
    """Whether other rows lie where the labelled ones do.

    Attributes
    ----------
    share_inside, labelled_share_inside : float
        Of the other rows, and of each labelled one among the rest (q); NaN for too few rows.
    least : float
        Smallest share of the other rows that passes.
    k : int
        Neighbours that set the radii.
    n_labelled, n_other : int
        Rows that were compared.
    inside : ndarray of shape (N,)
        Which rows are inside; empty for too few rows.
    refused : bool
    lacking : tuple of str
        Classes, or columns where the rows outside differ most, that S lacks.
    what_lacks : str
        The same in words, for the end of a sentence; empty where nothing is refused.
    """

    share_inside: float
    labelled_share_inside: float
    least: float
    k: int
    n_labelled: int
    n_other: int
    inside: np.ndarray
    refused: bool
    lacking: tuple[str, ...] = ()
    what_lacks: str = ""

    @property
    def reason(self) -> str:
        """Why it is refused, or what was found."""
        return self.describe("other")

    def describe(self, others: str) -> str:
        """Return :attr:`reason` with a word for the other rows, e.g. ``unlabelled``."""
        if math.isnan(self.share_inside):
            return (
                f"{self.n_labelled} labelled and {self.n_other} {others} rows are too few to "
                f"compare (k = {self.k})"
            )
        shares = (
            f"{self.share_inside:.1%} of the {others} rows lie near labelled ones, "
            f"{self.labelled_share_inside:.1%} of these themselves"
        )
        if not self.refused:
            return shares
        return f"only {shares}; at least {self.least:.1%} must{self.what_lacks}"


def check_support(
    SX: np.ndarray,
    X: np.ndarray,
    k: int = NEIGHBOURS,
    labels: np.ndarray | None = None,
    classes: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
) -> Support:
    """Say whether other rows lie where the labelled ones do.

    Passing is necessary, not sufficient: rows may lie inside in other proportions.

    Parameters
    ----------
    SX, X : ndarray of shape (n, d), (N, d)
        Labelled and other rows in one scaled encoding, without missing values.
    k : int
    labels : ndarray of shape (N,), optional
        Of the other rows: generated, or predicted by the model. They name the classes that S
        lacks; without them, columns do.
    classes, columns : sequence of str, optional
        Names; codes and positions otherwise.

    Returns
    -------
    Support
        Refused, too, when there are too few rows to say.

    Raises
    ------
    DataError
        When shapes do not match, values are missing or k is no number of neighbours.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> near, far = rng.random((300, 2)), rng.random((300, 2)) + [5, 0]
    >>> check_support(near, rng.random((500, 2))).refused
    False
    >>> s = check_support(near, np.vstack([near, far]), labels=np.repeat([0, 1], 300))
    >>> s.share_inside, s.lacking
    (0.5, ('1',))
    >>> check_support(near, np.vstack([near, far]), columns=["age", "pay"]).lacking
    ('age',)
    """
    S = np.asarray(SX, float)
    U = np.asarray(X, float)
    codes = None if labels is None else np.asarray(labels)
    if S.ndim != 2 or U.ndim != 2 or S.shape[1] != U.shape[1]:
        raise DataError(
            f"labelled and other rows of shapes {S.shape} and {U.shape}",
            "encode both with the same encoder",
        )
    if not (np.isfinite(S).all() and np.isfinite(U).all()):
        raise DataError(
            "missing or infinite features", "fill them before asking for support"
        )
    if k < 1 or (codes is not None and codes.shape != (len(U),)):
        raise DataError(
            f"spheres of {k} neighbours, labels {labels!r} of {len(U)} rows",
            "give k >= 1, and a label for each of the other rows",
        )
    compared = partial(Support, k=k, n_labelled=len(S), n_other=len(U))
    if len(S) <= k or len(U) == 0:
        return compared(
            share_inside=math.nan,
            labelled_share_inside=math.nan,
            least=1 - TOLERANCE,
            inside=np.zeros(0, dtype=bool),
            refused=True,
        )
    q, inside = _find_inside(S, U, k)
    share = float(inside.mean())
    # of a share over the labelled rows, which are few beside the others
    standard_error = math.sqrt(q * (1 - q) / len(S))
    least = q - max(TOLERANCE, ERRORS * standard_error)
    is_refused = share < least
    lacking: tuple[str, ...] = ()
    what_lacks = ""
    # the classes, or else the columns, in which the rows outside differ
    if is_refused and codes is not None:
        lacking, what_lacks = _lacking_classes(inside, codes, classes)
    if is_refused and not lacking:
        lacking, what_lacks = _differing_columns(S, U[~inside], columns)
    return compared(
        share_inside=share,
        labelled_share_inside=q,
        least=least,
        inside=inside,
        refused=is_refused,
        lacking=lacking,
        what_lacks=what_lacks,
    )


def _find_inside(S: np.ndarray, U: np.ndarray, k: int) -> tuple[float, np.ndarray]:
    """Return q, and which of the other rows are inside; see the module's notation."""
    search = NearestNeighbors(n_jobs=1).fit(S)
    # None asks for the neighbours of S itself: no row is then its own neighbour
    distances, neighbours = search.kneighbors(None, k)
    # distances of equal rows may differ in the last bits between the two queries, hence 1e-9
    radius = distances[:, -1] * (1 + 1e-9) + 1e-9
    nearest = neighbours[:, 0]
    is_labelled_inside = distances[:, 0] <= radius[nearest]

    distances, neighbours = search.kneighbors(U, 1)
    nearest = neighbours[:, 0]
    is_inside = distances[:, 0] <= radius[nearest]
    return float(is_labelled_inside.mean()), is_inside


def _lacking_classes(
    inside: np.ndarray, labels: np.ndarray, names: Sequence[str] | None
) -> tuple[tuple[str, ...], str]:
    """Return the classes with fewer rows inside than all have, the worst first, and a sentence."""
    values, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    share_inside = np.bincount(codes, inside) / counts
    below = np.flatnonzero(share_inside < inside.mean())
    worst_first = below[np.argsort(share_inside[below], kind="stable")]
    lacking = []
    descriptions = []
    for c in worst_first:
        label = values[c]
        name = str(label if names is None else names[int(label)])
        share_of_rows = counts[c] / len(labels)
        lacking.append(name)
        descriptions.append(
            f"{name} ({share_of_rows:.1%} of the rows, {share_inside[c]:.0%} of them near)"
        )
    if not lacking:
        return (), ""
    plural = "es" if len(lacking) > 1 else ""
    sentence = f"; the labelled rows lack class{plural} {', '.join(descriptions)}"
    return tuple(lacking), sentence


def _differing_columns(
    S: np.ndarray, outside: np.ndarray, names: Sequence[str] | None
) -> tuple[tuple[str, ...], str]:
    """Return the columns whose standardised mean difference is largest, and a sentence.

    ``(mean outside - mean S) / sqrt((var outside + var S) / 2)``; those above half the largest.
    """
    gap = outside.mean(axis=0) - S.mean(axis=0)
    mean_variance = (outside.var(axis=0) + S.var(axis=0)) / 2
    spread = np.sqrt(mean_variance)
    # a column that is constant on both sides differs infinitely, unless it does not at all
    d = np.where(gap == 0, 0.0, gap / np.maximum(spread, 1e-12))
    sizes = np.abs(d)
    largest_first = np.argsort(-sizes, kind="stable")[:COLUMNS]
    threshold = sizes[largest_first[0]] / 2
    differing = []
    descriptions = []
    for column in largest_first:
        size = sizes[column]
        if size == 0 or size < threshold:
            continue
        name = str(column if names is None else names[column])
        direction = "higher" if d[column] > 0 else "lower"
        differing.append(name)
        descriptions.append(f"{name} ({direction} by {size:.1f} s.d.)")
    if not differing:
        return (), ""
    sentence = f"; the rows outside differ most in {', '.join(descriptions)}"
    return tuple(differing), sentence
