"""A campaign: a folder with a recipe, items, their images, instructions, and what must stay secret.

campaign.toml     the recipe: form of work, design, pay, limits
items.parquet     items: id, role, golden, instance, kind, truth, and the columns of the form
images/           the images of the items, by digest
figures/          images in the instructions and the consent, where they show any
instructions.md   what people read before they begin; instructions.de.md the same in German, where it is there
consent.md        what people agree to; consent.de.md the same in German
source.parquet    the rows that the items are of, as they were given
secrets.json      salt of worker ids and token of the researcher; readable by its owner alone
database.sqlite   answers, where the campaign uses no other database
kept_labels.csv   labels, once answers were deleted, where the recipe keeps them; data_sheet.md beside them
"""

import json
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from math import ceil
from pathlib import Path

import pyarrow as pa

from counterfoil.annotate.forms.base import ROLES, Role, WorkForm, WorkItem
from counterfoil.annotate.forms.registry import WORK_FORMS
from counterfoil.annotate.languages import LANGUAGES, in_language, package_text
from counterfoil.annotate.pictures import FIGURES
from counterfoil.annotate.settings import CampaignRecipe as CampaignRecipe, Pay, pay_of
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.columns import ColumnSchema, Kind, Schema, read_columns, read_parquet
from counterfoil.inputs.fields import values_of
from counterfoil.inputs.files import (
    Stored,
    digest_file,
    digest_value,
    parse_json,
    read_model,
    read_text,
    read_toml,
    regular,
)
from counterfoil.outputs import UNFINISHED
from counterfoil.store import begin, begun, end, owner_only, write_bytes, write_parquet, write_text, writing

RECIPE, ITEMS, IMAGES, SECRETS = "campaign.toml", "items.parquet", "images", "secrets.json"
INSTRUCTIONS, CONSENT, DATABASE = "instructions.md", "consent.md", "database.sqlite"
SOURCE = "source.parquet"

#: Instructions and consent, for all, and in each language.
TEXTS = tuple(in_language(name, code) for name in (INSTRUCTIONS, CONSENT) for code in ("", *LANGUAGES))
#: What lies in the folder of a campaign; other files in it are not counterfoil's.
FILES = (
    *(RECIPE, ITEMS, IMAGES, SECRETS, *TEXTS, SOURCE, FIGURES, DATABASE),
    *("export", "kept_labels.csv", "data_sheet.md", "prolific.json", "prolific_bonuses.json", UNFINISHED),
)
#: Columns of the table of items that are not the form's.
_FIXED = ("id", "role", "golden", "instance", "kind", "truth")

_AGAIN = "was it edited? put the file back, or make the campaign again"
#: Shown of a person's id, which is unique in a campaign of any size.
SHORT_ID = 10
#: Words that a person reads in a minute.
_WORDS_PER_MINUTE = 200
#: What takes people's time: items by role, and the instructions and what they agree to.
READING = "reading"


class _Secrets(Stored):
    salt: str
    token: str


@dataclass(frozen=True, eq=False)
class Campaign:
    """An opened campaign: its folder, recipe, form and items. Nothing of it changes while it is open."""

    folder: Path
    recipe: CampaignRecipe
    form: WorkForm

    @cached_property
    def items(self) -> tuple[WorkItem, ...]:
        """All items in the order of their table."""
        return read_items(self.folder / ITEMS, self.form)

    @cached_property
    def positions(self) -> dict[str, int]:
        return {item.id: i for i, item in enumerate(self.items)}

    @cached_property
    def secrets(self) -> Mapping[str, str]:
        """`salt` of worker ids and `token` of the researcher."""
        return read_model(self.folder / SECRETS, _Secrets).model_dump()

    @cached_property
    def source(self) -> pa.Table | None:
        """The rows that the items are of, with a column `item`; None where nothing was kept of them."""
        path = self.folder / SOURCE
        return read_parquet(path) if path.is_file() else None

    def translations(self, name: str) -> tuple[str, ...]:
        """Languages in which `INSTRUCTIONS` or `CONSENT` has a file of its own."""
        return tuple(code for code in LANGUAGES if (self.folder / in_language(name, code)).is_file())

    def instructions_in(self, language: str = "") -> str:
        """What people read before they begin, in Markdown; in a language where it has a file of its own."""
        return self._text(INSTRUCTIONS, language)[0]

    def consent_in(self, language: str = "") -> str:
        """What people agree to, as `instructions_in`; `{pay}` is replaced by what the recipe pays."""
        text, language = self._text(CONSENT, language)
        return text.replace("{pay}", self.pay.sentence_in(language))

    @property
    def texts(self) -> Mapping[str, str]:
        """Instructions and consent in every language, by the names of their files."""
        there = [name for name in TEXTS if (self.folder / name).is_file()]
        return {name: read_text(self.folder / name) for name in there}

    def _text(self, name: str, language: str) -> tuple[str, str]:
        """A text and its language, "" where it has none in that language."""
        language = language if language in self.translations(name) else ""
        return read_text(self.folder / in_language(name, language)), language

    @cached_property
    def pay(self) -> Pay:
        return pay_of(self.recipe, self.form)

    def image(self, name: str) -> Path:
        """The file of an image that an item names; any other name raises `InputError`."""
        if name not in self.image_names:
            raise InputError("no such image in this campaign", given=name)
        return self.folder / IMAGES / name

    @cached_property
    def image_names(self) -> frozenset[str]:
        return frozenset(name for item in self.items for name in self.form.page(item).images)

    @cached_property
    def digest(self) -> str:
        """Digest of form, version, settings and items: what answers depend on."""
        regular(self.folder / ITEMS)
        facts = {"form": self.form.name, "version": self.form.version, "settings": dict(self.recipe.settings)}
        return digest_value({**facts, "items": digest_file(self.folder / ITEMS)})


@owner_only()
def create_folder(
    folder: Path,
    recipe: CampaignRecipe,
    items: Sequence[WorkItem],
    images: Mapping[str, bytes],
    *,
    source: pa.Table | None = None,
    salt: str = "",
) -> Campaign:
    """Write the folder of a campaign; a `salt` is that of a campaign whose people are to be known again."""
    form = form_of(recipe, where="the campaign")
    table = items_table(items, form)
    if (folder / DATABASE).exists():
        raise InputError("a campaign with answers is there", where=folder, hint="name another folder")
    begin(folder, "campaign")
    folder.chmod(0o700)
    for name in images:
        # Images are named by their content, so one that is there is the same one.
        if not (folder / IMAGES / name).is_file():
            write_bytes(folder / IMAGES / name, images[name])
    write_parquet(folder / ITEMS, table)
    if source is None:
        (folder / SOURCE).unlink(missing_ok=True)
    else:
        write_parquet(folder / SOURCE, source)
    several = any(len(item.cells.get("images") or ()) > 1 for item in items)
    instructions = "instructions" if several else "instructions_captions"
    write_text(folder / INSTRUCTIONS, getattr(form, instructions, form.instructions))
    write_text(folder / CONSENT, package_text("phrases", CONSENT))
    if not (folder / SECRETS).exists():
        with writing(folder / SECRETS, private=True) as file:
            new = {"salt": salt or secrets.token_hex(32), "token": secrets.token_urlsafe(32)}
            file.write(json.dumps(new).encode())
    write_text(folder / RECIPE, recipe.to_toml())
    end(folder)
    return open_campaign(folder)


def open_campaign(folder: Path) -> Campaign:
    """The campaign in a folder; raises `DataError` where none is whole or its recipe cannot be read."""
    path = folder / RECIPE
    if begun(folder) is not None:
        hint = "run the same 'counterfoil annotate create' again"
        raise DataError("a campaign that was not written to its end", where=str(folder), hint=hint)
    if not path.is_file():
        hint = "make one with: counterfoil annotate create FORM --from TABLE --out DIR"
        raise DataError("no campaign", where=str(folder), hint=hint)
    recipe = read_recipe(path)
    return Campaign(folder, recipe, form_of(recipe, where=str(path)))


def unanswered(folder: str | Path) -> InputError:
    """The error of a campaign that is asked about answers and has none."""
    hint = f"serve it with: counterfoil annotate serve {folder}"
    return InputError("the campaign has no answers yet", where=folder, hint=hint)


def read_recipe(path: Path) -> CampaignRecipe:
    """The recipe in a file."""
    content = read_toml(path)
    settings = content.pop("settings", {})
    for name in ("form", "title"):
        if name not in content:
            raise InputError(f"no '{name}'", where=str(path), hint=f'add a line: {name} = "..."')
    empty = {field.name for field in fields(CampaignRecipe) if field.default == ""}
    given = {name: value for name, value in content.items() if value != "" or name not in empty}
    return CampaignRecipe(**values_of(CampaignRecipe, given, where=str(path)), settings=settings)


def form_of(recipe: CampaignRecipe, *, where: object) -> WorkForm:
    """The form of a recipe with its settings."""
    entry = WORK_FORMS.find(recipe.form, where=str(where))
    return entry.form(recipe.settings, where=f"{where}, settings of '{recipe.form}'")


def items_table(items: Sequence[WorkItem], form: WorkForm) -> pa.Table:
    """Items as a table; raises `InputError` for none, and for an id twice."""
    if not items:
        raise InputError("a campaign needs items", given="none")
    if twice := [id for id, n in Counter(item.id for item in items).items() if n > 1]:
        raise InputError("an id is there twice", where="items", given=twice[0])
    rows = [
        {name: getattr(item, name) for name in _FIXED}
        | {"golden": json.dumps(dict(item.golden)) if item.golden else ""}
        | {name: item.cells.get(name) for name in form.columns}
        for item in items
    ]
    types = {"images": pa.list_(pa.string()), "texts": pa.list_(pa.string())}
    cells = [(name, types.get(kind, pa.string())) for name, kind in form.columns.items()]
    return pa.Table.from_pylist(rows, pa.schema([*((name, pa.string()) for name in _FIXED), *cells]))


def read_items(path: Path, form: WorkForm) -> tuple[WorkItem, ...]:
    """The items of a table as `items_table` writes it."""
    kinds: dict[str, Kind] = {"images": "texts", "texts": "texts"}
    cells = {name: ColumnSchema(kinds.get(kind, "text"), null=True) for name, kind in form.columns.items()}
    fixed = {name: ColumnSchema("text", unique=name == "id") for name in _FIXED}
    table = read_columns(path, Schema(fixed | cells))
    if not len(table):
        raise DataError("no items", where=str(path), hint=_AGAIN)
    items = []
    for row in table.to_pylist():
        where = f"{path}, item '{row['id']}'"
        if row["role"] not in ROLES:
            raise DataError("no such role", where=where, given=row["role"], allowed=ROLES)
        gold = parse_json(row["golden"], where=where, finite=True) if row["golden"] else {}
        if not isinstance(gold, dict):
            raise DataError("no golden answers", where=where, given=row["golden"], hint=_AGAIN)
        columns = {name: row[name] for name in form.columns}
        unseen = (row[name] for name in ("instance", "kind", "truth"))
        items.append(WorkItem(row["id"], columns, row["role"], gold, *unseen))
    return tuple(items)


@dataclass(frozen=True)
class BudgetPart:
    """Answers, hours and pay of one role of items, or of reading, whose "answers" are the people."""

    answers: int
    hours: float
    cost: float


@dataclass(frozen=True)
class Budget:
    """What a campaign comes to by role, for a number of people; hours at the form's usual time per item."""

    people: int
    parts: Mapping[str, BudgetPart]

    @property
    def hours(self) -> float:
        return sum(part.hours for part in self.parts.values())

    @property
    def cost(self) -> float:
        return sum(part.cost for part in self.parts.values())


def budget_of(campaign: Campaign, people: int | None = None) -> Budget:
    """The budget of a campaign, by default for as many people as it needs at least."""
    recipe, seconds, pay = campaign.recipe, campaign.form.seconds, campaign.pay
    work, gold, test = (len(positions_of(campaign, role)) for role in ROLES)
    work *= recipe.overlap
    if recipe.design == "blocks":
        needed = ceil(work / (recipe.per_person - recipe.golden_per_block))
        gold_answers = needed * recipe.golden_per_block
        people = needed if people is None else people
    else:
        share = recipe.golden_share / (1 - recipe.golden_share)
        per_person = items_per_person(campaign)
        people = max(recipe.overlap, ceil(work * (1 + share) / per_person)) if people is None else people
        gold_answers = min(round(work * share), people * gold)
    words = len(f"{campaign.instructions_in()} {campaign.consent_in()}".split())
    answers = {"work": work, "golden": gold_answers, "onboarding": people * min(recipe.onboarding, test)}
    parts = {role: BudgetPart(n, n * seconds / 3600, n * pay.per_item) for role, n in answers.items() if n}
    hours = people * words / _WORDS_PER_MINUTE / 60
    return Budget(people, {**parts, READING: BudgetPart(people, hours, hours * pay.per_hour)})


@lru_cache(maxsize=64)
def positions_of(campaign: Campaign, role: Role) -> tuple[int, ...]:
    """The positions of the campaign's items of a role."""
    return tuple(i for i, item in enumerate(campaign.items) if item.role == role)


@lru_cache(maxsize=64)
def items_per_person(campaign: Campaign) -> int:
    """About how many items one person can do, golden ones among them: a block, or one of each instance."""
    recipe = campaign.recipe
    if recipe.design == "blocks":
        return recipe.per_person
    distinct = len({campaign.items[i].exclusion_group for i in positions_of(campaign, "work")})
    gold = round(distinct * recipe.golden_share / (1 - recipe.golden_share))
    most = distinct + min(gold, len(positions_of(campaign, "golden")))
    return min(recipe.per_person or most, most)
