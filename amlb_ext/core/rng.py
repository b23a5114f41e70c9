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
    """
    text = "\x1f".join([str(int(seed)), *(str(part) for part in key)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def random_stream(seed: int, *key: str | int) -> np.random.Generator:
    """Return the random generator of ``key``; see :func:`derive_seed`.

    Examples
    --------
    >>> float(random_stream(0, "a").random()) == float(random_stream(0, "a").random())
    True
    """
    return np.random.default_rng(derive_seed(seed, *key))


def draw_int_seed(rng: np.random.Generator) -> int:
    """Draw a 31-bit seed for a library that wants an integer ``random_state``."""
    return int(rng.integers(0, 2**31 - 1))
