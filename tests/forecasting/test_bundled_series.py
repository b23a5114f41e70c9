"""Series that come with the installation: what they hold, and what is said of so few."""

import numpy as np
import pytest

from amlb_ext.sources.bundled_series import BUNDLED_SERIES
from amlb_ext.sources.panel import read_panel

WORDS = ["bundled/macrodata", "--baseline", "drift", "--candidate", "seasonal_naive"]


def test_macrodata_has_twelve_whole_quarterly_series():
    read, roles = BUNDLED_SERIES["macrodata"]
    panel = read_panel(read(), roles)
    assert (len(panel), panel.frequency, panel.season) == (12, "QS-JAN", 4)
    assert {len(y) for y in panel.values} == {203}
    assert panel.time_text(0) == "1959-01-01"
    gdp = panel.values[panel.names.index("realgdp")]
    assert gdp[[0, -1]] == pytest.approx([2710.349, 12990.341])
    assert np.all(panel.values[panel.names.index("pop")] > 177)


def test_over_time_nothing_is_claimed_where_f_fails(output_of):
    said = output_of("compare", WORDS, "--origins 30 --step 1")
    assert "12 series are too few to learn where F fails" in said
    assert "no claim" in said
