from .benchmarks import gallery as gallery
from .captions import Meaning as Meaning, Phrase as Phrase, describe as describe, text as text
from .edits import SUBSETS as SUBSETS, MinimalPair as MinimalPair, edit as edit
from .generator import imagine as imagine
from .painting import STYLES as STYLES, draw as draw, draw_many as draw_many, encode as encode
from .people import Annotator as Annotator, annotate as annotate
from .ratings import preferences as preferences, rated as rated
from .sample import choices as choices, contrasts as contrasts, quads as quads, statements as statements
from .scenes import Scene as Scene, Thing as Thing, sample_scene as sample_scene
from .truth import matches as matches, positives as positives, read as read
