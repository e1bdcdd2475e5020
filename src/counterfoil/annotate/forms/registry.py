"""Forms of work by name, those of other packages (entry points `counterfoil.work_forms`) among them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from counterfoil.annotate.forms.base import WorkForm
from counterfoil.inputs.fields import made_of
from counterfoil.registry import Registry, resolve


@dataclass(frozen=True)
class WorkFormEntry:
    """A form's name, a line about it, and where its class is."""

    name: str
    summary: str
    target: str

    @property
    def kind(self) -> type[Any]:
        """The class of the form."""
        form = resolve(self.target)
        assert isinstance(form, type)
        return form

    @property
    def facts(self) -> dict[str, Any]:
        """What a table of items needs and what can be set, as plain values."""
        kind = self.kind
        return {
            "name": self.name,
            "summary": self.summary,
            "columns": dict(kind.columns),
            "label": kind.main,
            "seconds": kind.seconds,
            "settings": {field.name: field.metadata.get("help", "") for field in fields(kind)},
            "instructions": kind.instructions,
        }

    def form(self, settings: Mapping[str, Any], *, where: object) -> WorkForm:
        """The form with these settings, as `made_of` makes it."""
        work_form = made_of(self.kind, settings, where=where)
        assert isinstance(work_form, WorkForm)
        return work_form


WORK_FORMS: Registry[WorkFormEntry] = Registry(
    "form of work",
    WorkFormEntry,
    "counterfoil.work_forms",
    (
        WorkFormEntry(
            "best-of-k",
            "the best of several images for a caption, or none",
            "counterfoil.annotate.forms.best_of_k:BestOfK",
        ),
        WorkFormEntry(
            "which-image",
            "which of two images fits the caption better, or both",
            "counterfoil.annotate.forms.which_image:WhichImage",
        ),
        WorkFormEntry(
            "choose",
            "the caption that fits an image best, or the image that fits a caption best",
            "counterfoil.annotate.forms.choose:ChooseOne",
        ),
        WorkFormEntry(
            "match",
            "how well the caption matches the image, in four answers, and why not",
            "counterfoil.annotate.forms.match:MatchGrade",
        ),
        WorkFormEntry(
            "yes-no",
            "does the caption match the image, yes or no",
            "counterfoil.annotate.forms.yes_no:YesNo",
        ),
        WorkFormEntry(
            "preference",
            "which of two rankings of images or captions is better",
            "counterfoil.annotate.forms.preference:PreferRanking",
        ),
        WorkFormEntry(
            "rating",
            "how well the caption describes the image, from 1 to 4 or another number",
            "counterfoil.annotate.forms.rating:RateCaption",
        ),
        WorkFormEntry(
            "quad-authoring",
            "pick two images and write two captions that fit one each, with tags",
            "counterfoil.annotate.forms.quad_authoring:AuthorQuad",
        ),
        WorkFormEntry(
            "quad-validation",
            "which of two captions fits each of two images, asked of another than the author",
            "counterfoil.annotate.forms.quad_validation:ValidateQuad",
        ),
        WorkFormEntry(
            "error-spans",
            "which words of the caption are wrong, and in what way",
            "counterfoil.annotate.forms.error_spans:ErrorSpans",
        ),
    ),
)
