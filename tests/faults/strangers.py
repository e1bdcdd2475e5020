"""What strangers hand in: some 800 hostile inputs, and how many fall short.

    python -m faults.strangers                    # all, from the folder `tests`; exit code 1 above 4 %
    python -m faults.strangers --only cells       # endpoints, cells, paths or outputs

Each case is a command line in a folder of its own, in a fork. It falls short by a traceback, a hang, an exit
code that is neither 0 nor 2, an error of more or less than one line, an input that changed, something left
behind by a command that failed, an input taken that had to be refused, a key that is shown, or a secret of
the machine in anything that was written or printed.
"""

import argparse
import io
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq

from counterfoil.claims import claim
from faults.campaign import in_a_fork
from faults.command import Ended, run, states
from faults.sound import write_csv
from hostile_server import OK, hostile

SECRET, KEY = "SECRET-OF-THE-MACHINE", "sk-very-secret-0123456789"
#: Seconds that a case may take, of a machine that does other things too.
WALL = 60
N = 6

Doing = Callable[[Path], None]
#: Whether the input must be refused, may be taken, or must be taken.
Wanted = str
REFUSED, EITHER, TAKEN = "refused", "either", "taken"


@dataclass(frozen=True)
class Hostility:
    """A case: its kind and name, the command, what is done to the folder before, and what must come of it."""

    kind: str
    name: str
    command: tuple[str, ...]
    prepare: Doing = lambda folder: None
    wanted: Wanted = EITHER
    #: What a server answers that the command reaches as {address}; and environment variables.
    answer: str = ""
    environment: tuple[tuple[str, str], ...] = ()


def make(folder: Path) -> None:
    """The sound folder, in a home with a secret beside it."""
    (folder.parent / "secret").mkdir(parents=True)
    (folder.parent / "secret" / "id_rsa").write_text(SECRET)
    (folder / "photos").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for i in range(N):
        pixels = rng.integers(0, 255, (16, 16, 3), dtype=np.uint8)
        PIL.Image.fromarray(pixels).save(folder / "photos" / f"p{i}.png")
        PIL.Image.fromarray(pixels).save(folder / "photos" / f"j{i}.jpg")
    table(folder, [f"p{i}.png" for i in range(N)])
    (folder / "other").mkdir()
    (folder / "other" / "notes.txt").write_text("mine")
    (folder / "page.html").write_text("<p>mine</p>")


def table(folder: Path, cells: list[str]) -> None:
    """A table of pairs with these image cells."""
    rows = [
        {"image": cell, "caption": f"a red square {i}", "negative_caption": f"a blue square {i}"}
        for i, cell in enumerate(cells)
    ]
    write_csv(folder / "pairs.csv", rows)


def of_verdicts(table: dict[Wanted, tuple[str, ...]]) -> list[tuple[str, Wanted]]:
    """Every name of a table with what must come of it."""
    return [(name, wanted) for wanted, names in table.items() for name in names]


LIGHT = ("--no-cache", "--draws", "100")
PAIRS = ("pairs", "--data", "pairs.csv", "--images", "photos")
EVALUATE = ("evaluate", "pixels:colours", *PAIRS, *LIGHT)
BLIND = ("evaluate", "blind:length", *PAIRS, *LIGHT)
SAVE = ("benchmarks", "save", *PAIRS, "--out", "new")
PUBLISH = ("benchmarks", "publish", *PAIRS, "--to", "folder:new", "--licence", "CC-BY-4.0")
CREATE = ("annotate", "create", "yes-no", "--from", "pairs.csv", "--images", "photos", "--out", "new")
READ = ("build", "read", "--source", "pairs.csv", "--images", "photos", "--no-cache", "--out", "new")
ASSEMBLE = ("build", "assemble", "pairs.csv", "--images", "photos", "--no-cache", "--out", "new")


def in_place_of(name: str, doing: Doing) -> Doing:
    """Take a file away, then do something."""

    def prepare(folder: Path) -> None:
        (folder / name).unlink()
        doing(folder / name)

    return prepare


def holding(data: bytes) -> Doing:
    """Write these bytes."""

    def write(path: Path) -> None:
        path.write_bytes(data)

    return write


def bound(path: Path) -> None:
    """A socket of that name."""
    # A name of a socket has a hundred bytes at most.
    here = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{here}/{path.name}")
    finally:
        os.close(here)


def png(width: int, height: int) -> bytes:
    """A PNG of one grey, whatever its size."""
    buffer = io.BytesIO()
    PIL.Image.new("L", (width, height)).save(buffer, format="PNG")
    return buffer.getvalue()


def claimed_png(width: int, height: int) -> bytes:
    """A small PNG whose header claims another size."""
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


def cells() -> Iterator[Hostility]:
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

            yield Hostility("cells", f"{name}: {cell[:60]!r}", command, prepare, wanted)
        for what, (doing, wanted) in NO_PICTURES.items():
            yield Hostility("cells", f"{name}: {what}", command, in_place_of("photos/p0.png", doing), wanted)
    for cell in CELLS[REFUSED]:

        def rows(folder: Path, cell: str = cell) -> None:
            said = cell.replace("{home}", str(folder.parent))
            kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
            images = pa.array([{"bytes": None, "path": said}], kind)
            columns = {"image": images, "caption": ["a"], "negative_caption": ["b"]}
            pq.write_table(pa.table(columns), folder / "pairs.parquet")

        command = tuple("pairs.parquet" if each == "pairs.csv" else each for each in PUBLISH)
        yield Hostility("cells", f"publish a path in Parquet: {cell[:60]!r}", command, rows, REFUSED)


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
    (folder / "loop").symlink_to("loop")


def paths() -> Iterator[Hostility]:
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
            yield Hostility("paths", f"{name} {path[:60]!r}", (*command, path), _special, wanted)


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


def outputs() -> Iterator[Hostility]:
    """Places that cannot or must not be written, or that another process is writing to."""
    for name, command in {
        "evaluate --json": (*BLIND, "--json"),
        "world build --out": ("world", "build", "quads", "--n", "3", "--size", "32", "--out"),
        "save --out": ("benchmarks", "save", *PAIRS, "--out"),
        "publish --to": (*PUBLISH[:-4], "--licence", "CC-BY-4.0", "--to"),
        "create --out": (*CREATE[:-1],),
        "build --out": (*READ[:-1],),
    }.items():
        for target, wanted in of_verdicts(OUTPUTS):
            said = f"folder:{target}" if name == "publish --to" else target
            # A file of JSON may lie in a folder that is there; the URL is no URL behind "folder:".
            yield Hostility("outputs", f"{name} {target[:60]!r}", (*command, said), _outputs, wanted)


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


def endpoints() -> Iterator[Hostility]:
    """Servers that answer as no honest one does, addresses that are none, and keys that are none."""
    key = (("COUNTERFOIL_API_KEY", KEY),)
    ask = ("evaluate", "chat:{address}/v1#m", *PAIRS, *LIGHT, *QUICK)
    fetch = ("benchmarks", "fetch", "sugarcrepe", "--to", "got", "--mirror", "{address}")
    for name, answer in ANSWERS.items():
        yield Hostility("endpoints", f"chat: {name}", ask, answer=answer, environment=key)
    for name, answer in ANSWERS.items():
        if answer not in ("silent", "slow body", "slow headers"):
            yield Hostility("endpoints", f"fetch: {name}", fetch, wanted=REFUSED, answer=answer)
    for address in ADDRESSES:
        command = tuple(f"chat:{address}" if each.startswith("chat:") else each for each in ask)
        yield Hostility("endpoints", f"address {address[:60]!r}", command, wanted=REFUSED, environment=key)
    no = _status(401, '{"error": {"message": "no"}}')
    for odd in ("KEY\n", "\nKEY", "KEY\r\nX: y", "KEY KEY", "KEY\u00e9", "KEY\t", " ", "KEY\x7f"):
        key = (("COUNTERFOIL_API_KEY", odd.replace("KEY", KEY)),)
        yield Hostility("endpoints", f"key {odd!r}", ask, wanted=REFUSED, answer=no, environment=key)


KINDS = {"endpoints": endpoints, "cells": cells, "paths": paths, "outputs": outputs}


def shortcomings(case: Hostility, base: Path, place: Path) -> list[str]:
    """What a case does that it must not, nothing where it holds."""
    home = place / "home"
    shutil.copytree(base, home, symlinks=True)
    folder = home / "work"
    try:
        case.prepare(folder)
        with ExitStack() as held:
            command = case.command
            if case.answer:
                server = held.enter_context(hostile(case.answer, to="http://127.0.0.1:9/"))
                command = tuple(each.replace("{address}", server.address) for each in command)
            for name in ("held", "a/b/held") if case.kind == "outputs" else ():
                found = claim(folder / name, "another")
                assert found is not None
                held.callback(found.release)
            before = states(folder)
            ended, status, _ = in_a_fork(lambda: _run(command, folder, dict(case.environment)))
            after = states(folder)
        # The lock that was left is taken over.
        for each in (before, after):
            each.pop(".killed.lock", None)
        return list(_wrong(case, ended, status, before, after, folder))
    finally:
        shutil.rmtree(home)


def _run(command: tuple[str, ...], folder: Path, environment: dict[str, str]) -> Ended:
    signal.alarm(WALL)
    os.environ |= {"XDG_STATE_HOME": str(folder.parent / "state"), **environment}
    os.environ["XDG_CACHE_HOME"] = str(folder.parent / "cache")
    return run(list(command), folder, patience=WALL)


def _wrong(
    case: Hostility,
    ended: Ended | None,
    status: int,
    before: dict[str, object],
    after: dict[str, object],
    folder: Path,
) -> Iterator[str]:
    if ended is None:
        yield "hangs" if status & 127 == signal.SIGALRM else f"ends by signal {status & 127}"
        return
    if "Hang:" in ended.err:
        yield "hangs"
    if "Traceback" in ended.err:
        yield "traceback"
    if ended.code not in (0, 2):
        yield f"exit code {ended.code}: {(ended.lines or [''])[-1][:200]}"
    if ended.code == 2 and len(ended.lines) != 1:
        yield f"{len(ended.lines)} lines of error"
    if ended.code != 0 and case.wanted == TAKEN:
        yield f"refused: {(ended.lines or [''])[-1][:200]}"
    if ended.code == 0 and case.wanted == REFUSED:
        yield "taken"
    if changed := [name for name in before if after.get(name) != before[name]]:
        yield f"changed: {changed[:3]}"
    # A download that stopped goes on from what is there.
    left = [
        name for name in set(after) - set(before) if not ("fetch" in case.command and name.endswith(".part"))
    ]
    if ended.code and left:
        yield f"left: {sorted(left)[:3]}"
    said = ended.out + ended.err
    if KEY in said:
        yield "shows the key"
    if any(each in said for each in (SECRET, "root:x:0:0", "\x1b[31m", "\x1b[2J")):
        yield "shows a secret, or what a terminal obeys"
    for name in set(after) - set(before):
        with suppress(OSError):
            path = folder / name
            if path.is_file() and any(
                each in path.read_bytes() for each in (SECRET.encode(), b"root:x:0:0", KEY.encode())
            ):
                yield f"a secret in {name}"


def prepared(place: Path) -> Path:
    """The home of the sound folder; every command has run once, so that every fork has all modules."""
    base = place / "base"
    make(base / "work")
    for command in (EVALUATE, SAVE, PUBLISH, CREATE, ASSEMBLE, (*BLIND, "--json", "new.json")):
        shutil.copytree(base, place / "home", symlinks=True)
        ended = run(list(command), place / "home" / "work", patience=1e6)
        assert ended.code == 0, (command, ended.err)
        shutil.rmtree(place / "home")
    return base


def main() -> int:
    """Run the cases; 1 where more than 4 % fall short."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=KINDS, help="one kind alone")
    asked = parser.parse_args()
    cases = [case for kind, of in KINDS.items() if asked.only in (None, kind) for case in of()]
    short = 0
    with tempfile.TemporaryDirectory(prefix="strangers-") as made:
        base = prepared(Path(made))
        for number, case in enumerate(cases, start=1):
            if wrong := shortcomings(case, base, Path(made) / f"case-{number}"):
                short += 1
                line = f"{case.kind}, {case.name}: {'; '.join(wrong)}"
                print(line.encode("utf-8", "backslashreplace").decode())
    print(f"{short} of {len(cases)} fall short ({100 * short / len(cases):.1f} %)")
    return int(short > 0.04 * len(cases))


if __name__ == "__main__":
    sys.exit(main())
