"""What a program is given of a fold: arrays, with judged rows hidden among the test rows.

The labels of the test rows are not here. The rows that judge a submission are training rows that
stand among the test rows, in random order, so that no program can tell them apart.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from typing import Any, Dict, List, Optional

import numpy as np
import pandas as pd

#: At least this many training rows for a fifth held out; at least that many for five folds.
MIN_HELD_OUT, MIN_FOLDS = 250, 30
MAX_HIDDEN = 2000


@dataclasses.dataclass(frozen=True)
class FoldData:
    """A fold as it was loaded, without the labels of its test rows.

    Attributes
    ----------
    train, test : DataFrame
        Features.
    labels : list of str
        The task's classes.
    codes : ndarray of shape (n,)
        The training rows' classes, as positions in ``labels``.
    about : dict
        Of the task: ``statement``, ``row_shape``, ``group``; empty where it is not known.
    texts : tuple of two lists of str, optional
        The raw text of each training and test row.
    unlabelled : DataFrame, optional
    """

    train: pd.DataFrame
    test: pd.DataFrame
    labels: List[str]
    codes: np.ndarray
    about: Dict[str, Any] = dataclasses.field(default_factory=dict)
    texts: Any = None
    unlabelled: Optional[pd.DataFrame] = None

    @property
    def group(self) -> str:
        """Return the column of rows that belong together; empty where there is none."""
        return str(self.about.get("group") or "")

    def digest(self) -> str:
        """Return what tells these training and test rows from others, for the cache."""
        parts = [
            pd.util.hash_pandas_object(self.train, index=False).to_numpy().tobytes(),
            pd.util.hash_pandas_object(self.test, index=False).to_numpy().tobytes(),
            np.asarray(self.codes, dtype="<i8").tobytes(),
        ]
        return hashlib.sha256(b"".join(parts)).hexdigest()


@dataclasses.dataclass(frozen=True)
class Round:
    """Which rows a program trains on, and which it predicts.

    Attributes
    ----------
    train : ndarray of int
        Training rows, by position.
    asked : ndarray of int
        Rows to predict, in order: training rows by position, test rows by ``-1 - position``.
    """

    train: np.ndarray
    asked: np.ndarray

    def split(self, predicted: np.ndarray, n_test: int) -> Any:
        """Return the predictions of the hidden rows, which rows these are, and the test rows'."""
        is_hidden = self.asked >= 0
        test = np.empty((n_test, *predicted.shape[1:]), dtype=predicted.dtype)
        test[-1 - self.asked[~is_hidden]] = predicted[~is_hidden]
        return predicted[is_hidden], self.asked[is_hidden], test


def plan_rounds(data: FoldData, rng: np.random.Generator) -> List[Round]:
    """Return how a submission is judged: by one round, by five, or, with few rows, not at all.

    From 250 training rows a fifth of them is held out, at most 2,000; from 30 each row is held out
    once in five rounds; below that, a round without hidden rows tells only whether predictions
    are valid. Rows of one group stay together.
    """
    units = _units(data.train, data.group)
    n = len(data.train)
    if n < MIN_FOLDS:
        return [plan_final(data, rng)]
    order = rng.permutation(len(units))
    if n < MIN_HELD_OUT:
        parts = np.array_split(order, 5)
    else:
        share = min(0.2, MAX_HIDDEN / n)
        parts = [order[: max(1, int(share * len(units)))]]
    rounds = []
    for part in parts:
        hidden = np.concatenate([units[unit] for unit in part])
        rounds.append(_round(data, hidden, rng))
    return rounds


def plan_final(data: FoldData, rng: np.random.Generator) -> Round:
    """Return the round on all training rows, nothing hidden."""
    return _round(data, np.array([], dtype=int), rng)


def write_round(data: FoldData, chosen: Round, folder: str) -> List[str]:
    """Write what a program reads; return one line on each file, for the prompt."""
    os.makedirs(folder, exist_ok=True)
    test_rows = -1 - chosen.asked[chosen.asked < 0]
    pool = pd.concat([data.train, data.test], ignore_index=True)
    at = np.where(chosen.asked >= 0, chosen.asked, len(data.train) - 1 - chosen.asked)
    frames = {"train": data.train.iloc[chosen.train], "test": pool.iloc[at]}
    lines = []
    for part, frame in frames.items():
        lines += _write_features(data, frame, part, folder)
    np.save(os.path.join(folder, "train_labels.npy"), data.codes[chosen.train])
    lines.insert(
        1, f"data/train_labels.npy: int64 {_shape(data.codes[chosen.train])}, codes of the labels"
    )
    if data.texts is not None:
        all_texts = [*data.texts[0], *data.texts[1]]
        for part, rows in (("train", chosen.train), ("test", at)):
            with open(os.path.join(folder, f"{part}.txt"), "w", encoding="utf-8") as file:
                file.writelines(f"{all_texts[row]}\n" for row in rows)
            lines.append(f"data/{part}.txt: the same rows as text, one a line")
    if data.unlabelled is not None:
        lines += _write_features(data, data.unlabelled, "unlabelled", folder)
    assert len(test_rows) == len(data.test)
    for name in os.listdir(folder):
        os.chmod(os.path.join(folder, name), 0o444)
    os.chmod(folder, 0o755)
    return lines


def read_about(train_path: str, task: str, fold: int, data: Dict[str, Any]) -> Dict[str, Any]:
    """Add what a folder of tasks says of a task, and its side files; nothing where there is none."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(train_path))))
    try:
        with open(os.path.join(root, "hardsynth", "manifest.json"), encoding="utf-8") as file:
            manifest = json.load(file)
        about = next(entry for entry in manifest["tasks"] if entry["name"] == task)
        files = about["folds"][fold]
    except (OSError, ValueError, KeyError, TypeError, IndexError, StopIteration):
        return data
    data["about"] = {key: about.get(key) for key in ("statement", "row_shape", "group", "title")}
    data["labels"] = list(about["labels"])
    if files.get("train_text"):
        data["texts"] = tuple(
            _read_lines(os.path.join(root, files[part])) for part in ("train_text", "test_text")
        )
    if files.get("unlabelled"):
        data["unlabelled"] = pd.read_csv(os.path.join(root, files["unlabelled"]))
    return data


def _round(data: FoldData, hidden: np.ndarray, rng: np.random.Generator) -> Round:
    is_hidden = np.zeros(len(data.train), dtype=bool)
    is_hidden[hidden] = True
    units = [rows for rows in _units(data.train, data.group) if is_hidden[rows[0]]]
    units += [-1 - rows for rows in _units(data.test, data.group)]
    order = rng.permutation(len(units))
    asked = np.concatenate([units[unit] for unit in order])
    return Round(np.flatnonzero(~is_hidden), asked)


def _units(frame: pd.DataFrame, group: str) -> List[np.ndarray]:
    """Return the rows that belong together."""
    if not group or group not in frame:
        return [np.array([row]) for row in range(len(frame))]
    codes, _ = pd.factorize(frame[group])
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def _write_features(
    data: FoldData, frame: pd.DataFrame, part: str, folder: str
) -> List[str]:
    lines = []
    if data.group and data.group in frame:
        # numbered anew: by its number a hidden row could be told from a test row
        codes, _ = pd.factorize(frame[data.group])
        np.save(os.path.join(folder, f"{part}_{data.group}.npy"), codes)
        lines.append(
            f"data/{part}_{data.group}.npy: int64 {_shape(codes)}, which rows belong together"
        )
        frame = frame.drop(columns=data.group)
    is_numeric = all(pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes)
    if not is_numeric:
        frame.to_csv(os.path.join(folder, f"{part}_features.csv"), index=False)
        lines.append(f"data/{part}_features.csv: {len(frame)} rows, {frame.shape[1]} columns")
        return lines[::-1]
    values = frame.to_numpy()
    shape = tuple(data.about.get("row_shape") or ())
    if shape and int(np.prod(shape)) == values.shape[1]:
        values = values.reshape(len(values), *shape)
    if values.dtype.kind == "i" and values.size and 0 <= values.min() and values.max() < 256:
        values = values.astype(np.uint8)
    np.save(os.path.join(folder, f"{part}_features.npy"), values)
    lines.append(f"data/{part}_features.npy: {values.dtype} {_shape(values)}")
    if not shape:
        names = os.path.join(folder, "columns.json")
        if not os.path.exists(names):
            with open(names, "w") as file:
                json.dump(list(map(str, frame.columns)), file)
            lines.append("data/columns.json: the names of the columns")
    return lines[::-1]


def _shape(values: np.ndarray) -> str:
    return "(" + ", ".join(map(str, values.shape)) + ("," if values.ndim == 1 else "") + ")"


def _read_lines(path: str) -> List[str]:
    with open(path, encoding="utf-8") as file:
        return file.read().split("\n")[:-1]
