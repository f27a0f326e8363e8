"""Where the rows live: ``engine`` says whether in memory or on disk.

``scan`` reads a table into encoded blocks, with ``payload`` beside them; ``rows`` keeps the blocks of one node in
files; ``reservoir`` draws a sample of rows that pass by.
"""
