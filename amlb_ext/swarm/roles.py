"""Which real rows serve for what: takers, generators, teacher and auditor see disjoint rows."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from amlb_ext.core.errors import DataError

#: Shares of a fold's training rows, in the order of :class:`Roles`.
SHARES = (0.15, 0.40, 0.25, 0.20)
#: Rows that each role needs unless the user allows fewer.
LEAST_ROWS = 300


@dataclass(frozen=True, kw_only=True)
class Roles:
    """Positions of the training rows, by what they serve for.

    Attributes
    ----------
    takers : ndarray of int
        Rows on which the models are fitted that are tested.
    generator : ndarray of int
        Rows that the generators learn; no taker saw them, so the takers are scored on them too.
    teacher : ndarray of int
        Rows of the teacher, who labels made rows.
    auditor : ndarray of int
        Rows of the auditor, who judges the labels in the end, and of the re-fitted takers.
    """

    takers: np.ndarray
    generator: np.ndarray
    teacher: np.ndarray
    auditor: np.ndarray


def deal_roles(
    y: np.ndarray,
    n_classes: int,
    rng: np.random.Generator,
    least_rows: int = LEAST_ROWS,
) -> Roles:
    """Deal rows to the four roles, each class in equal shares.

    A role that would get fewer than ``least_rows`` is lifted to them, at the cost of the others.

    Parameters
    ----------
    y : ndarray of shape (n,)
    n_classes : int
        C, or 0 for regression.
    rng : numpy.random.Generator
    least_rows : int

    Raises
    ------
    DataError
        Fewer than ``least_rows`` rows for each role.

    Examples
    --------
    >>> y = np.arange(4000) % 2
    >>> roles = deal_roles(y, 2, np.random.default_rng(0))
    >>> [len(rows) for rows in (roles.takers, roles.generator, roles.teacher, roles.auditor)]
    [600, 1600, 1000, 800]
    """
    n = len(y)
    if n < len(SHARES) * least_rows:
        raise DataError(
            f"{n} training rows are too few: takers, generators, teacher and auditor need "
            f"{least_rows} rows each, {len(SHARES) * least_rows} in all",
            f"take a larger table, or allow fewer with --least-rows {n // len(SHARES)}",
        )
    sizes = _role_sizes(n, least_rows)
    shuffled = rng.permutation(n)
    if n_classes:
        # class after class: every role is spread evenly over this order, hence over each class
        shuffled = shuffled[np.argsort(y[shuffled], kind="stable")]
    role_of = _spread(sizes, n)
    names = [field.name for field in fields(Roles)]
    return Roles(
        **{
            name: np.sort(shuffled[role_of == number])
            for number, name in enumerate(names)
        }
    )


def _role_sizes(n: int, least_rows: int) -> list[int]:
    """Return how many rows each role gets: its share, or the least, with the rest shared out."""
    spare = n - len(SHARES) * least_rows
    wanted = [max(0.0, share * n - least_rows) for share in SHARES]
    total = sum(wanted) or 1.0
    sizes = [least_rows + int(spare * want / total) for want in wanted]
    # what rounding left over goes to the generators
    sizes[1] += n - sum(sizes)
    return sizes


def _spread(sizes: list[int], n: int) -> np.ndarray:
    """Return a role for each position, every role spread evenly over all positions."""
    places = []
    for size in sizes:
        places.append((np.arange(size) + 0.5) / size)
    roles = np.repeat(np.arange(len(sizes)), sizes)
    order = np.argsort(np.concatenate(places), kind="stable")
    return roles[order][:n]
