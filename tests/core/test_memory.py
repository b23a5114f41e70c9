"""The allocator of a program, and files that are written a part at a time."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pytest
from commands import python

from amlb_ext.core.parquet import list_array, write_parquet, write_parquet_parts

PROGRAM = (
    "from amlb_ext.core.memory import use_one_allocator\n"
    "use_one_allocator()\n"
    "import pyarrow\n"
    "print(pyarrow.default_memory_pool().backend_name)"
)


def test_arrow_takes_the_system_s_memory():
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ARROW_")}
    assert python(PROGRAM, env=environment).strip() == "system"


def test_a_file_in_parts_has_the_bytes_of_the_whole_table(tmp_path):
    lists = [np.arange(float(length)) for length in range(1, 8)]
    table = pa.table({"id": list("abcdefg"), "values": list_array(lists)})
    parts = []
    for first in range(0, len(table), 3):
        some = slice(first, first + 3)
        own = {"id": list("abcdefg")[some], "values": list_array(lists[some])}
        parts.append(pa.table(own))
    whole = write_parquet(table, tmp_path / "whole.parquet", row_group_size=3)
    assert write_parquet_parts(parts, tmp_path / "parts.parquet") == whole


def test_of_parts_that_fail_nothing_is_left(tmp_path):
    def parts():
        yield pa.table({"a": [1]})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_parquet_parts(parts(), tmp_path / "a.parquet")
    assert not list(tmp_path.iterdir())
