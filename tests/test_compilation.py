"""The cache of compiled code: where it is, and how to be without it."""

import math
import os
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread

import jax
import pytest

from privfeat.estimation import fitting
from privfeat.estimation.fitting import code_of_others, kept_compiled_code

# With one key: whether rows are shifted, by another function, depends on the noise.
FIT = """
from privfeat import DPLeastSquares
options = {"epsilon": 1, "classes": [0, 1], "random_state": 0}
DPLeastSquares(**options).fit([[1.0], [2.0]], [0, 1])
import jax
print(jax.config.values["jax_compilation_cache_dir"])
"""


def run(folder, code=FIT, **environment):
    environment = {**os.environ, "HOME": str(folder), **environment}
    for name in ("XDG_CACHE_HOME", "JAX_COMPILATION_CACHE_DIR"):
        if name not in environment.get("KEEP", ""):
            environment.pop(name, None)
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def compiled(folder):
    return {path.name for path in folder.rglob("*-cache")}


@pytest.mark.slow
def test_compiled_code_is_kept_for_the_next_process(tmp_path):
    folder = tmp_path / ".cache" / "privfeat" / "compiled"
    assert run(tmp_path) == str(folder)
    kept = compiled(folder)
    assert kept
    run(tmp_path)
    assert compiled(folder) == kept


@pytest.mark.slow
@pytest.mark.parametrize("chosen", ["off", "/dev/null/no-folder"])
def test_fit_runs_without_a_cache(tmp_path, chosen):
    assert run(tmp_path, PRIVFEAT_COMPILATION_CACHE=chosen) == "None"
    assert not compiled(tmp_path)


@pytest.mark.slow
def test_a_cache_that_jax_has_stays(tmp_path):
    theirs = str(tmp_path / "theirs")
    found = run(
        tmp_path, JAX_COMPILATION_CACHE_DIR=theirs, KEEP="JAX_COMPILATION_CACHE_DIR"
    )
    assert found == theirs


NETWORK = """
import numpy as np
from pathlib import Path
from privfeat import DPSGDClassifier
draw = np.random.default_rng(0)
options = {"model": "mlp", "classes": [0, 1], "n_iter": 2, "max_group_size": 3}
for fit in range(2):
    X, y, users = draw.normal(size=(20, 3)), draw.integers(0, 2, 20), np.arange(20) // 2
    DPSGDClassifier(noise_multiplier=1.0, expected_batch_size=4, **options).fit(
        X, y, draw.permutation(users)
    )
    print(sorted(path.name for path in Path.home().rglob("*-cache")))
"""


@pytest.mark.slow
def test_compiled_code_of_networks_holds_no_data(tmp_path):
    """Fits on other data of the same shapes compile nothing else."""
    pytest.importorskip("flax")
    first, second = run(tmp_path, code=NETWORK).splitlines()
    assert first == second != "[]"


COUNTS = """
import numpy as np
from pathlib import Path
from sklearn.base import clone
from privfeat import DPAdamLinear, DPLeastSquares, DPLeastSquaresRegressor
from privfeat import DPNewton, DPRandomizedSearch, DPSGDClassifier, TemperatureScaling
draw = np.random.default_rng(0)
options = {"classes": [0, 1], "random_state": 0}
for n in (100, 101, 1025, 20_000):
    X, y, users = draw.normal(size=(n, 3)), np.arange(n) % 2, np.arange(n) // 2
    clf = DPLeastSquares(epsilon=1, **options).fit(X, y)
    clf.predict_proba(X)
    TemperatureScaling(clf, epsilon=1, random_state=0).fit(X, y)
    DPLeastSquares(epsilon=1, **options, max_group_size=2).fit(X, y, users)
    DPLeastSquares(epsilon=1, **options, arithmetic="exact").fit(X, y)
    DPLeastSquaresRegressor(epsilon=1, target_bounds=(0, 1), random_state=0).fit(X, y)
    DPNewton(epsilon=1, **options, n_iter=1).fit(X, y)
    DPAdamLinear(
        epsilon=1, **options, n_iter=2, sampling_prob=0.5, accounting="pld"
    ).fit(X, y)
    fit = clone(clf).set_params(random_state=None, epsilon=None)
    search = DPRandomizedSearch(
        fit, {"ridge": [1.0]}, epsilon=1, mean_runs=1.01, random_state=0
    )
    search.fit(X, y).predict(X)
    search.fit(X, y, X[: n // 2].copy(), y[: n // 2])
    network = DPSGDClassifier(
        noise_multiplier=1.0, model="mlp", **options, n_iter=1,
        expected_batch_size=40, max_group_size=2,
    ).fit(X, y, users)
    network.predict(X)
    print(sorted(path.name for path in Path.home().rglob("*-cache")))
"""


@pytest.mark.slow
def test_compiled_code_tells_no_number_of_records(tmp_path):
    """Whatever is fitted: a record more, more than fill a chunk, or a block of coins.

    The first fits keep their code; none of the others may add to it. The batch of the
    network is of some users: without any, its code is compiled later.
    """
    pytest.importorskip("flax")
    first, *others = run(tmp_path, code=COUNTS).splitlines()
    assert first != "[]"
    assert others == [first] * 3


THEIRS = """
import numpy as np
import jax
from pathlib import Path
from privfeat import DPLeastSquares
rows = np.random.default_rng(0).normal(size=(20, 3))
DPLeastSquares(epsilon=1, classes=[0, 1]).fit(rows, np.arange(20) % 2)
print(sorted(path.name for path in Path.home().rglob("*-cache")))
jax.jit(lambda coef: rows @ coef)(np.ones(3))
print(sorted(path.name for path in Path.home().rglob("*-cache")))
"""


@pytest.mark.slow
def test_functions_of_the_user_are_not_kept(tmp_path):
    """They hold what they use without being passed it: here, the rows themselves."""
    after_fit, after_theirs = run(tmp_path, code=THEIRS).splitlines()
    assert after_fit == after_theirs != "[]"


ON_STEP = """
import numpy as np
import jax
from pathlib import Path
from privfeat import DPSGDClassifier
rows, seen = np.random.default_rng(0).normal(size=(40, 3)), []
def look(step, classifier):
    seen.append(float(jax.jit(lambda scale: (scale * rows).sum())(1.0)))
    classifier.predict(rows)
options = {"model": "mlp", "classes": [0, 1], "n_iter": 2, "expected_batch_size": 4}
options["random_state"] = 0
for on_step in (None, look):
    clf = DPSGDClassifier(noise_multiplier=1.0, on_step=on_step, **options)
    clf.fit(rows, np.arange(40) % 2)
    clf.predict(rows)
    print(sorted(path.name for path in Path.home().rglob("*-cache")))
assert len(seen) == 2
"""


@pytest.mark.slow
def test_what_on_step_compiles_is_not_kept(tmp_path):
    """It may look at private rows, for the eyes of their owner."""
    pytest.importorskip("flax")
    without, with_it = run(tmp_path, code=ON_STEP).splitlines()
    assert without == with_it != "[]"


@pytest.fixture
def ours(plant):
    plant("whether the cache is ours", lambda: True)
    plant("bodies whose code is kept", {"kept": 0, "apart": 0})  # not of other tests
    before = least_seconds()
    jax.config.update(fitting._LEAST_SECONDS, math.inf)
    yield
    jax.config.update(fitting._LEAST_SECONDS, before)


def least_seconds():
    return jax.config.values[fitting._LEAST_SECONDS]


def test_nothing_is_kept_after_the_body(ours):
    with kept_compiled_code():
        with pytest.raises(KeyboardInterrupt), kept_compiled_code():
            raise KeyboardInterrupt
        assert least_seconds() == 0.0
    assert least_seconds() == math.inf


def test_nothing_is_kept_after_the_bodies_of_all_threads(ours):
    begun, end = Event(), Event()

    def body():
        with kept_compiled_code():
            begun.set()
            end.wait()

    thread = Thread(target=body)
    with kept_compiled_code():
        thread.start()
        begun.wait()
    assert least_seconds() == 0.0
    end.set()
    thread.join()
    assert least_seconds() == math.inf


def test_code_of_others_is_not_kept_whoever_begins_or_ends_meanwhile(ours):
    outer, inner = kept_compiled_code(), kept_compiled_code()
    with code_of_others():
        assert least_seconds() == math.inf
    outer.__enter__()
    one, two = code_of_others(), code_of_others()
    one.__enter__()
    two.__enter__()
    inner.__enter__()
    assert least_seconds() == math.inf
    one.__exit__(None, None, None)
    assert least_seconds() == math.inf
    inner.__exit__(None, None, None)
    assert least_seconds() == math.inf
    two.__exit__(None, None, None)
    assert least_seconds() == 0.0
    outer.__exit__(None, None, None)
    assert least_seconds() == math.inf


def test_code_is_kept_by_one_who_asks_jax(ours):
    jax.config.update(fitting._LEAST_SECONDS, 7.0)
    with kept_compiled_code():
        pass
    assert least_seconds() == 7.0


def test_who_has_no_home_fits_without_a_cache(monkeypatch):
    def fail():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", fail)
    monkeypatch.setitem(jax.config.values, fitting._FOLDER, None)
    for name in ("XDG_CACHE_HOME", fitting.VARIABLE):
        monkeypatch.delenv(name, raising=False)
    assert fitting._cache_is_ours.__wrapped__() is False


def test_the_folder_is_that_of_jax():
    found = fitting.folder_of_compiled_code()
    assert found == jax.config.values["jax_compilation_cache_dir"]
