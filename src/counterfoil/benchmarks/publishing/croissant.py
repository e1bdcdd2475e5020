"""The Croissant file of a release: its files with digests, its tables and splits, and who made what.

Source: the Croissant format, version 1.1 (mlcommons.org/croissant/1.1). Provenance is in terms of PROV-O: of
the whole by `prov:wasDerivedFrom` and `prov:wasGeneratedBy`; of a single value by an annotation of its field,
whose `equivalentProperty` is `prov:wasAttributedTo` or `prov:wasDerivedFrom`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from counterfoil.benchmarks.benchmark import Card
from counterfoil.benchmarks.forms.release import FormRelease, ReleaseColumn, ReleaseTable
from counterfoil.benchmarks.publishing.facts import Publication
from counterfoil.benchmarks.publishing.tables import TYPE_NAMES, WrittenFile, arrow_type

VERSION = "http://mlcommons.org/croissant/1.1"
RESPONSIBLE = "http://mlcommons.org/croissant/RAI/1.0"

#: Terms that are written without the prefix of their vocabulary, as the format's appendix lists them.
# fmt: off
_CROISSANT = (
    "annotation", "arrayShape", "citeAs", "column", "containedIn", "equivalentProperty",
    "excludes", "extract", "field", "fileProperty", "fileObject", "fileSet",
    "format", "includes", "isArray", "isLiveDataset", "jsonPath", "key",
    "md5", "parentField", "path", "readLines", "recordSet", "references",
    "regex", "repeated", "replace", "samplingRate", "sdVersion", "separator",
    "source", "subField", "transform", "unArchive",
)
# fmt: on
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
#: A digest that is none: a repository changes, and readers ask for one of every file.
_NO_DIGEST = "https://github.com/mlcommons/croissant/issues/80"
_SPLITS = {"train": "cr:TrainingSplit", "validation": "cr:ValidationSplit", "test": "cr:TestSplit"}
_ROLES = {"_by": "prov:wasAttributedTo", "_from": "prov:wasDerivedFrom"}


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
    base = f"https://huggingface.co/datasets/{about.repository}" if about.repository else ""
    several = {table.name for table in release.tables if sum(f.table == table.name for f in files) > 1}
    provenance = about.provenance
    facts = {
        "rai:dataLimitations": [*card.pitfalls, *provenance.limits],
        "rai:dataUseCases": list(provenance.uses),
        "rai:dataCollection": provenance.method,
        "rai:annotatorDemographics": list(provenance.people),
        "prov:wasDerivedFrom": [
            {
                "@type": "prov:Entity",
                "prov:label": entry.name,
                **({"license": entry.licence} if entry.licence else {}),
                **({"url": entry.url} if entry.url else {}),
            }
            for entry in provenance.sources
        ],
        "prov:wasGeneratedBy": [
            {
                "@type": "prov:Activity",
                "prov:label": f"{entry.name}: {entry.summary}" if entry.summary else entry.name,
            }
            for entry in provenance.steps
        ],
    }
    splits = {
        "@type": "cr:RecordSet",
        "@id": "splits",
        "name": "splits",
        "dataType": "cr:Split",
        "key": {"@id": "splits/name"},
        "field": [
            {"@type": "cr:Field", "@id": "splits/name", "name": "name", "dataType": "sc:Text"},
            {"@type": "cr:Field", "@id": "splits/url", "name": "url", "dataType": ["sc:URL", "cr:Split"]},
        ],
        "data": [
            {"splits/name": split, "splits/url": _SPLITS.get(split, f"cr:Split/{split}")}
            for split in dict.fromkeys(file.split for file in files)
        ],
    }
    return {
        "@context": dict(CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": [VERSION, RESPONSIBLE],
        "name": name,
        "description": description,
        "license": about.licence.url,
        "url": about.url_of(card, name),
        "creator": [{"@type": "sc:Organization", "name": creator} for creator in about.creators_of(card)],
        "datePublished": about.date_of(card),
        "version": about.version,
        **({"inLanguage": about.language} if about.language else {}),
        "citeAs": card.citation or f"{', '.join(about.creators_of(card))}: {card.title or name}",
        "keywords": ["vision-language", "benchmark", card.form],
        **{key: value for key, value in facts.items() if value},
        "distribution": _distribution(files, digests, several, base),
        "recordSet": [splits, *(_records(table, files, several) for table in release.tables)],
    }


def _distribution(
    files: Sequence[WrittenFile], digests: Mapping[str, str], several: set[str], base: str
) -> list[dict[str, Any]]:
    """A file object per Parquet file; where a table has several, also a set of them."""
    objects: list[dict[str, Any]] = [
        {
            "@type": "cr:FileObject",
            "@id": file.path,
            "name": file.path,
            "contentUrl": f"{base}/resolve/main/{file.path}" if base else file.path,
            "encodingFormat": _PARQUET,
            "sha256": digests[file.path],
        }
        for file in files
    ]
    if base and several:
        repository = {"contentUrl": base, "encodingFormat": "git+https", "sha256": _NO_DIGEST}
        objects.append({"@type": "cr:FileObject", "@id": "repository", "name": "repository", **repository})
    for table in dict.fromkeys(file.table for file in files):
        if table in several:
            folders = {file.path.rpartition("/")[0] for file in files if file.table == table}
            objects.append(
                {
                    "@type": "cr:FileSet",
                    "@id": f"files-of-{table}",
                    "name": f"files of {table}",
                    **({"containedIn": {"@id": "repository"}} if base else {}),
                    "encodingFormat": _PARQUET,
                    "includes": f"{folders.pop()}/*.parquet",
                }
            )
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
        fields.append(
            {
                "@type": "cr:Field",
                "@id": f"{table.name}/split",
                "name": "split",
                "description": "The split that the row is in.",
                "dataType": "sc:Text",
                "source": {**source, "extract": {"fileProperty": "filename"}, "transform": name_of_file},
                "references": {"field": {"@id": "splits/name"}},
            }
        )
    records: dict[str, Any] = {
        "@type": "cr:RecordSet",
        "@id": table.name,
        "name": table.name,
        "description": table.about,
        "field": fields,
    }
    if "id" in table.columns:
        records["key"] = {"@id": f"{table.name}/id"}
    return records


def _field(
    table: ReleaseTable, name: str, column: ReleaseColumn, source: Mapping[str, Any]
) -> dict[str, Any]:
    kind, extract = arrow_type(column), {**source, "extract": {"column": name}}
    entry: dict[str, Any] = {"@type": "cr:Field", "@id": _id(table, name), "name": name}
    entry["description"] = column.about
    if column.kind == "image":
        entry["dataType"] = "sc:ImageObject"
        extract["transform"] = {"jsonPath": "bytes"}
    elif pa.types.is_list(kind):
        entry |= {"dataType": TYPE_NAMES[kind.value_type][1], "isArray": True, "arrayShape": "-1"}
    else:
        entry["dataType"] = TYPE_NAMES[kind][1]
    entry["source"] = extract
    annotations = [_annotation(table, name, role, source) for role in _ROLES if name + role in table.columns]
    if annotations:
        entry["annotation"] = annotations
    return entry


def _annotation(table: ReleaseTable, name: str, role: str, source: Mapping[str, Any]) -> dict[str, Any]:
    """Who made a value, or what it was made from: an annotation of its field with one of its own."""
    agent = role == "_by"
    place = f"{_id(table, name)}/{'maker' if agent else 'origin'}"
    return {
        "@type": "cr:Field",
        "@id": place,
        "name": f"{'maker' if agent else 'origin'} of {name}",
        "dataType": ["prov:Agent", "prov:Person"] if agent else ["prov:Entity"],
        "equivalentProperty": _ROLES[role],
        "subField": [
            {
                "@type": "cr:Field",
                "@id": f"{place}/id",
                "name": "id",
                "dataType": "sc:Text",
                "source": {**source, "extract": {"column": name + role}},
            }
        ],
    }


def _id(table: ReleaseTable, name: str) -> str:
    """The identifier of a field, of letters that need no escape in one.

    Columns whose names differ in others alone are numbered.
    """
    plain = [re.sub(r"[^A-Za-z0-9_.-]", "_", column) for column in table.columns]
    at = list(table.columns).index(name)
    twice = plain.count(plain[at]) > 1
    return f"{table.name}/{plain[at]}{f'.{at}' if twice else ''}"
