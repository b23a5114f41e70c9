"""What the figures of the explanation share."""

import matplotlib.pyplot as plt

BETTER, WORSE, NEUTRAL = "#1b7f5c", "#b3452c", "#4a6fa5"


def new_axes(width=6.0, height=3.2, columns=1):
    """Return a figure and its axes, without frames on top and at the right."""
    figure, axes = plt.subplots(
        1, columns, figsize=(width, height), layout="constrained", squeeze=False
    )
    for axis in axes[0]:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes[0]
