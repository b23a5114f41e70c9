"""``hardsynth relations``: which relations hold between the columns of a table, or of a suite."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from amlb_ext.cli.command import Form, command
from amlb_ext.cli.display import Answer
from amlb_ext.core.config import build_config
from amlb_ext.core.paths import OWN_FOLDER, check_sources


def _is_suite(source: str) -> bool:
    return (Path(source) / OWN_FOLDER).is_dir()


_ON_A_SUITE = Form(
    where="on a suite",
    holds=lambda given: _is_suite(given["source"]),
    only=(),
    instead="leave it out: its made rows are counted",
)


@command(
    group="research",
    settings="source",
    forms=[_ON_A_SUITE],
    everyday={
        "the table": ("source", "--target", "--drop", "--as", "--sep", "--decimal"),
        "the relations": ("out", "evidence", "quiet", "json"),
    },
)
def relations(
    source: str,
    *,
    out: Path | None = None,
    evidence: Annotated[float, Field(ge=1)] = 10.0,
    settings: dict[str, Any],
) -> Answer:
    """Find the relations between a table's columns, or audit a suite.

    For a source: print the relations that hold in every row, with the evidence for each, as YAML to
    edit and to pass to 'generate --relations'. For a suite: count the made rows that break a
    relation which holds on every real row.

    Parameters
    ----------
    source : SOURCE
        a source, or the folder of a suite
    out : FILE
        file to write the YAML to (default: print it)
    evidence : float
        leave out a relation that fewer rows than this would break if its columns were independent

    Examples
    --------
    $ hardsynth relations data.csv -o relations.yaml
    """
    check_sources((source,))
    if _is_suite(source):
        return _audit_suite(source)
    options = build_config(settings).source
    from amlb_ext.core.files import write_text
    from amlb_ext.core.frames import with_columns
    from amlb_ext.relations.mining import mine_relations
    from amlb_ext.relations.wording import relations_as_yaml
    from amlb_ext.sources import open_specs

    texts = {}
    for reference in open_specs([source], options):
        task = reference.load()
        # the target takes part: a feature may bound it, or follow from it
        rows = with_columns(task.features, {task.target_name: task.target})
        mined = mine_relations(rows, evidence)
        texts[task.name] = relations_as_yaml(mined, task.name, [task.target_name])
    # several tasks are several YAML documents
    text = "---\n".join(texts.values())
    if out:
        write_text(out, text)
        text = (
            f"relations: {out}\n  edit it, then, with the flags that the table is read by: "
            f"hardsynth generate {shlex.join([source, '--relations', str(out)])} -o DIR"
        )

    def entry() -> dict[str, Any]:
        import yaml

        return {name: yaml.safe_load(text) for name, text in texts.items()}

    return Answer(lambda: text, entry)


def _audit_suite(folder: str) -> Answer:
    """Count the made rows of every task that break a relation of its real rows."""
    from amlb_ext.relations.mining import LOOKED_FOR
    from amlb_ext.suite import SuiteFiles
    from amlb_ext.validity.task_measures import audit_made_rows, audit_text
    from amlb_ext.validity.task_rows import read_task

    suite = SuiteFiles.load(folder)
    audits = {task: audit_made_rows(read_task(suite, task)) for task in suite.tasks}
    looked_for = {"looked_for": LOOKED_FOR}
    return Answer(
        lambda: audit_text(audits),
        lambda: {task: one.to_json() | looked_for for task, one in audits.items()},
    )
