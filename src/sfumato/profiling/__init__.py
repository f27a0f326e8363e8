"""A first look at a table, and a draft of a policy: ``profile``, with the ``facts`` of its columns and a ``guess`` of
their roles (by ``names``), as a ``draft``; ``private`` drafts one for DiffGen.
"""
