"""Rankings of galleries by any kind of scorer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from counterfoil.data.answers import DirectionRanks, Rankings
from counterfoil.data.benchmark import Benchmark
from counterfoil.data.forms import Gallery
from counterfoil.engine import rerank
from counterfoil.engine.align import item_rows
from counterfoil.engine.blocks import Blocks, Matrix, Positions, Products, first_equal, unit
from counterfoil.engine.gallery import rank
from counterfoil.engine.given_rankings import rank_given
from counterfoil.engine.plan import ability_for
from counterfoil.engine.session import Session, with_provenance
from counterfoil.errors import InputError, ScoreError
from counterfoil.scorers.base import Ability, Classifier, Embedder, PairScorer, Scorer, abilities
from counterfoil.scorers.captions.base import CaptionMetric
from counterfoil.scorers.given import GivenTable
from counterfoil.scorers.given_galleries import GivenEmbeddings, GivenRankings, GivenSimilarity
from counterfoil.scorers.learned import LearnedScorer
from counterfoil.scorers.matching_probability import RowSimilarity


class CustomSimilarity:
    """Blocks of a comparison of rows: several points per item, or distributions.

    Equal captions get equal scores to the last bit, as in `Products`.
    """

    def __init__(
        self,
        comparison: RowSimilarity,
        images: Float[ndarray, "images width"],
        captions: Float[ndarray, "captions width"],
    ) -> None:
        self._comparison, self._images, self._captions = comparison, images, captions
        self.n_images, self.n_captions = len(images), len(captions)
        self.itemsize = int(np.result_type(images, captions).itemsize)
        distinct, self._column = np.unique(first_equal(captions), return_inverse=True)
        # A score here costs many times what a copy of it does: each distinct caption is compared once.
        self._distinct = captions if len(distinct) == len(captions) else captions[distinct]

    def rows(self, images: slice) -> Float[ndarray, "rows captions"]:
        """The scores of some images with all captions."""
        return self._spread(self._comparison.block(self._images[images], self._distinct), self._column)

    def part(self, images: Positions, captions: Positions) -> Float[ndarray, "rows columns"]:
        """The scores of some images with some captions."""
        columns, back = np.unique(self._column[captions], return_inverse=True)
        return self._spread(self._comparison.block(self._images[images], self._distinct[columns]), back)

    def _spread(self, scores: ndarray, column: ndarray) -> ndarray:
        if len(column) == scores.shape[1] and bool((column == np.arange(len(column))).all()):
            return scores
        return np.ascontiguousarray(scores[:, column])


Given = GivenTable | GivenEmbeddings | GivenSimilarity | GivenRankings

#: A scorer of pairs is asked about all pairs of a gallery of at most so many.
ALL_PAIRS = 1_000_000


def rank_galleries(
    benchmarks: Sequence[Benchmark],
    scorer: Embedder | PairScorer | Scorer | Classifier | Given | CaptionMetric | LearnedScorer,
    *,
    first_stage: Embedder | PairScorer | Scorer | Given | None = None,
    depth: int = 32,
    top: int = 50,
    truncated_as_miss: bool = False,
    session: Session = Session(),
) -> list[Rankings]:
    """What `scorer` answers to galleries: the places of right answers, and the first `top` of each query.

    * An `Embedder` embeds each distinct item once; where it carries a `comparison` of its own, that makes the
      scores of a block in place of the inner product. Given embeddings and similarities are matched by
      their ids. Galleries of the same items are ranked in one pass, in blocks.
    * Given rankings are read as far as they go; `truncated_as_miss` takes what they do not list as wrong.
    * A `Scorer` of pairs scores all pairs of a gallery of up to a million; with a `first_stage` only what
      that one puts first, `depth` items of each query, which then come first (`rerank.name` says so).

    Raises `InputError` for a scorer of pairs on a larger gallery without a first stage, and otherwise what
    `counterfoil.engine.run` raises.
    """
    able = {ability_for(scorer, each) for each in benchmarks}
    if able == {"given_rankings"}:
        lists = cast(GivenRankings, scorer)
        ranked = [
            rank_given(each, lists, top=top, truncated_as_miss=truncated_as_miss, note=session.note)
            for each in benchmarks
        ]
        return [with_provenance(each, scorer, session=session) for each in ranked]
    if first_stage is not None and able != {"scores_pairs"}:
        raise InputError(
            "a first stage is for scorers of pairs",
            given=scorer.identity.name,
            hint="leave --first-stage out: this scorer ranks the whole gallery",
        )
    found: dict[int, Rankings] = {}
    for group in _same_items(benchmarks):
        chosen = [benchmarks[i] for i in group]
        if first_stage is not None:
            part = _again(chosen, scorer, first_stage, depth, top, session)  # type: ignore[arg-type]
        else:
            part = rank(chosen, _blocks(chosen[0], scorer, session), top=top, progress=session.progress)
        found |= dict(zip(group, part, strict=True))
    return [
        with_provenance(found[i], scorer, first=first_stage, session=session) for i in range(len(benchmarks))
    ]


def _blocks(benchmark: Benchmark, scorer: Any, session: Session) -> Blocks:
    """The scores of all images of a gallery with all its captions."""
    return _BLOCKS[ability_for(scorer, benchmark)](benchmark, scorer, session)


def _embedded(benchmark: Benchmark, scorer: Embedder, session: Session) -> Blocks:
    work, kept = session.prepare(benchmark, scorer)
    found = session.embed(scorer, work, kept)
    images, captions = found[1][work.image_of], found[0][work.caption_of]
    comparison = getattr(scorer, "comparison", None)
    return (
        Products(images, captions) if comparison is None else CustomSimilarity(comparison, images, captions)
    )


def _paired(benchmark: Benchmark, scorer: PairScorer | Scorer, session: Session) -> Blocks:
    n, m = len(benchmark.images), len(benchmark.captions)
    if n * m > ALL_PAIRS:
        raise InputError(
            f"{benchmark.name} has too many pairs for a scorer of pairs",
            where=scorer.identity.name,
            given=f"{n:,} x {m:,} = {n * m:,}",
            allowed=f"up to {ALL_PAIRS:,}",
            hint="let a dual encoder choose: --first-stage SCORER --depth 32",
        )
    images, captions = np.divmod(np.arange(n * m), m)
    return Matrix(_scores(benchmark, scorer, captions, images, session).reshape(n, m))


def _given_products(benchmark: Benchmark, given: GivenEmbeddings, session: Session) -> Blocks:
    images, captions = _rows(benchmark, given, len(given.images), len(given.captions), held="embedding")
    return Products(unit(given.images)[images], unit(given.captions)[captions])


def _scores(
    benchmark: Benchmark,
    scorer: PairScorer | Scorer,
    captions: Int[ndarray, "pairs"],
    images: Int[ndarray, "pairs"],
    session: Session,
) -> Float[ndarray, "pairs"]:
    """The scores of some pairs, each distinct one computed once."""
    work, kept = session.prepare(benchmark, scorer, pairs=(captions, images))
    scores = work.spread(session.score_pairs(scorer, work, kept))
    session.note_truncated(scorer, work, kept, scorer.identity.name)
    return scores


def _again(
    benchmarks: Sequence[Benchmark],
    scorer: PairScorer | Scorer,
    first_stage: Embedder | Given,
    depth: int,
    top: int,
    session: Session,
) -> list[Rankings]:
    """A scorer of pairs over the first items of a first stage."""
    if not set(abilities(first_stage)) & _WHOLE:
        raise InputError(
            "the first stage must score the whole gallery",
            given=first_stage.identity.name,
            allowed="a dual encoder, embeddings or a similarity",
        )
    if depth < 1:
        raise InputError("number of items to rank again", given=depth, allowed="1 or more")
    blocks = _blocks(benchmarks[0], first_stage, session)
    first = rank(benchmarks, blocks, top=top, progress=session.progress)
    chosen = [
        rerank.candidates(each.gallery, side, blocks, depth) for each in benchmarks for side in ("i2t", "t2i")
    ]
    captions, images = (np.concatenate(some) for some in zip(*(c.pairs() for c in chosen), strict=True))
    scores = _scores(benchmarks[0], scorer, captions, images, session)
    ends = np.cumsum([len(each.pairs()[0]) for each in chosen])
    parts = iter(np.split(scores, ends)[:-1])
    again = iter(chosen)

    def side(gallery: Gallery, placed: DirectionRanks) -> DirectionRanks:
        own = next(again)
        return rerank.reordered(gallery, placed, own, own.scored(next(parts)), blocks)

    return [
        Rankings(side(each.gallery, found.i2t), side(each.gallery, found.t2i))
        for each, found in zip(benchmarks, first, strict=True)
    ]


def _given_matrix(benchmark: Benchmark, given: GivenSimilarity, session: Session) -> Blocks:
    rows, columns = given.values.shape
    asked = len(benchmark.images), len(benchmark.captions)
    named = given.image_ids is not None or given.caption_ids is not None
    if not named and (rows, columns) != asked:
        turned = (columns, rows) == asked
        raise ScoreError(
            f"the similarity has another shape than {benchmark.name}",
            where=given.identity.name,
            given=f"{rows} x {columns}",
            allowed=f"{asked[0]} images x {asked[1]} captions",
            hint="rows are images, columns captions: transpose it"
            if turned
            else "say with --ids which rows and columns are whose",
        )
    names = [image.id for image in benchmark.images], [caption.id for caption in benchmark.captions]
    return Matrix(
        given.values,
        *_rows(benchmark, given, rows, columns, held="score"),
        where=given.identity.name,
        names=names,
    )


def _rows(
    benchmark: Benchmark, given: GivenEmbeddings | GivenSimilarity, images: int, captions: int, *, held: str
) -> tuple[Int[ndarray, "images"], Int[ndarray, "captions"]]:
    """For every image and caption of the benchmark its row (or column) of what is given."""
    where = given.identity.name
    image_ids, caption_ids = ([item.id for item in items] for items in (benchmark.images, benchmark.captions))
    return (
        item_rows("image", image_ids, given.image_ids, images, benchmark.name, where, held=held),
        item_rows("caption", caption_ids, given.caption_ids, captions, benchmark.name, where, held=held),
    )


#: The functions that give the scores of a whole gallery, by ability.
_BLOCKS: Mapping[Ability, Callable[[Benchmark, Any, Session], Blocks]] = {
    "embeds": _embedded,
    "scores_pairs": _paired,
    "given_embeddings": _given_products,
    "given_similarity": _given_matrix,
}

#: The abilities of a first stage: those that score a gallery of any size.
_WHOLE = {"embeds", "given_embeddings", "given_similarity"}


def _same_items(benchmarks: Sequence[Benchmark]) -> list[list[int]]:
    """Benchmarks by number, those of the same items in the same order together."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, each in enumerate(benchmarks):
        images = tuple((image.id, image.crop) for image in each.images)
        captions = tuple((caption.id, caption.text) for caption in each.captions)
        groups.setdefault((images, captions), []).append(i)
    return list(groups.values())
