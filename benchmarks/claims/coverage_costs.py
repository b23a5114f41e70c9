"""Do the intervals of a mean cost and of the balanced error hold, however rare mistakes are?

    python -m benchmarks.claims.coverage_costs --draws 2000 --seed 0

Each row is a mistake of one kind, or none, by chances that are known. Printed: coverage of 95 %
intervals and their mean width. Of costs, ``cost`` is what is quoted, ``t`` a t interval of the same
rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from amlb_ext.stats.bounded_mean import balanced_interval, cost_interval, t_interval
from amlb_ext.stats.error_estimate import ErrorEstimate

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


def line(name: str, estimates: list[ErrorEstimate], true: float) -> str:
    """Return the coverage and the mean width of some intervals."""
    known = [each for each in estimates if each.has_interval]
    covered = [each.low <= true <= each.high for each in known]
    width = np.mean([each.high - each.low for each in known])
    return f"{name} {np.mean(covered):.3f} (width {width:.3f})"


def lines(draws: int, rng: np.random.Generator) -> Iterator[str]:
    """Yield a line for each population."""
    for costs, chances in COSTS:
        true = float(np.dot(costs, chances))
        for n in ROWS:
            samples = [draw_costs(costs, chances, n, rng) for _ in range(draws)]
            matrix = np.array([0.0, *costs])
            of_costs = [cost_interval(sample, matrix) for sample in samples]
            of_t = [t_interval(sample, bound=max(costs)) for sample in samples]
            told = f"{line('cost', of_costs, true)}, {line('t', of_t, true)}"
            yield f"costs {costs}, chances {chances}, {n} rows: {told}"
    for rows, chances in CLASSES:
        true = float(np.mean(chances))
        classes = np.repeat(np.arange(len(rows)), rows)
        wrong = np.array(chances)[classes]
        names = [str(code) for code in range(len(rows))]
        estimates = [
            balanced_interval(
                (rng.random(len(wrong)) < wrong) * 1.0, classes, names=names
            )
            for _ in range(draws)
        ]
        yield f"classes {rows}, wrong {chances}: {line('balanced', estimates, true)}"


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for text in lines(arguments.draws, np.random.default_rng(arguments.seed)):
        print(text)


if __name__ == "__main__":
    main()
