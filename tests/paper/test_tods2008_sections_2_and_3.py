"""LeFevre, DeWitt, Ramakrishnan: Workload-Aware Anonymization Techniques for Large-Scale Datasets (TODS 2008).

Sections 2 and 3.1, typed from the paper: definitions 2.1 to 2.4, Figures 1 to 3, the rules of section 2.2 and
equations 1 to 6. What is checked here is checked against these lines alone, on the published table R*.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from typing import Any

import naive_mondrian as naive
import numpy as np
import pyarrow as pa
import pytest
from growing import AS_PUBLISHED, partition
from hypothesis import given, settings
from hypothesis import strategies as st
from mondrian_cases import tree_recoding

from sfumato.policy.requirements import (
    EntropyDiversity,
    GroupStats,
    KAnonymity,
    RecursiveDiversity,
    VarianceDiversity,
)
from sfumato.policy.schema import Schema
from sfumato.policy.workload import Classify, Regress
from sfumato.table.opening import open_table

NUMBER = {"role": "quasi-identifier", "kind": "number"}
TARGET = {"role": "other", "kind": "number"}


# ---- the paper's definitions -----------------------------------------------------------------------


def equivalence_classes(published, quasi, sensitive):
    """The tuples of R* by their quasi-identifier values: per class the list of sensitive values."""
    classes = defaultdict(list)
    for row in published:
        classes[tuple(row[name] for name in quasi)].append(row[sensitive])
    return list(classes.values())


def is_k_anonymous(classes, k):
    """Definition 2.1: each unique tuple in the projection of R* on Q1, ..., Qd occurs at least k times."""
    return all(len(values) >= k for values in classes)


def entropy(values):
    """Sum over s of -p(s|R_i) log p(s|R_i)."""
    return sum(-n / len(values) * math.log(n / len(values)) for n in Counter(values).values())


def is_entropy_diverse(classes, ell):
    """Definition 2.2: for every equivalence class the entropy is at least log(ell)."""
    return all(entropy(values) >= math.log(ell) - 1e-12 for values in classes)


def is_recursively_diverse(classes, c, ell):
    """Definition 2.3: x_1 < c (x_l + x_{l+1} + ... + x_|D_S|); (c, 1)-diversity is always satisfied."""
    counts = [sorted(Counter(values).values(), reverse=True) for values in classes]
    return ell == 1 or all(x[0] < c * sum(x[ell - 1 :]) for x in counts)


def variance(values):
    """Var(R_i, S) = 1/|R_i| sum over t of (t.S - mean)^2."""
    mean = sum(map(naive.exact, values), Fraction(0)) / len(values)
    return sum((naive.exact(s) - mean) ** 2 for s in values) / len(values)


def is_variance_diverse(classes, v):
    """Definition 2.4: Var(R_i, S) >= v."""
    return all(variance(values) >= v for values in classes)


def patients(n_rows=400, seed=17):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "age": rng.integers(18, 90, n_rows),
            "zip": [f"{x:05}" for x in 53700 + rng.integers(0, 60, n_rows)],
            "disease": rng.choice(["flu", "gout", "cold", "ulcer"], n_rows, p=[0.5, 0.2, 0.2, 0.1]),
            "salary": rng.integers(1, 500, n_rows),
        }
    )


PATIENTS = Schema.of(
    age=NUMBER,
    zip={"role": "quasi-identifier", "hierarchy": {"mask": 5}},
    disease="sensitive",
    salary={"role": "sensitive", "kind": "number"},
)


@pytest.mark.parametrize(
    "workload", [[], [Classify("disease")], [Regress("salary")]], ids=["median", "infogain", "regression"]
)
@pytest.mark.parametrize(
    ("required", "holds", "of", "other"),
    [
        (
            KAnonymity(7),
            lambda classes: is_k_anonymous(classes, 7),
            "disease",
            lambda classes: is_k_anonymous(classes, 14),
        ),
        (
            EntropyDiversity(2.5, of="disease"),
            lambda classes: is_entropy_diverse(classes, 2.5),
            "disease",
            lambda classes: is_entropy_diverse(classes, 3),
        ),
        (
            RecursiveDiversity(2, 3, of="disease"),
            lambda classes: is_recursively_diverse(classes, 2, 3),
            "disease",
            lambda classes: is_recursively_diverse(classes, 1, 3),
        ),
        (
            VarianceDiversity(12_000, of="salary"),
            lambda classes: is_variance_diverse(classes, 12_000),
            "salary",
            lambda classes: is_variance_diverse(classes, 18_000),
        ),
    ],
    ids=["2.1", "2.2", "2.3", "2.4"],
)  # fmt: skip
def test_the_recoded_relation_satisfies_the_definition(workload, required, holds, of, other):
    table = patients()
    recoding = partition(open_table(table), PATIENTS, [required], workload=workload).recoding
    classes = equivalence_classes(recoding.apply(table).to_pylist(), ("age", "zip"), of)
    assert len(classes) > 3
    assert holds(classes)
    assert not other(classes)  # it was asked for no more than that, and splitting went on


def test_salaries_that_are_close_are_3_diverse_and_do_not_protect():
    """Section 2.1: {100K, 101K, 102K} is 3-diverse, yet protects less than {1K, 50K, 500K}."""
    close, wide = [100_000, 101_000, 102_000], [1_000, 50_000, 500_000]
    for salaries in (close, wide):
        assert is_entropy_diverse([salaries], 3)
        groups = GroupStats(np.array([3]), values=np.array([[1, 1, 1]]))
        assert EntropyDiversity(3, of="salary").holds(groups)[0]
        assert RecursiveDiversity(1.1, 3, of="salary").holds(groups).tolist() == [
            is_recursively_diverse([salaries], Fraction("1.1"), 3)
        ]
    groups = GroupStats(np.array([3, 3]), variance=np.array([np.var(close), np.var(wide)]))
    assert [float(variance(close)), float(variance(wide))] == pytest.approx(groups.variance.tolist())
    assert VarianceDiversity(1e8, of="salary").holds(groups).tolist() == [False, True]


def test_variance_diversity_keeps_close_salaries_in_one_group():
    table = pa.table(
        {"age": [1, 2, 3, 4, 5, 6], "salary": [100_000, 101_000, 102_000, 1_000, 50_000, 500_000]}
    )
    schema = Schema.of(age=NUMBER, salary={"role": "sensitive", "kind": "number"})
    assert partition(open_table(table), schema, [KAnonymity(3)]).size.tolist() == [3, 3]
    assert partition(open_table(table), schema, [VarianceDiversity(1e8, of="salary")]).size.tolist() != [3, 3]


# ---- Figures 1 and 2 -------------------------------------------------------------------------------

NATIONALITY = {
    "*": {
        "African": ["Egyptian", "Kenyan"],
        "Asian": ["Indian", "Japanese"],
        "European": ["French", "German", "Italian"],
    }
}
FIGURE_2 = pa.table(
    {
        "Age": [18, 22, 27, 31, 36, 40, 60, 60, 60, 60, 60, 60],
        "Nationality": [
            "Egyptian", "Kenyan", "Indian", "Japanese", "French", "German",
            "French", "French", "French", "French", "French", "Kenyan",
        ],
    }
)  # fmt: skip


def example_tree():
    schema = Schema.of(
        Age={**NUMBER, "bounds": (0, 80), "step": 1},
        Nationality={"role": "quasi-identifier", "hierarchy": {"tree": NATIONALITY}},
    )
    return partition(open_table(FIGURE_2), schema, [KAnonymity(2)])


def test_the_partition_tree_of_figure_2():
    """Age <= 40 | Age > 40, and below the first Nationality: African | Asian | European."""
    found = example_tree()
    tree = tree_recoding(found).tree
    assert (tree.axis.tolist()[0], tree.threshold[0], tree.n_children[0]) == (0, 40, 2)
    left, right = tree.first_child[0], tree.first_child[0] + 1
    assert (tree.axis[left], tree.n_children[left], tree.axis[right]) == (1, 3, -1)
    columns = {name: column.to_pylist() for name, column in found.recoding.columns(found.leaf).items()}
    assert list(zip(columns["Age"], columns["Nationality"], found.size.tolist(), strict=True)) == [
        ("[0, 40]", "African", 2),
        ("[0, 40]", "Asian", 2),
        ("[0, 40]", "European", 2),
        ("[41, 80]", "*", 6),
    ]


def test_each_path_from_the_root_is_a_rule_of_the_recoding_function():
    """(Age <= 40) and (Nationality <= European) -> <[0-40], European>, for any such row."""
    recoding = example_tree().recoding
    rows = list(itertools.product(range(81), ["French", "German", "Italian"]))
    table = pa.table({"Age": [age for age, _ in rows], "Nationality": [place for _, place in rows]})
    for (age, _), found in zip(rows, recoding.apply(table).to_pylist(), strict=True):
        if age <= 40:
            assert found == {"Age": "[0, 40]", "Nationality": "European"}
        else:
            assert found == {"Age": "[41, 80]", "Nationality": "*"}


# ---- section 2.2 -----------------------------------------------------------------------------------

POINTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30)


def plane(points, k=1, **options):
    table = pa.table({"x": [x for x, _ in points], "y": [y for _, y in points]})
    return partition(
        open_table(table), Schema.of(x=NUMBER, y=NUMBER), [KAnonymity(min(k, len(points)))], **options
    )


@given(POINTS, st.integers(1, 6))
@settings(max_examples=60)
def test_regions_do_not_overlap_and_cover_the_domain(points, k):
    found = plane(points, k)
    low, high, _ = (ends[found.leaf] for ends in found.recoding.boxes())
    low = np.where(np.isnan(low), -np.inf, low)
    for point in itertools.product(range(-2, 12), range(-2, 12)):
        assert np.sum(np.all((low < point) & (point <= high), axis=1)) == 1


@given(POINTS, st.integers(1, 4))
@settings(max_examples=60)
def test_rows_with_equal_quasi_identifiers_are_recoded_alike(points, k):
    found = plane(points, k)
    group = np.repeat(np.arange(len(found.size)), found.size)[np.argsort(found.row_numbers)]
    assert len({(point, g) for point, g in zip(points, group.tolist(), strict=True)}) == len(set(points))


@given(st.lists(st.integers(0, 6), min_size=1, max_size=25), st.integers(1, 8))
def test_if_an_axis_has_an_allowable_split_the_split_at_the_median_is_allowable(values, k):
    """Section 2.2, under k-anonymity; the median split is x <= m or, with duplicates, x < m."""
    median = sorted(values)[(len(values) - 1) // 2]
    thresholds = sorted(set(values))
    is_allowable = {t: k <= sum(x <= t for x in values) <= len(values) - k for t in thresholds}
    at = thresholds.index(median)
    medians = [median, *([thresholds[at - 1]] if at else [])]
    assert any(is_allowable.values()) == any(is_allowable[t] for t in medians)

    found = partition(
        open_table(pa.table({"x": values})), Schema.of(x=NUMBER), [KAnonymity(min(k, len(values)))]
    )
    if len(values) >= k and any(is_allowable.values()):
        threshold = tree_recoding(found).tree.threshold[0]
        assert threshold in medians
        assert is_allowable[threshold]
    elif len(values) >= k:
        assert tree_recoding(found).n_groups == 1


def test_with_duplicates_at_most_the_median_alone_would_miss_the_only_split():
    values, k = [1, 2, 2, 2], 1
    assert sorted(values)[(len(values) - 1) // 2] == 2  # and x <= 2 is everything
    found = partition(open_table(pa.table({"x": values})), Schema.of(x=NUMBER), [KAnonymity(k)])
    assert found.size.tolist() == [1, 3]


@given(POINTS)
@settings(max_examples=60)
def test_median_mondrian_splits_the_attribute_with_the_widest_normalized_range(points):
    tree = plane(points).recoding.tree
    spans = [max(axis) - min(axis) for axis in zip(*points, strict=True)]
    if tree.axis[0] < 0:
        assert spans == [0, 0]  # with k = 1 everything that differs is split
    else:
        # over the whole table both ranges are 1, unless an attribute has one value alone
        assert tree.axis[0] == (0 if spans[0] else 1)


def test_the_range_is_in_values_not_in_ranks():
    """Ages 1, 2, 3, 100 | four more: below the first split, 1..3 of 1..100 is narrow though it is three ranks of four."""
    table = pa.table({"x": [1, 2, 3, 100, 100, 100, 100, 100], "y": [0, 9, 0, 9, 0, 9, 0, 9]})
    found = partition(open_table(table), Schema.of(x=NUMBER, y=NUMBER), [KAnonymity(1)])
    tree = tree_recoding(found).tree
    assert (tree.axis[0], tree.threshold[0]) == (0, 3)
    left = tree.first_child[0]
    assert (tree.axis[left], tree.threshold[left]) == (1, 0)


# ---- section 3.1: equations 1 to 6 -----------------------------------------------------------------


def conditional_entropy(parts):
    """Equation 1: H(C|R*) = sum |R_i|/|R| sum_c -p(c|R_i) log p(c|R_i)."""
    total = sum(map(len, parts))
    return sum(len(part) / total * entropy(part) for part in parts)


def weighted_mean_squared_error(parts):
    """Equation 2: WMSE(T, R*) = 1/|R| sum_i sum_t (t.T - mean(R_i))^2."""
    return squared_error(parts) / sum(map(len, parts))


def entropy_of_split(parts):
    """Equation 3: Entropy(V, C) = sum |V_i|/|V| sum_c -p(c|V_i) log p(c|V_i)."""
    return conditional_entropy(parts)


def squared_error(parts):
    """Equation 4: Error^2(V, T) = sum_i sum_t (t.T - mean(V_i))^2."""
    return sum(len(part) * variance(part) for part in parts)


def test_the_equations_on_a_table_that_is_small_enough_to_check_by_hand():
    labels = [["+", "+", "-", "-"], ["+", "+"]]
    assert conditional_entropy(labels) == pytest.approx(4 / 6 * math.log(2))
    numbers = [[1, 3], [10, 10, 13]]
    assert squared_error(numbers) == 2 + 6
    assert weighted_mean_squared_error(numbers) == Fraction(8, 5)


@pytest.mark.parametrize(
    ("workload", "expected"),
    [([Classify("c")], [2, 4]), ([Regress("t")], [4, 2]), ([], [3, 3])],
    ids=["infogain", "regression", "median"],
)
def test_each_criterion_takes_its_own_split_of_one_table(workload, expected):
    """Six rows along x, k = 2: thresholds 2, 3 and 4 are allowable."""
    table = pa.table({"x": [1, 2, 3, 4, 5, 6], "c": list("++----"), "t": [5, 5, 5, 5, 9, 9]})
    schema = Schema.of(x=NUMBER, c="other", t={"role": "other", "kind": "number"})
    tree = tree_recoding(partition(open_table(table), schema, [KAnonymity(2)], workload=workload)).tree
    assert [tree.threshold[0], 6 - tree.threshold[0]] == expected


@st.composite
def tables(draw):
    """Rows whose numbers t and u have decimals, each so many as it happens."""
    t, u = (10 ** draw(st.integers(0, 3)) for _ in "tu")
    row = st.fixed_dictionaries(
        {
            "x": st.integers(0, 5),
            "y": st.integers(0, 40),
            "z": st.sampled_from(["French", "German", "Kenyan", "Indian"]),
            "c": st.sampled_from("abc"),
            "d": st.sampled_from("+-"),
            "t": st.integers(0, 9 * t).map(lambda n: n / t),
            "u": st.integers(0, 40).map(lambda n: n / u),
        }
    )
    return draw(st.lists(row, min_size=2, max_size=16))


def pairs(one, other):
    return list(zip(one, other, strict=True))


def distance_from_the_centroids(parts):
    """Section 3.1.2: the squared distances of points (t, u) from the centroid of their part, summed."""
    total = Fraction(0)
    for part in parts:
        points = [[naive.exact(number) for number in point] for point in part]
        centroid = [sum(axis, Fraction(0)) / len(part) for axis in zip(*points, strict=True)]
        total += sum((p - c) ** 2 for point in points for p, c in zip(point, centroid, strict=True))
    return total


def relative(measure, parts):
    """As a share of its value on the whole table."""
    whole = measure([[cell for part in parts for cell in part]])
    return float(measure(parts) / whole) if whole else 0.0


PLAIN, STANDARDIZED = AS_PUBLISHED, replace(AS_PUBLISHED, standardize=True)
CRITERIA: dict[str, tuple[list[Any], Any, Any]] = {
    "equation 3": ([Classify("c")], PLAIN, lambda part_of: entropy_of_split(part_of("c"))),
    "equation 4": ([Regress("t")], PLAIN, lambda part_of: squared_error(part_of("t"))),
    "equation 5": (
        [Classify(["c", "d"])],
        PLAIN,
        lambda part_of: entropy_of_split(part_of("c")) + entropy_of_split(part_of("d")),
    ),
    "the vector of class labels": (
        [Classify(["c", "d"], joint=True)],
        PLAIN,
        lambda part_of: entropy_of_split(list(map(pairs, part_of("c"), part_of("d")))),
    ),
    "equation 6": (
        [Regress(["t", "u"])],
        PLAIN,
        lambda part_of: squared_error(part_of("t")) + squared_error(part_of("u")),
    ),
    "equation 6, weighted": (
        [Regress("t", weight=0.3), Regress("u", weight=2)],
        PLAIN,
        lambda part_of: Fraction(3, 10) * squared_error(part_of("t")) + 2 * squared_error(part_of("u")),
    ),
    "the joint error of two targets": (
        [Regress(["t", "u"])],
        PLAIN,
        lambda part_of: distance_from_the_centroids(list(map(pairs, part_of("t"), part_of("u")))),
    ),
    "numbers, standardized": (
        [Regress(["t", "u"])],
        STANDARDIZED,
        lambda part_of: relative(squared_error, part_of("t")) + relative(squared_error, part_of("u")),
    ),
    "a label and two numbers": (
        [Classify("c"), Regress(["t", "u"])],
        PLAIN,
        lambda part_of: (
            relative(entropy_of_split, part_of("c"))
            + relative(squared_error, part_of("t"))
            + relative(squared_error, part_of("u"))
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CRITERIA)
@given(rows=tables(), k=st.integers(1, 4), ell=st.sampled_from([None, 1.5, 2.0]))
@settings(max_examples=40)
def test_no_allowable_split_is_better_than_the_one_that_is_taken(name, rows, k, ell):
    workload, options, value = CRITERIA[name]
    required = [KAnonymity(k), *([EntropyDiversity(ell, of="d")] if ell else [])]
    if not all(naive.satisfies(rows, asked) for asked in required):
        return
    schema = Schema.of(
        x=NUMBER,
        y=NUMBER,
        z={"role": "quasi-identifier", "hierarchy": {"tree": NATIONALITY}},
        c="other",
        d="sensitive",
        t=TARGET,
        u=TARGET,
    )
    paths = {leaf: ("*", group, leaf) for group, leaves in NATIONALITY["*"].items() for leaf in leaves}
    axes = [naive.Ordered("x"), naive.Ordered("y"), naive.Tree("z", tuple(paths.values()), paths.get)]
    twin = naive.Mondrian(rows, axes, required)
    table = pa.table({key: [row[key] for row in rows] for key in rows[0]})
    found = partition(open_table(table), schema, required, workload=workload, options=options)
    tree = tree_recoding(found).tree
    splits = [split for at in range(3) for split in twin.allowable(range(len(rows)), at)]
    if not splits:
        assert tree_recoding(found).n_groups == 1
        return

    def worth(parts):
        return float(value(lambda name: [[rows[i][name] for i in part] for part in parts]))

    (taken,) = [
        split
        for split in splits
        if split.axis == tree.axis[0] and split.threshold in (None, tree.threshold[0])
    ]
    has_labels = any(isinstance(task, Classify) for task in workload)
    slack = 1e-5 if has_labels else 1e-12 * worth([range(len(rows))])  # labels: 2^-20 bits per count
    assert worth(taken.parts) <= min(worth(split.parts) for split in splits) + slack


def test_the_joint_error_of_two_targets_is_the_sum_of_their_errors():
    """Section 3.1.2: minimized is the squared distance from the centroid, whatever each target asks for alone.

    Six rows along x, k = 1. Cutting off (3, 0) at the left is best for t, cutting off (0, 3) at the right for u; cutting
    in the middle is second best for both and best for their sum.
    """
    rows = {"x": [1, 2, 3, 4, 5, 6], "t": [3, 1, 1, 0, 0, 0], "u": [0, 0, 0, 1, 1, 3]}
    points = pairs(rows["t"], rows["u"])
    schema = Schema.of(x=NUMBER, t=TARGET, u=TARGET)

    def first_cut(*targets):
        found = tree_recoding(
            partition(open_table(pa.table(rows)), schema, [KAnonymity(1)], workload=[Regress([*targets])])
        ).tree
        return found.threshold[0]

    def error(t):
        return distance_from_the_centroids([points[:t], points[t:]])

    assert (first_cut("t"), first_cut("u"), first_cut("t", "u")) == (1, 5, 3)
    assert min(range(1, 6), key=error) == 3
    for t in range(1, 6):
        assert error(t) == sum(squared_error([rows[name][:t], rows[name][t:]]) for name in "tu")


def test_targets_weigh_in_their_own_units_whatever_their_decimals():
    """Equation 6: x takes 32 off the squared error of a, y takes 1/2 off that of b, which is in hundredths."""
    rows = [(0, 0, 0, 0.01), (0, 1, 0, 0.51), (1, 0, 4, 0.01), (1, 1, 4, 0.51)] * 2
    table = pa.table({name: [row[i] for row in rows] for i, name in enumerate("xyab")})
    schema = Schema.of(x=NUMBER, y=NUMBER, a=TARGET, b=TARGET)
    for targets in (["a", "b"], ["b", "a"]):
        found = partition(open_table(table), schema, [KAnonymity(4)], workload=[Regress(targets)])
        assert found.recoding.axes[tree_recoding(found).tree.axis[0]].attribute.name == "x"


def test_marginal_entropies_and_the_entropy_of_the_vector_can_ask_for_different_splits():
    """a says whether the labels agree, which is nothing about either; b says a little about one of them."""
    rows = [
        {"a": int(c != d), "b": c if i else 1 - c if c == d else c, "c": c, "d": d}
        for c in (0, 1)
        for d in (0, 1)
        for i in range(3)
    ]
    table = pa.table({name: [row[name] for row in rows] for name in "abcd"})
    schema = Schema.of(a=NUMBER, b=NUMBER, c="other", d="other")

    def first_split(**options):
        workload = [Classify(["c", "d"], **options)]
        return tree_recoding(
            partition(open_table(table), schema, [KAnonymity(2)], workload=workload)
        ).tree.axis[0]

    assert (first_split(joint=False), first_split(joint=True)) == (1, 0)


@given(tables(), st.sampled_from([1.0, 1.3, 1.7]), st.sampled_from([0.0, 0.5, 2.0]))
@settings(max_examples=60)
def test_a_requirement_on_the_target_itself_bounds_the_quality(rows, ell, v):
    """Section 3.1: entropy l-diversity requires H(C|R*) >= log l, variance diversity WMSE(T, R*) >= v."""
    required = [EntropyDiversity(ell, of="c"), VarianceDiversity(v, of="t")]
    if not all(naive.satisfies(rows, asked) for asked in required):
        return
    schema = Schema.of(x=NUMBER, y=NUMBER, c="sensitive", t={"role": "sensitive", "kind": "number"})
    table = pa.table({key: [row[key] for row in rows] for key in "xyct"})
    for task in (Classify("c"), Regress("t")):
        found = partition(open_table(table), schema, required, workload=[task])
        groups = np.split(found.row_numbers, np.cumsum(found.size)[:-1])
        assert (
            conditional_entropy([[rows[i]["c"] for i in group] for group in groups]) >= math.log(ell) - 1e-9
        )
        assert weighted_mean_squared_error([[rows[i]["t"] for i in group] for group in groups]) >= v


# ---- Figure 3 --------------------------------------------------------------------------------------


def test_features_can_be_homogeneous_where_the_quasi_identifier_is_2_diverse():
    """Figure 3: features F1 and F2, class labels + and -, and Q1 = F1 alone.

    Cells of F1 and F2 have one label each; yet the partitioning is 2-diverse with respect to Q1.
    """
    rows = [
        {"F1": f1, "F2": f2, "C": "+" if (f1 <= 4) == (f2 <= 4) else "-"}
        for f1 in range(1, 9)
        for f2 in range(1, 9)
    ]
    table = pa.table({name: [row[name] for row in rows] for name in rows[0]})
    schema = Schema.of(F1=NUMBER, F2={"role": "other", "kind": "number"}, C="sensitive")
    required = [KAnonymity(32), EntropyDiversity(2, of="C")]
    recoding = partition(open_table(table), schema, required, workload=[Classify("C")]).recoding
    published = recoding.apply(table).to_pylist()
    assert {row["F1"] for row in published} == {"[1, 4]", "[5, 8]"}
    assert is_entropy_diverse(equivalence_classes(published, ("F1",), "C"), 2)
    cells = defaultdict(set)
    for row in published:
        cells[row["F1"], row["F2"] <= 4].add(row["C"])
    assert sorted(len(labels) for labels in cells.values()) == [1, 1, 1, 1]


def test_judged_over_features_a_split_is_found_that_plain_entropy_holds_for_worthless():
    """Figure 3 and section 3.1.3: the split that minimizes the entropy across the feature space partitions,
    without violating the requirement across the quasi-identifier partitions.

    Every value of Q1 has as many + as -, so no split on it makes the class any more predictable by Q1 alone;
    with F2 beside it, cutting at 5 leaves nothing unknown.
    """
    rows = [
        {"Q1": q1, "F2": f2, "C": "+" if (q1 <= 5) == (f2 <= 32) else "-"}
        for q1 in range(1, 9)
        for f2 in range(1, 65)
    ]
    table = pa.table({name: [row[name] for row in rows] for name in rows[0]})
    schema = Schema.of(Q1=NUMBER, F2={"role": "other", "kind": "number"}, C="sensitive")
    required = [KAnonymity(150), EntropyDiversity(2, of="C")]
    by_features = tree_recoding(
        partition(open_table(table), schema, required, workload=[Classify("C", features=["Q1", "F2"])])
    )
    by_quasi_identifier = tree_recoding(
        partition(open_table(table), schema, required, workload=[Classify("C")])
    )
    assert by_features.tree.threshold[0] == 5
    assert by_quasi_identifier.tree.threshold[0] == 4  # of splits that score 0 the balanced one
    for q in range(1, 9):
        labels = [row["C"] for row in rows if row["Q1"] <= q]
        assert entropy(labels) == pytest.approx(math.log(2), rel=1e-12)
    published = by_features.apply(table).to_pylist()
    assert is_entropy_diverse(equivalence_classes(published, ("Q1",), "C"), 2)
    parts, cells = defaultdict(set), defaultdict(set)
    for row in published:
        parts[row["Q1"]].add(row["C"])
        cells[row["Q1"], row["F2"] <= 32].add(row["C"])
    assert [len(labels) for labels in parts.values()] == [2, 2]
    assert [len(labels) for labels in cells.values()] == [1, 1, 1, 1]


def test_judged_over_features_a_number_is_told_apart_within_their_cells():
    """Section 3.1.3, "or squared error of T": the mean of T is the same for every value of Q1."""
    rows = [
        {"Q1": q1, "F2": f2, "T": 10 if (q1 <= 5) == (f2 == "a") else 0} for q1 in range(1, 9) for f2 in "ab"
    ]
    table = pa.table({name: [row[name] for row in rows] for name in rows[0]})
    schema = Schema.of(Q1=NUMBER, F2="other", T={"role": "sensitive", "kind": "number"})
    required = [KAnonymity(4), VarianceDiversity(25, of="T")]

    def first_cut(**features):
        return tree_recoding(
            partition(open_table(table), schema, required, workload=[Regress("T", **features)])
        ).tree

    assert first_cut(features=["F2"]).threshold[0] == 5
    assert first_cut().threshold[0] == 4
