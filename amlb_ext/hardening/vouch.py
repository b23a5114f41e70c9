"""Which labels the oracle vouches for in a table of cells.

Where every column has few values, each row is a cell of the table. No small step leads from one
cell to another, so a made row cannot inherit its label from a neighbour: it rests on the oracle
alone, and it is asked about just those cells where F and the label disagree. How often the oracle
is right *there* is seen on the training rows: each is asked about with every label under which F
would fail on it, all predictions being out of fold, and its own label says which were right.
"""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import IsotonicRegression

from amlb_ext.hardening.encode import Encoder
from amlb_ext.hardening.hardness import BadRule

#: A numeric column with more distinct values than this makes its rows no cells.
MOST_VALUES = 10
#: Share of labels that shall be right among those the oracle vouches for.
RIGHT = 0.8


def has_cells_only(encoder: Encoder, Z: np.ndarray) -> bool:
    """Return whether every numeric column of the encoded training rows has few values.

    Examples
    --------
    >>> import pandas as pd
    >>> from amlb_ext.core.task import Column
    >>> table = pd.DataFrame({"a": [1.0, 2.0] * 20, "b": np.arange(40.0)})
    >>> for names in ("a", "ab"):
    ...     encoder = Encoder([Column(name, "integer") for name in names]).fit(table)
    ...     has_cells_only(encoder, encoder.transform(table))
    True
    False
    """
    numeric = range(encoder.n_categorical_, Z.shape[1])
    return all(len(np.unique(Z[:, j])) <= MOST_VALUES for j in numeric)


def least_support(rule: BadRule, y: np.ndarray, f: np.ndarray, t: np.ndarray) -> float:
    """Return the support from which on the oracle's labels are right in four of five cases.

    Both where they are supported just so much (by isotonic regression) and of all that are
    supported as much or more. The latter share is Laplace's, ``(right + 1) / (asked + 2)``, so
    that one or two cases vouch for nothing.

    Parameters
    ----------
    rule : BadRule
    y : ndarray of shape (n,)
        Class codes of the training rows.
    f, t : ndarray of shape (n, C)
        What F and the oracle predict of them out of fold.

    Returns
    -------
    float
        Infinite where no support suffices.

    Examples
    --------
    >>> y, f = np.array([1, 1, 1, 0]), np.tile([0.9, 0.1], (4, 1))
    >>> t = np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]])
    >>> least_support(BadRule("wrong", 0.5, 0.5, "given"), y, f, t)
    0.7
    """
    supports, hits = [np.empty(0)], [np.empty(0, dtype=bool)]
    for label in range(t.shape[1]):
        fails = rule.select(rule.hardness(np.full(len(y), label), f, t))
        supports.append(t[fails, label])
        hits.append(y[fails] == label)
    support, hit = np.concatenate(supports), np.concatenate(hits)
    if not hit.any():
        return np.inf
    here = IsotonicRegression(y_min=0.0, y_max=1.0).fit(support, hit).predict(support)
    order = np.argsort(-support, kind="stable")
    asked = np.arange(1, len(order) + 1)
    enough = (np.cumsum(hit[order]) + 1) / (asked + 2) >= RIGHT
    enough &= here[order] >= RIGHT
    # of equal supports all are in or none
    enough[:-1] &= np.diff(support[order]) < 0
    return float(support[order][enough].min(initial=np.inf))
