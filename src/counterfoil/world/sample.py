"""Benchmarks drawn from the world: every question known to have exactly one answer."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypedDict, Unpack

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark, Card, cards_of
from counterfoil.benchmarks.forms import Choice, Ids, Preference, Quad, Rated, Statement
from counterfoil.benchmarks.records import Caption, Image, Source
from counterfoil.errors import InputError
from counterfoil.inputs.limits import check_amount, most
from counterfoil.world.captions import OPENINGS, Meaning, text
from counterfoil.world.edits import SUBSETS, MinimalPair, edit
from counterfoil.world.painting import LazyDrawing, check_styles, draw_many
from counterfoil.world.scenes import Scene, one_of, sample_scene

#: At most this many edits of one scene, so that questions share images as they do in real benchmarks.
MOST_EDITS = 3

#: Pictures of fewer pixels to a side show nothing that a person could tell apart.
SMALLEST = 32
#: How many pictures are drawn at a time.
_BATCH = 500

#: What is drawn from a seed has a stream of random numbers of its own, so that no two share a scene.
#: Its place is its number: `clips`, moving scenes, are drawn no more.
STREAMS = (
    *("quads", "choices", "gallery", "loose", "contrasts", "rated", "preferences", "clips", "statements"),
    *("built", "built-training"),
)

#: Called with (stage, done, total) as pictures are drawn.
Progress = Callable[[str, int, int], None]


def silent(stage: str, done: int, total: int) -> None:
    """No progress is shown."""


class DrawingOptions(TypedDict, total=False):
    """How a benchmark is drawn, by default as `DrawingSettings` says."""

    seed: int
    size: int
    lazy: bool
    progress: Progress


@dataclass(frozen=True)
class DrawingSettings:
    """In which styles, from which seed, how large, and whether when a picture is read or at once."""

    styles: Sequence[str]
    seed: int = 0
    size: int = 192
    lazy: bool = False
    progress: Progress = silent

    @classmethod
    def checked(cls, n: int, what: str, styles: Sequence[str], options: DrawingOptions) -> "DrawingSettings":
        """The drawing of `n` (of `what`), whose number, size and styles are checked."""
        drawing = cls(styles, **options)
        check_number(n, what)
        check_size(drawing.size)
        check_styles(styles)
        return drawing

    @property
    def source(self) -> str:
        styles = " and ".join(dict.fromkeys(self.styles))
        return f"drawn with seed {self.seed}, {self.size} x {self.size} pixels, {styles}"


def stream(name: str, seed: int, *more: int) -> np.random.Generator:
    """The random numbers of one of `STREAMS` under a seed; `more` (1, 2, ...) keeps purposes apart in it."""
    check_amount("seed", seed)
    # Counted from 1: numpy takes [seed, 0] for [seed].
    return np.random.default_rng([seed, 1 + STREAMS.index(name), *more])


def contrasts(
    n: int, *, seed: int = 0, of: str = "quads", distinct: bool = True, progress: Progress = silent
) -> list[MinimalPair]:
    """`n` unambiguous contrasts, the seven kinds of edit equally often, one to three to a scene.

    Every second contrast of a kind is reversed, so the scene before the edit comes first as often as the one
    after it. The same seed gives the same contrasts, and a larger `n` begins with those of a smaller one.
    Where captions are `distinct`, none is used for two scenes.

    >>> [contrast.type for contrast in contrasts(7)].count("replace")
    3
    """
    check_number(n, "questions")
    rng = stream(of, seed)
    drawn: list[MinimalPair] = []
    queue: list[str] = []
    turned = dict.fromkeys(SUBSETS, False)
    spoken: set[Meaning] = set()
    while len(drawn) < n:
        scene = sample_scene(rng)
        new_meanings: set[Meaning] = set()
        for _ in range(int(rng.integers(1, MOST_EDITS + 1))):
            if not queue:
                queue = [SUBSETS[i] for i in rng.permutation(len(SUBSETS))]
            pair = edit(scene, queue[0], rng)
            # A scene without room for the edit leaves it to the next one.
            if pair is None or (distinct and spoken.intersection(pair.captions)):
                break
            new_meanings.update(pair.captions)
            turned[queue[0]] = not turned[queue[0]]
            drawn.append(pair if turned[queue[0]] else pair.reversed)
            queue.pop(0)
        spoken |= new_meanings
        progress("making up scenes", min(len(drawn), n), n)
    return drawn[:n]


def quads(
    n: int, *, styles: tuple[str, str] = ("natural", "natural"), **options: Unpack[DrawingOptions]
) -> Benchmark:
    """A benchmark of `n` quads with pictures of `size` x `size` pixels; the same seed gives the same bytes.

    `styles` are those of a question's two images: BiVLC's are ("natural", "synthetic"). `lazy` pictures are
    drawn when they are read. Groupings are `type` and `subset` ("replace_obj", ...).

    >>> benchmark = quads(7, size=48)
    >>> len(benchmark), sorted(set(benchmark.questions.groupings["type"]))
    (7, ['add', 'replace', 'swap'])
    """
    drawing = DrawingSettings.checked(n, "questions", styles, options)
    return benchmark(contrasts(n, seed=drawing.seed), styles=styles, **options)


def benchmark(
    contrasts: Sequence[MinimalPair],
    *,
    styles: tuple[str, str] = ("natural", "natural"),
    **options: Unpack[DrawingOptions],
) -> Benchmark:
    """The contrasts spoken and drawn; equal scenes become one image and equal sentences one caption."""
    drawing, items = DrawingSettings(styles, **options), Items()
    images = [
        [items.image(scene, style) for scene, style in zip(pair.scenes, styles, strict=True)]
        for pair in contrasts
    ]
    questions = Quad(
        _ids(contrasts),
        captions=items.spoken(contrasts, stream("quads", drawing.seed, 1)),
        images=np.asarray(images, dtype=np.int64),
        groupings=groupings(contrasts),
    )
    return items.benchmark("world-quads", questions, drawing)


def choices(n: int, *, style: str = "natural", **options: Unpack[DrawingOptions]) -> Benchmark:
    """`n` choices between a caption of an image and its edit, as in SugarCrepe; same seed, same bytes.

    What is added is right as often as wrong, unlike in SugarCrepe. Scenes are others than those of `quads`.
    """
    drawing = DrawingSettings.checked(n, "questions", [style], options)
    pairs = contrasts(n, seed=drawing.seed, of="choices")
    items = Items()
    questions = Choice(
        _ids(pairs),
        query=items.pictured((pair.scenes[0] for pair in pairs), style),
        candidates=items.spoken(pairs, stream("choices", drawing.seed, 1)),
        groupings=groupings(pairs),
    )
    return items.benchmark("world-choices", questions, drawing)


def statements(n: int, *, style: str = "natural", **options: Unpack[DrawingOptions]) -> Benchmark:
    """`n` statements about pictures, a true and a false one in turn; the same seed gives the same bytes.

    The caption of a scene, and that of the edited scene, which is false of it. Scenes are others than those
    of `quads` and `choices`.

    >>> made = statements(7, size=48)
    >>> made.statements.truth.tolist(), len(made.images)
    ([True, False, True, False, True, False, True], 3)
    """
    drawing = DrawingSettings.checked(n, "questions", [style], options)
    pairs = contrasts((n + 1) // 2, seed=drawing.seed, of="statements")
    items = Items()
    words = ("true", "false")
    questions = Statement(
        tuple(f"{name}-{word}" for name in _ids(pairs) for word in words),
        captions=items.spoken(pairs, stream("statements", drawing.seed, 1)).reshape(-1),
        images=np.repeat(items.pictured((pair.scenes[0] for pair in pairs), style), 2),
        truth=np.tile([True, False], len(pairs)),
        groupings={
            name: tuple(label for label in labels for _ in words) for name, labels in groupings(pairs).items()
        },
    ).select(np.arange(n))
    return items.benchmark("world-statements", questions, drawing)


@dataclass
class Items:
    """Pictures to draw and sentences, each once, by their places in order of first use."""

    scenes: dict[tuple[Scene, str], int] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    #: What a picture is that is drawn when it is read.
    drawing: type[LazyDrawing] = LazyDrawing

    def image(self, scene: Scene, style: str) -> int:
        return self.scenes.setdefault((scene, style), len(self.scenes))

    def caption(self, sentence: str) -> int:
        return self.texts.setdefault(sentence, len(self.texts))

    def spoken(self, contrasts: Sequence[MinimalPair], rng: np.random.Generator) -> Ids:
        """(contrasts, 2): the positions of both captions of each, which begin alike."""
        openings = ((pair, one_of(OPENINGS, rng)) for pair in contrasts)
        pairs = [[self.caption(text(c, opening=opening)) for c in of.captions] for of, opening in openings]
        return np.asarray(pairs, dtype=np.int64)

    def pictured(self, scenes: Iterable[Scene], style: str) -> Ids:
        return np.asarray([self.image(scene, style) for scene in scenes], dtype=np.int64)

    def images(self, drawing: DrawingSettings) -> tuple[Image, ...]:
        """All pictures, drawn now, or each when it is read."""
        drawn = [
            self.drawing(scene, drawing.size, style, f"scene {i} of the world")
            for i, (scene, style) in enumerate(self.scenes)
        ]
        sources = drawn if drawing.lazy else _painted(drawn, drawing.progress)
        return tuple(Image(f"scene-{i:05d}", source) for i, source in enumerate(sources))

    def captions(self) -> tuple[Caption, ...]:
        return tuple(Caption(f"caption-{i:05d}", sentence) for sentence, i in self.texts.items())

    def benchmark(
        self, name: str, questions: Quad | Choice | Statement | Rated | Preference, drawing: DrawingSettings
    ) -> Benchmark:
        card = card_of(name, len(questions))
        return Benchmark(card, self.images(drawing), self.captions(), questions, drawing.source)


def _painted(drawn: Sequence[LazyDrawing], progress: Progress) -> list[Source]:
    sources: list[Source] = []
    for start in range(0, len(drawn), _BATCH):
        batch = drawn[start : start + _BATCH]
        pixels = draw_many(
            [drawing.scene for drawing in batch], batch[0].size, style=[drawing.style for drawing in batch]
        )
        sources += [drawing.source(picture) for drawing, picture in zip(batch, pixels, strict=True)]
        progress("drawing", len(sources), len(drawn))
    return sources


def card_of(name: str, size: int) -> Card:
    """The card of one of the world's benchmarks, for a number of questions."""
    (card,) = (card for card in cards_of("counterfoil.world") if card.name == name)
    return card.model_copy(update={"size": size})


def groupings(contrasts: Sequence[MinimalPair]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(getattr(pair, name) for pair in contrasts) for name in ("type", "subset")}


def check_number(n: int, what: str) -> None:
    """Raise `InputError` unless there is at least one, and no more than a command draws."""
    if n < 1:
        raise InputError(f"the number of {what} must be positive", given=n, allowed="1, 2, 3, ...")
    check_amount("items", n, what=f"the number of {what}")


def check_size(size: int) -> None:
    """Raise `InputError` where a picture would be too small to see what it shows, or needlessly large."""
    if size > most("size"):
        check_amount("size", size, what="pixels to a side")
    if size < SMALLEST:
        given, allowed = f"{size} x {size} pixels", f"{SMALLEST} pixels to a side or more"
        raise InputError("the pictures would be too small to see anything", given=given, allowed=allowed)


def _ids(contrasts: Sequence[MinimalPair]) -> tuple[str, ...]:
    return tuple(f"{pair.subset}-{i:05d}" for i, pair in enumerate(contrasts))
