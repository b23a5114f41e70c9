"""Spills tables to disk, so that a suite of many tasks does not hold them all in memory.

Tables stay in memory as long as all of them together are small. Later ones are memory-mapped from
an unnamed file beside the suite: the same values in the same objects, which the operating system
drops and reads again as needed. The file has no name, so a killed process leaves nothing behind.
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
#: Smallest file that tables are mapped from, in bytes: each mapping holds an open file, of which a
#: process may have about a thousand.
SEGMENT = 256 << 20
#: Arrays begin at multiples of this many bytes, a cache line of most processors.
_ALIGNMENT = 64


class Spill:
    """Keeps the tables of tasks: the first ones in memory, later ones on disk.

    Parameters
    ----------
    folder : Path
        Place of the file; the folder, or one above it, exists. It must not lie on a file system
        in memory, as the system's temporary folder may.
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
        #: Bytes of all tables so far, wherever they lie.
        self._total = 0
        #: The current segment on disk, and the bytes of it in use.
        self._map: mmap.mmap | None = None
        self._used = 0
        #: The last table as it came and as it is kept.
        self._last_original: pd.DataFrame | None = None
        self._last_kept = pd.DataFrame()

    def keep(self, task: Task) -> Task:
        """Return the same task, with its table on disk if earlier ones fill the memory.

        A table that consecutive tasks share stays shared. If the disk is full or read-only, the
        task stays in memory.
        """
        if task.features is not self._last_original:
            self._last_kept = self._keep_frame(task.features)
            self._last_original = task.features
        return dataclasses.replace(
            task,
            features=self._last_kept,
            target=self._keep_series(task.target),
            row_ids=self._keep_array(task.row_ids),
        )

    def keep_folds(self, task: Task) -> Task:
        """Return the same task with its folds kept in the same way."""
        folds = []
        for fold in task.folds:
            train = self._keep_array(fold.train)
            test = self._keep_array(fold.test)
            folds.append(Fold(train, test))
        return task.with_folds(tuple(folds))

    def _keep_frame(self, frame: pd.DataFrame) -> pd.DataFrame:
        size = sum(_stored_values(frame[name]).nbytes for name in frame.columns)
        if self._fits(size):
            return frame
        columns = {name: self._spill_series(frame[name]) for name in frame.columns}
        return pd.DataFrame(
            columns, index=frame.index, columns=frame.columns, copy=False
        )

    def _keep_series(self, series: pd.Series) -> pd.Series:
        if self._fits(_stored_values(series).nbytes):
            return series
        return self._spill_series(series)

    def _keep_array(self, array: np.ndarray) -> np.ndarray:
        return array if self._fits(array.nbytes) else self._spill_array(array)

    def _spill_series(self, series: pd.Series) -> pd.Series:
        values: np.ndarray | pd.Categorical = self._spill_array(_stored_values(series))
        if isinstance(series.dtype, pd.CategoricalDtype):
            # No validation: it would read all codes back from the disk.
            values = pd.Categorical.from_codes(
                values, dtype=series.dtype, validate=False
            )
        return pd.Series(values, index=series.index, name=series.name, copy=False)

    def _spill_array(self, array: np.ndarray) -> np.ndarray:
        """Return a copy that lies on disk, or in memory if the disk has no room."""
        size = array.nbytes
        try:
            if self._map is None or self._used + size > len(self._map):
                # Arrays on the old segment keep it alive until the last of them is gone.
                self._map = _map_segment(self.folder, max(SEGMENT, size))
                self._used = 0
        except OSError:
            return array.copy()
        flat = np.frombuffer(
            self._map, dtype=array.dtype, count=array.size, offset=self._used
        )
        copy = flat.reshape(array.shape)
        copy[...] = array
        self._used += math.ceil(size / _ALIGNMENT) * _ALIGNMENT
        self.on_disk += size
        return copy

    def _fits(self, size: int) -> bool:
        """Count a table, and return whether all tables so far fit in memory."""
        self._total += size
        return self._total <= self.in_memory


def _map_segment(folder: Path, size: int) -> mmap.mmap:
    """Map a new unnamed file for whose whole size the disk has reserved room.

    Writing to a mapped page for which the disk has no room kills the process, so the room is
    reserved first.
    """
    while not folder.is_dir():
        folder = folder.parent
    with tempfile.TemporaryFile(dir=folder, prefix=".hardsynth-") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            # macOS lacks it: zeros are written a mebibyte at a time
            for start in range(0, size, 1 << 20):
                file.write(bytes(min(1 << 20, size - start)))
            file.flush()
        return mmap.mmap(file.fileno(), size)


def _stored_values(series: pd.Series) -> np.ndarray:
    """Return the array behind a series: the codes of categories, the values of numbers."""
    values = series.array
    return values.codes if isinstance(values, pd.Categorical) else series.to_numpy()
