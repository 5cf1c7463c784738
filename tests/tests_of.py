"""Where the tests of a core module are, if not in ``test_<module>.py`` alone.

`tests/mutation.py` runs them on each mutant of the module.
"""

LEDGER = ("privacy_ledger", "damaged_rows", "many_processes")
FILES = ("file/test_file_store", "file/test_disk", "file/test_turns")
SQLITE = ("sqlite/test_sqlite_store", "sqlite/test_sqlite_log")
# Module of the core -> files, as paths from ``test_*.py`` of the same folder.
TESTS = {
    "accounting.plan": (
        *("plan", "noise_levels", "../bounds/test_strategy"),
        *("../statement/test_privacy_statement", "../statement/test_serialization"),
    ),
    "accounting.run_count": ("run_count", "../statement/test_selection"),
    "accounting.calibration": (
        *("calibration", "noise_levels", "rdp", "../bounds/test_strategy"),
    ),
    "accounting.pld": ("pld", "noise_levels", "calibration", "loss_grid"),
    "accounting.rdp": ("rdp", "noise_levels"),
    "accounting.accountants": ("noise_levels", "rdp"),
    "bounds.clipping": (
        *("clipping", "grid", "../sums/test_statistics", "../sums/test_papers"),
        "../sums/arithmetic/test_kernels",
    ),
    "bounds.grid": ("grid", "../sums/arithmetic/test_slices"),
    "bounds.replacement": (
        *("replacement", "../sums/test_confidence", "../sums/test_moments"),
    ),
    "bounds.rows": (
        *("rows", "hard_rows", "../sums/test_statistics", "../sums/test_papers"),
    ),
    "bounds.user_clips": (
        *("user_clips", "users", "../sums/arithmetic/test_clipped_users"),
    ),
    "bounds.users": ("users", "../sums/arithmetic/test_clipped_users"),
    "bounds.sensitivity": ("sensitivity", "sensitivity_inputs"),
    "bounds.sparse": ("sparse", "canonical_rows"),
    "sums.arithmetic.gram": (
        *("kernels", "slices", "../test_records"),
        *("../test_statistics", "../test_papers", "../test_several_labels"),
    ),
    "sums.arithmetic.kernels": (
        *("kernels", "slices", "../test_statistics", "../test_papers"),
        *("../test_several_labels", "../../bounds/test_clipping"),
    ),
    "sums.arithmetic.residuals": (
        *("residuals", "sparse", "../test_statistics", "../test_weights"),
        *("../../../solvers/test_regression", "../../../linear/test_regressor"),
        "../../../linear/test_corrections",
    ),
    "sums.arithmetic.sparse": ("sparse", "../../../linear/test_user_sums"),
    "sums.arithmetic.weighted": ("../test_weights", "clipped_users", "sparse"),
    "sums.calls": ("calls", "arithmetic/test_slices"),
    "sums.confidence": ("confidence", "moments"),
    "sums.devices": ("devices", "arithmetic/test_slices"),
    "sums.trials": ("trials", "devices", "arithmetic/test_slices"),
    "sums.statistics": (
        *("statistics", "papers", "several_labels", "arithmetic/test_sparse"),
        *("arithmetic/test_kernels", "arithmetic/test_slices"),
    ),
    "sums.totals": ("totals", "records", "statistics", "papers"),
    "statement.privacy_statement": ("privacy_statement", "serialization"),
    "statement.words": ("words", "serialization", "selection"),
    "statement.event_json": ("../ledger/test_privacy_ledger",),
    "ledger.stores.file_store": tuple(f"../{name}" for name in (*FILES, *SQLITE)),
    "ledger.stores.chained_log": (
        *("chained_log", "../sqlite/test_sqlite_log", "../sqlite/test_sqlite_store"),
        *("../file/test_file_store", "../file/test_disk"),
    ),
    "ledger.stores.sqlite_store": tuple(f"../{name}" for name in SQLITE),
    "callers.stack": ("folds", "../../linear/test_order_of_labels"),
    "callers.folds": ("folds", "types_of_columns", "texts_of_columns"),
    "callers.marked_rows": ("folds",),
    "callers.forms": ("types_of_columns", "texts_of_columns"),
    "callers.several_fits": ("../../selection/test_several_fits",),
    "callers.candidates": ("../../selection/test_candidates",),
    "ledger.rows": (*LEDGER, *FILES, "runs"),
    "ledger.charging": (
        *("charging", "charging_together", "runs"),
        *("../../selection/test_search_warnings", "../../selection/test_candidates"),
    ),
    "ledger.runs": ("runs", "charging"),
    "ledger.store": ("file/test_shared_disk", *LEDGER, *FILES),
    "ledger.privacy_ledger": (*LEDGER, "room", "store", "file/test_shared_disk"),
    "ledger.names": ("names", "privacy_ledger"),
    "ledger.opening": ("opening", "store", "privacy_ledger", "file/test_shared_disk"),
    "ledger.budget": ("budget", "room", *LEDGER),
    "ledger.room": ("budget", "room", *LEDGER),
    "noise.draws": ("draws", "threefish"),
    "noise.gaussian_mechanism": (
        *("gaussian_mechanism", "mechanism_refusals", "correlated"),
    ),
    "private_fit": ("private_fit", "private_steps", "statement/test_weak_choices"),
    "statement.weak_choices": ("weak_choices", "../test_private_fit"),
    "noise.release": ("gaussian_mechanism", "draws"),
}
