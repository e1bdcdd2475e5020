"""Sound command lines in the sound folder, which tables of bad inputs vary, by the file that they read."""

EVALUATE = "--no-cache --draws 100"
PAIRS = "--images photos " + EVALUATE
SCORES = "pairs --data pairs.csv " + PAIRS
SCORE = "captions score --candidates candidates.json"
CLIP = f"{SCORE} --metrics clip-s --backbone embeddings:vectors.npz --images photos --no-cache"
VIDEOS = (
    "captions score --candidates told.json --videos videos --metrics em-score --backbone hf:./clip "
    "--workers 0 --no-cache --json new.json"
)
TRAIN = "train coco --model small --images photos --steps 1 --batch-size 4 --workers 0 --device cpu --out new"

STEP = "--images photos --no-cache --out new.csv"
FILTER = f"build filter pairs.csv {STEP}"
CHOOSE = f"build choose pairs.csv {STEP}"
ROUNDS = "pool rounds galleries/g1 galleries/g2 --k 2 --rounds 1 --out new"
AUDIT = "audit pairs --data pairs.csv --images photos --no-cache"
PUBLISH = "benchmarks publish quads --out new"
EXPLAIN = "explain pixels:colours quads --no-cache"
RUNS = "compare runs/a runs/b --draws 100"
POOL = "pool galleries/g1 galleries/g2"
BIAS = "pool bias galleries/g1 galleries/g2 --judgements judged.csv --draws 100"
QUADS = f"evaluate blind:random quads {EVALUATE}"
TEXTS = f"{SCORE} --metrics rouge-l --references references.json"
SYSTEMS = "captions systems --predictions systemA.json systemB.json --references references.json"
LONG = "x" * 300
CANDIDATES = "captions score --metrics length --out new.csv --candidates"

CAMPAIGN = (
    "annotate agreement campaign --draws 100 --json new.json",
    "annotate status campaign",
    "annotate review campaign --out new.csv",
    "annotate export campaign --out new",
    "annotate adjudicate campaign --json new.json",
    "annotate reject campaign 3f --reason Careless.",
    "annotate approve campaign --suggested",
)

UNASKED = ("annotate simulate unasked --people 2 --keep new", "annotate status unasked --json new.json")

#: Command lines by the file that they read, each one as it would be typed in the sound folder.
READERS: dict[str, tuple[str, ...]] = {
    **{
        f"pairs.{kind}": (f"evaluate blind:length pairs --data pairs.{kind} {PAIRS} --out new",)
        for kind in ("csv", "tsv", "json", "jsonl", "parquet")
    },
    **{
        f"scores.{kind}": (f"evaluate given:scores.{kind} {SCORES} --json new.json",)
        for kind in ("csv", "json", "jsonl", "parquet")
    },
    "outcomes.csv": (f"evaluate given:outcomes.csv {SCORES}",),
    **{
        f"quads/{name}": (f"evaluate blind:random quads {EVALUATE}",)
        for name in ("card.json", "questions.parquet", "images.parquet", "captions.parquet", "manifest.json")
    },
    **{
        f"album/{name}": (f"evaluate embeddings:g1.npz album {EVALUATE} --out new",)
        for name in ("card.json", "positives.parquet", "members.parquet", "questions.parquet")
    },
    "rated/references.parquet": (f"evaluate metric:rouge-l rated {EVALUATE}",),
    "rated/questions.parquet": (f"evaluate metric:length rated {EVALUATE}",),
    "preferences/candidates.parquet": (f"evaluate metric:length preferences {EVALUATE}",),
    "photos/p0.png": (f"evaluate pixels:colours pairs --data pairs.csv {PAIRS} --workers 0",),
    "g1.npz": (f"evaluate embeddings:g1.npz album {EVALUATE}", "pool g1.npz g2.npz --k 3 --out new.csv"),
    "similarity.npy": (f"evaluate given:similarity.npy album --ids ids.npz {EVALUATE}",),
    "ids.npz": (f"evaluate given:similarity.npy album --ids ids.npz {EVALUATE}",),
    "coco.json": (
        f"evaluate blind:random coco-captions --data coco.json {PAIRS}",
        f"{TRAIN} --data coco.json",
    ),
    "judged_pairs.csv": (f"evaluate blind:length gallery --data judged_pairs.csv {PAIRS}",),
    "answers.csv": (f"{FILTER} --people answers.csv", f"{CHOOSE} --people answers.csv"),
    "verified.csv": (
        f"{FILTER} --models pixels:colours --threshold 0 --verified verified.csv",
        f"{CHOOSE} --model pixels:colours --threshold 0 --verified verified.csv",
    ),
    "runs/a/quads/result.json": ("compare runs/a runs/b --draws 100 --html new.html",),
    "runs/a/quads/manifest.json": ("compare runs/a runs/b --draws 100 --html new.html",),
    "runs/a/quads/items.parquet": ("compare runs/a runs/b --draws 100 --csv new.csv",),
    "runs/a/quads/answers.parquet": ("compare runs/a runs/b --draws 100 --json new.json",),
    "galleries/g1/album/result.json": (
        "compare rankings galleries/g1 galleries/g2 galleries/g3 --json new.json",
    ),
    "galleries/g1/album/members.parquet": ("compare galleries/g1 galleries/g2 --draws 100 --latex new.tex",),
    "galleries/g1/album/positives.parquet": ("pool galleries/g1 galleries/g2 --k 3 --out new.parquet",),
    "galleries/g1/album/answers.parquet": ("compare galleries/g1 galleries/g2 --draws 100",),
    "judged.csv": (
        "pool bias galleries/g1 galleries/g2 --judgements judged.csv --draws 100 --plot new.svg",
        f"{ROUNDS} --judge judged.csv",
    ),
    "judgements.csv": ("annotate agreement judgements.csv --scale ordinal --draws 100 --json new.json",),
    "hits.csv": ("annotate import hits.csv --format mturk --out new.csv",),
    "votes.csv": ("annotate preferences votes.csv --draws 100 --json new.json",),
    "votes.json": ("annotate preferences votes.json --draws 100",),
    "square.csv": ("annotate preferences square.csv --draws 100 --plot new.svg",),
    "candidates.json": (f"{SCORE} --metrics rouge-l,cider --references references.json --out new.csv",),
    "samples.jsonl": (
        "captions score --candidates samples.jsonl --metrics bleu,cider --references references.json "
        "--out new.csv",
    ),
    "samples.parquet": (
        "captions score --candidates samples.parquet --metrics rouge-l --references references.json "
        "--per-image best --out new.csv",
    ),
    "references.json": (f"{SCORE} --metrics bleu,rouge-l --references references.json --out new.json",),
    "vectors.npz": (f"{CLIP} --json new.json",),
    "systemA.json": (
        "captions systems --predictions systemA.json systemB.json --references references.json --out new.csv",
    ),
    "humans.csv": (
        "captions systems --predictions systemA.json systemB.json --references references.json "
        "--humans humans.csv --out new.csv",
    ),
    "rows.csv": (f"{TRAIN} --data rows.csv",),
    "shard-000.tar": (f"{TRAIN} --data shard-000.tar",),
    "training/train.parquet": (f"{TRAIN} --data training",),
    "training/validation.parquet": (
        f"{TRAIN} --data training/train.parquet --validation training/validation.parquet",
    ),
    "recipe.toml": ("train recipe.toml --steps 1 --workers 0 --device cpu --out new",),
    "first/card.json": (
        f"evaluate ckpt:first quads {EVALUATE} --workers 0",
        "train mix first second --alpha 0.5 --out new",
    ),
    "first/model.safetensors": (
        f"evaluate first quads {EVALUATE} --workers 0",
        "train mix first second --alpha 0.5 --out new",
    ),
    "pairs.arrow": (f"evaluate blind:length pairs --data pairs.arrow {PAIRS}",),
    "photos/j0.jpg": (f"evaluate pixels:colours pairs --data jpegs.csv {PAIRS}",),
    "videos/v0.mp4": (VIDEOS,),
    **{
        f"clip/{name}": (f"evaluate hf:./clip pairs --data jpegs.csv {PAIRS} --workers 0", VIDEOS)
        for name in ("config.json", "preprocessor_config.json", "tokenizer_config.json", "model.safetensors")
    },
    **{
        f"flickr8k/{name}": (
            f"evaluate metric:rouge-l flickr8k-expert --data flickr8k --no-counts {EVALUATE}",
        )
        for name in ("Flickr8k.token.txt", "ExpertAnnotations.txt")
    },
    "sugarcrepe/swap_att.json": (
        f"evaluate blind:length sugarcrepe --data sugarcrepe --no-counts {EVALUATE}",
    ),
    "released/detectors/bivlc_CLIP_baseline.csv": (
        "reproduce --paper bivlc --data released --json new.json",
    ),
    **{f"unasked/{name}": UNASKED for name in ("items.parquet", "secrets.json")},
    "campaign/items.parquet": CAMPAIGN,
    "campaign/database.sqlite": CAMPAIGN,
    "first/resume.pt": (f"{TRAIN.replace('--out new', '--out first')} --data rows.csv",),
    "first/journal.csv": (f"{TRAIN.replace('--out new', '--out first')} --data rows.csv",),
}

#: Commands that take long, by name, with where their results are; small ones, so that hundreds can be killed.
LONG_COMMANDS: dict[str, tuple[str, str]] = {
    "evaluate": ("evaluate pixels:colours quads --out new --draws 1000 --workers 0", "new"),
    "evaluate-gallery": ("evaluate embeddings:g1.npz album --out new --draws 1000 --workers 0", "new"),
    "evaluate-model": ("evaluate first quads rated --out new --draws 200 --workers 0 --batch-size 2", "new"),
    "train": (
        "train coco --model small --data rows.csv --images photos --out new --steps 30 --batch-size 4 "
        "--workers 0 --device cpu",
        "new",
    ),
    "captions-score": (
        "captions score --candidates candidates.json --references references.json "
        "--metrics bleu,rouge-l,cider --out new.csv --overwrite",
        "new.csv",
    ),
    "pool": (
        "pool galleries/g1 galleries/g2 galleries/g3 --k 10 --out new.parquet --overwrite",
        "new.parquet",
    ),
    "world-build": ("world build quads --n 60 --size 64 --out new --overwrite", "new"),
    "world-training": ("world build training --n 200 --size 32 --out new --overwrite", "new"),
    "reproduce": ("reproduce --json new.json --overwrite", "new.json"),
}
