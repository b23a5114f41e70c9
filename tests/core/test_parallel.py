import os

import pytest

from amlb_ext.core.errors import HardsynthError
from amlb_ext.core.parallel import Execution, Unit, run_jobs, run_units
from amlb_ext.core.rng import random_stream


def square(x):
    return x * x


def fail(x):
    raise ValueError(x)


def square_and_threads(x):
    return x * x, os.environ.get("OMP_NUM_THREADS")


def test_workers_are_single_threaded_and_the_caller_is_left_alone():
    before = os.environ.get("OMP_NUM_THREADS")
    done = dict(run_jobs(square_and_threads, ((i,) for i in range(7)), 2))
    assert done == {i: (i * i, "1") for i in range(7)}
    assert os.environ.get("OMP_NUM_THREADS") == before


def test_streams_differ_by_key_only():
    assert random_stream(1, "a", 0).random() == random_stream(1, "a", 0).random()
    assert random_stream(1, "a", 0).random() != random_stream(1, "a", 1).random()
    # ("a", "b0") and ("ab", "0") must not collide
    assert random_stream(1, "a", "b0").random() != random_stream(1, "ab", "0").random()


def die(_):
    os._exit(9)


def process_id(_):
    return os.getpid()


def test_an_outcome_names_the_process_that_computed_it():
    unit = Unit("id", "", process_id, (0,))
    (outcome,) = run_units([unit], Execution(workers=2))
    assert outcome.where.endswith(f"process {outcome.result}")
    assert outcome.result != os.getpid()


def test_pools_hand_on_their_idle_processes():
    first = dict(run_jobs(process_id, [(i,) for i in range(6)], workers=2))
    with pytest.raises(ValueError, match="1"):
        list(run_jobs(fail, [(1,)], workers=2))
    second = dict(run_jobs(process_id, [(i,) for i in range(6)], workers=2))
    assert set(first.values()) & set(second.values())
    # a process that died is none to hand on
    with pytest.raises(HardsynthError, match="a worker process was lost"):
        list(run_jobs(die, [(1,)], workers=2))
    assert dict(run_jobs(square, [(2,)], workers=2)) == {0: 4}
