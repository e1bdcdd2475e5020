"""The command lines whose results are kept: exit codes, numbers, columns, digests; no prose and no pages."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from faults.command import run

KEPT = Path(__file__).parent / "kept"
_WIDTH = 110
_FEW = "--draws 200 --quiet"
_DATA = {
    "quads": "pairs --data quads.csv",
    "choices": "pairs --data choices.csv",
    "ratings": "ratings --data ratings.csv",
    "preferences": "preferences --data preferences.csv",
    "gallery": "gallery --data gallery.csv",
}


@dataclass(frozen=True)
class Job:
    """A command line in the folder of inputs, under a name; `files` are what it writes that is kept."""

    name: str
    command: str
    files: tuple[str, ...] = ()


def jobs() -> Iterator[Job]:
    """All jobs, in the order in which they must run: a comparison needs its runs."""
    yield from _runs()
    yield from _tables()
    yield from _captions()
    yield from _ledgers()


def _runs() -> Iterator[Job]:
    """Every form of question, its answers as scores, outcomes or rankings, and every policy of ties."""
    for form, models in {
        "quads": ("given:quads-a.csv", "given:quads-b.csv", "given:quads-c.csv", "blind:length"),
        "choices": ("given:choices-a.csv", "given:choices-b.csv", "given:outcomes.csv", "blind:random"),
        "ratings": ("given:ratings-a.csv", "given:ratings-b.csv", "metric:length"),
        "preferences": ("metric:length",),
        "gallery": ("given:gallery-a.npy", "given:gallery-b.npy", "given:gallery-c.npy"),
    }.items():
        benchmark = _DATA[form].split()[0]
        for number, model in enumerate(models):
            out = f"runs/{form}/{re.split('[:.]', model)[1]}"
            ids = " --ids gallery-ids.npz" if form == "gallery" else ""
            yield Job(
                f"evaluate-{out.removeprefix('runs/').replace('/', '-')}",
                f"evaluate {model} {_DATA[form]}{ids} --no-cache {_FEW} --out {out} --json {out}.json",
                # The others' numbers are in the comparisons.
                (f"{out}.json", f"{out}/{benchmark}/items.parquet", f"{out}/{benchmark}/manifest.json")
                if number == 0
                else (),
            )
    for form, model in {
        "quads": "blind:length",
        "choices": "blind:length",
        "preferences": "metric:length",
    }.items():
        for ties in ("half", "optimistic"):
            command = f"evaluate {model} {_DATA[form]} --ties {ties} --no-cache {_FEW}"
            yield Job(f"evaluate-{form}-ties-{ties}", command)
    for interval in ("wilson", "clusters"):
        yield Job(
            f"evaluate-quads-{interval}",
            f"evaluate given:quads-a.csv {_DATA['quads']} --interval {interval} --no-cache {_FEW}",
        )


def _tables() -> Iterator[Job]:
    """Comparisons of runs, and what else is made of several."""
    for form, names in {
        "quads": "quads-a quads-b length",
        "choices": "choices-a choices-b outcomes",
        "ratings": "ratings-a ratings-b",
        "gallery": "gallery-a gallery-b gallery-c",
    }.items():
        runs = " ".join(f"runs/{form}/{name}" for name in names.split())
        made = {kind: f"compared-{form}.{kind}" for kind in ("csv", "json")}
        yield Job(
            f"compare-{form}",
            f"compare {runs} {_FEW} --csv {made['csv']} --json {made['json']}",
            tuple(made.values()),
        )
        yield Job(f"lengths-{form}", f"compare lengths {runs} --quiet")
    galleries = "runs/gallery/gallery-a runs/gallery/gallery-b runs/gallery/gallery-c"
    few = "--measure *_map_at_r --measure mean_recall_at_1"
    yield Job("rankings", f"compare rankings {galleries} {few} {_FEW} --json r.json", ("r.json",))
    yield Job("pool", f"pool {galleries} --k 3 --out pool.csv", ("pool.csv",))
    yield Job(
        "annotate-create", "annotate create choose --from world-quads --sample 5 --overlap 2 --out campaign"
    )
    yield Job("preferences", f"annotate preferences votes.csv {_FEW} --json votes.json", ("votes.json",))
    yield Job(
        "annotate-agreement",
        "annotate agreement judgements.csv --scale ordinal --draws 100 --json agreement.json",
        ("agreement.json",),
    )


def _captions() -> Iterator[Job]:
    texts = "--metrics bleu,rouge-l,cider,length --references references.json"
    yield Job(
        "captions-score",
        f"captions score --candidates candidates.json {texts} --out scores.csv --json scores.json --quiet",
        ("scores.csv", "scores.json"),
    )
    yield Job(
        "captions-systems",
        "captions systems --predictions one.json two.json three.json --references references.json "
        "--metrics bleu,rouge-l,cider --humans humans.csv --out systems.csv --quiet",
        ("systems.csv",),
    )


def _ledgers() -> Iterator[Job]:
    for paper in ("bivlc", "eccv-caption", "winoground", "pac-s"):
        yield Job(f"reproduce-{paper}", f"reproduce --paper {paper}")


def outcome(job: Job, folder: Path) -> str:
    """The exit code of a job with its files, else with the lines of its output that hold numbers."""
    ended = run(job.command.split(), folder, patience=60)
    parts = [f"$ counterfoil {job.command}", f"exit code {ended.code}"]
    parts += [f"--- {name}\n{kept(folder / name, folder)}" for name in job.files]
    if not job.files:
        parts += [line for line in _plain(ended.out, folder).splitlines() if re.search(r"\d", line)]
    return "\n".join(parts) + "\n"


def kept(path: Path, folder: Path) -> str:
    """What of a file is behaviour: no times, versions, machines, paths and last digits."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        rows = [json.dumps(_settled(row)) for row in table.to_pylist()]
        return "\n".join([str(table.schema.remove_metadata()), *rows])
    text = path.read_text("utf-8")
    if path.suffix == ".json":
        return "\n".join(_lines(_settled(json.loads(text))))
    return _plain(text, folder)


def _lines(value: Any, indent: str = "") -> list[str]:
    """A value of JSON in lines of its parts, those that are short enough whole."""
    whole = json.dumps(value, ensure_ascii=False)
    if len(indent + whole) <= _WIDTH or not isinstance(value, dict | list):
        return [indent + whole]
    named = value.items() if isinstance(value, dict) else (("-", part) for part in value)
    lines = []
    for name, part in named:
        first, *rest = _lines(part, f"{indent}  ")
        together = f"{indent}{name}: {first.strip()}"
        lines += [together] if not rest else [f"{indent}{name}:", first, *rest]
    return lines


#: Fields that say when, where and with what a number was made.
_CIRCUMSTANCE = {
    "digests",  # a Parquet file names the version of its writer, a result its time
    "versions",
    "created",
    "started",
    "seconds",
    "machine",
    "host",
    "platform",
    "path",
    "command",
}


#: The version at the end of a signature.
_VERSION = re.compile(r"\|v\d[\w.]*")


def _settled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _settled(item) for key, item in value.items() if key not in _CIRCUMSTANCE}
    if isinstance(value, list):
        return [_settled(item) for item in value]
    if isinstance(value, str):
        return _VERSION.sub("|vVERSION", value)
    return float(f"{value:.9g}") if isinstance(value, float) else value


def _plain(text: str, folder: Path) -> str:
    text = text.replace(str(folder.resolve()), "FOLDER").replace(str(folder), "FOLDER")
    # The digests of files that name times and versions, and the kernel.
    text = re.sub(r"(digests\.[a-z]+\.[a-z]+) [0-9a-f]{32}", r"\1 DIGEST", text)
    text = re.sub(r"(machine\.system) \S+", r"\1 SYSTEM", text)
    text = re.sub(r"(versions\.[a-z_]+) \S+", r"\1 VERSION", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)?", "TIME", text)
    text = _VERSION.sub("|vVERSION", text)
    text = re.sub(r"\b20\d\d-\d\d-\d\d\b", "DATE", text)
    text = re.sub(r"-?\d+\.\d{7,}(e-?\d+)?", lambda found: f"{float(found[0]):.9g}", text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def file_of(job: Job) -> str:
    return "lengths.txt" if job.name.startswith("lengths-") else f"{job.name}.txt"


def produced(folder: Path) -> dict[str, str]:
    """The outcomes of all jobs in a folder with the inputs, by the file that keeps them."""
    texts: dict[str, str] = {}
    for job in jobs():
        texts[file_of(job)] = texts.get(file_of(job), "") + outcome(job, folder) + "\n"
    return texts
