"""Figures of the source code that its architecture limits: size, type tests, names, circles, start-up times.

`make metrics` prints them beside their limits; `test_architecture.py` holds those that can be counted without
running anything to the table in `allowed.json`, which may only get shorter. `python -m contracts.metrics
--keep` (in `tests`) writes that table again, and refuses where the total of a contract would rise.
"""

import ast
import json
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "counterfoil"
ALLOWED = Path(__file__).with_name("allowed.json")
#: Forms of question, and the kinds of answer to them.
FORMS = frozenset({"Quad", "Choice", "Preference", "Gallery", "Search", "Rated"})
ANSWERS = frozenset({"Scores", "Outcomes", "Rankings"})
MOST_PARAMETERS = 12

_EQUAL = ast.Eq | ast.NotEq | ast.In | ast.NotIn
_TARGET = re.compile(r"counterfoil(\.\w+)+:\w+")


@dataclass(frozen=True)
class Module:
    """A module of the source: its dotted name without the package's, its text and its syntax tree."""

    name: str
    text: str
    tree: ast.Module

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree."""
        return tuple(ast.walk(self.tree))

    @property
    def package(self) -> str:
        """The first part of the name: the layer it belongs to."""
        return self.name.partition(".")[0]


@cache
def modules() -> tuple[Module, ...]:
    """All modules under src, by name; a package is called as it is imported."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "counterfoil"
        text = path.read_text(encoding="utf-8")
        found.append(Module(name, text, ast.parse(text)))
    return tuple(found)


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
    """Whether an expression is `x.form`, or the name of a form as a string."""
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

    Those of `cli` and `api` do not count: every option of a command or of a public call is one.
    """
    found = {}
    for module in modules():
        if module.package in ("cli", "api"):
            continue
        for node in module.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                count = sum(each.arg not in ("self", "cls") for each in every)
                count += (node.args.vararg is not None) + (node.args.kwarg is not None)
                if count > MOST_PARAMETERS:
                    found[f"{module.name}:{node.name}"] = count
    return found


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
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each)


def unresolved_targets() -> list[str]:
    """Targets whose module is not there, or has no such name at its top level."""
    tops = {module.name: _top_names(module.tree) for module in modules()}
    return [f"{place} -> {m}:{a}" for place, m, a in targets() if a not in tops.get(m, set())]


def upward_targets() -> list[str]:
    """Targets in a layer above the module they stand in, as "module -> module"."""
    level = layers()
    found = {
        f"{place} -> {module}"
        for place, module, _ in targets()
        if _package(place) != _package(module) and level[_package(module)] <= level[_package(place)]
    }
    return sorted(found)


def _package(name: str) -> str:
    return name.partition(".")[0]


def layers() -> dict[str, int]:
    """The layer of every package, from import-linter's contract in pyproject.toml; 0 is the uppermost."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (found,) = (each["layers"] for each in settings["contracts"] if each["type"] == "layers")
    return {name.strip(): number for number, line in enumerate(found) for name in re.split(r"[|:]", line)}


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


def imports() -> dict[str, set[str]]:
    """The modules of ours that each module imports, at its top or in a function, but not for types alone."""
    known = {module.name for module in modules()}
    graph: dict[str, set[str]] = {}
    for module in modules():
        found = set()
        for_types = {
            inner
            for node in module.nodes
            if isinstance(node, ast.If) and "TYPE_CHECKING" in _names(node.test)
            for inner in ast.walk(node)
        }
        for node in module.nodes:
            if node in for_types:
                continue
            if isinstance(node, ast.Import):
                found |= {alias.name.removeprefix("counterfoil.") for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "counterfoil":
                base = (node.module or "").removeprefix("counterfoil").removeprefix(".")
                for alias in node.names:
                    inner = f"{base}.{alias.name}".removeprefix(".")
                    found.add(inner if inner in known else base or "counterfoil")
        graph[module.name] = (found & known) - {module.name}
    return graph


def circles() -> list[str]:
    """Sets of modules that import one another in a circle, each as its sorted names joined by " <-> "."""
    graph = imports()
    reach = {name: _reachable(graph, name) for name in graph}
    found = {
        tuple(sorted({name} | {other for other in reach[name] if name in reach[other]}))
        for name in graph
        if name in reach[name]
    }
    return [" <-> ".join(names) for names in sorted(found)]


def _reachable(graph: Mapping[str, Iterable[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += graph[name]
    return seen


@cache
def counted() -> dict[str, dict[str, int]]:
    """What `allowed.json` holds today's code to: per contract, what breaks it and how often."""
    return {
        "type tests outside forms": {
            name: n for name, n in type_tests().items() if "forms" not in name.split(".")
        },
        "class names with several meanings": {
            name: len(places) for name, places in duplicate_classes().items()
        },
        "import circles": dict.fromkeys(circles(), 1),
        "functions of more than 12 parameters": long_signatures(),
        "module docstrings that begin with What": dict.fromkeys(what_docstrings(), 1),
        "registry strings that point upwards": dict.fromkeys(upward_targets(), 1),
    }


def allowed() -> dict[str, dict[str, int]]:
    """The table of what is still allowed."""
    found: dict[str, dict[str, int]] = json.loads(ALLOWED.read_text(encoding="utf-8"))
    return found


def keep() -> str:
    """Write today's counts to `allowed.json` where no total rises; says whether they were."""
    now = counted()
    if ALLOWED.is_file():
        before = allowed()
        for name, entries in now.items():
            was, here = sum(before.get(name, {}).values()), sum(entries.values())
            if name in before and here > was:
                new = sorted(set(entries.items()) - set(before[name].items()))
                return f"not written: {name} rose from {was} to {here}; new are {new}"
    ALLOWED.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return f"written: {ALLOWED}"


def entered() -> set[str]:
    """Modules of ours in which `counterfoil evaluate blind:length` on a table of two rows calls a function.

    What runs while a module is imported does not count.
    """
    code = (
        "import sys, threading\n"
        "names, importing = set(), 0\n"
        "def profile(frame, event, arg):\n"
        "    global importing\n"
        "    if frame.f_code.co_name == '<module>':\n"
        "        importing += {'call': 1, 'return': -1}.get(event, 0)\n"
        "    elif event == 'call' and not importing:\n"
        "        names.add(frame.f_globals.get('__name__', ''))\n"
        "from counterfoil.cli import main\n"
        "threading.setprofile(profile); sys.setprofile(profile)\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "finally:\n"
        "    sys.setprofile(None)\n"
        "    print('ENTERED', *sorted(n for n in names if n.startswith('counterfoil')))\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "two.csv"
        table.write_text(
            "image,caption,negative_caption\na.png,a cat on a mat,a mat on a cat\nb.png,a dog,a red dog\n"
        )
        done = _python(
            "-c", code, "evaluate", "blind:length", "pairs", "--data", str(table), "--no-cache", "--quiet"
        )
    (line,) = (line for line in done.splitlines() if line.startswith("ENTERED"))
    return set(line.split()[1:])


def import_seconds(*, times: int = 5) -> float:
    """The least time of several that `import counterfoil` takes in a process that has NumPy."""
    code = "import time, numpy; t = time.perf_counter(); import counterfoil; print(time.perf_counter() - t)"
    return min(float(_python("-c", code)) for _ in range(times))


def help_seconds(*, times: int = 3) -> float:
    """The least time of several that `counterfoil --help` takes, the start of Python included."""
    least = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        _python("-m", "counterfoil", "--help")
        least = min(least, time.perf_counter() - start)
    return least


def _python(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"python {' '.join(arguments[:3])} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def figures() -> list[tuple[str, str, str]]:
    """Name, value and limit of every figure, as text."""
    lines = Counter[str]()
    count = Counter[str]()
    for module in modules():
        lines[module.package] += len(module.text.splitlines())
        count[module.package] += 1
    tests = type_tests()
    within = sum(n for name, n in tests.items() if "forms" in name.split("."))
    return [
        ("lines under src", f"{lines.total():,}", "44,000"),
        ("modules under src", f"{count.total()}", "230"),
        *((f"  {name}", f"{lines[name]:,} in {count[name]}", "") for name in sorted(lines)),
        ("type tests on forms, in forms/", f"{within}", ""),
        ("type tests on forms, elsewhere", f"{sum(tests.values()) - within}", "20"),
        ("class names with several meanings", f"{len(duplicate_classes())}", "0"),
        ("import circles", f"{len(circles())}", "0"),
        ("functions of more than 12 parameters", f"{len(long_signatures())}", "0"),
        ("modules entered by evaluate", f"{len(entered())}", "30"),
        ("import counterfoil beyond numpy", f"{import_seconds():.3f} s", "0.1 s"),
        ("counterfoil --help", f"{help_seconds():.2f} s", "0.5 s"),
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
