"""One byte of any file of a suite is changed: ``verify`` finds it, ``--repair`` mends it."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from commands import hardsynth, words_of
from exhaustive import first_of
from folders import contents
from small_faults import CHEAP, cheap, flip, write_table

from amlb_ext.cli import main
from amlb_ext.suite import WARNING, verify_suite
from amlb_ext.suite.sealed_json import open_sealed

# the suite that all is compared with was made with these
pytestmark = pytest.mark.usefixtures("light_models")


@pytest.fixture
def suite(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "hard"))


def sources(desk):
    return ["--source", str(desk / "t.csv"), "--source", str(desk / "u.csv")]


def problems(root):
    return [
        finding for finding in verify_suite(root) if not finding.startswith(WARNING)
    ]


@pytest.mark.parametrize("seed", first_of(range(3), 1))
def test_a_flipped_byte_in_any_file_is_found(suite, seed):
    """Eight files at a time, each of them named; what vouches for others on its own."""
    rng = np.random.default_rng([5, seed])
    manifest = "hardsynth/manifest.json"
    # notes are a text for readers, written after the suite is whole
    files = sorted(contents(suite).keys() - {manifest, "hardsynth/notes.txt"})
    rng.shuffle(files)
    files.sort(key=lambda path: path.endswith("/certificate.json"))
    for batch in [
        [manifest],
        files[-2:],
        *(files[:-2][k : k + 8] for k in range(0, len(files), 8)),
    ]:
        originals = {relative: (suite / relative).read_bytes() for relative in batch}
        for relative in batch:
            flip(suite / relative, rng)
        said = problems(suite)
        assert [path for path in batch if not any(path in text for text in said)] == []
        for relative, original in originals.items():
            (suite / relative).write_bytes(original)
    assert problems(suite) == []


@pytest.mark.parametrize("name", ["manifest.json", "t/certificate.json"])
def test_every_byte_of_a_sealed_file_counts(suite, name):
    path = suite / "hardsynth" / name
    original = path.read_bytes()
    rng = np.random.default_rng(6)
    assert open_sealed(path) is not None
    for _ in range(150):
        flip(path, rng)
        assert open_sealed(path) is None
        path.write_bytes(original)
    begin = original.index(b'\n "sha256": "')  # a key of the whole, not of a part
    for place in range(begin, min(begin + 80, len(original) - 1)):  # the seal itself
        for mask in (0x01, 0x20, 0x80):
            content = bytearray(original)
            content[place] ^= mask
            path.write_bytes(bytes(content))
            assert open_sealed(path) is None
    path.write_bytes(original)
    assert open_sealed(path) is not None


def test_what_is_missing_is_made_again_and_the_rest_is_kept(
    suite, whole, desk, monkeypatch
):
    (suite / "config.yaml").unlink()
    (suite / "hardsynth/request.json").unlink()
    shutil.rmtree(suite / "data/u_full")
    (suite / "hardsynth/t/null.parquet").unlink()
    before = {path: path.stat().st_mtime_ns for path in (suite / "data").rglob("*.csv")}
    monkeypatch.chdir(desk)  # the sources stand where the command names them
    assert main(["verify", str(suite), "--repair", "-q", "-j", "1"]) == 0
    assert contents(suite) == contents(whole)
    assert before == {path: path.stat().st_mtime_ns for path in before}


@pytest.mark.parametrize("seed", first_of(range(3), 1))
def test_the_manifest_is_made_again(suite, whole, desk, seed):
    flip(suite / "hardsynth/manifest.json", np.random.default_rng([8, seed]))
    if seed == 0:
        flip(suite / "data/t_full/t_full_test_0.csv", np.random.default_rng(9))
    assert hardsynth("verify", suite, "--repair -q -j 1", sources(desk)) == 0
    assert contents(suite) == contents(whole)


def test_a_manifest_that_is_gone_needs_the_sources_named(suite, whole, desk, refused):
    (suite / "hardsynth/manifest.json").unlink()
    assert "unfinished" in refused("verify", suite, "--repair -q")
    in_order = ["--source", str(desk / "u.csv"), "--source", str(desk / "t.csv")]
    assert main(["verify", str(suite), "--repair", "-q", "-j", "1", *in_order]) == 0
    assert contents(suite) == contents(whole)


def test_manifest_and_request_are_beyond_repair(suite, desk, refused):
    (suite / "hardsynth/manifest.json").write_text("{")
    (suite / "hardsynth/request.json").write_text("{")
    before = contents(suite)
    said = refused("verify", suite, "--repair -q", sources(desk))
    assert "both damaged" in said
    assert "run the command that made the suite again" in said
    assert contents(suite) == before


@pytest.mark.parametrize(
    "lost", ["data/t_full/t_full_test_0.csv", "hardsynth/manifest.json"]
)
@pytest.mark.parametrize(
    "case", ["absent", "other content", "other name", "other version"]
)
def test_a_repair_that_cannot_be_right_is_refused(
    suite, tmp_path, desk, refused, monkeypatch, lost, case
):
    flip(suite / lost, np.random.default_rng(11))
    before = contents(suite)
    monkeypatch.chdir(tmp_path)
    words = ["--source", str(desk / "t.csv"), "--source", str(desk / "u.csv")]
    if case == "absent":
        words, wanted = [], "--source SPEC"
    elif case == "other content":
        write_table(tmp_path / "t.csv", 1, shift=1)
        words[1], wanted = str(tmp_path / "t.csv"), "not what t was made of"
    elif case == "other name":
        shutil.copy(desk / "t.csv", tmp_path / "v.csv")
        words[1], wanted = str(tmp_path / "v.csv"), "v.csv"
    else:
        monkeypatch.setattr("amlb_ext.pipeline.repair.__version__", "99.0")
        wanted = "pip install hardsynth==0"
    said = refused("verify", suite, "--repair -q -j 1", words)
    assert wanted in said
    assert "nothing was changed" in said
    assert contents(suite) == before


def test_other_numbers_on_this_machine_are_no_repair(suite, desk, refused, monkeypatch):
    flip(suite / "data/t_full/t_full_test_0.csv", np.random.default_rng(1))
    import amlb_ext.pipeline.folds as job

    def shifted(*arguments):
        hard_folds = harden_group(*arguments)
        hard_folds[0].parts["full"].test.features.iloc[:, 0] += 1e-9
        return hard_folds

    harden_group = job.harden_group
    monkeypatch.setattr(job, "harden_group", shifted)
    before = contents(suite)
    assert "give other values" in refused(
        "verify", suite, "--repair -q -j 1", sources(desk)
    )
    assert contents(suite) == before


def twin(folder, desk):
    """Write a user directory with a benchmark; return what makes its twin, and what repairs it."""
    user = folder / "user"
    (user / "benchmarks").mkdir(parents=True)
    shutil.copy(desk / "t.csv", user / "t.csv")
    dataset = {"path": "{user}/t.csv", "target": "y"}
    tasks = [{"name": "t", "dataset": dataset, "max_runtime_seconds": 60, "cores": 1}]
    (user / "benchmarks/mine.yaml").write_text(yaml.safe_dump(tasks))
    places = "['{user}/benchmarks', '{root}/resources/benchmarks']"
    (user / "config.yaml").write_text(f"benchmarks:\n  definition_dir: {places}\n")
    more = ["--userdir", str(user)]
    return ["harden", "mine", *more], more


def several_targets(folder, desk):
    """Write a table with two targets, neither of which is its last column; the same of it."""
    frame = pd.read_csv(desk / "t.csv").assign(z=lambda t: t["y"] ** 2)
    path = folder / "two.csv"
    frame[["y", "z", "a", "b"]].to_csv(path, index=False)
    return ["generate", path, "--targets", "y", "z"], ["--source", str(path)]


@pytest.mark.parametrize(
    ("make", "victims"),
    [
        (twin, ("data/t_full/t_full_test_0.csv", "benchmarks/mine_hard.yaml")),
        (several_targets, ("data/two_z_full/two_z_full_test_0.csv",)),
    ],
)
def test_other_suites_are_mended(make, victims, tmp_path, desk):
    words, more = make(tmp_path, desk)
    out = tmp_path / "hard"
    assert cheap(*words, "-o", out, "--certificate", "none") == 0
    before = contents(out)
    rng = np.random.default_rng(3)
    for damaged in (victims, ["hardsynth/manifest.json"]):
        for victim in damaged:
            flip(out / victim, rng)
        assert main(["verify", str(out), "--repair", "-q", "-j", "1", *more]) == 0
        assert contents(out) == before


def test_a_file_as_baseline_is_asked_for(tmp_path, desk, refused, monkeypatch):
    frame = pd.read_csv(desk / "t.csv")
    (frame["a"] * 3).rename("prediction").to_csv(tmp_path / "p.csv", index=False)
    out = tmp_path / "hard"
    words = words_of("generate", desk / "t.csv", "-o", out, CHEAP, "--certificate none")
    assert main([*words, "--baseline", str(tmp_path / "p.csv")]) == 0
    before = contents(out)
    flip(out / "data/t_full/t_full_test_0.csv", np.random.default_rng(1))
    repair = words_of("verify", out, "--repair -q -j 1 --source", desk / "t.csv")
    assert "F is the file p.csv" in refused(repair)
    monkeypatch.chdir(tmp_path)
    assert main(repair) == 0
    assert contents(out) == before
