"""Growth with the number of tasks: time, overhead, manifest, verify, memory of the parent.

    python -m benchmarks.speed.growth 100 1000 --workers 1 2 4 > growth.csv
    python -m benchmarks.speed.growth 500 --workers 1 2 --nothing

Each line is one run in a process of its own over tables of 60 rows with the cheapest settings, so
that what is not the work of a fold shows. ``busy`` is the processor time of all processes over
the wall clock times the workers; ``parent`` the most memory the parent held. ``--nothing`` hands
out that many units which do nothing, which is what a unit costs beside its work; ``--cluster``
takes the address of a Dask scheduler.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

CHEAP = {
    "baseline": {"model": "ridge"},
    "synthesizer": {"name": "local"},
    "split": {"folds": 1},
    "search": {"kappa": 0.005, "operators": {"generations": 1}},
    "train_hard": False,
}


def write_tables(folder: Path, count: int) -> list[str]:
    """Write tables whose last column is the target."""
    for number in range(count):
        rng = np.random.default_rng(number)
        frame = pd.DataFrame({"a": rng.random(60), "b": rng.choice(["u", "v"], 60)})
        frame["y"] = frame["a"] * 3 + rng.normal(0, 0.3, 60)
        frame.to_csv(folder / f"t{number:05d}.csv", index=False)
    return [str(path) for path in sorted(folder.glob("*.csv"))]


def clock(kind: int) -> float:
    used = resource.getrusage(kind)
    return used.ru_utime + used.ru_stime


def timed(work: Callable[..., Any], *given: Any) -> tuple[Any, float]:
    """Return what a function returns, and how long it took by the clock."""
    began = time.perf_counter()
    result = work(*given)
    return result, time.perf_counter() - began


def measure(tasks: int, workers: int, cluster: str) -> dict[str, float]:
    from amlb_ext.core.config import build_config
    from amlb_ext.core.parallel import Execution
    from amlb_ext.pipeline import Request, generate_suite
    from amlb_ext.pipeline.generate import load_tasks
    from amlb_ext.suite import Layout, verify_suite
    from amlb_ext.suite.manifest import write_manifest
    from amlb_ext.suite.reader import read_manifest

    with tempfile.TemporaryDirectory() as place:
        tables, out = Path(place, "tables"), Path(place, "suite")
        tables.mkdir()
        sources = write_tables(tables, tasks)
        config = build_config(CHEAP)
        request = Request(tuple(sources), config, out, Execution(workers, cluster), quiet=True,
                          certificate="none")  # fmt: skip
        before = clock(resource.RUSAGE_SELF) + clock(resource.RUSAGE_CHILDREN)
        report, wall = timed(generate_suite, request)
        used = clock(resource.RUSAGE_SELF) + clock(resource.RUSAGE_CHILDREN) - before
        parent = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        layout = Layout(out)
        found = {"tasks": tasks, "workers": workers, "made": len(report.tasks), "seconds": wall,
                 "processor": used, "busy": used / wall / workers, "parent_mb": parent}  # fmt: skip
        _, found["sources"] = timed(load_tasks, request)
        _, found["again"] = timed(generate_suite, request)
        manifest, found["manifest_read"] = timed(read_manifest, layout.manifest)
        _, found["manifest_write"] = timed(write_manifest, manifest, layout.manifest)
        found["manifest_mb"] = layout.manifest.stat().st_size / 1e6
        problems, found["verify"] = timed(verify_suite, out)
        assert problems == []
        found["files"] = len(manifest.files)
        return found


def nothing(number: int) -> int:
    """Do the work of a unit that has none."""
    return number


def measure_nothing(units: int, workers: int, cluster: str) -> dict[str, float]:
    """Time units that do nothing, the start of workers apart."""
    from amlb_ext.core.parallel import Execution, Unit, run_units

    def drawn(count: int) -> Iterator[Unit]:
        return (Unit(f"unit {k}", f"{k}", nothing, (k,)) for k in range(count))

    began = time.perf_counter()
    for number, outcome in enumerate(
        run_units(drawn(units + 20), Execution(workers, cluster))
    ):
        assert outcome.result == int(outcome.unit.key)
        if number == 19:
            started, began = time.perf_counter() - began, time.perf_counter()
    seconds = time.perf_counter() - began
    return {
        "units": units,
        "workers": workers,
        "first_20": started,
        "ms_a_unit": 1e3 * seconds / units,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", type=int, nargs="+")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--cluster", default="", help="a Dask scheduler's address")
    parser.add_argument("--nothing", action="store_true", help="units without work")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        chosen = measure_nothing if given.nothing else measure
        print(json.dumps(chosen(given.tasks[0], given.workers[0], given.cluster)))
        return
    table = None
    for tasks in given.tasks:
        for workers in given.workers:
            words = [
                str(tasks),
                "--workers",
                str(workers),
                "--cluster",
                given.cluster,
                "--one",
            ]
            words += ["--nothing"] * given.nothing
            program = [sys.executable, "-m", "benchmarks.speed.growth"]
            done = subprocess.run(
                [*program, *words], check=True, capture_output=True, text=True
            )
            row = json.loads(done.stdout.splitlines()[-1])
            if table is None:
                table = csv.DictWriter(sys.stdout, list(row))
                table.writeheader()
            table.writerow(
                {k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
