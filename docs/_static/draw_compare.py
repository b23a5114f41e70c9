"""Draw compare.svg, the picture of README and of the site's first page, by README's own example.

Command: ``python docs/_static/draw_compare.py``
"""

import re
from pathlib import Path

import matplotlib

matplotlib.use("agg")
matplotlib.rcParams["svg.hashsalt"] = "hardsynth"

HERE = Path(__file__).parent
README = (HERE.parents[1] / "README.md").read_text(encoding="utf-8")

example = re.search(r"^```python\n(.*?)^```", README, flags=re.M | re.S)
assert example is not None
names: dict = {}
exec(example.group(1), names)
figure = names["result"].plot().figure
figure.savefig(
    HERE / "compare.svg",
    bbox_inches="tight",
    facecolor="white",
    metadata={"Date": None},
)
