"""Forms of question: four families of tables of positions into a benchmark's images and captions.

contrast: a right set of pairs against a wrong one (`Quad`, `Choice`, and `Paraphrase`, whose pairs are of
two captions); gallery: every query against a whole gallery (`Gallery`); judged: captions with human ratings
(`Rated`) or votes (`Preference`); statement: captions that are true or false of an image (`Statement`). A
form holds no scores and knows no model. `FORMS` is the one mapping from the name in a card or a manifest to
the class. A family is imported when one of its forms is used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
