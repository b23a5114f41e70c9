"""Where does the time of ``hardsynth generate`` go, and how does it grow?

    python -m benchmarks.speed.whole --rows 4000 8000 16000 --folds 1
    python -m benchmarks.speed.whole --table adult.csv --target income --rows 0 --workers 1 2
    python -m benchmarks.speed.whole --rows 5000 --columns 500 1000 2000 --kind binary

Tables are simulated unless one is given (``--rows 0``: all of it; Parquet is always read whole).
One run per number of rows, columns, folds, tasks and workers, each in a process of its own, one
thread; a run prints one JSON line (``--raw FILE`` keeps them): wall and processor seconds, the
latter also by stage, and memory: the peak, what of it lies beyond the interpreter and all imports,
what beyond the end of reading, the latter also as a multiple of the encoded table (8 bytes a cell),
and by which stage the peak was raised, in MB. With one worker the run's own process is the worker.
Then, where one of the sizes was varied, the exponent b of a fit of ``log seconds = a + b log size``
for every stage: 1 is linear.

A stage is what its functions take without the stages inside them; fits of F inside a null re-fit
count as F, candidates as ``zoo``. With two workers there are no stages, but ``serial_share``: the
share of processor seconds that the process which hands out the work spends itself, when the
workers have nothing to do. With more than a ninth of them two workers cannot be 1.8 times as fast
as one. ``--profile FILE`` writes a cProfile of the run, to be read by ``python -m pstats`` or drawn
by any of its viewers.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil

from benchmarks.speed.memory_peak import peak_mb

#: What a run imports as it goes along, beside what ``generate`` imports at once: the interpreter's
#: share of time and memory, not the table's.
IMPORTED_LATE = (
    "amlb_ext.synthesizers.vae",
    "amlb_ext.sources.bundled",
    "pyarrow.dataset",
    "sklearn.manifold",
    "sklearn.mixture",
    "sklearn.naive_bayes",
    "sklearn.neural_network",
)
#: Stages that are F's and the synthesizer's own: the floor.
FLOOR = ("fit F", "train synthesizer")
#: Stages without which no result is honest: F, its re-fits, the oracle and the candidates.
NEEDED = ("fit F", "oracle", "zoo")


#: Functions of each stage, by module and name, as the caller's module knows them; and whether what
#: they call belongs to the stage, too.
WATCHED: dict[str, tuple[bool, list[tuple[str, ...]]]] = {
    "fit F": (False, [("hardening.baseline.estimator", "EstimatorBaseline", "fit")]),
    "predict F": (
        False,
        [("hardening.baseline.estimator", "EstimatorBaseline", "predict")],
    ),
    "oracle": (
        True,
        [
            ("hardening.oracle", "Oracle", "fit"),
            ("hardening.oracle", "Oracle", "predict"),
        ],
    ),
    "region": (
        True,
        [
            ("hardening.weights", "Region", "fit"),
            ("hardening.weights", "Region", "weights"),
        ],
    ),
    "zoo": (
        True,
        [
            ("validity.held_out_parts", "fit_zoo"),
            ("validity.held_out_parts", "HeldOutPart", "ask"),
            ("validity.task_rows", "fit_zoo"),
            ("validity.task_evaluation", "score_training_part"),
            ("validity.task_evaluation", "_FoldModels", "score"),
        ],
    ),
    "checks": (True, [("validity.calibration", "_measure_checks")]),
    "search": (False, [("hardening.made_rows.augment", "genetic_search")]),
    "encode": (
        False,
        [
            ("hardening.encode", "Encoder", "fit"),
            ("hardening.encode", "Encoder", "transform"),
            ("hardening.encode", "Encoder", "inverse"),
            ("hardening.encode", "TargetEncoder", "transform"),
            ("hardening.baseline.replacements", "fit_to_train"),
        ],
    ),
    "write": (
        True,
        [("pipeline.folds", "write_fold"), ("pipeline.generate", "finish_suite")],
    ),
    "read": (
        True,
        [("pipeline.generate", "load_tasks"), ("validity.certify", "read_task")],
    ),
    "certificate": (
        True,
        [
            ("validity.certify", "measure_files"),
            ("validity.certify", "measure_looks"),
            ("validity.certify", "measure_evaluation"),
        ],
    ),
    "sample": (False, [("hardening.fold", "sample_synthetic_rows")]),
    "train synthesizer": (True, [("synthesizers.base", "Synthesizer", "fit")]),
}


def children_seconds() -> float:
    """Return the processor seconds of all child processes; those that wait for work still live."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    living = [child.cpu_times() for child in psutil.Process().children(recursive=True)]
    return used.ru_utime + used.ru_stime + sum(t.user + t.system for t in living)


class Stages:
    """Processor seconds by stage, each without those of the stages it calls.

    ``raised`` has the MB by which each stage raised the process's peak.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.raised: dict[str, float] = defaultdict(float)
        self._peak = peak_mb()
        self._stack = [("other", False)]
        self._since = time.process_time()

    def begin(self) -> None:
        """Count from here on: imports are nobody's."""
        self._turn()
        self.seconds.clear()
        self.raised.clear()

    def _turn(self) -> None:
        now = time.process_time()
        peak = peak_mb()
        stage = self._stack[-1][0]
        self.seconds[stage] += now - self._since
        self.raised[stage] += peak - self._peak
        self._since = now
        self._peak = peak

    def watch(self, owner: Any, name: str, stage: str, whole: bool = False) -> None:
        """Count calls of ``owner.name`` as a stage; ``whole``: with everything they call."""
        function = getattr(owner, name)

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            if self._stack[-1][1]:
                return function(*args, **kwargs)
            self._turn()
            self._stack.append((stage, whole))
            try:
                return function(*args, **kwargs)
            finally:
                self._turn()
                self._stack.pop()

        setattr(owner, name, timed)


def watched() -> Stages:
    """Watch the stages of the pipeline."""
    stages = Stages()
    for stage, (whole, functions) in WATCHED.items():
        for module, *path in functions:
            # a package may hold a function of its module's name, so modules are asked for by path
            owner = importlib.import_module(f"amlb_ext.{module}")
            *inner, name = path
            for part in inner:
                owner = getattr(owner, part)
            stages.watch(owner, name, stage, whole)
    return stages


def load_libraries() -> None:
    """Import what a run imports late; torch loads more of itself at its first step."""
    for name in IMPORTED_LATE:
        importlib.import_module(name)
    from amlb_ext.synthesizers.vae import VAE

    rng = np.random.default_rng(0)
    model = VAE(epochs=2, latent=4, decoder=16)
    model.fit(rng.random((60, 3)), rng.random(60), cards=(), n_classes=0, rng=rng)


def simulate(rows: int, columns: int, kind: str, seed: int) -> pd.DataFrame:
    """Return a table with categories, missing numbers and a region of noise; target ``y``."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    f = X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3] + rng.normal(size=rows) * np.where(
        X[:, 4] > 0.8, 1.5, 0.3)  # fmt: skip
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(columns)])
    for j in range(5, columns, 5):
        table[f"x{j}"] = np.array(list("abcdefgh"))[
            (np.abs(X[:, j]) * 3).astype(int) % 8
        ]
    table = table.assign(y=f if kind == "regression" else np.where(f > 0, "yes", "no"))
    return table


def one_run(given: dict[str, Any]) -> dict[str, Any]:
    """Generate one suite and measure; in a process of its own."""
    from amlb_ext.core.config import build_config
    from amlb_ext.core.memory import use_one_allocator
    from amlb_ext.core.parallel import Execution
    from amlb_ext.pipeline.generate import generate_suite
    from amlb_ext.pipeline.request import Request

    with tempfile.TemporaryDirectory() as folder:
        sources = []
        size = 0
        for number in range(given["tasks"]):
            if given["table"].endswith(".parquet"):
                sources.append(given["table"])
                size += _cells(given["table"]) * 8
                target = given["target"]
                continue
            if given["table"]:
                table = pd.read_csv(given["table"], skipinitialspace=True)
                if given["rows"]:
                    table = table.sample(given["rows"], random_state=number)
                target = given["target"]
            else:
                table = simulate(given["rows"], given["columns"], given["kind"], number)
                target = "y"
            path = Path(folder, f"table{number}.csv")
            table.to_csv(path, index=False)
            sources.append(str(path))
            size += 8 * table.shape[0] * table.shape[1]
            del table
        layers = json.loads(given["config"])
        layers.setdefault("split", {})["folds"] = given["folds"]
        layers.setdefault("source", {})["target"] = target
        config = build_config(layers)
        stages = watched() if given["workers"] == 1 else None
        load_libraries()
        # as the command does
        use_one_allocator()
        before = peak_mb()
        profiler = _profiler(given["profile"])
        if stages:
            stages.begin()
        workers_used = children_seconds()
        start, used = time.perf_counter(), time.process_time()
        request = Request(sources=tuple(sources), out=Path(folder, "suite"), config=config,
                          execution=Execution(given["workers"]), certificate=given["certificate"],
                          quiet=True)  # fmt: skip
        report = generate_suite(request)
        wall, used = time.perf_counter() - start, time.process_time() - used
        if profiler:
            profiler.disable()
            profiler.dump_stats(given["profile"])
        if stages:
            stages._turn()
        workers_cpu = children_seconds() - workers_used
        peak = peak_mb()
        child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    seconds = dict(stages.seconds) if stages else {}
    floor = sum(seconds.get(name, 0.0) for name in FLOOR)
    raised = dict(stages.raised) if stages else {}
    beyond_reading = peak - before - raised.get("read", 0.0)
    return {
        **{
            k: given[k]
            for k in ("rows", "columns", "folds", "tasks", "workers", "kind")
        },
        "table_mb": size / 2**20,
        "wall": wall,
        "cpu": used + workers_cpu,
        "serial_share": used / (used + workers_cpu),
        "beyond_floor": 1 - floor / used if stages else None,
        "peak_mb": peak,
        "beyond_imports_mb": peak - before,
        "beyond_reading_mb": beyond_reading,
        "worker_mb": child,
        "multiple": beyond_reading / (size / 2**20),
        "seconds": dict(sorted(seconds.items(), key=lambda item: -item[1])),
        "raised_mb": raised,
        "failures": report.failures,
        "tasks_made": len(report.tasks),
    }


def _cells(path: str) -> int:
    """Return the cells of a table in a Parquet file, which is not read."""
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(path)
    return int(metadata.num_rows * metadata.num_columns)


def _profiler(path: str) -> Any:
    if not path:
        return None
    import cProfile

    profiler = cProfile.Profile()
    profiler.enable()
    return profiler


def growth(runs: list[dict[str, Any]], axis: str) -> dict[str, float]:
    """Return the exponent of every stage that takes at least 1 % of the longest run."""
    sizes = np.log([run[axis] for run in runs])
    most = runs[int(np.argmax(sizes))]
    out = {"all": float(np.polyfit(sizes, np.log([run["cpu"] for run in runs]), 1)[0])}
    for name, value in most["seconds"].items():
        took = [run["seconds"].get(name, 0.0) for run in runs]
        if value >= 0.01 * most["cpu"] and min(took) > 0:
            out[name] = float(np.polyfit(sizes, np.log(took), 1)[0])
    memory = [max(run["beyond_imports_mb"], 1.0) for run in runs]
    out["memory"] = float(np.polyfit(sizes, np.log(memory), 1)[0])
    return out


DEFAULTS = {"table": "", "target": "", "kind": "regression", "certificate": "quick",
            "config": "{}", "profile": ""}  # fmt: skip
AXES = {"rows": 5000, "columns": 16, "folds": 2, "tasks": 1, "workers": 1}


def run(given: dict[str, Any], minutes: float | None = None) -> dict[str, Any]:
    """Return :func:`one_run` of a process of its own; what is not given is as by default.

    Raises
    ------
    subprocess.TimeoutExpired
        It has not ended after so many minutes of the clock.
    """
    asked = json.dumps({**DEFAULTS, **AXES, **given})
    done = subprocess.run([sys.executable, "-m", "benchmarks.speed.whole", "--one", asked],
                          env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True,
                          stdout=subprocess.PIPE, text=True,
                          timeout=minutes and 60 * minutes)  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main() -> None:
    """Run what is asked, each run in a process of its own; print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, words in DEFAULTS.items():
        parser.add_argument(f"--{name}", default=words)
    for name, number in AXES.items():
        parser.add_argument(f"--{name}", type=int, nargs="+", default=[number])
    parser.add_argument("--raw", type=Path, help="append the JSON lines to this file")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            print(json.dumps(one_run(json.loads(arguments.one))))
        return
    fixed = {name: getattr(arguments, name) for name in DEFAULTS}
    runs = []
    for values in itertools.product(*(getattr(arguments, name) for name in AXES)):
        runs.append(run({**fixed, **dict(zip(AXES, values, strict=True))}))
        line = json.dumps(runs[-1])
        print(line, flush=True)
        if arguments.raw:
            with arguments.raw.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
    varied = [name for name in AXES if len(getattr(arguments, name)) > 1]
    if len(varied) == 1 and varied[0] != "workers":
        for name, power in growth(runs, varied[0]).items():
            print(f"{varied[0]} ** {power:.2f}  {name}")


if __name__ == "__main__":
    main()
