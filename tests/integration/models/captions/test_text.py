"""Metrics of texts by name: against pycocoevalcap where it has them, settings, identities, and refusals."""

import json
import shutil

import numpy as np
import pytest

from counterfoil.errors import InputError
from counterfoil.models.base import Options
from counterfoil.models.captions.text import load
from refusals import refuses

needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="needs Java")

WORDS = "a the man dog cat horse red small rides runs on in grass street , quickly and two ."
NAMES = ["bleu-1", "bleu-2", "bleu-3", "bleu-4", "rouge-l", "cider", "cider-d", "length"]


def metric(name, **settings):
    return load(name, Options(settings=settings))


def captions(n, seed):
    rng = np.random.default_rng(seed)

    def caption():
        # No letter alone before the full stop: whether that abbreviates is seen in the line that follows.
        return " ".join([*rng.choice(WORDS.split(), rng.integers(0, 11)), "sky"]).capitalize() + "."

    return [caption() for _ in range(n)], [[caption() for _ in range(rng.integers(1, 6))] for _ in range(n)]


def official(name, candidates, references):
    """What pycocoevalcap says of words: of all together, and of each."""
    bleu = pytest.importorskip("pycocoevalcap.bleu.bleu")
    rouge = pytest.importorskip("pycocoevalcap.rouge.rouge")
    cider = pytest.importorskip("pycocoevalcap.cider.cider")
    known = dict(enumerate(references))
    asked = {i: [text] for i, text in enumerate(candidates)}
    if name.startswith("bleu"):
        whole, items = bleu.Bleu(4).compute_score(known, asked, verbose=0)
        return whole[int(name[-1]) - 1], items[int(name[-1]) - 1]
    return (rouge.Rouge() if name == "rouge-l" else cider.Cider()).compute_score(known, asked)


class TestNumbers:
    @needs_java
    def test_captions_as_written_score_as_in_the_tool_kit(self):
        ptb = pytest.importorskip("pycocoevalcap.tokenizer.ptbtokenizer")
        candidates, references = captions(30, seed=2)
        candidates[0], references[1][0] = 'A man\'s "red" cat; two-legged...', "  Two\tdogs (small)  run!"
        flat = [candidates, *references]
        rows = {i: [{"caption": " ".join(text.split())} for text in own] for i, own in enumerate(flat)}
        cut = ptb.PTBTokenizer().tokenize(rows)
        for name in ("bleu-4", "rouge-l", "cider"):
            _, items = official(name, cut[0], [cut[i + 1] for i in range(len(references))])
            result = metric(name).of_texts(candidates, references)
            np.testing.assert_allclose(result, items, rtol=0, atol=1e-9, err_msg=name)

    def test_corpus_bleu_is_no_mean_and_others_are(self):
        candidates, references = captions(40, seed=3)
        for name in NAMES:
            result = metric(name)
            mean = result.of_texts(candidates, references).mean()
            whole = result.of_corpus(candidates, references)
            assert (whole == pytest.approx(mean, rel=1e-9)) == (not name.startswith("bleu"))

    def test_length_counts_words_without_punctuation(self):
        texts = ["A dog runs.", "", 'Two-legged cats , and "more" !', "a\n b"]
        assert metric("length").of_texts(texts, []).tolist() == [3, 0, 4, 2]
        assert metric("length", tokens="blanks").of_texts(texts, []).tolist() == [3, 0, 6, 2]
        assert metric("length").needs == ("captions",)

    def test_a_metric_after_another_gives_the_same_as_alone(self):
        # What metrics of one load share is kept from one to the next.
        first, second = captions(20, seed=4), captions(20, seed=5)
        alone = {name: metric(name).of_texts(*first) for name in NAMES}
        for name in NAMES:
            metric(name).of_texts(*second)
            metric(name, tokens="blanks").of_texts(*first)
            again = metric(name).of_texts(*first)
            np.testing.assert_array_equal(again, alone[name])
            again[:] = 7  # Scores are the asker's own.
            np.testing.assert_array_equal(metric(name).of_texts(*first), alone[name])


class TestSettings:
    def test_length_of_bleu(self):
        # Five words against three, five and nine: closest 5, shortest 3, average 17/3.
        asked = ["a dog on the grass"], [["a dog runs", "cats on the wide street", "a " * 9]]
        precision = metric("bleu-1").of_texts(*asked)[0]
        assert precision == pytest.approx(4 / 5, abs=1e-8)
        assert metric("bleu-1", length="shortest").of_texts(*asked)[0] == pytest.approx(precision)
        average = metric("bleu-1", length="average").of_texts(*asked)[0]
        assert average == pytest.approx(precision * np.exp(1 - (17 / 3) / 5), abs=1e-8)

    @pytest.mark.parametrize("coco", [False, True])
    def test_document_frequencies_of_a_file(self, tmp_path, coco):
        candidates, references = captions(25, seed=7)
        file = tmp_path / "corpus.json"
        rows = [{"image_id": i, "caption": text} for i, own in enumerate(references) for text in own]
        as_lists = {str(i): own for i, own in enumerate(references)}
        file.write_text(json.dumps({"annotations": rows} if coco else as_lists), encoding="utf-8")
        named = metric("cider", df=str(file))
        whole = metric("cider").of_texts(candidates, references)
        # The same corpus as the load's own; and a single candidate, of which there is no corpus.
        np.testing.assert_allclose(named.of_texts(candidates, references), whole, rtol=0, atol=1e-12)
        for start in range(3):
            alone = named.of_texts(candidates[start : start + 1], references[start : start + 1])
            assert alone[0] == pytest.approx(whole[start], abs=1e-12)

    def test_the_formula_that_tables_do_not_mean(self):
        candidates, references = captions(10, seed=8)
        plain = metric("cider", variant="plain").of_texts(candidates, references)
        assert 0 < plain.max() <= 1
        assert not np.allclose(10 * plain, metric("cider").of_texts(candidates, references))
        with pytest.raises(InputError, match="metric:cider-d: unknown key; given: variant"):
            metric("cider-d", variant="plain")

    @pytest.mark.parametrize(
        ("name", "settings", "said"),
        [
            ("cider", {"dff": "x"}, "metric:cider: unknown key; given: dff; allowed: df, tokens"),
            ("rouge-l", {"length": "x"}, "metric:rouge-l: unknown key; given: length; allowed: tokens"),
            ("bleu-1", {"tokens": "13a"}, "metric:bleu-1, key 'tokens': not a choice; given: 13a"),
            ("bleu-1", {"length": ""}, "metric:bleu-1, key 'length': no value; given: ''; allowed: closest"),
            ("cider", {"df": "no.json"}, "metric:cider, df: no such file; given: no.json; allowed"),
        ],
    )
    def test_refusals(self, name, settings, said):
        assert refuses("", metric, name, **settings, error=InputError).startswith(said)


class TestIdentity:
    def test_the_content_of_a_corpus_is_in_it_and_not_its_place(self, tmp_path):
        keys = []
        for name, word in (("one", "y"), ("moved", "y"), ("other", "z")):
            file = tmp_path / f"{name}.json"
            file.write_text(json.dumps({"a": ["x"], "b": [word]}), encoding="utf-8")
            keys.append(metric("cider", df=str(file)).identity.key)
        assert keys[0] == keys[1] != keys[2]


class TestMissingReferences:
    @pytest.mark.parametrize("name", [name for name in NAMES if name != "length"])
    def test_a_row_without_any(self, name):
        words = refuses("", metric(name).of_texts, ["a", "b c"], [["a"], []], error=InputError)
        assert words.startswith(f"metric:{name}, candidate 2: no references; given: b c")
        with pytest.raises(InputError, match="not as many lists of references as candidates; given: 1"):
            metric(name).of_texts(["a", "b"], [["a"]])
