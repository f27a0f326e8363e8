"""What the owner of a table says: columns, requirements, purposes, method. Values only, never a row.

A policy is a YAML document. ``document`` has :class:`Policy`, and reads and writes it; ``file`` finds the line of a
mistake; ``model`` has the rules for single values, and ``shape`` the whole document with its JSON Schema; ``schema`` has
:class:`Attribute` and :class:`Schema`; ``requirements`` what every published group must satisfy (:class:`KAnonymity`, the
diversities); ``workload`` what the release is for; ``hierarchy`` how values are generalized; ``output`` what is
published; ``options`` what each method can be told.
"""
