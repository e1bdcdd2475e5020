"""Negatives by language models: a tiny model of transformers that was taught, an endpoint, and the checks."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import chat_server
from counterfoil import catalog
from counterfoil.build import Work
from counterfoil.build.negation.lexicon import Lexicon
from counterfoil.build.negation.prompts import REASONS, prompt, read_answer, rejection
from counterfoil.build.negation.rules import SUGAR_CREPE
from counterfoil.build.steps.negate import Negate
from counterfoil.engine import Session
from counterfoil.errors import CounterfoilError
from counterfoil.scorers import Options
from counterfoil.scorers.text_generation import load_generator
from made_once import made_once

pytestmark = pytest.mark.models

TAUGHT = {
    ("A dog on a mat.", "replace_obj"): "A cat on a mat.",
    ("A dog on a mat.", "replace_att"): "A dog on a mat.",
    ("A red car.", "replace_att"): "A blue car.",
    ("A red car.", "replace_obj"): "A blue van?",
}


def teach(folder: Path) -> None:
    """A tiny GPT-2 with a tokenizer of bytes and a chat template that answers four prompts by heart."""
    import torch
    import transformers
    from tokenizers import ByteLevelBPETokenizer

    answers = {prompt(*asked): json.dumps({"caption": said}) for asked, said in TAUGHT.items()}
    backend = ByteLevelBPETokenizer()
    backend.train_from_iterator(
        [*answers, *answers.values()], vocab_size=900, special_tokens=["<s>", "</s>", "<pad>"]
    )
    marks = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend._tokenizer, **marks)
    tokenizer.chat_template = "<s>{% for m in messages %}{{ m['content'] }}{% endfor %}\nAnswer: "
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_positions=256, n_embd=48, n_layer=2, n_head=2, bos_token_id=0,
        eos_token_id=1, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(config)
    rows = []
    for asked, answer in answers.items():
        text = tokenizer.apply_chat_template([{"role": "user", "content": asked}], tokenize=False)
        start, end = (tokenizer(t, add_special_tokens=False)["input_ids"] for t in (text, answer + "</s>"))
        rows.append((start + end, [-100] * len(start) + end))
    longest = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([row + [2] * (longest - len(row)) for row, _ in rows])
    labels = torch.tensor([row + [-100] * (longest - len(row)) for _, row in rows])
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
    for _ in range(200):
        loss = model(input_ids=ids, attention_mask=(ids != 2).long(), labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if float(loss.detach()) < 0.01:
            break
    model.save_pretrained(folder)


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "taught-gpt2", teach)


def rows() -> pa.Table:
    return pa.table({"id": ["a", "b"], "caption": ["A dog on a mat.", "A red car."]})


def test_a_local_model_writes_negatives_that_are_read_and_checked(writer: Path, tmp_path: Path) -> None:
    step = Negate(by=f"lm:{writer}", categories=("replace_obj", "replace_att"), batch=3, max_tokens=40)
    found = step.run(rows(), Work(tmp_path, step="negate"))
    kept = dict(zip(found.kept["id"].to_pylist(), found.kept["negative_caption"].to_pylist(), strict=True))
    assert kept == {"a/replace_obj": "A cat on a mat.", "b/replace_att": "A blue car."}
    assert found.reasons == {"a question": 1, "no change": 1}
    finished = sorted((tmp_path / "unfinished" / "negate").glob("*.json"))
    assert len(finished) == 2
    # What was finished is not asked again: the answer in the file is taken, and a damaged file is replaced.
    count = len(json.loads(finished[0].read_text())["texts"])
    finished[0].write_text(json.dumps({"texts": ["nothing"] * count}))
    again = step.run(rows(), Work(tmp_path, step="negate"))
    assert again.reasons["unreadable answer"] == count
    for damaged in ("{", '{"texts": []}'):
        finished[0].write_text(damaged)
        assert step.run(rows(), Work(tmp_path, step="negate")).kept == found.kept


def test_prompts_together_are_answered_as_by_themselves(writer: Path) -> None:
    import torch

    generator = load_generator(str(writer))
    prompts = [prompt(*asked) for asked in TAUGHT] + ["A dog", "Two"]
    together = generator.write(prompts, most=12)
    for each, text in zip(prompts, together, strict=True):
        ids = generator._ids(each)
        for _ in range(12):
            with torch.inference_mode():
                best = int(generator.model.network(torch.tensor([ids])).logits[0, -1].argmax())
            ids.append(best)
            if best == 1:
                break
        slow = generator.model.tokenizer.decode(ids[len(generator._ids(each)) :], skip_special_tokens=True)
        assert text == slow.strip()
    drawn = [generator.write(prompts[-2:], most=12, temperature=2.0, seed=seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    with pytest.raises(CounterfoilError, match="longer than the model reads"):
        generator.write(["word " * 300], most=5)


def test_a_model_that_writes_nothing_is_refused(tmp_path: Path) -> None:
    import transformers

    folder = tmp_path / "bert"
    load_bert = transformers.BertConfig(
        vocab_size=50, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
    )
    transformers.BertForMaskedLM(load_bert).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"]))
    transformers.BertTokenizerFast(vocab_file=str(folder / "vocab.txt")).save_pretrained(folder)
    with pytest.raises(CounterfoilError, match="the model writes no text"):
        Negate(by=f"lm:{folder}").run(rows(), Work(tmp_path))
    with pytest.raises(CounterfoilError, match="no such folder"):
        Negate(by=f"lm:{tmp_path / 'nowhere' / 'at' / 'all'}").run(rows(), Work(tmp_path))


@pytest.fixture(scope="module")
def server() -> Iterator[chat_server.Server]:
    with chat_server.running() as running:
        yield running


def endpoint_work(place: Path, cache: Path | None = None) -> Work:
    def scorer(name: str, settings: Any) -> Any:
        asked = Options(settings={"retries": "2", "wait": "0.01", **settings})
        return catalog.scorer(name, asked, memory=cache)

    return Work(place, step="negate", session=Session(cache), scorer=scorer)


def test_an_endpoint_is_asked_once_and_its_answers_are_kept(
    server: chat_server.Server, tmp_path: Path
) -> None:
    step = Negate(by=f"chat:{server.url}#looker", categories=("replace_obj", "add_att"))
    server.set(always='{"caption": "A cat on a mat."}', faults=["500", "no json"])
    found = step.run(rows(), endpoint_work(tmp_path, tmp_path / "cache"))
    assert found.kept["id"].to_pylist() == ["a/replace_obj"]
    assert sum(each["answered"] for each in server.log()) == 4
    again = step.run(rows(), endpoint_work(tmp_path, tmp_path / "cache"))
    assert again.kept == found.kept
    assert len(server.log()) == 6
    server.set(always="The weather is nice.", refuse=["A red car."])
    other = step.run(rows(), endpoint_work(tmp_path / "other"))
    assert other.reasons == {"refused": 2, "unreadable answer": 2}
    assert len(other.kept) == 0
    wrong = Negate(by=f"chat:{server.url}#nobody")
    with pytest.raises(CounterfoilError, match="no such model or address"):
        wrong.run(rows(), endpoint_work(tmp_path / "wrong"))


@pytest.mark.parametrize(
    ("category", "after", "reason"),
    [
        ("replace_obj", "A wet cat on the mat.", ""),
        ("replace_obj", "A wet dog on the mat", "no final stop"),
        ("replace_obj", "Is a wet dog on the mat?", "a question"),
        ("replace_obj", "The wet dog on a mat.", "no change"),
        ("replace_obj", "A wet puppy on the mat.", "same meaning"),
        ("replace_obj", "A dry cat on the rug.", "more than one change"),
        ("replace_rel", "A wet dog next to the mat.", ""),
        ("replace_att", "A wet dog on the mat " + "in the rain " * 5 + ".", "too long"),
        ("swap_obj", "A wet mat on the dog.", ""),
        ("swap_obj", "A wet mat on the cat.", "other words than the caption's"),
        ("add_att", "A wet brown dog on the mat.", ""),
        ("add_obj", "A wet dog and a cat on the mat.", ""),
        ("add_obj", "A dog and a cat on the mat.", "more than one change"),
    ],
)
def test_what_is_checked(category: str, after: str, reason: str) -> None:
    assert rejection("A wet dog on the mat.", after, category, Lexicon()) == reason


def test_answers_and_prompts() -> None:
    assert read_answer('{"negative": "A  cat."}').caption == "A cat."
    assert read_answer('Here: {"caption": "A cat."} Good luck').caption == "A cat."
    for text in (
        "",
        "A cat.",
        '{"caption": 3}',
        '{"caption": "a", "why": "b"}',
        '{"caption": ""}',
        "{'caption'",
    ):
        assert read_answer(text).reason == "unreadable answer"
    assert read_answer("As an AI, I will not.").reason == "refused"
    assert {"refused", "unreadable answer"} < set(REASONS)
    # The examples within the prompts pass the checks themselves.
    from counterfoil.build.negation.prompts import _TASKS

    for category in SUGAR_CREPE:
        _, before, after = _TASKS[category]
        assert rejection(before, after, category, Lexicon()) == ""
        assert before in prompt("X.", category)
