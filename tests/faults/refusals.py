"""Refusals of commands by their words: what follows a sound start, and what the line about it says."""

from faults.command_lines import BIAS, SCORE, SYSTEMS, TEXTS, TRAIN

SUGARCREPE = "evaluate blind:constant sugarcrepe --no-cache"
DETECTOR = "train detector --model small --data rows.csv --images photos --out new"
REFINE = "build refine rows.csv --against blind:bag-of-words --held-out blind:length --least 1 --out new.csv"
EVALUATED = "evaluate blind:length pairs --data pairs.csv"
READ = "would replace what this command reads"
EXISTS = "the file exists; name another file, or replace it with --overwrite"
TWICE = "two results would be written to one file"

#: What is added to the start of a command, as one types it, and words of the error.
REFUSALS: dict[str, dict[str, str]] = {
    SCORE: {
        "--metrics clipp": "did you mean 'clip-s'?",
        "--metrics ,": "no metric is named",
        "--metrics clip-s --scorer hf:x": "a metric that looks at images, and none were given",
        "--metrics cider --scorer hf:x": "none of these metrics has a model behind it",
        "--metrics cider": "a metric that compares with references, and none were given",
        "--metrics length --set cider.df=x": "a setting of a metric that is not asked for",
        "--metrics length --frames 3": "frames are those of videos",
        "--metrics length --videos photos --images photos": "images or of videos",
        "--metrics length --references-contain drop-item": "no references that could",
    },
    "captions score --metrics length": {"--candidates told.json --images photos": "an image; given: 3 of 3"},
    TEXTS: {
        "--metrics length --out candidates.json": READ,
        "--metrics length --out new.json --json ./new.json": TWICE,
    },
    SYSTEMS: {"--out systemA.json": READ},
    "captions systems --references references.json --predictions": {
        "systemA.json systemA.json": "two systems of one name; given: systemA",
    },
    "evaluate": {
        "blind:length winogrund": "did you mean 'winoground'",
        "blind:length ''": "unknown benchmark; given: (empty)",
        "blind:length photos": "photos: no benchmark in this folder",
        "blnd:length bivlc": "did you mean 'blind'",
        "blind:lenght bivlc": "did you mean 'length'",
        "world:oracel bivlc": "did you mean 'oracle'",
        "blind bivlc": "a scorer is written KIND:WHAT",
        "pixels:colours pairs --data pairs.csv": "--images",
        "metric:cidr rated": "did you mean 'cider'?",
        "metric:clip-s rated": "needs a model to look with; name one with --scorer",
        "pixels:colours quads --set a=b": "takes no settings",
        "open-clip:no-such-model/x sugarcrepe --data sugarcrepe --no-counts": "images are not at hand",
        "blind:length pairs.csv": "write pairs --data pairs.csv",
        "blind:length scores.csv": "scores are a scorer: given:scores.csv",
        "given:scores.csv pairs --data pairs.csv --json scores.csv": READ,
    },
    EVALUATED: {"--json pairs.csv": READ, "--json pairs.csv --overwrite": READ, "--json votes.json": EXISTS},
    SUGARCREPE: {
        "--data a --data b": "--data is given twice",
        "--data sugarcrepe=a --data sugarcrepe=b": "--data names one benchmark twice",
        "--data bivlc=a": "that is not asked about; given: bivlc=a; allowed: sugarcrepe",
        "--data sugarcrepe=": "--data lacks a path; given: sugarcrepe=",
        "--data ''": "--data lacks a path",
        "--data sugarcrepe=nowhere": "nowhere: no such file or folder; check --data",
    },
    "audit": {"judged_pairs.csv": "write gallery --data judged_pairs.csv"},
    "compare": {"scores.csv": "evaluate given:scores.csv BENCHMARK --out runs/scores"},
    "compare rankings galleries/g1 galleries/g2": {
        "runs/a": "evaluate the same models on the same benchmarks",
        "galleries/g3 --measure worldgallery:recall_at_1": "did you mean 'world-gallery'?",
    },
    "explain": {
        "blind:length quads --method patch": "unknown method of heatmaps; given: patch; allowed: ",
        "blind:length quads --method patches": "needs a dual encoder with features of patches",
        "blind:length album": "a gallery asks about no pairs",
        "given:scores.csv pairs --data pairs.csv --images photos": "has no scores of new images and captions",
        "pixels:colours pairs --data pairs.csv": "images are not at hand; given: ",
        "pixels:colours pairs.csv": "write pairs --data pairs.csv",
    },
    "pool": {
        "pairs.csv": "pairs.csv: nothing that ranks",
        "g1.npz g1.npz": "two models have one name; given: g1",
        "similarity.npy": "rows have no image or caption ids; name an npz",
    },
    BIAS: {"--positives gallery --data judged_pairs.csv": "none of the judged images is in this benchmark"},
    "train": {
        "trohn-image": "did you mean 'trohn-img'?",
        "coco": "--model is missing",
        "coco --model small": "--data is missing",
        "coco --model small --data rows.csv": "--out is missing",
    },
    f"{TRAIN} --data rows.csv": {
        "--validation-share 0.99": "give more rows, or others to validate on",
        "--chunk-size 9": "a chunk is a part of a batch; given: 9 rows, of 4; allowed: 1 to 4",
        "--model photos": "this folder holds no card.json",
        "--model clip": "did you mean hf:clip?",
        "--guard world-quad": "did you mean 'world-quads'?",
    },
    TRAIN.replace("--out new", "--data rows.csv"): {
        "--out clip": "the folder holds other files (",
        "--model first --out first": READ,
        "--out new --json new/card.json": TWICE,
    },
    "train mix first second --alpha 0.5": {
        "--out clip": "the folder holds other files (",
        "--out second": READ,
        "--out new --json second/card.json": READ,
    },
    DETECTOR: {
        "--devices 2": "--devices: a detector is trained by one process",
        "--chunk-size 2": "--chunk-size: a detector is trained by one process",
    },
    "train mix first second": {
        "": "nothing to do",
        "--alpha 0.5": "options come in pairs",
        "--task world-quads": "options come in pairs",
    },
    "world build --out new": {
        "choices --style mixed": "unknown style; given: mixed; allowed: natural, synthetic",
        "quads --captions-each 3": "--captions-each does not go with 'quads'",
        "training --style natural": "--style does not go with 'training'",
        "training --kind coco --failure 0.5": "nothing is generated in this kind",
        "quads --n 3 --out photos": "the folder holds other files",
    },
    "build dedup judged_pairs.csv": {"--out new.csv": "no column 'negative_caption', which 'dedup' reads"},
    "build bivlc --out new": {"--set imagine.q=1": "unknown key; given: q"},
    REFINE: {
        "--set lm.speed=3": "a setting of a scorer that is not named; given: lm.speed=3",
        # A comma is the value's own, but before another key.
        "--set 'prompt=Is it so, or not?,pace=1'": "unknown setting; given: prompt",
    },
    "cache limit --": {
        **dict.fromkeys(("much", "'5 cats'", "-1GB", "1e99", "9" * 40), "no size; given:"),
    },
    "annotate prolific create campaign": {
        "--url https://study.example.org": 'another way; given: entry = link; write entry = "prolific"',
    },
    "annotate create --images photos --out new --from pairs.csv": {
        "choose": ": --from pairs --data",
        "yes-no --sample 20": "--sample is of ",
    },
}
