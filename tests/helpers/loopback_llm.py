"""An OpenAI-compatible server on loopback that replays answers, and has faults when asked.

Answers are chosen by the model's name and how many answers the talk has so far. As a program it
serves until it is ended:  python tests/helpers/loopback_llm.py PORT
"""

from __future__ import annotations

import gzip
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from loopback_http import respond, serving


def as_answer(code: str) -> str:
    return f"Some thoughts.\n\n```python\n{code}```\nThat should do."


LOAD = (
    "import numpy as np\n"
    "X = np.load('data/train_features.npy').astype(float)\n"
    "y = np.load('data/train_labels.npy')\n"
    "T = np.load('data/test_features.npy').astype(float)\n"
    "X, T = X.reshape(len(X), -1), T.reshape(len(T), -1)\n"
)
SAVE = "np.savetxt('results/predictions.txt', p, fmt='%d')\n"
#: numpy alone, so that a test does not wait for scikit-learn
CENTROIDS = (
    "c = np.array([X[y == k].mean(0) for k in range(y.max() + 1)])\n"
    "p = ((T[:, None] - c) ** 2).sum(2).argmin(1)\n"
)
CONSTANT = "p = np.full(len(T), np.bincount(y).argmax())\n"
FOREST = (
    "from sklearn.ensemble import RandomForestClassifier\n"
    "model = RandomForestClassifier(60, random_state=0).fit(X, y)\n"
    "p = model.predict(T)\n"
    "print('forest')\n"
)
GRID = (
    "if X.shape[1] == 1024:\n"
    "    def grid(V):\n"
    "        cells = (V.reshape(len(V), -1, 2) * 20).astype(int).clip(0, 19)\n"
    "        seen = np.zeros((len(V), 400))\n"
    "        for row, cell in enumerate(cells[:, :, 0] * 20 + cells[:, :, 1]):\n"
    "            seen[row, cell] = 1\n"
    "        return seen\n"
    "    X, T = grid(X), grid(T)\n"
    "    print('grid')\n"
)
LEARNER = [
    "I would first look at the data.",
    as_answer(LOAD + "print(X.shape\n"),
    as_answer(LOAD + CONSTANT + SAVE),
    as_answer(LOAD + FOREST + SAVE),
    as_answer(LOAD + GRID + FOREST + SAVE),
]
HOSTILE = [
    as_answer(
        "import glob, os\n"
        "for path in ['/root', '/home', '/proc/1/environ', '/etc/shadow', '/tmp', '..']:\n"
        "    try: print(path, os.listdir(path) if os.path.isdir(path) else open(path).read())\n"
        "    except Exception as error: print(path, type(error).__name__)\n"
        "print(dict(os.environ))\n"
    ),
    as_answer(
        "import socket\n"
        "for address in [('127.0.0.1', PORT), ('1.1.1.1', 53)]:\n"
        "    try: socket.create_connection(address, 2); print('CONN' + 'ECTED')\n"
        "    except Exception as error: print(type(error).__name__)\n"
    ),
    as_answer("import os\nos.symlink('/etc/hostname', 'results/predictions.txt')\n"),
    as_answer("b = []\nwhile True: b.append(bytearray(1 << 27))\n"),
    as_answer("while True: print('x' * 10000)\n"),
]
#: Model: its answers.
SCRIPTS = {
    "learner": LEARNER,
    "quick": [
        "I would first look at the data.",
        as_answer(LOAD + "print(X.shape\n"),
        as_answer(LOAD + CONSTANT + SAVE),
        as_answer(LOAD + CENTROIDS + SAVE),
        as_answer(LOAD + CONSTANT + SAVE),
    ],
    "looker": [
        as_answer(LOAD + CONSTANT + SAVE + "print(X.shape)\n"),
        "I have seen enough.",
    ]
    + [as_answer(LOAD + CENTROIDS + SAVE)] * 5,
    "explorer": [as_answer("print('looking')\n")] * 5,
    "hostile": HOSTILE,
    "wrong_format": [
        as_answer("open('results/predictions.txt', 'w').write('circle\\n' * 3)\n"),
        as_answer(LOAD + "p = np.full(len(T), 9)\n" + SAVE),
        as_answer(
            LOAD + "np.savetxt('results/predictions.txt', np.full(len(T), np.nan))\n"
        ),
        as_answer(LOAD + "np.savetxt('results/predictions.txt', np.zeros(len(T)))\n"),
        as_answer(LOAD + CENTROIDS + SAVE),
    ],
    "looper": [as_answer("while True: pass\n")] * 2
    + [as_answer(LOAD + CENTROIDS + SAVE)] * 3,
}


class Endpoint:
    """What the server did and shall do.

    Attributes
    ----------
    url : str
    faults : list
        What to do in place of the next answers: 429, 500, 401, 302, ``cut``, ``html``, ``slow``,
        ``endless``, ``no usage``, ``gzip``, ``stream``, ``ollama``, ``no system``,
        ``cached tokens``, ``length``, ``empty``; None answers.
    requests : int
    keys : set of str
    asked, paths, headers : list
        Of every request.
    """

    def __init__(self) -> None:
        self.url = ""
        self.faults: list[object] = []
        self.requests = 0
        self.keys: set[str] = set()
        self.asked: list[dict] = []
        self.paths: list[str] = []
        self.headers: list[dict] = []


def as_stream(reply: dict, kind: str) -> bytes:
    """Return a reply as the chunks of a stream, four characters each."""
    text = reply["choices"][0]["message"]["content"]
    chunks: list[dict] = []
    for start in range(0, len(text), 4):
        part = {"content": text[start : start + 4]}
        chunk = (
            {"choices": [{"delta": part}]} if kind == "stream" else {"message": part}
        )
        chunks.append(chunk)
    chunks.append(
        {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": reply["usage"]}
    )
    begin, end = ("data: ", "\n\n") if kind == "stream" else ("", "\n")
    lines = [begin + json.dumps(chunk) + end for chunk in chunks]
    if kind == "stream":
        lines += ["data: [DONE]\n\n"]
    return "".join(lines).encode()


@contextmanager
def serve(port: int = 0) -> Iterator[Endpoint]:
    """Serve until the block ends."""
    state = Endpoint()

    def answer(handler: BaseHTTPRequestHandler, over: threading.Event) -> None:
        state.requests += 1
        state.keys.add(handler.headers.get("Authorization", ""))
        body = json.loads(handler.body)
        state.asked.append(body)
        state.paths.append(handler.path)
        state.headers.append(dict(handler.headers))
        if not handler.path.partition("?")[0].endswith("/v1/chat/completions"):
            handler.send_error(404)
            return
        fault = state.faults.pop(0) if state.faults else None
        if isinstance(fault, int):
            where = {"Location": f"{state.url}/elsewhere"} if fault == 302 else {}
            # servers have been seen to repeat the key in an error
            told = handler.headers["Authorization"].encode()
            respond(handler, told, fault, Retry_After="0.01", **where)
        elif fault == "no system" and body["messages"][0]["role"] == "system":
            told = b'{"error": {"message": "System role not supported"}}'
            respond(handler, told, 400)
        else:
            _answer(handler, body, fault)

    with serving(answer, port) as address:
        state.url = f"{address}/v1"
        yield state


def _answer(handler: BaseHTTPRequestHandler, body: dict, fault: object) -> None:
    """Answer as the model's script says, or as a fault has it."""
    if fault == "slow":
        time.sleep(1.0)
    if fault == "html":
        out = b"<html>proxy</html>"
    else:
        out = json.dumps(_reply(handler, body, fault)).encode()
    headers = {}
    if fault == "gzip":
        headers["Content-Encoding"] = "gzip"
        out = gzip.compress(out)
    if fault in ("stream", "ollama"):
        out = as_stream(json.loads(out), fault)
    length = len(out)
    if fault == "cut":
        out = out[: length // 2]
        handler.close_connection = True
    if fault == "endless":
        length = 1 << 40
    respond(handler, out, Content_Length=length, **headers)
    while fault == "endless":
        handler.wfile.write(b" " * (1 << 20))


def _reply(handler: BaseHTTPRequestHandler, body: dict, fault: object) -> dict:
    turn = sum(m["role"] == "assistant" for m in body["messages"])
    script = SCRIPTS[body["model"]]
    port = handler.server.server_port
    text = script[turn % len(script)].replace("PORT", str(port))
    said = {"length": "```python\nimport", "empty": None}.get(fault, text)
    reason = "length" if fault == "length" else "stop"
    message = {"role": "assistant", "content": said}
    content = {"choices": [{"message": message, "finish_reason": reason}]}
    if fault != "no usage":
        asked = sum(len(m["content"]) for m in body["messages"])
        content["usage"] = {
            "prompt_tokens": asked // 4,
            "completion_tokens": len(text) // 4,
        }
    if fault == "cached tokens":
        cached = {"cached_tokens": content["usage"]["prompt_tokens"]}
        content["usage"]["prompt_tokens_details"] = cached
    return content


if __name__ == "__main__":
    with serve(int(sys.argv[1])) as endpoint:
        print(endpoint.url, flush=True)
        threading.Event().wait()
