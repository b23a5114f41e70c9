import html
import re
from dataclasses import replace

import pytest
from html_pages import Page
from sample_reports import sample_report

from amlb_ext.report.page import (
    MANY_TASKS,
    render_page,
)
from amlb_ext.report.tables import ranking_sentence, score_pivots
from amlb_ext.report.text import report_text

HOSTILE = (
    "<script>alert(1)</script>",
    "{{7*7}}\"' </script><img src=x onerror=alert(1)> {% raw %}",
    "c" * 200,
)
LINKS = {"Contrasts": "contrasts.csv", "<b>All</b>": "a folder/scores.csv"}


def many_tasks():
    """One task more than stand open, of which the first alone has charts: these take the time."""
    report = sample_report(MANY_TASKS + 1, jobs=45)
    first, *others = report.tasks
    return replace(
        report, tasks=(first, *(replace(task, charts=()) for task in others))
    )


@pytest.fixture(scope="module")
def reports():
    return {
        "one": sample_report(1),
        "hostile": sample_report(3, names=HOSTILE),
        "many": many_tasks(),
        "without results": sample_report(2, results=False),
        "empty": sample_report(0, results=False),
    }


@pytest.fixture(scope="module")
def texts(reports):
    return {name: render_page(report, LINKS) for name, report in reports.items()}


CASES = ("one", "hostile", "many", "without results", "empty")


@pytest.fixture(params=CASES)
def text(request, texts):
    return texts[request.param]


def test_the_document_is_well_formed_and_in_order(text):
    found = Page(text)
    assert not found.open
    assert text.lstrip().startswith("<!DOCTYPE html>")
    assert found.all("html")[0]["lang"] == "en"
    assert len(found.all("h1")) == len(found.all("main")) == 1
    assert found.tags.index(("title", {})) < found.tags.index(("body", {}))
    assert found.headings[0] == 1
    assert all(
        b <= a + 1 for a, b in zip(found.headings, found.headings[1:], strict=False)
    )


def test_ids_are_unique_and_every_link_has_a_target(text):
    found = Page(text)
    ids = [a["id"] for _, a in found.tags if "id" in a]
    assert len(ids) == len(set(ids))
    inside = [a["href"][1:] for a in found.all("a") if a["href"].startswith("#")]
    named = [
        name for _, a in found.tags for name in a.get("aria-labelledby", "").split()
    ]
    assert inside
    assert set(inside) | set(named) <= set(ids)
    assert not [a for _, a in found.tags if a.get("aria-labelledby") == ""]


def test_nothing_is_loaded(text):
    found = Page(text)
    policy = next(a["content"] for a in found.all("meta") if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy
    assert not {tag for tag, _ in found.tags} & {
        "img",
        "link",
        "iframe",
        "object",
        "embed",
        "base",
    }
    for tag, attributes in found.tags:
        assert "src" not in attributes, tag
        for name in attributes:
            assert not name.startswith("on"), (tag, name)
        href = attributes.get("href", "#")
        assert not re.match(r"[a-z]+:|//", href), href
        assert "http" not in attributes.get("style", "")
    styles = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert not re.search(r"url\(|@import", "".join(styles))


def test_every_table_tells_what_it_is(text):
    found = Page(text)
    assert len(found.all("caption")) == len(found.all("table"))
    assert all("scope" in a for a in found.all("th"))
    assert all(a.get("aria-label") for _, a in found.tags if a.get("class") == "scroll")
    assert all(
        a.get("tabindex") == "0" for _, a in found.tags if a.get("class") == "scroll"
    )
    assert len(found.all("figcaption")) == len(found.all("figure"))


def test_what_is_not_known_is_not_called_nan(text):
    words = " ".join(Page(text).words)
    assert not re.search(r"\b(nan|NaN|NaT|None|inf)\b|<NA>", words)


def test_names_of_users_are_text(texts):
    text = texts["hostile"]
    found = Page(text)
    words = " ".join(found.words)
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "49" not in re.findall(r"\{?\{?7\*7\}?\}?|\b49\b", words)
    for name in HOSTILE:
        assert name in words
    assert html.escape(HOSTILE[0]) in text


def test_the_answer_stands_first(texts):
    """The matrix is the first table, its marks have words, and names break between words."""
    text = texts["one"]
    first = text[text.index("<table") : text.index("</table>")]
    assert 'class="matrix"' in first
    assert "Best shown" in first
    assert first.count('aria-hidden="true"') == first.count(
        'class="unseen">'
    ) - first.count("where F fails</span>")
    assert "Random<wbr>Forest" in first
    assert texts["empty"].count('class="matrix"') == 0


def test_words_are_explained_by_the_glossary_alone(reports, texts):
    found = Page(texts["one"])
    words = [a["href"][1:] for a in found.all("a") if a.get("class") == "term"]
    glossary = reports["one"].glossary
    keys = {f"term-{key}" for key in glossary}
    for section in glossary.values():
        keys |= {f"term-{key}" for key in section.terms}
        for _, explanation in section.terms.values():
            assert texts["one"].count(html.escape(explanation)[:60]) <= 1
    assert set(words) <= keys
    assert {"term-region", "term-null", "term-adjusted", "term-verdicts"} <= set(words)


def test_hostile_downloads_are_escaped(texts):
    links = [
        a["href"] for a in Page(texts["one"]).all("a") if not a["href"].startswith("#")
    ]
    assert links == ["contrasts.csv", "a%20folder/scores.csv"]
    assert "&lt;b&gt;All" in texts["one"]
    script = render_page(sample_report(0, results=False), {"x": "javascript:alert(1)"})
    assert 'href="javascript%3Aalert%281%29"' in script


def test_a_page_is_small(reports, texts):
    assert len(texts["one"]) < 300_000
    # one of all tasks, four of this; ranks were not tested
    assert len(Page(texts["one"]).all("svg")) == 5


def test_many_tasks_are_folded_one_task_is_not(texts):
    many, one = Page(texts["many"]), Page(texts["one"])
    folds = [a for a in many.all("details") if a.get("class") == "fold"]
    assert len(folds) == MANY_TASKS + 1
    assert ["open" in a for a in folds] == [True] + MANY_TASKS * [False]
    assert any(a.get("id") == "filter" for a in many.all("input"))
    assert not [a for a in one.all("details") if a.get("class") == "fold"]
    assert not one.all("input")
    # 45 jobs are grouped
    assert "45 jobs have no usable score" in texts["many"]


def test_only_real_rows_have_a_best_framework():
    task = sample_report(1).tasks[0]
    tables = list(score_pivots(task))
    assert [table["metric"] for table in tables] == ["auc", "logloss", "balacc"]
    assert list(tables[0]["parts"])[:3] == ["full", "region", "bad"]
    for table in tables:
        cells = {name: cells for name, cells in table["rows"]}
        for part in table["parts"]:
            best = [
                name for name, row in cells.items() if part in row and row[part]["best"]
            ]
            assert len(best) == (part in ("full", "region"))
        scores = task.scores[
            (task.scores["metric"] == table["metric"]) & (task.scores["part"] == "full")
        ].set_index("framework")
        assert scores["folds"].eq(task.folds).sum() == len(scores) - 1
        scores = scores.loc[scores["folds"] == task.folds, "value"]
        expected = scores.idxmin() if table["metric"] == "logloss" else scores.idxmax()
        assert cells[expected]["full"]["best"]


def test_counts_are_said_where_rows_are_counted(reports):
    report = reports["without results"]
    first, *others = report.tasks
    changed = replace(first, left_out=3, replaced={"town<i>": 12, "size": 1})
    both = [
        " ".join(render_page(replace(report, tasks=(changed, *others)), {}).split())
    ]
    both.append(
        " ".join(report_text(replace(report, tasks=(changed, *others))).split())
    )
    for text in both:
        assert "3 test rows whose class no training row has are left out." in text
        assert (
            "13 test cells whose value no training row has are replaced, by column:"
            in text
        )
        assert "size 1." in text
    assert "town&lt;i&gt; 12" in both[0]
    assert "town<i>" not in both[0]


@pytest.mark.parametrize(
    ("verdict", "composition", "said"),
    [
        ("describe", ("weighted",), "Decide on full; no ranking rests on bad, ga"),
        ("rank", ("weighted", "synthetic"), "full; synthetic, evaluation are"),
        (
            "describe",
            ("bad", "synthetic"),
            "rests on bad, ga, synthetic, evaluation, wh",
        ),
    ],
)
def test_where_models_may_be_ranked(verdict, composition, said):
    """The whole folds decide; other parts where they are shown to order models as well."""
    task = sample_report(1).tasks[0]
    task = replace(
        task,
        certificate=replace(task.certificate, verdict=verdict),
        composition=composition,
    )
    assert said in ranking_sentence(task)


def test_of_many_tasks_the_text_has_a_few_lines_each(reports):
    whole = report_text(reports["one"]).splitlines()
    many = report_text(reports["many"]).splitlines()
    assert len(many) < (MANY_TASKS + 1) * 14 + 60 < (MANY_TASKS + 1) * len(whole)
    # what decides is told all the same
    answers = [line for line in many if re.search("[✓✗?…–] ", line)]
    assert all(
        any(line.startswith(task.title) for line in answers)
        for task in reports["many"].tasks
    )
    # the only note is that of the report
    assert sum("note:" in line for line in many) == 1


def test_tasks_stand_in_the_order_of_the_answer(reports):
    """Those on which F is beaten come first, wherever they stand in the suite."""
    report = reports["many"]
    *others, last = report.tasks
    better = last.contrasts.assign(verdict="better", relative=-0.9)
    beaten = replace(last, contrasts=better)
    text = render_page(replace(report, tasks=(*others, beaten)), {})
    headings = re.findall(r'<h3 id="task-[^"]*">(.*?)</h3>', text)
    assert headings[0] == last.name
    assert sorted(headings) == sorted(task.name for task in report.tasks)


def test_controls_and_frameworks_without_all_folds_are_never_the_best():
    task = sample_report(1).tasks[0]
    scores = task.scores.copy()
    perfect = {"lower": 0.0, "higher": 1.0}
    for name, folds in (("FLAML", 2), ("H2OAutoML", 3)):
        at = scores["framework"] == name
        scores.loc[at, "value"] = scores.loc[at, "direction"].map(perfect)
        scores.loc[at, "folds"] = folds
    scores["framework"] = scores["framework"].replace("H2OAutoML", "HardsynthNull")
    for table in score_pivots(replace(task, scores=scores)):
        rows = dict(table["rows"])
        for name in ("FLAML", "HardsynthNull"):
            assert not any(entry["best"] for entry in rows[name].values())
        for part in ("full", "region"):
            assert sum(row[part]["best"] for row in rows.values()) == 1
