"""What tasks are told and what they answer, as bytes: whole again on the other side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engines.scan import Intake
from sfumato.engines.spark import replies
from sfumato.engines.spark.replies import (
    Reply,
    TaskFile,
    cut_reply,
    from_batches,
    join_replies,
    pack,
    to_batches,
    unpack,
)
from sfumato.errors import InputError, InternalError, PromiseError, RequirementUnreachable, TableError
from sfumato.policy.document import Policy
from sfumato.policy.requirements import KAnonymity
from sfumato.table.opening import open_table
from sfumato.table.source import UnreadableFile

HERE = Path("/here")

POLICY = Policy.parse(
    "{attributes: {age: {role: quasi-identifier, type: number}}, require: [k-anonymity: 2]}"
)


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_replies_are_whole_again_in_whatever_order_their_pieces_come(
    objects: list[bytes], random: Any
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replies, "MESSAGE", 16)
        pieces = [
            piece for task, each in enumerate(objects) for piece in cut_reply(7, task, pack(each, HERE).data)
        ]
    random.shuffle(pieces)
    there = [*from_batches(to_batches(pieces))]
    assert sorted(join_replies(there, HERE)) == [(7, task, each) for task, each in enumerate(objects)]


def test_what_many_tasks_hold_is_in_their_file_once(tmp_path: Path) -> None:
    large = np.arange(10_000)
    given_ = [(number, large, POLICY) for number in range(50)]
    file = TaskFile(tmp_path / "plan")
    file.write({"all": large}, given_)
    assert (tmp_path / "plan").stat().st_size < 1.5 * large.nbytes
    work, (number, array, policy) = file.read(31)
    assert number == 31
    assert np.array_equal(array, large)
    assert work["all"] is array
    assert policy == POLICY
    assert file.read(None)[1] is None


def test_the_people_of_a_table_are_not_told_to_each_task_by_itself(tmp_path: Path) -> None:
    people = pa.table({"age": [*range(3000)], "who": [f"person {number:06}" for number in range(3000)]})
    policy = Policy.parse(
        "{attributes: {age: {role: quasi-identifier, type: number}, who: {role: identifier}}, "
        "require: [k-anonymity: 2], unit: who}"
    )
    table = Intake.at_hand(open_table(people), policy)
    table.scan()
    slices = [table.on_slice(replace(table.source, read=None), 0) for _ in range(30)]
    sizes = []
    for n in (1, 30):
        TaskFile(tmp_path / f"plan-{n}").write(None, slices[:n])
        sizes.append((tmp_path / f"plan-{n}").stat().st_size)
    assert b"person 000017" in (tmp_path / "plan-1").read_bytes()
    assert sizes[1] < 1.5 * sizes[0]


def test_files_of_the_run_are_told_by_name_and_others_as_they_are() -> None:
    given_ = {"folder": HERE, "rows": HERE / "rows-1", "table": Path("/lake/t.parquet")}
    packed = pack(given_, HERE)
    assert packed.files == {HERE / "rows-1"}
    there = Path("/there")
    assert unpack(packed.data, there) == {**given_, "folder": there, "rows": there / "rows-1"}


def test_a_plan_says_which_files_its_tasks_need(tmp_path: Path) -> None:
    paths = [tmp_path / f"rows-{number}" for number in range(3)]
    needed = TaskFile(tmp_path / "plan").write(
        {"spill": tmp_path, "first": paths[0]}, [paths[1:2], paths[2:], []]
    )
    assert needed.by_all == {paths[0]}
    assert needed.by_each == ({paths[1]}, {paths[2]}, frozenset())
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "plan").rename(tmp_path / "elsewhere" / "plan")
    assert TaskFile(tmp_path / "elsewhere" / "plan").read(1)[1] == [tmp_path / "elsewhere" / "rows-2"]


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (TableError("Row 3 is no number."), TableError, "Row 3 is no number."),
        (RequirementUnreachable(KAnonymity(5), best="3", n_rows=3), PromiseError, "5-anonymity"),
        (PermissionError(13, "secret"), InputError, "cannot use the run's folder: secret."),
        (MemoryError(), InputError, r"^The memory of a task on the cluster was full; give executors more"),
        (OSError(12, "Cannot allocate"), InputError, r"^The memory of a task on the cluster was full; "),
        (
            UnreadableFile("t.parquet cannot be read: No such file or directory."),
            TableError,
            r"^On a worker of the cluster t\.parquet cannot be read: No such file or directory\. Put the table where",
        ),
    ],
)
def test_our_own_errors_are_raised_again(error: Exception, kind: type[Exception], said: str) -> None:
    failure = Reply(0, 0, 0, True, replies.describe_failure(error))
    with pytest.raises(kind, match=said):
        list(join_replies([failure], HERE))


def test_other_errors_say_what_and_where_and_not_what_they_say() -> None:
    with pytest.raises(ValueError, match="secret") as raised:
        int("secret")
    failure = Reply(0, 0, 0, True, replies.describe_failure(raised.value))
    with pytest.raises(
        InternalError, match=r"^A task on the cluster failed with ValueError \(test_spark"
    ) as told:
        list(join_replies([failure], HERE))
    assert "secret" not in str(told.value)
