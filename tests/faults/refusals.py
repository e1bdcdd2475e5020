"""What commands refuse: what follows a sound start, and what the line about it says."""

from faults import command_lines
from faults.command_lines import BIAS, SCORE, SYSTEMS, TEXTS, TRAIN

SUGARCREPE = "evaluate blind:constant sugarcrepe --no-cache"
DETECTOR = "train detector --model small --data rows.csv --images photos --out new"
REFINE = "build refine rows.csv --balance blind:bag-of-words --held-out blind:length --out new.csv"
EVALUATED = "evaluate blind:length pairs --data pairs.csv"
READ = "would replace what this command reads"
EXISTS = "the file exists; name another file, or replace it with --overwrite"
TWICE = "two results would be written to one file"

#: What is added to the start of a command, as one types it, and words of the error.
REFUSALS: dict[str, dict[str, str]] = {
    # What is mistyped: the line says what, and where to look.
    "": {
        "trian": "no such command 'trian'; did you mean 'train'?; see 'counterfoil --help'",
        "list recipe": "no such command 'recipe'; did you mean 'recipes'?; see 'counterfoil list --help'",
        "list benchmarks winogrand": "did you mean 'winoground'",
        "--speed": "no such option: --speed; see 'counterfoil --help'",
        "work job --rank 0": "the command was removed; given: work; run the command itself with",
        "estimate evaluate blind:length bivlc": "given: estimate; run 'counterfoil evaluate' with",
        "merge --help": "the command was removed; given: merge; run the command once more without",
        "build merge x.csv": "given: build merge; concatenate the tables of pairs",
        "world sheet": "given: world sheet; run examples/draw_a_world.py",
        "train coco --tensorboard": "given: --tensorboard; read journal.csv",
        "pool rounds x --out y --retrain=coco": "removed; given: --retrain; train on positives.csv with",
        "world build quads --n x": "see 'counterfoil world build --help'",
        "world build quads more --out x": "unexpected extra argument",
        "benchmarks fetch bivlcc": "did you mean 'bivlc'?",
        "benchmarks publish x --split 0.2": "given: --split; name the split of every question",
        "demo --dials": "given: --dials; run 'counterfoil train vse0' with --set mining=",
        "annotate simulate x --http": "given: --http; leave it out: simulated people call the functions",
        "train coco --checkpoint-activations": "given: --checkpoint-activations; use --chunk-size N",
        "annotate export x --kind csv": "the option was renamed; given: --kind; use --format",
        "evaluate metric:clip-s rated --scorer hf:x": "renamed; given: --scorer; use --backbone",
        "list recipes --json --quiet": "option '--json' requires an argument; given: --quiet",
        # What follows an option of a list is of it.
        "captions systems --predictions a.json b.json": "missing option '--references'",
    },
    SCORE: {
        "": "missing option '--metrics'",
        "--metrics clipp": "did you mean 'clip-s'?",
        "--metrics ,": "no metric is named",
        "--metrics clip-s --backbone hf:x": "metric:clip-s looks at images, and none were given",
        "--metrics cider --backbone hf:x": "none of these metrics has a model behind it",
        "--metrics cider": "has no references, which metric:cider compares with",
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
        "systemA.json systemA.json": "two systems of one name; given: systemA"
    },
    "evaluate": {
        "": "missing argument 'model'; see 'counterfoil evaluate --help'",
        "blind:length": "missing argument 'benchmarks'",
        "blind:random world-quads --draws many": "--draws: not a whole number; given: many; allowed: 100 to ",
        "blind:constant world-gallery --limit 5": "a gallery is measured whole",
        "blind:constant world-quads --data photos": "is drawn, not read",
        "blind:length winogrund": "did you mean 'winoground'",
        "blind:length mybench": "lists all; name your own by its folder or TOML file",
        "blind:length ''": "no name of a file or folder; given: (empty)",
        "blind:length photos": "photos: no benchmark in this folder",
        "blnd:length bivlc": "did you mean 'blind'",
        "blind:lenght bivlc": "did you mean 'length'",
        "world:oracel bivlc": "did you mean 'oracle'",
        "blind bivlc": "a model is written KIND:WHAT",
        "pixels:colours pairs --data pairs.csv": "--images",
        "metric:cidr rated": "did you mean 'cider'?",
        "metric:clip-s rated": "needs a model to look with; name one with --backbone",
        "pixels:colours quads --set a=b": "takes no settings",
        "open-clip:no-such-model/x sugarcrepe --data sugarcrepe --no-counts": "images are not at hand",
        "blind:length pairs.csv": "write pairs --data pairs.csv",
        "blind:length scores.csv": "scores are a model: given:scores.csv",
        "given:scores.csv pairs --data pairs.csv --json scores.csv": READ,
    },
    f"{EVALUATED} --name": {"''": "--name: an empty name; give a text, or leave --name out"},
    EVALUATED: {"--json pairs.csv": READ, "--json pairs.csv --overwrite": READ, "--json votes.json": EXISTS},
    # A number of questions, or a share of them.
    f"{EVALUATED} --limit": dict.fromkeys(("0", "-1", "1.5", "half", "nan", "inf"), "counterfoil: --limit: "),
    SUGARCREPE: {
        "--data a --data b": "--data is given twice",
        "--data sugarcrepe=a --data sugarcrepe=b": "--data names one benchmark twice",
        "--data bivlc=a": "that is not asked about; given: bivlc=a; allowed: sugarcrepe",
        "--data sugarcrepe=": "--data lacks a path; given: sugarcrepe=",
        "--data ''": "--data: no name of a file or folder",
        "--data sugarcrepe=nowhere": "nowhere: no such file or folder; check --data",
    },
    "audit": {"judged_pairs.csv": "write gallery --data judged_pairs.csv"},
    "compare": {
        "": "missing argument 'runs'",
        "scores.csv": "evaluate given:scores.csv BENCHMARK --out runs/scores",
        "runs/a --html -": "--html: standard output takes JSON alone; allowed: a path",
    },
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
        "": "missing argument 'recipe'; see 'counterfoil train --help'",
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
        "--out clip": "the folder holds files (",
        "--model first --out first": READ,
        "--out new --json new/card.json": TWICE,
    },
    "train mix first second --alpha 0.5": {"--out clip": "the folder holds files (", "--out second": READ},
    DETECTOR: {
        "--devices 2": "--devices: a detector is trained by one process",
        "--chunk-size 2": "--chunk-size: a detector is trained by one process",
    },
    "train mix first second": {
        "--alpha 0.5": "missing option '--out'",
        "--task world-quads": "removed; given: --task; write mixtures with --alpha and evaluate each",
    },
    "world build --out new": {
        "choices --style mixed": "unknown style; given: mixed; allowed: natural, synthetic",
        "quads --captions-each 3": "--captions-each does not go with 'quads'",
        "training --style natural": "--style does not go with 'training'",
        "training --kind coco --failure 0.5": "nothing is generated in this kind",
        "quads --n 3 --out photos": "the folder holds files",
    },
    "build dedup judged_pairs.csv": {"--out new.csv": "no column 'negative_caption', which 'dedup' reads"},
    "build bivlc --out new": {"--set imagine.q=1": "unknown key; given: q"},
    REFINE: {
        "--set lm.speed=3": "a setting of a model that is not named; given: lm.speed=3",
        # A comma is the value's own, but before another key.
        "--set 'prompt=Is it so, or not?,pace=1'": "unknown key; given: prompt",
    },
    "cache limit --": {**dict.fromkeys(("much", "'5 cats'", "-1GB", "1e99", "9" * 40), "no size; given:")},
    "annotate simulate unasked --mix": {
        **dict.fromkeys(("able=inf", "able=nan", "able=-1", "able=x"), "--mix, able: "),
        "able": "--mix needs KEY=VALUE",
    },
    "build negate rows.csv --out new.csv": {"--categories add_att,add_att": "no categories, or one twice"},
    "annotate create --images photos --out new --from pairs.csv": {
        "choose": ": --from pairs --data",
        "yes-no --sample 20": "--sample is of ",
    },
}

#: Options with values that they cannot have, and arguments that name nothing: each behind the sound command
#: line above it, or before it in its line. Ranges and types are declared with the options, and tests of those
#: hold them for all (`unit/inputs`).
OPTIONS = """
evaluate blind:length pairs --no-cache | --data votes.csv candidates.json
{QUADS}
    --draws 0 -1 99 1e9 9999999999999 many ''
    --ties '' lenient 'STRICT '
    --measure '' grup recall_at_0 recall_at_99999999999 accuracy
    --ids nowhere.npz quads ids.npz
    --column nothing
    --set x = a=b
    --model blind:random nothing
    --first-stage nothing
    --executor '' dask rank:2/2 rank:0/0 rank:-1/2 rank:0/2 rank:x/y
    --data nowhere {LONG} loop
    --images nowhere {LONG}
    --json quads pairs.csv/x.json {LONG}.json photos/p0.png/x
    --out pairs.csv pairs.csv/runs {LONG}
    --nonsense 1
{AUDIT}
    --data nowhere photos/p0.png
    --model nothing pixels:colours lm:nowhere
    --against nowhere.csv photos
benchmarks publish quads
    --out '' quads photos pairs.csv/x
{PUBLISH}
    --licence CC-BY-4 mine
    --date 2024-13-01 today
    --language English e
    --url here
    --provenance nowhere.json photos pairs.json
{EXPLAIN} | --questions nothing , ''
{RUNS}
    --baseline '' nobody
    --draws 0 x 9999999999999
    --html runs pairs.csv/x.html {LONG}.html
    --json photos
    nowhere quads
{POOL}
    --queries nowhere.txt photos photos/p0.png g1.npz
    --out x.xls photos pairs.csv/x.csv
    --device gpu cuda:99
    --ids nowhere.npz
    nowhere.npz runs/a
{BIAS}
    --measure accuracy '' recall_at_x
    --positives nothing quads
    --judgements nowhere.csv votes.csv photos/p0.png quads
{TRAIN} --data training | --cache rows.csv
{TRAIN} --data rows.csv
    --model nothing hf:./nowhere open-clip:none/none ckpt:quads nowhere/ blind:random
    --data nowhere photos votes.csv 'shard-{{0..9999999}}.tar' 'shard-{{5..1}}.tar'
    --images nowhere rows.csv
    --validation nowhere
    --seed -1 x 999999999999999999999999999999
    --set x eps=x nothing=1 =1 betas=1 accumulate=0 accumulate=x accumulate=1e12 erasing=-0.1 erasing=nan
    --set word_drop=2 word_drop=x
    --guard nothing
    --device gpu cuda:99
    --out rows.csv rows.csv/new {LONG}
train mix --alpha 0.5 --out new first | nowhere quads rows.csv
{TEXTS}
    --metrics '' cidr clip-s
    --candidates nowhere.json photos votes.csv photos/p0.png
    --references nowhere.json photos candidates.toml
    --set x a=b clip-s.prefix=x
    --out x.txt photos candidates.json/x.csv
    --model blind:random
{CLIP}
    --model nothing embeddings:nowhere.npz embeddings:photos/p0.png given:scores.csv
    --images nowhere candidates.json
    --set weight=x weight=nan weight=1e400 prefx=a
    --videos features
{SYSTEMS}
    --humans nowhere.csv votes.csv photos
    --metrics cidr ''
    --references nowhere.json
world build quads --n 2 --size 32 --out new
    --style baroque
    --out rows.csv photos {LONG}
    --kind coco
world build training --n 2 --size 32 --out new | --kind nothing
world build --out new | nothing
reproduce
    --data nowhere rows.csv {LONG}
    --paper P999 ''
demo | --out rows.csv rows.csv/x {LONG}
benchmarks fetch | nothing
benchmarks save pairs --data pairs.csv --images photos --out new
    --data nowhere
    --out rows.csv
benchmarks save --out new | nothing
cache | nothing
compare lengths runs/a
    --json photos
    --draws 0 x
list | nothing 'benchmarks nothing' 'recipes nothing'
evaluate | 'nothing:x quads' 'blind:x quads' 'given: quads'
build bivlc --n 7 --no-cache --out new
    --set x = imagine.k=0 imagine.k=x read.size=3 nothing.k=1
    --from nowhere.csv photos photos/p0.png rated {LONG}
    --llm lm:nowhere
    --imagine nothing diffusers:nowhere diffusers:photos
    --people nowhere.csv
    --out photos pairs.csv
build nothing.toml --out new | nothing
build refine rows.csv --balance blind:length --held-out blind:unigram --out new.csv
    --scores nowhere.csv votes.csv photos/p0.png nothing caption
    --within nothing
    --balance pixels:colours nothing:x given:scores.csv
    --held-out pixels:colours blind:x
    --out photos {LONG} x.gif
build rate rows.csv --out new.csv
    --model nothing:x plausibility:clip given:scores.csv metric:cider
    --columns image nothing
    --score id
    --set x end=in
build select rows.csv --category none --out new.csv | --by nothing caption
build dedup rows.csv --out new.csv
    --fields nothing
    --best caption
    --within nothing
build clean rows.csv --out new.csv
    --against nowhere.csv votes.csv nothing photos/p0.png
{FILTER}
    --models nothing:x given:scores.csv lm:clip open-clip:nothing/openai
    --people nowhere.csv votes.csv photos/p0.png photos
    --column nothing caption
    --verified nowhere.csv
    --set x a=b
{FILTER} --models pixels:colours
    --verified nowhere.csv votes.csv photos/p0.png
    --set x lm.a=b speed=1 pixels.speed=1
    --images nowhere rows.csv
    --people answers.csv
    --out photos {LONG} x.gif
    --dropped photos pairs.csv x.gif
{CHOOSE}
    --model nothing:x given:scores.csv lm:clip
    --people nowhere.csv votes.csv photos/p0.png
    --column nothing caption
    --image caption nothing
    --caption image nothing
    --against image
    --out photos {LONG} x.gif
{ROUNDS}
    --judge nowhere.csv votes.csv nothing photos/p0.png quads pixels:colours
    --queries nowhere.txt photos g1.npz
    --ids nowhere.npz
    --json photos new/rounds.json
    --out pairs.csv {LONG}
    nowhere pairs.csv runs/a
annotate forms nothing | nothing
annotate status nowhere | nothing
annotate status photos | nothing
annotate review photos
    --out photos x.txt
    nothing
annotate adjudicate photos | nothing 1
annotate withdraw photos | nothing
annotate delete-after photos | nothing
annotate approve | 'photos nothing' 'campaign nothing'
annotate approve campaign --suggested | --database nothing sqlite:///nowhere/x.sqlite
annotate reject --reason Careless. | 'photos nothing' 'campaign nothing'
annotate adjudicate campaign | nothing
annotate withdraw campaign
    --person nothing
    --worker nothing
annotate delete-after campaign --yes | --database nothing mysql://x/y
annotate status campaign | --database nothing mysql://x/y
annotate export campaign --out new | --label-model nothing ''
annotate simulate unasked --people 2 | --keep campaign pairs.csv
annotate agreement campaign --draws 100 | --html photos pairs.csv
annotate prolific status photos | nothing
annotate prolific approve photos | nothing
annotate agreement judgements.csv
    --campaign nowhere photos
    --database sqlite:///x
    nowhere
annotate agreement photos --draws 100 | nothing
annotate export | nowhere photos pairs.csv
annotate export nowhere
    --kind xls ''
    --partly some
annotate simulate unasked
    --mix '' able able=x nobody=1 able=nan able=-1 able=0
    --out photos pairs.csv
    nothing
annotate create yes-no --from pairs.csv --images photos --out new
    --from nowhere.csv photos votes.csv album rated/questions.parquet {LONG}
    --images nowhere pairs.csv
    --golden nowhere.csv pairs.csv auto
    --onboarding nowhere.csv votes.csv
    --keep-until soon
    --entry nothing mturk ''
    --set x rationale=yes
    --out photos pairs.csv
annotate serve photos
    --public-url study.example 'https://study.example/a?b'
    nothing
annotate links photos
    --out photos pairs.csv pairs.csv/x.csv
    --public-url study.example ''
annotate import hits.csv --format mturk --out new.csv
    --item Input.item 'Input.nothing{{n}}'
    --question-column answer = 'why=Answer.why{{n}}'
    --many nothing
    --golden-column 'Input.golden{{n}}'
annotate import annotated.json --format label-studio --out new.csv
    --format nothing table
    --out photos judgements.csv x.gif
    --json photos judgements.csv
annotate prolific reject photos | nothing
""".format_map(vars(command_lines))

#: Models that cannot be, by the benchmark that each is asked about.
MODELS: dict[str, str] = {
    "quads": """
        people:nowhere people:photos given:votes.csv given:outcomes.csv given:similarity.npy
        itm:nowhere/at/all itm:clip regions:clip vqa:clip likelihood:clip lm:clip text-classifier:clip
        plausibility:clip chat:localhost blind:constant-image open-clip:nothing/openai
        open-clip:ViT-B-32/rows.csv open-clip: hf:./nowhere hf:./photos hf-text:./nowhere ckpt:nowhere
        ckpt:photos ckpt:rows.csv blind: metric:cider world:nothing pixels:nothing
    """,
    "pairs --data pairs.csv": "given:nowhere.csv given:photos given:photos/p0.png",
    "album": """
        embeddings:nowhere.npz embeddings:ids.npz embeddings:similarity.npy embeddings:vectors.npz
        embeddings:photos
    """,
    "quads --set retries=0": "chat:http://127.0.0.1:9/v1#model",
    "rated": """
        given:scores.csv given:outcomes.csv given:similarity.npy hf-text:x@y metric:nothing metric:clip-s
        metric:spice@x
    """,
    "pairs --data pairs.csv --images photos": "world:oracle",
    "coco-captions --data coco.json": "pixels:colours",
    "nothing": "blind:random",
    "photos": "blind:random",
    "runs/a/quads": "blind:random",
    "pairs": "blind:random",
}
