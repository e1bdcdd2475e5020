"""Jobs: public functions whose declared arguments are checked in every call, from Python and from a shell.

    @job(outputs="json html", examples="  counterfoil audit sugarcrepe --html audit.html")
    def audit(benchmarks: Annotated[...], **options: Unpack[AuditRows]) -> Audit: ...

is `counterfoil.audit(...)`, and the command `counterfoil audit`, which `counterfoil.cli.derive` makes of it.
Its docstring, and those of rows of options, describe arguments under headings that help shows.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property, partial, wraps
from inspect import cleandoc, signature
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar, cast, get_args, get_origin

from counterfoil import terminal
from counterfoil.engine.plan import Note, Progress, silent, warn
from counterfoil.errors import InputError, UnknownNameError, expected_error
from counterfoil.inputs.options import REQUIRED, Argument, Option, arguments_of

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

#: What is closed when the outermost job that runs has ended, as workers of a cluster are.
_ENDING: ContextVar[ExitStack | None] = ContextVar("ending", default=None)

#: What is declared of an argument whose help is in a docstring.
option = partial(Option, "")
#: The heading of arguments in a docstring; "Arguments" are those that help shows under none.
_HEADING = re.compile(r"([A-Z][\w ]*):\n    (?=\w+: )")


def documented(declared: T) -> T:
    """A job, or rows of options, whose docstring has a line of help per argument, under headings."""
    hints = declared.__annotations__
    for paragraph in cleandoc(declared.__doc__ or "").split("\n\n"):
        if (heading := _HEADING.match(paragraph)) is None:
            continue
        panel = heading[1] if heading[1] != "Arguments" else ""
        for entry in re.split(r"\n    (?=\w)", paragraph[heading.end() :]):
            name, _, text = entry.partition(": ")
            hint, *options = get_args(hints[name]) if get_origin(hints[name]) is Annotated else (hints[name],)
            of_name = replace(options[0] if options else option(), help=" ".join(text.split()), panel=panel)
            hints[name] = Annotated[hint, of_name]
    return declared


def prose(doc: str | None) -> list[str]:
    """The paragraphs of a docstring that describe no arguments."""
    return [text for text in cleandoc(doc or "").split("\n\n") if not _HEADING.match(text)]


class Job:
    """A job as the command line sees it: its arguments, its outputs and the examples in its help."""

    def __init__(self, function: Callable[..., Any], outputs: str, examples: str) -> None:
        self.function = function
        self.name = function.__name__
        #: Methods of the result that write it: "html" is `to_html`, a page with options of its own.
        self.outputs = tuple(outputs.split())
        self.examples = examples

    @property
    def reports(self) -> bool:
        """Whether it takes `feedback`."""
        return any(p.kind is p.VAR_KEYWORD for p in signature(self.function).parameters.values())

    @cached_property
    def arguments(self) -> dict[str, Argument]:
        return {argument.name: argument for argument in arguments_of(self.function)}

    def checked(
        self, values: Mapping[str, Any], where: Callable[[Argument], str] | None = None
    ) -> dict[str, Any]:
        """These values as the function takes them, and the defaults of others; raises `InputError`."""
        place = where or (lambda argument: f"{self.name}(), argument '{argument.name}'")
        arguments = dict(values)
        for name, argument in self.arguments.items():
            if name in values:
                arguments[name] = argument.converted(values[name], place(argument))
            elif argument.default is REQUIRED:
                raise InputError("missing", where=place(argument))
            else:
                arguments[name] = argument.default
        return arguments

    def __call__(self, *given: Any, **named: Any) -> Any:
        """The function called from Python."""
        try:
            bound = signature(self.function).bind_partial(*given, **named)
        except TypeError as error:
            raise InputError(str(error), where=f"{self.name}()") from None
        values = dict(bound.arguments)
        # Rows of `**options` are one argument of the signature.
        parameters = bound.signature.parameters.values()
        extra = values.pop(next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), ""), {})
        for name in extra:
            if name not in self.arguments and name not in REPORTING:
                raise UnknownNameError("argument", name, self.arguments, where=f"{self.name}()")
        checked = self.checked(values | extra)
        if (feedback := checked.get("feedback")) is not None and _ENDING.get() is not None:
            # Of jobs that call others the outermost alone tells of results as they come.
            checked["feedback"] = replace(feedback, result=ignore)
        try:
            with closing_at_end():
                return self.function(**checked)
        except Exception as error:
            expected = expected_error(error)
            if expected is None or expected is error:
                raise
            raise expected from error

    @property
    def doc(self) -> str:
        """The docstring with a line per argument, for `help()` and pages of documentation."""
        lines = []
        for argument in self.arguments.values():
            if not argument.option.help:
                continue
            facts = [argument.allowed] if argument.allowed else []
            if argument.option.shown or argument.default not in (REQUIRED, None, "", ()):
                facts.append(f"default: {argument.option.shown or argument.default}")
            bounds = f" [{'; '.join(facts)}]" if facts else ""
            lines.append(f"    {argument.name}: {argument.option.help}{bounds}")
        text = "\n\n".join(prose(self.function.__doc__))
        return "\n".join([text, "", "Arguments:", *lines]) if lines else text


#: Arguments of every job that are no options of commands.
REPORTING = ("quiet", "progress", "note", "feedback")


def job(*, outputs: str = "", examples: str = "") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: the function checks its declared arguments, and `cli.derive` makes a command of it."""

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        the_job = Job(documented(function), outputs, examples)

        @wraps(function)
        def checked(*given: P.args, **named: P.kwargs) -> R:
            return cast(R, the_job(*given, **named))

        checked.__doc__ = the_job.doc
        checked.__job__ = the_job  # type: ignore[attr-defined]
        return checked

    return decorated


def job_of(function: Callable[..., Any]) -> Job:
    """The job that a decorated function is."""
    return cast(Job, cast(Any, function).__job__)


@contextmanager
def closing_at_end() -> Iterator[None]:
    """The run of a job: the outermost closes what `at_end` names, also for jobs that it calls."""
    if _ENDING.get() is not None:
        yield
        return
    with ExitStack() as ending:
        token = _ENDING.set(ending)
        try:
            yield
        finally:
            _ENDING.reset(token)


def at_end(close: Callable[[], object]) -> None:
    """Have `close` called when the job that runs has ended."""
    ending = _ENDING.get()
    assert ending is not None
    ending.callback(close)


def ignore(text: object) -> None:
    """A note that is not shown."""


@dataclass(frozen=True)
class Feedback:
    """The functions that work reports to; by default only warnings are seen, as warnings of Python."""

    #: Called with a line about what was decided or found.
    note: Note = ignore
    #: Called with a line that should not be missed.
    warn: Note = warn
    #: Called with a line about something odd that did not stop the work (a damaged shard, unused rows).
    remark: Note = warn
    #: A context in which a line says what is being waited for.
    busy: Callable[[str], AbstractContextManager[None]] = lambda text: terminal.busy(text, silent=True)
    #: A context with a function (stage, done, total).
    progress: Callable[[], AbstractContextManager[Progress]] = lambda: nullcontext(silent)
    #: Called with each of several results as soon as it is there.
    result: Callable[[Any], None] = ignore


SILENT = Feedback()


def terminal_feedback(*, quiet: bool = False) -> Feedback:
    """The feedback of tasks on stderr; where `quiet`, or of a quiet command, warnings alone."""
    silent = quiet or terminal.quiet
    return Feedback(
        note=ignore if silent else terminal.note,
        warn=terminal.warn,
        remark=ignore if silent else terminal.warn,
        busy=partial(terminal.busy, silent=silent),
        progress=partial(terminal.progress, silent=silent),
    )


def feedback_of(reporting: Mapping[str, Any]) -> Feedback:
    """The feedback of the terminal, parts of it replaced, or that of another job."""
    if (given := reporting.get("feedback")) is not None:
        if not isinstance(given, Feedback):
            raise InputError("wrong type", where="argument 'feedback'", given=type(given).__name__)
        return given
    quiet, progress, note = reporting.get("quiet", False), reporting.get("progress"), reporting.get("note")
    if not isinstance(quiet, bool):
        raise InputError("neither True nor False", where="argument 'quiet'", given=quiet)
    for name, function in (("progress", progress), ("note", note)):
        if function is not None and not callable(function):
            raise InputError("not a function", where=f"argument '{name}'", given=function)
    feedback = terminal_feedback(quiet=quiet)
    if progress is not None:
        feedback = replace(feedback, progress=lambda: nullcontext(progress))
    if note is not None:
        feedback = replace(feedback, note=note, warn=note, remark=note)
    elif quiet:
        feedback = replace(feedback, warn=ignore)
    return feedback


def path_of(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)
