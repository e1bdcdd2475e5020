"""`counterfoil captions`, of one or several candidates and of systems, and caption metrics in `evaluate`."""

import csv
import json
from dataclasses import replace

import numpy as np
import PIL.Image
import pytest

from counterfoil.benchmarks import Benchmark, Caption, Card, Image
from counterfoil.benchmarks.folder import load as load_folder, save
from counterfoil.benchmarks.forms import Rated
from counterfoil.benchmarks.references import References
from counterfoil.metrics.captions.clip_score import clip_s
from counterfoil.stats.bootstrap import mean_intervals

from .caption_samples import CANDIDATES, REFERENCES, written


def test_the_example_of_clip_score(counterfoil, shared_data, tmp_path):
    folder = shared_data / "clipscore_example"
    given = f"--candidates {folder}/good_captions.json --references {folder}/refs.json"
    outputs = f"--out {tmp_path}/s.csv --json {tmp_path}/s.json"
    said = counterfoil.succeeds(f"captions score --metrics bleu,rouge-l,cider {given} {outputs}")
    # As CLIPScore's README prints them.
    printed = [line.split()[1] for line in said.out.splitlines()[2:8]]
    assert printed == ["0.6667", "0.4899", "0.3469", "0.0000", "0.4280", "0.5637"]
    table = list(csv.DictReader((tmp_path / "s.csv").read_text().splitlines()))
    assert [(row["image"], row["candidate"]) for row in table] == [("image1", "0"), ("image2", "0")]
    result = json.loads((tmp_path / "s.json").read_text())["metrics"]
    assert result["cider"]["n"] == 2
    assert result["cider"]["is_mean"]
    assert result["cider"]["value"] == pytest.approx(np.mean([float(row["cider"]) for row in table]))
    assert [result[name]["low"] for name in ("cider", "rouge-l", "bleu-1")] == [None] * 3
    assert "interval" not in said.out.splitlines()[1]
    assert "rouge-l, cider: too few captions for an interval: 2, and it takes 10" in said.err
    assert "bleu-1, bleu-2, bleu-3, bleu-4: of all captions as one text, not a mean" in said.err
    assert result["cider"]["no_interval"].startswith("too few captions")


def test_references_that_are_the_candidate(counterfoil, caption_inputs, tmp_path):
    twice = {**REFERENCES, "dog": ["a brown  dog runs", "the brown dog runs"]}
    again = written(tmp_path / "again.json", twice)
    candidates = ("--candidates", caption_inputs["candidates"])
    common = (f"captions score --metrics bleu-1 --references {again}", *candidates)
    kept = counterfoil(*common, "--json", "-")
    assert "1 candidate of 3 with a reference that says the same, which is kept; see --ref" in kept.err
    assert json.loads(kept.out)["metrics"]["bleu-1"]["n"] == 3
    dropped = counterfoil(*common, "--references-contain", "drop-reference", "--json", "-")
    assert "1 references equal to a candidate taken out" in dropped.err
    left = counterfoil(*common, "--references-contain", "drop-item", "--json", "-")
    assert json.loads(left.out)["captions"] == 2
    values = [json.loads(said.out)["metrics"]["bleu-1"]["value"] for said in (kept, dropped)]
    assert values[0] > values[1]


def test_two_files_of_one_name_are_not_guessed_between(counterfoil, caption_inputs):
    PIL.Image.new("RGB", (8, 8)).save(caption_inputs["images"] / "dog.jpg")
    given = f"--candidates {caption_inputs['candidates']} --images {caption_inputs['images']}"
    says = "'dog' may be several of what is there; given: dog.jpg, dog.png"
    counterfoil.fails(f"captions score --metrics length {given}", says=says)


@pytest.fixture
def rated(tmp_path):
    rng = np.random.default_rng(3)
    words = ["a", "the", "dog", "cat", "cow", "runs", "sleeps", "on", "grass", "bed", "green", "brown"]
    texts = [" ".join(rng.choice(words, 6)) for _ in range(40)]
    n = 30
    benchmark = Benchmark(
        Card(name="mine", title="Mine", form="rated"),
        tuple(Image(f"i{i}") for i in range(10)),
        tuple(Caption(f"c{i}", text) for i, text in enumerate(texts)),
        Rated(
            tuple(f"q{i}" for i in range(n)),
            captions=np.arange(n),
            images=np.arange(n) % 10,
            ratings=rng.integers(1, 5, (n, 2)).astype(float),
            references=References.of([[30 + i % 10, 30 + (i + 3) % 10] for i in range(n)]),
        ),
    )
    save(benchmark, tmp_path / "mine")
    return tmp_path / "mine"


def test_a_metric_is_a_model(counterfoil, rated, tmp_path):
    said = counterfoil.succeeds(f"evaluate metric:rouge-l {rated} --out {tmp_path}/runs/rouge --json -")
    result = json.loads(said.out)
    assert result["model"] == "metric:rouge-l"
    # The run can be given again, and compared with another metric.
    given = f"given:{tmp_path}/runs/rouge/mine {rated} --out {tmp_path}/runs/again"
    again = counterfoil.succeeds(f"evaluate {given} --json -")
    assert json.loads(again.out)["measures"] == result["measures"]
    counterfoil("evaluate", "metric:length", rated, "--out", tmp_path / "runs/length")
    compared = counterfoil.succeeds("compare", *sorted((tmp_path / "runs").glob("*/mine")), "--json", "-")
    assert "rouge" in json.dumps(json.loads(compared.out))


def test_the_model_behind_a_metric_is_in_its_name(counterfoil, rated, tmp_path):
    rng = np.random.default_rng(0)
    images, captions = rng.standard_normal((10, 4)), rng.standard_normal((40, 4))
    np.savez(tmp_path / "e.npz", images=images, captions=captions)
    spec = f"embeddings:{tmp_path}/e.npz"
    said = counterfoil.succeeds("evaluate", "metric:clip-s", rated, "--backbone", spec, "--json", "-")
    result = json.loads(said.out)
    assert result["model"] == f"metric:clip-s {spec}"
    assert result["provenance"]["model"]["name"].startswith("metric:clip-s")


def test_what_one_benchmark_lacks_is_said_first(counterfoil, rated, tmp_path):
    benchmark = load_folder(rated)
    save(replace(benchmark, questions=replace(benchmark.questions, references=None)), tmp_path / "without")
    into = f"{rated} {tmp_path}/without --out {tmp_path}/runs"
    says = "mine has no references, which metric:cider compares with"
    said = counterfoil.fails(f"evaluate metric:cider {into}", says=says)
    assert said.out == ""
    assert not (tmp_path / "runs").exists()


@pytest.fixture
def never_loads(monkeypatch):
    from counterfoil.models import open_clip

    def refuse(argument, options):
        raise AssertionError("the model was loaded again")

    return lambda: monkeypatch.setattr(open_clip, "load", refuse)


def test_a_second_run_loads_no_model_and_says_the_same(
    counterfoil, caption_inputs, spec, never_loads, tmp_path
):
    long = written(tmp_path / "c.json", {**CANDIDATES, "dog": "a brown dog and " * 40})
    command = (
        "captions", "score", "--metrics", "clip-s,ref-pac-s,em-score", "--candidates", long,
        "--references", caption_inputs["references"], "--images", caption_inputs["images"],
        "--backbone", spec, "--device", "cpu", "--workers", "0",
    )  # fmt: skip
    first = counterfoil.succeeds(*command, "--out", tmp_path / "1.csv")
    assert "metric:clip-s: 1 of 3 captions is longer than the model reads and cut off" in first.err
    never_loads()
    second = counterfoil.succeeds(*command, "--out", tmp_path / "2.csv")
    assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()
    assert second.out == first.out
    assert second.err.replace("2.csv", "1.csv") == first.err


def test_videos_in_folders_of_frames(counterfoil, spec, never_loads, tmp_path):
    rng = np.random.default_rng(0)
    for name, count in (("one", 5), ("two", 2), ("nobody", 1)):
        (tmp_path / "videos" / name).mkdir(parents=True)
        for frame in range(count):
            pixels = rng.integers(0, 256, (20, 20, 3)).astype(np.uint8)
            PIL.Image.fromarray(pixels).save(tmp_path / "videos" / name / f"{frame}.png")
    candidates = written(tmp_path / "c.json", {"one": "a dog runs", "two": "a cat sleeps"})
    command = (
        "captions", "score", "--metrics", "em-score,pac-s", "--candidates", candidates,
        "--videos", tmp_path / "videos", "--backbone", spec, "--device", "cpu", "--json", "-",
    )  # fmt: skip
    said = counterfoil.succeeds(*command)
    assert "1 video that no candidate names is left out" in said.err
    result = json.loads(said.out)["metrics"]
    # With one model behind both, PAC-S of videos is EMScore.
    assert result["em-score"] == result["pac-s"]
    assert json.loads(counterfoil(*command, "--frames", "1").out)["metrics"] != result
    never_loads()
    assert json.loads(counterfoil(*command).out)["metrics"] == result
    says = "metric:clip-s: is about pictures, and these are videos"
    counterfoil.fails(*command[:3], "clip-s", *command[4:], says=says)


def test_several_candidates_share_their_references_once(counterfoil, caption_inputs, spec, tmp_path):
    several = {name: [text, f"{text} somewhere", "nothing at all"] for name, text in CANDIDATES.items()}

    def rows(candidates, *settings):
        texts = f"--candidates {written(tmp_path / 'some.json', candidates)} --out {tmp_path}/s.csv"
        given = f"--references {caption_inputs['references']} --images {caption_inputs['images']} {texts}"
        score = f"captions score --metrics ref-em-score,em-score --backbone {spec} --overwrite --workers 0"
        counterfoil.succeeds(score, given, *settings)
        table = csv.DictReader((tmp_path / "s.csv").read_text().splitlines())
        metrics = ("ref-em-score", "em-score")
        return {(row["image"], row["caption"]): tuple(float(row[m]) for m in metrics) for row in table}

    # em-score counts all candidates, ref-em-score the references of each image, once.
    corpus = written(tmp_path / "corpus.json", [text for own in several.values() for text in own])
    together = rows(several)
    for k in range(3):
        alone = rows({name: own[k] for name, own in several.items()}, "--set", f"em-score.idf={corpus}")
        for key, values in alone.items():
            assert together[key] == pytest.approx(values, abs=1e-9)


@pytest.fixture
def predictions(caption_inputs, tmp_path):
    worse = {name: f"{text} somewhere else" for name, text in CANDIDATES.items()}
    worst = dict.fromkeys(CANDIDATES, "nothing at all")
    texts = {"good": CANDIDATES, "fair": worse, "bad": worst}
    return [written(tmp_path / f"{name}.json", value) for name, value in texts.items()]


def test_a_table_and_how_metrics_agree_with_people(counterfoil, caption_inputs, predictions, tmp_path):
    people = tmp_path / "m.csv"
    people.write_text("system,M1,M2\nbad,0.1,0.2\ngood,0.9,0.3\nfair,0.5,0.9\nother,1,1\n")
    asked = ("captions systems --predictions", *predictions, f"--references {caption_inputs['references']}")
    files = f"--humans {people} --out {tmp_path}/t.csv --json {tmp_path}/t.json"
    said = counterfoil.succeeds(*asked, f"--metrics bleu-1,rouge-l {files}")
    assert said.out.startswith("3 systems on 3 images")
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert [row["system"] for row in rows] == ["good", "fair", "bad"]
    assert [row["M1"] for row in rows] == ["0.9", "0.5", "0.1"]
    result = json.loads((tmp_path / "t.json").read_text())
    assert {(item["metric"], item["human"]) for item in result["agreement"]["correlations"]} == {
        (metric, human) for metric in ("bleu-1", "rouge-l") for human in ("M1", "M2")
    }
    # One system alone says the same of itself.
    files = f"--candidates {predictions[1]} --references {caption_inputs['references']}"
    alone = counterfoil(f"captions score --metrics bleu-1 {files} --json - -q")
    assert json.loads(alone.out)["metrics"]["bleu-1"] == result["systems"]["fair"]["bleu-1"]
    of_one = f"--predictions {predictions[1]} --references {caption_inputs['references']}"
    counterfoil.succeeds("captions systems", of_one)


@pytest.fixture
def judged(tmp_path):
    """What three people gave each system's caption of each image."""
    path = tmp_path / "judged.csv"
    lines = ["system,judge,image,quality"]
    for s, system in enumerate(("bad", "fair", "good")):
        for j, judge in enumerate("xyz"):
            lines += [f"{system},{judge},{image},{s + (i * j) % 2}" for i, image in enumerate(CANDIDATES)]
    path.write_text("\n".join([*lines, "other,x,owl,1"]) + "\n")
    return path


def test_judges_and_images_in_every_kind_of_file(counterfoil, caption_inputs, predictions, judged, tmp_path):
    files = {name: tmp_path / f"t.{name}" for name in ("csv", "markdown", "latex", "html", "json")}
    asked = ("captions systems --predictions", *predictions, f"--references {caption_inputs['references']}")
    measured = f"--metrics bleu-1,rouge-l,cider --humans {judged} --draws 200"
    written_to = (text for name, path in files.items() for text in (f"--{name}", path))
    said = counterfoil.succeeds(*asked, measured, *written_to)
    agreed = json.loads(files["json"].read_text())["agreement"]
    assert (agreed["interval"]["over"], agreed["interval"]["images"]) == ("images", 3)
    metrics = ["bleu-1", "rouge-l", "cider", "one person"]
    assert list(dict.fromkeys(item["metric"] for item in agreed["correlations"])) == metrics
    assert "one person, with the others" in said.out
    assert "rouge-l − cider" in said.out
    # Every number is in every file.
    rows = list(csv.DictReader(files["csv"].read_text().splitlines()))
    values = {(row["model"], row["measure"], row["column"]): float(row["value"]) for row in rows}
    texts = [files[name].read_text().replace("$-$", "-").replace("−", "-") for name in ("markdown", "latex")]
    for one in agreed["correlations"]:
        named = one["metric"].replace("one person", "one person, with the others")
        assert one["value"] in [v for key, v in values.items() if key[:2] == (named, one["measure"])]
        assert all(f"{100 * one['value']:.2f}" in text for text in texts)
    page = files["html"].read_text()
    assert page.count("<table") == 3
    for words in ("one person, with the others", "rouge-l − cider", "only 3 systems"):
        assert words in page
        assert all(words in files[name].read_text().replace("$-$", "−") for name in ("markdown", "latex"))


WORDS = ["a", "the", "dog", "cat", "cow", "runs", "sleeps", "on", "grass", "bed", "green", "brown"]
NAMES = [f"i{k}" for k in range(14)]
#: Metrics that are a mean over images, and those that are of all captions as one text.
MEANS, WHOLES = ("rouge-l", "cider", "length"), ("bleu-1", "bleu-4")
METRICS = ",".join((*MEANS, *WHOLES))


def sentences(rng, n):
    return [" ".join(rng.choice(WORDS, rng.integers(3, 9))) for _ in range(n)]


@pytest.fixture
def references(tmp_path):
    rng = np.random.default_rng(0)
    return written(tmp_path / "r.json", {name: sentences(rng, 3) for name in NAMES})


def of_file(counterfoil, candidates, references, *options):
    """The values of a file, and the rows that are written."""
    out = candidates.with_suffix(".out.csv")
    what = f"--candidates {candidates} --references {references} --out {out} --json - --overwrite"
    said = counterfoil.succeeds(f"captions score --metrics {METRICS} {what}", *options)
    return json.loads(said.out), list(csv.DictReader(out.read_text().splitlines()))


def scores(rows, metric):
    return np.array([float(row[metric]) for row in rows])


def test_as_many_of_each_are_the_files_of_one_each(counterfoil, references, tmp_path):
    rng = np.random.default_rng(1)
    candidates = {name: sentences(rng, 3) for name in NAMES}
    # Equal candidates count as they are.
    candidates["i3"][1] = candidates["i3"][0]
    result, rows = of_file(counterfoil, written(tmp_path / "c.json", candidates), references)
    assert (result["captions"], result["images"], result["per_image"]) == (42, 14, "mean")
    assert [(row["image"], int(row["candidate"]), row["caption"]) for row in rows] == [
        (name, k, text) for name, texts in candidates.items() for k, text in enumerate(texts)
    ]
    # Every file has the references of each image once, so CIDEr counts the same documents.
    single = []
    for k in range(3):
        alone = written(tmp_path / f"{k}.json", {name: candidates[name][k] for name in NAMES})
        single.append(of_file(counterfoil, alone, references)[1])
    for metric in (*MEANS, *WHOLES):
        expected = np.stack([scores(own, metric) for own in single], axis=1)
        np.testing.assert_allclose(scores(rows, metric).reshape(14, 3), expected, rtol=1e-12, atol=0)
        value = result["metrics"][metric]
        assert (value["mean"], value["n"]) == (pytest.approx(expected.mean(), abs=1e-12), 14)
    of_images = np.stack([scores(rows, metric).reshape(14, 3).sum(axis=1) / 3 for metric in MEANS], axis=1)
    low, high = mean_intervals(of_images)
    for i, metric in enumerate(MEANS):
        value = result["metrics"][metric]
        assert (value["low"], value["high"]) == pytest.approx((low[i], high[i]))
    # Of all as one text: every candidate beside its image's references.
    people = json.loads(references.read_text())
    apart = [(f"{name}x{k}", name, text) for name, own in candidates.items() for k, text in enumerate(own)]
    candidates = written(tmp_path / "apart.json", {key: text for key, _, text in apart})
    own = written(tmp_path / "apart_r.json", {key: people[name] for key, name, _ in apart})
    one_each, _ = of_file(counterfoil, candidates, own)
    for metric in WHOLES:
        assert result["metrics"][metric]["value"] == pytest.approx(one_each["metrics"][metric]["value"])


def test_the_best_of_each(counterfoil, references, tmp_path):
    rng = np.random.default_rng(3)
    candidates = {name: sentences(rng, 4) for name in NAMES}
    path = written(tmp_path / "c.json", candidates)
    result, rows = of_file(counterfoil, path, references, "--per-image", "best")
    for metric in (*MEANS, *WHOLES):
        own = scores(rows, metric).reshape(14, 4)
        value = result["metrics"][metric]
        assert value["mean"] == pytest.approx(own.max(axis=1).mean(), abs=1e-12)
        chosen = {name: candidates[name][int(at)] for name, at in zip(NAMES, own.argmax(axis=1), strict=True)}
        alone, _ = of_file(counterfoil, written(tmp_path / "best.json", chosen), references)
        assert value["value"] == pytest.approx(alone["metrics"][metric]["value"], abs=1e-12)
    said = counterfoil(f"captions score --metrics length --candidates {path} --per-image best")
    assert "56 captions of 14 images, the best of each" in said.out
    assert "c.json: 56 candidates of 14 images, 4 of each" in said.err


def test_candidates_that_are_left_out_are_counted(counterfoil, tmp_path):
    people = written(tmp_path / "r.json", {"a": ["a dog runs", "the dog"], "b": ["a cat"], "c": ["a cow"]})
    path = written(
        tmp_path / "c.json", {"a": ["", "a dog runs", "a dog"], "b": ["cats", "a  cat"], "c": [""]}
    )
    common = (
        "captions", "score", "--metrics", "bleu-1,rouge-l", "--candidates", path, "--references", people,
        "--empty", "leave-out", "--out", tmp_path / "s.csv", "--json", "-", "--overwrite",
    )  # fmt: skip
    said = counterfoil.succeeds(*common)
    assert "c.json: 2 empty candidates left out, and 1 image with no other" in said.err
    assert "c.json: 4 candidates of 2 images, 2 of each" in said.err

    def rows():
        table = csv.DictReader((tmp_path / "s.csv").read_text().splitlines())
        return [(row["image"], row["candidate"]) for row in table]

    assert rows() == [("a", "1"), ("a", "2"), ("b", "0"), ("b", "1")]
    assert json.loads(said.out)["images"] == 2
    fewer = counterfoil(*common, "--references-contain", "drop-item")
    assert (json.loads(fewer.out)["captions"], rows()) == (2, [("a", "2"), ("b", "0")])
    # What is taken out for one candidate is gone for all of its image, which then has none.
    gone = counterfoil.fails(*common, "--references-contain drop-reference", says="caption has no references")
    assert "'cats'" in gone.err


def test_embeddings_are_found_by_the_names_of_candidates(counterfoil, tmp_path):
    rng = np.random.default_rng(4)
    names = ["dog", "dog@1", "dog@2", "cat"]
    captions, images = rng.standard_normal((4, 5)), rng.standard_normal((2, 5))
    names_of = {"image_ids": ["dog", "cat"], "caption_ids": names}
    np.savez(tmp_path / "e.npz", images=images, captions=captions, **names_of)
    path = written(tmp_path / "c.json", {"cat": "a cat", "dog": ["a dog", "dogs", "a dog"]})
    command = (
        "captions", "score", "--metrics", "clip-s", "--candidates", path, "--backbone",
        f"embeddings:{tmp_path}/e.npz", "--out", tmp_path / "s.json", "--json", "-",
        "--overwrite",
    )  # fmt: skip
    said = counterfoil.succeeds(*command)
    result = json.loads((tmp_path / "s.json").read_text())
    asked = [row["image"] + (f"@{row['candidate']}" if row["candidate"] else "") for row in result]
    assert asked == ["cat", "dog", "dog@1", "dog@2"]
    expected = clip_s(captions[[names.index(name) for name in asked]], images[[1, 0, 0, 0]])
    assert [row["clip-s"] for row in result] == pytest.approx(expected)
    mean = (expected[0] + np.mean(expected[1:])) / 2
    assert json.loads(said.out)["metrics"]["clip-s"]["value"] == pytest.approx(mean)
    written(path, {"dog": ["a dog", "dogs"], "dog@1": "a dog"})
    counterfoil.fails(*command, says="c.json: two captions of one name; given: 'dog@1'")
