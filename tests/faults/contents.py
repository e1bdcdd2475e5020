"""Files that are sound in themselves and hold what a command cannot use."""

from faults.command_lines import CANDIDATES, CHOOSE, FILTER, LABELLED, MERGE, PUBLISH, ROUNDS, TRAIN

GONE = "image,caption\nnowhere.png,a cat\nelsewhere.png,a dog\n"

#: Files that a command reads and cannot, whole: what is in them, the command, and words of the error.
CONTENTS: dict[str, tuple[str, str, str]] = {
    "laughs.xml": (
        '<!DOCTYPE View [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><View>&b;</View>',
        f"{LABELLED} --config",
        "has a document type",
    ),
    "boxes.xml": (
        '<View><RectangleLabels name="r" toName="i"/></View>',
        f"{LABELLED} --config",
        "a control that is not supported",
    ),
    "other-controls.xml": (
        '<View><Choices name="c" toName="i"/></View>',
        f"{LABELLED} --config",
        "no such control",
    ),
    "maybe.csv": ("id,annotator,answer\n0,a,maybe\n", f"{FILTER} --people", "maybe"),
    "no-answer.csv": ("id,annotator\n0,a\n", f"{FILTER} --people", "no column 'answer'"),
    "two-answers.csv": ("id,annotator,answer\n0,a,yes\n0,a,no\n", f"{FILTER} --people", "answered twice"),
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
    "no-caption.csv": ("image,gain\np0.png,1\n", f"{MERGE} --tables", "no column 'caption'"),
    "odd-gain.csv": ("image,caption,gain\np0.png,caption 0,much\n", f"{MERGE} --tables", "much"),
    "no-images.csv": ("caption,answer\na,yes\n", f"{ROUNDS} --judge", "no column 'image'"),
    "odd-answer.csv": ("image,caption,answer\na,b,perhaps so\n", f"{ROUNDS} --judge", "perhaps so"),
    "unknown-key.json": ('{"poeple": "two"}', f"{PUBLISH} --provenance", "unknown key"),
    "no-name.json": ('{"steps": [{"rows_in": 1}]}', f"{PUBLISH} --provenance", "no field 'steps.0.name'"),
    "no-rows.json": ('{"rows": "pairs.csv"}', f"{PUBLISH} --provenance", "no column 'id'"),
    "other-rows.json": ('{"rows": "outcomes.csv"}', f"{PUBLISH} --provenance", "of other questions"),
    "no-candidates.json": ('{"p0": []}', CANDIDATES, "no candidates"),
    "list-in-list.json": ('{"p0": [["a cat"]]}', CANDIDATES, "candidate 1: the caption is no string"),
    "list-with-objects.json": ('{"p0": ["a", {"caption": "b"}]}', CANDIDATES, "candidate 2: the caption"),
    "list-with-null.json": ('{"p0": ["a", null]}', CANDIDATES, "candidate 2: the caption is no string"),
    "list-with-empty.json": ('{"p0": ["a", " "]}', CANDIDATES, "candidate 2: the caption is empty"),
    "list-and-entry.json": (
        '[{"image_id": 1, "caption": ["a"]}, {"image_id": 1, "caption": "b"}]',
        CANDIDATES,
        "in a list and in another entry",
    ),
    "entry-and-list.jsonl": (
        '{"image_id": 1, "caption": "a"}\n{"image_id": 1, "caption": ["b"]}',
        CANDIDATES,
        "in a list and in another entry",
    ),
    "two-names.json": (
        '{"p0": "a cat", "p0.png": "a dog"}',
        "captions score --metrics length --images photos --candidates",
        "one image under two names",
    ),
    "one-number.csv": (
        "image,caption,candidate\np0,a cat,1\np0,a dog,1\n",
        CANDIDATES,
        "two candidates of one image have one number",
    ),
    "one-image.json": (
        '{"p0": ["a cat", "a dog"]}',
        "captions score --metrics cider --references references.json --candidates",
        "CIDEr of a single image",
    ),
    "images-gone.csv": (GONE, f"{TRAIN} --data", "no such image file"),
    "all-images-gone.csv": (
        GONE,
        f"{TRAIN} --validation-share 0 --set batch_size=2 --set unreadable=skip --data",
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
