"""What runs inside a process that computes units."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from amlb_ext.core.memory import release_memory
from amlb_ext.core.progress import listening, write_stages_to

#: Environment of a process: numerical libraries read these variables when they are loaded.
THREADS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
}


def run_single_threaded(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> Any:
    """Return ``function(*arguments)`` with numerical libraries held to one thread."""
    from threadpoolctl import threadpool_limits

    try:
        with threadpool_limits(1):
            return function(*arguments)
    finally:
        # what a unit freed is in pieces, and the next unit may need it in one
        release_memory()


def exit_with_parent(parent: int) -> None:
    """End this process when its parent dies.

    A process that waits for work does not notice by itself that its parent was killed.
    """

    def watch() -> None:
        # An orphan gets another parent.
        while os.getppid() == parent:
            time.sleep(0.5)
        # sys.exit would end this thread only
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="exit_with_parent").start()


def run_and_report(
    function: Callable[..., Any], arguments: tuple[Any, ...], log: str
) -> tuple[bool, Any, str]:
    """Run a function with its output in a file.

    An error is returned, not raised, since loky would lose the traceback.

    Returns
    -------
    has_result : bool
        False if the function raised.
    result : object
        What it returned or raised.
    trace : str
        The traceback; empty if it returned.
    """
    stages = write_stages_to(stage_file(Path(log)))
    with redirect_output(log), listening(stages):
        try:
            return True, run_single_threaded(function, arguments), ""
        except Exception as error:
            return False, error, traceback.format_exc()


def stage_file(log: Path) -> Path:
    """Return the file in which a process keeps the stage of its unit, beside the unit's log."""
    return log.with_name("stage")


@contextlib.contextmanager
def redirect_output(log: str) -> Iterator[None]:
    """Send the output of this process to a file, also that of compiled libraries.

    Those write to the file descriptors 1 and 2 and ignore ``sys.stdout``.
    """
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
