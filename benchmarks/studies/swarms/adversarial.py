"""Adversarial swarms (Algorithm 2 of the paper) on a table, beside what explains their gain.

Takers are networks tuned from one base, so that they can be mixed like generators. Generators
evolve for rows that the takers get wrong, takers for a window of rows that made rows replace bit
by bit. What is asked in the end is the accuracy on real rows that nobody saw.

The controls decide what a gain is worth: the same base tuned on rows of the *initial* generators,
on real rows, and on real rows without labels to which the teacher gives its own. What the last
one gains comes from the teacher, and must not be booked as the swarm's.

Notation
--------
c : (4,) coefficients of a mixture of takers, sum 1
"""

from __future__ import annotations

from copy import deepcopy

import numpy as np
from sklearn.cluster import KMeans
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from amlb_ext.core.errors import DataError
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.core.task import Task
from amlb_ext.synthesizers.base import best_labels
from amlb_ext.synthesizers.swarm.particles import PaperSwarm, SwarmSettings
from amlb_ext.synthesizers.swarm.space import FlatWeights
from benchmarks.studies.engine import Rows, flat_rows
from benchmarks.studies.swarms.choices import SwarmChoice
from benchmarks.studies.swarms.prepare import PreparedDraw, prepare_draw

#: Takers, their hidden layers, and rounds over their rows: of the base, and of each tuning.
TAKERS, LAYERS, BASE_ROUNDS, TUNING_ROUNDS = 4, (48, 48), 30, 15
#: Rows of the window, and the share that made rows replace in an iteration.
WINDOW, REPLACED = 200, 0.2
#: Iterations without a better value of either swarm that end the study.
PATIENCE = 5
#: Labels of made rows: the generator's own, as in the paper, or the teacher's.
LABELS = ("own", "teacher")
#: Arm → its text. What the paper has no arm for is ours.
ARMS = {
    "base": "base model",
    "best_taker": "best taker at the start",
    "taker_soup": "uniform soup of takers",
    "adversarial": "adversarial swarm: best taker",
    "dev": "base tuned on the dev set",
    "initial": "base tuned on rows of the initial generators",
    "swarm_rows": "base tuned on all rows that the swarm made",
    "best_generator": "base tuned on rows of the best generator",
    "real_teacher": "control: real rows, the teacher's labels",
    "real_true": "control: the same real rows, true labels",
}


def draw_adversarial(
    choice: SwarmChoice, task: Task | None, *, data: str, draw: int
) -> Rows:
    """Return, by labels and arm, the accuracy on real rows that nobody saw.

    Raises
    ------
    DataError
        A regression: mixtures of takers are compared by accuracy.
    """
    if task is not None and not task.kind.is_classification:
        raise DataError(
            f"{data} is a regression", "adversarial swarms are studied on classes"
        )
    prepared = prepare_draw(task, data, draw, choice, user=False)
    # the products are small, and several threads would only get in each other's way
    with threadpool_limits(1):
        study = _Study(prepared, data, draw, choice)
        return [row for labels in LABELS for row in study.evolve(labels)]


class _Study:
    """The rows and takers of one draw, from which both kinds of labels start alike."""

    def __init__(
        self, prepared: PreparedDraw, name: str, number: int, choice: SwarmChoice
    ) -> None:
        self.prepared = prepared
        self.arena = prepared.arena
        self.choice = choice
        self.key = (name, "adversarial")
        self.seed = number + 1
        # three roles, of none of which the teacher saw a row: it labels rows that are new to it
        Z, y = prepared.rows_of("takers")
        base = MLPClassifier(
            LAYERS, random_state=derive_int_seed(self.seed, *self.key, "base")
        )
        codes = np.arange(prepared.arena.scale.n_classes)
        self.base = _tune(
            base, self.inputs(Z), y, seed=0, rounds=BASE_ROUNDS, classes=codes
        )
        self.flat = FlatWeights(_weights_of(self.base))
        self.dev = prepared.rows_of("generator")
        self.unlabelled = prepared.rows_of("auditor")
        self.takers = self._tune_takers()
        self.pool = self.inputs(prepared.court.Z)
        self.pool_y = prepared.court.y

    def inputs(self, Z: np.ndarray) -> np.ndarray:
        """Return what networks see: numbers and categories in one metric."""
        return self.arena.guard.metric(Z)

    def stream(self, *stage: str | int) -> np.random.Generator:
        return random_stream(self.seed, *self.key, *stage)

    def _tune_takers(self) -> np.ndarray:
        """Return the weights of networks that are tuned on clusters of the dev set, ``(4, W)``."""
        inputs, y = self.inputs(self.dev[0]), self.dev[1]
        seed = derive_int_seed(self.seed, *self.key, "clusters")
        clusters = KMeans(TAKERS, n_init=3, random_state=seed).fit_predict(inputs)
        weights = []
        for number in range(TAKERS):
            rows = clusters == number
            tuned = _tune(self.base, inputs[rows], y[rows], seed=number)
            weights.append(self.flat.join(_weights_of(tuned)))
        return np.array(weights)

    def answer(self, c: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        """Return the class codes that a mixture of takers predicts, ``(n,)``."""
        model = deepcopy(self.base)
        arrays = list(self.flat.split(c @ self.takers).values())
        n_layers = len(model.coefs_)
        model.coefs_, model.intercepts_ = arrays[:n_layers], arrays[n_layers:]
        return np.asarray(model.predict(inputs))

    def accuracy(self, predicted: np.ndarray) -> float:
        return float((predicted == self.pool_y).mean())

    def tuned_accuracy(self, Z: np.ndarray, y: np.ndarray) -> float:
        """Return the accuracy of the base, tuned on rows."""
        seed = derive_int_seed(self.seed, *self.key, "tuning")
        model = _tune(self.base, self.inputs(Z), y, seed=seed)
        return self.accuracy(model.predict(self.pool))

    def evolve(self, labels: str) -> Rows:
        """Let both swarms evolve, then tune the base on what stands beside them."""
        data, models, made = self._alternate(labels)
        n = sum(len(y) for _, y in made) // 2
        rng = self.stream("size", labels)
        Z_all = np.concatenate([Z for Z, _ in made])
        y_all = np.concatenate([y for _, y in made])
        drawn = rng.permutation(len(y_all))[:n]
        space = self.arena.space
        each = max(1, n // len(space.initial))
        initial = self._label_rows(space.initial, each, rng, labels)
        best = self._label_rows(data.best[None] @ space.initial, n, rng, labels)
        # as many real rows as there are, at most as many as were made
        real_Z, real_y = (part[:n] for part in self.unlabelled)
        taught = best_labels(self.arena.teacher.predict(real_Z))
        corners = np.eye(TAKERS)
        start = [self.accuracy(self.answer(c, self.pool)) for c in corners]
        uniform = np.full(TAKERS, 1 / TAKERS)
        arms = {
            "base": self.accuracy(self.base.predict(self.pool)),
            "best_taker": max(start),
            "taker_soup": self.accuracy(self.answer(uniform, self.pool)),
            "adversarial": self.accuracy(self.answer(models.best, self.pool)),
            "dev": self.tuned_accuracy(*self.dev),
            "initial": self.tuned_accuracy(*initial),
            "swarm_rows": self.tuned_accuracy(Z_all[drawn], y_all[drawn]),
            "best_generator": self.tuned_accuracy(*best),
            "real_teacher": self.tuned_accuracy(real_Z, taught),
            "real_true": self.tuned_accuracy(real_Z, real_y),
        }
        told = best_labels(self.arena.teacher.predict(Z_all))
        figures = {arm: {"accuracy": accuracy} for arm, accuracy in arms.items()}
        figures["swarm_rows"]["contradicted"] = float((told != y_all).mean())
        return list(
            flat_rows(figures, "method", "figure", form=labels, objective="accuracy")
        )

    def _alternate(
        self, labels: str
    ) -> tuple[PaperSwarm, PaperSwarm, list[tuple[np.ndarray, np.ndarray]]]:
        """Run Algorithm 2; return both swarms and all made rows."""
        patient = SwarmSettings(
            iterations=self.choice.iterations, patience=self.choice.iterations + 1
        )
        space = self.arena.space
        data = PaperSwarm(np.eye(len(space.initial)), self.stream("data"), patient)
        models = PaperSwarm(np.eye(TAKERS), self.stream("models"), patient)
        rng = self.stream("rows", labels)
        first = rng.permutation(len(self.dev[1]))[:WINDOW]
        window_Z, window_y = self.dev[0][first].copy(), self.dev[1][first].copy()
        n_rows = self.choice.evaluation_rows or WINDOW
        made: list[tuple[np.ndarray, np.ndarray]] = []
        while len(points := data.ask()):
            thetas = points @ space.initial
            answers = models.ask()
            values, parts = [], []
            for theta in thetas:
                Z, y = self._label_rows(theta[None], n_rows, rng, labels)
                inputs = self.inputs(Z)
                right = [(self.answer(c, inputs) == y).mean() for c in answers]
                values.append(1 - max(right))
                parts.append((Z, y))
            data.tell(np.array(values))
            joint_Z = np.concatenate([Z for Z, _ in parts])
            joint_y = np.concatenate([y for _, y in parts])
            made.append((joint_Z, joint_y))
            replaced = rng.random(len(window_y)) < REPLACED
            drawn = rng.integers(len(joint_y), size=int(replaced.sum()))
            window_Z[replaced], window_y[replaced] = joint_Z[drawn], joint_y[drawn]
            inputs = self.inputs(window_Z)
            scores = [(self.answer(c, inputs) == window_y).mean() for c in answers]
            models.tell(np.array(scores))
            if _has_settled(data) and _has_settled(models):
                break
        return data, models, made

    def _label_rows(
        self, thetas: np.ndarray, each: int, rng: np.random.Generator, labels: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return encoded rows of generators with the generator's labels, or the teacher's."""
        parts = [self.arena.make_rows(theta, each, rng) for theta in thetas]
        Z, y = map(np.concatenate, zip(*parts, strict=True))
        if labels == "teacher":
            y = best_labels(self.arena.teacher.predict(Z))
        return Z, y


def _has_settled(swarm: PaperSwarm) -> bool:
    values = swarm.history
    return len(values) > PATIENCE and values[-1] == values[-1 - PATIENCE]


def _tune(
    base: MLPClassifier,
    inputs: np.ndarray,
    y: np.ndarray,
    *,
    seed: int,
    rounds: int = TUNING_ROUNDS,
    classes: np.ndarray | None = None,
) -> MLPClassifier:
    """Return a copy of a network, trained on with rows; no row, no change.

    ``classes`` are all there are, for a network that was never trained: some rows may lack one.
    """
    model = deepcopy(base)
    rng = np.random.default_rng(seed)
    for number in range(rounds if len(y) else 0):
        order = rng.permutation(len(y))
        known = classes if number == 0 else None
        model.partial_fit(inputs[order], y[order].astype(int), classes=known)
    return model


def _weights_of(model: MLPClassifier) -> dict[str, np.ndarray]:
    parts = [*model.coefs_, *model.intercepts_]
    return {str(number): array for number, array in enumerate(parts)}
