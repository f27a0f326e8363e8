"""What a policy may tell Mondrian: its variant and criterion, what cells are narrowed to, and what columns weigh."""

# ruff: noqa: E501 - tables of sentences: one case, one line

from __future__ import annotations

import re

import pytest

from sfumato.errors import PolicyError
from sfumato.policy.document import Policy
from sfumato.policy.options.mondrian import Criterion, MondrianOptions
from sfumato.policy.output import Narrowing
from sfumato.policy.schema import Attribute, Role, Schema
from sfumato.policy.workload import Aggregate, Classify, Regress, Select

COLUMNS = """
  age: {role: quasi-identifier, type: number, bounds: [0, 110], step: 1}
  sex: {role: quasi-identifier, values: [Male, Female]}
  job: {role: other, values: [Cook, Smith]}
  wage: {role: other, type: number}
"""
AGE = Attribute("age", Role.QUASI_IDENTIFIER, type="number")
SCHEMA = Schema((AGE, Attribute("job", Role.OTHER)))


def read(text: str, columns: str = COLUMNS) -> Policy:
    required = "" if "require:" in text else "require: []\n"
    return Policy.parse(f"attributes:{columns}{required}{text}\n")


def mondrian(options: str, *lines: str) -> str:
    return "\n".join([f"method: {{mondrian: {{{options}}}}}", *lines])


CLASSIFY, REGRESS = "workload: [classify: job]", "workload: [regress: wage]"
SELECT = "workload: [select: age >= 40]"
AGGREGATE = "workload: [aggregate: [mean]]"

# --- what is read -----------------------------------------------------------------------------------------


def test_without_a_word_mondrian_is_tuned_and_leaves_the_rest_to_the_workload():
    options = read("method: mondrian").method
    assert options == MondrianOptions(
        variant="tuned", criterion=None, rest=None, loss_weight=None, chance=True, refine="auto"
    )
    assert options.as_policy() == {"mondrian": {"standardize": False}}


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (mondrian("variant: paper"), {"variant": "paper"}),
        (mondrian("variant: paper", CLASSIFY), {"variant": "paper"}),
        (mondrian("variant: paper, median-below-gain: 0.01", CLASSIFY), {"variant": "paper", "median_below_gain": 0.01}),
        (mondrian("criterion: loss, rest: false"), {"criterion": "loss", "rest": False}),
        (mondrian("criterion: median, rest: false"), {"criterion": "median", "rest": False}),
        (mondrian("criterion: median", CLASSIFY), {"criterion": "median"}),
        (mondrian("criterion: loss, refine: list"), {"criterion": "loss", "refine": "list"}),
        (mondrian("criterion: median, refine: none"), {"criterion": "median", "refine": "none"}),
        (mondrian("refine: list", AGGREGATE), {"refine": "list"}),
        (mondrian("loss-weight: 0, chance: false", CLASSIFY), {"loss_weight": 0, "chance": False}),
        (mondrian("loss-weight: 2", REGRESS), {"loss_weight": 2}),
    ],
)  # fmt: skip
def test_options_are_read_and_only_what_differs_from_the_default_is_written(text, options):
    policy = read(text)
    assert policy.method == MondrianOptions(**options)
    written = {key.replace("_", "-"): value for key, value in options.items()}
    assert policy.method.as_policy() == {"mondrian": {**written, "standardize": False}}
    assert Policy.from_dict(policy.as_dict()) == policy
    assert Policy.parse(policy.to_yaml()) == policy


# --- what is refused --------------------------------------------------------------------------------------

PAPER_IS_WITHOUT = "variant: paper is Mondrian as published, without it; leave out one of the two."
NO_TASK = "it is about tasks that classify or regress, and the workload has none; leave it out."
IN_PLACE = "criterion decides in place of the tasks; leave out one of the two."
NO_TASKS_IN_LIST = "a list knows nothing of tasks that classify, regress or select; leave out one of the two."

REFUSED = [
    (mondrian("variant: papre"), "method mondrian variant: 'papre' is not one of tuned, paper. Did you mean 'paper'?"),
    (mondrian("criterion: infogain"), "method mondrian criterion: 'infogain' is not one of loss, median."),
    (mondrian("rest: yes"), "method mondrian rest: must be true or false."),
    (mondrian("loss-weight: -0.1"), "method mondrian loss-weight: must be a number of at least 0, such as 0.1."),
    (mondrian("loss-weight: true"), "method mondrian loss-weight: must be a number of at least 0, such as 0.1."),
    (mondrian("chance: 1"), "method mondrian chance: must be true or false."),
    (mondrian("refine: tree"), "method mondrian refine: 'tree' is not one of auto, list, none."),
    (mondrian("variant: paper, criterion: median"), f"method mondrian criterion: {PAPER_IS_WITHOUT}"),
    (mondrian("variant: paper, rest: false"), f"method mondrian rest: {PAPER_IS_WITHOUT}"),
    (mondrian("variant: paper, loss-weight: 0.1", CLASSIFY), f"method mondrian loss-weight: {PAPER_IS_WITHOUT}"),
    (mondrian("variant: paper, chance: true", CLASSIFY), f"method mondrian chance: {PAPER_IS_WITHOUT}"),
    (mondrian("variant: paper, refine: none"), f"method mondrian refine: {PAPER_IS_WITHOUT}"),
    (mondrian("variant: paper", "output: {numbers: grid}"), "output numbers: variant: paper publishes the boxes of its tree; leave it out, or say boxes."),
    (mondrian("variant: paper", "output: {numbers: range}"), "output numbers: variant: paper publishes the boxes of its tree; leave it out, or say boxes."),
    (mondrian("variant: paper", "output: {rest-labels: excluding}"), "output rest-labels: variant: paper leaves no rests to label; leave it out."),
    (mondrian("median-below-gain: 0.01", CLASSIFY), "method mondrian median-below-gain: only variant: paper has it; add variant: paper, or leave it out."),
    (mondrian("variant: tuned, median-below-gain: 0", CLASSIFY), "method mondrian median-below-gain: only variant: paper has it; add variant: paper, or leave it out."),
    (mondrian("variant: paper, median-below-gain: 0.01"), "method mondrian median-below-gain: it needs a task to classify, such as classify: income; leave it out."),
    (mondrian("variant: paper, median-below-gain: 0.01", REGRESS), "method mondrian median-below-gain: it needs a task to classify, such as classify: income; leave it out."),
    (mondrian("criterion: median, rest: true"), "method mondrian rest: the median leaves no rest; leave it out, or use criterion: loss."),
    (mondrian("criterion: median, refine: list"), "method mondrian refine: a list refines what criterion: loss made; leave it out, or use that."),
    (mondrian("refine: list", CLASSIFY), f"method mondrian refine: {NO_TASKS_IN_LIST}"),
    (mondrian("refine: list", REGRESS), f"method mondrian refine: {NO_TASKS_IN_LIST}"),
    (mondrian("refine: list", SELECT), f"method mondrian refine: {NO_TASKS_IN_LIST}"),
    (mondrian("criterion: loss, refine: list", CLASSIFY), f"method mondrian refine: {NO_TASKS_IN_LIST}"),
    (mondrian("loss-weight: 0.2"), f"method mondrian loss-weight: {NO_TASK}"),
    (mondrian("loss-weight: 0", SELECT), f"method mondrian loss-weight: {NO_TASK}"),
    (mondrian("chance: false", AGGREGATE), f"method mondrian chance: {NO_TASK}"),
    (mondrian("criterion: loss, loss-weight: 0.2", CLASSIFY), f"method mondrian loss-weight: {IN_PLACE}"),
    (mondrian("criterion: median, chance: false", CLASSIFY), f"method mondrian chance: {IN_PLACE}"),
    ("output: {numbers: boxs}", "output numbers: 'boxs' is not one of grid, boxes, range. Did you mean 'boxes'?"),
    ("output: {numbers: 64}", "output numbers: must be grid, boxes or range, or a grid with its number of slices, such as {grid: 64}."),
    ("output: {numbers: [grid]}", "output numbers: must be grid, boxes or range, or a grid with its number of slices, such as {grid: 64}."),
    ("output: {numbers: {}}", "output numbers: must be grid, boxes or range, or a grid with its number of slices, such as {grid: 64}."),
    ("output: {numbers: {grid: 0}}", "output numbers grid: must be how many slices the bounds have, a whole number of at least 1, such as 64."),
    ("output: {numbers: {grid: 2.5}}", "output numbers grid: must be how many slices the bounds have, a whole number of at least 1, such as 64."),
    ("output: {numbers: {boxes: 5}}", "the key 'boxes' is unknown in output numbers."),
    ("output: {rest-labels: exclude}", "output rest-labels: 'exclude' is not one of covering, excluding."),
    ("method: tds\nworkload: [classify: job]\noutput: {numbers: boxes}", "output numbers: only mondrian has it, and tds publishes its own cuts; leave it out."),
    ("method: tds\nworkload: [classify: job]\noutput: {rest-labels: covering}", "output rest-labels: only mondrian has it, and tds publishes its own cuts; leave it out."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), REFUSED)
def test_what_does_not_go_together_is_refused_in_one_sentence(text, sentence):
    with pytest.raises(PolicyError, match=re.escape(sentence)) as caught:
        read(text)
    assert len(caught.value.mistakes) == 1


@pytest.mark.parametrize(
    ("options", "workload", "sentence"),
    [
        ({"variant": "paper", "criterion": "loss"}, (), PAPER_IS_WITHOUT),
        ({"variant": "paper", "rest": False}, (), PAPER_IS_WITHOUT),
        ({"criterion": "median", "rest": True}, (), "the median leaves no rest"),
        ({"median_below_gain": 0.01}, (), "only variant: paper has it"),
        ({"variant": "paper", "median_below_gain": 0.01}, (), "it needs a task to classify"),
        ({"refine": "list"}, (Classify("job"),), NO_TASKS_IN_LIST),
        ({"loss_weight": 0.2}, (), NO_TASK),
        ({"criterion": "loss", "loss_weight": 0.2}, (), IN_PLACE),
    ],
)
def test_options_put_together_in_code_are_refused_alike_and_once(options, workload, sentence):
    with pytest.raises(PolicyError, match=re.escape(sentence)) as caught:
        Policy(SCHEMA, workload=workload, method=MondrianOptions(**options))
    assert len(caught.value.mistakes) == 1


def test_where_the_workload_is_broken_nothing_is_said_of_options_that_ask_for_a_task():
    with pytest.raises(PolicyError) as caught:
        read(mondrian("loss-weight: 0.2, split-only: [jo]", "workload: [clasify: job]"))
    assert [mistake.where[-1] for mistake in caught.value.mistakes] == ["clasify", "split-only"]
    with pytest.raises(PolicyError) as caught:
        read(mondrian("variant: paper, median-below-gain: 0.2", "workload: [{classify: {target: 5}, x: 1}]"))
    assert not any("median-below-gain" in mistake.where for mistake in caught.value.mistakes)


# --- what the method asks ---------------------------------------------------------------------------------

TASKS = {"no tasks": (), "classify": (Classify("job"),), "regress": (Regress("wage"),), "select": (Select("age >= 40"),),
         "aggregate": (Aggregate(("mean",)),)}  # fmt: skip
HAVE_A_SAY = ("classify", "regress", "select")


@pytest.mark.parametrize("name", TASKS)
def test_the_criterion_is_what_the_policy_names_or_follows_from_the_workload(name):
    tasks, has_say = TASKS[name], name in HAVE_A_SAY
    assert MondrianOptions().criterion_for(tasks) is (Criterion.MIXED if has_say else Criterion.LOSS)
    paper = MondrianOptions(variant="paper")
    assert paper.criterion_for(tasks) is (Criterion.TASKS if has_say else Criterion.MEDIAN)
    assert MondrianOptions(criterion="loss").criterion_for(tasks) is Criterion.LOSS
    assert MondrianOptions(criterion="median").criterion_for(tasks) is Criterion.MEDIAN
    assert MondrianOptions(criterion="loss").overrides(tasks) is has_say
    assert not MondrianOptions().overrides(tasks)


@pytest.mark.parametrize("name", TASKS)
def test_rests_are_left_unless_the_policy_the_median_or_the_paper_forbids_it(name):
    tasks = TASKS[name]
    assert MondrianOptions().has_rest(tasks)
    assert MondrianOptions(rest=True).has_rest(tasks)
    assert not MondrianOptions(rest=False).has_rest(tasks)
    assert not MondrianOptions(criterion="median").has_rest(tasks)
    assert not MondrianOptions(variant="paper").has_rest(tasks)


@pytest.mark.parametrize("name", TASKS)
def test_a_list_is_tried_for_loss_without_tasks_on_tables_that_are_not_large(name):
    tasks, has_say = TASKS[name], name in HAVE_A_SAY
    for options in (MondrianOptions(), MondrianOptions(criterion="loss"), MondrianOptions(rest=False)):
        assert options.refines(tasks, 2**18) is not has_say
        assert not options.refines(tasks, 2**18 + 1)
    for never in ({"variant": "paper"}, {"criterion": "median"}, {"refine": "none"}):
        assert not MondrianOptions(**never).refines(tasks, 1)
    assert MondrianOptions(refine="list").refines((), 10**12)


# --- what cells are narrowed to ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "numbers", "written"),
    [
        ("grid", Narrowing("grid", 32), "grid"),
        ("{grid: 64}", Narrowing("grid", 64), {"grid": 64}),
        ("{grid: 32}", Narrowing("grid"), "grid"),
        ("{grid: 1}", Narrowing("grid", 1), {"grid": 1}),
        ("{grid: 8.0}", Narrowing("grid", 8), {"grid": 8}),
        ("boxes", Narrowing("boxes"), "boxes"),
        ("range", Narrowing("range"), "range"),
    ],
)
def test_numbers_are_read_and_written(given, numbers, written):
    policy = read(f"output: {{numbers: {given}}}")
    assert policy.numbers == policy.published_numbers == numbers
    assert policy.as_dict()["output"] == {"values": "labels", "numbers": written}
    assert Policy.from_dict(policy.as_dict()) == policy
    assert Policy(SCHEMA, numbers=written).numbers == numbers, "in code as a policy writes it"
    assert Policy(SCHEMA, numbers=numbers).numbers == numbers


def test_without_a_word_numbers_are_on_a_grid_and_boxes_for_the_paper_and_other_methods():
    assert read("").numbers is None
    assert read("").published_numbers == Narrowing("grid", 32)
    assert read(mondrian("criterion: median")).published_numbers == Narrowing("grid", 32)
    assert read(mondrian("variant: paper")).published_numbers == Narrowing("boxes")
    assert read(mondrian("variant: paper", "output: {numbers: boxes}")).published_numbers == Narrowing(
        "boxes"
    )
    assert read("method: tds\nworkload: [classify: job]").published_numbers == Narrowing("boxes")
    assert "numbers" not in read("").as_dict()["output"]


@pytest.mark.parametrize(
    "given", [("gird",), ("grid", 0), ("grid", 1.5), ("grid", True), ("boxes", 32), ("range", 1), (5,)]
)
def test_numbers_of_another_form_are_refused(given):
    with pytest.raises(PolicyError, match=r"^Numbers must be grid, boxes or range, or a grid"):
        Narrowing(*given)


def test_numbers_and_labels_put_together_in_code_are_checked_too():
    with pytest.raises(
        PolicyError, match=r"^Policy: output numbers: 'boxs' is not one of grid, boxes, range"
    ):
        Policy(SCHEMA, numbers="boxs")
    with pytest.raises(PolicyError, match=r"^Policy: output rest-labels: 'all' is not one of covering, excl"):
        Policy(SCHEMA, rest_labels="all")


def test_labels_of_rests_cover_unless_they_are_to_say_what_they_exclude():
    assert not read("").excludes_in_labels
    assert not read("output: {rest-labels: covering}").excludes_in_labels
    assert not read(mondrian("variant: paper", "output: {rest-labels: covering}")).excludes_in_labels
    policy = read("output: {rest-labels: excluding}")
    assert policy.excludes_in_labels
    assert policy.as_dict()["output"] == {"values": "labels", "rest-labels": "excluding"}
    assert Policy.from_dict(policy.as_dict()) == policy


TREE = "\n  job: {{role: {role}, hierarchy: {{tree: {{{label}: [Cook, Smith]}}}}}}\n  age: {{role: quasi-identifier}}\n"
VALUES = '\n  job: {{role: {role}, values: [Cook, "{label}"]}}\n  age: {{role: quasi-identifier}}\n'


@pytest.mark.parametrize(("columns", "key"), [(TREE, "hierarchy"), (VALUES, "values")])
def test_labels_that_look_like_exclusions_are_refused_beside_them(columns, key):
    column = columns.format(role="quasi-identifier", label="Any (not Baker)")
    sentence = (
        f"column 'job', {key}: 1 label of the form X (not Y), which rest-labels: excluding writes itself; "
        "rename them, or use covering."
    )
    with pytest.raises(PolicyError, match=re.escape(sentence)) as caught:
        read("output: {rest-labels: excluding}", column)
    assert "Baker" not in str(caught.value)
    read("output: {rest-labels: covering}", column)
    read("output: {rest-labels: excluding}", columns.format(role="other", label="Any (not Baker)"))
    read("output: {rest-labels: excluding}", columns.format(role="quasi-identifier", label="Any (not)"))


# --- what columns weigh -----------------------------------------------------------------------------------


def weigh(weight: str, role: str = "quasi-identifier") -> str:
    return f"\n  zip: {{role: quasi-identifier}}\n  age: {{role: {role}, type: number, bounds: [0, 110], step: 1, weight: {weight}}}\n"


def test_a_weight_is_read_and_written_where_it_is_not_1():
    policy = read("", weigh("2.5"))
    assert [column.weight for column in policy.schema] == [1, 2.5]
    assert policy.as_dict()["attributes"]["age"]["weight"] == 2.5
    assert "weight" not in policy.as_dict()["attributes"]["zip"]
    assert Policy.from_dict(policy.as_dict()) == policy
    assert Schema.of(age={"role": "quasi-identifier", "weight": 3})["age"].weight == 3
    assert read(mondrian("variant: paper"), weigh("1")).schema["age"].weight == 1


@pytest.mark.parametrize("weight", ["0", "-1", "much", "true", ".inf"])
def test_a_weight_that_is_no_number_above_0_is_refused(weight):
    sentence = "must be finite" if weight == ".inf" else "must be a number above 0, such as 2"
    with pytest.raises(PolicyError, match=sentence):
        read("", weigh(weight))


DECLARED = "\n  age: {role: quasi-identifier, type: number, bounds: [0, 110], step: 1, weight: 2}\n  job: {role: other, values: [Cook, Smith]}\n"


@pytest.mark.parametrize(
    ("text", "columns", "sentence"),
    [
        ("", weigh("2", "other"), "only a quasi-identifier loses anything; leave it out, or give the column that role."),
        ("", weigh("2", "drop"), "only a quasi-identifier loses anything; leave it out, or give the column that role."),
        (mondrian("variant: paper"), DECLARED, "variant: paper does not look at what a column loses; leave out one of the two."),
        (mondrian("criterion: median"), DECLARED, "criterion: median does not look at what a column loses; leave it out, or use criterion: loss."),
        ("method: tds\nworkload: [classify: job]", DECLARED, "tds does not look at what a column loses; leave it out, or use mondrian."),
        ("method: {diffgen: {epsilon: 1}}\nworkload: [classify: job]", DECLARED, "diffgen does not look at what a column loses; leave it out, or use mondrian."),
        ("method: risk-utility", DECLARED, "risk-utility does not look at what a column loses; leave it out, or use mondrian."),
    ],
)  # fmt: skip
def test_a_weight_is_refused_where_nothing_has_that_price(text, columns, sentence):
    with pytest.raises(PolicyError, match=re.escape(f"column 'age', weight: {sentence}")) as caught:
        read(text, columns)
    assert len(caught.value.mistakes) == 1


@pytest.mark.parametrize("weight", [0, -2.0, "2", float("nan")])
def test_a_weight_put_together_in_code_is_checked_too(weight):
    with pytest.raises(PolicyError, match=r"^Policy: column 'age', weight: must be a number above 0"):
        Policy(Schema((Attribute("age", Role.QUASI_IDENTIFIER, weight=weight),)))


@pytest.mark.parametrize(
    ("tasks", "n_classes"),
    [
        ((Classify("job"),), 3),
        ((Select("age >= 40"), Classify("job")), 2),
        ((Select("age >= 40"), Regress("wage")), 0),
    ],
)
def test_tasks_decide_alone_where_the_mixed_score_lost_unless_loss_has_a_weight(tasks, n_classes):
    assert MondrianOptions().criterion_for(tasks, n_classes=n_classes) is Criterion.TASKS
    assert not MondrianOptions().has_rest(tasks, n_classes=n_classes)
    asked = MondrianOptions(loss_weight=0.1)
    assert asked.criterion_for(tasks, n_classes=n_classes) is Criterion.MIXED
    assert asked.has_rest(tasks, n_classes=n_classes)
    assert asked.criterion_for(tasks, n_classes=n_classes, has_cells=True) is Criterion.TASKS


def test_two_classes_and_numbers_are_served_by_the_mixed_score_but_not_over_features():
    for tasks, n_classes in (
        ((Classify("job"),), 2),
        ((Classify("job"), Regress("wage")), 2),
        ((Regress("wage"),), 0),
    ):
        assert MondrianOptions().criterion_for(tasks, n_classes=n_classes) is Criterion.MIXED
        assert MondrianOptions().criterion_for(tasks, n_classes=n_classes, has_cells=True) is Criterion.TASKS
