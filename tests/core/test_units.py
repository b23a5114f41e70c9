"""Units of work: limits, retries, what is lost and what is not."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from amlb_ext.core import processes
from amlb_ext.core.errors import ConfigError, HardsynthError
from amlb_ext.core.parallel import Execution, Unit, parse_size, run_jobs, run_units


def square(x):
    print(f"squaring {x}", flush=True)
    return x * x


def sleep(seconds):
    time.sleep(seconds)
    return seconds


def hold(megabytes):
    held = bytearray(megabytes << 20)
    time.sleep(2)
    return len(held)


def die_once(mark):
    if not os.path.exists(mark):
        open(mark, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


def suspend_once(mark):
    if not os.path.exists(mark):
        open(mark, "w").close()
        os.kill(os.getpid(), signal.SIGSTOP)
    return "alive"


def multiply(_):
    return (7**800_000 * 11**800_000).bit_length()  # in one call: no other thread runs


def die(_):
    os.kill(os.getpid(), signal.SIGKILL)


def fail(text):
    raise ValueError(text)


def units(*calls):
    return [
        Unit(f"{function.__name__} {argument}", "key", function, (argument,))
        for function, argument in calls
    ]


def by_name(outcomes):
    return {outcome.unit.name: outcome for outcome in outcomes}


def test_a_unit_over_its_time_is_lost_and_the_rest_goes_on():
    calls = units((sleep, 60), (square, 2), (square, 3))
    found = by_name(run_units(calls, Execution(workers=1, timeout=1.5)))
    assert found["sleep 60"].lost == "over the limit of 1.5 seconds"
    assert found["sleep 60"].attempts == ()
    assert [found[f"square {i}"].result for i in (2, 3)] == [4, 9]
    assert found["square 2"].log == "squaring 2\n"


def test_a_unit_over_its_memory_is_lost_and_the_rest_goes_on():
    calls = units((hold, 400), (square, 2))
    found = by_name(run_units(calls, Execution(workers=1, memory=parse_size("300MB"))))
    assert found["hold 400"].lost == "over the limit of 300 MB of memory"
    assert found["square 2"].result == 4


def test_a_unit_whose_process_died_is_run_again_within_a_bound(tmp_path):
    calls = units((die_once, str(tmp_path / "mark")), (die, 0), (square, 3))
    found = by_name(run_units(calls, Execution(workers=2, retries=1)))
    once = found[f"die_once {tmp_path / 'mark'}"]
    assert once.result == "alive"
    assert len(once.attempts) == 1
    assert "process died" in once.attempts[0]
    assert found["die 0"].lost.endswith("(2 attempts)")
    assert found["square 3"].result == 9


def test_the_unit_of_a_suspended_process_is_run_again(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "PATIENCE", 1.5)
    mark = str(tmp_path / "mark")
    calls = units((suspend_once, mark), (square, 2))
    found = by_name(run_units(calls, Execution(workers=2)))
    once = found[f"suspend_once {mark}"]
    assert once.result == "alive"
    assert len(once.attempts) == 1
    assert "was suspended and not continued" in once.attempts[0]
    assert found["square 2"].result == 4


def test_a_process_that_computes_without_a_pause_is_left_alone(monkeypatch):
    monkeypatch.setattr(processes, "PATIENCE", 0.2)
    calls = units((multiply, 0), (square, 2))
    found = by_name(run_units(calls, Execution(workers=2)))
    assert found["multiply 0"].result > 4_000_000
    assert found["multiply 0"].attempts == ()


def test_an_error_ends_everything_or_loses_its_unit_with_where_it_came_from():
    calls = units((fail, "strange table"), (square, 3))
    with pytest.raises(ValueError, match="strange table"):
        list(run_units(calls, Execution(workers=2)))
    for workers in (1, 2):
        found = by_name(
            run_units(calls, Execution(workers=workers), raises=(HardsynthError,))
        )
        assert found["fail strange table"].lost == "ValueError: strange table"
        assert found["square 3"].result == 9
    assert "in fail" in found["fail strange table"].log


def test_processes_end_with_the_parent_that_was_killed(tmp_path):
    code = """
        import sys, time
        from pathlib import Path
        from amlb_ext.core.parallel import Execution, Unit, run_units
        sys.path.insert(0, {here!r})
        from test_units import tell_and_sleep
        units = [Unit(str(i), "", tell_and_sleep, ({folder!r}, i)) for i in range(2)]
        list(run_units(units, Execution(workers=2)))
    """
    here = str(Path(__file__).parent)
    text = textwrap.dedent(code).format(here=here, folder=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", text]) as parent:
        deadline = time.monotonic() + 60
        while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        children = [int(path.name) for path in tmp_path.iterdir()]
        assert len(children) == 2
        parent.kill()
    while (
        any(psutil.pid_exists(child) for child in children)
        and time.monotonic() < deadline
    ):
        time.sleep(0.1)
    assert not any(psutil.pid_exists(child) for child in children)


def tell_and_sleep(folder, _):
    Path(folder, str(os.getpid())).touch()
    time.sleep(300)


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(ConfigError, match="not a size"):
        parse_size("much")
    with pytest.raises(ConfigError, match="retries"):
        Execution(retries=-1)


def square_and_threads(x):
    return x * x, os.environ.get("OMP_NUM_THREADS")


def test_workers_are_single_threaded_and_the_caller_is_left_alone():
    before = os.environ.get("OMP_NUM_THREADS")
    done = dict(run_jobs(square_and_threads, ((i,) for i in range(7)), 2))
    assert done == {i: (i * i, "1") for i in range(7)}
    assert os.environ.get("OMP_NUM_THREADS") == before


def process_id(_):
    return os.getpid()


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
