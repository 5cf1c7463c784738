"""Sums over bounded records, free of rounding: the same in any order, on any device.

``records`` says how a fit hands its records over. ``statistics`` and ``confidence``
make sums of a chunk, by ``host`` on a CPU and by ``kernels`` elsewhere, and ``totals``
adds them. ``devices`` checks that the hardware computes them exactly. ``processes``
lets several hosts share one fit, and ``leaving`` ends a process that lost the others.
"""
