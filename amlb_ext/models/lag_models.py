"""Ridge and boosting on scaled lags, learnt from many series, one model for each step ahead.

Each window is put on one scale first: lags minus the mean of the last season, over the window's own
scale s. So a series of millions and one of units teach the same model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge

from amlb_ext.core.errors import ModelError
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.stats.window_losses import seasonal_scale

#: Lags: two seasons, within these bounds.
_FEWEST_LAGS, _MOST_LAGS = 8, 64
#: Windows of one series at most, and of all.
_WINDOWS_EACH, _MOST_WINDOWS = 12, 6_000
#: A scaled target beyond this is a series of nearly no scale, and would teach nothing else.
_LARGEST_TARGET = 20.0
#: Part of the windows that the sizes of errors are seen on.
_HELD_OUT = 0.2


class LagModel:
    """A direct model on scaled lags.

    Parameters
    ----------
    kind : str
        ``ridge`` or ``boosting``.
    season : int
    seed : int
    """

    def __init__(self, kind: str, *, season: int, seed: int = 0) -> None:
        self.kind = kind
        self.season = season
        self.seed = seed

    def fit(
        self, pasts: Sequence[np.ndarray], horizon: int, levels: Sequence[float]
    ) -> LagModel:
        """Learn from the pasts of series; a fifth of the windows tells how large errors are.

        Raises
        ------
        ModelError
            The pasts hold fewer than 20 windows to learn from.
        """
        lags, targets, owners = self._windows(pasts, horizon)
        if len(lags) < 20:
            raise ModelError(
                f"{self.kind} finds {len(lags)} windows of {self.season} + {horizon} values to "
                "learn from, it needs 20",
                "give more or longer series, or a local baseline such as theta",
            )
        rng = random_stream(self.seed, "forecasting", "held out")
        # by series: windows of one series overlap
        members = np.unique(owners)
        n_held_out = max(1, int(_HELD_OUT * len(members)))
        held_out = np.isin(owners, rng.permutation(members)[:n_held_out])
        if held_out.all():  # a single series
            held_out = np.arange(len(owners)) >= (1 - _HELD_OUT) * len(owners)
        self._fit_steps(lags[~held_out], targets[~held_out])
        errors = targets[held_out] - self._predict_steps(lags[held_out])
        #: (H, Q) quantiles of the errors, in scales
        self.error_quantiles_ = np.quantile(errors, levels, axis=0).T
        return self

    def predict(self, pasts: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return means ``(n, H)`` and quantiles ``(n, H, Q)`` behind some pasts."""
        rows = []
        centres, scales = np.empty(len(pasts)), np.empty(len(pasts))
        for position, past in enumerate(pasts):
            row, centres[position], scales[position] = self._scaled_lags(past)
            rows.append(row)
        scaled = self._predict_steps(np.array(rows))
        mean = scaled * scales[:, None] + centres[:, None]
        spread = self.error_quantiles_[None] * scales[:, None, None]
        return mean, mean[:, :, None] + spread

    @property
    def n_lags(self) -> int:
        """How many of the last values the model sees."""
        return min(max(2 * self.season, _FEWEST_LAGS), _MOST_LAGS)

    def _scaled_lags(self, past: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Return the lags of a past, and the centre and scale that they were put on."""
        scale = seasonal_scale(past, self.season)
        if not scale > 0:
            scale = 1.0
        centre = float(past[-self.season :].mean())
        lags = past[-self.n_lags :]
        missing = self.n_lags - len(lags)
        if missing:
            # a short past is continued backwards by its first value
            lags = np.r_[np.full(missing, lags[0]), lags]
        scaled = np.clip((lags - centre) / scale, -_LARGEST_TARGET, _LARGEST_TARGET)
        return scaled, centre, scale

    def _windows(
        self, pasts: Sequence[np.ndarray], horizon: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return lags ``(k, L)``, targets ``(k, H)`` and series ``(k,)`` of learning windows."""
        per_series = max(2, min(_WINDOWS_EACH, _MOST_WINDOWS // max(len(pasts), 1)))
        if len(pasts) < 50:
            per_series = 60
        lags, targets, owners = [], [], []
        step = max(1, horizon // 2)
        for owner, past in enumerate(pasts):
            last_end = len(past) - horizon
            ends = range(last_end, self.season, -step)
            for end in list(ends)[:per_series]:
                row, centre, scale = self._scaled_lags(past[:end])
                target = (past[end : end + horizon] - centre) / scale
                if np.abs(target).max() <= _LARGEST_TARGET:
                    lags.append(row)
                    targets.append(target)
                    owners.append(owner)
        shape = (-1, self.n_lags)
        found = np.array(lags).reshape(shape), np.array(targets).reshape(-1, horizon)
        series = np.array(owners, dtype=int)
        if len(series) <= _MOST_WINDOWS:
            return *found, series
        rng = random_stream(self.seed, "forecasting", "windows")
        chosen = np.sort(rng.choice(len(series), _MOST_WINDOWS, replace=False))
        return found[0][chosen], found[1][chosen], series[chosen]

    def _fit_steps(self, lags: np.ndarray, targets: np.ndarray) -> None:
        self.models_: list[Any]
        if self.kind == "ridge":
            self.models_ = [Ridge(10.0).fit(lags, targets)]
            return
        self.models_ = []
        for step in range(targets.shape[1]):
            model = HistGradientBoostingRegressor(
                max_iter=60,
                learning_rate=0.08,
                max_leaf_nodes=15,
                early_stopping=False,
                random_state=derive_int_seed(self.seed, "forecasting", "step", step),
            )
            self.models_.append(model.fit(lags, targets[:, step]))

    def _predict_steps(self, lags: np.ndarray) -> np.ndarray:
        predictions = [model.predict(lags) for model in self.models_]
        if self.kind == "ridge":
            return np.asarray(predictions[0]).reshape(len(lags), -1)
        return np.column_stack(predictions)
