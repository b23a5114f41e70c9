"""
Judge a coding model beside AutoML
==================================

You want to know what a language model is worth that *writes the program*: five submissions, each
answered with what the program printed and its score. Here it stands beside a forest on the raw
columns and beside a reader that knows the task, on the same rows. The model is replaced by an
endpoint that replays five answers, so the page needs no key and no network.

"""

# %%
# A task
# ------
#
# Two players drop stones into seven columns; the last moves are taken away. Who won? A row holds
# the moves, so a model has to replay the board first.

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

folder = Path(tempfile.mkdtemp())
os.chmod(folder, 0o755)


def hardsynth(command):
    """Run a command of hardsynth in the folder, and print what it prints."""
    words = [sys.executable, "-m", "amlb_ext", *shlex.split(command)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    print(done.stdout if done.returncode < 2 else done.stderr)


hardsynth("tasks weird -o w --task drop4_winners --model quick")

data = folder / "w" / "data" / "drop4_winners"
train = pd.read_csv(data / "drop4_winners_train_0.csv")
test = pd.read_csv(data / "drop4_winners_test_0.csv")
truth = test.pop("target").to_numpy()
labels = train.pop("target").to_numpy()
train.iloc[:3, :10]

# %%
# An endpoint
# -----------
#
# Any that speaks OpenAI's ``chat/completions`` serves. Its address and key come from the
# environment alone. This one comes with a checkout of hardsynth.

import hardsynth as hs

checkout = Path(hs.__file__).resolve().parents[1]
server = subprocess.Popen(
    [sys.executable, checkout / "tests" / "helpers" / "loopback_llm.py", "0"],
    stdout=subprocess.PIPE,
    text=True,
)
environ = {
    "HARDSYNTH_LLM_URL": server.stdout.readline().strip(),
    "HARDSYNTH_LLM_KEY": "sk-replayed-answers",
}

# %%
# A confinement
# -------------
#
# A model's program is a stranger's. It runs only where a battery of attacks has just been stopped
# on this machine. (The answers replayed here are known, so they may run without one where
# this page is built on a system that has none.)

sys.path.insert(0, str(folder / "w" / "extensions"))

from LLMCoder.choose import choose_sandbox
from LLMCoder.sandbox import Sandbox, SandboxError
from WeirdReader.readers import BoardReader

try:
    sandbox, tests = choose_sandbox("auto", sys.executable)
except SandboxError as error:
    sandbox = Sandbox("none", sys.executable)
    print(error)
print("confined by", sandbox.tier)

# %%
# A run
# -----
#
# In AMLB the framework ``LLMCoder_quick`` does this for every fold; here the same code runs on
# fold 0. Of the test rows it is given the columns, never the labels.

from LLMCoder.client import Client
from LLMCoder.fold_data import FoldData, read_about
from LLMCoder.protocol import Settings, carry_out

about = read_about(
    str(data / "drop4_winners_train_0.csv"), "drop4_winners", 0, {"labels": []}
)
names = about.pop("labels")
codes = pd.Categorical(labels, categories=names).codes.astype(int)
fold = FoldData(train, test, names, codes, **about)


def solve(environ):
    """Let the model solve the fold; return the run and the client that asked."""
    client = Client("quick", str(folder / "cache"), environ=environ)
    run = carry_out(
        fold,
        client=client,
        sandbox=sandbox,
        settings=Settings(iteration_seconds=60),
        seed=0,
        run_key=[0, "drop4_winners", 0],
        seconds=600,
    )
    return run, client


run, client = solve(environ)

# %%
# This is what the model was told first, in part:

task = run.messages[1]["content"]
print(task[:1500])

# %%
# ... and this after its second submission, which has a syntax error:

print([m["content"] for m in run.messages if m["role"] == "user"][2])

# %%
# Two scores, never mixed
# -----------------------
#
# *Held out* is what the model is told: accuracy on training rows that were hidden among the test
# rows. It chooses the submission that counts. *Test* is computed afterwards, by labels that nobody
# has who predicts: WeirdML takes the best of the five by it, and AMLB does not.

rows = []
for submission in run.submissions:
    accuracy = None
    if submission.is_valid:
        accuracy = (pd.Series(names)[submission.codes].to_numpy() == truth).mean()
    rows.append(
        {
            "submission": submission.number,
            "failed by": submission.reason,
            "held out": submission.held_out,
            "test": accuracy,
        }
    )
submissions = pd.DataFrame(rows).set_index("submission")
submissions

# %%
# The chosen program ran once more on all training rows. Beside it stand a forest on the raw
# columns and the reader that replays the board, which is no AutoML system: it says what a
# little thought is worth.

from sklearn.ensemble import RandomForestClassifier

selected = pd.Series(names)[run.predicted.codes].to_numpy()
forest = RandomForestClassifier(200, random_state=0).fit(train, labels)
reader = BoardReader().fit(train, labels)
scores = {
    "LLMCoder_quick, selected": (selected == truth).mean(),
    "LLMCoder_quick, max@5 on test": submissions["test"].max(),
    "forest": (forest.predict(test) == truth).mean(),
    "reader": (reader.predict(test) == truth).mean(),
}
pd.Series(scores, name="accuracy").round(3).to_frame()

# %%
# Again, without the model
# ------------------------
#
# Answers are kept. With the server off the same run sends nothing and predicts the same.

server.terminate()
server.wait()

again, other = solve(environ)
print("requests:", client.sent, "then", other.sent)
print("the same:", again.predicted.codes.tolist() == run.predicted.codes.tolist())

# %%
# The key is in no file:

written = [path for path in folder.rglob("*") if path.is_file()]
print(any(b"sk-replayed" in path.read_bytes() for path in written))

# %%
# On all six tasks, in AMLB
# -------------------------
#
# .. code-block:: console
#
#    $ hardsynth tasks weird -o w --folds 15 --model NAME
#    $ export HARDSYNTH_LLM_URL=https://HOST/v1 HARDSYNTH_LLM_KEY=...
#    $ hardsynth run LLMCoder_NAME weirdml -u w
#    $ hardsynth run RandomForest weirdml -u w
#    $ hardsynth run HardsynthReader weirdml -u w
#    $ hardsynth report w --results results
#
# The report has both scores in columns of their own, with intervals over runs, failures by reason
# and the cost. See :doc:`/how-to/coding_models` for settings, confinement and the protocol, and
# :doc:`/how-to/weird` for the tasks.
