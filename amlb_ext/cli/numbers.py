"""Numbers on the command line: of the right type, finite and in range before anything starts.

A flag of a setting (:mod:`amlb_ext.cli.flags`) is checked by its field; these are for the others.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return what argparse reads a whole number with.

    Parameters
    ----------
    least : int
    most : int, optional

    Examples
    --------
    >>> whole_number(0)("12")
    12
    >>> whole_number(0)("-3")
    Traceback (most recent call last):
    ...
    argparse.ArgumentTypeError: -3 is not a whole number from 0 on
    """
    bounds = f"from {least} on" if most is None else f"from {least} to {most}"

    def read(text: str) -> int:
        problem = argparse.ArgumentTypeError(f"{text} is not a whole number {bounds}")
        # int() takes "1_000" and digits of other scripts
        if not text.removeprefix("-").isdecimal() or not text.isascii():
            raise problem
        value = int(text) if len(text) < 20 else least - 1
        if value < least or (most is not None and value > most):
            raise problem
        return value

    return read


def real_number(
    above: float = -math.inf, below: float = math.inf, *, or_equal: bool = False
) -> Callable[[str], float]:
    """Return what argparse reads a finite number with.

    Parameters
    ----------
    above, below : float
        Between which it must lie.
    or_equal : bool
        Whether it may be ``above`` itself.

    Examples
    --------
    >>> real_number(0, 1)("0.95"), real_number(0, or_equal=True)("0")
    (0.95, 0.0)
    >>> real_number(0, 1)("2")
    Traceback (most recent call last):
    ...
    argparse.ArgumentTypeError: 2 is not a number above 0 and below 1
    """
    bounds = []
    if math.isfinite(above):
        bounds.append(f"of {above:g} or more" if or_equal else f"above {above:g}")
    if math.isfinite(below):
        bounds.append(f"below {below:g}")
    wanted = f"a number {' and '.join(bounds)}" if bounds else "a finite number"

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        is_inside = above < value < below or (or_equal and value == above)
        if not (is_inside and math.isfinite(value)):
            raise argparse.ArgumentTypeError(f"{text} is not {wanted}")
        return value

    return read


#: Reads a random seed; the bound is that of the setting.
SEED = whole_number(0, 2**31 - 1)
