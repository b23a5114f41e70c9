"""How much is left to gain, task by task: the table of docs/evidence/left_to_gain.md.

    python -m benchmarks.claims.left_to_gain bundled CACHE --data docs/evidence/left_to_gain.csv \\
        --page docs/evidence/left_to_gain.md

``CACHE`` is the cache folder of OpenML's client, whose tasks are all taken; other words are sources
as ``hardsynth generate`` reads them. F, a forest, and a dozen other models are fitted on the
training rows of every fold, and judged on all test rows as ``hardsynth report --baseline`` judges
AMLB's results. A task that stands in the data already is not done again.
"""

import argparse
import time
from pathlib import Path

import pandas as pd

from amlb_ext.core.config import BaselineConfig, SourceConfig, SplitConfig
from amlb_ext.core.display import format_percent, markdown_table
from amlb_ext.core.errors import HardsynthError
from amlb_ext.core.files import write_text
from amlb_ext.core.unit import F
from amlb_ext.core.version import __version__
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.identifiers import RequiredColumns, select_columns
from amlb_ext.hardening.split import split_task
from amlb_ext.models.registry import resolve_model
from amlb_ext.report.compare import left_to_gain
from amlb_ext.report.predictions import ReadPredictions
from amlb_ext.report.results_task import judge_predictions
from amlb_ext.sources import open_specs
from amlb_ext.validity.candidates import candidates_beside, fit_zoo
from amlb_ext.validity.measures import NOTHING_LEFT
from benchmarks.studies.encoded import EncodedTask

#: What stands between them in the page is written here.
BEGIN, END = "<!-- table -->", "<!-- end of table -->"
HEADERS = [
    "task",
    "finding",
    "left to gain, all rows",
    "where F fails",
    "best",
    "test rows",
    "source",
]
#: Tasks of larger numbers stand in a cache alone.
LAST_OPENML_TASK = 9_000_000
LEVEL = 0.95


def task_refs(words):
    """Return the tasks that the words name."""
    refs = []
    for word in words:
        folder = Path(word, "org", "openml", "www", "tasks")
        specs, options = [word], SourceConfig()
        if folder.is_dir():
            numbers = sorted(int(path.name) for path in folder.iterdir())
            specs = [f"openml/t/{number}" for number in numbers]
            options = SourceConfig(openml_cache=word)
        refs += open_specs(specs, options)
    return refs


def predict_out_of_fold(task):
    """Return what F and the candidates predict of each fold's test rows."""
    specification = resolve_model(BaselineConfig(), task.kind)
    read = ReadPredictions(folds=list(range(len(task.folds))))
    for number, fold in enumerate(task.folds):
        encoded = EncodedTask(task, fold.train)
        (Z, y), scale = encoded.rows(fold.train), encoded.scale
        kind, n_classes, n_categorical = encoded.shape
        own = EstimatorBaseline(specification, kind, n_classes, n_categorical)
        candidates = candidates_beside(
            specification, kind, train_rows=len(y), n_classes=n_classes
        )
        fitted, failed = fit_zoo(
            candidates, kind, n_classes, n_categorical, Z, y, number, most=None
        )
        for name, why in failed.items():
            print(f"  fold {number}: {name} is left out: {why}")
        test_rows, _ = encoded.rows(fold.test)
        for name, model in {F: own.fit(Z, y, number), **fitted}.items():
            f = model.predict(test_rows)
            if not task.labels:
                f = f * scale.span + scale.low
            read.f[name, number] = f
            if task.labels:
                read.chosen[name, number] = f.argmax(axis=1)
    return read


def records_of(ref):
    """Return what is left to gain on a task, on all rows and where F fails."""
    start = time.perf_counter()
    task = split_task(ref.load(), SplitConfig(folds=None), 0)
    task = select_columns(task, SourceConfig(), RequiredColumns())
    found = judge_predictions(task, predict_out_of_fold(task), F, LEVEL)
    units, full = found.judged.compared.capped(), found.full
    losses = pd.DataFrame({name: full.loss(name) for name in sorted(full.f)})
    whole = units.cap.apply(losses.dropna(axis="columns"))
    records = left_to_gain(task.name, whole, units, LEVEL)
    shared = {
        "source": ref.spec,
        "kind": task.kind.value,
        "folds": len(task.folds),
        "bad_rows": int(found.judged.is_bad.sum()),
        "candidates": whole.shape[1],
        "hardsynth": __version__,
        "seconds": round(time.perf_counter() - start, 1),
    }
    return [record | shared for record in records]


def finding(low, high):
    """Return what the limits of what is left to gain show."""
    # little to mend comes first, as in a certificate
    if high <= NOTHING_LEFT:
        return "nothing to mend"
    return "mendable" if low > 0 else "not shown"


def source_text(spec):
    """Return a source for the page; a number that OpenML has not given is no address."""
    kind, _, number = spec.rpartition("/")
    is_local = kind == "openml/t" and int(number) > LAST_OPENML_TASK
    return "local copy" if is_local else f"`{spec}`"


def gain_text(row):
    """Return a saving with its interval, in percent."""
    if row is None:
        return "-"
    low, high = format_percent(row["low"], ""), format_percent(row["high"], "")
    # on one line, however narrow the column is
    text = f"{format_percent(row['saved'])} ({low} to {high})"
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def page_text(data):
    """Return the table and what it counts, as Markdown."""
    overall = data[data["where"] == "all rows"].sort_values(
        ["low", "saved", "source"], ascending=[False, False, True], kind="stable"
    )
    region = {
        row["source"]: row
        for row in data.to_dict("records")
        if row["where"] != "all rows"
    }
    rows, findings = [], []
    for task in overall.to_dict("records"):
        findings.append(finding(task["low"], task["high"]))
        rows.append(
            [
                task["task"],
                findings[-1],
                gain_text(task),
                gain_text(region.get(task["source"])),
                task["best"],
                str(task["rows"]),
                source_text(task["source"]),
            ]
        )
    counts = pd.Series(findings).value_counts()
    counted = ", ".join(f"{count} {name}" for name, count in counts.items())
    versions = ", ".join(dict.fromkeys(overall["hardsynth"].astype(str)))
    head = f"{len(overall)} tasks: {counted}. hardsynth {versions}."
    return f"{head}\n\n{markdown_table(HEADERS, rows)}"


def main():
    """Do the tasks that are not in the data yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--page", type=Path)
    arguments = parser.parse_args()
    data = pd.DataFrame()
    if arguments.data.is_file():
        data = pd.read_csv(arguments.data)
    for ref in task_refs(arguments.sources):
        if len(data) and (data["source"] == ref.spec).any():
            continue
        print(ref.spec, flush=True)
        try:
            records = records_of(ref)
        except HardsynthError as error:
            print(f"  is left out: {error}")
            continue
        data = pd.concat([data, pd.DataFrame(records)], ignore_index=True)
        data.to_csv(arguments.data, index=False, float_format="%.6g")
    if arguments.page is None:
        print(page_text(data))
        return
    before, _, rest = arguments.page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    text = page_text(data).strip()
    write_text(arguments.page, f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


if __name__ == "__main__":
    main()
