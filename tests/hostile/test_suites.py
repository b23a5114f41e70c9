"""A suite of somebody else runs no code and writes nowhere else, whatever its files say."""

import json
import pickle
import shutil

import numpy as np
import pandas as pd
import pytest
import sklearn
import yaml
from hostile_files import Bomb, reseal, reseal_records, tree
from sklearn.linear_model import LinearRegression
from small_faults import LIGHT
from small_models import shrink
from small_suites import problems

from amlb_ext.cli import main
from amlb_ext.core.config import build_config
from amlb_ext.core.errors import SuiteError
from amlb_ext.core.estimators import find_unlisted
from amlb_ext.core.files import sha256_file
from amlb_ext.pipeline import RepairOptions, Request, repair_suite
from amlb_ext.pipeline.folds import fold_keys
from amlb_ext.pipeline.generate import load_tasks
from amlb_ext.suite import Layout, SuiteFiles, verify_suite
from amlb_ext.suite.fold_record import FoldRecord
from amlb_ext.suite.sealed_json import json_text, sealed_text
from amlb_ext.validity import certify_suite

FAST = [*LIGHT, "--rule", "quantile", "--share", ".3"]


def write_table(folder):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 2))
    frame = pd.DataFrame(
        {"a": x[:, 0], "b": x[:, 1], "y": x[:, 0] + rng.normal(size=90)}
    )
    frame.to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def generate(folder, *words):
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        made = ["generate", str(folder / "t.csv"), "-o", str(folder / "hard"), *FAST]
        return main([*made, "--certificate", "none", *words])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    write_table(folder)
    assert generate(folder, "--baseline", "ridge") == 0
    return folder


@pytest.fixture
def suite(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "theirs")
    return tmp_path / "theirs" / "hard"


def name_model(suite, path, **params):
    """Let all frameworks of a suite be this class, with checksums that hold."""
    layout = Layout(suite)
    frameworks = yaml.safe_load(layout.frameworks.read_text())
    for entry in frameworks.values():
        entry["params"] |= {"regressor": path, "regressor_params": params}
    layout.frameworks.write_text(yaml.safe_dump(frameworks))
    reseal(suite)


def test_a_suite_is_not_replaced_since_its_table_has_changed(suite, capsys):
    report = [Layout(suite).report, suite / "hardsynth" / "report" / "ranks.csv"]
    report[1].parent.mkdir()
    for path in report:
        path.write_text("of the rows as they were")
    before = tree(suite)
    table = pd.read_csv(suite.parent / "t.csv")
    table.eval("y = y + a").to_csv(suite.parent / "t.csv", index=False)
    assert generate(suite.parent, "--baseline", "ridge") == 2
    assert "the table of t has changed since the suite in" in capsys.readouterr().err
    assert tree(suite) == before
    assert generate(suite.parent, "--baseline", "ridge", "--force") == 0
    assert not any(path.exists() for path in report)
    assert problems(suite) == []


# what a suite names


@pytest.fixture
def evil(tmp_path, monkeypatch, mark):
    """A class of a package that stands on the path: making one leaves a mark."""
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "evil_models.py").write_text(
        "import os\n"
        "from sklearn.linear_model import Ridge\n"
        "class Model(Ridge):\n"
        "    def __init__(self, alpha=1.0):\n"
        f"        os.makedirs({str(mark)!r}, exist_ok=True)\n"
        "        self.alpha = alpha\n"
    )
    monkeypatch.syspath_prepend(folder)
    return "evil_models.Model"


def test_score_builds_nothing_that_is_not_listed(suite, evil, tmp_path, refused):
    """joblib unpickles what it finds in a ``memory``: here, the mark."""
    cached = str(tmp_path / "memory" / "joblib")
    for path, params, said in (
        (evil, {}, "the class evil_models.Model, which is not on the list"),
        (
            "sklearn.linear_model.Ridge",
            {"alpha": 1.0, "solver": cached},
            f"the parameter solver={cached!r}",
        ),
        (
            "sklearn.cluster.FeatureAgglomeration",
            {"memory": cached},
            "the class sklearn.cluster.FeatureAgglomeration",
        ),
    ):
        name_model(suite, path, **params)
        line = refused("score", suite, "-j 1 -q")
        assert said in line
        assert "--trust-suite only if the suite is your own" in line


def test_a_suite_that_is_ones_own_may_name_anything(suite, tmp_path, monkeypatch):
    (tmp_path / "own_models.py").write_text(
        "from sklearn.linear_model import Ridge\nclass Model(Ridge):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    name_model(suite, "own_models.Model", alpha=2.0)
    assert main(["score", str(suite), "-j", "1", "-q"]) == 2
    assert main(["score", str(suite), "-j", "1", "-q", "--trust-suite"]) == 0


def test_verify_calls_foreign_models_damage(suite, evil):
    assert problems(suite) == []
    name_model(suite, evil)
    assert any("names the class evil_models.Model" in line for line in problems(suite))
    name_model(suite, "sklearn.linear_model.Ridge", alpha="kept/x")
    assert any("the parameter alpha='kept/x'" in line for line in problems(suite))


# what a suite says of itself


def change_table(part, change, side="test"):
    def tamper(suite):
        path = suite / "data" / part / f"{part}_{side}_0.csv"
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        change(suite, table).to_csv(path, index=False)

    return tamper


def change_provenance(**values):
    def tamper(suite):
        path = Layout(suite).provenance("t_full", 0)
        provenance = pd.read_parquet(path)
        provenance.assign(**values).to_parquet(path)

    return tamper


def with_test_rows(suite, table):
    test = pd.read_csv(Layout(suite).test("t_full", 0), dtype=str)
    return pd.concat([table, test])


def change_task(**values):
    return lambda entry: entry["tasks"]["t"].update(values)


CHANGED_FILES = {
    "test rows among the training rows": (
        change_table("t", with_test_rows, side="train"),
        "train file of fold 0: it cannot be read beside its provenance: there are 90 rows",
    ),
    "another target": (
        change_table("t_full", lambda suite, table: table.assign(y="9.5")),
        "t_bad, test file of fold 0: {n} of {n} rows have other targets",
    ),
    "another order": (
        change_table("t_full", lambda suite, table: table.iloc[::-1]),
        "t_bad, test file of fold 0: {n} of {n} rows have other features",
    ),
    "features in another order": (
        change_table(
            "t_full", lambda suite, table: table.assign(a=table["a"].to_numpy()[::-1])
        ),
        "t_bad, test file of fold 0: {n} of {n} rows have other features",
    ),
    "another loss": (
        change_provenance(loss=lambda rows: rows["loss"] * 3),
        "of 18 of 18 rows the loss in the provenance does not follow",
    ),
    "another prediction": (
        change_provenance(f=0.0),
        "of 18 of 18 rows the loss in the provenance does not follow",
    ),
    "another weight": (
        change_provenance(weight=0.5),
        "the provenance has another weight than that of the same rows in another file",
    ),
    "another null": (
        change_provenance(null_3=lambda rows: rows["null_3"] + 1),
        "the provenance has another null_3 than",
    ),
    "more failures": (
        change_provenance(origin="bad"),
        "18 rows have the origin 'bad', the fold's record counts {n}",
    ),
    "a real row that was made": (
        change_provenance(origin="ga"),
        "18 of 18 rows have an origin, such as 'ga', that does not fit",
    ),
}


@pytest.mark.parametrize("how", CHANGED_FILES)
def test_files_that_contradict_each_other_are_damage_under_any_seal(suite, how):
    tamper, said = CHANGED_FILES[how]
    (n_bad,) = SuiteFiles.load(suite).amlb_task("t_bad").test_rows
    tamper(suite)
    reseal(suite)
    # the record of the fold names the file that was changed
    [line] = problems(suite)
    assert "record.json and the manifest have another sha256 of" in line
    reseal_records(suite)
    reseal(suite)
    found = problems(suite)
    assert any(said.format(n=n_bad) in line for line in found), found


CHANGED_MANIFESTS = {
    "another kind": (change_task(kind="binary"), "the task is binary, its coding"),
    "a kind without labels": (
        lambda entry: [
            entry["tasks"]["t"].update(kind="binary"),
            entry["tasks"]["t"]["coding"].update(kind="binary"),
        ],
        "a binary task with 0 labels",
    ),
    "a fold that is not there": (
        change_task(folds={}),
        "amlb_tasks.t_full has the folds [0], tasks.t has that part in []",
    ),
    "the files of another task": (
        lambda entry: entry["amlb_tasks"]["t_full"].update(
            test=["data/t_bad/t_bad_test_0.csv"]
        ),
        "data/t_bad/t_bad_test_0.csv is no file of this fold",
    ),
    "another number of rows": (
        lambda entry: entry["amlb_tasks"]["t_full"].update(train_rows=[9]),
        "t_full: the manifest and the records of its folds differ",
    ),
    "other figures": (
        lambda entry: entry["tasks"]["t"]["folds"]["0"]["summary"].update(alpha=9),
        "t, fold 0: the manifest and the fold's record differ",
    ),
    "another baseline": (
        lambda entry: entry["config"]["baseline"].update(model="os:system"),
        "request.json and the manifest have other settings of 'baseline'",
    ),
    "a file of a fold that is not there": (
        lambda entry: entry["files"].update({"data/t/t_train_7.csv": "0"}),
        "data/t/t_train_7.csv stands in the manifest, and is no file of a suite",
    ),
}


@pytest.mark.parametrize("how", CHANGED_MANIFESTS)
def test_a_manifest_that_contradicts_its_suite_is_damage(suite, how):
    change, said = CHANGED_MANIFESTS[how]
    reseal(suite, change)
    found = problems(suite)
    assert any(said in line for line in found), found


def test_what_amlb_would_use_in_place_of_a_table_holds_its_cells(suite):
    """Frameworks that ask for Parquet get such a file, whoever wrote it."""
    derived = Layout(suite).test("t_full", 0).with_suffix(".parquet")
    table = pd.read_csv(derived.with_suffix(".csv"))
    table.to_parquet(derived)
    assert problems(suite) == []
    table.assign(a=table["y"]).to_parquet(derived)
    [line] = problems(suite)
    assert "t_full_test_0.parquet does not hold the cells of" in line
    # a run removes it first
    assert verify_suite(suite, where_it_stands=False) == []
    derived.rename(derived.with_suffix(".arff"))
    assert "t_full_test_0.arff may be used by AMLB" in verify_suite(suite)[0]


def test_code_does_not_pass_for_a_fold_that_waits_for_its_table(suite):
    code = suite / "extensions" / "evil.py"
    code.write_text("import os\n")
    relative = "extensions/evil.py"
    record = FoldRecord(
        task="other", fold=0, key="", parts={}, files={relative: sha256_file(code)}
    )
    path = Layout(suite).record("other", 0)
    path.parent.mkdir(parents=True)
    path.write_text(record.json())
    assert f"{relative} is not part of the suite." in problems(suite)


def test_certify_refits_no_class_that_is_not_listed(suite, evil, capsys):
    reseal(suite, lambda entry: entry["config"]["baseline"].update(model=evil))
    assert main(["certify", str(suite), "-j", "1", "-q"]) == 2
    assert (
        "the suite's baseline names the class evil_models.Model"
        in capsys.readouterr().err
    )
    with pytest.raises(SuiteError, match="not on the list"):
        certify_suite(suite)
    assert not list(suite.glob("hardsynth/*/certificate.json"))


def test_entries_of_the_user_are_no_damage_and_survive_a_repair(suite):
    layout = Layout(suite)
    theirs = {
        layout.constraints: "mine: {folds: 10, max_runtime_seconds: 180, cores: 1}\n",
        layout.frameworks: "mine:\n  extends: flaml\n",
    }
    for path, entry in theirs.items():
        path.write_text(path.read_text() + entry)
    assert problems(suite) == []
    for path in theirs:
        path.write_text(f"# changed\n{path.read_text()}")
    assert len(problems(suite)) == 2
    source = str(suite.parent / "t.csv")
    repair_suite(suite, RepairOptions((source,), quiet=True))
    assert problems(suite) == []
    for path, entry in theirs.items():
        assert path.read_text().endswith(entry)


def test_repair_builds_no_class_that_is_not_listed(suite, evil):
    reseal(suite, lambda entry: entry["config"]["baseline"].update(model=evil))
    for path in [*suite.glob("data/*/*_test_*.csv"), suite / "frameworks.yaml"]:
        path.unlink()
        refuse_repair(suite)
        assert not path.exists()


def test_repair_certifies_with_no_candidate_that_is_not_listed(suite, evil):
    how = {"size": "quick", "refits": 1, "seed": 1, "candidates": [evil]}
    content = {"key": "k", "how": how, "null": "0", "certificate": {}}
    Layout(suite).task_certificate("t").write_text(sealed_text(content))
    refuse_repair(suite)


def refuse_repair(suite, said="not on the list", **options):
    asked = RepairOptions((str(suite.parent / "t.csv"),), quiet=True, **options)
    with pytest.raises(SuiteError, match=said):
        repair_suite(suite, asked)


LISTED = [
    (
        "sklearn.linear_model.Ridge",
        {"alpha": 2, "fit_intercept": True, "solver": "cholesky"},
    ),
    (
        "sklearn.ensemble.RandomForestClassifier",
        {"class_weight": {"yes": 2.0}, "max_depth": None},
    ),
    ("sklearn.ensemble.HistGradientBoostingRegressor", {"loss": "squared_error"}),
    ("sklearn.neural_network.MLPClassifier", {"hidden_layer_sizes": [64, 32]}),
    ("sklearn.svm.SVC", {"kernel": "rbf", "gamma": "scale"}),
    ("xgboost.XGBClassifier", {"tree_method": "hist", "objective": "binary:logistic"}),
]
UNLISTED = [
    ("os.system", {}),
    ("sklearn.pipeline.Pipeline", {"memory": "/tmp"}),
    ("sklearn.linear_model.Ridge", {"nothing": 1}),
    ("sklearn.linear_model.Ridge", {"solver": ["kept/x"]}),
    ("sklearn.linear_model.np", {}),
    ("sklearn.linear_model._ridge.Ridge", {}),
    ("sklearn.ensemble.StackingRegressor", {"estimators": ["x"]}),
    ("sklearn.utils._testing.check_output", {}),
    ("sklearn.tree.plot_tree", {}),
    ("sklearn", {}),
    ("", {}),
    ("xgboost.XGBClassifier", {"objective": "kept/x"}),
    ("xgboost.XGBClassifier", {"callbacks": ["x"]}),
    ("xgboost.Booster", {"model_file": "kept/x"}),
]


def test_the_list():
    assert [case for case in LISTED if find_unlisted(*case)] == []
    assert [case for case in UNLISTED if not find_unlisted(*case)] == []


# pickles


class Charged(LinearRegression):
    """A model that works, and leaves a file when it is unpickled."""

    mark = ""

    def __reduce__(self):
        mark = repr(str(self.mark))
        code = (
            f"(__import__('os').makedirs({mark}, exist_ok=True), LinearRegression())[1]"
        )
        names = {"LinearRegression": LinearRegression}
        return (
            eval,
            (code, names),
            {**vars(self), "_sklearn_version": sklearn.__version__},
        )


@pytest.fixture
def pickled(tmp_path, mark):
    """A suite whose F is a pickle that runs code, and which permits itself to load it.

    Whoever made it wrote the permission into manifest and request, and keys and checksums hold.
    """
    folder = tmp_path / "pickled"
    folder.mkdir()
    table = pd.read_csv(write_table(folder))
    model = Charged().fit(table[["a", "b"]], table["y"])
    path = folder / "f.pkl"
    Charged.mark = mark
    path.write_bytes(pickle.dumps(model))
    words = ["--baseline", str(path)]
    assert generate(folder, *words, "--trust-pickle") == 0
    mark.rmdir()
    suite = folder / "hard"
    layout = Layout(suite)
    settings = json.loads(layout.request.read_text())["settings"]
    settings["baseline"]["trust_pickle"] = True
    config = build_config({"split": {"folds": 1}})
    request = Request((str(folder / "t.csv"),), config, suite, quiet=True)
    tasks = load_tasks(request).tasks
    (key,) = fold_keys(tuple(tasks), 0, settings)
    layout.request.write_text(
        json_text({**json.loads(layout.request.read_text()), "settings": settings})
    )
    record = json.loads(layout.record("t", 0).read_text())
    layout.record("t", 0).write_text(json_text({**record, "key": key}))

    def change(entry):
        entry["config"] = settings
        entry["tasks"]["t"]["folds"]["0"]["key"] = key

    reseal(suite, change)
    assert problems(suite) == []
    return suite


def test_the_permission_is_kept_in_no_suite(tmp_path):
    table = pd.read_csv(write_table(tmp_path))
    model = LinearRegression().fit(table[["a", "b"]], table["y"])
    (tmp_path / "f.pkl").write_bytes(pickle.dumps(model))
    words = ["--baseline", str(tmp_path / "f.pkl")]
    assert generate(tmp_path, *words) == 2
    assert generate(tmp_path, *words, "--trust-pickle") == 0
    suite = SuiteFiles.load(tmp_path / "hard")
    assert suite.manifest.config["baseline"]["trust_pickle"] is False
    suite.layout.record("t", 0).unlink()
    assert generate(tmp_path, *words) != 0  # continuing it needs the permission again
    assert generate(tmp_path, *words, "--trust-pickle") == 0


def test_repair_unpickles_nothing_for_a_manifest_that_permits_it(
    pickled, monkeypatch, refused
):
    monkeypatch.chdir(pickled.parent)
    next(pickled.glob("data/t_full/*_test_*.csv")).unlink()
    words = ["verify", str(pickled), "--repair", "--source", "t.csv", "-j", "1", "-q"]
    assert "f.pkl is a pickle" in refused(words)
    Layout(pickled).manifest.write_text("{")  # now the request is read instead
    assert main(words) == 2


def test_repair_loads_the_pickle_where_this_command_permits_it(
    pickled, mark, monkeypatch
):
    """The test above would see it."""
    monkeypatch.chdir(pickled.parent)
    gone = next(pickled.glob("data/t_full/*_test_*.csv"))
    gone.unlink()
    words = ["verify", str(pickled), "--repair", "--source", "t.csv", "-j", "1", "-q"]
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        assert main([*words, "--trust-pickle"]) == 0
    assert gone.is_file()
    mark.rmdir()


def test_continuing_and_certifying_a_suite_unpickle_nothing(
    pickled, monkeypatch, capsys
):
    monkeypatch.chdir(pickled.parent)
    assert main(["certify", str(pickled), "--refits", "1", "-j", "1", "-q"]) in (0, 2)
    Layout(pickled).record("t", 0).unlink()
    capsys.readouterr()
    assert generate(pickled.parent, "--baseline", str(pickled.parent / "f.pkl")) == 2
    assert "baseline.trust_pickle" in capsys.readouterr().err


def test_a_configuration_gives_no_permission(tmp_path, mark, capsys):
    write_table(tmp_path)
    (tmp_path / "f.pkl").write_bytes(pickle.dumps(Bomb(mark)))
    config = {"baseline": {"model": str(tmp_path / "f.pkl"), "trust_pickle": True}}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    assert generate(tmp_path, "--config", str(tmp_path / "c.yaml")) == 2
    assert "a permission that the command line alone gives" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["f.pkl", "../f.pkl", "{here}/f.pkl"])
def test_a_model_file_without_its_checksum_is_not_read(suite, mark, model):
    (suite.parent / "f.pkl").write_bytes(pickle.dumps(Bomb(mark)))
    path = model.format(here=suite.parent)
    reseal(suite, lambda entry: entry["config"]["baseline"].update(model=path))
    next(suite.glob("data/*/*_test_*.csv")).unlink()
    refuse_repair(suite, "without its sha256", trust_pickle=True)


# names and paths


def test_names_of_definitions_and_pairs(suite):
    for change in (
        lambda entry: entry.update(name="../x"),
        lambda entry: entry.update(order=["../x"]),
        lambda entry: entry.update(pair={"name": "../x", "of": "x", "tasks": {}}),
        lambda entry: entry["amlb_tasks"].update(
            other={**next(iter(entry["amlb_tasks"].values())), "name": "other"}
        ),
    ):
        shutil.copy(Layout(suite).manifest, suite.parent / "kept.json")
        reseal(suite, change)
        with pytest.raises(SuiteError, match=r"is damaged: .* nothing of it was used"):
            SuiteFiles.load(suite)
        shutil.copy(suite.parent / "kept.json", Layout(suite).manifest)


def test_a_record_of_a_fold_stays_inside(suite):
    path = next(suite.glob("hardsynth/t/fold_*/record.json"))
    entry = json.loads(path.read_text())
    assert FoldRecord.from_json(entry).task == "t"
    for change, fault in (
        ({"task": "../x"}, "not a plain name"),
        ({"fold": "../x"}, "fold: Input should be a valid integer"),
        ({"files": {"../x": "0"}}, "not a path inside the suite"),
        ({"parts": {"": {"train": "a.csv"}}}, "parts..test: Field required"),
    ):
        with pytest.raises(ValueError, match=fault):
            FoldRecord.from_json({**entry, **change})


def test_a_framework_of_a_hostile_name_writes_nothing(suite, tmp_path):
    frameworks = yaml.safe_load(Layout(suite).frameworks.read_text())
    frameworks = {"../../x": frameworks["HardsynthCandidate"]}
    Layout(suite).frameworks.write_text(yaml.safe_dump(frameworks))
    reseal(suite)
    before = tree(tmp_path)
    words = ["score", str(suite), "-r", str(tmp_path / "results"), "-j", "1", "-q"]
    assert main([*words, "--trust-suite"]) == 2
    assert tree(tmp_path) == before
