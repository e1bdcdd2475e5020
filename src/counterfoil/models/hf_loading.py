"""Models, tokenizers and image processors of transformers; code that comes with a checkpoint is never run."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from counterfoil.errors import InputError, ModelError
from counterfoil.inputs.files import canonical_json, digest_value, parse_json, read_text
from counterfoil.inputs.limits import check_network
from counterfoil.models import runtime
from counterfoil.models.base import digest_tensors
from counterfoil.models.clip_fast import EndMark
from counterfoil.models.runtime import LoadContext, loading_errors, quiet as quiet, to_device

SAMPLE = "a photo of a cat"
#: Text lengths that a model's processor prescribes, where its tokenizer and configuration allow more.
PRESCRIBED = {"align": 64, "flava": 77}
#: Parameters that no embedding depends on; a text encoder's pooler is one, since its tokens are used.
_UNUSED = r"(.*\.)?(logit_scale|logit_bias|temperature|position_ids)|pooler\..*"


def library_of() -> Any:
    return runtime.library("transformers")


def configuration_of(argument: str, where: str) -> tuple[Any, Any]:
    """The package transformers, and the configuration of the model in a folder or of that name on the hub."""
    library = library_of()
    check_place(argument, where)
    with quiet(library):
        return library, fetched(library.AutoConfig, argument, where, "configuration")


def check_place(argument: str, where: str) -> None:
    """Raise `ModelError` where `argument` is neither a folder of a model nor like a name on the hub."""
    path = Path(argument)
    if path.is_dir():
        if not (path / "config.json").is_file():
            problem = "the folder holds no model of transformers (no config.json)"
            given = ", ".join(sorted(file.name for file in path.iterdir())[:8]) or "an empty folder"
            hint = "a checkpoint of open_clip loads as open-clip:ARCH/FILE"
            raise ModelError(problem, where=where, given=given, hint=hint)
        config = path / "config.json"
        # transformers takes NaN for a setting, and its model gives numbers all the same.
        check_network(parse_json(read_text(config), where=config, finite=True), where=config)
        for file in (path / name for name in ("preprocessor_config.json", "processor_config.json")):
            if file.is_file():
                parse_json(read_text(file), where=file, finite=True)
    elif path.exists():
        hint = "name the folder that holds config.json"
        raise ModelError("is a file, not a folder", where=where, hint=hint)
    elif not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", argument) or argument.startswith("."):
        raise ModelError("no such folder", where=where, hint="check the path, or give a hub name OWNER/MODEL")


def weights_of(
    library: Any, argument: str, where: str, *, kind: Any = None, unused: str = ""
) -> tuple[Any, str]:
    """The model of class `kind` and its revision; weights may be missing where they match `unused`."""
    with loading_errors("model", where):
        how = {"trust_remote_code": False, "weights_only": True, "local_files_only": Path(argument).is_dir()}
        model, report = (kind or library.AutoModel).from_pretrained(argument, output_loading_info=True, **how)
    optional = re.compile(f"{_UNUSED}|{unused}")
    missing = [name for name in sorted(report["missing_keys"]) if not optional.fullmatch(name)]
    wrong = sorted(str(key) for key in report.get("mismatched_keys", ()))
    if missing or wrong:
        problem = "the checkpoint does not fill the model, and the rest would be random"
        given = f"{len(missing)} missing, {len(wrong)} of another shape; first {(missing + wrong)[0]}"
        raise ModelError(problem, where=where, given=given)
    return model, str(getattr(model.config, "_commit_hash", None) or "")


def fetched(kind: Any, argument: str, where: str, what: str) -> Any:
    """The result of `kind.from_pretrained` for a folder or name; raises `ModelError`, which names `what`."""
    local = Path(argument).is_dir()
    with loading_errors(what, where):
        loaded = kind.from_pretrained(argument, trust_remote_code=False, local_files_only=local)
    length = getattr(loaded, "model_max_length", 0)
    if not isinstance(length, int | float):
        raise ModelError(f"{what}: model_max_length is no number", where=where, given=length)
    return loaded


def can_cut(model: Any) -> bool:
    """Whether a caption's features depend on nothing after its end mark: CLIP's causal text tower alone."""
    kind = type(getattr(model, "text_model", None)).__name__
    return model.config.model_type == "clip" and kind in ("CLIPTextModel", "CLIPTextTransformer")


def length_of(config: Any, tokenizer: Any) -> int:
    text = getattr(config, "text_config", config)
    positions = int(getattr(text, "max_position_embeddings", 77))
    # RoBERTa's positions start after its padding mark, so two of them are never used.
    if "roberta" in str(text.model_type) or config.model_type == "altclip":
        positions -= 2
    return min(PRESCRIBED.get(config.model_type, positions), positions, int(tokenizer.model_max_length))


def length_within(length: int | None, most: int, *, where: str) -> int:
    """The setting `length`; where it is None, all that the model reads."""
    if length is not None and length > most:
        problem = "the model cannot read captions of this length"
        raise InputError(problem, where=where, given=length, allowed=f"3 to {most} tokens")
    return most if length is None else length


def check_words(tokenizer: Any, where: str) -> None:
    """Raise `ModelError` where a tokenizer knows none of a caption's words: its files are missing."""
    if not set(tokenizer(SAMPLE)["input_ids"]) - set(tokenizer.all_special_ids):
        given, hint = f"a vocabulary of {len(tokenizer)}", "are the tokenizer's files missing?"
        raise ModelError("its tokenizer knows no words", where=where, given=given, hint=hint)


@dataclass(frozen=True, eq=False)
class Pretrained:
    """A model of transformers on its device with what makes its inputs, and the facts of an identity."""

    model: Any
    dtype: Any
    processor: Any
    tokenizer: Any
    facts: Mapping[str, str]


def pretrained(
    context: LoadContext,
    library: Any,
    argument: str,
    *,
    kind: Any = None,
    unused: str = "",
    sees: bool = False,
    tokenizer: str = "",
    place: Callable[[Any, Any, Any], tuple[Any, Any]] = to_device,
) -> Pretrained:
    """The model of a folder or name with its tokenizer, and its image processor where it sees."""
    where, processor = context.where, None
    with quiet(library):
        model, revision = weights_of(library, argument, where, kind=kind, unused=unused)
        if sees:
            processor = fetched(library.AutoImageProcessor, argument, where, "image processor")
        tokens = fetched(library.AutoTokenizer, tokenizer or argument, where, "tokenizer")
    # Half-precision checkpoints become float32 first, which is exact; the digest is of the stored values.
    # No token depends on a pooler, and some checkpoints have none.
    state = {key: value for key, value in model.state_dict().items() if not key.startswith("pooler.")}
    facts = {"revision": revision, "weights": digest_tensors(state), "tokenizer": tokenizer_digest(tokens)}
    model, dtype = place(model, context.device, context.dtype)
    return Pretrained(model, dtype, processor, tokens, facts)


def processing_of(processor: Any) -> str:
    return canonical_json(json.loads(processor.to_json_string()))


def tokenizer_digest(tokenizer: Any) -> str:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return digest_value(backend.to_str())
    return digest_value([type(tokenizer).__name__, sorted(tokenizer.get_vocab().items())])


#: Model types whose texts were lower-cased in training, by whatever tokenizer comes with the checkpoint.
LOWER_CASED = ("siglip", "siglip2")


def padded_ids(
    rows: Sequence[Sequence[int]], filler: int, device: Any, *, left: bool = False
) -> tuple[Tensor, Tensor]:
    """(rows, longest) ids, filled up on one side, and which of them are no padding."""
    longest = max(map(len, rows))
    ids = torch.full((len(rows), longest), filler)
    mask = torch.zeros_like(ids)
    for line, row in enumerate(rows):
        place = slice(longest - len(row), None) if left else slice(0, len(row))
        ids[line, place], mask[line, place] = torch.tensor(row), 1
    return ids.to(device), mask.to(device)


@dataclass(frozen=True, eq=False)
class HfTokens:
    """Texts to token ids, in lower case where the model needs it and no longer than it reads."""

    tokenizer: Any
    length: int
    cut: bool = True
    lower: bool = False
    #: Whether a model is given all that the tokenizer gives, such as a mask, and not the ids alone.
    whole: bool = False

    @classmethod
    def of(cls, model: Any, tokenizer: Any, *, whole: bool = False) -> "HfTokens":
        lower = model.config.model_type in LOWER_CASED
        return cls(tokenizer, length_of(model.config, tokenizer), can_cut(model), lower, whole)

    def __call__(self, texts: Sequence[str]) -> Any:
        """(batch, length) ids, padded to the longest of the batch where that is exact, else in full."""
        how = {"truncation": True, "max_length": self.length, "return_tensors": "pt"}
        inputs = self.tokenizer(self._cased(texts), padding="longest" if self.cut else "max_length", **how)
        return inputs if self.whole else inputs["input_ids"]

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        encoding = self.tokenizer(self._cased(texts), truncation=True, max_length=self.length)
        return [list(ids) for ids in encoding["input_ids"]]

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(ids) for ids in self.ids(texts)] if self.cut else [self.length] * len(texts)

    def left_out(self, texts: Sequence[str]) -> list[int]:
        encoding = self.tokenizer(self._cased(texts), truncation=False, verbose=False)
        return [max(0, len(ids) - self.length) for ids in encoding["input_ids"]]

    def _cased(self, texts: Sequence[str]) -> list[str]:
        return [text.lower() for text in texts] if self.lower else list(texts)


def end_mark(model: Any) -> EndMark:
    """That of CLIP: before 2023 configurations named 2, and meant the highest id of the vocabulary."""
    end = model.config.text_config.eos_token_id
    return EndMark(None if end == 2 else end)
