"""Spills tables to disk, so that a suite of many tasks does not hold them all in memory.

Tables stay in memory as long as all of them together are small. Later ones are memory-mapped from
an unnamed file beside the suite: the same values in the same objects, which the operating system
drops and reads again as needed. The file has no name, so a killed process leaves nothing behind.
"""

from __future__ import annotations

import mmap
import os
import pickle
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext.core.task import Task

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
    >>> table = pd.DataFrame({"x": range(40), "c": ["u", "v"] * 20, "y": [1.0, 2.0] * 20})
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
        self._last = (pd.DataFrame(), pd.DataFrame())

    def keep(self, task: Task) -> Task:
        """Return the same task, with its table on disk if earlier ones fill the memory.

        A table that consecutive tasks share stays shared. If the disk is full or read-only, the
        task stays in memory.
        """
        if task.features is not self._last[0]:
            self._last = (task.features, self._keep(task.features))
        target, row_ids = self._keep((task.target, task.row_ids))
        features = self._last[1]
        return replace(task, features=features, target=target, row_ids=row_ids)

    def keep_folds(self, task: Task) -> Task:
        """Return the same task with its folds kept in the same way."""
        return task.with_folds(self._keep(task.folds))

    def _keep(self, value: Any) -> Any:
        """Return the same object with its arrays on disk where they do not fit in memory."""
        buffers: list[pickle.PickleBuffer] = []
        content = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        arrays = [buffer.raw() for buffer in buffers]
        sizes = [-(-array.nbytes // _ALIGNMENT) * _ALIGNMENT for array in arrays]
        self._total += sum(sizes)
        if self._total <= self.in_memory:
            return value
        try:
            if self._map is None or self._used + sum(sizes) > len(self._map):
                # Arrays on the old segment keep it alive until the last of them is gone.
                self._map = _map_segment(self.folder, max(SEGMENT, sum(sizes)))
                self._used = 0
        except OSError:
            return value
        copies = []
        for array, size in zip(arrays, sizes, strict=True):
            copy = memoryview(self._map)[self._used : self._used + array.nbytes]
            copy[:] = array
            copies.append(copy)
            self._used += size
            self.on_disk += array.nbytes
        return pickle.loads(content, buffers=copies)


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
