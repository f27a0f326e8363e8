"""Compiled loops of risk-utility: arrays in, arrays out; one module for each optimizer, over ``lattice``."""
