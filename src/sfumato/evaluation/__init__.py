"""Evaluation of a release: models learn from it, and are tested on rows that they have never seen.

``protocol`` has :func:`evaluate`, ``result`` what it returns (:class:`Evaluation`), which reports read without loading
the rest. ``points`` and ``features`` turn boxes into what models learn from; ``models``, ``linear``, ``trees``,
``pruning``, ``naive_bayes`` and ``weka`` are the models, ``measures`` general measures, ``intervals`` the
intervals and tests of their scores; ``private`` evaluates noisy counts.
"""
