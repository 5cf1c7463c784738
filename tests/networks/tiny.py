"""The parameters of fits that are over in a second."""

TINY = {
    "model": "mlp",
    "noise_multiplier": 1.0,
    "classes": range(3),
    "n_iter": 4,
    "expected_batch_size": 8,
    "microbatch_size": 4,
    "random_state": 1,
}
# Nothing here is timed, so nothing has to be fast but the compiler.
UNOPTIMIZED = {"xla_backend_optimization_level": 0}
