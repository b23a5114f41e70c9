"""F on the windows of all origins: which are bad, and what each counts where F fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd

from amlb_ext.core.display import format_decimals, format_percent
from amlb_ext.core.errors import DataError
from amlb_ext.core.losses import Loss
from amlb_ext.core.memory import release_memory
from amlb_ext.core.rng import random_stream
from amlb_ext.core.unit import WINDOW
from amlb_ext.core.windows import LeftOut, Origins, WindowRule
from amlb_ext.models.forecasters import Forecaster
from amlb_ext.sources.panel import Panel
from amlb_ext.stats.window_losses import MASE
from amlb_ext.units.judged import FEWEST_CLUSTERS
from amlb_ext.units.origins import (
    NO_SCALE,
    Windows,
    cut_windows,
    split_by_origin,
)
from amlb_ext.units.past_features import FEATURES, past_features
from amlb_ext.units.region import GROUPS, Part, RegionWeights, cross_fit
from amlb_ext.units.rolling import RolledForecasts, ensemble_means, roll_forecaster
from amlb_ext.units.window_rules import (
    check_rule,
    reducible_hardness,
    settle_window_rule,
)

#: Where so small a share of the windows holds half of F's loss, means say little of the others.
_FEW_HEAVY = 0.05
#: Fewer bad windows teach no region.
FEWEST_BAD = 10


@dataclass(frozen=True, kw_only=True)
class LearningWindows:
    """The windows of the learning origins: what may be looked at, futures included.

    Attributes
    ----------
    origins : tuple of Windows
        Their futures end at or before the cutoff of every test origin.
    is_bad : ndarray of shape (N,), bool
        Of all of them, origin by origin.
    """

    origins: tuple[Windows, ...]
    is_bad: np.ndarray

    def parts(self) -> list[tuple[Windows, np.ndarray]]:
        """Return each origin's windows, and which of them are bad."""
        flags = split_by_origin(self.is_bad, self.origins)
        return list(zip(self.origins, flags, strict=True))


@dataclass(frozen=True, kw_only=True)
class FailingWindows:
    """The windows of the test origins, and what F does on them.

    Attributes
    ----------
    panel : Panel
    origins : Origins
    tests : tuple of Windows
        One for each test origin.
    forecasts : RolledForecasts
        F's, at test origins.
    rule : WindowRule
    hardness : ndarray of shape (n,)
    is_bad : ndarray of shape (n,), bool
    weighting : RegionWeights
    left_out : tuple of LeftOut
        Series that take no part at some test origin, each once.
    learning : LearningWindows or None
        None where the windows were read from a suite.
    """

    panel: Panel
    origins: Origins
    tests: tuple[Windows, ...]
    forecasts: RolledForecasts
    rule: WindowRule
    hardness: np.ndarray
    is_bad: np.ndarray
    weighting: RegionWeights
    left_out: tuple[LeftOut, ...]
    learning: LearningWindows | None = None

    @property
    def items(self) -> np.ndarray:
        """Series of each window, ``(n,)``, as positions in the panel."""
        return np.concatenate([windows.items for windows in self.tests])

    @property
    def n_series(self) -> int:
        """Series that have a window at a test origin."""
        return len(np.unique(self.items))

    @property
    def overlap(self) -> int:
        """How many test origins in a row have futures that overlap; 1 where none do."""
        return -(-self.panel.horizon // self.origins.step)

    @property
    def cutoffs(self) -> np.ndarray:
        """Calendar position of each window's last seen value, ``(n,)``."""
        return np.concatenate([windows.cutoffs for windows in self.tests])

    @property
    def scale(self) -> np.ndarray:
        """s of each window, ``(n,)``."""
        return np.concatenate([windows.scale for windows in self.tests])

    @property
    def future(self) -> np.ndarray:
        """The H values behind each cutoff, ``(n, H)``."""
        return np.concatenate([windows.future for windows in self.tests])

    def known_beforehand(self) -> pd.DataFrame:
        """Return the features of each window's past, ``(n, d)``."""
        return pd.DataFrame(_features(self.panel, self.tests), columns=list(FEATURES))

    def table(self) -> pd.DataFrame:
        """Return one row for each window: series, cutoff, scale, hardness, bad, risk."""
        names = np.array(self.panel.names, dtype=object)
        risk = self.weighting.weights
        return pd.DataFrame(
            {
                "series": names[self.items],
                "cutoff": self.panel.calendar[self.cutoffs],
                "scale": self.scale,
                "hardness": self.hardness,
                "bad": self.is_bad,
                "risk": np.nan if risk is None else risk,
            }
        )


def find_failing_windows(
    forecaster: Forecaster,
    panel: Panel,
    origins: Origins,
    *,
    rule: str = "mase",
    alpha: float | None = None,
    seed: int = 0,
    needs_bad: bool = True,
) -> FailingWindows:
    """Roll F over all origins, call windows bad, and learn where bad windows are.

    Threshold and weights rest on windows whose futures end at or before the cutoff that they are
    used at, so nothing behind a test origin decides what is asked there.

    Parameters
    ----------
    forecaster : Forecaster
        F.
    panel : Panel
    origins : Origins
    rule : str
    alpha : float, optional
    seed : int
    needs_bad : bool
        False where models are compared over all windows, whether or not F fails on some. Of fewer
        than 30 series, whose earlier windows are too few to tell a threshold, that of the test
        windows then describes them.

    Raises
    ------
    DataError
        No window at a test origin, or F fails on none or on all.
    ModelError
        F fails.
    """
    check_rule(rule, alpha)
    learning = [cut_windows(panel, cutoff) for cutoff in origins.learning]
    learning = [windows for windows in learning if len(windows)]
    tests = tuple(cut_windows(panel, cutoff) for cutoff in origins.test)
    for windows in tests:
        if not len(windows):
            counts = Counter(entry.reason for entry in windows.left_out)
            reasons = [
                f"of {count}, {reason}" for reason, count in counts.most_common(3)
            ]
            raise DataError(
                f"no series has a window at {panel.time_text(windows.cutoff)}: "
                f"{'; '.join(reasons)}",
                "ask for fewer test origins, a shorter horizon or season, or another cutoff",
            )
    every = [*learning, *tests]
    earlier = np.empty(0)
    if learning:
        rolled = roll_forecaster(
            forecaster, panel, learning, seed, keep_quantiles=False
        )
        earlier = window_hardness(rule, rolled, panel, learning, seed)
    rolled = roll_forecaster(forecaster, panel, tests, seed)
    hardness = np.r_[earlier, window_hardness(rule, rolled, panel, tests, seed)]
    n_learning = len(earlier)
    cutoffs = np.concatenate([windows.cutoffs for windows in every])
    items = np.concatenate([windows.items for windows in every])
    test = slice(n_learning, None)
    are_many = len(np.unique(items[test])) >= FEWEST_CLUSTERS
    settled = settle_window_rule(
        rule,
        alpha,
        earlier,
        instead=None if are_many or needs_bad else hardness[test],
    )
    is_bad = settled.select(hardness)
    if needs_bad and len(set(is_bad[test].tolist())) < 2:
        n = len(is_bad[test])
        wanted = max(1, n // 10)
        alpha = float(np.sort(hardness[test])[-wanted])
        raise DataError(
            f"F fails on {'every' if is_bad[test].all() else 'no'} window of {n} at the test "
            f"origins under the rule {rule!r} with alpha {settled.alpha:.3g}",
            f"--rule {rule if rule != 'quantile' else 'mase'} --alpha {alpha:.4g} would give "
            f"{wanted}",
        )
    features = _features(panel, every)
    release_memory()
    weighting = weigh_windows(
        features,
        items,
        cutoffs,
        is_bad,
        test_cutoffs=origins.test,
        horizon=panel.horizon,
        seed=seed,
    )
    # each series that lacks a window, with its first reason
    left_out = {entry.series: entry for entry in panel.left_out}
    for windows in tests:
        for entry in windows.left_out:
            left_out.setdefault(entry.series, entry)
    return FailingWindows(
        panel=panel,
        origins=origins,
        tests=tests,
        forecasts=rolled,
        rule=settled,
        hardness=hardness[test],
        is_bad=is_bad[test],
        weighting=weighting,
        left_out=tuple(left_out.values()),
        learning=LearningWindows(origins=tuple(learning), is_bad=is_bad[:n_learning]),
    )


def _features(panel: Panel, origins: Sequence[Windows]) -> np.ndarray:
    """Return the features of the past of each window, ``(n, d)``."""
    parts = []
    for windows in origins:
        pasts = [panel.past(item, windows.cutoff) for item in windows.items]
        parts.append(past_features(pasts, panel.season, windows.scale))
    return np.concatenate(parts)


def window_hardness(
    rule: str,
    rolled: RolledForecasts,
    panel: Panel,
    origins: Sequence[Windows],
    seed: int,
) -> np.ndarray:
    """Return what a rule measures of F's forecasts at some origins, ``(n,)``."""
    if rule == "reducible":
        scale = np.concatenate([windows.scale for windows in origins])
        teacher = ensemble_means(panel, origins, seed)
        return reducible_hardness(rolled.mean, teacher, scale)
    if rule == "sql":
        if rolled.sql is None:
            raise DataError(
                f"the rule sql needs quantiles, and F forecasts none{rolled.in_other_columns}",
                "give F's nine quantiles (columns 0.1 to 0.9), or --rule mase",
            )
        return rolled.sql
    return rolled.mase


def describe_left_out(left_out: Sequence[LeftOut]) -> list[str]:
    """Return a sentence on the series that take no part, none where all do.

    Examples
    --------
    >>> describe_left_out([LeftOut(series="a", reason="too short")])
    ["1 series is left out at a test origin, 'a' the first: too short"]
    """
    if not left_out:
        return []
    first = left_out[0]
    verb = "is" if len(left_out) == 1 else "are"
    sentences = [
        f"{len(left_out)} series {verb} left out at a test origin, {first.series!r} the first: "
        f"{first.reason}"
    ]
    n_without = sum(entry.reason == NO_SCALE for entry in left_out)
    if n_without:
        verb = "has" if n_without == 1 else "have"
        sentences.append(
            f"{n_without} series {verb} no scale, since the past repeats itself (all zeros do): "
            "MASE says nothing there, and AMLB leaves such items out of its mean without a word"
        )
    return sentences


def describe_zeros(
    failing: FailingWindows,
    others: Mapping[str, RolledForecasts] | None = None,
    loss: Loss = MASE,
) -> list[str]:
    """Return a sentence where most of what is to be forecast is 0, none elsewhere.

    The median of such values is 0, and the median has the least mean absolute error, scaled or
    not. The weighted quantile loss, which is 1 for a forecast of zeros, does not favour them so.
    Nor do squared errors, which are least at the mean.

    Parameters
    ----------
    failing : FailingWindows
    others : mapping of str to RolledForecasts, optional
        Of candidates, whose loss stands beside that of F.
    loss : Loss
        What is compared.
    """
    future = failing.future
    share = float((future == 0).mean())
    # of zeros alone the WQL is no number
    if share <= 0.5 or share == 1:
        return []
    losses = []
    for name, forecasts in {"F": failing.forecasts, **(others or {})}.items():
        if "wql" in forecasts.losses:
            mean = float(forecasts.losses["wql"].mean())
            losses.append(f"{name} {format_decimals(mean, 2)}")
    beside = f"; WQL, lower is better: {', '.join(losses)}" if losses else ""
    instead = (
        ". hardsynth compare takes --loss wql, rmsse or sql, which do not favour it"
    )
    return [
        f"{format_percent(share)} of the values to forecast are 0: a forecast of zeros has the "
        f"least MASE and MAE there, and says nothing of when something comes"
        f"{instead if loss.basis == 'median' else ''}{beside}"
    ]


def describe_heavy_windows(
    failing: FailingWindows,
    forecasts: Mapping[str, RolledForecasts] = MappingProxyType({}),
    loss: Loss = MASE,
) -> list[str]:
    """Return a sentence where few windows hold half of a model's loss, none elsewhere.

    A series that hardly ever moves, such as demand that is nearly always zero, has a tiny scale.
    One change behind the cutoff then counts as much as many other windows together. AMLB does not
    cap such errors, so neither is done here. Whichever of two models has such windows, their
    difference rests on these. Losses that are not scaled count series by their size, so a few
    large ones may decide likewise.

    Parameters
    ----------
    failing : FailingWindows
    forecasts : mapping of str to RolledForecasts
        Of models beside F.
    loss : Loss
    """
    found = []
    for name, rolled in {"F": failing.forecasts, **forecasts}.items():
        losses = rolled.losses.get(loss.name)
        if losses is None or not losses.any():
            continue
        order = np.argsort(-losses)
        shares = np.cumsum(losses[order]) / losses.sum()
        n_heavy = int(np.searchsorted(shares, 0.5)) + 1
        if n_heavy > _FEW_HEAVY * len(losses):
            continue
        worst = order[0]
        series = failing.panel.names[failing.items[worst]]
        windows = "1 window holds" if n_heavy == 1 else f"{n_heavy} windows hold"
        largest = format_decimals(float(losses[worst]), 1)
        found.append(
            f"{windows} half of {name}'s {loss.title} over all {len(losses)}, series {series!r} "
            f"the largest: {loss.title} {largest}, scale {failing.scale[worst]:.3g}"
        )
    if not found:
        return []
    remedy = "leave series out that hardly ever move"
    if loss.unit != "scales":
        remedy = "compare by mase or rmsse, which do not count series by their size"
    return [
        f"{'; '.join(found)}. Means rest on these few; {remedy}, or give them as a table of their "
        "own"
    ]


def weigh_windows(
    features: np.ndarray,
    series: np.ndarray,
    cutoffs: np.ndarray,
    is_bad: np.ndarray,
    *,
    test_cutoffs: tuple[int, ...],
    horizon: int,
    seed: int = 0,
) -> RegionWeights:
    """Learn where F fails from the past alone: forward in time, and across series.

    The weight of a window comes from a model that has seen neither its series nor any future that
    ends behind its cutoff. So it never comes from F's error on that window, nor from a shock that
    other series had at the same time.

    Parameters
    ----------
    features : ndarray of shape (N, d)
        Of the pasts of all windows, at learning and test origins.
    series : ndarray of shape (N,), int
    cutoffs : ndarray of shape (N,), int
        Calendar position of each window's last seen value.
    is_bad : ndarray of shape (N,), bool
        What a window at a cutoff c teaches is used from the cutoff ``c + horizon`` on.
    test_cutoffs : tuple of int
        Ascending.
    horizon : int
    seed : int

    Returns
    -------
    RegionWeights
        Of the windows at test origins, in the order given.
    """
    is_test = np.isin(cutoffs, test_cutoffs)
    n_series = len(np.unique(series[is_test]))
    if n_series < FEWEST_CLUSTERS:
        return RegionWeights(
            reason=f"{n_series} series {'is' if n_series == 1 else 'are'} too few to learn where F "
            f"fails, {FEWEST_CLUSTERS} are needed"
        )
    # later cutoffs know of all that the first one does
    n_bad = int(is_bad[cutoffs + horizon <= test_cutoffs[0]].sum())
    if n_bad < FEWEST_BAD:
        return RegionWeights(
            reason=f"F fails on {n_bad} windows of earlier origins; {FEWEST_BAD} teach where"
        )
    # all windows of a series are in one group
    members, codes = np.unique(series, return_inverse=True)
    rng = random_stream(seed, "forecasting", "groups")
    group = (rng.permutation(len(members)) % GROUPS)[codes.reshape(-1)]
    parts = []
    for cutoff in test_cutoffs:
        # what a window teaches is known when its future is
        known = cutoffs + horizon <= cutoff
        for own in range(GROUPS):
            is_own = group == own
            # what later origins know says nothing of the first
            is_first = cutoff == test_cutoffs[0]
            parts.append(
                Part(
                    group=own,
                    learnt=np.flatnonzero(known & ~is_own),
                    held=np.flatnonzero((cutoffs == cutoff) & is_own),
                    known=np.flatnonzero(known & is_own & is_first),
                )
            )
    # each origin and each group of series has a model of its own, and is a part
    found = cross_fit(
        features,
        is_bad,
        parts,
        seed,
        unforeseen=f"{WINDOW.features} do not foresee where F fails",
        is_forward=True,
    )
    if found.weights is None or found.part is None:
        return found
    return RegionWeights(weights=found.weights[is_test], part=found.part[is_test])
