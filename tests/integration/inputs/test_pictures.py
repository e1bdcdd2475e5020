"""Pictures are opened in one place, by a list of formats: none starts a program."""

import ast
import io
import re
from pathlib import Path

import numpy as np
import PIL.features
import PIL.Image
import pytest

import counterfoil
from counterfoil.benchmarks.records import FileSource, Image, decode
from counterfoil.inputs.pictures import FORMATS, open_picture
from refusals import refuses

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n%%EOF\n"


def test_postscript_is_no_picture(tmp_path, monkeypatch):
    # A program called gs notes that it was started.
    program, noted = tmp_path / "bin" / "gs", tmp_path / "started"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {noted}\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    (tmp_path / "x.png").write_bytes(EPS)
    refuses("not an image file", Image("x", FileSource(tmp_path / "x.png")).decode)
    assert not noted.exists()


@pytest.mark.parametrize("kind", FORMATS)
def test_formats_of_this_field_are_read(kind):
    PIL.Image.init()
    if kind not in PIL.Image.SAVE:
        pytest.skip(f"this Pillow writes no {kind}")
    buffer = io.BytesIO()
    try:
        PIL.Image.fromarray(np.full((8, 8, 3), 80, np.uint8)).save(buffer, format=kind)
    except OSError as error:
        pytest.skip(f"this Pillow writes no {kind}: {error}")
    buffer.seek(0)
    assert open_picture(buffer).format == kind
    assert decode(buffer.getvalue(), where="a picture").size == (8, 8)


@pytest.mark.parametrize(("kind", "name"), [("PNG", "png"), ("TIFF", "tiff"), ("PPM", "pgm")])
def test_grey_levels_of_16_bits_are_not_cut_at_255(kind, name):
    levels = np.arange(0, 65536, 1024, dtype=np.uint16).reshape(8, 8)
    buffer = io.BytesIO()
    PIL.Image.fromarray(levels).save(buffer, format=kind)
    result = np.asarray(decode(buffer.getvalue(), where=name))
    assert np.array_equal(result, np.repeat((levels // 256).astype(np.uint8)[..., None], 3, axis=2))


SOURCES = Path(counterfoil.__file__).parent


def _opens(tree):
    """The lines on which something calls `open` of Pillow's `Image`, or takes it from there."""
    result = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "open":
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if name == "Image" or name.endswith("ImageFile"):
                result.append(node.lineno)
        if isinstance(node, ast.ImportFrom) and node.module == "PIL.Image":
            result += [node.lineno for item in node.names if item.name == "open"]
    return result


def test_no_other_module_opens_pictures():
    own = SOURCES / "inputs" / "pictures.py"
    files = [path for path in SOURCES.rglob("*.py") if path != own]
    assert len(files) > 300
    texts = {path: path.read_text(encoding="utf-8") for path in (own, *files)}
    # Only what names it is parsed.
    named = re.compile(r"(Image|ImageFile)(\.open| import)")
    assert [path for path, text in texts.items() if named.search(text) and _opens(ast.parse(text))] == [own]
