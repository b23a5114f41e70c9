"""Runs against replayed answers: what is chosen, what fails why, what repeats."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from LLMCoder import protocol
from LLMCoder.client import Client
from LLMCoder.confine import MIN_ABI, landlock_abi
from LLMCoder.fold_data import FoldData, plan_final, plan_rounds, write_round
from LLMCoder.protocol import (
    PredictionError,
    Settings,
    carry_out,
    choose,
    extract_code,
    opening,
    read_predictions,
    with_probabilities,
)
from LLMCoder.sandbox import Outcome, Sandbox, new_work_folder

PLAIN = Sandbox("none", sys.executable)


def go(
    data,
    environ,
    tmp_path,
    *,
    model,
    sandbox=PLAIN,
    seconds=200.0,
    test_accuracy=None,
    **settings,
):
    client = Client(
        model,
        str(tmp_path / "cache"),
        environ=environ,
        price={"input": 1e-6, "output": 4e-6},
        tries=2,
        wait_seconds=0.01,
    )
    run = carry_out(
        data,
        client=client,
        sandbox=sandbox,
        settings=Settings(**{"iteration_seconds": 60.0, **settings}),
        seed=3,
        run_key=[1, "task", 0],
        seconds=seconds,
        test_accuracy=test_accuracy,
    )
    return run, client


def reasons(run):
    return [submission.reason for submission in run.submissions]


def test_a_learner_is_chosen_on_held_out_rows_and_runs_again_on_all(
    small_fold, endpoint, environ, tmp_path
):
    data, truth = small_fold
    run, client = go(data, environ, tmp_path, model="quick")
    assert reasons(run) == ["no code", "error", "", "", ""]
    held_out = [s.held_out for s in run.submissions]
    assert held_out[3] > 0.8 > held_out[2]
    # the last one is worse: the best on the held-out rows counts, not the latest
    assert run.selected.number == 4
    assert run.final is run.predicted
    assert (run.final.codes == truth).mean() > 0.85
    assert client.cost > 0
    assert "A look has" not in run.messages[0]["content"]
    told = [m["content"] for m in run.messages if m["role"] == "user"]
    assert "SyntaxError" in told[2]
    assert "Submissions left: 4" in told[1]
    assert f"{held_out[3]:.4f}" in told[4]

    # again, with the server off: the same predictions, byte for byte
    endpoint.faults = [500] * 99
    again, other = go(data, environ, tmp_path, model="quick")
    assert other.sent == 0
    assert again.final.codes.tobytes() == run.final.codes.tobytes()
    assert other.cost == pytest.approx(client.cost)
    assert other.spent == 0.0


def test_a_run_of_looking_only_has_no_predictions(
    small_fold, endpoint, environ, tmp_path
):
    run, _ = go(small_fold[0], environ, tmp_path, model="explorer")
    assert reasons(run) == ["no predictions"] * 5
    assert run.selected is run.predicted is None


def test_wrong_formats_are_named_to_the_model(small_fold, endpoint, environ, tmp_path):
    run, _ = go(small_fold[0], environ, tmp_path, model="wrong_format")
    assert reasons(run) == ["bad predictions"] * 4 + [""]
    told = [m["content"] for m in run.messages if m["role"] == "user"]
    assert "3 predictions, 160 are wanted" in told[1]
    assert "'9' are no labels; write one label, or its code: 0 = c0_no" in told[2]


def test_time_is_divided_and_a_run_ends_with_what_it_has(
    small_fold, endpoint, environ, tmp_path
):
    run, _ = go(
        small_fold[0],
        environ,
        tmp_path,
        model="looper",
        iteration_seconds=1.0,
        seconds=2.0,
    )
    assert reasons(run)[0] == "timeout"
    assert len(run.submissions) < 5
    assert run.ended_by == "no time left"


def test_the_server_dying_ends_the_run_with_what_it_has(
    small_fold, endpoint, environ, tmp_path
):
    endpoint.faults = [None, None, None, None, 500, 500]
    run, _ = go(small_fold[0], environ, tmp_path, model="quick")
    assert len(run.submissions) == 4
    assert run.selected.number == 4
    # of this answer, not of all that were asked for
    assert "no answer after 2 requests" in run.ended_by
    assert run.is_broken


def test_hostile_answers_see_nothing(small_fold, endpoint, environ, tmp_path):
    if landlock_abi() < MIN_ABI:
        pytest.skip("this kernel has no Landlock of version 3")
    os.environ["HOSTILE_TEST_KEY"] = environ["HARDSYNTH_LLM_KEY"]
    try:
        run, client = go(
            small_fold[0],
            environ,
            tmp_path,
            model="hostile",
            sandbox=Sandbox("builtin", sys.executable),
            memory_mb=1024,
        )
    finally:
        del os.environ["HOSTILE_TEST_KEY"]
    assert reasons(run) == [
        "no predictions",
        "no predictions",
        "bad predictions",
        "memory",
        "output",
    ]
    outputs = "".join(submission.output for submission in run.submissions)
    assert environ["HARDSYNTH_LLM_KEY"] not in outputs
    assert "CONNECTED" not in outputs
    assert "/proc/1/environ PermissionError" in outputs
    # one request for each answer: the program's own never arrived
    assert endpoint.requests == client.sent == 5


def test_what_the_harness_breaks_is_not_the_models(
    small_fold, endpoint, environ, tmp_path
):
    class Broken(Sandbox):
        def run(self, *arguments, **named):
            return Outcome("harness", "mount failed", 0.0, 0)

    broken = Broken("none", sys.executable)
    run, _ = go(small_fold[0], environ, tmp_path, model="quick", sandbox=broken)
    assert reasons(run) == ["no code", "harness", "harness", "harness", "harness"]


def test_the_literal_protocol_tells_and_selects_by_the_test_rows(
    small_fold, endpoint, environ, tmp_path
):
    data, truth = small_fold
    run, _ = go(
        data,
        environ,
        tmp_path,
        model="quick",
        feedback="test",
        test_accuracy=lambda codes: float((codes == truth).mean()),
    )
    told = [m["content"] for m in run.messages if m["role"] == "user"]
    best = run.selected
    assert best.held_out == max(s.held_out for s in run.submissions if s.is_valid)
    assert best.held_out == (run.predicted.codes == truth).mean()
    assert f"accuracy on the test rows: {best.held_out:.4f}" in "".join(told)
    assert "held out" not in told[0]
    # all rows were used, so that there is nothing to run again
    assert run.final is None


def test_the_example_of_the_prompt_loads_and_saves(small_fold, tmp_path):
    data = small_fold[0]
    [chosen] = plan_rounds(data, np.random.default_rng(0))
    lines = write_round(data, chosen, str(tmp_path / "data"))
    program = extract_code(opening(data, [chosen], lines, Settings(), "")[1]["content"])
    (tmp_path / "results").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    codes, _ = read_predictions(str(tmp_path), len(chosen.asked), data.labels)
    assert codes.tolist() == [0] * len(chosen.asked)


def test_a_cut_answer_is_told_and_an_empty_one_not_sent_back(
    small_fold, endpoint, environ, tmp_path
):
    endpoint.faults = ["length", "empty"]
    run, _ = go(small_fold[0], environ, tmp_path, model="looper", iteration_seconds=1.0)
    assert reasons(run)[:2] == ["cut off", "no code"]
    assert run.submissions[0].to_json()["is_cut"]
    told = [m["content"] for m in run.messages if m["role"] == "user"]
    assert "cut off at the endpoint's limit" in told[1]
    assert "cut off" not in told[2]
    for request in endpoint.asked:
        assert all(m["content"].strip() for m in request["messages"])


def test_looks_are_free(small_fold, endpoint, environ, tmp_path):
    run, client = go(small_fold[0], environ, tmp_path, model="looker", looks=2)
    assert [look.reason for look in run.looks] == ["", "no code"]
    assert "(240, 3)" in run.looks[0].output
    # a look that writes predictions has no score, and uses up no submission
    assert run.looks[0].codes is None
    assert reasons(run) == [""] * 5
    assert (client.sent, client.cost > 0) == (7, True)
    told = [m["content"] for m in run.messages if m["role"] == "user"]
    assert "Looks left: 1" in told[1]
    assert "accuracy" not in told[1]
    rules = run.messages[0]["content"]
    assert "you have 2 looks" in rules


def test_a_full_disk_is_not_the_models_and_ends_with_what_there_is(
    small_fold, endpoint, environ, tmp_path, monkeypatch
):
    made = []

    def make(code, parent=None):
        made.append(code)
        if len(made) == 3:
            raise OSError(28, "No space left on device")
        return new_work_folder(code, parent)

    monkeypatch.setattr(protocol, "new_work_folder", make)
    run, _ = go(small_fold[0], environ, tmp_path, model="quick")
    assert reasons(run) == ["no code", "error", "", "harness", ""]
    told = [m["content"] for m in run.messages if m["role"] == "user"]
    assert "No space left on device" in told[4]
    assert "by no fault of yours" in told[4]
    assert run.predicted is not None

    def no_room(data, chosen, folder):
        if folder.endswith("final"):
            raise OSError(28, "No space left on device")
        return write_round(data, chosen, folder)

    monkeypatch.setattr(protocol, "write_round", no_room)
    run, _ = go(small_fold[0], environ, tmp_path, model="quick")
    assert run.ended_by == "no final run: No space left on device"
    assert run.predicted is run.selected


def test_hidden_rows_cannot_be_told_from_test_rows(tmp_path):
    # nine rows to a group; ids of the test rows go on where those of training end
    ids = np.repeat(np.arange(60), 9)
    frame = pd.DataFrame({"image": ids, "v": np.arange(540.0)})
    codes = np.tile(np.arange(9), 60)
    data = FoldData(
        frame[:450],
        frame[450:].reset_index(drop=True),
        [f"p{k}" for k in range(9)],
        codes[:450],
        about={"group": "image"},
    )
    [chosen] = plan_rounds(data, np.random.default_rng(0))
    lines = write_round(data, chosen, str(tmp_path / "data"))
    asked = np.load(tmp_path / "data" / "test_image.npy")
    # ten of fifty groups are hidden, whole, and all groups are numbered anew in their order
    assert len(asked) == 90 + 90
    assert asked.tolist() == np.repeat(np.arange(20), 9).tolist()
    values = np.load(tmp_path / "data" / "test_features.npy").ravel()
    is_hidden = values < 450
    assert is_hidden.sum() == 90
    # mixed, not one after the other
    assert len(np.flatnonzero(np.diff(is_hidden.astype(int)))) > 3
    assert not set(np.load(tmp_path / "data" / "train_features.npy").ravel()) & set(
        values
    )
    assert any("test_image.npy" in line for line in lines)
    # what comes back goes to the rows it belongs to
    hidden, rows, test = chosen.split(values, 90)
    assert hidden.tolist() == rows.tolist()
    assert test.tolist() == list(np.arange(450.0, 540.0))


@pytest.mark.parametrize(("n", "rounds", "hidden"), [(20, 1, 0), (100, 5, 100)])
def test_few_rows_are_judged_in_five_rounds_or_not_at_all(n, rounds, hidden):
    frame = pd.DataFrame({"v": np.arange(float(n))})
    data = FoldData(frame, frame[:5], ["a", "b"], np.arange(n) % 2)
    planned = plan_rounds(data, np.random.default_rng(0))
    assert len(planned) == rounds
    seen = np.concatenate([r.asked[r.asked >= 0] for r in planned])
    assert sorted(seen) == list(range(hidden))
    assert len(plan_final(data, np.random.default_rng(0)).train) == n


def test_ties_go_to_the_latest_and_no_accuracy_to_the_latest_valid():
    class Fake:
        def __init__(self, number, held_out, is_valid=True):
            self.number, self.held_out, self.is_valid = number, held_out, is_valid

    assert choose([Fake(1, 0.5), Fake(2, 0.5), Fake(3, 0.4)]).number == 2
    assert choose([Fake(1, None), Fake(2, None), Fake(3, None, False)]).number == 2
    assert choose([Fake(1, None, False)]) is None


def test_probabilities_count_where_they_are_some(tmp_path):
    results = tmp_path / "results"
    results.mkdir()
    (results / "predictions.txt").write_text("b\n0\n")
    (results / "probabilities.csv").write_text("0.25,0.75\n0.5,0.5\n")
    codes, probabilities = read_predictions(str(tmp_path), 2, ["a", "b"])
    assert codes.tolist() == [1, 0]
    assert probabilities.tolist() == [[0.25, 0.75], [0.5, 0.5]]
    (results / "probabilities.csv").write_text("nan,0.75\n0.5,0.5\n")
    codes, probabilities = read_predictions(str(tmp_path), 2, ["a", "b"])
    assert probabilities is None

    class Labels:
        pass

    Labels.codes, Labels.probabilities = codes, None
    assert with_probabilities(Labels, 2).tolist() == [[0.02, 0.98], [0.98, 0.02]]


@pytest.mark.parametrize(
    "labels",
    [
        ["1", "2", "3"],
        ["0", "1"],
        ["1", "0"],
        ["2.0", "3.0"],
        ["1e0", "nan"],
        ["10", "2", "b"],
    ],
)
def test_codes_of_labels_that_are_numbers_are_codes(tmp_path, labels):
    """A program that writes the codes it was given is right, whatever the labels are called."""
    (tmp_path / "results").mkdir()
    written = [str(code) for code in range(len(labels))]
    (tmp_path / "results" / "predictions.txt").write_text("\n".join(written))
    codes, _ = read_predictions(str(tmp_path), len(labels), labels)
    assert codes.tolist() == list(range(len(labels)))
    # what is no code is refused, and never half of it understood
    (tmp_path / "results" / "predictions.txt").write_text("\n".join(labels))
    strangers = set(labels) - set(written)
    if strangers:
        with pytest.raises(PredictionError, match="the code of one label"):
            read_predictions(str(tmp_path), len(labels), labels)
    frame = pd.DataFrame({"v": np.arange(20.0)})
    data = FoldData(frame, frame[:5], labels, np.arange(20) % len(labels))
    rules, task = opening(
        data, plan_rounds(data, np.random.default_rng(0)), [], Settings(), ""
    )
    assert "never the label" in rules["content"]
    assert f"0 = {labels[0]}" in task["content"]


def test_truth_values_are_labels_and_no_codes(tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "predictions.txt").write_text("True\nFalse\n1\n0\n")
    codes, _ = read_predictions(str(tmp_path), 4, ["False", "True"])
    assert codes.tolist() == [1, 0, 1, 0]
