"""Generated pages of the site: the start page, a page per package and per benchmark, and the navigation."""

import ast
import re
from pathlib import Path

import mkdocs_gen_files

from counterfoil.benchmarks.benchmark import BENCHMARKS, Card
from counterfoil.metrics.measures import FORMS, every

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "counterfoil"
GUIDE = {
    "Tutorials": {
        "I have a model": "tutorial-model.md",
        "I have scores": "tutorial-scores.md",
        "I build a benchmark": "tutorial-benchmark.md",
        "I ask people": "tutorial-people.md",
        "I add my own": "tutorial-own.md",
    },
    "Measuring": {
        "Models": "models.md",
        "Benchmarks": "benchmarks.md",
        "Galleries": "galleries.md",
        "Caption metrics": "captions.md",
        "Audits": "audit.md",
        "Heatmaps": "explain.md",
        "Rankings of models": "rankings.md",
        "Many machines": "scale.md",
        "Data in a bucket": "remote-data.md",
    },
    "Building and training": {
        "Building": "build.md",
        "Negatives": "negatives.md",
        "Images": "images.md",
        "Refinement": "refinement.md",
        "Verification": "verification.md",
        "Publishing": "publishing.md",
        "Training": "training.md",
    },
    "People": {
        "Annotation": "annotation.md",
        "Forms of work": "forms-of-work.md",
        "Quality": "annotation_quality.md",
        "Simulated campaigns": "simulation.md",
        "Platforms": "platforms.md",
        "Serving a campaign to the internet": "deployment.md",
    },
    "Files and names": {
        "From Python": "python.md",
        "Files that come in": "inputs.md",
        "Files that commands write": "files.md",
        "Measures": "measures.md",
        "Glossary": "glossary.md",
        "Capabilities": "capabilities.md",
    },
    "Explanations": {
        "Statistics": "statistics.md",
        "The small world": "world.md",
        "The demo": "demo.md",
        "Speed": "speed.md",
        "Architecture": "architecture.md",
        "Design decisions": "design.md",
    },
}
#: Packages of the reference, and what of each is public.
PACKAGES = (
    "benchmarks",
    "metrics",
    "stats",
    "models",
    "engine",
    "evaluation",
    "report",
    "train",
    "build",
    "annotate",
    "world",
    "jobs",
)


def main() -> None:
    """Write all pages."""
    lines = ["* [counterfoil](index.md)"]
    for section, pages in GUIDE.items():
        lines += [f"* {section}", *(f"    * [{title}]({page})" for title, page in pages.items())]
        for page in pages.values():
            _write(page, _outside(f"docs/{page}"))
    lines.append("* Benchmarks")
    for card in BENCHMARKS.values():
        _write(f"benchmarks/{card.name}.md", _benchmark(card))
        lines.append(f"    * [{card.title}](benchmarks/{card.name}.md)")
    lines.append("* Reference")
    _write("reference/counterfoil.md", _public_names())
    lines.append("    * [import counterfoil as cf](reference/counterfoil.md)")
    for package in PACKAGES:
        _write(f"reference/{package}.md", "\n".join([f"# counterfoil.{package}", "", *_modules(package)]))
        lines.append(f"    * [{package}](reference/{package}.md)")
    for title, name in (("Contributing", "CONTRIBUTING.md"), ("Changelog", "CHANGELOG.md")):
        _write(name.lower(), _outside(name))
        lines.append(f"* [{title}]({name.lower()})")
    _write("measures.md", _outside("docs/measures.md") + _measures())
    _write("index.md", _outside("README.md"))
    _write("SUMMARY.md", "\n".join(lines) + "\n")


def _public_names() -> str:
    """The page of the Python API: every public name, functions first, from the stub that resolves them."""
    stub = ast.parse((SOURCE / "__init__.pyi").read_text(encoding="utf-8"))
    names = [
        (each.name, f"counterfoil.{node.module}.{each.name}")
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    ]
    names.sort(key=lambda found: (found[0][0].isupper(), found[0]))
    about = "Every name of `import counterfoil as cf`. [From Python](../python.md) shows their use."
    return "\n".join(["# import counterfoil as cf", "", about, "", *(f"::: {path}\n" for _, path in names)])


def _write(path: str, text: str) -> None:
    with mkdocs_gen_files.open(path, "w") as file:
        file.write(text)


def _outside(name: str) -> str:
    """A page of the repository with links that hold on the site; files that are no pages lose theirs."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](").replace("](../", "](")
    text = re.sub(r"\]\((CONTRIBUTING|CHANGELOG)\.md", lambda found: found[0].lower(), text)
    return re.sub(r"\[([^\[\]]+)\]\((?:examples|src|tests|CITATION)[^)]*\)", r"\1", text)


def _benchmark(card: Card) -> str:
    size = f"{card.size:,}" if card.size else "the user's own"
    lines = [
        f"# {card.title}",
        "",
        f"`counterfoil evaluate MODEL {card.name}`",
        "",
        "| fact | value |",
        "| --- | --- |",
    ]
    facts = {
        "form": card.form,
        "of": "videos" if card.shows == "video" else "images",
        "questions": size,
        "measures, first the main one": ", ".join(f"`{name}`" for name in card.measures),
        "groups": ", ".join(card.groupings),
        "licence": card.licence,
        "home page": card.homepage,
        "hub data set": f"{card.hub} {card.split} {card.revision}".strip(),
        "citation": card.citation,
    }
    lines += [f"| {name} | {value} |" for name, value in facts.items() if value]
    if card.counts:
        lines += ["", "## Questions by group", "", "| group | questions |", "| --- | ---: |"]
        lines += [f"| {group} | {n:,} |" for group, n in card.counts.items()]
    if card.pitfalls:
        lines += ["", "## Pitfalls", "", *(f"* {each}" for each in card.pitfalls)]
    return "\n".join(lines) + "\n"


def _measures() -> str:
    """A table of measures per form of question."""
    lines = []
    for form in FORMS:
        lines += ["", f"## {form.capitalize()}", "", "| name | label | chance | meaning |"]
        lines.append(f"|{' --- |' * 4}")
        for measure in (measure for measure in every() if measure.form == form):
            chance = measure.chance.replace("*", "\\*")
            lines.append(f"| `{measure.name}` | {measure.label} | {chance} | {measure.meaning} |")
    return "\n".join(lines) + "\n"


def _modules(package: str) -> list[str]:
    """A directive for every public module of a package, by name."""
    paths = sorted((SOURCE / package).rglob("*.py"))
    modules = [path.relative_to(SOURCE).with_suffix("").parts for path in paths]
    assert modules, f"no package {package}"
    public = [parts for parts in modules if not any(part.startswith("_") for part in parts)]
    return [line for parts in public for line in (f"::: counterfoil.{'.'.join(parts)}", "")]


main()
