"""Archives that are bombs: refused before the disk or the memory is full, and nothing stays."""

import bz2
import gzip
import stat
import tarfile
import zipfile

import pytest
from hostile_files import tarred, zipped

from amlb_ext.core import packed
from amlb_ext.core.errors import SourceError
from amlb_ext.core.packed import UnpackLimits
from amlb_ext.sources import dataset_files

MIB = 1 << 20
SMALL = UnpackLimits(max_bytes=4 * MIB, max_members=50, max_ratio=50, ratio_from=MIB)


#: By the way to make an archive, its ending.
ENDINGS = {zipped: ".zip", tarred: ".tgz"}


def refused(path, tmp_path, said, limits=SMALL):
    with pytest.raises(SourceError, match=said) as caught:
        dataset_files.unpack(path, tmp_path / "cache", limits)
    assert caught.value.remedy
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize("make", ENDINGS)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_too_much_comes_out(tmp_path, make):
    """Members that are no tables count too: they must be unpacked to be passed over."""
    table = ("t.csv", b"a\n")
    zeros = bytes(5 * MIB)
    for number, (members, said) in enumerate(
        [
            ([table, ("zeros.csv", zeros)], "more than"),
            ([table, ("readme.txt", zeros)], "more than"),
            ([(f"{i}.csv", zeros[:MIB]) for i in range(5)], "more than"),
            ([(f"{i}-readme.txt", zeros[:MIB]) for i in range(5)], "more than"),
            ([("t.csv", zeros[: 2 * MIB])], "50 times its size"),
            ([(f"{i}.csv", b"") for i in range(60)], "more than 50 members"),
            ([table, ("T.csv", b"b\n")], "occurs twice"),
        ]
    ):
        path = make(tmp_path / f"{number}{ENDINGS[make]}", *members)
        refused(path, tmp_path, said)


def test_a_zip_that_lies_about_its_sizes(tmp_path):
    """The header says 10 bytes; what really comes out is never more than that."""
    path = zipped(tmp_path / "a.zip", ("t.csv", bytes(3 * MIB)))
    raw = bytearray(path.read_bytes())
    size = (3 * MIB).to_bytes(4, "little")
    while size in raw:
        at = raw.index(size)
        raw[at : at + 4] = (10).to_bytes(4, "little")
    path.write_bytes(raw)
    refused(path, tmp_path, "cannot unpack")


def test_an_endless_list_of_members_is_not_read(tmp_path, monkeypatch):
    path = zipped(tmp_path / "a.zip", *((f"{i}.csv", b"") for i in range(60)))
    assert 60 * 46 < packed.directory_bytes(path) < 60 * 80
    monkeypatch.setattr(packed, "MAX_DIRECTORY", 1000)
    monkeypatch.setattr(zipfile, "ZipFile", lambda *a: pytest.fail("it was opened"))
    refused(path, tmp_path, "more than 50 members")


def test_a_zip64_list_of_members_is_measured_too(tmp_path, monkeypatch):
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 5)
    path = zipped(tmp_path / "a.zip", *((f"{i}.csv", b"") for i in range(60)))
    raw = bytearray(path.read_bytes())
    assert b"PK\x06\x06" in raw
    end = raw.rindex(b"PK\x05\x06")
    raw[end + 12 : end + 16] = bytes(4)
    path.write_bytes(raw)
    assert packed.directory_bytes(path) > 60 * 46


@pytest.mark.parametrize("packer", [gzip.compress, bz2.compress])
def test_a_header_that_wants_memory(tmp_path, packer):
    """tarfile would read the whole extended header at once, 300 MiB here."""
    info = tarfile.TarInfo("pax")
    info.type, info.size = tarfile.XHDTYPE, 300 * MIB
    path = tmp_path / "a.tgz"
    path.write_bytes(packer(info.tobuf(tarfile.USTAR_FORMAT) + bytes(4 * MIB)))
    refused(path, tmp_path, "header of more than 1 MiB", UnpackLimits())


def test_a_sparse_member_stands_for_more_than_it_holds(tmp_path):
    info = tarfile.TarInfo("t.csv")
    info.size = 0
    info.pax_headers = {
        "GNU.sparse.size": str(10**12), "GNU.sparse.name": "t.csv", "GNU.sparse.map": "0,0",
        "GNU.sparse.numblocks": "1",
    }  # fmt: skip
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as out:
        out.addfile(info)
    refused(path, tmp_path, "not an ordinary file")


def test_a_disk_that_is_too_small(tmp_path, monkeypatch):
    monkeypatch.setattr(
        dataset_files.shutil, "disk_usage", lambda folder: type("U", (), {"free": 100})
    )
    path = zipped(tmp_path / "a.zip", ("t.csv", bytes(200)))
    refused(path, tmp_path, "the disk allows", None)


def test_ordinary_archives_come_through(tmp_path):
    text = b"a,b\n" + b"1,2\n" * 1000
    for path in (
        zipped(tmp_path / "a.zip", ("x/t.csv", text), method=zipfile.ZIP_LZMA),
        tarred(tmp_path / "a.tar.gz", ("x/t.csv", text)),
        tarred(tmp_path / "a.tar", ("x/t.csv", text), mode="w:xz"),
    ):
        found = dataset_files.unpack(path, tmp_path / "cache")
        assert (found / "x/t.csv").read_bytes() == text


@pytest.mark.parametrize(
    "name", ["../out.csv", "/abs/out.csv", "a/../../out.csv", "C:\\o.csv"]
)
@pytest.mark.parametrize("make", ENDINGS)
def test_a_member_that_leaves_the_folder(tmp_path, name, make):
    members = [("good.csv", b"a\n"), (name, b"a\n")]
    refused(make(tmp_path / f"a{ENDINGS[make]}", *members), tmp_path, "unsafe")
    assert not (tmp_path / "out.csv").exists()


def test_a_member_that_is_a_link(tmp_path):
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
        link = tarfile.TarInfo("link.csv")
        link.type, link.linkname = kind, "/etc/passwd"
        path = tarred(tmp_path / "a.tar", (link, b""), mode="w")
        refused(path, tmp_path, "not an ordinary file")
    link = zipfile.ZipInfo("link.csv")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = zipped(tmp_path / "a.zip", (link, "/etc/passwd"))
    refused(path, tmp_path, "not an ordinary file")


def test_a_damaged_archive(tmp_path):
    for name in ("a.zip", "a.tar", "a.tgz"):
        (tmp_path / name).write_bytes(b"PK\x03\x04 no archive")
        refused(tmp_path / name, tmp_path, "cannot unpack")
    path = zipped(tmp_path / "b.zip", ("readme.txt", "hello"))
    refused(path, tmp_path, "holds no table")
