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
import math
import warnings
from abc import ABC
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any, ClassVar

import joblib
import numpy as np
import pandas as pd
import torch
from sklearn.neighbors import NearestNeighbors

from amlb_ext.core.rng import draw_int_seed
from amlb_ext.synthesizers import require_package
from amlb_ext.synthesizers.base import Synthesizer, check_settings
from amlb_ext.synthesizers.network import private_torch
from amlb_ext.synthesizers.prep import TablePrep

#: The table's name for SDV, which knows tables by name.
TABLE = "rows"
#: SDV's own batch size.
BATCH = 500
#: Rows per draw as a multiple of the rows asked, classes and numbers, and the least; most draws
#: for classes, while numbers take one.
CLASS_DRAW, NUMBER_DRAW, LEAST_DRAW, CLASS_DRAWS = 2, 5, 200, 10


#: A category as texts, or numbers.
Column = list[str] | np.ndarray


@dataclass(eq=False, repr=False)
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

    epochs: int = 150
    batch: int = 0
    max_categories: int = 100
    device: str = "auto"

    #: The class in sdv.single_table.
    _kind: ClassVar[str]
    #: What batches must be a multiple of.
    _packs: ClassVar[int] = 1

    def _settings(self) -> dict[str, Any]:
        """Return the arguments of SDV's class."""
        n_packs = math.ceil((self.batch or BATCH) / self._packs)
        return {
            "epochs": self.epochs,
            "batch_size": n_packs * self._packs,
            "enable_gpu": self._use_gpu(),
        }

    def _use_gpu(self) -> bool:
        # the copula has no such parameter: it runs on the processor
        device = self.get_params().get("device")
        return device == "auto" and torch.cuda.is_available()

    def _fit(
        self,
        X: np.ndarray,
        y: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        # 0 stands for SDV's own batch size
        check_settings(self.get_params(), may_be_zero=("batch",))
        require_package("sdv")
        self.prep_ = TablePrep(self.max_categories, normalise=False)
        self.prep_.fit(X, len(self.cards_), rng)
        t = y.reshape(len(y), -1).astype(float)
        # 0: constant, not modelled; numpy's deviation of equal numbers may be a rounding error
        is_varied = np.ptp(t, axis=0) > 0
        self.scale_ = np.where(is_varied, t.std(axis=0), 0.0)
        self.model_: Any = None
        if not self.prep_.n_modelled_:
            return
        columns = self._named_columns(X, t)
        self.columns_ = list(columns)
        with private_streams(draw_int_seed(rng), self._use_gpu()):
            self.model_ = self._fit_model(columns)

    def _named_columns(
        self,
        X: np.ndarray,
        t: np.ndarray,
    ) -> dict[str, Column]:
        """Return the table for SDV by column: categories as texts, numbers, targets."""
        codes, numbers, _ = self.prep_.transform(X)
        columns: dict[str, Column] = {}
        for j, column in enumerate(codes.T):
            columns[f"k{j}"] = _codes_as_texts(column)
        for j, column in enumerate(numbers.T):
            columns[f"v{j}"] = column
        for j in np.flatnonzero(self.scale_).tolist():
            columns[f"t{j}"] = t[:, j]
            if self.n_classes_:
                columns[f"t{j}"] = _codes_as_texts(t[:, j])
        return columns

    def _fit_model(self, columns: dict[str, Column]) -> Any:
        """Return SDV's model of a table."""
        from sdv import single_table
        from sdv.metadata import Metadata

        kinds = {}
        for name, column in columns.items():
            is_category = isinstance(column, list)
            kinds[name] = {"sdtype": "categorical" if is_category else "numerical"}
        metadata = Metadata.load_from_dict({"tables": {TABLE: {"columns": kinds}}})
        make_model = getattr(single_table, self._kind)
        model = make_model(metadata, **self._settings())
        model.fit({TABLE: pd.DataFrame(columns)})
        return model

    def _sample(
        self,
        y: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        n = len(y)
        if self.model_ is None:
            rows = np.empty((n, 0))
        elif self.n_classes_:
            rows = self._draw_classes(y, rng)
        else:
            targets = y.reshape(n, -1)
            rows = self._draw_near_targets(targets, rng)
        m = len(self.prep_.cards_)
        codes = rows[:, :m].astype(np.int64)
        numbers = rows[:, m:]
        return self.prep_.inverse(codes, numbers, rng)

    def _draw_pool(
        self,
        n: int,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a pool: K and V side by side, and the modelled targets."""
        assert self.model_ is not None
        seed = draw_int_seed(rng)
        with private_streams(seed, self._use_gpu()):
            self.model_.reset_sampling()
            self.model_._set_random_state(seed)
            tables = self.model_.sample(max(n, LEAST_DRAW))
        made = tables[TABLE]
        pool = np.column_stack([_column_numbers(made[name]) for name in self.columns_])
        rows, targets = np.split(pool, [self.prep_.n_modelled_], axis=1)
        return rows, targets

    def _draw_classes(
        self,
        y: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Return drawn rows of the asked classes; a class without a fitted row takes any."""
        n = len(y)
        n_asked = Counter(y.tolist())
        # the drawn rows of each class; classes in order, for the order of warnings
        stock: dict[int, list[np.ndarray]] = {c: [] for c in sorted(n_asked)}
        for _ in range(CLASS_DRAWS):
            rows, t = self._draw_pool(CLASS_DRAW * n, rng)
            for c, stored in stock.items():
                # all where the class was not fitted, or is the only one
                is_told = t.size > 0 and c in self.targets_
                drawn = rows[t[:, 0] == c] if is_told else rows
                n_lacking = n_asked[c] - len(stored)
                stored.extend(drawn[:n_lacking])
            n_stored = sum(len(stored) for stored in stock.values())
            if n_stored == n:
                break
        new = np.empty((n, rows.shape[1]))
        for c, stored in stock.items():
            if not stored:
                name = type(self).__name__
                warnings.warn(
                    f"{name} drew no row of class {c} in {CLASS_DRAWS} draws of {len(rows)} "
                    "rows: rows of other classes stand in",
                    stacklevel=4,
                )
            candidates = np.array(stored) if stored else rows
            # too few rows are repeated, in turn
            turns = np.arange(n_asked[c]) % len(candidates)
            new[y == c] = candidates[turns]
        return new

    def _draw_near_targets(
        self,
        y: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Return, for a target asked g times, the g drawn rows nearest to it in the target."""
        n = len(y)
        rows, t = self._draw_pool(NUMBER_DRAW * n, rng)
        varied = np.flatnonzero(self.scale_)
        # where all targets are constant, every row suits
        if len(varied) == 0:
            return rows[:n]
        scale = self.scale_[varied]
        asked, group_of_row, counts = np.unique(
            y[:, varied] / scale,
            axis=0,
            return_inverse=True,
            return_counts=True,
        )
        # rows with equal targets side by side, group after group
        by_group = np.argsort(group_of_row.ravel(), kind="stable")
        starts = np.cumsum(counts) - counts
        nearest = NearestNeighbors().fit(t / scale)
        new = np.empty((n, rows.shape[1]))
        # one query for all groups of a size
        for size in np.unique(counts):
            groups = np.flatnonzero(counts == size)
            near = nearest.kneighbors(
                asked[groups],
                n_neighbors=size,
                return_distance=False,
            )
            first = starts[groups]
            positions = first[:, None] + np.arange(size)
            new[by_group[positions]] = rows[near]
        return new


class CTGAN(SDVSynthesizer):
    """SDV's CTGAN (Xu et al., Modeling Tabular Data using Conditional GAN, NeurIPS 2019).

    Its critic sees ten rows at once: ``batch`` is rounded up to a multiple of 10.
    """

    _kind = "CTGANSynthesizer"
    _packs = 10


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


def _codes_as_texts(codes: np.ndarray) -> list[str]:
    """Return codes with a letter before them: SDV takes digits alone for numbers."""
    return [f"c{int(code)}" for code in codes]


def _column_numbers(column: pd.Series) -> np.ndarray:
    """Return the numbers of a column, or the codes behind its texts."""
    if column.dtype != float:
        column = column.str[1:]
    return column.to_numpy(dtype=float)


@contextmanager
def private_streams(seed: int, use_gpu: bool) -> Iterator[None]:
    """Seeded global streams, one thread, one process, no chatter; the caller's afterwards."""
    numpy_state = np.random.get_state()  # noqa: NPY002
    devices = range(torch.cuda.device_count()) if use_gpu else ()
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
            if use_gpu:
                torch.cuda.manual_seed_all(seed)
            yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
