"""One engine for all studies: a grid of cells, those that are done in a CSV file, then a summary.

A study says which cells there are, reads the table that a cell's label names, and computes one
cell; all else is done here. A cell is a pure function of the settings, its table and its labels.
Its rows stand in ``cells.csv`` beside a hash of all that decides them, so the same command
continues a study that was stopped, a changed setting computes anew what it changes, and workers
change nothing but time.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import time
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import pandas as pd
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from amlb_ext.core.errors import (
    ConfigError,
    DataError,
    HardsynthError,
    SourceError,
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
#: What tells a cell from others, such as ``data`` and ``draw``: columns of its rows.
Labels = dict[str, Any]


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


class Seeded(Settings):
    """What a study may be told whose draws follow from a seed.

    Attributes
    ----------
    draws : int
        Repetitions.
    seed : int
        A draw depends on it, on its own number and on what tells its cell from others.
    """

    draws: int = Field(1, ge=1)
    seed: int = Field(0, ge=0)


class OneStream(Seeded):
    """The same, where a cell has all draws, since they share one random stream."""

    chooses: ClassVar[frozenset[str]] = frozenset()


def known_names(what: str, known: Iterable[str]) -> BeforeValidator:
    """Return the check of a setting that has some of known names: a list, or words of text.

    Parameters
    ----------
    what : str
        What has the names, for an error.
    known : iterable of str

    Examples
    --------
    >>> from typing import Annotated
    >>> class Fruits(Settings):
    ...     fruits: Annotated[tuple[str, ...], known_names("fruit", ("apple", "pear"))] = ()
    >>> Fruits(fruits="pear, apple").fruits
    ('pear', 'apple')
    """
    names = tuple(dict.fromkeys(known))

    def check(value: Any) -> Any:
        asked = value.replace(",", " ").split() if isinstance(value, str) else value
        for name in asked:
            if name not in names:
                nearest = suggest_nearest(str(name), names)
                raise ConfigError(f"unknown {what} {name!r}", nearest)
        return asked

    return BeforeValidator(check)


def asked_of(names: Iterable[str], asked: Collection[str]) -> list[str]:
    """Return those of some names that are asked for, in their order; all where none is.

    Examples
    --------
    >>> asked_of(["a", "b", "c"], ("c", "b", "x")), asked_of(["a", "b"], ())
    (['b', 'c'], ['a', 'b'])
    """
    return [name for name in names if not asked or name in asked]


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


def grid(
    **axes: str | Iterable[Any] | Callable[[Any], Iterable[Any]],
) -> Callable[..., Iterator[Labels]]:
    """Return the cells of a full design: every combination of the labels' values.

    Parameters
    ----------
    **axes
        Label → its values, the name of the setting that has them, or a function from the settings
        to them; a number, as ``draws`` is, stands for so many numbers from 0 on.

    Examples
    --------
    >>> [labels["draw"] for labels in grid(n=(50, 200), draw="draws")(Settings(draws=2))]
    [0, 1, 0, 1]
    """

    def cells(settings: Settings, _: Path | None = None) -> Iterator[Labels]:
        values = []
        for axis in axes.values():
            own = getattr(settings, axis) if isinstance(axis, str) else axis
            own = own(settings) if callable(own) else own
            values.append(range(own) if isinstance(own, int) else own)
        for combination in itertools.product(*values):
            yield dict(zip(axes, combination, strict=True))

    return cells


class Cell(NamedTuple):
    """One cell that is to be computed: its labels, and the table that they name."""

    labels: Labels
    table: Any


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
    cells : callable
        From the settings and the folder of data files (None: none was named) to the labels of
        every cell, see :func:`grid`.
    compute : callable
        From the settings, the table where ``load`` reads one, and the labels, by name, to
        :data:`Rows`; a function of a module, so that another process can import it.
    summarize : callable
        From all rows and the settings to tables, pictures and notes.
    small : dict
        Settings of a case that takes seconds.
    load : callable, optional
        From a name, the settings and the folder to a table. One that cannot be had is left out,
        and the page says why.
    names : str
        The label that names the table.
    needs_all : bool
        Whether a table that cannot be had ends the study before anything is written.
    files : bool
        Whether it reads data files that must be downloaded.
    defaults : str
        Where the defaults stand, if they are too long for a help.
    """

    name: str
    title: str
    group: str
    settings: Settings
    cells: Callable[[Any, Path | None], Iterable[Labels]]
    compute: Callable[..., Rows]
    summarize: Callable[[pd.DataFrame, Any], list[Part]]
    small: dict[str, Any]
    load: Callable[[str, Any, Path | None], Any] | None = None
    names: str = "data"
    needs_all: bool = False
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
    cells, left_out = _plan_cells(study, settings, data)
    if not cells:
        raise _nothing_run(study, left_out)
    folder = out / study.name / settings.part
    _claim_folder(folder, settings)
    names = [_hash_cell(study, settings, cell) for cell in cells]
    done = _read_cells(folder / CELLS)
    missing = {
        name: (study.compute, settings, cell, study.load is not None)
        for name, cell in zip(names, cells, strict=True)
        if name not in done
    }
    _compute_missing(study.name, missing, done, folder, workers=workers, quiet=quiet)
    # from the file, so that a cell just computed equals one read later
    done = _read_cells(folder / CELLS)
    rows = pd.concat([done[name] for name in names], ignore_index=True)
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
        page=page, left_out=left_out, computed=len(missing), cells=len(cells)
    )


def _plan_cells(
    study: Study, settings: Settings, folder: Path | None
) -> tuple[list[Cell], dict[str, str]]:
    """Return the cells with their tables, each read once, and why tables are left out."""
    tables: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    cells = []
    for labels in study.cells(settings, folder):
        name = str(labels.get(study.names))
        if study.load and name not in {*tables, *left_out}:
            try:
                tables[name] = study.load(name, settings, folder)
            except (SourceError, DataError) as error:
                if study.needs_all:
                    raise
                # the others are run, and the page says what lacks
                left_out[name] = str(error)
        if name not in left_out:
            cells.append(Cell(labels, tables.get(name)))
    return cells, left_out


def _nothing_run(study: Study, left_out: Mapping[str, str]) -> ConfigError:
    reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
    return ConfigError(
        f"{study.name}: nothing could be run: {reasons or 'no cell is asked for'}"
    )


def _hash_cell(study: Study, settings: Settings, cell: Cell) -> str:
    """Return a hash of everything that the rows of a cell depend on."""
    # a table that its name and the draw decide has no hash
    content = getattr(cell.table, "content_hash", "")
    parts = [__version__, study.name, settings.identity(), cell.labels, content]
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
    missing: Mapping[str, tuple[Any, ...]],
    done: dict[str, pd.DataFrame],
    folder: Path,
    *,
    workers: int,
    quiet: bool,
) -> None:
    """Compute cells and add them to the file, whatever ends the run.

    ``missing`` has what :func:`_compute` takes by the hash of the cell.
    """

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
    cell_names = list(missing)
    try:
        with Bar(total=len(missing), desc=name, unit="cell", disable=quiet) as bar:
            for index, table in run_jobs(_compute, missing.values(), n_workers):
                cell_name = cell_names[index]
                done[cell_name] = table.assign(**{CELL: cell_name})
                bar.update()
                if time.monotonic() - saved > SAVED_EVERY:
                    save()
                    saved = time.monotonic()
    finally:
        if done:
            save()


def _compute(
    compute: Callable[..., Rows], settings: Settings, cell: Cell, takes_table: bool
) -> pd.DataFrame:
    """Return a cell's rows with its labels, the processor seconds, and why there are none."""
    began = time.process_time()
    rows: Rows = []
    failure = ""
    tables = (cell.table,) if takes_table else ()
    try:
        rows = compute(settings, *tables, **cell.labels)
    except HardsynthError as error:
        # what one cell cannot do costs no other its rows
        failure = str(error)
    if not rows and not failure:
        failure = "it has no rows"
    seconds = time.process_time() - began
    labels = {key: str(value) for key, value in cell.labels.items()}
    table = pd.DataFrame(rows or [{VALUE: float("nan")}])
    return table.assign(**labels, **{SECONDS: seconds, FAILURE: failure})


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
