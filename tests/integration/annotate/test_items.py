"""Items made from tables, pools, builds and benchmarks; what cannot be an item is one line."""

import io
import json
from collections import Counter
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.ImageOps
import pytest
from PIL.PngImagePlugin import PngInfo

from counterfoil import catalog
from counterfoil.annotate.campaign import CampaignRecipe
from counterfoil.annotate.forms.base import WorkItem
from counterfoil.annotate.forms.registry import WORK_FORMS
from counterfoil.annotate.golden import drawn_golden
from counterfoil.annotate.items import QUAD_KINDS, check_items, items_of_benchmark, items_of_table
from counterfoil.annotate.pictures import Pictures
from counterfoil.benchmarks.judgements import gain_of
from counterfoil.benchmarks.records import BytesSource, FileSource, Image
from counterfoil.benchmarks.tables import read_table
from counterfoil.errors import DataError, InputError
from refusals import refuses

COLOURS = ("red", "green", "blue", "white")
PAIR = {"image": "red.png", "caption": "a red square"}
CHOICE = {"images": ["red.png"], "captions": ["a", "b"]}


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Four images, one of them also under another name, and files that are none."""
    folder = tmp_path_factory.mktemp("photos")
    for colour in COLOURS:
        PIL.Image.new("RGB", (8, 8), colour).save(folder / f"{colour}.png")
    (folder / "again.png").write_bytes((folder / "red.png").read_bytes())
    PIL.Image.new("RGB", (8, 8), "red").save(folder / "red.tiff")
    (folder / "text.png").write_text("no image")
    (folder / "empty.png").write_bytes(b"")
    return folder


def form_of(name):
    return WORK_FORMS[name].form({}, where="here")


def made(tmp_path, photos, form, rows, *, kind="json", pictures=None, role="work"):
    path = tmp_path / f"items.{kind}"
    if kind == "json":
        path.write_text(json.dumps(rows))
    else:
        lines = [",".join(rows[0])] + [",".join(f'"{cell}"' for cell in row.values()) for row in rows]
        path.write_text("\n".join(lines) + "\n")
    pictures = Pictures() if pictures is None else pictures
    return items_of_table(read_table(path), form_of(form), pictures, folder=photos, role=role)


def pixels(data):
    """The pixels of an image, whatever its format."""
    with PIL.Image.open(data if isinstance(data, Path) else io.BytesIO(data)) as picture:
        return picture.convert("RGB").tobytes()


def test_images_are_named_by_their_pixels_and_read_when_asked_for(photos):
    pictures = Pictures()

    def add(name, **more):
        return pictures.add(Image(name, FileSource(photos / name), **more))

    (red,) = {add(name) for name in ("red.png", "again.png", "red.tiff")}
    assert pixels(pictures[red]) == pixels(photos / "red.png")
    cropped = add("red.png", crop=(0, 0, 4, 4))
    assert list(pictures) == [red, cropped]
    PIL.Image.new("RGB", (7, 7), "red").save(photos / "changed.png")
    changed = add("changed.png")
    PIL.Image.new("RGB", (9, 9), "red").save(photos / "changed.png")
    with pytest.raises(DataError, match="changed while"):
        pictures[changed]


def test_neither_metadata_nor_the_format_of_an_image_reaches_a_browser(photos):
    noise = PIL.Image.effect_noise((40, 30), 60).convert("RGB")
    info = PngInfo()
    info.add_text("parameters", "a prompt that says what was drawn")
    exif = PIL.Image.Exif()
    exif[0x010F], exif[0x0112] = "a maker of cameras", 6
    noise.save(photos / "drawn.png", pnginfo=info, dpi=(300, 300))
    noise.save(photos / "photo.jpg", exif=exif, comment=b"a comment")
    noise.save(photos / "drawn.webp", lossless=True, exif=exif)
    noise.convert("P").save(photos / "drawn.gif", comment=b"a comment")
    pictures = Pictures()
    for name in ("drawn.png", "photo.jpg", "drawn.webp", "drawn.gif"):
        added = pictures.add(Image(name, FileSource(photos / name)))
        data = pictures[added]
        with PIL.Image.open(io.BytesIO(data)) as shown, PIL.Image.open(photos / name) as given:
            assert (added[-4:], shown.format, shown.mode, shown.info) == (".png", "PNG", "RGB", {})
            # No pixel is lost, and a photograph stands as its file says.
            assert shown.tobytes() == PIL.ImageOps.exif_transpose(given).convert("RGB").tobytes()
        chunks = [data[start : start + 4] for start in range(len(data))]
        assert not {b"tEXt", b"eXIf"} & set(chunks)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF"])
def test_a_picture_that_is_cut_off_is_refused(kind):
    buffer = io.BytesIO()
    PIL.Image.effect_noise((60, 40), 50).convert("RGB").save(buffer, kind)
    for share in (0.3, 0.6, 0.95):
        data = buffer.getvalue()[: int(buffer.tell() * share)]
        refuses("cut off", Pictures().add, Image("cut", BytesSource(data, "cut")))


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_a_table_of_pairs(tmp_path, photos, kind):
    rows = [
        {"id": "a", "filename": "red.png", "text": "a red square", "kind": "colour", "instance": "q"},
        {"id": "b", "filename": "blue.png", "text": "a red square", "kind": "", "instance": "q"},
    ]
    pictures = Pictures()
    result = made(tmp_path, photos, "yes-no", rows, kind=kind, pictures=pictures)
    first, second = result.items
    facts = (first.id, first.kind, first.instance, first.role, first.cells["caption"])
    assert facts == ("a", "colour", "q", "work", "a red square")
    assert pixels(pictures[second.cells["image"]]) == pixels(photos / "blue.png")
    assert result.rows.to_pylist()[1] == {"item": "b", **rows[1]} | {"kind": rows[1]["kind"]}


def test_several_images_in_one_cell_or_in_numbered_columns(tmp_path, photos):
    pictures = Pictures()
    wanted = [pictures.add(Image(name, FileSource(photos / f"{name}.png"))) for name in ("red", "blue")]
    for kind, cells in (
        ("json", {"images": ["red.png", "blue.png"]}),
        ("csv", {"images": "red.png | blue.png"}),
        ("csv", {"image_2": "blue.png", "image_1": "red.png"}),
        ("csv", {"image_1": "red.png", "image_2": "blue.png", "image_3": ""}),
    ):
        rows = [{"caption": "a square", **cells}]
        (item,) = made(tmp_path, photos, "best-of-k", rows, kind=kind, pictures=pictures).items
        assert (item.id, item.cells["images"]) == ("0", wanted)


def test_candidates_of_a_build_become_one_item_per_row(tmp_path, photos):
    rows = [
        {"id": f"{row}#{k}", "of": str(row), "caption": "a white square"}
        | {"negative_caption": f"a square {row}", "negative_image": f"{COLOURS[k + row]}.png"}
        for row in (0, 1)
        for k in (0, 1, 2)
    ]
    result = made(tmp_path, photos, "best-of-k", rows)
    facts = [(item.id, item.cells["caption"], len(item.cells["images"])) for item in result.items]
    assert facts == [("0", "a square 0", 3), ("1", "a square 1", 3)]
    assert result.rows.column("item").to_pylist() == ["0"] * 3 + ["1"] * 3
    assert result.rows.column("id").to_pylist()[3:] == ["1#0", "1#1", "1#2"]
    refuses("candidates without images", made, tmp_path, photos, "best-of-k", [{"of": "0", "caption": "c"}])


def test_a_pair_of_a_pool_is_one_item_whichever_direction_proposed_it(tmp_path, photos):
    proposed = (1, "i2t", "red", "c1"), (2, "i2t", "red", "c2"), (1, "t2i", "c1", "red")
    rows = [{"pair": p, "direction": way, "query": asked, "item": item} for p, way, asked, item in proposed]
    pool = [{**row, "image": "red.png", "caption": f"c{row['pair']}"} for row in rows]
    refuses(r"have no words; name the benchmark", made, tmp_path, photos, "match", pool)
    result = made(tmp_path, photos, "match", [{**row, "text": f"square {row['caption']}"} for row in pool])
    assert {item.id: item.cells["caption"] for item in result.items} == {"1": "square c1", "2": "square c2"}
    assert result.rows.column("item").to_pylist() == ["1", "1", "2"]
    assert result.rows.column("direction").to_pylist() == ["i2t", "t2i", "i2t"]


def test_golden_items_of_a_table(tmp_path, photos):
    rows = [
        {**PAIR, "golden": "100% YES | Partially YES"},
        {**PAIR, "golden": {"match": ["100% NO"], "shortcomings": ["wrong"]}},
        {**PAIR, "golden": '{"match": "Mostly NO"}'},
    ]
    items = made(tmp_path, photos, "match", rows, role="golden").items
    assert {item.id: dict(item.golden) for item in items} == {
        "golden-0": {"match": ["100% YES", "Partially YES"]},
        "golden-1": {"match": ["100% NO"], "shortcomings": ["wrong"]},
        "golden-2": {"match": ["Mostly NO"]},
    }
    mixed = made(tmp_path, photos, "yes-no", [PAIR, {**PAIR, "role": "onboarding", "golden": "yes"}]).items
    assert [(item.id, item.role) for item in mixed] == [("0", "work"), ("onboarding-1", "onboarding")]


def test_right_answers_are_values_or_what_one_option_shows(tmp_path, photos):
    texts = {"images": ["red.png"], "captions": ["a | b", "a blue square", "a blue square"]}
    pictures = {"captions": ["c"], "images": ["red.png", "blue.png"]}
    rows = [
        {**texts, "truth": "0", "golden": "a | b", "role": "golden"},
        {**texts, "truth": "a | b"},
        {**texts, "truth": "1|2"},
        {**pictures, "truth": "blue.png"},
        {**pictures, "truth": 1},
    ]
    items = made(tmp_path, photos, "choose", rows).items
    assert [item.truth for item in items] == ["0", "0", "1|2", "1", "1"]
    assert items[0].golden == {"best": ["0"]}


@pytest.mark.parametrize(
    ("form", "row", "message"),
    [
        ("choose", {**CHOICE, "truth": "c"}, "row 1, column 'truth': no option .*; given: c; allowed: 0"),
        ("choose", {**CHOICE, "captions": ["a", "a"], "truth": "a"}, "given: a; allowed: 0, 1"),
        ("choose", {**CHOICE, "truth": "2"}, "given: 2; allowed: 0, 1"),
        ("yes-no", {**PAIR, "truth": "true"}, "given: true; allowed: yes, no"),
        ("match", {**PAIR, "golden": "yes"}, "of another form; given: yes"),
        ("match", {**PAIR, "golden": {"best": ["1"]}}, "given: best"),
        ("match", {"image": "red.png"}, "no caption; the table has no column caption"),
        ("match", {**PAIR, "caption": ""}, "items.json, row 1: .*no caption"),
        ("match", {**PAIR, "image": ""}, "no image"),
        ("match", {**PAIR, "image": "none.png"}, "no such image; given: none.png; name the folder"),
        ("match", {**PAIR, "image": "text.png"}, "row 1, column 'image': .*text.png: .*not an image file"),
        ("match", {**PAIR, "role": "play"}, "no such role; given: play"),
        ("best-of-k", {"caption": "c", "images": ["red.png"]}, "a choice needs images"),
        ("best-of-k", {"caption": "c", "images": {"a": 1}}, "not a list"),
        ("best-of-k", {"caption": "c", "images": ["red.png", ""]}, "a choice needs images"),
        ("best-of-k", {"caption": "c", "images": "[red"}, "column 'images'.*not valid JSON"),
    ],
)
def test_rows_that_make_no_item(tmp_path, photos, form, row, message):
    refuses(message, made, tmp_path, photos, form, [row], error=InputError)


@cache
def world(name):
    """A benchmark of the world, made once."""
    if name == "videos":
        quads = world("world-quads")
        return replace(quads, card=quads.card.model_copy(update={"shows": "video"}))
    return catalog.benchmark(name)


def of_world(name, form, n, seed=0):
    rng = np.random.default_rng(seed)
    return items_of_benchmark(world(name), form_of(form), Pictures(), sample=n, rng=rng).items


def test_a_quad_has_four_single_directions():
    """BiVLC section 4: 2,000 queries of 500 instances."""
    items = of_world("world-quads", "choose", 6)
    assert Counter(item.kind for item in items) == dict.fromkeys(QUAD_KINDS, 6)
    assert set(Counter(item.instance for item in items).values()) == {4}
    benchmark = world("world-quads")
    slots = dict(zip(benchmark.questions.ids, benchmark.paired.slots()[0].tolist(), strict=True))
    for item in items:
        asked, side = item.kind.split("-")
        texts = [benchmark.captions[i].text for i in slots[item.instance]]
        assert item.truth == side
        assert item.cells["captions"] == (texts if asked == "i2t" else [texts[int(side)]])
        assert len(item.cells["images"]) == (1 if asked == "i2t" else 2)


def test_a_sample_is_drawn_by_the_seed():
    drawn = [{item.id for item in of_world("world-choices", "choose", 9, seed)} for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    with pytest.raises(InputError, match="a sample larger than the benchmark"):
        of_world("world-choices", "choose", 10**6)


def test_all_combinations_of_a_quad_are_asked_as_winoground_does():
    items = of_world("world-quads", "yes-no", 3)
    assert len(items) == 12
    for item in items:
        name, caption, image = item.id.rsplit("_", 2)
        assert name == item.instance
        right = ("yes", "right pair") if caption[1] == image[1] else ("no", "wrong pair")
        assert (item.truth, item.kind) == right


def test_pairs_of_other_forms_of_question():
    assert [item.truth for item in of_world("world-rated", "rating", 5)] == [""] * 5
    choices = of_world("world-choices", "match", 5)
    gains = {(item.id.rpartition("_")[2], gain_of(item.truth)) for item in choices}
    assert gains == {("s0", 1.0), ("s1", 0.0)}
    assert set(of_world("world-quads", "which-image", 2)[0].cells) == {"caption", "image", "negative_image"}


@pytest.mark.parametrize(
    ("name", "form", "message"),
    [
        ("world-gallery", "match", "a gallery asks about no pairs"),
        ("videos", "yes-no", "a campaign shows images"),
        ("world-rated", "choose", "neither quads nor choices"),
        ("world-choices", "which-image", "needs questions with a negative image"),
        ("world-quads", "best-of-k", "takes its items from a table"),
    ],
)
def test_benchmarks_that_a_form_cannot_ask(name, form, message):
    refuses(message, of_world, name, form, 2, error=InputError)


def test_golden_pairs_are_drawn_from_the_gallery():
    """True pairs are right in the gallery; random ones are neither right nor proposed by a model."""
    gallery = world("world-gallery")
    known, form = {image.id: image for image in gallery.images}, form_of("match")
    images = [image.id for image in gallery.images][:40]
    captions = [caption.id for caption in gallery.captions][:40]
    asked = {*zip(images, captions, strict=True), *zip(images, captions[1:] + captions[:1], strict=True)}
    pictures = Pictures()
    items = drawn_golden(gallery, asked, 12, form, pictures, np.random.default_rng(3))
    kinds = Counter((item.role, item.kind) for item in items)
    assert kinds == {("golden", "true pair"): 12, ("golden", "random pair"): 12}
    owners = gallery.gallery.owners
    of_image = {pictures.add(known[name]): name for name in images}
    texts = {caption.text: caption.id for caption in gallery.captions if caption.id in captions}
    owner = {caption.id: gallery.images[owners[i]].id for i, caption in enumerate(gallery.captions)}
    for item in items:
        if item.kind == "random pair":
            image, caption = of_image[item.cells["image"]], texts[item.cells["caption"]]
            assert (image, caption) not in asked
            assert owner[caption] != image
        gains = {gain_of(value) for value in item.golden["match"]}
        assert gains == ({1.0, 0.5} if item.kind == "true pair" else {0.0})
    with pytest.raises(InputError, match="drawn for pairs"):
        drawn_golden(gallery, asked, 1, form_of("rating"), pictures, np.random.default_rng(3))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"design": "blocks", "per_person": 4}, "key 'per_person'.*given: 3 .*allowed: 4 or more"),
        ({"design": "blocks", "per_person": 3, "golden_per_block": 2}, "golden in a block.*given: 1"),
        ({"onboarding": 3}, "key 'onboarding'.*given: 2"),
        ({"golden_share": 0.1, "golden_misses": 2}, "golden.*given: 1"),
    ],
)
def test_fewer_items_than_the_design_needs(values, message):
    work = [WorkItem(str(i), {}, instance=str(i // 2)) for i in range(6)]
    recipe = partial(CampaignRecipe, form="yes-no", title="t")
    others = [WorkItem("g", {}, "golden"), WorkItem("o", {}, "onboarding"), WorkItem("p", {}, "onboarding")]
    refuses(message, check_items, work + others, recipe(**values), error=InputError)
    check_items(work + others, recipe(design="blocks", per_person=3, golden_per_block=1, onboarding=2))
    refuses("items to work on", check_items, others, recipe(), error=InputError)
