"""A suite of series in a user's AMLB configuration, and at an address."""

import zipfile

import pandas as pd
import pytest
import yaml
from loopback_http import respond, serving

from amlb_ext.cli import main
from amlb_ext.sources.bundled_series import simulate_series


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("transfer")
    simulate_series(12, 60).to_csv(folder / "sales.csv", index=False)
    words = ["generate", str(folder / "sales.csv"), "--series", "item_id"]
    words += ["--time", "timestamp", "--target", "target", "--horizon", "3"]
    words += ["--baseline", "seasonal_naive", "--learning-origins", "2", "-q"]
    words += ["--copies", "0", "--certificate", "none"]
    assert main([*words, "-o", str(folder / "hard")]) == 0
    return folder / "hard"


@pytest.fixture
def address(tmp_path):
    """Serve the uploads of an export on loopback."""
    upload = tmp_path / "out" / "upload"
    upload.mkdir(parents=True)

    def answer(handler, over):
        respond(handler, (upload / handler.path.lstrip("/")).read_bytes())

    with serving(answer) as address:
        yield address


def tasks_of(path):
    return {
        entry["name"]: entry["dataset"] for entry in yaml.safe_load(path.read_text())
    }


def test_amlb_reads_the_series_of_an_export_from_its_address(suite, address, tmp_path):
    out = tmp_path / "out"
    words = ["export", str(suite), "--base-url", address, "-o", str(out), "-q"]
    (out / "upload").rmdir()
    assert main(words) == 0
    dataset = tasks_of(out / "benchmarks" / "hardsynth.yaml")["sales_full"]
    assert dataset["path"].startswith(address)
    # pandas reads the address as AMLB lets it
    served = pd.read_csv(dataset["path"])
    own = pd.read_csv(suite / "data" / "sales_full" / "sales_full.csv")
    pd.testing.assert_frame_equal(served, own)
    assert (out / "extensions" / "HardsynthForecast" / "exec.py").is_file()
    assert str(suite) not in (out / "benchmarks" / "hardsynth_all.yaml").read_text()
    (packed,) = out.glob("upload/hardsynth-suite-*.zip")
    assert "hardsynth/manifest.json" in zipfile.ZipFile(packed).namelist()
    # a second time gives the same bytes
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert main(words) == 0
    assert before == {
        path: path.read_bytes() for path in out.rglob("*") if path.is_file()
    }


def test_a_certificate_of_several_origins_belongs_to_the_suite(suite, capsys):
    """Each origin is a task of its own, and the origins of a table are certified together."""
    folder = suite.parent
    words = ["generate", str(folder / "sales.csv"), "--series", "item_id"]
    words += ["--time", "timestamp", "--target", "target", "--horizon", "3"]
    words += ["--baseline", "seasonal_naive", "--origins", "2", "--copies", "0", "-q"]
    assert main([*words, "-o", str(folder / "two")]) == 0
    assert (folder / "two" / "hardsynth" / "sales_full" / "certificate.json").is_file()
    assert main(["verify", str(folder / "two")]) == 0
