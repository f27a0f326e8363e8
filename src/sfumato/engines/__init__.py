"""Where the rows live.

``scan`` reads a table into encoded blocks, with ``payload`` beside them; ``rows`` keeps the blocks of one node in
files; ``reservoir`` draws a sample of rows that pass by.
"""
