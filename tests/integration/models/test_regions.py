"""Cross-encoders on region features: equal to the library's calls, whatever layout they are read from."""

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny_matchers
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.errors import DataError, InputError, ModelError
from counterfoil.models import regions
from counterfoil.models.base import Options
from counterfoil.models.region_files import read_regions
from made_once import made_once

pytestmark = pytest.mark.models

TEXTS = [
    "a cat",
    "two birds sit on a wire",
    "the red dog",
    "a photo of a cat on the mat in a house by the sea",
]
#: Regions per image: they differ, so that some are padded.
COUNTS = {"one": 5, "two": 3, "COCO_val2014_000000000042": 4}
WIDTH, HEIGHT = 60, 40


def drawn() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Features and boxes, in pixels, of each image."""
    rng = np.random.default_rng(3)
    found = {}
    for name, count in COUNTS.items():
        low, side = rng.uniform(0, 20, (count, 2)), rng.uniform(5, 20, (count, 2))
        boxes = np.concatenate([low, low + side], axis=1).astype(np.float32)
        found[name] = rng.normal(size=(count, 12)).astype(np.float32), boxes
    return found


def save_all(folder: Path) -> None:
    """The same regions in every layout."""
    every = drawn()
    size = {"image_w": np.array(WIDTH), "image_h": np.array(HEIGHT)}
    (folder / "each").mkdir()
    for name, (features, boxes) in every.items():
        np.savez(folder / "each" / f"{name}.npz", features=features, boxes=boxes, **size)
    features, boxes = np.zeros((3, 5, 12), np.float32), np.zeros((3, 5, 4), np.float32)
    for at, (some, places) in enumerate(every.values()):
        features[at, : len(some)] = some
        boxes[at, : len(some)] = places / [WIDTH, HEIGHT, WIDTH, HEIGHT]
    np.savez(
        folder / "all.npz",
        image_ids=list(every), features=features, boxes=boxes, num_boxes=list(COUNTS.values()),
    )  # fmt: skip
    six, ten = [], []
    for name, (some, places) in every.items():
        # Bottom-up attention's files know COCO's images by number.
        number = "42" if name.startswith("COCO") else name
        packed = [base64.b64encode(each.tobytes()).decode() for each in (places, some)]
        six.append("\t".join([number, str(WIDTH), str(HEIGHT), str(len(some)), *packed]))
        ten.append("\t".join([name, str(HEIGHT), str(WIDTH), *["-"] * 4, str(len(some)), *packed]))
    (folder / "six.tsv").write_text("\n".join(six) + "\n")
    (folder / "ten.tsv").write_text("\n".join(ten) + "\n")


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny models of regions, and the regions of three images."""
    pytest.importorskip("transformers")

    def make(folder: Path) -> None:
        for name in tiny_matchers.OF_REGIONS:
            tiny_matchers.save(name, folder / name)
        save_all(folder)

    return made_once(tmp_path_factory, "tiny-regions", make)


def loaded(files: Path, name: str, features: str = "each", **settings: str) -> Any:
    place = str(files / features)
    return regions.load(str(files / name), Options(device="cpu", settings={"features": place, **settings}))


def scored(scorer: Any, pairs: list[tuple[Image, Caption]], size: int = 64) -> np.ndarray:
    batches = [pairs[at : at + size] for at in range(0, len(pairs), size)]
    return np.concatenate(list(scorer.score_pairs(batches)))


def listed() -> list[tuple[Image, Caption]]:
    images = [Image(name) for name in COUNTS]
    return [(image, Caption(text, text)) for image in images for text in TEXTS]


def by_the_library(folder: Path, name: str) -> list[float]:
    """Each pair's score as the model's documentation computes it, one pair at a time."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = getattr(transformers, regions.FAMILIES[name].kind).from_pretrained(folder).eval()
    found = []
    with torch.inference_mode():
        for image, caption in listed():
            features, boxes = (torch.tensor(each)[None] for each in drawn()[image.id])
            inputs = tokenizer(caption.text, return_tensors="pt")
            if name == "lxmert":
                places = boxes / torch.tensor([WIDTH, HEIGHT, WIDTH, HEIGHT])
                output = model(**inputs, visual_feats=features, visual_pos=places)
                found.append(float(output.cross_relationship_score.softmax(-1)[0, 1]))
            else:
                output = model(
                    **inputs,
                    visual_embeds=features,
                    visual_token_type_ids=torch.ones(features.shape[:-1], dtype=torch.long),
                    visual_attention_mask=torch.ones(features.shape[:-1]),
                )
                found.append(float(output.seq_relationship_logits.softmax(-1)[0, 0]))
    return found


@pytest.mark.parametrize("name", tiny_matchers.OF_REGIONS)
def test_scores_equal_the_librarys_one_pair_at_a_time(name: str, files: Path) -> None:
    scorer = loaded(files, name)
    assert scorer.needs == ("captions",)
    found = scored(scorer, listed())
    np.testing.assert_allclose(found, by_the_library(files / name, name), rtol=0, atol=1e-5)
    assert np.ptp(found.reshape(3, -1), axis=0).max() > 1e-3
    for size in (1, 5):
        np.testing.assert_allclose(scored(scorer, listed(), size), found, rtol=0, atol=1e-5)


@pytest.mark.parametrize("layout", ["all.npz", "six.tsv", "ten.tsv"])
def test_layouts_give_the_same_scores(layout: str, files: Path) -> None:
    expected, other = loaded(files, "lxmert"), loaded(files, "lxmert", layout)
    np.testing.assert_allclose(scored(other, listed()), scored(expected, listed()), rtol=0, atol=1e-6)
    assert other.identity != expected.identity


def test_the_class_that_means_a_match_can_be_set(files: Path) -> None:
    usual, turned = loaded(files, "visual_bert"), loaded(files, "visual_bert", match="1")
    np.testing.assert_allclose(scored(usual, listed()) + scored(turned, listed()), 1, rtol=0, atol=1e-6)
    assert usual.identity.key != turned.identity.key


# -- bad input --------------------------------------------------------------------------------------------


def refused(files: Path, name: str, features: object, pattern: str, kind: type = DataError) -> None:
    with pytest.raises(kind, match=pattern) as error:
        scored(loaded(files, name, str(features)), listed())
    assert "\n" not in str(error.value)


def test_regions_that_fit_no_image(files: Path) -> None:
    scorer = loaded(files, "lxmert")
    with pytest.raises(DataError, match=r"no regions for image 'three'.*given: three; allowed: COCO_val2014"):
        next(scorer.score_pairs([listed()[:1], [(Image("three"), Caption("0", "a cat"))]]))


def test_regions_that_do_not_fit_the_model(files: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", features=np.ones((2, 7)), boxes=np.zeros((2, 4)))
    refused(
        files, "lxmert", tmp_path, "do not fit the model; given: features 7 wide; allowed: 12", ModelError
    )
    np.savez(tmp_path / "one.npz", features=np.ones((2, 12)))
    refused(files, "lxmert", tmp_path, "have no boxes, which the model reads")
    # VisualBERT reads none.
    assert loaded(files, "visual_bert", str(tmp_path)).matcher.placed is False


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
def test_broken_files_of_an_image(arrays: dict[str, Any], pattern: str, files: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", **arrays)
    refused(files, "lxmert", tmp_path, pattern)


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
def test_broken_tables(text: str, pattern: str, files: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.tsv").write_text(text)
    refused(files, "lxmert", tmp_path / "bad.tsv", pattern)


def test_files_that_are_not_of_regions(files: Path, tmp_path: Path, clip_folder: Path) -> None:
    refused(files, "lxmert", tmp_path, "the folder holds no npz files")
    refused(files, "lxmert", tmp_path / "no.tsv", "no such file")
    (tmp_path / "a.csv").write_text("x")
    refused(files, "lxmert", tmp_path / "a.csv", "unsupported file of regions; given: .csv")
    with pytest.raises(InputError, match="regions of the images are missing; give them with --set features"):
        regions.load(str(files / "lxmert"), Options(device="cpu"))
    with pytest.raises(ModelError, match=r"not a model of image-text matching on regions.*model type clip"):
        loaded(files.parent, str(clip_folder), str(files / "each"))


def test_ids_that_occur_twice_and_arrays_of_other_lengths(tmp_path: Path) -> None:
    features = np.ones((2, 3, 12))
    np.savez(tmp_path / "twice.npz", image_ids=["a", "a"], features=features)
    with pytest.raises(DataError, match="an image occurs twice; given: a"):
        read_regions(tmp_path / "twice.npz")
    np.savez(tmp_path / "other.npz", image_ids=["a", "b", "c"], features=features)
    with pytest.raises(DataError, match=r"given: features \(2, 3, 12\) for 3 image_ids"):
        read_regions(tmp_path / "other.npz")
