"""Pictures are opened in one place, by a list of formats."""

import ast
from pathlib import Path

import counterfoil

SOURCES = Path(counterfoil.__file__).parent


def _opens(tree):
    """The lines on which something calls `open` of Pillow's `Image`, or takes it from there."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "open":
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if name == "Image" or name.endswith("ImageFile"):
                found.append(node.lineno)
        if isinstance(node, ast.ImportFrom) and node.module == "PIL.Image":
            found += [node.lineno for each in node.names if each.name == "open"]
    return found


def test_no_other_module_opens_pictures():
    own = SOURCES / "inputs" / "pictures.py"
    files = [path for path in SOURCES.rglob("*.py") if path != own]
    assert len(files) > 300
    opened = {
        str(path.relative_to(SOURCES)): lines
        for path in files
        if (lines := _opens(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert opened == {}
    assert len(_opens(ast.parse(own.read_text(encoding="utf-8")))) == 1
