"""The synthesizer: a base VAE, tuned copies of it, and a search among their mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from amlb_ext.core.errors import ConfigError, suggest_nearest
from amlb_ext.core.notes import Note
from amlb_ext.core.rng import draw_int_seed, random_stream
from amlb_ext.synthesizers.base import best_labels
from amlb_ext.synthesizers.network import DenseNetwork
from amlb_ext.synthesizers.prep import TablePrep
from amlb_ext.synthesizers.swarm.arena import (
    EVALUATION_ROWS,
    FINAL_ROWS,
    Arena,
    SearchName,
    make_search,
    search_generators,
)
from amlb_ext.synthesizers.swarm.objectives import (
    OBJECTIVES,
    Labels,
    MixedObjective,
    QuickTakers,
    SupportGuard,
    mendable,
    own_performance,
)
from amlb_ext.synthesizers.swarm.particles import SwarmSettings, check_generators
from amlb_ext.synthesizers.swarm.space import LEAST_CLUSTER, make_generators
from amlb_ext.synthesizers.vae import VAE

#: Standard errors by which the teacher must beat the best taker before a search begins.
PROOF_ERRORS = 2.0
#: A copy is tuned for one in so many of the base's gradient steps.
TUNING_PART = 4
#: Real rows that quick takers learn from, at most; as many others are kept from them.
MOST_TAKER_ROWS = 4000
#: Fewer real rows leave too few for the quick takers and for what they are asked about.
LEAST_REAL_ROWS = 100


@dataclass(eq=False, repr=False)
class Swarm(VAE):
    """Mixtures of N tuned copies of one VAE, searched for an objective (Data Swarms).

    The search asks judges: a model F that is tested, a teacher T, and real rows of which both
    were told nothing; four quick models of other families are fitted to a half of these rows.
    Before a search with honest labels, T must beat the best of them on the other half by two
    standard errors. Where it does not, there is nothing to find; where the mixture that is found
    is no better on fresh rows than the base, it found nothing; and without judges nobody can
    tell. The base VAE then makes the rows, as it does with ``search="none"``, and ``notes_`` say
    so.

    Parameters
    ----------
    objective : sequence of str
        Of :data:`~amlb_ext.synthesizers.swarm.objectives.OBJECTIVES`; several count alike, each
        in units of its spread over the initial generators.
    search : {'pso', 'pso_code', 'cma', 'soups', 'none'}
        The paper's particle swarm, the same as its published code has it, CMA-ES, random convex
        mixtures, or nothing.
    labels : {'honest', 'literal'}
        Labels that the search believes, see :mod:`~amlb_ext.synthesizers.swarm.objectives`.
    epochs, latent, decoder, batch, max_categories, max_steps, device
        Of the base, see :class:`~amlb_ext.synthesizers.vae.VAE`.
    generators : int
        N.
    iterations : int
        Moves of the N particles at most; every search has their number of evaluations.

    Attributes
    ----------
    theta_ : ndarray of shape (D,) or None
        Weights of the generator that was chosen; None where the base makes the rows.
    notes_ : tuple of Note
        What the search found, or why there was none.

    References
    ----------
    .. [1] Feng, Wang, Shi, Tsvetkov, Data Swarms: Optimizable Generation of Synthetic Evaluation
       Data.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.random((40, 2)), rng.integers(0, 2, 40)
    >>> model = Swarm(epochs=2, latent=4).fit(X, y, cards=(), n_classes=2, rng=rng)
    >>> model.notes_[0].text
    'no search, since no model is there to be tested; the base generator makes the rows'
    """

    objective: Sequence[str] = ("difficult",)
    search: SearchName | Literal["none"] = "pso"
    labels: Labels = "honest"
    generators: int = 8
    iterations: int = 20

    asks_judges = True

    def _check_parameters(self) -> None:
        for name in self.objective:
            if name not in OBJECTIVES:
                raise ConfigError(
                    f"no objective {name!r}", suggest_nearest(name, OBJECTIVES)
                )
        super()._check_parameters()
        check_generators(self.generators)

    def _fit(
        self,
        X: np.ndarray,
        y: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        super()._fit(X, y, rng)
        self.theta_: np.ndarray | None = None
        if self.search == "none":
            return
        reason = self._why_no_search(X, y)
        if reason:
            note = Note(kind="nothing searched", words={"reason": reason})
        else:
            note = self._search(X, y, draw_int_seed(rng), self.search)
        self.notes_ = (note,)

    def _why_no_search(self, X: np.ndarray, y: np.ndarray) -> str:
        """Return why nothing can be searched; empty where nothing is in the way."""
        if self.judges_ is None:
            return "no model is there to be tested"
        if not isinstance(self.network_, DenseNetwork):
            return "no column varies"
        if y.ndim > 1:
            return "rows have several targets"
        if len(X) < LEAST_CLUSTER:
            return f"fewer than {LEAST_CLUSTER} rows cannot be clustered"
        if len(self.judges_.X) < LEAST_REAL_ROWS:
            return f"models cannot be tested on fewer than {LEAST_REAL_ROWS} real rows"
        return ""

    def _search(
        self, X: np.ndarray, y: np.ndarray, seed: int, name: SearchName
    ) -> Note:
        """Search for a mixture where one may be found; return what happened."""
        judges = self.judges_
        assert judges is not None
        order = random_stream(seed, "takers").permutation(len(judges.X))
        half = len(order) // 2
        learnt, real = order[:half][:MOST_TAKER_ROWS], order[half:]
        learnt_y, real_y = judges.y[learnt], judges.y[real]
        if np.ptp(learnt_y) == 0 or np.ptp(real_y) == 0:
            words = {"reason": "real rows have one target alone"}
            return Note(kind="nothing searched", words=words)
        # made rows have codes of either table
        prep = TablePrep(self.max_categories)
        prep.fit(
            np.vstack([X, judges.X]), len(self.cards_), random_stream(seed, "prep")
        )
        guard = SupportGuard(prep, judges.X[real])
        takers = QuickTakers(
            guard.metric(judges.X[learnt]), learnt_y, self.n_classes_, seed
        )
        variance = float(np.var(judges.y))
        answers = np.vstack(
            [judges.f[real], takers.predict(guard.metric(judges.X[real]))]
        )
        s = own_performance(answers, real_y, self.n_classes_, variance)
        if self.labels == "honest":
            best = best_labels(judges.t[real])[None]
            [auditor] = own_performance(best, real_y, self.n_classes_, variance)
            gain, error = mendable(s, auditor)
            if not gain > PROOF_ERRORS * error:
                counts = {
                    "rows": len(real),
                    "gain": gain,
                    "models": len(s),
                    "error": error,
                }
                return Note(kind="nothing to beat", counts=counts)

        def ask(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            f, t = judges.ask(rows)
            return np.vstack([f, takers.predict(guard.metric(rows))]), t

        space = make_generators(
            self,
            X,
            y,
            n_generators=self.generators,
            steps=max(1, self.n_steps_ // TUNING_PART),
            seed=seed,
        )
        arena = Arena(
            seed=seed,
            space=space,
            ask=ask,
            guard=guard,
            labels=self.labels,
            objective=MixedObjective(dict.fromkeys(self.objective, 1.0), self.labels),
            real=s[:, : guard.rows],
            variance=variance,
            n_rows=EVALUATION_ROWS[self.labels],
            user_rows=guard.metric(judges.user_rows),
        )
        return self._choose_mixture(arena, name)

    def _choose_mixture(self, arena: Arena, name: SearchName) -> Note:
        arena.settle_units()
        settings = SwarmSettings(iterations=self.iterations)
        search = make_search(
            name,
            self.generators,
            random_stream(arena.seed, "search"),
            settings,
        )
        trace = search_generators(arena, name, search)
        theta = trace.chosen @ arena.space.initial
        # yet other rows than those that the choice was made on
        compared = np.stack([theta, arena.space.base])
        fresh, of_base = arena.values(compared, n_rows=FINAL_ROWS, stream="fresh")
        is_worse = arena.is_honest and fresh <= of_base
        note = Note(
            kind="searched in vain" if is_worse else "searched",
            counts={
                "seen": float(trace.values.max()),
                "mixtures": len(trace.points),
                "fresh": float(fresh),
                "base": float(of_base),
            },
            words={"search": name, "objective": ", ".join(self.objective)},
        )
        if is_worse:
            return note
        self.theta_ = theta
        self.space_ = arena.space
        rng = random_stream(arena.seed, "targets")
        self.targets_ = arena.space.draw_targets(theta, len(self.targets_), rng)
        return note

    def _sample(
        self,
        y: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        if self.theta_ is None:
            return super()._sample(y, rng)
        return self.space_.draw_rows(self.theta_, y, rng)
