"""What fuzzing found once, seeds, and seeds that are damaged: a result or a HardsynthError."""

import random

import pytest
from exhaustive import count_of
from fuzz_readers import CASES, TARGETS, run_one, seeds

FOUND = sorted(path for path in CASES.glob("*/*") if path.is_file())


@pytest.mark.parametrize(
    "path", FOUND, ids=lambda path: f"{path.parent.name}-{path.name}"
)
def test_found_cases_are_mended(path):
    run_one(path.parent.name, path.read_bytes())


@pytest.mark.parametrize("reader", TARGETS)
def test_seeds_are_read_whole_and_damaged(reader):
    draw = random.Random(reader)
    for seed in seeds(reader):
        run_one(reader, seed)
        for _ in range(count_of(2, 20)):
            # the first byte of an archive says what it is
            begin = draw.randrange(1, len(seed))
            end = draw.randrange(begin, min(len(seed), begin + 20) + 1)
            run_one(
                reader, seed[:begin] + draw.randbytes(draw.randrange(5)) + seed[end:]
            )
