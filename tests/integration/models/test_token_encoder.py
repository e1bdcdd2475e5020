"""Tokens and frames: equal to what the libraries give token by token, one frame or caption like any other."""

import weakref
from dataclasses import dataclass, replace

import numpy as np
import PIL.Image
import pytest
import torch
from open_clip import SimpleTokenizer
from transformers import AutoTokenizer, CLIPModel

from counterfoil.benchmarks.records import Caption
from counterfoil.benchmarks.videos import FrameFeatures, FrameFolder, Sampling, Video, evenly
from counterfoil.errors import DataError, ModelError
from counterfoil.models import clip_fast, dual, hf, open_clip
from counterfoil.models.base import Options
from counterfoil.models.captions.base import LocalEmbedder
from refusals import refuses

pytestmark = pytest.mark.usefixtures("tiny_architectures")


def load(name, path, **options):
    return open_clip.load(f"{name}/{path}", Options(device="cpu", **options))


def official_tokens(model, texts):
    """As EMScore patches OpenAI's `encode_text`: all tokens normed and projected, used up to the end mark."""
    ids = SimpleTokenizer()(texts)
    part = model if hasattr(model, "token_embedding") else model.text
    with torch.no_grad():
        x = part.token_embedding(ids) + part.positional_embedding
        x = part.ln_final(part.transformer(x, attn_mask=part.attn_mask)) @ part.text_projection
        x = (x / x.norm(dim=-1, keepdim=True)).numpy()
    ends = ids.argmax(dim=-1)
    return [(ids[i].numpy(), x[i, : ends[i] + 1]) for i in range(len(texts))]


@pytest.mark.parametrize("name", ["tiny", "tiny-quickgelu", "tiny-custom"])
@pytest.mark.parametrize("quick", [True, False])
def test_tokens_equal_the_library(name, quick, checkpoint, tiny_model, captions, monkeypatch):
    if not quick:
        monkeypatch.setattr(clip_fast, "_known_blocks", lambda _: False)
    model = load(name, checkpoint(name))
    assert isinstance(model.local, LocalEmbedder)
    assert model.provenance["text tower"].startswith("fast") is quick
    expected = official_tokens(tiny_model(name), [str(caption.text) for caption in captions])
    whole = next(model.embed_captions([captions]))
    for size in (len(captions), 3):
        batches = [captions[start : start + size] for start in range(0, len(captions), size)]
        result = [tokens for batch in model.local.embed_tokens(batches) for tokens in batch]
        assert len(result) == len(captions)
        for tokens, (ids, vectors), row in zip(result, expected, whole, strict=True):
            assert tokens.ids.tolist() == ids.tolist()
            assert tokens.used.tolist() == ids[: len(vectors)].tolist()
            assert tokens.vectors.dtype == np.float32
            assert abs(tokens.vectors - vectors).max() <= 1e-5
            # What is said of the whole caption is what a dual encoder says of it.
            assert abs(tokens.whole - row).max() <= 1e-5


def test_tokens_of_transformers_equal_the_library(clip_folder, captions):
    scorer = hf.load(str(clip_folder), Options(device="cpu"))
    texts = [str(caption.text) for caption in captions]
    model, tokenizer = (of.from_pretrained(clip_folder) for of in (CLIPModel, AutoTokenizer))
    inputs = tokenizer(texts, padding="max_length", truncation=True, max_length=77, return_tensors="pt")
    with torch.inference_mode():
        states = model.text_projection(model.text_model(**inputs).last_hidden_state)
        states = torch.nn.functional.normalize(states, dim=-1).numpy()
    assert scorer.local is not None
    result = next(iter(scorer.local.embed_tokens([captions])))
    whole = next(scorer.embed_captions([captions]))
    for row, tokens in enumerate(result):
        used = int(inputs["attention_mask"][row].sum())
        assert tokens.used.tolist() == inputs["input_ids"][row, :used].tolist()
        assert abs(tokens.vectors - states[row, :used]).max() <= 1e-5
        assert abs(tokens.whole - whole[row]).max() <= 1e-5
        # Filled up as OpenAI's tokenizer does it, and not with the end mark.
        assert tokens.ids.tolist() == [*tokens.used.tolist(), *[0] * (77 - used)]


def test_towers_without_an_end_mark_have_no_parts(checkpoint, siglip_folder):
    assert load("tiny-last", checkpoint("tiny-last")).local is None
    assert hf.load(str(siglip_folder), Options(device="cpu")).local is None


def test_captions_over_the_limit_are_counted(checkpoint, clip_folder):
    # Two marks leave 75 words of one token each.
    exact, over, empty = (Caption(str(n), " ".join(["cat"] * n)) for n in (75, 76, 0))
    for model in (load("tiny", checkpoint("tiny")), hf.load(str(clip_folder), Options(device="cpu"))):
        assert (model.over_limit([exact, empty]), model.over_limit([exact, over, over])) == (0, 2)
        assert model.over_limit([]) == 0
        assert model.local is not None
        assert model.local.over_limit([over]) == 1
        # What is cut off ends with the mark of the end.
        result = next(iter(model.local.embed_tokens([[over, exact]])))
        np.testing.assert_array_equal(result[0].used, result[1].used)
        assert len(result[0].used) == 77
    prompt, almost = "a photo of {}", Caption("72", " ".join(["cat"] * 72))
    of_hf = hf.load(str(clip_folder), Options(device="cpu", prompt=prompt))
    for model in (load("tiny", checkpoint("tiny"), prompt=prompt), of_hf):
        assert model.over_limit([exact, almost]) == 1
        # Both marks and the prompt are tokens.
        assert model.lengths([Caption("1", "cats"), almost, over]) == [6, 77, 77]
        assert model.lengths([]) == []


def test_a_picture_is_a_video_of_one_frame(checkpoint, drawn_images, tmp_path):
    model = load("tiny", checkpoint("tiny"))
    expected = next(model.embed_images([drawn_images]))
    result = list(model.local.embed_frames([drawn_images[:4], drawn_images[4:5], [], drawn_images[5:]]))
    assert [len(batch) for batch in result] == [4, 1, 0, 5]
    rows = [frames for batch in result for frames in batch]
    assert all(frames.shape == (1, 32) for frames in rows)
    assert abs(np.concatenate(rows) - expected).max() <= 1e-5
    for number, image in enumerate(drawn_images):
        image.decode().save(tmp_path / f"{number:03}.png")
    video = Video("film", FrameFolder(tmp_path))
    # Pictures and videos may share a batch.
    ((film, still),) = model.local.embed_frames([[video, drawn_images[3]]])
    assert film.dtype == np.float32
    assert abs(film - expected).max() <= 1e-5
    assert abs(still - expected[3:4]).max() <= 1e-5


@dataclass(frozen=True)
class Grey:
    """A long film that is drawn when it is looked at."""

    frames: int
    rate: float | None = 25.0

    def __len__(self):
        return self.frames

    def frame(self, number):
        return PIL.Image.new("RGB", (40, 32), (number % 256, 0, 0))

    def read(self):
        return b"grey"

    def __str__(self):
        return "grey"


class Counting:
    """A preparation that knows how many of its pictures are in memory."""

    def __init__(self, inner):
        self.inner, self.alive, self.most = inner, 0, 0

    def __call__(self, picture):
        pixels = np.array(self.inner(picture))
        self.alive += 1
        self.most = max(self.most, self.alive)
        weakref.finalize(pixels, self.gone)
        return pixels

    def gone(self):
        self.alive -= 1


def test_frames_are_streamed(checkpoint):
    model = load("tiny", checkpoint("tiny"))
    counting = Counting(model.preparation)
    parts = replace(model, preparation=counting).local
    film = Grey(3 * dual.FRAMES + 5)
    ((rows,),) = parts.embed_frames([[Video("film", film)]])
    assert rows.shape == (len(film), 32)
    assert counting.most <= dual.FRAMES + 1
    # In order, whatever piece of the film a frame was in.
    films = [[[Video("film", Grey(n + 1))]] for n in (0, 40, len(film) - 1)]
    alone = np.concatenate([next(parts.embed_frames(batches))[0][-1:] for batches in films])
    assert abs(rows[[0, 40, -1]] - alone).max() <= 1e-5


def test_a_frame_that_comes_again_is_embedded_once(checkpoint):
    model, seen = load("tiny", checkpoint("tiny")), []

    def prepare(picture):
        seen.append(picture)
        return model.preparation(picture)

    parts = replace(model, preparation=prepare).local
    ((rows,),) = parts.embed_frames([[Video("film", Grey(5), sampling=Sampling(count=17))]])
    assert len(seen) == 5
    ((item,),) = parts.embed_frames([[Video("film", Grey(5))]])
    np.testing.assert_array_equal(rows, item[evenly(5, 17)])
    # One without frames is named.
    refuses(r"nothing|grey", next, parts.embed_frames([[Video("nothing", Grey(0))]]))


def test_frames_that_were_embedded_already_and_those_that_cannot_be_read(checkpoint, tmp_path):
    parts = load("tiny", checkpoint("tiny")).local
    rows = np.random.default_rng(0).normal(size=(12, 32)).astype(np.float32)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    np.save(tmp_path / "a.npy", rows)
    torch.save(torch.from_numpy(rows), tmp_path / "a.pt")
    torch.save(torch.from_numpy(rows).half(), tmp_path / "half.pt")
    for name, near in (("a.npy", 1e-6), ("a.pt", 1e-6), ("half.pt", 1e-3)):
        ((result,),) = parts.embed_frames([[Video("a", FrameFeatures(tmp_path / name))]])
        assert result.dtype == np.float32
        assert abs(result - unit).max() <= near
    cut = Video("a", FrameFeatures(tmp_path / "a.pt", duration=6.0), start=1.0, end=3.0)
    ((result,),) = parts.embed_frames([[cut]])
    assert abs(result - unit[2:6]).max() <= 1e-6
    torch.save({"a": torch.ones(2, 2)}, tmp_path / "mapping.pt")
    torch.save(Grey(3), tmp_path / "code.pt")
    np.save(tmp_path / "zero.npy", np.array([[1.0, 0.0], [0.0, 0.0]]))
    for name, error, pattern in (
        ("mapping.pt", ModelError, "mapping.pt.*holds no tensor; given: dict"),
        ("code.pt", ModelError, "code.pt.*running code"),
        ("none.pt", ModelError, "no such file.*none.pt|none.pt.*no such file"),
        ("zero.npy", DataError, "zero.npy.*frame 1: a frame without length"),
    ):
        videos = [[Video("a", FrameFeatures(tmp_path / name))]]
        refuses(pattern, next, parts.embed_frames(videos), error=error)
