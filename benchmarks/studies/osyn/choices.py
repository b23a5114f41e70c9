"""The seed paper's tables, and what one may set in them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from amlb_ext.core.config import SynthesizerConfig
from amlb_ext.core.errors import ConfigError, suggest_nearest
from amlb_ext.synthesizers import make_synthesizer

#: Models of Table 3; of Table 2; of Table 7, by the paper's abbreviations.
CLASSIFIERS = ("kNN", "SVM", "DT", "ANN", "RF", "LR", "GB", "LDA")
SIMULATED = ("kNN", "SVM", "DT", "ANN", "RF", "LR", "NB", "QDA")
REGRESSORS = ("Ridge", "SVR", "DTR", "RFR", "GBR", "KNR", "ANN")
#: Shifts of the generator (Table 1).
SHIFTS = ("0", "-0.25", "-0.5", "-0.75", "-1", "-1.125", "-1.25", "-1.5", "-1.75", "-2")
#: Settings that count something, and so are 1 or more.
POSITIVE = (
    "size",
    "rows",
    "iterations",
    "batch",
    "g",
    "bootstraps",
    "train",
    "oracle",
    "epochs",
)
#: Settings for which 0 has a meaning.
NOT_NEGATIVE = ("b", "c_h", "b_reading", "k", "data_rows", "bias")
WORDS = {"encoding": ("ordinal", "onehot"), "space": ("metric", "model")}


@dataclass(frozen=True)
class Choice:
    """Settings; the defaults are the paper's (section 5.2.1, Appendix B) where it states any.

    Attributes
    ----------
    generator : str
        A synthesizer, fitted on the oracle rows. NOTE[DIFF]: CTGAN in the paper; ours by default
        is the Gaussian copula, which it lists among others (Table 5). Targets are drawn from the
        oracle rows, and rows for them.
    epochs : int
        Of a generator that is trained in epochs (section 5.4.1).
    size : int
        K = \\|S\\|, the labelled rows.
    rows : int
        Generated rows that give the region masses p.
    iterations, batch : int
        T and N: rows that Algorithm 1 may select from.
    g : int
    b, delta1, delta2 : float
        Of the bound "a priori". NOTE[DIFF]: the paper picks b with the oracle's loss; 1 was
        chosen before any bound was seen.
    c_h : float
        Bound of an absolute error; 0 for the largest one seen, which is none of the population.
    b_reading : float
        Another b for Table 1, found by comparing with the printed bounds.
    k : int
        Neighbours of the sphere; 0: the table's own (10 in Table 2, no sphere elsewhere).
    bootstraps : int
    encoding : str
        What classifiers of the tables see: ``ordinal`` codes with raw numbers, or ``onehot``.
        Regressors see one-hot columns (Appendix C.1).
    space : str
        Of the regions: ``metric`` (one-hot, scaled) or ``model`` (what the model sees).
    bias : float
        BIKE: a row's chance to be labelled grows from 1 to 1 + bias with the rank of its loss.
    data_rows : int
        Rows of a data set; 0 for all.
    train, oracle : int
        Sizes of the simulation (Appendix B.1.1).
    models : tuple of str
        Some of the table's models; empty for all.
    """

    generator: str = "copula"
    epochs: int = 200
    size: int = 500
    rows: int = 1_000_000
    iterations: int = 15
    batch: int = 50_000
    g: int = 50_000
    b: float = 1.0
    delta1: float = 0.01
    delta2: float = 0.2
    c_h: float = 1.0
    b_reading: float = 2.25
    k: int = 0
    bootstraps: int = 2000
    encoding: str = "ordinal"
    space: str = "metric"
    bias: float = 1.5
    data_rows: int = 0
    train: int = 5_000
    oracle: int = 20_000
    models: tuple[str, ...] = ()

    @property
    def delta(self) -> float:
        """What every lower limit may fail with: delta1 + delta2."""
        return self.delta1 + self.delta2


@dataclass(frozen=True, kw_only=True)
class OsynTable:
    """One table of the paper.

    Attributes
    ----------
    name, title : str
    data : dict of str to tuple of str
        Data set → models.
    repetitions : int
    lacking : dict of str to str
        Data sets that are not run, and why.
    """

    name: str
    title: str
    data: dict[str, tuple[str, ...]]
    repetitions: int
    lacking: dict[str, str] = field(default_factory=dict)


_ALL_TABLES = (
    OsynTable(
        name="osyn-table-1",
        title="OSYN, Table 1: the bound as the generator shifts",
        data={"simulation": ("DT",)},
        repetitions=6,
    ),
    OsynTable(
        name="osyn-table-2",
        title="OSYN, Table 2: simulation, labelled rows of two classes in five",
        data={"simulation": SIMULATED},
        repetitions=3,
    ),
    OsynTable(
        name="osyn-table-3",
        title="OSYN, Table 3: real tables, three rows of the majority for two of the minority",
        data={"bank": CLASSIFIERS, "adult": CLASSIFIERS},
        repetitions=10,
        lacking={"credit": "not among the data at hand"},
    ),
    OsynTable(
        name="osyn-table-7",
        title="OSYN, Table 7: regression, mean absolute error",
        data={"bike": REGRESSORS, "adult": REGRESSORS},
        repetitions=10,
    ),
    OsynTable(
        name="osyn-cost",
        title="OSYN, Table 9: time on ADULT",
        data={"adult": ("SVM", "DT", "LR")},
        repetitions=1,
    ),
)
TABLES: dict[str, OsynTable] = {table.name: table for table in _ALL_TABLES}


def make_choice(changes: Mapping[str, Any] | None = None) -> Choice:
    """Return the settings with some of them changed.

    Raises
    ------
    ConfigError
        An unknown setting, model or word, or a number out of range.

    Examples
    --------
    >>> make_choice({"rows": 20000, "models": "SVM, DT"}).models
    ('SVM', 'DT')
    >>> make_choice({"row": 1})
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.ConfigError: unknown setting 'row' of OSYN's tables (did you mean \
'rows'? known: b, b_reading, batch, bias, bootstraps, c_h, data_rows, delta1, delta2, encoding, \
epochs, g, generator, iterations, k, models, oracle, rows, size, space, train)
    """
    defaults = dataclasses.asdict(Choice())
    values: dict[str, Any] = {}
    for key, value in (changes or {}).items():
        if key not in defaults:
            raise ConfigError(
                f"unknown setting {key!r} of OSYN's tables",
                suggest_nearest(key, defaults),
            )
        if key == "models":
            values[key] = _read_names(value)
        else:
            values[key] = _read_value(key, value, type(defaults[key]))
    choice = Choice(**values)
    _check_numbers(choice)
    _check_names(choice)
    return choice


def _read_names(value: Any) -> tuple[str, ...]:
    """Return the models of a list, or of text with commas, as the command line has it."""
    names = value.split(",") if isinstance(value, str) else value
    return tuple(str(name).strip() for name in names)


def _read_value(key: str, value: Any, kind: type) -> Any:
    """Return a value as the type of its default."""
    if kind is str:
        return str(value)
    # True and False count as numbers in Python
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number:
        raise ConfigError(f"{key} = {value!r}", "give a number")
    if kind is int and value != int(value):
        raise ConfigError(f"{key} = {value!r}", "give a whole number")
    return kind(value)


def _check_numbers(choice: Choice) -> None:
    for key in POSITIVE:
        if getattr(choice, key) < 1:
            raise ConfigError(f"{key} = {getattr(choice, key)}", "give 1 or more")
    # both are chances to fail, and a limit that fails every other time limits nothing
    if min(choice.delta1, choice.delta2) <= 0 or choice.delta >= 0.5:
        raise ConfigError(
            f"delta1 = {choice.delta1}, delta2 = {choice.delta2}",
            "choose both above 0, with a sum below .5",
        )
    for key in NOT_NEGATIVE:
        if getattr(choice, key) < 0:
            raise ConfigError(f"{key} = {getattr(choice, key)}", "give 0 or more")


def _check_names(choice: Choice) -> None:
    # raises where there is no such synthesizer, before any data are read
    make_synthesizer(SynthesizerConfig(name=choice.generator))
    for key, allowed in WORDS.items():
        value = getattr(choice, key)
        if value not in allowed:
            raise ConfigError(f"{key} = {value!r}", f"one of {', '.join(allowed)}")
    models = {*CLASSIFIERS, *SIMULATED, *REGRESSORS}
    for name in choice.models:
        if name not in models:
            raise ConfigError(f"unknown model {name!r}", suggest_nearest(name, models))


def models_of(table: OsynTable, data: str, choice: Choice) -> tuple[str, ...]:
    """Return the models asked for among those of a table.

    Examples
    --------
    >>> models_of(TABLES["osyn-table-7"], "bike", make_choice({"models": "SVM, SVR"}))
    ('SVR',)
    """
    models = table.data[data]
    # in the table's order, whatever that of the user
    if not choice.models:
        return models
    return tuple(name for name in models if name in choice.models)
