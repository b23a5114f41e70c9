"""This suite's tasks for TabArena, and what its models predict for hardsynth.

A task of the suite is one UserTask. Its table holds, fold by fold, the training rows and the test
rows of all parts, so that a model is fitted once for a fold and predicts every part.
"""

import json
from pathlib import Path

import pandas as pd
from tabarena.benchmark.task import UserTask

HERE = Path(__file__).resolve().parent
#: `hardsynth report SUITE --results THIS_FOLDER` looks for files of predictions here.
PREDICTIONS = HERE / "hardsynth_predictions"
#: Columns of that file, after which a class is written as class=NAME.
RESERVED = {"task", "fold", "row", "truth", "prediction", "score"}


def load_tasks():
    """Return the suite's tasks and their metadata, in the order of tasks.json."""
    tasks = []
    metadata = []
    for about in _read_index():
        table = pd.read_parquet(HERE / "tasks" / f"{about['name']}.parquet")
        rows = pd.read_parquet(HERE / "tasks" / f"{about['name']}.rows.parquet")
        splits = {}
        for _, of_fold in rows.groupby("source_fold"):
            is_test = of_fold["part"] != ""
            # TabArena counts folds from 0; a fold without failures is left out of a suite
            splits[len(splits)] = (
                of_fold.index[~is_test].tolist(),
                of_fold.index[is_test].tolist(),
            )
        task = UserTask(task_name=about["name"], task_cache_path=HERE / "cache")
        wrapper = task.create_task(
            dataset=table,
            target_feature=about["target"],
            problem_type="regression"
            if about["kind"] == "regression"
            else "classification",
            splits={0: splits},
        )
        task.save_task(wrapper)
        tasks.append(task)
        metadata.append(wrapper.metadata)
    return tasks, metadata


def write_predictions(results):
    """Write a file of predictions for each model that has results.

    Parameters
    ----------
    results : list of dict
        As ``build_and_run_jobs`` returns them; models of results without test predictions are
        named and left out.
    """
    by_slug = {UserTask(task_name=about["name"]).slug: about for about in _read_index()}
    tables = {}
    for result in results:
        name = result["framework"]
        about = by_slug[result["task_metadata"]["name"]]
        predicted = _predicted_rows(result, about)
        if predicted is None:
            print(f"{name} keeps no predictions of test rows and is left out")
            continue
        tables.setdefault(name, []).append(predicted)
    PREDICTIONS.mkdir(exist_ok=True)
    for name, parts in tables.items():
        path = PREDICTIONS / f"{name}.csv"
        pd.concat(parts, ignore_index=True).to_csv(path, index=False)
        print(f"wrote {path}")


def _read_index():
    return json.loads((HERE / "tasks.json").read_text(encoding="utf-8"))["tasks"]


def _predicted_rows(result, about):
    """Return the rows of one result as hardsynth reads them, or None where it keeps none."""
    artifact = result["simulation_artifacts"]
    if artifact is None:
        return None
    rows = pd.read_parquet(HERE / "tasks" / f"{about['name']}.rows.parquet")
    [predicted] = artifact["pred_proba_dict_test"].values()
    keys = rows.loc[artifact["y_test_idx"]].reset_index(drop=True)
    keys = keys.rename(columns={"part": "task"})[["task", "fold", "row"]]
    if about["kind"] == "regression":
        return keys.assign(prediction=predicted)
    labels = [str(label) for label in artifact["ordered_class_labels"]]
    if predicted.ndim == 1:
        # of two classes TabArena keeps the second one's probability
        predicted = pd.DataFrame({labels[0]: 1 - predicted, labels[1]: predicted})
    else:
        predicted = pd.DataFrame(predicted, columns=labels)
    # single precision adds up to 1 only nearly
    predicted = predicted.clip(lower=0)
    predicted = predicted.div(predicted.sum(axis=1), axis=0)
    # a class that no training row has is given no chance
    predicted = predicted.reindex(columns=about["labels"], fill_value=0.0)
    columns = {
        label: f"class={label}" if label in RESERVED else label for label in labels
    }
    return pd.concat([keys, predicted.rename(columns=columns)], axis=1)
