"""``hardsynth relations``: which relations hold between the columns of a table, or of a suite."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.cli.flags import add_output_flags, add_setting_flags, layer_from
from amlb_ext.cli.numbers import real_number
from amlb_ext.core.config import build_config
from amlb_ext.core.display import format_percent, text_table
from amlb_ext.core.paths import OWN_FOLDER, check_sources

if TYPE_CHECKING:
    from amlb_ext.validity.feasibility_measures import Feasibility


def add_parser(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "relations",
        help="find the relations between a table's columns, or audit a suite",
        examples="hardsynth relations data.csv -o relations.yaml",
        description="For a source: print the relations that hold in every row, with the evidence "
        "for each, as YAML to edit and to pass to 'generate --relations'. For a suite: count the "
        "made rows that break a relation which holds on every real row.",
    )
    parser.add_argument(
        "source", metavar="SOURCE", help="a source, or the folder of a suite"
    )
    parser.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        help="file to write the YAML to (default: print it)",
    )
    parser.add_argument(
        "--evidence",
        type=real_number(1, or_equal=True),
        default=10.0,
        metavar="X",
        help="leave out a relation that fewer rows than this would break if its columns were "
        "independent (default: 10)",
    )
    add_output_flags(parser)
    add_setting_flags(parser, only_stage="source")
    parser.show_first(
        {
            "the table": ("source", "--target", "--drop", "--as", "--sep", "--decimal"),
            "the relations": ("--out", "--evidence", "-q", "--json"),
        }
    )
    parser.set_defaults(run_command=run_command)


def run_command(arguments: argparse.Namespace) -> int:
    """Print the relations of a source, or audit a suite."""
    check_sources((arguments.source,))
    if (Path(arguments.source) / OWN_FOLDER).is_dir():
        return _audit_suite(arguments)
    return _list_relations(arguments)


def _list_relations(arguments: argparse.Namespace) -> int:
    """Mine the relations of every task of a source."""
    from amlb_ext.core.files import write_text
    from amlb_ext.core.frames import with_columns
    from amlb_ext.relations.listing import relations_as_yaml
    from amlb_ext.relations.mining import mine_relations
    from amlb_ext.sources import open_specs

    config = build_config(layer_from(arguments))
    texts = []
    for reference in open_specs([arguments.source], config.source):
        task = reference.load()
        # The target takes part: a feature may bound it, or follow from it.
        rows = with_columns(task.features, {task.target_name: task.target})
        mined = mine_relations(rows, arguments.evidence)
        texts.append(relations_as_yaml(mined, task.name, [task.target_name]))
    # several tasks are several YAML documents
    text = "---\n".join(texts)
    if not arguments.out:
        print(text, end="")
        return 0
    write_text(Path(arguments.out), text)
    if not arguments.quiet:
        command = f"hardsynth generate {arguments.source} --relations {arguments.out}"
        print(f"relations: {arguments.out}\n  edit it, then: {command} -o DIR")
    return 0


def _audit_suite(arguments: argparse.Namespace) -> int:
    """Count the made rows of every task that break a relation of its real rows."""
    from amlb_ext.suite import SuiteFiles
    from amlb_ext.validity.feasibility_measures import audit_made_rows
    from amlb_ext.validity.task_rows import read_task

    suite = SuiteFiles.load(arguments.source)
    audits = {task: audit_made_rows(read_task(suite, task)) for task in suite.tasks}
    if arguments.json:
        from amlb_ext.relations.mining import LOOKED_FOR

        entries = {
            task: {**audit.to_json(), "looked_for": LOOKED_FOR}
            for task, audit in audits.items()
        }
        print(json.dumps(entries, indent=2, sort_keys=True))
    elif not arguments.quiet:
        print(_audit_text(audits))
    return 0


#: What the columns of an audit count.
_AUDIT_LEGEND = """\
infeasible: made rows that break a relation which holds on every real row; looked for were
  {looked_for}
shuffled: rows that would, if columns had nothing to do with each other
not as written: rows with a number that is not written as real ones are, in any number of digits"""


def _audit_text(audits: dict[str, Feasibility]) -> str:
    """Return a table with a row per task and part, a legend, and the relations broken most."""
    from amlb_ext.relations.mining import LOOKED_FOR

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
            # a task without such rows has no share of them
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
            for relation, count in part.by_relation.most_common(3):
                remarks.append(f"{task}, {name}: {count} rows break {relation}")
    if not table:
        return "no made rows"
    lines = [text_table(headers, table), _AUDIT_LEGEND.format(looked_for=LOOKED_FOR)]
    if remarks:
        lines += ["", *remarks]
    return "\n".join(lines)
