"""One contract over all kinds of model, loaded by name and run by the engine as users do."""

import json
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

import chat_server
import spice_program
from contracts import forms
from counterfoil import catalog
from counterfoil.benchmarks.answers import Outcomes, Rankings, Scores
from counterfoil.benchmarks.forms import Choice
from counterfoil.benchmarks.records import Caption
from counterfoil.engine.plan import ANSWERS
from counterfoil.engine.session import Session, run
from counterfoil.models.base import Embedder, Model, Options
from counterfoil.models.captions import java
from counterfoil.models.precomputed_galleries import PrecomputedEmbeddings
from processes import python

#: How far scores of a model may lie apart in batches of other sizes, whose float32 sums have another order,
#: by themselves and in shares of them.
NEAR = 2e-6


@dataclass(frozen=True)
class Kind:
    """A kind of model: its name with {} for the folder of files, and what it is asked.

    `other` names files of other contents; `changes` are options that change scores, each by itself.
    """

    name: str
    spec: str
    benchmark: str = "quads"
    options: Mapping[str, Any] = field(default_factory=dict)
    other: str = ""
    changes: tuple[Mapping[str, Any], ...] = ()
    torch: bool = False
    #: Whether it is a program of Java, out of pycocoevalcap.
    java: bool = False

    def load(self, files, *, spec="", **changes):
        """The model, loaded anew; {} stands for the folder in options too."""
        options = {name: _filled(value, files) for name, value in {**self.options, **changes}.items()}
        if "ids" in options:
            options["ids"] = Path(options["ids"])
        where = (spec or self.spec).format(files, **SERVERS)
        return catalog.model(where, Options(device="cpu", **options))


def _filled(value, files):
    if isinstance(value, Mapping):
        return {name: _filled(item, files) for name, item in value.items()}
    return value.format(files) if isinstance(value, str) and "{}/" in value else value


#: The address of a server of chat models, once it runs.
SERVERS: dict[str, str] = {}

PROMPT = {"prompt": "a picture of {}"}
HALF = {"precision": "bf16"}
#: Resizing where the tower computes.
DEVICE = {"settings": {"resize": "device"}}

KINDS = (
    Kind("constant", "blind:constant"),
    Kind("random", "blind:random", changes=({"seed": 1},)),
    Kind("length", "blind:length"),
    Kind("random directions", "blind:random", "paraphrases", changes=({"seed": 1},)),
    Kind(
        "embeddings of captions", "embeddings:{}/texts.npz", "paraphrases", other="embeddings:{}/texts-2.npz"
    ),
    Kind("texts of a dual encoder", "hf:{}/hf", "paraphrases", changes=(PROMPT, HALF), torch=True),
    Kind(
        "text encoder",
        "text-encoder:{}/bert",
        "paraphrases",
        other="text-encoder:{}/gpt2",
        changes=(PROMPT, HALF, {"settings": {"pooling": "cls"}}, {"settings": {"length": "4"}}),
        torch=True,
    ),
    Kind("word counts", "blind:unigram", changes=({"settings": {"captions": "{}/captions.txt"}},)),
    Kind("bag of words", "blind:bag-of-words"),
    Kind("learned", "blind:learned", "ratings"),
    Kind("pixels", "pixels:colours"),
    Kind("chat", "chat:{chat}#looker", changes=({"settings": {"score": "log-odds"}},)),
    Kind("scores", "given:{}/quads.csv", other="given:{}/quads-2.csv"),
    Kind("column", "given:{}/rated.csv", "ratings", {"column": "first"}, changes=({"column": "second"},)),
    Kind("embeddings", "embeddings:{}/items.npz", other="embeddings:{}/items-2.npz"),
    Kind("similarity", "given:{}/all.npy", "gallery", {"ids": "{}/ids.npz"}, "given:{}/all-2.npy"),
    Kind("rankings", "given:{}/lists.json", "gallery", other="given:{}/lists-2.json"),
    Kind("metric of length", "metric:length", "ratings"),
    Kind("ROUGE", "metric:rouge-l", "ratings"),
    Kind("CIDEr", "metric:cider", "ratings", changes=({"settings": {"variant": "plain"}},)),
    Kind("METEOR", "metric:meteor", "ratings", java=True),
    Kind("SPICE", "metric:spice", "ratings", {"settings": {"models": "{}/spice"}}, java=True),
    Kind("open_clip", "open-clip:local-dir:{}/open-clip", changes=(PROMPT, HALF, DEVICE), torch=True),
    Kind("hf", "hf:{}/hf", changes=(PROMPT, HALF, DEVICE), torch=True),
    Kind("SigLIP2", "hf:{}/siglip2", changes=(PROMPT, HALF), torch=True),
    Kind(
        "BLIP",
        "itm:{}/blip",
        other="itm:{}/vilt",
        changes=(PROMPT, HALF, {"settings": {"protocol": "retrieval"}}, {"settings": {"length": "4"}}),
        torch=True,
    ),
    Kind("language model", "lm:{}/gpt2", changes=({"settings": {"score": "mean"}}, PROMPT), torch=True),
    Kind("masked model", "lm:{}/bert", changes=({"settings": {"score": "mean"}}, HALF), torch=True),
    Kind("text classifier", "text-classifier:{}/cola", changes=({"settings": {"label": "0"}},), torch=True),
    Kind("plausibility", "plausibility:{}/t5", changes=({"settings": {"score": "logit"}},), torch=True),
    Kind(
        "mean image",
        "blind:constant-image",
        options={"backbone": "hf:{}/hf"},
        changes=({"backbone": "open-clip:local-dir:{}/open-clip"}, {"settings": {"image": "{}/grey.png"}}),
        torch=True,
    ),
    Kind(
        "P(yes)",
        "vqa:{}/vqa",
        changes=({"settings": {"score": "log-odds"}}, {"settings": {"question": "Is it {}?"}}, HALF),
        torch=True,
    ),
    Kind(
        "LXMERT",
        "regions:{}/lxmert",
        options={"settings": {"features": "{}/regions.npz"}},
        changes=(PROMPT, HALF, {"settings": {"features": "{}/regions-2.npz"}}),
        torch=True,
    ),
    Kind(
        "likelihood",
        "likelihood:{}/git",
        changes=(
            {"settings": {"length": "mean"}},
            {"settings": {"end": "out"}},
            {"settings": {"unconditional": "noise"}},
            {"settings": {"unconditional": "noise"}, "seed": 1},
        ),
        torch=True,
    ),
    Kind("checkpoint", "ckpt:{}/small", other="ckpt:{}/small-2", changes=(PROMPT,), torch=True),
    Kind(
        "regions of a checkpoint",
        "ckpt:{}/vsrn",
        options={"settings": {"regions": "{}/regions.npz"}},
        changes=(PROMPT, {"settings": {"regions": "{}/regions-2.npz"}}),
        torch=True,
    ),
    Kind("several vectors", "ckpt:{}/pvse", other="ckpt:{}/pcme", torch=True),
    Kind("Gaussians", "ckpt:{}/pcme", "gallery", other="ckpt:{}/pvse", changes=({"seed": 1},), torch=True),
    Kind("detector", "ckpt:{}/detector", other="ckpt:{}/detector-2", torch=True),
    Kind(
        "CLIP-S",
        "metric:clip-s",
        "ratings",
        {"backbone": "ckpt:{}/small"},
        changes=(
            {"backbone": "ckpt:{}/small-2"},
            *({"settings": one} for one in ({"prefix": "see "}, {"weight": "2"}, {"arithmetic": "half"})),
        ),
        torch=True,
    ),
    Kind(
        "EMScore",
        "metric:em-score",
        "ratings",
        {"backbone": "open-clip:local-dir:{}/open-clip"},
        changes=(
            {"backbone": "hf:{}/hf"},
            *({"settings": one} for one in ({"prefix": "see "}, {"idf": "none"}, {"padding": "released"})),
        ),
        torch=True,
    ),
)
NAMES = [kind.name for kind in KINDS]
OF_PAIRS = ("constant", "random", "length", "pixels")


#: METEOR takes half a minute to start: `make slow` runs it.
_SLOW = [pytest.param(kind, marks=pytest.mark.slow) if kind.name == "METEOR" else kind for kind in KINDS]


@pytest.fixture(params=_SLOW, ids=NAMES)
def kind(request, files, monkeypatch):
    result: Kind = request.param
    if result.java:
        pytest.importorskip("pycocoevalcap")
        if result.name == "SPICE":  # Its parser is not at hand: a program in its place answers.
            spice_program.fake(files / "spice", monkeypatch)
        elif shutil.which("java") is None:
            pytest.skip("needs Java")
    if "{chat}" in result.spec:
        pytest.importorskip("httpx2")
    if result.torch:
        pytest.importorskip("open_clip")
        pytest.importorskip("transformers")
    return result


@pytest.fixture(scope="session")
def benchmarks():
    result = {
        "quads": forms.quads(4),
        "gallery": forms.gallery(images=range(5)),
        "paraphrases": forms.paraphrases({"swap": 5}),
        "ratings": forms.rated(forms.grades(8), per_image=2),
    }
    return {name: forms.shown(benchmark) for name, benchmark in result.items()}


@pytest.fixture(scope="session")
def chat():
    with chat_server.running() as server:
        SERVERS["chat"] = server.url
        yield


@pytest.fixture(scope="session")
def files(chat, tmp_path_factory, benchmarks):
    """The files that the models above read, each twice with other contents."""
    folder = tmp_path_factory.mktemp("models")
    quads, gallery = benchmarks["quads"], benchmarks["gallery"]
    for end, seed in (("", 0), ("-2", 1)):
        rng = np.random.default_rng(seed)
        shape = len(quads.images), 3
        features = rng.normal(size=(*shape, 12))
        boxes = np.sort(rng.uniform(size=(*shape, 4)), axis=-1)
        ids = [image.id for image in quads.images]
        np.savez(folder / f"regions{end}.npz", image_ids=ids, features=features, boxes=boxes)
        four = enumerate(rng.integers(0, 9, (len(quads), 4)))
        lines = ["id,c0_i0,c0_i1,c1_i0,c1_i1", *(f"{i},{a},{b},{c},{d}" for i, (a, b, c, d) in four)]
        (folder / f"quads{end}.csv").write_text("\n".join(lines) + "\n")
        points = [rng.normal(size=(len(items), 5)) for items in (quads.images, quads.captions)]
        named = {"image_ids": ids, "caption_ids": [caption.id for caption in quads.captions]}
        np.savez(folder / f"items{end}.npz", images=points[0], captions=points[1], **named)
        texts = benchmarks["paraphrases"].captions
        own = rng.normal(size=(len(texts), 5))
        np.savez(folder / f"texts{end}.npz", captions=own, caption_ids=[caption.id for caption in texts])
        every = rng.normal(size=forms.shape_of(gallery))
        np.save(folder / f"all{end}.npy", every)
        images, captions = (np.array([x.id for x in items]) for items in (gallery.images, gallery.captions))
        i2t = {image: captions[np.argsort(-row)].tolist() for image, row in zip(images, every, strict=True)}
        t2i = {c: images[np.argsort(-row)].tolist() for c, row in zip(captions, every.T, strict=True)}
        (folder / f"lists{end}.json").write_text(json.dumps({"i2t": i2t, "t2i": t2i}))
    np.savez(folder / "ids.npz", image_ids=images, caption_ids=captions)
    rated = [f"{name},{i % 3},{i % 5}" for i, name in enumerate(benchmarks["ratings"].questions.ids)]
    (folder / "rated.csv").write_text("\n".join(["id,first,second", *rated]) + "\n")
    (folder / "spice").mkdir()
    for name in java.PARSER:
        (folder / "spice" / name).touch()
    (folder / "captions.txt").write_text("a square\na red circle on a square\n")
    PIL.Image.new("RGB", (8, 8), "white").save(folder / "grey.png")
    _models(folder, [caption.text or "" for caption in quads.captions])
    return folder


def _models(folder, texts):
    try:
        import open_clip  # noqa: F401
        import torch
        import transformers  # noqa: F401
    except ModuleNotFoundError:
        return
    import tiny_generative
    import tiny_matchers
    from counterfoil.models import checkpoint, networks, pcme, recurrent, small
    from counterfoil.models.region_files import read_regions
    from tiny_families import save_clip, save_family, save_text_models, write_random_checkpoint

    write_random_checkpoint(folder / "open-clip")
    save_clip(folder / "hf", 2000)
    tiny_generative.save("idefics3", folder / "vqa")
    tiny_generative.save("git", folder / "git")
    save_text_models(folder)
    save_family("siglip2", folder / "siglip2")
    for name in ("blip", "vilt", "lxmert"):
        tiny_matchers.save(name, folder / name)

    def saved(name, backbone):
        for parameter in backbone.network.parameters():
            parameter.data += 0.05 * torch.randn_like(parameter)
        checkpoint.save(folder / name, backbone, {})

    with torch.random.fork_rng(devices=[]):
        for end, seed in (("", 0), ("-2", 1)):
            torch.manual_seed(seed)
            saved(f"small{end}", small.backbone(texts, seed=seed))
            saved(f"detector{end}", networks.detector(small.backbone(texts, seed=seed)))
        saved("pvse", pcme.pvse(small.backbone(texts)))
        regions = read_regions(folder / "regions.npz")
        saved("vsrn", recurrent.backbone(texts, kind="vsrn", regions=regions))
        saved("pcme", pcme.pcme(small.backbone(texts)))


@pytest.fixture(scope="session")
def loaded():
    """Models that are loaded already, by kind; tests share them."""
    return {}


@pytest.fixture
def model(kind, files, loaded):
    if kind.name not in loaded:
        loaded[kind.name] = kind.load(files)
    return loaded[kind.name]


@pytest.fixture(autouse=True)
def short_captions_only():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*longer than the model reads")
        yield


def numbers(answers):
    if isinstance(answers, Scores):
        return answers.values.reshape(-1)
    if isinstance(answers, Outcomes):
        return np.concatenate([np.asarray(right, dtype=float) for right in answers.right.values()])
    assert isinstance(answers, Rankings)
    return np.concatenate([item for side in (answers.i2t, answers.t2i) for item in (side.above, side.level)])


def test_identities_are_stable_over_two_loads(kind, files, model):
    first, second = model.identity, kind.load(files).identity
    assert first == second
    assert first.key == second.key
    assert first.to_json() == json.loads(json.dumps(first.to_json()))


def test_kinds_that_embed_say_so(kind, model):
    entry = catalog.MODELS[kind.spec.partition(":")[0]]
    if isinstance(model, Embedder | PrecomputedEmbeddings):
        assert entry.embeds
    elif entry.prefix != "ckpt":  # A detector is a checkpoint as well.
        assert entry.embeds is False


def test_identities_differ_where_options_or_files_change_scores(kind, model, files, benchmarks):
    benchmark = benchmarks[kind.benchmark]
    before = numbers(run(benchmark, model))
    for change in kind.changes:
        changed = kind.load(files, **change)
        assert changed.identity.key != model.identity.key, change
        after = numbers(run(benchmark, changed))
        assert not np.array_equal(after, before), change
        if change in (HALF, DEVICE):
            np.testing.assert_allclose(after, before, rtol=0.1, atol=0.1)
    if kind.other:
        other = kind.load(files, spec=kind.other)
        # Not by the name alone, which holds the path.
        assert replace(other.identity, name="") != replace(model.identity, name="")
        assert not np.array_equal(numbers(run(benchmark, other)), before) or "detector" in kind.spec


def test_kinds_declare_what_they_do(model):
    assert model.does
    assert set(model.does) <= set(ANSWERS)


def test_batches_of_one_and_of_many_give_equal_scores(kind, model, benchmarks):
    benchmark = benchmarks[kind.benchmark]
    one, many = (numbers(run(benchmark, model, session=Session(batch_size=size))) for size in (1, 64))
    near = NEAR if kind.torch else 0
    np.testing.assert_allclose(one, many, rtol=near, atol=near)


# A gallery keeps its queries in their order.
@pytest.mark.parametrize(
    "kind",
    [param for param, item in zip(_SLOW, KINDS, strict=True) if item.benchmark != "gallery"],
    indirect=True,
    ids=lambda kind: kind.name,
)
def test_scores_do_not_depend_on_the_order_of_the_questions(kind, model, benchmarks):
    benchmark = benchmarks[kind.benchmark]
    order = np.arange(len(benchmark))[::-1]
    before, after = run(benchmark, model), run(benchmark.select(order), model)
    if isinstance(before, Scores):
        before = Scores(before.values[order])
    else:
        before = Outcomes({name: right[order] for name, right in before.right.items()})
    near = NEAR if kind.torch else 1e-12
    np.testing.assert_allclose(numbers(after), numbers(before), rtol=near, atol=near)


#: Kinds whose answers to a question are its items' own: not those that learn, nor tables of other questions.
TABLES = ("given:", "blind:bag", "blind:uni", "blind:lea")
OWN = [item for item in KINDS if item.benchmark == "quads" and not item.spec.startswith(TABLES)]


@pytest.mark.parametrize("kind", OWN, indirect=True, ids=lambda kind: kind.name)
def test_questions_of_different_numbers_of_candidates_are_answered_as_pairs_are(kind, model, benchmarks):
    quads = benchmarks["quads"]
    candidates = np.array([[0, 3, -1, -1], [2, 1, 5, 7], [4, 6, 0, -1]])
    card = quads.card.model_copy(update={"form": "choice"})
    uneven = Choice(("a", "b", "c"), query=np.array([0, 2, 4]), candidates=candidates)
    of, place = np.nonzero(candidates[:, 1:] >= 0)
    pairs = Choice(
        tuple(str(i) for i in range(len(of))),
        query=uneven.query[of],
        candidates=np.stack([candidates[of, 0], candidates[of, place + 1]], axis=1),
    )
    asked = (replace(quads, card=card, questions=questions) for questions in (uneven, pairs))
    result, alone = (run(benchmark, model) for benchmark in asked)
    if isinstance(result, Outcomes):
        right = [alone.outcomes.right["accuracy"][of == i].all() for i in range(3)]
        # What picks is right among few where it is among many.
        assert (result.right["accuracy"] <= right).all()
        return
    near = NEAR if kind.torch else 1e-12
    assert (result.scores[candidates < 0] == -np.inf).all()
    np.testing.assert_allclose(result.scores[of, 0], alone.scores[:, 0], rtol=near, atol=near)
    np.testing.assert_allclose(result.scores[of, place + 1], alone.scores[:, 1], rtol=near, atol=near)


#: Kinds that read so many tokens of a caption and say which captions are longer.
CUTTING = ("open-clip:", "hf:", "itm:", "regions:", "lm:", "text-", "plausibility:", "vqa:", "likelihood:")


@pytest.mark.parametrize(
    "kind",
    [kind for kind in KINDS if kind.spec.startswith(CUTTING)],
    indirect=True,
    ids=lambda kind: kind.name,
)
def test_captions_that_are_cut_off_are_counted(model, benchmarks):
    long = "a red cat " * 1000
    captions = [Caption("0", "a cat"), Caption("1", long), Caption("2", f"{long} on the mat")]
    assert (model.over_limit(captions), model.over_limit([])) == (2, 0)
    image = benchmarks["quads"].images[0]
    if hasattr(model, "embed_captions"):
        rows = model.embed_captions([captions])
    else:
        rows = model.score_pairs([[(image, caption) for caption in captions]])
    _, cut, longer = next(iter(rows))
    np.testing.assert_allclose(cut, longer, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", OF_PAIRS)
def test_a_model_of_pairs_never_looks_at_their_order(name, files, benchmarks):
    model = KINDS[NAMES.index(name)].load(files)
    assert isinstance(model, Model)
    captions, images = (part.reshape(-1) for part in benchmarks["quads"].listed.pairs())
    quads = benchmarks["quads"]
    pairs = [(quads.images[i], quads.captions[c]) for c, i in zip(captions, images, strict=True)]
    every = model.score(*zip(*pairs, strict=True))
    order = np.random.default_rng(0).permutation(len(pairs))
    np.testing.assert_array_equal(model.score(*zip(*[pairs[k] for k in order], strict=True)), every[order])
    # Nor at the pairs beside it, which come twice here, or not at all.
    np.testing.assert_array_equal(model.score(*zip(*(pairs + pairs), strict=True)), np.tile(every, 2))
    np.testing.assert_array_equal(model.score(*zip(pairs[3], strict=True)), every[3:4])


def test_only_models_import_torch(files):
    # One process for all, in which the first kind that imports a model library is named.
    plain = [item for item in KINDS if not (item.torch or item.java)]
    filled = [{name: str(value).format(files) for name, value in item.options.items()} for item in plain]
    named = [(item.name, item.spec.format(files, **SERVERS)) for item in plain]
    specs = [(*names, options) for names, options in zip(named, filled, strict=True)]
    code = (
        "import json, sys\n"
        "from pathlib import Path\n"
        "from counterfoil import catalog\n"
        "from counterfoil.models.base import Options\n"
        "for name, spec, options in json.loads(sys.argv[1]):\n"
        "    options |= {'ids': Path(options['ids'])} if 'ids' in options else {}\n"
        "    catalog.model(spec, Options(**options))\n"
        "    for module in ('torch', 'open_clip', 'transformers'):\n"
        "        assert module not in sys.modules, f'{name} imports {module}'\n"
    )
    done = python("-c", code, json.dumps(specs))
    assert done.returncode == 0, done.stderr
