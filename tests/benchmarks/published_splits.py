"""Which share of a suite's rows is sent to OpenML, whose splits have fixed ratios?

    python tests/benchmarks/published_splits.py

Makes a suite of the ten bundled tasks, one split with 20 % test rows each and ridge as F, and asks
how many training and test rows `publish` would send with either ``--fit``. Printed is the mean
over the tasks in percent, and in brackets the smallest.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import pandas as pd

from amlb_ext.cli import main as run_hardsynth
from amlb_ext.core.display import text_table
from amlb_ext.core.task import Kind
from amlb_ext.publish.rows import HOLDOUT, ORDERED, choose_sizes
from amlb_ext.suite import SuiteFiles

#: AMLB tasks by their suffix, and what the table calls them.
TASKS = {"full": "t_full", "": "t", "region": "t_region", "bad": "t_bad"}
SETTINGS = ("--folds", "1", "--test-size", "0.2", "--baseline", "ridge")


def make_suite(folder: Path) -> SuiteFiles:
    """Make the suite of all bundled tasks, or read it where it was made."""
    if not folder.exists():
        command = ["generate", "bundled", "-o", str(folder), *SETTINGS]
        assert run_hardsynth([*command, "--certificate", "none", "-q"]) == 0
    return SuiteFiles.load(folder)


def kept_shares(suite: SuiteFiles) -> pd.DataFrame:
    """Return for each AMLB task and way of fitting the shares of rows that are sent."""
    rows = []
    for task in suite.amlb_tasks.values():
        if task.suffix not in TASKS:
            continue
        is_regression = task.type is Kind.REGRESSION
        n_train = task.train_rows[0]
        n_test = task.test_rows[0]
        for fit in ("repeat", "drop"):
            kept_train, kept_test, _ = choose_sizes(
                HOLDOUT if is_regression else ORDERED, n_train, n_test, fit=fit
            )
            rows.append(
                {
                    "task": TASKS[task.suffix],
                    "fit": fit,
                    "kind": "regression" if is_regression else "classification",
                    "training": 100 * kept_train / n_train,
                    "test": 100 * kept_test / n_test,
                }
            )
    return pd.DataFrame(rows)


def main() -> None:
    """Make the suite, count, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", type=Path, help="folder to make it in, or to read")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        suite = make_suite(arguments.suite or Path(scratch) / "hard")
        shares = kept_shares(suite)
    by_task = shares.groupby(["task", "fit", "kind"])
    table = []
    for task in TASKS.values():
        for side in ("training", "test"):
            cells = [task, side]
            for fit in ("repeat", "drop"):
                for kind in ("classification", "regression"):
                    kept = by_task.get_group((task, fit, kind))[side]
                    cells.append(f"{kept.mean():.0f} % ({kept.min():.0f})")
            table.append(cells)
    header = ["task", "rows kept"]
    for fit in ("repeat", "drop"):
        header += [f"{fit}, classification", f"{fit}, regression"]
    print(text_table(header, table))


if __name__ == "__main__":
    main()
