"""``verify --repair`` of weird tasks: made again beside themselves, by the order they keep."""

import shutil

import numpy as np
import pytest
from exhaustive import first_of
from folders import contents
from hostile_files import reseal

from amlb_ext.cli import main
from amlb_ext.suite import verify_suite
from amlb_ext.suite.reader import WeirdSuite

OWN = '''
import numpy as np, pandas as pd
from amlb_ext.tasks import Draw, Rows

def signs(rng):
    """Predict the sign."""
    def rows(n):
        x = rng.normal(size=n)
        return Rows(features=pd.DataFrame({"x": x}), labels=np.where(x > 0, "up", "down"))
    return Draw(train=rows(30), test=rows(20))

def nothing(rng):
    return 3
'''


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a task of a file of pictures, and one of ours; the file is beside it."""
    folder = tmp_path_factory.mktemp("weird")
    pictures = np.random.default_rng(0).integers(0, 256, (3000, 28, 28), dtype=np.uint8)
    np.save(folder / "pictures.npy", pictures)
    words = ["--task", "shuffle_easy", "--task", "digits_few", "--model", "a/b-1"]
    words += ["--data", f"shuffle_easy={folder / 'pictures.npy'}", "--folds", "1"]
    assert main(["tasks", "weird", *words, "-o", str(folder / "w"), "-q"]) == 0
    return folder


@pytest.fixture
def suite(made, tmp_path):
    return shutil.copytree(made / "w", tmp_path / "w")


def damage(suite):
    """Change, empty and remove files of both tasks."""
    (suite / "data/shuffle_easy/shuffle_easy_test_0.csv").write_text("")
    (suite / "data/digits_few/digits_few_train_0.csv").unlink()
    (suite / "extensions/LLMCoder/confine.py").write_text("")
    (suite / "benchmarks/weird.yaml").unlink()


@pytest.mark.parametrize(
    "lost", first_of(["manifest.json", "order.json", "nothing"], 1)
)
def test_files_of_weird_tasks_are_made_again(suite, made, lost, capsys):
    whole = contents(suite)
    damage(suite)
    (suite / "hardsynth" / lost).unlink(missing_ok=True)
    source = ["--source", str(made / "pictures.npy")]
    assert main(["verify", str(suite), "--repair", *source]) == 0
    assert "benchmarks/weird.yaml was made again" in capsys.readouterr().out
    assert contents(suite) == whole
    # no local folder is kept
    for path in suite.rglob("*.json"):
        assert str(made) not in path.read_text()


def test_a_repair_that_cannot_be_right_is_refused(suite, made, tmp_path, capsys):
    other = tmp_path / "pictures.npy"
    np.save(other, np.load(made / "pictures.npy")[::-1])
    damage(suite)
    before = contents(suite)
    for source, message in (
        ([], "cannot read the images of pictures.npy"),
        (["--source", str(other)], "what it was made of has changed"),
        (["--source", str(made / "w")], "the suite was made of pictures.npy"),
    ):
        assert main(["verify", str(suite), "--repair", *source]) == 2
        assert message in capsys.readouterr().err
        assert contents(suite) == before


def test_a_task_of_ones_own_is_imported_for_its_owner_alone(
    tmp_path, monkeypatch, capsys, refused
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_signs.py").write_text(OWN)
    for word in ("own_signs:nothing", "own_signs:gone", "gone:parity", "own_signs:"):
        assert word in refused("tasks weird -o v --task", [word])
    assert not (tmp_path / "v").exists()
    assert main(["tasks", "weird", "--task", "own_signs:signs", "-o", "w", "-q"]) == 0
    suite = tmp_path / "w"
    [task] = WeirdSuite.load(suite).manifest.tasks
    assert (task.name, task.labels) == ("signs", ("down", "up"))
    assert task.statement == "Predict the sign."
    whole = contents(suite)
    (suite / "data/signs/signs_test_1.csv").unlink()
    assert main(["verify", "w", "--repair"]) == 2
    assert "own_signs:signs; nothing was imported" in capsys.readouterr().err
    assert main(["verify", "w", "--repair", "--trust-suite"]) == 0
    assert contents(suite) == whole
    # an order that names none of ours
    reseal(suite, lambda entry: entry["order"]["request"].update(folds="many"))
    (suite / "config.yaml").unlink()
    assert main(["verify", "w", "--repair", "--trust-suite"]) == 2
    assert "cannot be read (request.folds" in capsys.readouterr().err
    assert verify_suite(suite)
