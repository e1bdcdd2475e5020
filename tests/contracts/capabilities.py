"""The table of what users can do, drawn from the code.

`python -m contracts.capabilities` (in `tests`) writes it to `docs/capabilities.md`, whose difference between
two versions is what came and what went.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import counterfoil
from counterfoil import catalog
from counterfoil.annotate.forms.registry import WORK_FORMS
from counterfoil.annotate.platforms.registry import PLATFORMS
from counterfoil.benchmarks.forms import FORMS
from counterfoil.benchmarks.tables import EXTENSIONS
from counterfoil.build.pipeline import shipped
from counterfoil.build.steps.registry import STEPS
from counterfoil.cli import app
from counterfoil.inputs.pictures import FORMATS
from counterfoil.metrics.measures import every
from counterfoil.models.captions.registry import METRICS
from counterfoil.models.registry import SCORERS
from counterfoil.models.settings import described
from counterfoil.train.recipes import RECIPES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "capabilities.md"


def commands(command: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Every command below one, with its arguments and options in one line."""
    if hasattr(command, "rows"):
        for part in {*command.list_commands(None), *command.rows}:
            yield from commands(command.get_command(None, part), f"{name} {part}".strip())
        return
    options = [
        max(parameter.opts, key=len) if parameter.param_type_name == "option" else parameter.name.upper()
        for parameter in command.params
        if not getattr(parameter, "hidden", False) and parameter.name != "help"
    ]
    yield name, " ".join(sorted(options))


def page() -> str:
    """The page of all capabilities, as Markdown."""
    rows = sorted(commands(app))
    lists = {
        "Python names": counterfoil.__all__,
        "Benchmarks": catalog.benchmarks(),
        "Question types": FORMS,
        "Models": (
            " ".join([f"{name}:{entry.argument}", *(row["name"] for row in described(entry.settings_class))])
            for name, entry in SCORERS.items()
        ),
        "Caption metrics": METRICS,
        "Measures": (measure.name for measure in every()),
        "Training recipes": RECIPES,
        "Build recipes": shipped(),
        "Build steps": STEPS,
        "Forms of work": WORK_FORMS,
        "Platforms": PLATFORMS,
        "Tables": EXTENSIONS,
        "Images": FORMATS,
    }
    parts = [
        "# Capabilities",
        "Everything that commands and the Python API offer, drawn from the code.",
        "## Commands",
        "\n".join(f"* `{name}` {options}" for name, options in rows),
    ]
    for title, names in lists.items():
        listed = sorted(dict.fromkeys(str(name) for name in names))
        parts += [f"## {title} ({len(listed)})", ", ".join(f"`{name}`" for name in listed)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
