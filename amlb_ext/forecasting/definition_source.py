"""Series of an AMLB benchmark definition: a task of ``type: timeseries``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amlb_ext.amlb.configuration import resolve_directories, search_definition
from amlb_ext.amlb.definition import read_definition
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import ConfigError, SourceError, suggest_nearest
from amlb_ext.forecasting.panel import PanelRoles
from amlb_ext.sources.dataset_files import Place

_NEEDED = ("path", "target", "freq", "forecast_horizon_in_steps", "seasonality")


@dataclass(frozen=True, kw_only=True)
class DefinedSeries:
    """A forecasting task as a definition has it.

    Attributes
    ----------
    name : str
    path : Path
        The long table, downloaded where the definition has an address.
    roles : PanelRoles
    folds : int
        Test origins that AMLB would have.
    """

    name: str
    path: Path
    roles: PanelRoles
    folds: int


def find_defined_series(spec: str, options: SourceConfig) -> str | None:
    """Return the name of the one forecasting task that a spec stands for.

    Parameters
    ----------
    spec : str
        A definition's path or name, with ``#TASK`` for one of its tasks.
    options : SourceConfig

    Returns
    -------
    str or None
        None where the spec is no definition, or its tasks are not all of series.

    Raises
    ------
    ConfigError
        Several forecasting tasks; one suite has one.
    """
    base, _, only = spec.partition("#")
    if "://" in base:
        return None
    try:
        path = search_definition(base, options)
    except SourceError:
        return None
    if path is None or not path.is_file():
        return None
    entries = dict(read_definition(path))
    names = [name for name in entries if not only or name.lower() == only.lower()]
    if not names or not all(_is_series(entries[name]) for name in names):
        return None
    if len(names) > 1:
        raise ConfigError(
            f"{path.name} has {len(names)} forecasting tasks, a suite is made of one",
            f"name it: {base}#{names[0]}",
        )
    return names[0]


def _is_series(entry: dict[str, Any]) -> bool:
    dataset = entry.get("dataset")
    return isinstance(dataset, dict) and dataset.get("type") == "timeseries"


def load_defined_series(spec: str, options: SourceConfig) -> DefinedSeries:
    """Return a forecasting task of a definition; its file is downloaded where it must be.

    Raises
    ------
    SourceError, NetworkError
        The spec names no forecasting task, a setting is missing, or there is no such file.
    """
    base, _, _ = spec.partition("#")
    name = find_defined_series(spec, options)
    path = search_definition(base, options)
    if name is None or path is None:
        raise SourceError(
            f"{spec} is no forecasting task", "give a task of type: timeseries"
        )
    entry = dict(read_definition(path))[name]
    dataset = entry["dataset"]
    for key in _NEEDED:
        if dataset.get(key) is None:
            raise SourceError(
                f"{path.name}: task {name!r} has no {key!r}",
                f"add it; {suggest_nearest(key, [str(known) for known in dataset])}",
            )
    place = Place(name, path.parent, resolve_directories(options), options)
    return DefinedSeries(
        name=name,
        path=place.resolve(dataset["path"]),
        roles=PanelRoles(
            series=str(dataset.get("id_column") or "item_id"),
            time=str(dataset.get("timestamp_column") or "timestamp"),
            target=str(dataset["target"]),
            horizon=int(dataset["forecast_horizon_in_steps"]),
            season=int(dataset["seasonality"]),
            frequency=str(dataset["freq"]),
        ),
        folds=int(entry.get("folds") or 1),
    )
