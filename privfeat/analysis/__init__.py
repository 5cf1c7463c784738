"""Practice tools, none of which draws noise or charges a ledger.

The fits that some of them run do so, each by its own parameters.

Each is a module of its own:

tan.py, scaling.py, wall.py
    Total amount of noise of DP-SGD, scaling laws at constant noise, and pictures of
    the privacy wall (Sander et al. 2023).
planning.py, batches.py, public_trials.py
    What a budget buys before any private record is read.
metrics.py, reliability.py
    Calibration of any classifier, and its diagrams (Bu et al. 2023).
utility.py, ablation.py
    Accuracy and calibration against epsilon; clip norm by learning rate.
ntk.py, ntk_decay.py, ntk_table.py
    What clipping does to the neural tangent kernel (Bu et al. 2023).

matplotlib is needed only to draw.
"""
