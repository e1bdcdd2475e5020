"""`counterfoil captions` and caption metrics in `evaluate`, as a user meets them."""

import csv
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from scipy.stats import kendalltau

from counterfoil.data import Benchmark, Caption, Card, Image
from counterfoil.data.folder import load as load_folder
from counterfoil.data.folder import save
from counterfoil.data.ratings import Preference, Rated
from counterfoil.data.references import References

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


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    for number, name in enumerate(("dog.png", "cat.png", "cow.png", "owl.png")):
        (tmp_path / "images").mkdir(exist_ok=True)
        PIL.Image.new("RGB", (8, 8), (60 * number, 0, 0)).save(tmp_path / "images" / name)
    return {
        "candidates": written(tmp_path / "c.json", CANDIDATES),
        "references": written(tmp_path / "r.json", REFERENCES),
        "images": tmp_path / "images",
    }


@pytest.fixture
def vectors(tmp_path: Path) -> tuple[Path, dict[str, np.ndarray]]:
    """Embeddings of the three candidates and images, and what they are by name."""
    rng = np.random.default_rng(0)
    names = list(CANDIDATES)
    images, captions = rng.standard_normal((3, 4)), rng.standard_normal((3, 4))
    captions[0] = images[0] + 0.1
    np.savez(tmp_path / "e.npz", images=images, captions=captions, image_ids=names, caption_ids=names)
    return tmp_path / "e.npz", {"images": images, "captions": captions}


def test_the_example_of_clip_score(counterfoil, shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "clipscore_example"
    said = counterfoil(
        "captions", "score", "--metrics", "bleu,rouge-l,cider", "--candidates", folder / "good_captions.json",
        "--references", folder / "refs.json", "--out", tmp_path / "s.csv", "--json", tmp_path / "s.json",
    )  # fmt: skip
    assert said.code == 0
    rows = {line.split()[0]: line.split()[1] for line in said.out.splitlines()[2:8]}
    # As CLIPScore's README prints them.
    assert rows == {
        "bleu-1": "0.6667", "bleu-2": "0.4899", "bleu-3": "0.3469", "bleu-4": "0.0000",
        "rouge-l": "0.4280", "cider": "0.5637",
    }  # fmt: skip
    table = list(csv.DictReader((tmp_path / "s.csv").read_text().splitlines()))
    assert [row["id"] for row in table] == ["image1", "image2"]
    found = json.loads((tmp_path / "s.json").read_text())["metrics"]
    assert found["cider"]["n"] == 2
    assert found["cider"]["is_mean"]
    assert found["cider"]["value"] == pytest.approx(np.mean([float(row["cider"]) for row in table]))
    assert [found[name]["low"] for name in ("cider", "rouge-l", "bleu-1")] == [None] * 3
    assert "interval" not in said.out.splitlines()[1]
    assert "rouge-l, cider: too few captions for an interval: 2, and it takes 10" in said.out
    assert "bleu-1, bleu-2, bleu-3, bleu-4: of all captions as one text, not a mean" in said.out
    assert found["cider"]["no_interval"].startswith("too few captions")


def test_intervals_stay_in_the_range_of_their_metric(counterfoil, tmp_path: Path) -> None:
    # One of a dozen captions has something in common with its references: Student would go far below 0.
    names = [f"i{k}" for k in range(12)]
    others = {name: f"words nobody uses {name}" for name in names[1:]}
    candidates = written(tmp_path / "c.json", {**others, "i0": "a dog runs"})
    references = written(tmp_path / "r.json", {name: ["a dog runs on grass"] for name in names})
    said = counterfoil(
        "captions", "score", "--metrics", "rouge-l,length,bleu-1", "--candidates", candidates,
        "--references", references, "--json", "-", "--out", tmp_path / "s.csv",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert "95 % interval" in said.err
    found = json.loads(said.out)["metrics"]
    rows = list(csv.DictReader((tmp_path / "s.csv").read_text().splitlines()))
    scores = np.array([float(row["rouge-l"]) for row in rows])
    assert scores.mean() - 2.2 * scores.std(ddof=1) / 12**0.5 < 0
    assert 0 <= found["rouge-l"]["low"] < found["rouge-l"]["value"] < found["rouge-l"]["high"] <= scores.max()
    assert 3 < found["length"]["low"] < found["length"]["high"] <= 4
    alike = written(tmp_path / "alike.json", dict.fromkeys(names, "a dog runs"))
    same = counterfoil("captions", "score", "--metrics", "length", "--candidates", alike)
    assert "length: all captions have the same score" in same.out


def test_metrics_of_embeddings_that_are_given(counterfoil, files, vectors, tmp_path: Path) -> None:
    path, held = vectors
    said = counterfoil(
        "captions", "score", "--metrics", "clip-s,pac-s", "--candidates", files["candidates"],
        "--images", files["images"], "--scorer", f"embeddings:{path}", "--out", tmp_path / "s.json",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert "1 image that no candidate names is left out" in said.err
    rows = json.loads((tmp_path / "s.json").read_text())
    for k, row in enumerate(rows):
        image, caption = held["images"][k], held["captions"][k]
        cosine = image @ caption / np.linalg.norm(image) / np.linalg.norm(caption)
        assert row["clip-s"] == pytest.approx(2.5 * max(cosine, 0))
        assert row["pac-s"] == pytest.approx(2 * max(cosine, 0))
    # Where all is embedded the images themselves are not needed.
    weighed = counterfoil(
        "captions", "score", "--metrics", "clip-s,pac-s", "--candidates", files["candidates"],
        "--scorer", f"embeddings:{path}", "--set", "clip-s.weight=1",
        "--json", "-", "-q",
    )  # fmt: skip
    found = json.loads(weighed.out)["metrics"]
    assert found["clip-s"]["value"] == pytest.approx(np.mean([row["clip-s"] for row in rows]) / 2.5)
    assert found["pac-s"]["value"] == pytest.approx(np.mean([row["pac-s"] for row in rows]))


def test_references_that_are_the_candidate(counterfoil, files, tmp_path: Path) -> None:
    again = written(
        tmp_path / "again.json", {**REFERENCES, "dog": ["a brown  dog runs", "the brown dog runs"]}
    )
    common = (
        "captions",
        "score",
        "--metrics",
        "bleu-1",
        "--candidates",
        files["candidates"],
        "--references",
        again,
    )
    kept = counterfoil(*common, "--json", "-")
    assert "1 candidate of 3 with a reference that says the same, which is kept; see --ref" in kept.err
    assert json.loads(kept.out)["metrics"]["bleu-1"]["n"] == 3
    dropped = counterfoil(*common, "--references-contain", "drop-reference", "--json", "-")
    assert "1 references equal to a candidate taken out" in dropped.err
    left = counterfoil(*common, "--references-contain", "drop-item", "--json", "-")
    assert json.loads(left.out)["captions"] == 2
    values = [json.loads(said.out)["metrics"]["bleu-1"]["value"] for said in (kept, dropped, left)]
    assert values[0] > values[1]
    # Without the dog it is the value of the two others.
    others = {name: text for name, text in CANDIDATES.items() if name != "dog"}
    two = counterfoil(
        *common[:4], "--candidates", written(tmp_path / "two.json", others), *common[6:], "--json", "-"
    )
    assert values[2] == json.loads(two.out)["metrics"]["bleu-1"]["value"]


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ({}, ("--metrics", "clipp"), "unknown caption metric; given: clipp; .*did you mean 'clip-s'?"),
        ({}, ("--metrics", ","), "no metric is named"),
        (
            {},
            ("--metrics", "clip-s", "--scorer", "hf:x"),
            "a metric that looks at images, and none were given",
        ),
        ({}, ("--metrics", "clip-s", "--images", "{images}"), "metric:clip-s: needs a model to look with"),
        ({}, ("--metrics", "cider", "--scorer", "hf:x"), "none of these metrics has a model behind it"),
        ({"dog": ""}, ("--metrics", "length"), "c.json, 'dog': the caption is empty"),
        ({"dog": 3}, ("--metrics", "length"), "c.json, 'dog': the caption is no string; given: 3"),
        ({"fox": "a fox"}, ("--metrics", "length", "--images", "{images}"), "an image; given: 1 of 4 "),
        ({"fox": "a fox"}, ("--metrics", "bleu", "--references", "{r}"), "without references; given: 1"),
        ({}, ("--metrics", "cider"), "a metric that compares with references, and none were given"),
        ({}, ("--metrics", "length", "--set", "wrong"), "--set needs KEY=VALUE; given: wrong"),
        ({}, ("--metrics", "length", "--set", "tokns=x"), "unknown setting; given: tokns; .*'tokens'"),
        ({}, ("--metrics", "length", "--set", "cider.df=x"), "a setting of a metric that is not asked for"),
        ({}, ("--metrics", "length", "--frames", "3"), "frames are those of videos"),
        ({}, ("--metrics", "length", "--videos", "{images}", "--images", "{images}"), "images or of videos"),
        ({}, ("--metrics", "length", "--out", "x.txt"), "unknown kind of table; given: .txt"),
        ({}, ("--metrics", "length", "--images", "nowhere"), "nowhere: no such folder; check --images"),
        ({}, ("--metrics", "length", "--references-contain", "drop-item"), "no references that could"),
        ({}, ("--metrics", "length", "--references-contain", "drop"), "'drop' is not one of 'keep'"),
        ({}, ("--metrics", "length", "--references", "{images}"), "images: is a folder; name the file in it"),
        ({}, ("--metrics", "length", "--json", "{out}"), "two results would be written to one file"),
        ({}, ("--metrics", "length", "--out", "{r}/o.csv"), "r.json is a file; choose another folder"),
        (
            {},
            ("--metrics", "clip-s", "--images", "{images}", "--scorer", "hf:./no"),
            "hf:./no: no such folder",
        ),
        (
            {},
            ("--metrics", "ref-clip-s", "--references", "{r}", "--scorer", "{e}", "--set", "negative=papr"),
            "no such value of 'negative'; given: papr; allowed: released, paper",
        ),
        (
            {},
            ("--metrics", "clip-s", "--images", "{images}", "--scorer", "{e}", "--set", "prefx="),
            "unknown setting; given: prefx; .*did you mean 'prefix'?",
        ),
    ],
)
def test_what_is_refused_in_one_line(counterfoil, files, vectors, tmp_path, change, options, said) -> None:
    candidates = written(tmp_path / "c.json", {**CANDIDATES, **change})
    out = tmp_path / "out.csv"
    places = {
        "images": files["images"],
        "r": files["references"],
        "out": out,
        "e": f"embeddings:{vectors[0]}",
    }
    told = ("-q",) if "--out" in options else ("-q", "--out", out)
    found = counterfoil(
        "captions", "score", "--candidates", candidates, *(str(o).format(**places) for o in options), *told
    )
    assert found.code == 2
    assert found.err.count("\n") == 1
    assert re.search(said, found.err), found.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello", "c.json, line 1, column 1: not valid JSON"),
        ('{"a": "b", ', "c.json, line 1, column 12: not valid JSON"),
        ("3", 'c.json: not captions; given: 3; allowed: {"ID": "caption"}'),
        ("{}", "c.json: no captions"),
        ('{"a": "x", "a": "y"}', "c.json: key occurs twice in a JSON object; given: 'a'"),
        ('{"a": ["x"]}', "'a': a list where one caption is asked for; given: ['x']"),
        ('{"a": {"caption": "x"}}', "'a': the caption is no string; given: {'caption': 'x'}"),
        ('[{"image_id": 1.5, "caption": "x"}]', "entry 1: the id is no name and no whole number; given: 1.5"),
        ('[{"image_id": 1, "captoin": "x"}]', "entry 1: no caption; given: image_id, captoin"),
        (
            '[{"image_id": 1, "caption": "x"}, {"image_id": 1, "caption": "y"}]',
            "entry 2: a second candidate for one image; given: '1'",
        ),
    ],
)
def test_files_that_are_no_candidates(counterfoil, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "c.json").write_text(text)
    found = counterfoil(
        "captions", "score", "--metrics", "length", "--candidates", tmp_path / "c.json",
        "--out", tmp_path / "o.csv",
    )  # fmt: skip
    assert found.code == 2
    assert found.err.count("\n") == 1
    assert said in found.err
    assert not (tmp_path / "o.csv").exists()


def test_two_files_of_one_name_are_not_guessed_between(counterfoil, files) -> None:
    PIL.Image.new("RGB", (8, 8)).save(files["images"] / "dog.jpg")
    found = counterfoil(
        "captions",
        "score",
        "--metrics",
        "length",
        "--candidates",
        files["candidates"],
        "--images",
        files["images"],
    )
    assert found.code == 2
    assert "'dog' may be several of what is there; given: dog.jpg, dog.png" in found.err


class TestSystems:
    @pytest.fixture
    def predictions(self, files, tmp_path: Path) -> list[Path]:
        worse = {name: f"{text} somewhere else" for name, text in CANDIDATES.items()}
        worst = dict.fromkeys(CANDIDATES, "nothing at all")
        return [
            written(tmp_path / f"{name}.json", value)
            for name, value in (("good", CANDIDATES), ("fair", worse), ("bad", worst))
        ]

    def test_a_table_and_how_metrics_agree_with_people(
        self, counterfoil, files, predictions, tmp_path
    ) -> None:
        people = tmp_path / "m.csv"
        people.write_text("system,M1,M2\nbad,0.1,0.2\ngood,0.9,0.3\nfair,0.5,0.9\nother,1,1\n")
        said = counterfoil(
            "captions", "systems", "--predictions", *predictions, "--references", files["references"],
            "--metrics", "bleu-1,rouge-l", "--humans", people, "--out", tmp_path / "t.csv",
            "--json", tmp_path / "t.json",
        )  # fmt: skip
        assert said.code == 0, said.err
        assert said.out.startswith("3 systems on 3 images")
        rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
        assert [row["system"] for row in rows] == ["good", "fair", "bad"]
        assert [row["M1"] for row in rows] == ["0.9", "0.5", "0.1"]
        result = json.loads((tmp_path / "t.json").read_text())
        for each in result["agreement"]["correlations"]:
            mine = [float(row[each["metric"]]) for row in rows]
            theirs = [float(row[each["human"]]) for row in rows]
            if each["measure"] == "kendall_tau_b":
                assert each["value"] == pytest.approx(kendalltau(mine, theirs).statistic)
        # One system alone says the same of itself.
        alone = counterfoil(
            "captions", "score", "--metrics", "bleu-1", "--candidates", predictions[1],
            "--references", files["references"], "--json", "-", "-q",
        )  # fmt: skip
        assert json.loads(alone.out)["metrics"]["bleu-1"] == result["systems"]["fair"]["bleu-1"]

    def test_what_is_refused(self, counterfoil, files, predictions, tmp_path) -> None:
        common = ("captions", "systems", "--references", files["references"], "--predictions", *predictions)
        fewer = written(tmp_path / "fewer.json", {"dog": "a dog"})
        assert "systems wrote captions of different images" in counterfoil(*common, fewer).err
        assert "two systems of one name; given: bad" in counterfoil(*common, predictions[-1]).err
        people = tmp_path / "m.csv"
        for text, said in (
            ("system,M1\ngood,1\n", "systems that people gave nothing; given: fair, bad"),
            ("who,M1\ngood,1\n", "no column names the systems; given: who, M1"),
            ("system\ngood\n", "no scores of people"),
            ("system,M1\ngood,1\nfair,x\nbad,1\n", "row 2, column 'M1': not a number; given: x"),
            ("system,M1\ngood,1\ngood,2\nbad,1\n", "a system occurs twice; given: good"),
        ):
            people.write_text(text)
            found = counterfoil(*common, "--humans", people)
            assert found.code == 2
            assert said in found.err
            assert found.err.count("\n") == 1
        two = counterfoil(*common[:-1], "--humans", people)
        assert two.code == 2
        assert "too few systems to correlate" in two.err


class TestEvaluate:
    @pytest.fixture
    def rated(self, tmp_path: Path) -> Path:
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

    def test_a_metric_is_a_scorer(self, counterfoil, rated, tmp_path) -> None:
        said = counterfoil(
            "evaluate", "metric:rouge-l", rated, "--out", tmp_path / "runs/rouge", "--json", "-"
        )
        assert said.code == 0, said.err
        result = json.loads(said.out)
        assert result["scorer"] == "metric:rouge-l"
        # The run can be given again, and compared with another metric.
        again = counterfoil(
            "evaluate",
            f"given:{tmp_path}/runs/rouge/mine",
            rated,
            "--out",
            tmp_path / "runs/again",
            "--json",
            "-",
        )
        assert again.code == 0, again.err
        assert json.loads(again.out)["measures"] == result["measures"]
        counterfoil("evaluate", "metric:length", rated, "--out", tmp_path / "runs/length")
        compared = counterfoil("compare", *sorted((tmp_path / "runs").glob("*/mine")), "--json", "-")
        assert compared.code == 0, compared.err
        found = json.loads(compared.out)
        assert "rouge" in json.dumps(found)

    def test_ratings_that_are_none_are_counted_and_said(
        self, counterfoil, shared_data: Path, tmp_path: Path
    ) -> None:
        for name in ("Flickr8k.token.txt", "ExpertAnnotations.txt"):
            (tmp_path / "f8").mkdir(exist_ok=True)
            text = (shared_data / "flickr8k" / name).read_text("utf-8")
            if name.startswith("Expert"):
                lines = text.splitlines()
                lines[3] = lines[3].rsplit("\t", 1)[0] + "\tnan"
                text = "\n".join(lines) + "\n"
            (tmp_path / "f8" / name).write_text(text, "utf-8")
        command = (
            "evaluate", "metric:length", "flickr8k-expert", "--data", tmp_path / "f8",
            "--draws", 100,
        )  # fmt: skip
        said = counterfoil(*command)
        assert said.code == 0, said.err
        found = re.search(r"on Flickr8k-Expert, ([\d,]+) captions, ([\d,]+) ratings", said.out)
        assert found is not None
        captions, ratings = (int(each.replace(",", "")) for each in found.groups())
        assert ratings == 3 * captions - 1
        assert re.search(r"flickr8k-expert: .*1 rating.* NaN left out", said.err)
        assert counterfoil(*command, "-q").err == ""

    def test_ids_that_look_like_pairs_are_those_of_questions(self, counterfoil, rated, tmp_path) -> None:
        benchmark = load_folder(rated)
        names = tuple(f"{k // 3}_c{2 * (k % 3)}" for k in range(len(benchmark)))
        save(replace(benchmark, questions=replace(benchmark.questions, ids=names)), tmp_path / "named")
        scores = np.random.default_rng(1).random(len(names))
        lines = [f"{name},{score!r}" for name, score in zip(names, scores.tolist(), strict=True)]
        (tmp_path / "s.csv").write_text("\n".join(["id,score", *lines[::-1]]))
        said = counterfoil("evaluate", f"given:{tmp_path}/s.csv", tmp_path / "named", "--json", "-")
        assert said.code == 0, said.err
        ratings = benchmark.questions.ratings.T.reshape(-1)
        expected = kendalltau(np.tile(scores, 2), ratings).statistic
        assert json.loads(said.out)["measures"]["kendall_tau_b"]["value"] == pytest.approx(expected)
        assert "30 captions, 60 ratings" in said.err

    def test_given_preferences_are_evaluated_and_compared(self, counterfoil, tmp_path) -> None:
        n = 12
        benchmark = Benchmark(
            Card(name="two", title="Two", form="preference"),
            tuple(Image(f"i{i}") for i in range(n)),
            tuple(Caption(f"c{i}", f"caption number {i}") for i in range(2 * n)),
            Preference.between(
                tuple(f"q{i}" for i in range(n)),
                np.arange(2 * n).reshape(n, 2),
                np.arange(n),
                np.tile([[2.0, 1.0]], (n, 1)),
                np.zeros(n, np.int64),
            ),
        )
        save(benchmark, tmp_path / "two")
        rows = [(f"q{i}", side, float(side == i % 3)) for i in range(n) for side in (1, 0)]
        (tmp_path / "s.csv").write_text(
            "id,side,score\n" + "\n".join(",".join(map(str, row)) for row in rows)
        )
        said = counterfoil(
            "evaluate",
            f"given:{tmp_path}/s.csv",
            tmp_path / "two",
            "--json",
            "-",
            "--out",
            tmp_path / "runs/a",
        )
        assert said.code == 0, said.err
        # Side 0 scores 1 where i % 3 is 0, side 1 where it is 1, and both 0 where it is 2: a tie, and wrong.
        assert json.loads(said.out)["measures"]["accuracy"]["value"] == pytest.approx(4 / 12)
        kept = counterfoil("evaluate", f"given:{tmp_path}/runs/a/two", tmp_path / "two", "--json", "-")
        assert json.loads(kept.out)["measures"] == json.loads(said.out)["measures"]
        counterfoil("evaluate", "metric:length", tmp_path / "two", "--out", tmp_path / "runs/b")
        compared = counterfoil("compare", tmp_path / "runs/a/two", tmp_path / "runs/b/two")
        assert compared.code == 0, compared.err

    def test_the_model_behind_a_metric_is_in_its_name(self, counterfoil, rated, tmp_path) -> None:
        rng = np.random.default_rng(0)
        images, captions = rng.standard_normal((10, 4)), rng.standard_normal((40, 4))
        np.savez(tmp_path / "e.npz", images=images, captions=captions)
        spec = f"embeddings:{tmp_path}/e.npz"
        said = counterfoil("evaluate", "metric:clip-s", rated, "--scorer", spec, "--json", "-")
        assert said.code == 0, said.err
        result = json.loads(said.out)
        assert result["scorer"] == f"metric:clip-s {spec}"
        assert result["provenance"]["scorer"]["name"].startswith("metric:clip-s")
        unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (images, captions)]
        cosines = np.clip((unit[1][:30] * unit[0][np.arange(30) % 10]).sum(axis=1), 0, None)
        ratings = load_folder(rated).questions.ratings.T.reshape(-1)
        expected = kendalltau(np.tile(cosines, 2), ratings).statistic
        assert result["measures"]["kendall_tau_b"]["value"] == pytest.approx(expected)
        paper = counterfoil(
            "evaluate", "metric:ref-clip-s", rated, "--scorer", spec, "--set", "negative=paper", "--json", "-"
        )
        assert json.loads(paper.out)["provenance"]["scorer"]["options"]["metric"]["negative"] == "paper"

    def test_what_one_benchmark_lacks_is_said_first(self, counterfoil, rated, tmp_path) -> None:
        benchmark = load_folder(rated)
        without = replace(benchmark, questions=replace(benchmark.questions, references=None))
        save(without, tmp_path / "without")
        said = counterfoil(
            "evaluate", "metric:cider", rated, tmp_path / "without", "--out", tmp_path / "runs"
        )
        assert said.code == 2
        assert "mine has no references, which metric:cider compares with" in said.err
        assert said.out == ""
        assert not (tmp_path / "runs").exists()

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("metric:cidr", "{}"), "unknown caption metric; given: cidr; .*did you mean 'cider'?"),
            (("metric:clip-s", "{}"), "metric:clip-s: needs a model to look with; name one with --scorer"),
            (("metric:cider", "{}", "--scorer", "blind:length"), "metric:cider: has no model behind it"),
            (("blind:length", "{}", "--scorer", "hf:x"), "--scorer is for caption metrics"),
            (("blind:length", "{}", "--set", "a=b"), "--set is for caption metrics"),
            (("metric:clip-s", "{}", "--scorer", "blind:length"), "no model to look with"),
            (("metric:cider", "{}", "--set", "dff=x"), "unknown setting; given: dff"),
        ],
    )
    def test_what_is_refused(self, counterfoil, rated, arguments, said) -> None:
        found = counterfoil("evaluate", *(each.format(rated) for each in arguments))
        assert found.code == 2
        assert re.search(said, found.err), found.err
        assert found.err.count("\n") == 1


@pytest.mark.models
class TestWithAModel:
    @pytest.fixture
    def spec(self, tmp_path: Path) -> str:
        pytest.importorskip("open_clip")
        from counterfoil.scorers.tiny import write_random_checkpoint

        return write_random_checkpoint(tmp_path / "tiny")

    @pytest.fixture
    def never_loads(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
        from counterfoil.scorers import open_clip

        def refuse(argument: str, options: object) -> None:
            raise AssertionError("the model was loaded again")

        return lambda: monkeypatch.setattr(open_clip, "load", refuse)

    def test_a_second_run_loads_no_model_and_says_the_same(
        self, counterfoil, files, spec, never_loads, tmp_path
    ) -> None:
        long = written(tmp_path / "c.json", {**CANDIDATES, "dog": "a brown dog and " * 40})
        command = (
            "captions", "score", "--metrics", "clip-s,ref-pac-s,em-score", "--candidates", long,
            "--references", files["references"], "--images", files["images"], "--scorer", spec,
            "--device", "cpu", "--workers", "0",
        )  # fmt: skip
        first = counterfoil(*command, "--out", tmp_path / "1.csv")
        assert first.code == 0, first.err
        assert "metric:clip-s: 1 of 3 captions is longer than the model reads and cut off" in first.err
        never_loads()
        second = counterfoil(*command, "--out", tmp_path / "2.csv")
        assert second.code == 0, second.err
        assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()
        assert second.out == first.out
        assert second.err.replace("2.csv", "1.csv") == first.err

    def test_videos_in_folders_of_frames(self, counterfoil, spec, never_loads, tmp_path) -> None:
        rng = np.random.default_rng(0)
        for name, count in (("one", 5), ("two", 2), ("nobody", 1)):
            (tmp_path / "videos" / name).mkdir(parents=True)
            for frame in range(count):
                pixels = rng.integers(0, 256, (20, 20, 3)).astype(np.uint8)
                PIL.Image.fromarray(pixels).save(tmp_path / "videos" / name / f"{frame}.png")
        candidates = written(tmp_path / "c.json", {"one": "a dog runs", "two": "a cat sleeps"})
        command = (
            "captions", "score", "--metrics", "em-score,pac-s", "--candidates", candidates,
            "--videos", tmp_path / "videos", "--scorer", spec, "--device", "cpu", "--json", "-",
        )  # fmt: skip
        said = counterfoil(*command)
        assert said.code == 0, said.err
        assert "1 video that no candidate names is left out" in said.err
        found = json.loads(said.out)["metrics"]
        # With one model behind both, PAC-S of videos is EMScore.
        assert found["em-score"] == found["pac-s"]
        few = counterfoil(*command, "--frames", "1")
        assert json.loads(few.out)["metrics"] != found
        never_loads()
        assert json.loads(counterfoil(*command).out)["metrics"] == found
        about_pictures = counterfoil(*command[:3], "clip-s", *command[4:])
        assert about_pictures.code == 2
        assert "metric:clip-s: is about pictures, and these are videos" in about_pictures.err


def test_metrics_are_listed(counterfoil) -> None:
    said = counterfoil("list", "metrics", "--json")
    names = [entry["name"] for entry in json.loads(said.out)]
    assert names[:4] == ["bleu-1", "bleu-2", "bleu-3", "bleu-4"]
    assert "clip-s" in counterfoil("list", "metrics").out
    measures = {
        entry["name"]: entry["form"] for entry in json.loads(counterfoil("list", "measures", "--json").out)
    }
    assert measures["accuracy"] == "choice, preference"
    assert measures["kendall_tau_c"] == "rated"
