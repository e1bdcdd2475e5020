"""Files that are sound in themselves and hold what a command cannot use."""

from faults.command_lines import CANDIDATES, CHOOSE, FILTER, POOL, PUBLISH, ROUNDS, SYSTEMS, TRAIN

GONE = "image,caption\nnowhere.png,a cat\nelsewhere.png,a dog\n"

#: The head of what judges gave captions of single images, and the rows of the other systems.
OF_IMAGES = "system,judge,image,M\nsystemB,x,p0,1\ncandidates,x,p0,1\n"
PEOPLE = f"{SYSTEMS.replace('systemB.json', 'systemB.json candidates.json')} --humans"

#: Files that a command reads and cannot, whole: what is in them, the command, and words of the error.
CONTENTS: dict[str, tuple[str, str, str]] = {
    "maybe.csv": ("id,annotator,answer\n0,a,maybe\n", f"{FILTER} --people", "maybe"),
    "other-ids.csv": ("id,answer\nx,yes\ny,no\n", f"{FILTER} --people", "rows"),
    "no-right.csv": (
        "id,weight\n0,1\n",
        f"{FILTER} --models pixels:colours --threshold 0 --verified",
        "no column 'right'",
    ),
    "weights.csv": (
        "id,right,weight\n0,yes,-1\n1,no,nan\n",
        f"{FILTER} --models pixels:colours --threshold 0 --verified",
        "weight",
    ),
    "two-rights.csv": (
        "id,right\n0,yes\n0,no\n",
        f"{FILTER} --models pixels:colours --threshold 0 --verified",
        "twice",
    ),
    "other-choices.csv": ("of,chosen\n0,nobody\n", f"{CHOOSE} --people", "nobody"),
    "no-images.csv": ("caption,answer\na,yes\n", f"{ROUNDS} --judge", "no column 'image'"),
    "odd-answer.csv": ("image,caption,answer\na,b,perhaps so\n", f"{ROUNDS} --judge", "perhaps so"),
    "unknown-key.json": ('{"poeple": "two"}', f"{PUBLISH} --provenance", "unknown key"),
    "no-name.json": ('{"steps": [{"rows_in": 1}]}', f"{PUBLISH} --provenance", "no field 'steps.0.name'"),
    "no-rows.json": ('{"rows": "pairs.csv"}', f"{PUBLISH} --provenance", "no column 'id'"),
    "other-rows.json": ('{"rows": "outcomes.csv"}', f"{PUBLISH} --provenance", "of other questions"),
    "no-candidates.json": ('{"p0": []}', CANDIDATES, "no candidates"),
    "two-names.json": (
        '{"p0": "a cat", "p0.png": "a dog"}',
        "captions score --metrics length --images photos --candidates",
        "one image under two names",
    ),
    "images-gone.csv": (GONE, f"{TRAIN} --data", "no such image file"),
    "several-of-a-system.json": (
        '{"p0": ["a cat", "a dog"]}',
        "captions systems --references references.json --predictions systemA.json",
        "a list where one caption is asked for",
    ),
    "fewer.json": (
        '{"p0": "a dog"}',
        "captions systems --references references.json --predictions systemA.json",
        "systems wrote captions of different images",
    ),
    **{
        f"people-{i}.csv": (text, PEOPLE, words)
        for i, (text, words) in enumerate(
            (
                ("system,M1\nsystemA,1\n", "systems that people gave nothing; given: systemB, candidates"),
                ("who,M1\nsystemA,1\n", "no column 'system'; given: who, M1"),
                ("system\nsystemA\n", "no scores of people"),
                (
                    "system,M1\nsystemA,1\nsystemB,x\ncandidates,1\n",
                    "row 2, column 'M1': not a number; given: x",
                ),
                ("system,M1\nsystemA,1\nsystemA,2\nsystemB,1\n", "a system occurs twice; given: systemA"),
                (f"{OF_IMAGES}systemA,x,p0,1\nsystemA,x,p0,2\n", "twice; given: systemA, x, p0"),
                (f"{OF_IMAGES}systemA,x,owl,1\n", "an image that no system wrote a caption of; given: owl"),
            )
        )
    },
    **{
        f"mine-{i}.toml": (f'recipe = "coco"\n[run]\n{line}\n', "train", words)
        for i, (line, words) in enumerate(
            (
                ('modle = "small"', "[run]: unknown key; given: modle"),
                ("devices = 0", "[run], key 'devices': out of range; given: 0"),
                ("model = 3", "key 'model': wrong type; given: int; allowed: a text"),
            )
        )
    },
    "elsewhere.csv": (
        "direction,image,caption,gain\nt2i,999,5,1\n",
        "pool bias galleries/g1 galleries/g2 --judgements",
        "judged pairs of items that no model ranks; given: 1 pairs",
    ),
    "empty.txt": ("\n", f"{POOL} --queries", "no query in this file"),
}
