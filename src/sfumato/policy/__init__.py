"""What the owner of a table says: columns, requirements, purposes, method. Values only, never a row.

A policy is a YAML document. ``document`` has :class:`Policy`. ``yaml`` and ``file`` read the document with its lines;
``shape`` says what may stand where in it, in parts (``model``) that are made of ``rules``; ``checks`` holds its values
against each other, and ``mistakes`` collects what is wrong.

``schema`` has :class:`Attribute` and :class:`Schema`, ``kinds`` exact decimals, dates and periods; ``requirements`` what
every published group must satisfy (:class:`KAnonymity`, the diversities); ``workload`` what the release is for, with
conditions (``predicate``) as unions of ``rectangles``; ``hierarchy`` how values are generalized; ``output`` what is
published; ``options`` what each method can be told.
"""
