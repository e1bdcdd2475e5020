"""Models of transformers open for training: the library's own modules behind the one shape of answer.

Pictures are made small in worker processes, with Pillow, where the model's image processor does no more than
resize, crop and scale; the two differ by a level of 255 or two where the processor resizes with torchvision.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import torch
from numpy import ndarray
from torch import Tensor, nn

from counterfoil.errors import ModelError
from counterfoil.scorers.hf import (
    LOWER_CASED,
    SAMPLE,
    can_cut,
    check_place,
    features_of,
    fetched,
    length_of,
    library_of,
    model_of,
    quiet,
)
from counterfoil.scorers.networks import Answer, Backbone, Encoded, Local, Network
from counterfoil.scorers.pictures import Resized, Untouched

#: Levels of 255 by which Pillow's picture may differ from the processor's on a sample, on average.
_LEVELS = 1.0


class HfNetwork(Network):
    """The two towers of a dual encoder of transformers.

    `pad` is the id that fills up texts where the tower must be told (BERT's kind), None where what comes
    after a text does not matter (CLIP) or was seen in training (SigLIP). The bias of sigmoid losses becomes a
    buffer: no loss of this package depends on it, and distributed training wants parameters that are used.
    """

    def __init__(self, model: nn.Module, *, pad: int | None, where: str) -> None:
        super().__init__()
        self.model = model
        self.pad, self._where = pad, where
        if not hasattr(model, "logit_scale"):
            # ALIGN keeps what it divides by.
            start = getattr(model, "temperature", torch.tensor(0.07)).detach()
            model.logit_scale = nn.Parameter(start.reciprocal().log())
        for unused in ("logit_bias", "temperature"):
            value = getattr(model, unused, None)
            if isinstance(value, nn.Parameter):
                delattr(model, unused)
                model.register_buffer(unused, value.detach())

    @property
    def logit_scale(self) -> nn.Parameter:
        """Logarithm of the inverse temperature."""
        scale: nn.Parameter = self.model.logit_scale
        return scale

    @property
    def logit_bias(self) -> Tensor | None:
        """What a sigmoid loss adds to every logit, where the model has it."""
        return getattr(self.model, "logit_bias", None)

    def forward(self, pixels: Tensor, tokens: Tensor) -> Answer:
        """Both sides; the temperature as a scalar, however the library keeps it."""
        return Answer(self.encode_images(pixels), self.encode_texts(tokens), self.logit_scale.reshape(()))

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


@dataclass(frozen=True, eq=False)
class HfPixels:
    """What workers made of pictures to what the model takes, on the CPU."""

    processor: Any
    preparation: Resized | Untouched

    def __call__(self, pictures: Sequence[ndarray]) -> Tensor:
        """(batch, 3, height, width) floats, normalised."""
        if isinstance(self.preparation, Untouched):
            whole = [PIL.Image.fromarray(picture) for picture in pictures]
            found: Tensor = self.processor(images=whole, return_tensors="pt")["pixel_values"]
            return found
        mean, std = (
            torch.tensor(list(each), dtype=torch.float32).view(3, 1, 1)
            for each in (self.processor.image_mean, self.processor.image_std)
        )
        pixels = torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).contiguous()
        return pixels.float().div_(255).sub_(mean).div_(std)


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
    preparation = _preparation(processor)
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
    if image.shape != text.shape:
        raise ModelError(
            "image and text features cannot be compared",
            where=found.name,
            given=f"{tuple(image.shape)} and {tuple(text.shape)}",
            allowed="one vector each, of one width",
        )


def _preparation(processor: Any) -> Resized | Untouched:
    """What workers may do in the processor's place; `Untouched` where it does anything else."""
    kind = {2: "bilinear", 3: "bicubic"}.get(int(getattr(processor, "resample", None) or -1))
    size, crop = (_sides(getattr(processor, name, None)) for name in ("size", "crop_size"))
    plain = (
        kind is not None
        and processor.do_resize
        and processor.do_rescale
        and processor.do_normalize
        and abs(processor.rescale_factor * 255 - 1) < 1e-6
        and not getattr(processor, "do_pad", False)
    )
    if not plain:
        return Untouched()
    crops = bool(getattr(processor, "do_center_crop", False))
    side = size.get("height", 0)
    if crops and set(size) == {"shortest_edge"} and len({size["shortest_edge"], *crop.values()}) == 1:
        made = Resized(size["shortest_edge"], "shortest", kind, corner="floor")  # type: ignore[arg-type]
    elif not crops and size == {"height": side, "width": side}:
        made = Resized(side, "squash", kind)  # type: ignore[arg-type]
    else:
        return Untouched()
    return made if _agrees(processor, made) else Untouched()


def _agrees(processor: Any, made: Resized) -> bool:
    """Whether Pillow and the processor make the same of a smooth picture whose margins are not even."""
    ramp = np.linspace(0, 12, 3 * 331 * 478).reshape(331, 478, 3)
    picture = PIL.Image.fromarray((np.sin(ramp * ramp) * 120 + 128).astype(np.uint8))
    ours = HfPixels(processor, made)([made(picture)])
    theirs = HfPixels(processor, Untouched())([np.asarray(picture)])
    if ours.shape != theirs.shape:
        return False
    levels = (ours - theirs).abs() * torch.tensor(list(processor.image_std)).view(3, 1, 1) * 255
    return float(levels.mean()) <= _LEVELS


def _sides(size: Any) -> dict[str, int]:
    """The sides that a processor's size names."""
    names = ("shortest_edge", "longest_edge", "height", "width", "max_height", "max_width")
    values = {name: getattr(size, name, None) for name in names} if not isinstance(size, Mapping) else size
    return {name: int(value) for name, value in dict(values).items() if value is not None}
