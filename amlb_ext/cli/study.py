"""``hardsynth study``: which way of building a benchmark ranks models as a large pool does?"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.cli.flags import add_jobs_flag, add_output_flags, is_quiet
from amlb_ext.core.display import format_with_spread, text_table
from amlb_ext.core.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

    from amlb_ext.experiments.fidelity.protocol import Protocol


def add(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    study = commands.add_parser(
        "study",
        help="measure which way of building a benchmark ranks models best",
        description="Run repeated experiments on labelled tables, as a protocol declares them.",
    )
    kinds = study.add_subparsers(dest="study", metavar="STUDY", required=True)
    fidelity = kinds.add_parser(
        "fidelity",
        help="small benchmarks against a large pool",
        description="Draw a small labelled set S and a large held-out pool from each table, build "
        "a benchmark from S in every declared way, and compare how each ranks models with how "
        "the pool does. Run the same command again to continue an interrupted "
        "study.",
    )
    fidelity.add_argument(
        "sources",
        nargs="*",
        metavar="SOURCE",
        help="a table's file or bundled/NAME, in place of the tables that the protocol names",
    )
    fidelity.add_argument(
        "--protocol",
        metavar="FILE",
        help="the protocol, as YAML (default: the shipped one)",
    )
    fidelity.add_argument(
        "--data",
        metavar="DIR",
        default=".",
        help="folder that holds the tables' files (default: .)",
    )
    fidelity.add_argument(
        "-o", "--out", required=True, metavar="DIR", help="the study's folder"
    )
    fidelity.add_argument(
        "--phase",
        choices=("exploratory", "confirmatory"),
        default="exploratory",
        help="which phase to run; each has its own random seeds (default: exploratory)",
    )
    fidelity.add_argument(
        "--draws",
        type=int,
        metavar="N",
        help="number of draws for each table; in the confirmatory phase no more than the protocol "
        "declares",
    )
    fidelity.add_argument(
        "--target", metavar="COL", help="column to predict in every SOURCE"
    )
    add_jobs_flag(fidelity)
    add_output_flags(fidelity)
    methods = kinds.add_parser(
        "methods", help="list every method that a protocol may name"
    )
    add_output_flags(methods)
    coverage = kinds.add_parser(
        "coverage",
        help="how often the intervals of 'hardsynth estimate' hold",
        description="Draw labelled rows from simulated populations whose true error is known, and "
        "count how often each interval covers it: for independent rows, rows drawn class by "
        "class, and rows of a shifted population, where nothing is promised. Run the same command "
        "again to continue an interrupted study.",
    )
    coverage.add_argument(
        "--draws",
        type=int,
        default=1000,
        metavar="N",
        help="number of draws for each setting (default: 1000)",
    )
    coverage.add_argument(
        "--seed", type=int, default=0, metavar="N", help="random seed (default: 0)"
    )
    coverage.add_argument(
        "-o", "--out", required=True, metavar="DIR", help="the study's folder"
    )
    add_jobs_flag(coverage)
    add_output_flags(coverage)
    sampling = kinds.add_parser(
        "sampling",
        help="how often 'hardsynth estimate' detects a sample that was not drawn at random",
        description="Draw labelled rows at random, by class or target, by a model's score and by "
        "time, and count how often the command refuses them, and how often what it quotes holds, "
        "with and without training rows and rows without labels. Run the same command again to "
        "continue an interrupted study.",
    )
    sampling.add_argument(
        "--draws",
        type=int,
        default=100,
        metavar="N",
        help="number of draws for each design (default: 100)",
    )
    sampling.add_argument(
        "--rows",
        type=int,
        default=200,
        metavar="N",
        help="number of labelled rows (default: 200)",
    )
    sampling.add_argument(
        "--seed", type=int, default=0, metavar="N", help="random seed (default: 0)"
    )
    sampling.add_argument(
        "-o", "--out", required=True, metavar="DIR", help="the study's folder"
    )
    add_jobs_flag(sampling)
    add_output_flags(sampling)
    kinds.add_parser(
        "protocol", help="print the shipped protocol, as a start for your own"
    )
    study.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run a study, or list its methods; see :mod:`amlb_ext.experiments.fidelity`."""
    studies = {
        "fidelity": run_fidelity,
        "coverage": run_coverage,
        "sampling": run_sampling,
        "methods": print_methods,
        "protocol": print_protocol,
    }
    return studies[arguments.study](arguments)


def print_protocol(arguments: argparse.Namespace) -> int:
    """Print the shipped protocol as it stands."""
    from amlb_ext.experiments.fidelity.protocol import shipped_protocol

    print(shipped_protocol().read_text(encoding="utf-8"), end="")
    return 0


def print_methods(arguments: argparse.Namespace) -> int:
    """Print every method by name."""
    from amlb_ext.experiments.fidelity.registry import METHODS
    from amlb_ext.suite.sealed_json import json_text

    texts = {name: method.text for name, method in METHODS.items()}
    if arguments.json:
        print(json_text(texts), end="")
        return 0
    width = max(map(len, texts))
    for name, text in texts.items():
        print(f"{name.ljust(width)}  {text}")
    return 0


def run_coverage(arguments: argparse.Namespace) -> int:
    """Run the study of coverage; see :mod:`amlb_ext.experiments.coverage.study`."""
    from amlb_ext.experiments.coverage.study import coverage_markdown, coverage_study

    out = _study_folder(arguments.out)
    quiet = is_quiet(arguments)
    table = coverage_study(
        arguments.draws,
        seed=arguments.seed,
        out=out,
        workers=arguments.jobs,
        quiet=quiet,
    )
    return _write_study(arguments, out, "coverage", table, coverage_markdown(table))


def run_sampling(arguments: argparse.Namespace) -> int:
    """Run the study of samples that were not drawn at random."""
    from amlb_ext.experiments.coverage.sampling import sampling_markdown, sampling_study

    out = _study_folder(arguments.out)
    quiet = is_quiet(arguments)
    table = sampling_study(
        arguments.draws,
        n=arguments.rows,
        seed=arguments.seed,
        out=out,
        workers=arguments.jobs,
        quiet=quiet,
    )
    return _write_study(arguments, out, "sampling", table, sampling_markdown(table))


def _study_folder(path: str) -> Path:
    out = Path(path)
    if out.exists() and not out.is_dir():
        raise ConfigError(f"{out} is a file", "choose a folder with -o")
    return out


def _write_study(
    arguments: argparse.Namespace, out: Path, name: str, table: pd.DataFrame, text: str
) -> int:
    """Write the table as CSV and Markdown, and print it as asked."""
    from amlb_ext.core.files import write_text
    from amlb_ext.suite.sealed_json import json_text

    out.mkdir(parents=True, exist_ok=True)
    write_text(out / f"{name}.csv", table.to_csv(index=False))
    write_text(out / f"{name}.md", text)
    if arguments.json:
        print(json_text(table.to_dict(orient="records")), end="")
    elif not arguments.quiet:
        print(text)
        print(f"written: {out / f'{name}.csv'}, {name}.md")
    return 0


def run_fidelity(arguments: argparse.Namespace) -> int:
    """Run or continue a phase of the study of ranking fidelity and write its summary."""
    from amlb_ext.experiments.fidelity.page_text import describe_progress
    from amlb_ext.experiments.fidelity.protocol import read_protocol
    from amlb_ext.experiments.fidelity.run import phase_seeds, run_study
    from amlb_ext.experiments.fidelity.summary import (
        paired_contrasts,
        summarize_levels,
        write_phase,
    )
    from amlb_ext.suite.sealed_json import json_text

    declared = read_protocol(Path(arguments.protocol) if arguments.protocol else None)
    if arguments.sources:
        declared = _with_sources(declared, arguments.sources, arguments.target)
    elif arguments.target:
        raise ConfigError(
            "--target was given without a SOURCE; the protocol names its tables' targets",
            "name the table, as in: hardsynth study fidelity data.csv --target price -o DIR",
        )
    out, phase = Path(arguments.out), arguments.phase
    records = run_study(
        declared,
        phase,
        out,
        data=Path(arguments.data).expanduser(),
        draws=arguments.draws,
        workers=arguments.jobs,
        quiet=is_quiet(arguments),
    )
    files = write_phase(out, phase, records, declared)
    found, level = (
        paired_contrasts(records, declared.contrasts),
        summarize_levels(records, "realised"),
    )
    if arguments.json:
        entry = {
            "study": declared.name,
            "phase": phase,
            "protocol": declared.sha256,
            "draws": len(phase_seeds(declared, phase, arguments.draws)),
            "declared": len(phase_seeds(declared, phase)),
            "contrasts": found.to_dict(orient="records"),
            "levels": level.to_dict(orient="records"),
            "files": [str(path) for path in files],
        }
        print(json_text(entry), end="")
    elif not arguments.quiet:
        print(
            f"{declared.name}, {phase} phase: {describe_progress(records, declared, phase)}\n"
        )
        print(_contrasts(found) if len(found) else _levels(level))
        print("\nwritten: " + ", ".join(map(str, files)))
    return 0


def _with_sources(
    protocol: Protocol, sources: Sequence[str], target: str | None
) -> Protocol:
    """Return the protocol with the words' tables, which belong to whatever phase runs."""
    from amlb_ext.experiments.fidelity.protocol import Table

    tables: dict[str, Table] = {}
    for word in sources:
        name = _table_name(word)
        if name in tables:
            raise ConfigError(
                f"{tables[name].source} and {word} would both be table {name!r}",
                "rename a file",
            )
        tables[name] = Table(source=word, target=target)
    return protocol.model_copy(update={"tables": tables, "phases": {}})


def _table_name(word: str) -> str:
    """Return the name of a SOURCE, as results and random streams know it.

    Examples
    --------
    >>> _table_name("data/cars.csv"), _table_name("bundled/toy"), _table_name("openml/t/31")
    ('cars', 'toy', 'openml_t_31')
    """
    if Path(word).suffix and "://" not in word:
        return Path(word).stem
    return "_".join(part for part in word.removeprefix("bundled/").split("/") if part)


def _contrasts(found: pd.DataFrame) -> str:
    from amlb_ext.experiments.fidelity.judge import ALL_TABLES
    from amlb_ext.experiments.fidelity.page_text import contrast_rows

    headers, rows = contrast_rows(found[found["table"] == ALL_TABLES])
    return text_table(headers, rows)


def _levels(level: pd.DataFrame) -> str:
    """Return each method's agreement where no contrast is declared."""
    from amlb_ext.experiments.fidelity.judge import ALL_TABLES

    part = level[(level["table"] == ALL_TABLES) & (level["figure"] == "tau")]
    rows = [
        [r.n, r.method, format_with_spread(r.mean, r.se), r.draws]
        for r in part.itertuples()
    ]
    headers = ["n", "method", "tau, realised", "draws"]
    return text_table(headers, rows) + "\n\nno contrast is declared in the protocol"
