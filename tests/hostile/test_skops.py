"""A model in a .skops file is data: whatever it names, only listed classes are built."""

import io
import json
import subprocess
import sys
import zipfile
import zlib
from inspect import Parameter, signature
from types import ModuleType, SimpleNamespace

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import csr_matrix, save_npz
from sklearn.base import is_classifier
from sklearn.feature_selection import f_classif
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline, make_union
from sklearn.utils import Bunch
from sklearn.utils.discovery import all_estimators

from amlb_ext.core.errors import ModelError
from amlb_ext.models.files import load_model
from amlb_ext.models.skops_files import UnpackLimits, load_skops, loss_classes
from amlb_ext.models.skops_parameters import NAMES_AND_VALUES, check_parameters

skops_io = pytest.importorskip("skops.io", reason="skops is an optional extra")
#: Every estimator of scikit-learn.
sk = SimpleNamespace(**dict(all_estimators()))


#: What keeps scikit-learn 1.8 and later from warning; older versions know none of it.
NEW_ATTRIBUTES = (
    {"use_legacy_attributes": False, "l1_ratios": (0,)}
    if "use_legacy_attributes" in signature(sk.LogisticRegressionCV).parameters
    else {}
)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"a": rng.random(60), "b": rng.random(60), "c": rng.choice(["u", "v"], 60)}
    )
    return X, X["a"] + X["b"] > 1, X["a"] + 0.1


def mixed(last):
    """A pipeline for numbers and categories, as users write it."""
    numbers = make_pipeline(sk.SimpleImputer(strategy="median"), sk.StandardScaler())
    columns = [("numbers", numbers, ["a", "b"]), ("words", sk.OneHotEncoder(), ["c"])]
    return make_pipeline(sk.ColumnTransformer(columns), last)


GROWN = [
    sk.AdaBoostClassifier(n_estimators=3, random_state=0),
    sk.BaggingRegressor(n_estimators=3),
    sk.CalibratedClassifierCV(sk.GaussianNB(), method="isotonic", cv=2),
    sk.CalibratedClassifierCV(sk.GaussianNB(), cv=2),
    sk.DecisionTreeClassifier(),
    sk.ExtraTreesClassifier(n_estimators=3),
    sk.GammaRegressor(),
    sk.GaussianProcessClassifier(),
    sk.GaussianProcessRegressor(),
    sk.GradientBoostingClassifier(n_estimators=3),
    sk.GradientBoostingRegressor(n_estimators=3),
    sk.GridSearchCV(
        sk.Ridge(), {"alpha": [1, 2]}, cv=KFold(2), scoring="neg_mean_absolute_error"
    ),
    sk.HistGradientBoostingClassifier(max_iter=3),
    sk.HistGradientBoostingRegressor(max_iter=3, categorical_features=[2]),
    sk.KNeighborsClassifier(algorithm="kd_tree"),
    sk.KNeighborsRegressor(algorithm="ball_tree"),
    sk.LogisticRegressionCV(cv=2, scoring="neg_log_loss", **NEW_ATTRIBUTES),
    sk.MLPClassifier([4], solver="lbfgs", max_iter=200, random_state=0),
    sk.RandomForestClassifier(n_estimators=3),
    sk.RandomForestRegressor(n_estimators=3),
    sk.SGDClassifier(loss="log_loss"),
    sk.SVC(),
    sk.SVR(),
    sk.StackingRegressor([("a", sk.Ridge()), ("b", sk.LinearRegression())], cv=2),
    sk.TransformedTargetRegressor(sk.Ridge(), func=np.log1p, inverse_func=np.expm1),
    sk.VotingClassifier([("a", sk.GaussianNB()), ("b", sk.LogisticRegression())]),
    make_pipeline(
        sk.SplineTransformer(),
        make_union(sk.PolynomialFeatures(), sk.FunctionTransformer()),
    ),
    make_pipeline(
        sk.SelectKBest(f_classif, k=1),
        sk.FunctionTransformer(np.exp),
        sk.LogisticRegression(),
    ),
]


@pytest.mark.parametrize("model", GROWN, ids=lambda model: type(model).__name__)
def test_fitted_models_of_scikit_learn_load(tmp_path, rows, model):
    X, classes, numbers = rows
    whole = mixed(model).fit(X, classes if is_classifier(model) else numbers)
    path = tmp_path / "m.skops"
    skops_io.dump(whole, path)
    again = load_model(path, trust_pickle=False)
    if hasattr(whole, "predict"):
        assert np.array_equal(again.predict(X), whole.predict(X))
    else:
        assert np.array_equal(again.transform(X), whole.transform(X))


def test_a_model_of_xgboost_loads(tmp_path, rows):
    xgboost = pytest.importorskip("xgboost", reason="xgboost is an optional extra")
    X, classes, _ = rows
    model = xgboost.XGBClassifier(n_estimators=3, n_jobs=1).fit(X[["a", "b"]], classes)
    path = tmp_path / "m.skops"
    skops_io.dump(model, path)
    again = load_model(path, trust_pickle=False)
    assert np.array_equal(
        again.predict_proba(X[["a", "b"]]), model.predict_proba(X[["a", "b"]])
    )


# files that were tampered with


def test_a_module_that_has_the_short_name_of_the_losses_is_not_trusted(monkeypatch):
    """scikit-learn 1.6 calls the module ``_loss``, and so may a file beside the model."""
    other = ModuleType("_loss")
    other.CyHalfBinomialLoss = type("CyHalfBinomialLoss", (), {"__module__": "_loss"})
    monkeypatch.setitem(sys.modules, "_loss", other)
    trusted = loss_classes.__wrapped__()
    assert ("_loss", "CyHalfBinomialLoss") not in trusted
    assert (
        trusted
    )  # those of the linear models are told by the full name in all versions


def node(kind, name, **more):
    module, _, cls = name.rpartition(".")
    return {"__loader__": kind, "__module__": module, "__class__": cls, **more}


def text(value):
    return node("JsonNode", "builtins.str", content=json.dumps(value))


def many(kind, name, *items):
    return node(kind, name, content=list(items))


def words(*values):
    return many("ListNode", "builtins.list", *map(text, values))


def attributes(**values):
    keys = [node("TypeNode", "builtins.str") for _ in values]
    key_types = many("ListNode", "builtins.list", *keys)
    return node("DictNode", "builtins.dict", content=values, key_types=key_types)


def write(path, schema, protocol=2, members=(), compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as packed:
        about = {"protocol": protocol, "_skops_version": "0.13"}
        packed.writestr("schema.json", json.dumps({**schema, **about}))
        for name, data in dict(members).items():
            packed.writestr(name, data)
    return path


def transformer(func):
    """A sk.FunctionTransformer that holds ``func``, as skops would write it."""
    name = "sklearn.preprocessing._function_transformer.FunctionTransformer"
    version = {"_sklearn_version": text(sklearn.__version__)}
    return node("ObjectNode", name, content=attributes(func=func, **version))


def load(tmp_path, func, **how):
    """Load a transformer of ``func`` as a stranger's."""
    path = write(tmp_path / "m.skops", transformer(func), **how)
    return load_model(path, trust_pickle=False)


def started(mark):
    """The arguments of a command that leaves a mark."""
    leave = [sys.executable, "-c", f"open({str(mark)!r}, 'w')"]
    return many("TupleNode", "builtins.tuple", words(*leave))


#: What modules of scikit-learn have imported, and so have as an attribute.
BORROWED = [
    "sklearn.utils._testing.check_output",
    "sklearn.utils.fixes.sys",
    "sklearn.utils._show_versions.sys",
    "sklearn.datasets._base.Path",
    "sklearn.datasets._openml.urlopen",
    "sklearn.pipeline.clone",
    "sklearn.base.BaseEstimator",
    "numpy.dtypes.os.system",
]


@pytest.mark.parametrize("name", BORROWED)
def test_an_attribute_of_a_module_is_no_class_of_it(tmp_path, mark, name):
    for evil in (
        node("ConstructorFromReduceNode", name, content=started(mark)),
        node("ObjectNode", name),
        node("FunctionNode", name),
        node("TypeNode", name),
        node(
            "LossNode", name, __reduce__={"args": started(mark)}, content=attributes()
        ),
        node(
            "TreeNode", name, __reduce__={"args": started(mark)}, content=attributes()
        ),
        many("ListNode", name, text("x")),
        many("TupleNode", name, text("x")),
        many("SetNode", name, text("x")),
        node("DictNode", name, content={}, key_types=words()),
        node("RandomStateNode", name, content=attributes()),
        node("DTypeNode", name, content=attributes()),
        node("NdArrayNode", name, type="json", content=[], shape=words()),
    ):
        with pytest.raises(ModelError, match="not on the list") as caught:
            load(tmp_path, evil)
        assert name in str(caught.value)
        assert "--trust-pickle only if the file is your own" in str(caught.value)


def test_a_shell_command_in_a_model_does_not_run(tmp_path, mark, refused):
    call = node(
        "ConstructorFromReduceNode",
        "sklearn.utils._testing.check_output",
        content=started(mark),
    )
    path = write(tmp_path / "m.skops", transformer(call))
    pd.DataFrame({"a": range(20), "y": range(20)}).to_csv(
        tmp_path / "t.csv", index=False
    )
    table = str(tmp_path / "t.csv")
    generate = ["generate", table, "-o", str(tmp_path / "out"), "--baseline", str(path)]
    for words in (
        [*generate, "--folds", "1", "--certificate", "none", "-j", "1", "-q"],
        ["estimate", path, table, "--target", "y", "-q"],
    ):
        assert "sklearn.utils._testing.check_output" in refused(words)
    assert not (tmp_path / "out").exists()


def test_the_shell_command_runs_where_the_file_is_trusted(tmp_path):
    """The tests above would see it."""
    # the node above is one that skops 0.11 does not know; this one calls what it names, too
    call = node(
        "LossNode",
        "subprocess.check_output",
        __reduce__={"args": started(tmp_path / "ran")},
        content=attributes(),
    )
    load_model(write(tmp_path / "m.skops", transformer(call)), trust_pickle=True)
    assert (tmp_path / "ran").exists()


def test_nodes_that_call_are_refused_whatever_they_name(tmp_path, mark):
    ridge = node(
        "ObjectNode", "sklearn.linear_model._ridge.Ridge", content=attributes()
    )
    partial = {
        "func": node("FunctionNode", "os.system"),
        "args": words(),
        "kwds": attributes(),
        "namespace": attributes(),
    }
    for evil in (
        node("MethodNode", "sklearn.linear_model._ridge.Ridge",
             content={"func": "set_params", "obj": ridge}),
        node("PartialNode", "functools.partial", content=partial),
        node("OperatorFuncNode", "operator.methodcaller", attrs=words("fit")),
        node("ConstructorFromReduceNode", "sklearn.linear_model._ridge.Ridge", content=words()),
        node("QuantileForestNode", "quantile_forest._x.QuantileForest", content=attributes()),
        node("InventedNode", "builtins.str"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match="not on the list"):
            load(tmp_path, evil)


def test_only_listed_functions(tmp_path):
    for name in ("numpy.log1p", "scipy.special._ufuncs.expit"):
        load(tmp_path, node("FunctionNode", name))
    for name in ("numpy.load", "numpy.fromfile", "numpy.savetxt", "os.system", "builtins.eval",
                 "sklearn.datasets._base.load_files", "scipy.special.os"):  # fmt: skip
        with pytest.raises(ModelError, match="not on the list"):
            load(tmp_path, node("FunctionNode", name))


def test_a_generator_that_calls_another_function(tmp_path):
    state = attributes(bit_generator=text("seed"))
    evil = node("RandomGeneratorNode", "numpy.random._generator.Generator",
                content={"bit_generator": state, "seed_seq": attributes()})  # fmt: skip
    with pytest.raises(ModelError, match="not on the list"):
        load(tmp_path, evil)


def test_one_number_for_two_nodes_is_damage(tmp_path):
    two = words("a", "b")
    for item in two["content"]:
        item["__id__"] = 7
    with pytest.raises(ModelError, match="damaged"):
        load(tmp_path, two)


@pytest.mark.parametrize("protocol", [0, -1, True, None, "2"])
def test_a_protocol_that_hides_names(tmp_path, protocol):
    old = {"module_path": "os", "function": "system"}
    evil = node("FunctionNode", "numpy.log1p", content=old)
    with pytest.raises(ModelError):
        load(tmp_path, evil, protocol=protocol)


def deep(levels):
    inner = text(1)
    for _ in range(levels):
        inner = many("ListNode", "builtins.list", inner)
    return inner


@pytest.mark.parametrize(
    "schema",
    [{}, {"__loader__": 1, "__module__": "a", "__class__": "b"}, transformer("text"),
     transformer(node("ListNode", "builtins.list", content="x")), deep(250),
     transformer(node("BytesNode", "builtins.bytes", file="schema.json")),
     transformer(node("BytesNode", "builtins.bytes", file="gone.bin"))],
)  # fmt: skip
def test_a_damaged_description_is_one_error(tmp_path, schema):
    with pytest.raises(ModelError):
        load_model(write(tmp_path / "m.skops", schema), trust_pickle=False)


# size


def array(rows, file="a.npy", number=None):
    more = {} if number is None else {"__id__": number}
    return node("NdArrayNode", "numpy.ndarray", type="numpy", file=file, **more)


def packed_zeros(size):
    out = io.BytesIO()
    np.save(out, np.zeros(size, dtype=np.uint8))
    return out.getvalue()


SMALL = UnpackLimits(total=4 << 20, ratio=50, free_of_ratio=1 << 20)


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path):
    members = {"a.npy": packed_zeros(3 << 20)}
    path = write(tmp_path / "m.skops", transformer(array(1)), members=members,
                 compression=zipfile.ZIP_DEFLATED)  # fmt: skip
    with pytest.raises(ModelError, match="unpacks to more than 1 MiB"):
        load_skops(path, trusted=False, limits=SMALL)


def test_a_part_counts_as_often_as_it_is_read(tmp_path):
    data = packed_zeros(600 << 10)
    once = many("ListNode", "builtins.list", *(array(1, number=5) for _ in range(20)))
    load(tmp_path, once, members={"a.npy": data})
    often = many("ListNode", "builtins.list", *(array(1) for _ in range(20)))
    path = write(tmp_path / "m.skops", transformer(often), members={"a.npy": data})
    with pytest.raises(ModelError, match="unpacks to more than"):
        load_skops(path, trusted=False, limits=SMALL)


def test_a_size_that_is_a_lie(tmp_path):
    """The archive says 10 bytes; what comes out of it is 40 MB."""
    data = packed_zeros(40 << 20)
    path = write(tmp_path / "m.skops", transformer(array(1)), members={"a.npy": data},
                 compression=zipfile.ZIP_DEFLATED)  # fmt: skip
    raw = bytearray(path.read_bytes())
    true, lie = len(data).to_bytes(4, "little"), (10).to_bytes(4, "little")
    crc, short = (
        zlib.crc32(data).to_bytes(4, "little"),
        zlib.crc32(data[:10]).to_bytes(4, "little"),
    )
    assert raw.count(true) >= 2
    path.write_bytes(raw.replace(true, lie).replace(crc, short))
    with pytest.raises(ModelError, match="cannot load"):
        load_model(path, trust_pickle=False)


def test_an_archive_inside_the_archive(tmp_path):
    out = io.BytesIO()
    save_npz(out, csr_matrix(np.eye(3)))
    sparse = node(
        "SparseMatrixNode", "scipy.sparse._csr.csr_matrix", type="scipy", file="a.npz"
    )
    good = load(tmp_path, sparse, members={"a.npz": out.getvalue()})
    assert np.array_equal(good.func.toarray(), np.eye(3))
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as inner:
        inner.writestr("data.npy", packed_zeros(5 << 20))
    path = write(
        tmp_path / "m.skops", transformer(sparse), members={"a.npz": bomb.getvalue()}
    )
    with pytest.raises(ModelError, match="unpacks to more than"):
        load_skops(path, trusted=False, limits=SMALL)


# trees


@pytest.mark.parametrize("child", [10**6, 0, -5])
def test_a_tree_that_leads_outside_of_itself(tmp_path, rows, child):
    X, classes, _ = rows
    model = sk.DecisionTreeClassifier(max_depth=3).fit(X[["a", "b"]], classes)
    state = model.tree_.__getstate__()
    state["nodes"]["left_child"][0] = child
    model.tree_.__setstate__(state)
    path = tmp_path / "m.skops"
    skops_io.dump(model, path)
    with pytest.raises(ModelError, match="nodes are damaged"):
        load_model(path, trust_pickle=False)


@pytest.mark.parametrize(
    ("name", "value"), [("left", 10**6), ("left", 0), ("feature_idx", -1)]
)
def test_a_boosted_tree_that_leads_outside_of_itself(tmp_path, rows, name, value):
    X, classes, _ = rows
    model = sk.HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2)
    model.fit(X[["a", "b"]], classes)
    model._predictors[0][0].nodes[name][0] = value
    path = tmp_path / "m.skops"
    skops_io.dump(model, path)
    with pytest.raises(ModelError, match="nodes are damaged"):
        load_model(path, trust_pickle=False)


# parameters: a listed type that would read, write or call something when it is fitted again


class Opened:
    """A stranger's file in a cache: loading it leaves a mark."""

    def __reduce__(self):
        return (open, ("ran", "w"))


def vectorized(**params):
    return make_pipeline(sk.HashingVectorizer(n_features=4, **params), sk.Ridge())


def beside(model, **attributes):
    for key, value in attributes.items():
        model.__dict__[key] = value
    return model


#: What opens, makes or calls something once it is cloned and fitted; by what the error names.
ACTING = {
    "memory": make_pipeline(sk.StandardScaler(), sk.Ridge(), memory="cache"),
    "memory of an inner pipeline": sk.BaggingRegressor(
        make_pipeline(sk.StandardScaler(), sk.Ridge(), memory="cache")
    ),
    "memory in a union": make_union(
        make_pipeline(sk.StandardScaler(), sk.PCA(1), memory=b"cache"), sk.StandardScaler()
    ),
    "memory of a step": make_pipeline(sk.FeatureAgglomeration(2, memory="cache"), sk.Ridge()),
    "memory by a search": sk.GridSearchCV(
        make_pipeline(sk.StandardScaler(), sk.Ridge()), {"memory": ["cache"]}
    ),
    "memory by a search of a step": sk.GridSearchCV(
        make_pipeline(sk.FeatureAgglomeration(2), sk.Ridge()),
        [{"featureagglomeration__memory": ["cache"]}],
    ),
    "memory by chance": sk.RandomizedSearchCV(
        make_pipeline(sk.StandardScaler(), sk.Ridge()), {"memory": ["cache"]}, n_iter=1
    ),
    "memory by an ensemble": beside(
        sk.BaggingRegressor(make_pipeline(sk.StandardScaler(), sk.Ridge())),
        estimator_params=("memory",),
    ),
    "memory of clusters": sk.OPTICS(memory="cache"),
    "memory that answers": make_pipeline(sk.Ridge(), memory=Bunch(cache=np.exp)),
    "input": vectorized(input="filename"),
    "input of a file": vectorized(input="file"),
    "input in an array": vectorized(input=np.array("filename")),
    "input by a search": sk.GridSearchCV(
        vectorized(), {"hashingvectorizer__input": ["filename"]}
    ),
    "input of a step that a search exchanges": sk.GridSearchCV(
        make_pipeline(sk.Ridge()), {"ridge": [sk.HashingVectorizer()], "ridge__input": ["filename"]}
    ),
    "memory of the rest": sk.ColumnTransformer(
        [], remainder=make_pipeline(sk.StandardScaler(), memory="cache")
    ),
    "encoding": vectorized(encoding="../codec"),
    "pre_dispatch": sk.GridSearchCV(
        sk.Ridge(), {"alpha": [1]}, pre_dispatch="__import__('os').getpid()"
    ),
    "scoring": sk.GridSearchCV(sk.Ridge(), {"alpha": [1]}, scoring="os.abort"),
    "metric": sk.KNeighborsClassifier(metric="os.abort"),
    "a metric's parameters": sk.KNeighborsClassifier(metric_params={"out": "cache"}),
    "importance_getter": sk.RFE(sk.Ridge(), importance_getter="__class__.__init__"),
    "keywords of a function": sk.FunctionTransformer(np.exp, kw_args={"dtype": "cache"}),
    "a function where none belongs": sk.Ridge(solver=np.exp),
    "response_method": beside(make_scorer(f1_score), _response_method="set_params"),
    "a method": beside(sk.Ridge(), fit=np.exp),
    "a clone": beside(sk.Ridge(), __sklearn_clone__=np.exp),
    "what may be": beside(vectorized(), _parameter_constraints={}),
    "an attribute": beside(sk.Ridge(), cached="cache"),
}  # fmt: skip


@pytest.mark.parametrize("model", ACTING.values(), ids=ACTING)
def test_a_parameter_that_acts_is_refused_by_name(tmp_path, monkeypatch, model):
    (tmp_path / "cache").mkdir()
    joblib.dump(Opened(), tmp_path / "cache" / "output.pkl")
    monkeypatch.chdir(tmp_path)
    skops_io.dump(model, tmp_path / "m.skops")
    with pytest.raises(ModelError, match="not on the list") as caught:
        load_model(tmp_path / "m.skops", trust_pickle=False)
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "m.skops"]


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_no_parameter_of_any_estimator_takes_a_path():
    """Whatever scikit-learn adds: a text is a word that it declares, or a name of the table."""
    path = "cache/here"
    taken = set()
    for _, estimator in all_estimators():
        parameters = signature(estimator).parameters
        needed = {
            key: None
            for key in parameters
            if parameters[key].default is Parameter.empty
        }
        for key in parameters:
            for value in (path, path.encode(), [path], {"a": path}, np.array([path])):
                model = estimator(**{**needed, key: value})
                try:
                    check_parameters(model, "m.skops")
                except ModelError:
                    continue
                taken.add(key)
    assert taken <= NAMES_AND_VALUES


FOOTPRINTS = """
import os, sys, sysconfig
from pathlib import Path
import numpy as np
from sklearn.base import clone
from amlb_ext.models.files import load_model

rng = np.random.default_rng(0)
X, y = rng.random((40, 3)), np.arange(40) % 2
models = [load_model(Path(path), trust_pickle=False) for path in sys.argv[1:]]
seen = []
EVENTS = ("open", "exec", "import", "subprocess.", "socket.", "shutil.", "pickle.", "os.mkdir",
          "os.rename", "os.remove", "os.symlink", "os.system")
INSTALLED = tuple({sys.prefix, sys.base_prefix, *sysconfig.get_paths().values()})

def watch(event, arguments):
    if event.startswith(EVENTS) and not str((*arguments, "")[0]).startswith(INSTALLED):
        seen.append((event, arguments[:1]))

for model in models:
    # once before, for what is imported late
    clone(model).fit(X, y).predict(X)
sys.addaudithook(watch)
for model in models:
    clone(model).fit(X, y).predict(X)
print([one for one in seen if one[0] != "exec" or "<string>" not in str(one)], os.listdir("."))
"""


def test_a_clone_that_is_fitted_again_touches_no_file(tmp_path):
    rng = np.random.default_rng(0)
    models = [
        make_pipeline(sk.StandardScaler(), sk.FeatureAgglomeration(2), sk.LogisticRegression()),
        sk.RandomForestClassifier(3),
        sk.GridSearchCV(make_pipeline(sk.PCA(2), sk.SVC()), {"svc__C": [1, 2]}, cv=2, scoring="f1"),
        sk.StackingClassifier([("a", sk.KNeighborsClassifier()), ("b", sk.GaussianNB())], cv=2),
    ]  # fmt: skip
    files = []
    for model in models:
        files.append(str(tmp_path / f"{len(files)}.skops"))
        skops_io.dump(model.fit(rng.random((40, 3)), np.arange(40) % 2), files[-1])
    (tmp_path / "empty").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", FOOTPRINTS, *files],
        cwd=tmp_path / "empty",
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "[] []", done.stderr[-2000:]
