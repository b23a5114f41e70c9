"""Stages behind a progress bar."""

from tqdm import tqdm

from amlb_ext.core.progress import StageDisplay


def test_a_quiet_bar_shows_no_stage():
    display = StageDisplay(tqdm(total=1, disable=True))
    display.show("toy fold 0", "fitting F")
    display.forget("toy fold 0")
