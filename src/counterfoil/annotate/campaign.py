"""A campaign: a folder with a recipe, items, their images, instructions, and what must stay secret.

campaign.toml     the recipe: form of work, design, pay, limits
items.parquet     items: id, role, golden, instance, kind, truth, and the columns of the form
images/           the images of the items, by digest
instructions.md   what people read before they begin
consent.md        what people agree to
source.parquet    the rows that the items are of, as they were given
secrets.json      salt of worker ids and token of the researcher; readable by its owner alone
database.sqlite   answers, where the campaign uses no other database
"""

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from counterfoil.annotate.forms.base import ROLES, WorkForm, WorkItem
from counterfoil.annotate.forms.registry import WORK_FORMS
from counterfoil.annotate.recipe import CampaignRecipe as CampaignRecipe
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.columns import read_parquet
from counterfoil.inputs.fields import values_of
from counterfoil.inputs.files import read_json, read_text, read_toml
from counterfoil.store import digest_file, digest_value, write_bytes, write_parquet, write_text

RECIPE, ITEMS, IMAGES, SECRETS = "campaign.toml", "items.parquet", "images", "secrets.json"
INSTRUCTIONS, CONSENT, DATABASE = "instructions.md", "consent.md", "database.sqlite"
SOURCE = "source.parquet"
#: What lies in the folder of a campaign; other files in it are not counterfoil's.
FILES = (
    RECIPE,
    ITEMS,
    IMAGES,
    SECRETS,
    INSTRUCTIONS,
    CONSENT,
    SOURCE,
    DATABASE,
    "export",
    "prolific.json",
    "prolific_bonuses.json",
)
#: Columns of the table of items that are not the form's.
_FIXED = ("id", "role", "golden", "instance", "kind", "truth")

#: What people agree to where the campaign has no text of its own.
USUAL_CONSENT = (
    "Your answers, and how long each took, are stored for research and may be published without anything "
    "that identifies you. You can stop at any time, and withdraw: then your answers are deleted."
)


@dataclass(frozen=True, eq=False)
class Campaign:
    """An opened campaign: its folder, recipe, form and items. Nothing of it changes while it is open."""

    folder: Path
    recipe: CampaignRecipe
    form: WorkForm

    @cached_property
    def items(self) -> tuple[WorkItem, ...]:
        """All items in the order of their table; raises `DataError` where the table is damaged."""
        return read_items(self.folder / ITEMS, self.form)

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each item by its id."""
        return {item.id: at for at, item in enumerate(self.items)}

    @cached_property
    def secrets(self) -> Mapping[str, str]:
        """`salt` of worker ids and `token` of the researcher; raises `DataError` for a damaged file."""
        found = read_json(self.folder / SECRETS)
        if not isinstance(found, dict) or not all(isinstance(found.get(k), str) for k in ("salt", "token")):
            raise DataError(
                "no secrets of a campaign",
                where=str(self.folder / SECRETS),
                allowed="salt and token, as created",
            )
        return found

    @cached_property
    def source(self) -> pa.Table | None:
        """The rows that the items are of, with a column `item`; None where nothing was kept of them."""
        path = self.folder / SOURCE
        return read_parquet(path) if path.is_file() else None

    @property
    def instructions(self) -> str:
        """What people read before they begin, in Markdown."""
        return read_text(self.folder / INSTRUCTIONS)

    @property
    def consent(self) -> str:
        """What people agree to, in Markdown."""
        return read_text(self.folder / CONSENT)

    def image(self, name: str) -> Path:
        """The file of an image that an item names.

        Raises `InputError` for a name that no item has, whatever path it is.
        """
        if name not in self._images:
            raise InputError("no such image in this campaign", given=name)
        return self.folder / IMAGES / name

    @cached_property
    def _images(self) -> frozenset[str]:
        return frozenset(name for item in self.items for name in images_of(self.form, item))

    @cached_property
    def digest(self) -> str:
        """Digest of form, version, settings and items: what answers depend on."""
        return digest_value(
            {
                "form": self.form.name,
                "version": self.form.version,
                "settings": dict(self.recipe.settings),
                "items": digest_file(self.folder / ITEMS),
            }
        )


def images_of(form: WorkForm, item: WorkItem) -> tuple[str, ...]:
    """The image cells of an item, by the form's columns.

    >>> from counterfoil.annotate.forms.best_of_k import BestOfK
    >>> images_of(BestOfK(), WorkItem("1", {"caption": "A cat.", "images": ["a.png", "b.png"]}))
    ('a.png', 'b.png')
    """
    found: list[str] = []
    for name, kind in form.columns.items():
        cell = item.cells.get(name)
        if kind == "image" and cell:
            found.append(cell)
        elif kind == "images" and cell:
            found += cell
    return tuple(found)


def create_folder(
    folder: Path,
    recipe: CampaignRecipe,
    items: Sequence[WorkItem],
    images: Mapping[str, bytes],
    *,
    instructions: str = "",
    consent: str = "",
    source: pa.Table | None = None,
    salt: str = "",
) -> Campaign:
    """Write the folder of a campaign, `campaign.toml` last, so that a half-written one is none.

    `images` are the bytes of every image that items name, by that name; one is read at a time. `source` are
    the rows that items are of. A `salt` is that of another campaign whose people are to be known again.
    Raises `InputError` for no items, an id twice, an image that is not given, an item that the form cannot
    show, and where the folder has answers to other items.
    """
    form = form_of(recipe, where="the campaign")
    table = items_table(items, form)
    for item in items:
        lacking = next((name for name in images_of(form, item) if name not in images), None)
        if lacking is not None:
            raise DataError("no image of this name", where=f"item '{item.id}'", given=lacking)
        form.page(item)
    if (folder / DATABASE).exists():
        raise InputError("a campaign with answers is there", where=folder, hint="name another folder")
    for name in images:
        # Images are named by their content, so one that is there is the same one.
        if not (folder / IMAGES / name).is_file():
            write_bytes(folder / IMAGES / name, images[name])
    write_parquet(folder / ITEMS, table)
    if source is not None:
        write_parquet(folder / SOURCE, source)
    write_text(folder / INSTRUCTIONS, instructions or form.instructions)
    write_text(folder / CONSENT, consent or USUAL_CONSENT)
    if not (folder / SECRETS).exists():
        _write_secrets(folder / SECRETS, salt or secrets.token_hex(32))
    write_text(folder / RECIPE, recipe.to_toml())
    return open_campaign(folder)


def open_campaign(folder: Path) -> Campaign:
    """The campaign in a folder; raises `DataError` where there is none or its recipe cannot be read."""
    path = folder / RECIPE
    if not path.is_file():
        raise DataError(
            "no campaign",
            where=str(folder),
            hint="make one with: counterfoil annotate create FORM --from TABLE --out DIR",
        )
    recipe = read_recipe(path)
    return Campaign(folder, recipe, form_of(recipe, where=str(path)))


def read_recipe(path: Path) -> CampaignRecipe:
    """The recipe in a file; raises `InputError` for an unknown key and a value of another type."""
    found = read_toml(path)
    settings = found.pop("settings", {})
    for name in ("form", "title"):
        if name not in found:
            raise InputError(f"no '{name}'", where=str(path), hint=f'add a line: {name} = "..."')
    empty = {each.name for each in fields(CampaignRecipe) if each.default == ""}
    texts = {name: value for name, value in found.items() if value == "" and name in empty}
    values = values_of(CampaignRecipe, {k: v for k, v in found.items() if k not in texts}, where=str(path))
    return CampaignRecipe(**values, **texts, settings=settings)


def form_of(recipe: CampaignRecipe, *, where: object) -> WorkForm:
    """The form of a recipe with its settings."""
    entry = WORK_FORMS.find(recipe.form, where=str(where))
    return entry.form(recipe.settings, where=f"{where}, settings of '{recipe.form}'")


def items_table(items: Sequence[WorkItem], form: WorkForm) -> pa.Table:
    """Items as a table; raises `InputError` for none, an id twice, and golden items that name no field."""
    if not items:
        raise InputError("a campaign needs items", given="none")
    seen: set[str] = set()
    for item in items:
        if item.id in seen:
            raise InputError("an id is there twice", where="items", given=item.id)
        seen.add(item.id)
        if item.role != "work" and not item.golden:
            raise InputError(
                f"no right answer of an item for {item.role}",
                where=f"item '{item.id}'",
                hint="give its column 'golden'",
            )
    kinds = {
        "image": pa.string(),
        "text": pa.string(),
        "images": pa.list_(pa.string()),
        "texts": pa.list_(pa.string()),
    }
    columns: dict[str, pa.Array] = {
        "id": pa.array([item.id for item in items], pa.string()),
        "role": pa.array([item.role for item in items], pa.string()),
        "golden": pa.array(
            [json.dumps(dict(item.golden)) if item.golden else "" for item in items], pa.string()
        ),
        "instance": pa.array([item.instance for item in items], pa.string()),
        "kind": pa.array([item.kind for item in items], pa.string()),
        "truth": pa.array([item.truth for item in items], pa.string()),
    }
    for name, kind in form.columns.items():
        columns[name] = pa.array([item.cells.get(name) for item in items], kinds[kind])
    return pa.table(columns)


def read_items(path: Path, form: WorkForm) -> tuple[WorkItem, ...]:
    """The items of a table as `items_table` writes it; raises `DataError` where a column is not there."""
    table = read_parquet(path)
    lacking = [name for name in (*_FIXED, *form.columns) if name not in table.column_names]
    if lacking:
        raise DataError(
            "items of another form",
            where=str(path),
            given=", ".join(table.column_names),
            allowed=f"a column '{lacking[0]}' for the form '{form.name}'",
        )
    found = []
    for row in table.to_pylist():
        if row["role"] not in ROLES:
            raise DataError(
                "no such role", where=f"{path}, item '{row['id']}'", given=row["role"], allowed=ROLES
            )
        golden = json.loads(row["golden"]) if row["golden"] else {}
        cells = {name: row[name] for name in form.columns}
        found.append(
            WorkItem(row["id"], cells, row["role"], golden, row["instance"], row["kind"], row["truth"])
        )
    return tuple(found)


def _write_secrets(path: Path, salt: str) -> None:
    """New secrets, in a file that its owner alone can read from its first byte on."""
    content = json.dumps({"salt": salt, "token": secrets.token_urlsafe(32)}).encode()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
