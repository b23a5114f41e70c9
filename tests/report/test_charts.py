"""Charts: safe with any text, alone in the page, the same each time."""

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sample_reports import points, sample_charts, sample_report

from amlb_ext.core.display import shorten_text
from amlb_ext.report.charts import trade_off_chart
from amlb_ext.report.model import Chart, ChartSeries, FrameworkRanks
from amlb_ext.report.ranks import draw_rank_diagram
from amlb_ext.report.still import draw_chart

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "<script>alert(1)</script>",
    "</script><!--",
    "$x^2$ \\frac{1}{2}",
    "a $ b",
    "]]>",
    "x" * 200,
    "\"quotes\" & 'ticks' &amp;",
    "日本語 😀👩‍👩‍👧",
    "مرحبا \u202e بالعالم",
    "bell\x07 \x00 \ud800 \uffff two\nlines",
    "_hidden",
    "%{meta.role} %{x}",
    "<b>bold</b><extra></extra>",
    "url(#p1) #fe0d00",
    "",
]


KINDS = list(sample_charts())


def chart_of(*series, x="x", y="y", **more):
    return Chart("k", "t", "a", x, y, series, **more)


def ranks(names, mean=(1.2, 1.9, 2.8, 4.1, 4.6)):
    p = pd.DataFrame(1.0, names, names)
    for a, b in [(0, 2), (0, 3), (0, 4), (1, 4), (1, 3), (2, 4)]:
        p.iloc[a, b] = p.iloc[b, a] = 0.01
    return FrameworkRanks(
        pd.Series(mean, names), ("t",), {}, 0.001, p, "Nemenyi's test, 5 entrants."
    )


def words(text):
    """Everything a reader may come upon."""
    return [node.text for node in ET.fromstring(text).iter() if node.text]


def tags(text):
    return {node.tag.removeprefix(SVG) for node in ET.fromstring(text).iter()}


def ids(text):
    return [node.get("id") for node in ET.fromstring(text).iter() if node.get("id")]


def references(text):
    return set(re.findall(r'(?:url\(|href=")#([^)"]+)', text))


@pytest.fixture(scope="module")
def stills():
    """The still picture of one chart per kind of marks."""
    return {kind: draw_chart(chart) for kind, chart in sample_charts().items()}


@pytest.mark.parametrize("kind", KINDS)
def test_still_is_an_element_for_a_page(stills, kind):
    text = stills[kind]
    root = ET.fromstring(text)
    assert text.startswith("<svg ")
    assert root.get("role") == "img"
    assert set(root.get("aria-labelledby").split()) <= set(ids(text))
    assert root.get("viewBox")
    assert "width" not in root.attrib  # responsive
    assert not {"metadata", "style", "script", "image"} & tags(text)
    outside = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "http" not in outside
    assert "DejaVu" not in text


@pytest.mark.parametrize("kind", KINDS)
def test_still_has_the_colours_of_the_page(stills, kind):
    text = stills[kind]
    for series in sample_charts()[kind].series:
        assert f"var(--c-{series.role})" in text
    assert "var(--c-ink)" in text
    assert "var(--c-grid)" in text
    left = set(re.findall("#[0-9a-fA-F]{6}", text))
    assert left == set()  # no colour of matplotlib's, and no stand-in
    assert 'fill="var' not in text  # a variable is understood in style alone


@pytest.mark.parametrize("text", HOSTILE)
def test_still_shows_any_text_as_it_is(text):
    charts = sample_charts(text)
    # between them they have text in every place: legend, both axes, names of categories
    for kind in ("map", "forest"):
        chart = charts[kind]
        drawn = draw_chart(chart)
        assert not {"script", "b"} & tags(drawn)
        assert shorten_text(text, 2000) in ["", *words(drawn)]  # the title
        if text and kind == "map":
            assert shorten_text(chart.series[-1].name) in words(drawn)
        assert max(map(len, words(drawn))) <= 200


def test_ids_are_unique_in_a_page(stills):
    again = [draw_chart(chart) for chart in sample_charts(key="a").values()]
    drawn = [*stills.values(), *again]
    drawn.append(draw_rank_diagram(ranks(list("abcde")), "ranks"))
    found = [name for text in drawn for name in ids(text)]
    assert len(found) == len(set(found))
    for text in drawn:
        assert references(text) <= set(ids(text))  # everything referred to is there


def test_same_chart_same_bytes_whatever_the_users_settings():
    chart = sample_charts("日本 $x$")["map"]
    before = draw_chart(chart)
    with matplotlib.rc_context(
        {"font.size": 30, "svg.fonttype": "path", "axes.grid": True}
    ):
        assert draw_chart(chart) == before
        assert matplotlib.rcParams["font.size"] == 30
    assert draw_chart(chart) == before


def test_legend_only_when_there_is_something_to_tell_apart():
    one, two = points(5, "first"), points(6, "second")
    chart = chart_of(one)
    assert "first" not in words(draw_chart(chart))
    assert {"first", "second"} <= set(
        words(draw_chart(replace(chart, series=(one, two))))
    )


def test_no_legend_for_what_the_axis_names():
    spot = np.zeros(1)
    rows = [
        ChartSeries(name, "intervals", spot, spot + i) for i, name in enumerate("cd")
    ]
    chart = chart_of(*rows, y="", y_categories=("c", "d"))
    assert words(draw_chart(chart)).count("c") == 1


@pytest.mark.parametrize("kind", ["points", "line", "violin", "intervals"])
@pytest.mark.parametrize("categories", [(), ("a", "b", "c")])
def test_nothing_to_show(kind, categories):
    none = ChartSeries("none", kind, np.zeros(0), np.zeros(0))
    unknown = ChartSeries("unknown", kind, np.full(3, np.nan), np.full(3, np.nan))
    chart = chart_of(none, unknown, y_categories=categories)
    assert "nothing to show" in words(draw_chart(chart))


def test_gaps_and_infinities_are_not_drawn():
    x = np.array([0.0, 1, np.nan, 3, np.inf, -1e308, 1e308])
    dots = ChartSeries("", "points", x, np.array([0, np.nan, 1, 1, 1, 1, 1]))
    text = draw_chart(chart_of(dots))
    marks = re.findall(r'clip-path="[^"]*"[^>]*>((?:<use[^>]*>)+)</g>', text)
    assert [row.count("<use") for row in marks] == [2]  # (0, 0) and (3, 1)
    assert "nan" not in text


def test_intervals_without_ends_are_hollow():
    y = np.arange(2.0)
    ends = {"low": y - [1, np.nan], "high": y + 1}
    series = ChartSeries("s", "intervals", y, y, "bad", **ends)
    chart = chart_of(series, y="", y_categories=("a", "b"))
    assert "fill:none;stroke:var(--c-bad)" in draw_chart(chart)


def test_arrays_that_do_not_fit_are_refused():
    for kind in ("line", "points", "intervals", "violin"):
        with pytest.raises(ValueError):
            draw_chart(chart_of(ChartSeries("s", kind, np.ones(3), np.ones(4))))


# ---- ranks


def test_rank_diagram():
    others = plt.get_fignums()
    names = ["autogluon", "<script>x</script>", "$x^2$", "日本語 😀", "y" * 200]
    text = draw_rank_diagram(ranks(names), "ranks")
    found = words(text)
    for name, mean in zip(names, (1.2, 1.9, 2.8, 4.1, 4.6), strict=True):
        assert f"{shorten_text(name, 24)} ({mean:.2f})" in found
    assert any(
        word.startswith("autogluon has the best mean rank, 1.20.") for word in found
    )
    # The better half has its labels on the left: they end at their marks, others begin there.
    sides = re.findall(r"text-anchor:(\w+)[^<]*>[^<]* \(\d\.\d\d\)<", text)
    assert sides == ["end"] * 3 or sides[:3] == ["end"] * 3
    # Pairs with p = 1: 01, 12, 23, 34; no three are all alike, so four bars.
    assert text.count("stroke:var(--c-c0)") == 4
    assert re.findall("#[0-9a-f]{6}", text) == []
    assert plt.get_fignums() == others
    assert len(text) < 20_000


def test_rank_diagram_with_equal_ranks():
    assert draw_rank_diagram(ranks(list("abcde"), (3.0,) * 5), "r").startswith("<svg")
    two = replace(ranks(list("abcde")), mean=pd.Series({"a": 1.5, "b": 1.5}))
    assert "a (1.50)" in words(draw_rank_diagram(two, "r"))


@pytest.mark.parametrize("text", HOSTILE)
def test_marks_say_what_they_are_under_the_pointer(text):
    told = [f"{text}{place}" for place in range(3)]
    x = np.array([0.0, np.nan, 2.0])
    y = np.arange(3.0)
    for kind in ("points", "intervals", "violin"):
        series = ChartSeries("s", kind, x, y, low=y - 1, high=y + 1, text=told)
        drawn = draw_chart(chart_of(series))
        titles = [node.text for node in ET.fromstring(drawn).iter(f"{SVG}title")]
        assert titles[1:] == [shorten_text(told[place], 2000) for place in (0, 2)]


def test_gain_where_f_fails_is_set_against_loss_elsewhere():
    (task,) = sample_report(1).tasks
    contrasts = task.contrasts.assign(from_region=-0.2, from_elsewhere=0.05)
    everywhere = contrasts["where"] == "all rows"
    contrasts.loc[~everywhere, ["from_region", "from_elsewhere"]] = np.nan
    is_far = everywhere & (contrasts["framework"] == "FLAML")
    contrasts.loc[is_far, "from_region"] = 3.0
    chart = trade_off_chart([replace(task, contrasts=contrasts)], {})
    names = {series.name for series in chart.series}
    assert {"AutoGluon", "RandomForest"} <= names
    assert "FLAML" not in names  # off the scale
    assert "H2OAutoML" not in names  # incomplete
    assert "Off the scale, not drawn: FLAML on" in chart.about
    point = chart.series[0]
    assert (point.x[0], point.y[0]) == pytest.approx((5.0, -20.0))
    assert draw_chart(chart)
    assert trade_off_chart([task], {}) is None  # nobody's weights are known
