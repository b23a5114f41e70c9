"""Tables with planted relations of every kind, drawn from a seed."""

import numpy as np
import pandas as pd


def planted_table(seed, n=600, exceptions=0.0):
    """Return a table in canonical form and the texts of what was planted in it.

    ``exceptions`` is the share of rows in which every planted relation is broken.
    """
    rng = np.random.default_rng(seed)
    city = rng.integers(0, 6, n)
    rooms = rng.integers(3, 40, n).astype(float)
    gain = np.where(rng.random(n) < 0.6, 0.0, rng.integers(1, 900, n))
    loss = np.where(
        gain > 0, 0.0, np.where(rng.random(n) < 0.4, rng.integers(1, 900, n), 0.0)
    )
    married = rng.random(n) < 0.5
    rows = pd.DataFrame(
        {
            "rooms": rooms,
            "bedrooms": np.floor(rooms * rng.random(n)),
            "casual": rng.integers(0, 50, n).astype(float),
            "registered": rng.integers(0, 90, n).astype(float),
            "gain": gain,
            "loss": loss,
            "city": _texts(city, "ABCDEF"),
            "country": _texts(city // 2, "XYZ"),
            "status": _texts(married, ("single", "married")),
            "spouse": _texts(
                np.where(married, rng.integers(1, 3, n), 0),
                ("none", "employed", "retired"),
            ),
            "noise": rng.normal(size=n),
        }
    )
    rows["total"] = rows["casual"] + rows["registered"]
    planted = [
        "bedrooms < rooms",
        "casual + registered == total",
        "gain == 0 or loss == 0",
        "city determines country",
        'status == "single" implies spouse == "none"',
        "spouse determines status",
    ]
    broken = rng.random(n) < exceptions
    if broken.any():
        rows.loc[broken, "bedrooms"] = rows.loc[broken, "rooms"] + 5
        rows.loc[broken, "total"] += 1
        rows.loc[broken, ["gain", "loss"]] = 77.0
        rows.loc[broken, "country"] = np.where(
            rows.loc[broken, "country"] == "X", "Y", "X"
        )
        rows.loc[broken, "status"] = "single"
        rows.loc[broken, "spouse"] = "employed"
    return rows, planted


def shuffled(rows, seed):
    """Return rows whose columns have nothing to do with each other."""
    rng = np.random.default_rng(seed)
    columns = {name: rows[name].array[rng.permutation(len(rows))] for name in rows}
    return pd.DataFrame(columns)


def _texts(codes, names):
    return pd.Categorical.from_codes(np.asarray(codes, dtype=int), list(names))
