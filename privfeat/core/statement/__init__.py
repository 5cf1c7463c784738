"""What is said of a fit, and of several: as a value, in words, in JSON.

``selection`` is a part of a ``privacy_statement``; ``words`` prints it, with costs that
``rounding`` rounds up; ``serialization`` and ``event_json`` write it; ``composition``
states what several cost together.
"""
