"""``verify --repair`` of series: the suite is made again beside itself by its order."""

import shutil

import pytest
from hostile_files import reseal

from amlb_ext.cli import main
from amlb_ext.core.files import sha256_file
from amlb_ext.sources.bundled_series import simulate_series
from amlb_ext.suite import verify_suite


def digests(root):
    """The sha256 of every file of a suite that does not name its folder."""
    files = {path.relative_to(root): path for path in root.rglob("*") if path.is_file()}
    return {
        str(name): sha256_file(path)
        for name, path in files.items()
        if name.parts[0] in ("data", "hardsynth")
    }


@pytest.fixture
def suite(twin, tmp_path):
    return shutil.copytree(twin.suite, tmp_path / "hard")


def damage(suite):
    """Change, empty and remove files of two tables; return how the suite was before."""
    whole = digests(suite)
    data = sorted((suite / "data").glob("*/*.csv"))
    data[0].write_text(data[0].read_text().replace("1", "2", 1))
    data[-1].unlink()
    next(suite.glob("hardsynth/**/windows.parquet")).write_bytes(b"")
    (suite / "frameworks.yaml").unlink()
    return whole


@pytest.mark.parametrize("is_there", [True, False])
def test_the_manifest_is_made_again_from_the_order_beside_it(
    suite, twin, capsys, is_there
):
    whole = damage(suite)
    manifest = suite / "hardsynth" / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b"a", b"b", 1))
    if not is_there:
        manifest.unlink()
    source = ["--source", str(twin.folder / "mine.yaml")]
    assert main(["verify", str(suite), "--repair", *source]) == 0
    assert "hardsynth/manifest.json was made again" in capsys.readouterr().out
    assert digests(suite) == whole
    # of the order the manifest has the other copy
    (suite / "hardsynth" / "order.json").write_text("{}")
    assert main(["verify", str(suite), "--repair", *source]) == 0
    assert digests(suite) == whole


def test_without_its_manifest_only_the_same_source_is_taken(suite, twin, capsys):
    elsewhere = suite.parent / "elsewhere"
    shutil.copytree(twin.folder, elsewhere)
    table = elsewhere / "b.csv"
    table.write_text(table.read_text().replace("9", "8"))
    (suite / "hardsynth" / "manifest.json").unlink()
    before = digests(suite)
    for source, message in (
        ([], "nothing was changed"),
        (["--source", str(elsewhere / "mine.yaml")], "made of has changed"),
    ):
        assert main(["verify", str(suite), "--repair", *source]) == 2
        assert message in capsys.readouterr().err
        assert digests(suite) == before
    (suite / "hardsynth" / "order.json").write_text("{}")
    source = ["--source", str(twin.folder / "mine.yaml")]
    assert main(["verify", str(suite), "--repair", *source]) == 2
    assert "both damaged or missing" in capsys.readouterr().err


def test_an_order_of_a_table_is_repeated_with_its_flags(tmp_path, capsys):
    table = tmp_path / "sales.csv"
    frame = simulate_series(24, 96).assign(promo=1.0)
    frame.to_csv(table, index=False, sep=";")
    words = ["--series", "item_id", "--time", "timestamp", "--target", "target"]
    words += ["--horizon", "2", "--baseline", "drift", "--alpha", "1", "--seed", "3"]
    words += [
        "--known",
        "promo",
        "--sep",
        ";",
        "--certificate",
        "none",
        "--copies",
        "0",
    ]
    out = tmp_path / "hard"
    assert main(["generate", str(table), *words, "-o", str(out)]) == 0
    whole = damage(out)
    assert main(["verify", str(out), "--repair", "--source", str(table)]) == 0
    assert digests(out) == whole
    # other content gives other files, and nothing is changed then
    frame.assign(target=frame["target"] * 1.5).to_csv(table, index=False, sep=";")
    damage(out)
    before = digests(out)
    assert main(["verify", str(out), "--repair", "--source", str(table)]) == 2
    assert "nothing was changed" in capsys.readouterr().err
    assert digests(out) == before


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ({"baseline": "os:abort"}, "class os:abort; nothing was imported"),
        ({"sources": ["other.yaml"]}, "the suite was made of other.yaml"),
        ({"roles": 5}, "what the suite was made of cannot be read"),
    ],
)
def test_an_order_of_a_stranger_is_refused(order, message, suite, twin, capsys):
    reseal(suite, lambda entry: entry["order"].update(order))
    damage(suite)
    before = digests(suite)
    source = ["--source", str(twin.folder / "mine.yaml")]
    assert main(["verify", str(suite), "--repair", *source]) == 2
    assert message in capsys.readouterr().err
    assert digests(suite) == before


def test_files_of_series_are_made_again(suite, twin, capsys):
    whole = damage(suite)
    source = ["--source", str(twin.folder / "mine.yaml")]
    assert main(["verify", str(suite), "--repair", *source]) == 0
    assert "frameworks.yaml was made again" in capsys.readouterr().out
    assert digests(suite) == whole
    assert verify_suite(suite) == []
