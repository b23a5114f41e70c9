"""How much is left to gain on each task, for a terminal."""

from __future__ import annotations

from typing import Any

import pandas as pd

from amlb_ext.core.display import (
    format_percent,
    is_known,
    shorten_text,
    text_table,
)


def gain_table(tasks: pd.DataFrame) -> str:
    """Return how much is left to gain on each task, for a terminal."""
    headers = [
        "task",
        "rows",
        "bad",
        "F's loss",
        "left to gain where F fails",
        "finding",
    ]
    rows = []
    for task in tasks.to_dict("records"):
        rows.append(
            [
                shorten_text(task["task"]),
                task["rows"],
                task["bad_rows"],
                task["mean_loss"],
                gain_text({str(key): value for key, value in task.items()}),
                task["finding"] or "not certified",
            ]
        )
    return text_table(headers, rows)


def gain_text(task: dict[str, Any]) -> str:
    """Return how much is left to gain, with its interval.

    Examples
    --------
    >>> gain_text({"left_to_gain": 0.2, "left_to_gain_low": 0.1, "left_to_gain_high": 0.4})
    '20 % (10 to 40)'
    """
    if not is_known(task["left_to_gain"]):
        return "-"
    text = format_percent(task["left_to_gain"])
    low, high = task["left_to_gain_low"], task["left_to_gain_high"]
    if not (is_known(low) and is_known(high)):
        return text
    limits = [format_percent(limit).removesuffix(" %") for limit in (low, high)]
    return f"{text} ({limits[0]} to {limits[1]})"
