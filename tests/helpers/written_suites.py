"""Folds and suites of tasks that a test has made, written as a generation writes them."""

from amlb_ext.suite import Coding, SuiteRequest, SuiteTask, finish_suite, write_fold


def put_fold(layout, task, train, parts, *, name="t", fold=0, **about):
    """Write a fold of a task under a name; ``about`` may hold a key and a summary."""
    about = {"key": "k", "summary": {}, **about}
    coding = Coding.of(task)
    return write_fold(
        layout, name, coding, fold=fold, train=train, parts=parts, **about
    )


def entry_of(task, records, **about):
    """Return what a suite keeps of a task whose folds were written."""
    known = {"name": task.name, "source_name": task.name, "origin": task.origin}
    return SuiteTask(
        kind=task.kind,
        target=task.target_name,
        coding=Coding.of(task),
        content_hash=task.content_hash,
        folds=tuple(records),
        **{**known, "notes": (), **about},
    )


def finish(layout, entries, **settings):
    """Write what belongs to no fold; return the manifest."""
    known = {
        "name": "hardsynth",
        "config": {"seed": 1},
        "seed": 1,
        "failures": [],
        "version": "0",
        "integrations": {},
        "request": SuiteRequest(command="hardsynth generate toy -o hard"),
    }
    return finish_suite(layout, **{**known, "tasks": entries, **settings})
