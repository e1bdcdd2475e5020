"""XML of others: elements with attributes and text, and no document types.

A document type can declare entities that grow to gigabytes ("billion laughs") or name files and addresses to
be read. Nothing that is read here needs one, so the text is refused at its `<!DOCTYPE`, by a handler of
Python's expat that is called before any declaration is looked at.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.parsers import expat

from counterfoil.errors import DataError
from counterfoil.inputs.files import MAX_DEPTH, decoded


@dataclass(frozen=True)
class Element:
    """An element: name ("NAMESPACE NAME" in a namespace), attributes, children, and its own text."""

    name: str
    attributes: Mapping[str, str]
    children: tuple["Element", ...] = ()
    text: str = ""

    def walk(self) -> Iterator["Element"]:
        """This element and all below, in the order of the text."""
        yield self
        for child in self.children:
            yield from child.walk()


def parse_xml(text: str | bytes, *, where: object) -> Element:
    """The root element of an XML text in UTF-8.

    Raises `DataError` where the text is no XML, has a document type, or nests elements more than `MAX_DEPTH`
    deep.

    >>> parse_xml('<View><Image name="i"/></View>', where="config.xml").children[0].attributes
    {'name': 'i'}
    >>> parse_xml('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', where="a.xml")
    Traceback (most recent call last):
    counterfoil.errors.DataError: a.xml, line 1: has a document type, which is not read; remove <!DOCTYPE ...
    """
    text = decoded(text, where=where) if isinstance(text, bytes) else text
    parser = expat.ParserCreate("UTF-8", namespace_separator=" ")
    # Of every open element: its name and attributes, its children so far, and the pieces of its text.
    opened: list[tuple[str, dict[str, str], list[Element], list[str]]] = [("", {}, [], [])]

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(opened) > MAX_DEPTH:
            raise DataError("XML nested too deeply", where=where, allowed=f"at most {MAX_DEPTH} levels")
        opened.append((name, attributes, [], []))

    def end(_: str) -> None:
        name, attributes, children, pieces = opened.pop()
        opened[-1][2].append(Element(name, attributes, tuple(children), "".join(pieces)))

    def refuse(*_: object) -> None:
        raise DataError(
            "has a document type, which is not read",
            where=f"{where}, line {parser.CurrentLineNumber}",
            hint="remove <!DOCTYPE ...> and the entities that it declares",
        )

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = lambda data: opened[-1][3].append(data)
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        raise DataError(
            f"not valid XML: {expat.ErrorString(error.code)}",
            where=f"{where}, line {error.lineno}, column {error.offset + 1}",
        ) from None
    return opened[0][2][0]
