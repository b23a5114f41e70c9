"""Every setting, its default, and the presets; YAML and command-line flags are two faces of it.

One frozen model per stage and one :class:`GenerateConfig` above them. Unknown keys raise with
the nearest valid name. What only says *where* or *how fast* (output folder, workers, verbosity)
is not configuration and never changes a result.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from amlb_ext.core.errors import ConfigError, suggest_nearest
from amlb_ext.core.presets import PRESETS
from amlb_ext.core.yaml_reader import read_yaml

Rule = Literal["auto", "absolute", "squared", "band", "wrong", "quantile", "reducible"]


class Stage(BaseModel):
    """A frozen group of settings; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SourceConfig(Stage):
    """How source specs are read."""

    target: str | None = Field(None, description="target column of a table")
    targets: tuple[str, ...] = Field(
        (),
        description="several target columns of a table, all numbers: one task for each, all with "
        "the same rows",
    )
    kind: Literal["regression", "classification", "binary", "multiclass"] | None = (
        Field(None, description="kind of a table's target; inferred when omitted")
    )
    keep: tuple[str, ...] = Field(
        (),
        description="a column that would be left out because it looks like an identifier; repeat "
        "the flag for several",
        json_schema_extra={"repeatable": True},
    )
    drop: tuple[str, ...] = Field(
        (),
        description="a column to leave out; repeat the flag for several",
        json_schema_extra={"repeatable": True},
    )
    test_file: str | None = Field(
        None, description="a table's own test rows (one fold)"
    )
    openml_server: str | None = Field(
        None, description="API address of another OpenML server"
    )
    openml_cache: str | None = Field(
        None, description="cache directory of the OpenML client"
    )
    retries: int = Field(
        2, ge=1, le=20, description="tries for each request to a server"
    )
    amlb: str | None = Field(
        None, description="AMLB checkout whose definitions are searched"
    )
    userdir: str | None = Field(
        None, description="AMLB user directory, {user} in definitions"
    )
    inputdir: str | None = Field(
        None, description="AMLB input directory, {input} in definitions"
    )
    cache_dir: str | None = Field(None, description="where downloaded files are kept")
    max_download: float = Field(
        20.0, gt=0, description="GiB of one remote file at most"
    )
    download_time: float = Field(
        60.0, gt=0, description="minutes for one remote file at most"
    )
    max_tasks: int = Field(
        1000, ge=1, description="tasks that the sources may name in all"
    )
    max_unpacked: float = Field(
        20.0, gt=0, description="GiB that one archive may unpack to"
    )


#: Random splits of a source without folds, where the user names no number.
DEFAULT_FOLDS = 5


class SplitConfig(Stage):
    """Folds: random ones for sources that have none, the first ones for sources that have."""

    folds: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="number of random splits (the paper: 31; 5 when omitted); of a source with "
        "folds of its own, as an OpenML task, the first ones (all when omitted)",
    )
    test_size: float = Field(
        0.2, gt=0, lt=1, description="share of rows in a random test part"
    )


class BaselineConfig(Stage):
    """The baseline model F."""

    model: str = Field(
        "random_forest",
        description="short name, import path, fitted model file or file of predictions",
    )
    params: dict[str, Any] = Field(
        default_factory=dict, description="parameters of the model"
    )
    encoding: Literal["auto", "ordinal", "onehot"] = Field(
        "auto", description="what the model sees of categories"
    )
    trust_pickle: bool = Field(
        False,
        description="load pickle or joblib files; they can run any code, so only your own",
    )


class HardnessConfig(Stage):
    """K, the rule that calls a row bad (paper, sections 3, 4.1 and 4.2)."""

    rule: Rule = Field(
        "auto", description="absolute for regression, band for classification"
    )
    alpha: float | None = Field(
        None,
        description="threshold; when omitted the rule's customary one, or, where fewer than "
        "'floor' of the training rows' out-of-fold predictions fail it, their worst 'share'",
    )
    class_alpha: dict[str, float] = Field(
        default_factory=dict,
        description="threshold per class label, e.g. spam=0.3,ham=0.6, with --rule wrong (paper "
        "4.2); the other classes keep --alpha",
    )
    over: Literal["mean", "intersection", "union"] = Field(
        "mean",
        description="with --targets: bad by the mean over targets, for all of them, or for any",
    )
    share: float = Field(
        0.1, gt=0, le=1, description="share of rows for quantile and reducible"
    )
    floor: float = Field(
        0.05, ge=0, le=1, description="smallest share before 'share' is used"
    )


class SearchConfig(Stage):
    """The genetic augmentation (paper, section 4.3 and Algorithm 1)."""

    engine: Literal["batched", "deap"] = Field(
        "batched", description="who runs the search"
    )
    copies: int = Field(
        5, ge=0, le=1000, description="augmented rows asked per bad row"
    )
    tries: int = Field(
        5,
        ge=1,
        le=100,
        description="tries until each bad row has its copies, of those kept",
    )
    max_rows: int = Field(5000, ge=1, description="most augmented rows asked in a fold")
    population: int = Field(
        20, ge=2, le=10000, description="individuals per augmented row"
    )
    generations: int = Field(10, ge=0, le=10000, description="steps of the search")
    fitness: Literal["error", "reducible"] = Field(
        "error",
        description="climb F's error on the label, or the oracle's departure from F",
    )
    kappa: float | None = Field(
        None,
        ge=0,
        le=1,
        description="weight of the error in the fitness; when omitted calibrated per fold on "
        "the training rows' own failures",
    )
    sigma2: float = Field(
        0.0002, ge=0, description="variance of the target perturbation"
    )
    flip: float = Field(
        0.0, ge=0, le=1, description="probability of flipping a class label"
    )
    start: Literal["near", "unique"] = Field("near", description="initial population")
    categoricals: Literal["frozen", "free"] = Field(
        "frozen", description="may categories change"
    )
    mutation: float = Field(
        0.2, ge=0, le=1, description="probability of mutation per gene, p_m"
    )
    strength: float = Field(
        0.025, ge=0, description="mutation strength s_m, in column ranges"
    )
    crossover: float = Field(
        0.7, ge=0, le=1, description="probability that a pair is crossed"
    )
    jitter: float = Field(
        0.025, ge=0, description="noise on numeric genes after the search"
    )
    reapply: bool = Field(True, description="drop rows on which F turned out good")
    chunk_rows: int = Field(
        200_000,
        ge=1,
        description="individuals predicted at once; never changes a result",
    )

    @property
    def pressure(self) -> float:
        """Kappa as the search uses it: 0, which moves no row, where nobody has settled it."""
        return 0.0 if self.kappa is None else self.kappa


class AgreementConfig(Stage):
    """The agreement filter: a cross-fitted oracle against the label a row inherited."""

    filter: bool = Field(
        True,
        description="drop rows whose label the oracle contradicts, more than where they came from",
    )
    tolerance: float = Field(
        1.5, gt=0, description="regression: largest |oracle - label|, in oracle RMSEs"
    )
    min_probability: float = Field(
        0.25,
        ge=0,
        le=1,
        description="classification: least oracle probability of the label",
    )


class RelationsConfig(Stage):
    """Relations between columns that made rows must satisfy."""

    mine: bool = Field(
        True,
        description="find relations that hold in every training row, and keep them",
    )
    evidence: float = Field(
        10.0,
        ge=1,
        description="keep a mined relation that so many rows would break if its columns had "
        "nothing to do with each other",
    )
    frozen: tuple[str, ...] = Field(
        (),
        description="a column that keeps the value of the real row that a made row came from; "
        "repeat the flag for several",
        json_schema_extra={"repeatable": True},
    )
    one_way: dict[str, Literal["up", "down"]] = Field(
        default_factory=dict,
        description="columns that may only grow or only shrink, e.g. age=up,debt=down",
    )
    one_hot: tuple[tuple[str, ...], ...] = Field(
        (), description="groups of columns of which exactly one is 1"
    )
    combinations: tuple[tuple[str, ...], ...] = Field(
        (),
        description="groups of columns that only take values together that real rows have",
    )
    rules: tuple[str, ...] = Field(
        (),
        description="a condition that made rows must satisfy, e.g. 'a <= b' or "
        "'a == 0 implies b == 0'; repeat the flag for several",
        json_schema_extra={"repeatable": True},
    )
    drop: tuple[str, ...] = Field(
        (),
        description="a mined relation that is not wanted; repeat the flag for several",
        json_schema_extra={"repeatable": True},
    )


class SynthesizerConfig(Stage):
    """The generative model of hard rows (paper, sections 4.4 and 5.6)."""

    name: str = Field(
        "vae",
        description="vae, copula, local, vae_paper or vae_posterior; with the extra sdv also "
        "ctgan, tvae, copulagan or sdv_copula",
    )
    learn_from: Literal["failures", "population"] = Field(
        "failures",
        description="what it learns: the bad and augmented rows, or all training rows, of which "
        "those are kept on which the oracle expects F to fail",
    )
    times: float = Field(
        5.0, ge=0, le=1000, description="synthetic rows asked per augmented row"
    )
    max_rows: int = Field(
        10_000, ge=0, description="most synthetic rows asked in a fold"
    )
    epochs: int = Field(
        150, ge=1, le=100_000, description="passes over the augmented rows"
    )
    latent: int = Field(32, ge=1, le=4096, description="latent dimension")
    hidden: int = Field(
        16, ge=1, le=1024, description="convolution channels of vae_paper"
    )
    decoder: int = Field(
        128,
        ge=1,
        le=8192,
        description="width of vae's dense layers, of vae_paper's projection",
    )
    batch: int = Field(
        0, ge=0, description="batch size; 0 chooses 16 to 256 by the rows"
    )
    min_rows: int = Field(
        11, ge=2, description="with fewer rows the local synthesizer is used instead"
    )
    device: Literal["auto", "cpu"] = Field(
        "auto",
        description="auto learns on a GPU where there is one: nearly, not exactly, the same",
    )


class GenerateConfig(Stage):
    """Everything that decides what ``hardsynth generate`` writes."""

    name: str = Field("hardsynth", description="name of the benchmark definition")
    seed: int = Field(
        1, ge=0, lt=2**31, description="every random stream depends on it"
    )
    preset: Literal["faithful", "stress", "literal"] = Field(
        "faithful",
        description="faithful keeps labels true, stress explores, literal is the paper",
    )
    composition: tuple[Literal["bad", "ga", "synthetic"], ...] = Field(
        ("bad", "synthetic"), description="parts of the main task's test file"
    )
    train_hard: bool = Field(
        True,
        description="also write <task>_hard, trained on the training rows' own failures",
    )
    source: SourceConfig = Field(default_factory=SourceConfig)
    split: SplitConfig = Field(default_factory=SplitConfig)
    baseline: BaselineConfig = Field(default_factory=BaselineConfig)
    hardness: HardnessConfig = Field(default_factory=HardnessConfig)
    search: SearchConfig = Field(default_factory=SearchConfig)
    agreement: AgreementConfig = Field(default_factory=AgreementConfig)
    synthesizer: SynthesizerConfig = Field(default_factory=SynthesizerConfig)
    relations: RelationsConfig = Field(default_factory=RelationsConfig)


def build_config(*layers: dict[str, Any]) -> GenerateConfig:
    """Merge layers of settings over the preset they name; later layers win.

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
agreement, baseline, composition, hardness, name, preset, relations, search, seed, source, \
split, synthesizer, train_hard)
    """
    user: dict[str, Any] = {}
    for layer in layers:
        user = _merge(user, layer)
    preset = user.get("preset", "faithful")
    if preset not in PRESETS:
        raise ConfigError(
            f"unknown preset {preset!r}", suggest_nearest(str(preset), PRESETS)
        )
    try:
        return GenerateConfig.model_validate(_merge(PRESETS[preset], user))
    except ValidationError as error:
        raise _explain(error) from None


def read_config(path: Path) -> dict[str, Any]:
    """Read a layer of settings from a YAML file.

    Raises
    ------
    ConfigError
        The file is missing, is no YAML (with the line), holds no mapping, or gives the permission
        to load pickles.
    """
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
            f"{path} holds a {type(layer).__name__}, settings are a mapping"
        )
    baseline = layer.get("baseline")
    if isinstance(baseline, dict) and baseline.get("trust_pickle"):
        raise ConfigError(
            f"{path} asks for trust_pickle, a permission that the command line alone gives",
            "leave it out of the file, and add --trust-pickle if you made the model yourself",
        )
    return layer


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = (
            _merge(old, value)
            if isinstance(old, dict) and isinstance(value, dict)
            else value
        )
    return merged


def _explain(error: ValidationError) -> ConfigError:
    problem = error.errors()[0]
    path = [str(part) for part in problem["loc"]]
    name = ".".join(path)
    if problem["type"] == "extra_forbidden":
        known: type[BaseModel] = GenerateConfig
        for part in path[:-1]:
            known = known.model_fields[part].annotation  # type: ignore[assignment]
        return ConfigError(
            f"unknown setting {name!r}", suggest_nearest(path[-1], known.model_fields)
        )
    return ConfigError(f"{name} = {problem['input']!r}: {problem['msg'].lower()}")
