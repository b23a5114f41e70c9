"""Which made windows are kept: F still fails there, and an ensemble doubts the future no more.

Notation
--------
F, T : the forecaster, and an ensemble of other methods that has not learnt from a window's series
MASE : mean absolute error of a window over its own scale
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from amlb_ext.amlb.series_rules import has_scale
from amlb_ext.core.errors import ModelError
from amlb_ext.core.rng import random_stream
from amlb_ext.core.windows import WindowRule
from amlb_ext.models.forecasters import (
    LEVELS,
    AskPasts,
    ForecastRequest,
    make_forecaster,
)
from amlb_ext.stats.window_losses import (
    scaled_errors,
    scaled_quantile_losses,
    seasonal_scale,
)
from amlb_ext.units.window_rules import reducible_hardness

#: Methods of one series in T, and the model that learns from others.
_LOCAL, _GLOBAL = ("theta", "ets"), "ridge"
#: T's error on a made window may exceed that on its source by this factor.
LABEL_SLACK = 1.1


class Teacher:
    """T at one cutoff, to be asked about made pasts.

    Parameters
    ----------
    request : ForecastRequest
        Of all real windows there.
    items : ndarray of shape (n,), int
        Their series.
    """

    def __init__(self, request: ForecastRequest, items: np.ndarray) -> None:
        self._locals = [make_forecaster(word).learn(request) for word in _LOCAL]
        rng = random_stream(request.seed, "forecasting", "teacher")
        half = rng.permutation(len(items)) % 2
        self._half_of = dict(zip(items.tolist(), half.tolist(), strict=True))
        self._globals: list[AskPasts] = []
        for own in range(2):
            others = tuple(request.pasts[k] for k in np.flatnonzero(half != own))
            try:
                learnt = make_forecaster(_GLOBAL).learn(replace(request, pasts=others))
            except ModelError:
                # too few or too short series: T is then of one series alone
                self._globals = []
                break
            assert learnt is not None
            self._globals.append(learnt)

    def means(self, pasts: Sequence[np.ndarray], items: np.ndarray) -> np.ndarray:
        """Return T's forecasts behind some pasts, ``(n, H)``; ``items`` are their series."""
        parts = [ask(pasts).mean for ask in self._locals if ask is not None]
        if self._globals:
            both = np.stack([ask(pasts).mean for ask in self._globals])
            own = np.array([self._half_of[int(item)] for item in items])
            parts.append(both[own, np.arange(len(items))])
        return np.mean(parts, axis=0)


@dataclass(frozen=True, kw_only=True)
class JudgedWindows:
    """What F and T do on some windows.

    Attributes
    ----------
    scale : ndarray of shape (n,)
        NaN where a window has none; all else is NaN there, too.
    hardness : ndarray of shape (n,)
        Of F, under the suite's rule.
    mase, teacher_mase : ndarray of shape (n,)
        Of F and T.
    """

    scale: np.ndarray
    hardness: np.ndarray
    mase: np.ndarray
    teacher_mase: np.ndarray

    def take(self, rows: Sequence[int] | np.ndarray) -> JudgedWindows:
        """Return some windows, by position."""
        chosen = np.asarray(rows, dtype=int)
        taken = {name: values[chosen] for name, values in vars(self).items()}
        return JudgedWindows(**taken)

    @classmethod
    def join(cls, blocks: Sequence[JudgedWindows]) -> JudgedWindows:
        """Return the windows of all blocks, in order; at least one block."""
        names = vars(blocks[0])
        joined = {
            name: np.concatenate([vars(block)[name] for block in blocks])
            for name in names
        }
        return cls(**joined)


@dataclass(frozen=True, kw_only=True)
class WindowJudge:
    """F and T at one cutoff, and the rule that calls windows bad.

    Attributes
    ----------
    ask : callable
        F, see :meth:`~amlb_ext.models.forecasters.Forecaster.learn`.
    teacher : Teacher
    rule : WindowRule
    season : int
    """

    ask: AskPasts
    teacher: Teacher
    rule: WindowRule
    season: int

    def judge(
        self, pasts: Sequence[np.ndarray], future: np.ndarray, items: np.ndarray
    ) -> JudgedWindows:
        """Return what F and T do on some windows whose futures are known."""
        scale = np.array([window_scale(past, self.season) for past in pasts])
        known = np.flatnonzero(np.isfinite(scale))
        hardness, mase, teacher_mase = np.full((3, len(pasts)), np.nan)
        if len(known):
            asked = [pasts[int(k)] for k in known]
            y, s = future[known], scale[known]
            answer = self.ask(asked)
            teacher = self.teacher.means(asked, items[known])
            mase[known] = scaled_errors(y, answer.mean, s)
            teacher_mase[known] = scaled_errors(y, teacher, s)
            hardness[known] = mase[known]
            if self.rule.rule == "reducible":
                hardness[known] = reducible_hardness(answer.mean, teacher, s)
            elif self.rule.rule == "sql":
                # F had quantiles when the rule was settled
                assert answer.quantiles is not None
                levels = np.array(LEVELS)
                losses = scaled_quantile_losses(y, answer.quantiles, levels, s)
                hardness[known] = losses
        return JudgedWindows(
            scale=scale, hardness=hardness, mase=mase, teacher_mase=teacher_mase
        )


def window_scale(past: np.ndarray, season: int) -> float:
    """Return s; NaN where the past is too short or repeats itself from season to season."""
    scale = seasonal_scale(past, season)
    return scale if has_scale(scale, past) else float("nan")
