"""Servers of HTTP on this machine, in a thread of the test."""

import json
import socket
import struct
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Requests of a test: silent, with connections that stay open or are cut."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def send(self, status, value, headers=None):
        text = value if isinstance(value, str | bytes) else json.dumps(value)
        data = text if isinstance(text, bytes) else text.encode()
        self.send_response(status)
        for name, cell in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, cell)
        self.end_headers()
        self.wfile.write(data)

    def cut(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True


def server_of(handler):
    """A server at a port of its own that waits for no request at its end."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    return server


@contextmanager
def loopback(handler):
    """A server in a thread; its address."""
    server = server_of(handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
