"""A command of ours run by another one, with other values of its options: shared by ranks, or estimated."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterfoil.cli import usage
from counterfoil.cli.options import EXECUTOR
from counterfoil.errors import InputError

if TYPE_CHECKING:
    from counterfoil.engine.executor import Executor


def run(
    context: Any,
    adapted: Callable[[Any], Mapping[str, Any]] = lambda context: context.params,
    *,
    executor: "Executor | None" = None,
    cache: Path | None = None,
) -> None:
    """Run a command that was `prepared`; `adapted` gets its context and gives the values of its options.

    Finished work is kept in `cache`, unless the command itself names a folder: a variable of the environment
    may name another one on each machine.
    """
    named = context.get_parameter_source("cache").name == "COMMANDLINE"
    kept = {} if named or cache is None else {"cache": cache}
    context.params = {**adapted(context), **kept}
    before = EXECUTOR.set(executor)
    try:
        with context:
            context.command.invoke(context)
    finally:
        EXECUTOR.reset(before)


def prepared(words: Sequence[str]) -> Any:
    """The context in which the command of some words is run, its options parsed.

    Raises `InputError` for a command whose work is not cut into shards.
    """
    context = usage.RUNNING.get().command.make_context("counterfoil", list(words))
    while hasattr(context.command, "resolve_command"):
        rest = [*context._protected_args, *context.args]
        name, command, rest = context.command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
    asked = context.params
    if "executor" not in asked:
        raise InputError(
            "the work of this command cannot be shared",
            given=" ".join(words),
            allowed=("evaluate", "captions", "audit", "explain", "build"),
        )
    if asked["executor"] != "local":
        named = f"--executor {asked['executor']}"
        raise InputError("jobs and estimates have executors of their own", given=named, hint="leave it out")
    return context


@contextmanager
def thrown_away(*, quiet: bool = False) -> Iterator[Callable[[Any], dict[str, Any]]]:
    """What `run` takes to adapt a command whose results are thrown away, for as long as the block lasts.

    It prints none, writes none but what it must, to a folder that is removed, and draws little for intervals.
    With `quiet` it shows neither notes nor progress.
    """
    import contextlib
    import io
    import tempfile

    from counterfoil.cli.paths import written_options

    with tempfile.TemporaryDirectory(prefix="counterfoil-") as scratch:

        def adapted(context: Any) -> dict[str, Any]:
            given = dict(context.params)
            must = {each.name for each in context.command.params if each.required}
            # What is written beside the result is a name, or a flag.
            written: dict[str, Any] = {
                name: False if isinstance(given[name], bool) else None
                for name in written_options(given) - {"cache"}
            }
            written |= {name: Path(scratch, name) for name in written.keys() & must}
            return {**given, **written, **({"draws": 100} if "draws" in given else {})}

        before = usage.quiet
        usage.quiet = before or quiet
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                yield adapted
        finally:
            usage.quiet = before
