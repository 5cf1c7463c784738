"""Sums over bounded records, free of rounding: the same in any order, on any device.

``records`` says how a fit hands its records over, and ``calls`` how many at once.
``statistics`` and ``confidence`` make sums of a chunk, with what is in ``arithmetic``,
``batches`` those of networks, and ``totals`` adds them. ``devices`` checks that the
hardware computes them exactly, by the ``trials``. ``processes`` lets several hosts
share one fit, and ``leaving`` ends a process that lost the others.
"""
