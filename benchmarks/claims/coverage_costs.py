"""Do the intervals of a mean cost and of the balanced error hold, however rare mistakes are?

Each row is a mistake of one kind, or none, by chances that are known. Told: coverage of 95 %
intervals and their mean width. Of costs, ``cost`` is what is quoted, ``t`` a t interval of the same
rows.
"""

from __future__ import annotations

import numpy as np

from amlb_ext.stats.bounded_mean import balanced_interval, cost_interval, t_interval
from amlb_ext.stats.error_estimate import ErrorEstimate
from benchmarks.studies.engine import OneStream, Rows, Study, flat_rows, grid
from benchmarks.studies.page import summarize_means

ROWS = (50, 100, 300, 1000)
#: Costs of mistakes, and the chance of each.
COSTS = (
    ((1.0, 3.0), (0.05, 0.01)),
    ((1.0, 10.0), (0.1, 0.05)),
    ((1.0, 10.0), (0.1, 0.002)),
    ((1.0, 10.0), (0.02, 0.0005)),
    ((1.0, 100.0), (0.05, 0.01)),
    ((1.0, 100.0), (0.02, 0.0005)),
    ((1.0, 5.0, 20.0), (0.05, 0.01, 0.01)),
)
#: Rows of each class, and the share that is decided wrongly.
CLASSES = (
    ((95, 5), (0.05, 0.3)),
    ((190, 10), (0.02, 0.5)),
    ((60, 60), (0.1, 0.2)),
    ((50, 30, 20), (0.1, 0.2, 0.4)),
    ((300, 8), (0.01, 0.1)),
)


def draw_costs(
    costs: tuple[float, ...],
    chances: tuple[float, ...],
    n: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return the cost of each of n rows."""
    kind = rng.choice(len(costs) + 1, n, p=[1 - sum(chances), *chances])
    return np.array([0.0, *costs])[kind]


def judge(name: str, estimates: list[ErrorEstimate], true: float, **labels) -> Rows:
    """Return of each interval whether it covers the truth, and its width."""
    rows: Rows = []
    for each in estimates:
        if each.has_interval:
            covered = each.low <= true <= each.high
            figures = {name: covered, f"{name}, width": each.high - each.low}
            rows += flat_rows(figures, "figure", **labels)
    return rows


def judge_costs(settings: OneStream, *, populations: str) -> Rows:
    """Return what is found on all populations."""
    rng = np.random.default_rng(settings.seed)
    rows: Rows = []
    for costs, chances in COSTS:
        true = float(np.dot(costs, chances))
        matrix = np.array([0.0, *costs])
        for n in ROWS:
            labels = {"population": f"costs {costs}, chances {chances}", "rows": n}
            samples = [
                draw_costs(costs, chances, n, rng) for _ in range(settings.draws)
            ]
            of_costs = [cost_interval(sample, matrix) for sample in samples]
            of_t = [t_interval(sample, bound=max(costs)) for sample in samples]
            rows += judge("cost", of_costs, true, **labels)
            rows += judge("t", of_t, true, **labels)
    for sizes, chances in CLASSES:
        classes = np.repeat(np.arange(len(sizes)), sizes)
        wrong = np.array(chances)[classes]
        names = [str(code) for code in range(len(sizes))]
        estimates = [
            balanced_interval(
                (rng.random(len(wrong)) < wrong) * 1.0, classes, names=names
            )
            for _ in range(settings.draws)
        ]
        labels = {"population": f"classes {sizes}, wrong {chances}", "rows": sum(sizes)}
        rows += judge("balanced", estimates, float(np.mean(chances)), **labels)
    return rows


STUDIES = (
    Study(
        name="coverage-costs",
        title="Whether intervals of a mean cost and of the balanced error hold",
        group="claims",
        settings=OneStream(draws=2000),
        cells=grid(populations=("all",)),
        compute=judge_costs,
        summarize=summarize_means("population", "rows"),
        small={"draws": 3},
    ),
)
