"""Duplicates and near-duplicates of captions and images, in a benchmark and between caption sets."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import PIL.Image

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.records import Image, words
from counterfoil.inputs.files import digest
from counterfoil.stats import Wholes

#: Captions are near-duplicates from this similarity on.
NEAR = 0.8
#: The most of the 64 bits of their hashes in which near-duplicate images differ.
BITS = 3
#: Hashes with fewer bits of one kind are of pictures too plain to be told apart by them.
_LEAST_BITS = 12
_LETTERS = 4
#: Examples that are kept of each kind.
_EXAMPLES = 5


def normal(text: str) -> str:
    """The words of a caption in lower case, by which captions are the same."""
    return " ".join(words(text))


def shingles(text: str) -> frozenset[str]:
    """All runs of four letters of a normal text, its blanks included; the text itself where it is shorter."""
    return frozenset(text[start : start + _LETTERS] for start in range(max(1, len(text) - _LETTERS + 1)))


def near_pairs(texts: Sequence[str], *, threshold: float = NEAR, first: int = 0) -> list[tuple[int, int]]:
    """The pairs (i, j), i < j, of normal texts whose shingles have a Jaccard similarity of `threshold` on.

    With `first`, only pairs of one of the first `first` texts with another. All are found: two sets of
    similarity t share one of the |x| - ceil(t |x|) + 1 rarest shingles of each.
    """
    sets = [shingles(text) for text in texts]
    often = Counter(shingle for shingle_set in sets for shingle in shingle_set)
    holders: dict[str, list[int]] = {}
    pairs = []
    for j, tokens in enumerate(sets):
        rarest = sorted(tokens, key=lambda shingle: (often[shingle], shingle))
        prefix = rarest[: len(tokens) - int(np.ceil(threshold * len(tokens) - 1e-9)) + 1]
        seen: set[int] = set()
        for shingle in prefix:
            if not first or j >= first:
                seen.update(holders.get(shingle, ()))
            if not first or j < first:
                holders.setdefault(shingle, []).append(j)
        # The similarity of two sets is at most the ratio of their sizes.
        least, most = threshold * len(tokens) - 1e-9, (len(tokens) + 1e-9) / max(threshold, 1e-9)
        for i in seen:
            if not least <= len(sets[i]) <= most:
                continue
            common = len(tokens & sets[i])
            if common >= threshold * (len(tokens) + len(sets[i]) - common) - 1e-9:
                pairs.append((i, j))
    return sorted(pairs)


@dataclass(frozen=True)
class Repeated:
    """How often something comes that should not, with examples: tuples of texts or ids."""

    kind: str
    meaning: str
    count: int
    examples: tuple[tuple[str, ...], ...] = ()


def caption_duplicates(benchmark: Benchmark) -> list[Repeated]:
    """Questions that come twice, contradict or have no answer, and near captions across clusters."""
    candidates = benchmark.questions.caption_candidates()
    if candidates is None or not benchmark.captions_at_hand:
        return []
    plain = [normal(caption.text or "") for caption in benchmark.captions]
    ids = benchmark.questions.ids
    images = benchmark.questions.about()[0]
    photos = benchmark.photos
    by_question: dict[int, set[tuple[bool, str]]] = {}
    rows = zip(candidates.question.tolist(), candidates.caption.tolist(), candidates.truth, strict=True)
    for question, caption, truth in rows:
        right = bool(truth > 0.5) and not candidates.rated
        by_question.setdefault(question, set()).add((right, plain[caption]))
    same: dict[tuple[object, ...], list[int]] = {}
    sides: dict[tuple[str, str], dict[bool, int]] = {}
    unanswerable, contradicting = [], []
    for question, captions in by_question.items():
        seen = tuple(sorted({photos[i] for i in images[question].tolist() if i >= 0}))
        same.setdefault((seen, tuple(sorted(captions))), []).append(question)
        texts = {right: {text for side, text in captions if side == right} for right in (True, False)}
        unanswerable += [(ids[question], text) for text in sorted(texts[True] & texts[False])]
        if candidates.rated or not candidates.decides or len(seen) != 1:
            continue
        for right, text in captions:
            before = sides.setdefault((seen[0], text), {})
            if right not in before and (not right) in before and ids[before[not right]] != ids[question]:
                contradicting.append((ids[before[not right]], ids[question], text))
            before.setdefault(right, question)
    twice = [tuple(ids[i] for i in group) for group in same.values() if len(group) > 1]
    repeated = "the same image and the same captions in two questions or more"
    contradiction = "a caption is right of an image in one question and wrong of it in another"
    no_difference = "a right and a wrong caption of one question have the same words in one order"
    # Near captions of questions that share no item.
    clusters = benchmark.dependence.components
    where: dict[str, set[int]] = {}
    for question, caption in zip(candidates.question.tolist(), candidates.caption.tolist(), strict=True):
        where.setdefault(plain[caption], set()).add(int(clusters[question]))
    unique = list(where)
    near = [(unique[i], unique[j]) for i, j in near_pairs(unique) if not where[unique[i]] & where[unique[j]]]
    near += [(text, text) for text, of in where.items() if len(of) > 1]
    alike = f"captions of questions that share no item, alike to {NEAR:.0%} or more"
    return [
        _counted("questions twice", repeated, twice, sum(len(group) - 1 for group in twice)),
        _counted("contradictions", contradiction, contradicting),
        _counted("no difference", no_difference, unanswerable),
        _counted("near-duplicates", alike, near),
    ]


def _counted(kind: str, meaning: str, cases: Sequence[tuple[str, ...]], count: int | None = None) -> Repeated:
    examples = tuple(case[:4] for case in cases[:_EXAMPLES])
    return Repeated(kind, meaning, len(cases) if count is None else count, examples)


def difference_hash(picture: PIL.Image.Image) -> int:
    """64 bits of a picture: whether each of 8 x 8 grey cells is darker than its right neighbour."""
    grey = np.asarray(picture.convert("L").resize((9, 8), PIL.Image.Resampling.BOX), dtype=np.int64)
    return int.from_bytes(np.packbits(grey[:, :-1] < grey[:, 1:]).tobytes(), "big")


def image_duplicates(images: Mapping[str, tuple[str, int]]) -> list[Repeated]:
    """Images of other ids with the same pixels, or hashes that differ in at most `BITS` bits."""
    by_digest: dict[str, list[str]] = {}
    for name, (content, _) in images.items():
        by_digest.setdefault(content, []).append(name)
    same = [tuple(names) for names in by_digest.values() if len(names) > 1]
    firsts = {names[0]: images[names[0]][1] for names in by_digest.values()}
    near: set[tuple[str, str]] = set()
    # Of four parts of 16 bits, one at least is the same where three bits differ.
    for part in range(4):
        alike: dict[int, list[str]] = {}
        for name, number in firsts.items():
            alike.setdefault(number >> (16 * part) & 0xFFFF, []).append(name)
        for names in alike.values():
            for one, other in combinations(names, 2):
                textured = _LEAST_BITS <= firsts[one].bit_count() <= 64 - _LEAST_BITS
                if textured and (firsts[one] ^ firsts[other]).bit_count() <= BITS:
                    near.add((one, other))
    count = sum(len(names) - 1 for names in same)
    return [
        _counted("images twice", "images of different ids with the same pixels", same, count),
        _counted("near images", f"images whose hashes differ in at most {BITS} of 64 bits", sorted(near)),
    ]


def image_facts(image: Image) -> tuple[str, int]:
    """The digest of an image's pixels, and its difference hash; raises `DataError` where it is broken."""
    picture = image.decode()
    return digest(f"{picture.size}".encode() + picture.tobytes()), difference_hash(picture)


@dataclass(frozen=True)
class Leakage:
    """Questions with a caption in something else, `near` more with one alike, and `images` of one name."""

    of: str
    with_: str
    total: int
    questions: int
    near: int
    images: int
    examples: tuple[tuple[str, str], ...] = ()

    @property
    def share(self) -> float:
        """The share of questions that are touched by captions, word for word or nearly."""
        return (self.questions + self.near) / self.total


def leakage(
    benchmark: Benchmark,
    other: str,
    texts: Sequence[str],
    images: Sequence[str],
    *,
    rows: Wholes | None = None,
) -> Leakage:
    """What a benchmark, or its questions `rows`, shares with other captions and names of images."""
    chosen = np.arange(len(benchmark)) if rows is None else rows
    questions_of: dict[str, set[int]] = {}
    for question in chosen.tolist():
        for k in benchmark.questions.captions_of(question):
            text = benchmark.captions[k].text
            if text is not None:
                questions_of.setdefault(normal(text), set()).add(question)
    other_texts = dict.fromkeys(normal(text) for text in texts)
    exact = {text: of for text, of in questions_of.items() if text in other_texts}
    touched = set().union(*exact.values()) if exact else set()
    rest = [text for text in questions_of if text not in other_texts]
    both = [*rest, *(text for text in other_texts if text not in questions_of)]
    pairs = near_pairs(both, first=len(rest)) if rest and len(both) > len(rest) else []
    nearly = set().union(*(questions_of[both[i]] for i, _ in pairs)) - touched if pairs else set()
    named = {image_stem(name) for name in images}
    shown = {
        benchmark.images[i].id
        for question in chosen.tolist()
        for i in benchmark.questions.about()[0][question].tolist()
        if i >= 0 and image_stem(benchmark.images[i].id) in named
    }
    examples = [(text, text) for text in exact] + [(both[i], both[j]) for i, j in pairs]
    return Leakage(
        benchmark.name, other, len(chosen), len(touched), len(nearly), len(shown), tuple(examples[:_EXAMPLES])
    )


def image_stem(name: str) -> str:
    """An image's name without folders and ending, and of COCO's files the number."""
    from counterfoil.benchmarks.caption_files import spellings

    return spellings(name)[-1]
