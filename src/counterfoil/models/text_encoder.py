"""Encoders of sentences of transformers: a vector per caption, compared with those of other captions.

`text-encoder:NAME_OR_FOLDER` is a text model (BERT, MPNet, T5's encoder, a causal model) and a way to pool
its last states: `mean` over all tokens, marks included, `cls` (the first) or `last` (the last that is no
padding). Where the checkpoint says how (the files of sentence-transformers), that is the default, with its
longest text and its lower case; else it is `mean`. Vectors are compared by cosine.

Sources: Reimers and Gurevych, Sentence-BERT, 2019, section 3; the modules of sentence-transformers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from numpy import ndarray
from torch import Tensor

from counterfoil.benchmarks.records import Caption
from counterfoil.errors import InputError, ModelError
from counterfoil.inputs.files import read_json
from counterfoil.models import hf_loading as loading
from counterfoil.models.base import (
    DEFAULT,
    Ability,
    BatchVectors,
    CaptionBatches,
    ComparedByCosine,
    Identity,
    Options,
    prompted,
    text_of,
)
from counterfoil.models.runtime import LoadContext
from counterfoil.models.text_models import Ids, TextModel, load_model

POOLING = ("mean", "cls", "last")
#: What sentence-transformers calls them, with and without "pooling_mode_" before it.
_CALLED = {"mean_tokens": "mean", "mean": "mean", "cls_token": "cls", "cls": "cls", "lasttoken": "last"}
#: Model types whose encoder alone is read, where transformers would read a decoder with it.
_WITH_DECODERS = ("t5", "mt5", "umt5", "t5gemma")
#: Its modules that change no cosine beyond what is computed here.
_MODULES = ("Transformer", "Pooling", "Normalize")


@dataclass(frozen=True, eq=False)
class SentenceEncoder(ComparedByCosine):
    """A `TextEmbedder`: the pooled states of a text model, as unit vectors."""

    does: ClassVar[tuple[Ability, ...]] = ("embeds_texts",)
    needs: ClassVar[tuple[str, ...]] = ("captions",)

    model: TextModel
    lower: bool = False

    @property
    def identity(self) -> Identity:
        """That of the model, with its pooling."""
        return self.model.identity

    def embed_captions(self, batches: CaptionBatches) -> BatchVectors:
        """One (batch, width) float32 array of unit vectors per batch.

        Captions longer than the model reads are cut off. Raises `DataError` where a text is not at hand.
        """
        for batch in batches:
            rows = self._read(batch)
            with torch.inference_mode():
                pooled = self.model.rule(self.model, rows)
                array: ndarray = torch.nn.functional.normalize(pooled, dim=-1).cpu().numpy()
            yield array

    def lengths(self, captions: Sequence[Caption]) -> Sequence[int]:
        """Tokens of each caption within its prompt, at most as many as the model reads."""
        return [len(row.ids) for row in self._read(captions)]

    def over_limit(self, captions: Sequence[Caption]) -> int:
        """How many captions, within the prompt, are longer than the model reads, so that they are cut off."""
        cased = [replace(caption, text=self._cased(text_of(caption))) for caption in captions]
        return self.model.over_limit(cased)

    def _read(self, captions: Sequence[Caption]) -> list[Ids]:
        return [self.model.read(self._cased(text)) for text in prompted(self.identity, captions)]

    def _cased(self, text: str) -> str:
        return text.lower() if self.lower else text


def load(argument: str, options: Options = DEFAULT) -> SentenceEncoder:
    """The encoder in a local folder, or of that name on the hub.

    `pooling` is `mean`, `cls` or `last`, `length` the most tokens that it reads. Raises `InputError` for
    other settings; `ModelError` for models that look at images too, have no states of tokens, or whose files
    of sentence-transformers name layers or a pooling that are none of these.
    """
    where = f"text-encoder:{argument}"
    context = LoadContext.of(where, options, "prompt", "settings")
    settings = context.settings
    library, config = loading.configuration_of(argument, where)
    # A model that embeds texts and pictures in one tower is read as an encoder of texts.
    if hasattr(library.AutoModel._model_mapping.get(type(config), None), "get_text_features"):
        problem = "looks at images too, and is no encoder of texts alone"
        hint = f"hf:{argument} compares captions with captions as well"
        raise ModelError(problem, where=where, given=f"model type {config.model_type}", hint=hint)
    facts = _sentence_facts(library, argument, where)
    pooling = settings.one_of("pooling", POOLING, facts.get("pooling", "mean"))
    longest = settings.count("length") if "length" in options.settings else facts["length"]
    auto = "AutoModelForTextEncoding" if config.model_type in _WITH_DECODERS else "AutoModel"
    lower = facts.get("lower", False)
    pooling_facts = {"pooling": pooling, **({"lower": True} if lower else {})}
    model = load_model(context, library, argument, auto, _pooled(pooling), pooling_facts, longest)
    loading.check_words(model.tokenizer, where)
    if "length" in options.settings:
        loading.length_within(settings, model.length)
    with torch.inference_mode():
        output = model.forward([model.read(loading.SAMPLE).ids])[0]
    if getattr(output, "last_hidden_state", None) is None:
        raise ModelError("has no states of tokens to pool", where=where, given=type(model.network).__name__)
    return SentenceEncoder(model, lower)


def _pooled(pooling: str) -> Any:
    """The rule that gives a row for each text."""

    def rule(model: TextModel, texts: Sequence[Ids]) -> Tensor:
        output, mask = model.forward([text.ids for text in texts])
        states = output.last_hidden_state.float()
        if pooling == "cls":
            return states[:, 0]
        if pooling == "last":
            return states[torch.arange(len(states), device=states.device), mask.sum(dim=1) - 1]
        counted = mask[..., None].to(states.dtype)
        return (states * counted).sum(dim=1) / counted.sum(dim=1)

    return rule


def _sentence_facts(library: Any, argument: str, where: str) -> dict[str, Any]:
    """Pooling, longest text and case as the files of sentence-transformers say; `length` is None without.

    Raises `ModelError` where they name modules, or a pooling, that cannot be had.
    """
    modules = _file(library, argument, "modules.json", where)
    if not isinstance(modules, list):
        return {"length": None}
    by_kind = {str(module.get("type", "")).rpartition(".")[2]: module for module in modules}
    strange = [name for name in by_kind if name not in _MODULES]
    if strange:
        problem = "its sentences go through modules that are not computed here"
        hint = "compute them with sentence-transformers, and give embeddings:PATH"
        raise ModelError(problem, where=where, given=", ".join(strange), allowed=_MODULES, hint=hint)
    facts: dict[str, Any] = {}
    if "Pooling" in by_kind:
        path = str(by_kind["Pooling"].get("path", "1_Pooling"))
        config = _file(library, argument, f"{path}/config.json", where)
        given = config if isinstance(config, Mapping) else {}
        named = [str(given["pooling_mode"])] if given.get("pooling_mode") else []
        named += [key[len("pooling_mode_") :] for key, on in given.items() if "mode_" in key and on is True]
        if len(named) != 1 or named[0] not in _CALLED:
            problem = "its pooling is none of those computed here"
            raise ModelError(problem, where=where, given=", ".join(named) or "(none)", allowed=POOLING)
        facts["pooling"] = _CALLED[named[0]]
    text = _file(library, argument, "sentence_bert_config.json", where)
    text = text if isinstance(text, Mapping) else {}
    length = text.get("max_seq_length")
    return {
        **facts,
        "length": length if isinstance(length, int) and length > 0 else None,
        "lower": text.get("do_lower_case") is True,
    }


def _file(library: Any, argument: str, name: str, where: str) -> Any:
    """A JSON file of a folder or of the hub; None where there is none."""
    with loading.quiet(library):
        try:
            path = library.utils.cached_file(
                argument,
                name,
                _raise_exceptions_for_missing_entries=False,
                _raise_exceptions_for_connection_errors=False,
            )
        except OSError as error:
            raise InputError(f"its {name} cannot be read: {error}", where=where) from None
    return None if path is None else read_json(path)
