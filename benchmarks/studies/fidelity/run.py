"""Runs a study: one job for each table and seed, each result a file of its own.

A finished draw is never computed again unless the protocol or the table changed, so a study may
be stopped at any time and continued by the same command; workers change nothing but time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from amlb_ext.core.errors import ConfigError, HardsynthError, SuiteError
from amlb_ext.core.files import write_text
from amlb_ext.core.task import Task
from benchmarks.studies.engine import Repetition, hash_key, run_repetitions
from benchmarks.studies.fidelity.draw import make_draw
from benchmarks.studies.fidelity.judge import judge_answer
from benchmarks.studies.fidelity.protocol import Phase, Protocol, Seeds
from benchmarks.studies.fidelity.registry import find_method
from benchmarks.studies.fidelity.sample import Sample
from benchmarks.studies.fidelity.tables import load_table
from amlb_ext.suite.sealed_json import json_text

#: Folder of the results, and file of the protocol that they belong to.
DRAWS = "draws"
PROTOCOL = "protocol.json"


def run_study(
    protocol: Protocol,
    phase: Phase,
    out: Path,
    *,
    data: Path = Path(),
    draws: int | None = None,
    workers: int = 0,
    quiet: bool = True,
) -> list[dict[str, Any]]:
    """Run or continue the draws of one phase; return one record per draw and sample.

    Parameters
    ----------
    protocol : Protocol
    phase : {'exploratory', 'confirmatory'}
    out : Path
        Folder of the results; it may hold both phases of one protocol.
    data : Path
        Folder of the tables' files.
    draws : int, optional
        How many draws to make in place of the declared number; see :func:`phase_seeds`.
    workers : int
        Processes; 0 for every core.
    quiet : bool

    Returns
    -------
    list of dict
        ``table, seed, n, first, baseline, pool, bad_share, bad, answers, without``; answers map
        method and reference to the figures of
        :func:`~benchmarks.studies.fidelity.judge.judge_answer`,
        ``without`` maps a method that has no answer to the reason.

    Raises
    ------
    ConfigError
        An unknown method, no table in this phase, more draws than may be made, or a folder of
        another protocol.
    DataError, SourceError
        A table that is too small or cannot be read.
    """
    # a misspelt method is found before a table is loaded, not after hours
    methods = protocol.used_methods()
    for name in methods:
        find_method(name)
    if not methods:
        raise ConfigError(
            "the protocol names no method", "declare contrasts or methods"
        )
    tables = protocol.tables_of(phase)
    if not tables:
        raise ConfigError(f"no table for the {phase} phase", "add one under 'tables'")
    seeds = phase_seeds(protocol, phase, draws)
    # all tables are read before anything is written: one may be missing
    tasks = {name: load_table(name, table, data) for name, table in tables.items()}
    _claim_folder(protocol, out)
    repetitions = []
    for name, task in sorted(tasks.items()):
        for seed in sorted(seeds):
            # the seed is not part of the key: it is part of the file's name
            repetition = Repetition(
                path=draw_file(out, phase, name, seed),
                key=hash_key(protocol.sha256, task.content_hash),
                compute=compute_draw,
                arguments=(task, name, seed, protocol),
            )
            repetitions.append(repetition)
    results = run_repetitions(
        repetitions,
        name=f"{phase} draws",
        unit="draw",
        workers=workers,
        quiet=quiet,
    )
    records = []
    for result in results:
        records += result["records"]
    return records


def phase_seeds(
    protocol: Protocol, phase: Phase, draws: int | None = None
) -> tuple[int, ...]:
    """Return the seeds of a phase, or the first ``draws`` from its first seed on.

    The exploratory phase may take more than declared, as far as the confirmatory seeds; the
    confirmatory phase only fewer.

    Raises
    ------
    ConfigError
        More draws than that, or none.

    Examples
    --------
    >>> phase_seeds(Protocol(), "confirmatory", 2)
    (1000, 1001)
    """
    declared: Seeds = getattr(protocol.seeds, phase)
    if draws is None:
        return declared.values()
    if draws < 1:
        raise ConfigError(f"{draws} draws were asked for", "give 1 or more")
    seeds = tuple(range(declared.first, declared.first + draws))
    if phase == "confirmatory" and draws > declared.draws:
        # more draws after a look at the first would not confirm what was declared
        raise ConfigError(
            f"{draws} confirmatory draws were asked for, the protocol declares {declared.draws}",
            "declare more under 'seeds' in a new protocol, and choose a new folder",
        )
    confirmatory = protocol.seeds.confirmatory
    if phase == "exploratory" and set(seeds) & set(confirmatory.values()):
        raise ConfigError(
            f"{draws} exploratory draws would use seeds of the confirmatory phase",
            f"give fewer than {confirmatory.first - declared.first + 1}",
        )
    return seeds


def draw_file(out: Path, phase: Phase, table: str, seed: int) -> Path:
    """Return where one draw's records stand."""
    return out / DRAWS / phase / f"{table}_{seed}.json"


def _claim_folder(protocol: Protocol, out: Path) -> None:
    """Write the protocol down before the first draw; refuse a folder of another one."""
    path = out / PROTOCOL
    entry = protocol.model_dump(mode="json")
    if path.exists():
        if _read_json(path) == entry:
            return
        # exploring may change the protocol; what was confirmed is tied to the one declared
        if any((out / DRAWS / "confirmatory").glob("*.json")):
            raise ConfigError(
                f"{out} holds confirmatory draws of another protocol; contrasts declared after "
                "they were seen confirm nothing",
                "choose another folder with -o, and fresh seeds",
            )
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise SuiteError(
            f"{out} is not empty and holds no study", "choose another folder with -o"
        )
    write_text(path, json_text(entry))


def _read_json(path: Path) -> Any:
    """Return a JSON file's content; None when it is missing or damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def compute_draw(
    task: Task, table: str, seed: int, protocol: Protocol
) -> dict[str, Any]:
    """Return the records of one draw under ``records``; see :func:`draw_records`."""
    return {"records": draw_records(task, table, seed, protocol)}


def draw_records(
    task: Task, table: str, seed: int, protocol: Protocol
) -> list[dict[str, Any]]:
    """Return the records of one draw, one for each sample of S."""
    draw = make_draw(task, table, seed, protocol)
    records = []
    for rows in sample_positions(protocol.sizes.labelled):
        s = Sample(draw, rows)
        answers, without = judge_methods(s, protocol.used_methods())
        records.append(
            {
                "table": table,
                "seed": seed,
                "baseline": draw.baseline,
                "n": len(rows),
                "first": int(rows[0]),
                "bad": len(s.bad),
                "candidates": list(draw.names),
                **draw.facts,
                "answers": answers,
                "without": without,
            }
        )
    return records


def judge_methods(
    s: Sample, names: Sequence[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the figures of each method on a sample, and why others have no answer."""
    answers: dict[str, Any] = {}
    without: dict[str, str] = {}
    for name in names:
        try:
            answer = find_method(name).function(s)
        except HardsynthError as error:
            # one method's failure costs no other its answer
            without[name] = error.message
            continue
        if answer is None:
            without[name] = "no rows"
        # a ranking needs a number for every candidate
        elif not np.isfinite(answer.point).all():
            without[name] = "a score that is no number"
        else:
            figures: dict[str, Any] = {"rows": answer.rows}
            for reference, delta in s.draw.references.items():
                figures[reference] = judge_answer(answer, delta)
            answers[name] = figures
    return answers, without


def sample_positions(sizes: Sequence[int]) -> list[np.ndarray]:
    """Return which labelled rows make each S: the small sizes twice, on rows of their own.

    Examples
    --------
    >>> [(len(rows), int(rows[0])) for rows in sample_positions([200, 1000])]
    [(200, 0), (200, 200), (1000, 0)]
    """
    n_labelled = max(sizes)
    positions = []
    for n in sorted(sizes):
        # two samples of a draw are averaged, which costs no further fit
        n_samples = 2 if 2 * n <= n_labelled else 1
        for k in range(n_samples):
            positions.append(np.arange(k * n, (k + 1) * n))
    return positions
