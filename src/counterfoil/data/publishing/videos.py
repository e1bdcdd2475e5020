"""Videos in a release: files that keep their bytes, and the seconds of them that a question looks at.

`datasets` reads a struct of bytes and a name as a video (`datasets.Video`), which it decodes with torchcodec;
`Video(decode=False)` gives the bytes.
"""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.forms.release import FormRelease, ReleaseColumn, ReleaseTable
from counterfoil.data.records import BytesSource, FileSource, Image
from counterfoil.data.videos import Video
from counterfoil.errors import DataError


def with_videos(benchmark: Benchmark, release: FormRelease) -> FormRelease:
    """The release with its columns of images as videos; itself where the benchmark has no video.

    A column X of videos that are parts of their files gets columns X_start and X_end, in seconds, null where
    a part begins or ends as its file. Raises `DataError` for videos that are no files (frames, features),
    for parts of the frame, and where there are pictures as well.
    """
    videos = [image for image in benchmark.images if isinstance(image, Video)]
    if not videos:
        return release
    _check(benchmark, videos)
    tables = tuple(replace(each, columns=_columns(benchmark.images, each)) for each in release.tables)
    return replace(release, tables=tables)


def _check(benchmark: Benchmark, videos: Sequence[Video]) -> None:
    if len(videos) < len(benchmark.images):
        raise DataError(
            "pictures and videos cannot be published in one column",
            where=benchmark.name,
            given=f"{len(videos):,} videos, {len(benchmark.images) - len(videos):,} pictures",
            hint="'counterfoil save' writes a folder with both",
        )
    for video in videos:
        wrong = ""
        if video.source is not None and not isinstance(video.source, FileSource | BytesSource):
            wrong = "a video that is no file cannot be published"
        elif video.crop is not None:
            wrong = "a video that is a part of its frames cannot be published"
        if wrong:
            raise DataError(
                wrong,
                where=f"{benchmark.name}, video '{video.id}'",
                allowed="files of videos, whole or from one second to another",
                hint="'counterfoil save' writes a folder of any videos",
            )


def _columns(images: Sequence[Image], table: ReleaseTable) -> dict[str, ReleaseColumn]:
    found: dict[str, ReleaseColumn] = {}
    for name, column in table.columns.items():
        if column.kind != "image":
            found[name] = column
            continue
        found[name] = ReleaseColumn("video", column.values, column.about.replace("image", "video"))
        for end in ("start", "end"):
            seconds = [None if at < 0 else getattr(images[at], end) for at in column.values.tolist()]
            if any(each is not None for each in seconds):
                about = f"The second of the file at which `{name}` {end}s; null where the file does."
                found[f"{name}_{end}"] = ReleaseColumn("value", pa.array(seconds, pa.float64()), about)
    return found
