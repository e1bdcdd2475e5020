"""Forms of work by name, those of other packages (entry points `counterfoil.work_forms`) among them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from counterfoil.annotate.forms.base import WorkForm
from counterfoil.annotate.forms.builtin import FORMS
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
    [WorkFormEntry(form.name, form.summary, f"{form.__module__}:{form.__qualname__}") for form in FORMS],
)
