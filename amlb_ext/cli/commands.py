"""One function per command: read the arguments, call the library, print."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from amlb_ext.cli import display
from amlb_ext.cli.estimate import estimate
from amlb_ext.cli.export import export
from amlb_ext.cli.generate import harden, make
from amlb_ext.cli.install import install, uninstall
from amlb_ext.cli.publish import publish
from amlb_ext.cli.reproduce import reproduce
from amlb_ext.cli.study import study
from amlb_ext.cli.verify import verify
from amlb_ext.core.display import text_table
from amlb_ext.core.presets import PRESETS


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, sort_keys=True, default=str))


def generate(arguments: argparse.Namespace) -> int:
    """Write a suite; see :func:`amlb_ext.pipeline.generate`."""
    return make(arguments, tuple(arguments.sources or ["bundled"]))


def run(arguments: argparse.Namespace) -> int:
    """Run AMLB on a suite; see :func:`amlb_ext.runner.run_benchmark`."""
    from amlb_ext.publish.export.folder import exported_suite_name
    from amlb_ext.runner import run_benchmark
    from amlb_ext.suite import Suite

    userdir = Path(arguments.userdir)
    benchmark = (
        arguments.benchmark or exported_suite_name(userdir) or Suite.load(userdir).manifest.name
    )
    outcome = run_benchmark(
        arguments.framework,
        benchmark,
        arguments.constraint,
        userdir=userdir,
        outdir=Path(arguments.results),
        tasks=tuple(arguments.task),
        folds=tuple(arguments.fold),
        amlb=arguments.amlb,
        python=arguments.python,
        extra=tuple(arguments.extra),
        quiet=arguments.quiet or arguments.json,
    )
    if arguments.json:
        rows = outcome.rows.to_dict(orient="records")
        _print_json({**dataclasses.asdict(outcome), "rows": rows, "ok": outcome.ok})
    elif not arguments.quiet or not outcome.ok:
        print(outcome.summary())
    return outcome.exit_status


def certify(arguments: argparse.Namespace) -> int:
    """Certify every task of a suite; see :func:`amlb_ext.validity.certify_suite`."""
    from amlb_ext.suite import Suite
    from amlb_ext.validity import certificates_to_json, certify_suite
    from amlb_ext.validity.unlabelled import assign_unlabelled_files

    quiet = arguments.quiet or arguments.json
    certificates = certify_suite(
        Path(arguments.suite),
        arguments.jobs,
        size=arguments.size,
        refits=arguments.refits,
        seed=arguments.seed,
        candidates=tuple(arguments.candidate),
        reuse=False,
        quiet=quiet,
        unlabelled=assign_unlabelled_files(
            arguments.unlabelled, list(Suite.load(arguments.suite).tasks)
        ),
        trusted=arguments.trust_suite,
    )
    if arguments.json:
        _print_json(certificates_to_json(certificates))
    elif not arguments.quiet:
        print("\n".join(certificate.text() for certificate in certificates))
    return 0


def score(arguments: argparse.Namespace) -> int:
    """Score a suite's own integrations; see :func:`amlb_ext.runner.score_suite`."""
    from amlb_ext.core.files import write_file
    from amlb_ext.runner import compare_scores, summarise_scores
    from amlb_ext.runner.agreement import alarm_text

    quiet = arguments.quiet or arguments.json
    results = Path(arguments.results) if arguments.results else None
    found = compare_scores(
        Path(arguments.suite),
        arguments.jobs,
        quiet,
        arguments.hard,
        results,
        trusted=arguments.trust_suite,
    )
    scores = found.table
    if found.disagreements:
        alarm = alarm_text("HardsynthBaseline as fitted here", found.disagreements)
        remedy = "generate the suite again with this version of hardsynth"
        print(f"ALARM: {alarm}; {remedy}.", file=sys.stderr)
    if arguments.out:
        write_file(Path(arguments.out), lambda part: scores.to_csv(part, index=False))
    table = summarise_scores(scores)
    if arguments.json:
        _print_json(table.to_dict(orient="records"))
    elif not arguments.quiet:
        print(text_table(list(table.columns), table.values.tolist()))
        print()
        print(display.READING)
    return 0


def report(arguments: argparse.Namespace) -> int:
    """Write a report; see :mod:`amlb_ext.report`."""
    from amlb_ext.report import build_report, report_as_json, report_text, write_report
    from amlb_ext.suite import Suite

    suite = Suite.load(arguments.suite)
    shows = not (arguments.text or arguments.json)
    built = build_report(
        arguments.suite,
        arguments.results,
        workers=arguments.jobs,
        level=arguments.level,
        charts=shows,
        quiet=arguments.quiet or arguments.json,
    )
    if arguments.json:
        _print_json(report_as_json(built.report))
    elif arguments.text:
        print(report_text(built.report), end="")
    else:
        out = Path(arguments.out) if arguments.out else suite.layout.own
        path = write_report(built, out, interactive=not arguments.still)
        if not arguments.quiet:
            print(display.answer(built.report, path))
    broken = built.report.jobs["status"].isin(["failed", "missing", "refused"])
    return 1 if broken.any() else 0


def list_names(arguments: argparse.Namespace) -> int:
    """Print what can be named on the command line."""
    from amlb_ext.hardening.baseline.registry import BASELINES, is_installed
    from amlb_ext.hardening.hardness import RULES
    from amlb_ext.sources import describe_sources
    from amlb_ext.synthesizers import describe_synthesizers

    groups: dict[str, dict[str, str]] = {
        "sources": describe_sources(),
        "baselines": {
            name: named.description + ("" if is_installed(name) else " (not installed)")
            for name, named in BASELINES.items()
        },
        "rules": {name: f"{text} ({kind})" for name, (kind, text) in RULES.items()},
        "synthesizers": describe_synthesizers(),
        "presets": {
            name: ", ".join(f"{s}.{k}={v}" for s, ks in changes.items() for k, v in ks.items())
            or "the defaults"
            for name, changes in PRESETS.items()
        },
    }
    if arguments.json:
        _print_json(groups)
        return 0
    for title, entries in groups.items():
        width = max(map(len, entries))
        print(f"{title}:")
        for name, text in entries.items():
            print(f"  {name.ljust(width)}  {text}")
    return 0


COMMANDS = {
    "generate": generate,
    "harden": harden,
    "estimate": estimate,
    "install": install,
    "uninstall": uninstall,
    "run": run,
    "certify": certify,
    "report": report,
    "score": score,
    "verify": verify,
    "publish": publish,
    "export": export,
    "study": study,
    "reproduce": reproduce,
    "list": list_names,
}
