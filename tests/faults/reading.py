"""Which command reads which file of the sound folder."""

_LABELLED = "annotate import annotated.json --from label-studio --out new.csv"
_EVALUATE = "--no-cache --draws 100"
_PAIRS = "--images photos " + _EVALUATE
_SCORES = "pairs --data pairs.csv " + _PAIRS
_SCORE = "captions score --candidates candidates.json"
_CLIP = f"{_SCORE} --metrics clip-s --scorer embeddings:vectors.npz --images photos --no-cache"
_VIDEOS = (
    "captions score --candidates told.json --videos videos --metrics em-score --scorer hf:./clip "
    "--workers 0 --no-cache --json new.json"
)
_TRAIN = (
    "train coco --model small --images photos --steps 1 --batch-size 4 --workers 0 --device cpu --out new"
)

_STEP = "--images photos --no-cache --out new.csv"
_FILTER = f"build filter pairs.csv {_STEP}"
_CHOOSE = f"build choose pairs.csv {_STEP}"
_MERGE = "build merge judged_pairs.csv --no-cache --out new.csv"
_ROUNDS = "build pool galleries/g1 galleries/g2 --k 2 --rounds 1 --out new"

_CAMPAIGN = (
    "annotate agreement campaign --draws 100 --json new.json",
    "annotate status campaign",
    "annotate review campaign --out new.csv",
    "annotate export campaign --out new",
    "annotate adjudicate campaign --json new.json",
    "annotate reject campaign 3f --reason Careless.",
    "annotate approve campaign --suggested",
)

_UNASKED = ("annotate simulate unasked --people 2 --keep new", "annotate status unasked --json new.json")

#: Command lines by the file that they read, each one as it would be typed in the sound folder.
READERS: dict[str, tuple[str, ...]] = {
    **{
        f"pairs.{kind}": (f"evaluate blind:length pairs --data pairs.{kind} {_PAIRS} --out new",)
        for kind in ("csv", "tsv", "json", "jsonl", "parquet")
    },
    **{
        f"scores.{kind}": (f"evaluate given:scores.{kind} {_SCORES} --json new.json",)
        for kind in ("csv", "json", "jsonl", "parquet")
    },
    "outcomes.csv": (f"evaluate given:outcomes.csv {_SCORES}",),
    **{
        f"quads/{name}": (f"evaluate blind:random quads {_EVALUATE}",)
        for name in ("card.json", "questions.parquet", "images.parquet", "captions.parquet", "manifest.json")
    },
    **{
        f"album/{name}": (f"evaluate embeddings:g1.npz album {_EVALUATE} --out new",)
        for name in ("card.json", "positives.parquet", "members.parquet", "questions.parquet")
    },
    "rated/references.parquet": (f"evaluate metric:rouge-l rated {_EVALUATE}",),
    "rated/questions.parquet": (f"evaluate metric:length rated {_EVALUATE}",),
    "preferences/candidates.parquet": (f"evaluate metric:length preferences {_EVALUATE}",),
    "photos/p0.png": (f"evaluate pixels:colours pairs --data pairs.csv {_PAIRS}",),
    "g1.npz": (f"evaluate embeddings:g1.npz album {_EVALUATE}", "pool g1.npz g2.npz --k 3 --out new.csv"),
    "similarity.npy": (f"evaluate given:similarity.npy album --ids ids.npz {_EVALUATE}",),
    "ids.npz": (f"evaluate given:similarity.npy album --ids ids.npz {_EVALUATE}",),
    "coco.json": (
        f"evaluate blind:random coco-captions --data coco.json {_PAIRS}",
        f"{_TRAIN} --data coco.json",
    ),
    "judged_pairs.csv": (
        f"evaluate blind:length gallery --data judged_pairs.csv {_PAIRS}",
        f"build merge pairs.csv --tables judged_pairs.csv {_STEP}",
    ),
    "answers.csv": (f"{_FILTER} --people answers.csv", f"{_CHOOSE} --people answers.csv"),
    "verified.csv": (
        f"{_FILTER} --scorers pixels:colours --threshold 0 --verified verified.csv",
        f"{_CHOOSE} --scorer pixels:colours --threshold 0 --verified verified.csv",
    ),
    "runs/a/quads/result.json": ("compare runs/a runs/b --draws 100 --html new.html",),
    "runs/a/quads/manifest.json": ("compare runs/a runs/b --draws 100 --html new.html",),
    "runs/a/quads/items.parquet": ("compare runs/a runs/b --draws 100 --csv new.csv",),
    "runs/a/quads/answers.parquet": ("compare runs/a runs/b --draws 100 --json new.json",),
    "galleries/g1/album/result.json": ("rankings galleries/g1 galleries/g2 galleries/g3 --csv new.csv",),
    "galleries/g1/album/members.parquet": ("compare galleries/g1 galleries/g2 --draws 100 --latex new.tex",),
    "galleries/g1/album/positives.parquet": ("pool galleries/g1 galleries/g2 --k 3 --out new.parquet",),
    "galleries/g1/album/answers.parquet": ("compare galleries/g1 galleries/g2 --draws 100",),
    "judged.csv": (
        "bias galleries/g1 galleries/g2 --judgements judged.csv --draws 100 --html new.html",
        f"{_ROUNDS} --judge judged.csv",
    ),
    "judgements.csv": ("annotate agreement judgements.csv --scale ordinal --draws 100 --json new.json",),
    "hits.csv": ("annotate import hits.csv --from mturk --out new.csv",),
    "votes.csv": ("preferences votes.csv --draws 100 --json new.json",),
    "votes.json": ("preferences votes.json --draws 100",),
    "square.csv": ("preferences square.csv --draws 100 --plot new.svg",),
    "candidates.json": (f"{_SCORE} --metrics rouge-l,cider --references references.json --out new.csv",),
    "samples.jsonl": (
        "captions score --candidates samples.jsonl --metrics bleu,cider --references references.json "
        "--out new.csv",
    ),
    "samples.parquet": (
        "captions score --candidates samples.parquet --metrics rouge-l --references references.json "
        "--per-image best --out new.csv",
    ),
    "references.json": (f"{_SCORE} --metrics bleu,rouge-l --references references.json --out new.json",),
    "vectors.npz": (f"{_CLIP} --json new.json",),
    "systemA.json": (
        "captions systems --predictions systemA.json systemB.json --references references.json --out new.csv",
    ),
    "humans.csv": (
        "captions systems --predictions systemA.json systemB.json --references references.json "
        "--humans humans.csv --out new.csv",
    ),
    "rows.csv": (f"{_TRAIN} --data rows.csv",),
    "shard-000.tar": (f"{_TRAIN} --data shard-000.tar",),
    "training/train.parquet": (f"{_TRAIN} --data training",),
    "training/validation.parquet": (
        f"{_TRAIN} --data training/train.parquet --validation training/validation.parquet",
    ),
    "recipe.toml": ("train recipe.toml --steps 1 --workers 0 --device cpu --out new",),
    "first/card.json": (
        f"evaluate ckpt:first quads {_EVALUATE} --workers 0",
        "mix first second --task quads --held-out rated --points 2",
    ),
    "first/model.safetensors": (
        f"evaluate first quads {_EVALUATE} --workers 0",
        "mix first second --task quads --held-out rated --points 2",
    ),
    "pairs.arrow": (f"evaluate blind:length pairs --data pairs.arrow {_PAIRS}",),
    "photos/j0.jpg": (f"evaluate pixels:colours pairs --data jpegs.csv {_PAIRS}",),
    "videos/v0.mp4": (_VIDEOS,),
    **{
        f"clip/{name}": (f"evaluate hf:./clip pairs --data jpegs.csv {_PAIRS} --workers 0", _VIDEOS)
        for name in ("config.json", "preprocessor_config.json", "tokenizer_config.json", "model.safetensors")
    },
    **{
        f"flickr8k/{name}": (
            f"evaluate metric:rouge-l flickr8k-expert --data flickr8k --no-counts {_EVALUATE}",
        )
        for name in ("Flickr8k.token.txt", "ExpertAnnotations.txt")
    },
    "sugarcrepe/swap_att.json": (
        f"evaluate blind:length sugarcrepe --data sugarcrepe --no-counts {_EVALUATE}",
    ),
    "released/detectors/bivlc_CLIP_baseline.csv": (
        "reproduce --paper bivlc --data released --json new.json",
    ),
    **{f"unasked/{name}": _UNASKED for name in ("items.parquet", "secrets.json")},
    "campaign/items.parquet": _CAMPAIGN,
    "campaign/database.sqlite": _CAMPAIGN,
    "first/resume.pt": (f"{_TRAIN.replace('--out new', '--out first')} --data rows.csv",),
    "first/journal.csv": (f"{_TRAIN.replace('--out new', '--out first')} --data rows.csv",),
}

_AUDIT = "audit pairs --data pairs.csv --images photos --no-cache"
_PUBLISH = "publish quads --to folder:new"
_EXPLAIN = "explain pixels:colours quads --no-cache"
_RUNS = "compare runs/a runs/b --draws 100"
_POOL = "pool galleries/g1 galleries/g2"
_BIAS = "bias galleries/g1 galleries/g2 --judgements judged.csv --draws 100"
_QUADS = f"evaluate blind:random quads {_EVALUATE}"
_TEXTS = f"{_SCORE} --metrics rouge-l --references references.json"
_SYSTEMS = "captions systems --predictions systemA.json systemB.json --references references.json"
_LONG = "x" * 300

#: Options and the values that they cannot have, by the sound command line that each is put behind.
OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    _QUADS: {
        "--draws": ("0", "-1", "99", "1e9", "9999999999999", "many", ""),
        "--seed": ("-1", "1.5", "99999999999999999999999", "x"),
        "--ties": ("", "lenient", "STRICT "),
        "--interval": ("", "normal"),
        "--measure": ("", "grup", "recall_at_0", "recall_at_99999999999", "accuracy"),
        "--batch-size": ("0", "-1", "x", "99999999999999"),
        "--workers": ("-1", "x", "99999999"),
        "--depth": ("0", "-5"),
        "--top": ("-1", "x"),
        "--precision": ("fp8", ""),
        "--ids": ("nowhere.npz", "quads", "ids.npz"),
        "--column": ("nothing",),
        "--set": ("x", "=", "a=b"),
        "--scorer": ("blind:random", "nothing"),
        "--first-stage": ("nothing",),
        "--executor": ("", "dask", "rank:2/2", "rank:0/0", "rank:-1/2", "rank:0/2", "rank:x/y"),
        "--data": ("nowhere", _LONG, "loop"),
        "--images": ("nowhere", _LONG),
        "--json": ("quads", "pairs.csv/x.json", f"{_LONG}.json", "photos/p0.png/x"),
        "--out": ("pairs.csv", "pairs.csv/runs", _LONG),
        "--nonsense": ("1",),
    },
    _AUDIT: {
        "--data": ("nowhere", "photos/p0.png"),
        "--scorer": ("nothing", "pixels:colours", "lm:nowhere"),
        "--against": ("nowhere.csv", "photos"),
        "--level": ("0", "2", "x"),
        "--limit": ("0", "x"),
        "--html": ("pairs.csv", "pairs.csv/x.html"),
    },
    "publish quads": {
        "--to": (
            "",
            "nowhere",
            "folder:",
            "folder:quads",
            "folder:photos",
            "folder:pairs.csv/x",
            "hub:a",
            "hub:a/b/c",
        ),
    },
    "publish album --to folder:new": {"--split": ("0.001", "0.999")},
    _PUBLISH: {
        "--licence": ("CC-BY-4", "mine"),
        "--split": ("0", "1", "-1", "nan", "x"),
        "--date": ("2024-13-01", "today"),
        "--release": ("1", "1.0", "x"),
        "--language": ("English", "e"),
        "--url": ("here",),
        "--provenance": ("nowhere.json", "photos", "pairs.json"),
        "--json": ("photos", "new/x.json"),
    },
    _EXPLAIN: {
        "--questions": ("nothing", ",", ""),
        "--method": ("heat", "grad-cam"),
        "--grid": ("0", "65", "x"),
        "--json": ("quads", "pairs.csv/x.json"),
    },
    _RUNS: {
        "--baseline": ("", "nobody"),
        "--draws": ("0", "x", "9999999999999"),
        "--seed": ("-1", "9" * 30),
        "--pictures": ("sometimes",),
        "--html": ("runs", "pairs.csv/x.html", f"{_LONG}.html"),
        "--markdown": ("runs",),
        "--latex": ("runs/a/quads/result.json/x",),
        "--csv": ("photos",),
        "--json": ("photos",),
        "nowhere": ("",),
        "pairs.csv": ("",),
        "quads": ("",),
    },
    "rankings galleries/g1 galleries/g2 galleries/g3": {
        "--html": ("runs", "pairs.csv/x.html"),
        "--csv": ("photos",),
        "--json": ("photos",),
        "--k": ("0", "-3", "x"),
        "--measure": ("nothing",),
        "nowhere": ("",),
        "--draws": ("0", "x"),
    },
    _POOL: {
        "--k": ("0", "-1", "x"),
        "--queries": ("nowhere.txt", "photos", "photos/p0.png", "g1.npz"),
        "--direction": ("up",),
        "--out": ("x.xls", "photos", "pairs.csv/x.csv"),
        "--per-task": ("0", "-1"),
        "--golden": ("-1", "999999999999"),
        "--answers": ("0", "x"),
        "--price": ("-1", "nan", "inf", "much"),
        "--device": ("gpu", "cuda:99"),
        "--plot": ("x.xyz", "photos"),
        "--ids": ("nowhere.npz",),
        "nowhere.npz": ("",),
        "pairs.csv": ("",),
        "runs/a": ("",),
    },
    _BIAS: {
        "--k": ("0", "x", "99999999999"),
        "--measure": ("accuracy", "", "recall_at_x"),
        "--direction": ("both",),
        "--aggregate": ("best",),
        "--undefined": ("maybe",),
        "--positives": ("nothing", "quads"),
        "--draws": ("0", "x"),
        "--plot": ("x.gif1",),
        "--html": ("photos",),
        "--judgements": ("nowhere.csv", "votes.csv", "photos/p0.png", "quads"),
    },
    "preferences votes.csv": {
        "--draws": ("0", "-1", "x"),
        "--plot": ("x.xyz", "photos"),
        "--json": ("photos",),
        "--seed": ("-1",),
    },
    f"{_TRAIN} --data training": {"--cache": ("rows.csv",)},
    f"{_TRAIN} --data rows.csv": {
        "--model": (
            "nothing",
            "hf:./nowhere",
            "open-clip:none/none",
            "ckpt:quads",
            "nowhere/",
            "blind:random",
        ),
        "--data": ("nowhere", "photos", "votes.csv", "shard-{0..9999999}.tar", "shard-{5..1}.tar"),
        "--images": ("nowhere", "rows.csv"),
        "--validation": ("nowhere",),
        "--validation-share": ("1", "-0.1", "nan", "x"),
        "--steps": ("0", "-1", "x", "9999999999999999999"),
        "--epochs": ("0", "-1", "x"),
        "--batch-size": ("0", "1", "-1", "x", "99999999999"),
        "--lr": ("nan", "inf", "-1", "x"),
        "--precision": ("fp8",),
        "--seed": ("-1", "x", "9" * 30),
        "--set": (
            *("x", "eps=x", "nothing=1", "=1", "betas=1", "accumulate=0", "accumulate=x", "accumulate=1e12"),
            *("erasing=-0.1", "erasing=nan", "word_drop=2", "word_drop=x"),
        ),
        "--guard": ("nothing",),
        "--device": ("gpu", "cuda:99"),
        "--devices": ("0", "-1", "x"),
        "--workers": ("-1", "x"),
        "--out": ("rows.csv", "rows.csv/new", _LONG),
    },
    "mix first second --task quads --held-out rated --points 2": {
        "--points": ("1", "102", "x"),
        "--alpha": ("-0.1", "1.1", "nan", "x"),
        "--task": ("nothing",),
        "--held-out": ("nothing",),
        "--out": ("rows.csv",),
        "--json": ("photos",),
    },
    "mix --alpha 0.5 --out new first": {"nowhere": ("",), "quads": ("",), "rows.csv": ("",)},
    _TEXTS: {
        "--metrics": ("", "cidr", "clip-s"),
        "--candidates": ("nowhere.json", "photos", "votes.csv", "photos/p0.png"),
        "--references": ("nowhere.json", "photos", "candidates.toml"),
        "--set": ("x", "a=b", "clip-s.prefix=x"),
        "--references-contain": ("maybe",),
        "--per-image": ("", "worst", "2"),
        "--empty": ("maybe",),
        "--out": ("x.txt", "photos", "candidates.json/x.csv"),
        "--frames": ("0", "x"),
        "--scorer": ("blind:random",),
        "--json": ("photos",),
    },
    _CLIP: {
        "--scorer": ("nothing", "embeddings:nowhere.npz", "embeddings:photos/p0.png", "given:scores.csv"),
        "--images": ("nowhere", "candidates.json"),
        "--set": ("weight=x", "weight=nan", "weight=1e400", "prefx=a"),
        "--batch-size": ("0",),
        "--rate": ("0", "-1", "nan", "x"),
        "--videos": ("features",),
    },
    _SYSTEMS: {
        "--humans": ("nowhere.csv", "votes.csv", "photos"),
        "--metrics": ("cidr", ""),
        "--references": ("nowhere.json",),
        "--over": ("", "judges", "Images"),
        "--draws": ("0", "99", "1e9"),
        "--seed": ("-1", "x"),
        "--out": ("x.txt",),
        "--html": ("photos", _LONG, "humans.csv"),
        "--csv": ("references.json", "photos"),
    },
    "world build quads --n 2 --size 32 --out new": {
        "--n": ("0", "-1", "x", "99999999999999"),
        "--size": ("0", "-1", "1", "99999999", "x"),
        "--seed": ("x", "-99999999999999999999999"),
        "--style": ("baroque",),
        "--out": ("rows.csv", "photos", _LONG),
        "--captions-each": ("2",),
        "--kind": ("coco",),
        "--failure": ("0.5",),
    },
    "world build training --n 2 --size 32 --out new": {
        "--kind": ("nothing",),
        "--failure": ("-0.1", "2", "nan", "x"),
        "--precision": ("0", "2", "nan"),
        "--recall": ("-1", "nan"),
        "--n": ("0", "99999999999999"),
    },
    "world build --out new": {"nothing": ("",)},
    "build bivlc --n 7 --no-cache --out new": {
        "--set": (
            "x",
            "=",
            "imagine.k=0",
            "imagine.k=x",
            "read.size=3",
            "nothing.k=1",
        ),
        "--n": ("0", "x"),
        "--limit": ("0",),
        "--seed": ("-1", "x"),
        "--from": ("nowhere.csv", "photos", "photos/p0.png", "rated", _LONG),
        "--llm": ("lm:nowhere",),
        "--imagine": ("nothing", "diffusers:nowhere", "diffusers:photos"),
        "--people": ("nowhere.csv",),
        "--out": ("photos", "pairs.csv"),
    },
    "build nothing.toml --out new": {"nothing": ("",)},
    "work": {"nowhere": ("",), "photos": ("",)},
    "work nowhere": {"--rank": ("x",), "--of": ("x",)},
    "work new --of 2 -- demo": {"nothing": ("",)},
    "work new --of 2 -- train": {"--nothing": ("",)},
    "merge": {"nowhere": ("",), "photos": ("",)},
    "estimate build": {"bivlc": ("",)},
    f"estimate {_QUADS}": {"--draws": ("0",), "--executor": ("rank:0/2",), "--nonsense": ("1",)},
    "estimate": {"nothing": ("",), "--project": ("nothing",)},
    "annotate forms nothing": {"nothing": ("",)},
    "annotate plan yes-no --items 100": {
        "--accuracy": ("", "x", "1.5", "0.9,0.8,0.7", "nan"),
        "--labels": ("0", "51", "x"),
        "--half-width": ("0", "-1", "0.0001", "nan"),
        "--label-accuracy": ("1.1", "x"),
        "--share": ("0", "1", "nan"),
        "--classes": ("1", "x"),
        "--people": ("1",),
        "--seconds": ("0", "-1"),
        "--pay": ("-1",),
        "--fee": ("-1", "x"),
        "--json": ("photos",),
    },
    "annotate plan nothing --items 100": {"nothing": ("",)},
    "annotate status nowhere": {"nothing": ("",)},
    "annotate status photos": {"--json": ("photos",), "nothing": ("",)},
    "annotate review photos": {"--out": ("photos", "x.txt"), "nothing": ("",)},
    "annotate adjudicate photos": {"nothing": ("",), "1": ("",)},
    "annotate withdraw photos": {"nothing": ("",)},
    "annotate delete-after photos": {"nothing": ("",)},
    "annotate approve": {"photos": ("nothing",), "campaign": ("nothing",)},
    "annotate approve campaign --suggested": {"--database": ("nothing", "sqlite:///nowhere/x.sqlite")},
    "annotate reject --reason Careless.": {"photos": ("nothing",), "campaign": ("nothing",)},
    "annotate adjudicate campaign": {"nothing": ("",), "--json": ("photos",)},
    "annotate withdraw campaign": {"--person": ("nothing",), "--worker": ("nothing",)},
    "annotate delete-after campaign --yes": {"--database": ("nothing", "mysql://x/y")},
    "annotate status campaign": {"--database": ("nothing", "mysql://x/y")},
    "annotate export campaign --out new": {"--model": ("nothing", "")},
    "annotate simulate unasked --people 2": {"--keep": ("campaign", "pairs.csv")},
    "annotate agreement campaign --draws 100": {"--html": ("photos", "pairs.csv")},
    "annotate prolific status photos": {"nothing": ("",)},
    "annotate prolific publish photos": {"nothing": ("",)},
    "annotate prolific approve photos": {"nothing": ("",)},
    "annotate agreement judgements.csv": {
        "--scale": ("", "ratio"),
        "--campaign": ("nowhere", "photos"),
        "--database": ("sqlite:///x",),
        "--draws": ("0", "x"),
        "--json": ("photos", "judgements.csv", "pairs.csv/x.json"),
        "nowhere": ("",),
    },
    "annotate agreement photos --draws 100": {"nothing": ("",)},
    "annotate export": {"nowhere": ("",), "photos": ("",), "pairs.csv": ("",)},
    "annotate export nowhere": {"--kind": ("xls", ""), "--partly": ("some",)},
    "annotate study stopping-rule --data pairs.csv": {
        "--data": ("nowhere.csv", "photos", "votes.csv"),
        "--seed": ("-1", "x"),
        "--json": ("photos", "pairs.csv/x.json"),
        "nothing": ("",),
    },
    "annotate simulate photos": {
        "--people": ("0", "-1", "x"),
        "--mix": ("", "able", "able=x", "nobody=1", "able=nan", "able=-1", "able=0"),
        "--accuracy": ("2", "-0.1", "nan", "x"),
        "--out": ("photos", "pairs.csv"),
        "nothing": ("",),
    },
    "annotate create yes-no --from pairs.csv --images photos --out new": {
        "--from": ("nowhere.csv", "photos", "votes.csv", "album", "rated/questions.parquet", _LONG),
        "--images": ("nowhere", "pairs.csv"),
        "--golden": ("nowhere.csv", "pairs.csv", "auto"),
        "--onboarding": ("nowhere.csv", "votes.csv"),
        "--sample": ("0", "5"),
        "--design": ("", "rows"),
        "--overlap": ("0", "x", "-1"),
        "--per-person": ("-1", "x"),
        "--certainty": ("1", "nan", "x"),
        "--pay-per-hour": ("-1", "much"),
        "--keep-until": ("soon",),
        "--set": ("x", "rationale=yes"),
        "--instructions": ("nowhere.md", "photos"),
        "--out": ("photos", "pairs.csv"),
    },
    "annotate serve photos": {
        "--port": ("x", "-1", "99999999", ""),
        "--public-url": ("study.example", "https://study.example/a?b"),
        "--certificate": ("nowhere.pem",),
        "nothing": ("",),
    },
    "annotate links photos": {
        "--n": ("0", "-1", "x", "99999999999"),
        "--out": ("photos", "pairs.csv", "pairs.csv/x.csv"),
        "--public-url": ("study.example", ""),
    },
    "annotate import judgements.csv --from table --out new.csv": {
        "--from": ("nothing",),
        "--campaign": ("nowhere", "photos"),
        "--out": ("photos", "judgements.csv", "x.gif"),
        "--json": ("photos", "judgements.csv"),
    },
    "annotate import hits.csv --from mturk --out new.csv": {
        "--item": ("Input.item", "Input.nothing{n}"),
        "--question": ("answer", "=", "why=Answer.why{n}"),
        "--many": ("nothing",),
        "--golden": ("Input.golden{n}",),
    },
    "annotate import annotated.json --from label-studio --out new.csv": {
        "--config": ("nowhere.xml", "photos", "pairs.csv"),
    },
    "annotate mturk-review hits.csv --out new.csv": {"--decisions": ("nowhere.csv", "votes.csv")},
    "annotate questions photos --for mturk --out new": {"--height": ("-1", "x"), "--for": ("nothing",)},
    "annotate prolific create photos --url https://x.example": {"--minutes": ("0",), "--places": ("0",)},
    "annotate prolific bonus photos": {"--from": ("nowhere.csv", "votes.csv")},
    "annotate prolific reject photos": {"--from": ("nowhere.csv", "votes.csv")},
    "build refine rows.csv --against blind:length --least 1 --out new.csv": {
        "--scores": ("nowhere.csv", "votes.csv", "photos/p0.png", "nothing", "caption"),
        "--scales": ("x", "vera=0", "vera=1"),
        "--bins": ("0", "x", "99999999"),
        "--share": ("0", "1", "nan", "x"),
        "--least": ("-1",),
        "--within": ("nothing",),
        "--against": ("pixels:colours", "nothing:x", "given:scores.csv"),
        "--held-out": ("pixels:colours", "blind:x"),
        "--seed": ("-1", "x"),
        "--out": ("photos", _LONG, "x.gif"),
    },
    "build rate rows.csv --out new.csv": {
        "--scorer": ("nothing:x", "plausibility:clip", "given:scores.csv", "metric:cider"),
        "--columns": ("image", "nothing"),
        "--score": ("id",),
        "--set": ("x", "end=in"),
    },
    "build select rows.csv --category none --out new.csv": {
        "--by": ("nothing", "caption"),
        "--share": ("0", "2", "nan", "x"),
    },
    "build dedup rows.csv --out new.csv": {
        "--near": ("0", "1", "nan", "x"),
        "--fields": ("nothing",),
        "--best": ("caption",),
        "--within": ("nothing",),
    },
    "build clean rows.csv --out new.csv": {
        "--against": ("nowhere.csv", "votes.csv", "nothing", "photos/p0.png"),
        "--split": ("nothing", "image"),
        "--near": ("0", "nan"),
    },
    _FILTER: {
        "--scorers": ("nothing:x", "given:scores.csv", "lm:clip", "open-clip:nothing/openai"),
        "--people": ("nowhere.csv", "votes.csv", "photos/p0.png", "photos"),
        "--column": ("nothing", "caption"),
        "--rule": ("most",),
        "--simulate": ("3", "-1", "x"),
        "--accuracy": ("2", "nan", "x"),
        "--threshold": ("0.5", "nan", "x"),
        "--verified": ("nowhere.csv",),
        "--set": ("x", "a=b"),
    },
    f"{_FILTER} --scorers pixels:colours": {
        "--target-precision": ("0", "1", "0.9", "nan", "x"),
        "--verified": ("nowhere.csv", "votes.csv", "photos/p0.png"),
        "--verify": ("3", "-1", "x"),
        "--confidence": ("0", "1", "nan"),
        "--making": ("-1", "nan", "inf"),
        "--set": ("x", "lm.a=b", "speed=1", "pixels.speed=1"),
        "--images": ("nowhere", "rows.csv"),
        "--people": ("answers.csv",),
        "--out": ("photos", _LONG, "x.gif"),
        "--dropped": ("photos", "pairs.csv", "x.gif"),
    },
    _CHOOSE: {
        "--scorer": ("nothing:x", "given:scores.csv", "lm:clip"),
        "--people": ("nowhere.csv", "votes.csv", "photos/p0.png"),
        "--column": ("nothing", "caption"),
        "--image": ("caption", "nothing"),
        "--caption": ("image", "nothing"),
        "--against": ("image",),
        "--threshold": ("0.5",),
        "--set": ("x",),
        "--out": ("photos", _LONG, "x.gif"),
    },
    _MERGE: {
        "--tables": ("nowhere.csv", "votes.csv", "photos/p0.png"),
        "--benchmarks": ("nothing", "quads"),
        "--data": ("nowhere/at/all",),
        "--verified": ("nowhere.csv", "votes.csv"),
        "--rating": ("x", "nan"),
        "--rule": ("most",),
        "--out": (_LONG, "x.gif"),
    },
    _ROUNDS: {
        "--judge": ("nowhere.csv", "votes.csv", "nothing", "photos/p0.png", "quads", "pixels:colours"),
        "--threshold": ("x", "nan"),
        "--rounds": ("0", "-1", "x"),
        "--k": ("0", "x", "99999999999"),
        "--queries": ("nowhere.txt", "photos", "g1.npz"),
        "--direction": ("up",),
        "--people": ("-1", "x"),
        "--accuracy": ("2", "nan"),
        "--ids": ("nowhere.npz",),
        "--retrain": ("nothing", "negclip", "coco", "pairs.csv"),
        "--retrain-command": ("true {out}",),
        "--start": ("x", "g1=first"),
        "--set": ("steps=1",),
        "--seed": ("-1", "x"),
        "--json": ("photos", "new/rounds.json"),
        "--out": ("pairs.csv", _LONG),
        "nowhere": ("",),
        "pairs.csv": ("",),
        "runs/a": ("",),
    },
    f"{_ROUNDS} --rounds 2": {
        "--retrain-command": ("true", "'true {out}", "false {out}", "true {out}", "nowhere {out}"),
    },
    "world sheet --size 32 --out new.png": {
        "--out": ("x.gif", "photos", "pairs.csv/x.png"),
        "--each": ("0", "-1", "x", "99999999"),
        "--size": ("0", "99999999"),
        "--style": ("baroque",),
    },
    "reproduce": {
        "--data": ("nowhere", "rows.csv", _LONG),
        "--paper": ("P999", ""),
        "--only": ("maybe",),
        "--json": ("photos", "rows.csv/x.json"),
    },
    "demo": {"--out": ("rows.csv", "rows.csv/x", _LONG), "--seed": ("-1", "x")},
    "fetch": {"nothing": ("",)},
    "save pairs --data pairs.csv --images photos --out new": {"--data": ("nowhere",), "--out": ("rows.csv",)},
    "save --out new": {"nothing": ("",)},
    "cache": {"nothing": ("",)},
    "cache limit": {"much": ("",), "-1": ("",)},
    "lengths runs/a": {"--json": ("photos",), "--draws": ("0", "x")},
    "list": {"nothing": ("",), "benchmarks": ("nothing",), "recipes": ("nothing",)},
    "evaluate": {
        "nothing:x": ("quads",),
        "blind:x": ("quads",),
        "given:": ("quads",),
    },
}

#: Scorers that cannot be, each on a benchmark of its form.
SCORERS: tuple[str, ...] = (
    "people:nowhere quads",
    "people:photos quads",
    "given:nowhere.csv pairs --data pairs.csv",
    "given:photos pairs --data pairs.csv",
    "given:photos/p0.png pairs --data pairs.csv",
    "given:votes.csv quads",
    "given:outcomes.csv quads",
    "given:similarity.npy quads",
    "embeddings:nowhere.npz album",
    "embeddings:ids.npz album",
    "embeddings:similarity.npy album",
    "embeddings:vectors.npz album",
    "embeddings:photos album",
    "itm:nowhere/at/all quads",
    "itm:clip quads",
    "regions:clip quads",
    "vqa:clip quads",
    "likelihood:clip quads",
    "lm:clip quads",
    "text-classifier:clip quads",
    "plausibility:clip quads",
    "chat:localhost quads",
    "chat:http://127.0.0.1:9/v1#model quads --set retries=0",
    "blind:constant-image quads",
    "open-clip:nothing/openai quads",
    "open-clip:ViT-B-32/rows.csv quads",
    "open-clip: quads",
    "hf:./nowhere quads",
    "hf:./photos quads",
    "hf-text:./nowhere quads",
    "hf-text:x@y rated",
    "ckpt:nowhere quads",
    "ckpt:photos quads",
    "ckpt:rows.csv quads",
    "blind: quads",
    "metric:nothing rated",
    "metric:cider quads",
    "metric:clip-s rated",
    "metric:spice@x rated",
    "world:oracle pairs --data pairs.csv --images photos",
    "world:nothing quads",
    "pixels:nothing quads",
    "pixels:colours coco-captions --data coco.json",
    "blind:random nothing",
    "blind:random photos",
    "blind:random runs/a/quads",
    "blind:random pairs",
)

_GONE = "image,caption\nnowhere.png,a cat\nelsewhere.png,a dog\n"
_CANDIDATES = "captions score --metrics length --out new.csv --candidates"

#: Files that a command reads and cannot, whole: what is in them, the command, and words of the error.
CONTENTS: dict[str, tuple[str, str, str]] = {
    "laughs.xml": (
        '<!DOCTYPE View [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><View>&b;</View>',
        f"{_LABELLED} --config",
        "has a document type",
    ),
    "boxes.xml": (
        '<View><RectangleLabels name="r" toName="i"/></View>',
        f"{_LABELLED} --config",
        "a control that is not supported",
    ),
    "other-controls.xml": (
        '<View><Choices name="c" toName="i"/></View>',
        f"{_LABELLED} --config",
        "no such control",
    ),
    "maybe.csv": ("id,annotator,answer\n0,a,maybe\n", f"{_FILTER} --people", "maybe"),
    "no-answer.csv": ("id,annotator\n0,a\n", f"{_FILTER} --people", "no column 'answer'"),
    "two-answers.csv": ("id,annotator,answer\n0,a,yes\n0,a,no\n", f"{_FILTER} --people", "answered twice"),
    "other-ids.csv": ("id,answer\nx,yes\ny,no\n", f"{_FILTER} --people", "rows"),
    "no-right.csv": (
        "id,weight\n0,1\n",
        f"{_FILTER} --scorers pixels:colours --threshold 0 --verified",
        "no column 'right'",
    ),
    "weights.csv": (
        "id,right,weight\n0,yes,-1\n1,no,nan\n",
        f"{_FILTER} --scorers pixels:colours --threshold 0 --verified",
        "weight",
    ),
    "two-rights.csv": (
        "id,right\n0,yes\n0,no\n",
        f"{_FILTER} --scorers pixels:colours --threshold 0 --verified",
        "twice",
    ),
    "other-choices.csv": ("of,chosen\n0,nobody\n", f"{_CHOOSE} --people", "nobody"),
    "no-caption.csv": ("image,gain\np0.png,1\n", f"{_MERGE} --tables", "no column 'caption'"),
    "odd-gain.csv": ("image,caption,gain\np0.png,caption 0,much\n", f"{_MERGE} --tables", "much"),
    "no-images.csv": ("caption,answer\na,yes\n", f"{_ROUNDS} --judge", "no column 'image'"),
    "odd-answer.csv": ("image,caption,answer\na,b,perhaps so\n", f"{_ROUNDS} --judge", "perhaps so"),
    "unknown-key.json": ('{"poeple": "two"}', f"{_PUBLISH} --provenance", "unknown key"),
    "no-name.json": ('{"steps": [{"rows_in": 1}]}', f"{_PUBLISH} --provenance", "a step without a name"),
    "no-rows.json": ('{"rows": "pairs.csv"}', f"{_PUBLISH} --provenance", "no column 'id'"),
    "other-rows.json": ('{"rows": "outcomes.csv"}', f"{_PUBLISH} --provenance", "of other questions"),
    "no-candidates.json": ('{"p0": []}', _CANDIDATES, "no candidates"),
    "list-in-list.json": ('{"p0": [["a cat"]]}', _CANDIDATES, "candidate 1: the caption is no string"),
    "list-with-objects.json": ('{"p0": ["a", {"caption": "b"}]}', _CANDIDATES, "candidate 2: the caption"),
    "list-with-null.json": ('{"p0": ["a", null]}', _CANDIDATES, "candidate 2: the caption is no string"),
    "list-with-empty.json": ('{"p0": ["a", " "]}', _CANDIDATES, "candidate 2: the caption is empty"),
    "list-and-entry.json": (
        '[{"image_id": 1, "caption": ["a"]}, {"image_id": 1, "caption": "b"}]',
        _CANDIDATES,
        "in a list and in another entry",
    ),
    "entry-and-list.jsonl": (
        '{"image_id": 1, "caption": "a"}\n{"image_id": 1, "caption": ["b"]}',
        _CANDIDATES,
        "in a list and in another entry",
    ),
    "two-names.json": (
        '{"p0": "a cat", "p0.png": "a dog"}',
        "captions score --metrics length --images photos --candidates",
        "one image under two names",
    ),
    "one-number.csv": (
        "image,caption,candidate\np0,a cat,1\np0,a dog,1\n",
        _CANDIDATES,
        "two candidates of one image have one number",
    ),
    "one-image.json": (
        '{"p0": ["a cat", "a dog"]}',
        "captions score --metrics cider --references references.json --candidates",
        "CIDEr of a single image",
    ),
    "images-gone.csv": (_GONE, f"{_TRAIN} --data", "no such image file"),
    "all-images-gone.csv": (
        _GONE,
        f"{_TRAIN} --validation-share 0 --set batch_size=2 --set unreadable=skip --data",
        "no image can be read",
    ),
    "several-of-a-system.json": (
        '{"p0": ["a cat", "a dog"]}',
        "captions systems --references references.json --predictions systemA.json",
        "a list where one caption is asked for",
    ),
    "twice-of-a-system.jsonl": (
        '{"image_id": "p0", "caption": "a"}\n{"image_id": "p0", "caption": "b"}',
        "captions systems --references references.json --predictions systemA.json",
        "a second candidate for one image",
    ),
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
    "world-build": ("world build quads --n 60 --size 64 --out new", "new"),
    "world-training": ("world build training --n 200 --size 32 --out new", "new"),
    "reproduce": ("reproduce --json new.json --overwrite", "new.json"),
}
