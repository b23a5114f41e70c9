"""Does ``hardsynth generate`` end on the shapes of AMLB's largest tasks, and at what cost?

    python -m benchmarks.speed.scale_bar --share 0.1
    python -m benchmarks.speed.scale_bar --tables wide --models default --minutes 10

Made tables of five shapes, one fold with the quick certificate, once with F as it is by default
and once with boosting, each in a process of its own with one thread. ``--share`` takes so many of
the rows. A line holds processor seconds by stage, what of them are fits and predictions of F's
re-fits, the oracle and the candidates (``needed``), the ratio of all to these, and the peak of
memory. A run that has not ended after ``--minutes`` of the clock is given up, and is said to be.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.speed.whole import NEEDED, run

#: F by default, one whose fits do not grow with rows as a forest's do, and one of few leaves for
#: very many classes.
MODELS = {
    "default": {},
    "boosting": {"baseline": {"model": "hist_gradient_boosting"}},
    "extra trees": {
        "baseline": {
            "model": "sklearn.ensemble.ExtraTreesClassifier:max_leaf_nodes=500"
        }
    },
}


@dataclass(frozen=True)
class Shape:
    """A table: its rows, columns, classes and the share of its numbers that are missing."""

    rows: int
    columns: int
    classes: int = 2
    gaps: float = 0.0

    def make(self, share: float, seed: int = 0) -> pd.DataFrame:
        """Return a table with target ``y``, of classes of unlike sizes where there are many."""
        rng = np.random.default_rng(seed)
        rows = max(200, int(share * self.rows))
        X = rng.normal(size=(rows, self.columns)).astype(np.float32)
        score = X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3]
        score += rng.normal(size=rows) * np.where(X[:, 4] > 0.8, 1.5, 0.3)
        # classes at the lower end are smaller
        ends = np.quantile(score, np.linspace(0, 1, self.classes + 1)[1:-1] ** 1.3)
        code = np.searchsorted(ends, score)
        if self.gaps:
            X[rng.random(X.shape) < self.gaps] = np.nan
        table = pd.DataFrame(X, columns=[f"x{j}" for j in range(self.columns)])
        names = np.array([f"class {number}" for number in range(self.classes)])
        return table.assign(y=names[code])


#: After KDDCup09, airlines, covertype, the robert and dilbert tasks, and dionis.
SHAPES = {
    "gaps": Shape(50_000, 230, gaps=0.4),
    "narrow": Shape(539_383, 7),
    "seven classes": Shape(581_012, 54, classes=7),
    "wide": Shape(10_000, 7_200),
    "355 classes": Shape(416_188, 60, classes=355),
}


def main() -> None:
    """Run what is asked; print a JSON line for each run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument(
        "--models", nargs="+", choices=MODELS, default=["default", "boosting"]
    )
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--minutes", type=float, default=30.0)
    arguments = parser.parse_args()
    for name in arguments.tables:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "table.parquet")
            SHAPES[name].make(arguments.share).to_parquet(path)
            for model in arguments.models:
                line = {"table": name, "share": arguments.share, "F": model}
                given = {
                    "table": str(path),
                    "target": "y",
                    "rows": 0,
                    "folds": 1,
                    "config": json.dumps(MODELS[model]),
                }
                try:
                    found = run(given, minutes=arguments.minutes)
                except subprocess.TimeoutExpired:
                    line["not ended after minutes"] = arguments.minutes
                except subprocess.CalledProcessError as error:
                    line["ended with"] = error.returncode
                else:
                    seconds = found["seconds"]
                    needed = sum(seconds.get(stage, 0.0) for stage in NEEDED)
                    line["cpu"] = round(found["cpu"], 1)
                    line["needed"] = round(needed, 1)
                    line["ratio"] = round(found["cpu"] / needed, 2)
                    line["peak_mb"] = round(found["peak_mb"])
                    line["multiple"] = round(found["multiple"], 1)
                    line["seconds"] = {k: round(v, 1) for k, v in seconds.items()}
                    line["raised_mb"] = {
                        k: round(v) for k, v in found["raised_mb"].items() if v >= 1
                    }
                    line["failures"] = found["failures"]
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
