"""What one may set in the seed paper's tables."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from amlb_ext.core.config import SynthesizerConfig
from amlb_ext.core.errors import ConfigError, suggest_nearest
from amlb_ext.synthesizers import make_synthesizer
from benchmarks.studies.engine import Settings

#: Models of Table 3; of Table 2; of Table 7, by the paper's abbreviations.
CLASSIFIERS = ("kNN", "SVM", "DT", "ANN", "RF", "LR", "GB", "LDA")
SIMULATED = ("kNN", "SVM", "DT", "ANN", "RF", "LR", "NB", "QDA")
REGRESSORS = ("Ridge", "SVR", "DTR", "RFR", "GBR", "KNR", "ANN")
#: Shifts of the generator (Table 1).
SHIFTS = ("0", "-0.25", "-0.5", "-0.75", "-1", "-1.125", "-1.25", "-1.5", "-1.75", "-2")


def _read_names(value: Any) -> Any:
    """Return names of text with commas, as a command line has them."""
    return value.replace(",", " ").split() if isinstance(value, str) else value


class Choice(Settings):
    """Settings; the defaults are the paper's (section 5.2.1, Appendix B) where it states any.

    Attributes
    ----------
    draws : int
        Repetitions.
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

    draws: int = Field(1, ge=0)
    generator: str = "copula"
    epochs: int = Field(200, ge=1)
    size: int = Field(500, ge=1)
    rows: int = Field(1_000_000, ge=1)
    iterations: int = Field(15, ge=1)
    batch: int = Field(50_000, ge=1)
    g: int = Field(50_000, ge=1)
    b: float = Field(1.0, ge=0)
    delta1: float = Field(0.01, gt=0)
    delta2: float = Field(0.2, gt=0)
    c_h: float = Field(1.0, ge=0)
    b_reading: float = Field(2.25, ge=0)
    k: int = Field(0, ge=0)
    bootstraps: int = Field(2000, ge=1)
    encoding: Literal["ordinal", "onehot"] = "ordinal"
    space: Literal["metric", "model"] = "metric"
    bias: float = Field(1.5, ge=0)
    data_rows: int = Field(0, ge=0)
    train: int = Field(5_000, ge=1)
    oracle: int = Field(20_000, ge=1)
    models: Annotated[tuple[str, ...], BeforeValidator(_read_names)] = ()

    @field_validator("generator")
    @classmethod
    def _check_generator(cls, generator: str) -> str:
        # raises where there is no such synthesizer, before any data are read
        make_synthesizer(SynthesizerConfig(name=generator))
        return generator

    @field_validator("models")
    @classmethod
    def _check_models(cls, models: tuple[str, ...]) -> tuple[str, ...]:
        known = {*CLASSIFIERS, *SIMULATED, *REGRESSORS}
        for name in models:
            if name not in known:
                raise ConfigError(
                    f"unknown model {name!r}", suggest_nearest(name, known)
                )
        return models

    @model_validator(mode="after")
    def _check_delta(self) -> Choice:
        # both are chances to fail, and a limit that fails every other time limits nothing
        if self.delta >= 0.5:
            raise ValueError("delta1 + delta2 must be below .5")
        return self

    @property
    def delta(self) -> float:
        """What every lower limit may fail with: delta1 + delta2."""
        return self.delta1 + self.delta2


def models_of(models: tuple[str, ...], choice: Choice) -> tuple[str, ...]:
    """Return the models asked for among those of a table, in the table's order.

    Examples
    --------
    >>> models_of(REGRESSORS, Choice(models="SVM, SVR"))
    ('SVR',)
    """
    if not choice.models:
        return models
    return tuple(name for name in models if name in choice.models)
