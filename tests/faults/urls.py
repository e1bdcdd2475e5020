"""URLs that cannot be read or written: what is wrong, the command that meets them, words of the error.

`{bucket}` stands for a bucket that is there and holds `shards/a.tar`, which is sound.
"""

from typing import Literal, NamedTuple

from faults.command_lines import CANDIDATES, PAIRS, QUADS, TEXTS, TRAIN

#: A server that answers, an address where nothing listens, no credentials, and no package for the scheme.
Surroundings = Literal["server", "unreachable", "no-credentials", "no-package"]


class BadUrl(NamedTuple):
    surroundings: Surroundings
    command: str
    words: str


_IMAGES = f"evaluate pixels:colours {PAIRS.replace('--images photos', '')} pairs --data pairs.csv --images"
_CACHE = "evaluate pixels:colours quads --draws 100 --cache"
_VIDEOS = "captions score --candidates told.json --metrics em-score --backbone hf:./clip --no-cache --videos"
_DATA = f"{TRAIN} --data"
_HELD = f"{TRAIN} --data rows.csv --validation"
_CREATE = "annotate create yes-no --from pairs.csv --images photos"
_NO_BUCKET = "no such bucket; check its name, or make it first"
_DISK = "results are written to a disk, not to a URL"

BAD_URLS: tuple[BadUrl, ...] = (
    *(
        BadUrl(
            "server", f"{command} s3://there-is-none/a{ending}", f"s3://there-is-none/a{ending}: {_NO_BUCKET}"
        )
        for command, ending in ((_DATA, ""), (_DATA, ".tar"), (_HELD, ".tar"), (_IMAGES, ""))
    ),
    BadUrl("server", f"{_CACHE} s3://there-is-none/a", "s3://there-is-none/a"),
    BadUrl("server", f"{_DATA} s3://{{bucket}}/none.tar", "none.tar: no such file; check the URL"),
    BadUrl("server", f"{_DATA} s3://{{bucket}}/shards/{{{{a,b}}}}.tar", "shards/b.tar: no such file"),
    BadUrl("server", f"{_DATA} s3://{{bucket}}/none", "none: no shards at this URL"),
    BadUrl("server", f"{_IMAGES} s3://{{bucket}}/none", "none: no such folder"),
    BadUrl("unreachable", f"{_VIDEOS} s3://bucket/a", "videos are read from a disk; mount the folder"),
    *(
        BadUrl("no-credentials", f"{command} s3://bucket/a{ending}", "no credentials; set AWS_PROFILE")
        for command, ending in ((_DATA, ".tar"), (_IMAGES, ""), (_CACHE, ""))
    ),
    *(
        BadUrl("no-package", f"{command} {scheme}://bucket/a", f"'counterfoil[{extra}]'")
        for command in (_DATA, _IMAGES, _CACHE)
        for scheme, extra in (("s3", "s3"), ("gs", "gcs"))
        if (command, scheme) != (_CACHE, "gs")
    ),
    *(
        BadUrl("unreachable", f"{command} s3://bucket/a{ending}", "cannot be reached")
        for command, ending in ((_DATA, ".tar"), (_IMAGES, ""), (_CACHE, ""))
    ),
    BadUrl("unreachable", f"{_CACHE} gs://bucket/a", "given: gcs; allowed: a folder, s3://"),
    *(
        BadUrl("unreachable", f"{command} ftp://host/a", "given: ftp; allowed: a folder, s3")
        for command in (_DATA, _HELD, _IMAGES, _CACHE)
    ),
    BadUrl("unreachable", f"{_DATA} memory://none/a.tar", "memory://none/a.tar: no such file"),
    BadUrl("unreachable", f"{_IMAGES} memory://none/a", "memory://none/a: no such folder"),
    BadUrl("unreachable", f"{_IMAGES} file:///none/a", "given: file; allowed: a folder, s3"),
    # What is read from a disk alone.
    BadUrl(
        "unreachable",
        f"evaluate blind:length pairs --data memory://a/pairs.csv {PAIRS}",
        "memory://a/pairs.csv: the data of benchmarks are read from a disk; mount the folder",
    ),
    BadUrl(
        "unreachable", f"{CANDIDATES} s3://a/c.json", "s3://a/c.json: no such file; it is read from a disk"
    ),
    BadUrl("unreachable", f"{TRAIN} --data rows.csv --regions s3://a/b", "s3://a/b: no such file or folder"),
    # What is written to a disk alone.
    *(
        BadUrl("unreachable", f"{command} {option} memory://a/{name}", f"memory://a/{shown or name}: {_DISK}")
        for command, option, name, shown in (
            (QUADS, "--out", "run", "run/quads"),
            (QUADS, "--json", "x.json", ""),
            (f"{TRAIN.replace('--out new', '')} --data rows.csv", "--out", "run", ""),
            (TEXTS, "--out", "x.csv", ""),
            ("pool galleries/g1 galleries/g2 --k 3", "--out", "x.csv", ""),
            ("world build quads --n 2 --size 32", "--out", "made", ""),
            ("build bivlc --n 7 --no-cache", "--out", "made", ""),
            (_CREATE, "--out", "made", "made/.counterfoil-unfinished"),
            ("compare runs/a runs/b --draws 100", "--html", "x.html", ""),
            ("benchmarks save pairs --data pairs.csv --images photos", "--out", "made", ""),
        )
    ),
)
