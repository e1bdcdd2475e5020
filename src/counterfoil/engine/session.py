"""A session: settings of all work of the engine, the loop that computes what the cache lacks, and answers."""

import os
import platform
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Float32, Float64, Int
from numpy import ndarray

from counterfoil.benchmarks.answers import Answers, Outcomes, Rankings, Scores, versions
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.engine import executor as executors, plan
from counterfoil.engine.cache import Cache, NamedRows, Vectors
from counterfoil.errors import InputError, ScoreError, StorageError
from counterfoil.inputs.files import display_path
from counterfoil.models import base
from counterfoil.registry import resolve

if TYPE_CHECKING:
    from counterfoil.models.captions.base import CaptionTokens, LocalEmbedder

#: Captions whose lengths are compared with the model's limit together, and kept in one shard.
_COUNTED = 4096

#: Rows in one shard, unless a batch is larger.
_SHARD = 256

#: How often what other processes computed is looked for before the work is given up.
_ATTEMPTS = 3

_Values = TypeVar("_Values", Vectors, NamedRows, executors.GeneratedBytes)


@dataclass(frozen=True)
class Session:
    """The settings of work: the cache, batch size, processes, and functions for notes and progress.

    Shards go to the folder `cache` (None keeps nothing). `batch_size` and `workers`, the processes that
    decode images, do not change what is computed. An `executor` has other processes compute what the cache
    lacks.
    """

    cache: str | Path | None = None
    batch_size: int = 32
    workers: int = 0
    progress: plan.Progress = plan.silent
    note: plan.Note = plan.warn
    executor: executors.Executor | None = None

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise InputError("batch size", given=self.batch_size, allowed="1 or more")
        if self.workers < 0:
            raise InputError("number of workers", given=self.workers, allowed="0 or more")
        if self.cache is None and self.executor is not None:
            raise InputError("an executor of several processes needs a cache", hint="give one with --cache")

    def cache_for(self, model: Any) -> Cache:
        """The shards of a model, in a folder that is swept first; its identity must tell its weights."""
        if self.folder is None:
            return Cache(None, model.identity)
        identity = base.identity_of(model)
        base.check_kept(identity)
        cache = Cache(self.folder, identity)
        cache.sweep()
        return cache

    @property
    def folder(self) -> Path | None:
        return None if self.cache is None else Path(self.cache)

    def keys(self, images: Sequence[Image]) -> list[str]:
        from counterfoil.engine.cache_keys import image_keys

        return image_keys(images, cache=self.folder, progress=self.progress)

    def prepare(
        self,
        benchmark: Benchmark,
        model: base.TextEmbedder | base.PairModel | base.Model | base.Classifier,
        *,
        reads: Collection[str] | None = None,
        pairs: plan.PairPositions | None = None,
    ) -> tuple[plan.ScoringPlan, Cache]:
        """The distinct work behind a benchmark (or `pairs` of it), and the model's shards."""
        reads = getattr(model, "needs", ("images", "captions")) if reads is None else reads
        plan.check_at_hand(benchmark, images="images" in reads, captions="captions" in reads)
        images = [benchmark.images[position] for position in benchmark.questions.used()[1]]
        if "images" in reads or not images:
            return plan.deduplicate(benchmark, self.keys(images), pairs=pairs), self.cache_for(model)
        keys = [plan.id_key(image) for image in images]
        return plan.deduplicate(benchmark, keys, pairs=pairs), self.caption_only_cache(model)

    def caption_only_cache(self, model: Any) -> Cache:
        """The shards of a model that opens no images; an id tells images apart in its own benchmark only."""
        alone = "classifies" in base.abilities(model) or (_of_captions(model) and model.identity.weights)
        return self.cache_for(model) if alone else Cache(None, model.identity)

    def embed(
        self, embedder: base.Embedder, work: plan.ScoringPlan, cache: Cache
    ) -> tuple[Float32[ndarray, "captions width"], Float32[ndarray, "images width"]]:
        """The embeddings of all distinct captions and images; raises `ScoreError` for unequal widths."""
        images = self.embed_images(embedder, work, cache)
        captions = self.embed_captions(embedder, work, cache)
        self.note_truncated(embedder, work, cache, embedder.identity.name)
        if captions.shape[1] != images.shape[1]:
            problem = "captions and images have embeddings of different widths"
            given = f"{captions.shape[1]} and {images.shape[1]}"
            raise ScoreError(problem, where=embedder.identity.name, given=given)
        return captions, images

    def embed_images(
        self, embedder: Any, work: plan.ScoringPlan, cache: Cache, compute: plan.Compute = plan.image_vectors
    ) -> Float32[ndarray, "images width"]:
        """The embeddings of the distinct images, or what else `compute` gets of each."""
        values = Vectors("images", work.image_keys)
        return self._finish(embedder, compute, values, work.images, cache=cache).values

    def embed_captions(
        self,
        embedder: Any,
        work: plan.ScoringPlan,
        cache: Cache,
        compute: plan.Compute = plan.caption_vectors,
    ) -> Float32[ndarray, "captions width"]:
        """The embeddings of the distinct captions, or what else `compute` gets of each."""
        values, order = Vectors("captions", work.caption_keys), _by_length(embedder.lengths)
        return self._finish(embedder, compute, values, work.captions, cache=cache, order=order).values

    def score_pairs(
        self, model: base.PairModel | base.Model, work: plan.ScoringPlan, cache: Cache
    ) -> Float64[ndarray, "pairs"]:
        """One score per distinct pair; of a model that reads captions alone each is scored once."""
        alone = _of_captions(model)
        rows = np.unique(work.pairs[:, 0], return_index=True)[1] if alone else slice(None)
        pairs = work.pairs[rows]
        values = Vectors("captions", [work.caption_keys[caption] for caption, _ in pairs])
        if not alone:
            image_keys = [work.image_keys[image] for _, image in pairs]
            values = Vectors("pairs", list(map(add, values.keys, image_keys)))
        items = [(work.images[image], work.captions[caption]) for caption, image in pairs]
        order = _by_length(lambda pairs: [len(caption.text or "") for _, caption in pairs]) if alone else None
        numbers = self._finish(model, plan.pair_scores, values, items, order=order, cache=cache).values
        if numbers.shape[1] != 1:
            problem = "a model of pairs gave more than one number for a pair"
            raise ScoreError(problem, where=model.identity.name)
        self.note_truncated(model, work, cache, model.identity.name)
        scores: ndarray = numbers[:, 0]
        return scores[np.searchsorted(pairs[:, 0], work.pairs[:, 0])] if alone else scores

    def scores(
        self, benchmark: Benchmark, model: base.PairModel | base.Model, pairs: plan.PairPositions
    ) -> Float64[ndarray, "*asked"]:
        """The scores of `pairs` of a benchmark's items, each distinct one once."""
        work, cache = self.prepare(benchmark, model, pairs=pairs)
        return work.spread(self.score_pairs(model, work, cache))

    def frames(
        self, local: "LocalEmbedder", work: plan.ScoringPlan, cache: Cache
    ) -> list[Float[ndarray, "frames width"]]:
        """The frames of the distinct videos or images; a video is kept as soon as it is done."""
        items = work.images
        from counterfoil.benchmarks.videos import FrameFeatures, Video

        given = [row for row, item in enumerate(items) if isinstance(item.source, FrameFeatures)]
        moving = [row for row, item in enumerate(items) if isinstance(item, Video) and row not in set(given)]
        still = [row for row, item in enumerate(items) if not isinstance(item, Video)]
        frames_of: dict[int, ndarray] = {}
        # A video may take minutes, so one is a shard; of pictures many go through the model together.
        for rows, size, shard, row_cache in (
            (given, 1, 1, Cache(None, cache.identity)),
            (moving, 1, 1, cache),
            (still, self.batch_size, _SHARD, cache),
        ):
            if rows:
                values = NamedRows("frames", [work.image_keys[row] for row in rows])
                how: Any = {"cache": row_cache, "batch_size": size, "shard_rows": shard}
                chosen = [items[row] for row in rows]
                parts = self._finish(local, plan.frame_parts, values, chosen, **how).values
                frames_of |= {row: item_parts["vectors"] for row, item_parts in zip(rows, parts, strict=True)}
        return [frames_of[row] for row in range(len(items))]

    def tokens(self, local: "LocalEmbedder", work: plan.ScoringPlan, cache: Cache) -> "list[CaptionTokens]":
        from counterfoil.models.captions.base import CaptionTokens

        values = NamedRows("tokens", work.caption_keys)
        order = _by_length(lambda captions: [len((caption.text or "").split()) for caption in captions])
        how: Any = {"order": order, "cache": cache}
        parts = self._finish(local, plan.token_parts, values, work.captions, **how).values
        return [CaptionTokens(**item_parts) for item_parts in parts]

    def make(
        self,
        generator: executors.BatchGenerator,
        items: Sequence[Any],
        keys: Sequence[str],
        take: executors.Take,
        *,
        stage: str,
        size: int,
        here: bool = False,
        keep: Path | None = None,
    ) -> None:
        """Have something made for each item, `size` of them at a time, and given to `take` with its row.

        Processes that share the cache make each batch once; this one alone keeps its batches in the folder
        `keep`, if at all. With `here` workers of a cluster are not asked, as for endpoints, whose keys and
        pace are this process's.
        """
        session = replace(self, executor=None) if here and self.executor and self.executor.distant else self
        session_cache = None if self.executor else Cache(keep, generator.identity)
        values = executors.GeneratedBytes("made", keys, take, second_cache=session_cache)
        cache, compute = self.cache_for(generator), executors.generated_parts
        session._finish(
            generator, compute, values, items, cache=cache, batch_size=size, shard_rows=size, stage=stage
        )

    def note_truncated(self, embedder: object, work: plan.ScoringPlan, cache: Cache, name: str) -> None:
        """Note how many captions are longer than the model reads; kept, so that no model is loaded again."""
        over_limit = getattr(embedder, "over_limit", None)
        if over_limit is None:
            return
        cached = cache.read("limits", work.caption_keys)
        over = 0 if cached.values is None else int(cached.values.sum())
        missing = np.setdiff1d(np.arange(len(work.captions)), cached.rows)
        for start in range(0, len(missing), _COUNTED):
            rows = missing[start : start + _COUNTED]
            longer = np.zeros((len(rows), 1), dtype=np.float32)
            # Most captions are short, so that one count of many saves counting each.
            if over_limit([work.captions[row] for row in rows]):
                longer[:, 0] = [over_limit([work.captions[row]]) for row in rows]
            cache.write("limits", [work.caption_keys[row] for row in rows], longer)
            over += int(longer.sum())
        if over:
            counted = f"{over:,} of {len(work.captions):,} captions {'is' if over == 1 else 'are'}"
            self.note(f"{name}: {counted} longer than the model reads and cut off by its tokenizer")

    def _finish(
        self,
        model: Any,
        compute: plan.Compute,
        values: _Values,
        items: Sequence[Any],
        *,
        cache: Cache,
        order: Callable[[Sequence[Any]], Sequence[int]] | None = None,
        batch_size: int | None = None,
        shard_rows: int = _SHARD,
        stage: str = "",
    ) -> _Values:
        """`values` with those of every item: what the cache knows, and the rest computed and kept."""
        scores = bool(items) and isinstance(items[0], tuple)
        stage = stage or f"{'scoring' if scores else 'embedding'} {values.kind}"
        executor = None if cache.folder is None else self.executor
        for _ in range(_ATTEMPTS):
            cached, broken = values.read(cache)
            for path in broken:
                self.note(
                    f"{display_path(path)}: damaged cache file passed over; what it held is computed again"
                )
                if executor is not None:
                    # Its name would say to all processes that it is finished.
                    cache.drop(values.kind, path)
            done = len(cached)
            self.progress(stage, done, len(items))
            missing = np.setdiff1d(np.arange(len(items)), cached).tolist()
            if not missing:
                return values
            if order is not None:
                missing = [missing[i] for i in order([items[row] for row in missing])]
            cut = plan.shards(missing, batch_size or self.batch_size, shard_rows=shard_rows)
            work = plan.ShardWork(stage, model, compute, values, cache, items, cut, self.workers)

            def advance(rows: int) -> None:
                nonlocal done
                done += rows
                self.progress(stage, done, len(items))

            if executor is None:
                work.run(range(len(work)), advance)
                return values
            if executor.run(work, advance):
                return values
        hint = "is it one folder for all processes, and does another one empty it meanwhile?"
        raise StorageError("the cache does not keep what was computed for it", where=cache.folder, hint=hint)


def _of_captions(model: Any) -> bool:
    """Whether a model of pairs looks at no image, so that a caption's score is that of all its pairs."""
    return tuple(getattr(model, "needs", ())) == ("captions",) and "scores_pairs" in base.abilities(model)


def _by_length(lengths: Callable[[Sequence[Any]], Sequence[int]]) -> Callable[[Sequence[Any]], list[int]]:
    """The order of captions (or pairs) by length, so that little of a batch is padding; texts break ties."""

    def order(items: Sequence[Any]) -> list[int]:
        long = lengths(items)
        captions = [item if isinstance(item, Caption) else item[1] for item in items]
        return sorted(range(len(items)), key=lambda i: (long[i], captions[i].text or ""))

    return order


#: Numbers in one block of embeddings while pairs are compared: 64 MB of float32 for each of the two sides.
_BLOCK = 1 << 24


def compare_rows(
    comparison: Any,
    left: Float[ndarray, "rows width"],
    right: Float[ndarray, "columns width"],
    rows: Int[ndarray, "pairs"],
    columns: Int[ndarray, "pairs"],
) -> Float64[ndarray, "pairs"]:
    """One score per pair of rows by `comparison.compare`; never more than a block is gathered at once."""
    scores = np.empty(len(rows), dtype=np.float64)
    step = max(1, _BLOCK // max(1, left.shape[1]))
    for start in range(0, len(scores), step):
        block = slice(start, start + step)
        scores[block] = comparison.compare(left[rows[block]], right[columns[block]])
    return scores


_Answers = TypeVar("_Answers", bound=Scores | Outcomes | Rankings)


def with_provenance(answers: _Answers, model: Any, *, first: Any = None, session: Session) -> _Answers:
    """The answers with what made them; `first` is the model whose first items were ranked again."""
    identity = base.identity_of(model)
    made_with = dict(getattr(model, "provenance", None) or {})
    device = getattr(model, "device", None) or made_with.get("device") or identity.options.get("device")
    provenance = {
        "model": {
            **identity.to_json(),
            "key": identity.key,
            # What tables call it where its name would say too much.
            **({"title": title} if (title := getattr(model, "title", "")) else {}),
            # What changes answers by no more than rounding: versions of its libraries, device, towers used.
            **({"made_with": made_with} if made_with else {}),
            **({"first_stage": base.identity_of(first).to_json()} if first is not None else {}),
        },
        "machine": {
            "device": str(device or "cpu"),
            "batch_size": session.batch_size,
            "workers": session.workers,
            "system": platform.platform(),
        },
        "versions": versions(),
    }
    return replace(answers, provenance=provenance)


def score_pairs(benchmark: Benchmark, model: base.PairModel | base.Model, *, session: Session) -> Scores:
    """One score per distinct pair; of a model that may refuse, NaN for pairs without an answer.

    Such a model (it has `unanswered`) keeps its own answers, and nothing is kept here.
    """
    work, cache = session.prepare(benchmark, model)
    if not hasattr(model, "unanswered"):
        scores = work.spread(session.score_pairs(model, work, cache))
        return _checked(benchmark, model, scores, session)
    total = len(work.pairs)
    pairs = [(work.images[image], work.captions[caption]) for caption, image in work.pairs]
    batches = plan.batches(pairs, session.batch_size)
    session.progress("scoring pairs", 0, total)
    parts: list[ndarray] = []
    done = 0
    for part in base.stream_pairs(model, batches, workers=session.workers):
        parts.append(np.asarray(part, dtype=np.float64))
        done += len(part)
        session.progress("scoring pairs", done, total)
    values = np.concatenate(parts)
    if np.isinf(values).any():
        raise ScoreError("the model gave numbers that are not finite", where=model.identity.name)
    scores = np.asarray(benchmark.listed.collect(work.spread(values)))
    missing = np.isnan(scores).reshape(len(benchmark), -1).any(axis=1)
    check_answered(missing, model)
    return with_provenance(Scores(scores, unanswered=missing), model, session=session)


def check_answered(missing: Bool[ndarray, "n"], model: Any) -> None:
    """Raise `ScoreError` where questions have no answer and the model refuses to go on without them."""
    if missing.any() and model.unanswered == "refuse":
        problem = "questions without an answer: refused, or not readable"
        given = f"{int(missing.sum()):,} of {len(missing):,}"
        hint = "say what becomes of them with --unanswered wrong or --unanswered leave-out; "
        hint += "the answers are kept, nothing is sent again"
        raise ScoreError(problem, where=model.identity.name, given=given, hint=hint)


def run(benchmark: Benchmark, model: Any, *, session: Session = Session()) -> Answers:
    """What `model` answers to every question of `benchmark`: scores, outcomes, or places in a gallery.

    Each distinct item is embedded, or each distinct pair scored, once; given tables are matched to the
    questions (`join_scores`), galleries ranked (`rank`), caption metrics read references (`caption_scoring`),
    detectors apply the rule of two steps (`detect`). Finished shards go to the cache of the `session`, so
    that a run that is stopped goes on and returns the same bits. Scores are float64, in the shape of the
    questions, and finite. Raises `InputError` where the model has no ability for the form, `DataError` where
    items are not at hand, `ScoreError` for odd numbers.
    """
    ability = plan.ability_for(model, benchmark)
    place = _GALLERY if benchmark.questions.directed else _QUESTIONS[ability]
    answers: Answers = resolve(place)(benchmark, model, session=session)
    return answers


def score_items(
    model: Any,
    images: Sequence[Image],
    image_keys: Sequence[str],
    captions: Sequence[Caption],
    pairs: plan.PairPositions,
    *,
    session: Session,
) -> Float64[ndarray, "*asked"]:
    """The scores of `pairs`, (caption, image) positions among items that no benchmark holds."""
    able = [ability for ability in base.abilities(model) if ability in _OF_PAIRS]
    if not able:
        problem = "gives no scores of new images and captions"
        raise InputError(problem, where=model.identity.name, allowed="dual encoders and models of pairs")
    used = np.arange(len(captions)), np.arange(len(images))
    work = plan.items(images, captions, used, image_keys, pairs)
    reads = "images" in getattr(model, "needs", ("images", "captions"))
    cache = session.cache_for(model) if reads else session.caption_only_cache(model)
    if able[0] == "embeds":
        assert isinstance(model, base.Embedder)
        values = compare_rows(model, *session.embed(model, work, cache), *work.pairs.T)
    else:
        assert not isinstance(model, base.Embedder)
        values = session.score_pairs(model, work, cache)
    if not np.isfinite(values).all():
        raise ScoreError("a score is not finite", where=f"scores of {model.identity.name}")
    return work.spread(values)


#: The abilities of models that can score pairs which no benchmark holds.
_OF_PAIRS: tuple[base.Ability, ...] = ("embeds", "scores_pairs")


def compare_embedded(benchmark: Benchmark, model: Any, *, session: Session) -> Scores:
    """Every distinct pair compared; where captions are compared with captions no image is looked at."""
    text_pairs = benchmark.questions.text_pairs()
    work, cache = session.prepare(benchmark, model)
    if text_pairs is None:
        values = compare_rows(model, *session.embed(model, work, cache), *work.pairs.T)
        return _checked(benchmark, model, work.spread(values), session)
    captions = session.embed_captions(model, work, cache)
    session.note_truncated(model, work, cache, model.identity.name)
    pairs = (work.caption_of[side].ravel() for side in text_pairs)
    return _checked(benchmark, model, compare_rows(model, captions, captions, *pairs), session)


def answer_by_learning(benchmark: Benchmark, model: Any, *, session: Session) -> Scores:
    """The answer to every question by what was learned from others; no image is opened."""
    plan.check_at_hand(benchmark, images=False)
    from counterfoil.benchmarks.contrasts import Contrasts

    contrasts = Contrasts.of(benchmark)
    candidates = benchmark.questions.caption_candidates()
    assert candidates is not None
    return _checked(benchmark, model, model.answer(contrasts)[candidates.row_of], session)


#: Where the function that answers a gallery stands, and those for other forms by ability.
_GALLERY = "counterfoil.engine.rank:rank_gallery"
_QUESTIONS: Mapping[base.Ability, str] = {
    **dict.fromkeys(("embeds", "embeds_texts"), "counterfoil.engine.session:compare_embedded"),
    "scores_pairs": "counterfoil.engine.session:score_pairs",
    "picks": "counterfoil.engine.outcomes:pick",
    "classifies": "counterfoil.engine.outcomes:detect",
    "reads_references": "counterfoil.engine.caption_scoring:score_benchmark",
    "learns": "counterfoil.engine.session:answer_by_learning",
    **dict.fromkeys(("given_scores", "given_embeddings"), "counterfoil.engine.join_scores:answers_given"),
}


def _checked(benchmark: Benchmark, model: Any, scores: Float64[ndarray, "..."], session: Session) -> Scores:
    checked = Scores(benchmark.listed.collect(scores))
    checked.check(benchmark, where=f"scores of {model.identity.name}")
    return with_provenance(checked, model, session=session)


_RANKS = re.compile(r"rank:(\d{1,6})/(\d{1,6})")
_RAY = re.compile(r"ray(?:(://|:)([\w.-]+:\d{1,5}))?(?:\?cpus=(\d{1,4}(?:\.\d{1,3})?))?", re.ASCII)


def executor_named(name: str) -> executors.Executor | None:
    """The executor of a name: "local" is none, "rank:R/N" number R of N processes that share a cache.

    "ray" is this machine or the cluster of RAY_ADDRESS, "ray:HOST:PORT" a cluster that this machine is part
    of, "ray://HOST:PORT" one that it is not; "?cpus=4" behind these gives each worker 4 processors.
    """
    if name == "local":
        return None
    if ranks := _RANKS.fullmatch(name):
        return executors.RankExecutor(int(ranks[1]), int(ranks[2]))
    if ray := _RAY.fullmatch(name):
        from counterfoil.engine.ray_executor import RayExecutor

        address = f"ray://{ray[2]}" if ray[1] == "://" else ray[2] or os.environ.get("RAY_ADDRESS", "")
        return RayExecutor(address, None if ray[3] is None else float(ray[3]))
    allowed = ("local", "rank:R/N", "ray", "ray:HOST:PORT", "ray://HOST:PORT", "ray?cpus=4")
    raise InputError("unknown executor", given=name, allowed=allowed)
