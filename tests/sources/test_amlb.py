"""AMLB benchmark definitions: every form of `dataset`, archives, remote files, errors."""

import os
from types import SimpleNamespace

import pytest
import yaml
from hostile_files import tarred, zipped
from loopback_http import respond, serving

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import DataError, NetworkError, SourceError
from amlb_ext.sources import dataset_files, download, open_specs

PAIR = {"train": "{user}/data/t_train_0.csv", "test": "{user}/data/t_test_0.csv"}


@pytest.fixture
def home(tmp_path, table, monkeypatch):
    """A user directory with three folds of one table in `data`."""
    monkeypatch.delenv("AMLB_HOME", raising=False)
    # AMLB looks for `../data` from the working folder first; beside a checkout there may be one
    working_folder = tmp_path / "elsewhere" / "working"
    working_folder.mkdir(parents=True)
    monkeypatch.chdir(working_folder)
    user = tmp_path / "user"
    (user / "data").mkdir(parents=True)
    (user / "benchmarks").mkdir()
    for fold in range(3):
        test = table.index % 3 == fold
        table[~test].to_csv(user / "data" / f"t_train_{fold}.csv", index=False)
        table[test].to_csv(user / "data" / f"t_test_{fold}.csv", index=False)
    return user


@pytest.fixture
def options(home, own_cache):
    return SourceConfig(userdir=str(home))


def define(home, *tasks):
    path = home / "benchmarks" / "mine.yaml"
    path.write_text(yaml.safe_dump(list(tasks)), encoding="utf-8")
    return path


def load(home, options, **task):
    return next(open_specs([str(define(home, {"name": "t", **task}))], options)).load()


def pack(home, name):
    files = sorted((home / "data").iterdir())
    members = [(f"inner/{file.name}", file.read_bytes()) for file in files]
    if name.endswith(".zip"):
        return zipped(home / name, *members)
    mode = "w:gz" if "gz" in name else "w:bz2" if "bz" in name else "w"
    return tarred(home / name, *members, mode=mode)


def test_one_pair(home, options):
    task = load(
        home, options, dataset={**PAIR, "target": "colour", "type": "multiclass"}
    )
    assert (task.name, task.target_name, task.kind.value) == (
        "t",
        "colour",
        "multiclass",
    )
    assert len(task.folds) == 1
    assert len(task) == 29  # one colour is missing
    assert task.origin.spec.endswith("mine.yaml#t")
    assert task.origin.ids["train_0"].startswith("t_train_0.csv sha256:")


LISTS = {
    part: [f"{{user}}/data/t_{part}_{fold}.csv" for fold in range(3)]
    for part in ("train", "test")
}
FLAT = [
    name for pair in zip(LISTS["train"], LISTS["test"], strict=True) for name in pair
]


@pytest.mark.parametrize(
    "dataset",
    [
        LISTS,
        FLAT,
        "{user}/data",
        {"path": "{user}/data"},
        "../data",
        {"path": "../data"},
    ],
    ids=["lists", "flat", "folder", "path", "relative", "relative path"],
)
def test_three_folds_of_the_same_rows_are_one_table(home, options, dataset, table):
    task = load(home, options, dataset=dataset)
    assert len(task.folds) == 3
    assert len(task) == len(table)
    assert sorted(i for fold in task.folds for i in fold.test) == list(range(30))
    assert task.target_name == "class"


@pytest.mark.parametrize("ending", dataset_files.ENDINGS)
def test_archives(home, options, ending, table):
    first = load(
        home, options, dataset={"path": str(pack(home, f"a{ending}"))}, folds=2
    )
    assert len(first.folds) == 2
    # another one of the same name never meets old files
    for part in ("train", "test"):
        more = table.assign(count=table["count"] + 100)
        more.to_csv(home / "data" / f"t_{part}_0.csv", index=False)
    second = load(home, options, dataset=str(pack(home, f"a{ending}")), folds=1)
    assert first.features["count"].max() == 29
    assert second.features["count"].max() == 129


def test_folds_limits_and_says_when_there_are_fewer(home, options, table):
    assert len(load(home, options, dataset="{user}/data", folds=2).folds) == 2
    # AMLB leaves derived copies in other formats, which are ignored; one table has no folds
    table.to_parquet(home / "data" / "t_train_0.parquet")
    table.to_csv(home / "whole.csv", index=False)
    assert load(home, options, dataset="{user}/whole.csv").folds == ()
    task = load(home, options, dataset="{user}/data", folds=10)
    assert len(task.folds) == 3
    assert task.notes == ("the definition asks for 10 folds, its files hold 3",)


def test_defaults_disabled_and_names(home, options):
    path = define(
        home,
        {"name": "__defaults__", "folds": 1, "dataset": PAIR},
        {"name": "a"},
        {"name": "b", "folds": 1, "dataset": "{user}/data"},
        {"name": "off", "enabled": False},
        {"name": "removed", "openml_task_id": None, "dataset": None},
    )
    refs = list(open_specs([str(path)], options))
    assert [ref.name for ref in refs] == ["a", "b"]
    assert len(refs[1].load().folds) == 1
    by_name = list(open_specs(["mine"], options))
    assert by_name[0].load().content_hash == refs[0].load().content_hash
    assert [ref.name for ref in open_specs(["mine#B"], options)] == ["b"]
    assert [ref.name for ref in open_specs([by_name[1].spec], options)] == ["b"]


def test_folders_named_in_the_users_configuration(home, options, tmp_path):
    amlb = tmp_path / "amlb"
    (amlb / "resources" / "benchmarks").mkdir(parents=True)
    (home / "special").mkdir()
    config = {
        "input_dir": "{user}/data",
        "benchmarks": {
            "definition_dir": ["{user}/special", "{root}/resources/benchmarks"]
        },
    }
    (home / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    entry = [{"name": "t", "dataset": "{input}"}]
    (home / "special" / "s.yaml").write_text(yaml.safe_dump(entry), encoding="utf-8")
    (amlb / "resources" / "benchmarks" / "r.yaml").write_text(
        yaml.safe_dump(entry), encoding="utf-8"
    )
    assert len(next(open_specs(["s"], options)).load().folds) == 3
    with pytest.raises(SourceError, match="no source understands 'r'"):
        open_specs(["r"], options)
    both = options.model_copy(update={"amlb": str(amlb)})
    assert len(next(open_specs(["r"], both)).load().folds) == 3


def test_openml_task_in_a_definition(home, options, openml_cache):
    both = options.model_copy(update={"openml_cache": str(openml_cache)})
    task = load(home, both, openml_task_id=31, folds=2)
    assert (task.name, len(task.folds), task.origin.ids["data_id"]) == ("t", 2, "31")


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ({"dataset": {"path": "x.csv", "type": "timeseries"}}, "not yet supported"),
        ({"dataset": {**PAIR, "type": "binray"}}, "did you mean 'binary'"),
        ({"dataset": {"train": "a.csv"}}, r"keys \['train'\]"),
        (
            {"dataset": {"train": ["a.csv", "b.csv"], "test": "c.csv"}},
            "2 training files and 1",
        ),
        ({"dataset": "{user}/nowhere"}, "no such file or folder"),
        ({"dataset": "{root}/data"}, "--amlb DIR"),
        ({"dataset": "{home}/data"}, "{home} is unknown"),
        ({"dataset": "{user/data"}, "stands for nothing"),
        ({"dataset": "ftp://host/a.csv"}, "scheme 'ftp'"),
        ({"dataset": 7}, "not a path"),
        ({"dataset": PAIR, "folds": "two"}, "folds is 'two'"),
        ({"openml_task_id": "iris"}, "openml_task_id is 'iris'"),
        ({"dataset": {**PAIR, "target": "klass"}}, "no column 'klass'"),
    ],
)
def test_errors_of_one_task_come_from_its_load(home, options, task, said):
    path = define(home, {"name": "bad", **task}, {"name": "good", "dataset": PAIR})
    bad, good = open_specs([str(path)], options)
    with pytest.raises((SourceError, DataError), match=said) as caught:
        bad.load()
    assert caught.value.remedy
    assert len(good.load()) == 30


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- name: a\n  dataset: [\n", "line 3"),
        ("", "holds nothing"),
        ("name: a\n", "holds a dict"),
        ("- a\n", "no task"),
        ("- openml_task_id: 3\n", "no name"),
        ("- name: a\n", "says nothing about its data"),
        (
            "- {name: Aa, openml_task_id: 1}\n- {name: aA, openml_task_id: 2}\n",
            "the same to AMLB",
        ),
        (
            "- {name: a.b, openml_task_id: 1}\n- {name: a_b, openml_task_id: 2}\n",
            "the same",
        ),
    ],
)
def test_errors_of_a_definition(home, options, text, said):
    path = home / "bad.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SourceError, match=said) as caught:
        list(open_specs([str(path)], options))
    assert caught.value.remedy


def test_unknown_definition_and_unknown_task(home, options):
    define(home, {"name": "iris", "openml_task_id": 59})
    with pytest.raises(SourceError, match="did you mean 'mine'"):
        open_specs(["mime"], options)
    with pytest.raises(SourceError, match="did you mean 'iris'"):
        list(open_specs(["mine#irsi"], options))
    with pytest.raises(SourceError, match="cannot read"):
        list(open_specs(["nowhere.yaml"], options))


def test_folder_without_the_naming_convention(home, options):
    (home / "data" / "t_train_1.csv").unlink()
    with pytest.raises(SourceError, match="fold 1 lacks"):
        load(home, options, dataset="{user}/data")
    for path in (home / "data").iterdir():
        path.rename(path.with_name(path.name.replace("_t", "-")))
    with pytest.raises(SourceError, match=r"t_train_0\.csv, t_test_0\.csv"):
        load(home, options, dataset="{user}/data")


@pytest.fixture
def web(home, direct):
    """Serve the user directory's files; `web.seen` counts, `web.fail` breaks answers."""
    web = SimpleNamespace(seen=[], fail=[], short=0)

    def answer(handler, over):
        web.seen.append(handler.path)
        path = home / handler.path.lstrip("/")
        if web.fail or not path.is_file():
            handler.send_error(web.fail.pop(0) if web.fail else 404)
            return
        body = path.read_bytes()
        respond(handler, body, Content_Length=len(body) + web.short)

    with serving(answer) as web.root:
        yield web


def test_remote_files_and_archives(home, options, web):
    pack(home, "a.zip")
    task = load(home, options, dataset={"path": f"{web.root}/a.zip"})
    pair = {part: f"{web.root}/data/t_{part}_0.csv" for part in ("train", "test")}
    assert len(task.folds) == 3
    assert len(load(home, options, dataset=pair)) == 30
    asked = len(web.seen)
    load(home, options, dataset=pair)
    assert len(web.seen) == asked == 3


def test_remote_errors(home, tmp_path, web, no_network, monkeypatch):
    monkeypatch.setattr(download.time, "sleep", lambda seconds: None)
    with pytest.raises(SourceError, match="404") as caught:
        download.download(f"{web.root}/no.csv?token=secret", tmp_path)
    assert "secret" not in str(caught.value)
    assert len(web.seen) == 1  # asking again would not help
    # a damaged copy is fetched again
    url, there = f"{web.root}/data/t_test_0.csv", home / "data" / "t_test_0.csv"
    copy = download.download(url, tmp_path / "cache")
    copy.write_text("cut", encoding="utf-8")
    again = download.download(url, tmp_path / "cache")
    assert again.read_bytes() == there.read_bytes()
    web.fail = [503]
    download.download(f"{web.root}/data/t_test_0.csv", tmp_path)
    web.fail = [503, 503]
    with pytest.raises(NetworkError, match="503"):
        download.download(f"{web.root}/data/t_test_1.csv", tmp_path)
    web.short = 10
    with pytest.raises(NetworkError):
        download.download(f"{web.root}/data/t_test_2.csv", tmp_path)
    with pytest.raises(NetworkError, match="cannot be reached") as caught:
        download.download(f"{no_network}/a.csv", tmp_path)
    assert caught.value.remedy
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".part-")]
