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
from counterfoil.models.registry import MODELS
from counterfoil.models.settings import described
from counterfoil.train.recipes import RECIPES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "capabilities.md"
#: Options that many commands share: a command that has all of a set names the set instead.
SETS = {
    "step": "--config --dropped --json --out --overwrite --seed",
    "table": "--json --overwrite",
    "report": "--html --title",
    "campaign": "--config --database",
    "draws": "--draws --seed",
    "model": "--allow-outside --batch-size --cache --device --executor --images --no-cache --precision"
    " --workers",
}


def commands(command: Any, name: str = "") -> Iterator[tuple[str, frozenset[str]]]:
    """Every command below one, with its arguments and options."""
    if hasattr(command, "rows"):
        for part in {*command.list_commands(None), *command.rows}:
            yield from commands(command.get_command(None, part), f"{name} {part}".strip())
        return
    shown = [item for item in command.params if not getattr(item, "hidden", False) and item.name != "help"]
    options = {max(item.opts, key=len) for item in shown if item.param_type_name == "option"}
    yield name, frozenset(options | {i.name.upper() for i in shown if i.param_type_name != "option"})


def lines() -> Iterator[str]:
    """The sets of options, then the commands; those with the same options share a line."""
    alike: dict[frozenset[str], list[str]] = {}
    for name, options in sorted(commands(app)):
        alike.setdefault(options, []).append(f"`{name}`")
    everywhere = frozenset.intersection(*alike)
    yield f"* *all*: {' '.join(sorted(everywhere))}"
    yield from (f"* *{title}*: {options}" for title, options in SETS.items())
    for options, names in alike.items():
        own, sets = options - everywhere, []
        for title, members in SETS.items():
            if own.issuperset(members.split()):
                own, sets = own.difference(members.split()), [*sets, f"*{title}*"]
        yield f"* {', '.join(names)} {' '.join((*sorted(own), *sets))}"


def page() -> str:
    lists = {
        "Python names": counterfoil.__all__,
        "Benchmarks": catalog.BENCHMARKS,
        "Question types": FORMS,
        "Models": (
            " ".join([f"{name}:{entry.argument}", *(row["name"] for row in described(entry.settings_class))])
            for name, entry in MODELS.items()
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
        "Commands with all options of a named set give its name in italics.",
        "\n".join(lines()),
    ]
    for title, names in lists.items():
        listed = sorted(dict.fromkeys(str(name) for name in names))
        parts += [f"## {title} ({len(listed)})", ", ".join(f"`{name}`" for name in listed)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
