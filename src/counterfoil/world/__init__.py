"""A small world with known truth: scenes, captions, edits of both, pictures, benchmarks, people.

Training sets are drawn by `counterfoil.world.training` and written by `counterfoil.world.training`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
