"""Made windows by the paper's section 6 read literally: lags are columns, the future is the target.

The section says to cut windows, to take what comes next as the target, and to use the same
operators. So the search for rows of tables (:mod:`amlb_ext.hardening.search`) runs on lags, each
a column of its own, and the paper's VAE draws rows of lags. Nothing ties a lag to the next one:
such windows are no series any more, which their certificate says by their autocorrelation.

Notation
--------
n : bad windows; L : lags; H : horizon
Z : (n, L) lags, each column scaled to 0..1 over all windows of the origin; Y : (n, H) futures, too
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from amlb_ext.core.config import GenerateConfig, build_config
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.forecasting.losses import seasonal_scale
from amlb_ext.forecasting.made_parts import GA, SYNTHETIC, MadePart
from amlb_ext.forecasting.panel import Panel
from amlb_ext.forecasting.source_windows import SourceWindows, past_until
from amlb_ext.forecasting.window_judge import WindowJudge
from amlb_ext.forecasting.window_screen import WindowScreen
from amlb_ext.hardening.search import genetic_search, learn_domain
from amlb_ext.synthesizers import make_synthesizer

#: Lags: so many seasons, within these bounds.
_SEASONS, _FEWEST_LAGS, _MOST_LAGS = 5, 24, 168
#: Individuals of a point; the paper does not print how many, and each is a forecast of F.
_POPULATION = 10


@dataclass(frozen=True, kw_only=True)
class LagTable:
    """Windows as rows of lags, and back.

    Attributes
    ----------
    centre, scale : ndarray of shape (n,)
        Of each source window's last L values.
    rows : ndarray of shape (n, L + H)
        The source windows, each column scaled to 0..1.
    all_rows : ndarray of shape (N, L + H)
        All windows of the origin, scaled alike.
    low, width : ndarray of shape (L + H,)
        Of the columns.
    lags : int
        L.
    """

    centre: np.ndarray
    scale: np.ndarray
    rows: np.ndarray
    all_rows: np.ndarray
    low: np.ndarray
    width: np.ndarray
    lags: int

    def windows(
        self, rows: np.ndarray, sources: np.ndarray
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Return the pasts and futures of rows, in the units of their sources."""
        values = rows * self.width + self.low
        values = values * self.scale[sources, None] + self.centre[sources, None]
        # copies: whoever holds a view of a past could look behind its end
        pasts = [row[: self.lags].copy() for row in values]
        return pasts, values[:, self.lags :]


def make_literal_windows(
    windows: SourceWindows,
    panel: Panel,
    judge: WindowJudge,
    *,
    times: float,
    seed: int,
) -> list[MadePart]:
    """Search lag by lag, and draw from the paper's VAE; only K decides what is kept.

    ``times`` windows are drawn for each bad one; with 0 there is no VAE.

    Returns
    -------
    list of MadePart
        ``ga`` and ``synthetic``.
    """
    table = tabulate_lags(windows, panel)
    config = build_config(
        {"preset": "literal", "search": {"population": _POPULATION, "copies": 1}}
    )
    found, targets = _search_lags(table, judge, config, seed)
    sources = np.arange(len(windows))
    screen = WindowScreen(windows, judge, allows_negative=True)
    searched = np.column_stack([found, targets])
    screen.add(*table.windows(searched, sources), sources)
    augmented = screen.collected(GA, "lags", asked=len(windows))
    n_drawn = round(times * len(windows))
    if not n_drawn:
        return [augmented]

    rng = random_stream(seed, "forecasting", "literal synthesizer")
    synthesizer = make_synthesizer(config.synthesizer)
    synthesizer.fit(found, targets, cards=(), n_classes=0, rng=rng)
    drawn = np.column_stack(synthesizer.sample(n_drawn, rng))
    nearest = nearest_rows(drawn, table.rows)
    screen = WindowScreen(windows, judge, allows_negative=True)
    screen.add(*table.windows(drawn, nearest), nearest)
    return [augmented, screen.collected(SYNTHETIC, "generator", asked=n_drawn)]


def nearest_rows(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return which of ``others`` lies nearest to each row, ``(n,)``."""
    nearest = np.empty(len(rows), dtype=int)
    for number, row in enumerate(rows):
        nearest[number] = int(((others - row) ** 2).sum(axis=1).argmin())
    return nearest


def tabulate_lags(windows: SourceWindows, panel: Panel) -> LagTable:
    """Return windows as rows of equally many lags, each window on its own scale."""
    season = panel.season
    wanted = min(max(_SEASONS * season, _FEWEST_LAGS), _MOST_LAGS)
    shortest = min(len(past) for past in windows.pasts)
    lags = min(max(wanted, season + 2), shortest)
    n_all = len(windows.origin)
    rows = np.empty((n_all, lags + windows.future.shape[1]))
    centre, scale = np.zeros(n_all), np.ones(n_all)
    is_whole = np.zeros(n_all, dtype=bool)
    for number, item in enumerate(windows.origin.items):
        past = past_until(panel, int(item), windows.cutoff)[-lags:]
        size = seasonal_scale(past, season)
        if len(past) < lags or not size > 0:
            continue
        is_whole[number] = True
        centre[number], scale[number] = past[-season:].mean(), size
        values = np.r_[past, windows.origin.future[number]]
        rows[number] = (values - centre[number]) / size
    own = np.flatnonzero(np.isin(windows.origin.items, windows.items))
    low = rows[is_whole].min(axis=0)
    width = np.maximum(rows[is_whole].max(axis=0) - low, 1e-12)
    # a window whose last lags repeat themselves stays where the others are
    rows[~is_whole] = low
    scaled = (rows - low) / width
    return LagTable(
        centre=centre[own],
        scale=scale[own],
        rows=scaled[own],
        all_rows=scaled[is_whole],
        low=low,
        width=width,
        lags=lags,
    )


def _search_lags(
    table: LagTable, judge: WindowJudge, config: GenerateConfig, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that the search for tables finds, and their targets y_ga."""
    lags = table.lags
    low, width = table.low, table.width

    def predict(Z: np.ndarray) -> np.ndarray:
        # F forecasts a series on any scale, so that of the window serves
        pasts = Z * width[:lags] + low[:lags]
        mean = judge.ask(list(pasts)).mean
        return (mean - low[lags:]) / width[lags:]

    Z, Y = table.rows[:, :lags], table.rows[:, lags:]
    rng = random_stream(seed, "forecasting", "literal targets")
    noise = rng.normal(0, np.sqrt(config.search.sigma2), Y.shape)
    targets = np.clip(Y + noise, 0.0, 1.0)
    domain = learn_domain(
        Z,
        table.all_rows[:, :lags],
        table.all_rows[:, lags:],
        n_classes=0,
        n_categorical=0,
    )
    found, _ = genetic_search(
        predict,
        Z,
        targets,
        domain=domain,
        config=config.search,
        seed=derive_int_seed(seed, "forecasting", "literal search"),
    )
    return found, targets
