"""The words of Croissant 1.0, in which data sets describe their files and columns.

Source: Akhtar et al. (2024), *Croissant: A Metadata Format for ML-Ready Datasets*, and the
specification at https://docs.mlcommons.org/croissant/docs/croissant-spec.html.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from amlb_ext.core.assets import asset_path


def describe_data_set(name: str, **about: Any) -> dict[str, Any]:
    """Return the beginning of a description, with the words' meaning in front."""
    context = asset_path("resources", "export", "croissant_context.json")
    return {
        "@context": json.loads(context.read_text(encoding="utf-8")),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        **about,
    }


def file_object(key: str, name: str, encoding: str, *, sha256: str) -> dict[str, Any]:
    """Return a file of a data set, known to its columns by a key."""
    return {
        "@type": "cr:FileObject",
        "@id": key,
        "name": name,
        "contentUrl": name,
        "encodingFormat": encoding,
        "sha256": sha256,
    }


def record_set(
    key: str, fields: Sequence[dict[str, Any]], **about: str
) -> dict[str, Any]:
    """Return the records of a table."""
    return {
        "@type": "cr:RecordSet",
        "@id": key,
        "name": key,
        **about,
        "field": list(fields),
    }


def field(key: str, name: str, kind: str, *, file: str, **about: str) -> dict[str, Any]:
    """Return a column of a table, which stands in the file of that key."""
    return {
        "@type": "cr:Field",
        "@id": key,
        "name": name,
        **about,
        "dataType": kind,
        "source": {"fileObject": {"@id": file}, "extract": {"column": name}},
    }
