"""counterfoil: do these images and captions belong together, and how sure can we be of the answer?

    import counterfoil as cf

    clip = cf.load_model("open-clip:ViT-B-32-quickgelu/openai")
    run = cf.evaluate(clip, "winoground", data="data/winoground", out="runs/clip")
    run["group"].value

The names are those of the stub file beside this module, each imported when it is first used: importing this
module alone loads nothing, and a function needs the extras of its own job only.
"""

import sys

import lazy_loader

__version__ = "0.1.0"

#: Packages by their former names: importing one says what it is called now.
_RENAMED = {"scorers": "models", "data": "benchmarks", "places": "storage", "tasks": "jobs"}


class _RenamedPackages:
    """Asked for modules that are not found elsewhere."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        parent, _, last = name.rpartition(".")
        if parent == __name__ and last in _RENAMED:
            raise ModuleNotFoundError(f"'{name}' is now '{__name__}.{_RENAMED[last]}'", name=name)


sys.meta_path.append(_RenamedPackages)

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
