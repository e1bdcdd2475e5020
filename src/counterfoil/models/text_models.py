"""Language models, classifiers, plausibility models and encoders of texts: they read captions, see no image.

* `lm:` reads a caption after its begin token, or after the text `context`: the begin token of instruct models
  opens a turn.
* `plausibility:` is Vera's layout: a T5 encoder whose head and temperature lie in its table of embeddings.
* `text-encoder:` pools the last states, by default as the files of sentence-transformers say.
* `hf-text:NAME@LAYER` gives every token a vector, for `token-match` (BERTScore: 9 of bert-base-uncased, 17 of
  roberta-large; 0 is the input embeddings).

Batches are padded on the right, where no mask lets padding count.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from counterfoil.benchmarks.records import Caption
from counterfoil.errors import InputError, ModelError, UnknownNameError
from counterfoil.inputs.files import read_json
from counterfoil.models import base, hf_loading as loading, settings as declared
from counterfoil.models.captions.base import BatchFrames, BatchTokens, CaptionTokens
from counterfoil.models.hf_loading import padded_ids
from counterfoil.models.runtime import LoadContext, drawn_from, sampling

#: Numbers in the logits of one forward pass, at most: 256 MB in fp32.
_LOGITS = 1 << 26
#: Tokens that a model without a table of positions reads, and that Vera's authors give it.
_TOKENS, _VERA_TOKENS = 512, 128
#: Rows of Vera's table of embeddings that hold the head's weights, its bias and the temperature.
_HEAD, _BIAS, _TEMPERATURE = 32099, 32098, 32097

#: A rule: the ids of some texts, each with a mask of its marks, to a number for each.
Rule = Callable[["TextModel", Sequence["Ids"]], Tensor]


@dataclass(frozen=True)
class Ids:
    """The tokens of a text; `marks` says which the tokenizer put around it."""

    ids: tuple[int, ...]
    marks: tuple[bool, ...]


@dataclass(frozen=True, eq=False)
class TextModel:
    """A `PairModel` of captions alone; a caption that comes several times in a batch is computed once."""

    does = ("scores_pairs",)
    needs = ("captions",)

    identity: base.Identity
    network: Any
    tokenizer: Any
    device: Any
    length: int
    rule: Rule
    #: The tokens before the first word, which are not counted, and the one after the last, of a causal model.
    start: tuple[int, ...] = ()
    end: int | None = None
    lower: bool = False

    def score_pairs(self, batches: base.PairBatches, *, workers: int = 0) -> base.BatchNumbers:
        for batch in batches:
            texts = self.texts([caption for _, caption in batch])
            distinct = list(dict.fromkeys(texts))
            scores = dict(zip(distinct, self.values(distinct), strict=True))
            yield np.asarray([scores[text] for text in texts], dtype=np.float64)

    def texts(self, captions: Sequence[Caption]) -> list[str]:
        """The captions within the prompt, in lower case where the model reads that."""
        texts = base.prompted(self.identity, captions)
        return [text.lower() for text in texts] if self.lower else texts

    def values(self, texts: Sequence[str]) -> list[float]:
        """A number for each text; texts of like length go through the model together."""
        if not texts:
            return []
        rows = [self.read(text) for text in texts]
        order = np.argsort([len(row.ids) for row in rows], kind="stable")
        scores = np.empty(len(rows))
        with torch.inference_mode():
            scores[order] = self.rule(self, [rows[row] for row in order]).double().cpu().numpy()
        return scores.tolist()

    def read(self, text: str) -> Ids:
        if not self.start:
            options = {"truncation": True, "max_length": self.length, "return_special_tokens_mask": True}
            given = self.tokenizer(text, **options)
            return Ids(tuple(given["input_ids"]), tuple(map(bool, given["special_tokens_mask"])))
        words, ends = self.words(text)[: self.room], () if self.end is None else (self.end,)
        marks = (True,) * len(self.start) + (False,) * (len(words) + len(ends))
        return Ids((*self.start, *words, *ends), marks)

    @property
    def room(self) -> int:
        return self.length - len(self.start) - (self.end is not None)

    def over_limit(self, captions: Sequence[Caption]) -> int:
        texts = self.texts(captions)
        if self.start:
            return sum(len(self.words(text)) > self.room for text in texts)
        ids_of_texts = self.tokenizer(texts, truncation=False, verbose=False)["input_ids"] if texts else []
        return sum(len(ids) > self.length for ids in ids_of_texts)

    @property
    def provenance(self) -> dict[str, str]:
        """What a causal model reads before the caption."""
        return {"context": self.tokenizer.decode(self.start)} if self.start else {}

    def words(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]

    def forward(self, rows: Sequence[Sequence[int]], **options: Any) -> tuple[Any, Tensor]:
        ids, mask = padded_ids(rows, self.tokenizer.pad_token_id or 0, self.device)
        return self.network(input_ids=ids, attention_mask=mask, **options), mask

    def outputs(self, rows: Sequence[Sequence[int]], width: int) -> Iterator[tuple[slice, Any, Tensor]]:
        """`forward` of rows sorted by length, as many at a time as have logits within `_LOGITS`."""
        start = 0
        while start < len(rows):
            n = 1
            while start + n < len(rows) and (n + 1) * len(rows[start + n]) * width <= _LOGITS:
                n += 1
            part = slice(start, start + n)
            yield part, *self.forward(rows[part])
            start += n


def likelihood(model: TextModel, texts: Sequence[Ids]) -> tuple[Tensor, Tensor]:
    """The log-likelihood of each text after its start tokens, and how many tokens it is of."""
    sums, counts = [], []
    rows = [text.ids for text in texts]
    for part, output, mask in model.outputs(rows, model.network.config.vocab_size):
        logits = output.logits[:, :-1].float()
        following, _ = padded_ids([row[1:] for row in rows[part]], 0, model.device)
        taken = logits.gather(-1, following[..., None])[..., 0] - logits.logsumexp(-1)
        counted = mask[:, 1:].clone()
        counted[:, : len(model.start) - 1] = 0
        sums.append((taken * counted).double().sum(dim=1).cpu())
        counts.append(counted.sum(dim=1).cpu())
    return torch.cat(sums), torch.cat(counts)


def pseudo_likelihood(model: TextModel, texts: Sequence[Ids]) -> tuple[Tensor, Tensor]:
    """Log-probabilities of tokens, each masked alone, summed, and their number (Salazar et al., 2020)."""
    cells = [(n, place) for n, text in enumerate(texts) for place, mark in enumerate(text.marks) if not mark]
    sums = torch.zeros(len(texts), dtype=torch.float64)
    hidden = model.tokenizer.mask_token_id
    rows = [[*texts[n].ids[:place], hidden, *texts[n].ids[place + 1 :]] for n, place in cells]
    for part, output, _ in model.outputs(rows, model.network.config.vocab_size):
        positions = torch.tensor([place for _, place in cells[part]])
        masked = torch.arange(len(positions))
        logits = output.logits[masked, positions].float()
        true_ids = torch.tensor([texts[n].ids[place] for n, place in cells[part]])
        log_probabilities = (logits[masked, true_ids] - logits.logsumexp(-1)).double().cpu()
        sums.index_add_(0, torch.tensor([n for n, _ in cells[part]]), log_probabilities)
    return sums, torch.tensor([text.marks.count(False) for text in texts])


def load_lm(argument: str, options: base.Options = base.DEFAULT) -> TextModel:
    """A language model; its configuration or the setting `kind` says of which kind it is."""
    where = f"lm:{argument}"
    context = LoadContext.of(where, options, "prompt", "settings")
    settings = declared.settings_of(declared.LanguageModelSettings, options.settings, where=where)
    _, config = loading.configuration_of(argument, where)
    named = " ".join(getattr(config, "architectures", None) or ())
    masked = "MaskedLM" in named or "ForPreTraining" in named
    kind = settings.kind or ("masked" if masked else "causal")
    sum_name, of, auto = {
        "causal": ("log-likelihood", likelihood, "AutoModelForCausalLM"),
        "masked": ("pseudo-log-likelihood", pseudo_likelihood, "AutoModelForMaskedLM"),
    }[kind]
    score, end, before = settings.score or sum_name, settings.end or "out", settings.context
    if score not in (allowed := (sum_name, "mean", "perplexity")):
        raise InputError(f"no score of a {kind} model", where=where, given=score, allowed=allowed)
    for name in ("end", "context"):
        if kind == "masked" and getattr(settings, name):
            raise InputError(f"{name} is a setting of causal models", where=where, given=f"kind={kind}")

    def rule(model: TextModel, texts: Sequence[Ids]) -> Tensor:
        sums, counts = of(model, texts)
        if score == sum_name:
            return sums
        means = sums / counts.clamp(min=1)
        return means if score == "mean" else -torch.exp(-means)

    facts = {"kind": kind, "score": score, "end": end, **({"context": before} if before else {})}
    model = load_model(context, argument, auto, rule, facts)
    tokenizer = model.tokenizer
    if kind == "masked":
        if tokenizer.mask_token_id is None:
            problem = "its tokenizer has no token to mask with"
            raise ModelError(problem, where=where, hint="is it a causal model?")
        return model
    last = tokenizer.eos_token_id
    first = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else last
    if first is None or (end == "in" and last is None):
        raise ModelError("its tokenizer has no token to begin or to end with", where=where)
    start = model.words(before) if before else [int(first)]
    if len(start) >= model.length:
        raise InputError("the context fills the model", where=where, given=f"{len(start):,} tokens")
    return replace(model, start=tuple(start), end=int(last) if end == "in" else None)


def load_classifier(argument: str, options: base.Options = base.DEFAULT) -> TextModel:
    """The probability of the class `label`; of two by default the second ("acceptable" of CoLA)."""
    where = f"text-classifier:{argument}"
    context = LoadContext.of(where, options, "prompt", "settings")
    settings = declared.settings_of(declared.ClassifierSettings, options.settings, where=where)
    score, wanted = settings.score, settings.label
    _, config = loading.configuration_of(argument, where)
    names = [str(config.id2label[number]) for number in sorted(config.id2label)]
    positions = {str(number): number for number in range(len(names))}
    positions |= {name: names.index(name) for name in names}
    if wanted and wanted not in positions:
        raise UnknownNameError("class", wanted, names, where=where)
    if not wanted and len(names) > 2:
        raise InputError("which class is the score?", where=where, allowed=names, hint="--set label=NAME")
    label = positions[wanted] if wanted else len(names) - 1

    def rule(model: TextModel, texts: Sequence[Ids]) -> Tensor:
        numbers = []
        for _, output, _ in model.outputs([text.ids for text in texts], len(names)):
            logits = output.logits.double()
            numbers.append(logits if score == "logit" or len(names) == 1 else logits.softmax(-1))
        return torch.cat(numbers)[:, label].cpu()

    auto = "AutoModelForSequenceClassification"
    return load_model(context, argument, auto, rule, {"label": names[label], "score": score})


def load_plausibility(argument: str, options: base.Options = base.DEFAULT) -> TextModel:
    """Vera's layout (Liu et al., 2023): sigmoid(logit / temperature) of the last token, or the logit."""
    where = f"plausibility:{argument}"
    context = LoadContext.of(where, options, "prompt", "settings")
    score = declared.settings_of(declared.PlausibilitySettings, options.settings, where=where).score
    _, config = loading.configuration_of(argument, where)
    if config.model_type != "t5":
        raise ModelError("not Vera's layout: no T5", where=where, given=f"model type {config.model_type}")

    def rule(model: TextModel, texts: Sequence[Ids]) -> Tensor:
        table = model.network.get_input_embeddings().weight
        numbers = []
        for _, output, mask in model.outputs([text.ids for text in texts], table.shape[1]):
            last = mask.sum(dim=1) - 1
            states = output.last_hidden_state[torch.arange(len(last), device=last.device), last]
            logits = states.double() @ table[_HEAD].double() + table[_BIAS, 0].double()
            numbers.append(logits)
        logits = torch.cat(numbers)
        return (logits if score == "logit" else (logits / table[_TEMPERATURE, 0].double()).sigmoid()).cpu()

    model = load_model(context, argument, "T5EncoderModel", rule, {"score": score}, _VERA_TOKENS)
    table = model.network.get_input_embeddings().weight
    if len(table) <= _HEAD or not float(table[_TEMPERATURE, 0]) > 0:
        problem = "not Vera's layout: its table of embeddings holds no head and temperature"
        allowed = f"more than {_HEAD:,} rows, with a number above 0 in row {_TEMPERATURE:,}"
        raise ModelError(problem, where=where, given=f"{len(table):,} rows", allowed=allowed)
    return model


def load_model(
    context: LoadContext, argument: str, auto: str, rule: Rule, facts: dict[str, Any], most: int | None = None
) -> TextModel:
    """The model that the class `auto` of transformers reads, with `rule`; `most` limits its tokens."""
    library = loading.library_of()
    opened = loading.pretrained(context, library, argument, kind=getattr(library, auto))
    model, tokenizer = opened.model, opened.tokenizer
    if hasattr(model.config, "max_position_embeddings"):
        length = loading.length_of(model.config, tokenizer)
    else:
        length = min(_TOKENS, int(tokenizer.model_max_length))
    length = length if most is None else min(length, most)
    identity = context.identity(**opened.facts, length=length, **facts)
    return TextModel(identity, model, tokenizer, context.device, length, rule)


POOLING = ("mean", "cls", "last")
#: What sentence-transformers calls them, with and without "pooling_mode_" before it.
_CALLED = {"mean_tokens": "mean", "mean": "mean", "cls_token": "cls", "cls": "cls", "lasttoken": "last"}
#: Model types whose encoder alone is read, where transformers would read a decoder with it.
_WITH_DECODERS = ("t5", "mt5", "umt5", "t5gemma")
#: Modules of sentence-transformers that change no cosine beyond what is computed here.
_MODULES = ("Transformer", "Pooling", "Normalize")


@dataclass(frozen=True, eq=False)
class OnTextModel:
    model: TextModel

    @property
    def identity(self) -> base.Identity:
        return self.model.identity

    def over_limit(self, captions: Sequence[Caption]) -> int:
        return self.model.over_limit(captions)

    def read(self, captions: Sequence[Caption]) -> list[Ids]:
        return [self.model.read(text) for text in self.model.texts(captions)]


@dataclass(frozen=True, eq=False)
class SentenceEncoder(OnTextModel, base.ComparedByCosine):
    """A `TextEmbedder`: the pooled states of a text model, as unit vectors."""

    does = ("embeds_texts",)
    needs = ("captions",)

    def embed_captions(self, batches: base.CaptionBatches) -> base.BatchVectors:
        for batch in batches:
            rows = self.read(batch)
            with torch.inference_mode():
                pooled = self.model.rule(self.model, rows)
                array: ndarray = torch.nn.functional.normalize(pooled, dim=-1).cpu().numpy()
            yield array

    def lengths(self, captions: Sequence[Caption]) -> Sequence[int]:
        return [len(row.ids) for row in self.read(captions)]


def load_encoder(argument: str, options: base.Options = base.DEFAULT) -> SentenceEncoder:
    where = f"text-encoder:{argument}"
    context = LoadContext.of(where, options, "prompt", "settings")
    settings = declared.settings_of(declared.SentenceSettings, options.settings, where=where)
    library, config = loading.configuration_of(argument, where)
    # A model that embeds texts and pictures in one tower is read as an encoder of texts.
    if hasattr(library.AutoModel._model_mapping.get(type(config), None), "get_text_features"):
        problem = "looks at images too, and is no encoder of texts alone"
        hint = f"hf:{argument} compares captions with captions as well"
        raise ModelError(problem, where=where, given=f"model type {config.model_type}", hint=hint)
    facts = _sentence_facts(library, argument, where)
    pooling = settings.pooling or facts.get("pooling", "mean")
    longest = settings.length or facts["length"]
    auto = "AutoModelForTextEncoding" if config.model_type in _WITH_DECODERS else "AutoModel"
    lower = facts.get("lower", False)
    pooling_facts = {"pooling": pooling, **({"lower": True} if lower else {})}
    rule = partial(_pooled, pooling=pooling)
    model = load_model(context, argument, auto, rule, pooling_facts, longest)
    loading.check_words(model.tokenizer, where)
    loading.length_within(settings.length, model.length, where=where)
    with torch.inference_mode():
        output = model.forward([model.read(loading.SAMPLE).ids])[0]
    if getattr(output, "last_hidden_state", None) is None:
        raise ModelError("has no states of tokens to pool", where=where, given=type(model.network).__name__)
    return SentenceEncoder(replace(model, lower=lower))


def _pooled(model: TextModel, texts: Sequence[Ids], *, pooling: str) -> Tensor:
    output, mask = model.forward([text.ids for text in texts])
    states = output.last_hidden_state.float()
    if pooling == "cls":
        return states[:, 0]
    if pooling == "last":
        return states[torch.arange(len(states), device=states.device), mask.sum(dim=1) - 1]
    counted = mask[..., None].to(states.dtype)
    return (states * counted).sum(dim=1) / counted.sum(dim=1)


def _sentence_facts(library: Any, argument: str, where: str) -> dict[str, Any]:
    """Pooling, longest text and case by the files of sentence-transformers; `length` is None without."""
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
    length = length if isinstance(length, int) and length > 0 else None
    return {**facts, "length": length, "lower": text.get("do_lower_case") is True}


def _file(library: Any, argument: str, name: str, where: str) -> Any:
    unless = {f"_raise_exceptions_for_{what}": False for what in ("missing_entries", "connection_errors")}
    with loading.quiet(library):
        try:
            path = library.utils.cached_file(argument, name, **unless)
        except OSError as error:
            raise InputError(f"its {name} cannot be read: {error}", where=where) from None
    return None if path is None else read_json(path)


def load_tokens(argument: str, options: base.Options = base.DEFAULT) -> "TextEncoder":
    where = f"hf-text:{argument}"
    context = LoadContext.of(where, options, "prompt")
    name, _, layer = argument.rpartition("@") if "@" in argument else (argument, "", "")
    loading.check_place(name, where)
    model = load_model(context, name, "AutoModel", partial(_states, layer=-1), {"parts": "tokens"})
    tokenizer, layers = model.tokenizer, int(getattr(model.network.config, "num_hidden_layers", 0))
    if layer and not (layer.isdecimal() and len(layer) < 5 and int(layer) <= layers):
        raise InputError("no such layer", where=where, given=layer, allowed=f"0 to {layers}")
    if len(tokenizer("").input_ids) != 2 or tokenizer.pad_token_id is None:
        problem = "its tokenizer sets no marks around a text, or has nothing to fill up with"
        given = type(tokenizer).__name__
        raise ModelError(problem, where=where, given=given, allowed="encoders like BERT and RoBERTa")
    used = int(layer) if layer else layers
    identity = replace(model.identity, options={**model.identity.options, "layer": used})
    return TextEncoder(replace(model, identity=identity, rule=partial(_states, layer=used)))


def _states(model: TextModel, texts: Sequence[Ids], *, layer: int) -> Tensor:
    rows = [text.ids for text in texts]
    output, _ = model.forward(rows, output_hidden_states=True, return_dict=True)
    return torch.nn.functional.normalize(output.hidden_states[layer].float(), dim=-1)


class TextEncoder(OnTextModel):
    """A `LocalEmbedder` of captions alone, by the states of one layer."""

    @property
    def local(self) -> "TextEncoder":
        return self

    def embed_tokens(self, batches: base.CaptionBatches) -> BatchTokens:
        """For each batch of captions their tokens, marks included; the whole is the mark of the begin."""
        for batch in batches:
            rows = self.read(batch)
            with torch.inference_mode():
                states = self.model.rule(self.model, rows).cpu().numpy() if rows else ()
            yield [
                CaptionTokens.of(np.array(row.ids, dtype=np.int64), vectors, used=len(row.ids), whole=0)
                for row, vectors in zip(rows, states, strict=True)
            ]

    def embed_frames(self, batches: base.ImageBatches, *, workers: int = 0) -> BatchFrames:
        raise InputError("reads captions and looks at nothing", where=self.identity.name)

    def token_ids(self, texts: Sequence[str]) -> list[ndarray]:
        prompt = self.identity.prompt
        return [np.array(self.model.read(base.filled(prompt, text)).ids, dtype=np.int64) for text in texts]


class TextGenerator(OnTextModel):
    """A model that continues prompts, under the identity of the one of the same name."""

    def write(
        self,
        prompts: Sequence[str | Sequence[str]],
        *,
        most: int,
        temperature: float = 0.0,
        seed: int = 0,
        head: str = "",
    ) -> list[str]:
        """What the model writes after each prompt, up to its end mark or `most` tokens, without marks.

        With `head` every answer begins with that text, and what follows it is returned. Above temperature 0
        tokens are drawn; the same prompts in one call with one seed give the same texts.
        """
        if not prompts:
            return []
        tokenizer = self.model.tokenizer
        rows = [self._ids(prompt, head) for prompt in prompts]
        longest = max(map(len, rows))
        limit = getattr(self.model.network.config, "max_position_embeddings", None) or longest + most
        if longest >= limit:
            problem, given = "a prompt is longer than the model reads", f"{longest:,} tokens"
            allowed = f"fewer than {limit:,}"
            raise InputError(problem, where=self.model.identity.name, given=given, allowed=allowed)
        marks = (tokenizer.pad_token_id, tokenizer.eos_token_id, 0)
        filler = next(mark for mark in marks if mark is not None)
        ids, mask = padded_ids(rows, filler, self.model.device, left=True)
        with torch.inference_mode(), drawn_from(seed, self.model.device):
            how = sampling(temperature, max_new_tokens=min(most, limit - longest), pad_token_id=filler)
            output = self.model.network.generate(input_ids=ids, attention_mask=mask, **how)
        texts: list[str] = tokenizer.batch_decode(output[:, longest:], skip_special_tokens=True)
        return [text.strip() for text in texts]

    def _ids(self, prompt: str | Sequence[str], head: str = "") -> list[int]:
        tokenizer = self.model.tokenizer
        messages = [prompt] if isinstance(prompt, str) else list(prompt)
        if not getattr(tokenizer, "chat_template", None):
            text = "\n\n".join(messages) + (f"\n\n{head}" if head else "")
            return [*self.model.start, *self.model.words(text)]
        roles = ("user", "assistant")
        dialogue = [{"role": roles[i % 2], "content": message} for i, message in enumerate(messages)]
        text = tokenizer.apply_chat_template(dialogue, tokenize=False, add_generation_prompt=True)
        return self.model.words(text + head)


def load_generator(argument: str, options: base.Options = base.DEFAULT) -> TextGenerator:
    model = load_lm(argument, options)
    if not model.start or not model.network.can_generate():
        problem = "the model writes no text"
        allowed = "causal language models, such as GPT-2, Llama, Qwen"
        raise ModelError(problem, where=f"lm:{argument}", given=type(model.network).__name__, allowed=allowed)
    return TextGenerator(model)
