"""CTGAN, TVAE, CopulaGAN and the Gaussian copula of SDV, held to the contract.

Notation
--------
K, V : the modelled categories and numbers of :mod:`~amlb_ext.synthesizers.prep`
t : the target, a further column (or k of them); constant targets are not modelled
pool : rows that SDV drew, targets and all, of which those with the asked targets are taken

SDV (https://github.com/sdv-dev/SDV) and its ctgan are no part of this project and not free
software: the Business Source License 1.1 grants their use but for a commercial synthetic data
service, and each release turns to the MIT License four years on. They come with the extra ``sdv``,
which brings a pandas before 3, and are imported when a model is fitted.
"""

from __future__ import annotations

import io
import warnings
from abc import ABC
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, ClassVar

import joblib
import numpy as np
import pandas as pd
import torch
from sklearn.neighbors import NearestNeighbors

from amlb_ext.core.errors import ConfigError
from amlb_ext.core.rng import draw_int_seed
from amlb_ext.synthesizers import require_package
from amlb_ext.synthesizers.base import Synthesizer
from amlb_ext.synthesizers.network import private_torch
from amlb_ext.synthesizers.prep import TablePrep

TABLE, BATCH = "rows", 500  # SDV's own batch size
#: Rows per draw as a multiple of the rows asked, classes and numbers, and the least; most draws
#: for classes, while numbers take one.
CLASS_DRAW, NUMBER_DRAW, LEAST_DRAW, CLASS_DRAWS = 2, 5, 200, 10


class SDVSynthesizer(Synthesizer, ABC):
    """A synthesizer of SDV behind the house's contract.

    The table is prepared as for ``vae_paper``: categories (as strings), "is missing" as a category
    beside a number, constant columns left out, columns of more than ``max_categories`` codes
    copied from near rows. The target is one more column.

    Rows for given targets are picked from unconditional draws, for SDV's own conditional sampling
    of its networks is rejection too. A class gets the drawn rows of that class, out of at most ten
    draws of twice the rows asked; too few are repeated, and where there are none a warning says
    that rows of other classes stand in. For numbers five times the rows asked are drawn, and a
    target asked g times gets the g rows nearest in the target (in standard deviations).

    NOTE[DIFF]: SDV draws from the global streams of numpy and torch. They are seeded inside and put
    back afterwards, and a draw's seed goes in by SDV's private ``_set_random_state``: left to
    itself, SDV draws the same rows after every fit.

    Parameters
    ----------
    epochs, batch : int
        See :class:`~amlb_ext.core.config.SynthesizerConfig`; ``batch`` 0 is SDV's own 500.
    max_categories : int
        See :class:`~amlb_ext.synthesizers.prep.TablePrep`.
    device : {"auto", "cpu"}
        ``auto`` uses a CUDA GPU where there is one, whose rows are nearly, not exactly, the same.

    Raises
    ------
    ConfigError
        At ``fit``: a parameter out of range, or SDV is not installed.
    """

    _kind: ClassVar[str]  # the class in sdv.single_table
    _packs: ClassVar[int] = 1  # what batches must be a multiple of

    def __init__(
        self,
        epochs: int = 150,
        batch: int = 0,
        max_categories: int = 100,
        device: str = "auto",
    ) -> None:
        self.epochs = epochs
        self.batch = batch
        self.max_categories = max_categories
        self.device = device

    def _settings(self) -> dict[str, Any]:
        batch = -(-(self.batch or BATCH) // self._packs) * self._packs
        return {"epochs": self.epochs, "batch_size": batch, "enable_gpu": self._gpu()}

    def _gpu(self) -> bool:
        return self.get_params().get("device") == "auto" and torch.cuda.is_available()

    def _check_parameters(self) -> None:
        for name, value in self.get_params().items():
            if name == "device" and value not in ("cpu", "auto"):
                raise ConfigError(f"device = {value!r}: 'cpu' or 'auto' wanted")
            if name != "device" and value < (least := 0 if name == "batch" else 1):
                raise ConfigError(f"{name} = {value}: at least {least} wanted")

    def _fit(self, X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> None:
        self._check_parameters()
        require_package("sdv")
        self.prep_ = TablePrep(self.max_categories, normalise=False)
        codes, numbers, _ = self.prep_.fit(X, len(self.cards_), rng).transform(X)
        t = y.reshape(len(y), -1).astype(float)
        self.scale_ = t.std(axis=0) * (
            np.ptp(t, axis=0) > 0
        )  # 0: constant, not modelled
        self.model_ = None
        if not (self.prep_.cards_ or self.prep_.n_numbers_):
            return  # constant or copied columns only
        columns: dict[str, Any] = {
            f"k{j}": _words(column) for j, column in enumerate(codes.T)
        }
        columns |= {f"v{j}": column for j, column in enumerate(numbers.T)}
        for j in np.flatnonzero(self.scale_):
            columns[f"t{j}"] = _words(t[:, j]) if self.n_classes_ else t[:, j]
        self.columns_ = list(columns)
        kinds = {
            name: {"sdtype": "categorical" if isinstance(column, list) else "numerical"}
            for name, column in columns.items()
        }
        with private_streams(draw_int_seed(rng), self._gpu()):
            from sdv import single_table
            from sdv.metadata import Metadata

            metadata = Metadata.load_from_dict({"tables": {TABLE: {"columns": kinds}}})
            model = getattr(single_table, self._kind)(metadata, **self._settings())
            model.fit({TABLE: pd.DataFrame(columns)})
        self.model_ = model

    def _sample(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        m = len(self.prep_.cards_)
        if self.model_ is None:
            rows = np.empty((len(y), 0))
        elif self.n_classes_:
            rows = self._of_classes(y, rng)
        else:
            rows = self._near_targets(y.reshape(len(y), -1), rng)
        return self.prep_.inverse(rows[:, :m].astype(np.int64), rows[:, m:], rng)

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return a pool: K and V side by side, and the modelled targets."""
        assert self.model_ is not None
        with private_streams(seed := draw_int_seed(rng), self._gpu()):
            self.model_.reset_sampling()
            self.model_._set_random_state(seed)
            made = self.model_.sample(max(n, LEAST_DRAW))[TABLE]
        pool = np.column_stack([_values(made[name]) for name in self.columns_])
        width = len(self.prep_.cards_) + self.prep_.n_numbers_
        return pool[:, :width], pool[:, width:]

    def _of_classes(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return drawn rows of the asked classes; a class without a fitted row takes any."""
        fitted = np.unique(self.targets_)
        asked = dict(zip(*np.unique(y, return_counts=True), strict=True))
        stock: dict[int, list[np.ndarray]] = {c: [] for c in asked}
        for _ in range(CLASS_DRAWS):
            rows, t = self._draw(CLASS_DRAW * len(y), rng)
            for c, found in stock.items():
                alike = (
                    t[:, 0] == c if t.size and c in fitted else np.full(len(rows), True)
                )
                found.extend(rows[alike][: asked[c] - len(found)])
            if all(len(stock[c]) == asked[c] for c in asked):
                break
        new = np.empty((len(y), rows.shape[1]))
        for c, found in stock.items():
            if not found:
                text = f"drew no row of class {c} in {CLASS_DRAWS} draws of {len(rows)} rows"
                text = f"{type(self).__name__} {text}: rows of other classes stand in"
                warnings.warn(text, stacklevel=4)
                found.extend(rows)
            new[y == c] = np.array(found)[np.arange(asked[c]) % len(found)]
        return new

    def _near_targets(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return, for a target asked g times, the g drawn rows nearest to it in the target."""
        rows, t = self._draw(NUMBER_DRAW * len(y), rng)
        varied = np.flatnonzero(self.scale_)
        if len(varied) == 0:
            return rows[: len(y)]
        y, scale = y[:, varied], self.scale_[varied]
        asked, which, times = np.unique(
            y / scale, axis=0, return_inverse=True, return_counts=True
        )
        places = np.argsort(
            which.ravel(), kind="stable"
        )  # of equal targets side by side
        start, nearest = np.cumsum(times) - times, NearestNeighbors().fit(t / scale)
        new = np.empty((len(y), rows.shape[1]))
        for g in np.unique(times):
            group = np.flatnonzero(times == g)
            near = nearest.kneighbors(
                asked[group], n_neighbors=g, return_distance=False
            )
            new[places[start[group][:, None] + np.arange(g)]] = rows[near]
        return new


class CTGAN(SDVSynthesizer):
    """SDV's CTGAN (Xu et al., Modeling Tabular Data using Conditional GAN, NeurIPS 2019).

    Its critic sees ten rows at once: ``batch`` is rounded up to a multiple of 10.
    """

    _kind, _packs = "CTGANSynthesizer", 10


class CopulaGAN(CTGAN):
    """SDV's CopulaGAN: CTGAN on numbers made normal by fitted beta distributions."""

    _kind = "CopulaGANSynthesizer"


class TVAE(SDVSynthesizer):
    """SDV's TVAE, the variational autoencoder of CTGAN's paper; see :class:`SDVSynthesizer`."""

    _kind = "TVAESynthesizer"


class SDVCopula(SDVSynthesizer):
    """SDV's Gaussian copula with beta margins; the house's own is ``copula``."""

    _kind = "GaussianCopulaSynthesizer"

    def __init__(self, max_categories: int = 100) -> None:
        self.max_categories = max_categories

    def _settings(self) -> dict[str, Any]:
        return {}


def _words(codes: np.ndarray) -> list[str]:
    return [f"c{int(code)}" for code in codes]


def _values(column: pd.Series) -> np.ndarray:
    return (column if column.dtype == float else column.str[1:]).to_numpy(dtype=float)


@contextmanager
def private_streams(seed: int, gpu: bool) -> Iterator[None]:
    """Seeded global streams, one thread, one process, no chatter; the caller's afterwards."""
    numpy_state = np.random.get_state()  # noqa: NPY002
    devices = range(torch.cuda.device_count()) if gpu else ()
    try:
        with (
            torch.random.fork_rng(devices=devices),
            private_torch(seed),
            joblib.parallel_backend("sequential"),
            warnings.catch_warnings(),
            redirect_stdout(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            np.random.seed(seed)  # noqa: NPY002
            if gpu:
                torch.cuda.manual_seed_all(seed)
            yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
