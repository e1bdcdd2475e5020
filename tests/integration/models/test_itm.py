"""Cross-encoders of transformers: equal to the library's own calls for one pair, image towers run once."""

import base64
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from transformers import AutoImageProcessor, AutoTokenizer

import tiny_matchers
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.errors import DataError, InputError, ModelError, UnknownNameError
from counterfoil.models import itm
from counterfoil.models.base import Options, PairModel
from counterfoil.models.region_files import read_regions
from embedded import scored
from refusals import refuses

CASES = [
    ("blip", "itm"), ("blip", "retrieval"), ("blip", "itc"), ("blip-2", "itm"), ("blip-2", "itc"),
    ("vilt", "itm"), ("flava", "itm"), ("flava", "contrastive"),
]  # fmt: skip

TEXTS = [
    "a cat", "two birds sit on a wire", "the red dog", "a photo of a cat on the mat in a house by the sea",
]  # fmt: skip


def loaded(folder, protocol="", **options):
    settings = {"settings": {"protocol": protocol}} if protocol else {}
    return itm.load(str(folder), Options(device="cpu", **settings, **options))


def by_the_library(folder, name, protocol, pairs):
    """Each pair's score as the model's documentation computes it, one pair at a time."""
    parts = AutoImageProcessor.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    model = getattr(transformers, itm.FAMILIES[name].kind).from_pretrained(folder).eval()

    def blip(image, text):
        inputs = transformers.BlipProcessor(*parts)(images=image, text=text, return_tensors="pt")
        if protocol == "itm":
            return model(**inputs).itm_score.softmax(-1)[0, 1]
        if protocol == "itc":
            return model(**inputs, use_itm_head=False).itm_score[0, 0]
        # As model_zoo/blip_models.py of ARO: 35 tokens, padded in full, [ENC] first.
        tokens = parts[1](text, padding="max_length", truncation=True, max_length=35, return_tensors="pt")
        seen = {"pixel_values": inputs["pixel_values"], "attention_mask": tokens["attention_mask"]}
        cosine = model(input_ids=tokens["input_ids"], **seen, use_itm_head=False).itm_score[0, 0]
        tokens["input_ids"][:, 0] = model.config.text_config.vocab_size - 1
        return model(input_ids=tokens["input_ids"], **seen).itm_score[0, 1] + cosine

    def blip_2(image, text):
        processor = transformers.Blip2Processor(*parts, num_query_tokens=4)
        inputs = processor(images=image, text=text, return_tensors="pt")
        result = model(**inputs, use_image_text_matching_head=protocol == "itm").logits_per_image
        return result.softmax(-1)[0, 1] if protocol == "itm" else result[0, 0]

    def vilt(image, text):
        return model(**transformers.ViltProcessor(*parts)(image, text, return_tensors="pt")).logits[0, 0]

    def flava(image, text):
        padded = {"return_tensors": "pt", "padding": "max_length", "max_length": 77}
        inputs = transformers.FlavaProcessor(*parts)(images=image, text=text, **padded)
        result = model(
            **inputs, input_ids_masked=inputs["input_ids"],
            bool_masked_pos=torch.zeros(1, 16, dtype=torch.bool), skip_unmasked_multimodal_encoder=False,
            return_loss=False,
        )  # fmt: skip
        if protocol == "itm":
            return result.itm_logits.softmax(-1)[0, 1]
        return result.contrastive_logits_per_image[0, 0] / model.flava.logit_scale.exp()

    call = {"blip": blip, "blip-2": blip_2, "vilt": vilt, "flava": flava}[name]
    with torch.inference_mode():
        return [float(call(image.decode(), text)) for image, text in pairs]


def listed(images, texts=TEXTS):
    """Every caption of every image, those of an image one after another."""
    return [(image, Caption(text, text)) for image in images for text in texts]


@pytest.mark.parametrize(("name", "protocol"), CASES)
def test_scores_equal_the_librarys_one_pair_at_a_time(name, protocol, matchers, drawn_images):
    model = loaded(matchers / name, protocol)
    assert isinstance(model, PairModel)
    pairs = listed(drawn_images[:3])
    expected = by_the_library(matchers / name, name, protocol, [(i, c.text or "") for i, c in pairs])
    result = scored(model, pairs)
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-5)
    # Neither the image nor the caption is left out.
    square = result.reshape(3, -1)
    assert np.ptp(square, axis=0).max() > 1e-3
    assert np.ptp(square, axis=1).max() > 1e-3
    for size in (1, 5):
        np.testing.assert_allclose(scored(model, pairs, size), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["blip", "blip-2"])
def test_the_image_tower_runs_once_per_image(name, matchers, drawn_images, monkeypatch):
    model = loaded(matchers / name)
    seen = []
    tower = model.matcher.model.vision_model
    forward = tower.forward

    def counted(pixel_values, **options):
        seen.append(len(pixel_values))
        return forward(pixel_values=pixel_values, **options)

    monkeypatch.setattr(tower, "forward", counted)
    # Twelve pairs in batches of five, which cut the captions of two images in two.
    scored(model, listed(drawn_images[:3]), 5)
    assert sum(seen) == 3


def refused(argument, pattern, kind=ModelError, **options):
    refuses(pattern, itm.load, str(argument), Options(device="cpu", **options), error=kind)


@pytest.fixture
def blip(matchers, tmp_path):
    """A copy of a tiny BLIP that may be damaged."""
    return Path(shutil.copytree(matchers / "blip", tmp_path / "model"))


def test_models_without_a_matching_head(clip_folder, blip):
    refused(clip_folder, "not a model of image-text matching; given: model type clip; allowed: BLIP.*hf:")
    model = transformers.BlipForConditionalGeneration(transformers.BlipConfig.from_pretrained(blip))
    model.save_pretrained(blip)
    refused(blip, "the checkpoint does not fill the model.*missing")


def test_unknown_protocols_and_lengths(matchers):
    said = "unknown protocol; given: retrival; allowed: itc, itm, retrieval; did you mean 'retrieval'"
    refused(matchers / "blip", said, UnknownNameError, settings={"protocol": "retrival"})
    refused(matchers / "vilt", "unknown protocol; given: itc", UnknownNameError, settings={"protocol": "itc"})
    refused(matchers / "vilt", "3 to 40 tokens", InputError, settings={"length": "41"})
    assert loaded(matchers / "blip", "retrieval").identity.options["length"] == 35


def test_missing_files(blip):
    (blip / "preprocessor_config.json").unlink()
    refused(blip, "its image processor cannot be loaded")
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        (blip / name).unlink()
    refused(blip, "its (tokenizer|image processor) (knows no words|cannot be loaded)")


def test_the_retrieval_protocol_needs_an_encoder_token(blip):
    tokenizer = AutoTokenizer.from_pretrained(blip)
    tokenizer.add_tokens(["[DEC]"])
    tokenizer.save_pretrained(blip)
    refused(blip, r"no encoder token \[ENC\]", settings={"protocol": "retrieval"})
    tokenizer.add_tokens(["[ENC]"])
    tokenizer.save_pretrained(blip)
    assert loaded(blip, "retrieval").matcher.encoder_token() == len(tokenizer) - 1


#: Regions per image: they differ, so that some are padded.
COUNTS = {"one": 5, "two": 3, "COCO_val2014_000000000042": 4}

WIDTH, HEIGHT = 60, 40


def drawn():
    """Features and boxes, in pixels, of each image."""
    rng = np.random.default_rng(3)
    result = {}
    for name, count in COUNTS.items():
        low, side = rng.uniform(0, 20, (count, 2)), rng.uniform(5, 20, (count, 2))
        boxes = np.concatenate([low, low + side], axis=1).astype(np.float32)
        result[name] = rng.normal(size=(count, 12)).astype(np.float32), boxes
    return result


def save_all(folder):
    """The same regions in every layout."""
    every = drawn()
    size = {"image_w": np.array(WIDTH), "image_h": np.array(HEIGHT)}
    (folder / "each").mkdir()
    for name, (features, boxes) in every.items():
        np.savez(folder / "each" / f"{name}.npz", features=features, boxes=boxes, **size)
    features, boxes = np.zeros((3, 5, 12), np.float32), np.zeros((3, 5, 4), np.float32)
    for i, (some, places) in enumerate(every.values()):
        features[i, : len(some)] = some
        boxes[i, : len(some)] = places / [WIDTH, HEIGHT, WIDTH, HEIGHT]
    np.savez(
        folder / "all.npz",
        image_ids=list(every), features=features, boxes=boxes, num_boxes=list(COUNTS.values()),
    )  # fmt: skip
    six, ten = [], []
    for name, (some, places) in every.items():
        # Bottom-up attention's files know COCO's images by number.
        number = "42" if name.startswith("COCO") else name
        packed = [base64.b64encode(item.tobytes()).decode() for item in (places, some)]
        six.append("\t".join([number, str(WIDTH), str(HEIGHT), str(len(some)), *packed]))
        ten.append("\t".join([name, str(HEIGHT), str(WIDTH), *["-"] * 4, str(len(some)), *packed]))
    (folder / "six.tsv").write_text("\n".join(six) + "\n")
    (folder / "ten.tsv").write_text("\n".join(ten) + "\n")


@pytest.fixture(scope="module")
def files(matchers, tmp_path_factory):
    """Tiny models of regions, and the regions of three images."""
    folder = tmp_path_factory.mktemp("regions")
    for name in tiny_matchers.OF_REGIONS:
        (folder / name).symlink_to(matchers / name)
    save_all(folder)
    return folder


def reading(files, name, features="each", **settings):
    settings["features"] = str(files / features)
    return itm.load_regions(str(files / name), Options(device="cpu", settings=settings))


def named():
    return [(image, Caption(text, text)) for image in [Image(name) for name in COUNTS] for text in TEXTS]


def by_the_docs(folder, name):
    """Each pair's score as the model's documentation computes it, one pair at a time."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = getattr(transformers, itm.REGION_FAMILIES[name].kind).from_pretrained(folder).eval()
    result = []
    with torch.inference_mode():
        for image, caption in named():
            features, boxes = (torch.tensor(item)[None] for item in drawn()[image.id])
            inputs = tokenizer(caption.text, return_tensors="pt")
            if name == "lxmert":
                places = boxes / torch.tensor([WIDTH, HEIGHT, WIDTH, HEIGHT])
                output = model(**inputs, visual_feats=features, visual_pos=places)
                result.append(float(output.cross_relationship_score.softmax(-1)[0, 1]))
            else:
                there = {"visual_token_type_ids": torch.ones(features.shape[:-1], dtype=torch.long)}
                there |= {"visual_attention_mask": torch.ones(features.shape[:-1])}
                output = model(**inputs, visual_embeds=features, **there)
                result.append(float(output.seq_relationship_logits.softmax(-1)[0, 0]))
    return result


@pytest.mark.parametrize("name", tiny_matchers.OF_REGIONS)
def test_scores_on_regions_equal_the_librarys(name, files):
    model = reading(files, name)
    assert model.needs == ("captions",)
    result = scored(model, named())
    np.testing.assert_allclose(result, by_the_docs(files / name, name), rtol=0, atol=1e-5)
    assert np.ptp(result.reshape(3, -1), axis=0).max() > 1e-3
    for size in (1, 5):
        np.testing.assert_allclose(scored(model, named(), size), result, rtol=0, atol=1e-5)


@pytest.mark.parametrize("layout", ["all.npz", "six.tsv", "ten.tsv"])
def test_layouts_give_the_same_scores(layout, files):
    expected, other = reading(files, "lxmert"), reading(files, "lxmert", layout)
    np.testing.assert_allclose(scored(other, named()), scored(expected, named()), rtol=0, atol=1e-6)
    assert other.identity != expected.identity


def test_the_class_that_means_a_match_can_be_set(files):
    usual, turned = reading(files, "visual_bert"), reading(files, "visual_bert", match="1")
    np.testing.assert_allclose(scored(usual, named()) + scored(turned, named()), 1, rtol=0, atol=1e-6)
    assert usual.identity.key != turned.identity.key


def broken(files, name, features, pattern, kind=DataError):
    refuses(pattern, lambda: scored(reading(files, name, str(features)), named()), error=kind)


def test_regions_that_fit_neither_image_nor_model(files, tmp_path):
    pairs = [named()[:1], [(Image("three"), Caption("0", "a cat"))]]
    words = r"no regions for image 'three'.*given: three; allowed: COCO_val2014"
    refuses(words, next, reading(files, "lxmert").score_pairs(pairs))
    np.savez(tmp_path / "one.npz", features=np.ones((2, 7)), boxes=np.zeros((2, 4)))
    broken(files, "lxmert", tmp_path, "do not fit the model; given: features 7 wide; allowed: 12", ModelError)
    np.savez(tmp_path / "one.npz", features=np.ones((2, 12)))
    broken(files, "lxmert", tmp_path, "have no boxes, which the model reads")
    # VisualBERT reads none.
    assert reading(files, "visual_bert", str(tmp_path)).matcher.placed is False


@pytest.mark.parametrize(
    ("arrays", "pattern"),
    [
        ({"boxes": np.zeros((2, 4))}, "has no array 'features'; given: boxes"),
        ({"features": np.ones(12)}, r"no table of features; given: \(12,\)"),
        ({"features": np.full((2, 12), np.nan)}, "not finite"),
        ({"features": np.ones((2, 12)), "boxes": np.zeros((3, 4))}, r"boxes do not fit the features"),
        ({"features": np.ones((2, 12)), "boxes": np.full((2, 4), 9)}, "outside of the image.*image_w"),
    ],
)
def test_broken_files_of_an_image(arrays, pattern, files, tmp_path):
    np.savez(tmp_path / "one.npz", **arrays)
    broken(files, "lxmert", tmp_path, pattern)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("a\tb\n", "line 1: a line of another number of columns; given: 2"),
        ("a\t1\t1\t1\tAAAA\tAAAA\n", "not a line of regions|do not fit their number"),
        ("a\t1\t1\tx\tAAAA\tAAAA\n", "line 1: not a line of regions"),
        ("a\t1\t1\t1\tA\tA\na\t1\t1\t1\tA\tA\n", "an image occurs twice; given: a"),
        ("\n", "holds no regions"),
    ],
)
def test_broken_tables(text, pattern, files, tmp_path):
    (tmp_path / "bad.tsv").write_text(text)
    broken(files, "lxmert", tmp_path / "bad.tsv", pattern)


def test_files_that_are_not_of_regions(files, tmp_path, clip_folder):
    broken(files, "lxmert", tmp_path, "the folder holds no npz files")
    broken(files, "lxmert", tmp_path / "no.tsv", "no such file")
    (tmp_path / "a.csv").write_text("x")
    broken(files, "lxmert", tmp_path / "a.csv", "unsupported file of regions; given: .csv")
    with pytest.raises(InputError, match="regions of the images are missing; give them with --set features"):
        itm.load_regions(str(files / "lxmert"), Options(device="cpu"))
    with pytest.raises(ModelError, match=r"not a model of image-text matching on regions.*model type clip"):
        reading(files.parent, str(clip_folder), str(files / "each"))


def test_ids_that_occur_twice_and_arrays_of_other_lengths(tmp_path):
    features = np.ones((2, 3, 12))
    np.savez(tmp_path / "twice.npz", image_ids=["a", "a"], features=features)
    refuses("an image occurs twice; given: a", read_regions, tmp_path / "twice.npz")
    np.savez(tmp_path / "other.npz", image_ids=["a", "b", "c"], features=features)
    refuses(r"given: features \(2, 3, 12\) for 3 image_ids", read_regions, tmp_path / "other.npz")
