"""From pytest-benchmark's raw seconds to ratios taken in one run, as a table and a guard.

    python -m benchmarks.speed.ratios raw.json                      the table
    python -m benchmarks.speed.ratios raw_1.json raw_2.json raw_3.json --page docs/evidence/speed.md
    python -m benchmarks.speed.ratios raw.json --keep benchmarks/speed/ratios.json
    python -m benchmarks.speed.ratios raw.json --check benchmarks/speed/ratios.json
    python -m benchmarks.speed.ratios raw.json --keep benchmarks/speed/ratios.json --add

The last one is for the run of a single bench file, or without rivals: other ratios stay as kept.
Of several runs each ratio is the median, with the least and the largest; seconds are of the last.

A bench names its group, its ``role`` in it (``ours``, or what it is measured against), where it
did only a part of the work the ``scale`` to all of it, and further numbers that it measured.
Seconds differ between machines; ratios within one run differ less.

``--check`` fails where a guarded figure is worse than the kept one by over 25 %. Guarded is what is
ours alone: counts, bytes, distances of made rows over those of held-out real ones, and time beside
other fits of the same run. Ratios to rivals are a report, and the check passes where none is
installed: textbook DEAP took 531 times as long on one machine and 1,301 times on another, by the
same code. So are times of the search: drawing random words took twice as long on one as on another.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

#: What stands around the table in a page.
PAGE_START, PAGE_END = "<!-- made by make bench -->", "<!-- end -->"
#: How much worse than the kept ratio a ratio may be.
LOSS = 0.25
#: Numbers by role: ``seconds``, and what else a bench measured.
Roles = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Figure:
    """One ratio.

    Attributes
    ----------
    name : str
    needs : tuple of str
        Roles that a group must have, the first of which must have ``number``.
    number : str
        What the ratio is of.
    ratio : callable
        From the numbers by role to the ratio.
    better : str
        ``higher`` or ``lower``.
    form : str
        How to print it.
    is_guarded : bool
        Whether ``--check`` fails where it became worse.
    """

    name: str
    needs: tuple[str, ...]
    number: str
    ratio: Callable[[Roles], float]
    better: str
    form: str
    is_guarded: bool = True

    def fits(self, roles: Roles) -> bool:
        """Whether a group has what the figure needs."""
        return set(self.needs) <= set(roles) and self.number in roles[self.needs[0]]


def _over(other: str, number: str) -> Callable[[Roles], float]:
    return lambda r: r["ours"][number] / r[other][number]


def _beyond(r: Roles) -> float:
    return r["ours"]["seconds"] - r["ours"]["predict"]


SEARCH = (
    Figure("times faster than textbook DEAP", ("ours", "deap"), "seconds",
           lambda r: r["deap"]["seconds"] / r["ours"]["seconds"], "higher", "{:,.0f} x",
           is_guarded=False),
    Figure("overhead beyond predict", ("ours",), "predict",
           lambda r: r["ours"]["seconds"] / r["ours"]["predict"] - 1, "lower", "{:.0%}",
           is_guarded=False),
    Figure("beyond predict, per row and generation", ("ours",), "predict",
           lambda r: 1e9 * _beyond(r) / r["ours"]["rows"], "lower", "{:.0f} ns",
           is_guarded=False),
    Figure("beyond predict, over drawing 12 words a row", ("ours",), "drawing",
           lambda r: _beyond(r) / r["ours"]["drawing"], "lower", "{:.1f}", is_guarded=False),
    Figure("calls of functions beyond predict", ("ours",), "own_calls",
           lambda r: r["ours"]["own_calls"], "lower", "{:,.0f}"),
    Figure("bytes at the peak, over a population's", ("ours",), "population_bytes",
           lambda r: r["ours"]["bytes"] / r["ours"]["population_bytes"], "lower", "{:.2f}"),
)  # fmt: skip
DISTANCES = (
    ("w1", "Wasserstein"),
    ("tv", "categorical distance"),
    ("corr", "correlation error"),
)
#: Ours over each reference, so that below 1 is nearer, or faster, than it.
SYNTHESIZER = tuple(
    Figure(f"{word} over {other}'s", ("ours", other), number, _over(other, number), "lower",
           "{:.2f}", is_guarded=False)
    for other in ("TVAE", "CTGAN", "SDV copula")
    for number, word in (*DISTANCES, ("seconds", "time"))
)  # fmt: skip
#: The same of the synthesizer ``copula`` beside its namesake.
COPULA = tuple(
    Figure(f"copula: {word} over SDV copula's", ("ours, copula", "SDV copula"), number,
           lambda r, number=number: r["ours, copula"][number] / r["SDV copula"][number],
           "lower", "{:.2f}", is_guarded=False)
    for number, word in (*DISTANCES, ("seconds", "time"))
)  # fmt: skip
#: Made rows over held-out real rows, which need no rival: 1 is as near as real rows come.
MADE_ROWS = tuple(
    Figure(f"{prefix}{word} over real rows'", (role,), f"real_{number}",
           lambda r, role=role, number=number: r[role][number] / r[role][f"real_{number}"],
           better, "{:.2f}")
    for role, prefix in (("ours", ""), ("ours, copula", "copula: "))
    for number, word, better in (*((*pair, "lower") for pair in DISTANCES),
                                 ("near", "distance to the nearest row", "higher"))
)  # fmt: skip


def _shared_seconds(run: Mapping[str, float]) -> float:
    """Return how long a run takes whose workers are never idle but in the serial part."""
    serial = run["serial_share"]
    return run["cpu"] * (serial + (1 - serial) / 2)


WHOLE = (
    Figure("time over fitting F and the synthesizer", ("ours",), "floor",
           lambda r: r["ours"]["cpu"] / r["ours"]["floor"], "lower", "{:.2f}"),
    Figure("time over all models and their predictions", ("ours",), "models",
           lambda r: r["ours"]["cpu"] / r["ours"]["models"], "lower", "{:.2f}"),
    Figure("time over F, its cross-fits, the oracle and the candidates", ("ours",), "needed",
           lambda r: r["ours"]["cpu"] / r["ours"]["needed"], "lower", "{:.2f}"),
    Figure("memory beyond imports and reading, over the encoded table", ("ours",), "table_mb",
           lambda r: r["ours"]["beyond_reading_mb"] / r["ours"]["table_mb"], "lower", "{:.1f}"),
    Figure("two workers, times faster", ("ours", "two workers"), "wall",
           lambda r: r["ours"]["wall"] / r["two workers"]["wall"], "higher", "{:.2f}",
           is_guarded=False),
    Figure("two workers, times faster by their processor seconds", ("ours", "two workers"), "cpu",
           lambda r: r["ours"]["cpu"] / _shared_seconds(r["two workers"]), "higher", "{:.2f}"),
)  # fmt: skip
FOREST = (
    Figure("time over scikit-learn's", ("ours", "scikit-learn"), "seconds",
           _over("scikit-learn", "seconds"), "lower", "{:.2f}", is_guarded=False),
)  # fmt: skip
ESTIMATE = (
    Figure("time over predict and nearest neighbours", ("ours", "predict and nearest"), "seconds",
           _over("predict and nearest", "seconds"), "lower", "{:.2f}"),
)  # fmt: skip
SWARM = (
    Figure("time over one predict per particle", ("ours", "one predict each"), "seconds",
           _over("one predict each", "seconds"), "lower", "{:.2f}"),
)  # fmt: skip
COMPARE = (
    Figure("seconds beyond the models' own fits and predictions", ("ours",), "beyond_models",
           lambda r: r["ours"]["beyond_models"], "lower", "{:.1f} s", is_guarded=False),
    Figure("time over the models' own fits and predictions", ("ours",), "fitted",
           lambda r: 1 + r["ours"]["beyond_models"] / r["ours"]["fitted"], "lower", "{:.2f}"),
)  # fmt: skip
IMPORT = (
    Figure("time over that of pandas and scikit-learn", ("ours", "pandas, sklearn"), "least",
           _over("pandas, sklearn", "least"), "lower", "{:.2f}"),
    Figure("MB over that of pandas and scikit-learn", ("ours", "pandas, sklearn"), "mb",
           _over("pandas, sklearn", "mb"), "lower", "{:.2f}"),
)  # fmt: skip
#: Counts, not ratios: they are the same wherever they are taken.
CALLS = (
    Figure("calls of F in a fold", ("ours",), "calls",
           lambda r: r["ours"]["calls"], "lower", "{:,.0f}"),
    Figure("rows asked of F in a fold", ("ours",), "asked_rows",
           lambda r: r["ours"]["asked_rows"], "lower", "{:,.0f}"),
)  # fmt: skip
FIGURES = (
    *SEARCH,
    *SYNTHESIZER,
    *COPULA,
    *MADE_ROWS,
    *WHOLE,
    *FOREST,
    *ESTIMATE,
    *SWARM,
    *COMPARE,
    *IMPORT,
    *CALLS,
)
#: What was promised, by group and figure.
TARGETS: dict[tuple[str, str], float] = {
    ("search, ridge", SEARCH[0].name): 200,
    ("search, ridge", SEARCH[2].name): 200,
    ("search, logistic regression", SEARCH[2].name): 200,
    ("search, random forest 200x3", SEARCH[0].name): 1000,
    ("search, gradient boosting 100x3", SEARCH[1].name): 0.2,
    ("search, histogram boosting 100", SEARCH[1].name): 0.2,
    ("search, random forest 200x3", SEARCH[1].name): 0.2,
    **{("synthesizer", f.name): 1 for f in SYNTHESIZER if "SDV" not in f.name},
    **{("synthesizer", f.name): 1 for f in COPULA},
    ("forest 200x3, predict 500 rows", FOREST[0].name): 0.5,
    ("forest 200x3, predict 10,000 rows", FOREST[0].name): 1,
    ("osyn, iterative", ESTIMATE[0].name): 1.2,
    ("regions, K = 500, 102 columns, mostly one-hot", FOREST[0].name): 1,
    ("swarm, 8 particles of 300 rows", SWARM[0].name): 0.5,
    ("generate", WHOLE[0].name): 1.18,
    ("generate", WHOLE[1].name): 1.18,
    ("generate", WHOLE[2].name): 1.5,
    ("generate, 50,000 rows", WHOLE[2].name): 1.5,
    ("generate, 50,000 rows", WHOLE[3].name): 5,
    ("generate", WHOLE[4].name): 1.8,
    ("generate", WHOLE[5].name): 1.8,
    ("compare, 1,500 rows", COMPARE[0].name): 3,
    ("compare, 5,000 rows", COMPARE[0].name): 3,
    ("compare, 100,000 rows", COMPARE[0].name): 20,
    ("import of compare", IMPORT[0].name): 1.2,
    ("calls of F, 100,000 rows at most", CALLS[0].name): 30,
    ("calls of F, 100,000 rows at most", CALLS[1].name): 100_000,
}
#: Kept without a promise, since they do not depend on the machine.
KEPT = {
    *(
        (f"search, {name}", figure.name)
        for name in ("ridge", "logistic regression")
        for figure in SEARCH[4:]
    ),
    *(("synthesizer", figure.name) for figure in MADE_ROWS),
}


def read(path: Path) -> list[dict[str, Any]]:
    """Return one row per group and figure: ``group``, ``figure``, ``value``, ``roles``."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    groups: dict[str, dict[str, dict[str, float]]] = {}
    for bench in raw["benchmarks"]:
        about = dict(bench["extra_info"])
        seconds = bench["stats"]["median"] * about.pop("scale", 1)
        groups.setdefault(bench["group"], {})[about.pop("role")] = {
            "seconds": seconds,
            **about,
        }
    return [
        {
            "group": group,
            "figure": figure.name,
            "value": figure.ratio(roles),
            "roles": roles,
        }
        for group, roles in groups.items()
        for figure in FIGURES
        if figure.fits(roles)
    ]


def read_runs(paths: list[Path]) -> list[dict[str, Any]]:
    """Return the rows of the last run, with the median of all runs and their ``span``."""
    runs = [read(path) for path in paths]
    values: dict[tuple[str, str], list[float]] = {}
    for row in chain.from_iterable(runs):
        values.setdefault((row["group"], row["figure"]), []).append(row["value"])
    rows = []
    for row in runs[-1]:
        taken = values[row["group"], row["figure"]]
        span = (min(taken), max(taken))
        rows.append({**row, "value": median(taken), "span": span})
    return rows


def write_page(page: Path, text: str) -> None:
    """Put the table between the two comments of a page."""
    before, rest = page.read_text(encoding="utf-8").split(PAGE_START)
    _, after = rest.split(PAGE_END)
    page.write_text(f"{before}{PAGE_START}\n{text}{PAGE_END}{after}", encoding="utf-8")


def table(rows: list[dict[str, Any]]) -> str:
    """Return the ratios as Markdown, with the seconds they were made of."""
    forms = {figure.name: figure for figure in FIGURES}
    lines = ["| what | figure | measured | target | raw |", "|---|---|---|---|---|"]
    for row in rows:
        figure = forms[row["figure"]]
        target = TARGETS.get((row["group"], row["figure"]))
        sign = ">=" if figure.better == "higher" else "<="
        met = target is not None and (
            row["value"] >= target
            if figure.better == "higher"
            else row["value"] <= target
        )
        wanted = "" if target is None else f"{sign} {figure.form.format(target)}"
        if target is not None and not met:
            wanted += ", **not met**"
        unit = " s" if figure.number in ("seconds", "wall", "cpu") else ""
        raw = ", ".join(
            f"{n} {row['roles'][n][figure.number]:.3g}{unit}" for n in figure.needs
        )
        if figure in CALLS or figure in SEARCH[4:]:
            raw = "counted"
        elif figure in MADE_ROWS:
            role = row["roles"][figure.needs[0]]
            real = role[figure.number]
            raw = f"made {row['value'] * real:.3g}, real {real:.3g}"
        elif figure.number == "table_mb":
            ours = row["roles"]["ours"]
            raw = (
                f"{ours['beyond_reading_mb']:.3g} MB over {ours['table_mb']:.3g} MB; imports "
                f"{ours['imports_mb']:.3g} MB, reading {ours['reading_mb']:.3g} MB"
            )
        elif len(figure.needs) == 1:  # both sides were measured in one run of ours
            ours = row["roles"]["ours"]
            whole = ours.get("cpu", ours["seconds"])
            raw = f"{whole:.3g} s over {ours[figure.number]:.3g} s"
        measured = figure.form.format(row["value"])
        least, most = map(figure.form.format, row["span"])
        if least != most:
            measured += f" ({least} to {most})"
        lines.append(
            f"| {row['group']} | {row['figure']} | {measured} | {wanted} | {raw} |"
        )
    return "\n".join(lines) + "\n"


def losses(rows: list[dict[str, Any]], kept: list[dict[str, Any]]) -> list[str]:
    """Return what is guarded and became worse than the kept ratios by over 25 %."""
    forms = {figure.name: figure for figure in FIGURES}
    now = {(row["group"], row["figure"]): row["value"] for row in rows}
    out = []
    for row in kept:
        figure, value = forms[row["figure"]], now.get((row["group"], row["figure"]))
        if not figure.is_guarded:
            continue
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
    for row in rows:
        # a count is the same on every machine, so it is held to its promise itself
        target = TARGETS.get((row["group"], row["figure"]))
        if forms[row["figure"]] in CALLS and target and row["value"] > target:
            out.append(
                f"{row['group']}, {row['figure']}: {row['value']:,}, not {target:,}"
            )
    return out


def merge(
    new: list[dict[str, Any]], kept: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the kept ratios without those that were taken anew, which follow.

    >>> old = [{"group": "a", "figure": "f", "value": 1}, {"group": "a", "figure": "g", "value": 2}]
    >>> [row["value"] for row in merge([{"group": "a", "figure": "f", "value": 3}], old)]
    [2, 3]
    """
    measured = {(row["group"], row["figure"]) for row in new}
    return [row for row in kept if (row["group"], row["figure"]) not in measured] + new


def main() -> int:
    """Print the table; write, keep or check as asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("raw", type=Path, nargs="+")
    parser.add_argument("--page", type=Path, help="write the table into this page")
    parser.add_argument("--keep", type=Path, help="write the ratios with a target here")
    parser.add_argument(
        "--add",
        action="store_true",
        help="with --keep: leave ratios that this run did not take",
    )
    parser.add_argument("--check", type=Path, help="compare with these")
    arguments = parser.parse_args()
    rows = read_runs(arguments.raw)
    print(table(rows))
    if arguments.page:
        write_page(arguments.page, table(rows))
    if arguments.keep:
        kept = [
            {name: row[name] for name in ("group", "figure", "value")}
            for row in rows
            if (row["group"], row["figure"]) in {*TARGETS, *KEPT}
        ]
        if arguments.add:
            before = json.loads(arguments.keep.read_text(encoding="utf-8"))
            # what is not kept any more does not stay
            before = [
                row
                for row in before
                if (row["group"], row["figure"]) in {*TARGETS, *KEPT}
            ]
            kept = merge(kept, before)
        arguments.keep.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    worse = (
        losses(rows, json.loads(arguments.check.read_text())) if arguments.check else []
    )
    for line in worse:
        print(f"worse: {line}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
