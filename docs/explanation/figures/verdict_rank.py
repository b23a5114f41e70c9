"""Verdict `rank`, drawn: made rows order models as real failures do."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path("explanation/figures").resolve()))
from _style import BETTER, new_axes

rng = np.random.default_rng(3)
real = np.sort(rng.normal(0, 10, 12))
made = real + rng.normal(0, 2, 12)
figure, (axis,) = new_axes(5.6, 3.0)
axis.axline((0, 0), slope=1, color="grey", linewidth=1)
axis.scatter(real, made, color=BETTER)
axis.set_xlabel("change of F's loss on real failures, %")
axis.set_ylabel("on made rows, %")
