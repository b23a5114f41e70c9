"""Windows made from those on which F fails: moved as a whole, kept where F still fails.

Each part is an AMLB task of its own: ``ga``, what operators made of bad windows, and ``synthetic``,
what a generator drew. By default there is ``ga`` alone, made by moves of whole windows
(:mod:`~amlb_ext.forecasting.window_moves`); the preset ``literal`` moves lags
(:mod:`~amlb_ext.forecasting.literal_windows`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from amlb_ext.core.config import build_config
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.rng import random_stream
from amlb_ext.forecasting.failing_windows import FailingWindows
from amlb_ext.forecasting.forecasters import Forecaster
from amlb_ext.forecasting.made_parts import GA, MadePart, MadeWindows
from amlb_ext.forecasting.rolling import request_at
from amlb_ext.forecasting.source_windows import SourceWindows, choose_sources
from amlb_ext.forecasting.window_judge import LABEL_SLACK, Teacher, WindowJudge
from amlb_ext.forecasting.window_screen import WindowScreen
from amlb_ext.forecasting.window_search import search_moves

#: Generators by name; none is on by default.
GENERATORS = ("timevae",)
#: Rounds in which a window gets the copies that it still lacks.
ROUNDS = 3


@dataclass(frozen=True, kw_only=True)
class MakingSettings:
    """What is made.

    Attributes
    ----------
    copies : int
        Windows made of each bad one; 0 makes none.
    kappa : float
        Weight of F's error in the search for moves; 0 draws them.
    preset : {'faithful', 'literal'}
        ``literal`` moves lags and draws from the paper's VAE, as its section 6 may be read.
    generator : str
        ``timevae``, or empty for none.
    times : float
        Windows that a generator draws for each bad one; 0 draws none.
    """

    copies: int = 5
    kappa: float = 0.0
    preset: str = "faithful"
    generator: str = ""
    times: float = 5.0

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> MakingSettings:
        """Return what the settings of ``generate`` say.

        They are checked as those of tables are; unlike there, nothing is searched for or drawn
        unless it is asked for.
        """
        stages = ("preset", "search", "synthesizer")
        config = build_config(
            {stage: settings[stage] for stage in stages if stage in settings}
        )
        has_kappa = "kappa" in settings.get("search", {})
        return cls(
            copies=config.search.copies,
            kappa=float(config.search.kappa or 0.0) if has_kappa else 0.0,
            preset=config.preset,
            generator=settings.get("synthesizer", {}).get("name", ""),
            times=config.synthesizer.times,
        )

    def __post_init__(self) -> None:
        if self.preset not in ("faithful", "literal"):
            raise ConfigError(
                f"the preset {self.preset} has no meaning for series",
                "give faithful or literal",
            )
        if self.generator and self.generator not in GENERATORS:
            raise ConfigError(
                f"the synthesizer {self.generator} makes rows, not windows of series",
                "give timevae, which is experimental, or leave it out",
            )
        if self.copies < 0 or not self.kappa >= 0:
            raise ConfigError(
                f"{self.copies} copies, kappa {self.kappa}", "give 0 or more"
            )


def make_windows(
    forecaster: Forecaster,
    failing: FailingWindows,
    settings: MakingSettings,
    seed: int = 0,
) -> MadeWindows:
    """Make windows from bad ones of the latest learning origin that has enough.

    Parameters
    ----------
    forecaster : Forecaster
        F.
    failing : FailingWindows
        With its learning windows.
    settings : MakingSettings
    seed : int

    Returns
    -------
    MadeWindows
        Notes say why where nothing was made.
    """
    if not settings.copies:
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
    if settings.preset == "literal":
        from amlb_ext.forecasting.literal_windows import make_literal_windows

        parts = make_literal_windows(
            windows, failing.panel, judge, times=settings.times, seed=seed
        )
    else:
        moved = _make_moved(windows, judge, settings, seed)
        parts = [moved]
        if settings.generator and settings.times:
            from amlb_ext.forecasting.window_generator import generate_windows

            parts.append(
                generate_windows(windows, moved, judge, times=settings.times, seed=seed)
            )
    notes = [windows.note] if windows.note else []
    for part in parts:
        if not len(part):
            notes.append(f"no {part.kind} windows were kept: {_reasons(part.dropped)}")
    kept = tuple(part for part in parts if len(part))
    return MadeWindows(windows=windows, parts=kept, notes=tuple(notes))


def _reasons(dropped: dict[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in dropped.items())


def _make_moved(
    windows: SourceWindows, judge: WindowJudge, settings: MakingSettings, seed: int
) -> MadePart:
    """Move each bad window, in rounds, until it has its copies or the rounds are over."""
    rng = random_stream(seed, "forecasting", "moves")
    season = judge.season
    own = judge.judge(windows.pasts, windows.future, windows.items)
    screen = WindowScreen(windows, judge, own.teacher_mase * LABEL_SLACK)

    def ask(
        pasts: Sequence[np.ndarray], future: np.ndarray, sources: np.ndarray
    ) -> np.ndarray:
        return judge.find_hardness(pasts, future, windows.items[sources])

    missing = np.full(len(windows), settings.copies)
    for _ in range(ROUNDS):
        asked = np.repeat(np.arange(len(windows)), missing)
        moved = search_moves(
            windows, asked, ask, kappa=settings.kappa, season=season, rng=rng
        )
        screen.add(moved.pasts, moved.future, asked, moved.moves)
        missing = settings.copies - screen.count_kept()
        if not missing.any():
            break
    return screen.collected(GA, "moves", asked=len(windows) * settings.copies)
