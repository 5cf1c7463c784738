"""Noise, and the only place where it is added.

``threefish`` and ``keys`` make keys that never repeat, ``draws`` the Gaussian in
float64, and ``discrete`` and ``exact`` the one without floating point.
``gaussian_mechanism`` turns a planned sum into a ``release``; ``observation`` lets
audits watch it.
"""
