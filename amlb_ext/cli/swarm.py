"""``hardsynth swarm``: a swarm of generators searched for hard rows, and what they are worth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from amlb_ext.cli.command import Jobs, command
from amlb_ext.cli.display import print_json
from amlb_ext.cli.settings import READING_SETTINGS
from amlb_ext.core.checked_call import Count
from amlb_ext.core.config import build_config
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import check_sources

#: Settings of ``generate`` that serve here as well.
_SETTINGS = READING_SETTINGS | {
    ("seed",),
    *[("source", name) for name in ("target", "kind", "keep")],
}


@command(
    group="research",
    settings=_SETTINGS,
    everyday={
        "what is searched": ("source", "--target", "objective", "takers"),
        "how": ("preset", "search", "labels", "no_baselines", "anyway"),
        "output": ("out", "--seed", "jobs", "json"),
    },
)
def swarm(
    source: str,
    *,
    out: Path,
    objective: str = "difficult",
    preset: str = "honest",
    search: str | None = None,
    labels: str | None = None,
    takers: Sequence[str] = (),
    user_rows: Path | None = None,
    folds: Count = 1,
    rows: Count = 500,
    generators: Count = 8,
    iterations: Count | None = None,
    least_rows: Count = 300,
    no_baselines: bool = False,
    anyway: bool = False,
    device: Literal["auto", "cpu"] = "auto",
    force: bool = False,
    jobs: Jobs = 0,
    quiet: bool = False,
    json: bool = False,
    settings: dict[str, Any],
) -> int:
    """Search for hard rows with a swarm of generators, and report their worth.

    Tune copies of one generator on clusters of a table, search their mixtures for rows on which
    given models fail, and write a suite with the rows, an audit on real rows and baselines with the
    same budget. Use it as a stress test, never to rank models.

    Parameters
    ----------
    source : SOURCE
        bundled/NAME, the file of a table, openml/t/ID
    out : DIR
        the suite's folder
    objective : NAME|A=.6,B=.4
        difficult, separate, novel, consistent, personalised, or weights that add up to 1 (default:
        difficult)
    preset : NAME
        honest: what a teacher could improve, only near real rows; literal: as the paper says;
        literal_code: as its code does
    search : NAME
        pso, code, cma, affine or soups (default: set by the preset; honest: affine and cma)
    labels : NAME
        excess, soft, hard or own (default: set by the preset)
    takers : MODEL
        models to test: names of candidates, or import paths of estimators (default: linear
        neighbours_25 tree_8 boosting_slow)
    user_rows : FILE
        for the objective 'personalised': rows that made rows should resemble
    folds : int
        folds to search
    rows : int
        rows to write for each fold
    generators : int
        initial generators
    iterations : int
        of the particle swarm; they set the budget of every search (default: the preset's)
    least_rows : int
        training rows that each of four roles needs
    no_baselines : bool
        leave out the baselines, which take most of the time
    anyway : bool
        search even if no model can be beaten on real rows
    device : str
        auto trains on a GPU if there is one

    Examples
    --------
    $ hardsynth swarm data.csv --target y -o s
    $ hardsynth swarm bundled/digits --preset literal --no-baselines -o s
    """
    config = build_config(settings)
    check_sources((source,))
    # a mistyped path, and then a mistyped flag, must not wait for the heavy imports below
    from amlb_ext.swarm.initial import InitialSettings
    from amlb_ext.swarm.page import short_text
    from amlb_ext.swarm.prepare import SwarmRequest
    from amlb_ext.swarm.run import PAGE, SwarmRun, swarm_suite
    from amlb_ext.swarm.search import make_plan

    if user_rows and not user_rows.is_file():
        raise ConfigError(
            f"no file {user_rows}",
            "--user-rows FILE, a table with the same columns",
        )
    request = SwarmRequest(
        objective=objective,
        plan=make_plan(preset, labels=labels, search=search, iterations=iterations),
        initial=InitialSettings(n_generators=generators, device=device),
        takers=tuple(takers),
        rows=rows,
        least_rows=least_rows,
        anyway=anyway,
        with_baselines=not no_baselines,
        seed=config.seed,
        relations=config.relations,
    )
    report = swarm_suite(
        SwarmRun(
            source=source,
            out=out,
            request=request,
            options=config.source,
            folds=folds,
            user_rows=user_rows,
            jobs=jobs,
            force=force,
        )
    )
    if json:
        names = ("records", "verdicts", "failures")
        tasks, verdicts, failures = (getattr(report, name) for name in names)
        print_json({"tasks": tasks, "verdicts": verdicts, "failures": failures})
    elif not quiet:
        print(short_text(report.records))
        for task, verdict in report.verdicts.items():
            print(f"{task}: {verdict}")
        print(f"{out}: {report.manifest.name}, page {out}/{PAGE}")
    return 1 if report.failures else 0
