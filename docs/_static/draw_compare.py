"""Draw compare.svg, the picture of README and of the site's first page, by README's own example.

Command: ``python docs/_static/draw_compare.py``
"""

import re
import textwrap
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

matplotlib.rcParams["svg.hashsalt"] = "hardsynth"
# A phone shows the picture 360 pixels wide: drawn no wider than that its labels keep their size.
matplotlib.rcParams["font.size"] = 11
SIZE_IN_INCHES = (3.75, 2.9)

HERE = Path(__file__).parent
README = (HERE.parents[1] / "README.md").read_text(encoding="utf-8")

example = re.search(r"^```python\n(.*?)^```", README, flags=re.M | re.S)
assert example is not None
names: dict = {}
exec(example.group(1), names)
figure = Figure(SIZE_IN_INCHES, layout="constrained")
axes = names["result"].plot(figure.subplots())
axes.set_xlabel(textwrap.fill(axes.get_xlabel(), 36))
figure.savefig(
    HERE / "compare.svg",
    facecolor="white",
    metadata={"Date": None},
)
