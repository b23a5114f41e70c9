"""Which made windows are kept: collected as they come, and why others are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from amlb_ext.forecasting.made_parts import GA, MadePart
from amlb_ext.forecasting.source_windows import SourceWindows
from amlb_ext.forecasting.window_judge import JudgedWindows, WindowJudge
from amlb_ext.forecasting.window_moves import WindowMove


class WindowScreen:
    """Made windows that passed.

    Parameters
    ----------
    windows : SourceWindows
    judge : WindowJudge
    largest_doubt : ndarray of shape (n,)
        T's largest MASE on what is made of each source.
    """

    def __init__(
        self,
        windows: SourceWindows,
        judge: WindowJudge,
        largest_doubt: np.ndarray,
    ) -> None:
        self._windows = windows
        self._judge = judge
        self._largest_doubt = largest_doubt
        self._taken = {_key(past) for past in windows.pasts}
        self._sources: list[int] = []
        self._pasts: list[np.ndarray] = []
        self._futures: list[np.ndarray] = []
        self._moves: list[WindowMove] = []
        self._judged: list[JudgedWindows] = []
        self._dropped: Counter[str] = Counter()

    def count_kept(self) -> np.ndarray:
        """Return how many windows of each source were kept, ``(n,)``."""
        return np.bincount(self._sources, minlength=len(self._windows))

    def add(
        self,
        pasts: Sequence[np.ndarray],
        future: np.ndarray,
        sources: np.ndarray,
        moves: Sequence[WindowMove],
    ) -> None:
        """Judge some windows and keep those that pass; ``sources`` are positions of sources."""
        judged = self._judge.judge(pasts, future, self._windows.items[sources])
        is_bad = self._judge.rule.select(np.nan_to_num(judged.hardness, nan=-1.0))
        kept = []
        for k, source in enumerate(sources):
            past = pasts[k]
            if not np.isfinite(judged.scale[k]):
                reason = "without a scale"
            elif self._is_below_zero(past, future[k], int(source)):
                reason = "below zero, where the source is not"
            elif not is_bad[k]:
                reason = "on which F does not fail"
            elif judged.teacher_mase[k] > self._largest_doubt[source]:
                reason = "whose future the ensemble doubts"
            elif _key(past) in self._taken:
                reason = "that repeat another"
            else:
                kept.append(k)
                self._taken.add(_key(past))
                continue
            self._dropped[reason] += 1
        self._judged.append(judged.take(kept))
        for k in kept:
            self._sources.append(int(sources[k]))
            self._pasts.append(pasts[k])
            self._futures.append(future[k])
            self._moves.append(moves[k])

    def collected(self, *, asked: int) -> MadePart:
        """Return what was kept, source by source."""
        order = np.argsort(self._sources, kind="stable")
        chosen = np.array(self._sources, dtype=int)[order]
        judged = self._judged[0]
        for more in self._judged[1:]:
            judged = judged.join(more)
        horizon = self._windows.future.shape[1]
        return MadePart(
            kind=GA,
            sources=self._windows.items[chosen],
            pasts=tuple(self._pasts[k] for k in order),
            future=np.array([self._futures[k] for k in order]).reshape(-1, horizon),
            judged=judged.take(order),
            moves=tuple(self._moves[k] for k in order),
            asked=asked,
            dropped=dict(self._dropped),
        )

    def _is_below_zero(self, past: np.ndarray, future: np.ndarray, source: int) -> bool:
        """Whether a window has values below zero, and its source has none."""
        windows = self._windows
        least = min(windows.pasts[source].min(), windows.future[source].min())
        return bool(least >= 0 and min(past.min(), future.min()) < 0)


def _key(past: np.ndarray) -> bytes:
    return np.ascontiguousarray(past).tobytes()
