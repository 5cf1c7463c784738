"""Practice tools. They draw no noise and charge no ledger; the fits that they run do.

tan.py, tan_search.py
    Total amount of noise of DP-SGD, settings that share it, and which of them is best
    on public records (Sander et al. 2023).
tuning/
    Clip norm and rate of DP-SGD by public records (Kurakin et al. 2022).
central_limit.py
    Gaussian DP by the central limit, as some papers account: an approximation.
planning.py, batches.py, public_trials.py
    What a budget buys before any private record is read.
budgets/
    What all fits of a project cost together.
metrics.py, reliability.py
    Calibration of any classifier, and its diagram (Bu et al. 2023).
rates.py
    Predictions for other rates of the classes, and thresholds, after a fit.
utility.py
    Accuracy and calibration against epsilon.

matplotlib is needed only to draw.
"""
