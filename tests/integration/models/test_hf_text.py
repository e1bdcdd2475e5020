"""Encoders of texts alone: their tokens, and token-match on them as BERTScore has it."""

import numpy as np
import pytest
import torch

from counterfoil import catalog
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.benchmarks.references import References
from counterfoil.engine.caption_scoring import CaptionInputs, score_captions
from counterfoil.errors import InputError, ModelError
from counterfoil.models import text_models
from counterfoil.models.base import Options
from counterfoil.models.captions.base import LocalEmbedder

WORDS = ["a", "the", "cat", "dog", "runs", "sits", "on", "mat", "two", "red", "small"]
TEXTS = ["a cat sits on the mat", "two dogs run", "the red dog", "a small cat runs"]
REFERENCES = [
    ["the cat sits", "a red cat"], ["two dog runs on a mat"], ["a dog", "the small dog", "red"], ["a cat"],
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small BERT with random weights, as transformers saves one."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    place = tmp_path_factory.mktemp("bert")
    (place / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=16, num_hidden_layers=3, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=12,
    )  # fmt: skip
    # As checkpoints of BERT are kept: with a head for masked words, and no pooler.
    transformers.BertForMaskedLM(config).save_pretrained(place)
    transformers.BertTokenizerFast(vocab_file=str(place / "vocab.txt")).save_pretrained(place)
    return place


def captions(texts):
    return [Caption(str(number), text) for number, text in enumerate(texts)]


def states(folder, text, layer):
    """The unit vectors of one text's tokens, marks included, straight from transformers."""
    import transformers

    model = transformers.AutoModel.from_pretrained(folder).eval()
    ids = transformers.AutoTokenizer.from_pretrained(folder)(
        text, return_tensors="pt", truncation=True, max_length=12
    )
    with torch.no_grad():
        rows = model(**ids, output_hidden_states=True).hidden_states[layer][0].numpy()
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def bert_score(folder, candidate, reference, layer):
    """F1 of greedy matching, equations 1 to 3 of Zhang et al. 2020; marks may be found and weigh nothing."""
    own, other = states(folder, candidate, layer), states(folder, reference, layer)
    near = own @ other.T
    precision, recall = near.max(axis=1)[1:-1].mean(), near.max(axis=0)[1:-1].mean()
    return 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize("layer", [None, 0, 2])
def test_tokens_are_those_of_the_layer_whatever_the_batch(folder, layer):
    encoder = text_models.load_tokens(
        f"{folder}@{layer}" if layer is not None else str(folder), Options(device="cpu")
    )
    assert isinstance(encoder, LocalEmbedder)
    (together,) = encoder.embed_tokens([captions(TEXTS)])
    for text, found in zip(TEXTS, together, strict=True):
        expected = states(folder, text, 3 if layer is None else layer)
        np.testing.assert_allclose(found.vectors, expected, atol=1e-5)
        np.testing.assert_array_equal(found.whole, found.vectors[0])
    assert [ids.tolist() for ids in encoder.token_ids(TEXTS)] == [found.ids.tolist() for found in together]


@pytest.mark.parametrize("layer", [1, 3])
def test_token_match_is_bertscore(folder, layer):
    metric = catalog.scorer("metric:token-match", Options(device="cpu", backbone=f"hf-text:{folder}@{layer}"))
    texts = [*TEXTS, *(text for own in REFERENCES for text in own)]
    rows, at = [], len(TEXTS)
    for own in REFERENCES:
        rows.append(list(range(at, at + len(own))))
        at += len(own)
    asked = CaptionInputs((), tuple(captions(texts)), None, np.arange(4), References.of(rows))
    expected = [
        max(bert_score(folder, text, other, layer) for other in own)
        for text, own in zip(TEXTS, REFERENCES, strict=True)
    ]
    np.testing.assert_allclose(score_captions(asked, metric), expected, atol=1e-5)


def test_layers_are_other_scorers(folder):
    names = [str(folder), f"{folder}@3", f"{folder}@1"]
    first, same, other = (text_models.load_tokens(name, Options(device="cpu")).identity for name in names)
    assert first.options == same.options
    assert other.options["layer"] == 1
    assert len({first.weights, same.weights, other.weights}) == 1


def test_what_it_cannot_do(folder):
    with pytest.raises(InputError, match=r"no such layer; given: 4; allowed: 0 to 3"):
        text_models.load_tokens(f"{folder}@4", Options(device="cpu"))
    with pytest.raises(InputError, match="no such layer; given: last"):
        text_models.load_tokens(f"{folder}@last", Options(device="cpu"))
    with pytest.raises(InputError, match=r"looks at no images; allowed: metric:token-match --scorer hf"):
        catalog.scorer(f"hf-text:{folder}")
    for name in ("clip-s", "em-score", "ref-pac-s"):
        with pytest.raises(InputError, match="the model reads captions and looks at no images"):
            catalog.scorer(f"metric:{name}", Options(device="cpu", backbone=f"hf-text:{folder}"))
    with pytest.raises(ModelError, match=r"no image and text features.*an encoder of texts is hf-text"):
        catalog.scorer(f"hf:{folder}", Options(device="cpu"))
    with pytest.raises(InputError, match="reads captions and looks at nothing"):
        text_models.load_tokens(str(folder), Options(device="cpu")).embed_frames([[Image("x")]])


def test_a_tokenizer_without_marks_is_refused(folder, tmp_path):
    import transformers

    config = transformers.GPT2Config(vocab_size=300, n_embd=8, n_layer=1, n_head=1, n_positions=16)
    transformers.GPT2Model(config).save_pretrained(tmp_path)
    letters = {chr(code): code for code in range(33, 127)}
    tokenizer = transformers.GPT2TokenizerFast(vocab={**letters, "<|endoftext|>": 299}, merges=[])
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="sets no marks around a text"):
        text_models.load_tokens(str(tmp_path), Options(device="cpu"))
