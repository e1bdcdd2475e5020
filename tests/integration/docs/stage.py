"""A folder in which the commands of the documentation run: every file that they name, small, under its name.

Weights and photographs that cannot be shipped have stand-ins: a tiny CLIP with random weights, and drawn
pictures. Questions, captions and positives of benchmarks are the released ones where they are at hand.
"""

import csv
import json
import os
import shutil

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq

#: Names of weights on a hub, to the local folder that stands for them.
STAND_INS = {
    "open-clip:ViT-B-32-quickgelu/openai": "hf:./my-clip",
    "itm:Salesforce/blip-itm-base-coco": "itm:./my-blip",
}

#: Rows of the training sets: a recipe's batch, which a page trains on from Python, holds 400.
ROWS = 600

#: Images of COCO's test half, of 5,000: COCO 1K is measured in parts of a thousand.
COCO = 1000

#: Embeddings with a run over COCO 5K and ECCV Caption each.
RUNS = ("blip", "pcme", "vsrn")

WORDS = ("a red cat", "a blue dog", "two small birds", "an old house", "a man on a horse", "a cup on a table")


def build(folder, shared):
    """Write the files into `folder`; `shared` is the folder of real data."""
    import tiny_matchers
    from tiny_families import save_clip

    save_clip(folder / "my-clip")
    tiny_matchers.save("blip", folder / "my-blip")
    photographs(folder / "photos", 12)
    shutil.copytree(shared / "bivlc", folder / "bivlc")
    shutil.copytree(shared / "winoground", folder / "data" / "winoground")
    shutil.copytree(shared / "flickr8k", folder / "data" / "flickr8k")
    os.symlink("data/flickr8k", folder / "flickr8k")
    for name in ("sugarcrepe", "detectors"):
        shutil.copytree(shared / name, folder / "data" / name)
    part_of_coco(shared / "eccv", folder / "data" / "eccv")
    sugarcrepe_photographs(folder)
    winoground_questions(folder / "data" / "winoground")
    bivlc_parquet(folder / "data" / "bivlc" / "test-00000-of-00001.parquet", folder)
    own_pairs(folder)
    campaigns(folder)
    caption_files(folder)
    for name in ("good_captions.json", "refs.json"):
        shutil.copy(shared / "clipscore_example" / name, folder / name)
    files = [shared / "clipscore_example" / f"{name}_captions.json" for name in ("good", "bad")]
    good, bad = (json.loads(file.read_text()) for file in files)
    (folder / "both.json").write_text(json.dumps({name: [good[name], bad[name]] for name in good}))
    for name, seed in (("x", 0), *((name, seed) for seed, name in enumerate(RUNS, 1))):
        coco_embeddings(folder / f"{name}.npz", folder / "data" / "eccv", seed)
    given_similarities(folder)
    coco(folder)
    queries(folder)
    ratings = (folder / "flickr8k" / "ExpertAnnotations.txt").read_text().splitlines()
    flickr = [line.partition("\t")[0] for line in ratings]
    linked(folder / "Flicker8k_Dataset", sorted(set(flickr)), sources(folder, ".jpg"))
    votes(folder / "votes.csv")
    training_files(folder)


def picture(path, seed):
    path.parent.mkdir(parents=True, exist_ok=True)
    squares = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    PIL.Image.fromarray(np.kron(squares, np.ones((8, 8, 1), dtype=np.uint8))).save(path)


def photographs(folder, count):
    for number in range(count):
        picture(folder / f"p{number}.png", number)


def linked(folder, names, sources):
    """Many names for few pictures, as links, so that each is decoded once."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.link(sources[number % len(sources)], folder / name)


def sources(folder, ending):
    made = [folder / ".sources" / f"s{number}{ending}" for number in range(6)]
    for number, path in enumerate(made):
        if not path.exists():
            picture(path, 100 + number)
    return made


def sugarcrepe_photographs(folder):
    names = set()
    for file in sorted((folder / "data" / "sugarcrepe").glob("*.json")):
        names |= {row["filename"] for row in json.loads(file.read_text()).values()}
    linked(folder / "val2017", sorted(names), sources(folder, ".jpg"))


def winoground_questions(folder):
    """Captions and pictures for the released tags; the true ones may not be passed on."""
    names = [f"ex_{row}_img_{k}.png" for row in range(400) for k in (0, 1)]
    linked(folder / "images", names, sources(folder.parent.parent, ".png"))
    with (folder / "tags.csv").open() as file:
        tags = list(csv.DictReader(file))
    with (folder / "examples.jsonl").open("w") as file:
        for row, tag in enumerate(tags):
            number = int(tag.get("id", row))
            line = {
                "id": number,
                "image_0": f"ex_{number}_img_0",
                "image_1": f"ex_{number}_img_1",
                "caption_0": f"{WORDS[row % 6]} near {WORDS[(row + 1) % 6]}",
                "caption_1": f"{WORDS[(row + 1) % 6]} near {WORDS[row % 6]}",
                "tag": tag.get("tag", ""),
                "secondary_tag": tag.get("secondary_tag", ""),
                "num_main_preds": int(tag["num_main_preds"]),
                "collapsed_tag": tag["collapsed_tag"],
            }
            file.write(json.dumps(line) + "\n")


def bivlc_parquet(path, folder):
    """2,933 rows in the hub's layout with the released types; few distinct captions and pictures."""
    pictures = [file.read_bytes() for file in sources(folder, ".jpg")]
    with (folder / "bivlc" / "ViT-B-32.csv").open() as file:
        released = list(csv.DictReader(file))
    columns = {
        "image": [{"bytes": pictures[n % 6], "path": None} for n in range(len(released))],
        "caption": [WORDS[n % 6] + "." for n in range(len(released))],
        "negative_caption": [WORDS[(n + 1) % 6] + "." for n in range(len(released))],
        "negative_image": [{"bytes": pictures[(n + 1) % 6], "path": None} for n in range(len(released))],
        "type": [row["type"] for row in released],
        "subtype": [row["subtype"] for row in released],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def own_pairs(folder):
    rows = (f"p{n}.png,{WORDS[n % 6]} {n},{WORDS[(n + 1) % 6]} {n},p{(n + 1) % 12}.png" for n in range(12))
    lines = ["image,caption,negative_caption,negative_image", *rows]
    (folder / "my.csv").write_text("\n".join(lines) + "\n")


def caption_files(folder):
    """Candidates, references, predictions of three captioners, and what people thought of these."""
    write = lambda name, value: (folder / name).write_text(json.dumps(value))  # noqa: E731
    write("c.json", {f"p{n}": WORDS[n % 6] for n in range(12)})
    references = {f"p{n}": [WORDS[n % 6] + " in a field", WORDS[(n + 1) % 6]] for n in range(12)}
    write("r.json", references)
    for shift, name in enumerate("ABC"):
        write(f"{name}.json", {f"p{n}": WORDS[(n + (n % 3 < shift)) % 6] for n in range(12)})
    write("captions.json", references)
    (folder / "m.csv").write_text("system,M1,M2\nA,0.27,0.32\nB,0.25,0.30\nC,0.19,0.21\n")


def part_of_coco(whole, folder):
    """The first images of COCO's test half, their captions, and the released positives among them."""
    folder.mkdir(parents=True)
    captions = np.load(whole / "coco_test_ids.npy")[: 5 * COCO]
    np.save(folder / "coco_test_ids.npy", captions)
    owners = json.loads((whole / "original_caption_to_image.json").read_text())
    kept = {"caption": set(captions.tolist()), "image": {owners[str(caption)][0] for caption in captions}}
    for file in whole.glob("*.json"):
        _, query, _, answer = file.stem.split("_")
        among = {
            asked: there
            for asked, right in json.loads(file.read_text()).items()
            if int(asked) in kept[query] and (there := [item for item in right if item in kept[answer]])
        }
        (folder / file.name).write_text(json.dumps(among))


def coco_embeddings(path, eccv, seed):
    """Points of images near those of their captions."""
    captions = np.load(eccv / "coco_test_ids.npy")
    owners = json.loads((eccv / "original_caption_to_image.json").read_text())
    owner = {int(caption): int(image[0]) for caption, image in owners.items()}
    images = list(dict.fromkeys(owner[int(c)] for c in captions))
    centre = np.random.default_rng(0).normal(size=(len(images), 16)).astype(np.float32)
    row = {image: n for n, image in enumerate(images)}
    noise = np.random.default_rng(seed + 1)
    near = centre[[row[owner[int(c)]] for c in captions]]
    points = centre + 0.7 * noise.normal(size=centre.shape).astype(np.float32)
    texts = near + 0.7 * noise.normal(size=near.shape).astype(np.float32)
    np.savez(path, images=points, captions=texts, image_ids=np.array(images), caption_ids=captions)


def coco(folder):
    place = folder / "coco"
    shutil.copytree(folder / "data" / "eccv", place)
    owners = json.loads((place / "original_caption_to_image.json").read_text())
    images = list(dict.fromkeys(int(image[0]) for image in owners.values()))
    ids = [(int(number), int(image[0])) for number, image in owners.items()]
    texts = {c: f"{WORDS[c % 6]} beside {WORDS[c % 5]}" for c, _ in ids}
    captions = [{"id": c, "image_id": image, "caption": texts[c]} for c, image in ids]
    records = [{"id": image, "file_name": f"COCO_val2014_{image:012d}.jpg"} for image in images]
    categories = [{"id": k, "name": f"class {k}"} for k in range(1, 81)]
    fixed = {"bbox": [0, 0, 8, 8], "iscrowd": 0}
    classed = [(image, 1 + (image * step) % 80) for image in images for step in (1, 7)]
    objects = [{"id": n, "image_id": i, "category_id": k, **fixed} for n, (i, k) in enumerate(classed)]
    (place / "annotations").mkdir()
    for name, value in (
        ("captions_val2014.json", {"images": records, "annotations": captions}),
        ("instances_val2014.json", {"images": records, "annotations": objects, "categories": categories}),
    ):
        (place / "annotations" / name).write_text(json.dumps(value))
    linked(place / "val2014", [str(record["file_name"]) for record in records], sources(folder, ".jpg"))


def given_similarities(folder):
    """The similarities of x.npz as a matrix and as lists, with the ids of rows and columns."""
    with np.load(folder / "x.npz") as points:
        images, captions = points["images"], points["captions"]
        image_ids, caption_ids = points["image_ids"], points["caption_ids"]
    similarities = (images @ captions.T).astype(np.float16)
    np.save(folder / "similarities.npy", similarities)
    np.savez(folder / "ids.npz", image_ids=image_ids, caption_ids=caption_ids)
    lists = {}
    for name, file, rows, ids, items in (
        ("i2t", "eccv_image_to_caption.json", similarities, image_ids, caption_ids),
        ("t2i", "eccv_caption_to_image.json", similarities.T, caption_ids, image_ids),
    ):
        # The queries of ECCV Caption alone: the page ranks nothing else by these lists.
        asked = {int(query) for query in json.loads((folder / "data" / "eccv" / file).read_text())}
        kept = np.isin(ids, list(asked))
        order = np.argsort(-rows[kept].astype(np.float32), axis=1, kind="stable")[:, :60]
        lists[name] = {str(q): items[row].tolist() for q, row in zip(ids[kept], order, strict=True)}
    (folder / "rankings.json").write_text(json.dumps(lists))


def queries(folder):
    lines = []
    for way, name in (("i2t", "eccv_image_to_caption.json"), ("t2i", "eccv_caption_to_image.json")):
        ids = json.loads((folder / "data" / "eccv" / name).read_text())
        lines += [f"{way}/{key}" for key in list(ids)[:30]]
    (folder / "queries.txt").write_text("\n".join(lines) + "\n")


def judge_pool(folder):
    """What annotators would answer to the pairs of pool.parquet: judged.parquet, here by a fixed rule."""
    table = pq.read_table(folder / "pool.parquet")
    answers = np.array(["100% YES", "Partially YES, but", "Mostly NO, because"])[np.arange(len(table)) % 3]
    pq.write_table(table.append_column("answer", pa.array(answers.tolist())), folder / "judged.parquet")


def votes(path):
    rng = np.random.default_rng(0)
    lines = ["winner,loser,judge"]
    for _ in range(200):
        a, b = rng.choice(4, size=2, replace=False)
        winner, loser = (a, b) if rng.random() < (4 - a) / (8 - a - b) else (b, a)
        lines.append(f"{'ABCD'[winner]},{'ABCD'[loser]},w{rng.integers(12)}")
    path.write_text("\n".join(lines) + "\n")


def training_files(folder):
    """TROHN's two sets in the hub's layout, the photographs they name, and the same as WebDataset shards."""
    import webdataset

    names = [f"{n:012d}.jpg" for n in range(1, ROWS + 1)]
    for place in ("train2017", "coco/train2017"):
        linked(folder / place, names, sources(folder, ".jpg"))
    pictures = [file.read_bytes() for file in sources(folder, ".jpg")]
    for kind in ("Text", "Img"):
        texts = [f"{WORDS[n % 6]} number {n}" for n in range(ROWS)]
        others = [f"{WORDS[(n + 1) % 6]} number {n}" for n in range(ROWS)]
        columns = {"image_id": names, "caption": texts, "negative_caption": others}
        if kind == "Img":
            columns["negative_image"] = [{"bytes": pictures[(n + 1) % 6], "path": None} for n in range(ROWS)]
        for split, part in (("train", slice(0, 500)), ("validation", slice(500, ROWS))):
            path = folder / f"TROHN-{kind}" / "data" / f"{split}-00000-of-00001.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table({name: cells[part] for name, cells in columns.items()}), path)
    (folder / "shards").mkdir()
    with webdataset.TarWriter(str(folder / "shards" / "train-000000.tar")) as tar:
        for n in range(ROWS):
            tar.write({"__key__": f"{n:06d}", "jpg": pictures[n % 6], "txt": f"{WORDS[n % 6]} number {n}"})
    (folder / "recipe.toml").write_text('recipe = "coco"\nbatch_size = 16\nepochs = 1\n')


def campaigns(folder):
    """A campaign for Prolific; a batch of Mechanical Turk, an export of Label Studio."""
    from annotate.mturk_batches import hit, written
    from annotate.small_campaigns import make, pairs

    recipe = {"entry": "prolific", "overlap": 3, "per_person": 20, "pay_per_hour": 12}
    campaign = make(folder / "pairs", pairs(40, golden=4), **recipe)
    written(folder / "results.csv", [hit(number, worker) for number in (1, 2) for worker in ("A1", "A2")])
    kind = {"from_name": "match", "type": "choices"}
    results = [[{**kind, "value": {"choices": [answer]}}] for answer in ("yes", "no")]
    annotations = [{"completed_by": who, "result": result} for who, result in enumerate(results, 1)]
    tasks = [{"data": {"item": item.id}, "annotations": annotations} for item in campaign.items]
    (folder / "export.json").write_text(json.dumps(tasks))
