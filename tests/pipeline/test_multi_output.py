"""A table with several targets, as a user goes the whole way."""

import numpy as np
import pandas as pd
import pytest
from commands import words_of
from folders import contents

from amlb_ext.cli import main
from amlb_ext.core.config import SourceConfig
from amlb_ext.pipeline.generate import rename_repeated_groups
from amlb_ext.sources import open_specs
from amlb_ext.suite import SuiteFiles, verify_suite

# what is written and said matters here, not how good the models are
pytestmark = pytest.mark.usefixtures("light_models")

CORE = words_of("--baseline ridge --synthesizer local --folds 2 --times 1 --copies 1")
FAST = words_of(CORE, "--composition weighted --kappa .02 --certificate none -j 1 -q")


def flats(folder, name="flats.csv", n=120):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"area": rng.random(n).round(3), "town": rng.choice(["n", "s"], n)}
    )
    broken = 1.0 * (table["area"] > 0.7) * (table["town"] == "s")
    table["price"] = (table["area"] - broken + rng.normal(0, 0.1, n)).round(3)
    table["age"] = rng.integers(0, 90, n)
    table["rent"] = np.round(
        100 * (table["area"] - 0.6 * broken) + rng.normal(0, 10, n)
    )
    table.loc[[3, 17], "price"] = np.nan
    table.loc[[5, 17], "rent"] = np.nan
    folder.mkdir(exist_ok=True, parents=True)
    table.to_csv(folder / name, index=False)
    return str(folder / name)


def generate(table, out, *words):
    return main(
        ["generate", table, "--targets", "price", "rent", "-o", str(out), *FAST, *words]
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return flats(tmp_path_factory.mktemp("table"))


@pytest.fixture(scope="module")
def suite(table, tmp_path_factory):
    root = tmp_path_factory.mktemp("suite") / "hard"
    assert generate(table, root) == 0
    return root


def same_rows(root):
    """Whether all files of both tasks differ by their target alone; return how many there are."""
    suite, count = SuiteFiles.load(root), 0
    for name, task in suite.amlb_tasks.items():
        if not name.startswith("flats_price"):
            continue
        other = name.replace("price", "rent", 1)
        for fold in range(len(task.folds)):
            for one, two in zip(
                suite.pair(name, fold), suite.pair(other, fold), strict=True
            ):
                price, rent = pd.read_csv(one), pd.read_csv(two)
                assert list(price) == ["area", "town", "age", "price"]
                assert list(rent) == ["area", "town", "age", "rent"]
                pd.testing.assert_frame_equal(price.iloc[:, :3], rent.iloc[:, :3])
                count += 1
    return count


def test_the_suite_holds_a_task_for_each_target_with_the_same_rows(suite):
    assert verify_suite(suite) == []
    assert sorted(SuiteFiles.load(suite).tasks) == ["flats_price", "flats_rent"]
    # two folds of seven parts (all but _hard share a training file), train and test
    assert same_rows(suite) == 2 * 7 * 2


def test_real_rows_are_the_tables_rows_with_both_targets(suite, table):
    source, opened = pd.read_csv(table), SuiteFiles.load(suite)
    assert len(opened.provenance("flats_price_full", 0)) == round(0.2 * 117)
    for target in ("price", "rent"):
        rows = pd.read_csv(opened.pair(f"flats_{target}_full", 0)[1])
        ids = opened.provenance(f"flats_{target}_full", 0)["source_row"]
        assert not set(ids) & {3, 5, 17}  # they lack a target
        expected = source.loc[ids, ["area", "town", "age", target]].reset_index(
            drop=True
        )
        pd.testing.assert_frame_equal(rows, expected, check_dtype=False)


@pytest.mark.parametrize("over", ["intersection", "union"])
def test_other_ways_of_combining(table, tmp_path, over):
    words = ["--over", over, "--rule", "quantile", "--folds", "1", "--no-train-hard"]
    assert generate(table, tmp_path / over, *words) == 0
    assert verify_suite(tmp_path / over) == []
    assert same_rows(tmp_path / over) > 0


def test_a_lost_fold_of_one_target_is_made_again_for_both(
    suite, table, tmp_path, monkeypatch
):
    import shutil

    from amlb_ext.hardening.fold import harden_group

    copy, made = tmp_path / "copy", []

    def counted(tasks, fold, *rest):
        made.append(([task.name for task in tasks], fold))
        return harden_group(tasks, fold, *rest)

    shutil.copytree(suite, copy)
    monkeypatch.setattr("amlb_ext.pipeline.folds.harden_group", counted)
    assert generate(table, copy) == 0
    assert made == []
    (copy / "hardsynth/flats_rent/fold_1/record.json").unlink(missing_ok=False)
    assert generate(table, copy) == 0
    assert made == [(["flats_price", "flats_rent"], 1)]
    assert contents(copy) == contents(suite)


def test_tables_of_the_same_name_stay_apart(table, tmp_path):
    """A test file gives all targets its fold, too."""
    test = flats(tmp_path / "other", n=60)
    options = SourceConfig(targets=("price", "rent"))
    tasks = [ref.load() for ref in open_specs([table, test], options)]
    groups = [task.group for task in rename_repeated_groups(tasks)]
    assert groups == ["flats", "flats", "flats_2", "flats_2"]
    options = SourceConfig(targets=("price", "rent"), test_file=test)
    price, rent = (ref.load() for ref in open_specs([table], options))
    assert price.features is rent.features
    assert len(price.folds[0].test) == 57
    np.testing.assert_array_equal(price.folds[0].test, rent.folds[0].test)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--targets", "price"], "--target price"),
        (["--targets", "price", "rent", "price"], "'price' twice"),
        (["--targets", "price", "rend"], "did you mean 'rent'"),
        (["--targets", "price", "rent", "--target", "age"], "use one of the two"),
        (["--targets", "price", "town"], "holds no numbers, e.g. "),
        (["--targets", "price", "rent", "--kind", "binary"], "serves regression only"),
        (
            ["--targets", "price", "rent", "--rule", "band"],
            "--rule absolute or squared",
        ),
        (["--targets", "price", "rent", "--baseline", "f.csv"], "an F of its own"),
        (["--targets", "price", "rent", "--baseline", "f.pkl"], "an F of its own"),
        (
            ["--targets", "price", "rent", "--learn-from", "population"],
            "a single target",
        ),
        (["--over", "union"], "--targets A B"),
    ],
)
def test_what_several_targets_cannot_be(table, tmp_path, capsys, words, says):
    status = main(["generate", table, "-o", str(tmp_path / "x"), *words, "-q"])
    err = capsys.readouterr().err
    assert status == 2
    assert says in err
    assert not (tmp_path / "x").exists()
