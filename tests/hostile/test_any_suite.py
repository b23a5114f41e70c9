"""Suites of tables, suites of series and folders of tasks: one rule for places, links and code."""

import contextlib
import io
import json
import os
import shutil
from dataclasses import replace
from functools import partial
from itertools import product

import pytest
import yaml
from exhaustive import count_of, first_of
from hostile_files import reseal, tree
from small_suites import write_suite as write_tables

from amlb_ext.cli import main
from amlb_ext.core.errors import SuiteError
from amlb_ext.models.forecasters import make_forecaster
from amlb_ext.pipeline.series_suite import SuitePart
from amlb_ext.pipeline.series_suite import write_suite as write_series
from amlb_ext.pipeline.weird import WeirdRequest, write_weird_tasks
from amlb_ext.sources.bundled_series import SIMULATED_ROLES, simulate_series
from amlb_ext.sources.panel import read_panel
from amlb_ext.suite import Layout
from amlb_ext.suite.sealed_json import sealed_text
from amlb_ext.tasks import TASKS
from amlb_ext.tasks.drop4 import draw_games
from amlb_ext.units.failing_windows import find_failing_windows
from amlb_ext.units.origins import plan_origins

KINDS = ("tables", "series", "folder")
#: What stands in every kind of suite, and what only some have.
FRAMEWORK = {
    "HardsynthNull": {
        "module": "extensions.HardsynthSklearn",
        "version": "stable",
        "params": {"classifier": "sklearn.dummy.DummyClassifier"},
    }
}


def make(kind, root):
    if kind == "tables":
        write_tables(root, {"a": ("binary", 40, 20)}, integrations=FRAMEWORK)
    elif kind == "series":
        panel = read_panel(simulate_series(12, 60), SIMULATED_ROLES)
        failing = find_failing_windows(
            make_forecaster("seasonal_naive"),
            panel,
            plan_origins(panel, test=1),
        )
        about = {"source": "simulated", "baseline": "seasonal_naive"}
        part = SuitePart(task="a", failing=failing, twins=[], about=about)
        write_series(root, [part], name="hardsynth", seed=0)
    else:
        task = replace(TASKS["drop4_winners"], draw=partial(draw_games, rows=30))
        write_weird_tasks(root, [task], WeirdRequest(folds=1, models=["m"]))


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    for kind in KINDS:
        make(kind, folder / kind)
    return folder


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def suite(kind, originals, tmp_path):
    root = shutil.copytree(originals / kind, tmp_path / "theirs" / "hard")
    if kind == "series":
        assert main(["verify", str(root), "--repair", "-q"]) == 0
    return root


def in_turn(*cases):
    """Return every case with one kind of suite in turn, and marked with the others."""
    params = []
    for number, case in enumerate(product(*cases)):
        for place, kind in enumerate(KINDS):
            is_its_turn = place == number % len(KINDS)
            marks = [] if is_its_turn else [pytest.mark.exhaustive]
            params.append(pytest.param(kind, *case, marks=marks))
    return params


def manifest_of(suite):
    return suite / "hardsynth" / "manifest.json"


def commands(suite, kind, out):
    """Whatever reads or writes a suite, and where it may write beside it."""
    root = str(suite)
    words = [
        ["verify", root],
        ["run", "HardsynthNull", "-u", root, "-r", str(out / "r"), "--amlb", str(out)],
        ["report", root, "--results", str(out / "r"), "-o", str(out / "page")],
        ["verify", root, "--repair"],
        ["show", root],
        ["export", root, "-o", str(out / "x"), "--base-url", "https://e.org/x"],
        ["install", root, "--userdir", str(out / "user")],
    ]
    if kind == "tables":
        words += [
            ["certify", root, "-j", "1"],
            ["score", root, "-r", str(out / "s"), "-j", "1"],
            ["export", root, "-o", str(out / "t"), "--for", "tabarena"],
            ["publish", root, "--dry-run", "--server", "http://localhost:1"],
        ]
    return words


def spoken(words):
    """Return the exit status of a command and its lines on stderr."""
    errors = io.StringIO()
    with (
        contextlib.redirect_stderr(errors),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        status = main([*words, "-q"])
    return status, errors.getvalue().splitlines()


def assert_refused(suite, kind, out, turn=0):
    """Commands end with status 2 and one line: ``verify``, and the others in turn."""
    words = commands(suite, kind, out)
    for number, words_of in enumerate(words):
        if number and turn % len(words) not in (0, number):
            continue
        status, lines = spoken(words_of)
        assert (status, len(lines)) == (2, 1), (words_of, status, lines)
        assert len(lines[0]) < 1000, words_of
        assert "\x1b" not in lines[0], words_of
    return lines[0]


# links


LINKED = {
    "lock": "hardsynth/.lock",
    "own folder": "hardsynth",
    "data": "data",
    "one task": "data/*",
    "a table": "data/*/*.csv",
    "definitions": "benchmarks",
    "a definition": "benchmarks/hardsynth.yaml",
    "extensions": "extensions",
    "code": "extensions/*/exec.py",
    "constraints": "constraints.yaml",
    "frameworks": "frameworks.yaml",
    "columns": "hardsynth/columns.csv",
    "report": "hardsynth/report",
    "page": "hardsynth/report.html",
    "provenance": "hardsynth/*/fold_*/provenance.parquet",
    "series": "hardsynth/series.parquet",
    "certificate": "hardsynth/a/certificate.json",
}


@pytest.mark.parametrize(
    ("kind", "how", "place"),
    in_turn(["link", "dangling", "second name"], LINKED),
    indirect=["kind"],
)
def test_nothing_is_read_or_written_through_a_link(suite, kind, place, how, tmp_path):
    pattern = LINKED[place]
    found = sorted(suite.glob(pattern)) or [suite / pattern]
    if "*" in str(found[0]):
        pytest.skip("this kind has no such file")
    path = found[0]
    victim = tmp_path / "victim"
    if path.exists():
        shutil.move(path, victim)
    else:
        victim.write_text("precious")
    path.parent.mkdir(parents=True, exist_ok=True)
    if how == "second name":
        if victim.is_dir():
            pytest.skip("a folder has one name")
        os.link(victim, path)
    else:
        path.symlink_to(victim)
    if how == "dangling":
        shutil.move(victim, tmp_path / "gone")
    before = tree(tmp_path)
    (tmp_path / "out").mkdir()
    assert_refused(suite, kind, tmp_path / "out", 1 + list(LINKED).index(place))
    after = tree(tmp_path)
    assert {name: after.get(name) for name in before} == before
    assert [name for name in after if not name.startswith("out")] == list(before)


def test_writing_a_suite_again_follows_no_link(suite, kind, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "t.csv").write_text("x,y\n1,2\n")
    (suite / "hardsynth" / ".lock").symlink_to(victim)
    before = tree(tmp_path)
    if kind == "tables":
        words = ["generate", str(tmp_path / "t.csv"), "-o", str(suite), "--force"]
        status, lines = spoken(words)
        assert (status, len(lines)) == (2, 1)
        assert "hardsynth/.lock in" in lines[0]
    else:
        with pytest.raises(SuiteError, match=r"\.lock in .* is a link"):
            make(kind, suite)
    assert tree(tmp_path) == before


def test_a_suite_may_lie_behind_a_link(suite, tmp_path):
    (tmp_path / "way").symlink_to(suite.parent)
    assert main(["verify", str(tmp_path / "way" / "hard"), "-q"]) in (0, 1)
    assert main(["verify", str(suite), "-q"]) == 0


def test_what_is_no_file_is_not_opened(suite, kind, tmp_path):
    os.mkfifo(suite / "hardsynth" / "report.html")
    assert "is a link, or no file" in assert_refused(suite, kind, tmp_path / "out")


# names and paths


PLACES = [
    "../../victim/config",
    "/etc/passwd",
    "data/../../x",
    "data\\x",
    "C:x",
    "a\x00b",
    "",
    ".",
    "a//b",
    "-u",
    "nul",
    "com1.csv",
    "trailing.",
    "x" * 5000,
    "~/x",
    "x\x1b[2J",
    "\ud800",
    7,
    None,
]


def set_task_name(entry, kind, name):
    if kind == "series":
        entry["tables"][0]["tasks"][0]["name"] = name
    elif kind == "folder":
        entry["tasks"][0]["name"] = name
    else:
        entry["amlb_tasks"]["a"]["name"] = name


def rename_table(entry, kind, name):
    """Give the table of a suite another name, everywhere in the manifest."""
    if kind != "tables":
        set_task_name(entry, kind, name)
        return
    entry["tasks"] = {name: entry["tasks"]["a"]}
    entry["order"] = [name]
    tasks = entry["amlb_tasks"].items()
    entry["amlb_tasks"] = {
        name + old.removeprefix("a"): task
        | {"name": name + old.removeprefix("a"), "task": name}
        for old, task in tasks
    }


def set_path(entry, kind, path):
    if kind == "series":
        entry["tables"][0]["tasks"][0]["path"] = path
    elif kind == "folder":
        entry["tasks"][0]["folds"][0]["test"] = path
    else:
        entry["amlb_tasks"]["a"]["test"][0] = path


@pytest.mark.parametrize(
    "where", [set_task_name, rename_table, set_path, "name", "files"]
)
@pytest.mark.parametrize(
    "place", first_of(PLACES, 7), ids=lambda place: repr(place)[:20]
)
def test_a_name_that_leaves_the_suite_is_refused(suite, kind, place, where, tmp_path):
    turn = 1 + PLACES.index(place)

    def change(entry):
        if where == "name":
            entry["name"] = place
        elif where == "files":
            entry["files"][str(place)] = "0" * 64
        else:
            where(entry, kind, place)

    if where in ("files", rename_table) and place in (7, None):
        pytest.skip("a key is a text")
    reseal(suite, change)
    before = tree(tmp_path)
    assert_refused(suite, kind, tmp_path / "out", turn)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("other", ["DATA/x.csv", "Config.yaml", "config.yaml/x"])
def test_names_that_are_one_on_some_systems(suite, kind, other, tmp_path):
    def change(entry):
        entry["files"][other] = entry["files"]["data/x.csv"] = "0" * 64

    reseal(suite, change)
    assert "cannot stand in one folder" in assert_refused(suite, kind, tmp_path)


# manifests


def damaged_bytes():
    yield "no JSON", b"{"
    yield "nothing", b""
    yield "not UTF-8", b'{"name": "\xff"}'
    yield "UTF-16", '{"name": "a"}'.encode("utf-16")
    yield "a list", b"[]"
    yield "null", b"null"
    yield "a number", b"7"
    yield "a text", b'"x"'
    yield "NaN", b'{"seed": NaN}'
    yield "infinity", b'{"seed": 1e999}'
    yield "brackets without end", b"[" * 100_000
    yield "a long number", b'{"seed": ' + b"9" * 10_000 + b"}"
    yield "no seal", b'{"format": 2, "name": "a"}'


@pytest.mark.parametrize(
    ("turn", "content"),
    [
        pytest.param(turn, raw, id=name)
        for turn, (name, raw) in enumerate(damaged_bytes())
    ],
)
def test_a_manifest_that_is_none_is_one_line(suite, kind, turn, content, tmp_path):
    manifest_of(suite).write_bytes(content)
    words = [w for w in commands(suite, kind, tmp_path / "o") if "--repair" not in w]
    for command in (words[0], words[turn % len(words)]):
        status, lines = spoken(command)
        assert (status, len(lines)) == (2, 1), (command, lines)


WRONG = [None, [], {}, "x", 7, -1, 1e308, 10**400, True, [[]], [None], {"a": []}]


def places_of(value, path=()):
    """Yield the way to every value of a manifest, one of each list and each mapping of files."""
    if isinstance(value, dict):
        for key in list(value)[:12]:
            yield (*path, key)
            yield from places_of(value[key], (*path, key))
    elif isinstance(value, list) and value:
        yield (*path, 0)
        yield from places_of(value[0], (*path, 0))


def test_wrong_values_anywhere_are_no_traceback(suite, kind, tmp_path):
    """A value of a manifest is of another type, or missing, under a seal that holds: each in turn.

    A run of everything takes every third.
    """
    path = manifest_of(suite)
    original = path.read_text()
    tried = 0
    ways = list(enumerate(places_of(json.loads(original))))
    for number, way in ways[:: count_of(3, 1)]:
        entry = json.loads(original)
        del entry["sha256"]
        parent = entry
        if way[0] == "sha256":
            continue
        for step in way[:-1]:
            parent = parent[step]
        if number % 5 == 0:
            del parent[way[-1]]
        else:
            parent[way[-1]] = WRONG[number % len(WRONG)]
        path.write_text(sealed_text(entry))
        status, lines = spoken(["verify", str(suite)])
        assert status in (0, 1, 2), way
        if status == 2:
            assert len(lines) == 1, (way, lines)
        for words in (["report", str(suite), "--text"], ["show", str(suite)]):
            if status == 2:
                status_of_reader, lines = spoken(words)
                assert (status_of_reader, len(lines)) == (2, 1), (words, way, lines)
        tried += 1
    assert tried > len(ways) // 4


# foreign code


def add_code(relative):
    def add(suite, kind):
        (suite / relative).parent.mkdir(parents=True, exist_ok=True)
        (suite / relative).write_text("raise SystemExit('ran')\n")

    return add


def list_code(relative):
    def add(suite, kind):
        add_code(relative)(suite, kind)
        reseal(suite, lambda entry: entry["files"].update({relative: "0"}))

    return add


def change_frameworks(**changes):
    def change(suite, kind):
        path = suite / "frameworks.yaml"
        entries = yaml.safe_load(path.read_text())
        next(iter(entries.values())).update(changes)
        path.write_text(yaml.safe_dump(entries))
        reseal(suite)

    return change


def change_file(pattern, text="\n"):
    def change(suite, kind):
        path = sorted(suite.glob(pattern))[0]
        path.write_text(path.read_text() + text)

    return change


def change_and_seal(pattern, text="\n"):
    def change(suite, kind):
        change_file(pattern, text)(suite, kind)
        reseal(suite)

    return change


def change_budget(suite, kind):
    path = suite / "constraints.yaml"
    path.write_text(path.read_text().replace("3600", "36"))
    reseal(suite)


def module_of(suite):
    return next((suite / "extensions").glob("*/exec.py")).parent.name


def own_entry(text):
    def add(suite, kind):
        path = suite / "frameworks.yaml"
        path.write_text(path.read_text() + text.format(module=module_of(suite)))

    return add


FOREIGN = {
    "code beside ours": add_code("extensions/evil.py"),
    "a package of its own": add_code("extensions/Evil/__init__.py"),
    "code at the top": add_code("sitecustomize.py"),
    "a path file": add_code("x.pth"),
    "conftest": add_code("data/conftest.py"),
    "compiled code": add_code("extensions/sklearn.pyc"),
    "another definition": add_code("benchmarks/other.yaml"),
    "frameworks of a tag": add_code("frameworks_latest.yaml"),
    "a hidden file": add_code("hardsynth/.evil/x.py"),
    "code that the manifest lists": list_code("extensions/evil.py"),
    "a module that the manifest lists": list_code("sklearn.py"),
    "a definition that the manifest lists": list_code("benchmarks/other.yaml"),
    "our code, changed": change_file("extensions/*/exec.py"),
    "our code, changed and sealed": change_and_seal("extensions/*/exec.py"),
    "a table, changed": change_file("data/*/*.csv", "x"),
    "settings, changed and sealed": change_and_seal("config.yaml", "root_dir: /x\n"),
    "a definition, changed": change_file("benchmarks/hardsynth.yaml", "- name: x\n"),
    "a set-up command": change_frameworks(setup_cmd="touch ran"),
    "a set-up script": change_frameworks(setup_script="x.sh"),
    "arguments of a set-up": change_frameworks(setup_args=["; touch ran"]),
    "another module": change_frameworks(module="os.path"),
    "a version for the shell": change_frameworks(version="1; touch ran"),
    "a parent of another's": own_entry("HardsynthX: {{extends: mine}}\nmine: {{}}\n"),
    "an own entry with a command": own_entry("mine: {{setup_cmd: touch ran}}\n"),
    "an own entry in our folder": own_entry(
        "mine: {{module: extensions.{module}.evil}}\n"
    ),
    "a budget of ours, changed and sealed": change_budget,
    "a constraint that is none": change_file(
        "constraints.yaml", "x: {setup_cmd: touch}\n"
    ),
}


@pytest.mark.parametrize(("kind", "how"), in_turn(FOREIGN), indirect=["kind"])
def test_verify_sees_foreign_code_and_run_does_not_start_it(suite, kind, how, tmp_path):
    if kind == "folder" and how == "a definition, changed":
        FOREIGN["our code, changed"](suite, kind)
        change_and_seal("benchmarks/weird.yaml", "- name: x\n")(suite, kind)
    else:
        FOREIGN[how](suite, kind)
    assert main(["verify", str(suite), "-q"]) == 1
    status, lines = spoken(
        ["run", "X", "-u", str(suite), "-r", str(tmp_path / "r"), "--amlb", "nowhere"]
    )
    assert status == 2
    assert len(lines) == 1
    assert "--unverified" in lines[0]
    assert not (tmp_path / "r").exists()
    status, lines = spoken(["install", str(suite), "--userdir", str(tmp_path / "u")])
    assert status == 2
    assert "--unverified" in lines[0]
    assert not (tmp_path / "u").exists()


def test_told_so_run_goes_on(suite, kind, tmp_path):
    add_code("extensions/evil.py")(suite, kind)
    words = ["run", "X", "-u", str(suite), "-r", str(tmp_path / "r")]
    words += ["--amlb", "nowhere"]
    # as far as the checkout that is not there
    status, lines = spoken([*words, "--unverified"])
    assert status == 2
    assert "nowhere" in lines[0]


def test_what_a_user_may_add_is_no_damage(suite, kind, output_of):
    add = change_file(
        "constraints.yaml", "mine: {folds: 10, max_runtime_seconds: 180, cores: 1}\n"
    )
    add(suite, kind)
    add = change_file("constraints.yaml", "1h8c: {max_runtime_seconds: 5}\n")
    add(suite, kind)
    add = change_file(
        "frameworks.yaml",
        "mine: {module: extensions.Mine}\nRandomForest: {extends: flaml}\n",
    )
    add(suite, kind)
    add_code("extensions/Mine/exec.py")(suite, kind)
    (suite / "README.md").write_text("about")
    cache = suite / "extensions" / module_of(suite) / "__pycache__"
    cache.mkdir()
    (cache / "exec.cpython-311.pyc").write_bytes(b"x")
    said = output_of("verify", suite)
    for name in ("mine is an entry", "Mine/exec.py", "README.md", "__pycache__"):
        assert name in said
    # both are named as standing in place of AMLB's own
    assert said.count("in place of AMLB's own of that name") == 2


def test_a_constraint_of_ones_own_survives(suite, kind):
    if kind == "tables":
        pytest.skip("test_suites.py repairs a suite with its sources")
    mine = "mine: {folds: 10, max_runtime_seconds: 180, cores: 1}\n"
    change_file("constraints.yaml", mine)(suite, kind)
    assert main(["verify", str(suite), "--repair", "-q"]) == 0
    if kind == "folder":
        make(kind, suite)
    assert mine in (suite / "constraints.yaml").read_text()
    assert main(["verify", str(suite), "-q"]) == 0


def test_an_export_packs_what_the_manifest_names(suite, kind, tmp_path):
    (suite / "data" / "secret.csv").write_text("secret")
    (suite / "hardsynth" / "secret.txt").write_text("secret")
    out = tmp_path / "x"
    words = ["export", str(suite), "-o", str(out), "--base-url", "https://e.org/x"]
    assert main([*words, "-q"]) == 0
    assert not any(b"secret" in path.read_bytes() for path in out.rglob("*.csv"))
    names = json.loads((out / "hardsynth" / "export.json").read_text())["uploads"]
    packed = {file for entry in names.values() for file in entry["files"].values()}
    assert not any("secret" in file for file in packed)
    assert main(["verify", str(out), "-q"]) == 0
    (out / "extensions" / "evil.py").write_text("")
    assert main(["verify", str(out), "-q"]) == 1
    # a file that is not what the manifest says is not packed
    shutil.rmtree(out)
    with Layout(suite).config.open("a") as file:
        file.write("\n")
    assert main([*words, "-q"]) == 2


# one kind of suite beside the others


def test_no_kind_is_written_over_another(suite, kind, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,2\n")
    before = tree(suite)
    others = [other for other in KINDS if other not in (kind, "tables")]
    for other in others:
        with pytest.raises(SuiteError):
            make(other, suite)
    if kind != "tables":
        words = ["generate", str(tmp_path / "t.csv"), "-o", str(suite), "--force"]
        status, [line] = spoken(words)
        assert status == 2
        assert "no suite of ours" in line
    assert tree(suite) == before


def test_a_suite_of_a_former_version_is_refused_with_its_command(originals, tmp_path):
    suite = shutil.copytree(originals / "tables", tmp_path / "hard")
    reseal(suite, lambda entry: entry.update(format=3))
    (suite / "hardsynth" / "request.json").unlink()
    assert_refused(suite, "series", tmp_path)
    assert "hardsynth generate openml/t/1" in spoken(["verify", str(suite)])[1][0]
    # a command that a shell would run is not shown
    request = {"command": "hardsynth generate a; touch ran", "sources": []}
    reseal(suite, lambda entry: entry.update(request=request))
    assert "touch" not in spoken(["verify", str(suite)])[1][0]


TABLE = "gate t.csv --target y --baseline f.csv --candidate f.csv --need better"
SERIES = "--series s --time t --target y --horizon 2"


@pytest.mark.parametrize(
    "words",
    [
        *(
            f"gate {{{kind}}} -r x --need better {flag}"
            for kind in ("tables", "series")
            for flag in (
                *("--rule squared", "--alpha 1", "--kind regression"),
                *("--train t.csv", "--cv 3", "--claim recipes", "--seed 1", "--sep ;"),
                *("--target y", "--record r.json", "--trust-pickle", "--group g"),
            )
        ),
        "gate r.json --check --need better",
        "gate r.json --check --level .9",
        *(f"{TABLE} {flag} x" for flag in ("--task", "--results", "--predictions")),
        "report {tables} --benchmark b",
        "report {series} --openml-cache c",
        "report {tables} --text -o x",
        "report {tables} --json --text",
        "report {folder} --json -o x",
        "verify {tables} --trust-pickle",
        "verify {series} --source x",
        "verify --definition d.yaml --trust-suite",
        "relations {tables} --evidence 12",
        "relations {tables} -o r.yaml",
        "tasks coders -o {folder} --model m --folds 3",
        "publish {tables} --server test --dry-run --wait 5",
        "publish {tables} --server test --difficulty --fold 0",
        "export {tables} --for tabarena --licence x",
        f"compare t.csv {SERIES} --baseline theta --candidate ets --claim recipes",
        f"generate t.csv {SERIES} --fold-timeout 5 -o x",
        f"generate t.csv {SERIES} --config c.yaml -o x",
        "generate bundled/series --target y -o x",
        "compare bundled/series --sep ; --baseline theta --candidate ets",
        "compare t.csv --target y --baseline f --candidate g --learning-origins 2",
        "harden validation --learning-origins 2 -o x",
    ],
)
def test_a_flag_that_would_do_nothing_is_refused(
    words, originals, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for name in ("r.json", "t.csv", "f.csv"):
        (tmp_path / name).write_text("{}")
    places = {kind: originals / kind for kind in KINDS}
    status, lines = spoken(words.format(**places).split())
    assert (status, len(lines)) == (2, 1), lines
    assert any(why in lines[0] for why in ("has no effect", "for series", "has no --"))
    assert not list(tmp_path.glob("x*"))


def test_a_folder_without_a_manifest_is_not_run(suite, kind, tmp_path):
    manifest_of(suite).unlink()
    (suite / "hardsynth" / "request.json").unlink(missing_ok=True)
    words = ["run", "X", "-u", str(suite), "-b", "hardsynth", "--amlb", "nowhere"]
    status, lines = spoken(words)
    assert status == 2
    assert len(lines) == 1


def test_every_suite_is_installed_and_taken_back(suite, tmp_path):
    user = tmp_path / "user"
    where = ["--userdir", str(user), "-q"]
    assert main(["install", str(suite), "--name", "other", *where]) == 0
    home = user / "hardsynth_suites" / "other"
    for task in yaml.safe_load((home / "benchmarks" / "other.yaml").read_text()):
        data = task["dataset"]
        for file in data.get("train", []) + data.get("test", []) + [data.get("path")]:
            assert file is None or os.path.isfile(file)
    assert main(["uninstall", str(suite), *where]) == 0
    assert not user.exists()


def test_a_command_that_a_shell_would_run_is_not_shown(originals, tmp_path):
    suite = shutil.copytree(originals / "tables", tmp_path / "hard")
    request = {"command": "hardsynth generate a; touch ran", "sources": []}
    reseal(suite, lambda entry: entry.update(format=3, request=request))
    status, [line] = spoken(["verify", str(suite)])
    assert status == 2
    assert "touch" not in line
