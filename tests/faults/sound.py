"""A folder of small sound inputs, one of every kind of file that a command reads.

The corpus and the campaign copy it, damage one file of it, and run a command that reads that file.
"""

import csv
import json
from pathlib import Path

import av
import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq

from faults.command import run
from faults.files import write_csv
from tar_shards import write_tar
from tiny_families import save_clip

N = 12
COLOURS = ("red", "green", "blue", "yellow")


def make(folder: Path) -> None:
    """Write everything; commands that make an input (benchmarks, runs, checkpoints) are run for it."""
    folder.mkdir(parents=True, exist_ok=True)
    _pictures(folder)
    _tables(folder)
    _galleries(folder)
    _captions(folder)
    _people(folder)
    _verified(folder)
    _training(folder)
    _published(folder)
    _videos(folder)
    _made_by_commands(folder)
    _campaign(folder)


def _pictures(folder: Path) -> None:
    (folder / "photos").mkdir()
    rng = np.random.default_rng(0)
    for name in ("p{}.png", "n{}.png", "j{}.jpg"):
        for i in range(N):
            pixels = rng.integers(0, 255, (16, 16, 3), dtype=np.uint8)
            PIL.Image.fromarray(pixels).save(folder / "photos" / name.format(i))


def _tables(folder: Path) -> None:
    rows = [
        {
            "image": f"p{i}.png",
            "caption": f"a {COLOURS[i % 4]} square number {i}",
            "negative_caption": f"a {COLOURS[(i + 1) % 4]} square number {i}",
            "negative_image": f"n{i}.png",
        }
        for i in range(N)
    ]
    write_csv(folder / "pairs.csv", rows)
    write_csv(folder / "pairs.tsv", rows, delimiter="\t")
    (folder / "pairs.json").write_text(json.dumps(rows))
    (folder / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, folder / "pairs.parquet")
    with (
        pa.OSFile(str(folder / "pairs.arrow"), "wb") as file,
        pa.ipc.new_stream(file, table.schema) as stream,
    ):
        stream.write_table(table)
    kept = ("caption", "negative_caption")
    jpegs = [{"image": f"j{i}.jpg", **{name: row[name] for name in kept}} for i, row in enumerate(rows)]
    write_csv(folder / "jpegs.csv", jpegs)
    rng = np.random.default_rng(1)
    names = [f"c{c}_i{j}" for c in (0, 1) for j in (0, 1)]
    scores = [{"id": str(i), **{name: round(float(rng.normal()), 3) for name in names}} for i in range(N)]
    write_csv(folder / "scores.csv", scores)
    (folder / "scores.json").write_text(json.dumps(scores))
    (folder / "scores.jsonl").write_text("\n".join(map(json.dumps, scores)))
    pq.write_table(pa.Table.from_pylist(scores), folder / "scores.parquet")
    write_csv(folder / "outcomes.csv", [{"id": str(i), "correct": i % 2} for i in range(N)])


def _galleries(folder: Path) -> None:
    """Embeddings of the world's gallery come later, when its ids are known; here COCO's layout."""
    images = [{"id": i, "file_name": f"p{i}.png"} for i in range(N)]
    annotations = [{"id": 100 + i, "image_id": i // 2, "caption": f"caption {i}"} for i in range(2 * N)]
    (folder / "coco.json").write_text(json.dumps({"images": images, "annotations": annotations}))
    judged = [{"image": f"p{i}.png", "caption": f"caption {i}", "gain": 1} for i in range(N)]
    write_csv(folder / "judged_pairs.csv", judged)
    own = {"question": "match", "seconds": 4, "kind": "a"}
    given = [(i, person) for i in range(N) for person in ("p", "q")]
    answers = [{"item": f"i{i}", "person": person, "answer": i % 3, **own} for i, person in given]
    write_csv(folder / "judgements.csv", answers)


def _captions(folder: Path) -> None:
    words = {f"p{i}": f"a {COLOURS[i % 4]} thing on a table" for i in range(N)}
    (folder / "candidates.json").write_text(json.dumps(words))
    samples = [{"image_id": key, "caption": f"{text} {k}"} for key, text in words.items() for k in range(3)]
    (folder / "samples.jsonl").write_text("\n".join(map(json.dumps, samples)))
    several = [{"image_id": key, "caption": [text, f"{text} too"]} for key, text in words.items()]
    pq.write_table(pa.Table.from_pylist(several), folder / "samples.parquet")
    references = {key: [f"there is {text}", text.replace("thing", "box")] for key, text in words.items()}
    (folder / "references.json").write_text(json.dumps(references))
    for name, word in (("systemA", "thing"), ("systemB", "car")):
        entries = [{"image_id": k, "caption": t.replace("thing", word)} for k, t in words.items()]
        (folder / f"{name}.json").write_text(json.dumps(entries))
    humans = [{"system": name, "M1": 0.5 + 0.1 * k} for k, name in enumerate(("systemA", "systemB"))]
    write_csv(folder / "humans.csv", humans)
    rng = np.random.default_rng(2)
    ids = [*words, *(f"{key}#{j}" for key in words for j in (0, 1))]
    np.savez(
        folder / "vectors.npz",
        images=rng.normal(size=(N, 6)).astype(np.float32),
        captions=rng.normal(size=(len(ids), 6)).astype(np.float32),
        image_ids=np.array(list(words)),
        caption_ids=np.array(ids),
    )
    (folder / "features").mkdir()
    for key in words:
        np.save(folder / "features" / f"{key}.npy", rng.normal(size=(3, 6)).astype(np.float32))


def _people(folder: Path) -> None:
    pairs = ["xy", "yz", "xz", "zy", "yx"] * 4
    votes = [{"winner": a, "loser": b, "judge": f"j{k % 5}"} for k, (a, b) in enumerate(pairs)]
    write_csv(folder / "votes.csv", votes)
    (folder / "votes.json").write_text(json.dumps(votes))
    (folder / "square.csv").write_text("name,x,y\nx,0,3\ny,2,0\n")
    hits = [
        {
            "HITId": f"3H{k // 2}",
            "AssignmentId": f"3A{k}",
            "WorkerId": f"A{k % 3}",
            "AssignmentStatus": "Submitted",
            "WorkTimeInSeconds": "61",
            **{f"Input.item{n}": f"pair {k // 2}-{n}" for n in (1, 2)},
            **{f"Answer.answer{n}": ("yes", "no")[(k + n) % 2] for n in (1, 2)},
        }
        for k in range(6)
    ]
    write_csv(folder / "hits.csv", hits)
    region = {"from_name": "match", "to_name": "image", "type": "choices", "value": {"choices": ["yes"]}}
    annotations = [{"id": 1, "completed_by": 7, "lead_time": 2.5, "result": [region]}]
    tasks = [{"id": k, "data": {"item": f"pair {k}"}, "annotations": annotations} for k in range(4)]
    (folder / "annotated.json").write_text(json.dumps(tasks))


def _verified(folder: Path) -> None:
    """What people said of the rows of pairs.csv: answers, and a verified sample."""
    asked = [(i, f"person {k}") for i in range(N) for k in range(3)]
    said = [{"id": i, "annotator": who, "answer": "yes" if i % 3 else "no"} for i, who in asked]
    write_csv(folder / "answers.csv", said)
    write_csv(folder / "verified.csv", [{"id": i, "right": "yes" if i % 3 else "no"} for i in range(N)])


def _training(folder: Path) -> None:
    named = [(f"p{i}.png", f"a {COLOURS[i % 4]} square") for i in range(N)]
    rows = [{"image": image, "caption": text, "negative_caption": "a blue car"} for image, text in named]
    write_csv(folder / "rows.csv", rows)
    members = []
    for i in range(N):
        members += [(f"k{i}.png", (folder / "photos" / f"p{i}.png").read_bytes())]
        members += [(f"k{i}.txt", b"a square %d" % i), (f"k{i}.json", b'{"negative_caption": "a car"}')]
    write_tar(folder / "shard-000.tar", members)
    lines = ['base = "negclip"', "batch_size = 4", "epochs = 1", "lr = 1e-3", "", "[run]", 'model = "small"']
    lines += ['data = "rows.csv"', 'images = "photos"', ""]
    (folder / "recipe.toml").write_text("\n".join(lines))


def _published(folder: Path) -> None:
    """Small files in the layouts of published benchmarks and of a published file of scores."""
    (folder / "flickr8k").mkdir()
    captions, ratings = [], []
    for i in range(N):
        captions += [f"p{i}.png#{j}\ta {COLOURS[(i + j) % 4]} thing number {i} ." for j in (0, 1)]
        ratings.append(f"p{i}.png\tp{(i + 1) % N}.png#0\t{i % 4 + 1}\t{(i + 1) % 4 + 1}\t{i % 3 + 1}")
    (folder / "flickr8k" / "Flickr8k.token.txt").write_text("\n".join(captions) + "\n")
    (folder / "flickr8k" / "ExpertAnnotations.txt").write_text("\n".join(ratings) + "\n")
    (folder / "sugarcrepe").mkdir()
    for name in ("add_att", "add_obj", "replace_att", "replace_obj", "replace_rel", "swap_att", "swap_obj"):
        cells = [(f"p{i}.png", f"a red thing {i}", f"a blue thing {i}") for i in range(4)]
        columns = ("filename", "caption", "negative_caption")
        questions = {str(i): dict(zip(columns, row, strict=True)) for i, row in enumerate(cells)}
        (folder / "sugarcrepe" / f"{name}.json").write_text(json.dumps(questions))
    rng = np.random.default_rng(4)
    (folder / "released" / "detectors").mkdir(parents=True)
    drawn = [(float(rng.random()), float(rng.random())) for _ in range(2 * N)]
    outputs = [{"text_pred": t, "img_pred": i, "label": float(k % 2)} for k, (t, i) in enumerate(drawn)]
    write_csv(folder / "released" / "detectors" / "bivlc_CLIP_baseline.csv", outputs)


def _videos(folder: Path) -> None:
    (folder / "videos").mkdir()
    rng = np.random.default_rng(3)
    for i in range(3):
        with av.open(str(folder / "videos" / f"v{i}.mp4"), "w") as file:
            stream = file.add_stream("mpeg4", rate=5)
            stream.width = stream.height = 32
            stream.pix_fmt = "yuv420p"
            for _ in range(10):
                pixels = rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)
                file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
            file.mux(stream.encode())
    save_clip(folder / "clip")
    (folder / "told.json").write_text(json.dumps({f"v{i}": f"a red square number {i}" for i in range(3)}))


def _made_by_commands(folder: Path) -> None:
    for kind in ("quads", "gallery", "rated", "preferences", "training"):
        out = {"gallery": "album"}.get(kind, kind)
        called(folder, f"world build {kind} --n 12 --size 32 --out {out}")
    _embeddings(folder)
    for name, model in (("a", "pixels:colours"), ("b", "blind:random")):
        called(folder, f"evaluate {model} quads --out runs/{name} --draws 100")
    for name in ("g1", "g2", "g3"):
        called(folder, f"evaluate embeddings:{name}.npz album --out galleries/{name} --draws 100")
    called(folder, "pool galleries/g1 galleries/g2 --k 3 --out pool.csv")
    _judge(folder)
    for name, seed in (("first", ""), ("second", "--seed 7")):
        called(
            folder,
            f"train coco --model small --data rows.csv --images photos --out {name} --steps 2 --batch-size 4 "
            f"--workers 0 --device cpu {seed}",
        )


def _campaign(folder: Path) -> None:
    called(folder, "annotate create yes-no --from pairs.csv --images photos --overlap 2 -q --out unasked")
    called(folder, "annotate simulate unasked --people 3 --quiet --keep campaign")


def _embeddings(folder: Path) -> None:
    images = pq.read_table(folder / "album" / "images.parquet").column("id").to_pylist()
    captions = pq.read_table(folder / "album" / "captions.parquet").column("id").to_pylist()
    for seed, name in enumerate(("g1", "g2", "g3")):
        rng = np.random.default_rng(seed)
        np.savez(
            folder / f"{name}.npz",
            images=rng.normal(size=(len(images), 6)).astype(np.float32),
            captions=rng.normal(size=(len(captions), 6)).astype(np.float32),
            image_ids=np.array(images),
            caption_ids=np.array(captions),
        )
    np.save(folder / "similarity.npy", np.random.default_rng(9).normal(size=(len(images), len(captions))))
    np.savez(folder / "ids.npz", image_ids=np.array(images), caption_ids=np.array(captions))


def _judge(folder: Path) -> None:
    with open(folder / "pool.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    answered = [{**row, "answer": ("yes", "no", "weak yes")[k % 3]} for k, row in enumerate(rows)]
    write_csv(folder / "judged.csv", answered)


def called(folder: Path, command: str) -> None:
    ended = run(command.split(), folder, patience=1000)
    assert ended.code == 0, (command, ended.err)
