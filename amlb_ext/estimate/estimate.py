"""The true error of a model by every estimator that the rows at hand allow, the best valid first.

The steps: ``inputs`` (files to losses) → labelled rows → real rows without labels → ``generated``
rows → checks of the assumptions → the recommendation.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import Field

from amlb_ext.core.checked_call import Count, Level, Seed, checked_call
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.losses import SCORERS
from amlb_ext.estimate.answers import EstimateAnswers, EstimateReport
from amlb_ext.estimate.inputs import (
    EstimateRequest,
    Generator,
    read_inputs,
)
from amlb_ext.estimate.osyn.run import OsynChoices
from amlb_ext.models.answers import label_text
from amlb_ext.models.columns import Align
from amlb_ext.models.given_table import GivenTable
from amlb_ext.sources.table import Table
from amlb_ext.stats.bounded_loss import CLIP


@checked_call
def estimate(
    model: Any,
    data: Path | str | Table,
    *,
    target: str | None = None,
    kind: Literal["regression", "binary", "multiclass"] | None = None,
    train: Path | str | Table | None = None,
    unlabelled: Path | str | Table | None = None,
    synthesizer: str | None = None,
    synthetic: Path | str | None = None,
    generated: Count = 100_000,
    class_prior: Mapping[Any, float] | pd.Series | str | None = None,
    drawn_at_random: bool = False,
    loss: Any = None,
    clip: Annotated[float, Field(gt=0, lt=0.5)] | None = None,
    target_range: tuple[float, float] | None = None,
    error_cap: Annotated[float, Field(gt=0)] | None = None,
    level: Level = 0.95,
    osyn: Mapping[str, Any] | None = None,
    seed: Seed = 0,
    trust_pickle: bool = False,
    quiet: bool = True,
    given: GivenTable | None = None,
    align: Align = "auto",
) -> EstimateReport:
    """Estimate the true error of a model from few labelled rows.

    Parameters
    ----------
    model : str or object
        A fitted model in memory, see :class:`~amlb_ext.models.adapter.ModelAdapter`, or in a file
        (``.skops``, or a pickle when trusted), a file of predictions row for row
        with ``data``, or a short name or import path of a model to fit on ``train``.
    data : path or Table
        The labelled rows, on which the model must not have been fitted.
    target : NAME, optional
        Column to predict (default: the column that AMLB would choose).
    kind : {'regression', 'binary', 'multiclass'}, optional
        Kind of the target (default: inferred from the labelled rows).
    train : path, optional
        File of training rows, on which a named model or a synthesizer is fitted, which give the
        range of a regression target, and with which the labelled rows are compared.
    unlabelled : path, optional
        File of real rows without labels from the same population.
    synthesizer : NAME, optional
        Synthesizer that generates rows like those of ``train``: copula, vae, ...; such rows give
        bounds to look at and never to quote.
    synthetic : path, optional
        File of generated rows with their targets, in place of a synthesizer.
    generated : int
        Number of rows to generate.
    class_prior : mapping of class to float, Series or str, optional
        Share of each class in the population, for rows drawn class by class, as a mapping or as
        ``yes=.12,no=.88``; ``train`` for the shares of the training rows.
    drawn_at_random : bool
        Trust that the labelled rows were drawn at random from the population whose error is
        estimated, even if the training rows contradict it.
    loss : str or cost matrix, optional
        Loss whose mean is estimated: zero_one (default), balanced, brier or log_loss for classes,
        squared (default), absolute or pinball:.9 for numbers; or costs by true label, then by
        decision, see :func:`amlb_ext.core.losses.read_cost_matrix`.
    clip : P, optional
        Smallest probability in the log loss (default: 0.001).
    target_range : LOW HIGH, optional
        Range of a regression target, which bounds the loss (default: its range in the training
        rows).
    error_cap : E, optional
        Cap on the error in the squared and absolute loss, in the unit of the target; the intervals
        are narrower, and hold for the capped loss.
    level : float
        Confidence level of the intervals.
    osyn : mapping, optional
        See :class:`~amlb_ext.estimate.osyn.run.OsynChoices`.
    seed : int
        Random seed.
    trust_pickle : bool
        Load a pickle or joblib file; such a file can run any code, so use this for your own files
        only.
    quiet : bool
        Print errors only.
    given : GivenTable, optional
        The features of the labelled rows as a model in memory is to be given them.
    align : {'auto', 'index', 'position'}
        How predictions in memory belong to these, see :mod:`amlb_ext.models.columns`.

    Returns
    -------
    EstimateReport

    Raises
    ------
    ConfigError, SourceError, DataError, ModelError
        From the readers, models and estimators.
    """
    # Contradictions in the request first, before any file is read.
    shares: Mapping[str, float] | Literal["train"] = {}
    if isinstance(class_prior, pd.Series):
        class_prior = class_prior.to_dict()
    if class_prior == "train":
        shares = "train"
    elif isinstance(class_prior, str):
        shares = parse_class_prior(class_prior)
    elif class_prior is not None:
        shares = {label_text(label): share for label, share in class_prior.items()}
    if synthesizer and synthetic:
        raise ConfigError(
            "both a synthesizer and a file of generated rows", "give one of them"
        )
    if class_prior == "train" and drawn_at_random:
        raise ConfigError(
            "--class-prior train and --drawn-at-random contradict each other",
            "give the first if the training rows were drawn at random, the second if DATA was",
        )
    if class_prior == "train" and train is None:
        raise ConfigError(
            "--class-prior train without training rows",
            "add --train FILE, or write the shares: --class-prior yes=.12,no=.88",
        )
    if isinstance(loss, str) and (SCORERS.get(loss) or loss) == "balanced":
        _check_balanced(class_prior, unlabelled, synthesizer or synthetic)
    others = [path for path in (unlabelled, synthetic) if path is not None]
    request = EstimateRequest(
        model=model,
        data=_to_path(data),
        train=None if train is None else _to_path(train),
        others=tuple(_to_path(path) for path in others),
        target=target,
        kind=kind,
        loss=loss,
        clip=CLIP if clip is None else clip,
        target_range=target_range,
        error_cap=error_cap,
        class_prior=shares,
        drawn_at_random=drawn_at_random,
        trust_pickle=trust_pickle,
        seed=seed,
        given=given,
        align=align,
    )
    settings = OsynChoices.read(osyn or {}, level)
    if osyn and not (synthesizer or synthetic or unlabelled is not None):
        raise ConfigError(
            "settings of OSYN without rows for its bound",
            "give a synthesizer, generated rows or unlabelled ones",
        )

    inputs = read_inputs(request)
    answers = EstimateAnswers(inputs, level, seed)
    answers.from_labels()
    if unlabelled is not None:
        answers.with_unlabelled(_to_path(unlabelled))
    generator_name = synthesizer
    if synthetic is not None:
        generator_name = str(_to_path(synthetic))
    if generator_name:
        source = Generator(
            inputs, name=generator_name, n=generated, seed=seed, quiet=quiet
        )
        answers.with_generated(source, settings)
    name = Path(model).name if isinstance(model, str) else "F"
    return answers.report(name, request.data.name)


def _check_balanced(class_prior: Any, unlabelled: Any, generated: Any) -> None:
    """Raise ``ConfigError`` for what says nothing of the error of each class."""
    given = {
        "--class-prior": class_prior,
        "--unlabelled": unlabelled,
        "generated rows": generated,
    }
    for what, value in given.items():
        if value is not None:
            raise ConfigError(
                f"{what} with the balanced loss, in which each class counts alike",
                "leave it out: the labelled rows of each class are all that counts",
            )


def _to_path(given: Path | str | Table) -> Any:
    """Return the path of a file; a table in memory as it is."""
    return given if isinstance(given, Table) else Path(given).expanduser()


def parse_class_prior(text: str) -> dict[str, float]:
    """Return the share of each class that ``yes=.12,no=.88`` names; a class may hold ``=``.

    Raises
    ------
    ConfigError
        An item without ``=``, or a share that is no number.
    """
    shares = {}
    for item in filter(None, map(str.strip, text.split(","))):
        name, sign, share = item.rpartition("=")
        try:
            shares[name.strip()] = float(share)
        except ValueError:
            sign = ""
        if not (sign and name):
            raise ConfigError(
                f"--class-prior {item}: there is no CLASS=SHARE in it",
                "write yes=.12,no=.88",
            )
    return shares
