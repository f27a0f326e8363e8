"""Where the rows live: ``scan`` reads a table into encoded blocks, ``rows`` keeps blocks of one node in files."""
