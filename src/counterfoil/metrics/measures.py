"""The registry of measures: all of them by form of question, in the order of reports.

Names, labels, meanings, chance, tables, `counterfoil list measures` and "did you mean" follow from it.
Another package adds a measure by an entry point, whose name is the form and the name with a dot between them:

    [project.entry-points."counterfoil.measures"]
    "quad.first" = "my_package.measures:FIRST"
"""

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from itertools import chain
from operator import attrgetter
from typing import Any

from counterfoil.errors import InputError
from counterfoil.metrics.measure import FORMS, Declared, Measure, MeasureAtK, split_direction
from counterfoil.registry import Registry, resolve

#: Where the measures of counterfoil's own forms stand: "module:mapping" of `counterfoil.metrics`.
_OWN = {
    "quad": ("contrast:QUAD",),
    "choice": ("contrast:CHOICE",),
    "paraphrase": ("contrast:PARAPHRASE",),
    "preference": ("contrast:PREFERENCE",),
    "statement": ("statements:MEASURES",),
    "rated": ("correlation:MEASURES", "correlation:PAIR_MEASURES"),
    "gallery": ("ranking:MEASURES", "class_rules:MEASURES"),
}


def _own(form: str) -> Iterator[Declared]:
    for source in _OWN.get(form, ()):
        yield from resolve(f"counterfoil.metrics.{source}").values()


class MeasureRegistry(Registry[Declared]):
    """The measures by form and name ("quad.group"); those that are added must have a value per question."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._of: dict[tuple[str, tuple[str, ...]], list[Declared]] = {}

    def register(self, entry: Declared) -> Declared:
        """Add a measure, so that `evaluate` reports it, and tables, pages and lists show it; returns it.

        Raises `InputError` where its name is taken or begins with a direction (`i2t_`), where another form
        has a measure of this name with another label, and for a measure of all ratings together: the samples
        of those are drawn by `weighted_correlation`.

        >>> from dataclasses import replace
        >>> MEASURES.register(replace(find("group", "quad"), name="i2t_group"))
        Traceback (most recent call last):
        counterfoil.errors.InputError: a direction is put before names, so it is 'group'; given: i2t_group
        """
        _check(entry)
        general = entry.general
        name, label = general.name, general.label
        if find(name, general.form) not in (None, entry):
            raise InputError(
                "there is a measure of this name already", where=f"form '{general.form}'", given=name
            )
        other = find(name)
        if other is not None and other.label != label:
            what = f"form '{other.form}' has a measure of this name with another label"
            raise InputError(what, where=name, given=label, allowed=other.label)
        return super().register(entry)

    def of(self, form: str) -> list[Declared]:
        """The measures of a form, counterfoil's own first; the modules of other forms stay unread."""
        added = tuple(key for key in self.added() if key.startswith(f"{form}."))
        if (form, added) not in self._of:
            own = {entry.key: entry for entry in _own(form)}
            self._of[form, added] = [*own.values(), *(self[key] for key in added if key not in own)]
        return self._of[form, added]

    def added(self) -> list[str]:
        """The names of measures that are registered, or offered by other packages."""
        return [*self._known, *self._offered()]

    def _load(self, point: EntryPoint) -> Declared:
        entry = super()._load(point)
        _check(entry)
        return entry


def _check(declared: Declared) -> None:
    general = declared.general
    if general.per_item is None and not general.macro_of:
        raise InputError("only measures with a value per question can be added", where=general.name)
    side, base = split_direction(general.name)
    if side:
        raise InputError(f"a direction is put before names, so it is '{base}'", given=general.name)


MEASURES = MeasureRegistry(
    *("measure", Declared, "counterfoil.measures"),
    lambda: (entry for form in _OWN for entry in _own(form)),
    name="key",
)


def of_form(form: str) -> tuple[Measure, ...]:
    """The measures of a form that are reported unless some are chosen; of galleries without a direction.

    >>> [measure.name for measure in of_form("preference")]
    ['accuracy', 'accuracy_macro']
    """
    return tuple(chain.from_iterable(map(attrgetter("reported"), MEASURES.of(form))))


def at_k(form: str) -> tuple[MeasureAtK, ...]:
    """The measures of a form that take a number of places."""
    return tuple(declared for declared in MEASURES.of(form) if isinstance(declared, MeasureAtK))


def find(name: str, form: str = "") -> Measure | None:
    """The measure called `name`, with its direction and its K where it has them; None where none is.

    A name that several forms share is that of `form`, by default of the first that has it.

    >>> find("i2t_recall_at_20").label, find("accuracy", "preference").meaning, find("recall_at_0")
    ('I2T R@20', 'the preferred caption scores above the other', None)
    """
    for candidate in (form,) if form else _forms():
        for declared in MEASURES.of(candidate):
            if (measure := declared.find(name)) is not None:
                return measure
    side, base = split_direction(name)
    if side and (measure := find(base, "gallery")) is not None:
        return measure.toward(side)
    return None


def averaged(name: str, form: str) -> str:
    """The measure whose values per question are averaged: of a macro mean the one that it is of.

    >>> averaged("group_macro", "quad"), averaged("group", "quad")
    ('group', 'group')
    """
    measure = find(name, form)
    return (measure.macro_of if measure is not None else "") or name


def signed(name: str) -> bool:
    """Whether values of the measure called `name` can be below 0.

    >>> signed("spearman"), signed("accuracy"), signed("mean_ndcg")
    (True, False, False)
    """
    measure = find(name)
    return measure is not None and measure.signed


def every() -> tuple[Measure, ...]:
    """All measures as lists show them: those that take a K for the usual ones and for any."""
    measures: list[Measure] = []
    for declared in chain.from_iterable(map(MEASURES.of, _forms())):
        measures += declared.reported
        if isinstance(declared, MeasureAtK):
            measures.append(declared.general)
    return tuple(measures)


def _forms() -> list[str]:
    """All forms that have measures, counterfoil's own first."""
    return list(dict.fromkeys((*FORMS, *(key.partition(".")[0] for key in MEASURES.added()))))
