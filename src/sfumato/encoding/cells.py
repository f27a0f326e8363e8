"""Cells of a column before they are encoded: as numbers, as distinct values, by what they look like."""

from __future__ import annotations

from typing import Any
from unicodedata import category, normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.encoding.domain import MISSING, Codes
from sfumato.policy.schema import Attribute, Kind
from sfumato.table.cells import lenient_ordered, lenient_texts, ordered, texts


def read_ordered(attribute: Attribute, column: Any, *, leniently: bool = False) -> NDArray[np.float64]:
    """Cells of an ordered column as numbers; missing is -inf, and ``leniently`` so is what cannot be read."""
    return as_floats((lenient_ordered if leniently else ordered)(column, attribute))


def as_floats(cells: pa.Array) -> NDArray[np.float64]:
    """Numbers or days as floats; missing is -inf."""
    values = np.asarray(cells.fill_null(0).to_numpy(zero_copy_only=False)).astype(np.float64)
    is_missing = is_null(cells)
    if is_missing is not None:
        values[is_missing] = MISSING
    return values


def distinct_cells(
    column: Any, attribute: Attribute, *, leniently: bool = False
) -> tuple[pa.DictionaryArray, Any]:
    """The cells of a column with a hierarchy, null where missing, and the distinct values as hierarchies know them.

    ``leniently`` what cannot be read is missing.
    """
    cells = cells_by_value(column, attribute, leniently=leniently)
    return cells, values_of(cells, attribute)


def cells_by_value(column: Any, attribute: Attribute, *, leniently: bool = False) -> pa.DictionaryArray:
    """The cells of a column by a dictionary of texts, numbers or days; null is missing.

    >>> cells_by_value(pa.array([" 1", "2", "1.0"]), Attribute("x", "other", Kind.NUMBER)).dictionary.to_pylist()
    [1, 2]
    """
    if attribute.kind is Kind.CATEGORY:
        return (lenient_texts if leniently else texts)(column, attribute)
    return (lenient_ordered if leniently else ordered)(column, attribute).dictionary_encode()


def values_of(cells: pa.DictionaryArray, attribute: Attribute) -> Any:
    """The distinct values of cells as hierarchies know them: texts, float64 numbers or datetime64[D] dates."""
    if attribute.kind is Kind.CATEGORY:
        return cells.dictionary.to_pylist()
    values = cells.dictionary.to_numpy(zero_copy_only=False)
    return values.astype("datetime64[D]" if attribute.kind is Kind.DATE else np.float64)


def look_of(texts: pa.Array) -> pa.Array:
    r"""What texts look like: without blanks around them, characters that are not seen, and other forms of a letter.

    By Unicode's NFKC; then characters of the category Cf go, and what has met is composed again. Case stays.

    >>> look_of(pa.array(["fl\u00adu", "\ufb02u", " flu\u200b", "Flu"])).to_pylist()
    ['flu', 'flu', 'flu', 'Flu']
    """
    if not pc.all(pc.string_is_ascii(texts), min_count=0).as_py():
        texts = pa.array([_drop_format_characters(text) for text in texts.to_pylist()], pa.string())
    return pc.utf8_trim_whitespace(texts)


def _drop_format_characters(text: str | None) -> str | None:
    if text is None or text.isascii():
        return text
    seen = (letter for letter in normalize("NFKC", text) if category(letter) != "Cf")
    return normalize("NFKC", "".join(seen))


# ---- from cells to arrays --------------------------------------------------------------------------


def present_cells(cells: pa.Array) -> NDArray[Any]:
    """The cells that are not missing."""
    return np.asarray((cells.drop_null() if cells.null_count else cells).to_numpy(zero_copy_only=False))


def is_null(cells: pa.Array) -> NDArray[np.bool_] | None:
    """Which cells are missing, None if there is none."""
    if cells.null_count == 0:
        return None
    return np.asarray(cells.is_null().to_numpy(zero_copy_only=False))


def put_missing(codes: Codes, is_missing: NDArray[np.bool_] | None, missing: int = 0) -> Codes:
    """Codes of all cells: those of the cells that are there, and ``missing`` for the others."""
    if is_missing is None:
        return codes
    out = np.full(len(is_missing), missing, dtype=np.uint32)
    out[~is_missing] = codes
    return out


def spread_codes(cells: pa.DictionaryArray, codes: NDArray[Any], missing: int) -> Codes:
    """The code of each cell from the codes of its distinct values.

    >>> spread_codes(pa.array(["b", None, "a"]).dictionary_encode(), np.array([7, 4]), missing=9)
    array([7, 9, 4], dtype=uint32)
    """
    known = np.append(codes, missing).astype(np.uint32)
    indices = cells.indices.fill_null(len(codes)) if cells.null_count else cells.indices
    return np.asarray(known[indices.to_numpy(zero_copy_only=False)])
