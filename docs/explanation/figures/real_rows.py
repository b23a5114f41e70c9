"""F again, and a weaker model: on rows chosen by F's errors, and by features."""

import sys
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from amlb_ext.core.row_losses import row_loss

sys.path.insert(0, str(Path("explanation/figures").resolve()))
from _style import BETTER, NEUTRAL, new_axes

rng = np.random.default_rng(0)


def draw_rows(n_rows):
    """Return features, the chance of class 1, and classes drawn by it."""
    X = rng.uniform(-1, 1, (n_rows, 4))
    chance = 1 / (1 + np.exp(-5 * (X[:, 0] + X[:, 1] * np.abs(X[:, 2]))))
    return X, chance, (rng.random(n_rows) < chance).astype(int)


X_train, _, y_train = draw_rows(800)
X_test, chance, y_test = draw_rows(20_000)
part = rng.permutation(len(X_train))[:640]
F = HistGradientBoostingClassifier(random_state=0).fit(X_train, y_train)
again = HistGradientBoostingClassifier(random_state=1)
again.fit(X_train[part], y_train[part])
weaker = LogisticRegression().fit(X_train[:, 1:], y_train)

prediction_f = F.predict_proba(X_test)
loss_f = row_loss(y_test, prediction_f)
predictions = {
    "F, fitted again": again.predict_proba(X_test),
    "a model without the best feature": weaker.predict_proba(X_test[:, 1:]),
}
# The chance that such a model fails at x, by features alone: that of four fits on other rows. Here
# the chance of each class is known; hardsynth learns the weights from the training rows.
fails = np.zeros(len(y_test))
for _ in range(4):
    X_other, _, y_other = draw_rows(800)
    other = HistGradientBoostingClassifier(random_state=0).fit(X_other, y_other)
    fails += np.where(other.predict(X_test) == 1, 1 - chance, chance) / 4
weights = {
    "all rows": np.ones(len(y_test)),
    "where F fails,\nby features": fails,
    "rows that F\ngot wrong": (loss_f > 0.5).astype(float),
}

figure, axes = new_axes(6.0, 3.0, columns=2)
for axis, (name, prediction) in zip(axes, predictions.items(), strict=True):
    difference = row_loss(y_test, prediction) - loss_f
    change = [
        100 * np.average(difference, weights=w) / np.average(loss_f, weights=w)
        for w in weights.values()
    ]
    bars = axis.barh(range(3), change, color=[NEUTRAL, NEUTRAL, BETTER])
    axis.bar_label(bars, [f"{value:+.0f} %" for value in change], padding=3)
    axis.axvline(0, color="grey", linewidth=1)
    axis.set_title(name, fontsize=10)
    axis.set_yticks(range(3), list(weights) if axis is axes[0] else ["", "", ""])
    axis.margins(x=0.45)
    axis.set_xlabel("change of F's loss, %")
