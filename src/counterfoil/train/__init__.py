"""Training: losses and mining, recipes, one loop, checkpoints that are models. Torch lives here.

What users need is here by name and loaded when it is asked for: recipes are read without torch.

>>> from counterfoil.train import read
>>> read("trohn-img").needs
('negative_caption', 'negative_image')
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
