"""The guard: no output is a file that is read, or one that exists, by whichever path."""

import os
from pathlib import Path

import pytest

from counterfoil.errors import InputError
from counterfoil.outputs import Folder, Outputs, existing_paths, guarding
from counterfoil.store import begin, end, write_text
from refusals import refuses
from unchanged import unchanged

_READ = "would replace what this command reads"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("id,score\na,1\n")
    return path


def _paths(table):
    """The same file by other paths."""
    folder = table.parent
    (folder / "soft.csv").symlink_to(table)
    os.link(table, folder / "hard.csv")
    (folder / "behind").symlink_to(folder)
    (folder / "deep").mkdir()
    return {
        "itself": table,
        "spelling": folder / "deep" / ".." / "table.csv",
        "soft link": folder / "soft.csv",
        "hard link": folder / "hard.csv",
        "linked folder": folder / "behind" / "table.csv",
    }


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("how", ["itself", "spelling", "soft link", "hard link", "linked folder", "relative"])
def test_what_is_read_is_never_replaced(table, how, overwrite, monkeypatch):
    monkeypatch.chdir(table.parent)
    target = {**_paths(table), "relative": Path("./table.csv")}[how]
    for one, other in ((target, table), (table, target)):
        outputs = Outputs("evaluate", overwrite=overwrite, reads=[other])
        with unchanged(table.parent, new=False):
            refuses(_READ, outputs.file, one, error=InputError)
            # And where it was not declared, writing refuses.
            with guarding(outputs), pytest.raises(InputError, match=_READ):
                write_text(one, "lost")


def test_files_that_exist_need_overwrite(tmp_path):
    there = tmp_path / "notes.json"
    there.write_text("{}")
    with pytest.raises(InputError, match=r"the file exists; name another file, or replace it with --over"):
        Outputs("compare").file(there)
    Outputs("compare", overwrite=True).file(there)


def test_files_in_folders_that_are_read(tmp_path):
    """New ones may be written there; those that are there stay, whatever was asked for."""
    images = tmp_path / "images"
    images.mkdir()
    (images / "1.png").write_bytes(b"a picture")
    outputs = Outputs("pool", overwrite=True, reads=[images])
    outputs.file(images / "new.png")
    refuses(rf"{_READ} \(in .*images\)", outputs.file, images / "1.png", error=InputError)


def test_two_outputs_are_two_files(tmp_path):
    for first, second in (("a.json", "a.json"), ("a.json", "b/../a.json")):
        outputs = Outputs("compare")
        outputs.file(tmp_path / first)
        refuses("two results would be written to one file", outputs.file, tmp_path / second, error=InputError)


def test_what_is_no_regular_file_is_left_alone(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null")):
        refuses("not a regular file", Outputs("compare", overwrite=True).file, path, error=InputError)


def _folder(path, *, resumes=False, alone=False):
    return Folder(path, ("manifest.json", "*.parquet"), lambda found: resumes, alone=alone)


def test_folders_that_hold_files_need_overwrite(tmp_path):
    place = tmp_path / "run"
    Outputs("evaluate").folder(_folder(place, alone=True))
    place.mkdir()
    (place / ".run.lock").touch()
    Outputs("evaluate").folder(_folder(place, alone=True))
    (place / "notes.txt").write_text("mine")
    Outputs("evaluate").folder(_folder(place))
    with pytest.raises(InputError, match=r"the folder holds files \(notes\.txt\); name another folder"):
        Outputs("evaluate").folder(_folder(place, alone=True))
    (place / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match=r"holds files \(manifest\.json\); .* them with --overwrite"):
        Outputs("evaluate").folder(_folder(place))
    Outputs("evaluate", overwrite=True).folder(_folder(place))


@pytest.mark.parametrize("alone", [False, True])
def test_folders_go_on_where_a_command_stopped(tmp_path, alone):
    (tmp_path / "manifest.json").write_text("{}")
    Outputs("evaluate").folder(_folder(tmp_path, resumes=True, alone=alone))
    with pytest.raises(InputError, match="the folder holds files"):
        Outputs("evaluate").folder(_folder(tmp_path, alone=alone))
    begin(tmp_path, "a run")
    Outputs("evaluate").folder(_folder(tmp_path, alone=alone))
    end(tmp_path)
    with pytest.raises(InputError, match="the folder holds files"):
        Outputs("evaluate").folder(_folder(tmp_path, alone=alone))


def test_folders_that_are_read_are_not_written(tmp_path):
    place = tmp_path / "data" / "set"
    place.mkdir(parents=True)
    (place / "manifest.json").write_text("{}")
    (place / "words.txt").write_text("a")
    for source in (place, place / "manifest.json"):
        for resumes in (True, False):
            with pytest.raises(InputError, match=_READ):
                Outputs("mix", overwrite=True, reads=[source]).folder(_folder(place, resumes=resumes))
    # A folder in one that is read, and a file beside those that are written, are no obstacle.
    for source in (place.parent, place / "words.txt"):
        Outputs("mix", reads=[source]).folder(_folder(place, resumes=True))
        Outputs("mix", overwrite=True, reads=[source]).folder(_folder(place))


def test_inputs_that_turn_up_later_are_inputs_too(table):
    outputs = Outputs("compare", overwrite=True)
    outputs.file(table)
    refuses(_READ, outputs.read, table, error=InputError)


def test_links_stay_links(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "latest.txt").symlink_to(tmp_path / "kept" / "a.txt")
    write_text(tmp_path / "latest.txt", "whole")
    assert (tmp_path / "latest.txt").is_symlink()
    assert (tmp_path / "kept" / "a.txt").read_text() == "whole"


def test_arguments_name_files_in_many_ways(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "w/b.pt", "hf/config.json", "x\udcff"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("")
    texts = ["given:a.csv", "open-clip:ViT-B-32/w/b.pt", "hf-text:./hf@8", "bivlc", "x" * 300, "a\0b", ""]
    result = existing_paths([*texts, "sugarcrepe=w", 3])
    assert {str(path) for path in result} == {"a.csv", "w/b.pt", "hf", "w"}
