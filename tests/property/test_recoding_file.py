"""Trees in pieces against the same trees in one: same boxes, for the rows of the table and for any others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from cut_trees import Cut, Grown, cut, path_to
from hypothesis import given
from hypothesis import strategies as st
from mondrian_cases import reachable_cases

from sfumato.policy import Output
from sfumato.recoding_file import spine


@st.composite
def cut_trees(draw: Any, **options: Any) -> tuple[Any, Grown, Cut]:
    case = draw(reachable_cases(**options))
    tree = Grown.of(case)
    at = draw(st.sets(st.integers(0, len(tree.nodes.axis) - 1), max_size=6))
    return case, tree, cut(tree, sorted(at))


def texts(columns: dict[str, pa.Array]) -> dict[str, list[Any]]:
    return {name: column.to_pylist() for name, column in columns.items()}


@given(cut_trees(), st.sampled_from(Output))
def test_the_leaves_of_a_piece_have_their_labels_before_there_is_a_tree(given, output):
    _, tree, parts = given
    whole = tree.recoding(output)
    for leaf, number in parts.hung.items():
        piece = parts.pieces[number]
        path = path_to(parts.top.nodes, leaf)
        found, places = spine(path, piece.nodes, piece.covers, tree.domains, tree.roots, output, frozenset())
        old = np.array(piece.old)[piece.nodes.axis < 0]
        assert texts(found.columns(places)) == texts(whole.columns(old))
        # the whole tree has more hierarchy nodes, so that their numbers differ, but not ordered ends
        ordered = [a for a, axis in enumerate(found.axes) if hasattr(axis, "grid")]
        for one, other in zip(found.ends(places), whole.ends(old), strict=True):
            np.testing.assert_array_equal(one[:, ordered], other[:, ordered])
