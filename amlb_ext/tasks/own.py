"""A task that a function of the user's draws; every draw of it is checked before it is written."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.errors import ConfigError
from amlb_ext.core.frames import number_rows, reads_as_missing
from amlb_ext.core.rng import random_stream
from amlb_ext.tasks.record import TARGET, Draw, Rows, WeirdTask

_REMEDY = (
    "write MODULE:FUNCTION, a function of a random generator that returns "
    "amlb_ext.tasks.Draw(train=Rows(...), test=Rows(...))"
)


def import_task(word: str) -> WeirdTask:
    """Return the task that a function of the user's draws, ``MODULE:FUNCTION``.

    The function takes a random generator and returns a :class:`Draw`; its docstring is the
    statement of the task, and its labels are those of a first draw.

    Raises
    ------
    ConfigError
        There is no such function, or a draw of it is no table of numbers with labels; the latter
        also when the task is drawn.
    """
    module, _, name = word.partition(":")
    if not name.isidentifier():
        raise ConfigError(f"--task {word} names no function", _REMEDY)
    # as python -m does: the module may stand where the command is given
    sys.path.insert(0, "")
    try:
        function = getattr(importlib.import_module(module), name)
    except Exception as error:
        raise _no_draw(word, error) from error
    finally:
        sys.path.remove("")
    first = _checked_draw(random_stream(0, "weird", name, "labels"), word, function)
    return WeirdTask(
        name=name,
        title=name.replace("_", " "),
        labels=tuple(sorted(_labels(first))),
        statement=inspect.getdoc(function) or f"A table: predict {TARGET}.",
        origin="made",
        licence="not stated: the user's own",
        draw=partial(_checked_draw, word=word, function=function, first=first),
    )


def _no_draw(word: str, error: Exception) -> ConfigError:
    return ConfigError(
        f"--task {word} cannot be drawn: {type(error).__name__}: {error}", _REMEDY
    )


def _checked_draw(
    rng: np.random.Generator,
    word: str,
    function: Callable[[np.random.Generator], Any],
    first: Draw | None = None,
) -> Draw:
    """Return a draw of the user's function, held against the first one where there is one."""
    try:
        draw = function(rng)
    except Exception as error:
        raise _no_draw(word, error) from error
    if not isinstance(draw, Draw):
        raise ConfigError(f"--task {word} draws {type(draw).__name__}", _REMEDY)
    fault = _rows_fault(draw.train, "train") or _rows_fault(draw.test, "test")
    if fault := fault or _pair_fault(draw, first):
        raise ConfigError(
            f"--task {word}: {fault}", "mend the function; nothing is filled in"
        )
    return draw


def _rows_fault(rows: Any, part: str) -> str:
    """Return what is wrong with training or test rows by themselves; empty where nothing is."""
    if not isinstance(rows, Rows) or not isinstance(rows.features, pd.DataFrame):
        return f"{part} is no Rows(features=DataFrame, labels=array)"
    features, names = rows.features, list(rows.features.columns)
    if not features.size:
        return f"{part} has no rows or no columns"
    if len(set(names)) < len(names) or TARGET in names:
        return f"two columns of {part} have one name, or one is called {TARGET!r}"
    for name in names:
        values = features[name]
        is_number = pd.api.types.is_numeric_dtype(values)
        known = np.isfinite(values.to_numpy(dtype=float)) if is_number else [False]
        if not np.all(known):
            return f"column {name!r} of {part} holds something that is no finite number"
    shape = np.shape(rows.labels)
    if shape != (len(features),):
        return f"{part} has {len(features)} rows, and labels of shape {shape}"
    if pd.isna(rows.labels).any() or any(map(reads_as_missing, _texts(rows.labels))):
        return f"a label of {part} is missing, or reads so"
    if rows.texts and len(rows.texts) != len(features):
        return f"{part} has {len(features)} rows, and {len(rows.texts)} texts"
    if any(len(str(text).splitlines()) > 1 for text in rows.texts):
        return f"a text of {part} is longer than a line"
    return ""


def _pair_fault(draw: Draw, first: Draw | None) -> str:
    """Return what is wrong with training and test rows together; empty where nothing is."""
    others = {"test": draw.test.features, "unlabelled": draw.unlabelled}
    for part, features in others.items():
        if features is not None and list(features) != list(draw.train.features):
            return f"the columns of {part} are not those of train, in their order"
    if draw.unlabelled is not None:
        labels = np.full(len(draw.unlabelled), "none")
        rows = Rows(features=draw.unlabelled, labels=labels)
        if fault := _rows_fault(rows, "unlabelled"):
            return fault
    trained, tested = _texts(draw.train.labels), _texts(draw.test.labels)
    if len(trained) < 2:
        return f"all labels of train are {min(trained)!r}"
    if tested - trained:
        return f"no row of train has the label {min(tested - trained)!r} of test"
    of_train, of_test = number_rows(draw.train.frame, draw.test.frame)
    n_known = int((of_test >= 0).sum())
    # of few distinct rows any may come again, and then those of train do so, too
    if len(np.unique(of_train)) == len(of_train) and n_known > len(of_test) / 2:
        return f"{n_known} of {len(of_test)} rows of test are rows of train"
    if first is None:
        return ""
    if new := trained - _labels(first):
        return f"the label {min(new)!r} was not in the first draw"
    if first.train.frame.equals(draw.train.frame) and first.test.frame.equals(
        draw.test.frame
    ):
        return (
            "two draws are the same rows: draw them with the generator that it is given"
        )
    return ""


def _labels(draw: Draw) -> set[str]:
    return _texts(draw.train.labels) | _texts(draw.test.labels)


def _texts(labels: np.ndarray) -> set[str]:
    return {str(label) for label in labels}
