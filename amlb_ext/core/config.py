"""Every setting and its default; a YAML file and command-line flags set the same fields.

There is one frozen model per stage and one :class:`GenerateConfig` above them. An unknown key
raises an error that names the nearest valid one. What only says *where* or *how fast* (output
folder, workers, verbosity) is not configuration and never changes a result.

What stands below a field is its text in ``--help``, and its type says what is typed there.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from amlb_ext.core.checked_call import explain_problem
from amlb_ext.core.errors import ConfigError, suggest_nearest

Layer = dict[str, Any]

#: What a preset changes; ``faithful`` is the defaults, ``literal`` the paper's settings for real
#: data. Each line of ``literal`` names its place in the paper.
PRESETS: dict[str, Layer] = {
    "faithful": {},
    "stress": {
        # a stress test is made of hard rows, whether or not they rank
        "composition": ("bad", "synthetic"),
        "search": {
            "kappa": 0.1,
            "operators": {
                "population": 50,
                "generations": 20,
                "fitness": "reducible",
                "sigma2": 0.0005,
                "strength": 0.1,
                "categoricals": "free",
                "jitter": 0.025,
            },
        },
        "hardness": {"rule": "reducible"},
    },
    "literal": {
        "composition": ("bad", "synthetic"),  # section 4.4, D_b and X~
        "search": {
            "kappa": 0.5,  # section 4.3.1 says [0, 1]; .5 gives the 75 % row of Table A1
            "operators": {
                "tries": 1,
                "population": 50,  # not printed
                "generations": 20,  # Table 2, number of steps in GA
                # section 5.4; Table 1 fits a standard deviation, not a variance
                "sigma2": 0.02**2,
                "flip": 0.1,  # section 4.3.2, p_xi; not printed
                "start": "unique",  # section 4.3.1, unique values of each attribute
                "categoricals": "free",  # Algorithm 1, line 6
                "mutation": 0.2,  # Algorithm 1, p_m; not printed
                "strength": 0.1,  # Algorithm 1, s_m; not printed
                "jitter": 0.0,
                "agreement": False,  # the paper judges no labels
            },
        },
        # the rows of which F is unsure, section 5.4
        "hardness": {"rule": "paper"},
        "relations": {"mine": False},  # the paper keeps none
        "synthesizer": {
            "name": "vae_posterior",  # section 3: encode X_ga, then sample from the latent space
            "times": 5.0,  # section 5.3, five times more points
            "epochs": 100,  # Table 2, number of epochs
            "params": {
                "latent": 256,  # Table 2, latent dimension
                "hidden": 16,  # Table 2, hidden channels
                "decoder": 512,  # Table 2, decoder hidden dimension
            },
        },
    },
}


Rule = Literal[
    "auto", "paper", "absolute", "squared", "band", "wrong", "quantile", "reducible"
]


@dataclass(frozen=True)
class Typed:
    """How a setting is typed as a flag.

    Attributes
    ----------
    metavar : str
        What stands for the value in ``--help``.
    is_repeatable : bool
        The flag takes one whole word, commas and all, and may be given several times.
    """

    metavar: str
    is_repeatable: bool = False


Column = Annotated[str, Typed("COLUMN")]
Folder = Annotated[str, Typed("DIR")]
Columns = Annotated[tuple[str, ...], Typed("COLUMN", is_repeatable=True)]
Rules = Annotated[tuple[str, ...], Typed("RULE", is_repeatable=True)]


class Stage(BaseModel):
    """A frozen group of settings; unknown keys are refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        defer_build=True,
        use_attribute_docstrings=True,
    )

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_truth_value(cls, value: Any, info: ValidationInfo) -> Any:
        # YAML reads "yes" and "on" as True, which pydantic takes for 1
        annotation = cls.model_fields[str(info.field_name)].annotation
        is_number = {int, float} & {annotation, *typing.get_args(annotation)}
        if isinstance(value, bool) and is_number:
            raise ValueError("a truth value is no number")
        return value


class SourceConfig(Stage):
    """How source specs are read."""

    target: Column | None = None
    """column of a table to predict"""
    targets: tuple[Column, ...] = ()
    """several numeric columns of a table to predict: one task for each, all with the same rows"""
    kind: Literal["regression", "classification", "binary", "multiclass"] | None = None
    """kind of the target of a table (default: inferred)"""
    keep: Columns = ()
    """column to keep although it looks like an identifier; repeat the flag for several"""
    drop: Columns = ()
    """column to leave out; repeat the flag for several, or put commas between them"""
    read_as: Annotated[
        dict[str, Literal["number", "category", "date", "ignore"]], Typed("NAME=ROLE")
    ] = {}
    """how a column of a table is read: number, category, date (as year, month, day, weekday and
    seconds) or ignore; repeat the flag for several"""
    sep: Annotated[str | None, Typed("CHAR")] = None
    """character between the fields of a CSV file, e.g. ';' or tab (default: comma, or what the
    first line uses instead)"""
    decimal: Annotated[Literal[".", ","] | None, Typed("CHAR")] = None
    """decimal sign of the numbers of a CSV file (default: the point), and of texts that --as reads
    as numbers (default: what the column shows)"""
    test_file: Annotated[str | None, Typed("FILE")] = None
    """file of test rows for a table: one fold instead of random splits"""
    openml_server: Annotated[str | None, Typed("URL")] = None
    """API address of an OpenML server other than openml.org"""
    openml_cache: Folder | None = None
    """cache folder of the OpenML client"""
    amlb: Folder | None = None
    """AMLB checkout whose benchmark definitions are searched"""
    userdir: Folder | None = None
    """AMLB user directory, which definitions call {user}"""
    max_file_size: Annotated[float, Typed("GIB")] = Field(20.0, gt=0)
    """largest size of a remote file, and of what a packed file unpacks to, in GiB"""

    @property
    def max_file_bytes(self) -> int:
        """The size in bytes."""
        return int(self.max_file_size * 2**30)


class SplitConfig(Stage):
    """Folds: splits of a source without folds, its own first folds for any other.

    Splits are random, unless a column of times or of groups says otherwise.
    """

    folds: int | None = Field(None, ge=1, le=1000)
    """number of folds: random splits of a table (default: 5; the paper uses 31), or the first folds
    of a source that defines its own, such as an OpenML task (default: all; with two of ten a change
    must be 2.2 times as large to be shown)"""
    test_size: float = Field(0.2, gt=0, lt=1)
    """share of the rows that each random split tests on"""
    time: Column | None = None
    """column of times: in every split, training rows are older than test rows; with --series the
    times of the series"""
    group: Column | None = None
    """column of groups, such as a patient or a shop: rows of one group are never on both sides of a
    split"""
    cluster_by: Column | None = None
    """column of groups whose rows depend on each other, but which a split may separate: intervals
    count groups, not rows (default: --group)"""
    gap: Annotated[str | None, Typed("TEXT")] = Field(None, coerce_numbers_to_str=True)
    """with --time: smallest distance in time between training and test rows, as a number, or for
    dates as 7D or 12h (default: none)"""

    @model_serializer(mode="wrap")
    def _without_unused_order(
        self, write: SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        # suites of random splits were made before there were others, and keep their bytes
        settings: dict[str, Any] = write(self)
        for name in ("time", "group", "cluster_by", "gap"):
            if settings.get(name) is None:
                settings.pop(name, None)
        return settings


class BaselineConfig(Stage):
    """The baseline model F."""

    model: str = "random_forest"
    """baseline model F: a short name, an import path, the file of a fitted model or of its
    predictions, or the address of a service (http://... or https://...)"""
    params: dict[str, Any] = {}
    """parameters of F"""
    encoding: Literal["auto", "ordinal", "onehot"] = "auto"
    """how F sees categories"""
    ask_at_most: Annotated[int | None, Typed("ROWS")] = Field(None, ge=0)
    """largest number of rows that F is asked about in a fold: a forest fitted to F's answers
    searches, and F confirms every row that is kept; 0 is no limit (default: 100,000 for a service
    and for models that predict in context, else no limit)"""
    trust_pickle: bool = False
    """load pickle or joblib files; they can run any code, so use this for your own files only"""


class HardnessConfig(Stage):
    """The hardness K and the rule that calls a row bad (paper, sections 3, 4.1 and 4.2)."""

    rule: Rule = "auto"
    """rule that calls a row bad; auto: what F decides wrongly, or for regression the worst --share
    by loss; paper: band, where F is unsure, or absolute for regression, however many rows that
    are"""
    alpha: float | None = None
    """threshold of the rule (default: that of --share if it is given, else the rule's usual one,
    unless too few training rows fail it)"""
    class_alpha: dict[str, float] = {}
    """with --rule wrong: threshold of each class label, e.g. spam=0.3,ham=0.6 (paper, section 4.2);
    the other classes keep --alpha"""
    over: Literal["mean", "intersection", "union"] = "mean"
    """with --targets: a row is bad by the mean over the targets (mean), for all targets
    (intersection) or for any (union)"""
    share: float | None = Field(None, gt=0, le=1)
    """share of the rows to call bad, the hardest by the rule (default: 0.1 where the rule has no
    usual threshold or too few training rows fail it)"""

    @model_validator(mode="after")
    def _check_alpha(self) -> HardnessConfig:
        if self.rule == "quantile" and self.alpha is not None:
            raise ValueError("quantile takes the worst share, and has no threshold")
        if self.alpha is not None and self.share is not None:
            raise ValueError(
                "alpha and share each say how many rows are bad: leave one of them out"
            )
        return self


class Operators(Stage):
    """How the search moves rows, and how long it searches; each preset has its own."""

    population: int = Field(20, ge=2, le=10000)
    """individuals in the search for an augmented row"""
    generations: int = Field(10, ge=0, le=10000)
    """generations of the search"""
    tries: int = Field(5, ge=1, le=100)
    """largest number of searches for a bad row that lacks augmented rows"""
    fitness: Literal["error", "reducible"] = "error"
    """what the search increases: F's error on the label, or the difference between the oracle and
    F"""
    sigma2: float = Field(0.0002, ge=0)
    """variance of the noise added to a regression target"""
    flip: float = Field(0.0, ge=0, le=1)
    """probability of flipping a class label"""
    start: Literal["near", "unique"] = "near"
    """first population: mutated copies of the bad row (near), or values drawn from each column
    (unique)"""
    categoricals: Literal["frozen", "free"] = "frozen"
    """whether the search may change categories (free) or not (frozen)"""
    mutation: float = Field(0.2, ge=0, le=1)
    """probability that a gene mutates, p_m in the paper"""
    strength: float = Field(0.025, ge=0)
    """mutation strength as a share of the column's range, s_m in the paper"""
    crossover: float = Field(0.7, ge=0, le=1)
    """probability that a pair is crossed"""
    jitter: float = Field(0.025, ge=0)
    """noise on numeric columns after the search, as a share of the column's range"""
    reapply: bool = True
    """drop made rows on which F does not fail after all"""
    agreement: bool = True
    """drop made rows whose label the oracle contradicts, and more than it contradicts the row that
    they were made from"""


class SearchConfig(Stage):
    """The genetic augmentation (paper, section 4.3 and Algorithm 1)."""

    copies: int = Field(5, ge=0, le=1000)
    """number of augmented rows to make from each bad row"""
    max_rows: int = Field(5000, ge=1)
    """largest number of augmented rows in a fold"""
    kappa: float | None = Field(None, ge=0, le=1)
    """weight of the error in the fitness (default: calibrated in each fold on the failures among
    the training rows)"""
    operators: Operators = Field(default_factory=Operators)
    """how the search moves rows, as the preset has it"""

    @property
    def pressure(self) -> float:
        """Kappa as the search uses it; 0, which moves no row, if it is not calibrated yet."""
        return 0.0 if self.kappa is None else self.kappa


class RelationsConfig(Stage):
    """Relations between columns that made rows must satisfy."""

    mine: bool = True
    """find relations that hold in every training row, and make rows that keep them"""
    frozen: Columns = ()
    """column in which a made row keeps the value of the real row that it was made from; repeat the
    flag for several"""
    one_way: dict[str, Literal["up", "down"]] = {}
    """columns that may only increase or only decrease, e.g. age=up,debt=down"""
    one_hot: tuple[tuple[str, ...], ...] = ()
    """groups of columns of which exactly one is 1 in each row"""
    combinations: tuple[tuple[str, ...], ...] = ()
    """groups of columns whose values must occur together in a real row"""
    rules: Rules = ()
    """condition that made rows must satisfy, e.g. 'a <= b' or 'a == 0 implies b == 0'; repeat the
    flag for several"""
    drop: Rules = ()
    """with --mine: relation to ignore; repeat the flag for several"""


class SynthesizerConfig(Stage):
    """The generative model of hard rows (paper, sections 4.4 and 5.6)."""

    name: str = "vae"
    """generative model: vae, copula, local, swarm, vae_paper or vae_posterior; with the extra sdv
    also ctgan, tvae, copulagan or sdv_copula"""
    learn_from: Literal["failures", "population"] = "failures"
    """rows that the synthesizer learns from: the bad and augmented rows (failures), or all training
    rows (population; the default of swarm), in which case it keeps only the rows on which the
    oracle expects F to fail"""
    objective: tuple[
        Literal["difficult", "separate", "novel", "consistent", "personalised"], ...
    ] = Field(("difficult",), min_length=1)
    """swarm: what mixtures of generators are searched for: difficult, separate, novel, consistent
    or personalised; several count alike"""
    search: Literal["pso", "pso_code", "cma", "soups", "none"] = "pso"
    """swarm: search among the mixtures: the paper's particle swarm (pso), the same as its code has
    it (pso_code), cma, random convex mixtures (soups), or none"""
    labels: Literal["honest", "literal"] = "honest"
    """with --learn-from population: whose labels count and are written, the oracle's (honest) or
    the generator's own (literal)"""
    times: float = Field(5.0, ge=0, le=1000)
    """number of synthetic rows for each augmented row"""
    epochs: int = Field(150, ge=1, le=100_000)
    """number of passes over the rows that the synthesizer learns from"""
    params: dict[str, Any] = {}
    """more parameters of the synthesizer, e.g. latent=64,device=cpu of vae"""

    @model_validator(mode="before")
    @classmethod
    def _swarm_learns_population(cls, settings: Any) -> Any:
        # a handful of failures has no clusters on which generators could be tuned
        if isinstance(settings, dict) and settings.get("name") == "swarm":
            return {"learn_from": "population", **settings}
        return settings

    @model_validator(mode="after")
    def _check_use(self) -> SynthesizerConfig:
        if self.labels == "literal" and self.learn_from != "population":
            raise ValueError(
                "labels literal is for rows of the population: add --learn-from population"
            )
        is_default = self.objective == ("difficult",) and self.search == "pso"
        if self.name != "swarm" and not is_default:
            raise ValueError(
                "objective and search are for swarms: add --synthesizer swarm"
            )
        return self

    @model_serializer(mode="wrap")
    def _without_unused_search(
        self, write: SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        # what a synthesizer does not read stays out of the manifest
        settings: dict[str, Any] = write(self)
        if self.name != "swarm":
            for name in ("objective", "search"):
                settings.pop(name, None)
            if self.labels == "honest":
                settings.pop("labels", None)
        return settings


#: What the main task may consist of. ``weighted``: all real test rows, repeated by how likely F
#: fails there; ``population``: made rows that stand for these; the others are chosen by K.
CompositionPart = Literal["weighted", "bad", "ga", "synthetic"]


class GenerateConfig(Stage):
    """Everything that decides what ``hardsynth generate`` writes."""

    name: str = "hardsynth"
    """name of the benchmark definition"""
    seed: int = Field(1, ge=0, lt=2**31)
    """random seed"""
    preset: Literal["faithful", "stress", "literal"] = "faithful"
    """set of defaults: faithful keeps labels true, stress explores, literal has the settings of the
    paper"""
    composition: tuple[CompositionPart, ...] = ()
    """what the test file of a main task holds: any of weighted, bad, ga and synthetic
    (bad,synthetic is the paper's); none by default, and no main task"""
    train_hard: bool = True
    """also write <task>_hard, whose training file holds the failures among the training rows"""
    source: SourceConfig = Field(default_factory=SourceConfig)
    split: SplitConfig = Field(default_factory=SplitConfig)
    baseline: BaselineConfig = Field(default_factory=BaselineConfig)
    hardness: HardnessConfig = Field(default_factory=HardnessConfig)
    search: SearchConfig = Field(default_factory=SearchConfig)
    synthesizer: SynthesizerConfig = Field(default_factory=SynthesizerConfig)
    relations: RelationsConfig = Field(default_factory=RelationsConfig)


def build_config(*layers: dict[str, Any]) -> GenerateConfig:
    """Merge layers of settings over the preset that they name; later layers take precedence.

    Parameters
    ----------
    *layers : dict
        Nested settings, e.g. from a YAML file and from flags.

    Returns
    -------
    GenerateConfig

    Raises
    ------
    ConfigError
        An unknown key (with the nearest valid one) or a value that is not allowed.

    Examples
    --------
    >>> build_config({"preset": "literal"}, {"search": {"kappa": 0.3}}).search.kappa
    0.3
    >>> build_config({"serch": {}})
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.ConfigError: unknown setting 'serch' (did you mean 'search'? known: \
baseline, composition, hardness, name, preset, relations, search, seed, source, \
split, synthesizer, train_hard)
    """
    user_settings = merge_layers(*layers)
    # The preset lies below all layers, whichever of them names it.
    preset = user_settings.get("preset", "faithful")
    if not isinstance(preset, str) or preset not in PRESETS:
        raise ConfigError(
            f"unknown preset {preset!r}", suggest_nearest(str(preset), PRESETS)
        )
    below = PRESETS[preset]
    chosen = user_settings.get("synthesizer") or {}
    if isinstance(chosen, dict) and "name" in chosen:
        # what a preset gives to its own synthesizer says nothing to another
        own = below.get("synthesizer", {})
        if own.get("name") != chosen["name"]:
            rest = {key: value for key, value in own.items() if key != "params"}
            below = {**below, "synthesizer": rest}
    settings = merge_layers(below, user_settings)
    try:
        return GenerateConfig.model_validate(settings)
    except ValidationError as error:
        raise _explain_validation(error) from None


def read_config(path: Path) -> dict[str, Any]:
    """Read a layer of settings from a YAML file.

    Raises
    ------
    ConfigError
        The file is missing, is not YAML (with the line), holds no mapping, or gives the
        permission to load pickles.
    """
    # a comparison of models in memory has settings, and reads no YAML
    from amlb_ext.core.yaml_reader import read_yaml

    try:
        layer = read_yaml(path, ConfigError)
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}", "give a YAML file to --config"
        ) from None
    if layer is None:
        return {}
    if not isinstance(layer, dict):
        raise ConfigError(
            f"{path} holds a {type(layer).__name__}, but settings are a mapping"
        )
    # A file may come from somebody else, so it cannot allow what runs any code.
    baseline = layer.get("baseline")
    if isinstance(baseline, dict) and baseline.get("trust_pickle"):
        raise ConfigError(
            f"{path} asks for trust_pickle, a permission that the command line alone gives",
            "leave it out of the file, and add --trust-pickle if you made the model yourself",
        )
    return layer


def merge_layers(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested settings of all layers; of one setting the last stands.

    Examples
    --------
    >>> merge_layers({"search": {"copies": 1, "kappa": 0.1}}, {"search": {"copies": 2}})
    {'search': {'copies': 2, 'kappa': 0.1}}
    """
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            previous = merged.get(key)
            if isinstance(previous, dict) and isinstance(value, Mapping):
                value = merge_layers(previous, value)
            merged[key] = value
    return merged


def _explain_validation(error: ValidationError) -> ConfigError:
    """Return pydantic's first complaint as one line, with the nearest name of an unknown key."""
    problem = error.errors()[0]
    path = [str(part) for part in problem["loc"]]
    name = ".".join(path)
    if problem["type"] != "extra_forbidden":
        return explain_problem(problem)
    # Walk down to the model that refused the key: its fields are the valid names.
    model: type[BaseModel] = GenerateConfig
    for part in path[:-1]:
        model = model.model_fields[part].annotation  # type: ignore[assignment]
    remedy = suggest_nearest(path[-1], model.model_fields)
    return ConfigError(f"unknown setting {name!r}", remedy)
