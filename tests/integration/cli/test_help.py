"""Help answers at once, with examples; lists tell the truth; names as people type them."""

import json

import pytest

from counterfoil import catalog
from counterfoil.catalog import BENCHMARKS
from counterfoil.cli.derive import as_meant
from counterfoil.errors import InputError, ModelError, UnknownNameError
from counterfoil.models import hub_reach
from counterfoil.models.registry import kinds_of, models_called
from processes import python
from refusals import refuses

#: What a process does, and the libraries that it does not load. Import time is what help costs; the modules
#: say more reliably than a clock what it is made of.
LIGHT = {
    "help": (
        "sys.argv = ['counterfoil', '--help']\n"
        "try: runpy.run_module('counterfoil', run_name='__main__')\n"
        "except SystemExit as stop: assert not stop.code\n",
        "torch scipy pyarrow matplotlib transformers datasets PIL pydantic",
    ),
    "what commands share": (
        "import counterfoil.catalog, counterfoil.engine, counterfoil.evaluation\n",
        "torch av pandas matplotlib pycocoevalcap scipy.stats scipy.sparse",
    ),
    "completion": (
        "from counterfoil.cli import completion\n"
        "for kind in ('benchmarks', 'models', 'metrics', 'measures', 'recipes', 'papers'):\n"
        "    assert completion.complete(kind, ''), kind\n",
        "torch scipy matplotlib transformers",
    ),
}


@pytest.mark.parametrize("case", LIGHT)
def test_libraries_are_left_to_who_needs_them(case):
    script, heavy = LIGHT[case]
    script = f"import runpy, sys\n{script}print(sorted(set({heavy.split()}) & set(sys.modules)))"
    done = python("-c", script)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "[]"), done.stderr


def test_version(counterfoil):
    from counterfoil import __version__

    assert counterfoil("--version").out == f"counterfoil {__version__}\n"


def test_lists(counterfoil, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [card["name"] for card in json.loads(counterfoil("list", "benchmarks", "--json", "-").out)]
    assert names == list(BENCHMARKS)
    assert "winoground" in counterfoil("list", "benchmarks").out
    assert "group_match" in counterfoil("list", "measures").out
    assert "open-clip:ARCH/PRETRAINED" in counterfoil("list", "models").out
    assert "pitfalls" in counterfoil("list", "benchmarks", "winoground").out
    counterfoil("world", "build", "choices", "--n", "6", "--out", "drawn", "--quiet")
    assert "world-choices" in counterfoil("benchmarks", "show", "drawn").out
    assert "clip-s" in counterfoil("list", "metrics").out
    assert "--guidance" in counterfoil("build", "imagine", "--help").out
    assert {"bivlc", "imagine"} <= set(counterfoil("build", "--help").out.split())
    recipes = json.loads(counterfoil("list", "recipes", "--json", "-").out)
    assert [recipe["name"] for recipe in recipes][:4] == ["coco", "negclip", "trohn-text", "trohn-img"]
    assert "generated_image" in counterfoil("list", "recipes").out
    assert "left open there" in counterfoil("list", "recipes", "pac").out
    assert json.loads(counterfoil("list", "recipes", "pac", "--json", "-").out)["lambda_t"] == 0.1


# One that prints by itself, one beside another, a list, a step and the whole program.
@pytest.mark.parametrize(
    "command", ["benchmarks fetch", "compare rankings", "list recipes", "build refine", ""]
)
def test_every_kind_of_command_has_help(counterfoil, command):
    said = counterfoil.succeeds(*command.split(), "--help").out
    assert said.startswith(f"Usage: counterfoil {command}".rstrip())
    assert f"  counterfoil {command}" in said or "Example: counterfoil" in said or not command


@pytest.mark.parametrize("width", [80, 200])
def test_help_has_sections_with_ranges_and_defaults(counterfoil, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    said = counterfoil.succeeds("evaluate", "--help").out
    assert max(map(len, said.splitlines())) <= width
    for heading in ("Arguments", "Options", "Model", "Work", "Statistics", "Examples"):
        assert f"\n{heading}:\n" in said
    assert "--draws INTEGER Bootstrap samples. [100 to 1,000,000; default: 10000]" in " ".join(said.split())


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        (("evaluate", "op"), {"open-clip:"}),
        (("evaluate", "metric:cid"), {"metric:cider", "metric:cider-d"}),
        (("evaluate", "given:x", "winog"), {"winoground"}),
        (("list", "benchmarks", "bivl"), {"bivlc"}),
        (("list", "recipes", "trohn"), {"trohn-text", "trohn-img"}),
        (("train", "pvs"), {"pvse"}),
        (("reproduce", "--paper", "pac"), {"pac-s"}),
        (("captions", "score", "--metrics", "cider,rou"), {"cider,rouge-l"}),
        (("evaluate", "--measure", "group_mat"), {"group_match"}),
        (("evaluate", "--ties", "st"), {"strict"}),
        (("li",), {"list"}),
    ],
)
def test_a_shell_completes_names(counterfoil, monkeypatch, typed, completed):
    monkeypatch.setenv("_COUNTERFOIL_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(("counterfoil", *typed)))
    monkeypatch.setenv("COMP_CWORD", str(len(typed)))
    said = counterfoil()
    assert {line.partition(",")[2] for line in said.out.splitlines()} == completed, said.err
    monkeypatch.setenv("_COUNTERFOIL_COMPLETE", "bash_source")
    assert "_COUNTERFOIL_COMPLETE=bash_complete $1" in counterfoil().out


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
    assert catalog.model_name("open_clip:ViT-B-32/openai") == ("open-clip", "ViT-B-32/openai")
    assert catalog.model_name("metric:clip_s")[0] == "metric"


def test_options_are_taken_as_other_tools_call_them(counterfoil, pairs):
    words = ("evaluate", "blind:length", "pairs", "--data", "my.csv", "--draws", 100)
    done = counterfoil.succeeds(*words, "--limit 2 --batch_size 3 --num_workers=0 -o runs/a")
    assert "2 questions" in done.out
    assert (pairs / "runs" / "a" / "pairs" / "manifest.json").is_file()
    assert counterfoil(*words, "--output", "runs/b", "--dtype", "float32").code == 0
    assert (pairs / "runs" / "b" / "pairs").is_dir()


def test_what_follows_two_hyphens_stays_as_it_is():
    meant = as_meant(["--batch_size", "1", "--", "--batch_size"], ["--batch-size"])
    assert meant[2:] == ["--", "--batch_size"]
    assert as_meant(["--k_s", "-o"], ["--k_s"]) == ["--k_s", "-o"]


def test_an_unknown_name_gets_three_suggestions_and_the_command_that_lists_all():
    said = refuses("", catalog.benchmark, "coco-9k", error=UnknownNameError)
    listed = said.partition("allowed: ")[2].partition("; ")[0].split(", ")
    assert len(listed) == 4
    assert listed[-1].startswith("… (")
    assert said.endswith("'counterfoil list benchmarks' lists all")


def test_a_model_without_its_kind_is_not_taken_for_scores():
    said = refuses("counterfoil list models", catalog.model_name, "nonsense", error=InputError)
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
    assert catalog.model_name(str(tmp_path)) == ("hf", str(tmp_path))
    models_called.cache_clear()
    (tmp_path / "open_clip_config.json").write_text("{}")
    with pytest.raises(InputError, match=r"several kinds .*: open-clip:local-dir:.*, hf:"):
        catalog.model_name(str(tmp_path))


def test_an_architecture_and_its_tag_are_of_open_clip(counterfoil, pairs, no_network):
    assert catalog.model_name("ViT-B-32-quickgelu/openai")[0] == "open-clip"
    done = counterfoil("evaluate", "ViT-B-32-quickgelu/openai", "pairs", "--data", "my.csv")
    assert "ViT-B-32-quickgelu/openai is open-clip:ViT-B-32-quickgelu/openai" in done.err


def test_a_hub_that_does_not_answer_is_said_at_once(no_network):
    with pytest.raises(ModelError, match=rf"hf:nobody/none: .*; given: {SAID}; .*given:, .* need no network"):
        catalog.model("hf:nobody/none")
    with pytest.raises(ModelError, match=rf"nobody/none2: what kind .*; given: {SAID}; .* hf:nobody/none2"):
        catalog.model("nobody/none2")
