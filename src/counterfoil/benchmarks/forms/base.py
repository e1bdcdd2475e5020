"""The protocol of all forms of question: a table of positions into a benchmark's images and captions.

A form answers all that the data layer must know of it: which items and pairs must be scored, what questions
share, how they are cut, named by a digest, written to tables and turned into training rows.

Another package adds a form by one entry point, whose name is that of the form:

    [project.entry-points."counterfoil.forms"]
    order = "my_package.order:FORM"
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import numpy as np
import pyarrow as pa
from numpy import ndarray
from numpy.typing import NDArray
from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from counterfoil.benchmarks.forms.release import FormRelease
from counterfoil.benchmarks.forms.tables import (
    GROUP,
    QUESTIONS,
    REFERENCES,
    REFERENCES_SCHEMA,
    StoredField,
    read_references,
    stored_schema,
)
from counterfoil.benchmarks.references import Ids as Ids, References, check_references
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.columns import Schema
from counterfoil.inputs.files import Stored
from counterfoil.metrics.measures import FORMS as BUILTIN
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
        if entry.name in BUILTIN:
            raise InputError(f"there is a {self.kind} of this name already", given=entry.name)
        return super().register(entry)


ENTRIES: Registry[FormEntry] = _Entries("form of question", FormEntry, "counterfoil.forms", lambda: ())


class Forms(Mapping[str, T]):
    """What one layer knows of every form, by name; `part` names its field of a `FormEntry`.

    `builtin` has the "module:class" of each of counterfoil's forms, imported when first used: of questions
    the class itself is kept, of other layers an instance.
    """

    def __init__(self, entries: Mapping[str, str], part: str) -> None:
        self.builtin, self._part = entries, part
        self._loaded: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._loaded:
            entry = resolve(self.builtin.get(name) or getattr(ENTRIES[name], self._part))
            self._loaded[name] = entry() if name in self.builtin and self._part != "questions" else entry
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self.builtin or name in ENTRIES

    def __iter__(self) -> Iterator[str]:
        yield from self.builtin
        yield from (name for name in ENTRIES if name not in self.builtin)

    def __len__(self) -> int:
        return len(list(iter(self)))


def _form_name(name: str) -> str:
    """The name of a form, as pydantic checks it."""
    if name in BUILTIN or name in ENTRIES:
        return name
    *others, last = (repr(form) for form in dict.fromkeys((*BUILTIN, *ENTRIES)))
    raise PydanticCustomError("form", f"Input should be {', '.join(others)} or {last}")


#: The name of a form in a card or a manifest.
FormName = Annotated[str, AfterValidator(_form_name)]


class Facts(Stored):
    """What a manifest says of the questions; each form adds facts of its own."""

    form: FormName
    groupings: list[str]


Mask = NDArray[np.bool_]

#: The score in a place of a question that has no candidate: below every score.
NO_CANDIDATE = float("-inf")
_Form = TypeVar("_Form", bound="Form")
_Listed = TypeVar("_Listed", bound="Listed")
_Judged = TypeVar("_Judged", bound="Judged")

#: Fields that hold positions of items, which digests have by what lies there.
_ITEMS = ("captions", "images", "query", "candidates")

#: What an image is recognised by where questions are asked for what they share.
Identity = Literal["photo", "item"]


@dataclass(frozen=True, eq=False)
class CaptionCandidates:
    """The captions among which questions choose, a row per caption: what can be asked without the image.

    `question` and `caption` are positions; `truth` is 1 for right captions and 0 for wrong ones, or the mean
    rating where `rated`. `row_of` is the row behind each of the questions' pairs. `decides` is false where
    both captions are right of an image each, so that a caption's own score answers no question.
    """

    question: Ids
    caption: Ids
    truth: NDArray[np.float64]
    row_of: Ids
    rated: bool = False
    decides: bool = True


@dataclass(frozen=True, eq=False)
class Form(ABC):
    """Questions of one form: an id for each, named groupings of them, and the columns of the form.

    `groupings` maps a grouping's name ("type", "tag") to one label per question; the empty label means
    "in no group of this grouping".
    """

    ids: tuple[str, ...]
    groupings: Mapping[str, tuple[str, ...]] = field(default_factory=dict, kw_only=True)

    #: The form's name in cards and manifests.
    form: ClassVar[str] = "abstract"
    #: Whether the questions are human judgements of captions.
    judged: ClassVar[bool] = False
    #: What questions are called where they are counted.
    units: ClassVar[Literal["questions", "queries"]] = "questions"
    #: Whether questions are asked in two directions, each with measures of its own.
    directed: ClassVar[bool] = False
    #: Whether each row of a table of given scores answers a question of its own, whatever its ids look like.
    row_per_question: ClassVar[bool] = False
    #: The layouts of tables of given scores that answer the questions, and what such a table holds, in words.
    given: ClassVar[tuple[str, ...]] = ("choice_scores",)
    given_as: ClassVar[str] = "scores of candidates: columns s0, s1, ..."
    #: By what two questions share an image: the photograph it shows, or the item itself.
    images_by: ClassVar[Identity] = "photo"
    #: The oldest version of a benchmark folder that can hold the form.
    version: ClassVar[int] = 1
    #: The model of what a manifest says of the questions.
    facts_model: ClassVar[type[Facts]] = Facts
    #: The fields that are columns of the tables in a benchmark folder, by file name; from them follow the
    #: checks of shapes, `schemas`, `per_question`, `columns` and `fields`, which a form may define itself.
    stored: ClassVar[Mapping[str, tuple[StoredField, ...]]] = {}
    #: The tables in a benchmark folder, by file name.
    schemas: ClassVar[Mapping[str, Schema]]
    #: The fields that have an entry per question, or None.
    per_question: ClassVar[tuple[str, ...]] = ("captions", "images")

    def __init_subclass__(cls) -> None:
        if "stored" in cls.__dict__:
            cls.schemas = {file: stored_schema(file, fields) for file, fields in cls.stored.items()}
            cls.per_question = tuple(stored.field for stored in cls.stored[QUESTIONS])

    def __post_init__(self) -> None:
        if len(set(self.ids)) != len(self.ids):
            double = Counter(self.ids).most_common(1)[0][0]
            raise DataError("question id occurs twice", given=double, hint="ids must be unique")
        for name, labels in self.groupings.items():
            if len(labels) != len(self.ids):
                what, given = f"grouping '{name}' has the wrong length", f"{len(labels)} labels"
                raise DataError(what, given=given, allowed=f"{len(self.ids)}, one per question")
        for file, fields in self.stored.items():
            rows = len(self) if file == QUESTIONS else len(getattr(self, fields[0].field))
            for stored in fields:
                values = getattr(self, stored.field)
                if values is not None and stored.more is None:
                    shape = (rows,) if stored.width is None else (rows, stored.width)
                    check_shape(stored.plural or stored.field, values, shape)

    def __len__(self) -> int:
        return len(self.ids)

    @abstractmethod
    def about(self) -> tuple[Ids, Ids]:
        """Positions of images and of captions that each question is about, (n, k) and (n, l); -1 is none.

        Questions that have one of them in common may be answered alike for it.
        """

    @abstractmethod
    def used(self) -> tuple[Ids, Ids]:
        """Positions of the captions and of the images that must be scored, in order of first use."""

    @abstractmethod
    def pairs(self) -> tuple[Ids, Ids]:
        """(caption, image) positions of every score asked for, both of one shape; empty in a gallery.

        Empty too where captions are compared with captions (`text_pairs`).
        """

    def text_pairs(self) -> tuple[Ids, Ids] | None:
        """(caption, caption) positions of every score asked for, where captions are compared with captions.

        Then `pairs` has none, and no image is `used`. None where captions are compared with images.
        """
        return None

    @abstractmethod
    def captions_of(self, question: int) -> list[int]:
        """Positions of the captions that a question is printed with."""

    @property
    def directions(self) -> Ids:
        """The direction of each question; 0 where there is one alone."""
        return np.zeros(len(self), dtype=np.int64)

    @property
    def measured(self) -> Mask:
        """(n,) the questions that measures are of; others are there for a threshold alone."""
        return np.ones(len(self), dtype=bool)

    @property
    def query_parts(self) -> Ids:
        """The part of the items that each question is about; 0 where there are none."""
        return np.zeros(len(self), dtype=np.int64)

    def opinions(self) -> tuple[Literal["votes", "ratings"], NDArray[np.float64]] | None:
        """The answers of people: votes (n, 2), or ratings (n, people) with NaN where one is missing."""
        return None

    def caption_candidates(self) -> CaptionCandidates | None:
        """The captions that each question chooses among; None where it chooses none."""
        return None

    @abstractmethod
    def caption_means(self, values: NDArray[np.float64], *, where: str) -> NDArray[np.float64]:
        """(n,) the mean over each question's captions of a value per caption of the benchmark.

        Raises `DataError` where questions have no captions of their own.
        """

    @abstractmethod
    def check_items(self, images: int, captions: int, *, where: str) -> None:
        """Raise `DataError` unless the positions fit these numbers of images and captions."""

    def select(self: _Form, rows: Ids) -> _Form:
        """The chosen questions over the same items."""
        return replace(self, **self.chosen(rows), **self.entries(self.per_question, rows))

    @abstractmethod
    def take(self: _Form, rows: Ids) -> tuple[_Form, Ids | None, Ids | None]:
        """The chosen questions, and the positions of the captions and images they keep, now 0, 1, ...

        None: all items are kept, as they are.
        """

    @abstractmethod
    def at_hand(self, texts: Mask, sources: Mask, *, where: str) -> Mask:
        """(n,) which questions have all of their items at hand: captions with a text, images with a source.

        Raises `DataError` where the form can only be measured with all items, and one is missing.
        """

    def check_limit(self, *, where: str) -> None:  # noqa: B027
        """Raise `DataError` where some of the questions would be another, easier benchmark."""

    @abstractmethod
    def digest_facts(self, texts: Sequence[object], names: Sequence[object]) -> dict[str, object]:
        """The form's part of the digest; `texts` and `names` stand for the captions and images pointed to."""

    @abstractmethod
    def training_rows(self, *, where: str) -> tuple[Ids | None, dict[str, Ids]]:
        """The question that each training row comes from (None: from none), and positions by role.

        Raises `DataError` where the questions are no training set.
        """

    def no_training_set(self, what: str, where: str) -> DataError:
        """The error of a form whose questions are no training set."""
        given = f"a benchmark of form '{self.form}'"
        what = f"{what} are no training set"
        return DataError(what, where=where, given=given, allowed="quads, choices or a gallery")

    def release(self) -> FormRelease:
        """The tables that are published for other programs.

        Raises `DataError` where the form has none, as one of another package that does not define it.
        """
        hint = "its class says how by its method `release`; 'counterfoil benchmarks save' writes any form"
        raise DataError("questions of this form cannot be published", given=f"form '{self.form}'", hint=hint)

    def columns(self) -> tuple[dict[str, pa.Array], dict[str, Any], dict[str, pa.Table]]:
        """Columns of the table of questions, facts of the manifest, and the other tables by file name."""
        tables: dict[str, dict[str, pa.Array]] = {}
        for file, fields in self.stored.items():
            tables[file] = {}
            for stored in fields:
                tables[file] |= stored.columns(getattr(self, stored.field), len(self))
        facts = {
            name: getattr(self, name) is not None if there else getattr(self, name)
            for name, there in self._own_facts().items()
        }
        return tables.pop(QUESTIONS), facts, {file: pa.table(columns) for file, columns in tables.items()}

    @classmethod
    def fields(cls, tables: Mapping[str, pa.Table], facts: Mapping[str, Any]) -> dict[str, Any]:
        """The form's fields from what `columns` gave; raises `DataError` where it does not fit together."""
        values: dict[str, Any] = {
            stored.field: None if stored.optional and not facts[stored.field] else stored.read(tables[file])
            for file, fields in cls.stored.items()
            for stored in fields
        }
        return values | {name: facts[name] for name, there in cls._own_facts().items() if not there}

    def _values(self) -> dict[str, object]:
        """What the fields hold that are no items, as the digest has it; None for NaN."""
        names = [stored.field for fields in self.stored.values() for stored in fields]
        facts: dict[str, object] = {}
        for name in names:
            values: NDArray[Any] | None = getattr(self, name)
            if name not in _ITEMS and values is not None:
                cells = values.astype(object)
                if values.dtype.kind == "f":
                    cells[np.isnan(values)] = None
                facts[name] = cells.tolist()
        return facts

    @classmethod
    def _own_facts(cls) -> dict[str, bool]:
        """The facts that the manifest has of the form alone, and whether each says that a field is there."""
        fields = cls.facts_model.model_fields
        form_facts = {name: fact for name, fact in fields.items() if name not in Facts.model_fields}
        return {name: fact.annotation is bool for name, fact in form_facts.items()}

    def digest(self, texts: Sequence[object], names: Sequence[object]) -> dict[str, object]:
        """All that a digest of the questions is taken of."""
        return {
            "form": self.form,
            "ids": self.ids,
            "groupings": {name: list(labels) for name, labels in self.groupings.items()},
            **self.digest_facts(texts, names),
        }

    def to_tables(self) -> tuple[dict[str, pa.Table], dict[str, Any]]:
        """The tables of a benchmark folder by file name, and the facts that go into its manifest."""
        columns, facts, others = self.columns()
        columns = {"id": pa.array(self.ids, pa.string()), **columns}
        for name, labels in self.groupings.items():
            columns[GROUP + name] = pa.array(labels, pa.string())
        facts = {"form": self.form, "groupings": list(self.groupings), **facts}
        return {QUESTIONS: pa.table(columns), **others}, facts

    @classmethod
    def from_tables(
        cls: type[_Form], tables: Mapping[str, pa.Table], facts: Mapping[str, Any], *, where: object
    ) -> _Form:
        """The questions from tables of their schemas, and the facts of the manifest.

        Raises `DataError` where the tables do not fit each other, or the facts.
        """
        table = tables[QUESTIONS]
        lacking = [name for name in facts["groupings"] if GROUP + name not in table.column_names]
        if lacking:
            raise DataError(f"no column '{GROUP}{lacking[0]}'", where=where, hint="was it edited?")
        try:
            ids = tuple(table.column("id").to_pylist())
            groupings = {name: tuple(table.column(GROUP + name).to_pylist()) for name in facts["groupings"]}
            return cls(ids, groupings=groupings, **cls.fields(tables, facts))
        except InputError as error:
            raise DataError(f"the tables do not fit each other: {error}", where=where) from None

    def chosen(self, rows: Ids) -> dict[str, Any]:
        """What the chosen questions have of what all forms share, for `dataclasses.replace`."""
        groupings = {name: tuple(labels[row] for row in rows) for name, labels in self.groupings.items()}
        return {"ids": tuple(self.ids[row] for row in rows), "groupings": groupings}

    def entries(self, names: Sequence[str], rows: Ids) -> dict[str, Any]:
        """The chosen entries of some fields, for `dataclasses.replace`; None stays."""
        values = {name: getattr(self, name) for name in names}
        return {
            name: value and value.take(rows) if isinstance(value, References | None) else value[rows]
            for name, value in values.items()
        }

    def groups(self, *, without: Collection[str] = ()) -> dict[str, Mask]:
        """Every group of every grouping but some as a mask over the questions, in order of first appearance.

        A label that two groupings use for different questions is written `grouping:label`.
        """
        masks: dict[str, Mask] = {}
        for name, labels in self.groupings.items():
            if name in without:
                continue
            column = np.asarray(labels, dtype=object)
            for label in dict.fromkeys(labels):
                if not label:
                    continue
                mask = column == label
                if label in masks and np.array_equal(masks[label], mask):
                    continue
                masks[f"{name}:{label}" if label in masks else label] = mask
        return masks


class Listed(Form):
    """Questions that list the pairs whose scores decide them: all forms but the gallery."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its scores."""
        return (len(self),)

    def slots(self) -> tuple[Ids, Ids]:
        """Positions of the captions and of the images that each question shows, (n, k) and (n, l)."""
        captions, images = self.pairs()
        return captions[:, None], images[:, None]

    def about(self) -> tuple[Ids, Ids]:
        """The images and the captions that it shows."""
        captions, images = self.slots()
        return images, captions

    @property
    def filled(self) -> Mask | None:
        """Which places of its scores are of a pair, of `shape`; None where all are."""
        return None

    @property
    def single(self) -> bool:
        """Whether every candidate is one item: none has more sentences than others."""
        return True

    @property
    def correct(self) -> int:
        """How many of a question's candidates are right."""
        return 1

    @property
    def true_captions(self) -> int:
        """How many of the captions that a question shows are true of its image, the first ones."""
        return self.correct

    @property
    def references(self) -> References | None:
        """References of each pair, for metrics that read them; None where there are none."""
        return None

    @property
    def loads(self) -> Ids | None:
        """(pairs,) numbers; metrics count documents among pairs of one number. None: among all pairs."""
        return None

    def drawn(self) -> tuple[References, ...]:
        """The references of each draw; all of them, once, where none are drawn; none where there are none."""
        return () if self.references is None else (self.references,)

    def collect_draws(self, values: Sequence[ndarray]) -> ndarray:
        """Scores of the pairs, one array per draw of references, in the shape of the answers."""
        return self.collect(values[0])

    def captions_of(self, question: int) -> list[int]:
        captions: list[int] = self.slots()[0][question].tolist()
        return captions

    def caption_means(self, values: NDArray[np.float64], *, where: str) -> NDArray[np.float64]:
        captions = self.slots()[0]
        shown = captions >= 0
        return np.where(shown, values[captions], 0.0).sum(axis=1) / shown.sum(axis=1)

    def renumber(self: _Listed, caption_of: Ids, image_of: Ids) -> _Listed:
        """The same questions where caption c and image i are now at `caption_of[c]` and `image_of[i]`."""
        fields: Any = self
        moved: dict[str, Any] = {"captions": caption_of[fields.captions], "images": image_of[fields.images]}
        return replace(self, **moved)

    def has_shape(self, shape: tuple[int, ...]) -> bool:
        """Whether scores of this shape answer the questions."""
        return shape == self.shape

    def collect(self, values: ndarray) -> ndarray:
        """Scores of the pairs, in their order, as those of the questions, of `shape`."""
        filled = self.filled
        if filled is None:
            return values.reshape(self.shape)
        scores = np.full(self.shape, NO_CANDIDATE)
        scores[filled] = values
        return scores

    def of_pairs(self, scores: ndarray) -> ndarray:
        """Scores of the questions as those of their pairs, in order, (pairs,): what `collect` was given."""
        return scores.reshape(-1) if self.filled is None else scores[self.filled]

    def used(self) -> tuple[Ids, Ids]:
        """Positions of the captions and of the images of all pairs, in order of first use; no references."""
        captions, images = self.pairs()
        return first_use(captions), first_use(images)

    def mentioned(self) -> tuple[Ids, Ids]:
        """Positions of all captions (references included) and of all images, each sorted."""
        captions, images = self.pairs()
        return np.unique(captions), np.unique(images)

    def check_items(self, images: int, captions: int, *, where: str) -> None:
        for kind, positions, n in zip(
            ("caption", "image"), self.mentioned(), (captions, images), strict=True
        ):
            if positions.min() < 0 or positions.max() >= n:
                what = f"a question points to {kind} {positions.max()}"
                raise DataError(what, where=where, allowed=f"0 to {n - 1}")

    def take(self: _Listed, rows: Ids) -> tuple[_Listed, Ids | None, Ids | None]:
        questions = self.select(rows)
        captions, images = questions.mentioned()
        return questions.renumber(_numbers(captions), _numbers(images)), captions, images

    def at_hand(self, texts: Mask, sources: Mask, *, where: str) -> Mask:
        captions, images = self.pairs()
        there = texts[captions] & sources[images]
        if self.filled is not None:
            every = np.ones(self.shape, dtype=bool)
            every[self.filled] = there
            there = every
        return np.asarray(there.reshape(len(self), -1).all(axis=1))

    def digest_facts(self, texts: Sequence[object], names: Sequence[object]) -> dict[str, object]:
        captions, images = self.pairs()
        return {
            "captions": [texts[i] for i in captions.reshape(-1).tolist()],
            "images": [names[i] for i in images.reshape(-1).tolist()],
            "shape": captions.shape,
            **self._values(),
        }


@dataclass(frozen=True, eq=False)
class Judged(Listed):
    """Captions (candidates) of an image or a video that people judged.

    `captions` and `images` are (rows,) positions. `references` has an entry per row: captions that people
    wrote of the same image or video, for metrics that read them.
    """

    captions: Ids = field(kw_only=True)
    images: Ids = field(kw_only=True)
    references: References | None = field(default=None, kw_only=True)

    judged: ClassVar[bool] = True
    version: ClassVar[int] = 3

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.schemas = {**cls.schemas, REFERENCES: REFERENCES_SCHEMA}
        cls.per_question = (*cls.per_question, "references")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_references(self.references, len(self.captions))

    def columns(self) -> tuple[dict[str, pa.Array], dict[str, Any], dict[str, pa.Table]]:
        columns, facts, others = super().columns()
        listed = self.references or References.of([])
        table = pa.table({"row": pa.array(listed.rows), "caption": pa.array(listed.captions)})
        return columns, facts, {**others, REFERENCES: table}

    @classmethod
    def fields(cls, tables: Mapping[str, pa.Table], facts: Mapping[str, Any]) -> dict[str, Any]:
        values = super().fields(tables, facts)
        references = read_references(tables[REFERENCES], len(values["captions"]), facts)
        return {**values, "references": references}

    @property
    @abstractmethod
    def rows_of(self) -> Ids:
        """(rows,) the question that each row belongs to."""

    def pairs(self) -> tuple[Ids, Ids]:
        """(caption, image) positions of every row, each of shape (rows,)."""
        return self.captions, self.images

    def mentioned(self) -> tuple[Ids, Ids]:
        captions, references = self.captions, self.references
        all_captions = captions if references is None else np.concatenate([captions, references.captions])
        return np.unique(all_captions), np.unique(self.images)

    def renumber(self: _Judged, caption_of: Ids, image_of: Ids) -> _Judged:
        references = self.references and self.references.renumber(caption_of)
        return replace(super().renumber(caption_of, image_of), references=references)

    def digest_facts(self, texts: Sequence[object], names: Sequence[object]) -> dict[str, object]:
        references = self.references
        return {
            "captions": [texts[i] for i in self.captions],
            "images": [names[i] for i in self.images],
            "references": references
            and [references.counts.tolist(), [texts[i] for i in references.captions]],
            **self._values(),
        }

    def training_rows(self, *, where: str) -> tuple[Ids | None, dict[str, Ids]]:
        raise self.no_training_set("captions that people judged", where)


def first_use(positions: ndarray) -> Ids:
    """The distinct positions, in order of first use."""
    values, first = np.unique(positions, return_index=True)
    return values[np.argsort(first)].astype(np.int64)


def check_shape(name: str, array: ndarray, shape: tuple[int, ...]) -> None:
    """Raise `DataError` unless an array of positions has this shape; `name` in the plural."""
    if array.shape != shape:
        raise DataError(f"{name} have the wrong shape", given=array.shape, allowed=str(shape))


def _numbers(positions: Ids) -> Ids:
    """Where each position comes to lie when only the kept ones are left, -1 for the others."""
    numbers = np.full(int(positions.max(initial=-1)) + 1, -1, dtype=np.int64)
    numbers[positions] = np.arange(len(positions))
    return numbers


#: The class of the questions of every form, by the form's name.
FORMS: Forms[type[Form]] = Forms(
    {
        "quad": "counterfoil.benchmarks.forms.contrast:Quad",
        "choice": "counterfoil.benchmarks.forms.contrast:Choice",
        "paraphrase": "counterfoil.benchmarks.forms.contrast:Paraphrase",
        "preference": "counterfoil.benchmarks.forms.judged:Preference",
        "statement": "counterfoil.benchmarks.forms.judged:Statement",
        "rated": "counterfoil.benchmarks.forms.judged:Rated",
        "gallery": "counterfoil.benchmarks.forms.gallery:Gallery",
    },
    "questions",
)
