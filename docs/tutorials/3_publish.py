"""
Publish a suite on OpenML
=========================

You want others to run your hard tasks as ``openml/s/ID``. This page makes a small suite and shows
everything that would be sent to OpenML, without sending it.

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
    """Run a hardsynth command in the folder, and print its output."""
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
# ``verify`` reads every file and compares it with the checksums in the manifest.

hardsynth("verify suite")

# %%
# See what would be sent
# ----------------------
#
# ``--dry-run`` needs neither a network nor a key. The table shows how many rows of each task
# remain under OpenML's fixed splits, and which licence the rows have.

hardsynth("publish suite --server test --dry-run --out to_send")

# %%
# ``--out`` wrote everything that would be sent: the rows and the description of each data set,
# and its task.

files = sorted(path for path in (folder / "to_send").rglob("*") if path.is_file())
for path in files:
    print(f"{path.stat().st_size:8,} bytes  {path.name}")

# %%
# Publishing needs a licence. If the source states none, nothing is sent until you give the
# licence under which you may publish the rows (``--licence``).
#
# Send it
# -------
#
# Get an API key from your profile page on the server. Try the test server first, then the real
# one. You cannot take back what you have published, so the production server is used only after
# you confirm (or with ``--yes``).
#
# .. code-block:: console
#
#    $ export OPENML_APIKEY=...
#    $ hardsynth publish suite --server test
#    $ hardsynth publish suite --server production
#
# If the command is interrupted, run it again. It continues, and publishes nothing twice.
#
# Where to go on
# --------------
#
# * :doc:`/how-to/publish`: keys, splits, licences, and the meaning of the server's error codes.
# * :doc:`/how-to/export`: offer the suite for download from a web address instead.
