"""``hardsynth study``: which way of building a benchmark ranks models as a large pool does?"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.core.display import text_table
from amlb_ext.core.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

    from amlb_ext.experiments.fidelity.protocol import Protocol

Add = Callable[[argparse.ArgumentParser], None]


def add_study(commands: Any, jobs: Add, output: Add) -> None:
    """Add the command to the parser of all commands.

    Parameters
    ----------
    commands : argparse's subparsers
    jobs, output : callable
        Add the flags that every command shares.
    """
    study = commands.add_parser(
        "study",
        help="measure which way of building a benchmark ranks models best",
        description="Repeated experiments on labelled tables, declared in a protocol.",
    )
    kinds = study.add_subparsers(dest="study", metavar="STUDY", required=True)
    fidelity = kinds.add_parser(
        "fidelity",
        help="small benchmarks against a large pool",
        description="Draw a small labelled set S and a large held-out pool from each table, build "
        "a benchmark from S in every declared way, and compare how each ranks models with how "
        "the pool does. The same command continues an interrupted study.",
    )
    fidelity.add_argument(
        "sources",
        nargs="*",
        metavar="SOURCE",
        help="a table's file or bundled/NAME, in place of the protocol's tables",
    )
    fidelity.add_argument(
        "--protocol", metavar="FILE", help="YAML (default: the one shipped with the project)"
    )
    fidelity.add_argument(
        "--data", metavar="DIR", default=".", help="folder of the tables' files (default: .)"
    )
    fidelity.add_argument("-o", "--out", required=True, metavar="DIR", help="the study's folder")
    fidelity.add_argument(
        "--phase",
        choices=("exploratory", "confirmatory"),
        default="exploratory",
        help="each has seeds of its own (default: exploratory)",
    )
    fidelity.add_argument(
        "--draws",
        type=int,
        metavar="N",
        help="draws per table; confirmatory: no more than the protocol declares",
    )
    fidelity.add_argument("--target", metavar="COL", help="column to predict in every SOURCE")
    jobs(fidelity)
    output(fidelity)
    methods = kinds.add_parser("methods", help="list every method that a protocol may name")
    output(methods)
    coverage = kinds.add_parser(
        "coverage",
        help="how often the intervals of `hardsynth estimate` hold",
        description="Draw labelled rows from simulated populations whose true error is known, and "
        "count how often each interval covers it: for independent rows, rows drawn class by "
        "class, and rows of a shifted population, where nothing is promised.",
    )
    coverage.add_argument(
        "--draws", type=int, default=1000, metavar="N", help="per setting (default: 1000)"
    )
    coverage.add_argument("--seed", type=int, default=0, metavar="N")
    coverage.add_argument("-o", "--out", required=True, metavar="DIR", help="the study's folder")
    output(coverage)
    sampling = kinds.add_parser(
        "sampling",
        help="how often `hardsynth estimate` is told a sample that was not drawn at random",
        description="Draw labelled rows at random, by class or target, by a model's score and by "
        "time, and count how often the command refuses them, and how often what it quotes holds, "
        "with and without training rows and rows without labels.",
    )
    sampling.add_argument(
        "--draws", type=int, default=100, metavar="N", help="per design (default: 100)"
    )
    sampling.add_argument("--rows", type=int, default=200, metavar="N", help="labelled rows (200)")
    sampling.add_argument("--seed", type=int, default=0, metavar="N")
    sampling.add_argument("-o", "--out", required=True, metavar="DIR", help="the study's folder")
    output(sampling)
    kinds.add_parser("protocol", help="print the protocol shipped with the project, to start from")


def study(arguments: argparse.Namespace) -> int:
    """Run a study, or list its methods; see :mod:`amlb_ext.experiments.fidelity`."""
    run = {
        "fidelity": fidelity,
        "coverage": coverage,
        "sampling": sampling,
        "methods": methods,
        "protocol": protocol,
    }
    return run[arguments.study](arguments)


def protocol(arguments: argparse.Namespace) -> int:
    """Print the shipped protocol as it stands."""
    from amlb_ext.experiments.fidelity.protocol import shipped_protocol

    print(shipped_protocol().read_text(encoding="utf-8"), end="")
    return 0


def methods(arguments: argparse.Namespace) -> int:
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


def coverage(arguments: argparse.Namespace) -> int:
    """Run the study of coverage; see :mod:`amlb_ext.experiments.coverage.study`."""
    from amlb_ext.experiments.coverage.study import coverage_markdown, coverage_study

    out = _study_folder(arguments.out)
    quiet = arguments.quiet or arguments.json
    table = coverage_study(arguments.draws, seed=arguments.seed, quiet=quiet)
    return _write_study(arguments, out, "coverage", table, coverage_markdown(table))


def sampling(arguments: argparse.Namespace) -> int:
    """Run the study of samples that were not drawn at random."""
    from amlb_ext.experiments.coverage.sampling import sampling_markdown, sampling_study

    out = _study_folder(arguments.out)
    quiet = arguments.quiet or arguments.json
    table = sampling_study(arguments.draws, n=arguments.rows, seed=arguments.seed, quiet=quiet)
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


def fidelity(arguments: argparse.Namespace) -> int:
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
        quiet=arguments.quiet or arguments.json,
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
        print(f"{declared.name}, {phase} phase: {describe_progress(records, declared, phase)}\n")
        print(_contrasts(found) if len(found) else _levels(level))
        print("\nwritten: " + ", ".join(map(str, files)))
    return 0


def _with_sources(protocol: Protocol, sources: Sequence[str], target: str | None) -> Protocol:
    """Return the protocol with the words' tables, which belong to whatever phase runs."""
    from amlb_ext.experiments.fidelity.protocol import Table

    tables: dict[str, Table] = {}
    for word in sources:
        name = _table_name(word)
        if name in tables:
            raise ConfigError(
                f"{tables[name].source} and {word} would both be table {name!r}", "rename a file"
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
    from amlb_ext.experiments.fidelity.page_text import format_mean

    part = level[(level["table"] == ALL_TABLES) & (level["figure"] == "tau")]
    rows = [[r.n, r.method, format_mean(r.mean, r.se), r.draws] for r in part.itertuples()]
    headers = ["n", "method", "tau, realised", "draws"]
    return text_table(headers, rows) + "\n\nno contrast is declared in the protocol"
