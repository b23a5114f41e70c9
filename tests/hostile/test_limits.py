"""Small files and slow servers that stand for very much: refused in one line, in no time."""

import bz2
import gzip
import lzma
import time
import zipfile

import numpy as np
import openml._api_calls
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import requests
from loopback_http import respond, serving

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import HardsynthError, ServiceError, SourceError
from amlb_ext.core.packed import UnpackLimits
from amlb_ext.core.parquet import check_expansion, read_frame
from amlb_ext.models.service import ServiceOptions, Transport, read_json
from amlb_ext.sources import open_specs
from amlb_ext.sources.panel import PanelRoles
from amlb_ext.sources.read_table import read_table
from amlb_ext.sources.series_definitions import read_fev_series
from amlb_ext.tasks import chess

MIB = 1 << 20
BOMB = gzip.compress(bytes(300 * MIB))
SMALL = UnpackLimits(max_ratio=50, ratio_from=MIB)


def refuses(what, *arguments, error=HardsynthError, said, **settings):
    began = time.monotonic()
    with pytest.raises(error, match=said) as caught:
        what(*arguments, **settings)
    assert time.monotonic() - began < 10
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


# Parquet and Arrow


def same_text(n, characters=100_000):
    indices = pa.array(np.zeros(n, dtype=np.int32))
    return pa.DictionaryArray.from_arrays(indices, ["x" * characters])


EXPANDING = {
    "numbers": lambda: pa.table({"x": np.zeros(80_000_000, dtype=np.int32)}),
    "texts": lambda: pa.table({"x": same_text(100_000)}),
    "lists": lambda: pa.table(
        {"x": pa.ListArray.from_arrays(np.arange(0, 10_001, 100), same_text(10_000))}
    ),
    "structures": lambda: pa.table(
        {"x": pa.StructArray.from_arrays([same_text(10_000)], ["q"])}
    ),
}


@pytest.mark.parametrize("kind", EXPANDING)
def test_a_parquet_file_that_says_the_same_again_and_again(tmp_path, kind):
    path = tmp_path / "provenance.parquet"
    pq.write_table(EXPANDING[kind](), path, compression="zstd")
    assert path.stat().st_size < MIB
    refuses(read_frame, path, error=SourceError, said="250 times its size")
    refuses(read_table, path, said="250 times its size")


def test_ordinary_parquet_files_are_no_bombs(tmp_path):
    path = tmp_path / "t.parquet"
    texts = [f"text number {i}" for i in range(20_000)]
    pq.write_table(pa.table({"x": texts, "l": [[t, t] for t in texts]}), path)
    # the texts are counted, since the bound on them is far above the limit
    check_expansion(path, limits=UnpackLimits(max_ratio=20, ratio_from=MIB))
    assert len(read_frame(path)) == 20_000


def test_series_of_fev(tmp_path):
    path = tmp_path / "series.parquet"
    n = 200_000
    ends = np.arange(0, 100 * n + 1, 100, dtype=np.int32)
    table = {
        "id": np.arange(n),
        "timestamp": pa.ListArray.from_arrays(ends, np.zeros(100 * n, np.int64)),
        "target": pa.ListArray.from_arrays(ends, np.zeros(100 * n)),
    }
    pq.write_table(pa.table(table), path, compression="zstd")
    roles = PanelRoles(
        series="id", time="timestamp", target="target", horizon=1, season=1
    )
    refuses(read_fev_series, path, roles, error=SourceError, said="times its size")


def test_an_arrow_file(tmp_path):
    path = tmp_path / "t.feather"
    table = pa.table({"x": np.zeros(50_000_000)})
    feather.write_feather(table, path, compression="zstd")
    refuses(read_table, path, said="250 times its size")


# Workbooks and text


def test_a_workbook_whose_last_cell_is_far_away(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "t.xlsx"
    book = openpyxl.Workbook()
    book.active["A1"], book.active["B1"] = "x", "y"
    book.save(path)
    assert list(read_table(path).frame) == ["x", "y"]
    book.active["XFD1048576"] = 1
    book.save(path)
    refuses(read_table, path, said="1,048,576 rows of 16,384 columns")


def test_a_workbook_that_is_a_bomb(tmp_path):
    path = tmp_path / "t.xlsx"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out,
        out.open("xl/worksheets/sheet1.xml", "w") as part,
    ):
        for _ in range(300):
            part.write(b" " * MIB)
    refuses(read_table, path, said="250 times its size")


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_short_lines_below_many_columns(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    sign = "\t" if ending == "tsv" else ","
    header = sign.join(f"c{i}" for i in range(50_000))
    if ending == "jsonl":
        header = "{" + ",".join(f'"c{i}":1' for i in range(50_000)) + "}"
    line = '{"c0":1}' if ending == "jsonl" else "1"
    path.write_text(header + "\n" + f"{line}\n" * 20_000)
    refuses(read_table, path, said="of 50,000 columns")


# Games


PACKERS = {
    ".pgn.gz": gzip.compress,
    ".pgn.bz2": bz2.compress,
    ".pgn.xz": lzma.compress,
    ".pgn.zst": lambda data: pa.compress(data, "zstd", asbytes=True),
}
GAME = '[WhiteElo "1000"]\n[BlackElo "1100"]\n[Result "1-0"]\n\n1. e4 e5 2. Nf3 1-0\n\n'


@pytest.mark.parametrize("ending", PACKERS)
def test_packed_games_are_read_and_bombs_are_not(tmp_path, ending, monkeypatch):
    path = tmp_path / f"games{ending}"
    path.write_bytes(PACKERS[ending]((GAME * 3).encode()))
    assert len(chess.read_games(path).games) == 3
    path.write_bytes(PACKERS[ending]((GAME * 40_000).encode()))
    monkeypatch.setattr(chess, "UnpackLimits", lambda: SMALL)
    refuses(chess.read_games, path, said="50 times its size")


@pytest.mark.parametrize("filler", ["x", "{", "(", "1", "\n"])
def test_a_game_without_an_end(tmp_path, filler):
    path = tmp_path / "games.pgn"
    path.write_text(GAME + '[Result "1-0"]\n\n' + filler * (3 * MIB))
    refuses(chess.read_games, path, error=SourceError, said="a game of more than")
    path.write_text(GAME + GAME.replace("2. Nf3", filler * 500_000))
    began = time.monotonic()
    assert len(chess.read_games(path).games) >= 1
    assert time.monotonic() - began < 5


# Servers


def drip_body(handler, over):
    respond(handler)
    while not over.wait(0.02):
        handler.wfile.write(b"x")


def drip_header(handler, over):
    handler.wfile.write(b"HTTP/1.0 200 OK\r\nX: ")
    while not over.wait(0.02):
        handler.wfile.write(b"x")


def send_nothing(handler, over):
    over.wait()


def send_endless(handler, over):
    respond(handler)
    while not over.is_set():
        handler.wfile.write(b"1,2\n" * 10_000)


def send_bomb(handler, over):
    respond(handler, BOMB, Content_Encoding="gzip", Content_Length=len(BOMB))


def redirect_endlessly(handler, over):
    respond(handler, status=302, Location="/")
    while not over.is_set():
        handler.wfile.write(bytes(1 << 16))


@pytest.fixture
def openml_settings(tmp_path, own_cache, monkeypatch):
    monkeypatch.setattr("amlb_ext.sources.download.MAX_SECONDS", 1)
    return {"openml_cache": str(tmp_path / "cache"), "max_file_size": 0.4}


@pytest.mark.parametrize("spec", ["openml/t/1", "openml/s/1"])
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (drip_body, "took too long"),
        (drip_header, "no answer in time"),
        (send_nothing, "no answer in time"),
        (send_endless, "larger than 0.01 GiB"),
        (send_bomb, "250 times its size"),
        (redirect_endlessly, "redirects|cannot be reached"),
    ],
)
def test_openml_has_limits(openml_settings, answer, said, spec, monkeypatch):
    if answer in (send_endless, send_bomb):
        monkeypatch.setattr("amlb_ext.sources.download.MAX_SECONDS", 60)
    if answer is send_endless:
        openml_settings["max_file_size"] = 0.01

    def load(server):
        options = SourceConfig(openml_server=f"{server}/api/v1/xml", **openml_settings)
        (ref,) = open_specs([spec], options)
        ref.load()

    with serving(answer) as server:
        refuses(load, server, error=SourceError, said=said)
    # the client is given back as it was
    assert openml._api_calls.requests is requests


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (drip_body, "did not answer within 0.5 s"),
        (drip_header, "did not answer within 0.5 s"),
        (send_nothing, "did not answer within 0.5 s"),
        (send_endless, "answers with more than"),
        (send_bomb, "answers with more than"),
    ],
)
def test_a_service_that_is_slow_or_endless(answer, said):
    options = ServiceOptions(timeout=0.5, tries=1)
    with serving(answer) as server:
        transport = Transport(server, options)
        refuses(transport.ask, b"{}", 3, error=ServiceError, said=said)


@pytest.mark.parametrize(
    "text", ["<title" * 50_000, "<title>" * 50_000, "<" + " <title>x" * 40_000]
)
def test_a_page_in_place_of_an_answer(text):
    refuses(read_json, text, "s", error=ServiceError, said="page in HTML")


def test_an_answer_of_lists_in_lists():
    refuses(read_json, "[" * 90_000, "s", error=ServiceError, said="no JSON")
