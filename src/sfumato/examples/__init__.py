"""Tables to try things on: the bundled patients (``demo``), and the synthetic people of Agrawal et al. (``agrawal``)."""
