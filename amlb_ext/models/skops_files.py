"""Load fitted models from ``.skops`` files of others, after a look through the whole file.

skops asks whether a name is trusted, and then calls whatever stands behind it. Here every node of
the file's ``schema.json`` is held against an exact list first, and a name of this list against the
object behind it: the class of that name must have been defined in that module. Otherwise whatever a
module of scikit-learn imports, a shell among it, would count as scikit-learn. A node that calls a
method, or a function that is not listed, is refused whatever its name says. What passes is copied,
unpacked and within a limit, and only the copy is given to skops.
"""

from __future__ import annotations

import importlib
import inspect
import io
import json
import sys
import tempfile
import warnings
import zipfile
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import numpy as np

from amlb_ext.core.errors import ModelError
from amlb_ext.models.skops_parameters import check_parameters, check_trees

#: A class or function by module and name.
Name = tuple[str, str]

#: What fitted estimators hold beside other estimators, by module. ``*`` is every public class that
#: the module defines.
_INNER: dict[str, tuple[str, ...]] = {
    "sklearn.calibration": (
        "_CalibratedClassifier",
        "_SigmoidCalibration",
        "_TemperatureScaling",
    ),
    "sklearn.cluster._bisect_k_means": ("_BisectingTree",),
    "sklearn.compose._column_transformer": (
        "make_column_selector",
        "_RemainderColsList",
    ),
    "sklearn.ensemble._hist_gradient_boosting.binning": ("_BinMapper",),
    "sklearn.ensemble._hist_gradient_boosting.predictor": ("TreePredictor",),
    "sklearn.gaussian_process._gpc": ("_BinaryGaussianProcessClassifierLaplace",),
    "sklearn.gaussian_process.kernels": ("*",),
    "sklearn._loss.link": ("*",),
    "sklearn._loss.loss": ("*",),
    "sklearn.metrics._dist_metrics": ("*",),
    "sklearn.metrics._scorer": ("_CurveScorer", "_PassthroughScorer", "_Scorer"),
    "sklearn.model_selection._split": ("*",),
    "sklearn.multiclass": ("_ConstantPredictor",),
    "sklearn.neighbors._ball_tree": ("*",),
    "sklearn.neighbors._kd_tree": ("*",),
    "sklearn.neural_network._stochastic_optimizers": ("*",),
    "sklearn.utils._metadata_requests": ("MetadataRequest", "MethodMetadataRequest"),
    "scipy.interpolate._bsplines": ("BSpline",),
}
#: Loss functions written in Cython.
_LOSSES = ("sklearn._loss._loss", "sklearn.linear_model._sgd_fast")
#: What the first of these modules calls itself in scikit-learn 1.6.
_SHORT_LOSS_MODULE = "_loss"
#: Scikit-learn's estimators of XGBoost, and the model inside them.
_XGBOOST = {
    "xgboost.sklearn": (
        "XGBClassifier",
        "XGBRegressor",
        "XGBRFClassifier",
        "XGBRFRegressor",
    ),
    "xgboost.core": ("Booster",),
}
#: Functions of arrays that fitted estimators hold; none writes, reads or starts anything.
_FUNCTIONS: dict[str, tuple[str, ...]] = {
    "numpy": ("max", "mean", "median", "min", "sum"),
    "scipy._lib.array_api_compat.numpy._aliases": ("asarray",),
    "sklearn.cluster._kmeans": ("_kmeans_single_elkan", "_kmeans_single_lloyd"),
    "sklearn.feature_selection._mutual_info": (
        "mutual_info_classif",
        "mutual_info_regression",
    ),
    "sklearn.feature_selection._univariate_selection": (
        "chi2",
        "f_classif",
        "f_oneway",
        "f_regression",
        "r_regression",
    ),
    "sklearn.preprocessing._function_transformer": ("_identity",),
    "sklearn.utils.validation": ("check_array",),
}
#: Where numpy's and scipy's universal functions say that they come from, by version.
_UFUNC_MODULES = (
    "numpy",
    "numpy._core._multiarray_umath",
    "numpy._core.umath",
    "numpy.core._multiarray_umath",
    "numpy.core.umath",
    "scipy.special",
    "scipy.special._ufuncs",
)
#: Types that a file names as values: of dictionary keys, of parameters such as ``dtype``.
_PLAIN_TYPES: Any = (bool, bytes, dict, float, int, list, type(None), set, str, tuple)
_PLAIN = frozenset(("builtins", kind.__name__) for kind in _PLAIN_TYPES)


def _imported(module: str) -> Any:
    """Return a module, or one without names where this installation has none so called."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(module)
        except ImportError:
            return SimpleNamespace()


def _is_class_of(thing: Any, module: str, name: str) -> bool:
    """Whether something is a class that was defined under this very name."""
    own = (getattr(thing, "__module__", None), getattr(thing, "__name__", ""))
    return inspect.isclass(thing) and own == (module, name)


def _listed_classes(listed: dict[str, tuple[str, ...]]) -> set[Name]:
    """Return those of the listed classes that this installation defines where they are listed."""
    names = set()
    for module, listed_names in listed.items():
        for name, thing in vars(_imported(module)).items():
            is_public_of_all = "*" in listed_names and not name.startswith("_")
            is_listed = name in listed_names or is_public_of_all
            if is_listed and _is_class_of(thing, module, name):
                names.add((module, name))
    return names


@lru_cache(maxsize=1)
def object_classes() -> frozenset[Name]:
    """Return the classes whose instances a file may hold: estimators and their fitted parts."""
    from sklearn.utils.discovery import all_estimators

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimators: Any = all_estimators()
    public = set()
    for name, estimator in estimators:
        module = estimator.__module__
        is_found_by_name = getattr(sys.modules[module], name, None) is estimator
        if module.startswith("sklearn.") and is_found_by_name:
            public.add((module, name))
    return frozenset(public | _listed_classes(_INNER))


@lru_cache(maxsize=1)
def loss_classes() -> frozenset[Name]:
    """Return the loss classes, which skops builds by calling them with numbers.

    Scikit-learn 1.6 calls the module of some ``_loss``, under which Cython has put it into
    ``sys.modules``, and skops writes and imports it by that name. Another module may have the name
    as well, so each class must be scikit-learn's.
    """
    defined = vars(_imported(_LOSSES[0])).items()
    imported_module = sys.modules.get(_SHORT_LOSS_MODULE)
    by_short_name = {
        (_SHORT_LOSS_MODULE, name)
        for name, thing in defined
        if _is_class_of(thing, _SHORT_LOSS_MODULE, name)
        and getattr(imported_module, name, None) is thing
    }
    listed = _listed_classes(dict.fromkeys(_LOSSES, ("*",)))
    return frozenset(listed | by_short_name)


@lru_cache(maxsize=1)
def array_scalars() -> frozenset[Name]:
    """Return numpy's scalar types, except that of Python objects."""
    kinds = {kind for kind in np.sctypeDict.values() if kind is not np.object_}
    return frozenset((kind.__module__, kind.__name__) for kind in kinds)


@lru_cache(maxsize=1)
def _listed_functions() -> frozenset[Name]:
    """Return the functions of the list, and those behind scikit-learn's own scorers."""
    from sklearn.metrics import get_scorer, get_scorer_names

    listed = {(module, name) for module, names in _FUNCTIONS.items() for name in names}
    for scorer_name in get_scorer_names():
        score = getattr(get_scorer(scorer_name), "_score_func", None)
        if inspect.isfunction(score) and score.__module__.startswith(
            "sklearn.metrics."
        ):
            listed.add((score.__module__, score.__name__))
    return frozenset(listed)


def is_known_function(module: str, name: str) -> bool:
    """Whether a function is a universal function of numpy or scipy, or one of the short list.

    Examples
    --------
    >>> is_known_function("numpy", "log1p"), is_known_function("numpy", "load")
    (True, False)
    """
    if (module, name) in _listed_functions():
        return callable(getattr(_imported(module), name, None))
    return module in _UFUNC_MODULES and isinstance(
        getattr(_imported(module), name, None), np.ufunc
    )


_TRUST = (
    "use --trust-pickle only if the file is your own, since it may then run any code"
)
#: Member of the archive that describes the model as a tree of nodes.
_SCHEMA = "schema.json"
#: Bytes that are unpacked at once.
_BLOCK = 1 << 20
#: How a zip archive begins.
_ZIP_MAGIC = b"PK\x03\x04"


@dataclass(frozen=True)
class UnpackLimits:
    """How much may come out of a model file.

    Attributes
    ----------
    schema : int
        Bytes of the description of the model.
    total : int
        Bytes of all that the description asks for, a member counted as often as it does.
    ratio : int
        Unpacked bytes per byte of the file, once there are more than ``free_of_ratio``.
    free_of_ratio : int
    depth : int
        Nodes inside one another.
    """

    schema: int = 128 << 20
    total: int = 8 << 30
    ratio: int = 50
    free_of_ratio: int = 256 << 20
    depth: int = 200

    def most_bytes(self, packed: int) -> int:
        """Return how many bytes may come out of a file of ``packed`` bytes."""
        plausible = max(self.free_of_ratio, self.ratio * packed)
        return min(self.total, plausible)


#: By kind of node the classes that it may name, where these are few.
_ALLOWED_CLASSES: dict[str, tuple[Name, ...]] = {
    "DictNode": (
        ("builtins", "dict"),
        ("collections", "OrderedDict"),
        ("sklearn.utils._bunch", "Bunch"),
    ),
    "DefaultDictNode": (("collections", "defaultdict"),),
    "ListNode": (("builtins", "list"),),
    "SetNode": (("builtins", "set"),),
    "TupleNode": (
        ("builtins", "tuple"),
        ("sklearn.gaussian_process.kernels", "Hyperparameter"),
    ),
    "SliceNode": (("builtins", "slice"),),
    "BytesNode": (("builtins", "bytes"),),
    "BytearrayNode": (("builtins", "bytearray"),),
    "MaskedArrayNode": (("numpy.ma", "MaskedArray"), ("numpy.ma.core", "MaskedArray")),
    "PartialNode": (("functools", "partial"),),
    "RandomStateNode": (("numpy.random.mtrand", "RandomState"),),
    "RandomGeneratorNode": (("numpy.random._generator", "Generator"),),
    # matrices and arrays by their modules in scipy
    "SparseMatrixNode": tuple(
        (f"scipy.sparse._{kind}", f"{kind}_{form}")
        for kind in ("bsr", "coo", "csc", "csr", "dia")
        for form in ("array", "matrix")
    ),
    "TreeNode": (("sklearn.tree._tree", "Tree"),),
}
#: numpy's own bit generators; skops calls the class of this name to make a random generator.
_BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


def load_skops(path: Path, trusted: bool, limits: UnpackLimits | None = None) -> Any:
    """Return the model in a ``.skops`` file.

    Parameters
    ----------
    path : Path
    trusted : bool
        Load whatever it names, ``--trust-pickle``.
    limits : UnpackLimits, optional

    Raises
    ------
    ModelError
        skops is not installed, the file is damaged or too large, or it names what is not on the
        list; nothing of it was loaded then.
    """
    try:
        import skops.io
    except ImportError:
        raise ModelError(
            "reading a .skops file needs the package skops",
            "pip install 'hardsynth[skops]'",
        ) from None
    if not zipfile.is_zipfile(path):
        raise ModelError(
            f"cannot load {path.name}: it is no .skops file, or it is damaged",
            "save the fitted model again, with skops.io.dump",
        )
    if trusted:
        # the user vouches for the file: every type in it counts as trusted
        return skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
    with tempfile.TemporaryFile(prefix="hardsynth-") as copy:
        try:
            types = _copy_checked(path, copy, limits or UnpackLimits())
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            KeyError,
            NotImplementedError,
        ) as error:
            raise ModelError(
                f"cannot load {path.name}: {error}", "save it again"
            ) from None
        # from the copy, not the path: the file may have been exchanged since it was looked through
        copy.seek(0)
        model = skops.io.load(copy, trusted=sorted(map(".".join, types)))
    check_parameters(model, path.name)
    check_trees(model, path.name)
    return model


def _copy_checked(path: Path, copy: IO[bytes], limits: UnpackLimits) -> set[Name]:
    """Write what a model's description names, unpacked, and return its types; nothing is loaded."""
    with zipfile.ZipFile(path) as packed:
        text = _unpacked(packed, _SCHEMA, limits.schema, path.name)
        try:
            schema = json.loads(text)
        except (ValueError, RecursionError):
            raise ModelError(
                f"cannot load {path.name}: its schema.json is not JSON"
            ) from None
        types, files = _look_through(schema, path.name, limits.depth)
        left = most = limits.most_bytes(path.stat().st_size)
        # what the archive declares may be a lie, but an honest bomb is refused before any work
        if sum(packed.getinfo(name).file_size for name in files) > most:
            raise _too_large(path.name, most)
        # stored, not packed: skops then reads what was counted here
        with zipfile.ZipFile(copy, "w", zipfile.ZIP_STORED) as plain:
            plain.writestr(_SCHEMA, text)
            for name in dict.fromkeys(files):
                data = _unpacked(packed, name, left, path.name)
                # a sparse matrix is an archive itself, and may be the bomb
                if name.endswith(".npz") or data.startswith(_ZIP_MAGIC):
                    data = _plain_archive(data, left, path.name)
                left -= len(data) * files.count(name)
                if left < 0:
                    raise _too_large(path.name, most)
                plain.writestr(name, data)
    return types


def _plain_archive(data: bytes, most: int, file: str) -> bytes:
    """Return an archive inside the file, a sparse matrix, with its members unpacked."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as packed,
        zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as plain,
    ):
        for member in dict.fromkeys(packed.namelist()):
            array = _unpacked(packed, member, most, file)
            most -= len(array)
            plain.writestr(member, array)
    return out.getvalue()


def _unpacked(packed: zipfile.ZipFile, name: str, most: int, file: str) -> bytes:
    """Read a member block by block: its size in the archive's list may be a lie."""
    if packed.getinfo(name).file_size > most:
        raise _too_large(file, most)
    out = bytearray()
    with packed.open(name) as member:
        while block := member.read(_BLOCK):
            out += block
            if len(out) > most:
                raise _too_large(file, most)
    return bytes(out)


def _too_large(name: str, most: int) -> ModelError:
    mebibytes = most / 2**20
    return ModelError(
        f"{name} unpacks to more than {mebibytes:,.0f} MiB, which is not plausible for a model "
        "of its size",
        _TRUST,
    )


def _look_through(schema: Any, name: str, depth: int) -> tuple[set[Name], list[str]]:
    """Return the types that a description names, and the members that skops would read for it.

    Each part of it that has a ``__loader__`` is a node, wherever it stands, and held against the
    list. Nothing that it names is called.

    Parameters
    ----------
    schema : object
        What ``schema.json`` holds.
    name : str
        Of the file, for errors.
    depth : int
        Nodes inside one another, at most.

    Raises
    ------
    ModelError
        A node of a kind, class or function that is not on the list.
    """
    damaged = ModelError(f"cannot load {name}: its schema.json is damaged")
    protocol = schema.get("protocol") if isinstance(schema, dict) else None
    if type(protocol) is not int:
        raise damaged
    if protocol < 1:
        # there a function's name stands elsewhere, so that what is checked is not what is called
        raise ModelError(
            f"{name} was written by a skops older than 0.6", "save it again"
        )
    types: set[Name] = set()
    files: list[str] = []
    # by the number of a node, which skops builds once however often it stands in the file
    numbered: dict[int, Any] = {}
    waiting: list[tuple[Any, int]] = [(schema, 0)]
    while waiting:
        part, level = waiting.pop()
        if isinstance(part, list):
            waiting += [(inner, level) for inner in part]
        if not isinstance(part, dict):
            continue
        kind = part.get("__loader__")
        # a cached node stands for one that is checked where it stands
        if kind not in (None, "CachedNode"):
            named: Any = (part.get("__module__"), part.get("__class__"))
            number, file = part.get("__id__") or 0, part.get("file")
            texts = (kind, *named, "" if file is None else file)
            if not all(isinstance(text, str) for text in texts) or file == _SCHEMA:
                raise damaged
            if not isinstance(number, int):
                raise damaged
            if kind != "JsonNode":
                types.add(named)
                if not _is_allowed(kind, named, part):
                    raise ModelError(
                        f"{name} holds {'.'.join(named)}, which is not on the list of what a "
                        "model file may hold",
                        _TRUST,
                    )
            about = (kind, named, kind == "JsonNode" and part.get("content"), file)
            # a member is read once for all nodes of one number, and so counted once
            if file is not None and number not in numbered:
                files.append(file)
            # a later node of a number must say the same
            if number and numbered.setdefault(number, about) != about:
                raise damaged
            level += 1
            if level > depth:
                raise ModelError(
                    f"{name} holds more than {depth} nested objects", _TRUST
                )
        waiting += [(inner, level) for inner in part.values()]
    return types, files


def _is_allowed(kind: str, named: Name, node: dict[str, Any]) -> bool:
    """Whether skops may build a node of this kind from the class or function that it names."""
    module, class_name = named
    if kind == "FunctionNode":
        return is_known_function(module, class_name)
    if kind == "DTypeNode":
        return module == "numpy" and class_name.startswith("dtype")
    if kind == "NdArrayNode":
        return named == ("numpy", "ndarray") or named in array_scalars()
    if kind == "TypeNode":
        return named in _PLAIN or named in array_scalars()
    if kind == "LossNode":
        return named in loss_classes()
    if kind == "ObjectNode":
        if named in object_classes():
            return True
        # xgboost is imported only where a file names it
        return module.startswith("xgboost.") and named in _listed_classes(_XGBOOST)
    if named not in _ALLOWED_CLASSES.get(kind, ()):
        return False
    if kind == "PartialNode":
        # the function itself is checked as a node
        return _inside(node, "content", "func", "__loader__") == "FunctionNode"
    if kind == "RandomGeneratorNode":
        path = ("content", "bit_generator") * 2
        called = _inside(node, *path, "content")
        return called in map(json.dumps, _BIT_GENERATORS)
    return True


def _inside(node: Any, *keys: str) -> Any:
    """Return what stands inside a node below some keys; None where nothing does."""
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node
