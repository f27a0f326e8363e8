"""AIM and MST, makers of synthetic rows, as peers of DiffGen: they run in an environment of their own."""
