"""How a feature file is made: of arrays, in pieces by a writer, or by joining others.

What is written so far lies in ``parts``, and HDF5 writes through a ``sink``.
"""
