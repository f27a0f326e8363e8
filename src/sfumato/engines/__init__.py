"""Where the rows live: ``engine`` says whether in memory or on disk.

``scan`` reads a table into blocks of codes, with ``payload``, the cells that are published as they are, beside them;
``rows`` keeps such blocks in files; ``counts`` counts rows by key in bounded memory; ``reservoir`` draws a sample of
rows that are read once.
"""
