"""Simulated people: known accuracy, speed and habits; they answer the pages that real people see.

A simulated person knows the right answer of an item (its `golden` or `truth`) and gives it with a chance of
their own. So a campaign can be run before people are paid, and its result held against the truth.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from counterfoil.annotate.forms.base import FormField, WorkForm, WorkItem, WorkPage, check_answer
from counterfoil.errors import InputError

#: Answer times spread as a gamma of this shape: the standard deviation is half the mean.
_SHAPE = 4.0
#: Words of a simulated text; two fields of one page get them in another order.
_WORDS = ("a", "red", "box", "beside", "the", "cat")
#: So often an answer whose fields do not go together is tried anew.
_ATTEMPTS = 100


@dataclass(frozen=True)
class SimulatedPerson:
    """One person. An answer ignores the item and takes the first option shown with chance `first`, or any
    option with chance `guesses`; else it is right with chance `accuracy`. It takes `seconds` on average, of a
    bot always exactly that.

    Wrong answers are spread evenly over the other options; on a scale they are the step beside the right one.
    Raises `InputError` for chances outside [0, 1] or of more than 1 together, and times that are not above 0.
    """

    name: str
    kind: str = "able"
    accuracy: float = 0.95
    first: float = 0.0
    guesses: float = 0.0
    seconds: float = 1.0
    even: bool = False

    def __post_init__(self) -> None:
        chances = self.accuracy, self.first, self.guesses, self.first + self.guesses
        if not all(0 <= chance <= 1 for chance in chances):
            raise InputError(
                "a simulated person's chances are out of range",
                where=self.name,
                given=f"accuracy {self.accuracy}, first {self.first}, guesses {self.guesses}",
                allowed="0 to 1, the last two together",
            )
        if not self.seconds > 0:
            raise InputError(
                "an answer takes time", where=self.name, given=f"{self.seconds}", allowed="above 0"
            )

    def chance_right(self, options: int) -> float:
        """The chance that an answer among so many options is right, sides being even.

        >>> SimulatedPerson("a", accuracy=0.9, guesses=0.5).chance_right(2)
        0.7
        """
        blind = self.first + self.guesses
        return blind / options + (1 - blind) * self.accuracy


#: Kinds of people, their seconds in units of those that the form expects. Careless people answer at random,
#: bots too, but in no time; adversarial people know the answer and give another.
KINDS: Mapping[str, SimulatedPerson] = {
    person.kind: person
    for person in (
        SimulatedPerson("able", "able", accuracy=0.95),
        SimulatedPerson("hasty", "hasty", accuracy=0.8, seconds=0.4),
        SimulatedPerson("one-sided", "one-sided", accuracy=0.9, first=0.5, seconds=0.7),
        SimulatedPerson("careless", "careless", guesses=1.0, seconds=0.3),
        SimulatedPerson("adversarial", "adversarial", accuracy=0.05),
        SimulatedPerson("bot", "bot", first=1.0, seconds=0.05, even=True),
    )
}


def crowd(
    shares: Mapping[str, float], n: int, *, seconds: float = 1.0, accuracy: float | None = None
) -> tuple[SimulatedPerson, ...]:
    """So many people of several kinds, by their shares; what is left over by rounding is of the first kind.

    `seconds` is what an able person takes, `accuracy` how often one is right. Raises `InputError` for an
    unknown kind and shares that are not above 0 in all.

    >>> [person.name for person in crowd({"able": 0.6, "bot": 0.4}, 4)]
    ['able-1', 'able-2', 'bot-1', 'bot-2']
    """
    odd = next((kind for kind in shares if kind not in KINDS), None)
    total = sum(shares.values())
    if odd is not None or not total > 0 or min(shares.values()) < 0:
        given = odd if odd is not None else ", ".join(f"{kind}={share}" for kind, share in shares.items())
        raise InputError("kinds of simulated people", given=given or "none", allowed=sorted(KINDS))
    counts = {kind: round(n * share / total) for kind, share in shares.items()}
    chosen = [kind for kind, count in counts.items() for _ in range(count)][:n]
    chosen += [next(iter(shares))] * (n - len(chosen))
    people = []
    for at, kind in enumerate(chosen):
        usual, name = KINDS[kind], f"{kind}-{chosen[: at + 1].count(kind)}"
        able = usual.accuracy if accuracy is None or kind != "able" else accuracy
        people.append(replace(usual, name=name, accuracy=able, seconds=usual.seconds * seconds))
    return tuple(people)


def right_answer(form: WorkForm, item: WorkItem) -> str:
    """The right value of the form's main field: the first golden one, else the truth; empty where unknown."""
    golden = item.golden.get(form.main, ())
    return golden[0] if golden else item.truth


def respond(
    person: SimulatedPerson, form: WorkForm, item: WorkItem, page: WorkPage, rng: np.random.Generator
) -> tuple[dict[str, Any], float]:
    """A person's answer to a page as a browser sends it, options by their place on the page, and its seconds.

    `page` has the options in the order shown. Where the right answer is not known, the person takes any
    option, and so they do where a habit gives an answer that the form's own check refuses. Raises
    `InputError` where no answer passes that check.
    """
    answering = person
    for _ in range(_ATTEMPTS):
        raw = _fill(answering, right_answer(form, item), form.main, page, rng)
        try:
            form.check(item, check_answer(page, raw))
        except InputError as error:
            refused = error
            answering = replace(person, first=0.0, guesses=1.0)
        else:
            mean = person.seconds
            return raw, mean if person.even else float(rng.gamma(_SHAPE, mean / _SHAPE))
    raise InputError(
        "simulated people cannot answer this form", where=f"item '{item.id}'", given=str(refused)
    )


def _fill(
    person: SimulatedPerson, truth: str, main: str, page: WorkPage, rng: np.random.Generator
) -> dict[str, Any]:
    raw: dict[str, Any] = {}
    answer: dict[str, Any] = {}
    for number, field in enumerate(page.fields):
        if not field.is_open(answer):
            continue
        if field.kind == "one":
            raw[field.name] = _option(person, truth if field.name == main else "", field, rng)
            answer[field.name] = field.values[raw[field.name]]
        elif field.kind == "many":
            raw[field.name] = [int(rng.integers(len(field.options)))]
            answer[field.name] = [field.values[at] for at in raw[field.name]]
        elif field.kind == "text":
            raw[field.name] = " ".join(np.roll(_WORDS, number))
        else:
            # One word of the text, marked with any label.
            text = next((shown.content for shown in page.shown if shown.label == field.text), "")
            raw[field.name] = []
            if text.split():
                word = text.split()[int(rng.integers(len(text.split())))]
                start, label = text.index(word), int(rng.integers(len(field.options)))
                raw[field.name] = [{"start": start, "end": start + len(word), "label": label}]
    return raw


def _option(person: SimulatedPerson, truth: str, field: FormField, rng: np.random.Generator) -> int:
    """The place of the option that a person takes."""
    habit, n = rng.random(), len(field.options)
    if habit < person.first:
        return 0
    if habit < person.first + person.guesses or truth not in field.values:
        return int(rng.integers(n))
    right = field.values.index(truth)
    if rng.random() < person.accuracy or n == 1:
        return right
    # On a scale a wrong answer is one beside the right one.
    wrong = [at for at in range(n) if at != right and (field.level == "nominal" or abs(at - right) == 1)]
    return int(rng.choice(wrong))
