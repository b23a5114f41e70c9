"""Tasks with odd columns, names and labels, drawn from a seed."""

from __future__ import annotations

import numpy as np
import pandas as pd

from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Task
from amlb_ext.suite import Rows

WEIRD = [
    "red", "Blue", "blue", " red", "red ", "", " ", "NA", "nan", "NaN", "None", "null", "N/A", "-",
    "?", "1", "2", "10", "1.0", "007", "1e5", "+5", " 1", "inf", "-Infinity", "True", "false",
    "TRUE", "yes", "Yes", "no", "a,b", 'say "hi"', '"', "'", "line1\nline2", "tab\tx", "cr\rx",
    "a\x00b", "a\x00", "\x85", "\u2028", "ünï", "ÜNÏ", "İ", "ß", "ẞ", "日本", "predictions",
    "truth", "Truth", "c0_red", "c1_", "2020-01-01", "#N/A", "1_000", "0x10", "1,5", "[1]", "{x}",
    "\ufeff", "99999999999999999999", "1e400", "ǅ", "a" * 60, "\\", "%s", "#x", "nat", "1.", ".5",
]  # fmt: skip


NAMES = ["x", "X", "a[0]", "a_0_", "", " ", 'q"', "b:c", "1", "truth", "predictions", "é", "n\nl",
         "class", "target", "{u}", "\ufeffz", "x.1", "d<e>", "a,b"]  # fmt: skip


def texts(rng: np.random.Generator, n: int, missing: float) -> pd.Series:
    """Weird texts, some so rare that a test part sees what its training part does not."""
    words = list(
        rng.choice(np.array(WEIRD, dtype=object), rng.integers(1, 9), replace=False)
    )
    odds = rng.dirichlet(np.full(len(words), 0.4))
    values = rng.choice(np.array(words, dtype=object), n, p=odds)
    return _lose(pd.Series(values, dtype=object), rng, missing)


def _lose(values: pd.Series, rng: np.random.Generator, missing: float) -> pd.Series:
    return values.mask(pd.Series(rng.random(len(values)) < missing))


def random_column(rng: np.random.Generator, n: int) -> tuple[pd.Series, str]:
    """One column of any type, with its type."""
    missing = float(rng.choice([0, 0, 0.05, 0.5, 1.0]))
    type_ = str(
        rng.choice(["numeric", "integer", "categorical", "boolean", "text", "date"])
    )
    if type_ == "numeric":
        values = pd.Series(rng.normal(size=n) * 10.0 ** rng.integers(-300, 38))
        return _lose(values.where(rng.random(n) > 0.2, -0.0), rng, missing), type_
    if type_ == "integer":
        return _lose(
            pd.Series(rng.integers(-(2**50), 2**50, n).astype(float)), rng, missing
        ), type_
    if type_ == "boolean":
        pair = [["False", "True"], ["0", "1"], ["f", "t"], ["true", "false"]][
            rng.integers(4)
        ]
        return _lose(
            pd.Series(rng.choice(np.array(pair, object), n)), rng, missing
        ), type_
    if type_ == "date":
        days = pd.Series(
            pd.date_range("2020-01-01", periods=n).strftime("%Y-%m-%d"), dtype=object
        )
        return _lose(days, rng, missing), type_
    return texts(rng, n, missing), type_


def random_task(seed: int) -> Task:
    """A task with weird columns, names and labels."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 90))
    names = list(
        rng.choice(np.array(NAMES, dtype=object), rng.integers(2, 7), replace=False)
    )
    *features, target = names
    columns = {name: random_column(rng, n) for name in features}
    kind = str(rng.choice(["regression", "binary", "multiclass"]))
    if kind == "regression":
        y = pd.Series(np.round(rng.normal(size=n) * 1e3, int(rng.integers(0, 9))))
    else:
        k = 2 if kind == "binary" else int(rng.integers(3, 7))
        pools = [
            WEIRD,
            ["a", "B", "c", "D"],
            [str(i) for i in range(12)],
            ["-1", "1", "0"],
        ]
        pool = [w for w in pools[rng.integers(4)] if w.strip()]
        labels = rng.choice(np.array(pool, object), min(k, len(pool)), replace=False)
        y = pd.Series(np.resize(labels, n), dtype=object)
        y = y.iloc[rng.permutation(n)].reset_index(drop=True)
    frame = pd.DataFrame(
        {name: values for name, (values, _) in columns.items()} | {target: y}
    )
    types = {name: type_ for name, (_, type_) in columns.items()}
    return make_task(frame, target, name=f"task {seed}", kind=kind, types=types)


def rows(task: Task, index: np.ndarray) -> Rows:
    """Rows of a task, with their numbers as provenance."""
    features = task.features.iloc[index].reset_index(drop=True)
    target = task.target.iloc[index].reset_index(drop=True)
    return Rows(features, target, pd.DataFrame({"source_row": task.row_ids[index]}))


def split(task: Task, seed: int) -> tuple[Rows, Rows]:
    """A small training part, so that the test part holds unseen values."""
    order = np.random.default_rng(seed + 10**6).permutation(len(task))
    cut = int(np.random.default_rng(seed).integers(5, len(task) - 1))
    return rows(task, order[:cut]), rows(task, order[cut:])
