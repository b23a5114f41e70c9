"""How large a report is, how long it takes, and how much memory: on suites of any size.

    python -m benchmarks.speed.report_size --tasks 100 --folds 10 --frameworks 5

Simulated tasks (regression, binary and of three classes in turn) are written as a suite by the
project's own writer. F is a linear model, the bad rows are its worst 10 %, augmented and synthetic
rows are noisy copies of them, certificates are made up, and a framework predicts the truth with
noise: nothing is searched or certified, which would take far longer than the report. With ``-o``
suite and results stay there, and a suite that stands there is used again. ``--profile N`` prints
the N functions that took longest.
"""

import argparse
import cProfile
import pstats
import resource
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import OneHotEncoder
from tqdm import tqdm

from amlb_ext.core import row_losses
from amlb_ext.core.config import build_config
from amlb_ext.core.files import write_file, write_text
from amlb_ext.core.parallel import run_jobs
from amlb_ext.core.rng import random_stream
from amlb_ext.core.tables import make_task
from amlb_ext.core.unit import ROW
from amlb_ext.core.version import __version__
from amlb_ext.hardening.split import split_task
from amlb_ext.report import build_report, write_report
from amlb_ext.runner.results import RunWriter
from amlb_ext.suite import (
    Coding,
    Layout,
    Part,
    Rows,
    SuiteFiles,
    SuiteRequest,
    SuiteTask,
    begin_suite,
    finish_suite,
    write_fold,
)
from amlb_ext.suite.sealed_json import json_text
from amlb_ext.validity import Certificate
from amlb_ext.validity.measures import plan_measure

NAMES = ("AutoGluon", "flaml", "H2OAutoML", "lightautoml", "mljarsupervised", "TPOT", "GAMA",
         "RandomForest")  # fmt: skip
COPIES, SYNTHETIC, BAD = 5, 25, 0.1
VERDICTS = ("rank", "describe", "describe", "stress-test only")


def simulate(number, rows):
    """Return a task with a non-linear truth, gaps, and noise that is larger in one region."""
    rng = random_stream(0, number, "task")
    width = int(rng.integers(6, 20))
    Z = rng.normal(size=(rows, width))
    f = Z[:, 0] + 1.5 * np.sin(2 * Z[:, 1]) + Z[:, 2] * Z[:, 3]
    y = f + rng.normal(size=rows) * np.where(Z[:, 4] > 0.7, 1.5, 0.4)
    frame = pd.DataFrame(Z, columns=[f"x{j}" for j in range(width)])
    frame["region"] = rng.choice(["north", "south", "east", "west"], rows)
    frame["grade"] = rng.choice(list("abcdefgh"), rows)
    frame.iloc[rng.random(rows) < 0.05, 5] = np.nan
    cuts = {1: ([0], ["no", "yes"]), 2: ([-1, 1], ["high", "low", "mid"])}.get(
        number % 3
    )
    frame["target"] = y if cuts is None else np.array(cuts[1])[np.digitize(y, cuts[0])]
    return make_task(frame, "target", name=f"task-{number + 1:03d}")


def fitted(task, rows):
    """Return F's predictions of all rows: scaled targets, or probabilities; and the truth."""
    numbers = task.features.select_dtypes("number").fillna(0).to_numpy(dtype=float)
    texts = task.features.select_dtypes(exclude="number").astype(object)
    X = np.hstack([numbers, OneHotEncoder(sparse_output=False).fit_transform(texts)])
    if task.kind.is_classification:
        y = task.target.map(
            {label: code for code, label in enumerate(task.labels)}
        ).to_numpy(int)
        model = LogisticRegression(max_iter=200).fit(X[rows], y[rows])
        return y, model.predict_proba(X), (0.0, 1.0)
    y = task.target.to_numpy(dtype=float)
    low, span = y[rows].min(), np.ptp(y[rows])
    f = Ridge().fit(X[rows], y[rows]).predict(X)
    return (y - low) / span, (f - low) / span, (low, span)


def write_task(root, number, rows, folds):
    """Write all folds of a task; return it with its records and the losses of F's re-fits."""
    config = build_config({"split": {"folds": folds, "test_size": 1 / max(folds, 2)}})
    task = split_task(simulate(number, rows), config.split, 0)
    layout, coding = Layout(Path(root)), Coding.of(task)
    records, null = [], []
    for k, fold in enumerate(task.folds):
        rng = random_stream(0, number, k, "fold")
        y, f, scale = fitted(task, fold.train)
        loss = row_losses.row_loss(y, f)
        worst = fold.test[np.argsort(-loss[fold.test])][
            : max(1, round(BAD * len(fold.test)))
        ]
        bad = np.isin(np.arange(len(y)), worst)
        full = chosen(
            task, fold.test, np.where(bad, "bad", "good"), loss, f, scale, rng
        )
        parts = {"full": Part(full), "bad": Part(full.take(bad[fold.test]))}
        for origin, copies in (("ga", COPIES), ("synthetic", SYNTHETIC)):
            some = np.repeat(worst, copies)
            where = np.full(len(y), origin)
            parts[origin] = Part(
                noisy(chosen(task, some, where, loss, f, scale, rng), rng)
            )
        parts[""] = Part(both(parts["bad"].test, parts["synthetic"].test))
        source = pd.DataFrame({"source_row": task.row_ids[fold.train]})
        train = Rows(
            take(task.features, fold.train), take(task.target, fold.train), source
        )
        said = {"bad": len(worst), "test": len(fold.test), "notes": []}
        records.append(
            write_fold(
                layout,
                task.name,
                coding,
                fold=k,
                train=train,
                parts=parts,
                key=f"{number}",
                summary=said,
            )
        )
        own = loss[fold.test]
        twins = {f"refit_{r}": own * rng.lognormal(0, 0.1, len(own)) for r in range(3)}
        null.append(
            pd.DataFrame({"fold": k, "row": np.arange(len(own)), "loss": own, **twins})
        )
    entry = SuiteTask(task.name, task.kind, task.target_name, coding, task.origin,
                      task.content_hash, task.notes, tuple(records), task.name)  # fmt: skip
    return entry, pd.concat(null, ignore_index=True)


def take(values, rows):
    return values.iloc[rows].reset_index(drop=True)


def chosen(task, rows, origin, loss, f, scale, rng):
    """Return rows of the table with the provenance that the project gives them."""
    ids = task.row_ids[rows].astype(np.int64)
    real = ~np.isin(origin[rows], ["ga", "synthetic"])
    low, span = scale
    own = {"f": f[rows] * span + low} if f.ndim == 1 else {
        f"f_{code}": f[rows, code] for code in range(f.shape[1])}  # fmt: skip
    about = {
        "origin": origin[rows], "source_row": np.where(real, ids, -1), "parent_row": ids,
        "hardness": loss[rows], "loss": loss[rows], "reducible": loss[rows] / 2,
        "label_support": rng.normal(size=len(rows)), "label_agrees": True,
        "weight": np.where(real, rng.beta(1, 4, len(rows)), np.nan), **own,
    }  # fmt: skip
    return Rows(take(task.features, rows), take(task.target, rows), pd.DataFrame(about))


def noisy(rows, rng):
    features = rows.features.copy()
    for name in features.select_dtypes("number"):
        features[name] += rng.normal(0, 0.1, len(features))
    return Rows(features, rows.target, rows.provenance)


def both(one, two):
    pairs = ((getattr(one, name), getattr(two, name)) for name in ("features", "target",
                                                                   "provenance"))  # fmt: skip
    return Rows(*(pd.concat(pair, ignore_index=True) for pair in pairs))


def certificate(task, number):
    """Return a certificate as long as a real one."""
    names = ("region", "solvability", "noise", "target check", "effective size", "ga: order",
             "ga: z2", "synthetic: order", "synthetic: z2", "null on region", "null on bad",
             "null on synthetic", "label support", "exact copies", "nearest distance",
             "detection", "coverage", "clustered width")  # fmt: skip
    text = "What was measured, in one sentence about as long as those of a real certificate are."
    rng = random_stream(0, number, "certificate")
    taken = tuple(
        plan_measure(name, "docs/validity.md", ">=", value / 2).found(
            value, text, low=value / 2, high=2 * value)
        for name, value in zip(names, rng.random(len(names)), strict=True)
    )  # fmt: skip
    verdict = VERDICTS[number % len(VERDICTS)]
    return Certificate(
        task, "", verdict, f"A reason for {verdict}, made up for this test.", taken, ROW
    )


def write_suite(root, arguments):
    layout, tasks = Layout(root), arguments.tasks
    begin_suite(layout, {"settings": {}})
    jobs = [
        (str(root), number, arguments.rows, arguments.folds) for number in range(tasks)
    ]
    done = {}
    for index, result in tqdm(
        run_jobs(write_task, jobs, arguments.workers), "suite", tasks, leave=False
    ):
        done[index] = result
    finish_suite(layout, name="hardsynth", config={"baseline": {"model": "ridge"}}, seed=0,
           tasks=[done[index][0] for index in range(tasks)], failures=[], version=__version__,
           integrations={}, request=SuiteRequest(command="report_size.py"))  # fmt: skip
    for index, (entry, null) in done.items():
        write_file(layout.task_null(entry.name), partial(null.to_parquet, index=False))
        content = {"key": "", "certificate": certificate(entry.name, index).to_json()}
        write_text(layout.task_certificate(entry.name), json_text(content))


def write_results(root, outdir, frameworks):
    """Write what each framework predicted of every test file of the main definition."""
    suite = SuiteFiles.load(root)
    run = RunWriter(outdir, suite.manifest.name)
    rng = random_stream(0, "results")
    for name, task in tqdm(suite.amlb_tasks.items(), "results", leave=False):
        if task.suffix not in ("", "full"):
            continue
        coding = suite.coding(name)
        for k in range(len(task.folds)):
            target = coding.decode(coding.read_csv(suite.pair(name, k)[1]))[1]
            for number, framework in enumerate(frameworks):
                table, metric, loss = predicted(coding, target, 0.5 + 0.2 * number, rng)
                about = {"amlb_task": name, "amlb_fold": k, "framework": framework,
                         "type": task.type.value, "metric": metric, "loss": loss}  # fmt: skip
                run.add(about, table)
    run.finish()


def predicted(coding, target, noise, rng):
    """Return predictions as AMLB writes them, and their loss."""
    n = len(target)
    if not coding.labels:
        y = target.to_numpy(dtype=float)
        f = y + noise * rng.normal(size=n)
        return (
            pd.DataFrame({"predictions": f, "truth": y}),
            "rmse",
            np.sqrt(np.mean((f - y) ** 2)),
        )
    labels = list(coding.written_labels)
    y = target.map(dict(zip(coding.labels, range(len(labels)), strict=True))).to_numpy(
        int
    )
    p = np.exp(
        2 * np.eye(len(labels))[y] + 2 * noise * rng.normal(size=(n, len(labels)))
    )
    p /= p.sum(axis=1, keepdims=True)
    table = pd.DataFrame(p, columns=labels)[sorted(labels)]
    table["predictions"] = [labels[code] for code in p.argmax(axis=1)]
    table["truth"] = [labels[code] for code in y]
    return table, "logloss", float(-np.log(p[np.arange(n), y]).mean())


def report(root, outdir, workers):
    """Build and write a report; return seconds of both, and the page."""
    start = time.perf_counter()
    built = build_report(root, [outdir], workers=workers, quiet=False)
    middle = time.perf_counter()
    path = write_report(built, root / "hardsynth")
    return middle - start, time.perf_counter() - middle, path


def peak():
    """Return the most memory that this process, and the largest of its children, held, in MB."""
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return [resource.getrusage(who).ru_maxrss / unit
            for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--frameworks", type=int, default=5, help="eight at most")
    parser.add_argument("--rows", type=int, default=1000, help="of each task")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--profile", type=int, default=0, metavar="N")
    parser.add_argument(
        "-o", "--output", type=Path, help="a folder to keep everything in"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as fallback:
        folder = arguments.output or Path(fallback)
        root, outdir = folder / "suite", folder / "results"
        start = time.perf_counter()
        if not Layout(root).manifest.exists():
            write_suite(root, arguments)
        if not outdir.exists():
            write_results(root, outdir, NAMES[: arguments.frameworks])
        suite = SuiteFiles.load(root)
        folds = sum(len(suite.amlb_tasks[task].folds) for task in suite.tasks)
        print(f"tasks {len(suite.tasks)}, folds {folds}, frameworks {len(list(outdir.iterdir()))}; "
              f"suite and results in {time.perf_counter() - start:.0f} s", flush=True)  # fmt: skip
        profile = cProfile.Profile()
        if arguments.profile:
            profile.enable()
        used = time.process_time()
        build, write, path = report(root, outdir, arguments.workers)
        used = time.process_time() - used
        profile.disable()
        own, child = peak()
        print(f"built in {build:.1f} s, written in {write:.1f} s ({used:.1f} s of this process); "
              f"report.html {path.stat().st_size / 1e6:.2f} MB; peak memory {own:.0f} MB"
              + (f", of a worker {child:.0f} MB" if arguments.workers != 1 else ""))  # fmt: skip
        if arguments.profile:
            pstats.Stats(profile).sort_stats("cumulative").print_stats(
                arguments.profile
            )


if __name__ == "__main__":
    main()
