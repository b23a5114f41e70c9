"""F from a file is tried before any work: one clear line, status 2, nothing written."""

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from amlb_ext.cli import main

# F is as it is; the oracle matters little here
pytestmark = pytest.mark.usefixtures("light_models")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(size=80), "balance": rng.normal(size=80)})
    table["y"] = np.where(table["age"] > 0, "yes", "no")
    table.to_csv(folder / "t.csv", index=False)
    X = table[["balance", "age"]]
    fitted = LogisticRegression().fit(X, table["y"])
    models = {
        "good": fitted,
        "renamed": LogisticRegression().fit(X.set_axis(["a", "age"], axis=1), table.y),
        "array": LogisticRegression().fit(np.zeros((4, 3)), list("aabb")),
        "unfitted": LogisticRegression(),
        "number": LinearRegression().fit(X, table["age"]),
        "others": LogisticRegression().fit(
            X, table["y"].map({"yes": "on", "no": "no"})
        ),
        "dict": {"model": fitted},
    }
    for name, model in models.items():
        joblib.dump(model, folder / f"{name}.pkl")
    labels = pd.DataFrame({"prediction": table["y"]})
    labels.to_csv(folder / "labels.csv", index=False)
    (folder / "good.bin").write_bytes((folder / "good.pkl").read_bytes())
    return folder


@pytest.mark.parametrize("dry_run", [[], ["--dry-run"]])
@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("renamed.pkl", "was fitted on the column 'a', which the table lacks"),
        (
            "array.pkl",
            "columns that are called like those of one, and the table has 2: age,",
        ),
        ("unfitted.pkl", "holds an estimator that was never fitted"),
        ("number.pkl", "is a regressor, but the target 'y' of t has classes"),
        ("others.pkl", "predicts the class 'on' in row 0, but the classes are no, yes"),
        ("dict.pkl", "dict.pkl holds a dict, not a fitted model"),
        ("labels.csv", "or of one column 'score:LABEL'"),
        ("good.bin", "let it end in .skops, .joblib or .pkl"),
        ("missing.pkl", "no file"),
    ],
)
def test_a_model_that_does_not_fit_is_one_line(folder, capsys, file, words, dry_run):
    out = folder / "out"
    model = ["--baseline", str(folder / file), "--trust-pickle"]
    rc = main(["generate", str(folder / "t.csv"), "-o", str(out), *model, *dry_run])
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert rc == 2
    assert words in error
    assert not out.exists()


def test_trust_is_asked_for_before_the_table_is_read(folder, refused):
    model = ["--baseline", str(folder / "good.pkl")]
    empty = folder / "empty.csv"
    empty.touch()
    assert "add --trust-pickle" in refused("generate", empty, "-o", folder / "o", model)
    trusted = [*model, "--trust-pickle", "--dry-run", "--quiet"]
    table = str(folder / "t.csv")
    assert main(["generate", table, "-o", str(folder / "o"), *trusted]) == 0
