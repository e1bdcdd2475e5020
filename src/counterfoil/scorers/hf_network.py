"""Models of transformers open for training: the library's own modules behind the one shape of answer."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import PIL.Image
import torch
from torch import Tensor, nn

from counterfoil.errors import ModelError
from counterfoil.scorers.hf import (
    LOWER_CASED,
    SAMPLE,
    can_cut,
    check_place,
    check_shapes,
    features_of,
    fetched,
    length_of,
    library_of,
    model_of,
    quiet,
)
from counterfoil.scorers.hf_images import HfPixels, preparation_for
from counterfoil.scorers.networks import Backbone, Encoded, LibraryNetwork, Local


class HfNetwork(LibraryNetwork):
    """The two towers of a dual encoder of transformers.

    `pad` is the id that fills up texts where the tower must be told (BERT's kind), None where what comes
    after a text does not matter (CLIP) or was seen in training (SigLIP).
    """

    def __init__(self, model: nn.Module, *, pad: int | None, where: str) -> None:
        if not hasattr(model, "logit_scale"):
            # ALIGN keeps what it divides by.
            start = getattr(model, "temperature", torch.tensor(0.07)).detach()
            model.logit_scale = nn.Parameter(start.reciprocal().log())
        super().__init__(model, unused=("temperature",))
        self.pad, self._where = pad, where

    def encode_images(self, pixels: Tensor) -> Encoded:
        """(batch, 3, height, width) to (batch, width)."""
        output = self.model.get_image_features(pixel_values=pixels)
        return Encoded(features_of(output, self._where))

    def encode_texts(self, tokens: Tensor) -> Encoded:
        """(batch, length) to (batch, width)."""
        return Encoded(features_of(self._texts(tokens), self._where))

    def local_images(self, pixels: Tensor) -> Local:
        """The whole and every patch, of towers that are sequences of patches after a class token (CLIP)."""
        output = self.model.get_image_features(pixel_values=pixels)
        states = getattr(output, "last_hidden_state", None)
        if states is None or not can_cut(self.model):
            whole = features_of(output, self._where)
            return Local(whole, whole[:, None])
        return Local(output.pooler_output, states[:, 1:])

    def local_texts(self, tokens: Tensor) -> Local:
        """The whole and every word up to the end mark, of CLIP's causal tower."""
        output = self._texts(tokens)
        if not can_cut(self.model):
            whole = features_of(output, self._where)
            return Local(whole, whole[:, None])
        end = self.model.config.text_config.eos_token_id
        # Before 2023 configurations named 2 as CLIP's end mark, which is the highest id of its vocabulary.
        ends = tokens.argmax(dim=-1) if end == 2 else (tokens == end).int().argmax(dim=-1)
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return Local(output.pooler_output, output.last_hidden_state, places > ends[:, None])

    def projections(self) -> Sequence[nn.Parameter]:
        """`visual_projection.weight` and `text_projection.weight`, where there are both (CLIP's kind)."""
        layers = [getattr(self.model, f"{side}_projection", None) for side in ("visual", "text")]
        if not all(isinstance(layer, nn.Linear) for layer in layers):
            return ()
        return tuple(layer.weight for layer in layers if isinstance(layer, nn.Linear))

    def _texts(self, tokens: Tensor) -> Any:
        mask = {} if self.pad is None else {"attention_mask": (tokens != self.pad).long()}
        return self.model.get_text_features(input_ids=tokens, **mask)


@dataclass(frozen=True, eq=False)
class HfTokens:
    """Texts to token ids, padded to the longest of the batch where that is exact, else to full length."""

    tokenizer: Any
    length: int
    cut: bool
    lower: bool
    #: The processor and the configuration that a checkpoint keeps beside the tokenizer.
    processor: Any
    config: Mapping[str, Any]

    def __call__(self, texts: Sequence[str]) -> Tensor:
        """(batch, length) ids."""
        found = self.tokenizer(
            [text.lower() for text in texts] if self.lower else list(texts),
            padding="longest" if self.cut else "max_length",
            truncation=True,
            max_length=self.length,
            return_tensors="pt",
        )
        ids: Tensor = found["input_ids"]
        return ids

    def files(self) -> Mapping[str, bytes]:
        """What a checkpoint keeps so that it needs neither hub nor folder: tokenizer and image processor."""
        with tempfile.TemporaryDirectory() as folder:
            self.tokenizer.save_pretrained(folder)
            self.processor.save_pretrained(folder)
            files = {
                str(file.relative_to(folder)): file.read_bytes()
                for file in sorted(Path(folder).rglob("*"))
                if file.is_file()
            }
        # The library finds the kind of tokenizer by the kind of model.
        return {**files, "config.json": json.dumps(dict(self.config), indent=2).encode()}


def backbone(argument: str) -> Backbone:
    """The model in a local folder, or of that name on the hub, in fp32 on the CPU.

    Raises `ModelError` as `counterfoil.scorers.hf.load` does, and for models whose images are not one tensor
    of pixels (SigLIP2 with free proportions).
    """
    where = f"hf:{argument}"
    library = library_of()
    check_place(argument, where)
    with quiet(library):
        model, revision = model_of(library, argument, where)
        found = _processing(library, argument, where)
    card = {
        "kind": "hf",
        "config": json.loads(model.config.to_json_string()),
        "from": argument,
        **({"revision": revision} if revision else {}),
    }
    return _around(where, model, *found, card)


def from_card(card: Mapping[str, Any], folder: Path | None = None) -> Backbone:
    """The architecture that a card describes, with random weights.

    Tokenizer and image processor are read from `folder`, or from where the model once came from. Raises
    `ModelError` where transformers cannot build it.
    """
    where = f"hf:{card['from']}"
    library = library_of()
    with quiet(library):
        try:
            config = library.AutoConfig.for_model(**card["config"])
            model = library.AutoModel.from_config(config)
        except Exception as error:
            raise ModelError(
                f"transformers cannot build the model of this card: {str(error)[:240]}", where=where
            ) from None
        found = _processing(library, str(card["from"] if folder is None else folder), where)
    return _around(where, model, *found, card)


def _processing(library: Any, place: str, where: str) -> tuple[Any, Any]:
    return (
        fetched(library.AutoImageProcessor, place, where, "image processor"),
        fetched(library.AutoTokenizer, place, where, "tokenizer"),
    )


def _around(where: str, model: Any, processor: Any, tokenizer: Any, card: Mapping[str, Any]) -> Backbone:
    cut = can_cut(model)
    masked = not cut and "attention_mask" in tokenizer.model_input_names
    network = HfNetwork(
        model.float().requires_grad_(True), pad=tokenizer.pad_token_id if masked else None, where=where
    )
    tokens = HfTokens(
        tokenizer=tokenizer,
        length=length_of(model.config, tokenizer),
        cut=cut,
        lower=model.config.model_type in LOWER_CASED,
        processor=processor,
        config=card["config"],
    )
    preparation = preparation_for(processor)
    found = Backbone(where, network, preparation, HfPixels(processor, preparation), tokens, card)
    _check(found, tokenizer)
    return found


def _check(found: Backbone, tokenizer: Any) -> None:
    """Raises `ModelError` where a picture and a caption do not give one vector each, of one width."""
    if not set(tokenizer(SAMPLE)["input_ids"]) - set(tokenizer.all_special_ids):
        raise ModelError(
            "its tokenizer knows no words",
            where=found.name,
            given=f"a vocabulary of {len(tokenizer)}",
            hint="are the tokenizer's files missing?",
        )
    network = found.network.eval()
    try:
        with torch.inference_mode():
            picture = found.preparation(PIL.Image.new("RGB", (64, 48), (128, 128, 128)))
            image = network.encode_images(found.pixels([picture])).points
            text = network.encode_texts(found.tokens([SAMPLE])).points
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            f"the model cannot embed a picture and a caption: {' '.join(str(error).split())[:240]}",
            where=found.name,
            hint="images that are more than one tensor of pixels cannot be trained on",
        ) from None
    check_shapes(image, text, found.name)
