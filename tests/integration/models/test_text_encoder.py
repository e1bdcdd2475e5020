"""Encoders of sentences against plain loops over single captions."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterfoil import catalog
from counterfoil.benchmarks.records import Caption
from counterfoil.errors import InputError, ModelError, UnknownNameError
from counterfoil.models.base import Options

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("open_clip")

pytestmark = pytest.mark.models

TEXTS = [
    "A red cat on the mat",
    "a dog",
    "the photograph of an unbelievably long-winded caption, with commas, on a mat",
    "the mat on a red cat",
    "cat",
    "a dog",
]
ON_MODULES = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]


@pytest.fixture
def folder(text_models: Path) -> Path:
    return text_models


def encoder(spec: str, **settings: str) -> Any:
    return catalog.scorer(spec, Options(device="cpu", settings=settings))


def rows(scorer: Any, texts: list[str], batch: int = 4) -> np.ndarray:
    captions = [Caption(str(at), text) for at, text in enumerate(texts)]
    batches = [captions[at : at + batch] for at in range(0, len(captions), batch)]
    return np.concatenate(list(scorer.embed_captions(batches)))


def twin(
    folder: Path, kind: Any, pool: Callable[[Any], Any], *, length: int = 512, lower: bool = False
) -> np.ndarray:
    """One text at a time, through the library's own classes, and no padding."""
    model, tokenizer = kind.from_pretrained(folder).eval(), transformers.AutoTokenizer.from_pretrained(folder)
    found = []
    for text in TEXTS:
        cased = text.lower() if lower else text
        given = tokenizer(cased, return_tensors="pt", truncation=True, max_length=length)
        with torch.no_grad():
            states = model(input_ids=given["input_ids"]).last_hidden_state[0]
        row = pool(states).double().numpy()
        found.append(row / np.sqrt((row**2).sum()))
    return np.array(found)


POOLS: dict[str, Callable[[Any], Any]] = {
    "mean": lambda states: states.mean(dim=0),
    "cls": lambda states: states[0],
    "last": lambda states: states[-1],
}


@pytest.mark.parametrize(
    ("model", "pooling"),
    [("bert", "mean"), ("bert", "cls"), ("bert", "last"), ("gpt2", "last"), ("t5", "mean")],
)
def test_sentences_are_pooled_as_one_at_a_time(folder: Path, model: str, pooling: str) -> None:
    kind = transformers.T5EncoderModel if model == "t5" else transformers.AutoModel
    scorer = encoder(f"text-encoder:{folder / model}", pooling=pooling)
    expected = twin(folder / model, kind, POOLS[pooling], length=512 if model == "t5" else 40)
    for batch in (1, 4, 6):
        np.testing.assert_allclose(rows(scorer, TEXTS, batch), expected, atol=1e-5)
    found = rows(scorer, TEXTS)
    np.testing.assert_allclose(
        scorer.compare(found[:3], found[3:]), (expected[:3] * expected[3:]).sum(axis=1), atol=1e-5
    )


def sentence_files(
    folder: Path, modules: list[tuple[str, str]], pooling: dict[str, Any], **text: Any
) -> None:
    """The files that sentence-transformers writes beside a model."""
    listed = [
        {"idx": at, "name": str(at), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for at, (path, kind) in enumerate(modules)
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "sentence_bert_config.json").write_text(json.dumps(text))


def pooled_by(name: str) -> dict[str, Any]:
    modes = ("cls_token", "mean_tokens", "max_tokens", "lasttoken")
    return {"word_embedding_dimension": 24, **{f"pooling_mode_{mode}": mode == name for mode in modes}}


@pytest.fixture
def sentences(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder / "bert", tmp_path / "sentences"))


@pytest.mark.parametrize(("mode", "pooling"), [("cls_token", "cls"), ("lasttoken", "last")])
def test_a_checkpoint_says_how_its_sentences_are_made(sentences: Path, mode: str, pooling: str) -> None:
    sentence_files(sentences, ON_MODULES, pooled_by(mode), max_seq_length=9, do_lower_case=True)
    scorer = encoder(f"text-encoder:{sentences}")
    assert scorer.identity.options["pooling"] == pooling
    assert scorer.identity.options["length"] == 9
    expected = twin(sentences, transformers.AutoModel, POOLS[pooling], length=9, lower=True)
    np.testing.assert_allclose(rows(scorer, TEXTS), expected, atol=1e-5)
    assert scorer.over_limit([Caption(str(at), text) for at, text in enumerate(TEXTS)]) == 1
    # What is set wins; and a mode may be named alone.
    chosen = encoder(f"text-encoder:{sentences}", pooling="mean", length="20")
    expected = twin(sentences, transformers.AutoModel, POOLS["mean"], length=20, lower=True)
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
def test_sentences_made_in_other_ways_are_refused(
    sentences: Path, modules: list[tuple[str, str]], pooling: dict[str, Any], message: str
) -> None:
    sentence_files(sentences, modules, pooling)
    with pytest.raises(ModelError, match=message):
        encoder(f"text-encoder:{sentences}")


def test_what_is_no_encoder_of_texts_is_refused(folder: Path, clip_folder: Path) -> None:
    with pytest.raises(ModelError, match=r"looks at images too.*given: model type clip; hf:.*clip compares"):
        encoder(f"text-encoder:{clip_folder}")
    with pytest.raises(InputError, match="no such pooling; given: max; allowed: mean, cls, last"):
        encoder(f"text-encoder:{folder / 'bert'}", pooling="max")
    with pytest.raises(InputError, match="captions of this length; given: 90; allowed: 3 to 40 tokens"):
        encoder(f"text-encoder:{folder / 'bert'}", length="90")
    with pytest.raises(UnknownNameError, match="unknown setting; given: layer"):
        encoder(f"text-encoder:{folder / 'bert'}", layer="3")


def test_an_embedder_of_texts_and_pictures_in_one_tower_reads_texts(tmp_path: Path) -> None:
    import tiny_generative

    place = tiny_generative.save("qwen3-vl", tmp_path)
    model = transformers.AutoModel.from_pretrained(place).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    expected = []
    for text in ("a red cat", "two dogs chase one ball"):
        states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        expected.append(torch.nn.functional.normalize(states[-1], dim=-1).detach().numpy())
    found = catalog.scorer(f"text-encoder:{place}", Options(device="cpu", settings={"pooling": "last"}))
    batch = [Caption(str(at), text) for at, text in enumerate(("a red cat", "two dogs chase one ball"))]
    np.testing.assert_allclose(next(found.embed_captions([batch])), np.stack(expected), atol=1e-5)
