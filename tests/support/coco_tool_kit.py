"""The COCO tool kit's own tokenizer and models, made quiet: what ours is held against."""

import contextlib
import io
import shutil
import warnings

import numpy as np
import pytest


def java_tokens(texts, *, apart):
    """What the tool kit's tokenizer, which runs in Java, makes of captions.

    It reads them as one text. With `apart` a line of small letters stands between every two, so that none can
    look at the next.
    """
    if shutil.which("java") is None:
        pytest.skip("no Java here to run the tool kit's tokenizer with")
    module = pytest.importorskip("pycocoevalcap.tokenizer.ptbtokenizer")
    lines = [line for text in texts for line in ((text, "x q") if apart else (text,))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        result = module.PTBTokenizer().tokenize({i: [{"caption": line}] for i, line in enumerate(lines)})
    tokens = [result[i][0] for i in range(len(lines))]
    if apart:
        assert set(tokens[1::2]) <= {"x q"}, "the tool kit's lines have moved against its captions"
    return tokens[::2] if apart else tokens


def scored(model, candidates, references, **options):
    """(value of the corpus, values of the items) of one of the tool kit's models."""
    with contextlib.redirect_stdout(io.StringIO()):
        corpus, items = model.compute_score(
            {i: list(listed) for i, listed in enumerate(references)},
            {i: [text] for i, text in enumerate(candidates)},
            **options,
        )
    return corpus, np.array(items)


def against_the_others(captions):
    """Each caption of an image as a candidate, the image's others as its references."""
    pairs = [(own[i], [*own[:i], *own[i + 1 :]]) for own in captions for i in range(len(own)) if len(own) > 1]
    return [candidate for candidate, _ in pairs], [others for _, others in pairs]


def same(ours, theirs):
    """To 1e-9 for every item."""
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)
