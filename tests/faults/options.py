"""Options and the values that they cannot have, and scorers that cannot be."""

from faults.command_lines import (
    AUDIT,
    BIAS,
    CLIP,
    EXPLAIN,
    LONG,
    POOL,
    PUBLISH,
    QUADS,
    RUNS,
    SYSTEMS,
    TEXTS,
    TRAIN,
)
from faults.options_annotation import OF_ANNOTATION
from faults.options_build import OF_BUILDS

#: Options and the values that they cannot have, by the sound command line that each is put behind.
OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    QUADS: {
        "--draws": ("0", "-1", "99", "1e9", "9999999999999", "many", ""),
        "--ties": ("", "lenient", "STRICT "),
        "--measure": ("", "grup", "recall_at_0", "recall_at_99999999999", "accuracy"),
        "--batch-size": ("0", "-1", "x", "99999999999999"),
        "--ids": ("nowhere.npz", "quads", "ids.npz"),
        "--column": ("nothing",),
        "--set": ("x", "=", "a=b"),
        "--scorer": ("blind:random", "nothing"),
        "--first-stage": ("nothing",),
        "--executor": ("", "dask", "rank:2/2", "rank:0/0", "rank:-1/2", "rank:0/2", "rank:x/y"),
        "--data": ("nowhere", LONG, "loop"),
        "--images": ("nowhere", LONG),
        "--json": ("quads", "pairs.csv/x.json", f"{LONG}.json", "photos/p0.png/x"),
        "--out": ("pairs.csv", "pairs.csv/runs", LONG),
        "--nonsense": ("1",),
    },
    AUDIT: {
        "--data": ("nowhere", "photos/p0.png"),
        "--scorer": ("nothing", "pixels:colours", "lm:nowhere"),
        "--against": ("nowhere.csv", "photos"),
    },
    "benchmarks publish quads": {
        "--to": (
            *("", "nowhere", "folder:", "folder:quads", "folder:photos", "folder:pairs.csv/x", "hub:a"),
            "hub:a/b/c",
        ),
    },
    "benchmarks publish album --to folder:new": {"--split": ("0.001", "0.999")},
    PUBLISH: {
        "--licence": ("CC-BY-4", "mine"),
        "--split": ("0", "1", "-1", "nan", "x"),
        "--date": ("2024-13-01", "today"),
        "--release": ("1", "1.0", "x"),
        "--language": ("English", "e"),
        "--url": ("here",),
        "--provenance": ("nowhere.json", "photos", "pairs.json"),
    },
    EXPLAIN: {
        "--questions": ("nothing", ",", ""),
        "--method": ("heat", "grad-cam"),
    },
    RUNS: {
        "--baseline": ("", "nobody"),
        "--draws": ("0", "x", "9999999999999"),
        "--html": ("runs", "pairs.csv/x.html", f"{LONG}.html"),
        "--json": ("photos",),
        "nowhere": ("",),
        "pairs.csv": ("",),
        "quads": ("",),
    },
    "compare rankings galleries/g1 galleries/g2 galleries/g3": {
        "--measure": ("nothing",),
        "nowhere": ("",),
    },
    POOL: {
        "--queries": ("nowhere.txt", "photos", "photos/p0.png", "g1.npz"),
        "--out": ("x.xls", "photos", "pairs.csv/x.csv"),
        "--price": ("-1", "nan", "inf", "much"),
        "--device": ("gpu", "cuda:99"),
        "--ids": ("nowhere.npz",),
        "nowhere.npz": ("",),
        "pairs.csv": ("",),
        "runs/a": ("",),
    },
    BIAS: {
        "--measure": ("accuracy", "", "recall_at_x"),
        "--positives": ("nothing", "quads"),
        "--judgements": ("nowhere.csv", "votes.csv", "photos/p0.png", "quads"),
    },
    "annotate preferences votes.csv": {},
    f"{TRAIN} --data training": {"--cache": ("rows.csv",)},
    f"{TRAIN} --data rows.csv": {
        "--model": (
            *("nothing", "hf:./nowhere", "open-clip:none/none", "ckpt:quads", "nowhere/", "blind:random"),
        ),
        "--data": ("nowhere", "photos", "votes.csv", "shard-{0..9999999}.tar", "shard-{5..1}.tar"),
        "--images": ("nowhere", "rows.csv"),
        "--validation": ("nowhere",),
        "--validation-share": ("1", "-0.1", "nan", "x"),
        "--batch-size": ("0", "1", "-1", "x", "99999999999"),
        "--lr": ("nan", "inf", "-1", "x"),
        "--seed": ("-1", "x", "9" * 30),
        "--set": (
            *("x", "eps=x", "nothing=1", "=1", "betas=1", "accumulate=0", "accumulate=x", "accumulate=1e12"),
            *("erasing=-0.1", "erasing=nan", "word_drop=2", "word_drop=x"),
        ),
        "--guard": ("nothing",),
        "--device": ("gpu", "cuda:99"),
        "--out": ("rows.csv", "rows.csv/new", LONG),
    },
    "train mix first second --task quads --held-out rated --points 2": {
        "--alpha": ("-0.1", "1.1", "nan", "x"),
        "--task": ("nothing",),
        "--held-out": ("nothing",),
        "--out": ("rows.csv",),
    },
    "train mix --alpha 0.5 --out new first": {"nowhere": ("",), "quads": ("",), "rows.csv": ("",)},
    TEXTS: {
        "--metrics": ("", "cidr", "clip-s"),
        "--candidates": ("nowhere.json", "photos", "votes.csv", "photos/p0.png"),
        "--references": ("nowhere.json", "photos", "candidates.toml"),
        "--set": ("x", "a=b", "clip-s.prefix=x"),
        "--out": ("x.txt", "photos", "candidates.json/x.csv"),
        "--frames": ("0", "x"),
        "--scorer": ("blind:random",),
    },
    CLIP: {
        "--scorer": ("nothing", "embeddings:nowhere.npz", "embeddings:photos/p0.png", "given:scores.csv"),
        "--images": ("nowhere", "candidates.json"),
        "--set": ("weight=x", "weight=nan", "weight=1e400", "prefx=a"),
        "--rate": ("0", "-1", "nan", "x"),
        "--videos": ("features",),
    },
    SYSTEMS: {
        "--humans": ("nowhere.csv", "votes.csv", "photos"),
        "--metrics": ("cidr", ""),
        "--references": ("nowhere.json",),
    },
    "world build quads --n 2 --size 32 --out new": {
        "--n": ("0", "-1", "x", "99999999999999"),
        "--size": ("0", "-1", "1", "99999999", "x"),
        "--seed": ("x", "-99999999999999999999999"),
        "--style": ("baroque",),
        "--out": ("rows.csv", "photos", LONG),
        "--captions-each": ("2",),
        "--kind": ("coco",),
        "--failure": ("0.5",),
    },
    "world build training --n 2 --size 32 --out new": {
        "--kind": ("nothing",),
        "--failure": ("-0.1", "2", "nan", "x"),
        "--precision": ("0", "2", "nan"),
    },
    "world build --out new": {"nothing": ("",)},
    "world sheet --size 32 --out new.png": {
        "--out": ("x.gif", "photos", "pairs.csv/x.png"),
        "--style": ("baroque",),
    },
    "reproduce": {
        "--data": ("nowhere", "rows.csv", LONG),
        "--paper": ("P999", ""),
    },
    "demo": {"--out": ("rows.csv", "rows.csv/x", LONG), "--seed": ("-1", "x")},
    "benchmarks fetch": {"nothing": ("",)},
    "benchmarks save pairs --data pairs.csv --images photos --out new": {
        "--data": ("nowhere",),
        "--out": ("rows.csv",),
    },
    "benchmarks save --out new": {"nothing": ("",)},
    "cache": {"nothing": ("",)},
    "cache limit": {"much": ("",), "-1": ("",)},
    "compare lengths runs/a": {"--json": ("photos",), "--draws": ("0", "x")},
    "list": {"nothing": ("",), "benchmarks": ("nothing",), "recipes": ("nothing",)},
    "evaluate": {"nothing:x": ("quads",), "blind:x": ("quads",), "given:": ("quads",)},
    **OF_BUILDS,
    **OF_ANNOTATION,
}

#: Scorers that cannot be, each on a benchmark of its form.
SCORERS: tuple[str, ...] = (
    *(
        f"{scorer} quads"
        for scorer in (
            *("people:nowhere", "people:photos", "given:votes.csv", "given:outcomes.csv"),
            *("given:similarity.npy", "itm:nowhere/at/all", "itm:clip", "regions:clip", "vqa:clip"),
            *("likelihood:clip", "lm:clip", "text-classifier:clip", "plausibility:clip", "chat:localhost"),
            *("blind:constant-image", "open-clip:nothing/openai", "open-clip:ViT-B-32/rows.csv"),
            *("open-clip:", "hf:./nowhere", "hf:./photos", "hf-text:./nowhere", "ckpt:nowhere"),
            *("ckpt:photos", "ckpt:rows.csv", "blind:", "metric:cider", "world:nothing", "pixels:nothing"),
        )
    ),
    *(f"given:{name} pairs --data pairs.csv" for name in ("nowhere.csv", "photos", "photos/p0.png")),
    *(f"embeddings:{name} album" for name in ("nowhere.npz", "ids.npz", "similarity.npy", "vectors.npz")),
    "embeddings:photos album",
    "chat:http://127.0.0.1:9/v1#model quads --set retries=0",
    *(f"{scorer} rated" for scorer in ("hf-text:x@y", "metric:nothing", "metric:clip-s", "metric:spice@x")),
    "world:oracle pairs --data pairs.csv --images photos",
    "pixels:colours coco-captions --data coco.json",
    *(f"blind:random {name}" for name in ("nothing", "photos", "runs/a/quads", "pairs")),
)
