"""Do made windows look like real ones, are they copies, and did they keep their order in time?

Notation
--------
t : values of each past once all are cut alike; H : horizon; m : season; s : scale
r_k, r'_k : autocorrelation at lag k of values, and of their differences
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from amlb_ext.core.display import format_decimals
from amlb_ext.core.unit import WINDOW
from amlb_ext.making.window_judge import window_scale
from amlb_ext.units.failing_windows import FailingWindows
from amlb_ext.units.past_features import FEATURES, autocorrelation, past_features
from amlb_ext.validity.measures import (
    MIN_ROWS,
    Measure,
    plan_measure,
    too_few_text,
)
from amlb_ext.validity.realism_measures import (
    ScaledTable,
    measure_closest_record,
    measure_share_of_copies,
    measure_two_sample,
    thin_table,
)

#: Longest pasts that are compared, in seasons and in values.
_SEASONS, _MOST = 10, 512
#: Standard errors of the real ones that an autocorrelation may move by.
TIME_ORDER_LIMIT = 2.0
_TINY = 1e-12


@dataclass(frozen=True, kw_only=True)
class CutWindows:
    """Windows of equal length, each with a scale of its own and the series it is of or came from.

    Attributes
    ----------
    values : ndarray of shape (n, t + H)
    scale : ndarray of shape (n,)
    series : ndarray of shape (n,), int
    length : int
        t.
    """

    values: np.ndarray
    scale: np.ndarray
    series: np.ndarray
    length: int

    def __len__(self) -> int:
        return len(self.values)


def common_length(sets: Sequence[Sequence[np.ndarray]], season: int) -> int:
    """Return how many last values of a past are compared: nine tenths of each set have them."""
    tenths = []
    for pasts in sets:
        lengths = [len(past) for past in pasts]
        tenths.append(int(np.quantile(lengths, 0.1, method="lower")))
    most = min(max(_SEASONS * season, season + 2), max(_MOST, season + 2))
    return min(*tenths, most)


def cut_alike(
    pasts: Sequence[np.ndarray],
    future: np.ndarray,
    series: np.ndarray,
    *,
    length: int,
    season: int,
) -> CutWindows:
    """Return windows with ``length`` last values of their past; shorter ones are left out."""
    values, scales, kept = [], [], []
    for number, past in enumerate(pasts):
        end = past[-length:]
        scale = window_scale(end, season)
        if len(end) < length or not np.isfinite(scale):
            continue
        values.append(np.r_[end, future[number]])
        scales.append(scale)
        kept.append(number)
    return CutWindows(
        values=np.array(values).reshape(-1, length + future.shape[1]),
        scale=np.array(scales),
        series=series[kept],
        length=length,
    )


def window_features(cut: CutWindows, season: int) -> np.ndarray:
    """Return numbers without a unit of pasts, and of how the futures go on; ``(n, 22)``."""
    past, future = cut.values[:, : cut.length], cut.values[:, cut.length :]
    of_past = past_features(list(past), season, cut.scale)
    of_past = np.delete(of_past, FEATURES.index("length"), axis=1)
    last_season = past[:, -season:]
    first_step = future[:, 0] - past[:, -1]
    steps = np.diff(np.column_stack([past[:, -1], future]), axis=1)
    past_steps = np.abs(np.diff(past, axis=1)).mean(axis=1)
    of_future = np.column_stack(
        [
            (future.mean(axis=1) - last_season.mean(axis=1)) / cut.scale,
            np.abs(first_step) / cut.scale,
            np.abs(steps).mean(axis=1) / (past_steps + _TINY * cut.scale),
            future.std(axis=1) / cut.scale,
        ]
    )
    return np.clip(np.column_stack([of_past, of_future]), -1e6, 1e6)


def measure_window_realism(
    made: CutWindows, real: CutWindows, season: int, rng: np.random.Generator
) -> list[Measure]:
    """Return the two-sample test on features of windows, and the distance to the closest real one.

    Windows of one series, or made of it, stand in one part of the cross-validation.
    """
    n_series = len(np.unique(real.series))
    if n_series < MIN_ROWS or len(made) < MIN_ROWS:
        why = too_few_text(n_series, "bad windows", WINDOW)
        if n_series >= MIN_ROWS:
            why = f"not enough windows: {len(made)} made ones"
        return [
            plan_measure("two-sample test", "", "<=").missing(why),
            plan_measure("closest record", "", ">=").missing(why),
        ]
    by_features, by_values = [], []
    for cut in (made, real):
        by_features.append(_table(window_features(cut, season), cut.series))
        last_season = cut.values[:, cut.length - season : cut.length]
        centred = cut.values - last_season.mean(axis=1, keepdims=True)
        by_values.append(_table(centred / cut.scale[:, None], cut.series))
    # in this order: both draw from one stream
    some_made = thin_table(by_features[0], rng)
    two_sample = measure_two_sample(some_made, by_features[1], rng, WINDOW)
    some_made = thin_table(by_values[0], rng)
    return [two_sample, measure_closest_record(some_made, by_values[1], rng, WINDOW)]


def _table(values: np.ndarray, series: np.ndarray) -> ScaledTable:
    return ScaledTable(values, series, np.zeros(values.shape[1], dtype=bool))


def time_order(cut: CutWindows, season: int) -> dict[str, np.ndarray]:
    """Return the autocorrelations of each window by name, ``(n,)`` each.

    Examples
    --------
    >>> cut = CutWindows(values=np.tile([[0.0, 1.0]], (2, 20)), scale=np.ones(2),
    ...                  series=np.arange(2), length=39)
    >>> time_order(cut, 2)["values, lag 1"].round(2).tolist()
    [-0.98, -0.98]
    """
    found = {}
    for lag in dict.fromkeys((1, season)):
        found[f"values, lag {lag}"] = _correlations(cut.values, lag)
        changes = np.diff(cut.values, axis=1)
        found[f"differences, lag {lag}"] = _correlations(changes, lag)
    return found


def _correlations(values: np.ndarray, lag: int) -> np.ndarray:
    return np.array([autocorrelation(row, lag) for row in values])


def measure_time_order(made: CutWindows, sources: CutWindows, season: int) -> Measure:
    """Return how far autocorrelations of made windows are from those of their sources.

    The value is the largest gap of their means, over the standard error of the sources' mean:
    beyond 2 the made windows are other series, as far as the sources can tell.
    """
    source = "autocorrelations 1 and m of values and differences; ours"
    order = plan_measure("time order", source, "<=", TIME_ORDER_LIMIT)
    if len(made) < 3 or len(sources) < 3:
        return order.missing("not enough windows: three on either side are needed")
    of_made = time_order(made, season)
    of_sources = time_order(sources, season)
    texts, gaps = [], []
    for what, correlations in of_sources.items():
        real, mean = float(correlations.mean()), float(of_made[what].mean())
        # a source is one window of one series
        error = float(correlations.std(ddof=1)) / np.sqrt(len(correlations))
        # what is exact in real windows may not move at all
        gaps.append(abs(mean - real) / max(error, _TINY))
        texts.append(f"{what} {format_decimals(real, 2)} to {format_decimals(mean, 2)}")
    worst = int(np.argmax(gaps))
    text = (
        "largest shift of an autocorrelation, in standard errors of the windows that these were "
        f"made of; from those to these: {'; '.join(texts)}"
    )
    return order.found(float(gaps[worst]), text)


def measure_scale(scale: np.ndarray) -> Measure:
    """Return the share of made windows that AMLB can score; NaN is no scale."""
    text = (
        "made windows whose past is longer than the season and does not repeat itself: AMLB "
        "scores others in another unit, or leaves them out of its mean"
    )
    planned = plan_measure("AMLB's scale", "AMLB v2.1.7; all must", ">=", 1.0)
    return planned.found(float(np.isfinite(scale).mean()), text)


def measure_copies(
    pasts: Sequence[np.ndarray], failing: FailingWindows
) -> list[Measure]:
    """Return the shares of made pasts that are the end of a real one, or repeat another."""
    lengths = {len(past) for past in pasts}
    ends = set()
    assert failing.learning is not None  # made windows came from there
    for windows in failing.learning.origins:
        for item in windows.items:
            real = failing.panel.past(int(item), windows.cutoff)
            ends |= {real[-length:].tobytes() for length in lengths}
    keys = [np.ascontiguousarray(past).tobytes() for past in pasts]
    past_is = "made windows whose past is that of"
    return [
        measure_share_of_copies(
            "exact copies",
            sum(key in ends for key in keys),
            len(keys),
            f"{past_is} a real window",
        ),
        measure_share_of_copies(
            "repeated windows",
            len(keys) - len(set(keys)),
            len(keys),
            f"{past_is} another made window",
        ),
    ]
