"""``hardsynth difficulty``: how hard each row of a suite's sources is, as open data."""

from __future__ import annotations

import shlex
from pathlib import Path

from amlb_ext.cli.command import Suite, command
from amlb_ext.cli.display import Answer
from amlb_ext.core.paths import check_suite_folder


@command(group="research")
def difficulty(suite: Suite, *, out: Path) -> Answer:
    """Write as open data how hard each row of the sources is.

    Write three files. FILE (Parquet) has the hardness of each test row of a suite, P(F fails | x),
    the reducible hardness, and the parts that contain the row. FILE_tasks.csv has F, seeds,
    versions and the possible gain of each task, with its interval. FILE_croissant.json describes
    both in Croissant. 'hardsynth publish --difficulty' sends them to OpenML.

    Parameters
    ----------
    out : FILE
        Parquet file to write; the other two are written next to it

    Examples
    --------
    $ hardsynth difficulty hard -o difficulty.parquet
    """
    check_suite_folder(suite)
    from amlb_ext.core.json_values import to_json_values
    from amlb_ext.difficulty import write_difficulty
    from amlb_ext.difficulty.publication import gain_table

    written = write_difficulty(suite, out)

    def text() -> str:
        lines = [gain_table(written.table)]
        if (written.table["verdict"] == "").any():
            root = shlex.quote(str(suite))
            lines.append(
                f"what is left to gain is in the certificate: hardsynth certify {root}"
            )
        lines += [
            f"\n{written.n_rows} rows: {written.rows}",
            f"tasks: {written.tasks}",
            f"description: {written.croissant}",
        ]
        return "\n".join(lines)

    return Answer(text, lambda: to_json_values(written))
