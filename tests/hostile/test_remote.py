"""Servers that lie, drip, redirect elsewhere or send too much; checksums; public buckets."""

import gzip
import hashlib
import io
import socket
import time
from types import SimpleNamespace

import pytest
import requests
from loopback_http import respond, serving

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import NetworkError, SourceError
from amlb_ext.sources import download, open_specs

BODY = b"a,y\n1,2\n"
DIGEST = hashlib.sha256(BODY).hexdigest()


def answer(handler, over):
    """Answer /good.csv, and misbehave in every other way."""
    path = handler.path
    if path.startswith("/to?"):
        respond(handler, status=302, Location=path.partition("?")[2])
    elif path == "/endless":
        respond(handler)
        while not over.is_set():
            handler.wfile.write(bytes(1 << 16))
    elif path == "/huge":
        respond(handler, Content_Length=1 << 50)
    elif path in ("/drip", "/drip-header"):
        if path == "/drip":
            respond(handler)
        else:
            handler.wfile.write(b"HTTP/1.0 200 OK\r\nX: ")
        while not over.wait(0.05):
            handler.wfile.write(b"x")
    elif path == "/broken":
        respond(handler, BODY, Content_Length=len(BODY) + 1)
    elif path == "/packed.csv.gz":
        respond(handler, gzip.compress(BODY, mtime=0), Content_Encoding="gzip")
    elif path == "/odd-length":
        respond(handler, BODY, Content_Length="ten")
    elif path in ("/good.csv", "/my.bucket/a%20b.csv"):
        respond(handler, BODY, Content_Length=len(BODY))
    else:
        handler.send_error(403 if path == "/private/a.csv" else 404)


@pytest.fixture
def web(direct, monkeypatch):
    """A server that answers so; `seen` are its requests."""
    monkeypatch.setattr(download.time, "sleep", lambda seconds: None)
    web = SimpleNamespace(seen=[])

    def note_and_answer(handler, over):
        web.seen.append((handler.path, dict(handler.headers)))
        answer(handler, over)

    with serving(note_and_answer) as web.root:
        yield web


def nothing_kept(folder):
    return [path for path in folder.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("path", "error", "said"),
    [
        ("/endless", SourceError, "larger than"),
        ("/huge", SourceError, "larger than"),
        ("/drip", NetworkError, "took too long"),
        ("/drip-header", NetworkError, "no answer in time"),
        ("/broken", NetworkError, "closed the connection before the whole file"),
        *(
            (f"/to?{address}", SourceError, "neither http nor https")
            for address in (
                *("file:///etc/passwd", "ftp://127.0.0.1/x", "FILE:/etc/passwd"),
                *("data:text/plain,a", "/to?file:///etc/passwd", "s3://bucket/a.csv"),
            )
        ),
        ("/private/a.csv", SourceError, "private or absent"),
    ],
)
def test_servers_that_misbehave(web, tmp_path, path, error, said):
    start = time.monotonic()
    with pytest.raises(error, match=said) as caught:
        download.download(
            web.root + path, tmp_path, tries=1, max_bytes=1 << 20, max_seconds=0.4
        )
    assert time.monotonic() - start < 20
    assert caught.value.remedy
    assert nothing_kept(tmp_path)


def test_a_redirect_loop_ends(web, tmp_path):
    loop = f"{web.root}/to?" + "/to?" * 20 + "/good.csv"
    with pytest.raises(SourceError, match="redirects more than 10 times"):
        download.download(loop, tmp_path)
    assert len(web.seen) < 15


def test_what_is_no_attack_arrives(web, tmp_path):
    for address in ("/to?/good.csv", f"/to?{web.root}/good.csv", "/odd-length"):
        path = download.download(web.root + address, tmp_path)
        assert path.read_bytes() == BODY
    # a file that the server calls gzip is no bomb: nothing is unpacked on the way
    path = download.download(f"{web.root}/packed.csv.gz", tmp_path)
    assert path.read_bytes() == gzip.compress(BODY, mtime=0)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "ftp://h/a.csv", "gopher://h/", "data://x", "://x", "http://",
        "http://[::1", "http://me:secret@h/a.csv", "https://h:port/a", "http://a b/c",
        "http://h/a\r\nX: y", "s3://", "s3://me:secret@bucket/a", "http://" + "a" * 70 + ".b/",
        "http://h\x00/", "jar:http://h/a!/b", "\udcff://h",
    ],
)  # fmt: skip
def test_addresses_that_are_not_asked(tmp_path, url, monkeypatch):
    monkeypatch.setattr(
        socket, "create_connection", lambda *a, **k: pytest.fail("asked")
    )
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: pytest.fail("asked"))
    with pytest.raises(SourceError) as caught:
        download.download(url, tmp_path, tries=1)
    assert caught.value.remedy
    assert "secret" not in str(caught.value)


def test_a_checksum_is_checked(web, tmp_path):
    url = f"{web.root}/good.csv"
    wrong = "0" * 64
    with pytest.raises(SourceError, match=f"sha256 {DIGEST}, but {wrong} was expected"):
        download.download(f"{url}#sha256={wrong}", tmp_path)
    assert nothing_kept(tmp_path)
    path = download.download(f"{url}#sha256={DIGEST.upper()}", tmp_path)
    assert path.read_bytes() == BODY
    asked = len(web.seen)
    assert asked == 2
    assert download.download(url, tmp_path) == path
    assert download.download(f"{url}#sha256={DIGEST}", tmp_path) == path
    assert len(web.seen) == asked
    # A copy that was changed together with its mark is still not the file that was asked for.
    path.write_bytes(b"other")
    path.with_name(path.name + ".sha256").write_text(
        hashlib.sha256(b"other").hexdigest()
    )
    assert download.download(f"{url}#sha256={DIGEST}", tmp_path).read_bytes() == BODY
    with pytest.raises(SourceError, match="64 hexadecimal digits"):
        download.download(f"{url}#sha256=abc", tmp_path)
    assert download.download(f"{url}#else", tmp_path).read_bytes() == BODY


def test_limits_and_checksums_of_a_definition(web, tmp_path, own_cache):
    whole = tmp_path / "whole.yaml"

    def load(address, **settings):
        whole.write_text(f"- name: t\n  dataset: {address}\n")
        (ref,) = open_specs([str(whole)], SourceConfig(**settings))
        return ref.load()

    with pytest.raises(SourceError, match="larger than"):
        load(f"{web.root}/good.csv", max_file_size=1e-9)
    with pytest.raises(SourceError, match="was expected"):
        load(f"{web.root}/good.csv#sha256={'1' * 64}")


def test_a_public_bucket(web, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", web.root)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    found = download.download(f"s3://my.bucket/a%20b.csv#sha256={DIGEST}", tmp_path)
    assert (found.name, found.read_bytes()) == ("a b.csv", BODY)
    assert "secret" not in str(web.seen)
    with pytest.raises(SourceError, match=r"private or absent.*aws s3 cp"):
        download.download("s3://private/a.csv", tmp_path)


def test_the_name_of_a_copy_is_a_plain_one(web, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "_fetch", lambda *arguments, **settings: None)
    long = "x" * 900 + ".csv"
    for end in (
        *["..", ".", "", "%2e%2e", "a%2fb%00.csv", "a%5cb.csv", "con:.csv"],
        long,
    ):
        path = download.download(f"{web.root}/d/{end}", tmp_path)
        assert path.parent.parent == tmp_path
        assert path.name.strip(".")
        assert len(path.name) <= 100
        assert not set(path.name) & set('\0/\\:*?"<>|')
        assert not end.endswith(".csv") or path.name.endswith(".csv")


def test_another_region_of_amazon(monkeypatch):
    """The answer of the global address names the region; it is asked once more, there."""
    asked = []

    def send(adapter, request, **settings):
        asked.append(request.url)
        response = requests.Response()
        response.status_code = 301 if len(asked) == 1 else 200
        response.headers["x-amz-bucket-region"] = "eu-west-1"
        response.request, response.url, response.raw = (
            request,
            request.url,
            io.BytesIO(BODY),
        )
        return response

    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", send)
    url = "https://b.s3.amazonaws.com/a.csv"
    response = download.ask_until(
        lambda: download._get(url), deadline=time.monotonic() + 5, name=url
    )
    assert response.raw.read() == BODY
    assert asked == [url, "https://b.s3.eu-west-1.amazonaws.com/a.csv"]


def test_no_credentials_are_sent(web, tmp_path, monkeypatch):
    """requests would send those of ~/.netrc, to the first address and after a redirect."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    download.download(f"{web.root}/to?{web.root}/good.csv", tmp_path / "cache")
    assert len(web.seen) == 2
    assert not any("Authorization" in headers for _, headers in web.seen)
