r"""Pseudonyms: codes in place of identifiers, which only a secret key makes, and who may share one.

The pseudonym of a person in a group is

.. math:: \mathrm{HMAC}_K(\text{group}, \text{identifier}), \qquad
          K = \mathrm{HMAC}_{\text{owner}}(\text{run}, \text{column}),

cut to 120 bits. The number of a group is drawn for it and the key of the run is secret, so that neither groups nor
releases link. With ``scope: release`` neither goes in.

Rows of one pseudonym tell how many rows a person has. Whoever knows that number of a person finds the rows, where few
people in the group have as many. So the rows of a person share a pseudonym only in a group where, for every number of
rows that people have there, the people with that number satisfy every requirement by themselves. Elsewhere each row has
its own. People are those whom the pseudonym stands for, and with a unit its people, too: a case may be less than a
person, and a doctor has many.

Two columns of pseudonyms together would tell more than each alone (a person with two cases, of two rows and one), so in a
group the rows of one column share at most: the first that may.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InputError, short
from sfumato.policy.document import Policy
from sfumato.policy.requirements import GroupStats, Needs, Requirement
from sfumato.policy.schema import RELEASE, Attribute, Role
from sfumato.randomness import Random, run_key
from sfumato.recoding.owner_key import read_key
from sfumato.recoding.recoder import Partition
from sfumato.table.cells import lenient_texts, numbers, texts
from sfumato.table.source import Source

Ints = NDArray[np.int64]

N_BYTES = 15
"""Bytes of a pseudonym: 24 letters and digits."""

NONCE = 16
"""Bytes of the number that is drawn for a group."""

MOST_CELLS = 1 << 22
"""Counts of sensitive values that are held at once."""


@dataclass(frozen=True, slots=True)
class Pseudonyms:
    """The keys of a run, by column. It can be sent to those who publish groups elsewhere: the owner's keys stay here."""

    of_run: Mapping[str, bytes]
    of_owner: Mapping[str, bytes]
    """For columns whose pseudonyms are the same in every group and release."""

    @classmethod
    def of(cls, policy: Policy, seed: int | None) -> Pseudonyms:
        """Read the owner's keys."""
        columns = [attribute for attribute in policy.schema if attribute.role is Role.PSEUDONYM]
        salt = run_key(seed) if columns else b""
        keys = {attribute.name: _read(attribute) for attribute in columns}
        of_run = {name: _derive(key, b"run" + salt, name) for name, key in keys.items()}
        everywhere = [attribute.name for attribute in columns if attribute.scope == RELEASE]
        return cls(of_run, {name: _derive(keys[name], b"release", name) for name in everywhere})

    def give(
        self,
        name: str,
        words: Sequence[str | None],
        group: Ints,
        may_share: NDArray[np.bool_],
        random: Random,
    ) -> pa.Array:
        """The pseudonym of each row of a column, whose identifiers are ``words``.

        ``group`` is the group of each row, and ``may_share`` tells of each group whether a person's rows share one there.
        """
        drawn = random.bytes(NONCE * len(may_share))
        nonces = [drawn[NONCE * g : NONCE * (g + 1)] for g in range(len(may_share))]
        own, everywhere = self.of_run[name], self.of_owner.get(name)
        known: dict[tuple[int, str], str] = {}
        out = []
        for row, (word, g, shares) in enumerate(
            zip(words, group.tolist(), may_share[group].tolist(), strict=True)
        ):
            if word is None or not shares:
                out.append(_code(own, nonces[g] + b"row" + row.to_bytes(8, "big")))
                continue
            place = (g if everywhere is None else -1), word
            if place not in known:
                text = word.encode("utf-8", "surrogatepass")
                known[place] = (
                    _code(own, nonces[g] + b"person" + text)
                    if everywhere is None
                    else _code(everywhere, text)
                )
            out.append(known[place])
        return pa.array(out, pa.string())


def _read(attribute: Attribute) -> bytes:
    if attribute.key is None:
        raise InputError(
            f"Column {short(attribute.name)} is a pseudonym and has no key; name the file of your secret key, such as "
            "key: owner.key."
        )
    return read_key(attribute.key, attribute.name)


def _derive(key: bytes, purpose: bytes, column: str) -> bytes:
    return hmac.digest(key, b"sfumato pseudonym\0" + purpose + b"\0" + column.encode(), "sha256")


def _code(key: bytes, message: bytes) -> str:
    return base64.b32encode(hmac.digest(key, message, "sha256")[:N_BYTES]).decode().lower()


@dataclass(frozen=True, slots=True)
class GroupPseudonyms:
    """Pseudonyms of the rows of some groups, which are whole unless a group is too large to be at hand at once."""

    pseudonyms: Pseudonyms
    random: Random
    are_whole: bool

    def of_columns(
        self, source: Source, policy: Policy, groups: Partition, order: NDArray[Any]
    ) -> dict[str, pa.Array]:
        """The pseudonyms of every column for rows in this order, group by group."""

        def in_order(column: str) -> pa.Array:
            return source.column(column).combine_chunks().take(pa.array(order))

        def cells_of(column: str) -> pa.DictionaryArray:
            return lenient_texts(in_order(column), policy.schema[column])

        names = policy.schema.names(Role.PSEUDONYM)
        if not names:
            return {}
        n_groups = len(groups.size)
        group = np.repeat(np.arange(n_groups), groups.size)
        needed = {item.of: in_order(item.of) for item in policy.requirements if item.of is not None}
        person = None
        if policy.person is not None and policy.requirements and self.are_whole:
            person = _numbers_of(cells_of(policy.person))
        is_shared = np.zeros(n_groups, dtype=np.bool_)
        found = {}
        for name in names:
            cells = cells_of(name)
            whose = _numbers_of(cells)
            if not policy.requirements:
                may_share = np.ones(n_groups, dtype=np.bool_)
            elif not self.are_whole:
                may_share = np.zeros(n_groups, dtype=np.bool_)
            else:
                may_share = find_sharing(group, n_groups, whose, policy, needed, person) & ~is_shared
                is_shared |= may_share & _find_repeats(group, n_groups, whose)
            found[name] = self.pseudonyms.give(name, cells.to_pylist(), group, may_share, self.random)
        return found


def _numbers_of(cells: pa.DictionaryArray) -> Ints:
    """A number for each cell, -1 where there is none."""
    return np.asarray(cells.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _find_repeats(group: Ints, n_groups: int, whose: Ints) -> NDArray[np.bool_]:
    """In which groups several rows are of one pseudonym."""
    known = whose >= 0
    (at, _), n_rows, _ = _number_pairs(group[known], whose[known])
    return np.bincount(at[n_rows > 1], minlength=n_groups) > 0


# ---- who may share one -------------------------------------------------------------------------------


def find_sharing(
    group: Ints,
    n_groups: int,
    whose: Ints,
    policy: Policy,
    columns: Mapping[str, Any],
    person: Ints | None = None,
) -> NDArray[np.bool_]:
    """Of each group, whether rows of one pseudonym share it there.

    ``whose`` is the number of the pseudonym of each row, -1 where there is none, and ``person`` that of its person, if
    that is another. ``columns`` has the sensitive columns.
    """
    out = np.ones(n_groups, dtype=np.bool_)
    rows = np.flatnonzero(whose >= 0)
    if not len(rows):
        return out
    (at, _), n_rows, of_row = _number_pairs(group[rows], whose[rows])
    # pseudonyms of one group with one number of rows are a class
    (of_class, _), _, own = _number_pairs(at, n_rows)
    for people in [whose] if person is None else [whose, person]:
        (of_person, _), _, person_of_row = _number_pairs(own[of_row], people[rows])
        for item in policy.requirements:
            holds = _judge(item, of_person, len(of_class), person_of_row, rows, policy, columns)
            out[of_class[~holds]] = False
    return out


def _number_pairs(left: Ints, right: Ints) -> tuple[Ints, Ints, Ints]:
    """The distinct pairs of two columns, how many rows have each, and that of each row."""
    pairs, of_row, n_rows = np.unique(
        np.stack([left, right]), axis=1, return_inverse=True, return_counts=True
    )
    return pairs, n_rows, of_row.reshape(-1)


def _judge(
    item: Requirement,
    of_person: Ints,
    n_classes: int,
    of_row: Ints,
    rows: Ints,
    policy: Policy,
    columns: Mapping[str, Any],
) -> NDArray[np.bool_]:
    """Of each class, whether its people satisfy a requirement: each counts once, and once for each value that it has.

    ``of_person`` is the class of each person, who counts in every class with rows of its own, and ``of_row`` the person
    of each of the ``rows``.
    """
    if item.needs not in (Needs.COUNT, Needs.VALUES, Needs.MOMENTS):  # the whole table, say, is not at hand
        return np.zeros(n_classes, dtype=np.bool_)
    if item.of is None:
        return item.holds(GroupStats(np.bincount(of_person, minlength=n_classes)))
    column = columns[item.of].take(pa.array(rows))
    if Needs.MOMENTS in item.needs:
        return item.holds(_variances(column, policy.schema[item.of], of_person[of_row], of_row, n_classes))
    encoded = texts(column, policy.schema[item.of])
    n_values = len(encoded.dictionary) + 1
    value = encoded.indices.fill_null(n_values - 1).to_numpy(zero_copy_only=False).astype(np.int64)
    once = np.unique(of_row * n_values + value)  # a person counts once for each value
    at, value = of_person[once // n_values], once % n_values
    holds = np.empty(n_classes, dtype=np.bool_)
    step = max(MOST_CELLS // n_values, 1)
    for start in range(0, n_classes, step):
        stop = min(start + step, n_classes)
        own = (at >= start) & (at < stop)
        cells = (at[own] - start) * n_values + value[own]
        counts = np.bincount(cells, minlength=(stop - start) * n_values).reshape(-1, n_values)
        holds[start:stop] = item.holds(GroupStats(counts.sum(axis=1), values=counts))
    return holds


def _variances(column: Any, attribute: Attribute, at: Ints, pair: Ints, n_classes: int) -> GroupStats:
    """Count and variance of the numbers of each class; a person counts once for each number."""
    values = numbers(column, attribute).cast(pa.float64())
    is_there = values.is_valid().to_numpy(zero_copy_only=False)
    number = values.fill_null(0).to_numpy(zero_copy_only=False)[is_there]
    once = np.unique(
        np.stack([pair[is_there].astype(np.float64), number], axis=1), axis=0, return_index=True
    )[1]
    at, number = at[is_there][once], number[once]
    count = np.bincount(at, minlength=n_classes)
    mean = np.bincount(at, number, minlength=n_classes) / np.maximum(count, 1)
    spread = np.bincount(at, (number - mean[at]) ** 2, minlength=n_classes)
    return GroupStats(count, variance=spread / np.maximum(count, 1))
