"""Small tables and a loopback OpenML for the sources."""

import socket

import pandas as pd
import pytest
from loopback_openml import Dataset, LoopbackOpenML, splits

N = 30


@pytest.fixture
def table():
    """Thirty rows: an integer, a number with gaps, a category with a gap, a class target."""
    return pd.DataFrame(
        {
            "count": range(N),
            "size": [None if i % 7 == 0 else i / 4 for i in range(N)],
            "colour": [
                None if i == 3 else ("red", "blue", "green")[i % 3] for i in range(N)
            ],
            "class": ["yes" if i % 2 else "no" for i in range(N)],
        }
    )


@pytest.fixture
def no_network():
    """The address of a server that refuses connections at once."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return f"http://127.0.0.1:{port}"


@pytest.fixture
def openml_server(direct, own_cache):
    """Data sets that hold every trap of the client, and a suite with bad members."""
    dense = [
        "@relation traps",
        "@attribute id integer",
        "@attribute small numeric",
        "@attribute flag {True,False}",
        "@attribute 'two words' string",
        "@attribute day date 'yyyy-MM-dd'",
        "@attribute secret numeric",
        "@attribute y {b,a}",
        "@data",
    ]
    dense += [
        f"{i},{250 + i % 6},{'?' if i == 4 else 'True' if i % 2 else 'False'},'text {i}',"
        f"'2024-01-{i % 28 + 1:02d}',{i},{'a' if i % 3 else 'b'}"
        for i in range(N)
    ]
    sparse = ["@relation sparse", "@attribute x numeric", "@attribute c {zero,one}"]
    sparse += ["@attribute y numeric", "@data"]
    sparse += [
        f"{{0 {i}, 1 one, 2 {i + 0.5}}}" if i % 2 else f"{{2 {i + 0.5}}}"
        for i in range(N)
    ]
    datasets = {
        1: Dataset(
            "traps",
            "\n".join(dense) + "\n",
            [
                ("id", "numeric", []),
                ("small", "numeric", []),
                ("flag", "nominal", ["True", "False"]),
                ("two words", "string", []),
                ("day", "date", []),
                ("secret", "numeric", []),
                ("y", "nominal", ["b", "a"]),
            ],
            "y",
            ignore=["secret"],
            row_id="id",
        ),
        2: Dataset(
            "sparse",
            "\n".join(sparse) + "\n",
            [
                ("x", "numeric", []),
                ("c", "nominal", ["zero", "one"]),
                ("y", "numeric", []),
            ],
            "y",
            format="Sparse_ARFF",
        ),
        3: Dataset(
            "broken",
            "@relation r\n@attribute y numeric\n@data\nx,y\n",
            [("y", "numeric", [])],
            "y",
        ),
    }
    tasks = {
        11: (1, 1, splits(N)),
        12: (2, 2, splits(N)),
        13: (3, 2, splits(N)),
        14: (1, 5, splits(N)),
        15: (99, 2, splits(N)),
        16: (1, 1, splits(N + 5)),
        17: (1, 1, None),
    }
    with LoopbackOpenML(datasets, tasks, {7: [11, 13, 12], 8: []}) as server:
        yield server
