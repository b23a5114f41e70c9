"""Numbers as people read them, on the page and in the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd


def known(value: Any) -> bool:
    """Return whether there is a value: not None, not NaN, not empty text."""
    if value is None or value is pd.NA or value is pd.NaT:
        return False
    if isinstance(value, (float, np.floating)):
        return math.isfinite(value)
    return value != "" if isinstance(value, str) else True


def number(value: Any, sign: bool = False, digits: int = 3) -> str:
    """Return a number with the digits that count, a dash where there is none.

    Examples
    --------
    >>> number(-0.012345), number(12345), number(float("nan")), number(0.5, sign=True)
    ('−0.0123', '12 345', '–', '+0.5')
    """
    if not known(value):
        return "–"
    if isinstance(value, (int, np.integer)) or abs(value) >= 1000:
        text = f"{value:,.0f}".replace(",", " ")
    else:
        text = f"{value:.{digits}g}".replace("e-0", "e-")
    return ("+" if sign and value > 0 else "") + text.replace("-", "−")


def percent(value: Any, unit: str = " %") -> str:
    """Return a share in percent.

    Examples
    --------
    >>> percent(-0.1834), percent(0.004), percent(None)
    ('−18 %', '0.4 %', '–')
    """
    if not known(value):
        return "–"
    if abs(value) < 0.0005:  # neither -0.0 nor 0.0
        value = 0.0
    digits = 0 if abs(value) >= 0.0995 or value == 0 else 1
    return f"{100 * value:.{digits}f}{unit}".replace("-", "−")


def estimate(row: Mapping[str, Any]) -> str:
    """Return a difference and its interval, with the digits that the interval's width allows.

    Examples
    --------
    >>> estimate({"difference": -0.04051, "low": -0.0463, "high": -0.0346})
    '−0.0405 (−0.0463 to −0.0346)'
    >>> estimate({"difference": 0.2, "low": float("nan"), "high": float("nan")})
    '+0.2 (no interval)'
    """
    value, low, high = row["difference"], row["low"], row["high"]
    if not (known(low) and known(high) and known(value)):
        return f"{number(value, sign=True)} (no interval)" if known(value) else "no estimate"
    half = max((high - low) / 2, 1e-9)
    digits = min(max(1 - math.floor(math.log10(half)), 0), 9)
    text = f"{value:+.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
    return text.replace("-", "−")


def p_value(value: Any) -> str:
    """Return a p-value; tiny ones are only said to be tiny.

    Examples
    --------
    >>> p_value(0.0312), p_value(1e-9), p_value(float("nan"))
    ('0.031', '< 0.001', '–')
    """
    if not known(value):
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.2g}"


def cell(value: Any) -> str:
    """Return any value of a table as plain text.

    Examples
    --------
    >>> cell(True), cell(("a", 0.25)), cell(None), cell("x")
    ('yes', 'a, 0.25', '–', 'x')
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {cell(inner)}" for key, inner in value.items())
    if isinstance(value, (list, tuple, np.ndarray)):
        return ", ".join(cell(inner) for inner in value)
    if not known(value):
        return "–"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    return number(value) if isinstance(value, (int, float, np.number)) else str(value)
