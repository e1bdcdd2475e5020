"""Places: folders and buckets that hold named bytes, each written whole or not at all.

A cache, and the leases of those who share its work, need the same few things of a folder on a disk and of a
prefix in a bucket: `Place` says which. `open_place` gives the one that a path or URL names.
"""

from counterfoil.places.base import Place, PlaceEntry, Tagged, open_place
from counterfoil.places.location import (
    Location,
    as_path,
    is_distant,
    local_folder,
    located,
    location,
    user_cache,
)

__all__ = [
    "Location",
    "Place",
    "PlaceEntry",
    "Tagged",
    "as_path",
    "is_distant",
    "local_folder",
    "located",
    "location",
    "open_place",
    "user_cache",
]
