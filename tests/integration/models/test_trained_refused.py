"""What is no checkpoint folder, or none that can be used, is refused in a line."""

import json
import shutil
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from counterfoil import catalog
from counterfoil.errors import InputError, MissingExtraError, ModelError
from counterfoil.models import checkpoint, registry
from counterfoil.models.base import Options

torch = pytest.importorskip("torch")
pytest.importorskip("open_clip")

pytestmark = [
    pytest.mark.models,
    pytest.mark.usefixtures("tiny_architectures"),
    # Small models read short captions only, and say which they cut.
    pytest.mark.filterwarnings("ignore:.*longer than the model reads"),
]

CPU = Options(device="cpu")

FACTS = {"recipe": "coco", "step": 12, "measures": {"accuracy": 0.25}}


@pytest.fixture
def saved(backbones: Callable[[str], Any], tmp_path: Path) -> Path:
    checkpoint.save(tmp_path / "ckpt", backbones("open-clip"), FACTS)
    return tmp_path / "ckpt"


def refused(folder: Path, pattern: str, error: type[Exception] = ModelError) -> None:
    for ask in (checkpoint.read, lambda folder: checkpoint.load(str(folder), CPU)):
        with pytest.raises(error, match=pattern) as raised:
            ask(folder)
        assert "\n" not in str(raised.value)


def test_folders_that_hold_no_checkpoint(tmp_path: Path, saved: Path) -> None:
    refused(tmp_path / "nowhere", "nowhere: no such checkpoint folder; allowed: a folder with model.safet")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", r"empty: not a checkpoint folder; given: no card.json and no model.safeten")
    (saved / "model.safetensors").unlink()
    refused(saved, "ckpt: not a checkpoint folder; given: no model.safetensors")


@pytest.mark.parametrize("keep", [0, -1000])
def test_weights_that_are_cut_off(keep: int, saved: Path) -> None:
    path = saved / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    refused(saved, r"model\.safetensors: not a readable safetensors file.*is the file cut off\?")
    with pytest.raises(ModelError, match="not a readable safetensors") if keep < 2001 else _fine():
        checkpoint.facts(saved)


@contextmanager
def _fine() -> Any:
    yield


def test_damaged_weights(saved: Path) -> None:
    path = saved / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(bytes(data))
    refused(saved, r"model\.safetensors: the weights are not those that were saved; is the file damaged")


def test_weights_of_another_model(saved: Path, backbones: Callable[[str], Any], tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "other", registry.backbone("open-clip:tiny-wide"), {})
    shutil.copy(tmp_path / "other" / "model.safetensors", saved)
    refused(
        saved,
        r"model\.safetensors: not a checkpoint of the model that card.json describes \(open-clip:tiny\); "
        "given: positional_embedding is 77x96 instead of 77x48",
    )
    # Of the same shapes, and yet not of that card.
    checkpoint.save(tmp_path / "quick", registry.backbone("open-clip:tiny-quickgelu"), {})
    shutil.copy(tmp_path / "quick" / "model.safetensors", saved)
    refused(saved, "ckpt: card.json is not the card of these weights; is model.safetensors that of")


def test_plain_weights_beside_a_card(saved: Path) -> None:
    from safetensors.torch import load_file, save_file

    save_file(load_file(saved / "model.safetensors"), saved / "model.safetensors")
    refused(saved, "card.json is not the card of these weights")


@pytest.mark.parametrize(
    ("keys", "value", "pattern"),
    [
        (
            ("facts", "step"),
            99,
            "card.json: the card was changed by hand; given: facts differ from",
        ),
        (("card", "model", "quick_gelu"), True, "changed by hand; given: card differ"),
        (("card", "kind"), "resnet", "changed by hand; given: card differ"),
        (("schema",), 2, "card.json: a checkpoint of a newer version; given: schema 2; .*pip install -U"),
        (("schema",), None, "field 'schema': wrong value; given: None"),
        (("format",), "something", "card.json: not the card of a checkpoint of counterfoil"),
        (("weights",), None, "card.json, field 'weights': wrong value; given: None"),
        (("card",), [], "field 'card': wrong value; given: list of 0; allowed: an object"),
    ],
)
def test_a_card_that_was_changed(keys: tuple[str, ...], value: object, pattern: str, saved: Path) -> None:
    said = json.loads((saved / "card.json").read_text())
    place = said
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    (saved / "card.json").write_text(json.dumps(said))
    refused(saved, pattern)


def test_a_card_that_is_cut_off(saved: Path) -> None:
    text = (saved / "card.json").read_text()
    (saved / "card.json").write_text(text[: len(text) // 2])
    refused(saved, r"card\.json, line \d+, column \d+: not valid JSON", InputError)
    # It is still taken for a checkpoint, so that the line is about what is wrong.
    with pytest.raises(InputError, match="not valid JSON"):
        catalog.scorer(str(saved), CPU)


def test_cards_that_describe_nothing() -> None:
    with pytest.raises(InputError, match=r"unknown kind of network; given: resnet; allowed: .*open-clip"):
        checkpoint.build({"kind": "resnet"})
    with pytest.raises(ModelError, match="does not describe a network completely; given: KeyError 'from'"):
        checkpoint.build({"kind": "open-clip"})


def test_a_missing_library_is_named(
    backbones: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from counterfoil.models import hf

    checkpoint.save(tmp_path, backbones("hf"), {})

    def missing() -> Any:
        raise MissingExtraError("transformers", "models")

    monkeypatch.setattr(hf, "library_of", missing)
    refused(tmp_path, "'transformers' is not installed; pip install", MissingExtraError)


def test_a_folder_of_something_else_is_not_written_to(
    backbones: Callable[[str], Any], tmp_path: Path
) -> None:
    (tmp_path / "card.json").write_text('{"name": "my-benchmark"}')
    with pytest.raises(InputError, match=r"holds a card\.json that is no checkpoint's; choose"):
        checkpoint.save(tmp_path, backbones("open-clip"), {})
    assert [path.name for path in tmp_path.iterdir()] == ["card.json"]


def test_options_that_mean_nothing(saved: Path, backbones: Callable[[str], Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no use for the option 'column'"):
        checkpoint.load(str(saved), Options(device="cpu", column="score"))
    checkpoint.save(tmp_path / "detector", backbones("detector"), {})
    with pytest.raises(InputError, match="has no use for the option 'prompt'"):
        checkpoint.load(str(tmp_path / "detector"), Options(device="cpu", prompt="a photo of {}"))
