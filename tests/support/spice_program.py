"""A program in the place of SPICE: the F-score of words, without Java and without the parser."""

import sys

#: Stands for Java and the parser: the F-score of words, written as SPICE writes, and the command line kept.
PROGRAM = """#!{python}
import json, sys
from pathlib import Path
if sys.argv[1] == "-version":
    sys.exit(sys.stderr.write('openjdk version "{version}" 2014-03-18\\n') and None)
Path({kept!r}).write_text(json.dumps(sys.argv[1:]))
asked = json.loads(Path(sys.argv[sys.argv.index("edu.anu.spice.SpiceScorer") + 1]).read_text())
found = []
for row in asked[::-1]:
    test, refs = set(row["test"].split()), set(" ".join(row["refs"]).split())
    pr, re = len(test & refs) / max(1, len(test)), len(test & refs) / max(1, len(refs))
    f = 2 * pr * re / (pr + re) if pr + re else 0.0
    found.append({{"image_id": row["image_id"], "scores": {{"All": {{"f": f, "pr": pr, "re": re}}}}}})
{ending}
Path(sys.argv[sys.argv.index("-out") + 1]).write_text(json.dumps(found, indent=2))
"""


def fake(folder, monkeypatch, *, version="1.8.0_402", ending=""):
    """A `java` on PATH; gives the file where it keeps its command line."""
    kept = folder / "command.json"
    program = folder / "java"
    program.write_text(
        PROGRAM.format(python=sys.executable, version=version, kept=str(kept), ending=ending), "utf-8"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return kept
