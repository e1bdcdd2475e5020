"""Registries: names to entries, from counterfoil itself, from `register`, and from installed packages.

Another package adds an entry by an entry point in its pyproject.toml, whose name is that of the entry:

    [project.entry-points."counterfoil.benchmarks"]
    my-quads = "my_package.my_quads:CARD"

Names are known from the installed packages' metadata; a package is imported when its entry is looked up.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from itertools import chain
from typing import Any, Generic, TypeVar

from counterfoil.errors import InputError, UnknownNameError

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """The entries of one kind by name: counterfoil's own first, then registered ones, then other packages'.

    `own` are entries, or what gives them when one is first looked up; `group` is the group of entry points,
    `synonyms` what else an entry is called.
    """

    def __init__(
        self,
        kind: str,
        type_of_entry: type[T],
        group: str,
        entries: Sequence[T] | Callable[[], Iterable[T]],
        *,
        name: str = "name",
        synonyms: Mapping[str, str] = {},
    ) -> None:
        self.kind, self.group = kind, group
        self._type, self._name = type_of_entry, name
        self._synonyms = synonyms
        self._sources: list[Sequence[T] | Callable[[], Iterable[T]]] = [entries]
        self._by_name: dict[str, T] = {}
        self._loaded = False
        self._points: dict[str, EntryPoint] | None = None

    def register(self, entry: T) -> T:
        """Add `entry` and return it; raises `InputError` for another type, and a name that is taken."""
        if not isinstance(entry, self._type):
            given, allowed = type(entry).__name__, f"a {self._type.__name__}"
            raise InputError(f"not a {self.kind}", given=given, allowed=allowed)
        name: str = getattr(entry, self._name)
        if self._entries().get(name, entry) != entry:
            raise InputError(f"there is a {self.kind} of this name already", given=name)
        self._by_name[name] = entry
        return entry

    def extend(self, entries: Sequence[T] | Callable[[], Iterable[T]]) -> None:
        """Add entries of counterfoil that a higher layer owns, after those of lower layers."""
        self._sources.append(entries)
        self._loaded = False

    def takes(self, entry: object) -> bool:
        """Whether `entry` is of this registry's type."""
        return isinstance(entry, self._type)

    def spelt(self, name: str) -> str:
        """The entry's own name for one with other separators or capitals; any other name as it is.

        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Colour:
        ...     name: str
        >>> colours = Registry("colour", Colour, "counterfoil.colours", [Colour("light-red")])
        >>> colours.spelt("Light_Red"), colours.spelt("lightred"), colours.spelt("pink")
        ('light-red', 'light-red', 'pink')
        """
        if name in self:
            return name
        plain = _plain(name)
        names = self._synonyms.get(plain) or [entry for entry in self if _plain(entry) == plain]
        return names if isinstance(names, str) else names[0] if len(names) == 1 else name

    def find(self, name: str, *, where: str | None = None) -> T:
        """The entry called `name`, as `spelt` takes it; raises `UnknownNameError`, with the nearest name."""
        spelling = self.spelt(name)
        if spelling not in self:
            raise UnknownNameError(self.kind, name, list(self), where=where)
        return self[spelling]

    def __getitem__(self, name: str) -> T:
        entries = self._entries()
        if name not in entries:
            entries[name] = self._load(self._offered()[name])
        return entries[name]

    def __iter__(self) -> Iterator[str]:
        entries = self._entries()
        yield from list(entries)
        yield from (name for name in self._offered() if name not in entries)

    def __len__(self) -> int:
        return len({*self._entries(), *self._offered()})

    def __contains__(self, name: object) -> bool:
        return name in self._entries() or name in self._offered()

    def _entries(self) -> dict[str, T]:
        if not self._loaded:
            self._loaded = True
            ours = chain(*(source() if callable(source) else source for source in self._sources))
            self._by_name = {getattr(entry, self._name): entry for entry in ours} | self._by_name
        return self._by_name

    def _offered(self) -> dict[str, EntryPoint]:
        """The entry points of installed packages; of two of one name the first."""
        if self._points is None:
            self._points = {}
            for point in _installed().select(group=self.group):
                self._points.setdefault(point.name, point)
        return self._points

    def _load(self, point: EntryPoint) -> T:
        source = f"{self.kind} '{point.name}' of the package {point.dist.name if point.dist else '?'}"
        hint = "update or remove that package"
        try:
            entry = point.load()
        except Exception as error:
            given = f"{type(error).__name__}: {error}"
            raise InputError("cannot be imported", where=source, given=given, hint=hint) from error
        if not isinstance(entry, self._type) or getattr(entry, self._name) != point.name:
            what = f"its entry point is no {self._type.__name__} called '{point.name}'"
            raise InputError(what, where=source, given=f"{point.value}: {entry!r}"[:200], hint=hint)
        return entry


#: The entry points of all installed packages, looked up once for all registries.
_installed = cache(entry_points)


def _plain(name: str) -> str:
    return name.lower().translate(str.maketrans("", "", "-_ "))


def resolve(target: str) -> Any:
    """The attribute that "module:attribute" names; raises `InputError` where there is none."""
    module, _, attribute = target.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ModuleNotFoundError, AttributeError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and not module.startswith(error.name):
            raise  # A dependency that is missing, not the module itself.
        raise InputError("no such module or attribute", given=target, allowed="module:attribute") from error
