"""From pytest-benchmark's raw seconds to ratios taken in one run, as a table and a guard.

    python tests/benchmarks/ratios.py raw.json                      the table
    python tests/benchmarks/ratios.py raw.json --keep benchmarks/ratios.json
    python tests/benchmarks/ratios.py raw.json --check benchmarks/ratios.json

A bench names its group, its ``role`` in it (``ours``, or what it is measured against) and, where it
did only a part of the work, the ``scale`` to all of it. Seconds differ between machines; ratios
within one run differ less. ``--check`` fails where one is worse than the kept one by over 25 %.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: How much worse than the kept ratio a ratio may be.
LOSS = 0.25
Roles = Mapping[str, float]


@dataclass(frozen=True)
class Figure:
    """One ratio.

    Attributes
    ----------
    name : str
    needs : tuple of str
        Roles that a group must have.
    ratio : callable
        From seconds by role, and the rows of ``ours``, to the number.
    better : str
        ``higher`` or ``lower``.
    form : str
        How to print it.
    """

    name: str
    needs: tuple[str, ...]
    ratio: Callable[[Roles, float], float]
    better: str
    form: str


FIGURES = (
    Figure("times faster than textbook DEAP", ("ours", "deap"),
           lambda s, rows: s["deap"] / s["ours"], "higher", "{:,.0f} x"),
    Figure("overhead beyond predict", ("ours", "predict"),
           lambda s, rows: s["ours"] / s["predict"] - 1, "lower", "{:.0%}"),
    Figure("beyond predict, per row and generation", ("ours", "predict"),
           lambda s, rows: 1e9 * (s["ours"] - s["predict"]) / rows, "lower", "{:.0f} ns"),
)  # fmt: skip
#: What was promised, by group and figure.
TARGETS: dict[tuple[str, str], float] = {
    ("search, ridge", FIGURES[0].name): 200,
    ("search, ridge", FIGURES[2].name): 200,
    ("search, random forest 200x3", FIGURES[0].name): 1000,
    ("search, gradient boosting 100x3", FIGURES[1].name): 0.2,
    ("search, histogram boosting 100", FIGURES[1].name): 0.2,
    ("search, random forest 200x3", FIGURES[1].name): 0.2,
}


def read(path: Path) -> list[dict[str, Any]]:
    """Return one row per group and figure: ``group``, ``figure``, ``value``, ``seconds``."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    groups: dict[str, dict[str, Any]] = {}
    for bench in raw["benchmarks"]:
        about = bench["extra_info"]
        entry = groups.setdefault(bench["group"], {"seconds": {}, "rows": 0})
        entry["seconds"][about["role"]] = bench["stats"]["median"] * about.get("scale", 1)
        entry["rows"] = about.get("rows", entry["rows"])
    out = []
    for group, entry in groups.items():
        for figure in FIGURES:
            if set(figure.needs) <= set(entry["seconds"]):
                value = figure.ratio(entry["seconds"], entry["rows"])
                out.append({"group": group, "figure": figure.name, "value": value, **entry})
    return out


def table(rows: list[dict[str, Any]]) -> str:
    """Return the ratios as Markdown, with the seconds they were made of."""
    forms = {figure.name: figure for figure in FIGURES}
    lines = ["| what | figure | measured | target | seconds |", "|---|---|---|---|---|"]
    for row in rows:
        figure = forms[row["figure"]]
        target = TARGETS.get((row["group"], row["figure"]))
        sign = ">=" if figure.better == "higher" else "<="
        met = target is not None and (
            row["value"] >= target if figure.better == "higher" else row["value"] <= target
        )
        wanted = "" if target is None else f"{sign} {figure.form.format(target)}"
        if target is not None and not met:
            wanted += ", **not met**"
        seconds = ", ".join(f"{role} {row['seconds'][role]:.3g}" for role in figure.needs)
        measured = figure.form.format(row["value"])
        lines.append(f"| {row['group']} | {row['figure']} | {measured} | {wanted} | {seconds} |")
    return "\n".join(lines) + "\n"


def losses(rows: list[dict[str, Any]], kept: list[dict[str, Any]]) -> list[str]:
    """Return what became worse than the kept ratios by over 25 %."""
    forms = {figure.name: figure for figure in FIGURES}
    now = {(row["group"], row["figure"]): row["value"] for row in rows}
    out = []
    for row in kept:
        figure, value = forms[row["figure"]], now.get((row["group"], row["figure"]))
        if value is None:
            out.append(f"{row['group']}, {row['figure']}: not measured any more")
            continue
        if figure.better == "higher":
            worse = value < (1 - LOSS) * row["value"]
        else:  # an overhead of 2 % may become 7 %: it is told as a share of the whole
            worse = value > row["value"] + LOSS * max(abs(row["value"]), 0.2)
        if worse:
            was, now_is = figure.form.format(row["value"]), figure.form.format(value)
            out.append(f"{row['group']}, {row['figure']}: {now_is}, was {was}")
    return out


def main() -> int:
    """Print the table; write, keep or check as asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("raw", type=Path)
    parser.add_argument("--keep", type=Path, help="write the ratios here")
    parser.add_argument("--check", type=Path, help="compare with these")
    arguments = parser.parse_args()
    rows = read(arguments.raw)
    print(table(rows))
    if arguments.keep:
        kept = [{name: row[name] for name in ("group", "figure", "value")} for row in rows]
        arguments.keep.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    worse = losses(rows, json.loads(arguments.check.read_text())) if arguments.check else []
    for line in worse:
        print(f"worse: {line}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
