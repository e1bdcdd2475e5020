"""Two settings of dual encoders that are faster and change scores a little, so that identities name them.

By default workers resize pictures by Pillow, as the official evaluations do. With `resize=device` they send
whole pictures as bytes, which are resized, cropped and normalised where the tower computes; with
`compile=yes` the image tower becomes one program (`counterfoil.models.device_pixels`). How far either moves
embeddings and decisions is measured by `benchmarks/routes.py`.
"""

from dataclasses import asdict, dataclass

from counterfoil.errors import InputError
from counterfoil.models.base import IMAGE_ROUTES, ScorerSettings
from counterfoil.models.images import Preparation, Resized, Untouched


@dataclass(frozen=True)
class ImageRoute:
    """Where pictures are resized, and whether their tower is compiled."""

    resize: str = "host"
    compile: str = "no"

    @classmethod
    def of(cls, settings: ScorerSettings) -> "ImageRoute":
        """The route that settings name; raises `InputError` for other values.

        >>> ImageRoute.of(ScorerSettings("open-clip:x", {"resize": "device"})).facts()
        {'resize': 'device'}
        """
        settings.only(*IMAGE_ROUTES)
        return cls(**{name: settings.one_of(name, values) for name, values in IMAGE_ROUTES.items()})

    def facts(self) -> dict[str, str]:
        """What of the route is not the reference, for an identity; nothing of the reference itself."""
        return {name: value for name, value in asdict(self).items() if value != IMAGE_ROUTES[name][0]}

    def preparation(self, resized: Preparation, *, where: str) -> Preparation:
        """What workers do to a picture on this route.

        Raises `InputError` for models whose pictures are prepared in a way of their own.
        """
        if self.resize == "host":
            return resized
        if not isinstance(resized, Resized):
            raise InputError(
                "the model's pictures are prepared by its library alone",
                where=where,
                given="resize=device",
                hint="leave out --set resize",
            )
        return Untouched()


REFERENCE = ImageRoute()
