"""A few captions with their references, as the commands on captions read them from files."""

import json
from pathlib import Path

CANDIDATES = {"dog": "a brown dog runs", "cat": "two cats sleep on a bed", "cow": "a cow in a field"}
REFERENCES = {
    "dog": ["a dog is running", "the brown dog runs on grass"],
    "cat": ["two cats are asleep", "cats on a bed"],
    "cow": ["one cow stands in a green field"],
    "owl": ["an owl at night"],
}


def written(path: Path, value: object) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(json.dumps(value))
    return path
