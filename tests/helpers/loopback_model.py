"""A model behind an address on this machine, right or wrong in many ways."""

import json
import time
from collections.abc import Callable
from contextlib import contextmanager

import loopback_http
import pyarrow as pa
from loopback_http import respond

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

    def answer(handler, over):
        given = handler.headers.get("Authorization", "")
        model.keys.add(given)
        if handler.headers["Content-Type"] == "application/json":
            records = json.loads(handler.body)["records"]
        else:
            records = pa.ipc.open_stream(handler.body).read_all().to_pylist()
        model.rows.append(len(records))
        if model.key and given != f"Bearer {model.key}":
            # as careless services do
            status, headers, content = 401, JSON, f"no such key: {given}".encode()
        else:
            status, headers, content = model.answer(records)
        respond(handler, content, status, **headers, Content_Length=len(content))

    with loopback_http.serving(answer, port) as address:
        model.url = f"{address}/predict"
        yield model
