"""Spills loaded tables to disk, so that a suite of many tasks does not hold them all in memory.

A table stays in memory as long as all of them together are small. Later ones are memory-mapped
from an unnamed file beside the suite: the same values in the same objects, which the operating
system drops and reads again as it needs. The file has no name, so a killed process leaves
nothing behind.
"""

from __future__ import annotations

import dataclasses
import math
import mmap
import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from amlb_ext.core.task import Fold, Task

#: Bytes of tables that stay in memory.
IN_MEMORY = 512 << 20
#: Least bytes of a file that tables are mapped from: each mapping holds an open file, of which a
#: process may have about a thousand.
SEGMENT = 256 << 20
#: Arrays begin at multiples of this, as processors like them.
_ALIGNMENT = 64


class Spill:
    """Keeps tasks, those beyond a sum of bytes on disk.

    Parameters
    ----------
    folder : Path
        Where the file goes; it, or a folder above it, exists. Not a file system in memory, so
        the system's temporary folder is no good choice.
    in_memory : int
        Bytes of tables that stay in memory.

    Attributes
    ----------
    on_disk : int
        Bytes that were spilled.

    Examples
    --------
    >>> from amlb_ext.core.tables import make_task
    >>> table = pd.DataFrame({"x": np.arange(40.0), "c": ["u", "v"] * 20, "y": [1.0, 2.0] * 20})
    >>> task = make_task(table, "y", name="t")
    >>> spill = Spill(Path(tempfile.gettempdir()), in_memory=0)
    >>> spilled = spill.keep(task)
    >>> spilled.content_hash == task.content_hash, spill.on_disk > 0
    (True, True)
    """

    def __init__(self, folder: Path, in_memory: int = IN_MEMORY) -> None:
        self.folder = folder
        self.in_memory = in_memory
        self.on_disk = 0
        self._held = 0
        self._map: mmap.mmap | None = None
        self._used = 0
        self._last: tuple[pd.DataFrame | None, pd.DataFrame] = (None, pd.DataFrame())

    def keep(self, task: Task) -> Task:
        """Return the same task, its table on disk if those kept before fill the memory.

        A table that consecutive tasks share stays shared. Where the disk is full or read-only
        the task stays in memory.
        """
        original, kept = self._last
        if task.features is not original:
            kept = self._frame(task.features)
            self._last = task.features, kept
        return dataclasses.replace(
            task,
            features=kept,
            target=self._series(task.target),
            row_ids=self._array(task.row_ids),
        )

    def keep_folds(self, task: Task) -> Task:
        """Return the same task with its folds kept in the same way."""
        return task.with_folds(
            tuple(Fold(self._array(f.train), self._array(f.test)) for f in task.folds)
        )

    def _frame(self, frame: pd.DataFrame) -> pd.DataFrame:
        if self._fits(sum(_values(frame[name]).nbytes for name in frame.columns)):
            return frame
        columns = {name: self._spilled(frame[name]) for name in frame.columns}
        return pd.DataFrame(
            columns, index=frame.index, columns=frame.columns, copy=False
        )

    def _series(self, series: pd.Series) -> pd.Series:
        return series if self._fits(_values(series).nbytes) else self._spilled(series)

    def _array(self, array: np.ndarray) -> np.ndarray:
        return array if self._fits(array.nbytes) else self._copy(array)

    def _spilled(self, series: pd.Series) -> pd.Series:
        values: np.ndarray | pd.Categorical = self._copy(_values(series))
        if isinstance(series.dtype, pd.CategoricalDtype):
            values = pd.Categorical.from_codes(
                values, dtype=series.dtype, validate=False
            )
        return pd.Series(values, index=series.index, name=series.name, copy=False)

    def _copy(self, array: np.ndarray) -> np.ndarray:
        """Return a copy that lies on disk, or in memory where the disk has no room."""
        size = array.nbytes
        try:
            if self._map is None or self._used + size > len(self._map):
                self._map, self._used = _segment(self.folder, max(SEGMENT, size)), 0
        except OSError:
            return array.copy()
        copy = np.frombuffer(self._map, array.dtype, array.size, self._used).reshape(
            array.shape
        )
        copy[...] = array
        self._used += math.ceil(size / _ALIGNMENT) * _ALIGNMENT
        self.on_disk += size
        return copy

    def _fits(self, size: int) -> bool:
        self._held += size
        return self._held <= self.in_memory


def _segment(folder: Path, size: int) -> mmap.mmap:
    """Map a new unnamed file whose whole size the disk has set aside.

    Writing to a mapped page that the disk has no room for ends the process, so the room is
    asked for before.
    """
    while not folder.is_dir():
        folder = folder.parent
    with tempfile.TemporaryFile(dir=folder, prefix=".hardsynth-") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:  # macOS
            for start in range(0, size, 1 << 20):
                file.write(bytes(min(1 << 20, size - start)))
            file.flush()
        return mmap.mmap(file.fileno(), size)


def _values(series: pd.Series) -> np.ndarray:
    values = series.array
    return values.codes if isinstance(values, pd.Categorical) else series.to_numpy()
