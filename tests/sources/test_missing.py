"""What is missing is what AMLB takes for missing, and texts that look so are said."""

import json
import subprocess

import numpy as np
import pandas as pd
import pytest
from small_faults import CHEAP
from small_suites import problems

from amlb_ext.cli import main
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import DataError
from amlb_ext.core.frames import NA_TEXTS, reads_as_missing
from amlb_ext.sources import open_specs
from amlb_ext.suite import SuiteFiles

N = 90
LOOKALIKES = ["None", "none", "NaT", "NA ", "Null", "NAN", "na", "N/a"]


def load(path, **options):
    return next(open_specs([str(path)], SourceConfig(**options))).load()


def table(n=N):
    rng = np.random.default_rng(0)
    x = rng.normal(size=n).round(3)
    return pd.DataFrame(
        {
            "x": x,
            "c": np.resize(["None", "red", "blue"], n),
            "y": np.select([x < -0.4, x < 0.4], ["None", "low"], "high"),
        }
    )


@pytest.mark.amlb
def test_missing_texts_are_those_of_amlbs_own_pandas(amlb):
    code = "import json, pandas._libs.parsers as p; print(json.dumps(sorted(p.STR_NA_VALUES)))"
    done = subprocess.run(
        [amlb.python, "-c", code], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == sorted(NA_TEXTS)


@pytest.mark.parametrize("quotes", [0, 1], ids=["bare", "quoted"])
def test_none_is_a_class_and_a_category(tmp_path, quotes):
    table().to_csv(tmp_path / "t.csv", index=False, quoting=quotes)
    task = load(tmp_path / "t.csv")
    assert task.kind.value == "multiclass"
    assert task.labels == ("None", "high", "low")
    assert not task.features["c"].isna().any()
    said = [f"column 'c': the text 'None' counts as a value in {N // 3} rows"]
    said.append(
        f"column 'y': the text 'None' counts as a value in {task.target.eq('None').sum()}"
    )
    assert all(any(note.startswith(text) for note in task.notes) for text in said)


@pytest.mark.parametrize("text", [*sorted(NA_TEXTS), *LOOKALIKES])
@pytest.mark.parametrize("quote", ["", '"'])
def test_every_spelling(tmp_path, text, quote):
    path = tmp_path / "t.csv"
    rows = [
        f"{quote}{text if i % 3 else 'red'}{quote},{i},{'ab'[i % 2]}" for i in range(24)
    ]
    path.write_text("\n".join(["c,x,y", *rows]) + "\n", encoding="utf-8")
    task = load(path)
    assert bool(task.features["c"].isna().any()) == (text in NA_TEXTS)
    assert bool(task.notes) == (text not in NA_TEXTS)
    assert text in NA_TEXTS or reads_as_missing(text)


def test_numbers_that_none_makes_text_are_said(tmp_path):
    frame = table().assign(w=[*map(str, range(N - 4)), *["None"] * 4])
    frame[["w", "x", "y"]].to_csv(tmp_path / "t.csv", index=False)
    (note,) = [note for note in load(tmp_path / "t.csv").notes if "'w'" in note]
    assert "in 4 rows, as for AMLB, and makes a column of numbers text" in note
    with pytest.raises(
        DataError, match="holds numbers and, in 4 rows, the text 'None'"
    ) as error:
        load(tmp_path / "t.csv", target="w")
    assert "leave these fields empty" in error.value.remedy
    with pytest.raises(DataError, match="holds numbers and, in 4 rows"):
        load(tmp_path / "t.csv", target="w", kind="regression")
    assert "None" in load(tmp_path / "t.csv", target="w", kind="classification").labels


def test_a_suite_with_none_means_none(tmp_path, capsys):
    """From the table to the files nothing vanishes, and the console says what is a value."""
    table().to_csv(tmp_path / "t.csv", index=False)
    words = [word for word in CHEAP if word != "-q"]
    words += ["--certificate", "none", "-o", str(tmp_path / "hard")]
    assert main(["generate", str(tmp_path / "t.csv"), *words]) == 0
    printed = "".join(capsys.readouterr())
    assert "the text 'None' counts as a value" in printed
    assert problems(tmp_path / "hard") == []
    train, test = SuiteFiles.load(tmp_path / "hard").pair("t_full", 0)
    both = pd.concat([pd.read_csv(train, dtype=str), pd.read_csv(test, dtype=str)])
    assert not both.isna().any().any()
    assert both["y"].nunique() == 3
    assert both["c"].nunique() == 3
