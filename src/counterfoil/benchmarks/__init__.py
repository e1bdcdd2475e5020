"""Benchmarks and answers: items, questions over them, groups of questions, and models' answers.

The forms, readers and files of benchmarks live here. Nothing here knows a model.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
