"""AMLB's rules for forecasting tasks, replayed without AMLB: what runs, and what it mis-scores.

AMLB v2.1.7 (``amlb/datasets/file.py``, ``TimeSeriesDataset``) reads one long CSV, sorts it by id
and time, and takes the last H rows of each item for the test. Each rule was tried on AMLB itself;
``tests/amlb/test_series_rules.py`` has a crafted file for each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.errors import ConfigError
from amlb_ext.core.frequency import parse_frequency

#: A placeholder of AMLB's configuration, which it expands in other paths.
_PLACEHOLDER = re.compile(r"\{\w+\}")
#: Spellings of frequencies that pandas 1.5 lacks.
_NEW_FREQUENCIES = re.compile(r"\d*(?:ME|BME|QE|BQE|YE|BYE)(?:-\w+)?")
#: What a task of series must say.
NEEDED = ("freq", "forecast_horizon_in_steps", "seasonality")
#: Names the columns that are meant to be known beforehand; AMLB does not look at it.
KNOWN_COLUMNS = "known_dynamic_columns"
#: What is wrong with the seasonal errors of items, by which MASE and SQL divide.
_SCALE_FAULTS = {
    "short": "{items} empty in training{where}: AMLB or the framework fails",
    "unscaled": (
        "{items} no longer than the season in training{where}: the scale becomes 1.0, so MASE and "
        "SQL are in the target's own unit"
    ),
    "constant": (
        "{items} the same from season to season in training{where}: the error is infinite, and "
        "left out of the mean in silence"
    ),
    "rounding": (
        "{items} alike from season to season but for rounding{where}: the scale is that of the "
        "last digit, and one such error outweighs all others"
    ),
}
#: Series that differ in their first values are not one.
_HEAD = 8
#: A scale below this share of the values' size is rounding.
_ROUNDING = 1e-10


def has_scale(scale: float, past: np.ndarray) -> bool:
    """Whether a scale is one, neither missing nor 0 but for rounding.

    Examples
    --------
    >>> past = np.array([1.0, 2.0])
    >>> has_scale(0.5, past), has_scale(1e-16, past), has_scale(float("nan"), past)
    (True, False, False)
    """
    return bool(scale > _ROUNDING * float(np.nanmax(np.abs(past))))


def check_series_task(name: str, task: Mapping[str, Any]) -> list[str]:
    """Return what AMLB would fail on or mis-score, of a task of ``type: timeseries``.

    Parameters
    ----------
    name : str
        Of the task.
    task : mapping
        As the definition has it, defaults merged in.

    Returns
    -------
    list of str
        One sentence each; empty where AMLB's scores mean what they say. The file is looked at
        where it is an absolute path.
    """
    dataset = task["dataset"]
    problems = []
    if name.lower() == "nan":
        problems.append("the name 'nan' is read as missing in results.csv")
    for key in NEEDED:
        if dataset.get(key) is None:
            problems.append(f"'{key}' is missing: AMLB fails")
    if _NEW_FREQUENCIES.fullmatch(str(dataset.get("freq"))):
        problems.append(
            f"the frequency {dataset['freq']!r} is unknown to pandas 1.5: AMLB fails"
        )
    folds = int(task.get("folds") or 1)
    if folds > 1:
        problems.append(
            f"{folds} folds: fold 1 leaves out two horizons and not one, so one horizon is never "
            "tested"
        )
    path = str(dataset["path"])
    problems += _check_path(path)
    has_needed = all(dataset.get(key) is not None for key in NEEDED)
    if has_needed and Path(path).is_absolute() and Path(path).is_file():
        problems += check_series_table(pd.read_csv(path), dataset, folds=folds)
    return problems


def _check_path(path: str) -> list[str]:
    never_runs = "the job never runs, with exit status 0"
    if path.startswith(("http://", "https://")):
        return []
    if _PLACEHOLDER.search(path):
        return [
            f"the path {path} has a placeholder, which AMLB does not expand here: {never_runs}"
        ]
    if not Path(path).is_absolute():
        return [
            f"the path {path} is relative to the folder that AMLB is started in, not to the suite"
        ]
    return [] if Path(path).is_file() else [f"there is no file {path}: {never_runs}"]


def check_series_table(
    table: pd.DataFrame, dataset: Mapping[str, Any], *, folds: int = 1
) -> list[str]:
    """Return what AMLB would fail on or mis-score, of a long table.

    Parameters
    ----------
    table : DataFrame
        As AMLB reads it.
    dataset : mapping
        With ``forecast_horizon_in_steps``, ``seasonality``, ``target``, and the columns of id and
        time where they are not ``item_id`` and ``timestamp``.
    folds : int

    Examples
    --------
    >>> table = pd.DataFrame({"item_id": "a", "timestamp": pd.date_range("2020", periods=5),
    ...                       "target": 1.0})
    >>> dataset = {"forecast_horizon_in_steps": 2, "seasonality": 1, "target": "target"}
    >>> check_series_table(table, dataset)
    ["item 'a' is the same from season to season in training: the error is infinite, and left out \
of the mean in silence"]
    """
    item = dataset.get("id_column") or "item_id"
    time = dataset.get("timestamp_column") or "timestamp"
    target = dataset["target"]
    missing = [name for name in (item, time, target) if name not in table.columns]
    if missing:
        return [f"the file has no column {missing[0]!r}: AMLB fails"]
    problems = []
    meant = (item, time, target, *dataset.get(KNOWN_COLUMNS, ()))
    others = [str(name) for name in table.columns if name not in meant]
    if others:
        problems.append(
            f"the column {others[0]!r} is passed on to frameworks as a covariate"
        )
    if not pd.api.types.is_numeric_dtype(table[target]):
        return [*problems, f"the target {target!r} holds texts: AMLB fails"]
    if table[target].isna().any():
        problems.append("the target is missing in some rows: predictions become NaN")
    if np.isinf(table[target]).any():
        problems.append("the target is infinite in some rows: so are errors and scales")
    n_nameless = int(table[item].isna().sum())
    if n_nameless:
        problems.append(
            f"{n_nameless} rows have no item, or one that pandas reads as missing, such as NA: "
            "they are left out in silence"
        )
    horizon = int(dataset["forecast_horizon_in_steps"])
    season = int(dataset["seasonality"])
    try:
        times = pd.to_datetime(table[time])
    except (ValueError, TypeError):
        return [*problems, f"the times in {time!r} cannot be read: AMLB fails"]
    table = table.assign(**{time: times})
    table = table.sort_values([item, time], kind="stable")
    groups = dict(list(table.groupby(item, sort=True)))
    for fold in range(folds):
        problems += _check_scales(
            groups, target, fold=fold, horizon=horizon, season=season
        )
    problems += _check_times(groups, time, dataset.get("freq"))
    problems += _check_repeated_series(groups, time, target)
    return problems


def _check_scales(
    groups: Mapping[Any, pd.DataFrame],
    target: str,
    *,
    fold: int,
    horizon: int,
    season: int,
) -> list[str]:
    """Return a sentence for each of :data:`_SCALE_FAULTS` that some item has."""
    # NOTE: AMLB removes (k + 1) H rows in fold k >= 1, one horizon more than meant
    removed = (fold + 1) * horizon if fold else 0
    faulty: dict[str, list[Any]] = {}
    for name, rows in groups.items():
        train = rows[target].to_numpy(dtype=float)[: len(rows) - removed - horizon]
        faulty.setdefault(_scale_fault(train, season), []).append(name)
    where = f" in fold {fold}" if fold else ""
    problems = []
    for fault, sentence in _SCALE_FAULTS.items():
        if names := faulty.get(fault):
            items = f"item {names[0]!r} is"
            if len(names) > 1:
                items = f"{len(names)} items, {names[0]!r} the first, are"
            problems.append(sentence.format(items=items, where=where))
    return problems


def _scale_fault(train: np.ndarray, season: int) -> str:
    """Return which of :data:`_SCALE_FAULTS` an item has; empty for none."""
    if len(train) < 1:
        return "short"
    if len(train) <= season:
        return "unscaled"
    changes = np.abs(train[season:] - train[:-season])
    changes = changes[~np.isnan(changes)]
    # what is missing or infinite is told of the whole file
    if not np.isfinite(changes).all() or not len(changes):
        return ""
    if not changes.any():
        return "constant"
    return "" if has_scale(float(changes.mean()), train) else "rounding"


def _check_times(
    groups: Mapping[Any, pd.DataFrame], time: str, frequency: Any
) -> list[str]:
    """Return the first item whose times are not a step apart; nothing where the step is unknown."""
    try:
        offset = parse_frequency(str(frequency))
    except ConfigError:
        offset = None
    for name, rows in groups.items():
        times = rows[time]
        if times.duplicated().any():
            return [
                f"item {name!r} has a time twice: its last rows are not its last times"
            ]
        if offset is None:
            continue
        calendar = pd.date_range(times.iloc[0], times.iloc[-1], freq=offset)
        if len(calendar) != len(times) or (calendar != times.to_numpy()).any():
            return [
                f"item {name!r} has gaps, or times off its frequency: it is scored as if there "
                "were none"
            ]
    return []


def _check_repeated_series(
    groups: Mapping[Any, pd.DataFrame], time: str, target: str
) -> list[str]:
    """Find one series cut at several origins: a later cut holds an earlier one's test."""
    by_head: dict[Any, list[Any]] = {}
    for name, rows in groups.items():
        head = rows.head(_HEAD)
        # what never changes is found for that, and may be the head of anything
        if rows[target].nunique() > 1:
            by_head.setdefault((*head[time], *head[target]), []).append(name)
    for names in by_head.values():
        values = {name: groups[name][target].to_numpy(dtype=float) for name in names}
        by_whole = {values[name].tobytes(): name for name in names}
        lengths = {len(one) for one in values.values()}
        for longer in names:
            for length in lengths:
                shorter = by_whole.get(values[longer][:length].tobytes())
                if shorter is not None and length < len(values[longer]):
                    first, second = sorted((shorter, longer))
                    return [
                        f"items {first!r} and {second!r} are one series cut twice: the longer "
                        "one's past holds the test of the shorter"
                    ]
    return []
