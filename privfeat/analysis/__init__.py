"""Practice tools, none of which draws noise or charges a ledger.

The fits that some of them run do so, each by its own parameters.

Each is a module of its own:

tan.py, scaling.py
    Total amount of noise of DP-SGD, and scaling laws at constant noise (Sander et al.
    2023).
planning.py, batches.py, public_trials.py
    What a budget buys before any private record is read.
metrics.py, reliability.py
    Calibration of any classifier, and its diagrams (Bu et al. 2023).
utility.py
    Accuracy and calibration against epsilon.

matplotlib is needed only to draw.
"""
