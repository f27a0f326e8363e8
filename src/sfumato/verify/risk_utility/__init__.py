"""Checks of risk-utility releases: ``boxes`` and ``labels`` (what is published), ``coverage`` and ``risk`` (against
the side table), ``sampling`` (the private form).
"""
