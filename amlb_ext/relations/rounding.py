"""How numbers are rounded: to decimals, to significant digits, or to single precision.

A number such as ``.833333`` shows its rounding: no real value of its column has more digits. A made
number is rounded in the same way, and an equality of columns may miss by what rounding takes away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from amlb_ext.relations.conditions import tolerance_at

#: Up to so many decimals a number may lose what the scaling of a column and back takes.
FEW_DECIMALS = 6
#: A double has 15 digits that are its own; every sixteenth needs no more by chance.
MOST_DIGITS = 15
#: The smallest number of a file has not more decimals than this.
MOST_DECIMALS = 30
#: Numbers on which a rounding is tried before all are.
FIRST_TRIED = 50
EPSILON = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Rounding:
    """How the numbers of a column are rounded; without decimals and digits to single precision.

    Attributes
    ----------
    decimals : int or None
        Decimals that no number exceeds.
    digits : int or None
        Significant digits that no number exceeds, where there are more than six decimals.

    Examples
    --------
    >>> Rounding(decimals=8, digits=7).round(np.array([44 + 2 / 9, 1 / 9])).tolist()
    [44.22222, 0.1111111]
    >>> Rounding().round(np.array([0.1])).tolist()
    [0.10000000149011612]
    """

    decimals: int | None = None
    digits: int | None = None

    def round(self, numbers: np.ndarray) -> np.ndarray:
        """Return rounded numbers; a missing one stays missing."""
        if self.decimals is None and self.digits is None:
            return np.asarray(numbers, dtype=np.float32).astype(float)
        rounded = np.asarray(numbers, dtype=float)
        if self.digits is not None:
            rounded = _round_digits(rounded, self.digits)
        if self.decimals is not None:
            rounded = np.round(rounded, self.decimals)
        return rounded

    def breaks(self, numbers: np.ndarray) -> np.ndarray:
        """Return which numbers have more digits than the rounding leaves, ``(n,)`` bool."""
        room = tolerance_at(numbers)
        if self.decimals is None or self.decimals > FEW_DECIMALS:
            room = 4 * EPSILON * np.abs(numbers)
        if self.digits is not None:
            room = 2 * EPSILON * np.abs(numbers)
        lost = np.abs(numbers - self.round(numbers))
        return ~np.isnan(numbers) & (lost > room)

    def half_unit(self, numbers: np.ndarray) -> float:
        """Return what rounding changes the largest of some numbers by, at most."""
        largest = float(np.nanmax(np.abs(numbers), initial=0.0))
        if self.decimals is None and self.digits is None:
            return float(np.spacing(np.float32(largest))) / 2
        units = [0.0]
        if self.decimals is not None:
            units.append(10.0**-self.decimals)
        if self.digits is not None and largest:
            units.append(10.0 ** (np.floor(np.log10(largest)) + 1 - self.digits))
        unit = max(units)
        # single precision that was printed is as rough as it was, however many digits it has
        spacing = float(np.spacing(np.float32(largest)))
        if unit < spacing and _are_printed_singles(numbers):
            unit = spacing
        return unit / 2


def learn_rounding(values: np.ndarray) -> Rounding | None:
    """Return how numbers are rounded; None for measurements in double precision.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Without missing numbers.

    Examples
    --------
    >>> learn_rounding(np.array([1.25, 3.5]))
    Rounding(decimals=2, digits=None)
    >>> learn_rounding(np.array([44.22222, 0.11111111, 2.9802322e-08]))
    Rounding(decimals=15, digits=8)
    >>> learn_rounding(np.random.default_rng(0).normal(size=9)) is None
    True
    """
    # a number such as 0.1 is itself no decimal fraction, hence the tolerance
    decimals = _count_decimals(values, tolerance_at(values), range(FEW_DECIMALS + 1))
    if decimals is not None:
        return Rounding(decimals)
    room = 4 * EPSILON * np.abs(values)
    digits = _count_digits(values)
    if digits is not None:
        every = range(FEW_DECIMALS + 1, MOST_DECIMALS)
        return Rounding(_count_decimals(values, room, every), digits)
    if np.array_equal(Rounding().round(values), values):
        return Rounding()
    # beyond these the unit of a decimal is hardly larger than what a double loses
    last = -np.log10(1000 * EPSILON * np.abs(values).max())
    decimals = _count_decimals(values, room, range(FEW_DECIMALS + 1, int(last) + 1))
    return None if decimals is None else Rounding(decimals)


def half_unit_of(numbers: np.ndarray) -> float:
    """Return by how much rounding changed the numbers of a column at most; 0 if it did not.

    Examples
    --------
    >>> half_unit_of(np.array([1.25, np.nan, 3.5]))
    0.005
    """
    values = np.unique(numbers[~np.isnan(numbers)])
    rounding = learn_rounding(values) if len(values) else None
    return 0.0 if rounding is None else rounding.half_unit(values)


def _are_printed_singles(numbers: np.ndarray) -> bool:
    """Return whether numbers look like printed single precision: nearest to it, and no longer."""
    known = numbers[~np.isnan(numbers)]
    some = known[:: max(1, len(known) // FIRST_TRIED)].tolist()
    return all(float(str(np.float32(value))) == value for value in some)


def _count_decimals(values: np.ndarray, room: np.ndarray, counts: range) -> int | None:
    """Return the first count of decimals to which all values are rounded."""
    for decimals in counts:
        lost = np.abs(values - np.round(values, decimals))
        if np.all(lost <= room):
            return decimals
    return None


def _count_digits(values: np.ndarray) -> int | None:
    """Return the significant digits that no value exceeds; None where one has all of a double."""
    some = values[:: max(1, len(values) // FIRST_TRIED)]
    for tried in (some, values):
        # from the fewest digits that the texts of the values have
        texts = [f"{value:.{MOST_DIGITS - 1}e}" for value in tried.tolist()]
        if any(float(text) != value for text, value in zip(texts, tried, strict=True)):
            return None
        mantissas = [text.partition("e")[0].lstrip("-") for text in texts]
        # a mantissa has one digit more than decimals, and a point
        digits = max(
            len(mantissa.rstrip("0").replace(".", "")) for mantissa in mantissas
        )
    return digits


def _round_digits(numbers: np.ndarray, digits: int) -> np.ndarray:
    # as text, because no power of ten below one is exact
    texts = [f"{number:.{digits - 1}e}" for number in numbers.tolist()]
    return np.array(texts, dtype=float)
