"""Load fitted models from ``.skops`` files of others, after a look through the whole file.

skops asks whether a name is trusted, and then calls whatever stands behind it. Here every node of
the file's ``schema.json`` is held against the exact list of
:mod:`amlb_ext.models.skops_files` first; a node that calls a method, or a function that
is not listed, is refused whatever its name says. What passes is copied, unpacked and within a
limit, and only the copy is given to skops.
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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np

from amlb_ext.core.errors import ModelError
from amlb_ext.models.skops_parameters import check_parameters, check_trees

# The classes and functions that a .skops file may name, each by module and name.
#
# A name of this list is held against the object behind it: the class of that name must have been
# defined in that module. Otherwise whatever a module of scikit-learn imports, a shell among it,
# would count as scikit-learn.


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
_PLAIN = frozenset(
    ("builtins", name)
    for name in (
        "bool",
        "bytes",
        "dict",
        "float",
        "int",
        "list",
        "NoneType",
        "set",
        "str",
        "tuple",
    )
)


def _imported(module: str) -> Any:
    """Return a module, or None where this installation has none of that name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(module)
        except ImportError:
            return None


def _is_defined_as(thing: Any, module: str, name: str) -> bool:
    """Whether an object says that it was defined under this very name."""
    return (
        getattr(thing, "__module__", None) == module
        and getattr(thing, "__name__", "") == name
    )


def _is_found_by_name(cls: type) -> bool:
    """Whether a class is what its module has under its name."""
    return bool(vars(sys.modules[cls.__module__]).get(cls.__name__) is cls)


def _listed_classes(listed: dict[str, tuple[str, ...]]) -> set[Name]:
    """Return those of the listed classes that this installation defines where they are listed."""
    names = set()
    for module_name, listed_names in listed.items():
        module = _imported(module_name)
        if module is None:
            continue
        for name in vars(module):
            is_public_of_all = "*" in listed_names and not name.startswith("_")
            if name not in listed_names and not is_public_of_all:
                continue
            thing = getattr(module, name)
            if inspect.isclass(thing) and _is_defined_as(thing, module_name, name):
                names.add((module_name, name))
    return names


@lru_cache(maxsize=1)
def object_classes() -> frozenset[Name]:
    """Return the classes whose instances a file may hold: estimators and their fitted parts."""
    from sklearn.utils.discovery import all_estimators

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimators = [estimator for _, estimator in all_estimators()]
    public = {
        (estimator.__module__, estimator.__name__)
        for estimator in estimators
        if estimator.__module__.startswith("sklearn.") and _is_found_by_name(estimator)
    }
    return frozenset(public | _listed_classes(_INNER))


@lru_cache(maxsize=1)
def xgboost_classes() -> frozenset[Name]:
    """Return the same of XGBoost, which is imported only where a file names it."""
    return frozenset(_listed_classes(_XGBOOST))


@lru_cache(maxsize=1)
def loss_classes() -> frozenset[Name]:
    """Return the loss classes, which skops builds by calling them with numbers."""
    listed = _listed_classes(dict.fromkeys(_LOSSES, ("*",)))
    return frozenset(listed | _losses_by_short_name())


def _losses_by_short_name() -> set[Name]:
    """Return the losses whose module calls itself ``_loss``, as that of scikit-learn 1.6 does.

    skops writes and imports it by that name, under which Cython has put it into ``sys.modules``.
    Another module may have the name as well, so each class must be scikit-learn's.
    """
    defining_module = _imported(_LOSSES[0])
    imported_module = sys.modules.get(_SHORT_LOSS_MODULE)
    if defining_module is None or imported_module is None:
        return set()
    return {
        (_SHORT_LOSS_MODULE, name)
        for name, thing in vars(defining_module).items()
        if inspect.isclass(thing)
        and _is_defined_as(thing, _SHORT_LOSS_MODULE, name)
        and getattr(imported_module, name, None) is thing
    }


@lru_cache(maxsize=1)
def array_scalars() -> frozenset[Name]:
    """Return numpy's scalar types, except that of Python objects."""
    kinds = {kind for kind in np.sctypeDict.values() if kind is not np.object_}
    return frozenset((kind.__module__, kind.__name__) for kind in kinds)


def plain_types() -> frozenset[Name]:
    """Return the types that a file may name as values."""
    return _PLAIN | array_scalars()


@lru_cache(maxsize=1)
def _listed_functions() -> frozenset[Name]:
    """Return the functions of the list, and those behind scikit-learn's own scorers."""
    from sklearn.metrics import get_scorer, get_scorer_names

    scoring = [
        getattr(get_scorer(name), "_score_func", None) for name in get_scorer_names()
    ]
    scorers = {
        (score.__module__, score.__name__)
        for score in scoring
        if inspect.isfunction(score) and score.__module__.startswith("sklearn.metrics.")
    }
    listed = {(module, name) for module, names in _FUNCTIONS.items() for name in names}
    return frozenset(listed | scorers)


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


def names_of(kinds: Iterable[Name]) -> list[str]:
    """Return names as skops writes them, sorted."""
    return sorted(f"{module}.{name}" for module, name in kinds)


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


@dataclass
class SchemaContents:
    """What the description of a model names.

    Attributes
    ----------
    types : set of tuple
        Of every node, as module and name.
    files : list of str
        Members of the archive, as often as they are read.
    """

    types: set[Name] = field(default_factory=set)
    files: list[str] = field(default_factory=list)


#: Sparse matrices and arrays by their modules in scipy.
_SPARSE = frozenset(
    (f"scipy.sparse._{kind}", f"{kind}_{form}")
    for kind in ("bsr", "coo", "csc", "csr", "dia")
    for form in ("array", "matrix")
)
_ARRAY = ("numpy", "ndarray")
#: By kind of node the classes that it may name, where these are few.
_ALLOWED_CLASSES: dict[str, frozenset[Name]] = {
    "DictNode": frozenset(
        {
            ("builtins", "dict"),
            ("collections", "OrderedDict"),
            ("sklearn.utils._bunch", "Bunch"),
        }
    ),
    "DefaultDictNode": frozenset({("collections", "defaultdict")}),
    "ListNode": frozenset({("builtins", "list")}),
    "SetNode": frozenset({("builtins", "set")}),
    "TupleNode": frozenset(
        {
            ("builtins", "tuple"),
            ("sklearn.gaussian_process.kernels", "Hyperparameter"),
        }
    ),
    "SliceNode": frozenset({("builtins", "slice")}),
    "BytesNode": frozenset({("builtins", "bytes")}),
    "BytearrayNode": frozenset({("builtins", "bytearray")}),
    "MaskedArrayNode": frozenset(
        {("numpy.ma", "MaskedArray"), ("numpy.ma.core", "MaskedArray")}
    ),
    "RandomStateNode": frozenset({("numpy.random.mtrand", "RandomState")}),
    "RandomGeneratorNode": frozenset({("numpy.random._generator", "Generator")}),
    "SparseMatrixNode": _SPARSE,
    "TreeNode": frozenset({("sklearn.tree._tree", "Tree")}),
}
#: Values that are JSON themselves, and nodes that stand before, under the same number.
_HARMLESS_NODES = ("JsonNode", "CachedNode")
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
    limits = limits or UnpackLimits()
    with tempfile.TemporaryFile(prefix="hardsynth-") as copy:
        try:
            contents = _checked_copy(path, copy, limits)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise ModelError(
                f"cannot load {path.name}: {error}", "save it again"
            ) from None
        # from the copy, not the path: the file may have been exchanged since it was looked through
        copy.seek(0)
        model = skops.io.load(copy, trusted=names_of(contents.types))
    check_parameters(model, path.name)
    check_trees(model, path.name)
    return model


def _checked_copy(path: Path, copy: IO[bytes], limits: UnpackLimits) -> SchemaContents:
    """Write the parts of a model that its description names, unpacked; nothing is loaded."""
    with zipfile.ZipFile(path) as packed:
        text = _unpacked(packed, _SCHEMA, limits.schema, path.name)
        try:
            schema = json.loads(text)
        except (ValueError, RecursionError):
            raise ModelError(
                f"cannot load {path.name}: its schema.json is not JSON"
            ) from None
        contents = inspect_schema(schema, path.name, limits)
        most = limits.most_bytes(path.stat().st_size)
        members = [_member(packed, name, path.name) for name in contents.files]
        declared = sum(member.file_size for member in members)
        # what the archive declares may be a lie, but an honest bomb is refused before any work
        if declared > most:
            raise _too_large(path.name, most)
        # stored, not packed: skops then reads what was counted here
        with zipfile.ZipFile(copy, "w", zipfile.ZIP_STORED) as plain:
            plain.writestr(_SCHEMA, text)
            left = most
            for name in dict.fromkeys(contents.files):
                data = _unpacked(packed, name, left, path.name)
                # a sparse matrix is an archive itself, and may be the bomb
                if name.endswith(".npz") or data.startswith(_ZIP_MAGIC):
                    data = _plain_archive(data, left, path.name)
                left -= len(data) * contents.files.count(name)
                if left < 0:
                    raise _too_large(path.name, most)
                plain.writestr(name, data)
    return contents


def _plain_archive(data: bytes, most: int, name: str) -> bytes:
    """Return an archive inside the file, a sparse matrix, with its members unpacked."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as packed,
        zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as plain,
    ):
        declared = sum(member.file_size for member in packed.infolist())
        if declared > most:
            raise _too_large(name, most)
        for member in dict.fromkeys(packed.namelist()):
            array = _unpacked(packed, member, most, name)
            most -= len(array)
            plain.writestr(member, array)
    return out.getvalue()


def _member(packed: zipfile.ZipFile, name: str, file: str) -> zipfile.ZipInfo:
    try:
        return packed.getinfo(name)
    except KeyError:
        raise ModelError(f"cannot load {file}: its part {name!r} is missing") from None


def _unpacked(packed: zipfile.ZipFile, name: str, most: int, file: str) -> bytes:
    """Read a member block by block: its size in the archive's list may be a lie."""
    if _member(packed, name, file).file_size > most:
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


def inspect_schema(
    schema: Any, name: str, limits: UnpackLimits | None = None
) -> SchemaContents:
    """Walk every node of a model's description; nothing that it names is called.

    Parameters
    ----------
    schema : object
        What ``schema.json`` holds.
    name : str
        Of the file, for errors.
    limits : UnpackLimits, optional

    Returns
    -------
    SchemaContents

    Raises
    ------
    ModelError
        A node of a kind, class or function that is not on the list.
    """
    walk = _Walk(name, (limits or UnpackLimits()).depth)
    protocol = schema.get("protocol") if isinstance(schema, dict) else None
    if type(protocol) is not int:
        raise walk.damaged()
    if protocol < 1:
        # there a function's name stands elsewhere, so that what is checked is not what is called
        raise ModelError(
            f"{name} was written by a skops older than 0.6", "save it again"
        )
    walk.visit(schema, 0)
    return SchemaContents(walk.types, walk.files)


class _Walk:
    """The nodes of one file."""

    def __init__(self, name: str, depth: int) -> None:
        self.name = name
        self.depth = depth
        self.types: set[Name] = set()
        #: By the number of a node, which skops builds once however often it stands in the file.
        self.numbered: dict[int, tuple[Any, ...]] = {}
        self.files: list[str] = []

    def visit(self, node: Any, depth: int) -> None:
        """Check a node and all below it."""
        if depth > self.depth:
            raise ModelError(
                f"{self.name} holds more than {self.depth} nested objects", _TRUST
            )
        if not isinstance(node, dict):
            raise self.damaged()
        kind = node.get("__loader__")
        # it stands for a node that came before and was checked there
        if kind == "CachedNode":
            return
        module = node.get("__module__")
        class_name = node.get("__class__")
        if not isinstance(kind, str):
            raise self.damaged()
        if not isinstance(module, str) or not isinstance(class_name, str):
            raise self.damaged()
        named = (module, class_name)
        self.check(kind, named, node)
        is_new = self.is_new(kind, named, node)
        # a member is read once for all nodes of one number, and so counted once
        if "file" in node and is_new:
            self.files.append(self.member_name(node))
        for child in self.children(kind, node):
            self.visit(child, depth + 1)

    def is_new(self, kind: str, named: Name, node: dict[str, Any]) -> bool:
        """Whether a node is the first of its number; a later one must say the same."""
        number = node.get("__id__")
        if not number:
            return True
        if not isinstance(number, int):
            raise self.damaged()
        content = node.get("content") if kind == "JsonNode" else None
        about = (kind, named, content, node.get("file"))
        is_new = number not in self.numbered
        if self.numbered.setdefault(number, about) != about:
            raise self.damaged()
        return is_new

    def check(self, kind: str, named: Name, node: dict[str, Any]) -> None:
        """Raise unless this node may be built."""
        if kind in _HARMLESS_NODES:
            return
        self.types.add(named)
        if not _is_allowed(kind, named, node):
            full_name = ".".join(named)
            raise ModelError(
                f"{self.name} holds {_described(kind)} {full_name}, which is not on the list "
                "of what a model file may hold",
                _TRUST,
            )

    def children(self, kind: str, node: dict[str, Any]) -> Iterator[Any]:
        """Yield the nodes that skops would build below one."""
        if kind in ("FunctionNode", "TypeNode", "SliceNode", "JsonNode"):
            return
        content = node.get("content")
        if kind in ("BytesNode", "BytearrayNode", "SparseMatrixNode"):
            return
        if kind == "NdArrayNode" and node.get("type") == "numpy":
            return
        if kind in ("ListNode", "SetNode", "TupleNode", "NdArrayNode"):
            if not isinstance(content, list):
                raise self.damaged()
            yield from content
            if kind == "NdArrayNode":
                yield node.get("shape")
        elif kind == "DictNode":
            yield node.get("key_types")
            yield from self.values(content)
        elif kind in (
            "DefaultDictNode",
            "MaskedArrayNode",
            "PartialNode",
            "RandomGeneratorNode",
        ):
            yield from self.values(content)
        elif kind in ("TreeNode", "LossNode"):
            yield content
            yield from self.values(node.get("__reduce__"))
        elif content is not None:
            # an object without any state has no content
            yield content

    def values(self, content: Any) -> Iterator[Any]:
        """Yield the values of a mapping."""
        if not isinstance(content, dict):
            raise self.damaged()
        yield from content.values()

    def member_name(self, node: dict[str, Any]) -> str:
        """Return the member of the archive that skops would read for a node."""
        file = node["file"]
        if not isinstance(file, str) or file == _SCHEMA:
            raise self.damaged()
        return file

    def damaged(self) -> ModelError:
        """Return the error for a description that skops could not have written."""
        return ModelError(f"cannot load {self.name}: its schema.json is damaged")


def _is_allowed(kind: str, named: Name, node: dict[str, Any]) -> bool:
    """Whether skops may build a node of this kind from the class or function that it names."""
    module, class_name = named
    if kind == "FunctionNode":
        return is_known_function(module, class_name)
    if kind == "RandomGeneratorNode":
        return (
            named in _ALLOWED_CLASSES[kind] and _bit_generator(node) in _BIT_GENERATORS
        )
    if kind == "PartialNode":
        return named == ("functools", "partial") and _is_of_function(node)
    if kind == "DTypeNode":
        return module == "numpy" and class_name.startswith("dtype")
    if kind in _ALLOWED_CLASSES:
        return named in _ALLOWED_CLASSES[kind]
    if kind == "NdArrayNode":
        return named == _ARRAY or named in array_scalars()
    if kind == "TypeNode":
        return named in plain_types()
    if kind == "LossNode":
        return named in loss_classes()
    if kind == "ObjectNode":
        if named in object_classes():
            return True
        # xgboost is imported only where a file names it
        return module.startswith("xgboost.") and named in xgboost_classes()
    return False


def _described(kind: str) -> str:
    nouns = {
        "FunctionNode": "the function",
        "MethodNode": "a method of",
        "TypeNode": "the type",
    }
    return nouns.get(kind, "an object of the type")


def _is_of_function(node: dict[str, Any]) -> bool:
    """Whether a function with some arguments is that; the function is checked as a node."""
    content = node.get("content")
    func = content.get("func") if isinstance(content, dict) else None
    return isinstance(func, dict) and func.get("__loader__") == "FunctionNode"


def _bit_generator(node: dict[str, Any]) -> str:
    """Return the name of the class that skops would call to make a random generator."""
    try:
        state = node["content"]["bit_generator"]["content"]["bit_generator"]
        return str(json.loads(state["content"]))
    except (KeyError, TypeError, ValueError, RecursionError):
        return ""
