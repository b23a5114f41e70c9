"""Which tasks come with the installation: their names, targets and credits.

Nothing is read here, so that ``hardsynth list`` names them without pandas; ``bundled`` reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from amlb_ext.core.unit import Kind

_SKLEARN = "BSD-3-Clause, as distributed with scikit-learn"
_UCI = "CC BY 4.0, from the UCI Machine Learning Repository"


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """One bundled task: what it predicts, and where it comes from.

    Attributes
    ----------
    target : str
    kind : Kind
    licence, citation : str
    file : str
        The file of scikit-learn's wheel that it needs; empty where it needs none.
    """

    target: str
    kind: Kind
    licence: str
    citation: str
    file: str = ""

    @property
    def file_path(self) -> Path | None:
        """The file that it needs, or None where it needs none or scikit-learn lacks it."""
        return _wheel_file(self.file) if self.file else None

    @property
    def is_installed(self) -> bool:
        """Whether this installation can read it."""
        return not self.file or self.file_path is not None


def _wheel_file(file: str) -> Path | None:
    """Return a file of scikit-learn's test data, found without importing scikit-learn."""
    spec = find_spec("sklearn")
    assert spec, "this package needs it"
    assert spec.origin
    path = Path(spec.origin).parent / "datasets/tests/data/openml" / file
    return path if path.is_file() else None


#: One table, as it is and in two other forms.
_DIABETES = Bundle(
    target="progression",
    kind=Kind.REGRESSION,
    licence=_SKLEARN,
    citation="Efron, Hastie, Johnstone, Tibshirani: Least Angle Regression. Ann. Statist. 32(2), "
    "2004",
)

#: All bundled tasks by name.
BUNDLES: dict[str, Bundle] = {
    "diabetes": _DIABETES,
    "breast_cancer": Bundle(
        target="diagnosis",
        kind=Kind.BINARY,
        licence=_UCI,
        citation="Wolberg, Mangasarian, Street, Street: Breast Cancer Wisconsin (Diagnostic). "
        "UCI, 1995",
    ),
    "wine": Bundle(
        target="cultivar",
        kind=Kind.MULTICLASS,
        licence=_UCI,
        citation="Aeberhard, Forina: Wine. UCI, 1991",
    ),
    "digits": Bundle(
        target="digit",
        kind=Kind.MULTICLASS,
        licence=_UCI,
        citation="Alpaydin, Kaynak: Optical Recognition of Handwritten Digits. UCI, 1998",
    ),
    "diabetes_gaps": _DIABETES,
    "toy": Bundle(
        target="y",
        kind=Kind.REGRESSION,
        licence="Apache-2.0",
        citation="Zakharov, Boukhanovsky: Model-Aware Automatic Benchmark Generation with "
        "Self-Error Instructions for Data-Driven Models, section 5.3",
    ),
    "titanic": Bundle(
        target="survived",
        kind=Kind.BINARY,
        licence="Public (OpenML data set 40945)",
        citation="Harrell, Cason: Titanic. OpenML data set 40945, version 1",
        file="id_40945/data-v1-dl-16826755.arff.gz",
    ),
    "penguins": Bundle(
        target="species",
        kind=Kind.MULTICLASS,
        licence="CC0 (Palmer Station LTER), OpenML data set 42585",
        citation="Horst, Hill, Gorman: palmerpenguins. R package, 2020",
        file="id_42585/data-v1-dl-21854866.arff.gz",
    ),
    "cpu": Bundle(
        target="class",
        kind=Kind.REGRESSION,
        licence="Public (OpenML data set 561)",
        citation="Ein-Dor, Feldmesser: Computer Hardware. UCI, 1987",
        file="id_561/data-v1-dl-52739.arff.gz",
    ),
}
