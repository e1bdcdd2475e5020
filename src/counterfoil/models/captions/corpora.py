"""Files of captions in which a metric counts documents, and the weights of tokens by their rarity there."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from threadpoolctl import threadpool_limits

from counterfoil.errors import DataError
from counterfoil.inputs.files import digest_file, read_json
from counterfoil.metrics.captions.token_match import Frequencies, TokenizedCaption
from counterfoil.models.base import Identity
from counterfoil.models.captions.base import CaptionTokens, Documents, Frames, LocalEmbedder, TokenGroups
from counterfoil.models.captions.registry import Settings

#: Longer sentences of a corpus in ActivityNet's layout are left out, as EMScore's code does it.
LONGEST_SENTENCE = 66

_COCO = "COCO's annotations with image_id and caption"
LAYOUTS = ("{ID: [CAPTION]}", '{ID: {"sentences": [CAPTION]}}', "[CAPTION]", _COCO)


def documents(path: Path, *, where: str, allowed: Sequence[str]) -> list[list[str]]:
    """The captions of each image or video in a JSON file, laid out as VATEX's, ActivityNet's or COCO's."""
    if not path.is_file():
        allowed = [*allowed, "a JSON file of captions"]
        raise DataError("no such file", where=where, given=path, allowed=allowed)
    value = read_json(path)
    if isinstance(value, list):
        groups = [[_text(text, f"{path}, caption {i}")] for i, text in enumerate(value, 1)]
    elif isinstance(value, dict) and isinstance(value.get("annotations"), list):
        by_image: dict[str, list[str]] = {}
        for i, row in enumerate(value["annotations"], 1):
            place = f"{path}, annotation {i}"
            if not isinstance(row, dict) or "image_id" not in row:
                raise DataError("not an annotation", where=place, allowed="image_id and caption")
            by_image.setdefault(str(row["image_id"]), []).append(_text(row.get("caption"), place))
        groups = list(by_image.values())
    elif isinstance(value, dict):
        groups = [_listed(group, f"{path}, '{key}'") for key, group in value.items()]
    else:
        groups = []
    groups = [group for group in groups if group]
    if not groups:
        raise DataError("a corpus without captions", where=path, allowed=LAYOUTS)
    return groups


def _listed(value: Any, where: str) -> list[str]:
    talk = isinstance(value, dict)
    sentences = value.get("sentences") if talk else value
    if not isinstance(sentences, list):
        raise DataError("not a list of captions", where=where, given=str(value)[:80], allowed=LAYOUTS)
    texts = [_text(sentence, where) for sentence in sentences]
    return [sentence for sentence in texts if not talk or len(sentence.split(" ")) <= LONGEST_SENTENCE]


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise DataError("a caption is not a text", where=where, given=str(value)[:80])
    return value


Phrases = Sequence[TokenizedCaption]

#: What the setting `idf` may be beside a file; "benchmark" is the corpus that the benchmark came with.
SOURCES = ("benchmark", "references", "candidates", "none")


@dataclass(frozen=True)
class Corpus:
    """A file of captions whose tokens are counted, and a digest of what is in it."""

    name: str
    captions: tuple[str, ...]
    digest: str
    _counted: dict[str, Frequencies] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, idf: str, where: str) -> "Corpus | None":
        if idf in SOURCES:
            return None
        # It is read and counted once as long as the file stays as it is.
        state = Path(idf).stat() if Path(idf).is_file() else None
        changed = None if state is None else (state.st_size, state.st_mtime_ns)
        return _read(Path(idf), f"{where}, idf", changed)

    @property
    def identity(self) -> str:
        """Its entry in a metric's identity: its content, not its location."""
        return f"corpus {self.digest}"

    def frequencies(self, local: LocalEmbedder) -> Frequencies:
        key = local.identity.key
        if key not in self._counted:
            # Every embedder of tokens here has it; a corpus is too long to be embedded for its ids.
            self._counted[key] = Frequencies.of(cast(Any, local).token_ids(self.captions))
        return self._counted[key]


# Of one command several metrics ask for the corpus, and each of them more than once.
@lru_cache(maxsize=4)
def _read(path: Path, where: str, changed: tuple[int, int] | None) -> Corpus:
    texts = documents(path, where=where, allowed=SOURCES)
    return Corpus(path.name, tuple(itertools.chain.from_iterable(texts)), digest_file(path))


@dataclass(frozen=True, eq=False)
class Counting(ABC):
    """What metrics share that count documents: in which captions, and who they are by that."""

    does = ("reads_references",)
    #: Whether marks of begin and end weigh anything; else they may be found, as in BERTScore.
    marks: ClassVar[bool]

    identity: Identity
    #: References too where only their document frequencies are asked for.
    needs: tuple[str, ...]
    local: LocalEmbedder
    settings: Settings
    corpus: Corpus | None

    @property
    def wants_corpus(self) -> bool:
        """Whether its document frequencies are those of the benchmark's corpus, where that is at hand."""
        return self.settings.idf == "benchmark"

    @property
    def provenance(self) -> dict[str, str]:
        if self.corpus is not None:
            return {"idf": f"{len(self.corpus.captions):,} captions of {self.corpus.name}"}
        return {"idf": "none" if self.settings.idf == "none" else f"the {self.counted} that are measured"}

    @property
    def counted(self) -> str:
        """What is counted where there is no corpus; EMScore's code takes references, if it has any."""
        if not self.wants_corpus:
            return self.settings.idf
        return "references" if "references" in self.needs else "candidates"

    def for_corpus(self, file: Path | None) -> Any:
        """The metric for a benchmark whose corpus is `file`; without one where that is None or missing."""
        if not self.wants_corpus:
            return self
        corpus = Corpus.of(str(file), self.identity.name) if file is not None and file.is_file() else None
        idf, options = self.counted, self.identity.options
        values = {**options["metric"], "idf": idf if corpus is None else corpus.identity}
        identity = replace(self.identity, options={**options, "metric": values})
        settings = replace(self.settings, idf=idf)
        return replace(self, identity=identity, settings=settings, corpus=corpus)

    def frequencies(
        self, candidates: Sequence[CaptionTokens], references: TokenGroups | None, documents: Documents | None
    ) -> Frequencies | None:
        """The document frequencies that the setting `idf` asks for, None where every token counts alike."""
        if self.corpus is not None:
            return self.corpus.frequencies(self.local)
        if self.counted == "none" or not len(candidates):
            return None
        if self.counted == "candidates":
            return Frequencies.of([caption.ids for caption in candidates])
        groups = references or ()
        counted = groups if documents is None else [groups[row] for row in documents]
        return Frequencies.of([caption.ids for group in counted for caption in group])

    def of_parts(
        self,
        candidates: Sequence[CaptionTokens],
        images: Frames | None,
        references: TokenGroups | None,
        documents: Documents | None = None,
    ) -> Float[ndarray, "rows"]:
        rare = self.frequencies(candidates, references, documents)
        rare = rare.with_end() if rare is not None and self.marks else rare

        @cache
        def phrase(tokens: CaptionTokens) -> TokenizedCaption:
            weights = np.ones(len(tokens.used)) if rare is None else rare.weights(tokens.used)
            if not self.marks:
                weights[[0, -1]] = 0
            return TokenizedCaption(tokens.vectors, weights, tokens.whole)

        parts = [phrase(tokens) for tokens in candidates]
        others = [[phrase(tokens) for tokens in group] for group in references or ()]
        # Each row is a product of its own, so small that threads would only wait for each other.
        with threadpool_limits(1, user_api="blas"):
            return self.matched(parts, images, others)

    @abstractmethod
    def matched(self, parts: Phrases, images: Frames | None, references: Sequence[Phrases]) -> ndarray:
        """A number for each candidate, of its frames or references."""
