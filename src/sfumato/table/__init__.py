"""Any table in and out, as Arrow.

``source`` opens a table, whatever it is kept in, and writes one; :class:`Reading` (``reading``) says how its text is
written. ``databases``, ``spreadsheets``, ``objects`` (Python values), ``text_encoding`` and ``csv_header`` each know one
kind of table; ``allowance`` limits the memory that reading may take, ``formulas`` keeps cells from running in a
spreadsheet. ``spill`` is the folder for what does not fit in memory, with ``stored`` tables, ``distinct`` values,
``buckets`` and ``counters`` of what was read and written; ``locks`` and ``renames`` make changes of files safe.
"""
