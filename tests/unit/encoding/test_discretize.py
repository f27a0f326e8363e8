"""The minimum description length cuts: against the recursion written out, row by row."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.encoding.discretize import cells, mdl_cuts


def entropy(labels):
    return sum(-labels.count(c) / len(labels) * math.log2(labels.count(c) / len(labels)) for c in set(labels))


def naive_best(rows):
    """(bits saved, cut, left rows, right rows) of the best cut that pays, or None."""
    labels = [label for _, label in rows]
    best = None
    for i in range(1, len(rows)):
        if rows[i - 1][0] < rows[i][0]:
            left, right = labels[:i], labels[i:]
            after = (len(left) * entropy(left) + len(right) * entropy(right)) / len(rows)
            if best is None or after < best[0] - 1e-12:
                best = after, i
    if best is None:
        return None
    after, i = best
    gain = entropy(labels) - after
    left, right = labels[:i], labels[i:]
    c, c1, c2 = len(set(labels)), len(set(left)), len(set(right))
    delta = math.log2(3**c - 2) - (c * entropy(labels) - c1 * entropy(left) - c2 * entropy(right))
    if gain <= 1e-12 or gain <= (math.log2(len(rows) - 1) + delta) / len(rows):
        return None
    return gain * len(rows), (rows[i - 1][0] + rows[i][0]) / 2, rows[:i], rows[i:]


def naive_cuts(values, labels, at_most=math.inf):
    rows = sorted(zip(values, labels, strict=True), key=lambda row: row[0])
    waiting = [naive_best(rows)]
    cuts: list[float] = []
    while any(waiting) and len(cuts) + 1 < at_most:
        waiting = [cut for cut in waiting if cut]
        best = max(waiting, key=lambda cut: cut[0])
        waiting.remove(best)
        cuts.append(best[1])
        waiting += [naive_best(best[2]), naive_best(best[3])]
    return sorted(cuts)


@st.composite
def labelled(draw, n_classes=3):
    """Values whose label depends on them, with some noise: most of these tables have a cut or two."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = random.integers(0, draw(st.integers(1, 30)), draw(st.integers(0, 120))) / 4
    bounds = np.sort(random.uniform(0, 8, n_classes - 1))
    labels = np.searchsorted(bounds, values)
    is_noise = random.random(len(values)) < draw(st.sampled_from([0, 0.1, 0.4]))
    return values, np.where(is_noise, random.integers(0, n_classes, len(values)), labels)


@given(labelled())
def test_cuts_are_those_of_the_recursion_written_out(table):
    values, labels = table
    assert mdl_cuts(values, labels).tolist() == naive_cuts(values.tolist(), labels.tolist())


@given(labelled(n_classes=5), st.integers(1, 5))
def test_the_cuts_that_save_most_come_first(table, at_most):
    values, labels = table
    cuts = mdl_cuts(values, labels, at_most=at_most)
    assert len(cuts) < at_most
    assert set(cuts) <= set(mdl_cuts(values, labels))
    assert cuts.tolist() == naive_cuts(values.tolist(), labels.tolist(), at_most)


def test_there_are_tables_with_several_cuts():
    values = np.arange(400) % 100 / 10
    assert mdl_cuts(values, np.searchsorted([2, 5, 7], values)).tolist() == [2.05, 5.05, 7.05]
    assert mdl_cuts(values, np.searchsorted([2, 5, 7], values), at_most=2).tolist() == [5.05]


@given(labelled(), st.randoms(use_true_random=False))
def test_the_order_of_rows_and_the_codes_of_labels_do_not_matter(table, random):
    values, labels = table
    order = list(range(len(values)))
    random.shuffle(order)
    again = mdl_cuts(values[order], labels[order] * 7 - 3)
    assert again.tolist() == mdl_cuts(values, labels).tolist()


@given(labelled(), st.sampled_from([np.nan, np.inf, -np.inf]))
def test_missing_values_are_left_out(table, missing):
    values, labels = table
    more = np.concatenate([values, np.full(30, missing)])
    assert (
        mdl_cuts(more, np.concatenate([labels, np.arange(30) % 2])).tolist()
        == mdl_cuts(values, labels).tolist()
    )


@pytest.mark.parametrize("n_rows", [0, 1])
def test_too_few_rows_have_no_cut(n_rows):
    assert mdl_cuts(np.arange(n_rows, dtype=float), np.arange(n_rows)).tolist() == []


def test_more_classes_than_powers_of_three_are_no_overflow():
    values = np.repeat(np.arange(700.0), 20)
    cuts = mdl_cuts(values, values.astype(np.int64), at_most=4)
    assert len(cuts) == 3


def test_a_number_is_told_apart_by_its_quartiles():
    values = np.arange(200.0)
    y = np.where(values < 50, 1.0, np.where(values < 100, 2.0, np.where(values < 150, 3.0, 400.0)))
    assert mdl_cuts(values, y, is_number=True).tolist() == [49.5, 99.5, 149.5]
    y[[3, 120]] = np.nan
    assert mdl_cuts(values, y, is_number=True).tolist() == [99.5, 149.5]  # the first quartile is 2 now
    assert mdl_cuts(values, np.full(200, 3.5), is_number=True).tolist() == []
    assert mdl_cuts(np.zeros(0), np.zeros(0), is_number=True).tolist() == []


@given(st.lists(st.floats(-5, 5) | st.sampled_from([1.0, 2.0, math.nan, math.inf])))
def test_a_value_at_a_cut_is_on_its_left(values):
    cuts = [1.0, 2.0]
    expected = [sum(value > cut for cut in cuts) if math.isfinite(value) else 3 for value in values]
    assert cells(np.array(values), np.array(cuts)).tolist() == expected
