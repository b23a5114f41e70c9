"""``hardsynth score``: F, its null and a candidate on a suite, without AMLB."""

from __future__ import annotations

import sys
from pathlib import Path

from amlb_ext.cli.command import Jobs, Suite, command
from amlb_ext.cli.display import Answer
from amlb_ext.core.display import text_table
from amlb_ext.core.paths import check_suite_folder


@command(group="benchmark", flag_names={"out": "--out"})
def score(
    suite: Suite,
    *,
    out: Path | None = None,
    results: Path | None = None,
    hard: bool = False,
    trust_suite: bool = False,
    jobs: Jobs = 0,
    quiet: bool = False,
) -> Answer:
    """Score F, its null and a candidate without AMLB.

    Fit the suite's own integrations on its training files and print their mean loss on every part:
    F, the null (F with another seed) and a candidate. Lower is better.

    Parameters
    ----------
    out : FILE
        also write the loss of every fold as CSV
    results : DIR
        also write predictions as AMLB does, for 'hardsynth report'
    hard : bool
        also score the _hard tasks, which take longer

    Examples
    --------
    $ hardsynth score hard -r results
    """
    check_suite_folder(suite)
    from amlb_ext.core.files import write_file
    from amlb_ext.runner import compare_scores, summarise_scores
    from amlb_ext.runner.agreement import alarm_text
    from amlb_ext.runner.score import HOW_TO_READ

    compared = compare_scores(
        suite,
        workers=jobs,
        quiet=quiet,
        with_hard=hard,
        results=results,
        trusted=trust_suite,
    )
    # standard error, since standard output may be read as JSON
    if compared.disagreements:
        alarm = alarm_text("HardsynthBaseline as fitted here", compared.disagreements)
        remedy = "generate the suite again with this version of hardsynth"
        print(f"ALARM: {alarm}; {remedy}.", file=sys.stderr)
    if out:
        write_file(out, lambda part: compared.table.to_csv(part, index=False))
    summary = summarise_scores(compared.table)

    def text() -> str:
        table = text_table(list(summary.columns), summary.values.tolist())
        # the numbers mislead without the explanation, so both are always printed
        return f"{table}\n\n{HOW_TO_READ}"

    return Answer(text, lambda: summary.to_dict(orient="records"))
