"""Figures of the source that its architecture limits: size, names, circles, type tests, imports of a start.

`make metrics` prints them beside their limits, which stand in `limits.json` and may only fall;
`test_architecture.py` holds the code to them. `python -m contracts.metrics --keep` (in `tests`) writes the
limits again, and refuses where one would rise.
"""

import ast
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import distribution
from pathlib import Path

import grimp
import numpy as np
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "counterfoil"
LIMITS = Path(__file__).with_name("limits.json")
#: Forms of question, and the kinds of answer to them.
FORMS = frozenset({"Quad", "Choice", "Preference", "Gallery", "RetrievalDirection", "Rated"})
ANSWERS = frozenset({"Scores", "Outcomes", "Rankings"})
MOST_PARAMETERS = 12
#: Names of variables and parameters that say nothing of what they hold.
VAGUE = frozenset(
    {
        *("found", "each", "kept", "asked", "told", "said"),
        *("made", "standing", "door", "turns", "situation", "picks"),
    }
)
_TARGET = re.compile(r"counterfoil(\.\w+)+:\w+")


@dataclass(frozen=True)
class Module:
    """A module of the source: its dotted name without the package's, its text and its syntax tree."""

    name: str
    text: str
    tree: ast.Module

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(self.tree))

    @property
    def package(self) -> str:
        """The first part of the name: the layer it belongs to."""
        return self.name.partition(".")[0]


@cache
def modules() -> tuple[Module, ...]:
    """All modules under src, by name; a package is called as it is imported."""
    result = []
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "counterfoil"
        text = path.read_text(encoding="utf-8")
        result.append(Module(name, text, ast.parse(text)))
    return tuple(result)


def type_tests() -> dict[str, int]:
    """How often each module tests what form a question has, or of what kind an answer is.

    Counted are `isinstance` and `issubclass` on the classes (by themselves, in tuples and unions, by an
    alias), class patterns of `match`, and comparisons of a `form` or with the name of one.
    """
    types = FORMS | ANSWERS | _aliases()
    counts = {module.name: sum(1 for _ in _type_tests(module.nodes, types)) for module in modules()}
    return {name: count for name, count in counts.items() if count}


def _aliases() -> frozenset[str]:
    """Names of unions and tuples of the classes, such as `Answers = Scores | Outcomes | Rankings`."""
    return frozenset(
        target.id
        for module in modules()
        for node in module.tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp | ast.Tuple)
        if (FORMS | ANSWERS) & _names(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    )


def _type_tests(nodes: Iterable[ast.AST], types: frozenset[str]) -> Iterator[ast.AST]:
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2:
            if node.func.id in ("isinstance", "issubclass") and types & _names(node.args[1]):
                yield node
        elif isinstance(node, ast.MatchClass):
            if types & _names(node.cls):
                yield node
        elif isinstance(node, ast.Compare) and isinstance(
            node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn
        ):
            if ast.unparse(node.comparators[0]) == "FORMS":  # Whether there is such a form at all.
                continue
            sides = [n for side in (node.left, *node.comparators) for n in _elements(side)]
            if any(_is_form(side) for side in sides):
                yield node


def _elements(node: ast.AST) -> list[ast.expr]:
    """The parts of a tuple, a list or a set; else the node itself."""
    return node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]  # type: ignore[list-item]


def _is_form(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value in {name.lower() for name in FORMS}
    return isinstance(node, ast.Attribute) and node.attr == "form"


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {
        n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)
    }


def duplicate_classes() -> dict[str, list[str]]:
    """Class names that stand in several modules, and those modules; private ones too."""
    where: dict[str, list[str]] = defaultdict(list)
    for module in modules():
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                where[node.name].append(module.name)
    return {name: sorted(places) for name, places in sorted(where.items()) if len(places) > 1}


def long_signatures() -> dict[str, int]:
    """Functions of more than 12 parameters, as "module:function", and how many they have.

    Those of `cli` and of jobs do not count: every option of a command is one.
    """
    result = {}
    for module in modules():
        if module.package == "cli":
            continue
        for node in module.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if any(ast.unparse(mark).startswith("job(") for mark in node.decorator_list):
                    continue
                every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                count = sum(item.arg not in ("self", "cls") for item in every)
                count += (node.args.vararg is not None) + (node.args.kwarg is not None)
                if count > MOST_PARAMETERS:
                    result[f"{module.name}:{node.name}"] = count
    return result


def what_docstrings() -> list[str]:
    """Modules whose docstring begins with "What" in place of a noun phrase."""
    return [m.name for m in modules() if (ast.get_docstring(m.tree) or "").startswith("What ")]


def targets() -> Iterator[tuple[str, str, str]]:
    """Every "module:attribute" in the source and its TOML files, as (where it stands, module, attribute)."""
    for module in modules():
        for node in module.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from _target(module.name, node.value)
    for path in sorted(SOURCE.rglob("*.toml")):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for value in _strings(tomllib.loads(path.read_text(encoding="utf-8"))):
            yield from _target(name, value)


def _target(place: str, text: str) -> Iterator[tuple[str, str, str]]:
    if _TARGET.fullmatch(text):
        module, _, attribute = text.partition(":")
        yield place, module.removeprefix("counterfoil."), attribute


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def unresolved_targets() -> list[str]:
    """Targets whose module is not there, or has no such name at its top level."""
    tops = {module.name: _top_names(module.tree) for module in modules()}
    return [f"{place} -> {m}:{a}" for place, m, a in targets() if a not in tops.get(m, set())]


def upward_targets() -> list[str]:
    """Targets in a layer above the module they stand in, as "module -> module"."""
    level = layers()
    result = {
        f"{place} -> {module}"
        for place, module, _ in targets()
        if _package(place) != _package(module) and level[_package(module)] <= level[_package(place)]
    }
    return sorted(result)


def _package(name: str) -> str:
    return name.partition(".")[0]


def layers() -> dict[str, int]:
    """The layer of every package, from import-linter's contract in pyproject.toml; 0 is the uppermost."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (result,) = (item["layers"] for item in settings["contracts"] if item["type"] == "layers")
    return {name.strip(): number for number, line in enumerate(result) for name in re.split(r"[|:]", line)}


def _top_names(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                names |= _names(target)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def circles(graph: grimp.ImportGraph) -> list[str]:
    """Sets of modules that import one another in a circle, each as its sorted names joined by " <-> ".

    Imports count wherever they stand: at the top, in a function, or for types alone.
    """
    reach = {name: graph.find_upstream_modules(name) for name in graph.modules}
    result = {
        tuple(sorted({name} | {other for other in reach[name] if name in reach[other]}))
        for name in graph.modules
        if any(name in reach[other] for other in graph.find_modules_directly_imported_by(name))
    }
    return [" <-> ".join(names) for names in sorted(result)]


#: What breaks each of the contracts.
BROKEN: dict[str, Callable[[], object]] = {
    "type tests outside forms": lambda: [name for name in type_tests() if "forms" not in name.split(".")],
    "class names with several meanings": duplicate_classes,
    "functions of more than 12 parameters": long_signatures,
    "module docstrings that begin with What": what_docstrings,
    "registry strings that name nothing": unresolved_targets,
    "registry strings that point upwards": upward_targets,
}


def keep() -> str:
    """Write today's figures to `limits.json` where none rises; says whether they were."""
    held = limits() if LIMITS.is_file() else {}
    now = {**counts(), **reached()}
    for name, count in now.items():
        if count > held.get(name, count):
            return f"not written: {name} rose from {held[name]:,} to {count:,}"
    LIMITS.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
    return f"written: {LIMITS}"


def vague_names() -> int:
    """How often a variable is assigned or a parameter declared under one of the names that say nothing."""
    return sum(
        (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in VAGUE)
        or (isinstance(node, ast.arg) and node.arg in VAGUE)
        for module in modules()
        for node in module.nodes
    )


def single_use() -> int:
    """Private functions and methods that their module names once."""
    count = 0
    for module in modules():
        uses = Counter(
            node.id if isinstance(node, ast.Name) else node.attr
            for node in module.nodes
            if (isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store))
            or isinstance(node, ast.Attribute)
        )
        count += sum(
            uses[node.name] == 1
            for node in module.nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name.startswith("_")
            and not node.name.startswith("__")
        )
    return count


def lines_of(folder: str, pattern: str) -> int:
    return sum(len(path.read_text("utf-8").splitlines()) for path in (ROOT / folder).rglob(pattern))


def doc_words() -> int:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    return sum(len(page.read_text("utf-8").split()) for page in pages)


@cache
def counts() -> dict[str, int]:
    """What `limits.json` limits: figures that need no run."""
    return {
        "lines of src": sum(len(module.text.splitlines()) for module in modules()),
        "modules of src": len(modules()),
        "lines of tests": lines_of("tests", "*.py"),
        "lines of goldens": lines_of("tests/golden/kept", "*.txt"),
        "words of docs": doc_words(),
        "import circles": len(circles(grimp.build_graph("counterfoil", cache_dir=None))),
        "vague variables and parameters": vague_names(),
        "private functions used once": single_use(),
    }


def limits() -> dict[str, int]:
    result: dict[str, int] = json.loads(LIMITS.read_text(encoding="utf-8"))
    return result


@cache
def reached() -> dict[str, int]:
    """Modules of ours that `counterfoil evaluate blind:length` on a table of two rows imports and enters, and
    the most of our functions that are on the stack at once.

    What runs while a module is imported counts as imported alone.
    """
    code = (
        "import sys, threading\n"
        "names, importing, depth, deepest = set(), 0, 0, 0\n"
        "def profile(frame, event, arg):\n"
        "    global importing, depth, deepest\n"
        "    ours = frame.f_globals.get('__name__', '').startswith('counterfoil')\n"
        "    if frame.f_code.co_name == '<module>':\n"
        "        importing += {'call': 1, 'return': -1}.get(event, 0)\n"
        "    elif ours and not importing and event in ('call', 'return'):\n"
        "        depth += 1 if event == 'call' else -1\n"
        "        deepest = max(deepest, depth)\n"
        "        names.add(frame.f_globals['__name__'])\n"
        "from counterfoil.cli import main\n"
        "sys.setprofile(profile)\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "finally:\n"
        "    sys.setprofile(None)\n"
        "    imported = sum(name.startswith('counterfoil') for name in sys.modules)\n"
        "    print('REACHED', imported, len(names), deepest)\n"
    )
    done = _on_two_rows("-c", code)
    (line,) = (line for line in done.splitlines() if line.startswith("REACHED"))
    imported, entered, deepest = map(int, line.split()[1:])
    return {"modules imported by evaluate": imported, "modules it enters": entered, "its stack": deepest}


def _on_two_rows(*python: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "two.csv"
        table.write_text(
            "image,caption,negative_caption\na.png,a cat on a mat,a mat on a cat\nb.png,a dog,a red dog\n"
        )
        command = ("evaluate", "blind:length", "pairs", "--data", str(table), "--no-cache", "--quiet")
        return _python(*python, *command)


def _python(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"python {' '.join(arguments[:3])} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def start_times() -> list[tuple[str, str, str]]:
    """The least of ten times: processor time of that command beside that of two imports, and of `--help`.

    They take turns, since other work on the machine slows each of them for seconds at a time.
    """

    def processor() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    def spent(clock: Callable[[], float], run: Callable[..., object], *arguments: str) -> float:
        start = clock()
        run(*arguments)
        return clock() - start

    imports, evaluation, shown = np.min(
        [
            (
                spent(processor, _python, "-c", "import numpy, pyarrow"),
                spent(processor, _on_two_rows, "-m", "counterfoil"),
                spent(time.perf_counter, _python, "-m", "counterfoil", "--help"),
            )
            for _ in range(10)
        ],
        axis=0,
    )
    return [
        ("its processor time, in imports of numpy and pyarrow", f"{evaluation / imports:.1f}", ""),
        ("seconds of --help", f"{shown:.2f}", ""),
    ]


def installed(extra: str) -> float:
    """Megabytes of the package and what it requires with an extra, beside PyTorch and what that requires.

    Compiled modules, which pip writes where it is not told otherwise, are left out.
    """
    sizes: dict[str, int] = {}
    left = [("counterfoil", frozenset({extra, ""}))]
    while left:
        name, extras = left.pop()
        if name in sizes or re.match(r"torch$|nvidia|triton|cuda", name):
            continue
        package = distribution(name)
        files = [Path(str(package.locate_file(file))) for file in package.files or ()]
        sizes[name] = sum(file.stat().st_size for file in files if file.suffix != ".pyc" and file.is_file())
        for text in package.requires or ():
            needed = Requirement(text)
            if needed.marker is None or any(needed.marker.evaluate({"extra": one}) for one in extras):
                left.append((needed.name.lower().replace("_", "-"), frozenset({*needed.extras, ""})))
    own = sum(path.stat().st_size for path in SOURCE.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return (own + sum(sizes.values())) / 1e6


def figures() -> list[tuple[str, str, str]]:
    lines = Counter[str]()
    number = Counter[str]()
    for module in modules():
        lines[module.package] += len(module.text.splitlines())
        number[module.package] += 1
    held = limits()
    return [
        *((name, f"{count:,}", f"{held[name]:,}") for name, count in {**counts(), **reached()}.items()),
        *start_times(),
        ("megabytes of the core, installed", f"{installed(''):.0f}", ""),
        ("megabytes of the demo, beside PyTorch", f"{installed('demo'):.0f}", ""),
        *((f"  {name}", f"{lines[name]:,} in {number[name]}", "") for name in sorted(lines)),
    ]


def main() -> None:
    """Print the figures, or with --keep write the table of what is allowed."""
    if sys.argv[1:] == ["--keep"]:
        sys.exit(None if (said := keep()).startswith("written") else said)
    rows = [("", "now", "limit"), *figures()]
    width = max(len(name) for name, _, _ in rows)
    for name, value, limit in rows:
        print(f"{name:{width}}  {value:>14}  {limit:>7}".rstrip())


if __name__ == "__main__":
    main()
