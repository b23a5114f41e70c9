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
from amlb_ext.publish.procedures import Procedure

#: ``repeat``: test rows as often as the training rows allow; one repetition more, with a few test
#: rows less, where that keeps many more training rows. ``drop``: each test row once, and only as
#: many training rows as go with them.
Fit = Literal["repeat", "drop"]
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
        >>> from amlb_ext.publish.procedures import HOLDOUT
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
        repetitions = np.arange(self.repeats)
        repetition[is_test] = np.repeat(repetitions, len(self.test))
        return is_test, position, repetition


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
    >>> from amlb_ext.publish.procedures import HOLDOUT, ORDERED
    >>> choose_sizes(ORDERED, 900, 100, fit="repeat")
    (805, 100, 2)
    >>> choose_sizes(ORDERED, 900, 100, fit="drop")
    (405, 100, 1)
    >>> choose_sizes(ORDERED, 800, 1247, fit="repeat")
    (800, 199, 1)
    >>> choose_sizes(HOLDOUT, 800, 200, fit="repeat")
    (800, 197, 2)
    """
    largest = _largest_test_count(procedure, train)
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


def _largest_test_count(procedure: Procedure, train: int) -> int:
    """Return the most test rows T that so many training rows allow, by bisection."""
    low, high = 0, train
    while low < high:
        middle = (low + high + 1) // 2
        # the fewest training rows grow with T
        fewest_train, _ = procedure.train_range(middle)
        if fewest_train <= train:
            low = middle
        else:
            high = middle - 1
    return low


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
    fit : {'repeat', 'drop'}
    rng : Generator
    """
    n_train, n_test, repeats = choose_sizes(
        procedure,
        len(train_groups),
        len(test_groups),
        fit=fit,
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
    return np.sort(_draw_within(rows, groups, level=0, k=k, rng=rng))


def _draw_within(
    rows: np.ndarray,
    groups: Sequence[Sequence[object]],
    *,
    level: int,
    k: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw k of the rows, in proportion to their groups of ``level`` and of those inside."""
    # inside the innermost groups all rows are alike
    if len(rows) == 0 or len(groups[rows[0]]) <= level:
        drawn_rows = rng.choice(rows, size=k, replace=False)
        return np.asarray(drawn_rows, dtype=np.int64)
    members: dict[object, list[int]] = {}
    for row in rows:
        members.setdefault(groups[row][level], []).append(int(row))
    counts = [len(group) for group in members.values()]
    shares = _split_proportionally(counts, k)
    blocks = []
    for group, share in zip(members.values(), shares, strict=True):
        if share == 0:
            continue
        group_rows = np.asarray(group, dtype=np.int64)
        block = _draw_within(group_rows, groups, level=level + 1, k=share, rng=rng)
        blocks.append(block)
    return np.concatenate(blocks)


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
