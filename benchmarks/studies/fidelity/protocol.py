"""What a study shall do, declared before it runs: a YAML file, and the tables that it names.

Tables, sizes, baselines, methods, contrasts and the seeds of two phases are written down first;
the settings stand in the folder of a phase, and one with confirmatory draws takes no others.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from amlb_ext.core.config import BaselineConfig, Rule, SourceConfig, read_config
from amlb_ext.core.errors import ConfigError, DataError, SourceError, suggest_nearest
from amlb_ext.core.paths import table_ending
from amlb_ext.core.task import Task
from amlb_ext.sources import open_specs
from benchmarks.studies.engine import Settings, read_settings
from benchmarks.studies.files import keep_rows

# Dense lines below: a key of the file a line, with its type, default and limits.

#: Where the shipped protocols stand.
FOLDER = Path(__file__).parents[1]
Phase = Literal["exploratory", "confirmatory"]
#: What a ranking is set against; see :mod:`benchmarks.studies.fidelity.draw`.
Reference = Literal["realised", "region", "weighted", "all"]
REFERENCES: tuple[Reference, ...] = get_args(Reference)


class _Part(BaseModel):
    """A part of the file; an unknown key is a mistake, never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Table(_Part):
    """A labelled table: a source spec or a file, its target, columns to leave out."""

    source: str
    target: str | None = None
    drop: tuple[str, ...] = ()
    most: int = Field(60_000, ge=100)


class Sizes(_Part):
    """Rows of each part of a draw; the pool takes what is left, up to its size.

    ``labelled`` has the sizes of S; a table with fewer than ``least_pool`` rows left is refused.
    """

    train: int = Field(3000, ge=50)
    labelled: tuple[int, ...] = (200, 1000)
    unlabelled: int = Field(3000, ge=0)
    pool: int = Field(8000, ge=100)
    least_pool: int = Field(2000, ge=50)


class Contrast(_Part):
    """One declared question: does ``method`` agree better with ``reference`` than ``against``?

    Primary contrasts are what a study is for; they are a family of their own when p-values are
    adjusted.
    """

    method: str
    against: str
    reference: Reference = "realised"
    primary: bool = False


class Rules(_Part):
    """The rule K for each kind of target."""

    classification: Rule = "auto"
    regression: Rule = "auto"


class Seeds(_Part):
    """Seeds ``first, first + 1, ...`` of a phase."""

    first: int = Field(ge=0)
    draws: int = Field(ge=1)

    def values(self, draws: int = 0) -> range:
        """Return the seeds, or so many from the first on."""
        return range(self.first, self.first + (draws or self.draws))


class Phases(_Part):
    """Seeds of both phases; they may not overlap."""

    exploratory: Seeds = Seeds(first=0, draws=10)
    confirmatory: Seeds = Seeds(first=1000, draws=20)


class Protocol(Settings):
    """Everything a study of ranking fidelity depends on, but for the tables' content.

    A protocol is a YAML file of these keys; ``methods`` are those of
    ``benchmarks/studies/fidelity/study.py``. The phases have seeds of their own: what was found
    by exploring is confirmed on fresh ones, by contrasts that were declared before.

    Attributes
    ----------
    draws : int
        Of the phase that runs; 0 for as many as are declared.
    phase : {'exploratory', 'confirmatory'}
    tables : dict
        Name → source, target, columns to drop.
    """

    chooses: ClassVar[frozenset[str]] = frozenset(
        {"draws", "phase", "seeds", "contrasts", "phases", "tables", "name"}
    )

    draws: int = Field(0, ge=0)
    phase: Phase = "exploratory"

    name: str = "fidelity"
    #: Source → what to read; and phase of those that belong to one alone.
    tables: dict[str, Table] = Field(default_factory=dict)
    phases: dict[str, Phase] = Field(default_factory=dict)
    sizes: Sizes = Sizes()
    rules: Rules = Rules()
    #: Of the rows that count as bad.
    share: float = Field(0.06, gt=0, lt=0.5)
    baselines: tuple[BaselineConfig, ...] = (BaselineConfig(model="random_forest"),)
    #: How many candidates are ranked.
    zoo: Literal["quick", "full"] = "quick"
    seeds: Phases = Phases()
    methods: tuple[str, ...] = ()
    contrasts: tuple[Contrast, ...] = ()

    def used_methods(self) -> tuple[str, ...]:
        """Return every method that is listed or named by a contrast, in order, once."""
        names = list(self.methods)
        for contrast in self.contrasts:
            names += [contrast.method, contrast.against]
        return tuple(dict.fromkeys(names))

    def drawn_tables(self) -> dict[str, Table]:
        """Return the tables of the phase that runs; one without a phase belongs to both."""
        return {
            name: table
            for name, table in self.tables.items()
            if self.phases.get(name, self.phase) == self.phase
        }

    def identity(self) -> dict[str, Any]:
        """Return everything that decides a draw's result."""
        # a table counts by its content; a contrast by its methods
        return super().identity() | {"methods": sorted(self.used_methods())}

    @property
    def part(self) -> str:
        """The phase."""
        return self.phase

    @property
    def is_confirmatory(self) -> bool:
        """Whether contrasts are confirmed."""
        return self.phase == "confirmatory"

    def drawn_seeds(self) -> range:
        """Return the seeds of the phase that runs.

        Examples
        --------
        >>> Protocol(phase="confirmatory", draws=2).drawn_seeds()
        range(1000, 1002)
        """
        declared: Seeds = getattr(self.seeds, self.phase)
        return declared.values(self.draws)

    @model_validator(mode="after")
    def _check(self) -> Protocol:
        for name in self.phases.keys() - self.tables.keys():
            raise ValueError(f"phases names {name!r}, which is no table")
        declared = self.seeds.confirmatory
        if set(self.seeds.exploratory.values()) & set(declared.values()):
            raise ValueError("exploratory and confirmatory seeds overlap")
        if self.is_confirmatory and self.draws > declared.draws:
            # more draws after a look at the first would not confirm what was declared
            raise ValueError(
                f"{self.draws} confirmatory draws, the protocol declares {declared.draws}: "
                "declare more under 'seeds' in a new protocol"
            )
        if not self.is_confirmatory and set(self.drawn_seeds()) & set(
            declared.values()
        ):
            raise ValueError(
                f"{self.draws} exploratory draws would use seeds of the confirmatory phase"
            )
        return self

    def with_protocol(self, path: Path) -> dict[str, Any]:
        """Return the settings of another protocol's file, as changes."""
        values = read_protocol(path).model_dump()
        return {key: values[key] for key in values if key not in ("draws", "phase")}


def read_protocol(path: Path) -> Protocol:
    """Read a protocol.

    Raises
    ------
    ConfigError
        No such file, no YAML, an unknown key or a value that is not allowed.

    Examples
    --------
    >>> read_protocol(FOLDER / "fidelity.yaml").seeds.confirmatory.draws
    20
    """
    return read_settings(Protocol, read_config(path), path.name)


def load_table(name: str, table: Table, folder: Path) -> Task:
    """Return a table as a task without folds.

    Parameters
    ----------
    name : str
    table : Table
    folder : Path
        Where a file named by a relative path is looked for.

    Raises
    ------
    ConfigError
        A column to drop that is not there.
    DataError
        The source holds several tasks.
    SourceError
        No such file, or one that cannot be read.
    """
    # sources read files, OpenML and bundled tables alike
    spec = _source_spec(name, table.source, folder)
    refs = list(open_specs([spec], SourceConfig(target=table.target)))
    if len(refs) != 1:
        raise DataError(
            f"{name}: {table.source} holds {len(refs)} tasks", "name one of them"
        )
    task = _drop_columns(refs[0].load().renamed(name), table.drop)
    return keep_rows(task, table.most, "study rows")


def _source_spec(name: str, source: str, folder: Path) -> str:
    """Return the spec to open: a file in the folder, else the source as it stands."""
    path = folder / Path(source).expanduser()
    if path.is_file():
        return str(path)
    # a source's name has no such ending, and an address may have one: neither is a missing file
    is_file = bool(table_ending(source)) and "://" not in source
    if is_file and not Path(source).is_file():
        raise SourceError(
            f"{name}: there is no file {path}",
            "name the folder of the tables with --data DIR",
        )
    return source


def _drop_columns(task: Task, dropped: tuple[str, ...]) -> Task:
    """Return a task without some of its columns, and without folds."""
    names = [column.name for column in task.columns]
    for column in dropped:
        if column not in names:
            raise ConfigError(
                f"{task.name} has no column {column!r} to drop",
                suggest_nearest(column, names),
            )
    columns = tuple(column for column in task.columns if column.name not in dropped)
    features = task.features[[column.name for column in columns]]
    return dataclasses.replace(task, columns=columns, features=features, folds=())
