"""Which rows of a fold are sent, how often and in which order, so that the split comes out right.

A server takes no splits of ours: it makes its own when a task is first asked for. Two of its
estimation procedures never look at a value, so rows can be ordered such that the split comes out
as wanted. Both rules are those of ``openml/EvaluationEngine`` (``HoldoutOrderedSplitsGenerator``,
``HoldoutSplitsGenerator``); what a server really answers is compared after publishing.

Notation: a fold has N training and M test rows; t of the first and m of the second are sent, each
of the m test rows r times, none of the training rows twice. n rows are sent in all, T of them are
test rows.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from amlb_ext.core.errors import PublishError

#: Constants of the generator of ``java.util.Random``, which has 48 bits of state.
_MULTIPLIER = 0x5DEECE66D
_INCREMENT = 0xB
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
        if self is ORDERED:
            train_count = 4 * n // 5 + 1
            return n - train_count
        return 33 * n // 100

    def test_positions(self, n: int) -> np.ndarray:
        """Return the positions of the test rows, ascending, of shape (T,).

        Examples
        --------
        >>> ORDERED.test_positions(10).tolist(), HOLDOUT.test_positions(10).tolist()
        ([9], [4, 8, 9])
        """
        test_count = self.test_count(n)
        # ORDERED: row f is for training where f <= n - 20 n / 100
        if self is ORDERED:
            return np.arange(n - test_count, n, dtype=np.int64)
        # HOLDOUT: the first T rows of the shuffled table are test rows
        return np.sort(weka_order(n)[:test_count])

    def train_range(self, test: int) -> tuple[int, int]:
        """Return the fewest and the most training rows that go with T test rows.

        Examples
        --------
        >>> ORDERED.train_range(100), HOLDOUT.train_range(100)
        ((401, 405), (204, 206))
        """
        if self is ORDERED:
            return 4 * test + 1, 4 * test + 5
        # n with floor(33 n / 100) = T: from ceil(100 T / 33) to ceil(100 (T + 1) / 33) - 1;
        # -(-a // b) is ceil(a / b) in whole numbers
        fewest_rows = -(-100 * test // 33)
        fewest_rows_of_next = -(-100 * (test + 1) // 33)
        most_rows = fewest_rows_of_next - 1
        return fewest_rows - test, most_rows - test


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
        # Java scrambles the seed: sequences of small seeds would begin alike
        self._state = (seed ^ _MULTIPLIER) & _MASK

    def next_int(self, bound: int) -> int:
        """Return the next number in 0 .. ``bound`` - 1."""
        is_power_of_two = bound & -bound == bound
        while True:
            self._state = (self._state * _MULTIPLIER + _INCREMENT) & _MASK
            # the highest 31 of 48 bits
            drawn = self._state >> 17
            # the higher bits of such a generator are the more random ones
            if is_power_of_two:
                return (bound * drawn) >> 31
            value = drawn % bound
            # where Java's int would overflow, it draws again: the last values would be too rare
            last_of_block = drawn - value + bound - 1
            if last_of_block < 1 << 31:
                return value


def weka_order(n: int) -> np.ndarray:
    """Return the rows in the order of Weka's ``Instances.randomize(new Random(0))``.

    Parameters
    ----------
    n : int

    Returns
    -------
    ndarray of shape (n,), int64

    Examples
    --------
    >>> weka_order(5).tolist()
    [4, 2, 1, 3, 0]
    """
    random = JavaRandom(0)
    order = list(range(n))
    # Fisher and Yates from the last row on, as Weka does it: other orders draw other numbers
    for j in range(n - 1, 0, -1):
        k = random.next_int(j + 1)
        order[j], order[k] = order[k], order[j]
    return np.asarray(order, dtype=np.int64)


#: ``repeat``: test rows as often as the training rows allow; one repetition more, with a few test
#: rows less, where that keeps many more training rows. ``drop``: each test row once, and only as
#: many training rows as go with them. ``all``: every row once, for a split file of our own.
Fit = Literal["repeat", "drop", "all"]
#: A share of the test rows left out counts as this many times that share of the training rows.
TEST_WEIGHT = 2.0


@dataclass(frozen=True, kw_only=True)
class SentRows:
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
        >>> test = np.array([0, 2, 3])
        >>> rows = SentRows(procedure=HOLDOUT, train=np.arange(7), test=test, repeats=1)
        >>> is_test, position, repetition = rows.layout()
        >>> position[is_test].tolist(), position[~is_test].tolist(), is_test.tolist().index(True)
        ([0, 2, 3], [0, 1, 2, 3, 4, 5, 6], 4)
        """
        n = len(self)
        is_test = np.zeros(n, dtype=bool)
        is_test[self.test_positions] = True
        # all test rows once, then all of them again, ...
        position = np.zeros(n, dtype=np.int64)
        position[~is_test] = self.train
        position[is_test] = np.tile(self.test, self.repeats)
        repetition = np.zeros(n, dtype=np.int64)
        repetition[is_test] = np.repeat(np.arange(self.repeats), len(self.test))
        return is_test, position, repetition


class AllRows(SentRows):
    """Every row of a fold once, training rows first: files have the suite's own split."""

    @property
    def test_positions(self) -> np.ndarray:
        """Where the test rows are, ascending."""
        return np.arange(len(self.train), len(self), dtype=np.int64)


def choose_sizes(
    procedure: Procedure, train: int, test: int, *, fit: Fit
) -> tuple[int, int, int]:
    """Return t, m and r.

    ``repeat`` takes the r that loses least: as many repetitions of all test rows as fit, or one
    more of some of them. 800 training and 200 test rows of a regression would lose 391 training
    rows with one repetition, and with two of 197 test rows none.

    Parameters
    ----------
    procedure : Procedure
    train, test : int
        N and M.
    fit : {'repeat', 'drop'}

    Raises
    ------
    PublishError
        Too few rows for any split.

    Examples
    --------
    >>> from amlb_ext.publish.rows import HOLDOUT, ORDERED
    >>> choose_sizes(ORDERED, 900, 100, fit="repeat")
    (805, 100, 2)
    >>> choose_sizes(ORDERED, 900, 100, fit="drop")
    (405, 100, 1)
    >>> choose_sizes(ORDERED, 800, 1247, fit="repeat")
    (800, 199, 1)
    >>> choose_sizes(HOLDOUT, 800, 200, fit="repeat")
    (800, 197, 2)
    """

    def fewest_train(count: int) -> int:
        return procedure.train_range(count)[0]

    # the most test rows T that the training rows allow: the fewest training rows grow with T
    largest = bisect.bisect_right(range(train + 1), train, key=fewest_train) - 1
    if largest < 1 or test < 1:
        raise PublishError(
            f"{train} training and {test} test rows are too few for the server's split",
            "publish other tasks with --only, or the file suite itself",
        )
    repeat_options = [1]
    if fit == "repeat":
        all_test_rows_fit = largest // test
        repeat_options = sorted({max(1, all_test_rows_fit), all_test_rows_fit + 1})
    # (loss, r, t, m): of options that lose the same the fewest repetitions
    candidates = []
    for repeats in repeat_options:
        kept_test = min(test, largest // repeats)
        _, most_train = procedure.train_range(repeats * kept_test)
        kept_train = min(train, most_train)
        lost_train = (train - kept_train) / train
        lost_test = (test - kept_test) / test
        loss = lost_train + TEST_WEIGHT * lost_test
        candidates.append((loss, repeats, kept_train, kept_test))
    _, repeats, kept_train, kept_test = min(candidates)
    return kept_train, kept_test, repeats


def choose_rows(
    procedure: Procedure,
    train_groups: Sequence[Sequence[object]],
    test_groups: Sequence[Sequence[object]],
    *,
    fit: Fit,
    rng: np.random.Generator,
) -> SentRows:
    """Choose the rows of a fold that are sent.

    Parameters
    ----------
    procedure : Procedure
    train_groups : sequence of sequences
        Per training row what must stay in proportion, the most important first: its label; empty
        for regression.
    test_groups : sequence of sequences
        The same per test row: its label, its origin.
    fit : {'repeat', 'drop', 'all'}
    rng : Generator
    """
    if fit == "all":
        return AllRows(
            procedure=procedure,
            train=np.arange(len(train_groups)),
            test=np.arange(len(test_groups)),
            repeats=1,
        )
    n_train, n_test, repeats = choose_sizes(
        procedure, len(train_groups), len(test_groups), fit=fit
    )
    # the test rows are drawn first: the order of draws is part of what was published earlier
    test = draw_rows(test_groups, n_test, rng)
    train = draw_rows(train_groups, n_train, rng)
    return SentRows(procedure=procedure, train=train, test=test, repeats=repeats)


def draw_rows(
    groups: Sequence[Sequence[object]], k: int, rng: np.random.Generator
) -> np.ndarray:
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
    >>> drawn = draw_rows(rows, 10, np.random.default_rng(0))
    >>> int((drawn >= 90).sum()), len(drawn)
    (1, 10)
    """
    rows = np.arange(len(groups), dtype=np.int64)
    if k >= len(rows):
        return rows

    def draw(rows: np.ndarray, level: int, k: int) -> np.ndarray:
        # inside the innermost groups all rows are alike
        if len(groups[rows[0]]) <= level:
            return rng.choice(rows, size=k, replace=False)
        members: dict[object, list[int]] = {}
        for row in rows:
            members.setdefault(groups[row][level], []).append(row)
        shares = _split_proportionally([len(group) for group in members.values()], k)
        blocks = []
        for group, share in zip(members.values(), shares, strict=True):
            if share:
                blocks.append(draw(np.asarray(group), level + 1, share))
        return np.concatenate(blocks)

    return np.sort(draw(rows, 0, k))


def _split_proportionally(counts: Sequence[int], k: int) -> list[int]:
    """Split k over groups by largest remainders; each gets one where k allows."""
    total = sum(counts)
    least = 1 if k >= len(counts) else 0
    exact = [k * count / total for count in counts]
    shares = [max(least, int(value)) for value in exact]

    def remainder(group: int) -> float:
        return exact[group] - shares[group]

    groups = range(len(counts))
    by_remainder = sorted(groups, key=remainder, reverse=True)
    while sum(shares) < k:
        for group in by_remainder:
            if sum(shares) < k and shares[group] < counts[group]:
                shares[group] += 1
    # the minimum of one took too many: give back from the most favoured
    while sum(shares) > k:
        reducible = [group for group in groups if shares[group] > least]
        most_favoured = min(reducible, key=remainder)
        shares[most_favoured] -= 1
    return shares
