"""Verdict `stress-test only`, drawn: features do not foresee where F fails."""

import sys
from pathlib import Path

import numpy as np
from matplotlib.patches import Rectangle

sys.path.insert(0, str(Path("explanation/figures").resolve()))
from _style import BETTER, WORSE, new_axes

rng = np.random.default_rng(1)
x = rng.uniform(0, 1, (150, 2))
figure, axes = new_axes(6.4, 3.0, columns=2)
cases = (
    (axes[0], 0.12 + 0.75 * ((x[:, 0] > 0.6) & (x[:, 1] > 0.5)), "a region of failure"),
    (axes[1], np.full(len(x), 0.2), "no region: failures anywhere"),
)
for axis, chance, title in cases:
    is_bad = rng.random(len(x)) < chance
    axis.scatter(*x[~is_bad].T, color="#9a9a9a", s=10, label="F is right")
    axis.scatter(*x[is_bad].T, color=WORSE, marker="x", s=28, label="F fails")
    axis.set_title(title, fontsize=10)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_xlabel("one feature")
axes[0].set_ylabel("another feature")
axes[0].add_patch(
    Rectangle((0.6, 0.5), 0.4, 0.5, fill=False, edgecolor=BETTER, linewidth=1.5)
)
axes[1].legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, frameon=False)
