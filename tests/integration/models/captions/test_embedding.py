"""CLIP-S, PAC-S, EMScore and token-match by name: the official formulae on a model's own tensors."""

import json
import math
from collections import Counter
from functools import cache

import numpy as np
import pytest
import torch
from open_clip import SimpleTokenizer
from open_clip.transform import image_transform

from counterfoil.benchmarks.records import Caption
from counterfoil.errors import InputError
from counterfoil.models import hf, open_clip
from counterfoil.models.base import Identity, Options
from counterfoil.models.captions import embedding, registry
from counterfoil.models.captions.base import EmbeddingMetric, LocalMetric
from counterfoil.models.precomputed_galleries import PrecomputedEmbeddings
from refusals import refuses

pytestmark = pytest.mark.usefixtures("tiny_architectures")

CANDIDATES = ["a red cat on a mat", "two dogs run", "a cat", "the old man throws a ball at a dog"]
REFERENCES = [
    ["a cat lies on the mat", "a red animal"],
    ["dogs are running", "two dogs", "a dog runs behind a dog"],
    ["one cat"],
    ["a man throws", "an old man and his dog play with a ball", "man"],
]
#: The released codes compute in single precision, which the F1 of a random model magnifies.
NEAR = 1e-4
STARTS = np.cumsum([0, *map(len, REFERENCES)])
FLAT = [text for own in REFERENCES for text in own]


@pytest.fixture
def spec(checkpoint):
    return f"tiny-quickgelu/{checkpoint('tiny-quickgelu')}"


#: Metrics with one model share it.
loaded = cache(lambda spec, prompt: open_clip.load(spec, Options(device="cpu", prompt=prompt)))


def load(name, spec, **settings):
    def backbone(options):
        assert (options.backbone, options.settings) == ("", {})
        return loaded(spec, options.prompt)

    options = Options(device="cpu", backbone=f"open-clip:{spec}", settings=settings)
    return embedding.load(name, options, backbone)


def captions(texts):
    return [Caption(str(number), text) for number, text in enumerate(texts)]


def asked(metric, images):
    """What the engine does: embed each, hand them over."""
    if isinstance(metric, EmbeddingMetric):
        references = starts = None
        if "references" in metric.needs:
            references, starts = next(metric.embedder.embed_captions([captions(FLAT)])), STARTS
        candidates = next(metric.embedder.embed_captions([captions(CANDIDATES)]))
        pictures = next(metric.embedder.embed_images([images]))
        return metric.of_embeddings(candidates, pictures, references, starts)
    assert isinstance(metric, LocalMetric)
    return metric.of_parts(*parts_of(metric, images))


def parts_of(metric, images):
    (candidates,), (flat,) = (metric.local.embed_tokens([captions(texts)]) for texts in (CANDIDATES, FLAT))
    own = [flat[STARTS[i] : STARTS[i + 1]] for i in range(len(CANDIDATES))]
    frames = next(iter(metric.local.embed_frames([images]))) if "images" in metric.needs else None
    return candidates, frames, own if "references" in metric.needs else None


class Official:
    """The released codes on open_clip's own tensors, fp32."""

    def __init__(self, model, images):
        self.model, self.tokenize = model, SimpleTokenizer()
        transform = image_transform(model.visual.image_size, is_train=False)
        with torch.no_grad():
            self.images = model.encode_image(torch.stack([transform(image.decode()) for image in images]))

    def features(self, texts):
        with torch.no_grad():
            return self.model.encode_text(self.tokenize(texts)).numpy()

    def clip_score(self, prefix, w, paper=False):
        """clipscore.py and pac_score.py: the score without and with references."""

        def norm(x):
            return x / np.sqrt(np.sum(x**2, axis=1, keepdims=True))

        cand = norm(self.features([prefix + text for text in CANDIDATES]))
        per = w * np.clip(np.sum(norm(self.images.numpy()) * cand, axis=1), 0, None)
        refs = [norm(self.features([prefix + text for text in own])) for own in REFERENCES]
        best = np.array([np.max(c.dot(r.T)) for c, r in zip(cand, refs, strict=True)])
        best = np.clip(best, 0, None) if paper else best
        with np.errstate(invalid="ignore", divide="ignore"):
            return per, np.where(per + best == 0, 0, 2 * per * best / (per + best))

    def local(self, text):
        """EMScore's `encode_text(local=True)` of one text: padded ids, unit vectors up to the end mark."""
        ids, model = self.tokenize([text]), self.model
        with torch.no_grad():
            x = model.token_embedding(ids) + model.positional_embedding
            x = model.ln_final(model.transformer(x, attn_mask=model.attn_mask)) @ model.text_projection
        x = x[0, : int(ids[0].argmax()) + 1]
        return ids[0].tolist(), x / x.norm(dim=-1, keepdim=True)

    def idf(self, corpus):
        counts = Counter()
        for text in corpus:
            counts.update(set(self.local(text)[0]))
        idf = {token: math.log((len(corpus) + 1) / (n + 1)) for token, n in counts.items()}
        idf[max(idf)] = sum(idf.values()) / len(idf)
        return idf, math.log(len(corpus) + 1)

    def em_score(self, corpus, *, references, whole=False, prefix=""):
        idf, unseen = self.idf([prefix + text for text in corpus]) if corpus else ({}, 1.0)
        rows = []
        frames = self.images / self.images.norm(dim=-1, keepdim=True)
        for candidate, frame, own in zip(CANDIDATES, frames, REFERENCES, strict=True):
            ids, x = self.local(prefix + candidate)
            w = torch.tensor([idf.get(token, unseen) for token in ids[: len(x)]])
            w = w / w.sum()
            sim = x @ frame[:, None]
            p, r = float((w * sim.max(dim=1)[0]).sum()), float(sim.max(dim=0)[0].mean())
            shown = (2 * p * r / (p + r) + float(x[-1] @ frame)) / 2
            if not references:
                rows.append(shown)
                continue
            parts = []
            for text in own:
                other_ids, y = self.local(prefix + text)
                v = torch.tensor([idf.get(token, unseen) for token in other_ids[: len(y)]])
                v = v / v.sum()
                sim = x @ y.T
                p, r = float((w * sim.max(dim=1)[0]).sum()), float((v * sim.max(dim=0)[0]).sum())
                parts.append((2 * p * r / (p + r), float(x[-1] @ y[-1])))
            fine, coarse = zip(*parts, strict=True)
            told = max(f + c for f, c in parts) if whole else max(fine) + max(coarse)
            rows.append((shown + told / 2) / 2)
        return rows


@pytest.fixture
def shown(tiny_model, drawn_images):
    """For each candidate the picture that a random model finds nearest; for the last the farthest."""
    official = Official(tiny_model("tiny-quickgelu"), drawn_images)
    cosines = official.features(CANDIDATES) @ official.images.numpy().T
    return [drawn_images[place] for place in [*cosines[:-1].argmax(axis=1), cosines[-1].argmin()]]


@pytest.fixture
def official(tiny_model, shown):
    return Official(tiny_model("tiny-quickgelu"), shown)


@pytest.mark.parametrize(("kind", "weight"), [("clip-s", 2.5), ("pac-s", 2.0)])
def test_clip_s_and_pac_s_are_those_of_the_released_codes(kind, weight, spec, official, shown):
    plain, beside = official.clip_score("A photo depicts ", weight)
    assert plain.min() == 0 < plain.max()
    np.testing.assert_allclose(asked(load(kind, spec), shown), plain, atol=NEAR)
    np.testing.assert_allclose(asked(load(f"ref-{kind}", spec), shown), beside, atol=NEAR)
    # Each of the settings is felt, and is what it says.
    bare, _ = official.clip_score("", 1.0)
    np.testing.assert_allclose(asked(load(kind, spec, prefix="", weight="1"), shown), bare, atol=NEAR)
    assert abs(bare * weight - plain).max() > 1e-3
    _, paper = official.clip_score("A photo depicts ", weight, paper=True)
    np.testing.assert_allclose(asked(load(f"ref-{kind}", spec, negative="paper"), shown), paper, atol=NEAR)


@pytest.mark.parametrize("name", ["em-score", "ref-em-score"])
def test_em_score_is_that_of_the_released_code(name, spec, official, shown):
    references = name == "ref-em-score"
    corpus = FLAT if references else CANDIDATES
    exact = official.em_score(corpus, references=references)
    np.testing.assert_allclose(asked(load(name, spec), shown), exact, atol=NEAR)
    np.testing.assert_allclose(
        asked(load(name, spec, idf="none"), shown), official.em_score(None, references=references), atol=NEAR,
    )  # fmt: skip
    metric = load(name, spec, idf="candidates" if references else "references", prefix="a film of")
    assert metric.needs == ("images", "captions", "references")
    counted = CANDIDATES if references else FLAT
    exact = official.em_score(counted, references=references, prefix="a film of ")
    np.testing.assert_allclose(asked(metric, shown), exact, atol=NEAR)


def test_the_choice_among_references(spec, official, shown):
    whole = asked(load("ref-em-score", spec, max="whole"), shown)
    np.testing.assert_allclose(whole, official.em_score(FLAT, references=True, whole=True), atol=NEAR)
    assert (asked(load("ref-em-score", spec), shown) >= whole - 1e-9).all()


def test_a_corpus_of_document_frequencies(spec, official, shown, tmp_path):
    train = ["a dog and a man", "a man", "the ball", "birds on a wire", "a cat"]
    path = tmp_path / "train.json"
    path.write_text(json.dumps({"v1": train[:2], "v2": train[2:]}))
    metric = load("em-score", spec, idf=str(path))
    np.testing.assert_allclose(asked(metric, shown), official.em_score(train, references=False), atol=NEAR)
    # What the corpus holds is part of who the metric is, and not where it lies.
    other = tmp_path / "copy.json"
    other.write_bytes(path.read_bytes())
    assert load("em-score", spec, idf=str(other)).identity == metric.identity
    other.write_text(json.dumps(train[:4]))
    assert load("em-score", spec, idf=str(other)).identity != metric.identity


def test_token_match_is_berts_score(spec, official):
    """P, R and F1 by BERTScore's formulae, marks weighing nothing and there to be found."""
    table = []
    for candidate, own in zip(CANDIDATES, REFERENCES, strict=True):
        _, x = official.local(candidate)
        item = []
        for text in own:
            _, y = official.local(text)
            sim = (x @ y.T).numpy()
            p, r = sim.max(axis=1)[1:-1].mean(), sim.max(axis=0)[1:-1].mean()
            item.append((p, r, 2 * p * r / (p + r)))
        table.append(np.max(item, axis=0))
    for column, part in enumerate(("precision", "recall", "f1")):
        result = asked(load("token-match", spec, part=part), [])
        np.testing.assert_allclose(result, np.array(table)[:, column], atol=NEAR)
    np.testing.assert_array_equal(asked(load("token-match", spec), []), result)
    assert abs(asked(load("token-match", spec, idf="references"), []) - result).max() > 1e-4


def test_pac_s_of_videos_is_em_score_with_its_model(spec, shown):
    for name, em in (("pac-s", "em-score"), ("ref-pac-s", "ref-em-score")):
        metric = load(name, spec)
        moving = metric.for_videos()
        assert isinstance(moving, LocalMetric)
        assert (moving.identity.name, moving.identity.prompt) == (f"metric:{name}", "{}")
        assert moving.needs == metric.needs
        np.testing.assert_array_equal(asked(moving, shown), asked(load(em, spec), shown))
        # No second model.
        assert moving.local.tower is metric.embedder.towers.tokens
    # Settings reach the one that they concern, though both are asked with the same command.
    both = load("ref-pac-s", spec, weight="1", idf="none", max="whole")
    same = load("ref-em-score", spec, idf="none", max="whole")
    np.testing.assert_array_equal(asked(both.for_videos(), shown), asked(same, shown))
    assert both.identity.options["metric"]["weight"] == 1
    with pytest.raises(InputError, match="metric:clip-s: is about pictures, and these are videos; take"):
        load("clip-s", spec).for_videos()


def test_embeddings_that_are_given():
    rng = np.random.default_rng(0)
    images, texts = rng.normal(size=(4, 8)), rng.normal(size=(9, 8))
    given = PrecomputedEmbeddings(Identity("embeddings:a.npz"), images, texts)
    name = "embeddings:a.npz"
    options, prefixed = Options(backbone=name), Options(backbone=name, settings={"prefix": ""})
    metric = embedding.load("clip-s", options, lambda _: given)
    assert metric.embedder is given
    result = metric.of_embeddings(given.captions[:4], given.images, None, None)
    cosines = given.compare(given.captions[:4], given.images)
    np.testing.assert_allclose(result, 2.5 * np.clip(cosines, 0, None))
    refuses("cannot get a prefix", embedding.load, "clip-s", prefixed, lambda _: given, error=InputError)
    for name in ("em-score", "token-match"):
        words = f"metric:{name}: the model gives no embeddings of single"
        refuses(words, embedding.load, name, options, lambda _: given, error=InputError)
    with pytest.raises(InputError, match="metric:pac-s: the model gives no embeddings of single tokens"):
        embedding.load("pac-s", options, lambda _: given).for_videos()


def test_models_without_an_end_mark(siglip_folder, shown):
    def metric(name):
        asked = Options(device="cpu", backbone=f"hf:{siglip_folder}")
        return embedding.load(name, asked, lambda options: hf.load(str(siglip_folder), options))

    assert np.isfinite(asked(metric("ref-clip-s"), shown)).all()
    with pytest.raises(InputError, match=r"no embeddings of single tokens.*allowed: CLIP of open_clip or"):
        metric("em-score")


@pytest.mark.parametrize(
    ("name", "settings", "error", "pattern"),
    [
        ("clip-s", {"wight": "2"}, InputError, "metric:clip-s: unknown key.*did you mean 'weight'"),
        ("clip-s", {"negative": "paper"}, InputError, "allowed: arithmetic, prefix, weight"),
        ("clip-s", {"weight": "-1"}, InputError, "key 'weight': out of range; given: -1; allowed: above 0"),
        ("clip-s", {"weight": ""}, InputError, r"key 'weight': no value; given: ''"),
        ("clip-s", {"prefix": "a {} of"}, InputError, "a prefix stands before captions"),
        ("ref-clip-s", {"negative": "clip"}, InputError, "key 'negative': not a choice; given: clip; allow"),
        ("em-score", {"max": "whole"}, InputError, "allowed: idf, padding, prefix"),
        ("em-score", {"idf": "refs.json"}, InputError, "idf: no such file; given: refs.json; allowed: bench"),
    ],
)
def test_settings_that_do_not_exist(name, settings, error, pattern, spec):
    refuses(pattern, load, name, spec, **settings, error=error)


def test_a_metric_needs_its_model_of_one_vector_and_one_prefix():
    with pytest.raises(InputError, match=r"metric:clip-s: needs a model to look with.*--backbone open-clip:"):
        registry.load("clip-s", Options(device="cpu"), lambda _: None)
    both = Options(backbone="open-clip:x", prompt="a photo of {}", settings={"prefix": "x"})
    with pytest.raises(InputError, match=r"a prefix and a prompt; given: a photo of \{\}"):
        embedding.load("clip-s", both, lambda _: None)

    class Several:
        identity = Identity("several")
        comparison = "points"

    with pytest.raises(InputError, match="does not compare one vector with another by cosine"):
        embedding.load("clip-s", Options(backbone="ckpt:x"), lambda _: Several())


def test_a_prompt_takes_the_place_of_the_prefix(spec, shown):
    def metric(**options):
        asked = Options(device="cpu", backbone=f"open-clip:{spec}", **options)
        return embedding.load("clip-s", asked, lambda wanted: open_clip.load(spec, wanted))

    prompted, prefixed = metric(prompt="a photo of {}"), metric(settings={"prefix": "a photo of"})
    np.testing.assert_array_equal(asked(prompted, shown), asked(prefixed, shown))
