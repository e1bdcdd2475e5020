"""Sound command lines that the tables of bad inputs vary, as they would be typed in the sound folder."""

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
