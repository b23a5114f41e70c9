"""The presets, which are named changes of the defaults, and Table 2 of the paper.

Source: Zakharov & Boukhanovsky, Mach. Learn. Knowl. Extr. 2025, 7(4), 148. Where the paper is
silent or ambiguous, ``docs/evidence/readings.md`` gives the reading chosen here and its reason.
"""

from __future__ import annotations

from typing import Any

Layer = dict[str, Any]

#: What a preset changes; ``faithful`` is the defaults, ``literal`` the paper's settings for real
#: data. Each line of ``literal`` names its place in the paper.
PRESETS: dict[str, Layer] = {
    "faithful": {},
    "stress": {
        # a stress test is made of hard rows, whether or not they rank
        "composition": ("bad", "synthetic"),
        "search": {
            "kappa": 0.1,
            "population": 50,
            "generations": 20,
            "operators": {
                "fitness": "reducible",
                "sigma2": 0.0005,
                "strength": 0.1,
                "categoricals": "free",
                "jitter": 0.025,
            },
        },
        "hardness": {"rule": "reducible"},
    },
    "literal": {
        "composition": ("bad", "synthetic"),  # section 4.4, D_b and X~
        "search": {
            "kappa": 0.5,  # section 4.3.1 says [0, 1]; .5 gives the 75 % row of Table A1
            "tries": 1,
            "population": 50,  # not printed
            "generations": 20,  # Table 2, number of steps in GA
            "operators": {
                # section 5.4; Table 1 fits a standard deviation, not a variance
                "sigma2": 0.02**2,
                "flip": 0.1,  # section 4.3.2, p_xi; not printed
                "start": "unique",  # section 4.3.1, unique values of each attribute
                "categoricals": "free",  # Algorithm 1, line 6
                "mutation": 0.2,  # Algorithm 1, p_m; not printed
                "strength": 0.1,  # Algorithm 1, s_m; not printed
                "jitter": 0.0,
                "agreement": False,  # the paper judges no labels
            },
        },
        # the rows of which F is unsure, section 5.4; the paper knows no largest share
        "hardness": {"rule": "paper", "most": 1.0},
        "relations": {"mine": False},  # the paper keeps none
        "synthesizer": {
            "name": "vae_posterior",  # section 3: encode X_ga, then sample from the latent space
            "times": 5.0,  # section 5.3, five times more points
            "epochs": 100,  # Table 2, number of epochs
            "params": {
                "latent": 256,  # Table 2, latent dimension
                "hidden": 16,  # Table 2, hidden channels
                "decoder": 512,  # Table 2, decoder hidden dimension
            },
        },
    },
}
