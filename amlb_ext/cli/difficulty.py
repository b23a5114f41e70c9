"""``hardsynth difficulty``: how hard each row of a suite's sources is, as open data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.cli.display import print_json
from amlb_ext.cli.flags import add_output_flags
from amlb_ext.core.display import (
    format_percent,
    is_known,
    shorten_text,
    text_table,
)
from amlb_ext.core.paths import check_suite_folder

if TYPE_CHECKING:
    import pandas as pd


def add_parser(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "difficulty",
        help="write as open data how hard each row of the sources is",
        examples="hardsynth difficulty hard -o difficulty.parquet",
        description="Write three files. FILE (Parquet) has the hardness of each test row of a "
        "suite, P(F fails | x), the reducible hardness, and the parts that contain the row. "
        "FILE_tasks.csv has F, seeds, versions and the possible gain of each task, with its "
        "interval. FILE_croissant.json describes both in Croissant. 'hardsynth publish "
        "--difficulty' sends them to OpenML.",
    )
    parser.add_suite(metavar="SUITE", help="the suite's folder")
    parser.add_argument(
        "-o",
        "--out",
        required=True,
        metavar="FILE",
        help="Parquet file to write; the other two are written next to it",
    )
    add_output_flags(parser)
    parser.set_defaults(run_command=run_command)


def run_command(arguments: argparse.Namespace) -> int:
    """Write the files; see :mod:`amlb_ext.difficulty`."""
    check_suite_folder(Path(arguments.suite))
    from amlb_ext.core.json_values import to_json_values
    from amlb_ext.difficulty import write_difficulty

    written = write_difficulty(arguments.suite, Path(arguments.out))
    if arguments.json:
        print_json(to_json_values(written))
    elif not arguments.quiet:
        print(gain_table(written.table))
        if (written.table["verdict"] == "").any():
            print(
                "what is left to gain is in the certificate: hardsynth certify "
                f"{arguments.suite}"
            )
        print(f"\n{written.n_rows} rows: {written.rows}")
        print(f"tasks: {written.tasks}")
        print(f"description: {written.croissant}")
    return 0


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
