"""Inputs of a caption metric: candidates, their images or videos, and their references."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int64
from numpy import ndarray

from counterfoil.data.records import Caption, FileSource, Image
from counterfoil.data.references import References, check_references
from counterfoil.errors import DataError, InputError
from counterfoil.scorers.captions.base import CaptionMetric
from counterfoil.scorers.given import GivenEmbeddings


@dataclass(frozen=True, eq=False)
class CaptionInputs:
    """Candidates, one per row, and what they are of.

    `image` and `candidate` are (rows,) positions into `images` and `captions`; so are `references`, which
    has an entry per row, or is None. `owner` (rows,) numbers what rows are of where several may be of one
    image and share its references; None says that each row is asked by itself. `name` says in errors whose
    rows they are.

    >>> captions = Caption("a", "a dog runs"), Caption("b", "a running dog")
    >>> references = References.of([[1]])
    >>> asked = CaptionInputs((), captions, image=None, candidate=np.array([0]), references=references)
    >>> asked.row(0)
    "the captions, row 1, caption 'a dog runs'"
    """

    images: tuple[Image, ...]
    captions: tuple[Caption, ...]
    #: None where nothing is shown.
    image: Int64[ndarray, "rows"] | None
    candidate: Int64[ndarray, "rows"]
    references: References | None = None
    owner: Int64[ndarray, "rows"] | None = None
    name: str = "the captions"

    def __post_init__(self) -> None:
        check_references(self.references, len(self.candidate))

    def __len__(self) -> int:
        return len(self.candidate)

    def beside(self, references: References | None) -> "CaptionInputs":
        """The same rows beside other references."""
        return replace(self, references=references)

    def take(self, rows: Int64[ndarray, "some"]) -> "CaptionInputs":
        """Some of the rows, in that order."""
        return replace(
            self,
            image=None if self.image is None else self.image[rows],
            candidate=self.candidate[rows],
            references=None if self.references is None else self.references.take(rows),
            owner=None if self.owner is None else self.owner[rows],
        )

    @property
    def documents(self) -> Int64[ndarray, "documents"] | None:
        """The rows whose references are the documents of the load, one of each image; None where all are."""
        return None if self.owner is None else np.sort(np.unique(self.owner, return_index=True)[1])

    def texts(self, positions: Int64[ndarray, "some"]) -> list[str]:
        """The texts of some captions; all are at hand once `checked` has passed."""
        return [str(self.captions[position].text) for position in positions]

    def row(self, row: int) -> str:
        """A row in words for an error."""
        caption = self.captions[self.candidate[row]]
        of = "" if self.image is None else f" of '{self.images[self.image[row]].id}'"
        return f"{self.name}, row {row + 1}, caption {caption.text or caption.id!r}{of}"

    def checked(self, metric: CaptionMetric) -> "CaptionInputs":
        """Itself, if all that `metric` needs is at hand, without what it does not need.

        Where embeddings are given, neither texts nor images need be there.

        Raises `DataError` where captions have no text or are empty, images are not at hand, and rows have no
        references; `InputError` where there are no references at all.
        """
        if not len(self):
            raise DataError("there are no captions", where=self.name)
        needs = metric.needs
        references = self.references if "references" in needs else None
        if "references" in needs and references is None:
            raise InputError(
                f"{self.name} has no references, which {metric.identity.name} compares with",
                hint=_without_references(metric.identity.name),
            )
        if references is not None and not references.counts.all():
            raise DataError(
                f"a caption has no references, which {metric.identity.name} compares with",
                where=self.row(int(np.argmin(references.counts))),
                given=f"{int((references.counts == 0).sum())} of {len(self)} without",
                hint=_without_references(metric.identity.name),
            )
        image = self.image if "images" in needs else None
        if "images" in needs and image is None:
            raise InputError(
                f"{metric.identity.name} looks at images, and none were given",
                where=self.name,
                hint="name their folder with --images, or that of videos with --videos",
            )
        if not isinstance(getattr(metric, "embedder", None), GivenEmbeddings):
            self._check_texts(self.candidate, "candidate")
            if references is not None:
                self._check_texts(references.captions, "reference")
            if image is not None:
                self._check_images(image)
        return replace(self, image=image, references=references)

    def _check_texts(self, positions: Int64[ndarray, "some"], kind: str) -> None:
        for position in np.unique(positions):
            text = self.captions[position].text
            if text is None:
                raise DataError(
                    f"the {kind} is not at hand",
                    where=f"{self.name}, '{self.captions[position].id}'",
                    hint="give the captions with --data, or measure from given scores",
                )

    def _check_images(self, image: Int64[ndarray, "rows"]) -> None:
        shown = [self.images[position] for position in np.unique(image)]
        gone = [image.id for image in shown if not _exists(image)]
        if gone:
            raise DataError(
                "images are not at hand",
                where=self.name,
                given=f"{len(gone)} of {len(shown)} missing, first: {', '.join(gone[:3])}",
                hint="give their folder with --images, or measure only the questions whose images are there "
                "with --available",
            )


def _exists(image: Image) -> bool:
    source = image.source
    return source is not None and (not isinstance(source, FileSource) or source.path.exists())


def _without_references(name: str) -> str:
    """Which metric does without references, in place of the one called `name`."""
    kind = name.partition(":")[2].partition(" ")[0]
    if kind.startswith("ref-"):
        return f"metric:{kind.removeprefix('ref-')} does without"
    return "metric:clip-s, metric:pac-s and metric:em-score do without, with a model (--scorer)"
