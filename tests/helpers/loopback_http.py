"""A web server on loopback that answers as a function says, for as long as a block lasts."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextlib.contextmanager
def serving(
    answer: Callable[[BaseHTTPRequestHandler, threading.Event], None],
    port: int = 0,
    head: int = 200,
) -> Iterator[str]:
    """Serve what ``answer(handler, over)`` writes to every GET and POST; yield the address.

    ``handler.body`` is what was sent, ``over`` is set when the block ends, and ``head`` is the
    status of every HEAD. On a free port unless one is named.
    """
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self):
            self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            # whoever asked may have gone
            with contextlib.suppress(OSError):
                answer(self, over)

        do_GET = do_POST = handle_any

        def do_HEAD(self):
            respond(self, status=head, Content_Length=0)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
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
