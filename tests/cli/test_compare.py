"""``hardsynth compare``: files in, the answer of `hs.compare` out."""

import json

import joblib
import numpy as np
import pandas as pd
import pytest
from commands import words_of
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from amlb_ext.comparison import compare

# what is written and said matters here, not how good the models are
pytestmark = pytest.mark.usefixtures("light_models")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(500, 2)).round(3), columns=["a", "b"])
    table["label"] = np.where(table["a"] * table["b"] > 0, "yes", "no")
    X, y = table[["a", "b"]], table["label"]
    models = {
        "F": LogisticRegression().fit(X[:250], y[:250]),
        "tree": DecisionTreeClassifier(min_samples_leaf=9).fit(X[:250], y[:250]),
    }
    for name, model in models.items():
        joblib.dump(model, folder / f"{name}.joblib")
    table[:250].to_csv(folder / "old.csv", index=False)
    table[250:].to_csv(folder / "new.csv", index=False)
    scores = pd.DataFrame({"score": models["tree"].predict_proba(X[250:])[:, 1]})
    scores.to_csv(folder / "scores.csv", index=False)
    numbered = table[250:].assign(id=range(250))
    numbered[::-1].to_csv(folder / "ided.csv", index=False)
    scores.assign(id=range(250)).to_csv(folder / "ided_scores.csv", index=False)
    return folder, table, models


def command(folder, *more):
    words = ["compare", str(folder / "new.csv"), "--target", "label", "--trust-pickle"]
    return [*words, "--baseline", str(folder / "F.joblib"), *more]


def test_files_give_what_objects_give(files, output_of):
    folder, table, models = files
    more = words_of(
        "--candidate", folder / "tree.joblib", "--train", folder / "old.csv"
    )
    page = folder / "answer.html"
    answered = json.loads(output_of(command(folder, *more), "--json --html", page))
    X, y = table[["a", "b"]], table["label"]
    expected = compare(
        models["F"],
        {"tree": models["tree"]},
        X[250:],
        y[250:],
        train=(X[:250], y[:250]),
    )
    differences = [row["difference"] for row in answered["contrasts"]]
    assert differences == pytest.approx(expected.contrasts["difference"].tolist())
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_predictions_in_a_file(files, output_of):
    folder = files[0]
    more = ["--candidate", f"scored={folder / 'scores.csv'}", "--refits", "2"]
    assert output_of(command(folder, *more)).startswith("scored is better than F (")


def test_an_order_that_one_file_alone_tells_is_refused(files, output_of, refused):
    folder = files[0]
    words = command(folder, "--refits", "0", "--candidate")
    words[1] = str(folder / "ided.csv")
    words[words.index("--baseline") + 1] = str(folder / "ided_scores.csv")
    line = refused([*words, f"g={folder / 'scores.csv'}"])
    assert "scores.csv has none, so it is not clear which row is which" in line
    same = output_of([*words, f"g={folder / 'ided_scores.csv'}"], "--json")
    assert json.loads(same)["contrasts"][0]["difference"] == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--candidate", "nowhere.skops"], "check the path of the model"),
        (["--candidate", "f=random_forest"], "give a file: predictions"),
        (["--candidate", "=x.skops"], "is empty or given twice"),
        (["--candidate", "tree.joblib", "--target", "lable"], "did you mean 'label'"),
        (["--candidate", "tree.joblib", "--drop", "c"], "has no such column"),
    ],
)
def test_bad_input_is_one_line(files, refused, more, message):
    there = [str(files[0] / word) if word == "tree.joblib" else word for word in more]
    assert message in refused(command(files[0], *there))
