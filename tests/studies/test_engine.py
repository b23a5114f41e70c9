"""The engine of the studies: what is done is kept, what changes is computed anew."""

import pandas as pd
import pytest

from amlb_ext.core.errors import ConfigError, DataError
from benchmarks.studies.engine import Settings, Study, grid, run_study
from benchmarks.studies.fidelity.protocol import Protocol
from benchmarks.studies.page import Table

#: The cells that were computed, and those that fail or interrupt.
COMPUTED, FAILING, STOPPING = [], set(), set()


class Choice(Settings):
    factor: float = 2.0


def compute(choice, *, draw):
    if draw in STOPPING:
        raise KeyboardInterrupt
    if draw in FAILING:
        raise DataError("too few rows", "give more")
    COMPUTED.append(draw)
    # neither a row's name nor a number may change on its way through the file
    return [{"row": "0.10", "value": getattr(choice, "factor", 2.0) * draw / 3}]


def summarize(rows, choice):
    assert set(rows["row"]) == {"0.10"}
    return [Table(heading="Rows", frame=rows[["draw", "value"]], file="rows.csv")]


STUDY = Study(
    name="tiny",
    title="Tiny",
    group="tests",
    settings=Choice(draws=3),
    cells=grid(draw="draws"),
    compute=compute,
    summarize=summarize,
    small={},
)


@pytest.fixture(autouse=True)
def _fresh():
    for seen in (COMPUTED, FAILING, STOPPING):
        seen.clear()


def run(out, **changes):
    return run_study(STUDY, STUDY.changed(changes), out, workers=1)


def test_only_what_is_missing_is_computed(tmp_path):
    run(tmp_path)
    assert COMPUTED == [0, 1, 2]
    rows = pd.read_csv(tmp_path / "tiny" / "rows.csv")
    assert rows["value"].tolist() == pytest.approx([0, 2 / 3, 4 / 3], abs=1e-9)
    outcome = run(tmp_path, draws=5)
    assert COMPUTED == [0, 1, 2, 3, 4]
    assert (outcome.computed, outcome.cells) == (2, 5)
    run(tmp_path, factor=3.0)
    assert COMPUTED[5:] == [0, 1, 2]


def test_ctrl_c_leaves_what_the_same_command_continues(tmp_path):
    STOPPING.add(2)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    STOPPING.clear()
    run(tmp_path)
    assert COMPUTED == [0, 1, 2]


def test_one_cells_failure_costs_no_other_its_rows(tmp_path):
    FAILING.add(1)
    outcome = run(tmp_path)
    assert outcome.left_out == {"tiny": "too few rows (give more)"}
    assert "Left out: tiny: too few rows" in outcome.page.read_text(encoding="utf-8")
    FAILING.update({0, 2})
    with pytest.raises(ConfigError, match="nothing could be run: tiny: too few rows"):
        run(tmp_path / "other")


def test_workers_change_nothing(tmp_path):
    one = run(tmp_path / "one").page.read_bytes()
    two = run_study(
        STUDY, STUDY.settings, tmp_path / "two", workers=2
    ).page.read_bytes()
    assert [line for line in one.splitlines() if b"time" not in line] == [
        line for line in two.splitlines() if b"time" not in line
    ]


def test_confirmatory_draws_take_no_other_protocol(tmp_path):
    def draw(phase, **changes):
        study = Study(
            name="tiny",
            title="Tiny",
            group="tests",
            settings=Protocol(phase=phase, draws=1),
            cells=grid(draw=(0,)),
            compute=compute,
            summarize=summarize,
            small={},
        )
        return run_study(study, study.changed(changes), tmp_path, workers=1)

    declared = [{"method": "half", "against": "few_bad"}]
    # exploring may change what is asked
    draw("exploratory")
    draw("exploratory", contrasts=declared)
    draw("confirmatory")
    draw("confirmatory", draws=2)
    with pytest.raises(
        ConfigError, match="declared after they were seen confirm nothing"
    ):
        draw("confirmatory", contrasts=declared)
    assert {path.name for path in (tmp_path / "tiny").iterdir()} == {
        "exploratory",
        "confirmatory",
    }
