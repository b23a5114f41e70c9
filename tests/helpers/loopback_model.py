"""A model behind an address on this machine, right or wrong in many ways."""

import json
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow as pa

#: What a way of answering gets, and what it returns: status, headers, body.
Answer = tuple[int, dict[str, str], bytes]
JSON = {"Content-Type": "application/json"}


class LoopbackModel:
    """Counts what it is asked; ``answer`` may be changed while it runs.

    Parameters
    ----------
    predict : callable
        List of records to the fields of the answer.
    """

    def __init__(self, predict: Callable[[list[dict]], dict]):
        self.predict = predict
        self.answer = self.answer_rightly
        self.key = ""
        self.rows = []
        self.keys = set()
        self.url = ""

    def answer_rightly(self, records) -> Answer:
        return 200, JSON, json.dumps(self.predict(records)).encode()

    def answer_html(self, records) -> Answer:
        page = b"<!doctype html><html><head><title>Sign in</title></head></html>"
        return 200, {"Content-Type": "text/html"}, page

    def answer_short(self, records) -> Answer:
        return self.answer_rightly(records[:-1])

    def answer_text(self, records) -> Answer:
        return 200, JSON, b"[1, 2"

    def answer_other_fields(self, records) -> Answer:
        return 200, JSON, b'{"outputs": [1]}'

    def answer_busy(self, records) -> Answer:
        return 503, {"Retry-After": "7"}, b"busy"

    def answer_moved(self, records) -> Answer:
        return 307, {"Location": "http://elsewhere.org/f?token=abc"}, b""

    def answer_slowly(self, records) -> Answer:
        time.sleep(0.4)
        return self.answer_rightly(records)


@contextmanager
def serving(predict: Callable[[list[dict]], dict], port: int = 0):
    """Run a model while the block runs; on a free port unless one is named."""
    model = LoopbackModel(predict)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            given = self.headers.get("Authorization", "")
            model.keys.add(given)
            if self.headers["Content-Type"] == "application/json":
                records = json.loads(body)["records"]
            else:
                records = pa.ipc.open_stream(body).read_all().to_pylist()
            model.rows.append(len(records))
            if model.key and given != f"Bearer {model.key}":
                # as careless services do
                said = f"no such key: {given}".encode()
                status, headers, content = 401, JSON, said
            else:
                status, headers, content = model.answer(records)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            # whoever asked may have gone
            with suppress(OSError):
                self.wfile.write(content)

        def log_message(self, *about):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    model.url = f"http://127.0.0.1:{server.server_port}/predict"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
