"""The records of a linear fit: read, scaled, centred and bounded, a chunk at a time.

``bounded`` holds the rows of every fit, ``sparse`` and ``target`` those of sparse
features and of a regression. ``scaling`` says what a row becomes.
"""
