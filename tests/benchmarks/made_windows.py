"""Which made windows look, fail and rank as real failing ones do? Two ways of making them.

    python tests/benchmarks/made_windows.py m3_monthly.parquet --horizon 12 --sample 400
    python tests/benchmarks/made_windows.py --bike hour.csv --horizon 24 --baseline seasonal_naive

The table is long, with the columns item_id, timestamp and target. With ``--bike`` the hourly counts
of UCI's Bike Sharing become series of a week each, set side by side on one calendar, missing
hours filled with the value before. Each way makes windows of the same bad ones, and one line gives
what its certificate measures: how well made ones are told from the real bad ones of their origin
(AUC, grouped by series; halves of the real ones in brackets), the autocorrelation of differences
from sources to made, the largest shift of an autocorrelation in standard errors, F's mean MASE on
made over that on real bad windows, z2 and tau of candidates' differences from F, the order's
relative agreement with its lower limit, plausibility of labels, the distance to the closest real
window, verdict, and CPU seconds. One thread.
"""

import argparse
import re
import time

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from amlb_ext.core.display import text_table
from amlb_ext.forecasting.failing_windows import find_failing_windows
from amlb_ext.forecasting.forecasters import make_forecaster
from amlb_ext.forecasting.made_windows import (
    COPIES,
    MadeWindows,
    WindowScreen,
    make_windows,
)
from amlb_ext.forecasting.origins import plan_origins
from amlb_ext.forecasting.panel import PanelRoles, read_panel
from amlb_ext.forecasting.rolling import request_at
from amlb_ext.forecasting.window_certificate import certify_windows
from amlb_ext.forecasting.window_judge import LABEL_SLACK, Teacher, WindowJudge
from amlb_ext.forecasting.window_moves import SPREADS, WindowMove, count_decimals

WAYS = ("moved as a whole", "white noise")


def bike_series(path):
    """Return each week of the hourly counts as a series, all on one calendar."""
    table = pd.read_csv(path)
    day = pd.to_datetime(table["dteday"], dayfirst=True, format="mixed")
    counts = pd.Series(
        table["cnt"].to_numpy(float),
        index=day + pd.to_timedelta(table["hr"], unit="h"),
    )
    every = pd.date_range(counts.index[0], counts.index[-1], freq="h")
    values = counts.reindex(every).ffill().to_numpy()
    length = 7 * 24
    times = pd.date_range("2011-01-01", periods=length, freq="h")
    parts = []
    for number in range(len(values) // length):
        own = values[number * length : (number + 1) * length]
        name = f"week_{number:03d}"
        parts.append(pd.DataFrame({"item_id": name, "timestamp": times, "target": own}))
    return pd.concat(parts, ignore_index=True)


def with_white_noise(made, forecaster, failing, seed):
    """Return windows whose values are each moved by themselves, by .025 of the window's range."""
    windows = made.windows
    request = request_at(failing.panel, windows.origin, seed)
    judge = WindowJudge(
        ask=forecaster.learn(request),
        teacher=Teacher(request, windows.origin.items),
        rule=failing.rule,
        season=failing.panel.season,
    )
    own = judge.judge(windows.pasts, windows.future, windows.items)
    screen = WindowScreen(windows, judge, own.teacher_mase * LABEL_SLACK)
    rng = np.random.default_rng(seed)
    sources = np.repeat(np.arange(len(windows)), COPIES)
    pasts = []
    for source in sources:
        past = windows.pasts[source]
        noisy = past + rng.normal(0, 0.025 * np.ptp(past), len(past))
        if past.min() >= 0:
            noisy = np.clip(noisy, 0, None)
        pasts.append(np.round(noisy, count_decimals(past)))
    unmoved = [WindowMove(genes=np.zeros(len(SPREADS)), noise_key=0)] * len(sources)
    screen.add(pasts, windows.future[sources], sources, unmoved)
    part = screen.collected(asked=len(sources))
    return MadeWindows(windows=windows, parts=(part,))


def shown(measure, decimals=2):
    return "none" if measure.value is None else f"{measure.value:.{decimals}f}"


def line(way, certificate, part, seconds):
    two = certificate["two-sample test"]
    halves = re.search(r"halves of the real ones: ([\d.]+)", two.text)
    order = certificate[f"{part.kind}: order"]
    moved = re.search(
        r"differences, lag 1 (\S+ to [-\d.]+)", certificate["time order"].text
    )
    low = "" if order.low is None else f" ({order.low:.2f})"
    return [
        way,
        f"{len(part)} of {part.asked}",
        f"{shown(two)} ({halves[1] if halves else '-'})",
        moved[1] if moved else "-",
        shown(certificate["time order"], 1),
        shown(certificate["hardness"]),
        shown(certificate[f"{part.kind}: z2"], 1),
        shown(certificate[f"{part.kind}: tau"]),
        shown(order) + low,
        shown(certificate["label support"]),
        shown(certificate["closest record"]),
        certificate.verdict,
        f"{seconds:.0f}",
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", nargs="?")
    parser.add_argument("--bike")
    parser.add_argument("--horizon", type=int, required=True)
    parser.add_argument("--season", type=int)
    parser.add_argument("--baseline", default="theta")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=WAYS)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    table = bike_series(arguments.bike) if arguments.bike else None
    if table is None:
        read = pd.read_parquet if arguments.table.endswith("parquet") else pd.read_csv
        table = read(arguments.table)
    names = table["item_id"].unique()
    if arguments.sample and arguments.sample < len(names):
        rng = np.random.default_rng(arguments.seed)
        chosen = rng.choice(names, arguments.sample, replace=False)
        table = table[table["item_id"].isin(chosen)]
    roles = PanelRoles(
        series="item_id",
        time="timestamp",
        target="target",
        horizon=arguments.horizon,
        season=arguments.season,
    )
    forecaster = make_forecaster(arguments.baseline)
    start = time.process_time()
    panel = read_panel(table, roles)
    failing = find_failing_windows(
        forecaster, panel, plan_origins(panel), with_jackknife=False
    )
    print(
        f"{len(panel)} series, horizon {panel.horizon}, season {panel.season}, F "
        f"{forecaster.name}; bad: {int(failing.is_bad.sum())} at the test origin, "
        f"{[int(bad.sum()) for _, bad in failing.learning.parts()]} before; "
        f"{time.process_time() - start:.0f} s"
    )
    drawn = make_windows(forecaster, failing, seed=arguments.seed)
    rows = []
    for way in arguments.ways:
        start = time.process_time()
        made = drawn
        if way == "white noise":
            made = with_white_noise(drawn, forecaster, failing, arguments.seed)
        if not made.parts or not len(made.parts[0]):
            print(f"{way}: nothing was kept", *made.notes)
            continue
        found = certify_windows(forecaster, failing, made, [], seed=arguments.seed)
        seconds = time.process_time() - start
        (part,) = made.parts
        certificate = found[part.kind]
        print(f"{way}: {certificate.reason} {part.dropped}")
        rows.append(line(way, certificate, part, seconds))
    headers = [
        "way",
        "kept",
        "told apart",
        "differences",
        "time order",
        "hardness",
        "z2",
    ]
    headers += ["tau", "order (low)", "labels", "closest", "verdict", "s"]
    print(text_table(headers, rows))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
