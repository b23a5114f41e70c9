"""The protocols of this folder as studies: one cell a draw of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import benchmarks.studies.fidelity.designs
import benchmarks.studies.fidelity.methods  # noqa: F401, both fill METHODS
from amlb_ext.core.errors import ConfigError, HardsynthError, suggest_nearest
from amlb_ext.core.task import Task
from benchmarks.studies.engine import Labels, Rows, Study, flat_rows, grid
from benchmarks.studies.fidelity.draw import Draw
from benchmarks.studies.fidelity.protocol import (
    FOLDER,
    Protocol,
    load_table,
    read_protocol,
)
from benchmarks.studies.fidelity.sample import METHODS, Sample, judge_answer
from benchmarks.studies.fidelity.summary import (
    ALL_TABLES,
    LEVELS,
    READING,
    contrast_frame,
    draw_intervals,
    level_frame,
    paired_contrasts,
    summarize_levels,
)
from benchmarks.studies.page import Part, Picture, Table

#: Protocol → what it asks.
TITLES = {
    "fidelity": "Which way of building a benchmark ranks models as a large pool does",
    "band": "The same, where bad rows are the least confident ones",
    "augmentation": "Augmented rows by how far the search may push them",
    "feasible": "Augmented rows that keep the relations between columns",
    "few_rows_swarm": "Few labelled rows: a swarm of generators searched for fidelity",
}


def plan_draws(protocol: Protocol, _: Path | None) -> Iterator[Labels]:
    """Return a cell for each table and seed of the phase.

    Raises
    ------
    ConfigError
        An unknown method, or none.
    """
    methods = protocol.used_methods()
    for name in methods:
        if name not in METHODS:
            raise ConfigError(
                f"no method {name!r} to study", suggest_nearest(name, METHODS)
            )
    if not methods:
        raise ConfigError(
            "the protocol names no method", "declare contrasts or methods"
        )
    tables = sorted(protocol.drawn_tables())
    return grid(data=tables, draw=protocol.drawn_seeds())(protocol)


def _load(name: str, protocol: Protocol, folder: Path | None) -> Task:
    return load_table(name, protocol.tables[name], folder or Path())


def draw_rows(protocol: Protocol, task: Task, *, data: str, draw: int) -> Rows:
    """Return the figures of each method on each sample of one draw, and facts of the draw."""
    made = Draw(task, data, draw, protocol)
    rows: Rows = []
    for positions in sample_positions(protocol.sizes.labelled):
        s = Sample(made, positions)
        labels = {"n": len(positions), "first": int(positions[0])}
        facts = made.facts | {"bad": len(s.bad)}
        rows += flat_rows(facts, "figure", **labels, baseline=made.baseline)
        rows += [labels | row for row in judge_methods(s, protocol.used_methods())]
    return rows


def judge_methods(s: Sample, names: Sequence[str]) -> Rows:
    """Return the figures of each method on a sample, or why it has no answer."""
    rows: Rows = []
    for name in names:
        reason = ""
        answer = None
        try:
            answer = METHODS[name].function(s)
        except HardsynthError as error:
            # one method's failure costs no other its answer
            reason = error.message
        if answer is None:
            reason = reason or "no rows"
        # a ranking needs a number for every candidate
        elif not np.isfinite(answer.point).all():
            reason = "a score that is no number"
        if reason or answer is None:
            rows.append({"method": name, "without": reason, "value": float("nan")})
            continue
        for reference, delta in s.draw.references.items():
            figures = judge_answer(answer, delta) | {"rows": float(answer.rows)}
            rows += flat_rows(figures, "figure", method=name, reference=reference)
    return rows


def sample_positions(sizes: Sequence[int]) -> list[np.ndarray]:
    """Return which labelled rows make each S: the small sizes twice, on rows of their own.

    Examples
    --------
    >>> [(len(rows), int(rows[0])) for rows in sample_positions([200, 1000])]
    [(200, 0), (200, 200), (1000, 0)]
    """
    positions = []
    for n in sorted(sizes):
        # two samples of a draw are averaged, which costs no further fit
        n_samples = 2 if 2 * n <= max(sizes) else 1
        positions += [np.arange(k * n, (k + 1) * n) for k in range(n_samples)]
    return positions


def summarize(rows: pd.DataFrame, protocol: Protocol) -> list[Part]:
    """Return the declared contrasts and the levels of a phase."""
    declared = getattr(protocol.seeds, protocol.phase).draws
    n_draws = rows["draw"].nunique()
    parts: list[Part] = [
        f"{protocol.phase} phase: {n_draws} of {declared} declared draws of each table."
    ]
    levels = summarize_levels(rows)
    contrasts = paired_contrasts(rows, protocol.contrasts)
    if len(contrasts):
        over_all = contrasts[contrasts["table"] == ALL_TABLES]
        parts.append(
            Table(
                heading="Declared contrasts, all tables",
                frame=contrast_frame(over_all),
                file="contrasts.csv",
                data=contrasts,
                note=READING,
            )
        )
        asked = contrasts["method"] + " − " + contrasts["against"]
        asked += "\non " + contrasts["reference"]
        figure = draw_intervals(
            contrasts.assign(asked=asked),
            value="difference",
            lines="asked",
            series="table",
            label="difference in Kendall's tau, ± 1.96 s.e.",
        )
        parts.append(Picture(file="contrasts.svg", figure=figure, caption="Contrasts"))
    parts.append(LEVELS)
    for n in dict.fromkeys(levels["n"]):
        parts.append(Table(heading=f"Levels, n = {n}", frame=level_frame(levels, n)))
    parts.append(Table(heading="All levels", file="levels.csv", data=levels))
    references = dict.fromkeys(contrast.reference for contrast in protocol.contrasts)
    for reference in references:
        of_reference = (levels["figure"] == "tau") & (levels["reference"] == reference)
        figure = draw_intervals(
            levels[of_reference],
            value="mean",
            lines="table",
            series="method",
            label="Kendall's tau with the pool, ± 1.96 s.e.",
        )
        caption = f"Agreement with the reference {reference}"
        file = f"tau_{reference}.svg"
        parts.append(Picture(file=file, figure=figure, caption=caption))
    used = [f"- {name}: {METHODS[name].text}" for name in protocol.used_methods()]
    return [*parts, "\n".join(used)]


def _study(stem: str) -> Study:
    protocol = read_protocol(FOLDER / f"{stem}.yaml")
    texts = "\n".join(f"{name}: {method.text}" for name, method in METHODS.items())
    return Study(
        name=stem.replace("_", "-"),
        title=TITLES[stem],
        group="protocols",
        settings=protocol,
        cells=plan_draws,
        load=_load,
        needs_all=True,
        compute=draw_rows,
        summarize=summarize,
        small={
            "tables": {"diabetes": {"source": "bundled/diabetes"}},
            "phases": {},
            "sizes": {
                "train": 150,
                "labelled": (60,),
                "unlabelled": 30,
                "pool": 120,
                "least_pool": 50,
            },
            "share": 0.2,
            "baselines": ({"model": "ridge"},),
            "methods": (),
            "contrasts": protocol.contrasts[:1],
            "draws": 2,
        },
        defaults=f"benchmarks/studies/{stem}.yaml\n\nmethods:\n{texts}",
    )


STUDIES = tuple(_study(stem) for stem in TITLES)
