"""Measures as values: name, label, meaning, range, chance and arithmetic of each.

A measure is declared once, beside its arithmetic; labels, tables and `counterfoil list measures` follow from
it. Those of galleries have a value in each of two directions and their mean, and some look at the first K
places: `i2t_recall_at_5` is recall at 5 from images to captions.

Another package adds a measure by an entry point named after the form and the measure:

    [project.entry-points."counterfoil.measures"]
    "quad.first" = "my_package.measures:FIRST"
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from importlib.metadata import EntryPoint
from itertools import chain
from operator import attrgetter
from typing import Any, Literal, TypeVar

from counterfoil.errors import InputError
from counterfoil.registry import Registry, resolve

#: counterfoil's own forms of question, in the order of lists.
FORMS = ("quad", "choice", "paraphrase", "preference", "statement", "rated", "gallery")


@dataclass(frozen=True)
class Side:
    """A direction of retrieval, as names of measures begin with it, as labels, headings and meanings do."""

    name: str
    label: str
    title: str
    arrow: str
    meaning: str


_SIDES = (
    Side("i2t", "I2T", "Image to text", "image → text", "each image looks for its captions"),
    Side("t2i", "T2I", "Text to image", "text → image", "each caption looks for its images"),
    Side("mean", "mean", "Mean of both", "mean", "the mean of both directions"),
)
#: Both directions of a gallery and their mean, in the order of reports.
DIRECTIONS: Mapping[str, Side] = {side.name: side for side in _SIDES}


def split_direction(name: str) -> tuple[str, str]:
    """The direction and the rest of the name of a gallery's measure; no direction in other names.

    >>> split_direction("i2t_recall_at_5"), split_direction("group_match")
    (('i2t', 'recall_at_5'), ('', 'group_match'))
    """
    side, _, base = name.partition("_")
    return (side, base) if side in DIRECTIONS and base else ("", name)


class Declared:
    """A measure, or a measure for any K, as registries hold it."""

    name: Any
    form: Any

    @property
    def key(self) -> str:
        """The form and the name, such as "quad.group": forms may share names."""
        return f"{self.form}.{self.name}"

    @property
    def general(self) -> Any:
        """The measure, where it takes a K that of a K which is left open."""
        return self

    @property
    def reported(self) -> tuple[Any, ...]:
        """The measures that are reported unless others are chosen."""
        return (self,)

    def find(self, name: str) -> Any:
        """The measure whose name is exactly `name`, or None."""
        return self if name == self.name else None


@dataclass(frozen=True)
class Measure(Declared):
    """One measure of one form of question.

    * `name` is for JSON, run folders and `--measure`, `label` for tables, `meaning` one line for readers.
    * `chance` is the value of random, never equal scores: a number ("1/6") or a formula.
    * `per_item(...)` gives one value in [0, 1] per question, `of_all(scores, ratings)` one number of all,
      `of_all(scores, truth)` of statements. `per_item` takes scores (n, 2, 2) of quads; scores (n, k) and
      `correct` of choices and paraphrases; scores (n, 2) and the preferred candidates of preferences; `Ranks`
      of galleries; all of them `ties`. `macro_of` names a measure instead, whose means over groups are
      averaged.
    * `range` holds all values; only that of an `of_all` is not [0, 1].
    * `main` measures are tested where a benchmark's card names none.
    * `within` names a grouping and how many questions each of its groups has: a question's value is then the
      product over its group, 0 without a whole group.
    * `needs` restricts a gallery's measure to galleries with "gains" other than 1, with "classes" (then
      `per_item` takes the shares of `class_rules.Plausible`), or whose "card" names it.

    Raises `InputError` unless it has exactly one arithmetic.

    >>> import numpy as np
    >>> right = Measure("right", "quad", "Right", "the first pair scores above 0", "1/2",
    ...                 per_item=lambda scores, *, ties: (scores[:, 0, 0] > 0) * 1.0)
    >>> right(np.ones((1, 2, 2)), ties="strict"), right.expected, str(right)
    (array([1.]), 0.5, 'right')
    """

    name: str
    form: str
    label: str
    meaning: str
    chance: str
    per_item: Callable[..., Any] | None = None
    of_all: Callable[..., float] | None = None
    macro_of: str = ""
    range: tuple[float, float] = field(default=(0.0, 1.0), kw_only=True)
    main: bool = field(default=False, kw_only=True)
    within: tuple[str, int] | None = field(default=None, kw_only=True)
    needs: Literal["", "gains", "classes", "card"] = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        if sum(map(bool, (self.per_item, self.of_all, self.macro_of))) != 1:
            raise InputError(
                "a measure needs one arithmetic", where=self.name, allowed="per_item, of_all or macro_of"
            )
        if self.of_all is None and self.range != (0.0, 1.0):
            raise InputError("values per question must be in [0, 1]", where=self.name, given=self.range)

    def __str__(self) -> str:
        return self.name

    def __call__(self, *args: Any, **options: Any) -> Any:
        arithmetic = self.per_item or self.of_all
        if arithmetic is None:
            raise InputError(f"{self.name} is a mean over groups", hint=f"measure '{self.macro_of}'")
        return arithmetic(*args, **options)

    @property
    def signed(self) -> bool:
        """Whether values can be below 0, as correlations are: printed times a hundred."""
        return self.range[0] < 0

    @property
    def expected(self) -> float | None:
        """Chance as a number; None where it is a formula."""
        return float(Fraction(self.chance)) if re.fullmatch(r"\d+(/\d+)?", self.chance) else None

    def toward(self, direction: str) -> "Measure":
        """The measure of one direction of a gallery, or of the mean of both."""
        of = DIRECTIONS[direction]
        name, label = f"{of.name}_{self.name}", f"{of.label} {self.label}"
        return replace(self, name=name, label=label, meaning=f"{self.meaning}; {of.meaning}")

    def to_json(self) -> dict[str, Any]:
        """The facts of the measure as plain values, without its arithmetic."""
        facts = ("name", "form", "label", "range", "chance", "meaning")
        return {**{name: getattr(self, name) for name in facts}, "range": list(self.range)}


@dataclass(frozen=True)
class MeasureAtK(Declared):
    """A measure that looks at the first K places, for any K of 1 or more.

    `at(k)` makes the measure of one K, or of the letter "K" for lists and messages. `ks` are reported by
    default.

    >>> from counterfoil.metrics.ranking import MEASURES
    >>> recall = MEASURES["recall_at_K"]
    >>> recall.name, recall.at(5).label, recall.k_of("recall_at_20"), recall.k_of("recall_at_all")
    ('recall_at_K', 'R@5', 20, None)
    """

    at: Callable[[Any], Measure]
    ks: tuple[int, ...]

    @property
    def name(self) -> str:
        """The name with the letter K in it."""
        return self.general.name

    @property
    def form(self) -> str:
        return self.general.form

    @cached_property
    def general(self) -> Measure:
        return self.at("K")

    @cached_property
    def reported(self) -> tuple[Measure, ...]:
        return tuple(map(self.at, self.ks))

    def k_of(self, name: str) -> int | None:
        """The K in a name, which may be 0 or begin with zeros; None in the name of something else."""
        before, _, after = self.name.partition("K")
        match = re.fullmatch(f"{re.escape(before)}([0-9]{{1,18}}){re.escape(after)}", name)
        return int(match[1]) if match else None

    def find(self, name: str) -> Measure | None:
        k = self.k_of(name)
        measure = self.at(k) if k else None
        return measure if measure is not None and measure.name == name else None


_Declared = TypeVar("_Declared", Measure, Measure | MeasureAtK)


def by_name(*declared: _Declared) -> Mapping[str, _Declared]:
    return {measure.name: measure for measure in declared}


#: Where the measures of counterfoil's own forms stand: "module:mapping" of `counterfoil.metrics`.
_BUILTIN = {
    "quad": ("contrast:QUAD",),
    "choice": ("contrast:CHOICE",),
    "paraphrase": ("contrast:PARAPHRASE",),
    "preference": ("contrast:PREFERENCE",),
    "statement": ("statements:MEASURES",),
    "rated": ("correlation:MEASURES", "correlation:PAIR_MEASURES"),
    "gallery": ("ranking:MEASURES", "class_rules:MEASURES"),
}


class MeasureRegistry(Registry[Declared]):
    """The measures by form and name ("quad.group"); those that are added must have a value per question."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        #: The measures of each form that was looked up.
        self._of: dict[str, list[Declared]] = {}

    def register(self, entry: Declared) -> Declared:
        """Add a measure, so that `evaluate` reports it, and tables, pages and lists show it; returns it.

        Raises `InputError` where its name is taken or begins with a direction (`i2t_`), another form has the
        name with another label, and for a measure without a value per question.

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
        self._of.pop(general.form, None)
        return super().register(entry)

    def of(self, form: str) -> list[Declared]:
        """The measures of a form, counterfoil's own first; the modules of other forms stay unread."""
        if form not in self._of:
            measures: dict[str, Declared] = {}
            for source in _BUILTIN.get(form, ()):
                for entry in resolve(f"counterfoil.metrics.{source}").values():
                    measures[entry.key] = entry
            for key in (*self._by_name, *self._offered()):
                if key.startswith(f"{form}.") and key not in measures:
                    measures[key] = self[key]
            self._of[form] = [*measures.values()]
        return self._of[form]

    @property
    def forms(self) -> list[str]:
        """All forms that have measures, counterfoil's own first."""
        added = (key.partition(".")[0] for key in (*self._by_name, *self._offered()))
        return list(dict.fromkeys((*FORMS, *added)))

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


def _builtin() -> Iterator[Declared]:
    for source in chain.from_iterable(_BUILTIN.values()):
        yield from resolve(f"counterfoil.metrics.{source}").values()


MEASURES = MeasureRegistry("measure", Declared, "counterfoil.measures", _builtin, name="key")


def of_form(form: str) -> tuple[Measure, ...]:
    """The measures of a form that are reported by default; of galleries without a direction.

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
    for candidate in (form,) if form else MEASURES.forms:
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
    for declared in chain.from_iterable(map(MEASURES.of, MEASURES.forms)):
        measures += declared.reported
        if isinstance(declared, MeasureAtK):
            measures.append(declared.general)
    return tuple(measures)
