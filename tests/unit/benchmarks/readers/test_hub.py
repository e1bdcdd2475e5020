"""Hub data sets through the `datasets` library, without a network."""

import sys

import pytest

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers.rows import hub_rows
from counterfoil.benchmarks.readers.specs import read
from counterfoil.errors import DataError, MissingExtraError
from refusals import refuses


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of the library's, for this test alone."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def small():
    return card("bivlc").model_copy(update={"size": 5, "counts": {"add": 2, "swap": 2}})


@pytest.mark.models
def test_images_stay_in_the_librarys_files(tmp_path, cache, small, hub_parquet, bivlc_columns):
    folder = tmp_path / "BiVLC"
    hub_parquet(folder / "data" / "test-00000-of-00001.parquet", bivlc_columns)
    found = read(small.model_copy(update={"hub": str(folder)}), None, None)
    assert [image.read() for image in found.images[::2]] == bivlc_columns["image"]
    assert [image.read() for image in found.images[1::2]] == bivlc_columns["negative_image"]
    assert [caption.text for caption in found.captions[::2]] == bivlc_columns["caption"]
    assert str(cache) in str(found.images[0].source)
    assert found.source == f"{folder}, test"


@pytest.mark.models
def test_offline_once_cached(tmp_path, cache, small, hub_parquet, bivlc_columns):
    """What the library keeps of a hub data set serves without the hub."""
    folder = tmp_path / "BiVLC"
    hub_parquet(folder / "data" / "test-00000-of-00001.parquet", bivlc_columns)
    hub_rows(small.model_copy(update={"hub": str(folder)}), ("image", "negative_image"))
    # The library keeps owner/BiVLC as owner___bi_vlc; a local folder differs by the owner alone.
    (cache / "bi_vlc").rename(cache / "imirandam___bi_vlc")
    found = read(small, None, None)
    assert found.images[9].read() == bivlc_columns["negative_image"][4]


@pytest.mark.models
@pytest.mark.parametrize("name", ["bivlc", "winoground"])
def test_no_network(cache, name):
    message = refuses("", hub_rows, card(name), ())
    assert message.startswith(f"{card(name).hub}: the data set cannot be had from the hub")
    assert "--data" in message
    assert "\n" not in message


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    refuses(r"'datasets' is not installed.*pip install", hub_rows, card("bivlc"), (), error=MissingExtraError)


@pytest.mark.models
def test_gated_data_sets_say_how_to_get_in(cache, monkeypatch):
    import datasets

    def refuse(*_, **__):
        raise datasets.exceptions.DatasetNotFoundError(
            "'facebook/winoground' is a gated dataset on the Hub.\nYou must be authenticated to access it."
        )

    monkeypatch.setattr(datasets, "load_dataset", refuse)
    with pytest.raises(DataError, match=r"gated dataset.*accept its terms at https://.*winoground and log"):
        hub_rows(card("winoground"), ())
