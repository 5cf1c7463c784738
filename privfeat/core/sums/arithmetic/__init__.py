"""The arithmetic of one chunk: class sums, gradients, curvatures, without a total.

``choice`` says which module a process uses: ``host`` on a CPU, ``kernels`` on an
accelerator, with ``slices`` where those are faster, and ``sparse`` for sparse rows.
"""
