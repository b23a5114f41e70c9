"""One fold of one AMLB task: let the model solve it, save, keep what happened.

Runs inside AMLB's own process: only the model's programs live elsewhere.
"""

import hashlib
import json
import logging
import os

import numpy as np
from amlb.results import save_predictions
from amlb.utils import Timer

from .choose import choose_sandbox
from .client import CACHE_VARIABLE, Client
from .fold_data import FoldData, read_about
from .protocol import NOT_THE_MODELS, Settings, carry_out, with_probabilities
from .sandbox import SandboxError

log = logging.getLogger(__name__)
HERE = os.path.dirname(os.path.abspath(__file__))
PARAMS = {
    "model", "submissions", "iteration_seconds", "memory_mb", "work_mb", "settings", "price",
    "max_cost", "sandbox", "python", "tries", "request_seconds", "looks", "preset", "feedback",
}
#: Preset: how many looks a run has.
LOOKS = {"honest": 0, "agentic": 2}


def run(dataset, config):
    """Let the model solve one fold; return what AMLB writes into its results row."""
    params = read_params(config.framework_params)
    if config.type != "classification":
        raise ValueError(f"LLMCoder predicts classes; the task {config.name} is a {config.type}")
    client = Client(
        model=params["model"],
        cache=os.environ.get(CACHE_VARIABLE) or os.path.expanduser("~/.cache/hardsynth/llm"),
        settings=params.get("settings"),
        price=params.get("price"),
        max_cost=params.get("max_cost"),
        tries=int(params.get("tries", 5)),
        request_seconds=float(params.get("request_seconds", 600)),
    )
    python = params.get("python") or os.environ.get("CODER_PYTHON")
    python = python or os.path.join(HERE, "programs", "bin", "python")
    if not os.path.exists(python):
        raise SandboxError(
            f"the environment of the model's programs is missing ({python}); run AMLB with -s force"
        )
    sandbox, tests = choose_sandbox(params.get("sandbox", "auto"), python)
    sandbox.check_closed([os.path.dirname(dataset.test.path), config.output_dir])
    data = read_fold(dataset, config)
    settings = Settings(
        submissions=int(params.get("submissions", 5)),
        feedback=params.get("feedback", "holdout"),
        looks=int(params.get("looks", LOOKS[params.get("preset", "honest")])),
        iteration_seconds=float(params.get("iteration_seconds", 600)),
        memory_mb=int(params.get("memory_mb", 4096)),
        work_mb=int(params.get("work_mb", 512)),
        cores=config.cores,
    )
    # AMLB gives every fold the same seed where one is fixed, so the fold has its own part
    run_key = [config.seed, config.name, config.fold, data.digest()]
    digest = hashlib.sha256(json.dumps(run_key[:3]).encode()).digest()
    with Timer() as timer:
        result = carry_out(
            data,
            client=client,
            sandbox=sandbox,
            settings=settings,
            seed=int.from_bytes(digest[:8], "big"),
            run_key=run_key,
            seconds=config.max_runtime_seconds,
            packages=_packages(),
            test_accuracy=test_accuracy(dataset, data.labels, settings.feedback),
        )
    folder = os.path.join(config.output_dir, "llm", config.name, str(config.fold))
    keep(result, folder, client, data, config, sandbox, tests, params)
    reasons = [s.reason for s in result.submissions]
    if client.cache_problem:
        log.warning("LLMCoder: answers could not be kept (%s); a repetition asks again",
                    client.cache_problem)
    log.info("LLMCoder: %s, confined by %s", _told(result, client), sandbox.tier)
    chosen = result.predicted
    if chosen is None:
        is_models = reasons and all(reason not in NOT_THE_MODELS for reason in reasons)
        if is_models and not result.is_broken:
            raise RuntimeError(f"no valid predictions in {_told(result, client)}")
        whose = "endpoint" if result.is_broken else "harness"
        raise RuntimeError(f"{whose}: {result.ended_by or ', '.join(reasons)}")
    save_predictions(
        dataset=dataset,
        output_file=config.output_predictions_file,
        predictions=np.array(data.labels, dtype=object)[chosen.codes],
        truth=dataset.test.y.iloc[:, 0].astype(str),
        probabilities=with_probabilities(chosen, len(data.labels)),
        probabilities_labels=data.labels,
    )
    return dict(
        models_count=len(result.submissions),
        training_duration=timer.duration,
        predict_duration=0.0,
    )


def read_params(params):
    """Return the ``params`` of the definition as a plain mapping; unknown ones raise."""
    given = _plain(params)
    unknown = sorted(set(given) - PARAMS)
    if unknown:
        raise ValueError(f"unknown parameter {unknown[0]!r}; known: {', '.join(sorted(PARAMS))}")
    if given.get("preset", "honest") not in LOOKS:
        raise ValueError(f"preset is {given['preset']!r}; choose {' or '.join(LOOKS)}")
    if given.get("feedback", "holdout") not in ("holdout", "test"):
        raise ValueError(f"feedback is {given['feedback']!r}; choose holdout, or test as WeirdML has it")
    if not given.get("model"):
        raise ValueError("no model: write params model: NAME, as the endpoint calls it")
    return given


def test_accuracy(dataset, labels, feedback):
    """Return the function that judges by the test rows; nothing unless that is asked for."""
    if feedback != "test":
        return None
    truth = dataset.test.y.iloc[:, 0].astype(str).to_numpy()
    return lambda codes: float((np.array(labels, dtype=object)[codes] == truth).mean())


def read_fold(dataset, config):
    """Return the fold without the labels of its test rows."""
    target = dataset.train.y.iloc[:, 0].astype(str)
    about = {"labels": sorted(set(target))}
    about = read_about(dataset.train.path, config.name, config.fold, about)
    labels = about.pop("labels")
    codes = np.array([labels.index(label) for label in target])
    # no label of a test row goes further than AMLB's save_predictions
    return FoldData(dataset.train.X, dataset.test.X, labels, codes, **about)


def keep(result, folder, client, data, config, sandbox, tests, params):
    """Write what happened: figures, programs, predictions of the test rows, the talk."""
    os.makedirs(folder, exist_ok=True)
    for submission in result.submissions:
        name = os.path.join(folder, f"submission_{submission.number}.py")
        _write(name, client.redact(submission.code))
        if submission.is_valid:
            _write_labels(folder, f"predictions_{submission.number}.csv", submission, data.labels)
    for look in result.looks:
        name = os.path.join(folder, f"look_{look.number}.py")
        _write(name, client.redact(look.code))
    if result.final is not None:
        _write_labels(folder, "predictions_final.csv", result.final, data.labels)
    entry = {
        "protocol": 1,
        "model": params["model"],
        "framework": config.framework,
        "task": config.name,
        "fold": config.fold,
        "seed": config.seed,
        "sandbox": sandbox.tier,
        "self_test": tests,
        "submissions": [submission.to_json() for submission in result.submissions],
        "looks": [look.to_json() for look in result.looks],
        "wanted": int(params.get("submissions", 5)),
        "selected": None if result.selected is None else result.selected.number,
        "final": result.final is not None,
        "ended_by": result.ended_by,
        "is_broken": result.is_broken,
        "feedback": params.get("feedback", "holdout"),
        "cost": client.cost,
        "spent": client.spent,
        "requests": client.sent,
        "lost": client.lost,
        "cached": client.cached,
    }
    _write(os.path.join(folder, "run.json"), json.dumps(entry, indent=1, sort_keys=True) + "\n")
    talk = [{**m, "content": client.redact(m["content"])} for m in result.messages]
    _write(os.path.join(folder, "transcript.json"), json.dumps(talk, indent=1) + "\n")


def _told(result, client):
    reasons = [s.reason or f"{s.held_out}" for s in result.submissions]
    cost = "unknown" if client.cost is None else f"{client.cost:.4g}"
    text = f"{len(reasons)} submissions ({', '.join(reasons)}), cost {cost}"
    return f"{text}; ended by: {result.ended_by}" if result.ended_by else text


def _write_labels(folder, name, submission, labels):
    text = "".join(f"{labels[code]}\n" for code in submission.codes)
    _write(os.path.join(folder, name), "predictions\n" + text)


def _write(path, text):
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)


def _packages():
    try:
        with open(os.path.join(HERE, "programs", "packages.txt"), encoding="utf-8") as file:
            return ", ".join(line.strip() for line in file if "==" in line)
    except OSError:
        return ""


def _plain(value):
    """Return nested mappings and namespaces of AMLB as dictionaries."""
    if type(value).__name__ == "Namespace":
        value = vars(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
