"""What the files of a suite of series say of each other must hold, whoever sealed it.

The values of a series stand with F's forecasts, in AMLB's data files and in fev's; from these
follow the scales, the hardness, which windows are bad, and which series each task has. Where two
of them differ no command made the suite as it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from amlb_ext.core.errors import SuiteError
from amlb_ext.core.parquet import read_frame
from amlb_ext.pipeline.made_files import made_window_faults
from amlb_ext.pipeline.series_suite import plan_tasks
from amlb_ext.suite.contradictions import REMEDY
from amlb_ext.suite.layout import amlb_name
from amlb_ext.suite.reader import Suite
from amlb_ext.suite.series_manifest import (
    ITEM,
    MAIN_KIND,
    REAL_KINDS,
    TARGET,
    TIME,
    WINDOWS,
    SeriesManifest,
)
from amlb_ext.units.failing_windows import FailingWindows, window_hardness
from amlb_ext.units.stored_windows import ForecastSuite, ForecastTable, item_id
from amlb_ext.validity import Certificate, read_certificates

#: The last digits of a number depend on who reads or computes it.
_ROUNDING = 1e-9


def series_faults(suite: Suite) -> Iterator[str]:
    """Yield where two files of a suite of series contradict each other.

    Parameters
    ----------
    suite : Suite
        Of any kind; its files are as they were written.
    """
    if not isinstance(suite.manifest, SeriesManifest):
        return
    stored = ForecastSuite(suite.layout, suite.manifest)
    certificates: dict[str, Certificate] = {}
    # that one cannot be read is said with the certificates
    with contextlib.suppress(SuiteError):
        certificates = read_certificates(suite)
    for table in stored.tables:
        windows = table.folder / WINDOWS
        where = suite.layout.relative(windows)
        try:
            failing, stored_windows = table.read_failing_windows(), read_frame(windows)
            faults = [
                f"{where}: {it}" for it in _window_faults(failing, stored_windows)
            ]
            own = {amlb_name(table.name, task.kind) for task in table.tasks}
            for name in own & set(certificates):
                faults += _certificate_faults(
                    failing, stored_windows, certificates[name]
                )
            faults += _task_faults(table, failing, suite.manifest.seed)
        except SuiteError as error:
            yield str(error)
            continue
        except (LookupError, ValueError, TypeError, ArithmeticError):
            yield f"{where} is no table of windows; {REMEDY}."
            continue
        yield from (f"{fault}; {REMEDY}." for fault in faults)
        yield from _value_faults(stored, table, failing)
    yield from made_window_faults(suite)


def _is_same(came: ArrayLike, wanted: np.ndarray) -> bool:
    """Whether numbers are those that are wanted, but for their last digits."""
    came = np.asarray(came, dtype=float)
    return came.shape == wanted.shape and np.allclose(
        came, wanted.astype(float), rtol=_ROUNDING, atol=0, equal_nan=True
    )


def _window_faults(failing: FailingWindows, windows: pd.DataFrame) -> Iterator[str]:
    """Yield the facts of windows that do not follow from the series and F's forecasts."""
    facts = {"cutoff": failing.cutoffs, "scale": failing.scale}
    # that of the rule needs the forecasts of an ensemble, which are not kept
    if failing.rule.rule != "reducible":
        rolled, tests = failing.forecasts, failing.tests
        facts["hardness"] = window_hardness(
            failing.rule.rule, rolled, failing.panel, tests, 0
        )
    facts["bad"] = failing.rule.select(failing.hardness)
    for name, wanted in facts.items():
        came = windows[name].to_numpy()
        # a loss of 0 may be rounding
        atol = _ROUNDING if name == "hardness" else 0
        is_same = np.isclose(came.astype(float), wanted, rtol=_ROUNDING, atol=atol)
        if not is_same.all():
            yield (
                f"of {int((~is_same).sum())} of {len(came)} windows {name!r} does not follow from "
                "the series, F's forecasts and the rule"
            )


def _certificate_faults(
    failing: FailingWindows, windows: pd.DataFrame, certificate: Certificate
) -> Iterator[str]:
    """Yield where F's mean losses and those of its twins are not those of the certificate."""
    twins = np.stack(windows["twin_mase"].to_list())
    losses = np.column_stack([failing.forecasts.mase, twins])
    weights = failing.weighting.weights
    for part, part_weights in ((MAIN_KIND, None), ("region", weights)):
        if part not in certificate.null:
            continue
        told = certificate.null[part]
        came = np.array([told["F"], *told["twins"]], dtype=float)
        wanted = np.average(losses, axis=0, weights=part_weights)
        if not _is_same(came, wanted):
            yield (
                f"the certificate of {certificate.task} has other losses of F or its twins on "
                f"{part!r} than follow from 'weight', 'twin_mase' and F's forecasts"
            )


def _task_faults(
    table: ForecastTable, failing: FailingWindows, seed: int
) -> Iterator[str]:
    """Yield the tasks whose series are not those that the windows give."""
    names = [""] * len(failing.tests)
    for task in table.main_tasks:
        names[task.origin] = task.name.removesuffix(f"_{MAIN_KIND}")
    planned = {task.name: task for task in plan_tasks(failing, names, seed)}
    listed = {task.name: task for task in table.tasks if task.kind in REAL_KINDS}
    for name in sorted({*planned, *listed}):
        if planned.get(name) != listed.get(name):
            yield (
                f"{name}: the manifest has other series than follow from 'bad' and 'weight' of its "
                "windows"
            )


def _value_faults(
    suite: ForecastSuite, table: ForecastTable, failing: FailingWindows
) -> Iterator[str]:
    """Yield the data files that hold other values, or are known to hold others beforehand."""
    panel, known = failing.panel, list(table.entry.panel.known)
    seen: dict[int, np.ndarray] = {}
    for task in table.tasks:
        if task.kind not in REAL_KINDS:
            continue
        last = failing.origins.test[task.origin] + panel.horizon
        files = [task.path] + [task.fev_path] * (task.kind == MAIN_KIND)
        for file in files:
            try:
                frame = _read_long_table(suite.layout.at(file))
                steps = [last + 1 - panel.starts[item] for item in task.items]
                fault = ""
                if not _holds(frame, task.items, steps, failing):
                    fault = "its ids, times or values are not those of the series"
                # those known beforehand stand in these files alone
                blocks = np.split(frame[known].to_numpy(), np.cumsum(steps)[:-1])
                for item, block in zip(task.items, blocks, strict=True):
                    first = seen.setdefault(item, block)
                    n = min(len(first), len(block))
                    if not _is_same(first[:n], block[:n]):
                        fault = fault or "what is known beforehand is another elsewhere"
            except (OSError, ValueError, LookupError, TypeError, SuiteError):
                fault = "it is no table of the series that the manifest names"
            if fault:
                yield f"{file}: {fault}; {REMEDY}."


def _read_long_table(path: Path) -> pd.DataFrame:
    """Return a row for each value of AMLB's or fev's file of series."""
    if path.suffix == ".csv":
        return pd.read_csv(path)
    frame = read_frame(path)
    return frame.explode([name for name in frame if name != ITEM], ignore_index=True)


def _holds(
    frame: pd.DataFrame,
    items: Sequence[int],
    steps: Sequence[int],
    failing: FailingWindows,
) -> bool:
    """Whether a long table holds the first steps of some series at their times."""
    panel = failing.panel
    ids, values, times = [], [], []
    for item, n in zip(items, steps, strict=True):
        ids.append(np.repeat(item_id(item), n))
        values.append(panel.values[item][:n])
        times.append(panel.calendar[panel.starts[item] :][:n])
    return bool(
        np.array_equal(frame[ITEM], np.concatenate(ids))
        and _is_same(frame[TARGET], np.concatenate(values))
        and np.array_equal(pd.DatetimeIndex(frame[TIME]), np.concatenate(times))
    )
