"""F again, and a model that guesses: on rows chosen by F's errors, and by features."""

import sys
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from amlb_ext.core.row_losses import row_loss

sys.path.insert(0, str(Path("explanation/figures").resolve()))
from _style import BETTER, NEUTRAL, new_axes

# One row in five has a label that features cannot tell; beside that the classes are a circle.
rng = np.random.default_rng(0)


def draw_rows(n_rows):
    """Return features and classes of ``n_rows`` rows."""
    X = rng.uniform(-1, 1, (n_rows, 4))
    is_inside = X[:, 0] ** 2 + X[:, 1] ** 2 < 0.6
    chance = np.where(is_inside, 0.85, 0.15)
    chance = np.where(X[:, 2] > 0.7, 0.5, chance)
    return X, (rng.random(n_rows) < chance).astype(int)


X_train, y_train = draw_rows(600)
X_test, y_test = draw_rows(20_000)
forest = RandomForestClassifier(60, min_samples_leaf=5, random_state=0, n_jobs=1)
F = forest.fit(X_train, y_train).predict_proba(X_test)
half = rng.permutation(len(X_train))[:480]
again = RandomForestClassifier(60, min_samples_leaf=5, random_state=1).fit(
    X_train[half], y_train[half]
)
models = {
    "F, fitted again": again.predict_proba(X_test),
    "guesses .5 for all": np.full_like(F, 0.5),
}

loss_f = row_loss(y_test, F)
is_bad = loss_f > 0.5
in_region = X_test[:, 2] > 0.7
where = {
    "all rows": np.ones(len(y_test), dtype=bool),
    "where features say\nthat F fails": in_region,
    "rows that F\ngot wrong": is_bad,
}

figure, axes = new_axes(6.4, 3.2, columns=len(models))
for axis, (name, prediction) in zip(axes, models.items(), strict=True):
    loss = row_loss(y_test, prediction)
    change = [
        100 * (loss[rows].mean() / loss_f[rows].mean() - 1) for rows in where.values()
    ]
    colours = [NEUTRAL, NEUTRAL, BETTER]
    bars = axis.barh(range(3), change, color=colours)
    axis.bar_label(bars, [f"{value:+.0f} %" for value in change], padding=3)
    axis.axvline(0, color="grey", linewidth=1)
    axis.set_title(name, fontsize=10)
    axis.set_yticks(range(3), list(where) if axis is axes[0] else ["", "", ""])
    axis.margins(x=0.25)
    axis.set_xlabel("change of F's loss")
