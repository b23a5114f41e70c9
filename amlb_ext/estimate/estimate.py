"""The true error of a model by every estimator that the rows at hand allow, the best valid first.

The way: ``inputs`` (files to losses) → real rows without labels → ``generated`` rows → ``checks``
→ intervals and bounds → the recommendation.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from amlb_ext.core.errors import ConfigError
from amlb_ext.estimate.answers import EstimateAnswers, EstimateReport
from amlb_ext.estimate.generated import Generator
from amlb_ext.estimate.inputs import EstimateRequest, read_inputs
from amlb_ext.estimate.osyn.run import OsynAsked
from amlb_ext.stats.bounded_loss import CLIP


def estimate(
    model: str,
    data: Path | str,
    *,
    target: str | None = None,
    kind: str | None = None,
    train: Path | str | None = None,
    unlabelled: Path | str | None = None,
    synthesizer: str | None = None,
    synthetic: Path | str | None = None,
    generated: int = 100_000,
    class_prior: Mapping[str, float] | Literal["train"] | None = None,
    drawn_at_random: bool = False,
    loss: str | None = None,
    clip: float | None = None,
    target_range: tuple[float, float] | None = None,
    error_cap: float | None = None,
    level: float = 0.95,
    osyn: Mapping[str, Any] | None = None,
    explore: bool = False,
    seed: int = 0,
    trust_pickle: bool = False,
    quiet: bool = True,
) -> EstimateReport:
    """Estimate the true error of a model from few labelled rows.

    Parameters
    ----------
    model : str
        A fitted model (``.skops``, or a pickle when trusted), a file of predictions row for row
        with ``data``, or a short name or import path that is fitted on ``train``.
    data : path
        The labelled rows, which the model must not have been fitted on.
    target, kind : str, optional
        As for a source.
    train : path, optional
        Training rows: for a model by name, for a synthesizer, for the range of the target. The
        labelled rows are compared with them.
    unlabelled : path, optional
        Real rows without labels, from the population whose error is asked for.
    synthesizer : str, optional
        Learns from ``train`` and makes ``generated`` rows.
    synthetic : path, optional
        A table of generated rows with targets, in place of a synthesizer.
    generated : int
    class_prior : mapping of str to float, or "train", optional
        Share of each class in the population, for rows drawn class by class; ``train``: those of
        the training rows.
    drawn_at_random : bool
        The labelled rows were drawn at random from the population whose error is asked for, even
        where the training rows contradict that.
    loss : str, optional
        ``zero_one``, ``brier``, ``log``; ``squared``, ``absolute``.
    clip : float, optional
        Least probability in the log loss.
    target_range : tuple of float, optional
        Of a regression target; the training rows' when omitted.
    error_cap : float, optional
        Largest error that counts in the squared and absolute loss, in units of the target.
    level : float
    osyn : mapping, optional
        See :class:`~amlb_ext.estimate.osyn.run.OsynAsked`.
    explore : bool
        Also sweep the settings of OSYN, for looking only.
    seed : int
    trust_pickle : bool
    quiet : bool

    Returns
    -------
    Report

    Raises
    ------
    ConfigError, SourceError, DataError, ModelError
        As the readers, models and estimators raise.
    """
    if not 0 < level < 1:
        raise ConfigError(f"level {level}", "give one between 0 and 1, e.g. .95")
    if synthesizer and synthetic:
        raise ConfigError(
            "both a synthesizer and a file of generated rows", "give one of them"
        )
    if generated < 1:
        raise ConfigError(f"{generated} generated rows", "give 1 or more")
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
    asked = EstimateRequest(
        model=model,
        data=_to_path(data),
        train=None if train is None else _to_path(train),
        others=tuple(
            _to_path(path) for path in (unlabelled, synthetic) if path is not None
        ),
        target=target,
        kind=kind,
        loss=loss,
        clip=CLIP if clip is None else clip,
        target_range=target_range,
        error_cap=error_cap,
        class_prior=class_prior or {},
        drawn_at_random=drawn_at_random,
        trust_pickle=trust_pickle,
        seed=seed,
    )
    settings = OsynAsked.read(osyn or {}, level)
    inputs = read_inputs(asked)
    answers = EstimateAnswers(inputs, level, seed)
    answers.from_labels()
    if unlabelled is not None:
        answers.with_unlabelled(_to_path(unlabelled))
    name = str(_to_path(synthetic)) if synthetic is not None else synthesizer
    if name:
        source = Generator(inputs, name, generated, seed, quiet)
        answers.with_generated(source, settings, explore)
    return answers.report(Path(model).name, asked.data.name)


def _to_path(path: Path | str) -> Path:
    return Path(path).expanduser()
