"""Small suites to publish, and how to publish them."""

import numpy as np
import pandas as pd
from loopback_publish import KEY
from written_suites import entry_of, finish, put_fold

from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Origin
from amlb_ext.publish import Server, plan_suite, publish_plan
from amlb_ext.suite import (
    Layout,
    Part,
    Rows,
    SuiteRequest,
    begin_suite,
    verify_suite,
)

ORIGINS = ("good", "bad", "ga", "synthetic")


def table(kind: str, n: int, seed: int = 0) -> pd.DataFrame:
    """A table with an integer, a number with gaps, awkward texts and a target of the kind."""
    rng = np.random.default_rng([seed, n])
    words = np.array(
        ["red", "it's", "a,b", "50 %", "{x}", 'say "hi"', "back\\slash", "Zürich", "?"]
    )
    frame = pd.DataFrame(
        {
            "count": rng.integers(0, 300, n),
            "size (cm)": np.where(
                rng.random(n) < 0.1, np.nan, rng.normal(size=n).round(6)
            ),
            "what's it": np.resize(words, n),
            "flag": rng.choice([True, False], n),
        }
    )
    frame.loc[frame.index % 11 == 5, "what's it"] = None
    if kind == "regression":
        return frame.assign(price=rng.normal(100, 30, n).round(3))
    labels = ["yes", "no"] if kind == "binary" else ["low", "High", "1e5"]
    return frame.assign(**{"the target": np.resize(labels, n)})


def write_suite(root, tasks, licence="CC BY 4.0", seed=1, integrations=None, **origin):
    """A suite of tasks: name → (kind, training rows, test rows), or (kind, sizes of each fold)."""
    layout, entries = Layout(root), []
    begin_suite(layout, {"sources": sorted(tasks)})
    for name, (kind, *sizes) in tasks.items():
        folds = [sizes] if isinstance(sizes[0], int) else sizes
        n = max(train + test for train, test in folds)
        frame = table(kind, n)
        task = make_task(frame, frame.columns[-1], name=f"{name} set")
        records = []
        for fold, (train, test) in enumerate(folds):
            parts = {"": Part(take(task, range(n - test, n)))}
            parts["full"] = parts[""]
            parts["region"] = Part(take(task, range(n - test, n - test // 2)))
            rows = take(task, range(train), origin=False)
            records.append(
                put_fold(
                    layout, task, rows, parts, name=name, fold=fold, key=f"k{fold}"
                )
            )
        source = Origin(f"openml/t/{len(name)}", {"data_id": "7"}, licence, **origin)
        entries.append(entry_of(task, records, name=name, origin=source))
    finish(
        layout,
        entries,
        config={"seed": seed},
        seed=seed,
        version="9.9",
        integrations=integrations or {},
        request=SuiteRequest(command="hardsynth generate openml/t/1 -o DIR"),
    )
    return root


def problems(suite):
    """Return what verify finds, warnings aside."""
    return [line for line in verify_suite(suite) if not line.startswith("warning: ")]


def take(task, index, origin=True):
    index = np.asarray(index, dtype=np.int64)
    about = pd.DataFrame({"source_row": task.row_ids[index]})
    if origin:
        about.insert(0, "origin", np.resize(ORIGINS, len(index)))
        made = about["origin"].isin(["ga", "synthetic"])
        about["parent_row"] = about["source_row"].where(~made, 3)
        about.loc[made, "source_row"] = -1
    return Rows(task.features.iloc[index], task.target.iloc[index], about)


def client(loopback, key=KEY):
    """A connection that never sleeps."""
    return Server(loopback.url, key, sleep=lambda seconds: None)


def publish(root, loopback, key=KEY, wait=5.0, say=lambda text: None, **how):
    return publish_plan(
        plan_suite(root, **how), client(loopback, key), wait=wait, say=say
    )
