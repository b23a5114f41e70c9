"""A suite for fev: ``fev/tasks.yaml``, and a Parquet file of series for each task.

fev (https://github.com/autogluon/fev, Apache-2.0) evaluates forecasters outside AMLB. Its tasks are
AMLB's tasks of all series: one origin each, the same series under the same ids, and its MASE and
SQL are AMLB's, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from amlb_ext.core.parquet import ROWS_AT_ONCE, list_array, write_parquet_parts
from amlb_ext.forecasting.failing_windows import FailingWindows
from amlb_ext.forecasting.forecasters import LEVELS
from amlb_ext.forecasting.suite_files import (
    ITEM,
    TARGET,
    TIME,
    ForecastSuite,
    absolute_path,
    item_id,
)
from amlb_ext.forecasting.suite_manifest import ForecastTask
from amlb_ext.suite.layout import Layout

#: The folder of a suite that is for fev.
FOLDER = "fev"


def fev_definition_path(layout: Layout) -> Path:
    """Return where the definition for fev stands."""
    return layout.root / FOLDER / "tasks.yaml"


def fev_data_path(task: ForecastTask) -> str:
    """Return where the series of a task stand for fev, relative to the suite."""
    return f"{FOLDER}/{task.name}.parquet"


def fev_entries(suite: ForecastSuite, root: Path) -> dict[str, Any]:
    """Return the content of fev's definition of a suite that stands at ``root``.

    A series has season + 1 values or more in front of the origin, so fev leaves none out, and
    scales all of them as AMLB does.
    """
    entries = []
    for table in suite.tables:
        panel = table.entry.panel
        for task in table.main_tasks:
            entries.append(
                {
                    "task_name": task.name,
                    "dataset_path": absolute_path(root, fev_data_path(task)),
                    "horizon": panel.horizon,
                    "num_windows": 1,
                    "min_context_length": panel.season + 1,
                    "seasonality": panel.season,
                    "eval_metric": "MASE",
                    "extra_metrics": ["SQL", "WQL"],
                    "quantile_levels": list(LEVELS),
                    "id_column": ITEM,
                    "timestamp_column": TIME,
                    "target": TARGET,
                    **(
                        {"known_dynamic_columns": list(panel.known)}
                        if panel.known
                        else {}
                    ),
                }
            )
    return {"tasks": entries}


def write_fev_data(
    layout: Layout, failing: FailingWindows, tasks: Sequence[ForecastTask]
) -> dict[str, str]:
    """Write a row for each series, cut behind the horizon of its origin; return the checksums.

    Parameters
    ----------
    layout : Layout
    failing : FailingWindows
    tasks : sequence of ForecastTask
        Of all series of an origin.
    """
    files = {}
    for task in tasks:
        relative = fev_data_path(task)
        rows = _series_rows(failing, task)
        files[relative] = write_parquet_parts(rows, layout.at(relative))
    return files


def _series_rows(failing: FailingWindows, task: ForecastTask) -> Iterator[pa.Table]:
    """Return the rows of a task's series, some hundreds at a time."""
    panel = failing.panel
    calendar = panel.calendar.to_numpy().astype("datetime64[us]")
    last = failing.origins.test[task.origin] + panel.horizon
    for first in range(0, len(task.items), ROWS_AT_ONCE):
        ids, times, values = [], [], []
        known: dict[str, list[np.ndarray]] = {name: [] for name in panel.known}
        for item in task.items[first : first + ROWS_AT_ONCE]:
            start = panel.starts[item]
            ids.append(item_id(item))
            times.append(calendar[start : last + 1])
            values.append(panel.values[item][: last + 1 - start])
            for number, name in enumerate(panel.known):
                known[name].append(panel.known_values[item][: last + 1 - start, number])
        columns = {
            ITEM: pa.array(ids),
            TIME: list_array(times),
            TARGET: list_array(values),
            **{name: list_array(lists) for name, lists in known.items()},
        }
        yield pa.table(columns)
