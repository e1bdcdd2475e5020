"""`counterfoil captions score | systems`: how good captions are, by metrics of the field."""

from counterfoil.cli import groups

#: Commands of the group, and their jobs.
COMMANDS = {
    "score": "jobs.captions:score_captions",
    "systems": "jobs.caption_systems:compare_systems",
}

app = groups.group(
    COMMANDS,
    help="How good captions are, for images or videos, with or without references.",
    epilog="Example: counterfoil captions score --metrics bleu,cider --candidates c.json --references r.json",
)
