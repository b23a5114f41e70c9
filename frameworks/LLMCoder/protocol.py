"""One run: five submissions with feedback, one of them chosen, and one last run on all rows.

What judges a submission are training rows hidden among the test rows. The labels of the test rows
are unknown here, so nothing can be chosen by them.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
import time
from typing import Any, Callable, Dict, List, Optional

import numpy as np

from .answers import Answer, extract_code, is_refusal
from .client import BudgetError, Client, LLMError
from .fold_data import FoldData, plan_final, plan_rounds, write_round
from .sandbox import Limits, Sandbox, new_work_folder, read_result, remove_work_folder

HERE = os.path.dirname(os.path.abspath(__file__))
#: Larger scripts could hold weights that were trained elsewhere.
MAX_SCRIPT, MAX_LINES = 64 << 10, 1000
#: Where only labels were predicted, what the other classes share. Log loss then says little.
SPREAD = 0.02
#: Share of a run's time until the last submission; the rest is for the final program.
FOR_SUBMISSIONS = 0.75
#: What the model is told of the rows that judge it.
_ROWS = {"holdout": "held-out", "test": "test"}
#: Reasons that say nothing of the model.
NOT_THE_MODELS = ("harness", "llm")


class PredictionError(ValueError):
    """A program's predictions are missing or do not serve; ``reason`` says which."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclasses.dataclass
class Submission:
    """One submission and what came of it.

    Attributes
    ----------
    number : int
        From 1.
    reason : str
        Why it failed: ``no code``, ``error``, ``timeout``, ``memory``, ``output``, ``disk``,
        ``no predictions``, ``bad predictions``, ``cut off``, ``refused``, ``llm`` or ``harness``;
        empty where its predictions are valid.
    is_cut : bool
        The answer ended at the endpoint's limit of tokens.
    held_out : float or None
        Accuracy on the hidden rows; None where there are none, or no valid predictions.
    seconds : float
        Of the program.
    memory_mb : int
    tokens_in, tokens_out : int or None
    code, answer, output : str
    codes : ndarray or None
        Predictions of the test rows.
    probabilities : ndarray or None
    """

    number: int
    reason: str = ""
    is_cut: bool = False
    held_out: Optional[float] = None
    seconds: float = 0.0
    memory_mb: int = 0
    tokens_in: Optional[int] = None
    tokens_out: Optional[int] = None
    code: str = ""
    answer: str = ""
    output: str = ""
    codes: Any = None
    probabilities: Any = None

    @property
    def is_valid(self) -> bool:
        """Whether it predicted the test rows."""
        return self.codes is not None

    def to_json(self) -> Dict[str, Any]:
        """Return the figures, without code, texts and predictions."""
        kept = ["number", "reason", "is_cut", "held_out", "seconds", "memory_mb"]
        kept += ["tokens_in", "tokens_out"]
        entry = {name: getattr(self, name) for name in kept}
        entry["seconds"] = round(self.seconds, 3)
        return entry


@dataclasses.dataclass
class Run:
    """A run: its submissions, the chosen one, what is predicted in the end, and the talk.

    Attributes
    ----------
    submissions : list of Submission
    selected : Submission or None
        Chosen on the hidden rows; None where none is valid.
    final : Submission or None
        The chosen program on all training rows; None where that failed, or was not needed.
    messages : list of dict
    ended_by : str
        Why the run ended before all submissions; empty otherwise.
    is_broken : bool
        It was the endpoint that ended it: the run says nothing of the model.
    looks : list of Submission
        Programs that looked at the data before the first submission; nothing of them is judged.
    """

    submissions: List[Submission]
    selected: Optional[Submission]
    final: Optional[Submission]
    messages: List[Dict[str, str]]
    ended_by: str = ""
    is_broken: bool = False
    looks: List[Submission] = dataclasses.field(default_factory=list)

    def end(self, error: LLMError, client: Client) -> None:
        """Note that no further answer came."""
        self.ended_by = client.redact(str(error))
        # a limit of the user's is no failure of the endpoint
        self.is_broken = not isinstance(error, BudgetError)

    @property
    def predicted(self) -> Optional[Submission]:
        """Return the submission whose predictions count."""
        return self.final if self.final is not None else self.selected


@dataclasses.dataclass(frozen=True)
class Settings:
    """The ``params`` of a framework definition that concern the protocol.

    Attributes
    ----------
    submissions : int
    looks : int
        Programs that may look at the data first, without a score.
    feedback : {'holdout', 'test'}
        What the model is told: its accuracy on hidden training rows; or, as WeirdML does, on the
        test rows, by which the best submission is then selected.
    iteration_seconds : float
        At most, for one program.
    memory_mb, work_mb, cores : int
    """

    submissions: int = 5
    looks: int = 0
    feedback: str = "holdout"
    iteration_seconds: float = 600.0
    memory_mb: int = 4096
    work_mb: int = 512
    cores: int = 1

    def limits(self, seconds: float) -> Limits:
        """Return what a program may use."""
        return Limits(
            seconds=seconds, memory_mb=self.memory_mb, work_mb=self.work_mb, cores=self.cores
        )


def carry_out(
    data: FoldData,
    *,
    client: Client,
    sandbox: Sandbox,
    settings: Settings,
    seed: int,
    run_key: List[Any],
    seconds: float,
    packages: str = "",
    test_accuracy: Optional[Callable[[np.ndarray], float]] = None,
) -> Run:
    """Let the model solve a fold.

    Parameters
    ----------
    data : FoldData
    client : Client
    sandbox : Sandbox
    settings : Settings
    seed : int
        Of the rows that are held out; another one for every fold.
    run_key : list
        What makes this run another one than that of the next fold, for the cache.
    seconds : float
        For the whole run. A quarter is kept for the final program.
    packages : str
        What the environment of the programs has, for the prompt.
    test_accuracy : callable, optional
        Of predictions of the test rows; for ``feedback: test`` alone.

    Returns
    -------
    Run
    """
    clock = _Clock(seconds)
    rng = np.random.default_rng(seed)
    is_literal = settings.feedback == "test"
    rounds = [plan_final(data, rng)] if is_literal else plan_rounds(data, rng)
    final_round = plan_final(data, rng)
    base = tempfile.mkdtemp(prefix="coder-data-")
    os.chmod(base, 0o755)
    try:
        judged = []
        for number, chosen in enumerate(rounds):
            folder = os.path.join(base, str(number))
            lines = write_round(data, chosen, folder)
            judged.append((chosen, folder))
        talk = opening(data, rounds, lines, settings, packages)
        run = Run([], None, None, talk)
        _take_looks(run, judged[0][1], client, sandbox, settings, run_key, clock)
        if not run.ended_by:
            _submit(run, data, judged, client, sandbox, settings, run_key, clock, test_accuracy)
        run.selected = choose(run.submissions)
        # where nothing was hidden, the chosen program has seen all rows already
        has_hidden = len(rounds) > 1 or len(rounds[0].train) < len(data.train)
        if run.selected is not None and has_hidden:
            folder = os.path.join(base, "final")
            _run_on_all_rows(run, data, (final_round, folder), sandbox, settings, clock)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    return run


class _Clock:
    """What is left of a run's time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.started = time.monotonic()

    def left(self, share: float = 1.0) -> float:
        return share * self.seconds - (time.monotonic() - self.started)


def _take_looks(
    run: Run,
    folder: str,
    client: Client,
    sandbox: Sandbox,
    settings: Settings,
    run_key: List[Any],
    clock: _Clock,
) -> None:
    """Run programs that only look at the data: nothing of them is judged."""
    for number in range(1, settings.looks + 1):
        left = clock.left(FOR_SUBMISSIONS)
        if left < 1:
            return
        look = Submission(number)
        try:
            _ask(look, client, run.messages, [*run_key, f"look {number}"], left)
        except LLMError as error:
            run.end(error, client)
            return
        look.code = extract_code(look.answer)
        if look.code.strip():
            allowed = min(settings.iteration_seconds, max(left, 5.0))
            _look_around(look, folder, sandbox, settings.limits(allowed))
        else:
            look.reason = "no code"
        run.looks.append(look)
        remaining = settings.looks - number
        text = _prompt("look.md").format(output=look.output or "(nothing)", remaining=remaining)
        run.messages.append({"role": "user", "content": text})


def _submit(
    run: Run,
    data: FoldData,
    judged: List[Any],
    client: Client,
    sandbox: Sandbox,
    settings: Settings,
    run_key: List[Any],
    clock: _Clock,
    test_accuracy: Optional[Callable[[np.ndarray], float]],
) -> None:
    """Ask for submissions and judge each, until all are used up, time is, or no answer comes."""
    for number in range(1, settings.submissions + 1):
        left = clock.left(FOR_SUBMISSIONS)
        # a first submission always has its chance
        if left < 1 and run.submissions:
            run.ended_by = "no time left"
            return
        submission = Submission(number)
        try:
            answer = _ask(submission, client, run.messages, [*run_key, number], left)
        except LLMError as error:
            run.end(error, client)
            return
        allowed = min(settings.iteration_seconds, max(left, 5.0)) / len(judged)
        judge(submission, data, judged, sandbox, settings.limits(allowed))
        if submission.reason == "no code":
            if answer.is_refusal or is_refusal(answer.text):
                submission.reason = "refused"
            elif answer.is_cut:
                submission.reason = "cut off"
        if settings.feedback == "test" and submission.is_valid:
            submission.held_out = test_accuracy(submission.codes)
        run.submissions.append(submission)
        remaining = settings.submissions - number
        if remaining:
            text = feedback(submission, settings.feedback, remaining)
            run.messages.append({"role": "user", "content": text})


def _ask(
    submission: Submission,
    client: Client,
    messages: List[Dict[str, str]],
    run_key: List[Any],
    left: float,
) -> Answer:
    """Take the next answer into the talk."""
    answer = client.ask(messages, run_key, max(left, 30.0))
    submission.answer, submission.is_cut = answer.text, answer.is_cut
    submission.tokens_in, submission.tokens_out = answer.tokens_in, answer.tokens_out
    # some servers refuse a talk in which somebody said nothing
    messages.append({"role": "assistant", "content": answer.text.strip() or "(no answer)"})
    return answer


def _run_on_all_rows(
    run: Run,
    data: FoldData,
    place: Any,
    sandbox: Sandbox,
    settings: Settings,
    clock: _Clock,
) -> None:
    """Run the chosen program on all training rows; where that fails, what it said before counts."""
    final_round, folder = place
    final = Submission(run.selected.number, code=run.selected.code)
    allowed = min(settings.iteration_seconds, max(5.0, clock.left()))
    try:
        write_round(data, final_round, folder)
    except OSError as error:
        run.ended_by = run.ended_by or f"no final run: {error.strerror or error}"
        return
    run_program(final, data, [place], sandbox, settings.limits(allowed))
    if final.is_valid:
        run.final = final


def choose(submissions: List[Submission]) -> Optional[Submission]:
    """Return the submission with the best accuracy on the hidden rows, the latest of equals.

    Where no accuracy is known, the latest valid one.
    """
    valid = [submission for submission in submissions if submission.is_valid]
    if not valid:
        return None
    return max(
        valid, key=lambda s: (-1.0 if s.held_out is None else s.held_out, s.number)
    )


def judge(
    submission: Submission, data: FoldData, judged: List[Any], sandbox: Sandbox, limits: Limits
) -> None:
    """Take the program out of the answer and run it; fill in what came of it."""
    submission.code = extract_code(submission.answer)
    if not submission.code.strip():
        submission.reason = "no code"
        return
    lines = submission.code.count("\n") + 1
    if len(submission.code.encode()) > MAX_SCRIPT or lines > MAX_LINES:
        submission.reason = "error"
        submission.output = (
            f"The script is too long: at most {MAX_SCRIPT >> 10} KiB and {MAX_LINES} lines."
        )
        return
    run_program(submission, data, judged, sandbox, limits)


def run_program(
    submission: Submission, data: FoldData, judged: List[Any], sandbox: Sandbox, limits: Limits
) -> None:
    """Run a program on each round; keep the test predictions of the first."""
    hits = []
    for chosen, folder in judged:
        try:
            work = new_work_folder(submission.code)
        except OSError as error:
            _blame_harness(submission, error)
            return
        try:
            outcome = sandbox.run(work, limits, data=folder)
            submission.seconds += outcome.seconds
            submission.memory_mb = max(submission.memory_mb, outcome.memory_mb)
            submission.output = outcome.output
            submission.reason = outcome.reason
            if outcome.reason:
                submission.codes = submission.probabilities = None
                return
            codes, probabilities = read_predictions(work, len(chosen.asked), data.labels)
        except PredictionError as error:
            submission.reason = error.reason
            submission.output += f"\n{error}"
            submission.codes = submission.probabilities = None
            return
        except OSError as error:
            # before the program was started: what it leaves is a PredictionError
            _blame_harness(submission, error)
            return
        finally:
            remove_work_folder(work)
        hidden, rows, test = chosen.split(codes, len(data.test))
        hits.append(hidden == data.codes[rows])
        if submission.codes is None:
            submission.codes = test
            if probabilities is not None:
                submission.probabilities = chosen.split(probabilities, len(data.test))[2]
    all_hits = np.concatenate(hits)
    submission.held_out = float(all_hits.mean()) if len(all_hits) else None


def _look_around(look: Submission, folder: str, sandbox: Sandbox, limits: Limits) -> None:
    """Run a program for what it prints; what it writes is thrown away."""
    try:
        work = new_work_folder(look.code)
    except OSError as error:
        _blame_harness(look, error)
        return
    try:
        outcome = sandbox.run(work, limits, data=folder)
        look.reason, look.output = outcome.reason, outcome.output
        look.seconds, look.memory_mb = outcome.seconds, outcome.memory_mb
    except OSError as error:
        _blame_harness(look, error)
    finally:
        remove_work_folder(work)


def _blame_harness(submission: Submission, error: OSError) -> None:
    """Note that a program could not be run by no fault of the model's, such as a full disk."""
    submission.reason = "harness"
    submission.output = f"The script was not run: {error.strerror or error}."
    submission.codes = submission.probabilities = None


def read_predictions(work: str, n_rows: int, labels: List[str]) -> Any:
    """Return codes ``(n,)`` and probabilities ``(n, k)`` or None, as a program wrote them.

    Raises
    ------
    PredictionError
        Whose text is for the model to read.
    """
    try:
        raw = read_result(work, "predictions.txt", 256 * n_rows + 1024)
        extra = read_result(work, "probabilities.csv", 64 * n_rows * len(labels) + 1024)
    except (OSError, ValueError) as error:
        raise PredictionError("bad predictions", str(error)) from None
    if raw is None:
        raise PredictionError("no predictions", "The script wrote no results/predictions.txt.")
    lines = raw.decode("utf-8", "replace").split("\n")
    texts = [line.strip() for line in lines if line.strip()]
    if len(texts) != n_rows:
        raise PredictionError(
            "bad predictions", f"There are {len(texts)} predictions, {n_rows} are wanted."
        )
    known = {str(code): code for code in range(len(labels))}
    if not are_codes_only(labels):
        known.update({label: code for code, label in enumerate(labels)})
    unknown = sorted({text for text in texts if text not in known})
    if unknown:
        shown = ", ".join(repr(text[:40]) for text in unknown[:5])
        raise PredictionError(
            "bad predictions",
            f"{shown} are no labels; write {_written(labels)}: {_codes(labels)}.",
        )
    codes = np.array([known[text] for text in texts])
    return codes, _read_probabilities(extra, n_rows, len(labels))


def are_codes_only(labels: List[str]) -> bool:
    """Whether a label reads as a number, so that a label and a code could be taken for each other.

    Examples
    --------
    >>> are_codes_only(["1", "2.0"]), are_codes_only(["False", "True"])
    (True, False)
    """
    for label in labels:
        try:
            float(label)
        except ValueError:
            continue
        return True
    return False


def _written(labels: List[str]) -> str:
    """Return what stands for a label in the predictions, in words for the prompt."""
    if are_codes_only(labels):
        return "the code of one label (never the label, which is a number itself)"
    return "one label, or its code"


def _codes(labels: List[str]) -> str:
    return ", ".join(f"{code} = {label}" for code, label in enumerate(labels))


def with_probabilities(submission: Submission, n_labels: int) -> np.ndarray:
    """Return the probabilities of the test rows, made of the labels where there are none."""
    if submission.probabilities is not None:
        return submission.probabilities
    spread = np.full((len(submission.codes), n_labels), SPREAD / max(1, n_labels - 1))
    spread[np.arange(len(submission.codes)), submission.codes] = 1 - SPREAD
    return spread


def opening(
    data: FoldData, rounds: List[Any], lines: List[str], settings: Settings, packages: str
) -> List[Dict[str, str]]:
    """Return the first two messages: the rules, and the task."""
    n = len(data.train)
    judged = "A fifth of" if len(rounds) == 1 else "Each of"
    if settings.feedback == "test":
        how = "Your score is the accuracy on the test rows."
    elif len(rounds[0].train) == n:
        how = "There are too few labelled rows for a score: you are told whether predictions serve."
    else:
        how = (
            f"{judged} the labelled rows were held out and stand among the rows of the test files; "
            "your score is the accuracy on them."
        )
    statement = data.about.get("statement") or "A table: predict the label of each test row."
    looks = _prompt("looks.md").format(looks=settings.looks) + "\n" if settings.looks else ""
    system = _prompt("system.md").format(
        looks=looks,
        submissions=settings.submissions,
        seconds=f"{settings.iteration_seconds:g}",
        memory=settings.memory_mb,
        packages=packages or "numpy, scipy, pandas, scikit-learn",
        cores=settings.cores,
        lines=MAX_LINES,
        written=_written(data.labels),
    )
    task = _prompt("task.md").format(
        statement=statement, files="\n".join(f"- {line}" for line in lines), labels=_codes(data.labels), how=how,
        example=example(lines),
    )
    return [{"role": "system", "content": system}, {"role": "user", "content": task}]


def example(lines: List[str]) -> str:
    """Return a program that reads every file of a round, and writes predictions of nothing."""
    read = []
    for line in lines:
        path = line.partition(":")[0]
        name, ending = os.path.splitext(os.path.basename(path))
        how = {
            ".npy": f'np.load("{path}")',
            ".csv": f'pd.read_csv("{path}")',
            ".txt": f'open("{path}", encoding="utf-8").read().split("\\n")[:-1]',
        }.get(ending)
        if how:
            read.append(f"{name} = {how}")
    return "\n".join(
        [
            "import numpy as np",
            "import pandas as pd",
            *read,
            "codes = np.zeros(len(test_features), dtype=int)  # your predictions",
            'np.savetxt("results/predictions.txt", codes, fmt="%d")',
        ]
    )


def feedback(submission: Submission, rows: str, remaining: int) -> str:
    """Return what the model is told of a submission."""
    if submission.is_valid and submission.held_out is None:
        verdict = "Your predictions are valid."
    elif submission.is_valid:
        verdict = f"Your accuracy on the {_ROWS[rows]} rows: {submission.held_out:.4f}."
    elif submission.reason in NOT_THE_MODELS:
        verdict = "Your script could not be run, by no fault of yours."
    else:
        verdict = f"No valid predictions ({submission.reason}), which counts as accuracy 0."
    if submission.is_cut:
        verdict += " Your answer was cut off at the endpoint's limit of tokens: write less."
    return _prompt("feedback.md").format(
        output=submission.output or "(nothing)", verdict=verdict, remaining=remaining
    )


def _read_probabilities(raw: Optional[bytes], n_rows: int, n_labels: int) -> Any:
    """Return probabilities that are some; None otherwise: only labels are demanded."""
    if raw is None:
        return None
    try:
        rows = [
            [float(cell) for cell in line.split(",")]
            for line in raw.decode().split("\n")
            if line.strip()
        ]
        values = np.array(rows, dtype=float)
    except (ValueError, UnicodeDecodeError):
        return None
    if values.shape != (n_rows, n_labels) or not np.isfinite(values).all():
        return None
    sums = values.sum(axis=1)
    if values.min() < 0 or np.abs(sums - 1).max() > 0.01:
        return None
    return values / sums[:, None]


def _prompt(name: str) -> str:
    with open(os.path.join(HERE, "prompts", name), encoding="utf-8") as file:
        return file.read().strip()
