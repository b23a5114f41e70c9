"""What AMLB makes of files: its own Python runs scripts, for it is never imported here."""

import json
import os
import subprocess

import pandas as pd

#: What stands before every script: AMLB, ready to load files.
READY = r"""
import importlib.util, json, logging, os, sys, tempfile, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
import amlb.logger
logging.TRACE = 5
import numpy as np, pandas as pd
from amlb.resources import from_config
from amlb.datasets.file import FileLoader
from amlb.utils import Namespace as ns
from_config(ns(input_dir="i", output_dir="o", user_dir="u", root_dir="r", test_mode=False,
               frameworks=ns(root_module="frameworks", definition_file=[],
                             allow_duplicates=False, tags=[]),
               docker=ns(image_defaults=ns(author="a", image=None, tag=None))))
logging.disable(logging.CRITICAL)
cases = json.load(sys.stdin)
"""
TELL = '\nsys.__stdout__.write("ANSWERS" + json.dumps(answers))\n'


def ask_amlb(amlb, script, cases, scratch):
    """Return the ``answers`` that a script finds for its ``cases``."""
    done = subprocess.run(
        [str(amlb.python), "-W", "ignore", "-c", READY + script + TELL, str(amlb.root)],
        input=json.dumps(cases),
        capture_output=True,
        encoding="utf-8",
        check=False,
        cwd=amlb.root,
        env={**os.environ, "TMPDIR": str(scratch)},  # AMLB leaves its caches there
        timeout=900,
    )
    assert "ANSWERS" in done.stdout, done.stderr[-3000:]
    return json.loads(done.stdout.split("ANSWERS")[1])


def read_as_amlb(train_file, test_file):
    """Return rows as AMLB's file loader gives them: test columns have the training types."""
    train = pd.read_csv(train_file)
    texts = [
        name
        for name in train
        if not pd.api.types.is_numeric_dtype(train[name])
        and not pd.api.types.is_bool_dtype(train[name])
    ]
    train = train.astype(dict.fromkeys(texts, "category"))
    test = pd.read_csv(test_file, dtype=dict.fromkeys(texts, str))
    return train, test.astype(dict.fromkeys(texts, "category"))
