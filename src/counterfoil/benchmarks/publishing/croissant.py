"""The Croissant file of a release: its files with digests, its tables and splits, and who made what.

Source: the Croissant format, version 1.1 (mlcommons.org/croissant/1.1). Provenance is in terms of PROV-O: of
a single value it is an annotation of its field.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from counterfoil.benchmarks.benchmark import Card
from counterfoil.benchmarks.forms.release import FormRelease, ReleaseColumn, ReleaseTable
from counterfoil.benchmarks.publishing.facts import Publication
from counterfoil.benchmarks.publishing.tables import TYPE_NAMES, WrittenFile, arrow_type
from counterfoil.inputs.files import digest_value

#: Terms that are written without the prefix of their vocabulary, as the format's appendix lists them.
_CROISSANT = (
    *("annotation", "arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "excludes"),
    *("extract", "field", "fileProperty", "fileObject", "fileSet", "format", "includes", "isArray"),
    *("isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "readLines", "recordSet"),
    *("references", "regex", "repeated", "replace", "samplingRate", "sdVersion", "separator", "source"),
    *("subField", "transform", "unArchive"),
)
CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "prov": "http://www.w3.org/ns/prov#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    **{term: f"cr:{term}" for term in _CROISSANT},
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
}

_PARQUET = "application/x-parquet"
_SPLITS = {"train": "cr:TrainingSplit", "validation": "cr:ValidationSplit", "test": "cr:TestSplit"}
#: What a column tells of another one, by the end of its name.
_ROLES = {
    "_by": ("maker", "prov:wasAttributedTo", ["prov:Agent", "prov:Person"]),
    "_from": ("origin", "prov:wasDerivedFrom", ["prov:Entity"]),
}


def croissant(
    name: str,
    card: Card,
    release: FormRelease,
    files: Sequence[WrittenFile],
    digests: Mapping[str, str],
    about: Publication,
    description: str,
) -> dict[str, Any]:
    """The Croissant description as JSON; `digests` are the SHA-256 of the files by path."""
    several = {table.name for table in release.tables if sum(f.table == table.name for f in files) > 1}
    provenance = about.provenance
    sources = [{"prov:label": one.name, "license": one.licence, "url": one.url} for one in provenance.sources]
    steps = [f"{entry.name}: {entry.summary}".removesuffix(": ") for entry in provenance.steps]
    facts = {
        "rai:dataLimitations": list(about.limits(card)),
        "rai:dataUseCases": list(provenance.uses),
        "rai:dataCollection": provenance.method,
        "rai:annotatorDemographics": list(provenance.people),
        "prov:wasDerivedFrom": [{"@type": "prov:Entity", **_stated(source)} for source in sources],
        "prov:wasGeneratedBy": [{"@type": "prov:Activity", "prov:label": step} for step in steps],
    }
    splits = _node(
        "RecordSet",
        "splits",
        dataType="cr:Split",
        key={"@id": "splits/name"},
        field=[
            _node("Field", "splits/name", "name", dataType="sc:Text"),
            _node("Field", "splits/url", "url", dataType=["sc:URL", "cr:Split"]),
        ],
        data=[
            {"splits/name": split, "splits/url": _SPLITS.get(split, f"cr:Split/{split}")}
            for split in dict.fromkeys(file.split for file in files)
        ],
    )
    return {
        "@context": dict(CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": name,
        "description": description,
        "license": about.licence.url,
        "url": about.url or card.homepage or f"urn:counterfoil:{digest_value([name, card.title])}",
        "creator": [{"@type": "sc:Organization", "name": creator} for creator in about.creators_of(card)],
        "datePublished": about.date_of(card),
        "version": about.version,
        **_stated({"inLanguage": about.language}),
        "citeAs": card.citation or f"{', '.join(about.creators_of(card))}: {card.title or name}",
        "keywords": ["vision-language", "benchmark", card.form],
        **_stated(facts),
        "distribution": _distribution(files, digests, several),
        "recordSet": [splits, *(_records(table, files, several) for table in release.tables)],
    }


def _node(kind: str, identifier: str, name: str = "", **facts: Any) -> dict[str, Any]:
    """An object of the format; where it has no other name it is called by its identifier."""
    return {"@type": f"cr:{kind}", "@id": identifier, "name": name or identifier, **facts}


def _stated(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in facts.items() if value}


def _distribution(
    files: Sequence[WrittenFile], digests: Mapping[str, str], several: set[str]
) -> list[dict[str, Any]]:
    """A file object per Parquet file; where a table has several, also a set of them."""
    kind = {"encodingFormat": _PARQUET}
    digest_of = {file.path: digests[file.path] for file in files}
    objects = [_node("FileObject", p, contentUrl=p, **kind, sha256=sha) for p, sha in digest_of.items()]
    for table in dict.fromkeys(file.table for file in files if file.table in several):
        folder = next(file.path.rpartition("/")[0] for file in files if file.table == table)
        parts: dict[str, Any] = {"encodingFormat": _PARQUET, "includes": f"{folder}/*.parquet"}
        objects.append(_node("FileSet", f"files-of-{table}", f"files of {table}", **parts))
    return objects


def _records(table: ReleaseTable, files: Sequence[WrittenFile], several: set[str]) -> dict[str, Any]:
    """The record set of a table: a field per column, and the split, which is in the name of the file."""
    source = {"fileObject": {"@id": next(file.path for file in files if file.table == table.name)}}
    if table.name in several:
        source = {"fileSet": {"@id": f"files-of-{table.name}"}}
    fields = [_field(table, name, column, source) for name, column in table.columns.items()]
    if table.questions and "split" not in table.columns:
        # The expression also takes the name that it gave: readers apply it again where they join.
        name_of_file = {"regex": r"^(?:.*/)?([^/]+?)(?:-\d+-of-\d+\.parquet)?$"}
        split = _node(
            "Field",
            f"{table.name}/split",
            "split",
            description="The split that the row is in.",
            dataType="sc:Text",
            source={**source, "extract": {"fileProperty": "filename"}, "transform": name_of_file},
            references={"field": {"@id": "splits/name"}},
        )
        fields.append(split)
    records = _node("RecordSet", table.name, description=table.about, field=fields)
    if "id" in table.columns:
        records["key"] = {"@id": f"{table.name}/id"}
    return records


def _field(
    table: ReleaseTable, name: str, column: ReleaseColumn, source: Mapping[str, Any]
) -> dict[str, Any]:
    # The identifier has letters that need no escape; columns that differ in others alone are numbered.
    plain = [re.sub(r"[^A-Za-z0-9_.-]", "_", column) for column in table.columns]
    i = list(table.columns).index(name)
    identifier = f"{table.name}/{plain[i]}{f'.{i}' if plain.count(plain[i]) > 1 else ''}"
    entry = _node("Field", identifier, name, description=column.about)
    kind, extract = arrow_type(column), {**source, "extract": {"column": name}}
    if column.kind == "image":
        entry["dataType"] = "sc:ImageObject"
        extract["transform"] = {"jsonPath": "bytes"}
    elif pa.types.is_list(kind):
        entry |= {"dataType": TYPE_NAMES[kind.value_type][1], "isArray": True, "arrayShape": "-1"}
    else:
        entry["dataType"] = TYPE_NAMES[kind][1]
    entry["source"] = extract
    # Who made a value, or what it was made from: an annotation of its field with one of its own.
    annotations = []
    for end, (what, meaning, types) in _ROLES.items():
        if name + end in table.columns:
            place = f"{identifier}/{what}"
            value = {**source, "extract": {"column": name + end}}
            inner = _node("Field", f"{place}/id", "id", dataType="sc:Text", source=value)
            facts = {"dataType": types, "equivalentProperty": meaning, "subField": [inner]}
            annotations.append(_node("Field", place, f"{what} of {name}", **facts))
    return entry | _stated({"annotation": annotations})
