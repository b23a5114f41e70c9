"""One engine for all studies: a grid of cells, those that are done in a CSV file, then a summary.

A cell is a pure function of its arguments. Its rows stand in ``cells.csv`` beside a hash of all
that decides them, so the same command continues a study that was stopped, a changed setting
computes anew what it changes, and workers change nothing but time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from amlb_ext.core.errors import (
    ConfigError,
    HardsynthError,
    SuiteError,
    suggest_nearest,
)
from amlb_ext.core.files import write_file, write_text
from amlb_ext.core.parallel import available_cores, run_jobs
from amlb_ext.core.progress import Bar
from amlb_ext.core.version import __version__
from benchmarks.studies.page import Part, write_page

#: Files of a study's folder.
CELLS, SETTINGS = "cells.csv", "settings.json"
#: Columns of :data:`CELLS` beside the labels of the rows.
CELL, SECONDS, FAILURE, VALUE = "cell", "seconds", "failure", "value"
#: Cells that were finished within so many seconds are saved together.
SAVED_EVERY = 5.0

#: Of one cell: labels, and the number under ``value``.
Rows = list[dict[str, Any]]


class Settings(BaseModel):
    """What a study may be told; subclasses add to it.

    Attributes
    ----------
    draws : int
        Repetitions; each has random streams of its own, keyed by its number.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    #: Fields that choose which cells there are and do not change what one gives.
    chooses: ClassVar[frozenset[str]] = frozenset({"draws"})

    draws: int = Field(1, ge=0)

    def identity(self) -> dict[str, Any]:
        """Return what decides the rows of a cell, as JSON values."""
        return self.model_dump(mode="json", exclude=set(self.chooses))

    @property
    def part(self) -> str:
        """The part of a study that has several, such as a phase: a folder of its own."""
        return ""

    @property
    def is_confirmatory(self) -> bool:
        """Whether nothing may change once a cell is computed."""
        return False


AnySettings = TypeVar("AnySettings", bound=BaseModel)


def read_settings(
    kind: type[AnySettings], values: Mapping[str, Any], where: str
) -> AnySettings:
    """Return checked settings.

    Raises
    ------
    ConfigError
        An unknown name, or a value that is not allowed.

    Examples
    --------
    >>> read_settings(Settings, {"draw": 3}, "table-a1")
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.ConfigError: table-a1: draw: extra inputs are not permitted \
(did you mean 'draws'? known: draws)
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        # the first problem is enough: later ones often follow from it
        problem = error.errors()[0]
        location = [str(key) for key in problem["loc"]]
        hint = ""
        if problem["type"] == "extra_forbidden":
            hint = suggest_nearest(location[-1], kind.model_fields)
        place = ".".join(location) or "settings"
        raise ConfigError(f"{where}: {place}: {problem['msg'].lower()}", hint) from None


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell: its labels, and what computes it.

    Attributes
    ----------
    labels : dict
        Columns of its rows that tell it from other cells, such as ``data`` and ``draw``.
    compute : callable
        Returns :data:`Rows`; a function of a module, so that another process can import it.
    arguments : tuple
    content : str
        Hash of the data, where they are not named by the labels.
    """

    labels: dict[str, Any]
    compute: Callable[..., Rows]
    arguments: tuple[Any, ...]
    content: str = ""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The cells of a study, and what could not be had for it (name → reason)."""

    cells: Sequence[Cell]
    left_out: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Study:
    """A table, a figure or an experiment.

    Attributes
    ----------
    name, title : str
    group : str
        Studies of one group can be run by its name.
    settings : Settings
        The defaults.
    plan : callable
        From settings and the folder of data files (None: none was named) to the cells.
    summarize : callable
        From all rows and the settings to tables, pictures and notes.
    small : dict
        Settings of a case that takes seconds.
    files : bool
        Whether it reads data files that must be downloaded.
    defaults : str
        Where the defaults stand, if they are too long for a help.
    """

    name: str
    title: str
    group: str
    settings: Settings
    plan: Callable[[Any, Path | None], Plan]
    summarize: Callable[[pd.DataFrame, Any], list[Part]]
    small: dict[str, Any]
    files: bool = False
    defaults: str = ""

    def changed(self, changes: Mapping[str, Any]) -> Settings:
        """Return the settings with some of them changed; ``section.key`` goes into ``config``.

        Raises
        ------
        ConfigError
            An unknown setting, or a value that is not allowed.
        """
        values = self.settings.model_dump(mode="python")
        for key, value in changes.items():
            section, dot, name = key.partition(".")
            if dot and "config" in values:
                values["config"].setdefault(section, {})[name] = value
            else:
                values[key] = value
        return read_settings(type(self.settings), values, self.name)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a run."""

    page: Path
    left_out: dict[str, str]
    computed: int
    cells: int


def run_study(
    study: Study,
    settings: Settings,
    out: Path,
    *,
    data: Path | None = None,
    workers: int = 0,
    quiet: bool = True,
    command: str = "",
    notes: Sequence[str] = (),
) -> Outcome:
    """Run or continue a study and write its page.

    Parameters
    ----------
    study : Study
    settings : Settings
    out : Path
        The study's folder is made in it.
    data : Path, optional
        Folder of the data files.
    workers : int
        Processes; 0 for every core.
    quiet : bool
        Show no progress bar.
    command : str
        What reproduces it, for the page.
    notes : sequence of str
        Further lines of the page.

    Raises
    ------
    ConfigError
        Nothing could be run, or the folder holds confirmatory draws by other settings.
    """
    plan = study.plan(settings, data)
    if not plan.cells:
        raise _nothing_run(study, plan.left_out)
    folder = out / study.name / settings.part
    _claim_folder(folder, settings)
    names = [_hash_cell(study, settings, cell) for cell in plan.cells]
    done = _read_cells(folder / CELLS)
    missing = [
        (name, cell)
        for name, cell in zip(names, plan.cells, strict=True)
        if name not in done
    ]
    _compute_missing(study.name, missing, done, folder, workers=workers, quiet=quiet)
    # from the file, so that a cell just computed equals one read later
    done = _read_cells(folder / CELLS)
    rows = pd.concat([done[name] for name in names], ignore_index=True)
    left_out = dict(plan.left_out)
    failed = rows[FAILURE] != ""
    for row in rows[failed].to_dict(orient="records"):
        labels = [row[label] for label in ("data", "row", "table") if row.get(label)]
        left_out.setdefault(" ".join(labels) or study.name, row[FAILURE])
    rows = rows[~failed].reset_index(drop=True)
    if not len(rows):
        raise _nothing_run(study, left_out)
    seconds = rows.groupby(CELL)[SECONDS].first().sum()
    page = write_page(
        folder,
        title=study.title,
        parts=study.summarize(rows, settings),
        facts={
            "command": command,
            "settings": _shown_settings(study, settings),
            "draws": ", ".join(dict.fromkeys(rows["draw"])) if "draw" in rows else "",
            "processor time": f"{seconds:.0f} s",
            "version": __version__,
        },
        notes=[*notes, *(f"Left out: {name}: {why}" for name, why in left_out.items())],
    )
    return Outcome(
        page=page, left_out=left_out, computed=len(missing), cells=len(plan.cells)
    )


def _nothing_run(study: Study, left_out: Mapping[str, str]) -> ConfigError:
    reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
    return ConfigError(
        f"{study.name}: nothing could be run: {reasons or 'no cell is asked for'}"
    )


def _hash_cell(study: Study, settings: Settings, cell: Cell) -> str:
    """Return a hash of everything that the rows of a cell depend on."""
    parts = [__version__, study.name, settings.identity(), cell.labels, cell.content]
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _shown_settings(study: Study, settings: Settings) -> str:
    """Return the settings that differ from the study's own."""
    own = study.settings.model_dump(mode="json")
    now = settings.model_dump(mode="json")
    changed = {key: value for key, value in now.items() if value != own[key]}
    return json.dumps(changed) if changed else "the study's own"


def _claim_folder(folder: Path, settings: Settings) -> None:
    """Write the settings down before the first cell; refuse to confirm what was changed since.

    Raises
    ------
    ConfigError
        Confirmatory cells of other settings stand there.
    SuiteError
        The folder is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise SuiteError(f"{folder} is a file", "choose a folder with -o")
    entry = settings.model_dump(mode="json", exclude={"draws"})
    path = folder / SETTINGS
    before = None
    with contextlib.suppress(OSError, ValueError):
        before = json.loads(path.read_text(encoding="utf-8"))
    if settings.is_confirmatory and before not in (None, entry):
        raise ConfigError(
            f"{folder} holds confirmatory draws of another protocol; contrasts declared after "
            "they were seen confirm nothing",
            "choose another folder with -o, and fresh seeds",
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(entry, indent=1) + "\n")


def _read_cells(path: Path) -> dict[str, pd.DataFrame]:
    """Return the rows of each finished cell by its hash; labels are text."""
    if not path.is_file():
        return {}
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    for name in (SECONDS, VALUE):
        table[name] = [float(text or "nan") for text in table[name]]
    return {str(name): rows for name, rows in table.groupby(CELL, sort=False)}


def _compute_missing(
    name: str,
    missing: Sequence[tuple[str, Cell]],
    done: dict[str, pd.DataFrame],
    folder: Path,
    *,
    workers: int,
    quiet: bool,
) -> None:
    """Compute cells and add them to the file, whatever ends the run."""

    def save() -> None:
        table = pd.concat(done.values(), ignore_index=True)
        ends = [SECONDS, FAILURE, VALUE]
        labels = [column for column in table if column not in (CELL, *ends)]
        table = table[[CELL, *labels, *ends]]
        write_file(folder / CELLS, lambda part: table.to_csv(part, index=False))

    if not missing:
        return
    # no more processes than there is work: each takes a second to start
    n_workers = min(workers or available_cores(), len(missing))
    saved = time.monotonic()
    jobs = ((cell.compute, cell.arguments) for _, cell in missing)
    try:
        with Bar(total=len(missing), desc=name, unit="cell", disable=quiet) as bar:
            for index, (rows, failure, seconds) in run_jobs(_compute, jobs, n_workers):
                cell_name, cell = missing[index]
                table = pd.DataFrame(rows or [{VALUE: float("nan")}])
                labels = {key: str(value) for key, value in cell.labels.items()}
                done[cell_name] = table.assign(
                    **labels, cell=cell_name, seconds=seconds, failure=failure
                )
                bar.update()
                if time.monotonic() - saved > SAVED_EVERY:
                    save()
                    saved = time.monotonic()
    finally:
        if done:
            save()


def _compute(
    compute: Callable[..., Rows], arguments: tuple[Any, ...]
) -> tuple[Rows, str, float]:
    """Return a cell's rows, or why it has none, and the processor seconds it took."""
    began = time.process_time()
    rows: Rows = []
    failure = ""
    try:
        rows = compute(*arguments)
    except HardsynthError as error:
        # what one cell cannot do costs no other its rows
        failure = str(error)
    if not rows and not failure:
        failure = "it has no rows"
    return rows, failure, time.process_time() - began


def flat_rows(value: Any, *names: str, **labels: Any) -> Iterator[dict[str, Any]]:
    """Yield the numbers of nested mappings as rows, one label per level.

    Parameters
    ----------
    value : mapping
        Nested as deep as there are names; None stands for no number, and is left out.
    *names : str
        Of the labels, from the outside in.
    **labels
        Of every row.

    Examples
    --------
    >>> list(flat_rows({"F": {"mse": 0.5}}, "model", "measure", part="bad"))
    [{'part': 'bad', 'model': 'F', 'measure': 'mse', 'value': 0.5}]
    """
    if not names:
        if value is not None:
            yield {**labels, VALUE: float(value)}
        return
    for key, inner in value.items():
        yield from flat_rows(inner, *names[1:], **labels, **{names[0]: key})
