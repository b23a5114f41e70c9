"""``hardsynth swarm``: a swarm of generators searched for hard rows, and what they are worth."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from amlb_ext.cli.display import print_json
from amlb_ext.cli.flags import (
    READING_SETTINGS,
    add_jobs_flag,
    add_output_flags,
    add_setting_flags,
    is_quiet,
    layer_from,
)
from amlb_ext.core.config import build_config
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import check_sources

#: Settings of ``generate`` that serve here as well.
SETTINGS = READING_SETTINGS | {
    ("seed",),
    ("source", "target"),
    ("source", "kind"),
    ("source", "keep"),
}


def add_parser(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "swarm",
        help="search for hard rows with a swarm of generators, and report their worth",
        examples="hardsynth swarm data.csv --target y -o s\n"
        "hardsynth swarm bundled/digits --preset literal --no-baselines -o s",
        description="Tune copies of one generator on clusters of a table, search their mixtures "
        "for rows on which given models fail, and write a suite with the rows, an audit on real "
        "rows and baselines with the same budget. Use it as a stress test, never to rank models.",
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="bundled/NAME, the file of a table, openml/t/ID",
    )
    parser.add_argument(
        "-o", "--out", required=True, metavar="DIR", help="the suite's folder"
    )
    parser.add_argument(
        "--objective",
        default="difficult",
        metavar="NAME|A=.6,B=.4",
        help="difficult, separate, novel, consistent, personalised, or weights that add up to 1 "
        "(default: difficult)",
    )
    parser.add_argument(
        "--preset",
        dest="swarm_preset",
        default="honest",
        metavar="NAME",
        help="honest: what a teacher could improve, only near real rows; literal: as the paper "
        "says; literal_code: as its code does (default: honest)",
    )
    parser.add_argument(
        "--search",
        metavar="NAME",
        help="pso, code, cma, affine or soups (default: set by the preset; honest: affine and cma)",
    )
    parser.add_argument(
        "--labels",
        metavar="NAME",
        help="excess, soft, hard or own (default: set by the preset)",
    )
    parser.add_argument(
        "--takers",
        nargs="+",
        default=[],
        metavar="MODEL",
        help="models to test: names of candidates, or import paths of estimators (default: "
        "linear neighbours_25 tree_8 boosting_slow)",
    )
    parser.add_argument(
        "--user-rows",
        metavar="FILE",
        help="for the objective 'personalised': rows that made rows should resemble",
    )
    numbers = {
        "--folds": (1, "folds to search"),
        "--rows": (500, "rows to write for each fold"),
        "--generators": (8, "initial generators"),
        "--iterations": (
            None,
            "of the particle swarm; they set the budget of every search",
        ),
        "--least-rows": (300, "training rows that each of four roles needs"),
    }
    for flag, (default, text) in numbers.items():
        shown = "the preset's" if default is None else default
        parser.add_argument(
            flag,
            type=_positive_number,
            default=default,
            metavar="N",
            help=f"{text} (default: {shown})",
        )
    parser.add_argument(
        "--no-baselines",
        action="store_true",
        help="leave out the baselines, which take most of the time",
    )
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="search even if no model can be beaten on real rows",
    )
    parser.add_argument(
        "--device",
        choices=("auto", "cpu"),
        default="auto",
        help="auto trains on a GPU if there is one (default: auto)",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace a suite that was made with other settings",
    )
    add_jobs_flag(parser)
    add_output_flags(parser)
    add_setting_flags(parser, only=SETTINGS)
    parser.show_first(
        {
            "what is searched": ("source", "--target", "--objective", "--takers"),
            "how": ("--preset", "--search", "--labels", "--no-baselines", "--anyway"),
            "output": ("--out", "--seed", "--jobs", "--json"),
        }
    )
    parser.set_defaults(run_command=run_command)


def _positive_number(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of 1 or more")
    return number


def run_command(arguments: argparse.Namespace) -> int:
    """Search and print the page; see :func:`amlb_ext.swarm.run.swarm_suite`."""
    config = build_config(layer_from(arguments))
    check_sources((arguments.source,))
    # a mistyped path, and then a mistyped flag, must not wait for the heavy imports below
    from amlb_ext.swarm.initial import InitialSettings
    from amlb_ext.swarm.page import short_text
    from amlb_ext.swarm.prepare import SwarmRequest
    from amlb_ext.swarm.run import PAGE, SwarmRun, swarm_suite
    from amlb_ext.swarm.search import make_plan

    if arguments.user_rows and not Path(arguments.user_rows).is_file():
        raise ConfigError(
            f"no file {arguments.user_rows}",
            "--user-rows FILE, a table with the same columns",
        )
    report = swarm_suite(
        SwarmRun(
            source=arguments.source,
            out=Path(arguments.out),
            request=SwarmRequest(
                objective=arguments.objective,
                plan=make_plan(
                    arguments.swarm_preset,
                    labels=arguments.labels,
                    search=arguments.search,
                    iterations=arguments.iterations,
                ),
                initial=InitialSettings(
                    n_generators=arguments.generators, device=arguments.device
                ),
                takers=tuple(arguments.takers),
                rows=arguments.rows,
                least_rows=arguments.least_rows,
                anyway=arguments.anyway,
                with_baselines=not arguments.no_baselines,
                seed=config.seed,
                relations=config.relations,
            ),
            options=config.source,
            folds=arguments.folds,
            user_rows=Path(arguments.user_rows) if arguments.user_rows else None,
            jobs=arguments.jobs,
            force=arguments.force,
        )
    )
    if arguments.json:
        print_json(
            {
                "tasks": report.records,
                "verdicts": report.verdicts,
                "failures": report.failures,
            }
        )
    elif not is_quiet(arguments):
        print(short_text(report.records))
        for task, verdict in report.verdicts.items():
            print(f"{task}: {verdict}")
        print(f"{arguments.out}: {report.manifest.name}, page {arguments.out}/{PAGE}")
    return 1 if report.failures else 0
