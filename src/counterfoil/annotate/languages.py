"""Languages of the annotators' page. Forms and notices are written in English; `phrases/LANGUAGE.json` has
their phrases in another one, and what it does not have is shown as it is.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

#: Languages of the page's own words; the first where a campaign has none of them.
LANGUAGES = ("en", "de", "es", "fr")
#: A step of a scale with what it means: the number stays.
_STEP = re.compile(r"(\d+: )(.+)")


def package_text(*names: str) -> str:
    """The text of a file of this package, which is named by the folders to it."""
    return files("counterfoil.annotate").joinpath(*names).read_text(encoding="utf-8").rstrip()


@cache
def phrases_of(language: str) -> Mapping[str, str]:
    """The phrases of forms and notices in a language, by what they are in English."""
    if language not in LANGUAGES[1:]:
        return {}
    phrases: dict[str, str] = json.loads(package_text("phrases", f"{language}.json"))
    return phrases


def phrase_in(language: str, text: str) -> str:
    """A phrase in a language, as it is where that has no such phrase.

    >>> phrase_in("de", "Yes"), phrase_in("fr", "4: It describes the image without errors")
    ('Ja', '4: Elle décrit l’image sans erreur')
    >>> phrase_in("de", "A cat."), phrase_in("en", "Yes")
    ('A cat.', 'Yes')
    """
    phrases = phrases_of(language)
    step = _STEP.fullmatch(text)
    if step is not None and step[2] in phrases:
        return step[1] + phrases[step[2]]
    return phrases.get(text, text)


def in_language(name: str, language: str) -> str:
    """The file of a text in a language: consent.de.md."""
    return f"{name.removesuffix('.md')}.{language}.md" if language else name


def language_for(accepted: str, offered: tuple[str, ...]) -> str:
    """The language of the page: of those of the campaign, the one that the browser wants most.

    >>> language_for("fr-CA,fr;q=0.9,en;q=0.8", ("en", "fr")), language_for("fr", ("de-AT",))
    ('fr', 'de')
    >>> language_for("", ("ja",))
    'en'
    """
    names = [name.split("-")[0].lower() for name in offered]
    able = [name for name in names if name in LANGUAGES]
    wanted = []
    for part in accepted.split(",")[:20]:
        name, _, quality = part.strip().partition(";q=")
        try:
            weight = float(quality or 1)
        except ValueError:
            weight = 0.0
        wanted.append((-weight, name.split("-")[0].lower()))
    wanted.sort(key=lambda weighted: weighted[0])
    return next((name for _, name in wanted if name in able), (able or LANGUAGES)[0])
