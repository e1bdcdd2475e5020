"""Caption metrics by name, and the model behind several of them."""

import sys

import numpy as np
import pytest

from counterfoil import catalog
from counterfoil.benchmarks import Caption
from counterfoil.errors import InputError, MissingExtraError, UnknownNameError
from counterfoil.models.base import Options
from counterfoil.models.captions.base import EmbeddingMetric, LocalMetric, TextMetric
from counterfoil.models.captions.registry import METRICS
from refusals import refuses

READING = [name for name, entry in METRICS.items() if not entry.has_model and "java" not in entry.needs]


@pytest.mark.parametrize("name", READING)
def test_metrics_that_read_need_no_model(name):
    metric = catalog.model(f"metric:{name}")
    assert isinstance(metric, TextMetric)
    assert (metric.identity.name, set(metric.needs)) == (f"metric:{name}", set(METRICS[name].needs))
    with pytest.raises(InputError, match="has no model behind it; given: --backbone hf:x"):
        catalog.model(f"metric:{name}", Options(backbone="hf:x"))


def test_names_that_nobody_knows():
    refuses("did you mean 'rouge-l'", catalog.model, "metric:rouge", error=UnknownNameError)
    refuses(r"allowed: metric:NAME", catalog.model, "metric:", error=InputError)


@pytest.mark.parametrize("spec", ["hf:some/model", "open-clip:ViT-B-32/openai"])
def test_a_missing_library_is_named(spec, monkeypatch):
    module = f"counterfoil.models.{spec.partition(':')[0].replace('-', '_')}"
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    refuses(r"'torch' is not installed.*pip install", catalog.model, spec, error=MissingExtraError)


@pytest.mark.models
class TestTheModelBehind:
    @pytest.fixture
    def spec(self, tmp_path):
        pytest.importorskip("open_clip")
        from tiny_families import write_random_checkpoint

        return write_random_checkpoint(tmp_path / "tiny")

    @pytest.fixture
    def loads(self, monkeypatch):
        """What the loader of open_clip was asked for."""
        from counterfoil.models import open_clip

        seen = []
        load = open_clip.load

        def counted(argument, options):
            seen.append(options.prompt)
            return load(argument, options)

        monkeypatch.setattr(open_clip, "load", counted)
        return seen

    def test_metrics_share_it_whatever_they_put_before_captions(self, spec, loads):
        names = ["clip-s", "pac-s", "em-score", "cider"]
        metrics = catalog.caption_metrics(names, Options(backbone=spec, device="cpu"))
        assert loads == ["A photo depicts {}"]
        clip, frames = metrics["clip-s"], metrics["em-score"]
        assert isinstance(clip, EmbeddingMetric)
        assert isinstance(frames, LocalMetric)
        assert frames.local.identity.prompt == "{}"
        # With its own prompt it gives what a model that was loaded for it gives.
        alone = catalog.model("metric:em-score", Options(backbone=spec, device="cpu"))
        captions = [Caption("a", "two birds on a wire")]
        ours, theirs = (next(iter(m.local.embed_tokens([captions])))[0] for m in (frames, alone))
        assert alone.local.identity == frames.local.identity
        assert np.array_equal(ours.vectors, theirs.vectors)

    def test_a_second_time_nothing_is_loaded(self, spec, loads, tmp_path):
        names = ["clip-s", "em-score"]
        options = Options(backbone=spec, device="cpu")
        first = catalog.caption_metrics(names, options, memory=tmp_path / "memory")
        assert len(loads) == 1
        second = catalog.caption_metrics(names, options, memory=tmp_path / "memory")
        assert len(loads) == 1
        assert [second[name].identity for name in names] == [first[name].identity for name in names]
        # Once both are asked, one model is loaded and not two.
        clip, frames = second["clip-s"], second["em-score"]
        captions = [Caption("a", "two birds on a wire")]
        list(clip.embedder.embed_captions([captions]))
        list(frames.local.embed_tokens([captions]))
        assert len(loads) == 2

    @pytest.mark.parametrize("behind", sorted(catalog.MODELS))
    def test_every_kind_says_whether_it_can_stand_behind(self, behind, monkeypatch):
        entry = catalog.MODELS[behind]
        assert entry.embeds is not None
        loaded = []

        def load(entry, argument, options):
            loaded.append(entry.prefix)

        monkeypatch.setattr(catalog, "_load", load)
        spec = f"{behind}:cider"
        for ask in (
            lambda: catalog.model("metric:clip-s", Options(backbone=spec)),
            lambda: catalog.check_metric("metric:clip-s", spec),
        ):
            try:
                ask()
            except InputError as error:
                assert "no model to look with: it does not embed" in str(error)  # noqa: PT017
        # Nothing is loaded of kinds that embed nothing, and the others are looked at.
        assert loaded == ([behind] if entry.embeds else [])
