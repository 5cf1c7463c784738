"""The records of a fit: read, scaled, centred and bounded, a chunk at a time.

``bounded`` holds the rows of every fit, ``sparse`` and ``target`` those of sparse
features and of a regression. ``scaling`` says what a row becomes, and ``slots`` where
the records of a user stand.
"""

# The release of the mean: who asks for it, and who draws it.
MEAN = "feature_mean"
# The constant coordinate that counts records, in units of the norm of a row; it takes
# 11 % of the norm from the features.
COUNT_SCALE = 0.5
