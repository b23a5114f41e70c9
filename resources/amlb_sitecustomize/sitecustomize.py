"""Let AMLB wait for a child that has closed its pipes but has not yet been reaped.

``amlb/utils/process.py`` asks ``process.poll()`` right after both pipes end. On a fast kernel
the child may still be on its way out; AMLB takes that for a hang, kills it and reports
``StaleProcessError``. With this folder on ``PYTHONPATH`` that one question waits up to ten
seconds; every other use of ``subprocess`` is as before.

AMLB and the process in which it runs a framework end with the process that started them, even when
that one is killed.
"""

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import threading
import time

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


def _end_with_parent():
    """End this process when its parent dies, if it is AMLB or runs a framework for it.

    Other processes may outlive their parents on purpose, such as the servers of a framework.
    """
    parent = os.getppid()
    is_amlb = os.environ.get("HARDSYNTH_RUNNER") == str(parent)
    runs_framework = any(
        os.path.basename(word) == "exec.py" for word in getattr(sys, "orig_argv", ())
    )
    if not (is_amlb or runs_framework):
        return

    def watch():
        while os.getppid() == parent:
            time.sleep(0.5)
        try:
            import psutil

            # a set-up goes on without AMLB, and would meet the next one
            for child in psutil.Process().children(recursive=True):
                child.kill()
        finally:
            os._exit(1)

    threading.Thread(target=watch, daemon=True, name="end_with_parent").start()


_end_with_parent()


def _next_sitecustomize():
    """Run the sitecustomize that this one hides, if there is any."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


_next_sitecustomize()
