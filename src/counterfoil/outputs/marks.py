"""Marks in files: which command wrote a file, and whether it is still as that command wrote it.

A mark is "counterfoil COMMAND DIGEST", where the digest is that of all other bytes of the file, so a file
that was edited since is no longer the command's own. It stands where the format has a place for remarks:

    HTML, SVG, Markdown   a comment in the last line
    LaTeX, PDF            a comment (%) in the last line
    JSON                  "written_by", the first key of an object; lists have no place for one
    PNG, JPEG             a text chunk before the picture, a comment segment
    Parquet               the file's metadata, with a digest of the columns' names and of the number of rows

CSV, lists in JSON and whatever is not in this table hold no mark.
"""

import hashlib
import re
import struct
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

#: The forms of file that hold a mark, by suffix.
_FORMS = {
    ".html": "html",
    ".htm": "html",
    ".svg": "html",
    ".md": "html",
    ".markdown": "html",
    ".tex": "latex",
    ".latex": "latex",
    ".pdf": "latex",
    ".json": "json",
    ".png": "png",
    ".jpg": "jpeg",
    ".jpeg": "jpeg",
    ".parquet": "parquet",
}
_MARK = rb"counterfoil ([a-z -]+) ([0-9a-f]{32})"
_LAST_LINE = {
    "html": (b"<!-- %s -->\n", re.compile(rb"<!-- " + _MARK + rb" -->\n\Z")),
    "latex": (b"%% %s\n", re.compile(rb"% " + _MARK + rb"\n\Z")),
}
_IN_JSON = re.compile(rb'\A\{\n  "written_by": "' + _MARK + rb'",\n')
_PNG, _PNG_HEADER, _PNG_KEY = b"\x89PNG\r\n\x1a\n", 33, b"tEXtSoftware\0"
_IN_PNG = re.compile(_PNG_KEY + _MARK, re.DOTALL)
_JPEG, _IN_JPEG = b"\xff\xd8", re.compile(_MARK)
_PARQUET_KEY = b"counterfoil.written_by"
#: Files larger than this hold no mark that is looked for: reports and tables are far smaller.
_LARGEST = 1 << 30


def form_of(path: Path) -> str | None:
    """The form of mark that a file of this name holds, None where it holds none.

    >>> form_of(Path("figure.svg")), form_of(Path("table.csv"))
    ('html', None)
    """
    return _FORMS.get(path.suffix.lower())


def marked(content: bytes, form: str, command: str) -> bytes:
    """The content with the mark of `command`; as it is where it has no place for one.

    >>> page = marked(b"<p>ours</p>", "html", "compare")
    >>> page[:30]
    b'<p>ours</p>\\n<!-- counterfoil c'
    >>> writer(page, "html"), writer(page.replace(b"ours", b"mine"), "html")
    ('compare', None)
    """
    if form in _LAST_LINE and not content.endswith(b"\n"):
        content += b"\n"
    mark = f"counterfoil {command} {_digest(content)}".encode()
    if form in _LAST_LINE:
        return content + _LAST_LINE[form][0] % mark
    if form == "json" and content.startswith(b'{\n  "'):
        return b'{\n  "written_by": "' + mark + b'",\n' + content[2:]
    if form == "png" and content.startswith(_PNG):
        return content[:_PNG_HEADER] + _chunk(mark) + content[_PNG_HEADER:]
    if form == "jpeg" and content.startswith(_JPEG):
        at = _after_head(content)
        return content[:at] + _segment(mark) + content[at:]
    return content


def writer(content: bytes, form: str) -> str | None:
    """The command whose mark the content holds, None where it holds none or was changed since."""
    if form in _LAST_LINE:
        found = _LAST_LINE[form][1].search(content[-400:])
        rest = b"" if found is None else content[: len(content) - len(found[0])]
    elif form == "json":
        found = _IN_JSON.match(content[:400])
        rest = b"" if found is None else b"{\n" + content[found.end() :]
    elif form == "png" and content.startswith(_PNG):
        found = _IN_PNG.match(content, _PNG_HEADER + 4)
        size = 0 if found is None else len(_chunk(found[0].removeprefix(_PNG_KEY)))
        rest = content[:_PNG_HEADER] + content[_PNG_HEADER + size :]
    elif form == "jpeg" and content.startswith(_JPEG):
        at = _after_head(content)
        found = _IN_JPEG.match(content, at + 4)
        rest = b"" if found is None else content[:at] + content[found.end() :]
    else:
        return None
    command = "" if found is None else found[1].decode()
    return command if command and marked(rest, form, command) == content else None


def marked_table(table: pa.Table, command: str) -> pa.Table:
    """The table with the mark of `command` among its metadata."""
    mark = f"counterfoil {command} {_layout(table.column_names, table.num_rows)}".encode()
    return table.replace_schema_metadata({**(table.schema.metadata or {}), _PARQUET_KEY: mark})


def writer_of(path: Path, form: str) -> str | None:
    """The command that wrote the file `path`, None where it holds no mark, was changed, or cannot be read."""
    try:
        if form == "parquet":
            about = pq.read_metadata(path)
            names = about.schema.to_arrow_schema().names
            mark = re.fullmatch(_MARK, (about.metadata or {}).get(_PARQUET_KEY, b""))
            whole = mark is not None and mark[2].decode() == _layout(names, about.num_rows)
            return mark[1].decode() if mark is not None and whole else None
        if path.stat().st_size > _LARGEST:
            return None
        return writer(path.read_bytes(), form)
    except (OSError, pa.ArrowException):
        return None


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _layout(names: list[str], rows: int) -> str:
    return _digest(repr((names, rows)).encode())


def _chunk(text: bytes) -> bytes:
    """A text chunk of a PNG: length, kind, key and text, checksum."""
    body = _PNG_KEY + text
    return struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))


def _after_head(content: bytes) -> int:
    """Where the second segment of a JPEG begins: its first one must stay the first."""
    return 4 + int.from_bytes(content[4:6], "big")


def _segment(text: bytes) -> bytes:
    """A comment segment of a JPEG: its marker, its length, the text."""
    return b"\xff\xfe" + struct.pack(">H", len(text) + 2) + text
