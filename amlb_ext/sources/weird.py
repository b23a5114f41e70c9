"""Weird tasks as a source: ``weird``, ``weird/NAME``.

What a forest on the raw columns fails at and a little thought solves; see :mod:`amlb_ext.tasks`.
Real data in their place: write them with ``hardsynth tasks weird --data`` and name the definition
in that folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.task import Kind, Origin, Task
from amlb_ext.sources.base import Source, TaskRef
from amlb_ext.sources.files import table_to_task
from amlb_ext.sources.forms import FORMS
from amlb_ext.sources.table import Table, join_folds
from amlb_ext.tasks import TASKS, WeirdTask, draw_fold, find_task
from amlb_ext.tasks.record import TARGET

#: Folds of a task as a source; each is a draw of its own.
FOLDS = 2


class WeirdSource(Source):
    """Tasks that need more than a forest on the raw columns.

    Examples
    --------
    >>> [ref.name for ref in WeirdSource().refs("weird/digits_few", SourceConfig())]
    ['digits_few']
    """

    name = "weird"
    forms = FORMS["weird"]

    def accepts(self, spec: str, options: SourceConfig) -> bool:
        """Whether the spec is ``weird`` or starts with ``weird/``."""
        return spec == "weird" or spec.startswith("weird/")

    def refs(self, spec: str, options: SourceConfig) -> Iterator[TaskRef]:
        """Yield the named task, or all six."""
        wanted = spec.partition("/")[2]
        tasks = [find_task(wanted)] if wanted else list(TASKS.values())
        for task in tasks:
            task_spec = f"weird/{task.name}"
            yield TaskRef(task.name, task_spec, partial(load_weird, task, options))

    def suggestions(self, options: SourceConfig) -> list[str]:
        """Return ``weird/NAME`` for every task."""
        return ["weird", *(f"weird/{name}" for name in TASKS)]


def load_weird(task: WeirdTask, options: SourceConfig | None = None) -> Task:
    """Draw a weird task.

    Parameters
    ----------
    task : WeirdTask
    options : SourceConfig, optional

    Returns
    -------
    Task
        With two folds, drawn with seed 0. Unlabelled rows and raw texts are no part of a task.

    Examples
    --------
    >>> task = load_weird(TASKS["drop4_winners"])
    >>> task.features.shape[1], len(task.folds), task.labels
    (43, 2, ('c0_draw', 'c1_first', 'c2_second'))
    """
    pairs = []
    for fold in range(FOLDS):
        draw = draw_fold(task, fold)
        categories = {TARGET: task.labels}
        train = Table(f"{task.name}_train_{fold}", draw.train.frame, {}, categories)
        test = Table(f"{task.name}_test_{fold}", draw.test.frame, {}, categories)
        pairs.append((train, test))
    table, folds = join_folds(pairs)
    return table_to_task(
        table,
        name=task.name,
        target=TARGET,
        kind=Kind.MULTICLASS.value,
        folds=folds,
        origin=Origin(
            spec=f"weird/{task.name}",
            licence=task.licence,
            citation=task.citation,
        ),
        options=options,
    )
