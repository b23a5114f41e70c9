"""``hardsynth relations``: which relations hold between the columns of a table, or of a suite."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.cli.flags import add_output_flags, add_setting_flags, layer_from
from amlb_ext.core.config import build_config
from amlb_ext.core.display import format_percent, text_table

if TYPE_CHECKING:
    from amlb_ext.validity.feasibility_measures import Feasibility


def add(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "relations",
        help="find the relations between a table's columns, or audit a suite",
        description="Of a source: print the relations that hold in every row, with the evidence "
        "for each, as YAML to edit and to hand to 'generate --relations'. Of a suite: count the "
        "made rows that break a relation which holds on every real row.",
    )
    parser.add_argument(
        "source", metavar="SOURCE", help="a source, or the folder of a suite"
    )
    parser.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        help="write the YAML there instead of printing it",
    )
    parser.add_argument(
        "--evidence",
        type=float,
        default=10.0,
        metavar="X",
        help="leave out relations that fewer rows would break by chance (default: 10)",
    )
    add_output_flags(parser)
    add_setting_flags(parser, stage="source")


def run(arguments: argparse.Namespace) -> int:
    """Print relations of a source, or audit a suite."""
    if (Path(arguments.source) / "hardsynth").is_dir():
        return _audit_suite(arguments)
    return _list_relations(arguments)


def _list_relations(arguments: argparse.Namespace) -> int:
    from amlb_ext.core.files import write_text
    from amlb_ext.relations.listing import relations_as_yaml
    from amlb_ext.relations.mining import mine_relations
    from amlb_ext.sources import open_specs

    config = build_config(layer_from(arguments))
    texts = []
    for reference in open_specs([arguments.source], config.source):
        task = reference.load()
        rows = task.features.assign(**{task.target_name: task.target})
        mined = mine_relations(rows, arguments.evidence)
        texts.append(relations_as_yaml(mined, task.name, [task.target_name]))
    # several tasks are several YAML documents
    text = "---\n".join(texts)
    if arguments.out:
        write_text(Path(arguments.out), text)
        if not arguments.quiet:
            print(f"relations: {arguments.out}\n  edit it, then: hardsynth generate "
                  f"{arguments.source} --relations {arguments.out} -o DIR")  # fmt: skip
    else:
        print(text, end="")
    return 0


def _audit_suite(arguments: argparse.Namespace) -> int:
    from amlb_ext.suite import Suite
    from amlb_ext.validity.feasibility_measures import audit_made_rows
    from amlb_ext.validity.task_rows import read_task

    suite = Suite.load(arguments.source)
    audits = {task: audit_made_rows(read_task(suite, task)) for task in suite.tasks}
    if arguments.json:
        found = {task: audit.to_json() for task, audit in audits.items()}
        print(json.dumps(found, indent=2, sort_keys=True))
    elif not arguments.quiet:
        print(_audit_text(audits))
    return 0


def _audit_text(audits: dict[str, Feasibility]) -> str:
    headers = [
        "task",
        "part",
        "rows",
        "infeasible",
        "shuffled",
        "not as written",
        "relations",
    ]
    table: list[list[Any]] = []
    remarks = []
    for task, audit in audits.items():
        for name, part in audit.parts.items():
            if not part.rows:
                continue
            table.append(
                [
                    task,
                    name,
                    part.rows,
                    format_percent(part.infeasible / part.rows),
                    format_percent(audit.shuffled_share),
                    format_percent(part.unlike_real / part.rows),
                    audit.n_relations,
                ]
            )
            for text, count in part.by_relation.most_common(3):
                remarks.append(f"{task}, {name}: {count} rows break {text}")
    if not table:
        return "no made rows"
    legend = (
        "infeasible: made rows that break a relation which holds on every real row\n"
        "shuffled: rows that would, if columns had nothing to do with each other\n"
        "not as written: rows with a number that is not written as real ones are"
    )
    return "\n".join(
        [text_table(headers, table), legend, *([""] if remarks else []), *remarks]
    )
