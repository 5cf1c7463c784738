"""What scikit-learn did before it called a fit, as far as a charge must cover it.

``stack`` finds who waits for the fit. ``folds`` knows which choices of records a charge
covers, ``stateless`` which steps learn nothing from them, and ``forms`` where one
record decides how a step reads the others. ``several_fits`` knows what makes several
charges of one.
"""
