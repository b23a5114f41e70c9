"""What runs inside a process that computes units."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

#: Variables that numerical libraries read when they are loaded.
THREADS = {
    name: "1"
    for name in (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    )
}


def run_single_threaded(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> Any:
    """Return ``function(*arguments)`` with numerical libraries held to one thread."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return function(*arguments)


def exit_with_parent(parent: int) -> None:
    """End this process when its parent has died: nobody else would tell it.

    A process that waits for work does not notice that its parent was killed.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="leave_with").start()


def run_and_report(
    function: Callable[..., Any], arguments: tuple[Any, ...], log: str
) -> tuple[bool, Any, str]:
    """Run a function with its output in a file.

    Returns
    -------
    done : bool
        False where it raised.
    result : object
        What it returned or raised.
    trace : str
        Where it raised.
    """
    with redirect_output(log):
        try:
            return True, run_single_threaded(function, arguments), ""
        except Exception as error:
            return False, error, traceback.format_exc()


@contextlib.contextmanager
def redirect_output(log: str) -> Iterator[None]:
    """Send this process's output, that of compiled libraries too, to a file."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    saved = [(number, os.dup(number)) for number in (1, 2)]
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for number, _ in saved:
            os.dup2(handle, number)
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for number, copy in saved:
            os.dup2(copy, number)
            os.close(copy)
        os.close(handle)
