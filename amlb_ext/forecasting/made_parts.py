"""What was made: windows, what each came from, and what F and an ensemble do on it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from amlb_ext.forecasting.source_windows import SourceWindows
from amlb_ext.forecasting.window_judge import JudgedWindows
from amlb_ext.forecasting.window_moves import WindowMove


@dataclass(frozen=True, kw_only=True)
class MadePart:
    """Made windows.

    Attributes
    ----------
    kind : {'ga'}
    sources : ndarray of shape (n,), int
        Series of the window that each was made of, as positions in the panel.
    pasts : tuple of ndarray
    future : ndarray of shape (n, H)
    judged : JudgedWindows
    moves : tuple of WindowMove
        How each was moved.
    asked : int
    dropped : dict of str to int
        Windows that were not kept, by reason.
    """

    kind: str
    sources: np.ndarray
    pasts: tuple[np.ndarray, ...]
    future: np.ndarray
    judged: JudgedWindows
    moves: tuple[WindowMove, ...]
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
