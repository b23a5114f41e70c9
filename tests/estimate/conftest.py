"""The truth that intervals of an error are held against."""

import pytest

from amlb_ext.estimate.inputs import EstimateRequest, read_inputs


@pytest.fixture(scope="module")
def truth(folder):
    """The model's error on the 20,000 rows that a test file's folder holds."""
    request = EstimateRequest(
        model="logistic",
        data=folder / "large.csv",
        train=folder / "train.csv",
        target="y",
    )
    return read_inputs(request).losses.mean()
