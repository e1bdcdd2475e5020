"""The package of `examples/plugin` as an installer leaves it: modules, and entry points beside them."""

import tomllib
from pathlib import Path

PLUGIN = Path(__file__).resolve().parents[2] / "examples" / "plugin"


def install(site):
    """Put the package into the folder `site`, which is made."""
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in points.items())]
    info = site / "counterfoil_example-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: counterfoil-example\nVersion: 1.0\n")
    (site / "counterfoil_example").symlink_to(PLUGIN / "counterfoil_example")
    return site
