"""Which jobs were run, from what runs leave behind: whole, failed, killed, renamed, archived."""

from __future__ import annotations

import shlex
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from amlb_ext.amlb.configuration import configured_folds, find_definition
from amlb_ext.amlb.definition import Job, list_jobs
from amlb_ext.cli.command import all_commands
from amlb_ext.cli.main import parse
from amlb_ext.core.errors import RunError
from amlb_ext.core.locks import lock_open_file
from amlb_ext.core.task import Kind
from amlb_ext.runner.jobs import (
    JOB_COLUMNS,
    jobs_for_verdict,
    read_jobs,
    rerun_commands,
)
from amlb_ext.runner.run_folder import ASKED, write_asked
from amlb_ext.suite import SuiteFiles
from amlb_ext.suite.definition import amlb_configuration
from amlb_ext.suite.layout import Layout, amlb_name
from amlb_ext.suite.manifest import AmlbTask, SuiteRequest, TableManifest

CONFIG = amlb_configuration(1)
#: A task of two folds, of which one has no bad row, and a task of three.
FOLDS = {
    ("iris", ""): 2,
    ("iris", "full"): 2,
    ("iris", "bad"): 1,
    ("car", ""): 3,
    ("car", "full"): 3,
}
MAIN = [
    Job(amlb_name(*key), k)
    for key, n in FOLDS.items()
    if key[1] != "bad"
    for k in range(n)
]


def make_suite(root, name="hard"):
    """A suite without data: its manifest, and its definitions on disk."""
    tasks = {}
    for (task, suffix), n in FOLDS.items():
        files = [f"{k}.csv" for k in range(n)]
        own = amlb_name(task, suffix)
        tasks[own] = AmlbTask(own, task, suffix, Kind.BINARY, "y", "", None, list(range(n)), files,
                              files, files, [9] * n, [9] * n)  # fmt: skip
    manifest = TableManifest(
        version="0",
        name=name,
        seed=1,
        request=SuiteRequest(command=""),
        config={},
        tasks={},
        amlb_tasks=tasks,
        order=list(dict.fromkeys(task for task, _ in FOLDS)),
    )
    suite = SuiteFiles(Layout(root), manifest)
    for path, text in suite.definition_texts().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return suite


@pytest.fixture
def suite(tmp_path):
    return make_suite(tmp_path / "suite")


@pytest.fixture
def out(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def row(task, fold, result=0.5, framework="flaml", constraint="1h", **more):
    known = {"id": task, "task": task, "framework": framework, "constraint": constraint,
             "fold": fold, "type": "binary", "result": result, "metric": "auc", "mode": "local",
             "version": "2.1", "params": "", "app_version": "dev", "utc": "2025-03-01T10:00:00",
             "duration": 60.0, "info": ""}  # fmt: skip
    return known | more


def write_run(out, rows, framework="flaml", constraint="1h", definition="hard",
              stamp="20250301T100000", asked=(), log="", name=""):  # fmt: skip
    """Write a run's folder as AMLB, which lower-cases its name, and ``hardsynth run`` do."""
    folder = out / (
        name or f"{framework}.{definition}.{constraint}.local".lower() + f".{stamp}"
    )
    folder.mkdir()
    if rows:
        (folder / "scores").mkdir()
        pd.DataFrame(rows).to_csv(folder / "scores" / "results.csv", index=False)
    for job in (Job(r["task"], r["fold"]) for r in rows if r["result"] is not None):
        path = folder / "predictions" / job.task / str(job.fold) / "predictions.csv"
        path.parent.mkdir(parents=True)
        path.write_text("predictions,truth\n")
    if asked:
        record = {
            "framework": framework,
            "benchmark": definition,
            "constraint": constraint,
        }
        write_asked(folder, record, asked)
    if log:
        (folder / "run.log").write_text(log)
    return folder


def status(found):
    return {
        Job(r["amlb_task"], r["fold"]): (r["status"], r["reason"])
        for r in found.table.to_dict("records")
    }


def starting(task, fold):
    return f"Starting job local.hard.1h.{task}.{fold}.flaml.\n"


def test_the_latest_scored_run_counts(suite, out):
    write_run(out, [row("iris_full", 0, 0.5)], stamp="20250301T100000")
    middle = write_run(out, [row("iris_full", 0, 0.7)], stamp="20250302T100000")
    write_run(
        out, [row("iris_full", 0, None, info="too slow")], stamp="20250303T100000"
    )
    found = read_jobs(suite, out)
    assert list(found.table.columns) == list(JOB_COLUMNS)
    (job,) = found.table[found.table["status"] == "scored"].to_dict("records")
    assert (job["result"], job["run"], job["reason"]) == (0.7, str(middle), "")
    assert len(found.rows) == 3


def test_reasons_of_failures(suite, out):
    """AMLB's ``info`` first, then its log, then the admission that there is none.

    A job whose data could not be loaded has no row, and files may lack columns.
    """
    told = "\x1b[31mJob `local.hard.1h.iris_full.1.flaml` failed with error: no memory\x1b[0m\n"
    rows = [row("iris_full", 0, None, info="ValueError: no good"), row("iris_full", 1, None),
            row("iris", 0, None)]  # fmt: skip
    told += "Job `local.hard.1h.car.2.flaml` failed with error: no such file x\n"
    old = {"id": "", "task": "iris", "framework": "flaml", "constraint": "1h"}
    old |= {"fold": 1.0, "result": None}
    write_run(out, [old], stamp="20250201T100000")
    write_run(out, rows, log=told)
    found = status(read_jobs(suite, out))
    assert found[Job("car", 2)] == ("missing", "no such file x")
    assert found[Job("iris", 1)] == ("failed", "AMLB gives no reason")
    assert found[Job("iris_full", 0)] == ("failed", "ValueError: no good")
    assert found[Job("iris_full", 1)] == ("failed", "no memory")
    assert found[Job("iris", 0)] == ("failed", "AMLB gives no reason")


def test_a_run_killed_in_the_middle(suite, out):
    """One job is done, one was begun, one was still to come, the others were not asked for."""
    asked = [Job("iris", 0), Job("iris", 1), Job("iris_full", 0)]
    log = starting("iris", 0) + starting("iris", 1) + "Terminated\n"
    write_run(out, [row("iris", 0)], asked=asked, log=log)
    found = status(read_jobs(suite, out))
    assert found[Job("iris", 0)][0] == "scored"
    begun = "started but left no result: the job was killed, or AMLB ended during it"
    assert found[Job("iris", 1)] == ("missing", begun)
    assert found[Job("iris_full", 0)] == (
        "missing",
        "requested, but AMLB ended before it started",
    )
    assert found[Job("iris_full", 1)] == ("not run", "not asked for")
    assert set(found) == set(MAIN)


def test_jobs_of_a_run_that_goes_on_are_not_called_lost(suite, out):
    asked = [Job("iris_full", 0), Job("iris_full", 1)]
    folder = write_run(out, [row("iris_full", 0)], asked=asked)
    with lock_open_file(folder / ASKED, lambda: pytest.fail("it is held")):
        found = status(read_jobs(suite, out))
    assert found[asked[0]] == ("scored", "")
    assert found[asked[1]][0] == "missing"
    assert "is going on" in found[asked[1]][1]
    assert "ended before it started" in status(read_jobs(suite, out))[asked[1]][1]


def test_jobs_that_left_nothing_belong_to_the_version_of_their_run(suite, out):
    """Lest the other folds of that version pass for whole results."""
    asked = [Job("iris", 0), Job("iris", 1)]
    write_run(out, [row("iris", 0), row("iris", 1)], asked=asked)
    write_run(out, [row("iris", 0, version="3")], asked=asked, stamp="20250302T100000")
    table = read_jobs(suite, out).table
    (gone,) = table[table["status"] == "missing"].to_dict("records")
    assert gone["framework"] == "flaml 3"


@pytest.mark.parametrize("seed", range(5))
def test_commands_run_just_the_broken_jobs(suite, seed):
    """Any set of broken jobs comes back from the commands, and no other job."""
    rng = np.random.default_rng(seed)
    broken = [MAIN[i] for i in rng.permutation(len(MAIN))[: rng.integers(1, len(MAIN))]]
    found = []
    for command in rerun_commands(table_of(broken), suite, "out"):
        arguments, jobs = asked_by(command, suite)
        assert (arguments.framework, arguments.constraint) == ("flaml", "1h")
        found += jobs
    assert sorted(found) == sorted(broken)  # each once
    assert rerun_commands(table_of(broken)[:0], suite, "out") == []


@pytest.mark.parametrize("archived", [False, True])
def test_amlbs_own_logs_are_read_archived_or_not(suite, out, archived):
    run = write_run(out, [row("iris", 0)])
    text = starting("iris", 0) + starting("iris", 1)
    if archived:
        with zipfile.ZipFile(run / "logs.zip", "w") as archive:
            archive.writestr("runbenchmark.log", text)
            archive.writestr("notes.txt", starting("car", 0))
    else:
        (run / "logs").mkdir()
        (run / "logs" / "runbenchmark.log").write_text(text)
    found = status(read_jobs(suite, out))
    assert found[Job("iris", 1)][0] == "missing"
    assert found[Job("car", 0)][0] == "not run"


def test_a_broken_archive_or_note_hides_nothing(suite, out):
    run = write_run(out, [row("iris", 0)], definition="hard_all")
    (run / "logs.zip").write_text("no archive")
    (run / "asked.json").write_text("[")
    # the run of this folder, given twice, counts once; it was of the definition of all
    found = read_jobs(suite, run, out)
    assert status(found)[Job("iris", 0)][0] == "scored"
    assert set(status(found)) == {*MAIN, Job("iris_bad", 0)}
    assert len(found.rows) == 1


def test_the_appended_results_alone(suite, out):
    """Of a folder cleaned of its runs only tasks that stand in it are known to be tried.

    Their scores are told, but without predictions nothing can be compared.
    """
    rows = [row("iris_full", 0, 0.5), row("iris_full", 0, 0.7, utc="2025-03-02T10:00:00"),
            row("iris_full", 0, 0.6, utc="2025-03-01T12:00:00"),
            row("iris_full", 1, None, framework="tpot", info="no")]  # fmt: skip
    pd.DataFrame(rows).to_csv(out / "results.csv", index=False)
    table = read_jobs(suite, out).table
    found = {(r["framework"], r["fold"]): r for r in table.to_dict("records")}
    assert set(table["amlb_task"]) == {"iris_full"}
    assert found["flaml", 0]["result"] == 0.7
    assert found["flaml", 0]["run"] == str(out)
    assert found["flaml", 0]["status"] == "missing"
    assert "its predictions file is missing" in found["flaml", 0]["reason"]
    assert (found["tpot", 1]["status"], found["tpot", 1]["reason"]) == ("failed", "no")
    assert found["flaml", 1]["status"] == found["tpot", 0]["status"] == "not run"


def test_a_score_with_predictions_wins_over_a_later_one_without(suite, out):
    first = write_run(out, [row("iris", 0, 0.5)])
    later = write_run(out, [row("iris", 0, 0.7)], stamp="20250302T100000")
    (later / "predictions" / "iris" / "0" / "predictions.csv").unlink()
    table = read_jobs(suite, out).table.set_index(["amlb_task", "fold"])
    assert table.loc[("iris", 0), ["status", "run"]].tolist() == ["scored", str(first)]


def test_constraints_and_versions_tell_frameworks_apart(suite, out):
    write_run(out, [row("iris", 0)])
    write_run(out, [row("iris", 0, constraint="4h")], constraint="4h")
    write_run(out, [row("iris", 0, framework="tpot")], framework="tpot")
    write_run(out, [row("iris", 0, framework="tpot", version="3")], framework="tpot",
              stamp="20250302T100000")  # fmt: skip
    table = read_jobs(suite, out).table
    scored = table[table["status"] == "scored"]
    assert scored["framework"].tolist() == [
        "flaml (1h)",
        "flaml (4h)",
        "tpot 2.1",
        "tpot 3",
    ]
    assert scored["name"].tolist() == ["flaml", "flaml", "tpot", "tpot"]


def test_a_failed_set_up_is_healed_by_a_later_success(suite, out):
    """AMLB knows the version of a framework only once it is set up."""
    failed = [
        row("iris", fold, None, version="stable", info="no pip") for fold in (0, 1)
    ]
    write_run(out, failed)
    done = [row("iris", fold, version="1.2.4") for fold in (0, 1)]
    write_run(out, done, stamp="20250302T100000")
    table = read_jobs(suite, out).table
    assert set(table["framework"]) == {"flaml"}
    assert not set(table["status"]) & {"failed", "missing"}
    # Beside another version that was scored, the failure is healed too.
    write_run(out, [row("iris", 0, version="2")], stamp="20250303T100000")
    table = read_jobs(suite, out).table
    assert set(table["framework"]) == {"flaml 1.2.4", "flaml 2"}
    assert not set(table["status"]) & {"failed", "missing"}


def test_what_a_verdict_needs_is_told_where_only_hard_rows_were_run(suite, out):
    rows = [row("iris", 0), row("car", 1), row("car_full", 0)]
    write_run(out, rows)
    write_run(out, [row("iris", 1, constraint="score")], constraint="score")
    table = read_jobs(suite, out).table
    needed = jobs_for_verdict(table, suite)
    jobs = needed[["constraint", "amlb_task", "fold"]].to_numpy().tolist()
    # one fold of car_full is none of the others
    assert [job for job in jobs if job[0] == "1h" and "car" in job[1]] == [
        ["1h", "car_full", fold]
        for fold in range(1, len(suite.amlb_tasks["car_full"].folds))
    ]
    assert {"1h", "score"} == {job[0] for job in jobs if job[1] == "iris_full"}
    commands = rerun_commands(needed, suite, out)
    root = suite.layout.root
    assert commands[0].startswith(f"hardsynth run flaml 1h -u {root} -b hard -r {out}")
    assert commands[-1].startswith(f"hardsynth score {root}")


def test_names_of_folders_have_lost_their_case(suite, out):
    """A killed run is known by its folder only, in lower case: it is the same framework."""
    write_run(
        out, [row("iris", 0, framework="FLAML", constraint="1H8c")], "FLAML", "1H8c"
    )
    write_run(
        out, [], "FLAML", "1H8c", stamp="20250302T100000", log=starting("iris", 1)
    )
    table = read_jobs(suite, out).table
    assert set(table["framework"]) == set(table["name"]) == {"FLAML"}
    assert set(table["constraint"]) == {"1H8c"}
    assert (
        table.set_index(["amlb_task", "fold"]).loc[("iris", 1), "status"] == "missing"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id;task;framework;fold;result\nx;iris;flaml;0;1\n", "no column 'task'"),
        ("id,task,framework,fold\nx,iris,flaml,0\n", "no column 'result'"),
        ("task,framework,fold,result\niris,flaml,first,1\n", "line 2 has no number"),
        ('task,framework,fold,result\niris,flaml,0,"0,9"\n', "'result' holds '0,9'"),
    ],
)
def test_a_file_of_scores_that_cannot_be_read_is_named(suite, out, text, message):
    """Beside it all other runs were said not to have been run."""
    write_run(out, [row("iris", 1)], stamp="20250302T100000")
    run = write_run(out, [row("iris", 0)])
    (run / "scores" / "results.csv").write_text(text)
    with pytest.raises(RunError, match=message):
        read_jobs(suite, out)


def test_no_results(suite, out):
    with pytest.raises(RunError, match="holds no AMLB results"):
        read_jobs(suite, out)
    with pytest.raises(RunError, match="there is no folder"):
        read_jobs(suite, out / "nowhere")
    write_run(out, [row("adult", 0)], definition="other")
    with pytest.raises(RunError, match="there are no results of the suite") as caught:
        read_jobs(suite, out)
    assert "hardsynth run FRAMEWORK -u" in str(caught.value)


def asked_by(command, suite):
    """The jobs of a command, read as a shell, our command line and AMLB read it."""
    words = shlex.split(command)
    assert words[0] == "hardsynth"
    _, parsed = parse(all_commands(), words[1:])
    arguments = SimpleNamespace(**parsed)
    assert arguments.userdir == suite.layout.root
    path = find_definition(
        arguments.benchmark, suite.layout.root, suite.layout.root, CONFIG
    )
    return arguments, list_jobs(
        path,
        {},
        fallback_folds=configured_folds(CONFIG),
        tasks=arguments.task,
        folds=arguments.fold,
    )


def table_of(jobs, **columns):
    known = {
        "name": "flaml",
        "constraint": "1h",
        "benchmark": "hard",
        "status": "failed",
    }
    return pd.DataFrame(
        [{"amlb_task": j.task, "fold": j.fold, **known, **columns} for j in jobs]
    )


def test_frameworks_constraints_and_definitions_have_their_own_commands(suite):
    job = [Job("iris", 0)]
    parts = [table_of(job), table_of(job, constraint="4h"), table_of(job, name="tpot"),
             table_of([Job("iris_bad", 0)], benchmark="hard_all"),
             table_of([Job("car", 0)], constraint="", benchmark="")]  # fmt: skip
    commands = rerun_commands(pd.concat(parts, ignore_index=True), suite, "out")
    read = [asked_by(command, suite)[0] for command in commands]
    assert [(a.framework, a.constraint, a.benchmark) for a in read] == [
        ("flaml", "1h", "hard"),
        ("flaml", "4h", "hard"),
        ("tpot", "1h", "hard"),
        ("flaml", "1h", "hard_all"),
        ("flaml", None, "hard"),
    ]


def test_names_with_spaces_are_quoted(tmp_path):
    suite = make_suite(tmp_path / "my suite's", "hard")
    (command,) = rerun_commands(
        table_of([Job("car", 2)]), suite, "the results; rm -r x"
    )
    arguments, jobs = asked_by(command, suite)
    assert arguments.results == Path("the results; rm -r x")
    assert jobs == (Job("car", 2),)


def test_commands_spell_the_definition_as_its_file(tmp_path, out):
    """AMLB lower-cases it in the folder's name; a file system may know the difference."""
    suite = make_suite(tmp_path / "suite", "Hard")
    write_run(out, [row("iris", 0, None, info="no")], definition="Hard")
    table = read_jobs(suite, out).table
    (command,) = rerun_commands(table[table["status"] == "failed"], suite, out)
    assert asked_by(command, suite)[1] == (Job("iris", 0),)


def test_runs_of_another_suite_of_the_same_name_are_not_ours(suite, out):
    write_run(out, [row("vehicle", 0), row("vehicle_full", 0)])
    with pytest.raises(RunError, match="no results of the suite"):
        read_jobs(suite, out)
    write_run(out, [], asked=[Job("vehicle", 1)], framework="killed")
    write_run(out, [row("iris_full", 0)], stamp="20250302T100000")
    found = read_jobs(suite, out)
    assert set(found.table["name"]) == {"flaml"}
    assert set(found.rows["task"]) == {"iris_full"}
    assert "2 results of other benchmarks" in found.notes[0]


def test_the_latest_failure_counts_when_nothing_was_scored(suite, out):
    write_run(out, [row("iris_full", 0, None, info="old")], stamp="20250301T100000")
    write_run(out, [row("iris_full", 0, None, info="new")], stamp="20250302T100000")
    assert status(read_jobs(suite, out))[Job("iris_full", 0)] == ("failed", "new")


def test_results_of_other_benchmarks_are_left_out_with_a_note(suite, out):
    write_run(out, [row("iris", 0), row("adult", 0), row("adult", 1)])
    found = read_jobs(suite, out)
    assert found.notes == (
        "2 results of other benchmarks were left out (tasks adult).",
    )
    assert set(found.table["amlb_task"]) <= set(suite.amlb_tasks)
    assert len(found.rows) == 1


def test_commands_run_no_fold_of_a_larger_task_that_is_whole(suite):
    """Folds 0 and 1 are all of iris, and not all of car."""
    broken = [Job(task, k) for task in ("iris", "car") for k in (0, 1)]
    found = [
        j
        for c in rerun_commands(table_of(broken), suite, "out")
        for j in asked_by(c, suite)[1]
    ]
    assert sorted(found) == sorted(broken)


def test_results_of_the_score_command_are_run_again_by_it(suite):
    """No constraint of that name exists, so ``hardsynth run`` could not."""
    jobs = table_of([Job("iris", 0)], name="HardsynthNull", constraint="score")
    (command,) = rerun_commands(jobs, suite, "out")
    parsed, arguments = parse(all_commands(), shlex.split(command)[1:])
    assert parsed.name == "score"
    assert arguments["suite"] == suite.layout.root
    assert arguments["results"] == Path("out")
