"""Dual encoders of the package transformers: `hf:NAME_OR_FOLDER`.

Any model whose class answers `get_image_features` and `get_text_features` with one vector each: CLIP, SigLIP,
SigLIP2, ALIGN, AltCLIP and others. Code that comes with a checkpoint is never run.
"""

import json
import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
from numpy import ndarray

from counterfoil.errors import MissingExtraError, ModelError
from counterfoil.inputs.amounts import check_network
from counterfoil.inputs.files import read_text
from counterfoil.inputs.parsed import parse_json
from counterfoil.scorers.base import DEFAULT, Identity, Options, prompt_of, reject_unused_options
from counterfoil.scorers.dual import DualEncoder
from counterfoil.scorers.images import Untouched
from counterfoil.scorers.runtime import (
    NO_NETWORK,
    causes,
    device_of,
    digest_tensors,
    import_torch,
    precision_of,
    to_device,
)
from counterfoil.scorers.token_encoder import TokenIds
from counterfoil.store import canonical_json, digest_value

#: Text lengths that a model's processor prescribes, where its tokenizer and configuration allow more.
PRESCRIBED = {"align": 64}
#: Model types whose texts were lower-cased in training, by whatever tokenizer comes with the checkpoint.
LOWER_CASED = ("siglip", "siglip2")
#: What a model is tried with when it is loaded.
SAMPLE = "a photo of a cat"
#: Parameters that no embedding depends on; a text encoder's pooler is one, since its tokens are asked for.
_UNUSED = re.compile(r"(.*\.)?(logit_scale|logit_bias|temperature|position_ids)|pooler\..*")


def load(argument: str, options: Options = DEFAULT) -> DualEncoder:
    """The model in a local folder, or of that name on the hub (from the local cache where it is there).

    Captions are padded to the longest of their batch where that is exact (CLIP: causal, pooled at the end
    mark); elsewhere to the full length the model was trained with.

    Raises `ModelError` for folders without a configuration, weights, tokenizer or image processor, models
    without image and text features, weights that are incomplete or would need their own code, and names that
    cannot be downloaded.
    """
    where = f"hf:{argument}"
    reject_unused_options(where, options, "precision", "prompt")
    library = library_of()
    device = device_of(options, where=where)
    dtype = precision_of(options, device, where=where)
    prompt = prompt_of(options, where=where)
    check_place(argument, where)
    with quiet(library):
        model, revision = model_of(library, argument, where)
        processor = fetched(library.AutoImageProcessor, argument, where, "image processor")
        tokenizer = fetched(library.AutoTokenizer, argument, where, "tokenizer")
    torch = import_torch()
    # Half-precision checkpoints become float32 first, which is exact; the digest is of what was stored.
    weights = digest_tensors(model.state_dict())
    model, computed = to_device(model, device, dtype)
    towers = _Towers(
        model=model,
        processor=processor,
        tokenizer=tokenizer,
        device=device,
        dtype=computed,
        length=length_of(model.config, tokenizer),
        cut=can_cut(model),
        lower=model.config.model_type in LOWER_CASED,
        where=where,
    )
    towers.check()
    ids = Cased(tokenizer, towers.length, towers.lower)
    return DualEncoder(
        identity=Identity(
            name=where,
            revision=revision,
            weights=weights,
            preprocessing=canonical_json(json.loads(processor.to_json_string())),
            precision=options.precision,
            prompt=prompt,
            options={
                "device": device.type,
                "tokenizer": tokenizer_digest(tokenizer),
                "length": towers.length,
            },
        ),
        preparation=Untouched(),
        encode_images=towers.images,
        encode_texts=towers.texts,
        count_tokens=towers.count,
        count_left_out=ids.left_out,
        tokens=ClipTokens(model, ids, device) if towers.cut else None,
        provenance={
            "transformers": library.__version__,
            "torch": torch.__version__,
            "device": str(device),
            "text tower": "cut to the longest caption" if towers.cut else f"padded to {towers.length} tokens",
        },
    )


# -- loading ----------------------------------------------------------------------------------------------


def library_of() -> Any:
    """The package transformers; raises `MissingExtraError` where it is not installed."""
    try:
        import transformers
    except ModuleNotFoundError:
        raise MissingExtraError("transformers", "models") from None
    return transformers


def check_place(argument: str, where: str) -> None:
    """Raises `ModelError` where `argument` is neither a folder of a model nor like a name on the hub."""
    path = Path(argument)
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ModelError(
                "the folder holds no model of transformers (no config.json)",
                where=where,
                given=", ".join(sorted(file.name for file in path.iterdir())[:8]) or "an empty folder",
                hint="a checkpoint of open_clip loads as open-clip:ARCH/FILE",
            )
        config = path / "config.json"
        check_network(parse_json(read_text(config), where=config), where=config)
    elif path.exists():
        raise ModelError(
            "is a file, not a folder", where=where, hint="name the folder that holds config.json"
        )
    elif not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", argument) or argument.startswith("."):
        raise ModelError("no such folder", where=where, hint="check the path, or give a hub name OWNER/MODEL")


def model_of(library: Any, argument: str, where: str) -> tuple[Any, str]:
    """The dual encoder with all of its weights, and the revision of the hub it came from."""
    model, revision = weights_of(library, argument, where)
    if not (hasattr(model, "get_image_features") and hasattr(model, "get_text_features")):
        raise ModelError(
            "the model has no image and text features",
            where=where,
            given=f"{type(model).__name__} (model type {model.config.model_type})",
            allowed="dual encoders: CLIP, SigLIP, SigLIP2, ALIGN, AltCLIP, ...",
            hint="an encoder of texts is hf-text:..., for metric:token-match",
        )
    return model, revision


def weights_of(library: Any, argument: str, where: str) -> tuple[Any, str]:
    """The model with all weights that an embedding depends on, and the revision of the hub it came from."""
    try:
        model, report = library.AutoModel.from_pretrained(
            argument,
            trust_remote_code=False,
            weights_only=True,
            output_loading_info=True,
            local_files_only=Path(argument).is_dir(),
        )
    except Exception as error:
        raise _explained(error, where, "model") from None
    missing = [name for name in sorted(report["missing_keys"]) if not _UNUSED.fullmatch(name)]
    wrong = sorted(str(each) for each in report.get("mismatched_keys", ()))
    if missing or wrong:
        raise ModelError(
            "the checkpoint does not fill the model, and the rest would be random",
            where=where,
            given=f"{len(missing)} missing, {len(wrong)} of another shape; first {(missing + wrong)[0]}",
        )
    return model, str(getattr(model.config, "_commit_hash", None) or "")


def fetched(kind: Any, argument: str, where: str, what: str) -> Any:
    """What `kind.from_pretrained` makes of a folder or name; raises `ModelError` calling it `what`."""
    try:
        return kind.from_pretrained(
            argument, trust_remote_code=False, local_files_only=Path(argument).is_dir()
        )
    except Exception as error:
        raise _explained(error, where, what) from None


def _explained(error: Exception, where: str, what: str) -> ModelError:
    """One line for what transformers raised while it fetched or read `what`."""
    text = causes(error)
    if NO_NETWORK.search(text) and not Path(where.partition(":")[2]).is_dir():
        return ModelError(
            f"its {what} is not here and cannot be downloaded",
            where=where,
            hint="load it once with a network, or give a local folder",
        )
    if "trust_remote_code" in text:
        return ModelError(f"its {what} brings code of its own, which is not run", where=where)
    if "weights_only" in text or "Weights only" in text:
        return ModelError(
            "restoring its weights means running code from them, and that is not done",
            where=where,
            hint="save them as safetensors",
        )
    return ModelError(f"its {what} cannot be loaded: {' '.join(str(error).split())[:240]}", where=where)


@contextmanager
def quiet(library: Any) -> Iterator[None]:
    """transformers logs, warns and draws progress bars of what is checked here."""
    disabled, bars = logging.root.manager.disable, library.utils.logging.is_progress_bar_enabled()
    logging.disable(logging.ERROR)
    library.utils.logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
        if bars:
            library.utils.logging.enable_progress_bar()


def can_cut(model: Any) -> bool:
    """Whether a caption's features depend on nothing after its end mark: CLIP's causal text tower alone."""
    tower = getattr(model, "text_model", None)
    return model.config.model_type == "clip" and type(tower).__name__ in (
        "CLIPTextModel",
        "CLIPTextTransformer",
    )


def length_of(config: Any, tokenizer: Any) -> int:
    """How many tokens of a caption the model reads."""
    text = getattr(config, "text_config", config)
    positions = int(getattr(text, "max_position_embeddings", 77))
    # RoBERTa's positions start after its padding mark, so two of them are never used.
    if "roberta" in str(text.model_type) or config.model_type == "altclip":
        positions -= 2
    return min(PRESCRIBED.get(config.model_type, positions), positions, int(tokenizer.model_max_length))


def tokenizer_digest(tokenizer: Any) -> str:
    """Hex digits that name what a tokenizer does."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return digest_value(backend.to_str())
    return digest_value([type(tokenizer).__name__, sorted(tokenizer.get_vocab().items())])


# -- running ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Towers:
    """The functions a `DualEncoder` needs, around one model."""

    model: Any
    processor: Any
    tokenizer: Any
    device: Any
    dtype: Any
    length: int
    cut: bool
    lower: bool
    where: str

    def images(self, pictures: Sequence[ndarray]) -> Any:
        inputs = self.processor(images=[PIL.Image.fromarray(each) for each in pictures], return_tensors="pt")
        # Whole numbers (shapes, masks) keep their type.
        return features_of(self.model.get_image_features(**inputs.to(self.device, self.dtype)), self.where)

    def texts(self, texts: Sequence[str]) -> Any:
        inputs = self.tokenizer(
            self._cased(texts),
            padding="longest" if self.cut else "max_length",
            truncation=True,
            max_length=self.length,
            return_tensors="pt",
        )
        return features_of(self.model.get_text_features(**inputs.to(self.device)), self.where)

    def count(self, texts: Sequence[str]) -> list[int]:
        if not self.cut:
            # The model reads every caption at full length.
            return [self.length] * len(texts)
        found = self.tokenizer(self._cased(texts), truncation=True, max_length=self.length)
        return [len(ids) for ids in found["input_ids"]]

    def check(self) -> None:
        """Raises `ModelError` where a picture and a caption do not give one vector each, of one width.

        And where the tokenizer knows none of the caption's words: transformers makes an empty one where the
        files of a tokenizer are missing.
        """
        torch = import_torch()
        ids = set(self.tokenizer(SAMPLE)["input_ids"])
        if not ids - set(self.tokenizer.all_special_ids):
            raise ModelError(
                "its tokenizer knows no words",
                where=self.where,
                given=f"a vocabulary of {len(self.tokenizer)}",
                hint="are the tokenizer's files missing?",
            )
        try:
            with torch.inference_mode():
                grey = np.full((48, 64, 3), 128, dtype=np.uint8)
                image, text = self.images([grey]), self.texts([SAMPLE])
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(
                f"the model cannot embed a picture and a caption: {' '.join(str(error).split())[:240]}",
                where=self.where,
                given=type(self.model).__name__,
            ) from None
        check_shapes(image, text, self.where)

    def _cased(self, texts: Sequence[str]) -> list[str]:
        return [text.lower() for text in texts] if self.lower else list(texts)


@dataclass(frozen=True, eq=False)
class Cased:
    """Texts to ids: in lower case where the model wants it, and no longer than it reads."""

    tokenizer: Any
    length: int
    lower: bool

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, cut off where the model reads no more, and not filled up."""
        found = self.tokenizer(self._cased(texts), truncation=True, max_length=self.length)
        return [list(ids) for ids in found["input_ids"]]

    def left_out(self, texts: Sequence[str]) -> list[int]:
        """How many ids of each text are cut off."""
        found = self.tokenizer(self._cased(texts), truncation=False, verbose=False)
        return [max(0, len(ids) - self.length) for ids in found["input_ids"]]

    def _cased(self, texts: Sequence[str]) -> list[str]:
        return [text.lower() for text in texts] if self.lower else list(texts)


@dataclass(frozen=True, eq=False)
class ClipTokens:
    """A `TokenTower` around CLIP of transformers, whose text tower is causal and pools its end mark."""

    model: Any
    ids: Cased
    device: Any

    def read(self, texts: Sequence[str]) -> list[TokenIds]:
        """The ids of each text up to the end mark, filled up with 0 and not as the tokenizer does it."""
        end = self.model.config.text_config.eos_token_id
        rows = []
        for ids in self.ids(texts):
            # Before 2023 configurations named 2 as CLIP's end mark, which is its vocabulary's highest id.
            mark = max(ids) if end == 2 else end
            # Without an end mark the library pools the first token, and so does this.
            rows.append(ids[: ids.index(mark) + 1] if mark in ids else ids[:1])
        return [TokenIds.of(own, self.ids.length) for own in rows]

    def states(self, texts: Sequence[str]) -> Any:
        """(texts, longest, width) features of all tokens."""
        torch = import_torch()
        rows = [reading.ids[: reading.used] for reading in self.read(texts)]
        longest = max(map(len, rows))
        # What fills up lies behind every end mark, so that it is no matter what it is.
        ids = torch.tensor([(*row, *[row[-1]] * (longest - len(row))) for row in rows])
        output = self.model.text_model(input_ids=ids.to(self.device), return_dict=True)
        return self.model.text_projection(output.last_hidden_state)


def check_shapes(image: Any, text: Any, where: str) -> None:
    """Raise `ModelError` where a model's picture and its caption are not one vector each, of one width."""
    if image.shape != text.shape:
        raise ModelError(
            "image and text features cannot be compared",
            where=where,
            given=f"{tuple(image.shape)} and {tuple(text.shape)}",
            allowed="one vector each, of one width",
        )


def features_of(output: Any, where: str) -> Any:
    """The (batch, width) tensor in what a model returns: itself, or an output that holds it."""
    torch = import_torch()
    features = output if isinstance(output, torch.Tensor) else getattr(output, "pooler_output", None)
    if features is None or features.ndim != 2:
        raise ModelError(
            "the model gives no single vector per item",
            where=where,
            given=type(output).__name__ if features is None else tuple(features.shape),
        )
    return features
