"""What a weird task is, and what one fold of it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

#: Name of the target in every file.
TARGET = "target"


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Labelled rows.

    Attributes
    ----------
    features : DataFrame of shape (n, d)
        Numbers only: AMLB turns every text that training did not hold into a missing value.
    labels : ndarray of shape (n,), str
    texts : tuple of str
        The raw text of each row; empty where the rows come from none.
    """

    features: pd.DataFrame
    labels: np.ndarray
    texts: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.features)

    @property
    def frame(self) -> pd.DataFrame:
        """The features and, last, the target."""
        target = pd.Series(self.labels, name=TARGET, index=self.features.index)
        return pd.concat([self.features, target], axis=1)


@dataclass(frozen=True, kw_only=True)
class Draw:
    """One fold, which is one run: a fresh draw, or a fresh split of real data.

    Attributes
    ----------
    train, test : Rows
    unlabelled : DataFrame, optional
        Rows of the same columns without labels, for frameworks that know of them.
    """

    train: Rows
    test: Rows
    unlabelled: pd.DataFrame | None = None


@dataclass(frozen=True, kw_only=True)
class WeirdTask:
    """A task and where its data come from.

    Attributes
    ----------
    name, title : str
    labels : tuple of str
        In text order, so that AMLB codes them in this order.
    statement : str
        The task in words, for people and for a coding model.
    row_shape : tuple of int
        What the features of a row are when they are reshaped; empty where they are a plain row.
        The group column, where there is one, is not among them.
    group : str
        Column that says which rows belong together; empty where each stands alone.
    origin : {'made', 'embedded', 'real'}
        Drawn by this package; cut from data that scikit-learn carries; the user's own file.
    licence, citation : str
        Of the data.
    stands_for : str
        The task that this one replaces until real data are given; empty otherwise.
    note : str
        What was left out of the user's file; empty otherwise.
    draw : callable
        From a random generator to a :class:`Draw`.
    """

    name: str
    title: str
    labels: tuple[str, ...]
    statement: str
    origin: Literal["made", "embedded", "real"]
    licence: str
    draw: Callable[[np.random.Generator], Draw]
    row_shape: tuple[int, ...] = ()
    group: str = ""
    citation: str = ""
    stands_for: str = ""
    note: str = ""


def name_labels(codes: np.ndarray, labels: tuple[str, ...]) -> np.ndarray:
    """Return the label of each code, ``(n,)`` of text.

    Examples
    --------
    >>> name_labels(np.array([1, 0]), ("a", "b")).tolist()
    ['b', 'a']
    """
    return np.array(labels, dtype=object)[codes]
