"""Human ratings of images that models drew for prompts: GenAI-Bench and its ranking of nine images."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.readers.human_ratings import (
    CaptionTable,
    RatingRows,
    Skipped,
    clean_caption,
    rated,
    rating,
)
from counterfoil.benchmarks.readers.released_files import released_file
from counterfoil.benchmarks.readers.rows import Photos
from counterfoil.benchmarks.records import Image
from counterfoil.benchmarks.tables import shown
from counterfoil.errors import DataError
from counterfoil.inputs.files import read_json

#: Tags of prompts, and prompts of one or of several objects: groupings of one group each.
_SKILLS = "genai_skills.json"


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """GenAI-Bench: `genai_image.json`, {number: {prompt, models: {MODEL: [rating, ...]}}}.

    A question per prompt and model; its rating is the mean of those of its raters, as the authors take it.
    `data` is the folder, or the file itself. Images are MODEL/NUMBER.jpeg, of five digits, in `images`, else
    beside the file. Groupings: `model`, and one per tag of `genai_skills.json` ({tag: [numbers]}), where that
    lies beside it. Raises `DataError` naming what does not fit.
    """
    file, entries = _opened(card, data, "genai_image.json")
    assert isinstance(entries, dict)
    rows = [
        (str(number), model, f"{model}/{_digits(number)}.jpeg", given)
        for number, entry in entries.items()
        for model, given in _models(entry, f"{file}, '{number}'").items()
    ]
    prompts = {str(number): _prompt(entry, f"{file}, '{number}'") for number, entry in entries.items()}
    return _benchmark(card, file, rows, prompts, images, _skills(file.parent / _SKILLS, set(prompts)))


def read_ranking(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """The ranking set of GenAI-Bench: `human_rating.json`, nine images of each model for each prompt.

    A list of {id, prompt, models: {MODEL: {"1": [rating, ...], ...}}}, or an object of such by number; images
    are MODEL/ID_K.jpeg, with five and two digits. Otherwise as `read`.
    """
    file, entries = _opened(card, data, "human_rating.json")
    listed = (
        entries
        if isinstance(entries, list)
        else [{"id": key, **_object(entry_of_prompt, file)} for key, entry_of_prompt in entries.items()]
    )
    rows, prompts = [], {}
    for at, entry in enumerate(listed):
        where = f"{file}, entry {at + 1}"
        number = str(_object(entry, where).get("id", at))
        prompts[number] = _prompt(entry, where)
        for model, of_image in _models(entry, where).items():
            for k, given in _object(of_image, f"{where}, '{model}'").items():
                if not k.isdecimal():
                    raise DataError("not the number of an image", where=f"{where}, '{model}'", given=k)
                rows.append((number, model, f"{model}/{_digits(number)}_{int(k):02d}.jpeg", given))
    return _benchmark(card, file, rows, prompts, images, _skills(file.parent / _SKILLS, set(prompts)))


def _benchmark(
    card: Card,
    file: Path,
    rows: Sequence[tuple[str, str, str, Any]],
    prompts: Mapping[str, str],
    images: Path | None,
    skills: Mapping[str, frozenset[str]],
) -> Benchmark:
    captions = CaptionTable()
    at = {number: captions.add(text, f"prompt {number}") for number, text in prompts.items()}
    names = [name for _, _, name, _ in rows]
    # The folders of the models lie beside the file; where they are not, there are no images.
    folder = images or (
        file.parent if any((file.parent / model).is_dir() for _, model, _, _ in rows) else None
    )
    sources = Photos(folder).sources(names)
    # The mean of the ratings in a cell.
    given = np.empty((len(rows), 1))
    for row, (_, _, name, cell) in enumerate(rows):
        if cell == []:
            raise DataError("no ratings", where=f"{file}, {name}")
        cells = cell if isinstance(cell, list) else [cell]
        given[row] = np.mean([rating(value, f"{file}, {name}") for value in cells])
    return rated(
        card,
        RatingRows(
            [name.removesuffix(".jpeg") for name in names],
            np.array([at[number] for number, _, _, _ in rows], dtype=np.int64),
            np.arange(len(rows), dtype=np.int64),
            given,
            references=None,
            groupings={
                "model": tuple(model for _, model, _, _ in rows),
                **{
                    tag: tuple(tag if number in numbers else "" for number, _, _, _ in rows)
                    for tag, numbers in skills.items()
                },
            },
        ),
        captions.items,
        [Image(name, sources[name]) for name in names],
        left=Skipped(),
        source=str(file),
        path=file,
    )


def _opened(card: Card, data: Path | None, name: str) -> tuple[Path, Any]:
    file = released_file(card, data, (name,))
    entries = read_json(file)
    if not isinstance(entries, dict | list) or not entries:
        raise DataError("no prompts", where=file, given=type(entries).__name__)
    if name == "genai_image.json" and not isinstance(entries, dict):
        raise DataError("not an object of prompts by number", where=file, given="a list")
    return file, entries


def _object(value: Any, where: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DataError("not an object", where=where, given=shown(value))
    return value


def _prompt(entry: Any, where: str) -> str:
    return clean_caption(_object(entry, where).get("prompt"), where, "prompt")


def _models(entry: Any, where: str) -> Mapping[str, Any]:
    return _object(_object(entry, where).get("models"), f"{where}, models")


def _digits(number: object) -> str:
    text = str(number)
    return f"{int(text):05d}" if text.isdecimal() else text


def _skills(file: Path, known: set[str]) -> dict[str, frozenset[str]]:
    """The prompts of each tag; none where there is no such file."""
    if not file.is_file():
        return {}
    prompts_of = {}
    plain = {_digits(number): number for number in known}
    for tag, numbers in _object(read_json(file), file).items():
        if not isinstance(numbers, list):
            raise DataError("not a list of prompts", where=f"{file}, '{tag}'", given=shown(numbers))
        prompts_of[tag] = frozenset(plain[_digits(prompt)] for prompt in numbers if _digits(prompt) in plain)
    return {tag: numbers for tag, numbers in prompts_of.items() if numbers}
