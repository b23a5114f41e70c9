"""Which rows of a fold are sent, how often and in which order, so that the split comes out right.

Notation: a fold has N training and M test rows; t of the first and m of the second are sent, each
of the m test rows r times, none of the training rows twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from amlb_ext.core.errors import PublishError

#: ``repeat``: test rows as often as the training rows allow; one repetition more, with a few test
#: rows less, where that keeps many more training rows. ``drop``: each test row once, and only as
#: many training rows as go with them.
Fit = Literal["repeat", "drop"]
#: A share of the test rows left out counts as this many times that share of the training rows.
TEST_WEIGHT = 2.0


@dataclass(frozen=True)
class Chosen:
    """Rows of a fold in the order in which they are sent.

    Attributes
    ----------
    procedure : Procedure
    train, test : ndarray of shape (t,) and (m,), int64
        Positions in the suite's files, ascending.
    repeats : int
        How often each test row is sent.
    """

    procedure: Procedure
    train: np.ndarray
    test: np.ndarray
    repeats: int

    def __len__(self) -> int:
        return len(self.train) + self.repeats * len(self.test)

    @property
    def test_positions(self) -> np.ndarray:
        """Where the server's test rows are, ascending."""
        return self.procedure.test_positions(len(self))

    def layout(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return side (True for test), position in that side's file, and repetition of each row.

        Examples
        --------
        >>> from amlb_ext.publish.rows import HOLDOUT
        >>> rows = Chosen(HOLDOUT, np.arange(7), np.array([0, 2, 3]), 1)
        >>> side, row, again = rows.layout()
        >>> row[side].tolist(), row[~side].tolist(), side.tolist().index(True)
        ([0, 2, 3], [0, 1, 2, 3, 4, 5, 6], 4)
        """
        side = np.zeros(len(self), dtype=bool)
        side[self.test_positions] = True
        row, again = np.zeros(len(self), dtype=np.int64), np.zeros(len(self), dtype=np.int64)
        row[~side], row[side] = self.train, np.tile(self.test, self.repeats)
        again[side] = np.repeat(np.arange(self.repeats), len(self.test))
        return side, row, again


def sizes(procedure: Procedure, train: int, test: int, fit: Fit) -> tuple[int, int, int]:
    """Return t, m and r.

    ``repeat`` takes the r that loses least: as many repetitions of all test rows as fit, or one
    more of some of them. 800 training and 200 test rows of a regression would lose 391 training
    rows with one repetition, and with two of 197 test rows none.

    Parameters
    ----------
    procedure : Procedure
    train, test : int
        N and M.
    fit : str
        ``repeat`` or ``drop``.

    Raises
    ------
    PublishError
        Too few rows for any split.

    Examples
    --------
    >>> from amlb_ext.publish.rows import HOLDOUT, ORDERED
    >>> sizes(ORDERED, 900, 100, "repeat"), sizes(ORDERED, 900, 100, "drop")
    ((805, 100, 2), (405, 100, 1))
    >>> sizes(ORDERED, 800, 1247, "repeat"), sizes(HOLDOUT, 800, 200, "repeat")
    ((800, 199, 1), (800, 197, 2))
    """
    largest = _largest_test(procedure, train)
    if largest < 1 or test < 1:
        raise PublishError(
            f"{train} training and {test} test rows are too few for the server's split",
            "publish other tasks with --only, or the file suite itself",
        )
    once = largest // test
    options = {max(1, once), once + 1} if fit == "repeat" else {1}
    found = []
    for repeats in sorted(options):
        kept = min(test, largest // repeats)
        used = min(train, procedure.train_range(repeats * kept)[1])
        lost = (train - used) / train + TEST_WEIGHT * (test - kept) / test
        found.append((lost, repeats, used, kept))
    _, repeats, used, kept = min(found)
    return used, kept, repeats


def _largest_test(procedure: Procedure, train: int) -> int:
    """The most test rows T that so many training rows allow."""
    low, high = 0, train
    while low < high:  # the fewest training rows grow with T
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high) if procedure.train_range(middle)[0] <= train else (low, middle - 1)
        )
    return low


def choose(
    procedure: Procedure,
    train_groups: Sequence[Sequence[object]],
    test_groups: Sequence[Sequence[object]],
    fit: Fit,
    rng: np.random.Generator,
) -> Chosen:
    """Choose the rows of a fold.

    Parameters
    ----------
    procedure : Procedure
    train_groups : sequence of sequences
        Per training row what must stay in proportion, the most important first: its label; empty
        for regression.
    test_groups : sequence of sequences
        The same per test row: its label, its origin.
    fit : str
    rng : Generator

    Returns
    -------
    Chosen
    """
    t, m, repeats = sizes(procedure, len(train_groups), len(test_groups), fit)
    test = draw(test_groups, m, rng)
    return Chosen(procedure, draw(train_groups, t, rng), test, repeats)


def draw(groups: Sequence[Sequence[object]], k: int, rng: np.random.Generator) -> np.ndarray:
    """Draw k rows with every group in proportion, and present where k allows.

    Parameters
    ----------
    groups : sequence of n sequences
        Per row its groups, nested, the outermost first.
    k : int
    rng : Generator

    Returns
    -------
    ndarray of shape (k,), int64
        Ascending.

    Examples
    --------
    >>> rows = [["a"]] * 90 + [["b"]] * 10
    >>> drawn = draw(rows, 10, np.random.default_rng(0))
    >>> int((drawn >= 90).sum()), len(drawn)
    (1, 10)
    """
    rows = np.arange(len(groups), dtype=np.int64)
    if k >= len(rows):
        return rows
    return np.sort(_draw(rows, groups, 0, k, rng))


def _draw(
    rows: np.ndarray,
    groups: Sequence[Sequence[object]],
    level: int,
    k: int,
    rng: np.random.Generator,
) -> np.ndarray:
    if len(rows) == 0 or len(groups[rows[0]]) <= level:
        return np.asarray(rng.choice(rows, size=k, replace=False), dtype=np.int64)
    members: dict[object, list[int]] = {}
    for row in rows:
        members.setdefault(groups[row][level], []).append(int(row))
    shares = _allot([len(group) for group in members.values()], k)
    parts = [
        _draw(np.asarray(group, dtype=np.int64), groups, level + 1, share, rng)
        for group, share in zip(members.values(), shares, strict=True)
        if share
    ]
    return np.concatenate(parts)


def _allot(counts: Sequence[int], k: int) -> list[int]:
    """Split k over groups by largest remainders; each gets one where k allows."""
    total, least = sum(counts), 1 if k >= len(counts) else 0
    exact = [k * count / total for count in counts]
    shares = [max(least, int(value)) for value in exact]
    order = sorted(range(len(counts)), key=lambda i: exact[i] - shares[i], reverse=True)
    while sum(shares) < k:
        for i in order:
            if sum(shares) < k and shares[i] < counts[i]:
                shares[i] += 1
    while sum(shares) > k:  # the minimum of one took too many: from the most favoured
        able = [i for i in range(len(counts)) if shares[i] > least]
        shares[max(able, key=lambda i: shares[i] - exact[i])] -= 1
    return shares


# The two splits of an OpenML server that depend on the number of rows alone.
#
# A server takes no splits of ours: it makes its own when a task is first asked for. Two of its
# estimation procedures never look at a value, so rows can be ordered such that the split comes out
# as wanted. Both rules are those of ``openml/EvaluationEngine`` (``HoldoutOrderedSplitsGenerator``,
# ``HoldoutSplitsGenerator``); what a server really answers is compared after publishing.
#
# Notation: n rows are sent, T of them are test rows.

_MULTIPLIER, _INCREMENT = 0x5DEECE66D, 0xB
_MASK = (1 << 48) - 1


@dataclass(frozen=True)
class Procedure:
    """An estimation procedure of OpenML.

    Attributes
    ----------
    id : int
    name : str
        As the server calls it.
    task_type : int
        1 classification, 2 regression.
    """

    id: int
    name: str
    task_type: int

    def test_count(self, n: int) -> int:
        """Return T for n rows.

        Examples
        --------
        >>> ORDERED.test_count(1000), HOLDOUT.test_count(1000)
        (199, 330)
        """
        return n - (4 * n // 5 + 1) if self is ORDERED else 33 * n // 100

    def test_positions(self, n: int) -> np.ndarray:
        """Return the positions of the test rows, ascending, of shape (T,).

        Examples
        --------
        >>> ORDERED.test_positions(10).tolist(), HOLDOUT.test_positions(10).tolist()
        ([9], [4, 8, 9])
        """
        if self is ORDERED:  # row f is for training where f <= n - 20 n / 100
            return np.arange(n - self.test_count(n), n, dtype=np.int64)
        # HOLDOUT: the first T rows of the shuffled table are test rows
        return np.sort(weka_order(n)[: self.test_count(n)])

    def train_range(self, test: int) -> tuple[int, int]:
        """Return the fewest and the most training rows that go with T test rows.

        Examples
        --------
        >>> ORDERED.train_range(100), HOLDOUT.train_range(100)
        ((401, 405), (204, 206))
        """
        if self is ORDERED:
            return 4 * test + 1, 4 * test + 5
        fewest = -(-100 * test // 33)
        most = -(-100 * (test + 1) // 33) - 1
        return fewest - test, most - test


#: Train rows first: row f of n is for training where f <= n - 20 n / 100.
ORDERED = Procedure(28, "20% Holdout (Ordered)", 1)
#: Rows shuffled by ``Random(0)``; the first floor(33 n / 100) are for testing.
HOLDOUT = Procedure(12, "33% Holdout set", 2)


class JavaRandom:
    """``java.util.Random``, the linear congruential generator of the Java documentation.

    Parameters
    ----------
    seed : int

    Examples
    --------
    >>> random = JavaRandom(0)
    >>> [random.next_int(10) for _ in range(10)]
    [0, 8, 9, 7, 5, 3, 1, 1, 9, 4]
    """

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _MASK

    def _next(self, bits: int) -> int:
        self._state = (self._state * _MULTIPLIER + _INCREMENT) & _MASK
        return self._state >> (48 - bits)

    def next_int(self, bound: int) -> int:
        """Return the next number in 0 .. ``bound`` - 1."""
        if bound & -bound == bound:  # a power of two
            return (bound * self._next(31)) >> 31
        while True:
            drawn = self._next(31)
            value = drawn % bound
            if drawn - value + bound - 1 < 1 << 31:  # else Java's int would have overflown
                return value


def weka_order(n: int, seed: int = 0) -> np.ndarray:
    """Return the rows in the order of Weka's ``Instances.randomize(new Random(seed))``.

    Parameters
    ----------
    n : int
    seed : int
        The evaluation engine of OpenML uses 0.

    Returns
    -------
    ndarray of shape (n,), int64

    Examples
    --------
    >>> weka_order(5).tolist()
    [4, 2, 1, 3, 0]
    """
    random, order = JavaRandom(seed), list(range(n))
    for j in range(n - 1, 0, -1):
        k = random.next_int(j + 1)
        order[j], order[k] = order[k], order[j]
    return np.asarray(order, dtype=np.int64)
