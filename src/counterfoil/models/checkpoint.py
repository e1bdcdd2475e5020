"""The checkpoint folder: a network, the card it is built from, and what its training says of itself.

    model.safetensors   the weights; its metadata hold all that card.json holds, and count
    card.json           a readable copy
    processor/          files of tokenizer and image processor, for models that come with such files

Libraries read their own models from it too: weights stand under the library's names.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from counterfoil.errors import DataError, InputError, MissingExtraError, ModelError, UnknownNameError
from counterfoil.inputs.files import Stored, canonical_json, check_model, digest_file, read_json
from counterfoil.inputs.limits import check_network
from counterfoil.models.base import DEFAULT, Options, digest_tensors
from counterfoil.models.checkpoint_files import fit, metadata_of, opened, packed, read_checkpoint
from counterfoil.models.runtime import import_torch
from counterfoil.models.settings import CheckpointSettings, settings_of
from counterfoil.outputs import UNFINISHED, overwriting
from counterfoil.registry import resolve
from counterfoil.store import begin, begun, end, writing

if TYPE_CHECKING:
    from counterfoil.models.networks import Backbone

FORMAT = "counterfoil checkpoint"
SCHEMA = 1
WEIGHTS, CARD, PROCESSOR = "model.safetensors", "card.json", "processor"

#: All that is written into the folder of a training, or of a checkpoint alone.
_RESUME = "resume.pt"
FILES = (WEIGHTS, CARD, PROCESSOR, "journal.csv", _RESUME, UNFINISHED)

#: The builder of a network by its card's kind; its second argument is the folder of the files.
_BUILDERS = {
    "small": "counterfoil.models.small:from_card",
    "vse": "counterfoil.models.recurrent:from_card",
    "vsrn": "counterfoil.models.recurrent:from_card",
    "open-clip": "counterfoil.models.open_clip:from_card",
    "hf": "counterfoil.models.hf:from_card",
}
#: The builder of heads on another network, whose card is under "on"; the rest of the card are its arguments.
_ON_TOP = {
    "pvse": "counterfoil.models.pcme:pvse",
    "pcme": "counterfoil.models.pcme:pcme",
    "detector": "counterfoil.models.networks:detector",
}
#: Where the library's own module stands in a network, so that weights go by the library's names.
_INSIDE = {"open-clip": "model.", "hf": "model."}


def save(folder: Path, backbone: "Backbone", facts: Mapping[str, Any]) -> None:
    """Write a checkpoint into `folder`, over the one that may be there; `facts` are about the training.

    Weights and card appear together once both are on the disk; where that fails, the old checkpoint stays.
    """
    folder = Path(folder)
    check_target(folder)
    # Within a training, which has noted that it writes here, that note stays to its end.
    alone = begun(folder) is None
    if alone:
        begin(folder, "checkpoint")
    prefix = _INSIDE.get(str(backbone.card.get("kind")), "")
    state: dict[str, Any] = {}
    positions: set[int] = set()
    for name, tensor in backbone.network.state_dict().items():
        dense = tensor.detach().cpu().contiguous()
        # Tied weights share memory, which the format refuses.
        state[name.removeprefix(prefix)] = dense.clone() if dense.data_ptr() in positions else dense
        positions.add(dense.data_ptr())
    card = json.loads(canonical_json(backbone.card))
    record: dict[str, Any] = {"format": FORMAT, "schema": SCHEMA, "card": card}
    record |= {"facts": json.loads(canonical_json(facts)), "weights": digest_tensors(state)}
    if card["kind"] == "open-clip":
        # The entry in which `open-clip:ARCH/FILE` looks for the activation of the weights.
        record["quick_gelu"] = bool(card["model"].get("quick_gelu", False))
    for name, data in backbone.files().items():
        path = folder / PROCESSOR / name
        if not path.is_file() or path.read_bytes() != data:
            with writing(path) as file:
                file.write(data)
    readable = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    header, tensors = packed(state, {"format": "pt", "counterfoil": canonical_json(record)})
    # The card is on the disk before the weights take their place, and takes its own right after them.
    with writing(folder / CARD) as outer:
        outer.write(readable.encode("utf-8"))
        outer.flush()
        with writing(folder / WEIGHTS) as inner:
            inner.write(header)
            inner.write(tensors)
    if alone:
        end(folder)


def read(folder: Path) -> "Backbone":
    """The network of a checkpoint with its weights, on the CPU, ready to answer or to be trained further."""
    return _read(Path(folder))[0]


def facts(folder: Path) -> Mapping[str, Any]:
    """What the training of a checkpoint says of itself; raises `ModelError` as `read` does of its card."""
    folder = Path(folder)
    outside = _card(folder)
    with opened(folder / WEIGHTS) as file:
        notes = dict(file.metadata() or {})
    return _counting(folder, outside, metadata_of(notes))["facts"]


def build(card: Mapping[str, Any], folder: Path | None = None) -> "Backbone":
    kind = card.get("kind")
    builders = {**_BUILDERS, **_ON_TOP}
    if kind not in builders:
        raise UnknownNameError("kind of network", str(kind), builders)
    try:
        builder = resolve(builders[kind])
        if kind in _ON_TOP:
            arguments = {name: value for name, value in card.items() if name not in ("kind", "on")}
            backbone: "Backbone" = builder(build(card["on"], folder), **arguments)
        else:
            backbone = builder(card, folder)
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "torch", "models") from None
    except (KeyError, TypeError) as error:
        problem = "the card does not describe a network completely"
        raise ModelError(problem, given=f"{type(error).__name__} {error}") from None
    return backbone


def load(argument: str, options: Options = DEFAULT) -> Any:
    """The checkpoint in the folder `argument` as a model: an `Embedder`, or a `Classifier` for detectors."""
    from counterfoil.models.networks import network_model

    where = f"ckpt:{argument}"
    import_torch()
    backbone, record = _read(Path(argument))
    regions = settings_of(CheckpointSettings, options.settings, where=where).regions
    backbone = regions_of(backbone, regions, where=where, hint="--set regions=PATH")
    processor = Path(argument) / PROCESSOR
    paths = sorted(path for path in processor.rglob("*") if path.is_file())
    files = {str(file.relative_to(processor)): digest_file(file) for file in paths}
    recipe = record["facts"].get("recipe")
    name, weights = str(recipe.get("name", "")) if isinstance(recipe, Mapping) else "", record["weights"]
    return network_model(backbone, options, where=where, weights=weights, files=files, recipe=name)


def regions_of(backbone: "Backbone", path: str | Path | None, *, where: object, hint: str) -> "Backbone":
    """The network with the regions that `path` names, where it reads regions; else itself."""
    if not path and "images" in backbone.needs:
        return backbone
    if not path:
        raise InputError("the regions of the images are missing", where=where, hint=f"give them with {hint}")
    from counterfoil.models import recurrent
    from counterfoil.models.region_files import read_regions

    return recurrent.with_regions(backbone, read_regions(path))


def check_target(folder: Path) -> None:
    """Raise `InputError` where a folder has a card of something else, unless replacing it was asked for."""
    if (folder / CARD).exists() and not is_checkpoint(folder) and not overwriting():
        problem = "the folder holds a card.json that is no checkpoint's"
        raise InputError(problem, where=folder, hint="choose another folder")


def is_training(folder: Path) -> bool:
    """Whether a folder holds the state of a training, which the same training goes on from."""
    return (folder / _RESUME).is_file()


def is_checkpoint(folder: Path) -> bool:
    """Whether a folder holds a checkpoint, or what was one: its card says so, or its weights lie there."""
    if not (folder / CARD).is_file():
        return False
    try:
        record = read_json(folder / CARD)
    except InputError:
        return (folder / WEIGHTS).is_file()
    return isinstance(record, dict) and record.get("format") == FORMAT


class NetworkCard(Stored):
    kind: str


class CheckpointCard(Stored):
    format: Literal["counterfoil checkpoint"]
    layout: Annotated[int, Field(alias="schema", ge=1)]
    card: NetworkCard
    facts: dict[str, Any]
    weights: str
    quick_gelu: bool = False


def _read(folder: Path) -> "tuple[Backbone, Mapping[str, Any]]":
    outside = _card(folder)
    checkpoint = read_checkpoint(folder / WEIGHTS)
    inside = metadata_of(checkpoint.notes)
    record = _counting(folder, outside, inside)
    place = folder / PROCESSOR
    check_network(record["card"], where=folder / CARD)
    try:
        backbone = build(record["card"], place if place.is_dir() else None)
    except (ModelError, UnknownNameError) as error:
        raise ModelError(str(error), where=folder) from None
    prefix = _INSIDE.get(record["card"]["kind"], "")
    model = {name.removeprefix(prefix): held for name, held in backbone.network.state_dict().items()}
    described = f"the model that {CARD} describes ({backbone.name})"
    state = fit(checkpoint.tensors, model, where=folder / WEIGHTS, architecture=described)
    if not inside or inside["card"] != record["card"]:
        hint = f"is {WEIGHTS} that of another run?"
        raise ModelError(f"{CARD} is not the card of these weights", where=folder, hint=hint)
    if digest_tensors(checkpoint.tensors) != record["weights"]:
        problem, hint = "the weights are not those that were saved", "is the file damaged?"
        raise ModelError(problem, where=folder / WEIGHTS, hint=hint)
    backbone.network.load_state_dict({prefix + name: tensor for name, tensor in state.items()})
    return backbone, record


def _card(folder: Path) -> Mapping[str, Any]:
    """What card.json says; raises `ModelError` where that cannot be a checkpoint's."""
    lacking = [name for name in (CARD, WEIGHTS) if not (folder / name).is_file()]
    if lacking:
        problem, given = "no such checkpoint folder", None
        if folder.is_dir():
            problem, given = "not a checkpoint folder", f"no {' and no '.join(lacking)}"
        allowed = f"a folder with {WEIGHTS} and {CARD}, as 'counterfoil train' writes it"
        raise ModelError(problem, where=folder, given=given, allowed=allowed)
    try:
        record = read_json(folder / CARD)
    except DataError as error:
        raise ModelError(str(error)) from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ModelError(f"not the card of a checkpoint of {FORMAT.split()[0]}", where=folder / CARD)
    schema = record.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        problem = "a checkpoint of a newer version"
        allowed = f"schema up to {SCHEMA}"
        hint = "update counterfoil: pip install -U counterfoil"
        raise ModelError(problem, where=folder / CARD, given=f"schema {schema}", allowed=allowed, hint=hint)
    check_model(record, CheckpointCard, where=folder / CARD, error=ModelError)
    return record


def _counting(folder: Path, outside: Mapping[str, Any], inside: Mapping[str, Any]) -> Mapping[str, Any]:
    """What counts of card.json and the card within the weights.

    They differ where a machine stopped between the two files of a save; then what the weights say counts.
    """
    if not inside or inside == outside:
        return outside
    if inside.get("weights") == outside["weights"]:
        changed = [name for name in sorted({*inside, *outside}) if inside.get(name) != outside.get(name)]
        given = f"{', '.join(changed)} differ from what {WEIGHTS} says"
        hint = "write the old values back; they are in the metadata of the weights"
        raise ModelError("the card was changed by hand", where=folder / CARD, given=given, hint=hint)
    if inside.get("card") != outside["card"]:
        return outside
    check_model(inside, CheckpointCard, where=f"{folder / WEIGHTS}, metadata", error=ModelError)
    return inside
