"""The cells of a column as numbers or as distinct values, whatever the column was made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.encoders import MISSING, values_of
from sfumato.policy.schema import Attribute, Kind
from sfumato.table.cells import lenient_ordered, lenient_texts, ordered, texts


def read_ordered(attribute: Attribute, column: Any, *, leniently: bool = False) -> NDArray[np.float64]:
    """Cells of an ordered column as numbers; missing is -inf, and ``leniently`` so is what cannot be read."""
    cells = lenient_ordered(column, attribute) if leniently else ordered(column, attribute)
    values = np.asarray(cells.fill_null(0).to_numpy(zero_copy_only=False)).astype(np.float64)
    if cells.null_count:
        values[np.asarray(cells.is_null().to_numpy(zero_copy_only=False))] = MISSING
    return values


def distinct_cells(
    column: Any, attribute: Attribute, *, leniently: bool = False
) -> tuple[pa.DictionaryArray, Any]:
    """The cells of a column with a hierarchy, null where missing, and the distinct values as hierarchies know them.

    ``leniently`` what cannot be read is missing.
    """
    if attribute.kind is Kind.CATEGORY:
        cells = (lenient_texts if leniently else texts)(column, attribute)
    else:
        read = lenient_ordered if leniently else ordered
        cells = read(column, attribute).dictionary_encode()
    return cells, values_of(cells, attribute)
