"""Language models, text classifiers and plausibility models: scorers that read captions and see no image.

* `lm:NAME_OR_FOLDER` is a causal or a masked language model. `score` is `log-likelihood` (the default of a
  causal one), `pseudo-log-likelihood` (of a masked one), `mean` (per token) or `perplexity` (with a minus, so
  that higher is likelier); `end=in` counts the end token of a causal model too. A causal model reads a
  caption behind its begin token, or behind the text `context`: of instruct models the token opens a turn.
* `text-classifier:NAME_OR_FOLDER` is a classifier of sequences, such as one of grammar (CoLA); `label` names
  the class, by name or number, whose probability (or `score=logit`) is the score.
* `plausibility:NAME_OR_FOLDER` is laid out as Vera is: a T5 encoder whose linear head and temperature lie in
  the last rows of its table of embeddings.

Batches are padded on the right, where neither a causal mask nor an attention mask lets padding count.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from counterfoil.data.records import Caption, Image
from counterfoil.errors import InputError, ModelError, UnknownNameError
from counterfoil.scorers import hf_loading as loading
from counterfoil.scorers.base import (
    DEFAULT,
    Ability,
    Identity,
    Options,
    ScorerSettings,
    prompted,
    reject_unused_options,
)
from counterfoil.scorers.runtime import to_device

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
    """A `PairScorer` of captions alone; a caption that comes several times in a batch is computed once."""

    does: ClassVar[tuple[Ability, ...]] = ("scores_pairs",)
    needs: ClassVar[tuple[str, ...]] = ("captions",)

    identity: Identity
    network: Any
    tokenizer: Any
    device: Any
    #: The most tokens that the model reads, marks included.
    length: int
    rule: Rule
    #: The tokens before the first word, which are not counted, and the one after the last, of a causal model.
    start: tuple[int, ...] = ()
    end: int | None = None

    def score_pairs(
        self, batches: Sequence[Sequence[tuple[Image, Caption]]], *, workers: int = 0
    ) -> Iterator[Float[np.ndarray, "batch"]]:
        """One number per pair of each batch, that of its caption; raises `DataError` where it has no text."""
        for batch in batches:
            texts = prompted(self.identity, [caption for _, caption in batch])
            distinct = list(dict.fromkeys(texts))
            scores = dict(zip(distinct, self.values(distinct), strict=True))
            yield np.asarray([scores[text] for text in texts], dtype=np.float64)

    def values(self, texts: Sequence[str]) -> list[float]:
        """A number for each text; texts of like length go through the model together."""
        rows = [self.read(text) for text in texts]
        order = sorted(range(len(rows)), key=lambda row: len(rows[row].ids))
        scores = [0.0] * len(rows)
        with torch.inference_mode():
            if order:
                numbers = self.rule(self, [rows[row] for row in order])
                for row, number in zip(order, numbers.double().tolist(), strict=True):
                    scores[row] = number
        return scores

    def read(self, text: str) -> Ids:
        """The tokens of a text, cut to what the model reads."""
        if not self.start:
            given = self.tokenizer(
                text, truncation=True, max_length=self.length, return_special_tokens_mask=True
            )
            return Ids(tuple(given["input_ids"]), tuple(map(bool, given["special_tokens_mask"])))
        words = self._words(text)[: self.length - len(self.start) - (self.end is not None)]
        ends = () if self.end is None else (self.end,)
        marks = [True] * len(self.start) + [False] * (len(words) + len(ends))
        return Ids((*self.start, *words, *ends), tuple(marks))

    def over_limit(self, captions: Sequence[Caption]) -> int:
        """How many captions, within the prompt, are longer than the model reads, so that they are cut off."""
        texts = prompted(self.identity, captions)
        if self.start:
            room = self.length - len(self.start) - (self.end is not None)
            return sum(len(self._words(text)) > room for text in texts)
        ids_of_texts = self.tokenizer(texts, truncation=False, verbose=False)["input_ids"] if texts else []
        return sum(len(ids) > self.length for ids in ids_of_texts)

    @property
    def provenance(self) -> dict[str, str]:
        """What a causal model reads before the caption."""
        return {"context": self.tokenizer.decode(self.start)} if self.start else {}

    def _words(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return ids

    def forward(self, rows: Sequence[Sequence[int]]) -> tuple[Any, Tensor]:
        """The network's answer to rows of ids, padded on the right, and which ids are no padding."""
        longest = max(map(len, rows))
        filler = self.tokenizer.pad_token_id or 0
        ids = torch.tensor([[*row, *[filler] * (longest - len(row))] for row in rows], device=self.device)
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows], device=self.device)
        return self.network(input_ids=ids, attention_mask=mask), mask

    def parts(self, rows: Sequence[Sequence[int]], width: int) -> Iterator[slice]:
        """Slices of the rows, sorted by length, whose logits of so many columns fit into `_LOGITS`."""
        at = 0
        while at < len(rows):
            n = 1
            while at + n < len(rows) and (n + 1) * len(rows[at + n]) * width <= _LOGITS:
                n += 1
            yield slice(at, at + n)
            at += n


def likelihood(model: TextModel, texts: Sequence[Ids]) -> tuple[Tensor, Tensor]:
    """The log-likelihood of each text after its start tokens, and how many tokens it is of."""
    sums, counts = [], []
    for part in model.parts([text.ids for text in texts], model.network.config.vocab_size):
        rows = [text.ids for text in texts[part]]
        output, mask = model.forward(rows)
        logits = output.logits[:, :-1].float()
        longest = max(map(len, rows))
        following = torch.tensor([[*row[1:], *[0] * (longest - len(row))] for row in rows])
        taken = logits.gather(-1, following.to(model.device)[..., None])[..., 0] - logits.logsumexp(-1)
        counted = mask[:, 1:].clone()
        counted[:, : len(model.start) - 1] = 0
        sums.append((taken * counted).double().sum(dim=1).cpu())
        counts.append(counted.sum(dim=1).cpu())
    return torch.cat(sums), torch.cat(counts)


def pseudo_likelihood(model: TextModel, texts: Sequence[Ids]) -> tuple[Tensor, Tensor]:
    """The sum over a text's tokens of the log-probability of each where it alone is masked, and their number.

    Source: Salazar et al., Masked Language Model Scoring, 2020.
    """
    cells = [
        (number, place)
        for number, text in enumerate(texts)
        for place, mark in enumerate(text.marks)
        if not mark
    ]
    sums = torch.zeros(len(texts), dtype=torch.float64)
    hidden = model.tokenizer.mask_token_id
    rows = [[*texts[n].ids[:place], hidden, *texts[n].ids[place + 1 :]] for n, place in cells]
    for part in model.parts(rows, model.network.config.vocab_size):
        output, _ = model.forward(rows[part])
        places = torch.tensor([place for _, place in cells[part]])
        at = torch.arange(len(places))
        logits = output.logits[at, places].float()
        own = torch.tensor([texts[n].ids[place] for n, place in cells[part]])
        log_probabilities = (logits[at, own] - logits.logsumexp(-1)).double().cpu()
        sums.index_add_(0, torch.tensor([n for n, _ in cells[part]]), log_probabilities)
    return sums, torch.tensor([text.marks.count(False) for text in texts])


def _summed(of: Callable[[TextModel, Sequence[Ids]], tuple[Tensor, Tensor]], score: str) -> Rule:
    """The rule of a language model; a text without tokens has the sum 0 and the mean 0."""

    def rule(model: TextModel, texts: Sequence[Ids]) -> Tensor:
        sums, counts = of(model, texts)
        if score.endswith("log-likelihood"):
            return sums
        means = sums / counts.clamp(min=1)
        return means if score == "mean" else -torch.exp(-means)

    return rule


def load_lm(argument: str, options: Options = DEFAULT) -> TextModel:
    """A language model in a local folder, or of that name on the hub.

    Which kind it is its configuration says (`architectures`); `kind=causal` or `kind=masked` where it does
    not. Raises `InputError` for settings that do not fit the kind, `ModelError` where weights are missing or
    the tokenizer has no token to begin with or to mask.
    """
    where = f"lm:{argument}"
    settings = ScorerSettings(where, options.settings)
    settings.only("score", "end", "kind", "context")
    library, config = loading.configuration_of(argument, where)
    kind = settings.one_of("kind", ("causal", "masked"), _kind(config))
    sum_name = {"causal": "log-likelihood", "masked": "pseudo-log-likelihood"}[kind]
    score = settings.one_of("score", (sum_name, "mean", "perplexity"))
    end = settings.one_of("end", ("out", "in"))
    for name in ("end", "context"):
        if kind == "masked" and name in options.settings:
            raise InputError(f"{name} is a setting of causal models", where=where, given=f"kind={kind}")
    auto = {"causal": "AutoModelForCausalLM", "masked": "AutoModelForMaskedLM"}[kind]
    rule = _summed({"causal": likelihood, "masked": pseudo_likelihood}[kind], score)
    context = settings.get("context")
    facts = {"kind": kind, "score": score, "end": end, **({"context": context} if context else {})}
    model = load_model(library, argument, where, options, auto, rule, facts)
    return _with_start(model, where, end, context) if kind == "causal" else _with_mask(model, where)


def _kind(config: Any) -> str:
    """Whether a configuration is of a masked language model."""
    named = " ".join(getattr(config, "architectures", None) or ())
    return "masked" if any(part in named for part in ("MaskedLM", "ForPreTraining")) else "causal"


def _with_start(model: TextModel, where: str, end: str, context: str) -> TextModel:
    tokenizer = model.tokenizer
    last = tokenizer.eos_token_id
    first = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else last
    if first is None or (end == "in" and last is None):
        raise ModelError("its tokenizer has no token to begin or to end with", where=where)
    start = model._words(context) if context else [int(first)]
    if len(start) >= model.length:
        raise InputError("the context fills the model", where=where, given=f"{len(start):,} tokens")
    return replace(model, start=tuple(start), end=int(last) if end == "in" else None)


def _with_mask(model: TextModel, where: str) -> TextModel:
    if model.tokenizer.mask_token_id is None:
        raise ModelError("its tokenizer has no token to mask with", where=where, hint="is it a causal model?")
    return model


def load_classifier(argument: str, options: Options = DEFAULT) -> TextModel:
    """A classifier of sequences; the score is the probability of the class that `label` names.

    Without `label` it is the class of index 1 of two ("acceptable" of CoLA, as SugarCrepe takes it). Raises
    `InputError` where there are more classes and none is named, `UnknownNameError` for one that is not there.
    """
    where = f"text-classifier:{argument}"
    settings = ScorerSettings(where, options.settings)
    settings.only("label", "score")
    score = settings.one_of("score", ("probability", "logit"))
    library, config = loading.configuration_of(argument, where)
    names = [str(config.id2label[number]) for number in sorted(config.id2label)]
    label = _label(names, settings.get("label"), where)

    def rule(model: TextModel, texts: Sequence[Ids]) -> Tensor:
        numbers = []
        for part in model.parts([text.ids for text in texts], len(names)):
            logits = model.forward([text.ids for text in texts[part]])[0].logits.double()
            numbers.append(logits if score == "logit" or len(names) == 1 else logits.softmax(-1))
        return torch.cat(numbers)[:, label].cpu()

    auto = "AutoModelForSequenceClassification"
    return load_model(library, argument, where, options, auto, rule, {"label": names[label], "score": score})


def _label(names: Sequence[str], wanted: str, where: str) -> int:
    if not wanted and len(names) <= 2:
        return len(names) - 1
    if not wanted:
        raise InputError("which class is the score?", where=where, allowed=names, hint="--set label=NAME")
    if wanted in names:
        return names.index(wanted)
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 6 and int(wanted) < len(names):
        return int(wanted)
    raise UnknownNameError("class", wanted, names, where=where)


def load_plausibility(argument: str, options: Options = DEFAULT) -> TextModel:
    """A model of Vera's layout; the score is sigmoid(logit / temperature), or the logit (`score=logit`).

    The head is row 32,099 of the table of embeddings, its bias the first number of row 32,098, the
    temperature the first of row 32,097; the text's last token is classified. Raises `ModelError` where the
    table is shorter, or the temperature is not above 0.

    Source: Liu et al., Vera, 2023, and the card of liujch1998/vera.
    """
    where = f"plausibility:{argument}"
    settings = ScorerSettings(where, options.settings)
    settings.only("score")
    score = settings.one_of("score", ("probability", "logit"))
    library, config = loading.configuration_of(argument, where)
    if config.model_type != "t5":
        raise ModelError("not Vera's layout: no T5", where=where, given=f"model type {config.model_type}")

    def rule(model: TextModel, texts: Sequence[Ids]) -> Tensor:
        table = model.network.get_input_embeddings().weight
        numbers = []
        for part in model.parts([text.ids for text in texts], table.shape[1]):
            output, mask = model.forward([text.ids for text in texts[part]])
            last = mask.sum(dim=1) - 1
            states = output.last_hidden_state[torch.arange(len(last), device=last.device), last]
            logits = states.double() @ table[_HEAD].double() + table[_BIAS, 0].double()
            numbers.append(
                logits if score == "logit" else (logits / table[_TEMPERATURE, 0].double()).sigmoid()
            )
        return torch.cat(numbers).cpu()

    scorer = load_model(
        library, argument, where, options, "T5EncoderModel", rule, {"score": score}, _VERA_TOKENS
    )
    table = scorer.network.get_input_embeddings().weight
    if len(table) <= _HEAD or not float(table[_TEMPERATURE, 0]) > 0:
        raise ModelError(
            "not Vera's layout: its table of embeddings holds no head and temperature",
            where=where,
            given=f"{len(table):,} rows",
            allowed=f"more than {_HEAD:,} rows, with a number above 0 in row {_TEMPERATURE:,}",
        )
    return scorer


def load_model(
    library: Any,
    argument: str,
    where: str,
    options: Options,
    auto: str,
    rule: Rule,
    facts: dict[str, Any],
    longest: int | None = None,
) -> TextModel:
    """The model that the class `auto` of transformers reads, ready to answer by `rule`.

    It reads at most `longest` tokens, where that is given. Raises `ModelError` for weights that are missing.
    """
    reject_unused_options(where, options, "precision", "prompt", "settings")
    device, dtype, prompt = loading.placement_of(options, where)
    with loading.quiet(library):
        model, revision = loading.weights_of(library, argument, where, kind=getattr(library, auto))
        tokenizer = loading.fetched(library.AutoTokenizer, argument, where, "tokenizer")
    weights = loading.digest_without_pooler(model)
    model, _ = to_device(model, device, dtype)
    if hasattr(model.config, "max_position_embeddings"):
        length = loading.length_of(model.config, tokenizer)
    else:
        length = min(_TOKENS, int(tokenizer.model_max_length))
    length = length if longest is None else min(length, longest)
    identity = loading.model_identity(
        where,
        options,
        prompt=prompt,
        revision=revision,
        weights=weights,
        device=device,
        tokenizer=tokenizer,
        length=length,
        **facts,
    )
    return TextModel(identity, model, tokenizer, device, length, rule)
