"""The published n-gram rows: Flickr8k-Expert of PAC-S Table 1."""

import pytest
from scipy.stats import kendalltau

from counterfoil.metrics.captions import cider, ngrams
from counterfoil.metrics.captions.ngrams import load
from counterfoil.metrics.captions.ptb import tokenize_all
from flickr8k_files import captions, expert

#: tau-b and tau-c, times 100 (FORMATS.md 6.3).
PUBLISHED = {
    "bleu-1": (32.175, 32.324), "bleu-4": (30.599, 30.776), "rouge-l": (32.139, 32.314),
    "cider": (43.602, 43.891),
}  # fmt: skip


def test_flickr8k_expert(shared_data):
    references = {image: tokenize_all(own) for image, own in captions(shared_data).items()}
    rows = expert(shared_data)
    assert len(rows) == 16_992
    pairs = load(tokenize_all([text for _, text, _ in rows]), [references[image] for image, _, _ in rows])
    by_order = ngrams.bleu(pairs).items
    scores = {
        "bleu-1": by_order[:, 0], "bleu-4": by_order[:, 3], "rouge-l": ngrams.rouge_l(pairs),
        "cider": cider.cider(pairs),
    }  # fmt: skip
    ratings = [rating for _, _, rating in rows]
    for name, published in PUBLISHED.items():
        found = [100 * kendalltau(scores[name], ratings, variant=variant)[0] for variant in "bc"]
        assert found == pytest.approx(published, abs=0.01), name
