"""What strangers hand in: some 800 hostile inputs to commands in the sound folder, as rows of tables.

Image cells, paths, outputs and endpoints. Beside the folder stands one with a secret, which nothing that is
written or printed may hold, nor the key of an endpoint.
"""

import io
import os
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq

from faults.corpus import EITHER, KEY, REFUSED, SECRET, TAKEN, Case, Wanted
from faults.files import write_csv
from hostile_server import OK

N = 6

Doing = Callable[[Path], object]


def secret(folder: Path) -> None:
    """Write a secret of the machine beside the sound folder, and what is another's into it."""
    (folder.parent / "secret").mkdir()
    (folder.parent / "secret" / "id_rsa").write_text(SECRET)
    (folder / "other").mkdir()
    (folder / "other" / "notes.txt").write_text("mine")
    (folder / "page.html").write_text("<p>mine</p>")


def table(folder: Path, cells: list[str]) -> None:
    texts = [{"caption": f"a red square {i}", "negative_caption": f"a blue square {i}"} for i in range(N)]
    rows = [{"image": cell, **own} for cell, own in zip(cells, texts, strict=True)]
    (folder / "pairs.csv").unlink()
    write_csv(folder / "pairs.csv", rows)


def of_verdicts(table: dict[Wanted, tuple[str, ...]]) -> list[tuple[str, Wanted]]:
    """Every name of a table with what must come of it."""
    return [(name, wanted) for wanted, names in table.items() for name in names]


LIGHT = ("--no-cache", "--draws", "100")
PAIRS = ("pairs", "--data", "pairs.csv", "--images", "photos")
EVALUATE = ("evaluate", "pixels:colours", *PAIRS, *LIGHT)
BLIND = ("evaluate", "blind:length", *PAIRS, *LIGHT)
SAVE = ("benchmarks", "save", *PAIRS, "--out", "new")
PUBLISH = ("benchmarks", "publish", *PAIRS, "--out", "new", "--licence", "CC-BY-4.0")
CREATE = ("annotate", "create", "yes-no", "--from", "pairs.csv", "--images", "photos", "--out", "new")
READ = ("build", "read", "--source", "pairs.csv", "--images", "photos", "--no-cache", "--out", "new")
ASSEMBLE = ("build", "assemble", "pairs.csv", "--images", "photos", "--no-cache", "--out", "new")


def in_place_of(name: str, doing: Doing) -> Doing:
    def prepare(folder: Path) -> None:
        (folder / name).unlink()
        doing(folder / name)

    return prepare


def holding(data: bytes) -> Doing:
    def write(path: Path) -> None:
        path.write_bytes(data)

    return write


def bound(path: Path) -> None:
    # A name of a socket has a hundred bytes at most.
    here = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{here}/{path.name}")
    finally:
        os.close(here)


def png(width: int, height: int) -> bytes:
    buffer = io.BytesIO()
    PIL.Image.new("L", (width, height)).save(buffer, format="PNG")
    return buffer.getvalue()


def claimed_png(width: int, height: int) -> bytes:
    import zlib

    data = png(4, 4)
    header = b"IHDR" + struct.pack(">II", width, height) + data[24:29]
    return data[:12] + header + struct.pack(">I", zlib.crc32(header)) + data[33:]


def by_way_of_a_folder(path: Path) -> None:
    """A link to what a linked folder holds."""
    (path.parent / "way").symlink_to(path.parents[2] / "secret")
    path.symlink_to("way/id_rsa")


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n(id) run\nshowpage\n%%EOF\n"
#: What is no picture, in the place of one, and what must come of storing it.
NO_PICTURES: dict[str, tuple[Doing, Wanted]] = {
    "text": (holding(SECRET.encode()), REFUSED),
    "postscript": (holding(EPS), REFUSED),
    "pdf": (holding(b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n"), REFUSED),
    "svg": (holding(b"<svg xmlns='http://www.w3.org/2000/svg'><image href='/etc/passwd'/></svg>"), REFUSED),
    "page": (holding(b"<html><body>404</body></html>"), REFUSED),
    "nothing": (holding(b""), REFUSED),
    "zeros": (holding(bytes(4096)), REFUSED),
    "magic alone": (holding(b"\x89PNG\r\n\x1a\n"), REFUSED),
    "magic and text": (holding(b"\x89PNG\r\n\x1a\n" + SECRET.encode()), REFUSED),
    "jpeg magic and text": (holding(b"\xff\xd8\xff\xe0" + SECRET.encode()), REFUSED),
    "gif magic and text": (holding(b"GIF89a" + SECRET.encode()), REFUSED),
    "webp magic and text": (holding(b"RIFF\x20\0\0\0WEBP" + SECRET.encode()), REFUSED),
    "half": (holding(png(64, 64)[:60]), REFUSED),
    "claims 60,000 squared": (holding(claimed_png(60_000, 60_000)), REFUSED),
    "claims a side of 2 to the 31": (holding(claimed_png(2**31 - 1, 1)), REFUSED),
    "claims no side": (holding(claimed_png(0, 4)), REFUSED),
    "a line": (holding(png(1, 20_000)), EITHER),
    "one pixel": (holding(png(1, 1)), EITHER),
    "folder": (lambda path: path.mkdir(), EITHER),
    "pipe": (lambda path: os.mkfifo(path), EITHER),
    "socket": (bound, EITHER),
    "link to a device": (lambda path: path.symlink_to("/dev/zero"), EITHER),
    "link to itself": (lambda path: path.symlink_to(path.name), EITHER),
    "link to nothing": (lambda path: path.symlink_to("nothing"), EITHER),
    "link to the environment": (lambda path: path.symlink_to("/proc/self/environ"), REFUSED),
    "link out": (lambda path: path.symlink_to(path.parents[2] / "secret" / "id_rsa"), REFUSED),
    "link out by way of a folder": (by_way_of_a_folder, REFUSED),
}
#: What an image cell says; {home} is the folder around the sound one. What is there outside must be refused.
CELLS: dict[Wanted, tuple[str, ...]] = {
    REFUSED: (
        "{home}/secret/id_rsa", "../../secret/id_rsa", "./../../secret/./id_rsa",
        "../photos/../../secret/id_rsa", "../../../../../../../../../../etc/passwd", "/etc/passwd",
        "//etc/passwd", "/proc/self/environ", "out/id_rsa", "out.png", "../page.html", "../other/notes.txt",
        " ",
    ),
    EITHER: (
        "/proc/self/fd/0", "/dev/zero", "/dev/stdin", "file:///etc/passwd", "file://etc/passwd",
        "http://127.0.0.1:9/a.png", "s3://bucket/a.png", "~/.ssh/id_rsa", "$HOME/.bashrc", "$(id).png",
        "`id`.png", "|id", "-rf", ".", "..", "/", "p0.png/", "p0.png/..", "p0.png ",
        "%2e%2e/%2e%2e/secret/id_rsa", "..\\..\\secret\\id_rsa", "C:\\Windows\\win.ini",
        "\\\\host\\share\\a.png", "p0.png\n../../secret/id_rsa", "x" * 300 + ".png", "x/" * 3000 + "a.png",
        "\u202egnp.0p", "\x1b[31mred.png", "=cmd|'/c calc'!A0", "<script>alert(1)</script>", "p0.png\x00",
    ),
}  # fmt: skip


def cells() -> Iterator[Case]:
    """Image cells that name what they must not, and files that are no pictures."""
    for name, command in {
        "evaluate": EVALUATE, "save": SAVE, "publish": PUBLISH, "create": CREATE, "assemble": ASSEMBLE,
    }.items():  # fmt: skip
        for cell, wanted in of_verdicts(CELLS):

            def prepare(folder: Path, cell: str = cell) -> None:
                (folder / "photos" / "out").symlink_to(folder.parent / "secret")
                (folder / "photos" / "out.png").symlink_to(folder.parent / "secret" / "id_rsa")
                said = cell.replace("{home}", str(folder.parent))
                table(folder, [said, *(f"p{i}.png" for i in range(1, N))])

            yield Case("cells", f"{name}: {cell[:60]!r}", command, wanted=wanted, prepare=prepare)
        for what, (doing, wanted) in NO_PICTURES.items():
            prepare = in_place_of("photos/p0.png", doing)
            yield Case("cells", f"{name}: {what}", command, wanted=wanted, prepare=prepare)
    for cell in CELLS[REFUSED]:

        def rows(folder: Path, cell: str = cell) -> None:
            said = cell.replace("{home}", str(folder.parent))
            kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
            images = pa.array([{"bytes": None, "path": said}], kind)
            columns = {"image": images, "caption": ["a"], "negative_caption": ["b"]}
            pq.write_table(pa.table(columns), folder / "paths.parquet")

        command = tuple("paths.parquet" if item == "pairs.csv" else item for item in PUBLISH)
        yield Case("cells", f"publish a path in Parquet: {cell[:60]!r}", command, prepare=rows)


#: What is named where a file or a folder should be.
PATHS: dict[Wanted, tuple[str, ...]] = {
    REFUSED: (
        "", " ", "nothing-there", "/dev/null", "/dev/zero", "/dev/full", "pipe", "socket", "loop",
        "pairs.csv/x", "x" * 300, "x/" * 3000, "file://etc/passwd", "file://etc", "file:///nothing-there",
        "http://127.0.0.1:9/a", "ftp://127.0.0.1/a", "s3:", "\udcff", "~nobody/x", "$HOME", "a\nb",
        "\u202ea", "/proc/self/mem", "{a,b}.csv",
    ),
    EITHER: (
        "page.html",
    ),
}  # fmt: skip


def _special(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    bound(folder / "socket")


def paths() -> Iterator[Case]:
    """Arguments that name no file or folder, or none that could be read."""
    ways = {
        "--data": ("evaluate", "blind:length", "pairs", "--images", "photos", *LIGHT, "--data"),
        "--images": ("evaluate", "pixels:colours", "pairs", "--data", "pairs.csv", *LIGHT, "--images"),
        "--from": ("annotate", "create", "yes-no", "--images", "photos", "--out", "new", "--from"),
        "rows": ("build", "filter", "--images", "photos", "--no-cache", "--out", "new.csv", "--"),
        "compare": ("compare", "--draws", "100", "--"),
        "candidates": ("captions", "score", "--metrics", "length", "--out", "new.csv", "--candidates"),
    }
    for name, command in ways.items():
        for path, wanted in of_verdicts(PATHS):
            yield Case("paths", f"{name} {path[:60]!r}", (*command, path), wanted=wanted, prepare=_special)


#: Where something is to be written.
OUTPUTS: dict[Wanted, tuple[str, ...]] = {
    REFUSED: (
        "", "/proc/x", "/dev/null/x", "/sys/x", "pipe", "socket", "loop", "loop/x", "pairs.csv",
        "pairs.csv/x", "photos", "page.html", "to-the-table", "to-the-photos", "x" * 300, "file://etc/x",
        "s3://bucket/x", "held", "a/b/held", "\udcff",
    ),
    EITHER: (
        "other",
    ),
    TAKEN: (
        "killed",
    ),
}  # fmt: skip


def _outputs(folder: Path) -> None:
    _special(folder)
    (folder / "to-the-table").symlink_to("pairs.csv")
    (folder / "to-the-photos").symlink_to("photos")
    # A lock that a process left which was killed, and what it was writing.
    (folder / ".killed.lock").write_text("counterfoil benchmarks save, process 1 on nowhere")


def outputs() -> Iterator[Case]:
    """Places that cannot or must not be written, or that another process is writing to."""
    for name, command in {
        "evaluate --json": (*BLIND, "--json"),
        "world build --out": ("world", "build", "quads", "--n", "3", "--size", "32", "--out"),
        "save --out": ("benchmarks", "save", *PAIRS, "--out"),
        "publish --out": (*PUBLISH[:-4], "--licence", "CC-BY-4.0", "--out"),
        "create --out": (*CREATE[:-1],),
        "build --out": (*READ[:-1],),
    }.items():
        for target, wanted in of_verdicts(OUTPUTS):
            # A file of JSON may lie in a folder that is there.
            yield Case(
                "outputs", f"{name} {target[:60]!r}", (*command, target), wanted=wanted, prepare=_outputs,
                held=("held", "a/b/held"),
            )  # fmt: skip


def _body(text: str, *, more: str = "") -> str:
    head = OK.decode() + more
    return f"{head}Content-Length: {len(text.encode('latin-1'))}\r\nConnection: close\r\n\r\n{text}"


def _status(code: int, text: str = "{}", more: str = "") -> str:
    return f"HTTP/1.1 {code} X\r\n{more}Content-Length: {len(text)}\r\nConnection: close\r\n\r\n{text}"


YES = '{"choices": [{"message": {"content": "yes"}}]'
ANSWERS: dict[str, str] = {
    **{kind: kind for kind in ("endless", "bomb", "slow body", "slow headers")},
    **{kind: kind for kind in ("silent", "cut off", "redirect")},
    "nothing": "\r\n\r\n",
    "no HTTP": "hello\r\n",
    "a page": _body("<html>sign in</html>"),
    "null": _body("null"),
    "a number": _body("1"),
    "a list": _body("[]"),
    "no choices": _body('{"choices": []}'),
    "choices of null": _body('{"choices": null}'),
    "no message": _body('{"choices": [{"message": null}]}'),
    "content is a number": _body('{"choices": [{"message": {"content": 1}}]}'),
    "content is deep": _body('{"choices": ' + "[" * 100_000 + "]" * 100_000 + "}"),
    "a number of 5,000 digits": _body(YES + ', "n": ' + "9" * 5000 + "}"),
    "half of a character": _body('{"choices": [{"message": {"content": "\\ud800"}}]}'),
    "no UTF-8": _body("\xff\xfe\x00"),
    "counts are texts": _body(YES + ', "usage": {"prompt_tokens": "x"}}'),
    "counts are huge": _body(YES + ', "usage": {"prompt_tokens": 1e999}}'),
    "odd log-probabilities": _body(
        '{"choices": [{"message": {"content": "yes"}, "logprobs": {"content": [{"top_logprobs": '
        '[{"token": 1, "logprob": NaN}]}]}}]}'
    ),
    "log-probabilities without a list": _body(
        '{"choices": [{"message": {"content": "yes"}, "logprobs": {"content": {"a": 1}}}]}'
    ),
    "the key": _status(401, '{"error": {"message": "no such key: ' + KEY + '"}}'),
    "the key, escaped": _status(400, '{"error": {"message": "no ' + KEY + '\\n"}}'),
    **{str(code): _status(code) for code in (100, 204, 301, 400, 403, 404, 405, 413, 418)},
    **{str(code): _status(code) for code in (429, 500, 502, 503, 999)},
    **{
        f"retry after {after[:20]}": _status(429, more=f"Retry-After: {after}\r\n")
        for after in ("-1", "nan", "inf", "1e308", "x", "Thu, 01 Jan 9999 00:00:00 GMT", "9" * 20)
    },
    "a length below zero": OK.decode() + "Content-Length: -1\r\n\r\n{}",
    "two lengths": OK.decode() + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "odd chunks": OK.decode() + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}",
    "no gzip": _body("{}", more="Content-Encoding: gzip\r\n"),
    "unknown encoding": _body("{}", more="Content-Encoding: x\r\n"),
    "headers without end": "HTTP/1.1 200 OK\r\n" + "X: y\r\n" * 50_000,
    "escape sequences": _status(400, '{"error": {"message": "\\u001b[2J\\u202e"}}'),
}  # fmt: skip
ADDRESSES = (
    "http://", "#m", "ftp://127.0.0.1/v1#m", "http://127.0.0.1:0/v1#m", "http://127.0.0.1:99999/v1#m",
    "http://[::1/v1#m", "http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1#", "file:///etc/passwd#m",
    "http://a b/v1#m", "http://127.0.0.1:9/v1\r\nX: y#m", "http://\u202e/v1#m",
    f"http://user:{KEY}@127.0.0.1:9/v1#m", f"http://127.0.0.1:9/v1?key={KEY}#m", "http://xn--/v1#m",
    "http://" + "x" * 300 + "/v1#m",
)  # fmt: skip
QUICK = ("--set", "timeout=1", "--set", "retries=1", "--set", "wait=0", "--sample", "2")


def endpoints() -> Iterator[Case]:
    """Servers that answer as no honest one does, addresses that are none, and keys that are none."""
    key = (("COUNTERFOIL_API_KEY", KEY),)
    ask = ("evaluate", "chat:{address}/v1#m", *PAIRS, *LIGHT, *QUICK)
    fetch = ("benchmarks", "fetch", "sugarcrepe", "--to", "got", "--mirror", "{address}")
    for name, answer in ANSWERS.items():
        yield Case("endpoints", f"chat: {name}", ask, wanted=EITHER, answer=answer, environment=key)
    for name, answer in ANSWERS.items():
        if answer not in ("silent", "slow body", "slow headers"):
            yield Case("endpoints", f"fetch: {name}", fetch, answer=answer)
    for address in ADDRESSES:
        command = tuple(f"chat:{address}" if item.startswith("chat:") else item for item in ask)
        yield Case("endpoints", f"address {address[:60]!r}", command, environment=key)
    no = _status(401, '{"error": {"message": "no"}}')
    for odd in ("KEY\n", "\nKEY", "KEY\r\nX: y", "KEY KEY", "KEY\u00e9", "KEY\t", " ", "KEY\x7f"):
        key = (("COUNTERFOIL_API_KEY", odd.replace("KEY", KEY)),)
        yield Case("endpoints", f"key {odd!r}", ask, answer=no, environment=key)


def cases() -> Iterator[Case]:
    for of in (endpoints, cells, paths, outputs):
        yield from of()
