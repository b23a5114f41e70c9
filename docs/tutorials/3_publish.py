"""
Publish a suite on OpenML
=========================

You want others to run your hard tasks as ``openml/s/ID``. This page makes a small suite and shows
everything that would be sent, without sending it.

"""

# %%
# A suite
# -------

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())


def hardsynth(command):
    """Run a command of hardsynth in the folder, and print what it prints."""
    words = [sys.executable, "-m", "amlb_ext", *shlex.split(command)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    print(done.stdout if done.returncode < 2 else done.stderr)


hardsynth(
    "generate bundled/penguins -o suite --baseline logistic --folds 1"
    " --kappa 0 --copies 1 --times 1 --synthesizer local --no-train-hard -j 1"
)

# %%
# Check it
# --------
#
# ``verify`` reads every file and compares it with the checksums of the manifest.

hardsynth("verify suite")

# %%
# See what would be sent
# ----------------------
#
# ``--dry-run`` needs neither a network nor a key. The table says how many rows of each task
# survive OpenML's fixed splits, and which licence the rows have.

hardsynth("publish suite --server test --dry-run --out to_send")

# %%
# ``--out`` wrote what would be sent: for each data set its rows and its description, then its task.

files = sorted(path for path in (folder / "to_send").rglob("*") if path.is_file())
for path in files:
    print(f"{path.stat().st_size:8,} bytes  {path.name}")

# %%
# A licence is needed. Where the source states none, nothing is sent before you say under which
# licence you may publish the rows (``--licence``).
#
# Send it
# -------
#
# Get an API key from your profile page of the server, try the test server first, then the real one.
# What is published cannot be taken back.
#
# .. code-block:: console
#
#    $ export OPENML_APIKEY=...
#    $ hardsynth publish suite --server test
#    $ hardsynth publish suite --server production
#
# If it is interrupted, the same command continues, and nothing is published twice.
#
# Where to go on
# --------------
#
# * :doc:`/how-to/publish`: keys, splits, licences, and what the server's codes mean.
# * :doc:`/how-to/export`: put the suite at a web address instead.
