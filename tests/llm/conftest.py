"""The integration's modules that know nothing of AMLB, imported by path."""

from __future__ import annotations

import importlib.util
import sys

import loopback_llm
import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.assets import asset_path


def import_integration():
    """Import ``frameworks/LLMCoder`` as a package."""
    folder = asset_path("frameworks", "LLMCoder")
    spec = importlib.util.spec_from_file_location(
        "LLMCoder", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules.setdefault("LLMCoder", package)
    if sys.modules["LLMCoder"] is package:
        spec.loader.exec_module(package)


import_integration()


@pytest.fixture
def endpoint():
    with loopback_llm.serve() as served:
        yield served


@pytest.fixture
def environ(endpoint):
    return {
        "HARDSYNTH_LLM_URL": endpoint.url,
        "HARDSYNTH_LLM_KEY": "sk-loopback-0123456789",
    }


@pytest.fixture(scope="session")
def small_fold():
    """300 and 100 rows of two classes that their centres part."""
    from LLMCoder.fold_data import FoldData

    rng = np.random.default_rng(5)
    codes = rng.integers(0, 2, 400)
    values = rng.normal(size=(400, 3)) + 1.5 * codes[:, None]
    frame = pd.DataFrame(values, columns=list("abc"))
    data = FoldData(
        frame[:300].reset_index(drop=True),
        frame[300:].reset_index(drop=True),
        ["c0_no", "c1_yes"],
        codes[:300],
    )
    return data, codes[300:]
