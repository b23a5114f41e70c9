"""One picture for each weird task: what a row is. Written to docs/how-to/weird/.

python docs/how-to/weird/draw.py
"""

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from amlb_ext.core.rng import random_stream
from amlb_ext.tasks import TASKS, Draw, draw_fold
from amlb_ext.tasks.shapes import LABELS, SHAPES, draw_shape

OUT = Path(__file__).parent


def new_axes(n, height):
    figure, axes = plt.subplots(1, n, figsize=(1.6 * n, height), squeeze=False)
    for axis in axes[0]:
        axis.set_xticks([])
        axis.set_yticks([])
    return figure, axes[0]


def save(figure, name):
    figure.tight_layout()
    figure.savefig(OUT / f"{name}.png", dpi=80, metadata={"Software": None})
    plt.close(figure)


def shapes(name):
    figure, axes = new_axes(5, 1.9)
    for number, (axis, shape) in enumerate(zip(axes, SHAPES, strict=True)):
        rng = random_stream(0, name, number)
        points = draw_shape(shape, rng, is_hard=name == "shapes_hard")
        axis.scatter(*points.T, s=2, color="black", linewidths=0)
        axis.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        axis.set_title(LABELS[number], fontsize=9)
    save(figure, name)


def shuffle(name):
    draw = draw_fold(TASKS[name], 0)
    figure, axes = new_axes(9, 1.7)
    # not the sky: the image that varies most of the first fifty
    images = draw.train.features.iloc[:450, 1:].to_numpy().reshape(50, -1)
    chosen = int(images.std(axis=1).argmax())
    patches = images[chosen].reshape(9, *TASKS[name].row_shape)
    labels = draw.train.labels[9 * chosen : 9 * chosen + 9]
    for axis, patch, label in zip(axes, patches, labels, strict=True):
        axis.imshow(patch, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        axis.set_title(label, fontsize=9)
    save(figure, name)


def digits(draw: Draw):
    figure, axes = new_axes(12, 2.4)
    pictures = draw.train.features.to_numpy().reshape(-1, 15, 7, 3).astype(np.uint8)
    order = []
    for label in TASKS["digits_few"].labels:
        order += np.flatnonzero(draw.train.labels == label)[:2].tolist()
    for axis, row in zip(axes, order, strict=False):
        axis.imshow(pictures[row], interpolation="nearest")
        axis.set_title(draw.train.labels[row], fontsize=9)
    save(figure, "digits_few")


def games(draw: Draw):
    figure, axes = new_axes(4, 1.9)
    for axis, text, label in zip(
        axes, draw.train.texts, draw.train.labels, strict=False
    ):
        heights = [0] * 7
        for ply, column in enumerate(int(word) - 1 for word in text.split()):
            colour = "#c33" if ply % 2 == 0 else "#db0"
            axis.scatter(column, heights[column], s=90, color=colour)
            axis.text(
                column, heights[column], ply + 1, ha="center", va="center", fontsize=5
            )
            heights[column] += 1
        axis.set(xlim=(-0.6, 6.6), ylim=(-0.6, 5.6), aspect="equal")
        axis.set_title(label, fontsize=9)
    save(figure, "drop4_winners")


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    shapes("shapes_easy")
    shapes("shapes_hard")
    shuffle("shuffle_easy")
    shuffle("shuffle_hard")
    digits(draw_fold(TASKS["digits_few"], 0))
    games(draw_fold(TASKS["drop4_winners"], 0))
