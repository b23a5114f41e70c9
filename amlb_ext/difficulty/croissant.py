"""The description of difficulty data in Croissant's JSON-LD, version 1.0.

Source: Akhtar et al. (2024), *Croissant: A Metadata Format for ML-Ready Datasets*, and the
specification at https://docs.mlcommons.org/croissant/docs/croissant-spec.html.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from amlb_ext.core.version import __version__
from amlb_ext.difficulty.rows import ROW_COLUMNS, DifficultyColumn
from amlb_ext.difficulty.tasks import TASK_COLUMNS

#: The context of the specification, without which no reader knows the words.
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_CITATION = (
    "Zakharov, Boukhanovsky: Model-Aware Automatic Benchmark Generation with Self-Error "
    "Instructions for Data-Driven Models. Machine Learning and Knowledge Extraction 7(4), 148, "
    "2025. doi:10.3390/make7040148"
)


def describe_dataset(
    name: str, tasks: pd.DataFrame, files: Mapping[str, tuple[str, str]]
) -> dict[str, Any]:
    """Return the JSON-LD of difficulty data.

    Parameters
    ----------
    name : str
        Of the data set.
    tasks : DataFrame
        As :func:`amlb_ext.difficulty.tasks.collect_tasks` gives them.
    files : mapping of str to (str, str)
        Name and sha256 of the files ``rows`` and ``tasks``.

    Returns
    -------
    dict
        Without times and absolute paths: the same data has the same description.
    """
    listed = ", ".join(tasks["task"].head(5)) + (", ..." if len(tasks) > 5 else "")
    baselines = ", ".join(dict.fromkeys(tasks["baseline"]))
    description: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        "description": f"How hard each test row of {listed} is for the model F ({baselines}), and "
        "how much of F's loss where it fails other models save. It holds no features: join it to "
        "the source by source_row.",
        "version": __version__,
        "creator": {"@type": "sc:Organization", "name": f"hardsynth {__version__}"},
        "citeAs": _CITATION,
        "isLiveDataset": False,
        "distribution": [
            _file("rows", files["rows"], "application/x-parquet"),
            _file("tasks", files["tasks"], "text/csv"),
        ],
        "recordSet": [
            _records("rows", "One record for each source row and fold.", ROW_COLUMNS),
            _records("tasks", "One record for each task.", TASK_COLUMNS),
        ],
    }
    urls = [url for url in dict.fromkeys(tasks["source_url"]) if url.startswith("http")]
    if urls:
        description["isBasedOn"] = urls
    licences = [text for text in dict.fromkeys(tasks["licence"]) if text]
    if licences:
        description["license"] = licences
    return description


def _file(key: str, file: tuple[str, str], encoding: str) -> dict[str, Any]:
    name, digest = file
    return {
        "@type": "cr:FileObject",
        "@id": f"{key}-file",
        "name": name,
        "contentUrl": name,
        "encodingFormat": encoding,
        "sha256": digest,
    }


def _records(
    key: str, about: str, columns: Sequence[DifficultyColumn]
) -> dict[str, Any]:
    fields = []
    for column in columns:
        text = f"{column.about} ({column.unit})" if column.unit else column.about
        fields.append(
            {
                "@type": "cr:Field",
                "@id": f"{key}/{column.name}",
                "name": column.name,
                "description": text,
                "dataType": column.croissant,
                "source": {
                    "fileObject": {"@id": f"{key}-file"},
                    "extract": {"column": column.name},
                },
            }
        )
    return {
        "@type": "cr:RecordSet",
        "@id": key,
        "name": key,
        "description": about,
        "field": fields,
    }
