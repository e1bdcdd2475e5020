"""Videos in a folder, by name: as files, as folders of frames, or as frames that a model has embedded."""

import os
from collections.abc import Iterable
from pathlib import Path

from counterfoil.data.records import FileSource, Source
from counterfoil.data.videos import FrameFeatures, FrameFolder
from counterfoil.errors import DataError

#: Video files by the end of their names, in the order in which they are looked for.
VIDEOS = (".mp4", ".avi", ".mkv", ".webm", ".mov", ".gif")
#: Files of frames that a model has embedded.
FEATURES = (".npy", ".pt")


def find(folder: Path, ids: Iterable[str]) -> dict[str, Source | FrameFeatures]:
    """Where the videos of these ids are: files of that name in `folder`, folders of frames, frame features.

    A name may carry its ending already. Of several things of one name the first of these is taken: `VIDEOS`
    in their order, a folder of pictures, `FEATURES`. Videos that are not there are left out. Raises
    `DataError` where there is no such folder, and where none of them is in it.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "v_1.mp4").touch(); (folder / "v_2.npy").touch()
    >>> [type(source).__name__ for source in find(folder, ["v_1", "v_2", "v_3"]).values()]
    ['FileSource', 'FrameFeatures']
    """
    if not folder.is_dir():
        raise DataError("no such folder of videos", where=folder, hint="check the path given with --images")
    asked = tuple(dict.fromkeys(ids))
    there = set(os.listdir(folder))
    found: dict[str, Source | FrameFeatures] = {}
    for name in asked:
        source = _found(folder, name, there)
        if source is not None:
            found[name] = source
    if asked and not found:
        raise DataError(
            f"none of the {len(asked):,} videos is in this folder",
            where=folder,
            hint=f"it should hold {asked[0]} with one of {', '.join((*VIDEOS, *FEATURES))}, or its frames",
        )
    return found


def _found(folder: Path, name: str, there: set[str]) -> Source | FrameFeatures | None:
    if name in there and name.lower().endswith(VIDEOS):
        return FileSource(folder / name)
    if name in there and name.lower().endswith(FEATURES):
        return FrameFeatures(folder / name)
    for ending in VIDEOS:
        for written in (ending, ending.upper()):
            if name + written in there:
                return FileSource(folder / (name + written))
    if name in there and (folder / name).is_dir():
        return FrameFolder(folder / name)
    for ending in FEATURES:
        if name + ending in there:
            return FrameFeatures(folder / (name + ending))
    return None
