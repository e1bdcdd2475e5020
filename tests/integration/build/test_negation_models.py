"""Negatives by language models: a tiny one that was taught, a real one, an endpoint, and the checks."""

import json
import random
import re
from functools import partial

import pyarrow as pa
import pytest

import chat_server
import small_model
from build_fixtures import step_work
from counterfoil.build import StepContext
from counterfoil.build.negation.answers import (
    HEAD,
    PROMPTS,
    REASONS,
    read_answer,
    read_prompts,
    rejection,
    with_head,
)
from counterfoil.build.negation.lexicon import Lexicon
from counterfoil.build.negation.rules import SUGAR_CREPE
from counterfoil.build.pipeline import read_recipe, run_recipe
from counterfoil.build.steps.negate import Negate
from counterfoil.engine.session import Session
from counterfoil.errors import CounterfoilError
from counterfoil.models.text_models import TextGenerator, load_generator
from made_once import made_once
from refusals import refuses

TAUGHT = {
    ("A dog on a mat.", "replace_obj"): "A cat on a mat.",
    ("A dog on a mat.", "replace_att"): "A dog on a mat.",
    ("A red car.", "replace_att"): "A blue car.",
    ("A red car.", "replace_obj"): "A blue van?",
}


#: A file of prompts without examples, short enough for a tiny model.
SHORT = 'template = "{caption} {task}"\n' + "".join(
    f'[{category}]\ntask = "{category}?"\nexamples = []\n' for category in ("replace_obj", "replace_att")
)


def asked(caption, category):
    return f"{caption} {category}?"


def teach(folder):
    """A tiny GPT-2 with a tokenizer of bytes and a chat template that answers four prompts by heart."""
    import torch
    import transformers
    from tokenizers import ByteLevelBPETokenizer

    (folder / "prompts.toml").write_text(SHORT)
    answers = {asked(*item): json.dumps({"caption": said}) for item, said in TAUGHT.items()}
    backend = ByteLevelBPETokenizer()
    texts = [*answers, *answers.values()]
    backend.train_from_iterator(texts, vocab_size=900, special_tokens=["<s>", "</s>", "<pad>"])
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
    for question, answer in answers.items():
        text = tokenizer.apply_chat_template([{"role": "user", "content": question}], tokenize=False)
        parts = (text + HEAD, answer.removeprefix(HEAD) + "</s>")
        start, end = (tokenizer(part, add_special_tokens=False)["input_ids"] for part in parts)
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
def writer(tmp_path_factory):
    return made_once(tmp_path_factory, "taught-gpt2", teach)


def rows():
    return pa.table({"id": ["a", "b"], "caption": ["A dog on a mat.", "A red car."]})


def local(writer, **settings):
    given = {"categories": ("replace_obj", "replace_att"), "batch": 3, "max_tokens": 40}
    return Negate(by=f"lm:{writer}", prompts=str(writer / "prompts.toml"), **given | settings)


def test_a_local_model_writes_negatives_that_are_read_and_checked(writer, tmp_path, monkeypatch):
    step, quiet = local(writer), Session(note=lambda text: None)
    result = step.run(rows(), StepContext(tmp_path, step="negate"))
    kept = dict(zip(result.kept["id"].to_pylist(), result.kept["negative_caption"].to_pylist(), strict=True))
    assert kept == {"a/replace_obj": "A cat on a mat.", "b/replace_att": "A blue car."}
    assert result.reasons == {"a question": 1, "no change": 1}
    # Every answer is kept as it came, and the summary has some of those that could not be used.
    answers = result.kept["negative_caption_answer"].to_pylist()
    assert answers == ['{"caption": "A cat on a mat."}', '{"caption": "A blue car."}']
    assert result.dropped["negative_caption_answer"].to_pylist() == [
        '{"caption": "A dog on a mat."}', '{"caption": "A blue van?"}'
    ]  # fmt: skip
    refused = result.facts["refusals"]["no change"]
    assert refused == {"rows": 1, "examples": ['{"caption": "A dog on a mat."}']}
    finished = sorted((tmp_path / "unfinished" / "negate").rglob("*.npz"))
    assert len(finished) == 2
    # What was finished is not asked again, and a damaged file is replaced.
    answers = TextGenerator.write
    finished[0].write_bytes(b"{")
    asked = []
    monkeypatch.setattr(TextGenerator, "write", lambda *a, **k: asked.append(1) or answers(*a, **k))
    for count in (1, 1):
        assert step.run(rows(), StepContext(tmp_path, step="negate", session=quiet)).kept == result.kept
        assert len(asked) == count


def test_where_no_row_is_left_the_answers_are_kept(writer, tmp_path):
    import pyarrow.parquet as pq

    source = tmp_path / "rows.csv"
    source.write_text("id,caption\na,A dog on a mat.\n")
    recipe = tmp_path / "mine.toml"
    settings = f'by = "lm:{writer}"\nprompts = "{writer / "prompts.toml"}"\ncategories = ["replace_att"]'
    steps = f'[[steps]]\ndo = "read"\nsource = "{source}"\n[[steps]]\ndo = "negate"\n{settings}\n'
    recipe.write_text(f'title = "Mine"\n{steps}')
    work = StepContext(tmp_path / "build", benchmark=lambda *given: pytest.fail("no benchmark"))
    with pytest.raises(CounterfoilError, match=r"no row is left; given: 1 no change.*dropped\.parquet"):
        run_recipe(read_recipe(str(recipe)), work)
    (dropped,) = pq.read_table(work.folder / "steps" / "2-negate" / "dropped.parquet").to_pylist()
    assert dropped["negative_caption_answer"] == '{"caption": "A dog on a mat."}'
    # The next run asks for nothing: it takes what lies there.
    assert len([*(work.folder / "unfinished" / "2-negate").rglob("*.npz")]) == 1


def test_prompts_together_are_answered_as_by_themselves(writer):
    import torch

    generator = load_generator(str(writer))
    prompts = [asked(*item) for item in TAUGHT] + ["A dog", "Two"]
    for item, text in zip(prompts, generator.write(prompts, most=12), strict=True):
        ids = generator._ids(item)
        for _ in range(12):
            with torch.inference_mode():
                best = int(generator.model.network(torch.tensor([ids])).logits[0, -1].argmax())
            ids.append(best)
            if best == 1:
                break
        slow = generator.model.tokenizer.decode(ids[len(generator._ids(item)) :], skip_special_tokens=True)
        assert text == slow.strip()
    drawn = [generator.write(prompts[-2:], most=12, temperature=2.0, seed=seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    refuses("longer than the model reads", generator.write, ["word " * 300], most=5, error=CounterfoilError)


def test_a_model_that_writes_nothing_is_refused(tmp_path):
    import transformers

    folder = tmp_path / "bert"
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    load_bert = transformers.BertConfig(vocab_size=50, hidden_size=8, **sizes)
    transformers.BertForMaskedLM(load_bert).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"]))
    transformers.BertTokenizerFast(vocab_file=str(folder / "vocab.txt")).save_pretrained(folder)
    with pytest.raises(CounterfoilError, match="the model writes no text"):
        Negate(by=f"lm:{folder}").run(rows(), StepContext(tmp_path))
    with pytest.raises(CounterfoilError, match="no such folder"):
        Negate(by=f"lm:{tmp_path / 'nowhere' / 'at' / 'all'}").run(rows(), StepContext(tmp_path))


@pytest.fixture(scope="module")
def server():
    with chat_server.running() as running:
        yield running


endpoint_work = partial(step_work, step="negate", retries="2", wait="0.01")


def test_an_endpoint_is_asked_once_and_its_answers_are_kept(server, tmp_path):
    step = Negate(by=f"chat:{server.url}#looker", categories=("replace_obj", "add_att"))
    server.set(always='{"caption": "A cat on a mat."}', faults=["500", "no json"])
    result = step.run(rows(), endpoint_work(tmp_path, cache=tmp_path / "cache"))
    assert result.kept["id"].to_pylist() == ["a/replace_obj"]
    schema = {"type": "object", "properties": {"caption": {"type": "string"}}, "required": ["caption"]}
    for item in server.log():
        form = item["asked"]["response_format"]
        assert form["type"] == "json_schema"
        assert schema.items() <= form["json_schema"]["schema"].items()
        assert len(item["asked"]["messages"]) == 5  # Two examples with their answers, then the question.
    assert sum(item["answered"] for item in server.log()) == 4
    assert step.run(rows(), endpoint_work(tmp_path, cache=tmp_path / "cache")).kept == result.kept
    assert len(server.log()) == 6
    server.set(always="The weather is nice.", refuse=["A red car."])
    other = step.run(rows(), endpoint_work(tmp_path / "other"))
    assert other.reasons == {"refused": 2, "unreadable answer": 2}
    assert other.facts["refusals"]["unreadable answer"]["examples"] == ["The weather is nice."] * 2
    free = Negate(by=f"chat:{server.url}#looker", categories=("replace_obj",), answers="free")
    free.run(rows(), endpoint_work(tmp_path / "free"))
    assert "response_format" not in server.log()[-1]["asked"]
    assert len(other.kept) == 0
    wrong = Negate(by=f"chat:{server.url}#nobody")
    with pytest.raises(CounterfoilError, match="no such model or address"):
        wrong.run(rows(), endpoint_work(tmp_path / "wrong"))


@pytest.mark.parametrize("answer", ["a cat on a mat", "A cat on a mat."])
def test_an_answer_gets_the_form_of_its_caption_and_is_not_dropped_for_it(server, tmp_path, answer):
    said = json.dumps({"caption": answer})
    server.set(always=said)
    asked = pa.table({"id": ["a", "b"], "caption": ["A dog on a mat.", "a dog on a mat"]})
    step = Negate(by=f"chat:{server.url}#looker", categories=("replace_obj",))
    result = step.run(asked, endpoint_work(tmp_path))
    assert result.kept["negative_caption"].to_pylist() == ["A cat on a mat.", "a cat on a mat"]
    assert result.kept["negative_caption_answer"].to_pylist() == [said, said]


#: What is wrong with a negative, from the caption alone.
SPOILT = {
    "itself": lambda caption, after: caption,
    "about": lambda caption, after: f"A picture of {after[0].lower()}{after[1:]}",
    "shorter": lambda caption, after: re.sub(r" (\w{5,})(?=[ .])", "", caption, count=1),
    "turned": lambda caption, after: re.sub(
        r"\b(red|blue|white|black|large|small) (\w{3,})\b", r"\2 \1", caption, count=1
    ),
}


def test_published_negatives_pass_and_spoilt_ones_do_not(shared_data):
    """SugarCrepe's, which people checked; its swaps passed in 68 %, its added things in 69 %."""
    passed = {}
    spoilt = {name: [] for name in SPOILT}
    rng = random.Random(0)
    for category in SUGAR_CREPE:
        table = json.loads((shared_data / "sugarcrepe" / f"{category}.json").read_text())
        for row in rng.sample(list(table.values()), 200):
            before, after = (" ".join(row[key].split()) for key in ("caption", "negative_caption"))
            reason = rejection(before, after, category, Lexicon())
            assert reason in ("", *REASONS)
            passed.setdefault(category, []).append(not reason)
            for name, spoil in SPOILT.items():
                wrong = spoil(before, after)
                if (wrong == before) == (name == "itself") and not re.search("picture|photo|image", before):
                    spoilt[name].append(not rejection(before, wrong, category, Lexicon()))
    shares = {category: sum(item) / len(item) for category, item in passed.items()}
    assert min(shares.values()) > 0.84
    assert min(shares["swap_obj"], shares["swap_att"]) > 0.9
    assert all(sum(item) <= 0.02 * len(item) for item in spoilt.values())


@pytest.mark.parametrize(
    ("before", "after", "category", "reason"),
    [
        ("A woman pats a cow as two men watch.", "Two men pat a cow as a woman watches.", "swap_obj", ""),
        ("A girl holds her hat.", "A girl and a boy hold their hats.", "add_obj", ""),
        ("A dog in a lap top bag.", "A dog in a blue laptop bag.", "add_att", ""),
        ("A dog sits by a cat.", "A cat sits by a dog.", "swap_obj", "same meaning"),
        ("A red car by a bus.", "A car red by a bus.", "swap_att", "words out of order"),
        ("A wet dog on a mat.", "A dog on a mat.", "replace_att", "words taken away"),
        ("A dog on a mat.", "A picture of a cat on a mat.", "replace_obj", "about the picture"),
        ("A young man with a dog.", "A young woman with a dog.", "replace_rel", "of another category"),
        ("A wet dog on the mat.", "A wet cat on the mat.", "replace_obj", ""),
        ("A wet dog on the mat.", "Is a wet dog on the mat?", "replace_obj", "a question"),
        ("A wet dog on the mat.", "The wet dog on a mat.", "replace_obj", "no change"),
        ("A wet dog on the mat.", "A wet puppy on the mat.", "replace_obj", "same meaning"),
        ("A wet dog on the mat.", "A dry cat on the rug.", "replace_obj", "more than one change"),
        ("A wet dog on the mat.", "A wet dog next to the mat.", "replace_rel", ""),
        ("A wet dog on the mat.", "A wet dog on the mat" + " in the rain" * 5, "replace_att", "too long"),
        ("A wet dog on the mat.", "A wet mat on the dog.", "swap_obj", ""),
        ("A wet dog on the mat.", "A wet mat on the cat.", "swap_obj", "other words than the caption's"),
        ("A wet dog on the mat.", "A wet brown dog on the mat.", "add_att", ""),
        ("A wet dog on the mat.", "A wet dog and a cat on the mat.", "add_obj", ""),
        ("A wet dog on the mat.", "A dog and a cat on the mat.", "add_obj", "more than one change"),
    ],
)  # fmt: skip
def test_what_is_a_negative_of_its_category(before, after, category, reason):
    assert rejection(before, after, category, Lexicon()) == reason


def test_prompts_of_ones_own(tmp_path):
    file = tmp_path / "prompts.toml"
    file.write_text('template = "Falsify: {caption}"\n[add_att]\nexamples = [["A train.", "A long train."]]')
    result = read_prompts(file)
    answer = '{"caption": "A long train."}'
    assert result.conversation("A dog.", "add_att") == ("Falsify: A train.", answer, "Falsify: A dog.")
    assert result.tasks["add_att"][0] == PROMPTS.tasks["add_att"][0]
    for text, message in [
        ('template = "no place"', "no template"),
        ("[add_all]\n", "unknown category"),
        ("[add_att]\nexample = []\n", "unknown key"),
        ('[add_att]\nexamples = [["one"]]\n', "no examples"),
        ("[add_att]\ntask = 3\n", "no task"),
        ("add_att = 3\n", "no table"),
    ]:
        file.write_text(text)
        with pytest.raises(CounterfoilError, match=message):
            Negate(by="lm:x", prompts=str(file)).run(rows(), StepContext(tmp_path))


def test_answers_and_prompts():
    assert read_answer('{"negative": "A  cat."}') == ("A cat.", "")
    for text in ("", "A cat.", '{"caption": 3}', '{"caption": "a", "why": "b"}', '{"caption": ""}', "{'a'"):
        assert read_answer(text) == ("", "unreadable answer")
    assert read_answer("As an AI, I will not.") == ("", "refused")
    assert with_head('A \\"big\\" cat."} and so on') == '{"caption": "A \\"big\\" cat."}'
    assert read_answer(with_head("A cat that goes on and")) == ("", "unreadable answer")
    # The examples of the prompts pass the checks themselves, and the question is whole.
    for category in SUGAR_CREPE:
        for before, after in PROMPTS.tasks[category][1]:
            assert rejection(before, after, category, Lexicon()) == ""
        *_, question = PROMPTS.conversation("X.", category)
        assert question.endswith('that has the single key "caption" and nothing else.')


def captions(folder, each):
    """So many captions of each category of SugarCrepe."""
    rows = []
    for category in SUGAR_CREPE:
        table = json.loads((folder / "sugarcrepe" / f"{category}.json").read_text())
        keys = list(table)[:: len(table) // each][:each]
        texts = [(f"{category}-{key}", table[key]["caption"]) for key in keys]
        rows += [{"id": name, "caption": text, "subset": category} for name, text in texts]
    return pa.Table.from_pylist(rows)


def readable(found):
    """The share of answers from which a caption was read; all of them must be there."""
    answers = found.kept["negative_caption_answer"].to_pylist()
    answers += found.dropped["negative_caption_answer"].to_pylist()
    assert all(answers)
    return 1 - found.facts["refusals"].get("unreadable answer", {"rows": 0})["rows"] / len(answers)


#: The server answers one request at a time, on a machine that may have other work.
PATIENT = {"concurrency": "1", "timeout": "900"}


@pytest.mark.slow
@pytest.mark.parametrize(("answers", "least"), [("schema", 0.95), ("free", 0.7)])
def test_nearly_all_answers_of_a_small_model_can_be_read(answers, least, shared_data, tmp_path):
    with small_model.serving() as url:
        step = Negate(by=f"chat:{url}#smol", per_caption="subset", answers=answers)
        assert readable(step.run(captions(shared_data, 40), endpoint_work(tmp_path, **PATIENT))) >= least


@pytest.mark.slow
def test_a_small_model_within_this_process(shared_data, tmp_path, tmp_path_factory):
    folder = made_once(tmp_path_factory, "smollm2", small_model.convert)
    rows = captions(shared_data, 4)
    step = Negate(by=f"lm:{folder}", per_caption="subset", batch=4)
    assert readable(step.run(rows, StepContext(tmp_path, step="negate"))) >= 0.95
