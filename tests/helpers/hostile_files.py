"""What tests of hostile files, suites and servers share."""

import contextlib
import io
import json
import os
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sklearn.linear_model import LinearRegression

from amlb_ext.core.files import sha256_file
from amlb_ext.suite.sealed_json import sealed_text


class Bomb(LinearRegression):
    """A model that leaves a folder when it is unpickled."""

    def __init__(self, mark=""):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


def reseal(suite, change=lambda entry: None):
    """Change a manifest as whoever means harm does: its checksums are right again."""
    path = suite / "hardsynth" / "manifest.json"
    entry = json.loads(path.read_text())
    del entry["sha256"]
    change(entry)
    if isinstance(entry.get("files"), dict):
        for relative in entry["files"]:
            with contextlib.suppress(OSError, ValueError):
                entry["files"][relative] = sha256_file(suite / relative)
    path.write_text(sealed_text(entry))


def tree(folder):
    """Return what stands below a folder, its links by what they name."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = os.readlink(path)
        else:
            found[name] = path.read_bytes() if path.is_file() else None
    return found


def zipped(path, *members, method=zipfile.ZIP_DEFLATED):
    """Write a zip file of names and contents."""
    with zipfile.ZipFile(path, "w", method) as out:
        for name, data in members:
            out.writestr(name, data)
    return path


def tarred(path, *members, mode="w:gz"):
    """Write a tar file of names, or entries, and contents."""
    with tarfile.open(path, mode) as out:
        for name, data in members:
            info = tarfile.TarInfo(name) if isinstance(name, str) else name
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))
    return path


@contextlib.contextmanager
def serving(answer):
    """Serve what ``answer(handler, over)`` writes to every request; yield the address."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with contextlib.suppress(OSError):
                answer(self, over)

        do_GET = do_POST = handle_any

        def do_HEAD(self):
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def respond(handler, body=b"", status=200, **headers):
    """Send a status, headers with ``_`` for ``-``, and a body."""
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), str(value))
    handler.end_headers()
    handler.wfile.write(body)
