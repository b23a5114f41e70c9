"""Stages of units reach who shows them, from this process and from others."""

import io
import time

import pytest
from tqdm import tqdm

from amlb_ext.core.parallel import Execution, Unit, run_units
from amlb_ext.core.progress import Bar, StageDisplay, begin_stage


def work(number):
    begin_stage(f"counting to {number}")
    time.sleep(0.5)  # the other process looks ten times a second
    return number


@pytest.mark.parametrize("workers", [1, 2])
def test_stages_of_units_arrive(workers):
    heard = []
    units = [Unit(f"unit {n}", "", work, (n,)) for n in (1, 2)]
    execution = Execution(workers=workers)
    outcomes = run_units(
        units, execution, on_stage=lambda unit, words: heard.append((unit, words))
    )
    assert sorted(outcome.result for outcome in outcomes) == [1, 2]
    assert sorted(heard) == [("unit 1", "counting to 1"), ("unit 2", "counting to 2")]


def test_a_terminal_shows_the_stage_of_each_unit_until_it_ends():
    stream = io.StringIO()
    stream.isatty = lambda: True
    with tqdm(total=2, file=stream, ncols=120) as bar:
        display = StageDisplay(bar)
        display.show("toy fold 0", "fitting F")
        display.show("toy fold 1", "writing")
        display.forget("toy fold 0")
    assert "toy fold 0: fitting F | toy fold 1: writing" in stream.getvalue()
    assert "toy fold 0" not in stream.getvalue().split("\r")[-1]


def test_a_log_has_a_line_for_each_unit_and_no_carriage_return():
    log = io.StringIO()
    with Bar(total=3, desc="folds", unit="fold", file=log, mininterval=0) as bar:
        for stage in ("fitting F", "searching", "done"):
            bar.set_postfix_str(stage)
            bar.refresh()
            bar.update()
    assert "\r" not in log.getvalue()
    # a bar ends in a line break of its own
    lines = log.getvalue().strip().splitlines()
    assert [f"{n}/3" in line for n, line in enumerate(lines, 1)] == [True] * 3
