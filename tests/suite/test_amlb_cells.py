"""Cell by cell: AMLB reads a user's CSV as we do, and our suite's CSV as we meant it.

Random tables of cells that readers disagree about. Skips where AMLB cannot be had.
"""

import csv
import os
import random

import pandas as pd
import pytest
from amlb_scripts import ask_amlb

from amlb_ext.amlb.coding import write_csv
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import HardsynthError
from amlb_ext.sources import open_specs
from amlb_ext.suite import Coding

pytestmark = pytest.mark.amlb
CASES = 1000 if os.environ.get("HARDSYNTH_NIGHTLY") else 25
N = 40

NUMBERS = "1|2|3.5|-4|1e5|1E-3|.5|5.|+7| 8|9 |1_000|1,000|1,5|007|0|-0|00|1e-400|nan|NaN|NA||None"
NUMBERS += "|0x1F|9223372036854775807|18446744073709551615|0.1234567890123456789|1,234.5|(3)|5%|١"
TRUTHS = "True|False|TRUE|FALSE|true|false||NA|None|T|1|0| True|yes"
TEXTS = 'red|Red| red|red |RED|blue||NA|None|null|Null|n/a|N/A|a,b|a"b|a\nb|a\rb|a\tb|İ|ß|ẞ|1|007'
TEXTS += "|True|#NA|-|?|a'b|%x|\ufeffx|<NA>|nan|\u2028|é|e\u0301|=1+1"
DATES = (
    "2020-01-01|2020-01-01 10:00|2020-01-01T10:00:00.123456|2020-01-01T10:00:00+01:00"
)
DATES += "|2020-01-01T10:00:00+02:00|2020-13-01|01/02/2020||NaT|None"
POOLS = [pool.split("|") for pool in (NUMBERS, TRUTHS, TEXTS, DATES)]
LABELS = [
    "a b",
    "a b None",
    "A b C",
    "0 1",
    "1 2 10",
    "x X",
    "True False",
    "no nan NO",
    "007 7 8",
]

SCRIPT = r"""
def cell(value):
    if pd.isna(value):
        return None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number else str(value)

def read(path):
    about = ns(train=[path], test=[path], target="y", type="multiclass", features=None,
               timestamp_column=None)
    frame = FileLoader(tempfile.mkdtemp()).load(about, fold=0).train.data
    return {name: [cell(value) for value in frame[name].tolist()] for name in frame}

answers = [read(path) for path in cases]
"""


def read_by_amlb(amlb, paths, scratch):
    return ask_amlb(amlb, SCRIPT, [str(path) for path in paths], scratch)


def random_file(path, seed):
    draw = random.Random(seed)
    columns = {}
    for name in ("a", "b", "c", "d"):
        pool = draw.choice(POOLS)
        some = draw.sample(pool, draw.randint(1, 6))
        columns[name] = draw.choices(some, k=N)
    columns["y"] = draw.choices(draw.choice(LABELS).split(), k=N)
    encoding, ending = draw.choice(["utf-8", "utf-8-sig"]), draw.choice(["\n", "\r\n"])
    with path.open("w", encoding=encoding, newline="") as handle:
        quotes = draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
        writer = csv.writer(handle, quoting=quotes, lineterminator=ending)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def plain(values):
    """Cells as AMLB's side gives them."""
    return [
        None if pd.isna(v) else v if isinstance(v, float) else str(v) for v in values
    ]


def same(ours, theirs):
    if isinstance(ours, float) and isinstance(theirs, float):
        return abs(ours - theirs) <= 1e-14 * abs(
            theirs
        )  # its parser rounds in its own way
    if isinstance(theirs, float):  # labels, and numbers that we keep as categories
        return ours is not None and float(ours) == theirs
    return ours == theirs


def differences(ours, theirs):
    pairs = zip(ours, theirs, strict=True)
    return [pair for pair in pairs if not same(*pair)]


def test_amlb_reads_a_file_as_we_read_it_and_a_suite_as_we_meant_it(amlb, tmp_path):
    tasks, wrong = {}, []
    for seed in range(CASES):
        path = tmp_path / f"{seed}.csv"
        random_file(path, seed)
        options = SourceConfig(target="y", kind="classification")
        try:
            tasks[path] = next(open_specs([str(path)], options)).load()
        except HardsynthError:
            continue
    assert len(tasks) > 0.8 * CASES
    for (path, task), theirs in zip(
        tasks.items(), read_by_amlb(amlb, tasks, tmp_path), strict=True
    ):
        for name in (*task.features, "y"):
            ours = plain(task.target if name == "y" else task.features[name])
            cells = [theirs[name][row] for row in task.row_ids]
            wrong += [(path.stem, name, *pair) for pair in differences(ours, cells)]
    # An empty field beside whole numbers up to 2**64 is text to pandas; we know that it is empty.
    assert [said for said in wrong if said[2:] != (None, "")] == []

    codings, paths = {path: Coding.of(task) for path, task in tasks.items()}, []
    for path, task in tasks.items():
        paths.append(path.with_suffix(".suite.csv"))
        write_csv(codings[path].encode(task.features, task.target), paths[-1])
    for (path, task), theirs in zip(
        tasks.items(), read_by_amlb(amlb, paths, tmp_path), strict=True
    ):
        coding = codings[path]
        for column in coding.columns:
            written = dict(zip(column.categories, column.values, strict=True))
            ours = [written.get(v, v) for v in plain(task.features[column.name])]
            wrong += [
                (path.stem, column.name, *p)
                for p in differences(ours, theirs[column.name])
            ]
            if column.form == "text":
                told_apart = {
                    str(v).strip().lower() for v in theirs[column.name] if v is not None
                }
                assert len(told_apart) == len({v for v in ours if v is not None})
        labels = dict(zip(coding.labels, coding.written_labels, strict=True))
        wrong += [
            (path.stem, "y", *pair)
            for pair in differences([labels[v] for v in task.target], theirs["y"])
        ]
    assert [said for said in wrong if said[2:] != (None, "")] == []
