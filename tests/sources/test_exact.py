"""Different values stay different, or it is said: long numbers, times, leading zeros, indices."""

import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from exhaustive import count_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amlb_ext.amlb.coding import Coding, write_csv
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import DataError, HardsynthError
from amlb_ext.core.numbers import LONG_NUMBER
from amlb_ext.core.task import Kind
from amlb_ext.sources import open_specs
from amlb_ext.sources.read_table import may_hold_odd_numbers, read_table
from amlb_ext.sources.table import join_folds

N = 24
BIG = 2**63 - N
IDS = [BIG + i for i in range(N)]  # one single float64
LONG = [f"0.1234567890123456789{i:02d}" for i in range(N)]


def load(path, **options):
    return next(open_specs([str(path)], SourceConfig(**options))).load()


def beside(values, name="x"):
    """A table with one column to look at, a feature that is none of it, and a class target."""
    return pd.DataFrame(
        {name: values, "z": np.arange(N) % 7, "y": ["a", "b"] * (N // 2)}
    )


def written(tmp_path, frame, ending, **options):
    path = tmp_path / f"t.{ending}"
    if ending == "csv":
        frame.to_csv(path, index=False)
    elif ending == "parquet":
        frame.to_parquet(path)
    else:
        lines = ["@relation r", "@attribute x numeric", "@attribute z numeric"]
        kind = "numeric" if options else "{a,b}"
        lines += [f"@attribute y {kind}", "@data"]
        text = frame.astype(object).where(frame.notna(), "?").astype(str)
        path.write_text(
            "\n".join([*lines, *text.agg(",".join, axis=1)]) + "\n", encoding="utf-8"
        )
    return load(path, **options)


@pytest.mark.parametrize("ending", ["csv", "parquet", "arff"])
@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("shift", [0, 2**63, -(2**64) + 2 * N])
def test_long_whole_numbers_stay_apart_as_categories(tmp_path, ending, gap, shift):
    ids = [i + shift if i + shift >= -(2**63) else -(2**63) + i - BIG for i in IDS]
    dtype = "UInt64" if shift == 2**63 else "Int64"
    frame = beside(
        pd.array([None if gap and i == 3 else v for i, v in enumerate(ids)], dtype)
    )
    task = written(tmp_path, frame, ending)
    assert task.columns[0].type == "categorical"
    assert task.features["x"].nunique() == N - gap
    assert set(task.columns[0].categories) == {
        str(v) for i, v in enumerate(ids) if not (gap and i == 3)
    }
    if not (ending == "csv" and gap and shift == 2**63):  # text to pandas, and to AMLB
        said = f"column 'x': {N - gap} distinct whole numbers would be"
        assert any(
            note.startswith(said) and "categories" in note for note in task.notes
        )


def test_whole_numbers_with_gaps_of_a_file_that_pandas_did_not_write(tmp_path):
    values = pa.array([None, *IDS[1:]], pa.int64())
    table = pa.table({"x": values, "z": np.arange(N), "y": ["a", "b"] * (N // 2)})
    pq.write_table(table, tmp_path / "t.parquet")
    assert load(tmp_path / "t.parquet").features["x"].nunique() == N - 1


def test_whole_numbers_that_are_rounded_but_stay_apart_are_remarked(tmp_path):
    task = written(tmp_path, beside([2**60 + 999 * i for i in range(N)]), "csv")
    assert task.columns[0].type == "numeric"
    assert "column 'x' holds whole numbers beyond 2**53" in task.notes[0]


@pytest.mark.parametrize("ending", ["csv", "parquet", "arff"])
def test_decimals_that_become_equal_are_said(tmp_path, ending):
    values = [Decimal(text) for text in LONG] if ending == "parquet" else LONG
    task = written(tmp_path, beside(values), ending)
    now = task.features["x"].nunique()
    assert now < N
    assert (
        f"column 'x': {N} distinct numbers are {now} as 64-bit floats" in task.notes[0]
    )


@pytest.mark.parametrize("ending", ["csv", "parquet", "arff"])
@pytest.mark.parametrize("values", [IDS, LONG], ids=["whole", "decimal"])
def test_targets_whose_values_become_equal_are_refused(tmp_path, ending, values):
    exact = (
        [Decimal(v) for v in values]
        if values is LONG and ending == "parquet"
        else values
    )
    frame = beside(range(N)).assign(y=exact)
    with pytest.raises(
        DataError, match=f"the {N} distinct values of the target 'y' are"
    ) as error:
        written(tmp_path, frame, ending, target="y")
    assert "--kind classification" in error.value.remedy
    task = load(tmp_path / f"t.{ending}", target="y", kind="classification")
    assert len(task.labels) == N


def test_two_spellings_of_one_float_are_no_loss(tmp_path):
    """Programs write .3 as 0.3, as 0.29999999999999999 and with zeros behind."""
    texts = ["0.3", "0.29999999999999999", "0.30000000000000000000"] + [
        f"{i / 7:.17g}" for i in range(N - 3)
    ]
    task = written(tmp_path, beside(range(N)).assign(y=texts), "csv", target="y")
    assert task.kind is Kind.REGRESSION
    assert task.notes == ()
    texts[2] = (
        "0.299999999999999988898"  # one of hundred is no reason to refuse, one of few is
    )
    with pytest.raises(DataError, match="64-bit floats"):
        written(tmp_path, beside(range(N)).assign(y=texts), "csv", target="y")


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_times_keep_their_resolution(tmp_path, unit, zone):
    start = np.datetime64("2024-10-27T00:59:59", unit).astype("int64")
    times = pd.Series((start + np.arange(N)).astype(f"datetime64[{unit}]"))
    if zone:
        times = times.dt.tz_localize("UTC").dt.tz_convert(zone)
    task = written(tmp_path, beside(times), "parquet")
    assert task.columns[0].type == "date"
    back = pd.to_datetime(
        pd.Series(task.features["x"].astype(str)), format="ISO8601", utc=True
    )
    wanted = times if zone else times.dt.tz_localize("UTC")
    assert (back == wanted).all()
    coding = Coding.of(task)
    write_csv(coding.encode(task.features, task.target), tmp_path / "out.csv")
    assert pd.read_csv(tmp_path / "out.csv")["x"].nunique() == N


def test_the_hour_that_comes_twice_is_two_hours(tmp_path):
    times = pd.date_range("2024-10-26 22:00", periods=N, freq="h", tz="UTC")
    task = written(tmp_path, beside(times.tz_convert("Europe/Berlin")), "parquet")
    twice = {"2024-10-27T02:00:00+02:00", "2024-10-27T02:00:00+01:00"}
    again = written(tmp_path, beside(task.features["x"]), "csv")
    for read in (task, again):
        assert read.features["x"].nunique() == N
        assert twice < set(read.features["x"])


def test_durations(tmp_path):
    short = pd.to_timedelta(np.arange(N), unit="ns")
    assert written(tmp_path, beside(short), "parquet").features["x"].nunique() == N
    task = written(tmp_path, beside(short + pd.Timedelta(days=90000)), "parquet")
    assert "distinct numbers are" in task.notes[0]


def test_fractions_in_an_integer_attribute(tmp_path):
    lines = ["@relation r", "@attribute x integer", "@attribute y {a,b}", "@data"]
    lines += [f"{i}.5,{'ab'[i % 2]}" for i in range(N - 1)] + ["nan,a"]
    (tmp_path / "t.arff").write_text("\n".join(lines) + "\n", encoding="utf-8")
    task = load(tmp_path / "t.arff")
    assert task.features["x"].tolist()[:2] == [0.5, 1.5]
    assert task.features["x"].isna().sum() == 1


def test_folds_of_other_integer_types_lose_nothing(tmp_path):
    one, two = tmp_path / "a.parquet", tmp_path / "b.parquet"
    beside([0.5, *IDS[1:]]).to_parquet(one)
    beside(IDS).to_parquet(two)
    table = join_folds(
        [(read_table(two), read_table(two)), (read_table(one), read_table(two))]
    )
    assert set(IDS) < set(table.frame["x"])
    floats = tmp_path / "c.parquet"
    beside(np.arange(N) / 3).to_parquet(floats)
    table = join_folds([(read_table(two), read_table(floats))])
    assert table.frame["x"].nunique() == 2 * N


def test_leading_zeros_are_numbers_as_for_amlb_and_said(tmp_path):
    task = written(tmp_path, beside([f"{i % 9:03d}" for i in range(N)], "zip"), "csv")
    assert task.columns[0].type == "integer"
    assert task.notes == (
        f"column 'zip': {N} values with leading zeros, '000' the first, are read as numbers, as "
        "AMLB reads them; put a letter before them to keep them as texts",
    )
    # dates and times are none
    task = written(tmp_path, beside([f"01/{i + 1:02d}/2020" for i in range(N)]), "csv")
    assert task.notes == ()


def test_whole_numbers_up_to_2_64_with_gaps_have_gaps_still(tmp_path):
    """Pandas reads such a column as texts, its empty fields as the text ''."""
    frame = beside([None, *(str(2**64 - 1 - i) for i in range(N - 1))])
    task = written(tmp_path, frame, "csv")
    assert task.columns[0].has_missing
    assert "" not in task.columns[0].categories


def test_an_index_without_a_name_is_left_out_and_said(tmp_path):
    frame = beside(range(N))
    # a folder's name adds no column
    folder = tmp_path / "year=2024"
    folder.mkdir()
    assert list(written(folder, frame, "parquet").features) == ["x", "z"]
    frame.index = [f"row {i}" for i in range(N)]
    assert (
        "the unnamed index was dropped" in written(tmp_path, frame, "parquet").notes[0]
    )
    frame.index = pd.Index(range(N), name="x")
    with pytest.raises(DataError, match="the index and a column are both called 'x'"):
        written(tmp_path, frame, "parquet")


WHOLE = (
    st.integers(-(2**63), 2**63 - 1)
    | st.integers(2**62, 2**62 + 50)
    | st.integers(-9, 9)
)
VALUES = {
    "Int64": WHOLE,
    "UInt64": st.integers(2**64 - 40, 2**64 - 1),
    "decimal": st.decimals(-5, 5, allow_nan=False, places=25)
    | st.decimals(1, 1 + Decimal("1e-20"), places=25),
    "float64": st.floats(-1e30, 1e30),
    "datetime64[ns]": st.integers(0, 2**61),
    "datetime64[us, Europe/Paris]": st.integers(0, 2**61),
    "timedelta64[ns]": st.integers(0, 2**61),
    "str": st.text(max_size=3),
    "time": st.times(),
}
COLUMNS = st.sampled_from(list(VALUES)).flatmap(
    lambda dtype: st.tuples(
        st.just(dtype), st.lists(VALUES[dtype], min_size=3, max_size=9)
    )
)


@settings(
    max_examples=count_of(8, 30),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(column=COLUMNS, gap=st.booleans(), as_target=st.booleans())
def test_random_columns_keep_their_values_apart_or_say_so(
    tmp_path, column, gap, as_target
):
    dtype, values = column
    values = (values * N)[:N]
    if dtype.startswith(("datetime", "timedelta")):
        base = pd.Series(np.array(values, dtype="int64")).astype(
            dtype.split(",")[0].split("]")[0] + "]"
        )
        cells = (
            base.dt.tz_localize("UTC").dt.tz_convert("Europe/Paris")
            if "Paris" in dtype
            else base
        )
    elif dtype in ("decimal", "time"):
        cells = pd.Series(values, dtype=object)
    else:
        cells = pd.Series(pd.array(values, dtype=dtype))
    if gap:
        cells = cells.mask(np.arange(N) == 5)
    frame = beside(cells)
    if as_target:
        frame = frame.rename(columns={"x": "y", "y": "x"})
    frame.to_parquet(tmp_path / "t.parquet")
    before = int(cells.nunique())
    try:
        task = load(tmp_path / "t.parquet", target="y")
    except HardsynthError as error:
        said = str(error)
        task = None
    if task is None:
        assert as_target
        assert "single value" in said if before < 2 else "64-bit" in said
        return
    now = task.target if as_target else task.features["x"]
    name = "'y'" if as_target else "'x'"
    assert int(now.nunique()) == before or any(name in note for note in task.notes)
    if not any("64-bit" in note for note in task.notes):
        assert int(now.nunique()) == before


@settings(max_examples=count_of(30, 150), deadline=None, derandomize=True)
@given(
    text=st.lists(
        st.sampled_from([*'019.,\n-" e', "0.", "12345678", "0000"]), max_size=30
    ).map("".join)
)
def test_no_odd_number_is_overlooked(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "odd.csv"
    path.write_text(f"x\n{text}\n", encoding="utf-8")
    zeros = re.search(
        r"""[,"\n][ \t]*[+-]?0\d+(?:\.\d*)?[ \t]*[,"\r\n]""", f"\n{text}\n"
    )
    if zeros or LONG_NUMBER.search(text):
        assert may_hold_odd_numbers(path)


def test_odd_numbers_at_the_seam_of_two_blocks(tmp_path):
    path, line = tmp_path / "t.csv", "0.125\n"
    for place in range(3):
        head = line * ((1 << 22) // len(line)) + " " * place
        path.write_text(f"{head}\n12345678901234567890\n{line}", encoding="utf-8")
        assert may_hold_odd_numbers(path)
    path.write_text("1007.5\n" * 700_000, encoding="utf-8")
    assert not may_hold_odd_numbers(path)
