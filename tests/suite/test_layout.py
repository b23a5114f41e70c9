from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from amlb_ext.suite import SUFFIXES, amlb_name, safe_names
from amlb_ext.suite.layout import MAX_NAME, is_fold_file, is_written_later

NAMES = st.lists(
    st.one_of(
        st.text(max_size=5),
        st.sampled_from(
            ["a", "A", "a_full", "a_2", "a_full_2", "a.full", "", "x" * 200, "-a"]
        ),
    ),
    max_size=12,
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(names=NAMES)
def test_safe_names_stay_apart_with_every_suffix(names):
    safe = safe_names(names)
    assert safe == safe_names(names)
    assert len(safe) == len(names)
    every = [amlb_name(name, suffix).lower() for name in safe for suffix in SUFFIXES]
    assert len(set(every)) == len(every)
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]*", name) for name in safe)
    assert all(len(name) <= MAX_NAME for name in safe)


def test_safe_names_keep_good_ones_and_avoid_amlbs_own():
    assert safe_names(["kc2", "cpu-small_1"]) == ["kc2", "cpu-small_1"]
    assert safe_names(["null", "1e5", "True"]) == ["task_null", "task_1e5", "task_True"]
    assert safe_names(["__defaults__"]) == ["__defaults___2"]


def test_only_files_of_our_shape_are_ours():
    assert is_fold_file("data/a/a_test_0.csv")
    assert not is_fold_file("data/a/b_test_0.csv")
    assert not is_fold_file("data/a/notes.csv")
    assert not is_written_later("extensions/X/exec.py")
