"""Which labels the oracle vouches for where the rows of a table are cells.

Where every column has few values, each row is a cell of the table. No small step leads from one
cell to another, so a made row cannot inherit its label from a neighbour: it rests on the oracle
alone, and the oracle is asked about just those cells where F and the label disagree. How often it
is right *there* is seen on the training rows: it is asked about each of them with every label
under which F would fail, all predictions being out of fold, and the row's own label tells which
answers were right.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.isotonic import IsotonicRegression

from amlb_ext.hardening.encode import Encoder
from amlb_ext.hardening.hardness import BadRule
from amlb_ext.hardening.judged_rows import FoldModels, JudgedRows
from amlb_ext.suite.notes import Note

#: A numeric column with more distinct values than this makes its rows no cells of a table.
MOST_VALUES = 10
#: Share of labels that shall be right among those the oracle vouches for.
RIGHT_SHARE = 0.8


def with_least_support(models: FoldModels, train: JudgedRows) -> FoldModels:
    """Return the models with what a label needs of the oracle, where rows are cells of a table."""
    if not models.n_classes or not has_cells_only(models.encoder, models.Z):
        return models
    least = least_support(
        models.rule,
        y=train.y[:, 0],
        f=train.f[:, 0],
        t=models.targets[0].oracle.out_of_fold_,
    )
    return replace(models, least_support=least)


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
    for j in range(encoder.n_categorical_, Z.shape[1]):
        if len(np.unique(Z[:, j])) > MOST_VALUES:
            return False
    # a category is a value of a few by itself
    return True


def least_support(
    rule: BadRule, *, y: np.ndarray, f: np.ndarray, t: np.ndarray
) -> float:
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
        Out-of-fold predictions of F and of the oracle.

    Returns
    -------
    float
        Infinite where no support suffices.

    Examples
    --------
    >>> y, f = np.array([1, 1, 1, 0]), np.tile([0.9, 0.1], (4, 1))
    >>> t = np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]])
    >>> rule = BadRule(rule="wrong", threshold=0.5, alpha=0.5, reason="given")
    >>> least_support(rule, y=y, f=f, t=t)
    0.7
    """
    # rules read rows with an axis of targets, and classes have one
    f_rows = f[:, None]
    t_rows = t[:, None]
    supports = []
    hits = []
    for label in range(t.shape[1]):
        asked = np.full((len(y), 1), label)
        hardness = rule.hardness(asked, f_rows, t_rows)
        fails = rule.select(hardness)
        own_labels = y[fails]
        supports.append(t[fails, label])
        hits.append(own_labels == label)
    support = np.concatenate(supports)
    is_right = np.concatenate(hits)
    if not is_right.any():
        return np.inf
    # from the best supported label down: how often right there, and so far
    order = np.argsort(-support, kind="stable")
    isotonic = IsotonicRegression(y_min=0.0, y_max=1.0)
    isotonic.fit(support, is_right)
    right_there = isotonic.predict(support)[order]
    n_asked = np.arange(1, len(order) + 1)
    n_right = np.cumsum(is_right[order])
    right_so_far = (n_right + 1) / (n_asked + 2)
    suffices = (right_so_far >= RIGHT_SHARE) & (right_there >= RIGHT_SHARE)
    # of equal supports all are in or none
    support = support[order]
    suffices[:-1] &= np.diff(support) < 0
    sufficient = support[suffices]
    return float(sufficient.min(initial=np.inf))


def note_least_support(least: float, side: str) -> Note:
    """Say what a label needs where rows are cells of a table.

    Examples
    --------
    >>> note_least_support(0.7, "test").text
    'every column has few values, so a made row must have a label that the oracle gives a \
probability of at least 0.7'
    """
    if np.isfinite(least):
        return Note(kind="least support", side=side, counts={"least": float(least)})
    return Note(kind="no support", side=side)
