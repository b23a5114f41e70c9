"""An export: the same bytes, the suite's own files, nothing of others, nothing lost."""

import hashlib
import json
import os
import shutil
import zipfile
from functools import partial
from pathlib import Path

import pytest
import yaml
from small_suites import write_suite

from amlb_ext.cli import main
from amlb_ext.core.errors import PublishError, SuiteError
from amlb_ext.core.files import sha256_file
from amlb_ext.publish.export import export as export_writing
from amlb_ext.publish.export.base_url import check_base_url
from amlb_ext.publish.export.export import export_suite
from amlb_ext.suite import Layout, SuiteFiles, verify_suite
from amlb_ext.suite.layout import files_below
from amlb_ext.suite.manifest import write_manifest

URL = "https://host.org/hard"


def content(root):
    return {name: (root / name).read_bytes() for name in files_below(root)}


def definition(root, name="hardsynth"):
    return yaml.safe_load((root / "benchmarks" / f"{name}.yaml").read_text("ascii"))


def test_the_same_suite_gives_the_same_bytes(suite, tmp_path):
    one = export_suite(suite, URL, tmp_path / "one")
    moved = shutil.copytree(
        suite, tmp_path / "elsewhere" / "hard"
    )  # other times, another place
    for path in sorted(moved.rglob("*"), reverse=True):
        os.utime(path, (1e9, 1e9))
        path.chmod(0o700)
    two = export_suite(moved, f"{URL}/", tmp_path / "two")
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert one.uploads == two.uploads
    # what the summary says to upload to, and the record names
    files = export_suite(suite, URL, tmp_path / "files", form="files")
    for done in (one, two, files):
        record = json.loads((done.out / "hardsynth" / "export.json").read_text())
        assert done.url == record["base_url"] == URL


def test_archives_hold_the_files_of_the_suite_under_amlbs_names(suite, tmp_path):
    out = tmp_path / "out"
    done = export_suite(suite, URL, out)
    opened = SuiteFiles.load(suite)
    named = {}
    for entry in definition(out, "hardsynth_all"):
        assert set(entry["dataset"]) == {"path", "target", "type"}
        folder, _, name = entry["dataset"]["path"].rpartition("/")
        assert folder == URL
        named[entry["name"]] = name
        task = opened.amlb_tasks[entry["name"]]
        with zipfile.ZipFile(out / "upload" / name) as archive:
            wanted = {
                f"{task.name}_{side}_{fold}.csv": (suite / file).read_bytes()
                for side, files in (("train", task.train), ("test", task.test))
                for fold, file in enumerate(files)
            }
            assert {
                member: archive.read(member) for member in archive.namelist()
            } == wanted
            assert all(entry.date_time[0] == 1980 for entry in archive.infolist())
    # _full has no training file of its own
    assert opened.amlb_tasks["cars_full"].train == ["data/cars/cars_train_0.csv"]
    assert len(set(named.values())) == len(opened.amlb_tasks) == 9
    assert {entry["name"] for entry in definition(out)} == opened.definitions[
        "hardsynth"
    ]
    assert set(done.uploads) == {*named.values(), done.suite}
    for name, about in done.uploads.items():
        assert (
            hashlib.sha256((out / "upload" / name).read_bytes()).hexdigest()
            == about["sha256"]
        )


def test_everything_but_the_addresses_stays_as_in_the_suite(suite, tmp_path):
    export_suite(suite, URL, tmp_path / "out")
    for name in ("hardsynth", "hardsynth_all"):
        pairs = zip(
            definition(suite, name), definition(tmp_path / "out", name), strict=True
        )
        for there, here in pairs:
            for entry in (there, here):
                for key in ("train", "test", "path"):
                    entry["dataset"].pop(key, None)
            assert here == there
    same = [name for name in files_below(suite) if name.startswith("extensions/")]
    assert same
    for name in (*same, "frameworks.yaml", "constraints.yaml"):
        assert (tmp_path / "out" / name).read_bytes() == (suite / name).read_bytes()


def test_files_as_they_are_are_named_by_their_content(suite, tmp_path):
    out = tmp_path / "out"
    export_suite(suite, "s3://bucket", out, form="files")
    opened = SuiteFiles.load(suite)
    for entry in definition(out, "hardsynth_all"):
        task = opened.amlb_tasks[entry["name"]]
        for side, files in (("train", task.train), ("test", task.test)):
            for address, file in zip(entry["dataset"][side], files, strict=True):
                name = address.removeprefix("s3://bucket/")
                assert (out / "upload" / name).read_bytes() == (
                    suite / file
                ).read_bytes()
    # one training file serves all tasks of a source: 3 of them, 9 test files, and the suite
    assert len(list((out / "upload").iterdir())) == 3 + 9 + 1


def test_the_suite_comes_whole_out_of_its_archive(suite, tmp_path):
    Layout(suite).task_certificate("cars").write_text('{"since": "generated"}')
    done = export_suite(suite, URL, tmp_path / "out")
    with zipfile.ZipFile(tmp_path / "out" / "upload" / done.suite) as archive:
        archive.extractall(tmp_path / "again")
    assert content(tmp_path / "again") == content(suite)
    assert verify_suite(tmp_path / "again") == verify_suite(suite)


def test_no_path_of_this_machine_is_written(suite, tmp_path):
    out = tmp_path / "out"
    export_suite(suite, URL, out)
    for name, blob in content(out).items():
        assert str(tmp_path).encode() not in blob, name
        assert str(Path.home()).encode() + b"/" not in blob, name
    for path in (out / "upload").glob("*.zip"):
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                assert str(tmp_path).encode() not in archive.read(member), member


NO_ADDRESSES = """\
 host.org/hard C:\\hard ftp://host.org/hard file:///srv/hard s3a://bucket/hard https://
https://me:secret@host.org/hard https://me:sec/ret@host.org https://host.org/hard?sig=secret
https://host.org/hard#top https://host.org:port/x https://host.org:99999/x https://bücher.de/x
https://host.org/{user} https://host.org/a/../b https://host.org//a s3:// s3://Bucket/x
s3://bucket/a%20b s3://bucket:80/x https://host.org/a%2"""


def test_addresses_that_amlb_could_not_fetch_from_are_refused(suite, tmp_path):
    for url in (
        *NO_ADDRESSES.split(),
        "",
        "https://host.org/a b",
        "https://h.org/a\nb",
    ):
        with pytest.raises(PublishError, match="--base-url") as raised:
            export_suite(suite, url, tmp_path / "out")
        assert raised.value.remedy
        assert "sec" not in str(raised.value)
    assert not (tmp_path / "out").exists()
    for url in (
        "http://127.0.0.1:8000",
        "http://[::1]:80/x",
        "s3://bucket.name/ec2/hard",
    ):
        assert check_base_url(url) == check_base_url(f"{url}/") == url
    found = check_base_url("HTTPS://Host.org/a%20b/@scope")
    assert found == "https://Host.org/a%20b/@scope"


def test_an_export_is_brought_up_to_date_and_files_of_others_stay(suite, tmp_path):
    out = tmp_path / "out"
    export_suite(suite, URL, out)
    (out / "results").mkdir()
    (out / "results" / "results.csv").write_text("mine")
    before = {path: path.stat().st_mtime_ns for path in (out / "upload").glob("cars*")}
    assert before
    write_suite(tmp_path / "new", {"cars": ("binary", 90, 12)})
    export_suite(tmp_path / "new", "s3://bucket/x", out)
    assert {
        path: path.stat().st_mtime_ns for path in before
    } == before  # not packed again
    assert (out / "results" / "results.csv").read_text() == "mine"
    export_suite(tmp_path / "new", "s3://bucket/x", tmp_path / "fresh")
    (out / "results" / "results.csv").unlink()
    assert content(out) == content(tmp_path / "fresh")


def test_folders_of_others_are_left_alone(suite, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years")
    places = [mine, mine / "thesis.txt", suite, suite / "out", tmp_path]
    before = content(tmp_path)
    for out in places:
        with pytest.raises(PublishError, match="-o"):
            export_suite(suite, URL, out)
        assert content(tmp_path) == before


def test_what_was_changed_by_hand_is_not_overwritten(suite, tmp_path):
    out = tmp_path / "out"
    export_suite(suite, URL, out)
    with (out / "config.yaml").open("a") as config:
        config.write("input_dir: '/mine'\n")
    before = content(out)
    with pytest.raises(PublishError, match=r"config\.yaml was changed"):
        export_suite(suite, URL, out)
    assert content(out) == before


@pytest.mark.parametrize("entry", ["{", "[]", '{"tool": "hardsynth export"}', None])
def test_a_damaged_record_makes_no_export(suite, tmp_path, entry):
    out = tmp_path / "out"
    export_suite(suite, URL, out)
    record = out / "hardsynth" / "export.json"
    if entry is None:  # a record that names files outside
        told = json.loads(record.read_text())
        told["files"]["../thesis.txt"] = ""
        entry = json.dumps(told)
    record.write_text(entry)
    (tmp_path / "thesis.txt").write_text("years")
    with pytest.raises(PublishError, match="not an export"):
        export_suite(suite, URL, out)
    assert (tmp_path / "thesis.txt").read_text() == "years"


@pytest.mark.parametrize("at", [0, 9, 13, 16])
def test_a_killed_export_is_finished_by_the_next(suite, tmp_path, monkeypatch, at):
    out = tmp_path / "out"
    export_suite(suite, URL, out, form="files")
    written = []

    def killed(path, *how, real):
        if (
            len(written) == at
        ):  # 10 archives, then 5 files of integrations, then 3 of AMLB's YAML
            raise KeyboardInterrupt
        written.append(path)
        return real(path, *how)

    with monkeypatch.context() as patched:
        for name in ("write_file", "write_text"):
            real = getattr(export_writing, name)
            patched.setattr(export_writing, name, partial(killed, real=real))
        with pytest.raises(KeyboardInterrupt):
            export_suite(suite, "s3://bucket", out)
    export_suite(suite, "s3://bucket", out)
    export_suite(suite, "s3://bucket", tmp_path / "fresh")
    assert content(out) == content(tmp_path / "fresh")


@pytest.mark.parametrize("damage", ["changed", "gone", "link"])
def test_a_damaged_suite_leaves_the_earlier_export_whole(suite, tmp_path, damage):
    out = tmp_path / "out"
    export_suite(suite, URL, out)
    before = content(out)
    path = suite / "data" / "wines_region" / "wines_region_test_0.csv"
    blob = path.read_bytes()
    path.unlink()
    if damage == "changed":
        path.write_bytes(blob.replace(b"red", b"rad"))
    elif damage == "link":
        (tmp_path / "secret.csv").write_bytes(blob)
        path.symlink_to(tmp_path / "secret.csv")
    (out / "upload").rename(tmp_path / "away")  # so that all is packed again
    with pytest.raises(SuiteError):
        export_suite(suite, URL, out)
    after = content(out)
    assert not [name for name in after if "part" in name]
    assert all(
        after[name] == before[name] for name in after if name != "hardsynth/export.json"
    )


def test_the_command_tells_what_to_do_next(
    suite, tmp_path, refused, output_of, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    said = output_of("export hard --base-url s3://bucket/hard")
    assert "aws s3 cp --recursive hard_export/upload s3://bucket/hard/" in said
    assert f"FRAMEWORK hardsynth -u {tmp_path}/hard_export -o {tmp_path}/res" in said
    assert "hardsynth report hard --results results" in said
    assert main(["export", "hard", "--base-url", "s3://bucket/hard", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    told = json.loads(output_of("export hard --base-url s3://bucket/hard --json"))
    assert told["definitions"] == {"hardsynth": 6, "hardsynth_all": 9}
    assert told["bytes"] == sum(about["bytes"] for about in told["uploads"].values())
    assert "secret" not in refused("export hard --base-url https://me:secret@host.org")


def test_other_content_of_the_same_name_has_another_name(suite, tmp_path):
    tasks = {"cars": ("binary", 80, 12), "wines": ("multiclass", 60, 25)}
    other = write_suite(tmp_path / "other", tasks)
    one = export_suite(suite, URL, tmp_path / "one")
    two = export_suite(other, URL, tmp_path / "two")
    same = {name for name in one.uploads if name.startswith("wines")}
    assert set(one.uploads) & set(two.uploads) == same  # the same rows in both


@pytest.mark.parametrize("text", ["- {name: nobody}\n", "- 1\n", "7\n", "["])
def test_definitions_are_those_of_the_manifest_whatever_stands_there(
    suite, tmp_path, text
):
    export_suite(suite, URL, tmp_path / "before")
    path = suite / "benchmarks" / "hardsynth.yaml"
    path.write_text(text)
    opened = SuiteFiles.load(suite)
    opened.manifest.files["benchmarks/hardsynth.yaml"] = sha256_file(path)
    write_manifest(opened.manifest, opened.layout.manifest)
    export_suite(suite, URL, tmp_path / "out")
    assert definition(tmp_path / "out") == definition(tmp_path / "before")
