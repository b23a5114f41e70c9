"""Do intervals of forecast comparisons hold the truth, and how many claims are false?

    python -m benchmarks.claims.window_coverage m3 m3_monthly.parquet --draws 60 --seed 26000
    python -m benchmarks.claims.window_coverage weeks hour.csv --draws 60 --seed 26100
    python -m benchmarks.claims.window_coverage nights hour.csv --draws 60 --seed 26200
    python -m benchmarks.claims.window_coverage simulated --draws 60 --seed 26300

A collection of series is taken for the population. F, its twins and the candidates forecast each
series by itself, so their forecasts are made once. Each draw takes some of the series, settles the
threshold of bad windows anew, learns the weights of the region anew, and asks the product's own
comparison. A draw on which F never fails is refused, and counted. The truth is the same difference
over all series of the collection, where F fails with weights that all its series teach (mean of
three seeds of the forests).

A draw is a part of what it is held against, so an honest interval holds the truth more often than
95 %: by the finite population correction its error is only sqrt(1 - n / N) of the one that it
states. ``corrected`` is the share of intervals, each shortened by that factor around its point,
that hold the truth; this is the column to read. Standard errors are over draws.

One candidate is F's twin, without the oldest one and a half seasons; another the mean of Theta and
smoothing, which is better than F on most collections.

m3         monthly series, H 12, F Theta
weeks      UCI's Bike Sharing: each week of the hourly counts of registered and of casual riders
           is a series of 168 hours, all on one calendar, missing hours filled with the value
           before; H 12, season 24, F Theta
nights     derived from the same table: casual riders of one hour of the night (23 to 6) by day,
           cut into pieces of 42 days; a quarter of all values are zeros; H 7, season 7, F Theta
simulated  3,000 series of ``bundled/series``, other seeds: drawn from one population indeed
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from amlb_ext.comparison.forecasts import answer_comparison
from amlb_ext.core.display import text_table
from amlb_ext.core.errors import DataError
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

TWINS = 4
NIGHT_HOURS = (23, 0, 1, 2, 3, 4, 5, 6)
NIGHT_DAYS = 42
#: Seeds of the forests that the truth's weights are the mean of.
TRUTH_SEEDS = (0, 1, 2)


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


def read_m3(path):
    """Return M3's monthly series."""
    return Collection(pd.read_parquet(path), horizon=12, season=12, drawn=200)


def read_weeks(path):
    """Return the weeks of two hourly counts."""
    pieces = []
    for column in ("registered", "casual"):
        values = hourly_counts(path, column).ffill().to_numpy()
        pieces += cut_pieces(values, 7 * 24, "h", column)
    table = pd.concat(pieces, ignore_index=True)
    return Collection(table, horizon=12, season=24, drawn=100)


def read_nights(path):
    """Return counts of casual riders of each hour of the night by day; many are 0."""
    # an hour that the table lacks is one without riders
    counts = hourly_counts(path, "casual").fillna(0.0)
    pieces = []
    for hour in NIGHT_HOURS:
        values = counts[counts.index.hour == hour].to_numpy()
        pieces += cut_pieces(values, NIGHT_DAYS, "D", f"hour_{hour:02d}")
    table = pd.concat(pieces, ignore_index=True)
    return Collection(table, horizon=7, season=7, drawn=80, learning=2)


def read_simulated(path):
    """Return simulated series with planted failures."""
    return Collection(simulate_series(3000, 120, seed=977), 12, 12, drawn=200)


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


def run_draw(forecaster, candidates, panel, origins, seed):
    """Return what the product says of the series of one draw."""
    failing = find_failing_windows(forecaster, panel, origins, seed=seed)
    rolled = {
        name: roll_forecaster(candidate, panel, failing.tests, seed)
        for name, candidate in candidates.items()
    }
    twins = [
        roll_forecaster(twin, panel, failing.tests, seed)
        for twin in forecaster.twins(TWINS, panel.season)
    ]
    return answer_comparison(failing, rolled, twins, seed=seed).contrasts


def judge(contrasts, truth, share, draw):
    """Return a record for each candidate and question of a draw."""
    records = []
    for row in contrasts.itertuples():
        known = truth.get((row.model, row.question), np.nan)
        record = {"draw": draw, "model": row.model, "question": row.question}
        record |= {"truth": known, "point": row.difference, "verdict": row.verdict}
        is_answered = np.isfinite(row.low) and np.isfinite(known)
        record["answered"] = is_answered
        if is_answered:
            shrink = np.sqrt(1 - share)
            low = row.difference - shrink * (row.difference - row.low)
            high = row.difference + shrink * (row.high - row.difference)
            record["covered"] = float(row.low <= known <= row.high)
            record["corrected"] = float(low <= known <= high)
        claims_less = row.verdict in ("better", "larger gain")
        claims_more = row.verdict in ("worse", "smaller gain")
        # where the collection has no region, no claim of it can be true
        is_wrong = (claims_less and not known < 0) or (claims_more and not known > 0)
        records.append(
            record | {"less": claims_less, "more": claims_more, "wrong": is_wrong}
        )
    return records


def share_text(values, draws):
    """Return a share and its standard error over draws."""
    if not len(values):
        return "-"
    by_draw = pd.DataFrame({"value": values.to_numpy(float), "draw": draws.to_numpy()})
    share = by_draw["value"].mean()
    # candidates of one draw share its series
    sums = (by_draw["value"] - share).groupby(by_draw["draw"]).sum()
    error = np.sqrt((sums**2).sum()) / len(by_draw)
    return f"{share:.3f} ± {error:.3f}"


def report(table):
    """Print coverage and claims by question and candidate."""
    rows = []
    for question in (OVERALL, REGION, CONCENTRATED):
        of_question = table[table["question"] == question]
        parts = [("all", of_question)]
        parts += list(of_question.groupby("model", sort=False))
        for model, part in parts:
            answered = part[part["answered"]]
            truth, mean = answered["truth"].mean(), answered["point"].mean()
            is_one = model != "all"
            rows.append(
                [
                    question,
                    model,
                    len(answered),
                    f"{truth:+.4f}" if is_one else "",
                    f"{mean:+.4f}" if is_one else "",
                    share_text(answered.get("covered"), answered["draw"]),
                    share_text(answered.get("corrected"), answered["draw"]),
                    int(part["less"].sum()),
                    int(part["more"].sum()),
                    int(part["wrong"].sum()),
                ]
            )
    headers = ["question", "candidate", "intervals", "truth", "mean of points"]
    headers += ["covered", "corrected", "better/larger", "worse/smaller", "false"]
    print(text_table(headers, rows))
    any_wrong = table.groupby("draw")["wrong"].max()
    print(
        f"draws with any false claim: {share_text(any_wrong, any_wrong.index.to_series())}"
    )
    region = table[
        (table["question"] == REGION) & table["model"].str.startswith("twin")
    ]
    better = region["less"].mean()
    print(f"F's twin called better where F fails: {better:.3f} of {len(region)} draws")


def main():
    """Run the draws of one collection and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("collection", choices=READERS)
    parser.add_argument("path", nargs="?")
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--seed", type=int, default=26000)
    parser.add_argument("--drawn", type=int, help="series of a draw")
    arguments = parser.parse_args()
    collection = READERS[arguments.collection](arguments.path)
    drawn = arguments.drawn or collection.drawn
    start = time.process_time()
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
    twins = [ask_once(t, panel, origins.test) for t in F.twins(TWINS, panel.season)]
    forecaster = ask_once(F, panel, origins.all, twins)
    others = {
        word: make_forecaster(word) for word in ("seasonal_naive", "drift", "ets")
    }
    others["mean of two"] = LocalForecaster("mean of two", mean_of_two)
    others["twin of F"] = replace(F, forgets=3 * panel.season // 2)
    candidates = {
        name: ask_once(other, panel, origins.test) for name, other in others.items()
    }
    truth, whole = find_truth(forecaster, candidates, panel, origins)
    share = drawn / len(panel)
    zeros = np.mean(np.concatenate(panel.values) == 0)
    print(
        f"{arguments.collection}: {len(panel)} series with windows at all of "
        f"{len(origins.all)} origins ({len(origins.test)} of them tests), {drawn} a draw; "
        f"{zeros:.0%} of values are 0; bad {int(whole.is_bad.sum())} of "
        f"{len(whole.is_bad)}; largest MASE of F {whole.forecasts.mase.max():.1f}, mean "
        f"{whole.forecasts.mase.mean():.3f}; {whole.weighting.reason or 'a region'}; "
        f"{time.process_time() - start:.0f} s",
        flush=True,
    )
    records = []
    without_failure = 0
    for draw in range(arguments.draws):
        rng = np.random.default_rng([arguments.seed, draw])
        chosen = np.sort(rng.choice(len(panel), drawn, replace=False))
        seed = int(rng.integers(2**31))
        try:
            contrasts = run_draw(
                forecaster, candidates, take_series(panel, chosen), origins, seed
            )
        except DataError as error:
            # F fails on no window of the draw: the product refuses, and says what to type
            print(f"draw {draw} refused: {error}", flush=True)
            without_failure += 1
            continue
        records += judge(contrasts, truth, share, draw)
    table = pd.DataFrame(records)
    answered = arguments.draws - without_failure
    refused = (table["verdict"] == "no claim").groupby(table["draw"]).any()
    print(
        f"{answered} of {arguments.draws} draws answered, seed {arguments.seed}; nothing was "
        f"claimed where F fails in {int(refused.sum())}; {time.process_time() - start:.0f} s of CPU"
    )
    report(table)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
