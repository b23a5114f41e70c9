"""Scripts that AMLB's own Python runs: AMLB is never imported here."""

import json
import os
import subprocess

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
