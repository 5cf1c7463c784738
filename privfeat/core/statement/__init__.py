"""What is said of a fit, and of several: as a value, in words, in JSON.

``selection`` is a part of a ``privacy_statement``; ``words`` prints it,
``serialization`` and ``event_json`` write it; ``composition`` states what several cost
together.
"""
