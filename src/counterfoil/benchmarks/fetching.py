"""Files of a release, downloaded: whole or not at all, resumed where they stopped, checked before they count.

`downloads.toml` pins them to commits and checksums. `fetched.json` is written last: a folder without it, or
whose files have other sizes, does not count as fetched.
"""

import http.client
import json
import os
import tomllib
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatch
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from counterfoil import __version__
from counterfoil.benchmarks.benchmark import catalog
from counterfoil.claims import claimed
from counterfoil.errors import DataError, InputError, StorageError, UnknownNameError
from counterfoil.inputs.fields import secret
from counterfoil.inputs.files import read_bytes, regular, sha256_file
from counterfoil.store import check_writable, storage_error, write_text

#: Where the files of each kind of repository are served from; `--mirror` puts another address in its place.
HOSTS = {"github": "https://raw.githubusercontent.com", "hub": "https://huggingface.co"}


class ReleasedFile(BaseModel, frozen=True, extra="forbid"):
    """One file of a release: its path in the repository, its size in bytes and its SHA-256 where known."""

    path: str
    #: What it is called here; the last part of its path where empty.
    name: str = ""
    size: int | None = None
    sha256: str = ""

    @property
    def target(self) -> str:
        """The name of the file in the folder it is fetched to."""
        return self.name or self.path.rsplit("/", 1)[-1]


class Release(BaseModel, frozen=True, extra="forbid"):
    """The files of one repository at one commit; an empty `revision` means that none is known."""

    name: str
    title: str
    host: Literal["github", "hub"] = "github"
    repository: str
    revision: str = ""
    #: The benchmarks that are read from the folder once it is fetched.
    serves: tuple[str, ...] = ()
    #: Further requirements, in words.
    needs: str = ""
    files: tuple[ReleasedFile, ...] = ()
    #: Of a data set of the hub, which of its files are wanted, as a pattern of their paths.
    select: str = ""


@cache
def releases() -> dict[str, Release]:
    """Every release by name, in the order of the file."""
    text = files("counterfoil.benchmarks").joinpath("downloads.toml").read_text(encoding="utf-8")
    cards, by_name = catalog("counterfoil.benchmarks"), {}
    for name, row in tomllib.loads(text).items():
        facts: dict[str, Any] = {"serves": [name] if name in cards else [], **row}
        if "select" in row:
            card = cards[facts["serves"][0]]
            facts |= {"host": "hub", "repository": card["hub"], "revision": card.get("revision", "")}
        by_name[name] = Release(name=name, **facts)
    return by_name


def release(name: str) -> Release:
    """The release called `name`, or the one that serves the benchmark `name`."""
    all_releases = releases()
    match = all_releases.get(name) or serving(name)
    if match is None:
        raise UnknownNameError("release", name, all_releases)
    return match


def serving(benchmark: str) -> Release | None:
    """The release whose files the benchmark called `benchmark` is read from, None where there is none."""
    return next((listed for listed in releases().values() if benchmark in listed.serves), None)


#: What a folder of fetched files says about them.
RECORD = "fetched.json"

_BLOCK = 1 << 18
#: Bytes at most of a file whose size is not pinned.
_MOST = 64 << 30
#: How often a connection that broke is opened again, and seconds without an answer.
_TRIES, _TIMEOUT = 4, 30.0
#: What goes wrong on a connection.
_BROKEN = (ConnectionError, TimeoutError, http.client.HTTPException)
_GATED = "the data set is gated: accept its licence and set HF_TOKEN, or 'hf auth login'"
_MOVED = "the file has moved: give another address with --mirror, or the files with --data"

Progress = Callable[[str, int, int], None]


class FetchedFile(BaseModel, frozen=True, extra="forbid"):
    """One file as it was fetched; `pinned` tells whether its checksum was known before."""

    size: int
    sha256: str
    pinned: bool


class Record(BaseModel, frozen=True, extra="forbid"):
    """What `fetched.json` holds."""

    release: str
    repository: str
    revision: str
    address: str
    fetched: str
    files: dict[str, FetchedFile]


@dataclass(frozen=True)
class Fetched:
    """What `fetch` did: the folder, the commit, and which files are new, were there, or lack a checksum."""

    folder: Path
    revision: str
    new: tuple[str, ...]
    present: tuple[str, ...]
    unpinned: tuple[str, ...]
    digests: Mapping[str, str]


def fetched(release: Release, folder: Path) -> Path | None:
    """The folder in `folder` with all files of `release`, None where they were not fetched whole."""
    place = folder / release.name
    files = _recorded(place, None)
    sizes = {place / name: file.size for name, file in files.items()}
    whole = all(path.is_file() and path.stat().st_size == size for path, size in sizes.items())
    return place if files and whole else None


def fetch(
    release: Release,
    folder: Path,
    *,
    mirror: str | None = None,
    token: str | None = None,
    overwrite: bool = False,
    progress: Progress = lambda what, done, total: None,
) -> Fetched:
    """The files of `release` in `folder`/NAME, from its host or from `mirror` (an address in its place).

    Files of another checksum are replaced only where `fetch` itself wrote them, or with `overwrite`.
    """
    base = (mirror or HOSTS[release.host]).rstrip("/")
    if not urllib.parse.urlsplit(base).scheme.startswith("http"):
        allowed = "http://... or https://..."
        raise InputError("not an address", where="--mirror", given=mirror, allowed=allowed)
    place, token = folder / release.name, token if mirror is None else None
    check_writable(place, folder=True)
    with claimed(place, "benchmarks fetch", (RECORD,)):
        revision, files = _listed(release, base, token)
        source = f"{release.repository}/{revision}"
        if release.host == "hub":
            source = f"datasets/{release.repository}/resolve/{revision}"
        # A file without a pinned checksum keeps the one that it had when it was first fetched.
        recorded, first = _recorded(place, None), _recorded(place, revision)
        new, records = [], {}
        for file in files:
            path = place / file.target
            expected = file.sha256 or (first[file.target].sha256 if file.target in first else "")
            recorded_digest = recorded[file.target].sha256 if file.target in recorded else None
            digest = _present(path, expected, recorded_digest, overwrite)
            if digest is None:
                address = f"{base}/{source}/{urllib.parse.quote(file.path)}"
                digest = _download(address, path, file, token, progress)
                new.append(file.target)
            size, pinned = path.stat().st_size, bool(file.sha256)
            records[file.target] = FetchedFile(size=size, sha256=digest, pinned=pinned)
        record = Record(
            release=release.name,
            repository=release.repository,
            revision=revision,
            address=base,
            fetched=f"{datetime.now(UTC).isoformat(timespec='seconds')} by counterfoil {__version__}",
            files=records,
        )
        write_text(place / RECORD, record.model_dump_json(indent=2) + "\n")
    return Fetched(
        place,
        revision,
        new=tuple(new),
        present=tuple(name for name in records if name not in new),
        unpinned=tuple(name for name, one in records.items() if not one.pinned),
        digests={name: one.sha256 for name, one in records.items()},
    )


def _recorded(place: Path, revision: str | None) -> Mapping[str, FetchedFile]:
    """The files in a folder by its record, those of `revision` alone where one is given."""
    try:
        record = Record.model_validate_json(read_bytes(place / RECORD))
    except (DataError, ValidationError):
        return {}
    return record.files if revision in (None, record.revision) else {}


def _present(path: Path, expected: str, ours: str | None, overwrite: bool) -> str | None:
    """The digest of a file that is there as expected; None where it is to be fetched."""
    if not path.exists():
        return None
    regular(path)
    digest = sha256_file(path)
    if expected and digest == expected:
        return digest
    if digest != ours and not overwrite:
        what = "another file of that name" if expected else "a file of that name already"
        hint = "move it away, choose another folder with --to, or say --overwrite"
        raise InputError(f"there is {what}", where=path, hint=hint)
    return None


def _listed(release: Release, base: str, token: str | None) -> tuple[str, tuple[ReleasedFile, ...]]:
    """The commit and the files; of a data set of the hub they are asked for, with their checksums."""
    if release.host != "hub":
        return release.revision, release.files
    address = f"{base}/api/datasets/{release.repository}/revision/{release.revision or 'main'}?blobs=true"
    listed = []
    with _open(address, token) as answer:
        try:
            repository: Any = json.loads(answer.read(32 << 20))
            revision = str(repository["sha"])
            for entry in repository["siblings"]:
                path, facts = str(entry["rfilename"]), entry.get("lfs") or entry
                if fnmatch(path, release.select):
                    digest = str(facts.get("sha256") or "")
                    listed.append(ReleasedFile(path=path, name=path, size=facts.get("size"), sha256=digest))
        except (ValueError, KeyError, TypeError, AttributeError, http.client.HTTPException, OSError) as error:
            raise DataError(f"no list of a data set's files: {error}", where=address) from None
    for file in listed:
        if Path(file.path).is_absolute() or ".." in Path(file.path).parts:
            raise DataError("a file outside the folder", where=address, given=file.path)
    if not listed:
        raise DataError("the data set has no such files", where=address, allowed=release.select)
    if release.revision and revision != release.revision:
        what = "another commit than the pinned one"
        raise DataError(what, where=address, given=revision, allowed=release.revision)
    return revision, tuple(listed)


def _download(address: str, path: Path, file: ReleasedFile, token: str | None, progress: Progress) -> str:
    """The file at `address` as `path`, once it is whole and right; its SHA-256."""
    part = path.with_name(f"{path.name}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in reversed(range(_TRIES)):
        try:
            _continue(address, part, file, token, progress)
            break
        except _BROKEN as error:
            if not left:
                what = f"the connection broke {_TRIES} times: {error}"
                hint = "run it again: it goes on where it stopped"
                raise DataError(what, where=address, hint=hint) from None
    size, digest = part.stat().st_size, sha256_file(part)
    if (file.size is not None and size != file.size) or (file.sha256 and digest != file.sha256):
        part.unlink()
        pinned = f"{file.size:,} bytes, " if file.size is not None else ""
        what, given = "not the file that was pinned", f"{size:,} bytes, sha256 {digest}"
        hint = "was it changed on the way? nothing was kept"
        allowed = f"{pinned}sha256 {file.sha256 or 'any'}"
        raise DataError(what, where=address, given=given, allowed=allowed, hint=hint)
    try:
        with open(part, "rb") as written:
            os.fsync(written.fileno())
        os.replace(part, path)
    except OSError as error:
        raise storage_error(path, error) from None
    return digest


def _continue(address: str, part: Path, file: ReleasedFile, token: str | None, progress: Progress) -> None:
    """Append to `part` what is missing; from the start where the server does not serve parts of files."""
    if part.is_symlink() or (part.exists() and not part.is_file()):
        raise StorageError("is no file of a download", where=part, hint="move it away")
    # Where nothing says how long it should be, nothing would show that it ended where it did.
    have = part.stat().st_size if part.is_file() and file.size is not None else 0
    most = _MOST if file.size is None else file.size
    if have >= most:
        return
    with _open(address, token, have) as answer:
        if answer.status != 206:
            have = 0
        left = answer.headers.get("Content-Length", "")
        total = have + int(left) if left.isdecimal() else file.size or 0
        try:
            with open(part, "ab" if have else "wb") as out:
                while block := answer.read(_BLOCK):
                    out.write(block)
                    have += len(block)
                    if have > most:
                        part.unlink()
                        what = "larger than the file that was pinned"
                        raise DataError(what, where=address, allowed=f"{most:,} bytes")
                    progress(file.target, have, max(total, have))
        except _BROKEN:
            raise
        except OSError as error:
            raise storage_error(part, error) from None
    if left.isdecimal() and have < total:
        raise ConnectionError(f"{have:,} of {total:,} bytes came")


def hub_token() -> str | None:
    """HF_TOKEN, else the token that 'hf auth login' keeps; None without either."""
    file = Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser() / "token"
    return os.environ.get("HF_TOKEN") or (file.read_text("utf-8").strip() if file.is_file() else None)


def _open(address: str, token: str | None, start: int = 0) -> Any:
    request = urllib.request.Request(address, headers={"User-Agent": f"counterfoil/{__version__}"})
    if token and address.startswith(f"{HOSTS['hub']}/"):
        # Not passed on where the host redirects to another one.
        request.add_unredirected_header("Authorization", f"Bearer {secret(token, where='HF_TOKEN')}")
    if start:
        request.add_header("Range", f"bytes={start}-")
    hint: str | None = "is there a network? another address goes with --mirror"
    try:
        return urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        # The error is the open answer.
        error.close()
        reason, hint = f"{error.code} {error.reason}", {401: _GATED, 403: _GATED, 404: _MOVED}.get(error.code)
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = str(getattr(error, "reason", error))
    raise DataError(f"cannot be fetched: {reason}", where=address, hint=hint)
