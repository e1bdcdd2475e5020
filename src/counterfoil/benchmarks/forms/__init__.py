"""Forms of question: four families of tables of positions into a benchmark's images and captions.

A form holds no scores and knows no model. `FORMS` is the one mapping from the name in a card or a manifest to
the class. A family is imported when one of its forms is used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
