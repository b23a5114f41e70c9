"""Bad values on the command line and in settings files: one line, status 2, the culprit's name.

A new flag gets its rows here. Nothing is written, and nothing that was there is touched.
"""

import shlex

import pytest

from amlb_ext.cli.main import main

TABLE = "t.csv --target y --baseline f.csv --candidate c=f.csv"
COMPARE = f"compare {TABLE}"
GATE = f"gate {TABLE}"
GENERATE = "generate t.csv --target y -o out --baseline ridge --certificate none -q"
SERIES = (
    "compare s.csv --series s --time d --target v --horizon 2 --baseline theta "
    "--candidate drift"
)
ESTIMATE = "estimate f.csv t.csv --target y"
#: What is no number, or none that counts anything.
NO_NUMBERS = ("x", "nan", "inf", "''")
NO_COUNTS = ("x", "nan", "''", "-3", "1.5", "99999999999999999999", "True")

CASES = [
    *[(f"{GENERATE} -j {value}", "jobs") for value in NO_COUNTS[:6]],
    *[(f"{GENERATE} --fold-timeout {value}", "timeout") for value in (*NO_NUMBERS, "-1")],
    *[(f"{GENERATE} --fold-retries {value}", "retries") for value in NO_COUNTS[:6]],
    *[(f"{GENERATE} --fold-memory {value}", value) for value in ("x", "nanGB", "0")],
    *[(f"{GENERATE} --folds {value}", "folds") for value in (*NO_COUNTS, "0")],
    *[(f"{GENERATE} --seed {value}", "seed") for value in NO_COUNTS],
    *[
        (f"{GENERATE} --{flag} {value}", flag.replace("-", "_"))
        for flag in ("times", "max-file-size")
        for value in ("nan", "inf", "-1", "x")
    ],
    *[(f"{GENERATE} --kappa {value}", "kappa") for value in ("nan", "2", "-0.1", "x")],
    *[(f"{GENERATE} --baseline ridge:{value}", value) for value in ("alpha", "alpha=[")],
    *[(f"{GATE} --level {value}", "level") for value in (*NO_NUMBERS, "0", "1", "2", "-1")],
    *[(f"{GATE} --max-flips {value}", "max-flips") for value in ("0", "two", "200%", "nan")],
    *[(f"{GATE} --margin {value}", "margin") for value in (*NO_NUMBERS, "0", "1", "5", "-1")],
    *[(f"{COMPARE} --refits {value}", "refits") for value in (*NO_COUNTS, "1")],
    *[(f"{COMPARE} --seed {value}", "seed") for value in NO_COUNTS],
    *[(f"{COMPARE} --alpha {value}", "alpha") for value in NO_NUMBERS],
    (f"{COMPARE} --rule wron", "wron"),
    *[
        (f"{command} --candidate {name}=f.csv", repr(name))
        for command in (COMPARE, GATE)
        for name in ("F", "weight", "is_bad", "HardsynthNull", "")
    ],
    *[(f"{SERIES} --candidate {name}=drift", name) for name in ("F", "HardsynthNull")],
    *[
        (f"{SERIES} --{flag} {value}", flag)
        for flag in ("horizon", "origins", "season", "step")
        for value in (*NO_COUNTS, "0")
    ],
    *[(f"{ESTIMATE} --clip {value}", "clip") for value in (*NO_NUMBERS, "0", "0.9", "-1")],
    *[(f"{ESTIMATE} --range {value} 1", "range") for value in NO_NUMBERS],
    *[(f"{ESTIMATE} --error-cap {value}", "error-cap") for value in (*NO_NUMBERS, "0")],
    *[(f"relations t.csv --evidence {value}", "evidence") for value in (*NO_NUMBERS, "0")],
    *[(f"tasks weird -o out --folds {value}", "folds") for value in (*NO_COUNTS, "0")],
    *[(f"certify t.csv --refits {value}", "refits") for value in (*NO_COUNTS, "0")],
    *[(f"run x -u t.csv -f {value}", "fold") for value in NO_COUNTS],
    (f"{GENERATE} --search cma", "add --synthesizer swarm"),
    (f"{GENERATE} --objective novel", "add --synthesizer swarm"),
    (f"{GENERATE} --share 0.1 --alpha 0.2", "leave one of them out"),
    (f"{GENERATE} --baseline-params foo=1", "has no parameter 'foo'"),
    (f"{GENERATE} --dry-run --rule squared", "serves regression"),
    (f"{GENERATE} --dry-run --rule wrong --class-alpha maybe=.3", "names 'maybe'"),
    (f"{GENERATE} --horizon 3", "series need --series and --time"),
    # words
    ("frobnicate", "frobnicate"),
    (f"{COMPARE} --as zip=category --as zip=number", "gives zip twice"),
    (f"{ESTIMATE} --osyn g=2 --osyn g=3", "gives g twice"),
    ("completion nosh", "nosh"),
    ("tasks nope -o out", "nope"),
    ("show", "DIR"),
    ("verify -- -nope", "-nope"),
    ("show a -u b", "twice"),
    ("install -u x", "--userdir"),
    ("harden nope -u amlb -o out", "nope"),
    ("verify --definition nope", "nope"),
    ("generate bundled/series --as-rows 6 --origins 2 -o out", "--folds says how many blocks"),
    *[(f"{word} -u nope", "nope") for word in ("show", "verify", "certify", "report")],
    *[(f"{word} -u nope", "nope") for word in ("score", "export --base-url https://a.b/c", "gate")],
]  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i},{i % 7},{'yes' if i % 3 else 'no'}\n" for i in range(60))
    (tmp_path / "t.csv").write_text("a,b,y\n" + rows)
    (tmp_path / "f.csv").write_text("prediction\n" + "yes\n" * 60)
    days = "".join(f"A,2020-01-{d:02},{d % 5}\n" for d in range(1, 29))
    (tmp_path / "s.csv").write_text("s,d,v\n" + days)
    return tmp_path


def refused(words, said, capsys):
    """Run a command; its one line of error names the culprit."""
    try:
        status = main(shlex.split(words))
    except SystemExit as error:
        status = error.code
    error = capsys.readouterr().err
    assert status == 2, words
    assert error.startswith("hardsynth: error: "), error
    assert error.count("\n") == 1
    assert said in error
    # what to type must stay readable
    assert len(error) < 400


@pytest.mark.parametrize(("words", "said"), CASES)
def test_one_line_and_status_2(folder, words, said, capsys):
    before = sorted(folder.iterdir())
    refused(words, said, capsys)
    assert sorted(folder.iterdir()) == before


SETTINGS = [
    ("split: {folds: 1:30}", "base 60"),
    ("split: {test_size: 0:12.5}", "base 60"),
    ("split: {folds: yes}", "split.folds"),
    ("split: {folds: 2.5}", "split.folds"),
    ("split: {folds: [2]}", "split.folds"),
    ("split: {folds: .nan}", "split.folds"),
    ("split: {folds: 2, folds: 3}", "twice"),
    ("split: {fold: 2}", "did you mean 'folds'"),
    ("splt: {}", "did you mean 'split'"),
    ("split: 5", "split"),
    ("split: [folds, 2]", "split"),
    ("search: {kappa: .inf}", "search.kappa"),
    ("search: {kappa: on}", "search.kappa"),
    ("search: {operators: {jitter: .inf}}", "search.operators.jitter"),
    ("search: {operators: {agreement: 2}}", "search.operators.agreement"),
    ("seed: 1.5", "seed"),
    ("seed: true", "seed"),
    ("name: 5", "name"),
    ("preset: [faithful]", "preset"),
    ("preset: litteral", "did you mean 'literal'"),
    ("preset: {a: 1}", "preset"),
    ("composition: weighted", "composition"),
    ("relations: {rules: a}", "relations.rules"),
    ("relations: {one_hot: [ab]}", "relations.one_hot"),
    ("source: {drop: a}", "source.drop"),
    ("baseline: {params: [1]}", "baseline.params"),
    ("hardness: {rule: wron}", "hardness.rule"),
    ("5: {}", "5"),
    ("- split", "list"),
    ("split: {folds: 2", "line"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), SETTINGS)
def test_settings_files(folder, text, said, capsys):
    (folder / "c.yaml").write_text(text + "\n")
    refused(f"{GENERATE} --config c.yaml", said, capsys)
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("os:abort", "abort"),
        ("os.abort", "os.abort"),
        ("builtins:exit", "exit"),
        ("builtins.exit", "builtins.exit"),
        ("os.path.join", "os.path.join"),
        ("own.boom", "own.boom"),
        ("own.Trap", "own.Trap"),
        ("leaves.Model", "leaves.Model"),
        ("breaks.Model", "breaks.Model"),
        ("lightgbm", "lightgbm.NAME_OF_A_CLASS"),
        ("ridg", "did you mean 'ridge'"),
        ("", "unknown baseline"),
    ],
)
def test_nothing_is_called_before_it_is_known_to_be_a_model(
    folder, monkeypatch, model, said, capsys
):
    trap = "def boom():\n    open('called', 'w')\nclass Trap:\n    def __init__(self): boom()\n"
    (folder / "own.py").write_text(trap)
    (folder / "leaves.py").write_text("raise SystemExit(0)\n")
    (folder / "breaks.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(folder))
    words = GENERATE.replace("--baseline ridge", f"--baseline '{model}'")
    refused(words, said, capsys)
    assert not (folder / "called").exists()
    for name in ("own:boom", "own:Trap", "leaves:Model", "breaks:Model", "os:abort"):
        words = SERIES.replace("--baseline theta", f"--baseline {name}")
        refused(words, name, capsys)
        assert not (folder / "called").exists()
