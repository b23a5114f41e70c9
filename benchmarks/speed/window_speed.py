"""What does a suite of forecasting windows cost, beside forecasting alone and statsforecast?

    python -m benchmarks.speed.window_speed m3_monthly.parquet --horizon 12 --origins 3
    python -m benchmarks.speed.window_speed m3_monthly.parquet --horizon 12 --origins 3 \
        --statsforecast ORACLE/bin/python

``--repeat 4`` takes every series four times, under new ids: how time and memory grow with a table.
``--baseline seasonal_naive`` makes large tables quick: forecasts of either F are as large.

The table is long, with the columns item_id, timestamp and target. Each line is a process of its
own on one thread, imports left out: CPU seconds, and the most memory beyond what imports take, in
MB and as a multiple of the table (8 bytes a cell).

generate      ``hardsynth generate`` with F, Theta: windows, region, certificate, files
without made  the same with ``--copies 0 --certificate none``
predict       F's forecasts of the same windows, at learning and test origins, and nothing else
statsforecast its Theta on the same pasts, by a Python that has it (it wants pandas < 3, so give it
              an environment of its own: ``pip install statsforecast``); its models are called one
              series after another, without its data frames
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from amlb_ext.core.display import text_table

PARTS = ("generate", "without made", "predict")
LEARNING = 3
#: Runs in an environment that has no hardsynth.
THEIRS = """
import json, sys, time
import numpy as np
from statsforecast.models import Theta
pasts = np.load(sys.argv[1])
horizon, season = int(sys.argv[2]), int(sys.argv[3])
series = [pasts[name] for name in pasts.files]
Theta(season_length=season).forecast(y=series[0], h=horizon)
start = time.process_time()
for y in series:
    Theta(season_length=season).forecast(y=y, h=horizon)
print(json.dumps({"seconds": time.process_time() - start}))
"""


def read_table(path):
    read = pd.read_parquet if path.endswith("parquet") else pd.read_csv
    return read(path)


def read_windows(arguments):
    """Return the panel and the windows of all origins, as ``generate`` cuts them."""
    from amlb_ext.sources.panel import PanelRoles, read_panel
    from amlb_ext.units.origins import cut_windows, plan_origins

    roles = PanelRoles(
        series="item_id",
        time="timestamp",
        target="target",
        horizon=arguments.horizon,
        season=arguments.season,
    )
    panel = read_panel(read_table(arguments.table), roles)
    origins = plan_origins(panel, test=arguments.origins, learning=LEARNING)
    return panel, [cut_windows(panel, cutoff) for cutoff in origins.all]


def run_part(part, arguments):
    """Run one part in this process, and print what it took."""
    import amlb_ext.pipeline.generate_series  # noqa: F401  (imports are not what is measured)
    from amlb_ext.cli import main as hardsynth
    from amlb_ext.models.forecasters import make_forecaster
    from amlb_ext.units.rolling import roll_forecaster

    words = ["generate", arguments.table, "--series", "item_id"]
    words += ["--time", "timestamp", "--target", "target"]
    words += ["--baseline", arguments.baseline]
    words += ["--horizon", str(arguments.horizon), "--season", str(arguments.season)]
    words += ["--origins", str(arguments.origins), "-q"]
    if part == "without made":
        words += ["--copies", "0", "--certificate", "none"]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    if part == "predict":
        panel, windows = read_windows(arguments)
        roll_forecaster(make_forecaster(arguments.baseline), panel, windows)
    else:
        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.redirect_stdout(io.StringIO()),
        ):
            assert hardsynth([*words, "-o", str(Path(folder, "hard"))]) == 0
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": seconds, "mb": (peak - before) / 1024}))


def run_theirs(arguments):
    """Return what statsforecast takes for the same pasts."""
    panel, origins = read_windows(arguments)
    pasts = {}
    for windows in origins:
        for item in windows.items:
            past = panel.past(item, windows.cutoff)
            pasts[f"{item}_{windows.cutoff}"] = past
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "pasts.npz")
        np.savez(path, **pasts)
        command = [arguments.statsforecast, "-c", THEIRS, str(path)]
        command += [str(arguments.horizon), str(arguments.season)]
        # its environment is its own: nothing of ours on its path
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, env=environment
        )
    return json.loads(done.stdout.splitlines()[-1]) | {"windows": len(pasts)}


def main():
    """Run all parts, each in a process of its own, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table")
    parser.add_argument("--horizon", type=int, required=True)
    parser.add_argument("--season", type=int, default=12)
    parser.add_argument("--origins", type=int, default=1)
    parser.add_argument("--baseline", default="theta", help="F")
    parser.add_argument("--repeat", type=int, default=1, help="take series so often")
    parser.add_argument("--statsforecast", help="a Python that has statsforecast")
    parser.add_argument("--parts", nargs="*", default=PARTS, choices=PARTS)
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        run_part(arguments.part, arguments)
        return
    with tempfile.TemporaryDirectory() as folder:
        print_costs(arguments, Path(folder, "table.parquet"))


def print_costs(arguments, path):
    """Take every part in a process of its own, on a table that is written to a path."""
    table = read_table(arguments.table)
    names = table["item_id"].astype(str)
    copies = [table.assign(item_id=names + f"r{k}") for k in range(arguments.repeat)]
    table = table if arguments.repeat == 1 else pd.concat(copies, ignore_index=True)
    table.to_parquet(path, index=False)
    arguments.table = str(path)
    size = table.size * 8 / 2**20
    print(f"{table['item_id'].nunique()} series, {len(table)} rows, {size:.1f} MB")
    rows = []
    for part in arguments.parts:
        command = [
            sys.executable,
            "-m",
            "benchmarks.speed.window_speed",
            str(path),
            "--part",
            part,
        ]
        for flag in ("horizon", "season", "origins", "baseline"):
            command += [f"--{flag}", str(getattr(arguments, flag))]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, env=environment
        )
        took = json.loads(done.stdout.splitlines()[-1])
        rows.append(
            [
                part,
                f"{took['seconds']:.0f}",
                f"{took['mb']:.0f}",
                f"{took['mb'] / size:.1f}",
            ]
        )
    if arguments.statsforecast:
        took = run_theirs(arguments)
        rows.append(["statsforecast", f"{took['seconds']:.0f}", "", ""])
        print(f"{took['windows']} windows at learning and test origins together")
    print(text_table(["part", "CPU seconds", "MB", "times the table"], rows))


if __name__ == "__main__":
    main()
