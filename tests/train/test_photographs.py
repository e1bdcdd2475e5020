"""Every recipe, a few steps on real photographs, from models of both libraries whose weights are random."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("open_clip")

from counterfoil.data.records import Caption, FileSource, Image  # noqa: E402
from counterfoil.data.training_rows import TrainingSet  # noqa: E402
from counterfoil.scorers import (  # noqa: E402
    checkpoint,
    registry,
)
from counterfoil.train import detectors  # noqa: E402
from counterfoil.train.loop import fit  # noqa: E402
from counterfoil.train.objectives import with_heads  # noqa: E402
from counterfoil.train.recipes import RECIPES, Detection  # noqa: E402
from tiny_families import write_random_checkpoint  # noqa: E402

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def photographs(shared_data: Path) -> TrainingSet:
    """Eight rows of sixteen photographs in every role that a recipe asks for."""
    files = sorted((shared_data / "coco_mini" / "images").rglob("*.jpg"))[:16]
    images = tuple(Image(file.stem, FileSource(file)) for file in files)
    captions = tuple(Caption(str(n), f"a photo of thing {n}" + " by the sea" * (n % 3)) for n in range(16))
    first, second = np.arange(8), np.arange(8, 16)
    return TrainingSet(
        "photographs",
        images,
        captions,
        {
            "image": first,
            "caption": first,
            "negative_image": second,
            "negative_caption": second,
            "generated_image": second,
            "generated_caption": second,
        },
    )


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A tiny CLIP of each library."""
    import transformers

    folder = tmp_path_factory.mktemp("starts")
    found = {"open-clip": write_random_checkpoint(folder / "open-clip")}
    layers = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 32, "intermediate_size": 64}
    marks = {"bos_token_id": 1, "eos_token_id": 39, "pad_token_id": 0}
    config = transformers.CLIPConfig(
        text_config={**layers, **marks, "vocab_size": 40, "max_position_embeddings": 32},
        vision_config={**layers, "image_size": 32, "patch_size": 8},
        projection_dim=24,
    )
    torch.manual_seed(0)
    transformers.CLIPModel(config).save_pretrained(folder / "hf")
    transformers.CLIPImageProcessor(size={"shortest_edge": 32}, crop_size=32).save_pretrained(folder / "hf")
    _save_letters(folder / "hf")
    return found | {"hf": f"hf:{folder / 'hf'}"}


@pytest.mark.parametrize("name", [name for name in RECIPES if name != "detector"])
@pytest.mark.parametrize("library", ["open-clip", "hf"])
def test_a_recipe_trains(
    library: str, name: str, starts: dict[str, str], photographs: TrainingSet, tmp_path: Path
) -> None:
    recipe = replace(RECIPES[name], batch_size=4, steps=2, lr=1e-3, warmup=0, select="last")
    # A stage of hundreds of steps goes the same way in two.
    recipe = replace(recipe, stages=tuple({**stage, "steps": 2} for stage in recipe.stages))
    backbone = with_heads(registry.backbone(starts[library]), recipe)
    before = {key: each.clone() for key, each in backbone.network.state_dict().items()}
    fit(backbone, recipe, photographs, out=tmp_path / "ckpt", device="cpu")
    after = checkpoint.read(tmp_path / "ckpt").network
    changed = {
        key for key, each in after.state_dict().items() if not torch.equal(each.cpu(), before[key].cpu())
    }
    if name == "pac":
        # Nothing but the last map of each tower.
        wanted = {id(each) for each in after.projections()}
        last = {key for key, each in after.named_parameters() if id(each) in wanted}
        assert last <= changed <= last | {"model.logit_scale"}
    else:
        assert len(changed) > 10
    assert all(bool(torch.isfinite(each).all()) for each in after.state_dict().values())


@pytest.mark.parametrize("library", ["open-clip", "hf"])
def test_detectors_train(
    library: str, starts: dict[str, str], photographs: TrainingSet, tmp_path: Path
) -> None:
    recipe = replace(RECIPES["detector"], batch_size=4, epochs=2)
    assert isinstance(recipe, Detection)
    fitted = detectors.fit(
        registry.backbone(starts[library]), recipe, photographs, out=tmp_path / "ckpt", device="cpu"
    )
    assert [len(fitted.history[side]) for side in ("image", "caption")] == [1, 2]
    assert checkpoint.facts(tmp_path / "ckpt")["recipe"]["name"] == "detector"


def _save_letters(folder: Path) -> None:
    """A tokenizer of letters and digits, with CLIP's marks."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    pieces = ["<pad>", "<s>", "<unk>", *"abcdefghijklmnopqrstuvwxyz0123456789"]
    ids = {piece: number for number, piece in enumerate(pieces)} | {"</s>": 39}
    backend = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 39)]
    )
    marks = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=32, **marks).save_pretrained(folder)
