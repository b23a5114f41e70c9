"""The presets: named changes of the defaults."""

from __future__ import annotations

from typing import Any

#: What a preset changes; ``faithful`` is the defaults above, ``literal`` the paper's Table 2.
PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "faithful": {},
    "stress": {
        "search": {
            "fitness": "reducible",
            "kappa": 0.1,
            "population": 50,
            "generations": 20,
            "sigma2": 0.0005,
            "strength": 0.1,
            "categoricals": "free",
            "jitter": 0.025,
        },
        "hardness": {"rule": "reducible"},
    },
    "literal": {
        "search": {
            "kappa": 0.5,
            "tries": 1,
            "population": 50,
            "generations": 20,
            "sigma2": 0.02,
            "flip": 0.1,
            "start": "unique",
            "categoricals": "free",
            "strength": 0.1,
            "jitter": 0.0,
        },
        "agreement": {"filter": False},
        "synthesizer": {"name": "vae_paper", "latent": 256, "decoder": 512, "epochs": 100},
    },
}
