"""A model behind an address: asked in batches, tried again, and each wrong answer is one line."""

import time
from types import SimpleNamespace

import pandas as pd
import pytest
from loopback_model import serving

from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.errors import ModelError
from amlb_ext.models import service as module
from amlb_ext.models.service import check_service, connect_service

FRAME = pd.DataFrame(
    {"age": [30, 41, 52, 63, 74], "city": ["Ulm", None, "Bonn"] + 2 * ["Ulm"]}
)
KEY = "s3cret-key"


def by_age(records):
    """Say no number for odd ages, so that order and values of rows can be seen."""
    p = [record["age"] / 100 for record in records]
    return {
        "predictions": [record["age"] / 10 for record in records],
        "classes": ["yes", "no"],
        "probabilities": [[x, 1 - x] for x in p],
    }


@pytest.fixture(scope="module")
def service():
    with serving(by_age) as model:
        yield model


@pytest.fixture(autouse=True)
def as_new(service, monkeypatch):
    service.answer = service.answer_rightly
    service.key = ""
    service.rows.clear()
    service.keys.clear()
    monkeypatch.delenv("HARDSYNTH_BASELINE_KEY", raising=False)


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """The pauses between two questions, which nobody waits for."""
    found = []
    clock = SimpleNamespace(sleep=found.append, monotonic=time.monotonic)
    monkeypatch.setattr(module, "time", clock)
    return found


def connect(service, **params):
    return connect_service(BaselineConfig(model=service.url, params=params))


@pytest.mark.parametrize("form", ["json", "arrow"])
def test_rows_are_asked_in_batches_and_come_back_in_order(service, form):
    model = connect(service, batch=2, format=form)
    assert model.predict(FRAME).tolist() == [3.0, 4.1, 5.2, 6.3, 7.4]
    assert model.predict_proba(FRAME)[:, 0].tolist() == [0.3, 0.41, 0.52, 0.63, 0.74]
    assert model.classes_ == ("yes", "no")
    assert service.rows == [2, 2, 1, 2, 2, 1]


WRONG = [
    ("answer_html", r"answers with a page in HTML \('Sign in'\) in place of JSON"),
    ("answer_short", "answers with 4 predictions for 5 rows"),
    ("answer_text", r"answers with '\[1, 2', which is no JSON"),
    (
        "answer_other_fields",
        "answers with the fields 'outputs', without a list of 'predictions'",
    ),
    ("answer_moved", r"has moved to http://elsewhere.org/f\?\*\*\*"),
]


@pytest.mark.parametrize(("way", "message"), WRONG)
def test_a_wrong_answer_is_one_line_and_not_asked_for_again(service, way, message):
    service.answer = getattr(service, way)
    with pytest.raises(ModelError, match=message) as error:
        connect(service).predict(FRAME)
    assert "run the same command again" in str(error.value)
    assert len(service.rows) == 1


def test_a_busy_service_is_asked_again_when_it_says(service, pauses):
    def answer(records):
        is_busy = len(pauses) < 2
        return (service.answer_busy if is_busy else service.answer_rightly)(records)

    service.answer = answer
    assert connect(service).predict(FRAME)[0] == 3.0
    assert pauses == [7.0, 7.0]


def test_a_service_that_stays_busy_slow_or_down_is_given_up(service, pauses):
    service.answer = service.answer_busy
    with pytest.raises(ModelError, match=r"answered 503 .*'busy', 3 times in a row"):
        connect(service, tries=3).predict(FRAME)
    service.answer = service.answer_slowly
    with pytest.raises(ModelError, match=r"within 0\.1 s, 2 times") as error:
        connect(service, timeout=0.1, tries=2).predict(FRAME)
    assert "--baseline-params timeout=0.5,batch=100" in str(error.value)
    pauses.clear()
    down = BaselineConfig(model="http://127.0.0.1:9/predict")
    with pytest.raises(
        ModelError, match=r"cannot be reached \(connection refused\), 5"
    ):
        connect_service(down).predict(FRAME)
    # longer from try to try
    assert pauses == [1.0, 2.0, 4.0, 8.0]


def test_the_key_goes_into_a_header_and_into_no_message(service, monkeypatch, tmp_path):
    service.key = KEY
    monkeypatch.setenv("HARDSYNTH_BASELINE_KEY", KEY)
    assert connect(service).predict(FRAME)[0] == 3.0
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    monkeypatch.delenv("HARDSYNTH_BASELINE_KEY")
    assert connect(service, key_file=str(file)).predict(FRAME)[0] == 3.0
    assert service.keys == {f"Bearer {KEY}"}
    # the service quotes the key that it refuses
    service.key = "another"
    with pytest.raises(ModelError, match=r"answered 401 .*Bearer \*\*\*") as error:
        connect(service, key_file=str(file)).predict(FRAME)
    assert KEY not in str(error.value)
    assert "set HARDSYNTH_BASELINE_KEY" in str(error.value)


@pytest.mark.parametrize(
    ("model", "params", "message"),
    [
        ("https://me:pass@m.org/f", {}, r"https://\*\*\*@m.org/f holds a user"),
        ("https://m.org/f?key=abc", {}, r"https://m.org/f\?\*\*\* holds a user"),
        ("https://", {}, "no address of a service"),
        ("https://m.org:x/f", {}, "no address of a service"),
        ("https://m.org/f", {"bach": 10}, "no parameter 'bach'.*did you mean 'batch'"),
        ("https://m.org/f", {"batch": 0}, "batch of a service cannot be 0"),
        ("https://m.org/f", {"format": "xml"}, "format of a service cannot be 'xml'"),
        ("https://m.org/f", {"key_file": "/nowhere"}, "file of the key, /nowhere,"),
    ],
)
def test_what_can_be_no_service_is_told_before_anything_is_sent(model, params, message):
    with pytest.raises(ModelError, match=message):
        check_service(BaselineConfig(model=model, params=params))
