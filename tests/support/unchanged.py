"""Files that must stay as they are: what a folder holds, before and after a block."""

import hashlib
import os
from contextlib import contextmanager
from pathlib import Path


def digests(folder):
    """Every file in a folder, by its path in it: the digest of its bytes; of links, where they lead."""
    result = {}
    for above, folders, files in os.walk(folder):
        for name in [*files, *folders]:
            path = Path(above, name)
            if path.is_symlink():
                result[str(path.relative_to(folder))] = f"link to {os.readlink(path)}"
            elif path.is_file():
                result[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return result


def changed(before, after):
    """What was there before and is not as it was: gone, or of other bytes."""
    return sorted(name for name, digest in before.items() if after.get(name) != digest)


@contextmanager
def unchanged(folder, *, new=True):
    """That no file in `folder` is changed or removed in the block; with `new=False` none is added either.

    >>> import tempfile; folder = Path(tempfile.mkdtemp()); _ = (folder / "a").write_text("mine")
    >>> with unchanged(folder):
    ...     _ = (folder / "b").write_text("new")
    >>> with unchanged(folder):
    ...     _ = (folder / "a").write_text("replaced")
    Traceback (most recent call last):
    AssertionError: files of others were changed: ['a']
    """
    before = digests(folder)
    yield
    after = digests(folder)
    lost = changed(before, after)
    if lost:
        raise AssertionError(f"files of others were changed: {lost}")
    added = sorted(set(after) - set(before))
    if added and not new:
        raise AssertionError(f"files were added: {added}")
