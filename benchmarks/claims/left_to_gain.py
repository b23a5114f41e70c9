"""How much is left to gain where F fails, task by task: the table of docs/evidence/left_to_gain.md.

    python -m benchmarks.claims.left_to_gain SUITE... --page docs/evidence/left_to_gain.md

Reads finished suites with certificates, in which the numbers stand; it fits nothing. Without
``--page`` the table is printed.
"""

import argparse
from pathlib import Path

import pandas as pd

from amlb_ext.core.display import format_percent, markdown_table
from amlb_ext.core.files import write_text
from amlb_ext.difficulty.publication import gain_text
from amlb_ext.difficulty.tasks import collect_rows, collect_tasks
from amlb_ext.suite import SuiteFiles

#: What stands between them in the page is written here.
BEGIN, END = "<!-- table -->", "<!-- end of table -->"
HEADERS = [
    "task",
    "source",
    "kind",
    "test rows",
    "F fails on",
    "loss where F fails / all rows",
    "left to gain (95 %)",
    "finding",
    "certificate",
]
#: Tasks of larger numbers stand in a cache alone.
LAST_OPENML_TASK = 9_000_000
FINDINGS = ("mendable", "nothing to mend", "not shown")


def tasks_of(directories):
    """Return the tasks of all suites, the most to gain for sure first."""
    tables = []
    for directory in directories:
        suite = SuiteFiles.load(directory)
        tables.append(collect_tasks(suite, collect_rows(suite)))
    tasks = pd.concat(tables, ignore_index=True)
    return tasks.sort_values(
        ["left_to_gain_low", "left_to_gain", "source"],
        ascending=[False, False, True],
        kind="stable",
    )


def source_text(spec):
    """Return a source for the page; a number that OpenML has not given is no address."""
    kind, _, number = spec.rpartition("/")
    is_local = kind == "openml/t" and int(number) > LAST_OPENML_TASK
    return "local copy" if is_local else f"`{spec}`"


def page_text(tasks):
    """Return the table and what it counts, as Markdown."""
    rows = []
    for task in tasks.to_dict("records"):
        ratio = task["region_loss"] / task["mean_loss"]
        rows.append(
            [
                task["task"],
                source_text(task["source"]),
                task["kind"],
                str(task["rows"]),
                format_percent(task["bad_rows"] / task["rows"]),
                f"{ratio:.1f}" if ratio == ratio else "-",
                gain_text(task),
                task["finding"] or "-",
                task["verdict"] or "none",
            ]
        )
    counts = tasks["finding"].value_counts()
    counted = ", ".join(f"{counts.get(name, 0)} {name}" for name in FINDINGS)
    models = ", ".join(dict.fromkeys(tasks["baseline"]))
    folds = ", ".join(str(count) for count in sorted(set(tasks["folds"])))
    head = (
        f"{len(tasks)} tasks: {counted}. F: {models}. Folds of each: {folds}. hardsynth "
        f"{', '.join(dict.fromkeys(tasks['hardsynth']))}."
    )
    return f"{head}\n\n{markdown_table(HEADERS, rows)}"


def main():
    """Print the table, or write it into the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="+", type=Path)
    parser.add_argument("--page", type=Path)
    arguments = parser.parse_args()
    text = page_text(tasks_of(arguments.suites))
    if arguments.page is None:
        print(text)
        return
    before, _, rest = arguments.page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    write_text(arguments.page, f"{before}{BEGIN}\n\n{text.strip()}\n\n{END}{after}")


if __name__ == "__main__":
    main()
