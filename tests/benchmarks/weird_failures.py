"""Where does the reader of outlines fail? By what the generator drew and no column says.

python tests/benchmarks/weird_failures.py [--rows 1000] [--fold 0]

Prints accuracy and mean probability of the true shape by the number of points on the outline, by
how much of the outline they cover, by size, and by shape, on the test rows of weird/shapes_hard.
"""

from __future__ import annotations

import argparse
import importlib

import numpy as np
import pandas as pd

from amlb_ext.core.display import markdown_table
from amlb_ext.core.estimators import make_importable
from amlb_ext.core.rng import random_stream
from amlb_ext.tasks import shapes

NAME = "shapes_hard"
SECTORS = 24


def watch_outlines(seen):
    """Let the generator note what it draws: points on the outline, and how much they cover."""
    draw = shapes._outline_points

    def watched(shape, m, rng):
        points = draw(shape, m, rng)
        angle = np.arctan2(points[:, 1], points[:, 0]) / (2 * np.pi) % 1
        counts = np.bincount((angle * SECTORS).astype(int), minlength=SECTORS)
        # a sector with fewer points looks like noise
        seen.append({"points": m, "covered": float((counts >= 3).mean())})
        return points

    shapes._outline_points = watched


def groups_of(attributes):
    """Return the groups of each attribute, by name: thirds of numbers, each shape."""
    groups = {}
    for name in ("points", "covered"):
        values = attributes[name]
        cuts = values.quantile([1 / 3, 2 / 3]).tolist()
        labels = [f"up to {cuts[0]:.3g}", f"to {cuts[1]:.3g}", "above"]
        bins = [-np.inf, *cuts, np.inf]
        groups[name] = pd.cut(values, bins, labels=labels).astype(str)
    groups["shape"] = attributes["shape"]
    return groups


def order_of(label):
    """Sort thirds from low to high, and shapes by name."""
    thirds = ("up to", "to", "above")
    for place, start in enumerate(thirds):
        if label.startswith(start):
            return str(place)
    return label


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--fold", type=int, default=0)
    arguments = parser.parse_args()
    path = "extensions.WeirdReader.readers"
    make_importable(f"{path}.OutlineReader")
    reader = importlib.import_module(path).OutlineReader()

    seen = []
    watch_outlines(seen)
    # the stream of amlb_ext.tasks.draw_fold
    rng = random_stream(0, "weird", NAME, arguments.fold)
    draw = shapes.draw_shapes(rng, is_hard=True, rows=arguments.rows)
    reader.fit(draw.train.features, draw.train.labels.astype(str))
    p = reader.predict_proba(draw.test.features)
    truth = draw.test.labels.astype(str)
    is_right = reader.classes_[p.argmax(axis=1)] == truth
    column = np.searchsorted(reader.classes_, truth)
    attributes = pd.DataFrame(seen[arguments.rows :]).assign(shape=truth)
    rows = [
        ["all", "", len(truth), is_right.mean(), p[np.arange(len(p)), column].mean()]
    ]
    for name, group in groups_of(attributes).items():
        for label in sorted(set(group), key=order_of):
            chosen = (group == label).to_numpy()
            of_truth = p[chosen, column[chosen]].mean()
            rows.append([name, label, chosen.sum(), is_right[chosen].mean(), of_truth])
    headers = ["by", "group", "rows", "accuracy", "probability of the truth"]
    print(markdown_table(headers, rows))


if __name__ == "__main__":
    main()
