"""The registry of forms of question: counterfoil's own by layer, then those of other packages.

Another package adds a form by one entry point, whose name is that of the form:

    [project.entry-points."counterfoil.forms"]
    order = "my_package.order:FORM"
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, TypeVar

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from counterfoil.errors import InputError
from counterfoil.metrics.measures import FORMS as OWN
from counterfoil.registry import Registry, resolve

T = TypeVar("T")


@dataclass(frozen=True)
class FormEntry:
    """A form of question of another package: its name in cards, and where each layer finds its part.

    Each part is "module:attribute": `questions` is the class of its questions (`data.forms.base.Form`),
    `evaluation` a `FormEvaluation` and `report` a `FormReport`, imported when a benchmark of the form is
    read, measured and reported. Its measures are registered as all measures are.
    """

    name: str
    questions: str
    evaluation: str
    report: str


class _Entries(Registry[FormEntry]):
    """The forms of other packages by name."""

    def register(self, entry: FormEntry) -> FormEntry:
        if entry.name in OWN:
            raise InputError(f"there is a {self.kind} of this name already", given=entry.name)
        return super().register(entry)


ENTRIES: Registry[FormEntry] = _Entries("form of question", FormEntry, "counterfoil.forms", lambda: ())


class Forms(Mapping[str, T]):
    """What one layer knows of every form, by name; `part` names its field of a `FormEntry`.

    `own` has the "module:class" of each of counterfoil's forms, imported when it is asked for: of questions
    the class itself is known, of other layers an instance.
    """

    def __init__(self, own: Mapping[str, str], part: str) -> None:
        self.own, self._part = own, part
        self._known: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._known:
            entry = resolve(self.own.get(name) or getattr(ENTRIES[name], self._part))
            self._known[name] = entry() if name in self.own and self._part != "questions" else entry
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in ENTRIES

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from (name for name in ENTRIES if name not in self.own)

    def __len__(self) -> int:
        return len(list(iter(self)))


def _known(name: str) -> str:
    """The name of a form, as pydantic checks it."""
    if name in OWN or name in ENTRIES:
        return name
    *others, last = (repr(form) for form in dict.fromkeys((*OWN, *ENTRIES)))
    raise PydanticCustomError("form", f"Input should be {', '.join(others)} or {last}")


#: The name of a form in a card or a manifest.
FormName = Annotated[str, AfterValidator(_known)]
