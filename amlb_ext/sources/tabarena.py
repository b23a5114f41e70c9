"""Tasks of TabArena by name: ``tabarena``, ``tabarena/NAME``.

TabArena v0.1 is 51 tasks of OpenML with splits of their own. A name stands for its task, read as
:mod:`amlb_ext.sources.openml` reads any other, with the folds of repeat 0.

References
----------
Erickson et al. (2025), "TabArena: A Living Benchmark for Machine Learning on Tabular Data",
https://arxiv.org/abs/2506.16791
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import cache, partial

from amlb_ext.core.assets import asset_path
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import SourceError, suggest_nearest
from amlb_ext.sources.base import Source, TaskRef
from amlb_ext.sources.forms import FORMS
from amlb_ext.sources.openml import load_task


@cache
def tabarena_task_ids() -> dict[str, int]:
    """Return OpenML's task id by the name that TabArena uses.

    Examples
    --------
    >>> len(tabarena_task_ids()), tabarena_task_ids()["anneal"]
    (51, 363614)
    """
    path = asset_path("resources", "tabarena", "tasks.csv")
    with path.open(encoding="utf-8", newline="") as file:
        lines = [line for line in file if not line.startswith("#")]
    return {row["name"]: int(row["task_id"]) for row in csv.DictReader(lines)}


class TabArenaSource(Source):
    """Tasks of TabArena v0.1, from OpenML or its client's cache.

    Examples
    --------
    >>> ref = next(TabArenaSource().refs("tabarena/anneal", SourceConfig()))
    >>> ref.name, ref.spec
    ('anneal', 'tabarena/anneal')
    """

    name = "tabarena"
    forms = FORMS["tabarena"]

    def accepts(self, spec: str, options: SourceConfig) -> bool:
        """Whether the spec is ``tabarena`` or starts with ``tabarena/``."""
        return spec == "tabarena" or spec.startswith("tabarena/")

    def refs(self, spec: str, options: SourceConfig) -> Iterator[TaskRef]:
        """Yield the named task, or all 51."""
        task_ids = tabarena_task_ids()
        wanted = spec.partition("/")[2]
        if wanted and wanted not in task_ids:
            raise SourceError(
                f"TabArena v0.1 has no task {wanted!r}",
                suggest_nearest(wanted, task_ids),
            )
        for name in [wanted] if wanted else task_ids:
            task_spec = f"tabarena/{name}"
            load = partial(load_task, task_ids[name], options, spec=task_spec)
            yield TaskRef(name, task_spec, load)

    def suggestions(self, options: SourceConfig) -> list[str]:
        """Return ``tabarena/NAME`` for every task."""
        return ["tabarena", *(f"tabarena/{name}" for name in tabarena_task_ids())]
