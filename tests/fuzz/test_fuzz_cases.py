"""What fuzzing found once, and seeds of the fuzzer: a result or a HardsynthError, and quickly."""

import pytest
from fuzz_readers import CASES, TARGETS, run_one, seeds

FOUND = sorted(path for path in CASES.glob("*/*") if path.is_file())


@pytest.mark.parametrize(
    "path", FOUND, ids=lambda path: f"{path.parent.name}-{path.name}"
)
def test_found_cases_are_mended(path):
    run_one(path.parent.name, path.read_bytes())


@pytest.mark.parametrize("reader", TARGETS)
def test_seeds_are_read(reader):
    assert all(run_one(reader, seed) is None for seed in seeds(reader))
