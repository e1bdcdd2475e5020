from .base import (
    FORMS as FORMS,
    Form as Form,
    FormEntry as FormEntry,
    Forms as Forms,
    Ids as Ids,
    Judged as Judged,
    Listed as Listed,
)
from .contrast import Choice as Choice, Paraphrase as Paraphrase, Quad as Quad
from .gallery import Gallery as Gallery, GallerySide as GallerySide, RetrievalDirection as RetrievalDirection
from .judged import Preference as Preference, Rated as Rated, Statement as Statement
