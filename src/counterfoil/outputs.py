"""Outputs of a command and their marks: none is a file that it reads, none replaces what it did not write.

A command declares what it will write and what it reads before any work is done (`Outputs.file`,
`Outputs.folder`). While it runs, `store.writing` asks the same guard, so that a file which was not declared
cannot take the place of one that is read either. Two paths are one file where the system says so (links,
other spellings, case where the disk ignores it) or where they resolve to the same path.

An output is claimed as soon as it is declared (`counterfoil.claims`), until the command ends.

A mark in a file says which command wrote it, and whether it is still as that command wrote it. It is
"counterfoil COMMAND DIGEST", where the digest is that of all other bytes of the file, so a file that was
edited since is no longer the command's own. It stands where the format has a place for remarks:

    HTML, SVG, Markdown   a comment in the last line
    LaTeX, PDF            a comment (%) in the last line
    JSON                  "written_by", the first key of an object; lists have no place for one
    PNG, JPEG             a text chunk before the picture, a comment segment
    Parquet               the file's metadata, with a digest of the columns' names and of the number of rows

CSV, lists in JSON and whatever is not in this table hold no mark.
"""

import hashlib
import os
import re
import stat
import struct
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from counterfoil.claims import OutputLock, claim, sweep
from counterfoil.errors import InputError

#: Advice where a file is in the way.
_ANOTHER_FILE = "name another file"
_ANOTHER_FOLDER = "name another folder"


@dataclass(frozen=True)
class Folder:
    """A folder that a command writes files into.

    `names` are patterns of what is written there. `whose` says of a folder that holds some of them why it is
    not the command's own, None where it is; a folder that holds none of them is free, unless `alone`: then it
    must hold nothing else at all.
    """

    path: Path
    names: tuple[str, ...]
    whose: Callable[[Path], str | None]
    alone: bool = False


@dataclass(eq=False)
class Outputs:
    """What `command` writes and reads; `overwrite` where the user asked to replace what is not its own."""

    command: str
    overwrite: bool = False
    reads: list[Path] = field(default_factory=list)
    _files: dict[Path, str | None] = field(default_factory=dict)
    _folders: list[Folder] = field(default_factory=list)
    _claims: dict[Path, OutputLock | None] = field(default_factory=dict)

    def read(self, *paths: Path) -> None:
        """Add files and folders that the command reads, those that exist, and check all outputs again.

        Raises `InputError` where one of the outputs would replace one of them.
        """
        self.reads += [path for path in paths if path.exists()]
        for path in self._files:
            self._check_input(path, ours=self._own(path))
        for folder in self._folders:
            self._check_folder_input(folder)

    def file(self, path: Path, form: str | None = None) -> None:
        """Declare a file; `form` is how it holds a mark (`form_of`), None where it holds none.

        Raises `InputError` where the file is read by the command, is another output too, is no regular file,
        is being written by another process, or was written by anything but this command.
        """
        real = _real(path)
        if os.path.lexists(real) and not stat.S_ISREG(os.lstat(real).st_mode):
            raise InputError(
                "not a regular file, so nothing is written to it",
                where=path,
                hint="name a file, or - for standard output where the option allows it",
            )
        if any(_alike(real, other) for other in self._files):
            raise InputError("two results would be written to one file", given=str(path), hint="name another")
        for folder in self._folders:
            self._check_apart(real, path, folder)
        self._files[real] = form
        self._claim(real)
        ours = self._own(real)
        self._check_input(path, ours=ours)
        if real.exists() and not ours and not self.overwrite:
            since = f" and is not as 'counterfoil {self.command}' wrote it" if form is not None else ""
            raise InputError(
                f"the file exists{since}",
                where=path,
                hint=f"{_ANOTHER_FILE}, or replace it with --overwrite",
            )

    def folder(self, folder: Folder) -> None:
        """Declare a folder.

        Raises `InputError` where the command reads it or files in it that would be replaced, where it holds
        files of these names that are not the command's own, where two outputs would be one file, and where
        another process is writing there.
        """
        path, real = folder.path, _real(folder.path)
        if any(_alike(real, _real(other.path)) for other in self._folders):
            raise InputError("two results would be written to one folder", given=str(path))
        self._folders.append(folder)
        for file in self._files:
            self._check_apart(file, file, folder)
        self._claim(real, folder)
        self._check_folder_input(folder)
        why = self._why_foreign(folder)
        if why is not None and not self.overwrite:
            raise InputError(why, where=path, hint=f"{_ANOTHER_FOLDER}, or replace it with --overwrite")

    def claim(self) -> None:
        """Claim all that is declared; raises `InputError` where another process is writing there."""
        for file in self._files:
            self._claim(file)
        for folder in self._folders:
            self._claim(_real(folder.path), folder)

    def release(self) -> None:
        """Give back what was claimed."""
        while self._claims:
            _, held = self._claims.popitem()
            if held is not None:
                held.release()

    def check_write(self, path: Path) -> None:
        """Raise `InputError` where writing `path` would replace a file that the command reads."""
        if any(_same(path, source) for source in self.reads if not source.is_dir()):
            raise _is_read(path, path)

    def mark_of(self, path: Path) -> str | None:
        """The form of mark that the file gets, None where it was not declared or holds none."""
        return self._files.get(_real(path))

    def _claim(self, real: Path, folder: Folder | None = None) -> None:
        # A guard that is not active yet claims when it is; one that never is writes nothing.
        if _active is not self or real in self._claims:
            return
        held = self._claims[real] = claim(real, self.command)
        if held is not None:
            sweep(real, () if folder is None else folder.names)

    def _own(self, path: Path) -> bool:
        form = self._files.get(_real(path))
        return form is not None and path.is_file() and writer_of(path, form) == self.command

    def _check_input(self, path: Path, *, ours: bool) -> None:
        real = _real(path)
        for source in self.reads:
            if _same(real, source):
                raise _is_read(path, source)
            if source.is_dir() and real.exists() and not ours and _within(real, source):
                raise _is_read(path, source)

    def _check_folder_input(self, folder: Folder) -> None:
        real = _real(folder.path)
        foreign = self._why_foreign(folder) is not None
        for source in self.reads:
            if _same(real, source) or (foreign and source.is_dir() and _within(real, source)):
                raise _is_read(folder.path, source, _ANOTHER_FOLDER)
            place = _real(source)
            if _within(place, real):
                name = place.relative_to(real).parts[0]
                if folder.alone or any(fnmatch(name, pattern) for pattern in folder.names):
                    raise _is_read(folder.path, source, _ANOTHER_FOLDER)
        for path in _there(folder):
            if any(_same(path, source) for source in self.reads if not source.is_dir()):
                raise _is_read(path, path, _ANOTHER_FOLDER)

    def _check_apart(self, real: Path, path: Path, folder: Folder) -> None:
        """Raise where a file is one of those that are written into the folder, or the folder itself."""
        place = _real(folder.path)
        inside = real.parent == place and any(fnmatch(real.name, pattern) for pattern in folder.names)
        if inside or _alike(real, place):
            raise InputError("two results would be written to one file", given=str(path), hint="name another")

    def _why_foreign(self, folder: Folder) -> str | None:
        if not folder.path.is_dir():
            return None
        if _there(folder):
            return folder.whose(folder.path)
        # Partial files and locks of a machine that stopped while writing are no obstacle.
        names = [each.name for each in folder.path.iterdir()] if folder.alone else []
        others = [name for name in names if not (name.startswith(".") and name.endswith((".part", ".lock")))]
        return f"the folder holds other files ({', '.join(sorted(others)[:3])})" if others else None


_active: Outputs | None = None


@contextmanager
def guarding(outputs: Outputs) -> Iterator[Outputs]:
    """Make `outputs` the active guard until the block ends, with all that it declares claimed."""
    global _active
    before, _active = _active, outputs
    try:
        outputs.claim()
        yield outputs
    finally:
        _active = before
        if before is not outputs:
            outputs.release()


@contextmanager
def each_guarded() -> Iterator[None]:
    """A block of several jobs, one of which reads what another wrote: each has a guard of its own."""
    global _active
    before, _active = _active, None
    try:
        yield
    finally:
        _active = before


def active_outputs() -> Outputs | None:
    """The guard of the command that runs, None outside of one."""
    return _active


def overwriting() -> bool:
    """Whether the command that runs was asked to replace what is not its own."""
    return _active is not None and _active.overwrite


def existing_paths(texts: Iterable[object]) -> list[Path]:
    """The files and folders that arguments name, alone or after a kind, a key or an architecture.

    >>> here = Path(__file__)
    >>> existing_paths([f"given:{here}", f"data={here}", "bivlc-and-no-file"]) == [here]
    True
    """
    found: dict[Path, Path] = {}
    for text in texts:
        for name in _names(str(text)):
            try:
                if name and Path(name).exists():
                    found.setdefault(_real(Path(name)), Path(name))
            except (OSError, ValueError):  # too long, or with a character that no name has
                continue
    return list(found.values())


def _names(text: str) -> Iterator[str]:
    yield text
    for sign in ":=":
        _, found, rest = text.partition(sign)
        if found:
            yield rest
            yield rest.partition("@")[0]
            # What follows an architecture: ViT-B-32/weights/best.pt.
            while "/" in rest:
                rest = rest.partition("/")[2]
                yield rest


def _there(folder: Folder) -> list[Path]:
    """What lies in the folder under one of its names."""
    if not folder.path.is_dir():
        return []
    return [
        path
        for path in sorted(folder.path.iterdir())
        if any(fnmatch(path.name, pattern) for pattern in folder.names)
    ]


def _is_read(path: Path, source: Path, hint: str = _ANOTHER_FILE) -> InputError:
    where = "" if _same(path, source) else f" (in {source})"
    return InputError(f"would replace what this command reads{where}", where=path, hint=hint)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _same(path: Path, other: Path) -> bool:
    """Whether two paths are one file or folder."""
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):
        return _real(path) == _real(other)


def _alike(path: Path, other: Path) -> bool:
    """Whether two resolved paths are one file, or would be on a disk that ignores case."""
    return _same(path, other) or _folded(path) == _folded(other)


def _folded(path: Path) -> str:
    return unicodedata.normalize("NFC", str(path)).casefold()


def _within(path: Path, folder: Path) -> bool:
    """Whether a path lies somewhere in a folder, by the system's own account of which folder that is."""
    return any(_same(parent, folder) for parent in _real(path).parents)


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
