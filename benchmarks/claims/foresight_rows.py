"""From how many rows need trees learn where a model is foreseen to lose, and how large are leaves?

    python -m benchmarks.claims.foresight_rows --rows 10000 --draws 8 --seed 0
    python -m benchmarks.claims.foresight_rows --rows 50000 --draws 2 --seed 0

The expected change of each row is known. Printed, for all rows with leaves of 15, and for what
:mod:`amlb_ext.swap.foresee` takes: the true change of the foreseen worst fifth (the more, the
better foreseen), the best that is possible, the half-width of its interval, coverage, seconds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from amlb_ext.swap import foresee as foresight
from amlb_ext.swap.contrast import RowContrast
from amlb_ext.swap.foresee import foresee, group_change

POOL = 20_000
#: Rows to learn from, and leaves: as before there were limits, and as they are.
LIMITS = {
    "all rows, leaves of 15": (10**9, 10**9),
    "as it is": (foresight.MOST_LEARNT, foresight.MOST_LEAVES),
}


def draw(kind: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return 12 columns and the expected change of each row."""
    Z = rng.normal(size=(n, 12))
    expected = {
        "step": 0.5 * ((Z[:, 0] > 0.8) & (Z[:, 1] > -0.5)) - 0.1,
        "smooth": 0.3 * np.sin(2 * Z[:, 0]) * Z[:, 1] + 0.2 * np.abs(Z[:, 2]) - 0.25,
        "nothing": np.zeros(n),
    }
    return Z, expected[kind]


def main() -> None:
    """Print a line for each world and limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for kind in ("step", "smooth", "nothing"):
        for name, limits in LIMITS.items():
            foresight.MOST_LEARNT, foresight.MOST_LEAVES = limits
            records = []
            for number in range(arguments.draws):
                rng = np.random.default_rng([arguments.seed, number])
                Z, expected = draw(kind, arguments.rows, rng)
                d = expected + rng.standard_t(4, len(expected))
                begun = time.process_time()
                contrast = RowContrast(np.zeros(len(d)), d)
                passes = foresee(contrast, Z, number)
                seconds = time.process_time() - begun
                found = group_change(contrast, passes, 0.0, 0.2)
                pool, of_pool = draw(kind, POOL, rng)
                scores = [tree.predict(pool) for each in passes for tree in each.models]
                fifth = POOL // 5
                true = np.mean([of_pool[np.argsort(-s)[:fifth]].mean() for s in scores])
                best = np.sort(of_pool)[-fifth:].mean()
                low, high = found.interval()
                records.append(
                    [true, best, (high - low) / 2, low <= true <= high, seconds]
                )
            true, best, half, covered, seconds = np.mean(records, axis=0)
            print(
                f"{kind}, {arguments.rows} rows, {name}: {true:.3f} of {best:.3f} foreseen, "
                f"± {half:.4f}, covered {covered:.2f} of {arguments.draws}, {seconds:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
