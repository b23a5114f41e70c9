"""The two estimation procedures of OpenML whose splits depend on the number of rows alone.

A server takes no splits of ours: it makes its own when a task is first asked for. Two of its
estimation procedures never look at a value, so rows can be ordered such that the split comes out
as wanted. Both rules are those of ``openml/EvaluationEngine`` (``HoldoutOrderedSplitsGenerator``,
``HoldoutSplitsGenerator``); what a server really answers is compared after publishing.

Notation: n rows are sent, T of them are test rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
        shuffled = weka_order(n)
        return np.sort(shuffled[:test_count])

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

    def _next_bits(self, bits: int) -> int:
        """Advance the state and return its highest bits."""
        state = self._state * _MULTIPLIER + _INCREMENT
        self._state = state & _MASK
        return self._state >> (48 - bits)

    def next_int(self, bound: int) -> int:
        """Return the next number in 0 .. ``bound`` - 1."""
        is_power_of_two = bound & -bound == bound
        # the higher bits of such a generator are the more random ones
        if is_power_of_two:
            return (bound * self._next_bits(31)) >> 31
        while True:
            drawn = self._next_bits(31)
            value = drawn % bound
            # where Java's int would overflow, it draws again: the last values would be too rare
            last_of_block = drawn - value + bound - 1
            if last_of_block < 1 << 31:
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
    random = JavaRandom(seed)
    order = list(range(n))
    # Fisher and Yates from the last row on, as Weka does it: other orders draw other numbers
    for j in range(n - 1, 0, -1):
        k = random.next_int(j + 1)
        order[j], order[k] = order[k], order[j]
    return np.asarray(order, dtype=np.int64)
