from dataclasses import dataclass
from typing import ClassVar

from counterfoil.annotate.forms.base import FormField, Shown, WorkForm, WorkItem, WorkPage, needed, tagged
from counterfoil.annotate.forms.registry import WorkFormEntry
from counterfoil.inputs.fields import setting

ENTRY = WorkFormEntry("example-mood", "which word fits the image", "counterfoil_example.mood:Mood")


@dataclass(frozen=True)
class Mood(WorkForm):
    """The answer is a word."""

    name, summary, main = ENTRY.name, ENTRY.summary, "mood"
    columns: ClassVar = {"image": "image"}
    instructions = "Choose the word that comes to your mind first."
    seconds = 3.0

    words: tuple[str, ...] = setting(("calm", "cheerful", "gloomy"), "The words.")

    def page(self, item: WorkItem) -> WorkPage:
        mood = FormField("mood", "Which word fits?", options=tagged(self.words), shuffled=True)
        return WorkPage((Shown("image", needed(item, "image")),), (mood,))
