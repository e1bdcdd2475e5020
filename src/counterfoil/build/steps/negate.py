"""`negate`: negative captions by rules, by a language model, or by edits of drawn scenes."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from counterfoil.build.generation import chat_answers, continuer
from counterfoil.build.negation.answers import (
    HEAD,
    PROMPTS,
    REFUSED,
    SCHEMA,
    in_form_of,
    read_answer,
    read_prompts,
    rejection,
    with_head,
)
from counterfoil.build.negation.lexicon import Lexicon, Usage
from counterfoil.build.negation.parse import Parse, Parser, load_parser
from counterfoil.build.negation.rules import (
    CATEGORIES,
    NO_OPPOSITE,
    SUGAR_CREPE,
    Negative,
    balanced,
    negative,
)
from counterfoil.build.step import (
    REASON,
    BuiltStep,
    Generated,
    Output,
    StepContext,
    with_generated,
    with_texts,
)
from counterfoil.errors import DataError, InputError, ModelError, UnknownNameError
from counterfoil.inputs.fields import setting
from counterfoil.world.captions import text as spoken
from counterfoil.world.edits import edit
from counterfoil.world.scenes import Scene

RULES, WORLD = "rules", "world"
#: Captions that are parsed at a time; the use of nouns is learnt from the first of them.
_CHUNK = 20_000
#: The column of a language model's answers.
_ANSWER = "negative_caption_answer"
#: Reasons of rows that are dropped before a category is looked at, and of scenes.
_NO_CAPTION, _NO_ROOM = "no caption", "the scene has no room for this edit"


@dataclass(frozen=True, slots=True)
class NegativeRow:
    """A negative for one row and category, or the reason why there is none."""

    row: int
    category: str
    text: str | None = None
    change: str = ""
    reason: str = ""
    seed: int = 0
    #: Of a language model: what it answered.
    answer: str | None = None
    #: In the world: the caption and the scene of the negative.
    caption: str | None = None
    scene: str | None = None


@dataclass(frozen=True)
class Negate(BuiltStep):
    """A row for each caption and category, named ROW/CATEGORY, with a negative, or dropped with a reason."""

    name: ClassVar[str] = "negate"
    version: ClassVar[int] = 3

    by: str = setting(
        RULES,
        "'rules', 'world', 'lm:FOLDER_OR_NAME' or 'chat:http://HOST:PORT/v1#MODEL'.",
        model=(RULES, WORLD),
    )
    categories: tuple[str, ...] = setting(SUGAR_CREPE, f"What to change: {', '.join(CATEGORIES)}.")
    per_caption: Literal["each", "one", "subset"] = setting(
        "each", "A negative in 'each' category, in 'one' at random, or in that of column 'subset'."
    )
    balance: bool = setting(
        True,
        "Replace word A by B as often as B by A, and drop captions without a counterpart; "
        "otherwise a single word can reveal the wrong caption.",
    )
    parser: str = setting("hanta", "'hanta', or 'spacy:MODEL' or 'spacy:FOLDER'.", model=("hanta",))
    prompts: str | None = setting(
        None, "TOML file with prompts and examples for a language model.", file=True
    )
    answers: Literal["schema", "free"] = setting(
        "schema",
        "Make language models answer in JSON: by a schema (endpoints) or a given beginning (local models).",
    )
    temperature: float = setting(
        0.0, "Language models: temperature; 0 takes the likeliest word.", low=0, high=2
    )
    max_tokens: int = setting(96, "Language models: most tokens of an answer.", low=1)
    batch: int = setting(16, "Local language models: prompts per batch.", low=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed = SUGAR_CREPE if self.by != RULES else CATEGORIES
        if not self.categories or len(set(self.categories)) < len(self.categories):
            given = ", ".join(self.categories) or None
            raise InputError("no categories, or one twice", given=given, allowed=allowed)
        for category in self.categories:
            if category not in allowed:
                raise UnknownNameError("category", category, allowed, where=f"negatives by {self.by}")
        kind, _, argument = self.by.partition(":")
        if self.by not in (RULES, WORLD) and (kind not in ("lm", "chat") or not argument):
            raise InputError("no maker of negatives", given=self.by, allowed="rules, world, lm:..., chat:...")

    @property
    def requires(self) -> Sequence[str]:
        source = "scene" if self.by == WORLD else "caption"
        return (source, "subset") if self.per_caption == "subset" else (source,)

    @property
    def produces(self) -> Sequence[str]:
        more = {RULES: (), WORLD: ("caption", "negative_scene")}.get(self.by, (_ANSWER,))
        return (*Generated.names("negative_caption"), "subset", "type", "change", *more)

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        wanted, source = self._wanted(rows, context), self.by
        if self.by == WORLD:
            negatives = list(self._edited(rows, wanted, context))
        elif self.by == RULES:
            parser = load_parser(self.parser)
            negatives, source = self._ruled(rows, wanted, parser, context), f"rules {parser.name}"
        else:
            negatives = self._written(rows, wanted, context)
        if self.per_caption == "one":
            chosen: dict[int, NegativeRow] = {}
            for outcome in negatives:
                first = chosen.setdefault(outcome.row, outcome)
                if first.text is None and outcome.text is not None:
                    chosen[outcome.row] = outcome
            negatives = list(chosen.values())
        if single := sum(row.reason == NO_OPPOSITE for row in negatives):
            context.note(
                f"{single:,} replacements left out, since no caption allows the reverse change; --no-balance "
                "keeps them, but then some words stand in wrong captions only"
            )
        gone = [row for row in negatives if row.text is None]
        dropped = with_texts(self._table(rows, gone), {REASON: [row.reason for row in gone]})
        written = [row for row in negatives if row.text is not None]
        tried, succeeded = (Counter(row.category for row in of) for of in (negatives, written))
        counts = {category: {"wanted": n, "made": succeeded[category]} for category, n in tried.items()}
        facts: dict[str, Any] = {"by": source, "categories": counts}
        if self.by not in (RULES, WORLD):
            # Answers that could not be used, the most frequent reason first, and three of each.
            answers: dict[str, list[str]] = {}
            for row in negatives:
                if row.reason and row.answer is not None:
                    answers.setdefault(row.reason, []).append(row.answer)
            ranked = sorted(answers.items(), key=lambda item: (-len(item[1]), item[0]))
            facts["refusals"] = {why: {"rows": len(of), "examples": of[:3]} for why, of in ranked}
        return Output(self._table(rows, written, source), dropped, facts)

    def _wanted(self, rows: pa.Table, context: StepContext) -> list[tuple[int, str]]:
        """Rows with the categories that are tried, in order; of `one` all, in an order that is drawn."""
        ids = rows["id"].to_pylist()
        if self.per_caption == "each":
            return [(row, category) for row in range(len(rows)) for category in self.categories]
        if self.per_caption == "subset":
            subsets = rows["subset"].to_pylist()
            for row, subset in enumerate(subsets):
                if subset not in self.categories:
                    where, why = f"row '{ids[row]}'", "a subset that is no category"
                    raise DataError(why, where=where, given=subset, allowed=self.categories)
            return list(enumerate(subsets))
        wanted = []
        for row, name in enumerate(ids):
            order = context.rng(name, "category").permutation(len(self.categories))
            several = self.by in (RULES, WORLD)
            wanted += [(row, self.categories[i]) for i in (order if several else order[:1])]
        return wanted

    def _ruled(
        self, rows: pa.Table, wanted: Sequence[tuple[int, str]], parser: Parser, context: StepContext
    ) -> list[NegativeRow]:
        """Negatives by rules; in balance and of one category, rows without one are paired in their next."""
        if not self.balance or self.per_caption != "one":
            return list(self._by_rules(rows, wanted, parser, context))
        negatives: list[NegativeRow] = []
        left: Sequence[int] = range(len(rows))
        for turn in range(len(self.categories)):
            part = [wanted[row * len(self.categories) + turn] for row in left]
            ruled = list(self._by_rules(rows, part, parser, context))
            negatives += ruled
            left = [outcome.row for outcome in ruled if outcome.text is None]
        return sorted(negatives, key=lambda outcome: outcome.row)

    def _by_rules(
        self, rows: pa.Table, wanted: Sequence[tuple[int, str]], parser: Parser, context: StepContext
    ) -> Iterator[NegativeRow]:
        ids, captions = rows["id"].to_pylist(), rows["caption"].to_pylist()
        lexicon: Lexicon | None = None
        coming, total = iter(wanted), len(wanted)
        done = 0
        while part := list(islice(coming, _CHUNK)):
            texts = list(dict.fromkeys(captions[row] for row, _ in part if (captions[row] or "").strip()))
            parses: Mapping[str, Parse] = dict(zip(texts, parser.parses(texts), strict=True))
            lexicon = lexicon or Lexicon(Usage.of(parses.values()))
            outcomes: dict[tuple[int, str], Negative | str] = {}
            for category in {name for _, name in part if self.balance and name.startswith("replace")}:
                rows_ = [row for row, name in part if name == category and captions[row] in parses]
                given = [parses[captions[row]] for row in rows_]
                rng = context.rng("balance", category, *(ids[row] for row in rows_[:1]))
                paired = balanced(given, category, lexicon, rng)
                outcomes |= zip([(row, category) for row in rows_], paired, strict=True)
            for row, category in part:
                parse, seed = parses.get(captions[row]), context.number(ids[row], category)
                outcome = _NO_CAPTION if parse is None else outcomes.get((row, category))
                if parse is not None and outcome is None:
                    outcome = negative(parse, category, np.random.default_rng(seed), lexicon)
                if isinstance(outcome, Negative):
                    yield NegativeRow(row, category, outcome.text, outcome.change, seed=seed)
                else:
                    yield NegativeRow(row, category, reason=outcome or "")
                done += 1
                if done % 500 == 0 or done == total:
                    context.progress("negate", done, total)

    def _edited(
        self, rows: pa.Table, wanted: Sequence[tuple[int, str]], context: StepContext
    ) -> Iterator[NegativeRow]:
        """Edits of the rows' scenes, whose captions are true of one of the two scenes each."""
        ids, cells = rows["id"].to_pylist(), rows["scene"].to_pylist()
        for done, (row, category) in enumerate(wanted, start=1):
            scene = Scene.from_json(cells[row] or "", where=f"row '{ids[row]}', scene")
            pair = edit(scene, category, context.rng(ids[row], category))
            if pair is None:
                yield NegativeRow(row, category, reason=_NO_ROOM)
            else:
                caption, wrong = (spoken(meaning) for meaning in pair.captions)
                seed, changed = context.number(ids[row], category), pair.scenes[1].to_json()
                yield NegativeRow(row, category, wrong, seed=seed, caption=caption, scene=changed)
            context.progress("negate", done, len(wanted))

    def _written(
        self, rows: pa.Table, wanted: Sequence[tuple[int, str]], context: StepContext
    ) -> list[NegativeRow]:
        ids, captions = rows["id"].to_pylist(), rows["caption"].to_pylist()
        lexicon = Lexicon()
        prompts = PROMPTS if self.prompts is None else read_prompts(self.prompts)
        conversations = {
            (row, category): prompts.conversation(captions[row], category)
            for row, category in wanted
            if (captions[row] or "").strip()
        }
        if self.by.startswith("chat:"):
            names = [(ids[row], category) for row, category in conversations]
            replies = self._chat(names, list(conversations.values()), context)
        else:
            head, name = HEAD if self.answers == "schema" else "", self.by.partition(":")[2]
            generator = continuer(name, context.device, self.max_tokens, self.temperature, head)
            texts = generator.texts(list(conversations.values()), context, stage="negate", size=self.batch)
            replies = [(with_head(text) if head else text, False) for text, _ in texts]
        answers = dict(zip(conversations, replies, strict=True))
        negatives = []
        for row, category in wanted:
            if (row, category) not in answers:
                negatives.append(NegativeRow(row, category, reason=_NO_CAPTION))
                continue
            (reply, refused), seed = answers[row, category], context.number(ids[row], category)
            caption, reason = ("", REFUSED) if refused else read_answer(reply)
            before = captions[row].strip()
            after = in_form_of(before, caption)
            reason = reason or rejection(before, after, category, lexicon)
            text = None if reason else after
            negatives.append(NegativeRow(row, category, text, reason=reason, seed=seed, answer=reply))
        return negatives

    def _chat(
        self, names: Sequence[tuple[str, str]], conversations: Sequence[tuple[str, ...]], context: StepContext
    ) -> list[tuple[str, bool]]:
        """The answers of an endpoint, and which are refusals; kept in the cache, else beside the build."""
        from counterfoil.models.chat.endpoint import ChatRequest

        schema = SCHEMA if self.answers == "schema" else None
        seeds = [context.number(*name) % 2**31 if self.temperature else None for name in names]
        requests = [
            ChatRequest(messages[-1:], self.max_tokens, seed=seed, schema=schema, before=messages[:-1])
            for seed, messages in zip(seeds, conversations, strict=True)
        ]
        settings = {"temperature": str(self.temperature), "read": "text"}
        try:
            return chat_answers(self.by, settings, requests, context, stage="negate")
        except ModelError as error:
            if self.answers == "free" or "refuses the request" not in str(error):
                raise
            hint = "if that is since it knows no JSON schemas, ask without one: --answers free"
            raise ModelError(str(error), hint=hint) from None

    def _table(self, rows: pa.Table, negatives: Sequence[NegativeRow], by: str | None = None) -> pa.Table:
        """The rows of negatives under their new names; with `by`, the columns of written ones too."""
        ids = rows["id"].to_pylist()
        columns: dict[str, list[str | None]] = {
            "id": [f"{ids[negative.row]}/{negative.category}" for negative in negatives],
            "subset": [negative.category for negative in negatives],
            "type": [negative.category.partition("_")[0] for negative in negatives],
        }
        if self.by not in (RULES, WORLD):
            columns[_ANSWER] = [negative.answer for negative in negatives]
        table = rows.take(pa.array([negative.row for negative in negatives], pa.int64()))
        table = with_texts(table, columns)
        if by is None:
            return table
        generated = [Generated(ids[n.row], by, n.text, n.seed) for n in negatives]
        columns = {"change": [negative.change for negative in negatives]}
        if self.by == WORLD:
            columns["caption"] = [negative.caption for negative in negatives]
            columns["negative_scene"] = [negative.scene for negative in negatives]
        return with_texts(with_generated(table, "negative_caption", generated), columns)
