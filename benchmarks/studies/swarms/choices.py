"""What one may set in the tables of the swarm paper."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_validator

from amlb_ext.core.errors import ConfigError, suggest_nearest
from amlb_ext.core.task import Kind
from amlb_ext.synthesizers.swarm.objectives import OBJECTIVES as KINDS
from amlb_ext.synthesizers.swarm.particles import check_generators
from amlb_ext.validity.candidates import candidate_zoo
from benchmarks.studies.engine import Settings, asked_of, known_names

FormName = Literal["literal", "honest"]
#: By the paper's letter, and with labels of a teacher on supported rows.
FORMS: tuple[FormName, ...] = ("literal", "honest")
#: Candidates of the zoo that the search sees.
SEEN = ("linear", "neighbours_25", "tree_8", "boosting_slow")
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


def _read_objectives(value: Any) -> Any:
    """Return checked words of text with spaces between: mixtures have commas."""
    words = value.split() if isinstance(value, str) else value
    for word in words:
        parse_objective(word)
    return words


class SwarmChoice(Settings):
    """Settings; the paper's where it states any.

    Attributes
    ----------
    draws : int
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

    chooses: ClassVar[frozenset[str]] = frozenset({"draws", "tables"})

    draws: int = Field(10, ge=0)
    generators: int = 4
    iterations: int = Field(30, ge=1)
    evaluation_rows: int = Field(0, ge=0)
    rows: int = Field(1000, ge=1)
    most_rows: int = Field(6000, ge=1)
    least_rows: int = Field(300, ge=1)
    steps: int = Field(250, ge=1)
    base_steps: int = Field(1000, ge=1)
    takers: Annotated[
        tuple[str, ...], known_names("taker", candidate_zoo(Kind.BINARY))
    ] = SEEN
    objectives: Annotated[tuple[str, ...], BeforeValidator(_read_objectives)] = ()
    tables: Annotated[
        tuple[str, ...], known_names("table", (*EMBEDDED, *FILES, *KNOWN))
    ] = ()

    @property
    def budget(self) -> int:
        """Evaluations that every search may spend."""
        return self.generators * (1 + self.iterations)

    @field_validator("generators")
    @classmethod
    def _check_generators(cls, generators: int) -> int:
        check_generators(generators)
        return generators


def parse_objective(text: str) -> dict[str, float]:
    """Return weights by objective: of one name, or of ``A=.6,B=.4``.

    Raises
    ------
    ConfigError
        An unknown objective, or a weight that is no number.

    Examples
    --------
    >>> parse_objective("difficult"), parse_objective("difficult=.6,novel=.4")
    ({'difficult': 1.0}, {'difficult': 0.6, 'novel': 0.4})
    """
    weights = {}
    for entry in text.split(","):
        name, _, number = entry.partition("=")
        if name not in KINDS:
            raise ConfigError(f"no objective {name!r}", suggest_nearest(name, KINDS))
        try:
            weights[name] = float(number or 1)
        except ValueError:
            raise ConfigError(
                f"the weight {number!r} of {name!r} is no number"
            ) from None
    return weights


def tables_of(
    data: tuple[str, ...], choice: SwarmChoice, takes_files: bool = False
) -> list[str]:
    """Return the names of the tables that are run, those of a folder where one is named.

    Examples
    --------
    >>> tables_of(KNOWN, SwarmChoice(tables="toy digits"))
    ['toy']
    """
    names = list(data)
    if takes_files:
        # a table that needs no file may be named beside those of the folder
        names = [*FILES, *(name for name in choice.tables if name in EMBEDDED)]
    return asked_of(names, choice.tables)
