"""Baselines: models that never look at the image, and one that sees nothing but colours.

A benchmark on which a blind model beats chance can be answered without looking. Some learn from the other
questions of a benchmark, which share no item with that answered: `unigram` knows word frequencies,
`bag-of-words` which words right captions have, and `learned` also which neighbours words have, how long
captions are and where they differ.
"""

import hashlib
import re
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import PIL.Image
from jaxtyping import Float, Int
from numpy import ndarray

from counterfoil.benchmarks.records import Caption, FileSource, Image, PixelSource, words
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.inputs.files import digest, digest_value
from counterfoil.models import base

if TYPE_CHECKING:
    from counterfoil.benchmarks.contrasts import Contrasts

_WIDTH = 32


class _Alike(base.ComparedByCosine):
    """Rows of captions that are compared by cosine, without a model."""

    does = ("scores_pairs", "embeds_texts")

    def lengths(self, captions: Sequence[Caption]) -> Sequence[int]:
        return [0] * len(captions)


@dataclass(frozen=True)
class Constant(_Alike):
    """Every pair scores the same: all ties. Strict comparison gives it 0, half points exactly chance."""

    needs = ()

    identity: base.Identity

    def score(self, images: Sequence[Image], captions: Sequence[Caption]) -> Float[ndarray, "pairs"]:
        return np.zeros(len(captions), dtype=np.float64)

    def embed_captions(self, batches: base.CaptionBatches) -> base.BatchVectors:
        for batch in batches:
            yield np.ones((len(batch), 1), dtype=np.float32)


@dataclass(frozen=True)
class Random(_Alike):
    """Every pair draws its score from [0, 1) by a digest of seed, caption and image id."""

    needs = ()

    identity: base.Identity
    seed: int

    def score(self, images: Sequence[Image], captions: Sequence[Caption]) -> Float[ndarray, "pairs"]:
        """Uniform in [0, 1), in steps of 2**-53; ties do not happen in practice."""
        pairs = zip(images, captions, strict=True)
        numbers = [self._number(caption, image.id, repr(image.crop)) for image, caption in pairs]
        return np.asarray([float((number >> 11) * 2.0**-53) for number in numbers], dtype=np.float64)

    def embed_captions(self, batches: base.CaptionBatches) -> base.BatchVectors:
        """A random unit vector for every text: of three captions any two are as likely the nearest."""
        for batch in batches:
            drawn = [np.random.default_rng(self._number(caption)).normal(size=_WIDTH) for caption in batch]
            rows = np.array(drawn).reshape(len(batch), _WIDTH)
            yield (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def _number(self, caption: Caption, *more: str) -> int:
        """64 bits for a caption and what else is given."""
        # Captions that are not at hand are told apart by their ids; lengths keep the parts apart.
        caption_key = ("text", caption.text) if caption.text is not None else ("id", caption.id)
        state = hashlib.blake2b(digest_size=8)
        for part in (str(self.seed), *caption_key, *more):
            data = part.encode("utf-8", "surrogatepass")
            state.update(struct.pack("<q", len(data)) + data)
        return int.from_bytes(state.digest(), "little")


@dataclass(frozen=True, eq=False)
class ConstantImage:
    """A model that sees one and the same picture in place of every image: what captions alone tell it."""

    does = ("scores_pairs",)
    needs = ("captions",)

    identity: base.Identity
    model: Any
    picture: Image

    def score_pairs(self, batches: base.PairBatches, *, workers: int = 0) -> base.BatchNumbers:
        if isinstance(self.model, base.Embedder):
            (picture,) = self.model.embed_images([[self.picture]])
            captions = self.model.embed_captions([[caption for _, caption in batch] for batch in batches])
            for part in captions:
                yield self.model.compare(part, np.repeat(picture, len(part), axis=0))
            return
        shown = [[(self.picture, caption) for _, caption in batch] for batch in batches]
        yield from base.stream_pairs(self.model, shown)

    def over_limit(self, captions: Sequence[Caption]) -> int:
        return base.truncated(self.model, captions)


#: The mean colour of the photographs that CLIP was trained on, out of 255.
_MEAN_COLOUR = (123, 117, 104)
_MEAN_SIDE = 224


def constant_image(model: Any, options: base.Options) -> ConstantImage:
    """`blind:constant-image`: `model` with a picture of the mean colour, or that of `--set image=PATH`."""
    name = "blind:constant-image"
    _check_settings(options, ("image",), where=name)
    blind = "images" not in getattr(model, "needs", ("images",))
    if blind or not {"embeds", "scores_pairs"} & set(base.abilities(model)):
        problem = "needs a model that looks at images behind it"
        raise InputError(problem, where=name, given=model.identity.name)
    pixels = np.full((_MEAN_SIDE, _MEAN_SIDE, 3), _MEAN_COLOUR, dtype=np.uint8)
    if path := options.settings.get("image"):
        picture = Image(path, FileSource(Path(path))).decode()
        pixels = np.asarray(picture.resize((_MEAN_SIDE, _MEAN_SIDE)))
    model_identity = base.identity_of(model)
    options_of = {**model_identity.options, "image": digest(pixels.tobytes())}
    identity = replace(model_identity, name=f"{name} {model_identity.name}", options=options_of)
    return ConstantImage(identity, model, Image("the mean image", PixelSource(pixels)))


#: The weight of the squared length of the coefficients of a fit.
RIDGE = 1.0
LEAST = 2


def log_frequencies(contrasts: "Contrasts") -> Float[ndarray, "rows"]:
    """The mean log-frequency of each caption's words among the distinct captions of the other folds."""
    scores = np.zeros(len(contrasts.texts))
    for tested, learned in contrasts.splits():
        distinct = {" ".join(contrasts.tokens[row]): row for row in np.flatnonzero(learned)}
        table = WordFrequencies.of(contrasts.tokens[row] for row in distinct.values())
        scores[tested] = [table.mean_log(contrasts.tokens[row]) for row in np.flatnonzero(tested)]
    return scores


@dataclass(frozen=True, eq=False)
class WordFrequencies:
    counts: Mapping[str, int]
    total: int

    @classmethod
    def of(cls, captions: Iterable[Sequence[str]]) -> "WordFrequencies":
        counts = Counter(chain.from_iterable(captions))
        return cls(counts, counts.total())

    def mean_log(self, tokens: Sequence[str]) -> float:
        """The mean over words of log((count + 1) / (total + different words + 1))."""
        whole = self.total + len(self.counts) + 1
        # Captions of the same words are equal to the last bit, in whatever order they have them.
        seen = sorted(self.counts.get(word, 0) + 1 for word in tokens) or [1]
        return float(np.mean(np.log(seen)) - np.log(whole))


#: Numbers beside n-grams: of words, of letters, of words that only this caption has, and where these stand.
SHAPE = ("words", "letters", "own words", "place of own words")


def shapes(contrasts: "Contrasts") -> Float[ndarray, "rows 4"]:
    """`SHAPE` of each row; places are from 0, the first word, to 1, the last, and 1/2 without own words."""
    numbers = np.zeros((len(contrasts.texts), len(SHAPE)))
    of_question: dict[int, list[int]] = {}
    for row, question in enumerate(contrasts.question.tolist()):
        of_question.setdefault(question, []).append(row)
    for rows in of_question.values():
        for row in rows:
            tokens = contrasts.tokens[row]
            others = {word for other in rows if other != row for word in contrasts.tokens[other]}
            positions = [place for place, word in enumerate(tokens) if word not in others and len(rows) > 1]
            place = float(np.mean(positions)) / max(1, len(tokens) - 1) if positions else 0.5
            numbers[row] = len(tokens), len(contrasts.texts[row]), len(positions), place
    return numbers


def learned_scores(contrasts: "Contrasts", *, ngrams: int, shape: bool) -> Float[ndarray, "rows"]:
    """A score of each caption by a linear model that was fitted to the questions of the other folds.

    Contrasts are fitted by logistic regression of "the first is right" on the difference of the features of a
    right and a wrong caption, without an intercept; ratings by least squares; both with `RIDGE`. Features are
    the presence of words (`ngrams` 1), of words and neighbours (2), and with `shape` the numbers of `shapes`,
    in units of their standard deviation. Where nothing is left to learn from, scores are 0.
    """
    from scipy.sparse import csr_matrix, hstack

    named = []
    for tokens in contrasts.tokens:
        neighbours = pairwise(["^", *tokens, "$"]) if ngrams > 1 else ()
        named.append(sorted({*tokens, *map(" ".join, neighbours)}))
    names = {name: i for i, name in enumerate(sorted({name for row in named for name in row}))}
    columns = np.array([names[name] for row in named for name in row], dtype=np.int64)
    starts = np.cumsum([0, *map(len, named)])
    table = csr_matrix((np.ones(len(columns)), columns, starts), shape=(len(named), len(names)))
    if shape:
        numbers = shapes(contrasts)
        spread = numbers.std(axis=0)
        table = hstack([table, csr_matrix(numbers / np.where(spread > 0, spread, 1))]).tocsr()
    # The order of the texts, and not of the questions, decides how sums are rounded.
    order = sorted(range(len(named)), key=lambda row: (contrasts.keys[row], contrasts.truth[row]))
    pairs, scores = contrasts.pairs, np.zeros(len(named))
    for tested, learned in contrasts.splits():
        if contrasts.rated:
            rows = [row for row in order if learned[row]]
            if rows:
                weights, middle = _least_squares(table[rows], contrasts.truth[rows])
                scores[tested] = table[tested] @ weights + middle
            continue
        chosen = pairs[learned[pairs].all(axis=1)]
        if len(chosen):
            scores[tested] = table[tested] @ _logistic(table[chosen[:, 0]] - table[chosen[:, 1]])
    return scores


def _logistic(differences: Any) -> Float[ndarray, "features"]:
    """The coefficients that make every row's product large, with `RIDGE`."""
    from scipy.optimize import minimize
    from scipy.special import expit

    columns = np.flatnonzero(np.asarray((differences != 0).sum(axis=0)).reshape(-1) >= LEAST)
    inside = differences[:, columns].tocsr()
    across = inside.T.tocsr()

    def loss(weights: ndarray) -> tuple[float, ndarray]:
        product = inside @ weights
        value = np.logaddexp(0, -product).sum() + RIDGE / 2 * weights @ weights
        return float(value), RIDGE * weights - across @ expit(-product)

    fitted = minimize(loss, np.zeros(len(columns)), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    weights = np.zeros(differences.shape[1])
    weights[columns] = fitted.x
    return weights


def _least_squares(table: Any, values: Float[ndarray, "rows"]) -> tuple[Float[ndarray, "features"], float]:
    """Coefficients and the mean, with `RIDGE` on features less their means."""
    from scipy.sparse.linalg import LinearOperator, lsqr

    means = np.asarray(table.mean(axis=0)).reshape(-1)
    centred = LinearOperator(
        table.shape,
        matvec=lambda x: table @ x.reshape(-1) - means @ x.reshape(-1),
        rmatvec=lambda y: table.T @ y.reshape(-1) - means * y.sum(),
    )
    middle = float(values.mean())
    weights: ndarray = lsqr(centred, values - middle, damp=RIDGE**0.5, atol=1e-10, btol=1e-10)[0]
    return weights, middle - float(means @ weights)


@dataclass(frozen=True, eq=False)
class LearnedModel:
    """A model whose answer to a question is learned from the others; `answer` is given all of them."""

    does = ("learns",)
    needs = ("captions",)

    identity: base.Identity
    kind: str

    def answer(self, contrasts: "Contrasts") -> Float[ndarray, "rows"]:
        if self.kind == "unigram":
            return log_frequencies(contrasts)
        more = self.kind == "learned"
        return learned_scores(contrasts, ngrams=2 if more else 1, shape=more)


FITS = ("unigram", "bag-of-words", "learned")


@dataclass(frozen=True, eq=False)
class Unigram(base.OfText):
    """The mean log-frequency of a caption's words in a file of captions."""

    table: WordFrequencies

    def number(self, text: str) -> float:
        return self.table.mean_log(words(text))


_BLIND = ("constant", "random", "length")


def load_blind(argument: str, options: base.Options = base.DEFAULT) -> Any:
    """`constant`, `random` (draws from `options.seed`), `length` or one that learns (`FITS`)."""
    name = f"blind:{argument}"
    if argument == "constant-image":
        hint = "--backbone open-clip:ARCH/PRETRAINED"
        raise InputError("needs a model that looks at the mean image", where=name, hint=hint)
    if argument in FITS:
        _check_settings(options, ("captions",) if argument == "unigram" else (), where=name)
        base.reject_unused_options(name, options, "settings")
        if not (path := options.settings.get("captions")):
            return LearnedModel(base.Identity(name, revision="1"), argument)
        from counterfoil.benchmarks.caption_files import read_texts

        table = WordFrequencies.of(map(words, read_texts(Path(path))))
        return Unigram(base.Identity(name, weights=digest_value(table.counts), revision="1"), table)
    if argument not in _BLIND:
        raise UnknownNameError("blind model", argument, (*_BLIND, *FITS, "constant-image"), where=name)
    base.reject_unused_options(name, options)
    if argument == "random":
        return Random(base.Identity(name, revision="1", options={"seed": options.seed}), options.seed)
    return (Constant if argument == "constant" else base.OfText)(base.Identity(name, revision="1"))


def _check_settings(options: base.Options, taken: Sequence[str], *, where: str) -> None:
    """Raise `UnknownNameError` for a setting that is one of other blind models."""
    if unknown := [key for key in options.settings if key not in taken]:
        raise UnknownNameError("setting", unknown[0], taken, where=where)


#: The eleven basic colour words of English (Berlin and Kay, 1969), with the colours of CSS that they name.
ANCHORS: Mapping[str, tuple[str, ...]] = {
    "black": ("#000000", "#1c1c1c"),
    "white": ("#ffffff", "#f5f5f5", "#fffaf0", "#f0f8ff"),
    "grey": ("#696969", "#808080", "#a9a9a9", "#c0c0c0"),
    "red": ("#ff0000", "#dc143c", "#b22222", "#8b0000"),
    "orange": ("#ffa500", "#ff8c00", "#ff7f50"),
    "yellow": ("#ffff00", "#ffd700", "#f0e68c"),
    "green": ("#008000", "#32cd32", "#2e8b57", "#006400", "#90ee90", "#6b8e23"),
    "blue": ("#0000ff", "#1e90ff", "#4169e1", "#000080", "#87ceeb", "#4682b4"),
    "purple": ("#800080", "#4b0082", "#9370db", "#663399"),
    "pink": ("#ffc0cb", "#ff69b4", "#ffb6c1", "#db7093"),
    "brown": ("#8b4513", "#a0522d", "#5c4033", "#d2b48c"),
}
_NAMES = tuple(ANCHORS)
_NEUTRAL = ("black", "white", "grey")
_OTHER_SPELLINGS = {"gray": "grey", "violet": "purple"}
_WORD = re.compile(rf"\b({'|'.join([*_NAMES, *_OTHER_SPELLINGS])})\b", re.IGNORECASE)

#: A colour on less than the first part of the pixels is not there, on more than the second it is.
_ABSENT, _PRESENT = 0.001, 0.004
#: Larger pictures are sampled down to this side.
_SIDE = 256


def load_pixels(argument: str, options: base.Options = base.DEFAULT) -> "Colours":
    """`colours`; `UnknownNameError` for any other."""
    name = f"pixels:{argument}"
    base.reject_unused_options(name, options)
    if argument != "colours":
        raise UnknownNameError("reader of pixels", argument, ["colours"], where=name)
    recipe = {"anchors": dict(ANCHORS), "absent": _ABSENT, "present": _PRESENT, "side": _SIDE}
    return Colours(base.Identity(name, revision="1", preprocessing=digest_value(recipe)))


@dataclass(frozen=True)
class Colours:
    """Which colours a caption names, against which the image shows, and how much of its colour they are."""

    does = ("scores_pairs",)

    identity: base.Identity

    def score(self, images: Sequence[Image], captions: Sequence[Caption]) -> Float[ndarray, "pairs"]:
        return next(self.score_pairs([list(zip(images, captions, strict=True))]))

    def score_pairs(self, batches: base.PairBatches, *, workers: int = 0) -> base.BatchNumbers:
        """As `score`, batch by batch; pixels are decoded and counted in `workers` processes."""
        from counterfoil.models.images import prepared

        named = [
            [(image, colour_words(base.text_of(caption))) for image, caption in batch] for batch in batches
        ]
        # An image in several pairs of one batch is opened once, and only where a caption names a colour.
        shown = [list({id(image): image for image, words in batch if words}.values()) for batch in named]
        with closing(prepared(shown, _shares, workers=workers)) as stream:
            for batch, images, parts in zip(named, shown, stream, strict=True):
                rows = [dict(zip(_NAMES, row.tolist(), strict=True)) for row in parts]
                seen = dict(zip(map(id, images), rows, strict=True))
                scores = [agreement(words, seen[id(image)]) if words else 0.0 for image, words in batch]
                yield np.asarray(scores, dtype=np.float64)


def _shares(picture: PIL.Image.Image) -> Float[ndarray, "colours"]:
    return np.asarray([*shares(picture).values()])


def agreement(words: Sequence[str], parts: Mapping[str, float]) -> float:
    """The sum over `words` of 2 p - 1, with p in [0, 1] how surely the colour is there, plus the coverage.

    `parts` are the shares of the colours in the picture. Coverage, in whole hundredths, is how much of what
    is not black, white or grey (unless named) bears a named colour: of two pictures that both show red, "a
    red star" fits the one with less besides.

    >>> agreement(["red"], {"red": 0.1, "blue": 0.3, "white": 0.6})
    1.25
    >>> agreement(["red", "green"], {"red": 0.1, "white": 0.9})
    1.0
    """
    sure = sum(
        2 * min(max((parts.get(word, 0.0) - _ABSENT) / (_PRESENT - _ABSENT), 0.0), 1.0) - 1 for word in words
    )
    ground = sum(part for name, part in parts.items() if name in words or name not in _NEUTRAL)
    covered = sum(parts.get(word, 0.0) for word in words)
    # Hundredths, since the compression of a photograph moves a few pixels from one name to another.
    return sure + (round(covered / ground, 2) if ground else 0.0)


def colour_words(text: str) -> list[str]:
    """The distinct basic colours that a text names, in its order.

    >>> colour_words("A Gray cat, a red ball and a redder, grey hat.")
    ['grey', 'red']
    """
    words = (word.lower() for word in _WORD.findall(text))
    return list(dict.fromkeys(_OTHER_SPELLINGS.get(word, word) for word in words))


def shares(picture: PIL.Image.Image) -> dict[str, float]:
    """The part of an RGB picture's pixels that bears each basic colour; the parts sum to 1.

    >>> half = PIL.Image.new("RGB", (64, 64), "navy")
    >>> half.paste("gold", (0, 0, 64, 16))
    >>> {name: part for name, part in shares(half).items() if part}
    {'yellow': 0.25, 'blue': 0.75}
    """
    if max(picture.size) > _SIDE:
        # Nearest pixels: averages would mix colours that are not there.
        width, height = (max(1, round(side * _SIDE / max(picture.size))) for side in picture.size)
        picture = picture.resize((width, height), PIL.Image.Resampling.NEAREST)
    coarse = np.asarray(picture).reshape(-1, 3).astype(np.int64) >> 3
    names = _names_of_cells()[coarse @ np.array([1024, 32, 1])]
    part = np.bincount(names, minlength=len(_NAMES)) / len(names)
    return dict(zip(_NAMES, part.tolist(), strict=True))


@cache
def _names_of_cells() -> Int[ndarray, "32768"]:
    """The name of each of 32 x 32 x 32 cells of RGB: that of the nearest anchor in CIE Lab."""
    steps = np.arange(32) * 8 + 4
    cells = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    colours = [(number, code) for number, name in enumerate(_NAMES) for code in ANCHORS[name]]
    anchors = np.array([[int(code[i : i + 2], 16) for i in (1, 3, 5)] for _, code in colours])
    differences = _lab(cells)[:, None] - _lab(anchors)[None]
    return np.array([number for number, _ in colours])[(differences**2).sum(axis=2).argmin(axis=1)]


def _lab(rgb: Int[ndarray, "n 3"]) -> Float[ndarray, "n 3"]:
    """CIE Lab (D65) of sRGB in 0 to 255."""
    encoded = rgb / 255
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    relative = linear @ to_xyz.T / np.array([0.9505, 1.0, 1.089])
    x, y, z = np.where(relative > (6 / 29) ** 3, np.cbrt(relative), relative / (3 * (6 / 29) ** 2) + 4 / 29).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)
