"""Windows made from those on which F fails: moved as a whole, kept where F still fails.

They are an AMLB task of their own, ``ga``. How a window is moved stands in
:mod:`~amlb_ext.forecasting.window_moves`.
"""

from __future__ import annotations

import numpy as np

from amlb_ext.core.rng import random_stream
from amlb_ext.forecasting.failing_windows import FailingWindows
from amlb_ext.forecasting.forecasters import Forecaster
from amlb_ext.forecasting.made_parts import MadePart, MadeWindows
from amlb_ext.forecasting.rolling import request_at
from amlb_ext.forecasting.source_windows import SourceWindows, choose_sources
from amlb_ext.forecasting.window_judge import LABEL_SLACK, Teacher, WindowJudge
from amlb_ext.forecasting.window_moves import draw_move, move_window
from amlb_ext.forecasting.window_screen import WindowScreen

#: Windows made of each bad one.
COPIES = 5
#: Rounds in which a window gets the copies that it still lacks.
ROUNDS = 3


def make_windows(
    forecaster: Forecaster,
    failing: FailingWindows,
    copies: int = COPIES,
    seed: int = 0,
) -> MadeWindows:
    """Make windows from bad ones of the latest learning origin that has enough.

    Parameters
    ----------
    forecaster : Forecaster
        F.
    failing : FailingWindows
        With its learning windows.
    copies : int
        Windows made of each bad one; 0 makes none.
    seed : int

    Returns
    -------
    MadeWindows
        Notes say why where nothing was made.
    """
    if not copies:
        return MadeWindows()
    windows = choose_sources(failing, seed)
    if isinstance(windows, str):
        return MadeWindows(notes=(f"no windows were made: {windows}",))
    request = request_at(failing.panel, windows.origin, seed)
    ask = forecaster.learn(request)
    if ask is None:
        why = "F is a file of forecasts and cannot be asked"
        return MadeWindows(notes=(f"no windows were made: {why}",))
    judge = WindowJudge(
        ask=ask,
        teacher=Teacher(request, windows.origin.items),
        rule=failing.rule,
        season=failing.panel.season,
    )
    part = _make_moved(windows, judge, copies, seed)
    notes = [windows.note] if windows.note else []
    if not len(part):
        why = ", ".join(f"{count} {reason}" for reason, count in part.dropped.items())
        notes.append(f"no {part.kind} windows were kept: {why}")
        return MadeWindows(windows=windows, notes=tuple(notes))
    return MadeWindows(windows=windows, parts=(part,), notes=tuple(notes))


def _make_moved(
    windows: SourceWindows, judge: WindowJudge, copies: int, seed: int
) -> MadePart:
    """Move each bad window, in rounds, until it has its copies or the rounds are over."""
    rng = random_stream(seed, "forecasting", "moves")
    own = judge.judge(windows.pasts, windows.future, windows.items)
    screen = WindowScreen(windows, judge, own.teacher_mase * LABEL_SLACK)
    missing = np.full(len(windows), copies)
    for _ in range(ROUNDS):
        sources = np.repeat(np.arange(len(windows)), missing)
        moves = [draw_move(rng) for _ in sources]
        pasts, futures = [], []
        for source, move in zip(sources, moves, strict=True):
            past, future = move_window(
                windows.pasts[source],
                windows.future[source],
                move,
                season=judge.season,
                scale=float(windows.scale[source]),
            )
            pasts.append(past)
            futures.append(future)
        future = np.array(futures).reshape(len(moves), -1)
        screen.add(pasts, future, sources, moves)
        missing = copies - screen.count_kept()
        if not missing.any():
            break
    return screen.collected(asked=len(windows) * copies)
