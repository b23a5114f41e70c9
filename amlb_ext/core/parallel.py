"""Jobs on several processes, each with one thread.

Every job runs single-threaded, in the caller's process (``workers=1``) as in a worker: sums
then have one order, and the number of workers cannot change a byte.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

from amlb_ext.core.errors import HardsynthError

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def available_cores() -> int:
    """Return the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def run_jobs(
    function: Callable[..., Any], jobs: Iterable[tuple[Any, ...]], workers: int = 1
) -> Iterator[tuple[int, Any]]:
    """Yield ``(index, function(*job))`` as jobs finish.

    Parameters
    ----------
    function : callable
        A module-level function; an exception it raises is raised here.
    jobs : iterable of tuple
        Arguments of each call; drawn as workers become free.
    workers : int
        Processes; with 1 the jobs run here, in order.

    Yields
    ------
    index : int
    result : object
    """
    if workers <= 1:
        for index, job in enumerate(jobs):
            yield index, _single_threaded(function, job)
        return
    saved = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        waiting: dict[Future[Any], int] = {}
        queue = iter(enumerate(jobs))
        for index, job in queue:
            waiting[pool.submit(_single_threaded, function, job)] = index
            if len(waiting) >= 2 * workers:
                break
        while waiting:
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield waiting.pop(future), future.result()
                following = next(queue, None)
                if following is not None:
                    waiting[pool.submit(_single_threaded, function, following[1])] = following[0]
    except BrokenProcessPool:
        raise HardsynthError(
            "a worker process died, most often for lack of memory",
            "run the same command with -j 1; what is finished is kept",
        ) from None
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for name, value in saved.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _single_threaded(function: Callable[..., Any], job: tuple[Any, ...]) -> Any:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return function(*job)
