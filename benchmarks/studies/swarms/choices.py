"""The tables of the swarm paper, and what one may set in them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from amlb_ext.core.errors import ConfigError, suggest_nearest
from amlb_ext.swarm.objectives import parse_objective
from amlb_ext.swarm.particles import check_generators
from amlb_ext.swarm.takers import SEEN

FormName = Literal["literal", "honest"]
#: By the paper's letter, and with labels of a teacher on supported rows.
FORMS: tuple[FormName, ...] = ("literal", "honest")
#: Figure 5 of the paper: one objective dominates, with weights .6, .2 and .2.
COMPOSITIONS = (
    "difficult=.6,separate=.2,novel=.2",
    "separate=.6,difficult=.2,novel=.2",
    "novel=.6,difficult=.2,separate=.2",
)
#: Table 1, then figure 4, then figure 5.
OBJECTIVES = (
    "difficult",
    "separate",
    "novel",
    "consistent",
    "personalised",
    *COMPOSITIONS,
)
#: Tables that need no file: four that come with scikit-learn, and a simulated one.
EMBEDDED = ("digits", "breast_cancer", "titanic", "diabetes", "five_gaussians")
#: Tables of a folder that the user names.
FILES = ("adult", "bank", "bike", "letter", "kin8nm")
#: Simulated tables of which the truth is known.
KNOWN = ("five_gaussians", "interaction", "clusters", "friedman", "toy")
#: Settings that count something, and so are 1 or more.
_POSITIVE = ("iterations", "rows", "least_rows", "most_rows", "steps", "base_steps")


@dataclass(frozen=True, kw_only=True)
class SwarmChoice:
    """Settings; the paper's where it states any.

    Attributes
    ----------
    generators : int
        N.
    iterations : int
        K of the particle swarm; N (1 + K) evaluations are everybody's budget.
    evaluation_rows : int
        Made rows of each evaluation, 0 for the preset's: 200 as in the paper, honest 300.
    rows : int
        Fresh rows on which every method is measured in the end.
    most_rows : int
        Rows of a table at most.
    least_rows : int
        That each of four roles gets, where a table has so many; else a quarter of its rows.
    steps, base_steps : int
        Gradient steps of a fine-tuning, and of the base.
    takers : tuple of str
    objectives : tuple of str
        Of Table 1; empty for all.
    tables : tuple of str
        Some of the tables; empty for all five.
    """

    generators: int = 4
    iterations: int = 30
    evaluation_rows: int = 0
    rows: int = 1000
    most_rows: int = 6000
    least_rows: int = 300
    steps: int = 250
    base_steps: int = 1000
    takers: tuple[str, ...] = SEEN
    objectives: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()

    @property
    def budget(self) -> int:
        """Evaluations that every search may spend."""
        return self.generators * (1 + self.iterations)


@dataclass(frozen=True, kw_only=True)
class SwarmTable:
    """One table of the paper, or a figure of ours.

    Attributes
    ----------
    name, title : str
    draws : int
        Repetitions, unless the user asks for others.
    data : tuple of str
        Tables that are taken where no folder is named.
    takes_files : bool
        Whether those of a folder take their place where one is named.
    """

    name: str
    title: str
    draws: int = 10
    data: tuple[str, ...] = EMBEDDED
    takes_files: bool = True


_ALL_TABLES = (
    SwarmTable(
        name="swarm-table-1",
        title="Data Swarms, Table 1, figures 4 and 5: every method by every objective",
    ),
    SwarmTable(
        name="swarm-table-2",
        title="Data Swarms, Table 2: rows made difficult, given to models never seen",
    ),
    SwarmTable(
        name="swarm-table-3",
        title="Data Swarms, Table 3: where the truth is known",
        data=KNOWN,
        takes_files=False,
    ),
    SwarmTable(
        name="swarm-adversarial",
        title="Data Swarms, figures 2 and 3: generators and takers that evolve together",
    ),
    SwarmTable(
        name="swarm-hull",
        title="All mixtures of three generators: objective and support",
        draws=1,
        data=("interaction",),
        takes_files=False,
    ),
)
TABLES: dict[str, SwarmTable] = {table.name: table for table in _ALL_TABLES}


def make_choice(changes: Mapping[str, Any] | None = None) -> SwarmChoice:
    """Return the settings with some of them changed.

    Raises
    ------
    ConfigError
        An unknown setting, objective or table, or a number out of range.

    Examples
    --------
    >>> make_choice({"iterations": 5, "objectives": "difficult separate"}).objectives
    ('difficult', 'separate')
    >>> make_choice({"iteration": 5})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.ConfigError: unknown setting 'iteration' of the swarm tables ...
    """
    defaults = dataclasses.asdict(SwarmChoice())
    values: dict[str, Any] = {}
    for key, value in (changes or {}).items():
        if key not in defaults:
            raise ConfigError(
                f"unknown setting {key!r} of the swarm tables",
                suggest_nearest(key, defaults),
            )
        if isinstance(defaults[key], tuple):
            values[key] = _read_names(value)
        else:
            values[key] = _read_count(key, value)
    choice = SwarmChoice(**values)
    _check_choice(choice)
    return choice


def _read_names(value: Any) -> tuple[str, ...]:
    """Return names of a list, or of text with spaces between: mixtures have commas."""
    names = value.split() if isinstance(value, str) else value
    return tuple(str(name) for name in names)


def _read_count(key: str, value: Any) -> int:
    # True and False count as numbers in Python
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or value != int(value):
        raise ConfigError(f"{key} = {value!r}", "give a whole number")
    return int(value)


def _check_choice(choice: SwarmChoice) -> None:
    for key in _POSITIVE:
        if getattr(choice, key) < 1:
            raise ConfigError(f"{key} = {getattr(choice, key)}", "give 1 or more")
    if choice.evaluation_rows < 0:
        raise ConfigError(
            f"evaluation_rows = {choice.evaluation_rows}", "give 0 or more"
        )
    check_generators(choice.generators)
    for objective in choice.objectives:
        parse_objective(objective)
    known = dict.fromkeys([*EMBEDDED, *FILES, *KNOWN])
    for name in choice.tables:
        if name not in known:
            raise ConfigError(f"unknown table {name!r}", suggest_nearest(name, known))


def tables_of(table: SwarmTable, choice: SwarmChoice, has_folder: bool) -> list[str]:
    """Return the names of the tables that are run.

    Examples
    --------
    >>> tables_of(TABLES["swarm-table-3"], make_choice({"tables": "toy digits"}), False)
    ['toy']
    """
    names = list(table.data)
    if has_folder and table.takes_files:
        names = list(FILES)
        # a table that needs no file may be named beside those of the folder
        names += [name for name in choice.tables if name in EMBEDDED]
    if not choice.tables:
        return names
    return [name for name in names if name in choice.tables]
