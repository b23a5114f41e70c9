"""Random hostile tables through ``generate``: a suite that keeps AMLB's rules, or one clear error.

``make test`` tries 25 tables. The nightly size is 1,000:

    HARDSYNTH_NIGHTLY=1 python -m pytest tests/hostile/test_frames.py -q

and HARDSYNTH_NIGHTLY=N tries N times 1,000; HARDSYNTH_HOSTILE_LOG=FILE keeps what became of each.
"""

from __future__ import annotations

import csv
import os
import shutil
import tempfile
import traceback
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from exhaustive import count_of
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from small_models import shrink

from amlb_ext.core.config import build_config
from amlb_ext.core.errors import HardsynthError
from amlb_ext.core.tables import default_target
from amlb_ext.pipeline.generate import generate_suite
from amlb_ext.pipeline.request import Request
from amlb_ext.suite import verify_suite

NIGHTLY = int(os.environ.get("HARDSYNTH_NIGHTLY") or 0)
LOG = os.environ.get("HARDSYNTH_HOSTILE_LOG")

NAMES = [
    "", " ", "a", "A", "a ", "x.1", "Unnamed: 0", "nan", "NaN", "None", "=cmd()", "+1", "@sum(a)",
    "../x", "..", "/etc/passwd", "{user}", "{root}", "{}", "__defaults__", "name", "target",
    "Class", "class", "TARGET", "predictions", "truth", "substituted", "origin", 'q"t', "it's",
    "a,b", "a;b", "a\nb", "a\r\nb", "tab\tb", "<script>", "&amp;", "日本", "é", "e\u0301", "İ",
    "\ufeffa", "\u202eabc", "0", "1e5", "-", "?", "$(id)", "`id`", "; rm -rf x", "%s", "x" * 300,
    "\x1b[31m", "\x85", "index", "a[0]", "c0_a", "True",
]  # fmt: skip
TEXTS = [
    *NAMES, "NA", "null", "N/A", "inf", "-inf", "1e400", "007", "99999999999999999999999", "1_000",
    "true", "false", "True", "False", "yes", "no", "2020-01-01", "2020-13-45", "2020-01-01T10:00",
    "0x10", "1,5", "1.5.2", "#N/A", "c1_", "y" * 5000, "\\", "'", '"', "''", "a\x00b",
]  # fmt: skip
NUMBERS = [
    0.0, -0.0, 1.0, -1.0, 0.1, 1e-320, 5e-324, 1e30, 3.4e38, 3.5e38, -1e308, 2.0**53, 2.0**53 + 2,
    9.2e18, float("nan"), float("inf"), float("-inf"), 1e15, 123456.789,
]  # fmt: skip
INTEGERS = [0, 1, 2, -1, 7, 255, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
INTEGERS += [10**30, 10**400]

texts = st.one_of(st.sampled_from(TEXTS), st.text(max_size=12))
plain_numbers = st.floats(-1e6, 1e6, allow_nan=False)
words = st.sampled_from(["red", "green", "blue", "a", "b", "0", "1", "yes", "no"])
#: What stands in a column, and how many values there are to choose from.
KINDS = [
    (plain_numbers, 6, 20),
    (st.integers(-50, 50), 2, 12),
    (words, 2, 4),
    (texts, 1, 8),
    (st.one_of(plain_numbers, st.sampled_from(NUMBERS)), 1, 8),
    (st.one_of(st.integers(-9, 9), st.sampled_from(INTEGERS)), 1, 6),
    (st.booleans(), 1, 2),
    (st.dates(), 1, 30),
    (st.datetimes(), 1, 30),
    (st.one_of(texts, plain_numbers, st.booleans(), st.none()), 1, 8),
]
pools = st.one_of(
    *(st.lists(values, min_size=least, max_size=most) for values, least, most in KINDS),
    st.just([None]),
)
names = st.one_of(st.sampled_from([*NAMES, *"abcdefabcdef"]), st.text(max_size=8))


good_targets = st.one_of(
    st.lists(plain_numbers, min_size=6, max_size=20, unique=True),
    st.lists(texts, min_size=2, max_size=4, unique=True),
    st.lists(st.integers(-9, 9), min_size=2, max_size=8, unique=True),
    st.just([True, False]),
)


@st.composite
def tables(draw):
    """Names, columns of values, and how to write and read them; most targets can be learned."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    usual = rng.random(4) < 0.85
    n = int(rng.integers(20, 41) if usual[0] else rng.integers(1, 41))
    width = int(rng.integers(2, 7) if usual[1] else rng.integers(0, 7))
    header = draw(
        st.lists(names, min_size=width, max_size=width, unique=bool(usual[2]))
    )
    target = draw(st.sampled_from(header)) if header and rng.random() < 0.5 else None
    last = default_target(header) if header and target is None else target
    columns = []
    for name in header:
        good = usual[3] and name == last
        pool = draw(good_targets if good else pools)
        missing = 0 if good else float(rng.choice([0, 0, 0, 0.1, 0.6]))
        picked = rng.integers(len(pool), size=n)
        lost = rng.random(n) < missing
        columns.append([None if lost[i] else pool[picked[i]] for i in range(n)])
    form = str(rng.choice(["csv", "csv", "parquet"]))
    kind = [None, None, None, "classification", "regression", "binary"][rng.integers(6)]
    rule = str(rng.choice(["quantile", "quantile", "auto"]))
    return header, columns, form, kind, target, rule


def written(folder, header, columns, form):
    """The table as a file; what Parquet cannot hold is written as CSV."""
    if form == "parquet":
        path = folder / "t.parquet"
        try:
            frame = pd.DataFrame(dict(enumerate(columns)))
            frame.columns = header
            frame.to_parquet(path)
            return path
        except (ValueError, TypeError, OverflowError, KeyError):
            path.unlink(missing_ok=True)
    path = folder / "t.csv"
    with path.open("w", encoding="utf-8", newline="", errors="surrogatepass") as handle:
        out = csv.writer(handle)
        out.writerow(header)
        out.writerows(zip(*columns, strict=True))
    return path


def generated(path, out, kind, target, rule):
    """What became of it: 'written', or the error."""
    config = build_config(
        {
            "source": {"kind": kind, "target": target},
            "split": {"folds": 1},
            "baseline": {"model": "ridge"},
            "hardness": {"rule": rule, "share": 0.3},
            "search": {
                "kappa": 0.005,
                "copies": 2,
                "operators": {"generations": 1, "population": 4},
            },
            "synthesizer": {"name": "copula", "times": 1},
        }
    )
    request = Request((str(path),), config, out, quiet=True, certificate="none")
    try:
        report = generate_suite(request)
    except HardsynthError as error:
        said, report = f"{type(error).__name__}: {error}", None
    if report is None or not report.written:
        left = [p for p in out.rglob("*") if p.is_file()] if out.exists() else []
        assert left == [], "something was written"
        return said if report is None else f"no suite: {report.failures}"
    assert verify_suite(out) == []
    return "written"


@settings(
    max_examples=1000 * NIGHTLY or count_of(4, 25),
    deadline=None,
    derandomize=True,
    phases=[Phase.generate] if NIGHTLY else list(Phase),
    suppress_health_check=list(HealthCheck),
)
@given(tables())
def check_one(found, table):
    header, columns, form, kind, target, rule = table
    folder = Path(tempfile.mkdtemp(prefix="hostile-"))
    try:
        path = written(folder, header, columns, form)
        said = generated(path, folder / "out", kind, target, rule)
        assert len(said) < 2000
    except Exception:
        if not NIGHTLY:
            raise
        said = f"FAILED {traceback.format_exc()[-1500:]!r} {table!r}"
        found.append(said)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if LOG:
        with open(LOG, "a", encoding="utf-8", errors="backslashreplace") as log:
            log.write(said.replace("\n", " ")[:20_000] + "\n")


@pytest.mark.filterwarnings("ignore:The number of unique classes is greater than 50%")
def test_a_suite_that_keeps_the_rules_or_an_error(monkeypatch):
    shrink(monkeypatch)
    found: list[str] = []
    check_one(found)
    assert found == []
