"""Arrays without reference counts, for inner loops.

numba counts references to every array that it passes around, by an atomic operation each. A kernel that
hands fifty arrays down four calls per node of a tree spends a third of its time on that (measured).
``borrowed`` returns the same arrays, or named tuples of them, uncounted. The caller of the outermost
kernel keeps the originals alive for the whole call, so nothing can be freed under a borrower.
"""

from __future__ import annotations

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload


@intrinsic
def _uncounted(typing_context, value):  # noqa: ARG001 - numba's signature
    def generate(context, builder, signature, arguments):
        return _strip(context, builder, signature.args[0], arguments[0])

    return value(value), generate


def _strip(context, builder, kind, value):
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value=value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()  # noqa: SLF001 - numba's own way
    if isinstance(kind, types.BaseTuple):
        for i, part in enumerate(kind.types):
            stripped = _strip(context, builder, part, builder.extract_value(value, i))
            value = builder.insert_value(value, stripped, i)
    return value


def borrowed(value):
    """The same array or named tuple of arrays, without reference counts."""
    return value


@overload(borrowed, inline="always")
def _borrowed(value):  # noqa: ARG001 - numba's signature
    return lambda value: _uncounted(value)  # noqa: PLW0108 - numba reads the signature of the lambda
