import numpy as np

from privfeat.analysis.wall import PrivacyWallDisplay, RdpRatioDisplay


def test_wall_display_draws_a_line_for_each_number_of_steps():
    display = PrivacyWallDisplay.from_eta(
        0.13, delta=1e-6, n_iters=(1000, 10_000), noise_multipliers=(0.5, 2.0, 4.0)
    )
    lines = display.ax_.get_lines()
    assert np.array_equal(lines[0].get_ydata(), display.curves[1000])
    assert len(lines) == 2 + 2  # and the closed form and the wall


def test_ratio_display_draws_a_line_for_each_noise():
    display = RdpRatioDisplay.from_eta_step(3.9e-3, orders=(2, 4))
    assert list(display.curves) == [0.5, 1.0, 2.0, 4.0]
    assert display.figure_ is display.ax_.figure
