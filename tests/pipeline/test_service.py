"""F behind an address: a suite from its answers, and one that goes on where the service failed."""

import json

import numpy as np
import pandas as pd
import pytest
from folders import contents
from loopback_model import serving

from amlb_ext.cli import main

pytestmark = pytest.mark.usefixtures("light_models")
KEY = "s3cret-key"


def linear(records):
    return {"predictions": [record["u"] + record["v"] for record in records]}


@pytest.fixture(scope="module")
def service():
    with serving(linear) as model:
        model.key = KEY
        yield model


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """The service is wrong where u > .8."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((100, 3)), columns=["u", "v", "w"])
    frame["y"] = frame["u"] + frame["v"] - 1.0 * (frame["u"] > 0.8)
    path = tmp_path_factory.mktemp("table") / "t.csv"
    frame.to_csv(path, index=False)
    return path


def generate(table, service, out):
    return main(
        f"generate {table} --target y --folds 2 --baseline {service.url} --copies 1 --times 0 "
        f"--composition bad --no-train-hard --certificate none -j 1 -q -o {out}".split()
    )


def test_the_same_command_goes_on(service, table, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HARDSYNTH_BASELINE_KEY", KEY)
    assert generate(table, service, tmp_path / "whole") == 0
    n_whole = len(service.rows)
    service.rows.clear()

    def fail_in_the_second_fold(records):
        is_late = len(service.rows) > n_whole // 2 + 2
        way = service.answer_html if is_late else service.answer_rightly
        return way(records)

    service.answer = fail_in_the_second_fold
    capsys.readouterr()
    assert generate(table, service, tmp_path / "broken") == 2
    assert "answers with a page in HTML ('Sign in')" in capsys.readouterr().err
    service.rows.clear()
    service.answer = service.answer_rightly
    assert generate(table, service, tmp_path / "broken") == 0
    # the trial of five rows, and the second fold
    assert len(service.rows) <= n_whole // 2 + 1
    files = contents(tmp_path / "broken")
    assert files == contents(tmp_path / "whole")
    for name in files:
        assert KEY.encode() not in (tmp_path / "broken" / name).read_bytes()
    manifest = json.loads((tmp_path / "whole/hardsynth/manifest.json").read_text())
    assert manifest["config"]["baseline"]["model"] == service.url
    [task] = manifest["tasks"].values()
    assert all(
        fold["summary"]["asked"]["calls"] < 10 for fold in task["folds"].values()
    )


def test_a_service_that_is_down_stops_before_any_work(table, tmp_path, refused):
    command = (
        f"generate {table} --target y --baseline http://127.0.0.1:9/f --baseline-params tries=1 "
        f"-q -o {tmp_path / 'none'}"
    )
    assert "cannot be reached (connection refused)" in refused(command.split())
    assert not (tmp_path / "none").exists()


def test_compare_asks_a_service(service, table, tmp_path, monkeypatch, output_of):
    monkeypatch.setenv("HARDSYNTH_BASELINE_KEY", KEY)
    service.rows.clear()
    better = tmp_path / "better.csv"
    pd.read_csv(table)[["y"]].rename(columns={"y": "prediction"}).to_csv(better)
    command = (
        f"compare {table} --target y --baseline {service.url} --candidate {better} --kind "
        "regression -q --json"
    )
    assert '"better"' in output_of(command.split())
    assert sum(service.rows) == 100
