"""A server that answers as no honest one does: without end, a byte at a time, or from somewhere else."""

import socket
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@dataclass(eq=False)
class Hostile:
    """The address of the server, and the headers of the requests that reached it."""

    port: int
    requests: list[bytes] = field(default_factory=list)

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def hostile(kind, *, to=""):
    """A server whose every answer is of one `kind`; `to` is where a redirect leads."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.1)
        result = Hostile(listening.getsockname()[1])

        def serve():
            while not over.is_set():
                try:
                    connection, _ = listening.accept()
                except OSError:
                    continue
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        def answer(connection):
            with connection, suppress(OSError):
                connection.settimeout(10)
                result.requests.append(connection.recv(1 << 16))
                for block in _answer(kind, to, over):
                    connection.sendall(block)

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        try:
            yield result
        finally:
            over.set()
            serving.join()


def _answer(kind, to, over):
    match kind:
        case "endless":
            yield OK + b"\r\n" + b'{"choices": "'
            while not over.is_set():
                yield b"x" * (1 << 20)
        case "slow body":
            yield OK + b"Content-Length: 100000\r\n\r\n"
            while not over.wait(0.05):
                yield b" "
        case "slow headers":
            yield b"HTTP/1.1 200 OK\r\nX-Slow: "
            while not over.wait(0.05):
                yield b"x"
        case "redirect":
            yield f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n".encode()
        case "silent":
            over.wait()
        case "cut off":
            yield OK + b"Content-Length: 100000\r\n\r\n{"
        case "bomb":
            # 100 MiB of blanks in 100 kB.
            import gzip

            data = gzip.compress(b" " * (100 << 20))
            yield OK + f"Content-Encoding: gzip\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data
        case _:
            yield kind.encode("latin-1")
