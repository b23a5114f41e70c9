"""Tasks that need no file and no network.

Most come from scikit-learn's own data through its public loaders. Three real tables with
missing values and categories (``titanic``, ``penguins``, ``cpu``) are OpenML files that
scikit-learn's wheel carries for its tests; where an installation left them out, they are not
offered, and ``diabetes_gaps`` still has missing values and categories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import SourceError
from amlb_ext.core.files import sha256_file
from amlb_ext.core.rng import random_stream
from amlb_ext.core.task import Kind, Origin, Task
from amlb_ext.sources.base import Collection, TaskRef
from amlb_ext.sources.bundles import BUNDLES
from amlb_ext.sources.files import table_to_task
from amlb_ext.sources.read_table import read_table
from amlb_ext.sources.table import Table, join_folds
from amlb_ext.tasks import TASKS, draw_fold, find_task
from amlb_ext.tasks.record import TARGET


class BundledSource(Collection):
    """Tasks that come with the installation.

    Examples
    --------
    >>> task = next(BundledSource().refs("bundled/diabetes_gaps", SourceConfig())).load()
    >>> [c.name for c in task.columns if c.has_missing], task.columns[0].categories[:2]
    (['s1', 's2', 's3', 's4', 's5', 's6'], ('under_30', '30s'))
    """

    name = "bundled"

    def task_names(self) -> Sequence[str]:
        """Return the names of all bundled tasks."""
        return list(BUNDLES)

    def is_offered(self, name: str) -> bool:
        """Whether this installation has the task's data."""
        return BUNDLES[name].is_installed

    def load(self, name: str, options: SourceConfig) -> Task:
        """Read a bundled task; ``options.read_as`` is used.

        Parameters
        ----------
        name : str
            A key of :data:`~amlb_ext.sources.bundles.BUNDLES`.
        options : SourceConfig

        Returns
        -------
        Task
            Without folds.

        Raises
        ------
        SourceError
            When scikit-learn was installed without the file.

        Examples
        --------
        >>> BundledSource().load("digits", SourceConfig()).features.shape
        (1797, 64)
        """
        bundle = BUNDLES[name]
        if not bundle.is_installed:
            raise SourceError(
                f"this installation of scikit-learn lacks the data of {name!r}",
                "install scikit-learn from its wheel (pip install scikit-learn), or use "
                "bundled/diabetes_gaps",
            )
        # a table that a loader or this module makes has no file, and so no checksum
        path = bundle.file_path
        ids = {} if path is None else {"sha256": sha256_file(path)}
        return table_to_task(
            _READERS[name](),
            name=name,
            target=bundle.target,
            kind=bundle.kind.value,
            origin=Origin(
                spec=f"bundled/{name}",
                ids=ids,
                licence=bundle.licence,
                citation=bundle.citation,
            ),
            options=options,
        )


def _read_with_loader(loader: str, target: str) -> Table:
    """Read the table of a loader of scikit-learn, with class names in place of class numbers."""
    # scikit-learn takes a second to import, which listing the tasks can do without
    from sklearn import datasets

    data = getattr(datasets, loader)(as_frame=True)
    frame = data.frame
    categories = {}
    # names of the target of a regression name the column, not its values
    if "target_names" in data and pd.api.types.is_integer_dtype(frame["target"]):
        names = [str(name) for name in data["target_names"]]
        frame["target"] = [names[code] for code in frame["target"]]
        categories[target] = tuple(names)
    return Table(
        name=loader,
        frame=frame.rename(columns={"target": target}),
        categories=categories,
    )


def _diabetes_frame() -> pd.DataFrame:
    """Return the ten raw measurements and the progression, with sex as a category."""
    from sklearn import datasets

    frame = datasets.load_diabetes(as_frame=True, scaled=False).frame
    # the source does not say which sex is which
    frame["sex"] = frame["sex"].map({1.0: "sex_1", 2.0: "sex_2"})
    return frame.rename(columns={"target": "progression"})


def _make_diabetes_gaps() -> Table:
    """Return the raw table with age and pressure in bands, and gaps that depend on the age.

    The gaps are made: a laboratory value s1..s6 is missing with probability .05 below the age
    of 50 and .15 from there on; everything else is the real table.
    """
    frame = _diabetes_frame()
    # the gaps first: they depend on the age in years, which the bands replace
    gap_probability = np.where(frame["age"] < 50, 0.05, 0.15)
    rng = random_stream(0, "bundled", "diabetes_gaps")
    for name in ("s1", "s2", "s3", "s4", "s5", "s6"):
        frame[name] = frame[name].mask(rng.random(len(frame)) < gap_probability)
    categories = {
        "age": ("under_30", "30s", "40s", "50s", "60_and_over"),
        "bp": ("low", "middle", "high"),
    }
    bounds = {"age": [0, 30, 40, 50, 60, 200], "bp": [0, 80, 100, 1000]}
    for name, labels in categories.items():
        frame[name] = pd.cut(frame[name], bounds[name], right=False, labels=labels)
    return Table("diabetes_gaps", frame, categories=categories)


def _make_toy() -> Table:
    """Return the paper's toy (section 5.3), row 1: y = 2 x1 + 3 x2 + 7 + .1 e in the unit square.

    Inside [.1, .3] x [.6, .8] and [.6, .8] x [.3, .5] it is y = -2 x1 + x1^2 - 8 x2^4 + .1 e.
    NOTE[DIFF] the paper's text leaves the signs open; these are the ones closest to its tables.
    """
    rng = random_stream(0, "bundled", "toy")
    x1 = rng.random(1000)
    x2 = rng.random(1000)
    is_inside = np.zeros(1000, dtype=bool)
    # two squares: the lowest and the highest x1, the lowest and the highest x2
    for a, b, c, d in ((0.1, 0.3, 0.6, 0.8), (0.6, 0.8, 0.3, 0.5)):
        is_inside |= (a <= x1) & (x1 <= b) & (c <= x2) & (x2 <= d)
    y_inside = -2 * x1 + x1**2 - 8 * x2**4
    y_outside = 2 * x1 + 3 * x2 + 7
    y = np.where(is_inside, y_inside, y_outside)
    y = y + 0.1 * rng.standard_normal(1000)
    return Table("toy", pd.DataFrame({"x1": x1, "x2": x2, "y": y}))


def _read_from_wheel(name: str, drop: tuple[str, ...] = ()) -> Table:
    path = BUNDLES[name].file_path
    assert path is not None, "is_installed is asked first"
    table = read_table(path)
    return replace(table, frame=table.frame.drop(columns=list(drop)))


#: How each task of ``bundles`` is read.
_READERS: dict[str, Callable[[], Table]] = {
    "diabetes": lambda: Table("diabetes", _diabetes_frame()),
    "breast_cancer": partial(_read_with_loader, "load_breast_cancer", "diagnosis"),
    "wine": partial(_read_with_loader, "load_wine", "cultivar"),
    "digits": partial(_read_with_loader, "load_digits", "digit"),
    "diabetes_gaps": _make_diabetes_gaps,
    "toy": _make_toy,
    # boat and body are known only after the fact; name, ticket and destination name persons.
    "titanic": partial(
        _read_from_wheel,
        "titanic",
        drop=("name", "ticket", "boat", "body", "home.dest"),
    ),
    "penguins": partial(_read_from_wheel, "penguins"),
    "cpu": partial(_read_from_wheel, "cpu"),
}


# Weird tasks as a source: ``weird``, ``weird/NAME``.
#
# What a forest on the raw columns fails at and a little thought solves; see :mod:`amlb_ext.tasks`.
# Real data in their place: write them with ``hardsynth tasks weird --data`` and name the definition
# in that folder.

#: Folds of a task as a source; each is a draw of its own.
FOLDS = 2


class WeirdSource(Collection):
    """Tasks that need more than a forest on the raw columns.

    Examples
    --------
    >>> [ref.name for ref in WeirdSource().refs("weird/digits_few", SourceConfig())]
    ['digits_few']
    """

    name = "weird"

    def task_names(self) -> Sequence[str]:
        """Return the names of all six."""
        return list(TASKS)

    def refs(self, spec: str, options: SourceConfig) -> Iterator[TaskRef]:
        """Yield the named task, or all six."""
        wanted = spec.partition("/")[2]
        if wanted:
            # which knows what a task that is not drawn needs
            find_task(wanted)
        yield from super().refs(spec, options)

    def load(self, name: str, options: SourceConfig) -> Task:
        """Draw a weird task.

        Parameters
        ----------
        name : str
        options : SourceConfig

        Returns
        -------
        Task
            With two folds, drawn with seed 0. Unlabelled rows and raw texts are no part of a task.

        Examples
        --------
        >>> task = WeirdSource().load("drop4_winners", SourceConfig())
        >>> task.features.shape[1], len(task.folds), task.labels
        (43, 2, ('c0_draw', 'c1_first', 'c2_second'))
        """
        task = TASKS[name]
        pairs = []
        for fold in range(FOLDS):
            draw = draw_fold(task, fold)
            categories = {TARGET: task.labels}
            train = Table(f"{name}_train_{fold}", draw.train.frame, {}, categories)
            test = Table(f"{name}_test_{fold}", draw.test.frame, {}, categories)
            pairs.append((train, test))
        return table_to_task(
            join_folds(pairs),
            name=name,
            target=TARGET,
            kind=Kind.MULTICLASS.value,
            origin=Origin(
                spec=f"weird/{name}",
                licence=task.licence,
                citation=task.citation,
            ),
            options=options,
        )
