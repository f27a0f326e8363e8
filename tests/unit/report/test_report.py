"""The report of a release: right numbers, safe and self-contained HTML, the same bytes every time."""

from __future__ import annotations

import colorsys
import itertools
import re
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sfumato.evaluation.intervals import make_score, paired_test
from sfumato.evaluation.metrics import ACCURACY, ERROR
from sfumato.evaluation.result import Evaluation, ModelScore
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.publishing import publish
from sfumato.recoding.axis import distinct_boxes
from sfumato.recoding.cuts import Cuts
from sfumato.recoding.tree import OrderedAxis, Recoding, TreeAxis
from sfumato.release.release import Release
from sfumato.report import distributions, partition_plot, pictures, plot_axis, promises_of, render, utility
from sfumato.report import groups as facts
from sfumato.report import rows as view
from sfumato.report.loss import loss_of, percent
from sfumato.report.page import share
from sfumato.table import stored as filed_rows
from sfumato.table import write
from sfumato.table.opening import open_table
from sfumato.table.stored import FiledRows
from sfumato.verify import cells as verify_cells
from sfumato.verify.measure import examine

VOID = {"meta", "br", "link", "img", "input", "hr", "wbr"}
NASTY = (
    "<script>alert(1)</script>",
    "</title></svg><b>bold",
    "quote\"'s & co",
    "漢字 Ünïcödé 🎨",
    "long " * 40,
)


class Page(HTMLParser):
    """The elements of a page with their attributes, its text, and whether every element is closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.misnested: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.misnested.append(tag)
        if tag in ("td", "th", "dt", "dd"):
            self.text += " "

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.text += data

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]

    def words(self):
        return " ".join(self.text.split())


def people(n_rows=600, seed=7) -> pa.Table:
    random = np.random.default_rng(seed)
    age = np.rint(random.normal(45, 15, n_rows).clip(0, 99)).astype(np.int64)
    return pa.table(
        {
            "id": pa.array([f"p{i}" for i in range(n_rows)]),
            "age": pa.array(age, mask=random.random(n_rows) < 0.05),
            "zip": random.choice(["02138", "02139", "53711", "53715", "60601"], n_rows),
            "sex": random.choice(["f", "m"], n_rows),
            "disease": random.choice(["flu", "cold", "asthma", "gout"], n_rows),
            "charge": random.integers(10, 1000, n_rows),
        }
    )


def policy(require=None, *, output="labels", **roles) -> Policy:
    attributes = {
        "id": {"role": "identifier"},
        "age": {"role": "quasi-identifier", "type": "number", "bounds": [0, 110], "step": 1},
        "zip": {"role": "quasi-identifier", "hierarchy": {"mask": 5}},
        "sex": {"role": "quasi-identifier"},
        "disease": {"role": "sensitive"},
        "charge": {"role": "other", "type": "number", "passes": "unique"},
    }
    attributes |= roles
    return Policy.from_dict(
        {
            "attributes": attributes,
            "require": [{"k-anonymity": 5}] if require is None else require,
            "output": {"values": output},
        }
    )


def release_of(require=None, **options) -> Release:
    return publish(people(), policy(require, **options), seed=1)


def grid_release(n_rows=300, *, k=5, columns=("x", "y")) -> Release:
    """Nothing but numbers, so that all splits are on the columns named."""
    random = np.random.default_rng(3)
    rows = pa.table({name: random.integers(0, 100, n_rows) for name in columns})
    attributes = {name: {"role": "quasi-identifier", "type": "number"} for name in columns}
    return publish(
        rows, Policy.from_dict({"attributes": attributes, "require": [{"k-anonymity": k}]}), seed=1
    )


def groups_of(release: Release) -> facts.PublishedGroups:
    recoding = release.recoding if isinstance(release.recoding, Recoding | Cuts) else None
    return facts.groups_of(open_table(release.rows), release.policy, recoding)


def plane_of(release: Release) -> partition_plot.Plane:
    leaves = groups_of(release).leaves
    assert leaves is not None
    found = partition_plot.plane_of(leaves)
    assert found is not None
    return found


# ---- the page ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def release() -> Release:
    return release_of([{"k-anonymity": 5}, {"entropy-diversity": {"l": 1.5, "of": "disease"}}])


@pytest.fixture(scope="module")
def page(release) -> Page:
    return Page(render(release))


def test_every_element_is_closed_in_order(page):
    assert not page.misnested
    assert not page.open


def test_the_report_has_one_title_and_a_heading_for_each_section(page):
    assert len(page.all("h1")) == 1
    assert len(page.all("section")) == len(page.all("h2")) >= 7
    titles = {attrs["id"] for attrs in page.all("h2")}
    assert all(attrs["aria-labelledby"] in titles for attrs in page.all("section"))


def test_every_picture_has_words_for_those_who_cannot_see_it(page):
    drawings = page.all("svg")
    assert len(drawings) >= 4
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in drawings)


def test_every_table_header_says_what_it_heads(page):
    assert page.all("th")
    assert all(attrs.get("scope") in ("col", "row") for attrs in page.all("th"))


def test_nothing_is_fetched_and_nothing_runs(release):
    html = render(release)
    found = Page(html)
    assert not found.all("script")
    assert not found.all("link")
    assert not re.search(r"https?://|url\(|@import|\ssrc=|javascript:", html)
    anchors = {attrs["id"] for _, attrs in found.elements if "id" in attrs}
    assert all(attrs["href"].removeprefix("#") in anchors for attrs in found.all("a"))
    assert not [attrs for _, attrs in found.elements if any(name.startswith("on") for name in attrs)]


def test_the_pictures_are_well_formed_xml(release):
    html = render(release)
    drawings = re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL)
    assert len(drawings) == len(Page(html).all("svg"))
    for drawing in drawings:
        ET.fromstring(drawing)


def test_the_same_release_gives_the_same_bytes(release):
    again = release_of([{"k-anonymity": 5}, {"entropy-diversity": {"l": 1.5, "of": "disease"}}])
    assert render(release) == render(release) == render(again)


@pytest.mark.parametrize("output", ["labels", "bounds", "both"])
@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_a_release_read_from_its_folder_gives_the_report_that_lies_in_it(tmp_path, output, file_format):
    made = publish(people(), policy(output=output), seed=1, file_format=file_format)
    made.write(tmp_path / "out")
    read = Release.read(tmp_path / "out")
    assert (tmp_path / "out" / "report.html").read_text(encoding="utf-8") == render(read)


def test_labels_and_names_that_look_like_html_are_shown_as_text():
    random = np.random.default_rng(5)
    name = '<b>col</b> & "co"'
    rows = pa.table(
        {
            name: random.choice(np.array(NASTY, dtype=object), 400),
            "y": random.choice(["<img src=x onerror=alert(1)>", "plain"], 400),
            "<i>": random.choice(["<u>", "&amp;"], 400),
        }
    )
    attributes = {
        name: {"role": "quasi-identifier", "missing-values": ["<hr>"]},
        "y": {"role": "quasi-identifier"},
        "<i>": {"role": "sensitive"},
    }
    require = [{"k-anonymity": 2}, {"entropy-diversity": {"l": 1, "of": "<i>"}}]
    html = render(publish(rows, Policy.from_dict({"attributes": attributes, "require": require}), seed=1))
    found = Page(html)
    assert not {"script", "img", "b", "u", "hr"} & {tag for tag, _ in found.elements}
    assert not found.misnested
    assert "<script>alert(1)</script>" in found.text
    assert name in found.text
    assert "漢字" in found.text
    for drawing in re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL):
        ET.fromstring(drawing)


def test_control_characters_of_a_label_do_not_reach_the_page():
    rows = pa.table({"x": ["a\x00\x1b", "b\u202e", "c"] * 10, "y": ["1", "2", "3"] * 10})
    given = {"attributes": {"x": {"role": "quasi-identifier"}, "y": {"role": "other"}}, "require": []}
    html = render(publish(rows, Policy.from_dict(given), seed=1))
    assert not set("\x00\x1b\u202e") & set(html)
    assert "a\ufffd\ufffd" in html


# ---- promises ----------------------------------------------------------------------------------------


def test_every_requirement_stands_with_what_was_asked_and_achieved(page, release):
    words = page.words()
    claims = release.certificate.claims.requirements
    for promise, claim in zip(promises_of(release), claims, strict=True):
        assert promise.holds
        assert f"{promise.name} ✓ holds {promise.asked} {promise.achieved} {promise.margin}" in words
        assert f"{claim.achieved:.4g}" in promise.achieved
    assert "Both promises hold for all 600 rows." in words
    assert "does not hold" not in words


@pytest.mark.parametrize(
    ("requirement", "achieved", "holds"),
    [
        ({"k-anonymity": 5}, 5.0, True),
        ({"k-anonymity": 5}, 4.0, False),
        ({"entropy-diversity": {"l": 2, "of": "disease"}}, 2.0 - 1e-15, True),
        ({"entropy-diversity": {"l": 2, "of": "disease"}}, 1.9, False),
        ({"recursive-diversity": {"c": 2, "l": 2, "of": "disease"}}, 1.9, True),
        ({"recursive-diversity": {"c": 2, "l": 2, "of": "disease"}}, 2.1, False),
        ({"recursive-diversity": {"c": 2, "l": 2, "of": "disease"}}, float("inf"), False),
        ({"recursive-diversity": {"c": 2, "l": 1, "of": "disease"}}, 9.0, True),
        ({"variance-diversity": {"at-least": 100, "of": "pain"}}, 100.0, True),
        ({"variance-diversity": {"at-least": 100, "of": "pain"}}, 99.0, False),
        ({"variance-diversity": {"at-least": 0, "of": "pain"}}, 0.0, True),
    ],
)
def test_a_claimed_figure_is_held_against_what_was_asked(release, requirement, achieved, holds):
    pain = {"pain": {"role": "sensitive", "type": "number"}}
    asked = policy([requirement], **pain)
    claim = replace(release.certificate.claims.requirements[0], requirement=requirement, achieved=achieved)
    claims = replace(release.certificate.claims, requirements=(claim,))
    stated = replace(release, policy=asked, certificate=replace(release.certificate, claims=claims))
    (promise,) = promises_of(stated)
    assert promise.holds is holds
    words = Page(render(stated)).words()
    assert ("1 of 1 promises do not hold" in words) is not holds
    assert ("Do not publish" in words) is not holds


def test_a_release_without_requirements_says_that_nothing_is_promised():
    words = Page(render(release_of([]))).words()
    assert words.count("Nothing is promised") >= 2
    assert "holds" not in words.split("What is promised")[1].split("A Mondrian")[0]


def test_a_row_that_is_alone_is_not_said_to_have_company():
    words = Page(render(publish(people(40), policy([]), seed=1))).words()
    assert "At least one row is alone with its quasi-identifiers." in words
    assert "shares its quasi-identifiers" not in words


# ---- groups and attributes ---------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["labels", "bounds", "both"])
@pytest.mark.parametrize("is_shuffled", [False, True])
def test_groups_are_the_rows_that_agree_in_their_quasi_identifiers(output, is_shuffled):
    made = release_of(output=output)
    if is_shuffled:
        made = replace(made, rows=made.rows.take(np.random.default_rng(1).permutation(made.rows.num_rows)))
    names = [name for name in made.rows.column_names if name.split("_")[0] in ("age", "zip", "sex")]
    counted = Counter(zip(*(made.rows.column(name).to_pylist() for name in names), strict=True))
    groups = groups_of(made)
    assert sorted(groups.size.tolist()) == sorted(counted.values())
    assert len(groups.size) == made.certificate.claims.groups
    assert groups.leaves is not None
    assert sorted(groups.leaves.rows.tolist()) == sorted(counted.values())


def test_levels_of_detail_are_those_of_the_published_cells(release):
    source = open_table(release.rows)
    told = facts.attributes_of(
        release.policy, source, source, groups_of(release), facts.details_of(release.policy, source, None), {}
    )
    found = {fact.attribute.name: fact for fact in told}
    for name in ("age", "zip", "sex"):
        cells = release.rows.column(name).to_pylist()
        expected = Counter(level_of(cell) for cell in cells)
        assert dict(zip(facts.LEVELS, found[name].levels, strict=True)) == {
            level: expected[level] for level in facts.LEVELS
        }
        assert sum(found[name].levels) == release.rows.num_rows
        assert found[name].n_distinct == len(set(cells) - {None})
        assert found[name].n_splits == release.recoding.n_splits()[name]
    hidden = sum("or missing" in (cell or "") for cell in release.rows.column("age").to_pylist())
    assert found["age"].n_hidden == hidden
    assert found["id"].happened == "removed"
    assert found["disease"].happened == found["charge"].happened == "published as it is"
    assert found["disease"].n_distinct == 4


def level_of(cell: str | None) -> str:
    """By the look of the cell alone."""
    if cell is None:
        return "missing"
    if cell in ("*", "*****", "[0, 110]", "[0, 110] or missing"):
        return "nothing (*)"
    return "narrowed" if "*" in cell or "[" in cell or "or missing" in cell else "exact value"


@pytest.mark.parametrize(
    ("given", "values", "exact"),
    [
        (Attribute("x", Role.QUASI_IDENTIFIER), ["a", "b"], {"a", "b"}),
        (Attribute("x", Role.QUASI_IDENTIFIER, hierarchy={"mask": 2}), ["53", "54"], {"53", "54"}),
        (
            Attribute("x", Role.QUASI_IDENTIFIER, Kind.DATE, hierarchy={"dates": ["day", "year"]}),
            np.array(["2024-03-05"], dtype="datetime64[D]"),
            {"2024-03-05"},
        ),
        (
            Attribute("x", Role.QUASI_IDENTIFIER, Kind.DATE, hierarchy={"dates": ["month", "year"]}),
            np.array(["2024-03-05"], dtype="datetime64[D]"),
            set(),
        ),
        (
            Attribute("x", Role.QUASI_IDENTIFIER, Kind.NUMBER, bounds=(0, 4), hierarchy={"intervals": [2]}),
            np.array([1.0]),
            set(),
        ),
        (
            Attribute("x", Role.QUASI_IDENTIFIER, Kind.NUMBER, bounds=(0, 3), hierarchy={"balanced": 2}),
            np.array([1.0]),
            {"0", "1", "2", "3"},
        ),
        (
            Attribute("x", Role.QUASI_IDENTIFIER, hierarchy={"tree": {"*": {"N": ["a", "b"], "c": None}}}),
            ["a"],
            {"a", "b", "c"},
        ),
        (
            Attribute(
                "x", Role.QUASI_IDENTIFIER, hierarchy=Hierarchy.from_tree({"*": {"N": ["a"], "b": None}})
            ),
            ["a"],
            {"a", "b"},
        ),
    ],
    ids=lambda item: str(item.hierarchy) if isinstance(item, Attribute) else "",
)
def test_a_node_is_exact_if_it_is_a_single_value_of_the_column(given, values, exact):
    nodes = given.build_hierarchy(values).with_missing()
    level = [verify_cells.level_of(given)(label) for label in nodes.labels]
    assert {label for label, at in zip(nodes.labels, level, strict=True) if at == verify_cells.EXACT} == exact
    assert level[0] == verify_cells.NOTHING
    assert level[-1] == verify_cells.MISSING


def test_the_report_tells_which_rows_may_hide_a_missing_value(page, release):
    cells = release.rows.column("age").to_pylist()
    hidden = sum("or missing" in (cell or "") for cell in cells)
    assert hidden > 0
    assert f"age {cells.count(None):,} {hidden:,} empty cells" in page.words()


@pytest.mark.parametrize("is_large", [False, True])
def test_declared_texts_count_as_missing_in_columns_that_are_published_as_they_are(monkeypatch, is_large):
    if is_large:
        monkeypatch.setattr(view, "SMALL", 2)
    table = pa.table({"age": [1, 2, 3, 4], "bmi": ["unknown", "21.5", "", "NA"]})
    attributes = {
        "age": {"role": "quasi-identifier", "type": "number"},
        "bmi": {"role": "other", "type": "number", "missing-values": ["unknown", "NA"]},
    }
    made = publish(table, {"attributes": attributes, "require": [{"k-anonymity": 2}]}, seed=1)
    words = Page(made.report).words()
    assert "bmi 3 0 empty cells, unknown, NA" in words
    assert "bmi other published as it is – 1 –" in words


def test_bars_hold_every_group_and_every_row():
    random = np.random.default_rng(2)
    for sizes in (
        [7],
        [5, 5, 9],
        random.integers(10, 20, 500),
        np.append(random.integers(10, 60, 900), 5000),
    ):
        size = np.array(sizes)
        bars = pictures.bars_of(size)
        assert sum(bar.n_groups for bar in bars) == len(size)
        assert sum(bar.n_rows for bar in bars) == size.sum()
        assert len(bars) <= 40
        for bar in bars:
            inside = (size >= bar.first) & (size <= bar.last)
            assert bar.n_groups == inside.sum()
            assert bar.n_rows == size[inside].sum()


def test_the_limits_name_what_is_published_as_it_is(page):
    words = page.words()
    assert "with the role other: charge" in words
    assert "No diversity is required of" not in words
    assert "No diversity is required of disease" in Page(render(release_of())).words()


# ---- the picture -------------------------------------------------------------------------------------


def test_two_split_attributes_give_the_partition_itself():
    made = grid_release()
    found = plane_of(made)
    assert found.is_flat
    assert found.is_whole
    sizes = groups_of(made).size
    assert sorted(round(r.rows) for r in found.rectangles) == sorted(sizes.tolist())
    assert f"Each of the {len(sizes)} rectangles holds one group" in Page(render(made)).words()


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(grid_release, id="two numbers"),
        pytest.param(lambda: grid_release(columns=("x", "y", "z"), n_rows=800), id="three numbers"),
        pytest.param(lambda: grid_release(6000, k=3), id="many groups"),
        pytest.param(lambda: grid_release(columns=("x",)), id="one number"),
        pytest.param(release_of, id="hierarchies and missing values"),
    ],
)
def test_the_rectangles_divide_the_plane_and_hold_every_row_once(made):
    made = made()
    found = plane_of(made)
    across = found.x.place
    up = found.y.place if found.y else np.array([0.0, 1.0])
    sides = np.array([(across[r.left], across[r.right], up[r.bottom], up[r.top]) for r in found.rectangles])
    left, right, bottom, top = sides.T
    assert np.sum((right - left) * (top - bottom)) == pytest.approx(1)
    for i in range(len(sides)):  # no two overlap
        wide = np.minimum(right, right[i]) - np.maximum(left, left[i])
        tall = np.minimum(top, top[i]) - np.maximum(bottom, bottom[i])
        assert np.count_nonzero((wide > 1e-12) & (tall > 1e-12)) == 1
    assert sum(r.rows for r in found.rectangles) == pytest.approx(made.rows.num_rows)
    assert len(found.rectangles) <= max(partition_plot.EXACT.most, partition_plot.ROUGH.most)


def test_a_rectangle_holds_the_rows_whose_boxes_lie_in_it():
    made = grid_release(columns=("x", "y", "z"), n_rows=800)
    leaves = groups_of(made).leaves
    found = partition_plot.plane_of(leaves)
    names = [axis.attribute.name for axis in leaves.recoding.axes]
    a, b = names.index(found.x.name), names.index(found.y.name)
    spans = [
        plot_axis.stretches(leaves.recoding.axes[i], leaves.boxes[i].ends.take(leaves.boxes[i].which))
        for i in (a, b)
    ]
    for r in found.rectangles:
        rows = leaves.rows.astype(np.float64)
        for scale, (first, last), low, high in (
            (found.x, spans[0], r.left, r.right),
            (found.y, spans[1], r.bottom, r.top),
        ):
            inside = np.minimum(last, scale.edges[high]) - np.maximum(first, scale.edges[low])
            rows *= np.clip(inside, 0, None) / (last - first)
        assert r.rows == pytest.approx(rows.sum())


def test_lines_are_where_boxes_begin_or_end():
    found = plane_of(grid_release(columns=("x", "y", "z"), n_rows=800))
    leaves = groups_of(grid_release(columns=("x", "y", "z"), n_rows=800)).leaves
    a = [axis.attribute.name for axis in leaves.recoding.axes].index(found.x.name)
    ends = {*leaves.boxes[a].low.tolist(), *leaves.boxes[a].high.tolist()}
    inner = {float(found.x.edges[r.left]) - 0.5 for r in found.rectangles if r.left > 0}
    assert inner
    assert inner <= ends


def test_the_darker_the_rectangle_the_more_rows_per_area():
    found = plane_of(release_of())
    drawing = ET.fromstring(pictures.paint(found).picture)
    shapes = [shape for shape in drawing.iter("rect") if shape.find("title") is not None]
    assert len(shapes) == len(found.rectangles)
    densest: dict[str | None, list[float]] = {colour: [] for colour in pictures.PALETTE}
    for shape, rectangle in zip(shapes, found.rectangles, strict=True):
        area = float(shape.get("width")) * float(shape.get("height"))
        densest[shape.get("fill")].append(rectangle.rows / area)
    used = [np.array(densest[colour]) for colour in pictures.PALETTE if densest[colour]]
    assert len(used) >= 3
    for lighter, darker in itertools.pairwise(used):
        assert lighter.max() <= darker.min() * 1.01  # coordinates are rounded


def test_a_table_that_cannot_be_split_gets_words_instead_of_a_picture():
    rows = pa.table({"x": ["1", "2"], "s": ["a", "b"]})
    given = {
        "attributes": {"x": {"role": "quasi-identifier", "type": "number"}, "s": {"role": "sensitive"}},
        "require": [{"k-anonymity": 2}],
    }
    found = Page(render(publish(rows, Policy.from_dict(given), seed=1)))
    assert "No attribute was split: all rows are one group" in found.words()
    assert not [attrs for attrs in found.all("svg") if attrs["class"] == "painting"]


def test_one_split_attribute_is_drawn_as_stripes():
    made = grid_release(columns=("x",))
    assert plane_of(made).y is None
    assert "Only x was split" in Page(render(made)).words()


def test_a_release_without_recoding_still_gets_its_figures(release):
    words = Page(render(replace(release, recoding=None))).words()
    assert "There is no picture" in words
    assert f"{release.certificate.claims.groups:,} groups" in words
    assert "sfumato apply" not in words


def test_rows_that_do_not_fit_the_recoding_get_no_picture(release):
    other = publish(people(seed=8), policy(), seed=1)
    assert groups_of(replace(release, rows=other.rows)).leaves is None
    assert "There is no picture" in Page(render(replace(release, rows=other.rows))).words()


def test_crowded_parts_of_a_skewed_number_are_drawn_wider():
    income = np.rint(np.random.default_rng(3).lognormal(9, 2, 500))
    given = {
        "attributes": {"income": {"role": "quasi-identifier", "type": "number"}},
        "require": [{"k-anonymity": 5}],
    }
    made = publish(pa.table({"income": income}), Policy.from_dict(given), seed=1)
    scale = plane_of(made).x
    assert not scale.is_even
    assert scale.at(float(np.median(income))) > 0.2
    assert "Crowded parts of income are drawn wider" in Page(render(made)).words()


# ---- labels of the sides -----------------------------------------------------------------------------


def ordered(low, high, *, grid=1.0, kind=Kind.NUMBER, has_missing=False) -> plot_axis.PlotAxis:
    axis = OrderedAxis(Attribute("x", Role.QUASI_IDENTIFIER, kind), low, high, grid, has_missing)
    whole = distinct_boxes(np.array([np.nan]), np.array([np.inf]), np.array([has_missing]))
    return partition_plot._Side.of(axis, whole, np.array([1])).scale


def test_numbers_are_labelled_at_round_values():
    assert [tick.label for tick in plot_axis.ticks_of(ordered(0, 110), most=8)] == [
        "0",
        "20",
        "40",
        "60",
        "80",
        "100",
    ]
    assert [tick.label for tick in plot_axis.ticks_of(ordered(0, 1, grid=None), most=5)][1] == "0.2"
    assert [tick.label for tick in plot_axis.ticks_of(ordered(3, 5), most=9)] == ["3", "4", "5"]


@pytest.mark.parametrize(
    ("first", "last", "label"),
    [
        ("2024-01-01", "2024-01-06", "2024-01-02"),
        ("2023-01-01", "2024-12-31", "2023-07"),
        ("1920-05-01", "2020-05-01", "1940"),
    ],
)
def test_dates_are_labelled_at_the_beginning_of_periods(first, last, label):
    low, high = (int(np.datetime64(day, "D").astype(np.int64)) for day in (first, last))
    labels = [tick.label for tick in plot_axis.ticks_of(ordered(low, high, kind=Kind.DATE), most=9)]
    assert label in labels
    assert 2 <= len(labels) <= 9


def test_labels_below_a_picture_do_not_lie_on_each_other():
    low, high = (float(np.datetime64(day, "D").astype(np.int64)) for day in ("2023-01-01", "2024-12-31"))
    axis = OrderedAxis(Attribute("day", Role.QUASI_IDENTIFIER, Kind.DATE), low, high, 1.0, has_missing=False)
    edges = np.linspace(low - 0.5, high + 0.5, 44)
    svg = distributions.draw_density("day", distributions.Density(axis, edges, np.ones(43)))
    ticks = re.findall(r'<text x="([0-9.]+)"[^>]*text-anchor="(\w+)"[^>]*>([^<]+)</text>', svg)
    assert len(ticks) >= 3
    share = {"start": 0.0, "middle": 0.5, "end": 1.0}
    ends = [
        (float(x) - share[anchor] * 7.0 * len(label), float(x) + (1 - share[anchor]) * 7.0 * len(label))
        for x, anchor, label in ticks
    ]
    assert all(right < left for (_, right), (left, _) in itertools.pairwise(ends))


def test_missing_has_its_own_strip_before_the_first_value():
    found = plot_axis.ticks_of(ordered(0, 110, has_missing=True), most=8)
    assert found[0].label == "missing"
    assert 0 < found[0].place < 0.05


@pytest.mark.parametrize(("n_branches", "n_labels"), [(1, 20), (5, 5), (20, 20), (500, 20)])
def test_labels_of_a_hierarchy_do_not_collide(n_branches, n_labels):
    branches = {f"g{i}": [f"v{i}.{j}" for j in range(20)] for i in range(n_branches)}
    nodes = Hierarchy.from_tree({"*": branches})
    axis = TreeAxis(Attribute("x", Role.QUASI_IDENTIFIER), nodes, False)
    whole = distinct_boxes(np.array([0.0]), np.array([np.inf]), np.array([False]))
    scale = partition_plot._Side.of(axis, whole, np.array([1])).scale
    places = [tick.place for tick in plot_axis.ticks_of(scale, most=20)]
    assert places == sorted(places)
    assert np.all(np.diff(places) >= 1 / 20 - 1e-9)
    assert len(places) == n_labels


def test_a_rectangle_says_its_values_in_words():
    scale = ordered(0, 110, has_missing=True)
    assert scale.text(0, len(scale.edges) - 1) == "0 to 110 or missing"
    assert scale.text(0, 1) == "missing"
    assert scale.text(1, 2) == "0 to 110"
    nodes = Hierarchy.from_tree({"*": {"North": ["a", "b"], "South": ["c"]}}).with_missing()
    tree = plot_axis.PlotAxis(
        TreeAxis(Attribute("x", Role.QUASI_IDENTIFIER), nodes, True),
        np.arange(5.0),
        np.linspace(0, 1, 5),
        True,
    )
    assert [tree.text(0, 2), tree.text(1, 3), tree.text(3, 4), tree.text(0, 4)] == [
        "North",
        "b … c",
        "missing",
        "*",
    ]


# ---- distributions -----------------------------------------------------------------------------------


def distribution(release: Release, name: str):
    shown = view.view_of(release.rows, release.policy, release.format)
    found = distributions.distributions_of(release.policy, shown, groups_of(release))
    return next(item for item in found if item.attribute.name == name)


def one_split() -> Release:
    """Ten rows that are 0 and ten from 10 to 19: two boxes, with nothing between them."""
    rows = pa.table({"x": [0] * 10 + list(range(10, 20))})
    attributes = {"x": {"role": "quasi-identifier", "type": "number"}}
    asked = {"require": [{"k-anonymity": 10}], "method": {"mondrian": {"refine": "none"}}}
    return publish(rows, Policy.from_dict({"attributes": attributes, **asked}), seed=1)


def test_rows_of_a_box_are_spread_evenly_over_it():
    release = one_split()
    assert set(release.rows.column("x").to_pylist()) == {"0", "[10, 19]"}
    shape = distribution(release, "x").shape
    assert shape.edges.tolist() == [i - 0.5 for i in range(21)]
    assert shape.rows[0] == pytest.approx(10)
    assert shape.rows[1:] == pytest.approx([0] * 9 + [1] * 10)


@pytest.mark.parametrize("output", ["labels", "bounds", "both"])
def test_every_row_is_drawn_missing_or_far(output):
    release = release_of(output=output)
    age = distribution(release, "age").shape
    assert age.rows.sum() + age.n_missing + age.n_far == pytest.approx(600)
    charge = distribution(release, "charge").shape
    assert charge.rows.sum() + charge.n_far == 600
    cells = np.array(release.rows.column("charge").to_pylist())
    assert charge.rows.tolist() == np.histogram(cells, charge.edges)[0].tolist()
    disease = distribution(release, "disease").shape
    assert dict(disease.rows) == Counter(release.rows.column("disease").to_pylist())


def test_labels_are_counted_as_published():
    release = release_of()
    labels = distribution(release, "zip").shape
    assert dict(labels.rows) == Counter(release.rows.column("zip").to_pylist())
    counts = [n for _, n in labels.rows]
    assert counts == sorted(counts, reverse=True)


def test_many_labels_are_summed_up():
    random = np.random.default_rng(1)
    rows = pa.table({"x": [0] * 300, "job": [f"j{i}" for i in random.integers(0, 30, 300)]})
    attributes = {"x": {"role": "quasi-identifier", "type": "number"}, "job": {"role": "other"}}
    release = publish(rows, Policy.from_dict({"attributes": attributes, "require": []}), seed=1)
    shape = distribution(release, "job").shape
    assert len(shape.rows) == distributions.MOST_LABELS
    assert sum(n for _, n in shape.rows) + shape.n_rows_of_others == 300
    assert shape.n_others == 30 - distributions.MOST_LABELS
    assert shape.rows[-1][1] >= 300 / 30 - 3
    assert "20 more labels, together" in Page(render(release)).words()


def test_the_periods_of_a_date_stand_in_their_order():
    random = np.random.default_rng(1)
    days = np.datetime64("2020-01-01") + random.integers(0, 900, 400)
    attributes = {
        "x": {"role": "quasi-identifier", "type": "date", "hierarchy": {"dates": ["quarter", "year"]}}
    }
    release = publish(
        pa.table({"x": pa.array(days)}),
        Policy.from_dict({"attributes": attributes, "require": [{"k-anonymity": 5}]}),
        seed=1,
    )
    labels = [label for label, _ in distribution(release, "x").shape.rows]
    assert len(labels) > 5
    assert labels == sorted(labels)


def test_a_few_far_rows_do_not_squeeze_the_others():
    values = [*range(100), 10**6]
    attributes = {"x": {"role": "quasi-identifier"}, "y": {"role": "other", "type": "number"}}
    policy_ = Policy.from_dict({"attributes": attributes, "require": []})
    release = publish(pa.table({"x": ["a"] * 303, "y": values * 3}), policy_, seed=1)
    shape = distribution(release, "y").shape
    assert shape.n_far == 0  # three rows of 303 are not few
    release = publish(pa.table({"x": ["a"] * 1001, "y": [*values[:-1]] * 10 + [10**6]}), policy_, seed=1)
    shape = distribution(release, "y").shape
    assert shape.n_far == 1
    assert shape.edges[-1] < 110
    assert "1 row farther out" in Page(render(release)).words()


@pytest.mark.parametrize(
    "values",
    [
        [-1.7e308, 1.7e308, 0.0],
        [5e-324, 0.0, 1e-323],
        [1e15 + 0.5, 1e15],
        [float(2**53), float(2**60), 1.0],
        [0.1],
        [None],
        [-0.0, 0.0],
        [1e-300, 1e300],
    ],
)
def test_numbers_of_any_size_are_drawn(values):
    attributes = {"x": {"role": "quasi-identifier"}, "y": {"role": "other", "type": "number"}}
    rows = pa.table({"x": ["a"] * len(values), "y": pa.array(values, pa.float64())})
    release = publish(rows, Policy.from_dict({"attributes": attributes, "require": []}), seed=1)
    page = Page(render(release))
    assert not page.misnested
    shape = distribution(release, "y").shape
    if isinstance(shape, distributions.Density):
        assert shape.rows.sum() + shape.n_far == len(values)
    else:
        assert shape.rows == ((None, 1),)


@pytest.mark.parametrize(
    "values", [[-(2.0**52), 2.0**52], [5e-324, 0.0], [1.5, 1.5], [None, 2.5], [None, None]]
)
def test_boxes_of_any_size_are_drawn(values):
    attributes = {"x": {"role": "quasi-identifier", "type": "number"}}
    rows = pa.table({"x": pa.array(values * 3, pa.float64())})
    release = publish(
        rows, Policy.from_dict({"attributes": attributes, "require": [{"k-anonymity": 2}]}), seed=1
    )
    shape = distribution(release, "x").shape
    if isinstance(shape, distributions.Density):
        assert shape.rows.sum() + shape.n_missing == pytest.approx(6)
    assert not Page(render(release)).misnested


def test_a_release_without_recoding_is_counted_by_its_labels(release):
    bare = replace(release, recoding=None)
    assert dict(distribution(bare, "age").shape.rows)
    assert "What the published columns look like" in Page(render(bare)).words()


def test_a_wide_table_is_not_drawn_to_the_end():
    columns = {f"c{i}": {"role": "other"} for i in range(50)} | {"x": {"role": "quasi-identifier"}}
    rows = pa.table({name: ["a", "b"] for name in columns})
    words = Page(
        render(publish(rows, Policy.from_dict({"attributes": columns, "require": []}), seed=1))
    ).words()
    assert f"{51 - distributions.MOST_COLUMNS} more published columns are not drawn" in words


# ---- shared cuts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["labels", "bounds", "both", "summary"])
def test_a_release_by_shared_cuts_is_drawn_as_the_grid_that_it_is(output):
    document = policy(output=output).as_dict() | {"method": "tds", "workload": [{"classify": "disease"}]}
    rows = people()
    age = np.array([-1 if age is None else age for age in rows.column("age").to_pylist()])
    rows = rows.set_column(
        rows.column_names.index("disease"), "disease", pa.array(np.where(age > 45, "flu", "cold"))
    )
    release = publish(rows, Policy.from_dict(document), seed=1)
    assert isinstance(release.recoding, Cuts)
    groups = groups_of(release)
    assert groups.leaves is not None
    assert groups.leaves.rows.sum() == 600
    assert len(groups.leaves.rows) == len(groups.size) == release.certificate.claims.groups > 1
    found = plane_of(release)
    assert sum(rectangle.rows for rectangle in found.rectangles) == pytest.approx(600)
    words = Page(render(release)).words()
    assert "Top-down specialization" in words
    other = release.rows.set_column(
        release.rows.column_names.index("sex"), "sex", pa.array(["neither"] * 600)
    )
    assert groups_of(replace(release, rows=other)).leaves is None


# ---- what it is for ----------------------------------------------------------------------------------


def a_score(data, *test, model="decision-tree", target="disease", metric=ACCURACY):
    return make_score(target, model, data, metric, test, tuple(value + 0.05 for value in test))


def evaluated(release: Release, *scores: ModelScore, protocol=None, **figures) -> Release:
    tests = [
        paired_test(one, other, names=(one.data, other.data), one_sided=other.data == "nothing")
        for one in scores
        for other in scores
        if one.data == "release"
        and other.data != "release"
        and one.target == other.target
        and (one.model == other.model or other.data == "nothing")
    ]
    evaluation = Evaluation(
        {}, protocol or {"folds": 3, "rows": 600, "learners": "weka"}, scores, {"discernibility": 1234.5},
        tuple(filter(None, tests)),
    )  # fmt: skip
    document = {key: value for key, value in evaluation.as_dict().items() if key != "policy"}
    certificate = replace(
        release.certificate, figures={**release.certificate.figures, "utility": document, **figures}
    )
    return replace(release, certificate=certificate)


SCORES = (
    a_score("release", 0.7, 0.72, 0.74),
    a_score("raw", 0.8, 0.81, 0.82),
    a_score("release", 0.6, 0.6, 0.6, model="naive-bayes"),
    a_score("nothing", 0.6, 0.6, 0.6, model="majority"),
)


def test_utility_stands_with_its_spread_and_what_it_is_measured_against(release):
    page = Page(render(evaluated(release, *SCORES)))
    words = page.words()
    assert "Measured by 3-fold cross-validation on 600 rows with models of weka." in words
    assert (
        "From the release, a decision tree predicts right in 72.0 % of the rows held out; from raw rows 81.0 %; "
        "always saying the most frequent class 60.0 %."
    ) in words
    assert "decision tree 60.0 % ± 0.0 72.0 % ± 5.0 81.0 % ± 2.5 77.0 % 57 % p = .005 p = .004" in words
    assert "naive Bayes 60.0 % ± 0.0 60.0 % ± 0.0 – 65.0 % – p = .500 –" in words
    assert "discernibility 1,234.5" in words
    assert (
        "except what the certificate names under its figures: how well the release predicts, and what was lost."
    ) in words
    assert not page.misnested
    assert [attrs for attrs in page.all("svg") if attrs["class"] == "scores"]


def test_scores_of_an_earlier_version_are_shown_without_intervals_and_the_page_says_so(release):
    old = [score.model_copy(update={"half_width": None}) for score in SCORES]
    words = Page(render(evaluated(release, *old))).words()
    assert "of an earlier version, which stored no intervals; evaluate again to see them." in words
    assert "decision tree 60.0 % 72.0 % 81.0 % 77.0 % – p = .005 p = .004" in words
    assert "earlier version" not in Page(render(evaluated(release, *SCORES))).words()


def test_an_error_is_better_the_smaller_it_is(release):
    one = {"metric": ERROR, "target": "charge"}
    scores = [
        a_score("release", 30.0, 31.0, model="regression-tree", **one),
        a_score("release", 20.0, 21.0, model="linear-regression", **one),
        a_score("raw", 10.0, 10.5, model="linear-regression", **one),
        a_score("nothing", 40.0, 40.5, model="linear-regression", **one),
    ]
    html = render(evaluated(release, *scores))
    assert "From the release, linear regression is off by 20.5 on average" in Page(html).words()
    assert "← better" in html
    (target,) = utility.utility_of(evaluated(release, *scores).certificate.figures).targets
    assert target.best.kept == pytest.approx((40.25 - 20.5) / (40.25 - 10.25))


def test_other_metrics_stand_beside_the_leading_one(release):
    others = [
        a_score("release", 0.8, 0.81, 0.82, metric="auc"),
        a_score("raw", 0.9, 0.91, 0.92, metric="auc"),
        a_score("nothing", 0.5, 0.5, 0.5, metric="auc", model="majority"),
        a_score("release", 0.2, 0.21, 0.22, metric="brier"),
    ]
    page = Page(render(evaluated(release, *SCORES, *others)))
    words = page.words()
    assert (
        "Area under the ROC curve Model Nothing Release Raw rows decision tree 0.500 ± 0.000 0.810 ± 0.025"
        in words
    )
    assert (
        "Brier score Model Nothing Release Raw rows decision tree – 0.210 ± 0.025 – The lower, the better."
        in words
    )
    assert words.count("From the release,") == 1
    assert not page.misnested


def test_a_target_that_is_classified_and_regressed_is_drawn_twice(release):
    scores = [a_score("release", 0.99, 1.0, 0.8), a_score("release", 0.3, 0.4, 0.2, metric=ERROR)]
    found = utility.utility_of(evaluated(release, *scores).certificate.figures).targets
    assert [(target.metric, len(target.lines)) for target in found] == [(ACCURACY, 1), (ERROR, 1)]
    for target in found:  # the interval reaches beyond an accuracy of 1
        drawing = ET.fromstring(utility.draw_scores(target))
        (spread,) = drawing.findall("g/path[@class='spread']")
        width = float(drawing.get("viewBox").split()[2])
        assert all(0 <= float(x) <= width for x in re.findall(r"[MH](-?[\d.]+)", spread.get("d")))


def test_a_single_test_table_has_no_spread(release):
    scores = [a_score("release", 0.7), a_score("raw", 0.7), a_score("nothing", 0.7)]
    page = Page(render(evaluated(release, *scores, protocol={"test_rows": 50})))
    assert "Measured on a test table of 50 rows." in page.words()
    assert "decision tree 70.0 % 70.0 % 70.0 % 75.0 % – – –" in page.words()
    assert "over the folds" not in page.words()


def test_marks_lie_inside_the_picture_and_in_the_order_of_their_scores(release):
    (target,) = utility.utility_of(evaluated(release, *SCORES).certificate.figures).targets
    drawing = ET.fromstring(utility.draw_scores(target))
    width = float(drawing.get("viewBox").split()[2])
    marks = [group for group in drawing.findall("g") if group.find("title") is not None]
    ends = [
        float(x) for path in drawing.findall("g/path") for x in re.findall(r"[MH](-?[\d.]+)", path.get("d"))
    ]
    assert ends
    assert all(0 <= x <= width for x in ends)
    squares = [
        float(mark.find("rect").get("x")) + 5 for mark in marks if mark.get("class") == "score release"
    ]
    (circle,) = (float(mark.find("circle").get("cx")) for mark in marks if mark.get("class") == "score raw")
    (line,) = (path for path in drawing.findall("path") if path.get("class") == "nothing")
    start = re.match(r"M([\d.]+)", line.get("d"))
    assert start is not None
    nothing = float(start[1])
    assert squares[1] == pytest.approx(nothing, abs=0.1)  # naive Bayes is no better than nothing
    assert nothing < squares[0] < circle
    assert (squares[0] - nothing) / (circle - nothing) == pytest.approx(0.12 / 0.21, abs=0.01)


@pytest.mark.parametrize(
    "figures",
    [
        {"utility": 5},
        {"utility": {"format": 99}},
        {"utility": {"format": 1, "protocol": {}, "scores": [{}], "measures": {}, "tests": []}},
        {"imprecision": 3},
        {"imprecision": [{"where": "x"}]},
        {"imprecision": [{"where": "x", "true": "many", "returned": 4}]},
    ],
)
def test_figures_of_another_version_are_left_out(release, figures):
    certificate = replace(release.certificate, figures=figures)
    words = Page(render(replace(release, certificate=certificate))).words()
    assert "How well the release predicts" not in words
    assert "What the conditions" not in words


def test_a_workload_that_was_not_measured_says_how_to():
    document = policy().as_dict() | {"workload": [{"classify": "disease"}]}
    words = Page(render(publish(people(), Policy.from_dict(document), seed=1))).words()
    assert "Not measured for this release." in words
    assert "--evaluation evaluation.json" in words
    assert "How well the release predicts" not in Page(render(release_of())).words()


def test_what_was_lost_stands_column_by_column_the_worst_first():
    release = publish(people(), policy(), seed=1)
    told = release.certificate.figures["loss"]
    page = Page(render(release))
    words = page.words()
    assert f"On average, a published cell leaves open {percent(told['ncp'])} of its column" in words
    names = list(told["columns"])
    assert len(names) > 1
    places = [
        words.index(f"{name} {percent(told['columns'][name])}", words.index("Of the column"))
        for name in names
    ]
    assert places == sorted(places)
    bars = [
        attributes["aria-label"]
        for tag, attributes in page.elements
        if tag == "svg" and "left open" in (attributes.get("aria-label") or "")
    ]
    assert bars == [f"{percent(told['columns'][name])} of the column is left open" for name in names]
    assert "Entropy loss" not in words


def test_a_measured_release_says_more_of_its_columns():
    measures = {"entropy loss of age": 0.25, "query error of age": 1.5}
    figures = {"loss": {"ncp": 0.5, "columns": {"sex": 0.4, "age": 0.6}}, "utility": {"measures": measures}}
    found = loss_of(figures)
    assert [(one.name, one.others) for one in found.columns] == [("age", (0.25, 1.5)), ("sex", (None, None))]
    release = publish(people(), policy(), seed=1)
    utility = {"format": 1, "protocol": {}, "scores": [], "measures": measures, "tests": []}
    certificate = replace(release.certificate, figures={**release.certificate.figures, "utility": utility})
    assert "25.0 % 150.0 %" in Page(render(replace(release, certificate=certificate))).words()


@pytest.mark.parametrize(
    "figures",
    [{}, {"loss": 1}, {"loss": {"ncp": "x", "columns": {"age": 1}}}, {"loss": {"ncp": 1, "columns": {}}}],
)
def test_a_certificate_that_does_not_say_what_was_lost_has_no_such_section(figures):
    assert loss_of(figures) is None
    release = publish(people(), policy(), seed=1)
    page = render(replace(release, certificate=replace(release.certificate, figures=figures)))
    assert "What was lost" not in page


def test_conditions_stand_with_what_they_return():
    where = "age >= 40 and sex = 'f'"
    document = policy().as_dict() | {"workload": [{"select": {"where": where, "weight": 2}}]}
    release = publish(people(), Policy.from_dict(document), seed=1)
    (figure,) = release.certificate.figures["imprecision"]
    assert figure["returned"] - figure["true"] == figure["imprecision"] >= 0
    page = Page(render(release))
    counts = " ".join(f"{figure[key]:,}" for key in ("true", "returned", "imprecision"))
    assert f"{where} {counts}" in page.words()
    assert f"to select the rows where {where} (weight 2)" in page.words()
    assert "how many rows fulfil a condition, and what was lost." in page.words()
    told = f"{figure['true']:,} of {figure['returned']:,} returned rows fulfil the condition"
    assert told in [attrs["aria-label"] for attrs in page.all("svg")]


def test_statistics_of_groups_are_named_with_what_they_reveal():
    for statistics, has_range in ((["range", "mean"], True), (["mean"], False)):
        document = policy().as_dict() | {"workload": [{"aggregate": statistics}], "output": {}}
        words = Page(render(publish(people(), Policy.from_dict(document), seed=1))).words()
        assert ("exact values of somebody in it" in words) == has_range
        assert "learns the last one" in words
        assert "to answer" in words
        assert "labels, with statistics of the group beside them" in words
    assert "Statistics of groups" not in Page(render(release_of())).words()


def test_conditions_and_models_that_look_like_html_are_shown_as_text(release):
    scores = [score.model_copy(update={"model": NASTY[0], "target": NASTY[1]}) for score in SCORES[:3]]
    figures = {"imprecision": [{"where": NASTY[0], "true": 1, "returned": 2}]}
    html = render(evaluated(release, *scores, **figures))
    page = Page(html)
    assert not page.misnested
    assert not page.all("script")
    for drawing in re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL):
        ET.fromstring(drawing)


# ---- rows in a file ----------------------------------------------------------------------------------


def filed(release: Release, folder: Path, format_: str) -> Release:
    path = folder / f"rows.{format_}"
    write.write_table(release.rows, path)
    return replace(release, rows=FiledRows(path, format_), format=format_)


OUTPUTS_AND_FORMATS = [(o, f) for o in ("labels", "bounds", "summary") for f in ("csv", "parquet")]


@pytest.mark.parametrize(("output", "format_"), OUTPUTS_AND_FORMATS)
def test_a_small_release_in_a_file_has_the_report_of_one_in_memory(output, format_, tmp_path):
    release = replace(release_of(output=output), format=format_)
    assert render(filed(release, tmp_path, format_)) == render(release)


@pytest.mark.parametrize(("output", "format_"), OUTPUTS_AND_FORMATS)
def test_a_large_release_has_the_same_figures_and_says_what_is_sampled(
    output, format_, tmp_path, monkeypatch
):
    monkeypatch.setattr(view, "SMALL", 10)
    monkeypatch.setattr(view, "SAMPLE", 100)
    monkeypatch.setattr(filed_rows, "ROWS_AT_ONCE", 70)
    release = replace(release_of(output=output), format=format_)
    large = filed(release, tmp_path, format_)
    text, whole = render(large), render(release)
    assert text == render(large)
    assert "distributions of the other columns are drawn from 100 published rows" in text
    for section in ("promise", "picture", "attributes", "groups", "missing", "limits", "check"):
        part = re.compile(f'<section id="{section}".*?</section>', re.DOTALL)
        assert part.findall(text)[:1] == part.findall(whole)[:1] != []
    page = Page(text)
    assert not page.open
    assert not page.misnested


def test_a_release_of_too_many_groups_is_told_from_some_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr(view, "SMALL", 10)
    monkeypatch.setattr(view, "MOST_GROUPS", 16)
    release = replace(release_of(), format="parquet")
    assert release.certificate.claims.groups > 32
    large = filed(release, tmp_path, "parquet")
    text = render(large)
    assert text == render(large)
    seen = view.view_of(large.rows, large.policy, large.format)
    assert seen.one_in >= 4
    assert 0 < seen.cells.n_rows <= 16
    assert "those of one group in" in text
    assert "too many groups to be drawn" in text
    assert f"{release.certificate.claims.groups:,}" in text
    sizes = groups_of(release).size
    assert {*seen.weight.tolist()} <= {*sizes.tolist()}  # whole groups


def test_a_sample_is_uniform_and_counts_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(view, "SMALL", 10)
    monkeypatch.setattr(view, "SAMPLE", 1000)
    monkeypatch.setattr(view, "MOST_DISTINCT", 50)
    monkeypatch.setattr(filed_rows, "ROWS_AT_ONCE", 700)
    n = 20_000
    table = pa.table({"zip": ["a"] * n, "n": list(range(n)), "job": (["x", None, "y", "z"] * n)[:n]})
    rules = Policy.parse("""
attributes: {zip: {role: quasi-identifier}, n: {role: other, type: number}, job: {role: other}}
require: [k-anonymity: 2]
""")
    write.write_table(table, tmp_path / "rows.parquet")
    seen = view.view_of(FiledRows(tmp_path / "rows.parquet", "parquet"), rules, "parquet")
    assert (seen.n_rows, seen.rows.n_rows, seen.scale) == (n, 1000, 20.0)
    assert seen.missing == {"n": 0, "job": n // 4}
    assert seen.n_distinct == {"n": None, "job": 3}
    assert seen.weight.tolist() == [n]
    chosen = np.sort(seen.rows.column("n").to_numpy())
    assert len({*chosen.tolist()}) == 1000
    assert abs(chosen / n - np.linspace(0, 1, 1000)).max() < 0.06  # Kolmogorov and Smirnov, p < .002


# ---- what a first reader sees ------------------------------------------------------------------------


def head_of(html: str) -> str:
    return Page(html.split("<main>", maxsplit=1)[0]).words()


def test_the_first_lines_say_how_much_is_left(release):
    cells = release.certificate.claims.cells
    exact, narrowed = share(cells.exact, cells.all), share(cells.narrowed, cells.all)
    assert f"the quasi-identifiers {exact} are exact, {narrowed} are narrowed" in head_of(render(release))


def test_a_release_of_one_group_is_not_headed_like_a_good_one():
    made = release_of([{"k-anonymity": 400}])
    head = head_of(made.report)
    assert "The promise holds, but all rows are one group." in head
    assert "33 % are narrowed" in head  # nobody is 84 or older
    assert "Nearly everywhere *: zip (100 % of the rows), sex (100 % of the rows)." in head
    assert 'class="verdict none"' in made.report
    assert "refuses" not in made.report


def test_the_first_lines_say_how_many_rows_share_one_sensitive_value():
    made = release_of([{"k-anonymity": 2}])
    n = made.certificate.claims.one_value["disease"]
    assert n > 0
    assert f"Of the rows, {share(n, 600)} stand in groups that share one value of disease" in head_of(
        made.report
    )


def test_no_share_is_told_where_no_group_shares_a_value():
    made = release_of([{"k-anonymity": 400}])
    assert made.certificate.claims.one_value == {"disease": 0}
    head = head_of(made.report)
    assert "No group shares one value of disease, though no diversity is required there." in head
    assert "stand in groups" not in head


def test_no_such_share_is_told_where_a_diversity_is_required(release):
    assert "share one value" not in head_of(render(release))


def test_the_title_of_the_policy_heads_the_report():
    nasty = "Stays <b>& more</b> of 2024"
    own = replace(policy(), title=nasty)
    page = Page(publish(people(), own, seed=1).report)
    assert page.words().count(nasty) >= 2  # in the head and as the heading
    assert not page.all("b")


def test_a_report_with_a_seed_has_no_date_and_is_the_same_every_time():
    one, other = (publish(people(), policy(), seed=5).report for _ in range(2))
    assert one == other
    assert "Release report of" not in one


def test_the_histogram_begins_at_the_smallest_group():
    for smallest, largest in ((10, 500), (10, 40), (3, 3), (7, 10_000)):
        bars = pictures.bars_of(np.array([smallest] * 5 + [smallest + 3] * 90 + [largest]))
        assert bars[0].first == smallest
        assert sum(bar.n_groups for bar in bars) == 96
        assert bars[-1].last >= largest


def lightness(colour: str) -> float:
    """L* of CIELAB, from 0 (black) to 100 (white)."""
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    y = float(linear @ [0.2126, 0.7152, 0.0722])
    return 116 * y ** (1 / 3) - 16 if y > 0.008856 else 903.3 * y


def test_the_colours_of_the_painting_are_one_scale_that_reads_in_grey():
    light = [lightness(colour) for colour in pictures.PALETTE]
    steps = -np.diff(light)
    assert steps.min() >= 15
    hues = [colorsys.rgb_to_hsv(*bytes.fromhex(colour[1:]))[0] for colour in pictures.PALETTE]
    assert max(hues) <= 1 / 6  # all between red and yellow
    assert sorted(hues[1:], reverse=True) == hues[1:]


def test_the_caption_names_what_the_picture_leaves_out(page):
    words = page.words()
    assert "The picture leaves out" in words
    assert "groups that differ only there lie on top of each other" in words


def test_removed_columns_are_one_line_and_no_rows_of_the_table():
    drop = {"role": "drop"}
    words = Page(publish(people(), policy(charge=drop), seed=1).report).words()
    assert "Removed: id (identifier), charge (drop)." in words
    assert "identifier removed" not in words


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("numbers", [[0.0, 1.0, 2.0, 7.0], [5e-324, 0.0, 1.5], [1e-300, 2e-300]])
def test_numbers_of_any_size_are_drawn_without_a_warning(numbers, seed):
    random = np.random.default_rng(seed)
    columns = {
        name: pa.array(random.choice(numbers, 40), mask=random.random(40) < 0.3 * (name == "x"))
        for name in "xy"
    }
    attributes = {
        "x": {"role": "quasi-identifier", "type": "number", "bounds": [-1.79e308, 1.79e308]},
        "y": {"role": "quasi-identifier", "type": "number"},
    }
    made = publish(
        pa.table(columns),
        Policy.from_dict({"attributes": attributes, "require": [{"k-anonymity": 2}]}),
        seed=1,
    )
    assert (
        "nan"
        not in re.sub(r"<style>.*?</style>", "", made.report, flags=re.DOTALL)
        .lower()
        .split("certificate.json")[0]
    )


def test_many_rows_have_the_same_report_in_memory_and_in_a_file(monkeypatch, tmp_path):
    monkeypatch.setattr(view, "SMALL", 100)
    made = release_of()
    made.write(tmp_path / "out")
    read = Release.read(tmp_path / "out")
    filed = replace(read, rows=FiledRows(tmp_path / "out" / "release.parquet", "parquet"))
    assert "This release is large" in made.report
    assert render(read) == render(filed) == made.report


@pytest.mark.parametrize("most_groups", [1 << 17, 16])
@pytest.mark.parametrize(("output", "format_"), [*OUTPUTS_AND_FORMATS, ("both", "parquet")])
def test_groups_that_verify_found_give_the_same_report(output, format_, most_groups, monkeypatch, tmp_path):
    monkeypatch.setattr(view, "SMALL", 10)
    monkeypatch.setattr(view, "MOST_GROUPS", most_groups)
    release = replace(release_of(output=output), format=format_)
    for given in (release, filed(release, tmp_path, format_)):
        groups = examine(given.rows, given.policy).groups
        assert len(groups.size) >= release.certificate.claims.groups > 32
        assert render(given, groups) == render(given)


def test_a_report_does_not_group_rows_that_verify_has_grouped(monkeypatch):
    monkeypatch.setattr(view, "SMALL", 10)
    monkeypatch.setattr(view, "lines_of", None)
    made = release_of()
    assert "This release is large" in made.report
    with pytest.raises(TypeError):
        render(made)


def test_groups_of_other_columns_are_not_taken_for_those_of_the_report(monkeypatch):
    monkeypatch.setattr(view, "SMALL", 10)
    release = release_of()
    groups = examine(release.rows, release.policy).groups
    assert groups is not None
    others = replace(groups, cells=groups.cells.drop_columns([groups.cells.column_names[0]]))
    assert render(release, others) == render(release)
