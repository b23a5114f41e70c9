"""Memory that nothing uses any more, given back to the system."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys

#: Arrow reads it when it is imported.
_ARROW_POOL = "ARROW_DEFAULT_MEMORY_POOL"


def use_one_allocator() -> None:
    """Let Arrow take its memory from the C library, as numpy does, unless the user chose a pool.

    Arrow's own pool keeps what it read a file with, twice the memory of the columns or more. Call
    it once, at the start of a program.

    Examples
    --------
    >>> use_one_allocator()
    """
    if os.environ.setdefault(_ARROW_POOL, "system") != "system":
        return
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.set_memory_pool(arrow.system_memory_pool())


def release_memory() -> None:
    """Give back what Arrow and the C library keep of freed memory for later use.

    Both keep it in pieces that the next, larger array does not fit into, so a process of several
    stages grows from each to the next. Call it between stages that free much: it takes some
    milliseconds, and changes no result. Where the C library is not GNU's, only Arrow's part is
    given back.

    Examples
    --------
    >>> release_memory()
    """
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    if sys.platform == "linux":
        # musl has no such function
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL("libc.so.6").malloc_trim(0)
