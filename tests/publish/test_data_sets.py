"""A suite as a data set: for Hugging Face, and as the files of OpenML's client. Both read back."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import yaml
from small_suites import write_suite

from amlb_ext.cli import main
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import PublishError, SuiteError
from amlb_ext.core.files import sha256_file
from amlb_ext.pipeline.weird import WeirdRequest, write_weird_tasks
from amlb_ext.publish.huggingface import export_for_huggingface
from amlb_ext.publish.openml_files import FIRST_ID, export_openml_files
from amlb_ext.sources.openml import load_task
from amlb_ext.suite import SuiteFiles, verify_suite
from amlb_ext.suite.layout import files_below
from amlb_ext.tasks import TASKS


def content(root):
    return {name: (root / name).read_bytes() for name in files_below(root)}


def header_of(folder):
    text = (folder / "README.md").read_text("utf-8")
    _, header, body = text.split("---\n", 2)
    return yaml.safe_load(header), body


def test_the_folder_for_a_hub_is_the_suite_itself(suite, tmp_path, output_of):
    out = tmp_path / "hub"
    assert f"hardsynth verify {out}" in output_of(
        "export", suite, "--for huggingface -o", out
    )
    beside = {"README.md", "croissant.json"}
    assert set(content(out)) == set(content(suite)) | beside
    assert {n: c for n, c in content(out).items() if n not in beside} == content(suite)
    moved = out.rename(tmp_path / "downloaded")
    assert main(["verify", str(moved)]) == 0
    assert verify_suite(moved) == []
    # and the definition in it is a source like any
    again = str(tmp_path / "again")
    spec = str(moved / "benchmarks" / "hardsynth.yaml")
    asked = ["generate", spec, "--userdir", str(moved), "-o", again, "--dry-run"]
    assert "cars_full" in output_of(asked)


def test_the_card_says_types_licences_and_verdicts(suite, tmp_path):
    done = export_for_huggingface(suite, tmp_path / "hub")
    header, body = header_of(done.out)
    assert header["license"] == "cc-by-4.0"
    assert header["task_categories"] == ["tabular-classification", "tabular-regression"]
    files = {c["config_name"]: c["data_files"] for c in header["configs"]}
    opened = SuiteFiles.load(suite)
    task = opened.amlb_tasks["cars_full"]
    assert [file["path"] for file in files["cars_full.0"]] == [*task.train, *task.test]
    for entry in header["dataset_info"]:
        types = {f["name"]: f["dtype"] for f in entry["features"]}
        for file in files[entry["config_name"]]:
            frame = pd.read_csv(done.out / file["path"])
            # the hub casts each column to this type, or shows nothing
            assert list(frame) == list(types)
            for name, dtype in types.items():
                is_number = pd.api.types.is_numeric_dtype(frame[name])
                is_truth = pd.api.types.is_bool_dtype(frame[name])
                assert (dtype == "float64") == (is_number and not is_truth), name
    assert "no certificate: nothing was measured" in body
    assert sha256_file(suite / "hardsynth" / "manifest.json") in body


def test_foreign_texts_stay_in_their_cell(tmp_path):
    citation = "A | B\n\n# Title <script>x</script> [l](http://x)"
    tasks = {"cars": ("binary", 40, 10)}
    suite = write_suite(tmp_path / "hard", tasks, citation=citation)
    body = header_of(export_for_huggingface(suite, tmp_path / "hub").out)[1]
    [line] = [line for line in body.splitlines() if "Title" in line]
    assert line.startswith("| cars |")
    assert r"A \| B" in line
    assert "<script" not in line.replace(r"\<", "")


def test_metadata_name_every_file_and_column(suite, tmp_path):
    out = export_for_huggingface(suite, tmp_path / "hub", url="https://h.org/d/x").out
    metadata = json.loads((out / "croissant.json").read_text())
    stated = {file["contentUrl"]: file["sha256"] for file in metadata["distribution"]}
    assert stated == {
        name: sha256_file(out / name)
        for name in files_below(out)
        if name not in ("README.md", "croissant.json")
    }
    assert metadata["url"] == "https://h.org/d/x"
    digest = sha256_file(out / "hardsynth" / "manifest.json")
    assert metadata["version"].endswith(f"+{digest[:12]}")
    sets = {entry["@id"]: entry["field"] for entry in metadata["recordSet"]}
    frame = pd.read_csv(out / "data" / "homes" / "homes_train_0.csv")
    assert [field["name"] for field in sets["homes_train_0"]] == list(frame)
    assert sets["homes_train_0"][-1]["dataType"] == "sc:Float"
    # once for all parts that train on it
    files = [fields[0]["source"]["fileObject"]["@id"] for fields in sets.values()]
    assert len(files) == len(set(files))


# of what it imports
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_validator_of_the_format_takes_it_and_reads_the_rows(suite, tmp_path):
    croissant = pytest.importorskip("mlcroissant")
    out = export_for_huggingface(suite, tmp_path / "hub").out
    opened = croissant.Dataset(jsonld=str(out / "croissant.json"))
    assert not opened.metadata.issues.errors
    frame = pd.read_csv(out / "data" / "wines" / "wines_test_0.csv")
    rows = pd.DataFrame(opened.records("wines_test_0"))
    assert len(rows) == len(frame)
    read = rows[rows.columns[0]].to_numpy(dtype=float)
    np.testing.assert_allclose(read, frame[frame.columns[0]])
    # it holds the files against the checksums
    (out / "data" / "wines" / "wines_test_0.csv").write_text("a\n1\n")
    with pytest.raises(Exception, match="wines_test_0"):
        list(
            croissant.Dataset(jsonld=str(out / "croissant.json")).records(
                "wines_test_0"
            )
        )


def test_what_is_changed_in_a_hubs_folder_is_found(suite, tmp_path):
    out = export_for_huggingface(suite, tmp_path / "hub").out
    card = out / "README.md"
    card.write_text(card.read_text("utf-8") + "\nThanks.\n", "utf-8")
    assert verify_suite(out) == []
    metadata = out / "croissant.json"
    digest = sha256_file(out / "data" / "cars" / "cars_train_0.csv")
    metadata.write_text(metadata.read_text().replace(digest, "0" * 64))
    [said] = verify_suite(out)
    assert said.startswith("croissant.json does not describe data/cars/cars_train_0")
    metadata.write_text("{")
    assert verify_suite(out) == ["croissant.json cannot be read."]


def test_the_same_bytes_and_nothing_of_others(suite, tmp_path):
    one = export_for_huggingface(suite, tmp_path / "one").out
    moved = shutil.copytree(suite, tmp_path / "elsewhere")
    assert content(export_for_huggingface(moved, tmp_path / "two").out) == content(one)
    # an interrupted export goes on
    (one / "README.md").unlink()
    export_for_huggingface(suite, one)
    assert (one / "README.md").is_file()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.txt").write_text("x")
    with pytest.raises(PublishError, match="holds something else"):
        export_for_huggingface(suite, tmp_path / "mine")
    with pytest.raises(PublishError, match="inside the other"):
        export_for_huggingface(suite, suite / "hub")
    (suite / "data" / "cars" / "cars_train_0.csv").write_text("x\n")
    with pytest.raises(SuiteError, match="was changed"):
        export_for_huggingface(suite, tmp_path / "three")


@pytest.mark.parametrize("kind", ["huggingface", "openml-files"])
def test_rows_that_nobody_may_publish_are_not_written(tmp_path, refused, kind):
    tasks = {"cars": ("binary", 40, 10)}
    suite = str(write_suite(tmp_path / "hard", tasks, licence="CC BY-ND 4.0"))
    out = tmp_path / "out"
    words = ["export", suite, "--for", kind, "-o", str(out)]
    assert "cars: its licence forbids it" in refused(words)
    assert not out.exists()
    assert main([*words, "--licence", "by permission"]) == 0
    assert "by permission" in b"".join(content(out).values()).decode("utf-8", "replace")


def test_a_folder_of_tasks_is_a_data_set_too(tmp_path):
    write_weird_tasks(
        tmp_path / "w", [TASKS["digits_few"]], WeirdRequest(folds=1, salt="s")
    )
    out = export_for_huggingface(tmp_path / "w", tmp_path / "hub").out
    assert verify_suite(out) == []
    header, body = header_of(out)
    assert [entry["config_name"] for entry in header["configs"]] == ["digits_few.0"]
    assert header["license"] == "apache-2.0"
    with pytest.raises(SuiteError, match="holds weird tasks"):
        export_openml_files(tmp_path / "w", tmp_path / "files")
    assert "nothing was made hard" in body


def test_openmls_client_reads_what_the_suite_holds(suite, tmp_path):
    done = export_openml_files(suite, tmp_path / "files")
    moved = done.out.rename(tmp_path / "downloaded")
    before = content(moved)
    options = SourceConfig(openml_cache=str(moved))
    opened = SuiteFiles.load(suite)
    assert next(iter(done.tasks)) == FIRST_ID
    assert set(done.tasks.values()) == {
        f"{name}{part}.0"
        for name in ("cars", "wines", "homes")
        for part in ("", "_full")
    }
    for number, name in done.tasks.items():
        task = load_task(number, options, spec=f"openml/t/{number}")
        amlb_task = opened.amlb_tasks[name.removesuffix(".0")]
        train, test = (
            pd.read_csv(path, dtype=str, keep_default_na=False)
            for path in opened.pair(amlb_task.name, 0)
        )
        # every row, and the suite's own split
        [fold] = task.folds
        assert fold.train.tolist() == list(range(len(train)))
        assert fold.test.tolist() == list(range(len(train), len(train) + len(test)))
        wanted = [*train[amlb_task.target], *test[amlb_task.target]]
        if task.labels:
            assert task.target.astype(str).tolist() == wanted
        else:
            assert task.target.tolist() == [float(value) for value in wanted]
        count = [float(value) for value in [*train["count"], *test["count"]]]
        assert task.features["count"].tolist() == count
        assert task.features.shape[1] == 4
        assert task.origin.licence == "CC BY 4.0"
    # reading leaves nothing behind
    assert content(moved) == before


def test_files_for_openml_are_verified_alone(suite, tmp_path, output_of, capsys):
    out = tmp_path / "files"
    words = ["export", str(suite), "--for", "openml-files", "-o", str(out)]
    assert f"hardsynth generate openml/t/{FIRST_ID}" in output_of(words)
    first = content(out)
    assert main(words) == 0
    assert content(out) == first
    assert main(["verify", str(out)]) == 0
    arff = out / f"org/openml/www/datasets/{FIRST_ID}/dataset.arff"
    arff.write_text(arff.read_text("utf-8").replace("yes", "no", 1), "utf-8")
    (arff.parent / "dataset.pkl").write_bytes(b"x")
    capsys.readouterr()
    said = output_of("verify", out, status=1)
    assert "dataset.arff was changed" in said
    assert "dataset.pkl is not part of the suite" in said


def test_flags_of_another_export_are_refused(suite, refused):
    cases = {
        ("huggingface", "--form", "files"): "--form has no effect",
        ("openml-files", "--base-url", "https://h.org/x"): "--base-url has no effect",
        ("tabarena", "--licence", "MIT"): "--licence has no effect",
        ("huggingface", "--base-url", "ftp://h.org"): "ftp://h.org",
    }
    for (kind, *flag), said in cases.items():
        assert said in refused("export", suite, "--for", [kind], flag)
