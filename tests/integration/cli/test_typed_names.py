"""Names as people type them: of models, benchmarks and options; what is said where a name is unknown."""

import json

import pytest

from counterfoil import catalog
from counterfoil.cli.derive import as_meant
from counterfoil.errors import InputError, ModelError, UnknownNameError
from counterfoil.models import hub_reach
from counterfoil.models.registry import kinds_of, scorers_called
from refusals import refuses

#: What the network says in these tests.
SAID = "ConnectError: no route to host"


@pytest.fixture
def pairs(tmp_path, monkeypatch):
    lines = [f"a cat {n},a dog {n}" for n in range(20)]
    (tmp_path / "my.csv").write_text("\n".join(["caption,negative_caption", *lines]) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_network(monkeypatch):
    monkeypatch.setattr(hub_reach, "unreachable", lambda: SAID)


@pytest.mark.parametrize(
    ("typed", "name"),
    [("sugar_crepe", "sugarcrepe"), ("Winoground", "winoground"), ("mscoco", "coco-5k"), ("x", "x")],
)
def test_separators_and_capitals_of_names_do_not_count(typed, name):
    assert catalog.benchmark_name(typed) == name


def test_underscores_count_in_kinds_and_metrics_too():
    assert catalog.scorer_name("open_clip:ViT-B-32/openai") == ("open-clip", "ViT-B-32/openai")
    assert catalog.scorer_name("metric:clip_s")[0] == "metric"


def test_options_are_taken_as_other_tools_call_them(counterfoil, pairs):
    words = ("evaluate", "blind:length", "pairs", "--data", "my.csv", "--draws", 100)
    done = counterfoil.succeeds(*words, "--limit 2 --batch_size 3 --num_workers=0 -o runs/a")
    assert "2 questions" in done.out
    assert (pairs / "runs" / "a" / "pairs" / "manifest.json").is_file()
    assert counterfoil(*words, "--output", "runs/b", "--dtype", "float32").code == 0
    assert (pairs / "runs" / "b" / "pairs").is_dir()


def test_what_follows_two_hyphens_stays_as_it_is():
    assert as_meant(["--batch_size", "1", "--", "--batch_size"], ["--batch-size"])[2:] == [
        "--",
        "--batch_size",
    ]
    assert as_meant(["--k_s", "-o"], ["--k_s"]) == ["--k_s", "-o"]


def test_an_unknown_name_gets_three_suggestions_and_the_command_that_lists_all():
    said = refuses("", catalog.benchmark, "coco-9k", error=UnknownNameError)
    listed = said.partition("allowed: ")[2].partition("; ")[0].split(", ")
    assert len(listed) == 4
    assert listed[-1].startswith("… (")
    assert said.endswith("'counterfoil list benchmarks' lists all")


def test_a_model_without_its_kind_is_not_taken_for_scores():
    said = refuses("counterfoil list scorers", catalog.scorer_name, "nonsense", error=InputError)
    assert "given:nonsense" not in said


@pytest.mark.parametrize(
    ("config", "kinds"),
    [
        ({"model_type": "siglip"}, ("hf",)),
        ({"model_type": "blip", "architectures": ["BlipForImageTextRetrieval"]}, ("itm",)),
        ({"model_type": "blip-2", "architectures": ["Blip2ForImageTextRetrieval"]}, ("itm",)),
        # Refused there, and the refusal says why.
        ({"model_type": "florence2", "vision_config": {}}, ("likelihood",)),
        ({"model_type": "qwen3_vl", "vision_config": {}}, ("vqa", "likelihood")),
        ({"model_type": "bert", "architectures": ["BertForMaskedLM"]}, ("lm",)),
        ({"model_type": "bert", "architectures": ["BertModel"]}, ("text-encoder",)),
        ({}, ()),
    ],
)
def test_the_kind_of_a_model_is_that_of_its_configuration(config, kinds):
    assert kinds_of(config) == kinds


def test_a_folder_is_taken_and_two_meanings_are_an_error(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "clip"}))
    assert catalog.scorer_name(str(tmp_path)) == ("hf", str(tmp_path))
    scorers_called.cache_clear()
    (tmp_path / "open_clip_config.json").write_text("{}")
    with pytest.raises(InputError, match=r"several kinds .*: open-clip:local-dir:.*, hf:"):
        catalog.scorer_name(str(tmp_path))


def test_an_architecture_and_its_tag_are_of_open_clip(counterfoil, pairs, no_network):
    assert catalog.scorer_name("ViT-B-32-quickgelu/openai")[0] == "open-clip"
    done = counterfoil("evaluate", "ViT-B-32-quickgelu/openai", "pairs", "--data", "my.csv")
    assert "ViT-B-32-quickgelu/openai is open-clip:ViT-B-32-quickgelu/openai" in done.err


def test_a_hub_that_does_not_answer_is_said_at_once(no_network):
    with pytest.raises(ModelError, match=rf"hf:nobody/none: .*; given: {SAID}; .*given:, .* need no network"):
        catalog.scorer("hf:nobody/none")
    with pytest.raises(ModelError, match=rf"nobody/none2: what kind .*; given: {SAID}; .* hf:nobody/none2"):
        catalog.scorer("nobody/none2")
