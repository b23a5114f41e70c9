"""Random streams keyed by (seed, task, fold, stage), never shared.

A stream depends on its key alone, so the order in which parallel jobs finish, the number of
workers and the size of a chunk cannot change a byte of the result.
"""

from __future__ import annotations

import hashlib

import numpy as np


def derive_seed(seed: int, *key: str | int) -> int:
    """Return a 63-bit seed for ``key`` under the user's ``seed``.

    Parameters
    ----------
    seed : int
        The user's seed.
    *key : str or int
        What the stream is for, e.g. task name, fold, stage.

    Returns
    -------
    int
        Between 0 and 2**63 - 1; the same on every machine.

    Examples
    --------
    >>> derive_seed(1, "toy", 0, "search") == derive_seed(1, "toy", 0, "search")
    True
    >>> derive_seed(1, "toy", 0, "search") == derive_seed(1, "toy", 1, "search")
    False
    >>> derive_seed(1, "a", "b0") == derive_seed(1, "ab", "0")
    False
    """
    # Joined by the ASCII unit separator, so that ("ab", "c") and ("a", "bc") differ. Python's own
    # hash() of a text would change with every process.
    parts = [str(int(seed))]
    parts += [str(part) for part in key]
    digest = hashlib.sha256("\x1f".join(parts).encode()).digest()
    number = int.from_bytes(digest[:8], "big")
    # 63 of the 64 bits: the seed is never negative, also as an int64.
    return number >> 1


def derive_int_seed(seed: int, *key: str | int) -> int:
    """Return a 31-bit seed for ``key``, for a library that takes only such a ``random_state``.

    Examples
    --------
    >>> derive_int_seed(1, "toy") == derive_seed(1, "toy") % 2**31
    True
    """
    return derive_seed(seed, *key) % 2**31


def random_stream(seed: int, *key: str | int) -> np.random.Generator:
    """Return the random generator of ``key``; see :func:`derive_seed`.

    Examples
    --------
    >>> float(random_stream(0, "a").random()) == float(random_stream(0, "a").random())
    True
    """
    return np.random.default_rng(derive_seed(seed, *key))


def draw_int_seed(rng: np.random.Generator) -> int:
    """Draw a 31-bit seed for a library that takes only an integer as ``random_state``."""
    return int(rng.integers(0, 2**31 - 1))
