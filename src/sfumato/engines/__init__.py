"""Where the rows live, and the verbs by which methods work on them.

``engine`` says whether rows live in memory or on disk, and ``start`` starts the engine that was chosen. ``protocol`` has
the verbs: gather, divide, finish. ``memory`` and ``disk`` are engines, and ``local`` is what they share. ``scan`` reads a
table into blocks of codes, with ``payload``, the cells that are published as they are, beside them; ``rows`` keeps such
blocks in files; ``counts`` counts rows by key in bounded memory; ``reservoir`` draws a sample of rows that are read once.
"""
