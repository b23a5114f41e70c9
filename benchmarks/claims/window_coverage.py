"""Do intervals of forecast comparisons hold the truth, and how many claims are false?

A collection of series is taken for the population. F, its twins and the candidates forecast each
series by itself, so their forecasts are made once. Each draw takes some of the series, settles the
threshold of bad windows anew, learns the weights of the region anew, and asks the product's own
comparison. A draw on which F never fails is refused, and left out. The truth is the same difference
over all series of the collection, where F fails with weights that all its series teach (mean of
three seeds of the forests).

A draw is a part of what it is held against, so an honest interval holds the truth more often than
95 %: by the finite population correction its error is only sqrt(1 - n / N) of the one that it
states. ``corrected`` is the share of intervals, each shortened by that factor around its point,
that hold the truth; this is the column to read. ``less`` and ``more`` are the shares of claims of
either direction, ``wrong`` of those that the truth contradicts. Standard errors are over draws;
the candidates of one draw share its series, so ``all`` of them are averaged within it first.

One candidate is F's twin, without the oldest one and a half seasons; another the mean of Theta and
smoothing, which is better than F on most collections.

m3         monthly series (``m3_monthly.parquet``), H 12, F Theta
weeks      UCI's Bike Sharing (``hour.csv``): each week of the hourly counts of registered and of
           casual riders is a series of 168 hours, all on one calendar, missing hours filled with
           the value before; H 12, season 24, F Theta
nights     derived from the same table: casual riders of one hour of the night (23 to 6) by day,
           cut into pieces of 42 days; a quarter of all values are zeros; H 7, season 7, F Theta
simulated  3,000 series of ``bundled/series``, other seeds: drawn from one population indeed
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field
from threadpoolctl import threadpool_limits

from amlb_ext.comparison.forecasts import answer_comparison
from amlb_ext.models.forecasters import (
    Forecaster,
    ForecastRequest,
    Forecasts,
    LocalForecaster,
    make_forecaster,
)
from amlb_ext.models.local_methods import exponential_smoothing, theta
from amlb_ext.sources.bundled_series import simulate_series
from amlb_ext.sources.panel import Panel, PanelRoles, read_panel
from amlb_ext.stats.claims import CONCENTRATED, OVERALL, REGION
from amlb_ext.units.failing_windows import find_failing_windows
from amlb_ext.units.origins import cut_windows, plan_origins
from amlb_ext.units.rolling import request_at, roll_forecaster
from benchmarks.studies.engine import Seeded, Study, flat_rows, grid
from benchmarks.studies.files import find_data_file
from benchmarks.studies.page import summarize_means

TWINS = 4
NIGHT_HOURS = (23, 0, 1, 2, 3, 4, 5, 6)
NIGHT_DAYS = 42
#: Seeds of the forests that the truth's weights are the mean of.
TRUTH_SEEDS = (0, 1, 2)


class WindowSettings(Seeded):
    """What the study of windows may be told.

    Attributes
    ----------
    draws : int
        Of each collection.
    collections : tuple of str
    drawn : int
        Series of a draw; 0 for each collection's own number.
    simulated : int
        Series of the collection ``simulated``.
    seed : int
    """

    chooses: ClassVar[frozenset[str]] = frozenset({"draws", "collections"})

    collections: tuple[Literal["m3", "weeks", "nights", "simulated"], ...] = (
        "m3",
        "weeks",
        "nights",
        "simulated",
    )
    drawn: int = Field(0, ge=0)
    simulated: int = Field(3000, ge=20)


@dataclass(frozen=True)
class Collection:
    """Series that stand for a population, and how they are asked."""

    table: pd.DataFrame
    horizon: int
    season: int
    drawn: int
    origins: int = 1
    learning: int = 3
    baseline: str = "theta"


@dataclass(frozen=True)
class KnownForecaster(Forecaster):
    """A method of one series whose forecasts of the whole collection are known."""

    name: str
    answers: Mapping[pd.Timestamp, tuple[dict[str, int], Forecasts]]
    known_twins: tuple[Forecaster, ...] = ()

    def forecast(self, request: ForecastRequest) -> Forecasts:
        """Look the forecasts up."""
        places, known = self.answers[request.times[0]]
        rows = [places[name] for name in request.names]
        return Forecasts(mean=known.mean[rows], quantiles=known.quantiles[rows])

    def twins(self, count: int, season: int) -> list[Forecaster]:
        """Return twins whose forecasts are known."""
        return list(self.known_twins[:count])


def mean_of_two(past, horizon, season):
    """Return the mean of Theta and exponential smoothing, and the larger standard error."""
    first, first_error = theta(past, horizon, season)
    second, second_error = exponential_smoothing(past, horizon, season)
    return (first + second) / 2, np.maximum(first_error, second_error)


def hourly_counts(path, column):
    """Return one of Bike Sharing's counts on a calendar without gaps."""
    table = pd.read_csv(path)
    day = pd.to_datetime(table["dteday"], dayfirst=True, format="mixed")
    index = day + pd.to_timedelta(table["hr"], unit="h")
    counts = pd.Series(table[column].to_numpy(float), index=index)
    every = pd.date_range(counts.index[0], counts.index[-1], freq="h")
    return counts.reindex(every)


def cut_pieces(values, length, frequency, name):
    """Return consecutive pieces of a series as series that begin at one time."""
    times = pd.date_range("2011-01-03", periods=length, freq=frequency)
    pieces = []
    for number in range(len(values) // length):
        own = values[number * length : (number + 1) * length]
        pieces.append(
            pd.DataFrame(
                {"item_id": f"{name}_{number:03d}", "timestamp": times, "target": own}
            )
        )
    return pieces


def read_m3(folder, _):
    """Return M3's monthly series."""
    path = find_data_file(folder, "m3", ["m3_monthly.parquet"])
    return Collection(pd.read_parquet(path), horizon=12, season=12, drawn=200)


def read_weeks(folder, _):
    """Return the weeks of two hourly counts."""
    path = find_data_file(folder, "bike", ["hour.csv"])
    pieces = []
    for column in ("registered", "casual"):
        values = hourly_counts(path, column).ffill().to_numpy()
        pieces += cut_pieces(values, 7 * 24, "h", column)
    table = pd.concat(pieces, ignore_index=True)
    return Collection(table, horizon=12, season=24, drawn=100)


def read_nights(folder, _):
    """Return counts of casual riders of each hour of the night by day; many are 0."""
    path = find_data_file(folder, "bike", ["hour.csv"])
    # an hour that the table lacks is one without riders
    counts = hourly_counts(path, "casual").fillna(0.0)
    pieces = []
    for hour in NIGHT_HOURS:
        values = counts[counts.index.hour == hour].to_numpy()
        pieces += cut_pieces(values, NIGHT_DAYS, "D", f"hour_{hour:02d}")
    table = pd.concat(pieces, ignore_index=True)
    return Collection(table, horizon=7, season=7, drawn=80, learning=2)


def read_simulated(_, count):
    """Return simulated series with planted failures."""
    return Collection(simulate_series(count, 120, seed=977), 12, 12, drawn=200)


READERS = {
    "m3": read_m3,
    "weeks": read_weeks,
    "nights": read_nights,
    "simulated": read_simulated,
}


def ask_once(forecaster, panel, origins, twins=()):
    """Return a forecaster that knows its answers for all series at some origins."""
    answers = {}
    for cutoff in origins:
        request = request_at(panel, cut_windows(panel, cutoff))
        places = {name: row for row, name in enumerate(request.names)}
        answers[request.times[0]] = (places, forecaster.forecast(request))
    return KnownForecaster(forecaster.name, answers, tuple(twins))


def take_series(panel: Panel, chosen: np.ndarray) -> Panel:
    """Return a panel of some of the series, in their order."""
    return replace(
        panel,
        names=tuple(panel.names[k] for k in chosen),
        values=tuple(panel.values[k] for k in chosen),
        starts=panel.starts[chosen],
    )


def find_truth(forecaster, candidates, panel, origins):
    """Return each candidate's difference from F in the collection, by question."""
    weights = []
    for seed in TRUTH_SEEDS:
        failing = find_failing_windows(forecaster, panel, origins, seed=seed)
        if failing.weighting.inside is not None:
            weights.append(failing.weighting.inside)
    inside = np.mean(weights, axis=0) if weights else None
    loss_f = failing.forecasts.mase
    truth = {}
    for name, candidate in candidates.items():
        rolled = roll_forecaster(candidate, panel, failing.tests)
        differences = rolled.mase - loss_f
        truth[name, OVERALL] = differences.mean()
        if inside is not None:
            truth[name, REGION] = np.average(differences, weights=inside)
            there, elsewhere = (
                (w * differences).sum() / (w * loss_f).sum()
                for w in (inside, 1 - inside)
            )
            truth[name, CONCENTRATED] = there - elsewhere
    return truth, failing


@dataclass(frozen=True)
class KnownCollection:
    """A collection whose forecasts are known, and the truth of it."""

    panel: Panel
    origins: Any
    forecaster: Forecaster
    candidates: Mapping[str, Forecaster]
    truth: Mapping[tuple[str, str], float]
    facts: Mapping[str, float]
    drawn: int


def know_collection(name: str, settings: WindowSettings, folder: Path | None):
    """Read a collection, and let F, its twins and the candidates forecast all of it once."""
    collection = READERS[name](folder, settings.simulated)
    roles = PanelRoles(
        series="item_id",
        time="timestamp",
        target="target",
        horizon=collection.horizon,
        season=collection.season,
    )
    panel = read_panel(collection.table, roles)
    origins = plan_origins(panel, test=collection.origins, learning=collection.learning)
    # whoever lacks a window at some origin would make the size of a draw random
    every = [set(cut_windows(panel, cutoff).items) for cutoff in origins.all]
    panel = take_series(panel, np.array(sorted(set.intersection(*every))))
    F = make_forecaster(collection.baseline)
    others = {
        word: make_forecaster(word) for word in ("seasonal_naive", "drift", "ets")
    }
    others["mean of two"] = LocalForecaster("mean of two", mean_of_two)
    others["twin of F"] = replace(F, forgets=3 * panel.season // 2)
    with threadpool_limits(1):
        twins = [ask_once(t, panel, origins.test) for t in F.twins(TWINS, panel.season)]
        forecaster = ask_once(F, panel, origins.all, twins)
        candidates = {
            name: ask_once(other, panel, origins.test) for name, other in others.items()
        }
        truth, whole = find_truth(forecaster, candidates, panel, origins)
    facts = {
        "series": len(panel),
        "share of zeros": np.mean(np.concatenate(panel.values) == 0),
        "share of bad windows": whole.is_bad.mean(),
        "mean MASE of F": whole.forecasts.mase.mean(),
        "largest MASE of F": whole.forecasts.mase.max(),
    }
    return KnownCollection(
        panel=panel,
        origins=origins,
        forecaster=forecaster,
        candidates=candidates,
        truth=truth,
        facts=facts,
        drawn=settings.drawn or collection.drawn,
    )


def judge_draw(
    settings: WindowSettings, known: KnownCollection, *, data: str, draw: int
):
    """Return what the product says of the series of one draw, and whether it is true."""
    rng = np.random.default_rng([settings.seed, draw])
    chosen = np.sort(rng.choice(len(known.panel), known.drawn, replace=False))
    seed = int(rng.integers(2**31))
    panel = take_series(known.panel, chosen)
    # refused where F fails on no window of the draw
    failing = find_failing_windows(known.forecaster, panel, known.origins, seed=seed)
    rolled = {
        name: roll_forecaster(candidate, panel, failing.tests, seed)
        for name, candidate in known.candidates.items()
    }
    twins = [
        roll_forecaster(twin, panel, failing.tests, seed)
        for twin in known.forecaster.twins(TWINS, panel.season)
    ]
    contrasts = answer_comparison(failing, rolled, twins, seed=seed).contrasts
    shrink = np.sqrt(1 - known.drawn / len(known.panel))
    rows = []
    for row in contrasts.itertuples():
        if row.question in (OVERALL, REGION, CONCENTRATED):
            truth = known.truth.get((row.model, row.question), np.nan)
            figures = judge_claim(row, truth, shrink)
            labels = {"question": row.question, "model": row.model}
            rows += flat_rows(figures, "figure", **labels)
    any_wrong = max(row["value"] for row in rows if row["figure"] == "wrong")
    everyone = {"draw": {"wrong": any_wrong}, "collection": known.facts}
    return [*rows, *flat_rows(everyone, "question", "figure", model="all")]


def judge_claim(row: Any, truth: float, shrink: float) -> dict[str, float]:
    """Return of a claim whether it is true, and whether its interval holds the truth."""
    claims_less = row.verdict in ("better", "larger gain")
    claims_more = row.verdict in ("worse", "smaller gain")
    # where the collection has no region, no claim of it can be true
    is_wrong = (claims_less and not truth < 0) or (claims_more and not truth > 0)
    figures: dict[str, float] = {
        "less": claims_less,
        "more": claims_more,
        "wrong": is_wrong,
        "no claim": row.verdict == "no claim",
    }
    if np.isfinite(row.low) and np.isfinite(truth):
        low = row.difference - shrink * (row.difference - row.low)
        high = row.difference + shrink * (row.high - row.difference)
        figures |= {
            "truth": truth,
            "point": row.difference,
            "covered": row.low <= truth <= row.high,
            "corrected": low <= truth <= high,
        }
    return figures


def _summarize(rows: pd.DataFrame, settings: WindowSettings):
    """Return the means by question and candidate, and of all candidates of a draw together."""
    keys = ["data", "draw", "question", "figure"]
    of_draws = rows.groupby(keys, sort=False)["value"].mean().reset_index()
    together = pd.concat([of_draws.assign(model="all"), rows[rows["model"] != "all"]])
    return summarize_means("data", "question", "model")(together, settings)


STUDIES = (
    Study(
        name="window-coverage",
        title="Whether intervals of forecast comparisons hold, and how many claims are false",
        group="claims",
        settings=WindowSettings(draws=60, seed=26_000),
        cells=grid(data="collections", draw="draws"),
        load=know_collection,
        compute=judge_draw,
        summarize=_summarize,
        small={
            "draws": 1,
            "collections": ("simulated",),
            "simulated": 60,
            "drawn": 40,
        },
    ),
)
