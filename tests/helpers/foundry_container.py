"""Write a container of Data Foundry, in the form of its release 0.0.5."""

import json
from pathlib import Path

import pandas as pd


def write_container(
    folder: Path,
    table: pd.DataFrame,
    *,
    target: str,
    problem: str,
    splits: dict,
    **task,
) -> Path:
    """Write a container of a table and return its folder; ``task`` adds to the task's JSON."""
    folder.mkdir(parents=True)
    table.to_parquet(folder / "dataset.parquet", index=False)
    contents = {
        "container_metadata": {"uuid": "0190-1", "checksum": "c"},
        "dtypes": {name: str(dtype) for name, dtype in table.dtypes.items()},
        "dataset_metadata.dataset-mold-v1": {
            "unique_name": "shop_visits",
            "license": "CC0-1.0",
            "academic_reference_bibtex": "@misc{shop}",
            "original_dataset_source_download_link": "https://example.com/shop",
        },
        "task_metadata.predictive-ml-task-mold-v1": {
            "target_column_name": target,
            "problem_type": problem,
            "time_on": None,
            "group_on": None,
            **task,
        },
        "experiment_metadata.predictive-ml-splits-mold-v1": {"splits": splits},
    }
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder
