"""Units on this machine: in this process, or each of several threads minds a process of loky's.

A process that dies takes one unit with it; the others do not notice.
"""

from __future__ import annotations

import threading
import time
import traceback
from concurrent.futures import Future, ThreadPoolExecutor

from amlb_ext.core.parallel.child import single_threaded
from amlb_ext.core.parallel.execution import Execution
from amlb_ext.core.parallel.supervise import Child
from amlb_ext.core.parallel.units import Died, Failed, Report, Unit


class Here:
    """This process: a unit is done when it was handed in."""

    slots = 1

    def submit(self, unit: Unit, index: int, attempt: int) -> Future[Report]:
        """Run a unit."""
        future: Future[Report] = Future()
        began = time.monotonic()
        try:
            result = single_threaded(unit.function, unit.arguments)
            future.set_result(Report(result, time.monotonic() - began))
        except Exception as error:
            future.set_exception(Failed(error, traceback.format_exc()))
        return future

    def refuse(self, worker: str, reason: str) -> None:
        """Nothing refuses this process."""

    def check(self) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        """Nothing is left."""


class Processes:
    """Processes of this machine.

    Parameters
    ----------
    execution : Execution
    """

    def __init__(self, execution: Execution) -> None:
        self.slots = execution.processes
        self._execution = execution
        self._threads = ThreadPoolExecutor(self.slots, thread_name_prefix="unit")
        self._own = threading.local()
        self._children: list[Child] = []
        self._closed = False

    def submit(self, unit: Unit, index: int, attempt: int) -> Future[Report]:
        """Hand a unit to the next thread that has nothing to do."""
        return self._threads.submit(self._run, unit)

    def refuse(self, worker: str, reason: str) -> None:
        """Nothing refuses a process of this machine."""

    def check(self) -> None:
        """The threads look after their processes."""

    def close(self) -> None:
        """End every process; what it did not finish is lost."""
        self._closed = True
        for child in self._children:
            child.close()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _run(self, unit: Unit) -> Report:
        if self._closed:
            raise Died("no longer wanted")
        child = getattr(self._own, "child", None)
        if child is None:
            child = self._own.child = Child()
            self._children.append(child)
        limits = self._execution
        return child.run(unit.function, unit.arguments, limits.timeout, limits.memory)
