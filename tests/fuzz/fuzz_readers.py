"""The readers, and inputs of theirs: any input gives a result or a HardsynthError, and quickly.

``cases`` holds what coverage-guided fuzzing (atheris) found once.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import resource
import shutil
import signal
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

CASES = Path(__file__).parent / "cases"
MAX_SECONDS, MAX_MEMORY = 5.0, 512 << 20


class Hang(BaseException):
    """An input takes too long."""


def read_yaml(data: bytes, folder: Path) -> None:
    """A definition, and the files that its tasks name."""
    from amlb_ext.amlb.configuration import search_folders
    from amlb_ext.amlb.definition import read_definition
    from amlb_ext.core.config import SourceConfig
    from amlb_ext.core.errors import HardsynthError
    from amlb_ext.sources.amlb_yaml import load_entry

    os.environ["HARDSYNTH_CACHE"] = str(folder / "cache")
    options = SourceConfig(userdir=str(folder))
    path = folder / "config.yaml"
    path.write_bytes(data)
    try:
        search_folders(options)
    except HardsynthError:
        path.unlink()
    (folder / "t_train.csv").write_text("a,y\n1,2\n2,3\n3,5\n")
    (folder / "t_test.csv").write_text("a,y\n1,2\n4,3\n")
    for name, entry in read_definition(_file(data, folder / "d.yaml")):
        if entry.get("openml_task_id") is None and b"://" not in data:
            try:
                load_entry(
                    name,
                    entry,
                    folder / "d.yaml",
                    spec=f"d.yaml#{name}",
                    options=options,
                )
            except HardsynthError:
                continue


def read_arff(data: bytes, folder: Path) -> None:
    """An ARFF file, as a task."""
    _read_table(_file(data, folder / "a.arff"))


def read_csv(data: bytes, folder: Path) -> None:
    """A CSV file, as a task."""
    _read_table(_file(data, folder / "a.csv"))


def read_archive(data: bytes, folder: Path) -> None:
    """An archive; the first byte says which, so that checksums are no wall for the fuzzer."""
    from amlb_ext.core.packed import UnpackLimits
    from amlb_ext.sources.dataset_files import unpack

    kind, data = data[:1], data[1:]
    if kind == b"t":
        path = _file(_with_checksums(data), folder / "a.tar")
    elif kind == b"g":
        path = _file(gzip.compress(_with_checksums(data), 1), folder / "a.tgz")
    elif kind == b"b":
        path = _file(bz2.compress(_with_checksums(data), 1), folder / "a.tar.bz2")
    elif kind == b"r":
        path = _file(data, folder / "a.tar.gz")
    else:
        path = _file(data, folder / "a.zip")
    before = set(folder.parent.iterdir())
    found = unpack(path, folder / "cache", UnpackLimits(max_bytes=1 << 20))
    assert found.is_relative_to(folder / "cache")
    assert set(folder.parent.iterdir()) == before


def read_manifest(data: bytes, folder: Path) -> None:
    """A suite's manifest."""
    from amlb_ext.suite.reader import read_manifest

    read_manifest(_file(data, folder / "manifest.json"))


TARGETS: dict[str, Callable[[bytes, Path], None]] = {
    "yaml": read_yaml,
    "arff": read_arff,
    "csv": read_csv,
    "archive": read_archive,
    "manifest": read_manifest,
}


def run_one(reader: str, data: bytes) -> None:
    """Run an input; raises whatever is no HardsynthError, and Hang or MemoryError."""
    from amlb_ext.core.errors import HardsynthError

    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir="/dev/shm" if _shm() else None))
    here, before, start = Path.cwd(), _peak(), time.monotonic()
    signal.signal(signal.SIGALRM, _hang)
    signal.setitimer(signal.ITIMER_REAL, MAX_SECONDS)
    try:
        os.chdir(folder)
        (folder / "in").mkdir()
        TARGETS[reader](data, folder / "in")
    except HardsynthError as error:
        if len(str(error)) > 10_000:
            raise ValueError("an error of more than 10,000 characters") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.chdir(here)
        shutil.rmtree(folder, ignore_errors=True)
    if time.monotonic() - start > MAX_SECONDS:
        raise Hang
    if _peak() - before > MAX_MEMORY:
        raise MemoryError


def _read_table(path: Path) -> None:
    from amlb_ext.core.config import SourceConfig
    from amlb_ext.sources.files import load_file

    load_file(path, path.name, SourceConfig())


def _file(data: bytes, path: Path) -> Path:
    path.write_bytes(data)
    return path


def _with_checksums(data: bytes) -> bytes:
    """Tar blocks that look like headers get the checksum they need."""
    blocks = [
        bytearray(data[at : at + 512].ljust(512, b"\0"))
        for at in range(0, len(data), 512)
    ]
    for block in blocks:
        if block[257:262] == b"ustar":
            block[148:156] = b" " * 8
            block[148:156] = b"%06o\0 " % sum(block)
    return b"".join(blocks) + bytes(1024)


def _hang(*_: object) -> None:
    raise Hang


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _shm() -> bool:
    return os.access("/dev/shm", os.W_OK)


def seeds(reader: str) -> Iterator[bytes]:
    """Good inputs to start from."""
    if reader == "yaml":
        yield (
            b"- name: __defaults__\n  folds: 2\n- name: t\n  enabled: true\n  dataset:\n"
            b"    train: ['{user}/t_train.csv']\n    test: t_test.csv\n    target: y\n"
            b"    type: regression\n"
        )
        yield b"- &a {name: t, dataset: {path: t_train.csv}}\n- {<<: *a, name: u}\n"
        yield b"- name: t\n  dataset: [t_train.csv, t_test.csv]\n  folds: 1\n- name: 2001-01-01\n"
        yield b"- name: t\n  dataset: '{user}'\n- ? [a]\n  : !!set {b}\n- !!int 3\n- 1:30:00\n"
        yield b"input_dir: '{user}/x'\nbenchmarks: {definition_dir: ['{user}/d', '{root}/b']}\n"
    elif reader == "arff":
        yield (
            b"% c\n@relation r\n@attribute a numeric\n@attribute 'b c' {x,'y z',\"w\"}\n"
            b"@attribute d date 'yyyy'\n@attribute s string\n@attribute y {0,1}\n@data\n"
            + b"".join(
                b"%d,'y z',2001-01-01,'t %d',%d\n" % (i, i, i % 2) for i in range(12)
            )
        )
        yield (
            b"@RELATION r\n@ATTRIBUTE a INTEGER\n@ATTRIBUTE c {z,o}\n@ATTRIBUTE y REAL\n@DATA\n"
            + b"".join(b"{0 %d, 1 o, 2 %d.5}\n" % (i, i) for i in range(12))
        )
    elif reader == "csv":
        rows = [
            f'{i},"x, {i % 3}",2001-01-{i + 1:02d},{i % 2 == 0},{i % 2}'
            for i in range(12)
        ]
        yield "\n".join(["a,b,c,d,class", *rows]).encode()
        yield "﻿a,y\n1,\n2,NaN\n".encode()
    elif reader == "archive":
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as out:
            out.writestr("a/t_train.csv", "a,y\n1,2\n")
            out.writestr("t.csv", "a,y\n1,2\n", zipfile.ZIP_STORED)
        yield b"z" + packed.getvalue()
        for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
            packed = io.BytesIO()
            with tarfile.open(fileobj=packed, mode="w", format=form) as tar:
                for name in ("a/t_train.csv", "ü" * 120 + ".csv"):
                    info = tarfile.TarInfo(name)
                    info.size = 8
                    tar.addfile(info, io.BytesIO(b"a,y\n1,2\n"))
            yield b"t" + packed.getvalue()
            yield b"g" + packed.getvalue()
            yield b"b" + packed.getvalue()
            yield b"r" + gzip.compress(packed.getvalue())
    else:
        coding = {
            "columns": [
                {"name": "a", "written": "a", "form": "integer"},
                {
                    "name": "b", "written": "b_", "form": "text", "categories": ["x", "y"],
                    "values": ["x", "y"],
                },
            ],
            "target": "y", "written_target": "y", "kind": "binary",
            "labels": ["0", "1"], "written_labels": ["0", "1"],
        }  # fmt: skip
        task = {
            "source_name": "t", "target": "y", "kind": "binary", "content_hash": "0",
            "origin": {"spec": "t.csv", "ids": {}, "licence": "", "citation": "", "url": ""},
            "coding": coding, "notes": [],
            "folds": {
                "0": {
                    "key": "k", "summary": {}, "parts": {"full": {"substituted": {}, "dropped": 0}},
                    "notes": [{"kind": "few training rows", "part": "t_ga", "counts": {"rows": 1}}],
                }
            },
        }  # fmt: skip
        entry = {
            "name": "t", "task": "t", "suffix": "", "type": "binary", "target": "y",
            "description": "d", "metric": None, "folds": [0], "train": ["data/t/t_train_0.csv"],
            "test": ["data/t/t_test_0.csv"], "provenance": ["p"], "train_rows": [5],
            "test_rows": [3],
        }  # fmt: skip
        yield json.dumps(
            {
                "tool": "hardsynth", "format": 3, "version": "0", "name": "hardsynth", "seed": 1,
                "request": {"command": "c"}, "order": ["t"], "config": {},
                "tasks": {"t": task}, "amlb_tasks": {"t": entry},
                "failures": [], "files": {"data/t/t_train_0.csv": "0"},
                "pair": {"name": "p", "of": "o", "tasks": {}},
            }
        ).encode()  # fmt: skip
