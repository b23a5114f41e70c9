"""``hardsynth show``: stored certificates, without measuring."""

import json

import pytest
from small_suites import write_suite

from amlb_ext.core.unit import ROW
from amlb_ext.suite import Layout
from amlb_ext.suite.sealed_json import sealed_text
from amlb_ext.validity import Certificate, Measure


@pytest.fixture
def suite(tmp_path):
    """Two tasks, of which one has a certificate."""
    tasks = {"cars": ("binary", 60, 12), "homes": ("regression", 60, 12)}
    root = write_suite(tmp_path / "hard", tasks)
    measure = Measure(
        name="region",
        value=0.7,
        low=0.6,
        high=0.8,
        threshold=0.5,
        source="customary",
        passed=True,
        text="how well features foresee failures",
        sense=">=",
    )
    certificate = Certificate(
        "cars", "binary", "describe", "Made rows do not order models.", (measure,), ROW
    )
    path = Layout(root).task_certificate("cars")
    path.write_text(sealed_text({"certificate": certificate.to_json()}))
    return root


def test_it_prints_what_is_stored_and_names_what_is_not(suite, output_of, monkeypatch):
    monkeypatch.setattr(
        "amlb_ext.validity.certify.certify_jobs",
        lambda *a: pytest.fail("something was measured"),
    )
    out = output_of("show", suite)
    assert out.startswith("cars (binary): describe")
    assert "homes: no certificate is stored; measure them: hardsynth certify" in out
    printed = json.loads(output_of("show", suite, "-t cars --json"))
    assert printed["cars"]["verdict"] == "describe"


@pytest.mark.parametrize(
    ("task", "message"),
    [("carz", "did you mean 'cars'"), ("homes", "measure them: hardsynth certify")],
)
def test_what_is_not_there_is_an_error(suite, refused, task, message):
    assert message in refused("show", suite, "-t", [task])


def test_a_certificate_that_was_changed_is_not_told(suite, refused):
    path = Layout(suite).task_certificate("cars")
    path.write_text(path.read_text().replace("describe", "rank"))
    assert "certificate.json is damaged, or was changed" in refused("show", suite)
