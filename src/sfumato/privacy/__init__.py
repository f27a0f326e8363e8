"""What a differentially private method needs: ``mechanisms`` to draw with, the ``ledger`` of one run, and the
``account`` of all releases of a table.
"""
