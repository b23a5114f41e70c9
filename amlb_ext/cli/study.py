"""``hardsynth study``: repeated experiments on benchmarks and on intervals of the error."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.cli.flags import add_jobs_flag, add_output_flags, is_quiet
from amlb_ext.cli.numbers import SEED, whole_number
from amlb_ext.core.display import format_with_spread, text_table
from amlb_ext.core.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

    from amlb_ext.experiments.fidelity.protocol import Protocol


def add_parser(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    study = commands.add_parser(
        "study",
        help="measure how well benchmarks rank models, and how often intervals hold",
        description="Run repeated experiments on labelled tables, as a protocol declares them, or "
        "on simulated populations.",
    )
    kinds = study.add_subparsers(dest="study", metavar="STUDY", required=True)
    _add_fidelity_parser(kinds)
    methods = kinds.add_parser(
        "methods",
        help="list the methods that a protocol may name",
        description="List every way of building a benchmark that a protocol may name.",
    )
    add_output_flags(methods)
    _add_coverage_parser(kinds)
    _add_sampling_parser(kinds)
    kinds.add_parser(
        "protocol",
        help="print the default protocol of 'fidelity', as a start for your own",
        description="Print the default protocol of 'hardsynth study fidelity', as a start for your "
        "own.",
    )
    study.set_defaults(run_command=run_command)


def _add_fidelity_parser(kinds: Any) -> None:
    fidelity = kinds.add_parser(
        "fidelity",
        help="compare how small benchmarks and a large pool rank models",
        examples="hardsynth study fidelity big.csv --target y -o study --draws 5",
        description="Draw a small labelled set S and a large held-out pool from each table, build "
        "a benchmark from S in every way that the protocol declares, and compare how each "
        "benchmark and the pool rank models. Run the same command again to continue an "
        "interrupted study.",
    )
    fidelity.add_argument(
        "sources",
        nargs="*",
        metavar="SOURCE",
        help="file of a table or bundled/NAME, instead of the tables that the protocol names",
    )
    fidelity.add_argument(
        "--protocol",
        metavar="FILE",
        help="YAML file of the protocol (default: the one that 'study protocol' prints)",
    )
    fidelity.add_argument(
        "--data",
        metavar="DIR",
        default=".",
        help="folder with the files of the tables (default: .)",
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
        type=whole_number(1),
        metavar="N",
        help="number of draws from each table, in the confirmatory phase at most as many as the "
        "protocol declares",
    )
    fidelity.add_argument(
        "--target", metavar="COL", help="column to predict in every SOURCE"
    )
    add_jobs_flag(fidelity)
    add_output_flags(fidelity)


def _add_coverage_parser(kinds: Any) -> None:
    coverage = kinds.add_parser(
        "coverage",
        help="count how often the intervals of 'hardsynth estimate' hold",
        examples="hardsynth study coverage -o coverage --draws 100",
        description="Draw labelled rows from simulated populations with a known true error, and "
        "count how often each interval covers it: for independent rows, for rows drawn class by "
        "class, and for rows of a shifted population, where no interval promises to hold. Run the "
        "same command again to continue an interrupted study.",
    )
    coverage.add_argument(
        "--draws",
        type=whole_number(1),
        default=1000,
        metavar="N",
        help="number of draws for each setting (default: 1000)",
    )
    coverage.add_argument(
        "--seed",
        type=SEED,
        default=0,
        metavar="N",
        help="random seed (default: 0)",
    )
    coverage.add_argument(
        "-o", "--out", required=True, metavar="DIR", help="the study's folder"
    )
    add_jobs_flag(coverage)
    add_output_flags(coverage)


def _add_sampling_parser(kinds: Any) -> None:
    sampling = kinds.add_parser(
        "sampling",
        help="count how often 'hardsynth estimate' detects rows that were not drawn at random",
        examples="hardsynth study sampling -o sampling --draws 20",
        description="Draw labelled rows at random, by class or target, by the score of a model and "
        "by time, and count how often 'hardsynth estimate' refuses them, and how often the "
        "interval that it quotes holds, with and without training rows and rows without labels. "
        "Run the same command again to continue an interrupted study.",
    )
    sampling.add_argument(
        "--draws",
        type=whole_number(1),
        default=100,
        metavar="N",
        help="number of draws for each design (default: 100)",
    )
    sampling.add_argument(
        "--rows",
        type=whole_number(1),
        default=200,
        metavar="N",
        help="number of labelled rows (default: 200)",
    )
    sampling.add_argument(
        "--seed",
        type=SEED,
        default=0,
        metavar="N",
        help="random seed (default: 0)",
    )
    sampling.add_argument(
        "-o", "--out", required=True, metavar="DIR", help="the study's folder"
    )
    add_jobs_flag(sampling)
    add_output_flags(sampling)


def run_command(arguments: argparse.Namespace) -> int:
    """Run the study that the user names; see :mod:`amlb_ext.experiments`."""
    # Each is a subcommand without a module of its own, since all are short.
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
    width = max(len(name) for name in texts)
    for name, text in texts.items():
        print(f"{name.ljust(width)}  {text}")
    return 0


def run_coverage(arguments: argparse.Namespace) -> int:
    """Run the study of coverage; see :mod:`amlb_ext.experiments.coverage.study`."""
    from amlb_ext.experiments.coverage.study import coverage_markdown, coverage_study

    # Checked first: the study may run for an hour.
    out = _study_folder(arguments.out)
    quiet = is_quiet(arguments)
    table = coverage_study(
        arguments.draws,
        seed=arguments.seed,
        out=out,
        workers=arguments.jobs,
        quiet=quiet,
    )
    return _write_study(
        arguments,
        out=out,
        name="coverage",
        table=table,
        text=coverage_markdown(table),
    )


def run_sampling(arguments: argparse.Namespace) -> int:
    """Run the study of samples that were not drawn at random."""
    from amlb_ext.experiments.coverage.sampling import sampling_markdown, sampling_study

    # Checked first: the study may run for an hour.
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
    return _write_study(
        arguments,
        out=out,
        name="sampling",
        table=table,
        text=sampling_markdown(table),
    )


def _study_folder(path: str) -> Path:
    out = Path(path)
    if out.exists() and not out.is_dir():
        raise ConfigError(f"{out} is a file", "choose a folder with -o")
    return out


def _write_study(
    arguments: argparse.Namespace,
    *,
    out: Path,
    name: str,
    table: pd.DataFrame,
    text: str,
) -> int:
    """Write the table as CSV and Markdown, and print it unless ``--quiet`` is given."""
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

    protocol = read_protocol(Path(arguments.protocol) if arguments.protocol else None)
    if arguments.sources:
        protocol = _with_sources(protocol, arguments.sources, arguments.target)
    elif arguments.target:
        raise ConfigError(
            "--target was given without a SOURCE; the protocol names its tables' targets",
            "name the table, as in: hardsynth study fidelity data.csv --target price -o DIR",
        )
    out = Path(arguments.out)
    phase = arguments.phase
    records = run_study(
        protocol,
        phase,
        out,
        data=Path(arguments.data).expanduser(),
        draws=arguments.draws,
        workers=arguments.jobs,
        quiet=is_quiet(arguments),
    )
    files = write_phase(out, phase, records, protocol)
    contrasts = paired_contrasts(records, protocol.contrasts)
    levels = summarize_levels(records, "realised")
    if arguments.json:
        entry = {
            "study": protocol.name,
            "phase": phase,
            "protocol": protocol.sha256,
            "draws": len(phase_seeds(protocol, phase, arguments.draws)),
            "declared": len(phase_seeds(protocol, phase)),
            "contrasts": contrasts.to_dict(orient="records"),
            "levels": levels.to_dict(orient="records"),
            "files": [str(path) for path in files],
        }
        print(json_text(entry), end="")
    elif not arguments.quiet:
        progress = describe_progress(records, protocol, phase)
        print(f"{protocol.name}, {phase} phase: {progress}\n")
        print(_contrasts_text(contrasts) if len(contrasts) else _levels_text(levels))
        print("\nwritten: " + ", ".join(str(path) for path in files))
    return 0


def _with_sources(
    protocol: Protocol, sources: Sequence[str], target: str | None
) -> Protocol:
    """Return the protocol with these tables instead of its own, in whatever phase runs."""
    from amlb_ext.experiments.fidelity.protocol import Table

    tables: dict[str, Table] = {}
    for source in sources:
        name = _table_name(source)
        if name in tables:
            raise ConfigError(
                f"{tables[name].source} and {source} would both be table {name!r}",
                "rename a file",
            )
        tables[name] = Table(source=source, target=target)
    # The phases of a protocol name its tables, so both are replaced.
    return protocol.model_copy(update={"tables": tables, "phases": {}})


def _table_name(source: str) -> str:
    """Return the name of a SOURCE, which stands in the results and keys the random streams.

    Examples
    --------
    >>> _table_name("data/cars.csv"), _table_name("bundled/toy"), _table_name("openml/t/31")
    ('cars', 'toy', 'openml_t_31')
    """
    # A file, whose folder may differ between machines: its name alone counts.
    if Path(source).suffix and "://" not in source:
        return Path(source).stem
    parts = source.removeprefix("bundled/").split("/")
    return "_".join(part for part in parts if part)


def _contrasts_text(contrasts: pd.DataFrame) -> str:
    """Return the contrasts that the protocol declares, over all tables."""
    from amlb_ext.experiments.fidelity.judge import ALL_TABLES
    from amlb_ext.experiments.fidelity.page_text import contrast_rows

    over_all_tables = contrasts[contrasts["table"] == ALL_TABLES]
    headers, rows = contrast_rows(over_all_tables)
    return text_table(headers, rows)


def _levels_text(levels: pd.DataFrame) -> str:
    """Return the agreement of each method, for a protocol that declares no contrast."""
    from amlb_ext.experiments.fidelity.judge import ALL_TABLES

    over_all_tables = levels["table"] == ALL_TABLES
    rows = []
    for row in levels[over_all_tables & (levels["figure"] == "tau")].itertuples():
        tau = format_with_spread(row.mean, row.se)
        rows.append([row.n, row.method, tau, row.draws])
    headers = ["n", "method", "tau, realised", "draws"]
    return text_table(headers, rows) + "\n\nno contrast is declared in the protocol"
