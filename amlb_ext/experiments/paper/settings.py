"""What each table and figure runs: Table 2 and the readings, row by row."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import yaml

from amlb_ext.core.config import BaselineConfig, GenerateConfig, build_config
from amlb_ext.core.errors import ConfigError, suggest_nearest
from amlb_ext.core.presets import TABLE_2, Layer
from amlb_ext.experiments.paper.data import DATA
from amlb_ext.experiments.paper.readings import ALLOWED, Readings

#: Levels of Table 1 (section 5.4).
LEVELS = (0.005, 0.02, 0.05, 0.1)


@dataclass(frozen=True)
class Setting:
    """One row of a table: everything a split of it depends on, but the data.

    Attributes
    ----------
    name : str
        As in ``printed.yaml``.
    config : GenerateConfig
    candidate : BaselineConfig
        G.
    readings : Readings
    sampled : bool
        Whether a synthesizer is trained; Table 1 has none.
    """

    name: str
    config: GenerateConfig
    candidate: BaselineConfig
    readings: Readings
    sampled: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, for keys and manifests."""
        without = {"source", "split", "name"}
        config = self.config.model_dump(
            mode="json", exclude=without, exclude_defaults=True
        )
        entry = {
            "name": self.name,
            "config": config,
            "candidate": self.candidate.model_dump(),
        }
        plain = dataclasses.asdict(Readings())
        read = {
            k: v for k, v in dataclasses.asdict(self.readings).items() if v != plain[k]
        }
        return entry | {"readings": read, "sampled": self.sampled}


@dataclass(frozen=True)
class Experiment:
    """One table or figure.

    Attributes
    ----------
    name, title : str
    rows : dict of str to dict
        Data set → layers of settings by row; the rows of one data set share their splits.
    splits : int
        As in the paper; a figure shows one.
    figure : str
        What is drawn; empty for a table, which stands beside that of ``printed.yaml``.
    sampled : bool
        Whether synthetic rows are made.
    """

    name: str
    title: str
    rows: dict[str, dict[str, Layer]]
    splits: int = 31
    figure: str = ""
    sampled: bool = True


def candidate_config(family: str, readings: Readings) -> BaselineConfig:
    """Return G: XGBoost where it is installed, else scikit-learn's gradient boosting.

    "Gradient boosting, 100 trees, depth 3" (section 5.3) and XGBoost, 200 trees, depth 3 (5.5).
    NOTE[DIFF]: the rate is .3, XGBoost's own: with scikit-learn's .1, G's errors on X_b of the toy
    are two to three times the printed ones.
    """
    trees = {"n_estimators": 200 if family == "classification" else 100, "max_depth": 3}
    params = {**trees, "learning_rate": readings.learning_rate}
    if find_spec("xgboost"):
        return BaselineConfig(model="xgboost", params=params)
    return BaselineConfig(model="gradient_boosting", params=params)


def baseline_layer(family: str) -> dict[str, Any]:
    """Return F (sections 5.3 to 5.5); it sees ordinal codes of categories (section 4.3.1)."""
    if family == "classification":
        trees = {"n_estimators": 200, "max_depth": 3}
        return {"model": "random_forest", "params": trees, "encoding": "ordinal"}
    name = "Ridge" if family == "toy" else "LinearRegression"
    return {"model": f"sklearn.linear_model.{name}", "encoding": "ordinal"}


def settings_of(
    experiment: Experiment, data: str, changes: Mapping[str, Any] | None = None
) -> list[Setting]:
    """Return one setting per row of an experiment on one of its data sets.

    Parameters
    ----------
    experiment : Experiment
    data : str
    changes : mapping, optional
        From ``section.key`` of the configuration, or a name of :class:`Readings`, to its value.

    Raises
    ------
    ConfigError
        An unknown name, or a value that is not allowed.

    Examples
    --------
    >>> setting = settings_of(EXPERIMENTS["table-a1"], "toy_10", {"search.kappa": 0.3})[0]
    >>> setting.config.search.kappa, setting.config.synthesizer.latent
    (0.3, 64)
    """
    layer, read = split_changes(changes or {})
    readings = dataclasses.replace(Readings(), **read)
    family = DATA[data].family
    out = []
    for name, row in experiment.rows[data].items():
        below = {
            "preset": "literal",
            "baseline": baseline_layer(family),
            "train_hard": False,
        }
        config = build_config(below, row, layer)
        out.append(
            Setting(
                name,
                config,
                candidate_config(family, readings),
                readings,
                experiment.sampled,
            )
        )
    return out


def split_changes(changes: Mapping[str, Any]) -> tuple[Layer, dict[str, Any]]:
    """Return the changes of the configuration as a layer, and those of the readings.

    Raises
    ------
    ConfigError
        A word that is neither, or a value that a reading does not have.
    """
    fields = {field.name for field in dataclasses.fields(Readings)}
    layer: Layer = {}
    read: dict[str, Any] = {}
    for key, value in changes.items():
        section, dot, name = key.partition(".")
        if dot:
            layer.setdefault(section, {})[name] = value
        elif key in fields:
            read[key] = value
        else:
            raise ConfigError(
                f"unknown reading {key!r}",
                suggest_nearest(key, fields) + "; settings are section.key",
            )
    for key, value in read.items():
        if value not in ALLOWED.get(key, (value,)):
            words = ", ".join(map(str, ALLOWED[key]))
            raise ConfigError(f"{key} = {value!r}", f"one of {words} is wanted")
    return layer, read


def read_changes(words: list[str]) -> dict[str, Any]:
    """Read ``KEY=VALUE`` words; values are YAML.

    Examples
    --------
    >>> read_changes(["search.kappa=0.3", "pool=test"])
    {'search.kappa': 0.3, 'pool': 'test'}
    """
    found = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not sign:
            raise ConfigError(
                f"{word!r} is no KEY=VALUE", "write --set search.kappa=0.3"
            )
        found[key] = yaml.safe_load(value)
    return found


def _rows(family: str) -> dict[str, Layer]:
    rule = "band" if family == "classification" else "absolute"
    return {
        f"{alpha:g}": {"hardness": {"rule": rule, "alpha": alpha}, **layer}
        for alpha, layer in TABLE_2[family].items()
    }


def _levels() -> dict[str, Layer]:
    """Return Table 1's rows: alpha .1, xi of four standard deviations (section 5.4)."""
    base = _rows("regression")["0.1"]
    return {
        f"{s:g}": {**base, "search": {**base["search"], "sigma2": s**2}} for s in LEVELS
    }


_TOY = {f"toy_{row}": {row: _rows("toy")["0.1"]} for row in ("10", "56", "75")}
_FLATS = {name: _rows("regression") for name in ("housing", "simulated")}
_LEVELS = {name: _levels() for name in _FLATS}
_CLASSES = _rows("classification")


def _figure(name: str, title: str, what: str, rows: dict[str, dict[str, Layer]],
            sampled: bool = False) -> Experiment:  # fmt: skip
    return Experiment(name, title, rows, 1, what, sampled)


EXPERIMENTS: dict[str, Experiment] = {
    e.name: e
    for e in (
        Experiment("table-1", "Table 1: levels of perturbation", _LEVELS, sampled=False),
        Experiment("table-a1", "Table A1: the toy", _TOY),
        Experiment("table-a2", "Table A2: regression", _FLATS),
        Experiment("table-a3", "Table A3: classification", {"diabetes": _CLASSES}),
        _figure("figure-3", "Figure 3: the toy, step by step", "steps",
                {"toy_10": _TOY["toy_10"]}, True),
        _figure("figure-4", "Figure 4: F on bad and augmented rows, by level", "levels", _LEVELS),
        _figure("figure-5", "Figure 5: targets of test, bad and augmented rows", "targets",
                _LEVELS),
        _figure("figure-6", "Figure 6: F on the test rows, by threshold", "thresholds", _FLATS),
        _figure("figure-7", "Figure 7: ROC curves", "roc",
                {"diabetes": {"0.505": _CLASSES["0.505"]}}, True),
        _figure("figure-8", "Figure 8: t-SNE of good, bad, augmented and synthetic rows", "maps",
                {"housing": {"0.1": _FLATS["housing"]["0.1"]},
                 "diabetes": {"0.505": _CLASSES["0.505"]}}, True),
    )
}  # fmt: skip
