"""Parts of every differentially private method: ``mechanisms`` to draw with, the ``ledger`` of one run, and the
``account`` of all releases of a table.
"""
