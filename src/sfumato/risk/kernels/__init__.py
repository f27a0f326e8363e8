"""Compiled loops of the search for minimal sample uniques."""
