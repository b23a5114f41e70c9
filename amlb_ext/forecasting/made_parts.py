"""What was made: windows of one kind, what each came from, and what F and an ensemble do on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from amlb_ext.forecasting.source_windows import SourceWindows
from amlb_ext.forecasting.window_judge import JudgedWindows
from amlb_ext.forecasting.window_moves import WindowMove

#: Parts of made windows, as AMLB tasks end: what operators made of bad windows, and what a
#: generator drew.
GA, SYNTHETIC = "ga", "synthetic"
MADE_KINDS = (GA, SYNTHETIC)

#: How windows of a part were made.
Operator = Literal["moves", "lags", "generator"]


@dataclass(frozen=True, kw_only=True)
class MadePart:
    """Made windows of one kind.

    Attributes
    ----------
    kind : {'ga', 'synthetic'}
    operator : {'moves', 'lags', 'generator'}
    sources : ndarray of shape (n,), int
        Series of the window that each was made of, as positions in the panel; of a generated
        window the nearest.
    pasts : tuple of ndarray
    future : ndarray of shape (n, H)
    judged : JudgedWindows
    moves : tuple of WindowMove
        How each was moved; empty for other operators.
    asked : int
    dropped : dict of str to int
        Windows that were not kept, by reason.
    """

    kind: str
    operator: Operator
    sources: np.ndarray
    pasts: tuple[np.ndarray, ...]
    future: np.ndarray
    judged: JudgedWindows
    moves: tuple[WindowMove, ...] = ()
    asked: int = 0
    dropped: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.sources)


@dataclass(frozen=True, kw_only=True)
class MadeWindows:
    """All parts, and what they were made of.

    Attributes
    ----------
    windows : SourceWindows or None
        None where nothing could be made.
    parts : tuple of MadePart
        Each with windows.
    notes : tuple of str
    """

    windows: SourceWindows | None = None
    parts: tuple[MadePart, ...] = ()
    notes: tuple[str, ...] = ()
