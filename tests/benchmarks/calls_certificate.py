"""Does a limit on the rows that F is asked about change the certificate of a suite?

    python tests/benchmarks/calls_certificate.py --table adult.data --target 14 --seeds 1 2 3
    python tests/benchmarks/calls_certificate.py --limits 0 100000 30000 --raw runs.jsonl

Makes a suite of one fold for each limit and seed, with the counting F of :mod:`calls`, and prints
what F was asked by the whole command, and what each certificate says, as a Markdown table. A limit
of 0 is none: F itself searches. Runs that ``--raw`` has are not made again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd


def make_suite(
    table: pd.DataFrame, target: str, *, limit: int, seed: int
) -> dict[str, Any]:
    """Generate a suite in this process; return what F was asked, and the certificate."""
    import calls

    from amlb_ext.cli import main as run_command
    from amlb_ext.suite import SuiteFiles
    from amlb_ext.validity.certify import read_certificates

    is_regression = pd.api.types.is_numeric_dtype(table[target])
    family = "Regressor" if is_regression else "Classifier"
    calls.LOG.clear()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        table.to_csv(path, index=False)
        out = Path(folder, "suite")
        command = ["generate", str(path), "--target", target, "-o", str(out)]
        command += ["--baseline", f"calls.Counting{family}", "--encoding", "ordinal"]
        command += ["--ask-at-most", str(limit), "--seed", str(seed)]
        command += ["--folds", "1", "-j", "1", "-q"]
        status = run_command(command)
        if status:
            raise SystemExit(f"generate ended with status {status}")
        suite = SuiteFiles.load(out)
        [task] = suite.tasks
        certificate = read_certificates(suite)[task]
        [fold] = suite.manifest.tasks[task].folds.values()
    asked = [rows for _, event, rows in calls.LOG if event == "ask"]
    return {
        "limit": limit,
        "seed": seed,
        "fits": sum(event == "fit" for _, event, _ in calls.LOG),
        "calls": len(asked),
        "rows": sum(asked),
        "kappa": fold.summary["calibration"]["kappa"],
        "augmented": fold.summary["augmented"],
        "synthetic": fold.summary["synthetic"],
        "composition": fold.summary["composition"],
        "verdict": certificate.verdict,
        "reason": certificate.reason,
        "measures": [measure.to_json() for measure in certificate.measures],
    }


def to_markdown(runs: list[dict[str, Any]]) -> str:
    """Return the runs side by side: a column each, a line for each number and measure."""
    heads = [
        f"{run['limit']:,} rows at most, seed {run['seed']}"
        if run["limit"]
        else f"no limit, seed {run['seed']}"
        for run in runs
    ]
    lines = ["| | " + " | ".join(heads) + " |", "|---|" + "---|" * len(runs)]
    for name in ("fits", "calls", "rows", "kappa", "augmented", "synthetic", "verdict"):
        cells = []
        for run in runs:
            value = run[name]
            cells.append(f"{value:,}" if isinstance(value, int) else str(value))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    names = dict.fromkeys(m["name"] for run in runs for m in run["measures"])
    for name in names:
        cells = []
        for run in runs:
            [measure] = [m for m in run["measures"] if m["name"] == name] or [None]
            cells.append(_measure_text(measure))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _measure_text(measure: dict[str, Any] | None) -> str:
    if measure is None or measure["value"] is None:
        return "–"
    text = f"{measure['value']:.3g}"
    if measure["low"] is not None and measure["high"] is not None:
        text += f" ({measure['low']:.3g} to {measure['high']:.3g})"
    if measure["passed"] is not None:
        text += ", passed" if measure["passed"] else ", **failed**"
    return text


def main() -> None:
    """Make the suites that are missing, and print."""
    import calls

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--table", type=Path)
    parser.add_argument("--target", default="y")
    parser.add_argument("--rows", type=int, default=calls.ROWS)
    parser.add_argument("--limits", type=int, nargs="+", default=[0, 100_000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--raw", type=Path, help="keep the runs in this file")
    arguments = parser.parse_args()
    table = calls.read_table(arguments.table, arguments.target, arguments.rows)
    done = {}
    if arguments.raw and arguments.raw.exists():
        for line in arguments.raw.read_text(encoding="utf-8").splitlines():
            run = json.loads(line)
            done[run["seed"], run["limit"]] = run
    runs = []
    for seed in arguments.seeds:
        for limit in arguments.limits:
            if (seed, limit) not in done:
                run = make_suite(table, arguments.target, limit=limit, seed=seed)
                done[seed, limit] = run
                if arguments.raw:
                    with arguments.raw.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(run) + "\n")
            runs.append(done[seed, limit])
    print(to_markdown(runs))


if __name__ == "__main__":
    main()
