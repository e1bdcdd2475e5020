"""Files that are sound in themselves and hold what a command cannot use."""

from faults.command_lines import CANDIDATES, CHOOSE, FILTER, LABELLED, MERGE, PUBLISH, ROUNDS, TRAIN

GONE = "image,caption\nnowhere.png,a cat\nelsewhere.png,a dog\n"

#: Files that a command reads and cannot, whole: what is in them, the command, and words of the error.
CONTENTS: dict[str, tuple[str, str, str]] = {
    "boxes.xml": (
        '<View><RectangleLabels name="r" toName="i"/></View>',
        f"{LABELLED} --config",
        "a control that is not supported",
    ),
    "maybe.csv": ("id,annotator,answer\n0,a,maybe\n", f"{FILTER} --people", "maybe"),
    "other-ids.csv": ("id,answer\nx,yes\ny,no\n", f"{FILTER} --people", "rows"),
    "no-right.csv": (
        "id,weight\n0,1\n",
        f"{FILTER} --scorers pixels:colours --threshold 0 --verified",
        "no column 'right'",
    ),
    "weights.csv": (
        "id,right,weight\n0,yes,-1\n1,no,nan\n",
        f"{FILTER} --scorers pixels:colours --threshold 0 --verified",
        "weight",
    ),
    "two-rights.csv": (
        "id,right\n0,yes\n0,no\n",
        f"{FILTER} --scorers pixels:colours --threshold 0 --verified",
        "twice",
    ),
    "other-choices.csv": ("of,chosen\n0,nobody\n", f"{CHOOSE} --people", "nobody"),
    "odd-gain.csv": ("image,caption,gain\np0.png,caption 0,much\n", f"{MERGE} --tables", "much"),
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
}
