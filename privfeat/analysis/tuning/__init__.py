"""Settings of DP-SGD that fits on public records choose."""
