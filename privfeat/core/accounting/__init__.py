"""From (epsilon, delta) to noise, and back.

``conversions`` has the formulas, ``pld`` and ``rdp`` the loss distributions and Rényi
divergences of sampled records, ``loss_grid`` how fine the former are, and
``accountants`` picks among them. ``plan`` holds what a fit will release, and
``calibration`` finds its noise. ``run_count`` and ``selection`` are the cost of the
best of many fits.
"""
