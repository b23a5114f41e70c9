"""Windows made from those on which F fails: moved as a whole, kept where F still fails.

They are an AMLB task of their own, ``ga``. How a window is moved stands in
:mod:`~amlb_ext.making.window_moves`.

They are made of bad windows of a learning origin, whose futures end at or before the cutoff of
every test origin. So nothing that is made of them holds a value that a forecaster on test windows
must not know, and it may be learnt from, too. All are of one origin, so that in a task of made
windows no past holds the future of another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from amlb_ext.core.rng import random_stream
from amlb_ext.making.window_judge import (
    LABEL_SLACK,
    JudgedWindows,
    Teacher,
    WindowJudge,
)
from amlb_ext.making.window_moves import WindowMove, draw_move, move_window
from amlb_ext.models.forecasters import Forecaster
from amlb_ext.suite.series_manifest import GA
from amlb_ext.units.failing_windows import FailingWindows
from amlb_ext.units.origins import Windows
from amlb_ext.units.rolling import request_at

#: Windows made of each bad one.
COPIES = 5
#: Rounds in which a window gets the copies that it still lacks.
ROUNDS = 3
#: Fewer bad windows of an origin make nothing; with fewer than the second number a certificate
#: shows little, so that an earlier origin is looked at.
FEWEST_SOURCES, ENOUGH_SOURCES = 5, 10
#: More are drawn from: each costs forecasts of F.
MOST_SOURCES = 200


@dataclass(frozen=True, kw_only=True)
class SourceWindows:
    """Bad windows of one learning origin.

    Attributes
    ----------
    origin : Windows
        All windows there, the bad ones among them.
    items : ndarray of shape (n,), int
        Series of the bad windows, as positions in the panel.
    scale : ndarray of shape (n,)
    pasts : tuple of ndarray
    future : ndarray of shape (n, H)
    note : str
        What was left aside; empty where nothing was.
    """

    origin: Windows
    items: np.ndarray
    scale: np.ndarray
    pasts: tuple[np.ndarray, ...]
    future: np.ndarray
    note: str = ""

    def __len__(self) -> int:
        return len(self.items)

    @property
    def cutoff(self) -> int:
        """Calendar position of the last value of the pasts."""
        return self.origin.cutoff


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


def choose_sources(failing: FailingWindows, seed: int) -> SourceWindows | str:
    """Return the bad windows of the latest learning origin that has enough, or why there are none.

    Enough are ten; where no origin has as many, the most that one has, and at least five. At most
    200, drawn at random.
    """
    if failing.learning is None or not failing.learning.origins:
        return "there is no learning origin (--learning-origins)"
    most = -1
    for origin, is_bad in failing.learning.parts():
        # capped, so that the latest of those with enough is taken
        n_bad = min(int(is_bad.sum()), ENOUGH_SOURCES)
        if n_bad >= most:
            most, windows, chosen = n_bad, origin, np.flatnonzero(is_bad)
    if most < FEWEST_SOURCES:
        return (
            f"F fails on {most} windows of a learning origin at most, and {FEWEST_SOURCES} are "
            "needed"
        )
    note = ""
    if len(chosen) > MOST_SOURCES:
        note = f"windows are made of {MOST_SOURCES} of {len(chosen)} bad ones, drawn at random"
        rng = random_stream(seed, "forecasting", "source windows")
        chosen = np.sort(rng.choice(chosen, MOST_SOURCES, replace=False))
    items = windows.items[chosen]
    # copies: whoever holds a view of a series could look behind its end
    pasts = [failing.panel.past(int(k), windows.cutoff).copy() for k in items]
    return SourceWindows(
        origin=windows,
        items=items,
        scale=windows.scale[chosen],
        pasts=tuple(pasts),
        future=windows.future[chosen].copy(),
        note=note,
    )


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
        #: Source, past, future and move of each that was kept.
        self._kept: list[tuple[int, np.ndarray, np.ndarray, WindowMove]] = []
        self._judged: list[JudgedWindows] = []
        self._dropped: Counter[str] = Counter()

    def count_kept(self) -> np.ndarray:
        """Return how many windows of each source were kept, ``(n,)``."""
        sources = [source for source, *_ in self._kept]
        return np.bincount(sources, minlength=len(self._windows))

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
        for k, source in enumerate(sources.tolist()):
            past, own = pasts[k], self._windows
            least = min(own.pasts[source].min(), own.future[source].min())
            if not np.isfinite(judged.scale[k]):
                reason = "without a scale"
            elif least >= 0 and min(past.min(), future[k].min()) < 0:
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
                self._kept.append((source, past, future[k], moves[k]))
                continue
            self._dropped[reason] += 1
        self._judged.append(judged.take(kept))

    def collected(self, *, asked: int) -> MadePart:
        """Return what was kept, source by source."""
        chosen = np.array([source for source, *_ in self._kept], dtype=int)
        order = np.argsort(chosen, kind="stable")
        kept = [self._kept[k] for k in order]
        horizon = self._windows.future.shape[1]
        return MadePart(
            kind=GA,
            sources=self._windows.items[chosen[order]],
            pasts=tuple(past for _, past, _, _ in kept),
            future=np.array([each for _, _, each, _ in kept]).reshape(-1, horizon),
            judged=JudgedWindows.join(self._judged).take(order),
            moves=tuple(move for *_, move in kept),
            asked=asked,
            dropped=dict(self._dropped),
        )


def _key(past: np.ndarray) -> bytes:
    return np.ascontiguousarray(past).tobytes()
