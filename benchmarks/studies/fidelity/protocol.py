"""What a study shall do, declared before it runs: a YAML file.

Tables, sizes, baselines, methods, contrasts and the seeds of two phases are written down first;
the results carry the protocol's hash, and a folder holds the results of one protocol only.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from amlb_ext.core.assets import asset_path
from amlb_ext.core.config import BaselineConfig, Rule, read_config
from amlb_ext.core.errors import ConfigError, suggest_nearest

# Dense lines below: a key of the file a line, with its type, default and limits.

Phase = Literal["exploratory", "confirmatory"]
#: What a ranking is set against; see :mod:`benchmarks.studies.fidelity.draw`.
REFERENCES = ("realised", "region", "weighted", "all")
Reference = Literal["realised", "region", "weighted", "all"]


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

    def values(self) -> tuple[int, ...]:
        """Return the seeds."""
        return tuple(range(self.first, self.first + self.draws))


class Phases(_Part):
    """Seeds of both phases; they may not overlap."""

    exploratory: Seeds = Seeds(first=0, draws=10)
    confirmatory: Seeds = Seeds(first=1000, draws=20)

    @field_validator("confirmatory")
    @classmethod
    def _check_overlap(cls, confirmatory: Seeds, info: Any) -> Seeds:
        # missing where it is not valid itself, which pydantic reports
        exploratory: Seeds | None = info.data.get("exploratory")
        if exploratory is None:
            return confirmatory
        if set(exploratory.values()) & set(confirmatory.values()):
            raise ValueError("exploratory and confirmatory seeds overlap")
        return confirmatory


class Protocol(_Part):
    """Everything a study of ranking fidelity depends on, but for the tables' content."""

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

    def tables_of(self, phase: Phase) -> dict[str, Table]:
        """Return the tables of a phase; one without a phase belongs to both."""
        tables = {}
        for name, table in self.tables.items():
            if self.phases.get(name, phase) == phase:
                tables[name] = table
        return tables

    @property
    def sha256(self) -> str:
        """Hash of everything that decides a draw's result (not the number of draws)."""
        # a table counts by its content, which the key of a draw holds beside this hash
        entry = self.model_dump(
            mode="json", exclude={"seeds", "contrasts", "phases", "tables"}
        )
        entry["methods"] = sorted(self.used_methods())
        text = json.dumps(entry, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def shipped_protocol() -> Path:
    """Return the file of the protocol that the project itself ran."""
    return asset_path("benchmarks", "studies", "fidelity.yaml")


def read_protocol(path: Path | None = None) -> Protocol:
    """Read a protocol; without a path the one shipped with the project.

    Raises
    ------
    ConfigError
        No such file, no YAML, an unknown key or a value that is not allowed.

    Examples
    --------
    >>> read_protocol().seeds.confirmatory.draws
    20
    """
    path = shipped_protocol() if path is None else path
    layer = read_config(path)
    try:
        protocol = Protocol.model_validate(layer)
    except ValidationError as error:
        # the first problem is enough: later ones often follow from it
        problem = error.errors()[0]
        location = [str(key) for key in problem["loc"]]
        where = ".".join(location) or "protocol"
        hint = ""
        if problem["type"] == "extra_forbidden":
            hint = suggest_nearest(location[-1], Protocol.model_fields)
        message = problem["msg"].lower()
        raise ConfigError(f"{path.name}: {where}: {message}", hint) from None
    # pydantic sees each key alone, and these must agree
    unknown = sorted(set(protocol.phases) - set(protocol.tables))
    if unknown:
        raise ConfigError(
            f"{path.name}: phases names {unknown[0]!r}, which is no table",
            suggest_nearest(unknown[0], protocol.tables),
        )
    return protocol
