"""How far rows of a table or a release can be traced to people.

``assess`` is the one way in: it counts people (``tables``) and asks ``measures``, ``uniqueness`` and
``minimal_uniques``. ``result`` is what was found, in words and as the command writes it.
"""
