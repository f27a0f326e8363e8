"""Questions to a release: ``answers`` (COUNT, SUM, AVG with bounds), ``select`` (which boxes a condition meets) and
``overlap`` (the share of each box inside a range), which asks ``visible_tree`` how much of a hierarchy a release shows.
"""
