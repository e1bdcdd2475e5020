"""Sequences whose items are made when they are asked for: millions of them take no memory."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import SupportsIndex, TypeVar, overload

Item = TypeVar("Item")


class Lazy(Sequence[Item]):
    """A sequence by its length and `item`, which makes the one at a place from 0."""

    @abstractmethod
    def item(self, place: int) -> Item:
        """The item at `place`, which is at least 0 and below the length."""

    @overload
    def __getitem__(self, at: SupportsIndex) -> Item: ...
    @overload
    def __getitem__(self, at: slice) -> list[Item]: ...
    def __getitem__(self, at: SupportsIndex | slice) -> Item | list[Item]:
        """The item at a place, also from the end, or those of a slice; raises `IndexError` for no place."""
        if isinstance(at, slice):
            return [self.item(place) for place in range(*at.indices(len(self)))]
        place = at.__index__()
        place += len(self) if place < 0 else 0
        if not 0 <= place < len(self):
            raise IndexError(at)
        return self.item(place)
