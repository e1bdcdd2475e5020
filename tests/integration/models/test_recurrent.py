"""Networks that train from scratch: equal to the papers' steps one by one, trainable, and as checkpoints."""

import numpy as np
import pytest
import torch

import counterfoil as cf
from contracts import forms
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.errors import DataError, InputError, ModelError
from counterfoil.models import checkpoint, networks, pcme, recurrent, small
from counterfoil.models.base import Options
from counterfoil.models.lazy import LazyEmbedder, lazy
from counterfoil.models.region_files import read_regions
from counterfoil.train.images import BatchImages, ImageStore, say_unreadable
from refusals import refuses

CAPTIONS = ["A red star is above a moon.", "Two blue boxes, and nothing else."]
TINY = small.Sizes(picture=32, channels=(4, 8), words=8, width=12)


def pictures(n):
    return list(np.random.default_rng(0).integers(0, 256, (n, 32, 32, 3), dtype=np.uint8))


def made(kind):
    backbone = recurrent.backbone(CAPTIONS, kind=kind, sizes=TINY, seed=3)
    backbone.network.eval()
    for parameter in backbone.network.parameters():
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
    return backbone


def test_a_caption_is_the_state_at_its_last_word():
    backbone = made("vse")
    tower = backbone.network.text
    with torch.no_grad():
        result = backbone.network.encode_texts(backbone.tokens(["a red star", CAPTIONS[0] * 3])).points[0]
        state = torch.zeros(1, 12)
        cell = torch.nn.GRUCell(8, 12)
        weights = {name.removesuffix("_l0"): tensor for name, tensor in tower.gru.state_dict().items()}
        cell.load_state_dict(weights)
        # One word after the other, without any padding.
        for word in backbone.tokens(["a red star"])[0]:
            state = cell(tower.embedding(word)[None], state)
        state = tower.projection(state)
    assert torch.allclose(result, state[0], atol=1e-6)


@pytest.mark.parametrize("kind", recurrent.KINDS)
def test_every_parameter_takes_part(kind):
    backbone = made(kind)
    answer = backbone.network(backbone.pixels(pictures(2)), backbone.tokens(CAPTIONS))
    image, text = (torch.nn.functional.normalize(side.points, dim=-1) for side in answer[:2])
    torch.nn.functional.cross_entropy(answer.logit_scale.exp() * image @ text.T, torch.arange(2)).backward()
    assert all(one.grad is not None and one.grad.any() for one in backbone.network.parameters())
    # Of pictures the cells are regions.
    assert answer.images.points.shape == (2, 12)
    assert backbone.network.local_images(backbone.pixels(pictures(2))).tokens.shape[:2] == (2, 16)


def write_regions(path, features):
    """One npz file of all images; those with fewer regions are padded with numbers that nothing may read."""
    most = max(map(len, features.values()))
    rows = np.full((len(features), most, next(iter(features.values())).shape[1]), 7, np.float32)
    for row, result in zip(rows, features.values(), strict=True):
        row[: len(result)] = result
    counts = [len(result) for result in features.values()]
    np.savez(path, image_ids=list(features), features=rows, num_boxes=counts)
    return path


@pytest.fixture
def regions(tmp_path):
    rng = np.random.default_rng(5)
    result = {name: rng.normal(size=(n, 6)).astype(np.float32) for name, n in (("a", 4), ("b", 2), ("c", 1))}
    return write_regions(tmp_path / "regions.npz", result)


def on_regions(kind, regions):
    return recurrent.backbone(CAPTIONS, kind=kind, sizes=TINY, seed=3, regions=read_regions(regions))


@pytest.mark.parametrize("kind", recurrent.KINDS)
def test_regions_are_related_pair_by_pair_and_read_in_order_and_padded_ones_change_nothing(kind, regions):
    backbone = on_regions(kind, regions)
    tower = backbone.network.visual.eval()
    if kind == "vsrn":
        for layer in tower.relations:
            torch.nn.init.ones_(layer.norm.weight)
    features = [backbone.preparation.read(Image(name)) for name in "abc"]
    with torch.no_grad():
        together = tower(backbone.pixels(features))
        for row, own in enumerate(features):
            inputs = torch.from_numpy(own)
            if kind == "vse":
                expected = tower.projection(inputs.mean(dim=0))
            else:
                places = [torch.nn.functional.normalize(tower.projection(region), dim=0) for region in inputs]
                for layer in tower.relations:
                    before = list(places)
                    for i, place in enumerate(before):
                        weights = [layer.queries(place) @ layer.keys(other) / len(before) for other in before]
                        seen = sum(w * layer.values(other) for w, other in zip(weights, before, strict=True))
                        places[i] = place + layer.norm(layer.out(seen))
                state = torch.zeros(1, 1, 12)
                for place in places:
                    _, state = tower.gru(torch.nn.functional.normalize(place, dim=0)[None, None], state)
                expected = tower.norm(state[0, 0])
            assert torch.allclose(together.whole[row], expected, atol=1e-5)
            assert (~together.nothing[row]).sum() == len(own)


def test_a_training_on_regions_is_measured_above_chance_on_images_that_are_not_at_hand(tmp_path):
    # What is in an image is one of eight things, and its caption names it.
    shown = {f"row-{i}": i % 8 for i in range(64)} | {f"new-{i}": i % 8 for i in range(24)}
    features = {name: np.eye(8, dtype=np.float32)[[thing, thing]] for name, thing in shown.items()}
    lines = [f"{name},a w{thing}" for name, thing in shown.items() if name.startswith("row")]
    (tmp_path / "rows.csv").write_text("\n".join(["image,caption", *lines]) + "\n")
    captions = [Caption(f"{i}/{k}", f"a w{(i + k) % 8}") for i in range(24) for k in (0, 1)]
    benchmark = forms.choices_of([Image(f"new-{i}") for i in range(24)], captions)
    path = write_regions(tmp_path / "regions.npz", features)

    def trained(*, regions, steps=50, **more):
        return cf.train_model(
            "vse++-warm", "vse", tmp_path / "rows.csv",
            regions=regions, out=tmp_path / "ckpt", validation_share=0, workers=0, cache=None, quiet=True,
            changed={"steps": steps, "batch_size": 16, "lr": 5e-3, "select": "last", **more},
        )  # fmt: skip

    with pytest.raises(InputError, match=r"read as they are.*--set augment=none"):
        trained(regions=path, augment="crop-flip")
    trained(regions=path)
    settings = {"regions": str(path)}
    model = cf.load_model(f"ckpt:{tmp_path / 'ckpt'}", device="cpu", settings=settings, cache=None)
    assert cf.evaluate(model, benchmark, cache=None, quiet=True).result["accuracy"].value > 0.9
    # Other regions are other data to go on with.
    other = write_regions(tmp_path / "other.npz", {name: 2 * rows for name, rows in features.items()})
    refuses("other training data", trained, regions=other, error=InputError)


def scores(model, names):
    images = next(iter(model.embed_images([[Image(name) for name in names]])))
    return images @ next(iter(model.embed_captions([[Caption(text, text) for text in CAPTIONS]]))).T


def test_regions_are_found_by_id_and_named_where_they_are_missing(regions, tmp_path):
    folder = tmp_path / "ckpt"
    checkpoint.save(folder, on_regions("vsrn", regions), {})

    def loaded(path=regions, argument=folder):
        given = {} if path is None else {"regions": str(path)}
        return checkpoint.load(str(argument), Options(device="cpu", settings=given))

    alone, together = (scores(loaded(), names) for names in ("b", "abc"))
    np.testing.assert_allclose(alone[0], together[1], atol=1e-6)
    # What is remembered of it knows that no picture is opened.
    options = Options(settings={"regions": str(regions)})
    asked = [lazy("ckpt", str(folder), options, lambda *_: loaded(), tmp_path) for _ in range(2)]
    assert isinstance(asked[1], LazyEmbedder)
    assert asked[0].needs == asked[1].needs == ("captions",)
    refuses(r"regions of the images are missing.*--set regions=PATH", loaded, None, error=InputError)
    refuses("no regions for image 'd'", scores, loaded(), "d")
    wide = write_regions(tmp_path / "wide.npz", {"a": np.ones((2, 9), np.float32)})
    refuses("9 wide; allowed: 6 wide", loaded, wide, error=ModelError)
    checkpoint.save(tmp_path / "pixels", made("vse"), {})
    refuses("reads pixels and no regions", loaded, argument=tmp_path / "pixels", error=InputError)
    refuses("a detector looks at pictures", networks.detector, on_regions("vse", regions), error=InputError)


def test_rows_of_images_without_regions_are_left_out_where_that_is_asked_for(regions):
    images = [Image(name) for name in "adb"]
    reader = on_regions("vse", regions).preparation
    with pytest.raises(DataError, match=r"no regions for image 'd'.*allowed: a, b, c, … \(3 in all\)"):
        ImageStore(images, np.arange(3), reader)
    store = ImageStore(images, np.arange(3), reader, skip=True)
    assert store.unreadable == (1,)
    said = []
    say_unreadable(images, store.unreadable, 4, said.append, preparation=reader)
    assert said[0].startswith("1 image cannot be read, 4 rows are left out:")
    assert "no regions for image 'd'" in said[0]
    # Regions of different numbers are read when their turn comes.
    (batch,) = store.batches([BatchImages(np.array([0, 2]))])
    assert [item.shape for item in batch] == [(4, 6), (2, 6)]
    # Heads stand on networks of regions.
    backbone = pcme.pvse(on_regions("vsrn", regions), heads=2)
    assert tuple(backbone.network.encode_images(backbone.pixels(batch)).points.shape) == (2, 2, 12)


@pytest.fixture
def tiny():
    backbone = small.backbone(CAPTIONS, sizes=TINY, seed=3)
    backbone.network.eval()
    return backbone


def test_words_differ_by_letters_and_not_by_case(tiny):
    text = " ".join(CAPTIONS).lower().replace(".", " .").replace(",", " ,")
    words = set(text.split())
    assert sorted(tiny.tokens([" ".join(sorted(words))])[0].tolist()) == list(range(2, 2 + len(words)))
    assert tiny.tokens(["RED Star"]).tolist() == tiny.tokens(["red star"]).tolist()
    # What it never heard is one word to it, and nothing at all is that word too.
    assert tiny.tokens(["green", "purple", ""]).tolist() == [[1], [1], [1]]


def test_padding_changes_no_text_and_order_and_place_matter(tiny):
    with torch.no_grad():
        alone = tiny.network.encode_texts(tiny.tokens(["a red star"])).points
        beside = tiny.network.encode_texts(tiny.tokens(["a red star", CAPTIONS[0] * 3])).points[:1]
        turned = tiny.tokens(["a red star above a moon", "a moon above a red star"])
        one, other = tiny.network.encode_texts(turned).points
        picture = pictures(1)[0]
        upright, turned = tiny.network.encode_images(tiny.pixels([picture, picture[::-1]])).points
    assert torch.allclose(alone, beside, atol=1e-6)
    assert not torch.allclose(one, other, atol=1e-4)
    assert not torch.allclose(upright, turned, atol=1e-4)


def test_pixels_are_centred_bytes_and_places_are_of_one_pass(tiny):
    black, white = np.zeros((32, 32, 3), np.uint8), np.full((32, 32, 3), 255, np.uint8)
    values = tiny.pixels([black, white])
    assert (tuple(values.shape), values[0].unique().tolist()) == ((2, 3, 32, 32), [-2.0])
    assert values[1].unique().tolist() == [2.0]
    assert torch.equal(values, tiny.pixels(np.stack([black, white])))
    # The whole and its places come from one pass.
    with torch.no_grad():
        local = tiny.network.local_images(tiny.pixels(pictures(2)))
        text = tiny.network.local_texts(tiny.tokens(["a red star", "a moon"]))
        assert torch.equal(local.whole, tiny.network.encode_images(tiny.pixels(pictures(2))).points)
    assert tuple(local.tokens.shape) == (2, 4 * 4, 8)
    assert text.nothing is not None
    assert text.nothing.tolist() == [[False, False, False], [False, False, True]]


def test_a_seed_decides_the_weights_and_touches_no_other_randomness():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, again, other = (small.backbone(CAPTIONS, sizes=TINY, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    for name, weights in first.network.named_parameters():
        assert torch.equal(weights, again.network.get_parameter(name)), name
    assert not torch.equal(first.network.projections()[0], other.network.projections()[0])


@pytest.mark.parametrize(("picture", "channels"), [(30, (4, 8)), (4, (4, 8)), (48, (4,))])
def test_pictures_that_cannot_be_cut_are_refused(picture, channels):
    refuses("cannot be cut into patches", small.Sizes, picture=picture, channels=channels, error=InputError)
