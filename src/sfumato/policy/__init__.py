"""What the owner of a table says: columns, requirements, purposes, method. Values only, never a row.

A policy is a YAML document. ``document`` has :class:`Policy`; ``file`` reads the document with its lines, ``shape`` says
what may stand where in it, by the rules of ``model``, and ``checks`` holds its values against each other. ``schema`` has
:class:`Attribute` and :class:`Schema`; ``requirements`` what every published group must satisfy (:class:`KAnonymity`, the
diversities); ``workload`` what the release is for; ``hierarchy`` how values are generalized; ``output`` what is
published; ``options`` what each method can be told.
"""
