"""Draw compare.svg, the picture of README and of the first page of the site.

Command: ``python docs/_static/draw_compare.py``
"""

import runpy
import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")
matplotlib.rcParams["svg.hashsalt"] = "hardsynth"

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

tutorial = runpy.run_path(str(HERE.parent / "tutorials" / "1_deployed_model.py"))
figure = tutorial["result"].plot().figure
figure.savefig(
    HERE / "compare.svg",
    bbox_inches="tight",
    facecolor="white",
    metadata={"Date": None},
)
print(tutorial["result"])
