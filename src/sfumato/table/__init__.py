"""Any table in and out, as Arrow.

``opening`` has :func:`open_table`, which gives a :class:`Source` (``source``) for whatever a table is kept in:
``csv_file`` (with ``text_encoding``), ``arrow_files``, ``frames``, ``databases``, ``spreadsheets``. :class:`Reading`
(``reading``) says how its text is written. ``cells`` gives the cells of a column a meaning, ``objects`` those that are
Python values. ``write`` is the way out, ``files`` lets a file appear whole or not at all, and ``formulas`` keeps cells
from running in a spreadsheet. ``allowance`` limits the memory that reading may take; ``spill`` is the folder for what
does not fit, with ``stored`` tables, ``distinct`` values and ``sorted_runs`` of records.
"""
