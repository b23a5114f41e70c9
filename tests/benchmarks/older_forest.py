"""Does an older scikit-learn make another F? What the alarm of the report would see of it.

    python tests/benchmarks/older_forest.py --python PYTHON

PYTHON is the interpreter of an environment with the older scikit-learn, such as AMLB's own: after
`hardsynth run` it stands in ``environments/amlb-*/bin/python`` of hardsynth's cache. F is a random
forest, on two folds of each bundled task. The other interpreter fits the same forest on the same
encoded rows, once with F's seed and once with another one. Printed for each task: the largest
difference of a prediction with the same seed, in probabilities or ranges of the target; and with
the other seed how far row losses scatter around F's (root mean square), in scatters of the worst of
F's re-fits, of which the alarm allows :data:`amlb_ext.runner.agreement.MOST_SCATTER`. The larger of
the two folds is printed.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import sklearn
from threadpoolctl import threadpool_limits

from amlb_ext.core.config import build_config
from amlb_ext.core.display import text_table
from amlb_ext.core.rng import derive_int_seed
from amlb_ext.core.row_losses import row_loss
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline.fitted import make_baseline
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.split import PARTS, cross_folds, split_task
from amlb_ext.runner.agreement import MOST_SCATTER
from amlb_ext.sources import open_specs

CONFIG = build_config({"baseline": {"model": "random_forest"}, "split": {"folds": 2}})
#: Run by the other interpreter, which has neither this project nor its versions.
OTHER_SIDE = """
import sys
import numpy as np
import sklearn
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

rows = np.load(sys.argv[1])
predictions = {"version": np.array(sklearn.__version__)}
for name in ("same", "other"):
    settings = {"n_estimators": int(rows["trees"]), "random_state": int(rows[name])}
    if rows["is_class"]:
        model = RandomForestClassifier(**settings).fit(rows["Z"], rows["y"])
        predictions[name] = model.predict_proba(rows["Z_test"])
    else:
        model = RandomForestRegressor(**settings).fit(rows["Z"], rows["y"])
        predictions[name] = model.predict(rows["Z_test"])
np.savez(sys.argv[2], **predictions)
"""


def fit_elsewhere(python: str, **arrays: object) -> dict[str, np.ndarray]:
    """Fit the forest with the other interpreter, and return what it predicts for the test rows."""
    with tempfile.TemporaryDirectory() as scratch:
        asked = Path(scratch) / "asked.npz"
        answered = Path(scratch) / "answered.npz"
        np.savez(asked, **arrays)
        command = [python, "-W", "ignore", "-c", OTHER_SIDE, str(asked), str(answered)]
        subprocess.run(command, check=True)
        return dict(np.load(answered))


def compare_fold(task: Task, number: int, python: str) -> tuple[float, float, str]:
    """Return the largest difference with F's seed, the scatter with another, and the version."""
    fold = task.folds[number]
    features = task.features.iloc[fold.train]
    encoder = Encoder(task.columns).fit(features)
    Z = encoder.transform(features)
    Z_test = encoder.transform(task.features.iloc[fold.test])
    scale = TargetEncoder(task.kind, task.labels, task.target.iloc[fold.train])
    y = scale.transform(task.target.iloc[fold.train])
    y_test = scale.transform(task.target.iloc[fold.test])

    seed = derive_int_seed(CONFIG.seed, task.name, number)
    baseline = make_baseline(CONFIG.baseline, task, encoder, scale)
    parts = cross_folds(y, scale.n_classes, PARTS, seed)
    _, refits = baseline.cross_fit(Z, y, fold.train, parts, seed)
    baseline.fit(Z, y, seed)
    f = baseline.predict(Z_test)
    *preprocessing, (_, forest) = baseline.model_.steps
    for _, step in preprocessing:
        Z = step.transform(Z)
    prepared_test = Z_test
    for _, step in preprocessing:
        prepared_test = step.transform(prepared_test)
    elsewhere = fit_elsewhere(
        python,
        Z=Z,
        y=y,
        Z_test=prepared_test,
        trees=forest.n_estimators,
        is_class=scale.n_classes > 0,
        same=forest.random_state,
        other=forest.random_state + 1,
    )

    loss = row_loss(y_test, f)
    scatter_of_refits = [
        _root_mean_square(row_loss(y_test, refit.predict(Z_test)) - loss)
        for refit in refits
    ]
    scatter = _root_mean_square(row_loss(y_test, elsewhere["other"]) - loss)
    largest = float(np.abs(elsewhere["same"] - f).max())
    return largest, scatter / max(scatter_of_refits), str(elsewhere["version"])


def _root_mean_square(differences: np.ndarray) -> float:
    return float(np.sqrt(np.mean(differences**2)))


def main() -> None:
    """Compare all bundled tasks, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True)
    arguments = parser.parse_args()
    table = []
    with threadpool_limits(1):
        for source in open_specs(["bundled"], CONFIG.source):
            task = split_task(source.load(), CONFIG.split, CONFIG.seed)
            folds = [compare_fold(task, number, arguments.python) for number in (0, 1)]
            largest, scatter, versions = zip(*folds, strict=True)
            table.append([task.name, f"{max(largest):.1e}", f"{max(scatter):.2f}"])
    print(f"scikit-learn {sklearn.__version__} and {versions[0]}")
    print(text_table(["task", "same seed", "other seed"], table))
    print(f"an alarm needs more than {MOST_SCATTER:g}")


if __name__ == "__main__":
    main()
