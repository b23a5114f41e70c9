"""A definition of one's own is held against AMLB's rules, whatever its tasks are of."""

import pandas as pd
import pytest

from amlb_ext.cli import main
from amlb_ext.core.config import SourceConfig
from amlb_ext.sources.definition_check import check_definition

TRAIN = "n,c,y\n1,a,no\n2,b,yes\n3,a,no\n"
TEST = "n,c,y\n1,a,no\n"
SERIES = (
    "{path: PATH/long.csv, type: timeseries, freq: MS, forecast_horizon_in_steps: 2, "
    "seasonality: 1, target: target}"
)


@pytest.fixture
def check(tmp_path):
    """Return a function that checks a definition of one task."""
    (tmp_path / "train.csv").write_text(TRAIN)
    (tmp_path / "test.csv").write_text(TEST)
    (tmp_path / "same.csv").write_text(TRAIN)
    (tmp_path / "odd.csv").write_text("n,c,y\n1.5,z,no\n")
    times = pd.date_range("2020", periods=9, freq="MS")
    long = pd.DataFrame({"item_id": "a", "timestamp": times, "target": range(9)})
    long.to_csv(tmp_path / "long.csv", index=False)
    long.assign(target=1).to_csv(tmp_path / "still.csv", index=False)

    def check(task):
        path = tmp_path / "mine.yaml"
        path.write_text(f"- name: mine\n  {task}\n".replace("PATH", str(tmp_path)))
        return check_definition(str(path), SourceConfig())

    return check


@pytest.mark.parametrize(
    ("task", "problems"),
    [
        ("dataset: {train: PATH/train.csv, test: PATH/test.csv}", []),
        (
            "dataset: {train: PATH/train.csv, test: PATH/odd.csv, target: c}",
            [
                "fold 0: Column 'n' is integer",
                "fold 0: The test file has the class 'z'",
            ],
        ),
        (
            "dataset: {train: train.csv, test: test.csv, target: y}",
            ["the path train.csv is relative"],
        ),
        (
            "dataset: {train: PATH/train.csv, test: PATH/same.csv, target: y}",
            ["fold 0: The training file holds the same rows as the test file"],
        ),
        (
            "dataset: [PATH/train.csv, PATH/test.csv]\n  folds: 3",
            ["3 folds are asked for, and there are files of 1"],
        ),
        ("dataset: PATH/train.csv", ["train.csv is one table"]),
        ("dataset: {train: PATH/no.csv, test: PATH/test.csv}", ["no such file"]),
        (f"dataset: {SERIES}", []),
        (
            f"dataset: {SERIES}".replace("long", "still"),
            ["is the same from season to season"],
        ),
        (f"dataset: {SERIES}".replace("PATH/long", "long"), ["the path long.csv is"]),
        ("dataset: {type: timeseries, path: x.csv}", ["'target' is missing"]),
    ],
)
def test_what_amlb_would_mis_score_is_found(check, task, problems):
    found = check(task)
    assert len(found.problems) == len(problems), found.problems
    for problem, wanted in zip(found.problems, problems, strict=True):
        assert problem.startswith(f"task mine: {wanted}") or wanted in problem
    assert found.checked == ("mine",)


def test_tasks_of_openml_are_not_looked_at(check):
    found = check("openml_task_id: 59")
    assert (found.checked, found.unseen) == ((), ("mine",))


def test_the_command_has_status_1_where_there_is_a_problem(check, tmp_path, output_of):
    check(f"dataset: {SERIES}")
    path = str(tmp_path / "mine.yaml")
    assert "AMLB's rules hold for 1 task" in output_of("verify --definition", path)
    check(f"dataset: {SERIES}".replace("long", "still"))
    assert "the same from season to season" in output_of(
        "verify --definition", path, status=1
    )
    for words in (["verify"], ["verify", "hard", "--definition", path]):
        assert main(words) == 2
