"""Let AMLB wait for a child that has closed its pipes but has not yet been reaped.

``amlb/utils/process.py`` asks ``process.poll()`` right after both pipes end. On a fast kernel
the child may still be on its way out; AMLB takes that for a hang, kills it and reports
``StaleProcessError``. With this folder on ``PYTHONPATH`` that one question waits up to ten
seconds; every other use of ``subprocess`` is as before.
"""

import importlib.machinery
import importlib.util
import os
import subprocess
import sys

_poll = subprocess.Popen.poll


def _patient_poll(self):
    code = _poll(self)
    if code is None and sys._getframe(1).f_code.co_name == "run_subprocess":
        try:
            code = self.wait(timeout=10)
        except subprocess.TimeoutExpired:
            code = None
    return code


subprocess.Popen.poll = _patient_poll


def _next_sitecustomize():
    """Run the sitecustomize that this one hides, if there is any."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


_next_sitecustomize()
