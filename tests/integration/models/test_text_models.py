"""Language models, text classifiers and plausibility models against plain loops over single captions."""

import json
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

import tiny_generative
from counterfoil import catalog
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.errors import InputError, ModelError, UnknownNameError
from counterfoil.jobs.explain import explain
from counterfoil.models import text_models
from counterfoil.models.base import Options
from counterfoil.models.captions.base import LocalEmbedder
from embedded import embedded, scored
from refusals import refuses
from tiny_families import save_words

TEXTS = [
    "A red cat on the mat", "a dog", "the mat on a red cat", "cat", "a dog",
    "the photograph of an unbelievably long-winded caption, with commas, on a mat",
]  # fmt: skip


@pytest.fixture
def folder(text_models):
    return text_models


def scores(spec, texts, batch=32, **settings):
    model = catalog.model(spec, Options(device="cpu", settings=settings))
    return scored(model, [(Image("x"), Caption(str(i), text)) for i, text in enumerate(texts)], batch)


@cache
def loaded(folder, kind):
    return kind.from_pretrained(folder).eval(), transformers.AutoTokenizer.from_pretrained(folder)


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


def causal_twin(folder, text, *, end):
    """The log-likelihood of one text, token by token, and its tokens."""
    model, tokenizer = loaded(folder, transformers.GPT2LMHeadModel)
    words = tokenizer(text, add_special_tokens=False).input_ids
    ids = [tokenizer.bos_token_id, *words, *([tokenizer.eos_token_id] if end else [])]
    total = 0.0
    for i in range(1, len(ids)):
        total += float(model(torch.tensor([ids[:i]])).logits[0, -1].double().log_softmax(-1)[ids[i]])
    return total, len(ids) - 1


@pytest.mark.parametrize("end", [False, True])
def test_a_causal_model_is_its_log_likelihood_token_by_token(folder, end):
    more = {"end": "in"} if end else {}
    spec = f"lm:{folder / 'gpt2'}"
    sums, counts = np.array([causal_twin(folder / "gpt2", text, end=end) for text in TEXTS]).T
    np.testing.assert_allclose(scores(spec, TEXTS, **more), sums, atol=2e-5)
    np.testing.assert_allclose(scores(spec, TEXTS, score="mean", **more), sums / counts, atol=2e-6)
    result = scores(spec, TEXTS, score="perplexity", **more)
    np.testing.assert_allclose(result, -np.exp(-sums / counts), rtol=1e-5)


def test_a_causal_model_reads_its_context_and_does_not_count_it(folder):
    model, tokenizer = loaded(folder / "gpt2", transformers.GPT2LMHeadModel)
    context = tokenizer("a photo of", add_special_tokens=False).input_ids
    expected = []
    for text in TEXTS:
        ids = [*context, *tokenizer(text, add_special_tokens=False).input_ids]
        logits = model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        expected.append(sum(float(logits[i - 1, ids[i]]) for i in range(len(context), len(ids))))
    spec = f"lm:{folder / 'gpt2'}"
    np.testing.assert_allclose(scores(spec, TEXTS, context="a photo of"), expected, atol=2e-5)
    told = catalog.model(spec, Options(device="cpu", settings={"context": "a photo of"}))
    assert told.provenance["context"] == tokenizer.decode(context)
    plain = catalog.model(spec, Options(device="cpu"))
    assert plain.provenance["context"] == tokenizer.bos_token
    assert plain.identity != told.identity
    refuses("the context fills the model", scores, spec, TEXTS, context="a cat " * 2000, error=InputError)


def test_a_model_that_sees_no_image_has_no_heatmaps(folder):
    result = explain(f"lm:{folder / 'gpt2'}", "world-quads", questions=["add_att-00000"], cache=None)
    assert result.methods == ()
    assert "the model sees no image: there is no heatmap" in result.notes
    assert result.to_arrow(by="word").num_rows > 0
    assert result.to_arrow(by="cell").num_rows == 0


def test_a_masked_model_hides_one_token_at_a_time(folder):
    model, tokenizer = loaded(folder / "bert", transformers.BertForMaskedLM)
    expected = []
    for text in TEXTS:
        given = tokenizer(text, return_special_tokens_mask=True)
        total = 0.0
        for i, mark in enumerate(given.special_tokens_mask):
            if not mark:
                ids = torch.tensor([given.input_ids])
                ids[0, i] = tokenizer.mask_token_id
                logits = model(ids, attention_mask=torch.ones_like(ids)).logits[0, i].double()
                total += float(logits.log_softmax(-1)[given.input_ids[i]])
        expected.append(total)
    np.testing.assert_allclose(scores(f"lm:{folder / 'bert'}", TEXTS), expected, atol=2e-5)


@pytest.mark.parametrize(("label", "at"), [("", 1), ("unacceptable", 0), ("0", 0)])
def test_a_classifier_gives_the_probability_of_the_class_that_is_named(folder, label, at):
    model, tokenizer = loaded(folder / "cola", transformers.BertForSequenceClassification)
    logits = [model(**tokenizer(text, return_tensors="pt")).logits[0].double() for text in TEXTS]
    settings = {"label": label} if label else {}
    spec = f"text-classifier:{folder / 'cola'}"
    expected = [float(item.softmax(-1)[at]) for item in logits]
    np.testing.assert_allclose(scores(spec, TEXTS, **settings), expected, atol=1e-6)
    result = scores(spec, TEXTS, score="logit", **settings)
    np.testing.assert_allclose(result, [float(item[at]) for item in logits], atol=1e-5)


def test_plausibility_reads_head_and_temperature_from_the_embeddings(folder):
    model, tokenizer = loaded(folder / "t5", transformers.T5EncoderModel)
    table = model.shared.weight.double()
    expected = []
    for text in TEXTS:
        given = tokenizer(text, return_tensors="pt")
        hidden = model(given.input_ids, attention_mask=given.attention_mask).last_hidden_state[0, -1].double()
        expected.append(float(((hidden @ table[32099] + table[32098, 0]) / table[32097, 0]).sigmoid()))
    result = scores(f"plausibility:{folder / 't5'}", TEXTS)
    np.testing.assert_allclose(result, expected, atol=1e-6)
    assert len({round(item, 6) for item in result}) > 3


def test_each_distinct_caption_is_computed_once(folder):
    scorer, texts = catalog.model(f"lm:{folder / 'gpt2'}", Options(device="cpu")), []
    watched = replace(scorer, rule=lambda model, rows: texts.extend(rows) or scorer.rule(model, rows))
    pairs = [(Image("x"), Caption(str(i), text)) for i, text in enumerate(TEXTS)]
    assert scored(watched, pairs)[1] == scored(watched, pairs)[4]
    assert len(texts) == 2 * len(set(TEXTS)) < 2 * len(TEXTS)


@pytest.mark.parametrize(
    ("spec", "settings", "kind", "words"),
    [
        ("lm:{}/gpt2", {"score": "pseudo-log-likelihood"}, InputError, "no score of a causal model"),
        ("lm:{}/bert", {"end": "in"}, InputError, "end is a setting of causal models"),
        ("lm:{}/cola", {}, ModelError, "does not fill the model"),
        ("lm:{}/gpt2", {"kind": "masked"}, ModelError, "GPT2Config"),
        ("text-classifier:{}/three", {}, InputError, "which class is the score"),
        ("text-classifier:{}/cola", {"label": "acceptible"}, UnknownNameError, "did you mean 'acceptable'"),
        ("plausibility:{}/bert", {}, ModelError, "no T5; given: model type bert"),
        ("lm:{}/nothing", {}, ModelError, "no such folder"),
        ("lm:{}/gpt2", {"scores": "mean"}, InputError, "did you mean 'score'"),
    ],
)
def test_what_does_not_fit_is_one_line(folder, spec, settings, kind, words):
    refuses(words, catalog.model, spec.format(folder), Options(device="cpu", settings=settings), error=kind)


def test_a_short_table_of_embeddings_is_not_veras(folder, tmp_path):
    config = transformers.T5Config(vocab_size=40, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    transformers.T5EncoderModel(config).save_pretrained(tmp_path)
    save_words(tmp_path)
    with pytest.raises(ModelError, match="not Vera's layout"):
        catalog.model(f"plausibility:{tmp_path}", Options(device="cpu"))


ON_MODULES = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]


def encoder(spec, **settings):
    return catalog.model(spec, Options(device="cpu", settings=settings))


def rows(model, texts, batch=4):
    return embedded(model, [Caption(str(i), text) for i, text in enumerate(texts)], batch)


def pooled_twin(folder, kind, pool, *, length=512, lower=False):
    """One text at a time, through the library's own classes, and no padding."""
    model, tokenizer = loaded(folder, kind)
    result = []
    for text in TEXTS:
        cased = text.lower() if lower else text
        given = tokenizer(cased, return_tensors="pt", truncation=True, max_length=length)
        row = pool(model(input_ids=given["input_ids"]).last_hidden_state[0]).double().numpy()
        result.append(row / np.sqrt((row**2).sum()))
    return np.array(result)


POOLS = {"mean": lambda rows: rows.mean(dim=0), "cls": lambda rows: rows[0], "last": lambda rows: rows[-1]}


@pytest.mark.parametrize(
    ("model", "pooling"),
    [("bert", "mean"), ("bert", "cls"), ("bert", "last"), ("gpt2", "last"), ("t5", "mean")],
)
def test_sentences_are_pooled_as_one_at_a_time(folder, model, pooling):
    kind = transformers.T5EncoderModel if model == "t5" else transformers.AutoModel
    scorer = encoder(f"text-encoder:{folder / model}", pooling=pooling)
    expected = pooled_twin(folder / model, kind, POOLS[pooling], length=512 if model == "t5" else 40)
    for batch in (1, 4, 6):
        np.testing.assert_allclose(rows(scorer, TEXTS, batch), expected, atol=1e-5)
    result = rows(scorer, TEXTS)
    cosines = (expected[:3] * expected[3:]).sum(axis=1)
    np.testing.assert_allclose(scorer.compare(result[:3], result[3:]), cosines, atol=1e-5)


def sentence_files(folder, modules, pooling, **text):
    """The files that sentence-transformers writes beside a model."""
    kinds = [(path, f"sentence_transformers.models.{kind}") for path, kind in modules]
    listed = [{"idx": i, "name": str(i), "path": p, "type": kind} for i, (p, kind) in enumerate(kinds)]
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "sentence_bert_config.json").write_text(json.dumps(text))


def pooled_by(name):
    modes = ("cls_token", "mean_tokens", "max_tokens", "lasttoken")
    return {"word_embedding_dimension": 24, **{f"pooling_mode_{mode}": mode == name for mode in modes}}


@pytest.fixture
def sentences(folder, tmp_path):
    return Path(shutil.copytree(folder / "bert", tmp_path / "sentences"))


@pytest.mark.parametrize(("mode", "pooling"), [("cls_token", "cls"), ("lasttoken", "last")])
def test_a_checkpoint_says_how_its_sentences_are_made(sentences, mode, pooling):
    sentence_files(sentences, ON_MODULES, pooled_by(mode), max_seq_length=9, do_lower_case=True)
    model = encoder(f"text-encoder:{sentences}")
    assert (model.identity.options["pooling"], model.identity.options["length"]) == (pooling, 9)
    expected = pooled_twin(sentences, transformers.AutoModel, POOLS[pooling], length=9, lower=True)
    np.testing.assert_allclose(rows(model, TEXTS), expected, atol=1e-5)
    assert model.over_limit([Caption(str(i), text) for i, text in enumerate(TEXTS)]) == 1
    # What is set wins; and a mode may be named alone.
    chosen = encoder(f"text-encoder:{sentences}", pooling="mean", length="20")
    expected = pooled_twin(sentences, transformers.AutoModel, POOLS["mean"], length=20, lower=True)
    np.testing.assert_allclose(rows(chosen, TEXTS), expected, atol=1e-5)
    sentence_files(sentences, ON_MODULES, {"pooling_mode": mode.removesuffix("_token")})
    assert encoder(f"text-encoder:{sentences}").identity.options["pooling"] == pooling


@pytest.mark.parametrize(
    ("modules", "pooling", "message"),
    [
        ([*ON_MODULES, ("3_Dense", "Dense")], pooled_by("mean_tokens"), r"not computed here; given: Dense"),
        (ON_MODULES, pooled_by("max_tokens"), "none of those computed here; given: max_tokens"),
        (ON_MODULES, {}, r"its pooling is none .* given: \(none\); allowed: mean, cls, last"),
    ],
)
def test_sentences_made_in_other_ways_are_refused(sentences, modules, pooling, message):
    sentence_files(sentences, modules, pooling)
    refuses(message, encoder, f"text-encoder:{sentences}", error=ModelError)


def test_what_is_no_encoder_of_texts_is_refused(folder, clip_folder):
    with pytest.raises(ModelError, match=r"looks at images too.*given: model type clip; hf:.*clip compares"):
        encoder(f"text-encoder:{clip_folder}")
    with pytest.raises(InputError, match="key 'pooling': not a choice; given: max; allowed: mean, cls, last"):
        encoder(f"text-encoder:{folder / 'bert'}", pooling="max")
    with pytest.raises(InputError, match="captions of this length; given: 90; allowed: 3 to 40 tokens"):
        encoder(f"text-encoder:{folder / 'bert'}", length="90")
    with pytest.raises(InputError, match="unknown key; given: layer"):
        encoder(f"text-encoder:{folder / 'bert'}", layer="3")


def test_an_embedder_of_texts_and_pictures_in_one_tower_reads_texts(tmp_path):
    place = tiny_generative.save("qwen3-vl", tmp_path)
    result = rows(encoder(f"text-encoder:{place}", pooling="last"), TEXTS)
    np.testing.assert_allclose(result, pooled_twin(place, transformers.AutoModel, POOLS["last"]), atol=1e-5)


CANDIDATES = ["a cat sits on the mat", "two dogs run", "the red dog", "a small cat runs"]


@pytest.fixture
def bert(folder):
    """Of two layers, as checkpoints of BERT are kept: with a head for masked words, and no pooler."""
    return folder / "bert"


def captions(texts):
    return [Caption(str(number), text) for number, text in enumerate(texts)]


def states(bert, text, layer):
    """The unit vectors of one text's tokens, marks included, straight from transformers."""
    model, tokenizer = loaded(bert, transformers.AutoModel)
    ids = tokenizer(text, return_tensors="pt", truncation=True, max_length=40)
    rows = model(**ids, output_hidden_states=True).hidden_states[layer][0].numpy()
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("layer", [None, 0, 1])
def test_tokens_are_those_of_the_layer_whatever_the_batch(bert, layer):
    name = f"{bert}@{layer}" if layer is not None else str(bert)
    encoder = text_models.load_tokens(name, Options(device="cpu"))
    assert isinstance(encoder, LocalEmbedder)
    metric = catalog.model("metric:token-match", Options(device="cpu", backbone=f"hf-text:{name}"))
    assert metric.local.identity == encoder.identity
    (together,) = encoder.embed_tokens([captions(CANDIDATES)])
    for text, result in zip(CANDIDATES, together, strict=True):
        expected = states(bert, text, 2 if layer is None else layer)
        np.testing.assert_allclose(result.vectors, expected, atol=1e-5)
        np.testing.assert_array_equal(result.whole, result.vectors[0])
    ids = encoder.token_ids(CANDIDATES)
    assert [row.tolist() for row in ids] == [result.ids.tolist() for result in together]


def test_layers_are_other_models_and_what_it_cannot_do(bert):
    names = [str(bert), f"{bert}@2", f"{bert}@1"]
    first, same, other = (text_models.load_tokens(name, Options(device="cpu")).identity for name in names)
    assert first.options == same.options
    assert other.options["layer"] == 1
    assert len({first.weights, same.weights, other.weights}) == 1
    with pytest.raises(InputError, match=r"no such layer; given: 3; allowed: 0 to 2"):
        text_models.load_tokens(f"{bert}@3", Options(device="cpu"))
    with pytest.raises(InputError, match="no such layer; given: last"):
        text_models.load_tokens(f"{bert}@last", Options(device="cpu"))
    with pytest.raises(InputError, match=r"looks at no images; allowed: metric:token-match --backbone hf"):
        catalog.model(f"hf-text:{bert}")
    for name in ("clip-s", "em-score"):
        with pytest.raises(InputError, match="the model reads captions and looks at no images"):
            catalog.model(f"metric:{name}", Options(device="cpu", backbone=f"hf-text:{bert}"))
    with pytest.raises(ModelError, match=r"no image and text features.*an encoder of texts is hf-text"):
        catalog.model(f"hf:{bert}", Options(device="cpu"))
    with pytest.raises(InputError, match="reads captions and looks at nothing"):
        text_models.load_tokens(str(bert), Options(device="cpu")).embed_frames([[Image("x")]])


def test_a_tokenizer_without_marks_is_refused(bert, tmp_path):
    config = transformers.GPT2Config(vocab_size=300, n_embd=8, n_layer=1, n_head=1, n_positions=16)
    transformers.GPT2Model(config).save_pretrained(tmp_path)
    letters = {chr(code): code for code in range(33, 127)}
    tokenizer = transformers.GPT2TokenizerFast(vocab={**letters, "<|endoftext|>": 299}, merges=[])
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="sets no marks around a text"):
        text_models.load_tokens(str(tmp_path), Options(device="cpu"))
