"""A test file that holds rows of the table is no test, however it is written."""

import numpy as np
import pandas as pd
import pytest

from amlb_ext.cli import main


def table(seed, n):
    rng = np.random.default_rng(seed)
    columns = {"a": rng.normal(size=n), "b": rng.choice(list("uvw"), n)}
    return pd.DataFrame({**columns, "y": rng.normal(size=n)})


TRAIN = table(0, 200)
SHUFFLED = TRAIN.sample(frac=1, random_state=1)
SEEN = {
    "the same": TRAIN,
    "shuffled": SHUFFLED,
    "a part": SHUFFLED[:50],
    "rounded": TRAIN.round(8),
    "half of it": pd.concat([SHUFFLED[:40], table(1, 40)]),
}


def dry_run(folder, train, test):
    train.to_csv(folder / "t.csv", index=False)
    test.to_csv(folder / "x.csv", index=False)
    words = ["generate", str(folder / "t.csv"), "--test-file", str(folder / "x.csv")]
    words += ["--target", "y", "--dry-run", "-q", "-o", str(folder / "out")]
    return main(words)


@pytest.mark.parametrize("how", SEEN)
def test_rows_of_the_table_are_refused(tmp_path, how, capsys):
    assert dry_run(tmp_path, TRAIN, SEEN[how]) == 2
    said = capsys.readouterr().err
    assert "of the test file are rows of the table" in said
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "out").exists()
    if how == "shuffled":
        anew = SEEN[how].reset_index(drop=True).reset_index(names="id")
        assert dry_run(tmp_path, TRAIN.reset_index(names="id"), anew) == 2


def test_rows_that_repeat_by_chance_are_none_of_the_table(tmp_path):
    rng = np.random.default_rng(0)
    columns = {"a": rng.integers(0, 3, 300), "b": rng.choice(list("uv"), 300)}
    coarse = pd.DataFrame({**columns, "y": rng.normal(size=300)})
    assert dry_run(tmp_path, coarse[:200], coarse[200:]) == 0
    assert dry_run(tmp_path, TRAIN, table(1, 60)) == 0
