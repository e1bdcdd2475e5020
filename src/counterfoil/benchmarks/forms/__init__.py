"""Forms of question: four families of tables of positions into a benchmark's images and captions.

contrast: a right set of pairs against a wrong one (`Quad`, `Choice`, and `Paraphrase`, whose pairs are of
two captions); gallery: every query against a whole gallery (`Gallery`); judged: captions with human ratings
(`Rated`) or votes (`Preference`); statement: captions that are true or false of an image (`Statement`). A
form holds no scores and knows no model. `FORMS` is the one mapping from the name in a card or a manifest to
the class.
"""

from counterfoil.benchmarks.forms.base import Form, Ids, Judged, Listed
from counterfoil.benchmarks.forms.contrast import Choice, Paraphrase, Quad
from counterfoil.benchmarks.forms.gallery import Gallery, GallerySide, RetrievalDirection
from counterfoil.benchmarks.forms.judged import Preference, Rated, Statement
from counterfoil.benchmarks.forms.registry import FormEntry, Forms

__all__ = [
    "FORMS",
    "Choice",
    "Form",
    "FormEntry",
    "Forms",
    "Gallery",
    "GallerySide",
    "Ids",
    "Judged",
    "Listed",
    "Paraphrase",
    "Preference",
    "Quad",
    "Rated",
    "RetrievalDirection",
    "Statement",
]

#: Every form, by its name.
FORMS: Forms[type[Form]] = Forms(
    {form.form: form for form in (Quad, Choice, Paraphrase, Preference, Statement, Rated, Gallery)},
    "questions",
)
