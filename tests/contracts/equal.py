"""Hold the source to an earlier commit: the same commands on the same files give the same bytes.

`make equal BASE=COMMIT` runs the commands below with the source of either commit and prints how many files of
each kind are equal: cache keys and shards, answers, measures, weights, rows. Builds and trainings are also
killed in the middle and run again. Data of released benchmarks (`../shared/data`) are read under every name
that takes them. It ends with 1 where something differs.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
#: Commands in the folder that `counterfoil demo --files` fills, with a cache of their own.
COMMANDS = """
evaluate pixels:colours pairs --data pairs.csv --images photos --out runs/colours
evaluate pixels:colours pairs --data quads.csv --images photos --out runs/quads
evaluate pixels:colours gallery --data gallery.csv --images photos --out runs/gallery
evaluate blind:learned pairs --data pairs.csv --images photos --out runs/learned
evaluate given:scores/sharp.csv pairs --data pairs.csv --out runs/sharp
evaluate blind:length ratings --data ratings.csv --images photos --out runs/ratings
train trohn-text --model small --data pairs.csv --images photos --batch-size 16 --steps 40 \
    --set validate_every=4 --out trained
evaluate trained pairs --data pairs.csv --images photos --out runs/checkpoint
build sugarcrepe --n 20 --out build
annotate create choose --from pairs --data pairs.csv --images photos --sample 20 --overlap 2 --out people
annotate simulate people --people 4 --keep answered
annotate export answered --out labels
""".strip().splitlines()
#: Outputs that are made once more by a command that is killed when it has written such a file, and run again.
KILLED = {"trained": "resume.pt", "build": "steps/2*/rows.parquet"}
#: What is compared of the files that come out, by the end of their paths. Paths of the cache are its keys.
KINDS = {
    "shards and keys of the cache": "cache/**/*",
    "answers per item": "runs/*/*/answers.parquet",
    "measures": "runs/*/*/result.json",
    "weights": "*/model.safetensors",
    "rows of builds": "build/steps/*/*.parquet",
    "rows of builds that were killed": "build-killed/steps/*/*.parquet",
    "labels of campaigns": "labels/labels.csv",
}
#: Parts of results that say when and where they were made, and notes of the cache on files of this machine.
OF_A_RUN = ("provenance", "made_with")
OF_A_MACHINE = ("files-", "identities")
#: What keys of results are called now, and the words in them, which are no measures.
RENAMED, WORDS = {"scorer": "model"}, ("note",)
#: Benchmarks that went on purpose: scenes that move, and PMRP of captions that are not COCO's test half.
GONE = ("world-clips None", "pmrp coco_mini", "pmrp-original coco_mini")
_DIGESTS = """
import json, sys
from pathlib import Path
import counterfoil as cf
digests = {}
for name in cf.list_benchmarks():
    for data in [None] if name.startswith("world") else sorted(Path(sys.argv[1]).glob("*/")):
        try:
            digests[f"{name} {data and data.name}"] = cf.load_benchmark(name, data=data).digest
        except cf.CounterfoilError:
            digests[f"{name} {data and data.name}"] = "refused"
print(json.dumps(digests))
"""


def outcomes(source: Path, folder: Path) -> dict[str, dict[str, str]]:
    """The digest of every file that the commands write with a source, by kind, and those of benchmarks."""
    python = [sys.executable, "-W", "ignore"]
    setting = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    setting["COUNTERFOIL_CACHE"] = str(folder / "first" / "cache")
    files = [*python, "-m", "counterfoil", "demo", "--files", "first"]
    subprocess.run(files, cwd=folder, env=setting, check=True)
    folder /= "first"
    kinds: dict[str, dict[str, str]] = defaultdict(dict)
    for command in COMMANDS:
        words = [*python, "-m", "counterfoil", *command.split()]
        subprocess.run(words, cwd=folder, env=setting, capture_output=True, check=True)
        if (whole := words[-1]) in KILLED:
            words[-1] = again = f"{whole}-killed"
            begun = subprocess.Popen(
                words, cwd=folder, env=setting, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            while begun.poll() is None and not any(folder.glob(f"{again}/{KILLED[whole]}")):
                time.sleep(0.01)
            begun.kill()
            assert begun.wait() == -signal.SIGKILL, f"{command}: over before it was killed"
            subprocess.run(words, cwd=folder, env=setting, capture_output=True, check=True)
    for kind, pattern in KINDS.items():
        for path in filter(Path.is_file, sorted(folder.glob(pattern))):
            name = path.relative_to(folder).as_posix()
            if not any(part.startswith(OF_A_MACHINE) for part in path.parts):
                kinds[kind][name] = hashlib.sha256(content(path)).hexdigest()
    known = {name: digest for files in kinds.values() for name, digest in files.items()}
    unlike = [name for name, digest in known.items() if digest != known[name.replace("-killed/", "/")]]
    assert not unlike, f"not as if they had never been killed: {unlike}"
    data = str(ROOT.parent / "shared" / "data")
    command = [*python, "-c", _DIGESTS, data]
    done = subprocess.run(command, cwd=folder, env=setting, capture_output=True, check=True)
    kinds["digests and refusals of benchmarks"] = json.loads(done.stdout)
    return kinds


def content(path: Path) -> bytes:
    if path.suffix != ".json":
        return path.read_bytes()

    def plain(part: dict[str, Any]) -> dict[str, Any]:
        return {RENAMED.get(key, key): part[key] for key in part if key not in WORDS}

    value = json.loads(path.read_bytes(), object_hook=plain)
    return json.dumps({key: part for key, part in value.items() if key not in OF_A_RUN}).encode()


def main(base: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "base"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", before, base], cwd=ROOT, check=True)
        try:
            sides: list[dict[str, dict[str, str]]] = []
            for source in (before / "src", ROOT / "src"):
                work = Path(folder) / f"work-{len(sides)}"
                work.mkdir()
                sides.append(outcomes(source, work))
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", before], cwd=ROOT, check=True)
    differences = 0
    for kind in sides[0]:
        there = (side.get(kind, {}).items() for side in sides)
        then, now = ({name: digest for name, digest in of if name not in GONE} for of in there)
        other = sorted(name for name in {*then, *now} if then.get(name) != now.get(name))
        print(f"{kind:36} {len(then) - len(other):5} of {len(then)} equal")
        for name in other[:10]:
            print(f"    {name}: {then.get(name)} | {now.get(name)}")
        differences += len(other)
    return int(differences > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "HEAD"))
