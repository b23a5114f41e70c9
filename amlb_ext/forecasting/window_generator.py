"""Windows that a generator of series draws: experimental, and off by default."""

from __future__ import annotations

import numpy as np

from amlb_ext.core.rng import random_stream
from amlb_ext.forecasting.literal_windows import nearest_rows
from amlb_ext.forecasting.made_parts import SYNTHETIC, MadePart
from amlb_ext.forecasting.source_windows import SourceWindows
from amlb_ext.forecasting.window_judge import WindowJudge
from amlb_ext.forecasting.window_moves import count_decimals
from amlb_ext.forecasting.window_screen import WindowScreen

#: Seasons of a drawn past, within these bounds of values.
_SEASONS, _FEWEST, _MOST = 5, 24, 168


def generate_windows(
    windows: SourceWindows,
    moved: MadePart,
    judge: WindowJudge,
    *,
    times: float,
    seed: int,
) -> MadePart:
    """Learn from bad windows and what was made of them, and draw ``times`` as many as are bad.

    A drawn window is put on centre and scale of the nearest bad one. The ensemble's opinion is
    not asked: a drawn future moved with no real one.
    """
    from amlb_ext.synthesizers.time_vae import TimeVAE

    season, horizon = judge.season, windows.future.shape[1]
    wanted = min(max(_SEASONS * season, _FEWEST), _MOST)
    length = min(wanted, min(len(past) for past in windows.pasts))
    centre = np.array([past[-season:].mean() for past in windows.pasts])
    source_of = {int(item): k for k, item in enumerate(windows.items)}

    def scaled(past: np.ndarray, future: np.ndarray, source: int) -> np.ndarray:
        values = np.r_[past[-length:], future]
        return (values - centre[source]) / windows.scale[source]

    bad = []
    for source, past in enumerate(windows.pasts):
        bad.append(scaled(past, windows.future[source], source))
    made = []
    for past, future, item in zip(
        moved.pasts, moved.future, moved.sources, strict=True
    ):
        made.append(scaled(past, future, source_of[int(item)]))

    rng = random_stream(seed, "forecasting", "timevae")
    model = TimeVAE(season).fit(np.array(bad + made), rng)
    n_drawn = max(1, round(times * len(windows)))
    drawn = model.sample(n_drawn, rng)
    nearest = nearest_rows(drawn, np.array(bad))
    pasts, futures = [], []
    for row, source in zip(drawn, nearest, strict=True):
        values = row * windows.scale[source] + centre[source]
        values = np.round(values, count_decimals(windows.pasts[source]))
        pasts.append(values[:-horizon].copy())
        futures.append(values[-horizon:])
    screen = WindowScreen(windows, judge)
    screen.add(pasts, np.array(futures), nearest)
    return screen.collected(SYNTHETIC, "generator", asked=n_drawn)
