"""Benchmarks: a card of facts, items, and questions over them; the cards of those that are known.

A benchmark never sees a model.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from counterfoil.benchmarks import forms
from counterfoil.benchmarks.forms.base import FormName
from counterfoil.benchmarks.forms.release import ReleaseColumn, ReleaseTable
from counterfoil.benchmarks.records import Caption, Image, caption_key, distinct, image_key
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.arrays import plain_array
from counterfoil.inputs.files import check_model, digest, digest_value, parse_toml
from counterfoil.inputs.options import Option, checked
from counterfoil.registry import Registry
from counterfoil.stats.dependence import Dependence

if TYPE_CHECKING:
    from counterfoil.benchmarks.forms import Choice, Gallery, Paraphrase, Preference, Quad, Rated, Statement

Questions = TypeVar("Questions", covariant=True)
#: A number of questions.
Count = Annotated[int, Option("", low=1)]


class Card(BaseModel):
    """The facts about a benchmark that its readers check and its reports cite."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    form: FormName
    #: What its captions are of.
    shows: Literal["image", "video"] = "image"
    #: Number of questions of the official release; None where it is the user's own.
    size: int | None = None
    #: Number of questions in each group that readers check, {group: questions}.
    counts: dict[str, int] = Field(default_factory=dict)
    #: Groups that another edition of the release has more or fewer of, {group: questions}.
    also: dict[str, int] = Field(default_factory=dict)
    licence: str = ""
    #: Whether the licence lets a report carry the images and captions along.
    redistributable: bool = True
    citation: str = ""
    homepage: str = ""
    #: Hub data set, split and pinned revision.
    hub: str = ""
    split: str = ""
    revision: str = ""
    #: What folders of benchmarks hold that were saved before; nothing reads it.
    configs: dict[str, str] = Field(default_factory=dict)
    #: The measures its authors report, first the main one.
    measures: tuple[str, ...] = ()
    #: Groupings its authors report by; finer ones stay in the data.
    groupings: tuple[str, ...] = ()
    #: The grouping that the macro average runs over. Of means over groups of means over groups all of them,
    #: the largest groups first: "aspect > kind > subset".
    macro: str = ""
    #: What the published macro average leaves out: groups by name, and groups of fewer questions than this.
    macro_without: tuple[str, ...] = ()
    macro_least: int = 1
    #: "module:function" that reads it.
    reader: str = ""
    pitfalls: tuple[str, ...] = ()

    @property
    def macro_groupings(self) -> tuple[str, ...]:
        """The groupings that the macro average runs over, the largest groups first."""
        return tuple(name.strip() for name in self.macro.split(">")) if self.macro else ()


class _Only(Generic[Questions]):
    """The questions of a benchmark, if they are of one of the forms; else `DataError` says what is wrong."""

    def __init__(self, classes: str, wrong: str, allowed: str) -> None:
        self.classes, self.wrong, self.allowed = classes.split(), wrong, allowed

    def __get__(self, benchmark: "Benchmark | None", owner: type | None = None) -> Questions:
        questions: Any = self if benchmark is None else benchmark.questions
        if benchmark is None or isinstance(questions, tuple(getattr(forms, name) for name in self.classes)):
            return questions
        given = f"a benchmark of form '{questions.form}'"
        raise DataError(self.wrong, where=benchmark.name, given=given, allowed=self.allowed)


@dataclass(frozen=True, eq=False, repr=False)
class Benchmark:
    """Questions over images and captions.

    `source` says where it was read from, for provenance ("../data/winoground, tags.csv").
    """

    card: Card
    images: tuple[Image, ...]
    captions: tuple[Caption, ...]
    questions: "Quad | Choice | Paraphrase | Gallery | Rated | Preference | Statement"
    source: str = ""
    #: The folder or file a user named with --data, so that a report can find the pictures again.
    path: Path | None = None
    #: The file of captions, beside the questions as they were released, in which its authors' metrics count
    #: documents (EMScore's weights of tokens). It may not be there. None where the benchmark has none.
    corpus: Path | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.card, Card) and hasattr(self.questions, "check_items")):
            given = [type(part).__name__ for part in (self.card, self.questions)]
            raise InputError("no benchmark", given=given, allowed="a Card, and questions of a form")
        if not len(self.questions):
            raise DataError("the benchmark has no questions", where=self._place)
        self.questions.check_items(len(self.images), len(self.captions), where=self._place)

    @property
    def name(self) -> str:
        """The benchmark's name in the catalog, or the user's own."""
        return self.card.name

    @property
    def title(self) -> str:
        """What tables and pages call it: by the card, or where that has no title by its name."""
        return self.card.title or self.name

    def __len__(self) -> int:
        return len(self.questions)

    def __repr__(self) -> str:
        return (
            f"<Benchmark {self.name}: {len(self):,} questions, {len(self.images):,} images, "
            f"{len(self.captions):,} captions>"
        )

    def __getitem__(self, question: int) -> dict[str, Any]:
        """One question by its place from 0: its id, images (`Image`), captions, what is right, its groups.

        The names are those of `to_arrow`. In a gallery it is a query. Raises `IndexError` for no place.

        >>> from counterfoil import load_benchmark
        >>> found = load_benchmark("world-quads")[0]
        >>> found["image"].decode().size, found["caption"], found["negative_caption"]
        ((192, 192), 'This picture shows three stars.', 'This picture shows three dotted stars.')
        """
        if not hasattr(question, "__index__"):
            allowed = f"0 to {len(self) - 1:,}"
            raise InputError("not the place of a question", where=self.name, given=question, allowed=allowed)
        row = range(len(self))[question]
        return {name: self._cells(column, [row])[0] for name, column in self._table.columns.items()}

    def to_arrow(self) -> pa.Table:
        """A `pyarrow.Table` with a row per question: as `publish` writes it, images by their ids."""
        rows = range(len(self))
        return pa.table(
            {
                name: [cell.id if isinstance(cell, Image) else cell for cell in self._cells(column, rows)]
                for name, column in self._table.columns.items()
            }
        )

    def to_frame(self) -> Any:
        """`to_arrow` as a `pandas.DataFrame`; where pandas is not installed the `pyarrow.Table` itself."""
        table = self.to_arrow()
        return table if find_spec("pandas") is None else table.to_pandas()

    @cached_property
    def _table(self) -> ReleaseTable:
        """The table of the questions, of those that a release of the benchmark has."""
        return next(table for table in self.questions.release().tables if table.questions)

    def _cells(self, column: ReleaseColumn, rows: Sequence[int]) -> list[Any]:
        return column.cells(rows, self.images, self.captions)

    @property
    def _place(self) -> str:
        return self.source or self.name

    #: The questions, where they are of these forms; each raises `DataError` for other forms.
    paired = _Only["Quad | Choice"]("Quad Choice", "neither quads nor choices", "quads or choices")
    listed = _Only["Quad | Choice | Paraphrase | Rated | Preference | Statement"](
        "Listed", "a gallery asks about no pairs", "any other form"
    )
    judged = _Only["Rated | Preference"](
        "Judged",
        "no human judgements of captions here",
        "flickr8k-expert, pascal-50s and others of form 'rated' or 'preference'",
    )
    choices = _Only["Choice"]("Choice", "no choices here", "form 'choice'")
    rated = _Only["Rated"](
        "Rated", "no human ratings of captions here", "flickr8k-expert and others of form 'rated'"
    )
    statements = _Only["Statement"](
        "Statement", "no statements that are true or false here", "form 'statement'"
    )
    preferences = _Only["Preference"](
        "Preference", "no preferences between captions here", "pascal-50s and others of form 'preference'"
    )
    gallery = _Only["Gallery"]("Gallery", "not a gallery", "coco-5k, eccv and other galleries")

    @cached_property
    def dependence(self) -> Dependence:
        """What questions share: the images and the captions that each is about.

        Captions are the same where their texts are, in any Unicode normal form; images where they show one
        photograph (`photos`, whose names may be paths), in a gallery where they are one item, or the
        benchmark says that they show one photograph. In a gallery a
        query is about its image, or the one its caption was written for; where people judged captions, about
        the image and the candidates.
        """
        images, captions = self.questions.about()
        by_photo = self.questions.images_by == "photo"
        shown = self.photos if by_photo else [image.photo or "" for image in self.images]
        photos = [image_key(name) if name else (i,) for i, name in enumerate(shown)]
        texts = [caption_key(c.text) if c.text is not None else (c.id,) for c in self.captions]
        return Dependence(images=_numbers(photos, images), captions=_numbers(texts, captions))

    @cached_property
    def measured_dependence(self) -> Dependence:
        """The same of the questions that measures are of."""
        return self.dependence.part(self.questions.measured)

    @cached_property
    def clusters(self) -> NDArray[np.int64]:
        """(n,) numbers; questions of one number are drawn and flipped together (`Dependence.units`).

        They share images or captions, directly or through others; where those are crossed, their images.
        """
        return self.dependence.units

    @cached_property
    def photos(self) -> tuple[str, ...]:
        """The photograph that each image shows.

        Where no one wrote it down and the image is at hand, equal bytes are one photograph; reading them is
        the price of intervals that know which questions share a picture. Elsewhere it is the image's id.
        """
        return tuple(
            digest(image.read()) if image.photo is None and image.source else image.photo or image.id
            for image in self.images
        )

    @property
    def captions_at_hand(self) -> bool:
        """Whether every caption has its text."""
        return all(caption.text is not None for caption in self.captions)

    @property
    def images_at_hand(self) -> bool:
        """Whether every image has a source."""
        return all(image.source is not None for image in self.images)

    @checked
    def part(self, rows: Any, title: str) -> "Benchmark":
        """The chosen questions, under another title; counts are those of the whole, and are dropped."""
        part = self.select(rows)
        facts = {"title": title, "size": len(part), "counts": {}, "also": {}}
        return replace(part, card=self.card.model_copy(update=facts))

    @checked
    def spread(self, n: Count) -> NDArray[np.int64]:
        """The positions of `n` questions, evenly spread over all of them; of all where there are fewer."""
        if n >= len(self):
            return np.arange(len(self), dtype=np.int64)
        return np.linspace(0, len(self) - 1, n).round().astype(np.int64)

    @checked
    def limited(self, n: Count) -> "Benchmark":
        """The questions of `spread(n)`, for a quick look; the title says how many of how many they are.

        Raises `DataError` for a gallery: with fewer items in it, it would be another, easier one.
        """
        self.questions.check_limit(where=self._place)
        if n >= len(self):
            return self
        return self.part(self.spread(n), f"{self.card.title} ({n:,} of its {len(self):,})")

    def available(self) -> "Benchmark":
        """The benchmark of the questions whose images and captions are all at hand; itself where all are.

        Raises `DataError` where none is, and for a gallery of which some is missing: with fewer items in it,
        it would be another, easier one.
        """
        has_text = np.asarray([caption.text is not None for caption in self.captions])
        has_source = np.asarray([image.source is not None for image in self.images])
        at_hand = self.questions.at_hand(has_text, has_source, where=self._place)
        if at_hand.all():
            return self
        if not at_hand.any():
            missing = "images" if has_text.any() else "captions"
            hint = f"give the folder that holds the {missing}; given scores need none, without --available"
            raise DataError(f"no question has all of its {missing} at hand", where=self._place, hint=hint)
        return self.select(at_hand)

    @cached_property
    def digest(self) -> str:
        """Names the questions: captions, image ids, what goes together, groups; no pixels.

        Nor the order of the items, but in a gallery.
        """
        texts = [c.text if c.text is not None else [c.id] for c in self.captions]
        names = [[i.id, i.crop] for i in self.images]
        return digest_value(self.questions.digest(texts, names))

    def mentioned(self) -> "Benchmark":
        """All of its questions, without items that none asks for."""
        return self.select(np.arange(len(self)))

    def select(self, chosen: Any) -> "Benchmark":
        """The benchmark of the chosen questions (a mask or positions), without items that none asks for.

        A gallery stays whole, whatever queries are chosen.
        """
        positions, n = plain_array(chosen), len(self)
        if positions.dtype == bool and positions.shape == (n,):
            positions = np.flatnonzero(positions)
        if positions.shape == (0,):
            raise DataError("no question is left", where=self._place)
        if (
            positions.ndim != 1
            or positions.dtype.kind not in "iu"
            or not 0 <= positions.min() <= positions.max() < n
        ):
            allowed = f"{n:,} of True and False, or places from 0 to {n - 1:,}"
            raise InputError("no choice of questions", where=self.name, given=chosen, allowed=allowed)
        questions, captions, images = self.questions.take(positions.astype(np.int64))
        return replace(
            self,
            questions=questions,
            images=self.images if images is None else tuple(self.images[i] for i in images),
            captions=self.captions if captions is None else tuple(self.captions[i] for i in captions),
        )


def _numbers(values: Sequence[object], positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions as numbers of what lies there, equal for equal values; -1 stays."""
    return np.where(positions < 0, -1, distinct(values)[1][positions])


#: The reader of benchmarks whose layout the catalog describes.
SPEC_READER = "counterfoil.benchmarks.readers.specs:read"


def cards_of(package: str) -> Iterator[Card]:
    """The cards in `catalog.toml` of a package of counterfoil, in the order of the file."""
    rows = catalog(package)
    for name, row in rows.items():
        facts = dict(row)
        while (like := row.get("like")) is not None:
            row = rows[like]
            facts = row | facts
        if "pitfall" in facts:
            facts["pitfalls"] = [facts.pop("pitfall"), *facts["pitfalls"][1:]]
        card = {"name": name, "reader": SPEC_READER, **facts}
        card = {field: value for field, value in card.items() if field not in ("like", "layout")}
        yield check_model(card, Card, where=f"catalog.toml, [{name}]")


@cache
def catalog(package: str) -> dict[str, dict[str, Any]]:
    """The tables of `catalog.toml` in a package of counterfoil, by name."""
    # Of the file alone: the package stays unread.
    root, _, name = package.partition(".")
    text = files(root).joinpath(name, "catalog.toml").read_text(encoding="utf-8")
    return parse_toml(text, where="catalog.toml")


#: The card of every benchmark by name; `counterfoil.catalog` adds those that are drawn from the world.
BENCHMARKS: Registry[Card] = Registry(
    "benchmark",
    Card,
    "counterfoil.benchmarks",
    lambda: cards_of("counterfoil.benchmarks"),
    # Papers call the 5,000 test images so.
    synonyms={"mscoco": "coco-5k", "mscoco5k": "coco-5k", "mscoco1k": "coco-1k"},
)


def card(name: str) -> Card:
    """The card of one benchmark; raises `UnknownNameError` with the nearest name."""
    return BENCHMARKS.find(name)
