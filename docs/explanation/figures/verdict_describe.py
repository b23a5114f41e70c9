"""Verdict `describe`, drawn: made rows have another order; weighted real rows hold."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path("explanation/figures").resolve()))
from _style import BETTER, WORSE, new_axes

rng = np.random.default_rng(3)
real = np.sort(rng.normal(0, 10, 12))
made = rng.permutation(real) * 0.7 - 8
weighted = real + rng.normal(0, 2, 12)
figure, axes = new_axes(6.4, 3.0, columns=2)
for axis, shown, colour, name in (
    (axes[0], made, WORSE, "on made rows, %"),
    (axes[1], weighted, BETTER, "on weighted real rows, %"),
):
    axis.axline((0, 0), slope=1, color="grey", linewidth=1)
    if colour == BETTER:
        axis.errorbar(real, shown, yerr=5, fmt="o", color=colour, capsize=3)
    else:
        axis.scatter(real, shown, color=colour)
    axis.set_ylabel(name)
    axis.set_xlabel("on real failures, %")
    axis.set_ylim(-32, 26)
