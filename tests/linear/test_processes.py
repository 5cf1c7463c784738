"""Several devices and processes give what one gives, and add the noise once."""

from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
from sklearn.base import clone

import privfeat
from privfeat.core.sums.processes import Team, all_processes, check_alone, current_team
from privfeat.data import write_features
from privfeat.estimation.team import _described
from privfeat.exceptions import PrivacyError
from tests.jobs import run_job
from tests.linear import processes


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, processes.N_CLASSES, 3100)
    X = rng.normal(size=(len(y), 5)) + y[:, None]
    return X.astype(np.float32), y


@pytest.fixture(scope="module")
def alone(data):
    """What one process on one device finds."""
    return processes.fit_all(*data)


def run(folder, data, case, *, size=2, flags=""):
    """Run ``case`` in real processes and return what each found."""
    write_features(folder / "features.h5", {"train": data})
    statuses, errors = run_job(processes.__file__, folder, case, size=size, flags=flags)
    if case == "killed":
        return str(np.load(folder / "0.npz")["message"]), statuses[0]
    assert not any(statuses), errors
    return [dict(np.load(folder / f"{index}.npz")) for index in range(size)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory, data):
    """What two processes find that read one file."""
    return run(tmp_path_factory.mktemp("shared"), data, "shared")


def check_same(found, expected):
    """Sums bit for bit; models to the rounding of the solver, which has threads."""
    for name, values in expected.items():
        if name.startswith("exact"):
            np.testing.assert_array_equal(found[name], values, err_msg=name)
        else:
            np.testing.assert_allclose(found[name], values, rtol=1e-9, err_msg=name)


@pytest.mark.slow
def test_two_processes_on_one_file_give_the_model_of_one(shared, alone):
    for found in shared:
        check_same(found, alone)


@pytest.mark.slow
def test_two_processes_with_their_own_rows_give_the_model_of_one(tmp_path, data, alone):
    for found in run(tmp_path, data, "own"):
        check_same(found, alone)


@pytest.mark.slow
def test_two_processes_keep_the_same_records_of_a_user(shared, data):
    X, y = data
    users = privfeat.DPFC(
        epsilon=1.0, random_state=7, classes=range(3), n_iter=2, max_group_size=2
    )
    with pytest.warns(privfeat.PrivacyWarning):
        users.fit(X, y, groups=np.arange(len(y)) // 4)
    for found in shared:
        np.testing.assert_allclose(found["users_coef"], users.coef_, rtol=1e-9)


@pytest.mark.slow
def test_unseeded_processes_share_one_noise(tmp_path, data):
    first, second = run(tmp_path, data, "unseeded")
    np.testing.assert_array_equal(first["coef"], second["coef"])


@pytest.mark.slow
def test_processes_refuse_what_would_count_twice(tmp_path, data):
    messages = {
        "differs": "all processes must have the same fit",
        "shuffled": "all processes must have the same rows",
        "regrouped": "all processes must have the same groups",
        "classes": "classes must be given",
        "groups": "groups must be None",
        "twice": "each process must have rows of its own",
    }
    for found in run(tmp_path, data, "refusals"):
        for case, message in messages.items():
            assert message in str(found[case]), case


@pytest.mark.slow
def test_processes_refuse_what_differs_in_any_parameter(tmp_path, data):
    """``clip_norm`` of 1e3 and 1e-3 stated a sensitivity of 0.001 and moved 371."""
    for found in run(tmp_path, data, "different"):
        for name in processes.DIFFERENT:
            assert "all processes must have the same fit" in str(found[name]), name
        for name in ("sum_grid_step", "sum_shape", "sum_type", "position"):
            assert "all processes must have the same sum" in str(found[name]), name
        assert "all processes must have the same" in str(found["release_name"])
        np.testing.assert_array_equal(found["release_value"], [0.5, 0.5])


@pytest.mark.parametrize("value", [lambda: 1, {1, 2}, object()])
def test_what_cannot_be_compared_is_refused(value):
    with pytest.raises(PrivacyError, match="classes must be made of numbers"):
        _described(privfeat.DPFC(classes=value))


@pytest.mark.slow
def test_a_killed_process_ends_the_others_with_a_sentence(tmp_path, data):
    message, status = run(tmp_path, data, "killed")
    assert "process 1 ended or cannot be reached" in message
    assert "stays charged" in message
    assert status == 1


def test_every_parameter_is_compared_but_those_named():
    """Each parameter of each estimator, set to something else, changes the text."""
    for name in ("DPFC", "DPAdamLinear", "DPNewton", "DPLeastSquares", "DPNearestMean"):
        clf = getattr(privfeat, name)()
        expected = _described(clf)
        for parameter in set(clf.get_params()) - {"ledger"}:
            other = _described(clone(clf).set_params(**{parameter: 0.12345}))
            same = parameter in ("random_state", "verbose")
            assert (other == expected) is same, parameter


@pytest.mark.slow
def test_eight_devices_give_the_model_of_one(tmp_path, data, alone):
    flags = "--xla_force_host_platform_device_count=8"
    (found,) = run(tmp_path, data, "shared", size=1, flags=flags)
    check_same(found, alone)


@pytest.mark.parametrize("n_chunks", [0, 1, 2, 7, 8])
@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_every_chunk_is_read_by_one_process(n_chunks, size):
    parts = [Team(index, size).part(n_chunks) for index in range(size)]
    assert [chunk for part in parts for chunk in part] == list(range(n_chunks))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_all_processes_holds_inside_the_block_alone():
    with all_processes("own"):
        assert current_team().rows == "own"
    assert current_team() == Team()


def test_all_processes_ends_with_an_error_in_the_block():
    with pytest.raises(KeyError), all_processes("own"):
        raise KeyError
    assert current_team() == Team()


@pytest.mark.parametrize(
    "make",
    [
        lambda: privfeat.DPRandomizedSearch(privfeat.DPFC(), {"n_iter": [1, 2]}),
        lambda: privfeat.TemperatureScaling(privfeat.DPFC()),
    ],
)
def test_what_knows_of_one_process_alone_refuses_several(make, plant, data):
    plant("team of this process", lambda: Team(0, 2))
    with pytest.raises(PrivacyError, match="must run in one process, got 2"):
        make().fit(*data)


def test_what_knows_of_one_process_alone_runs_in_one():
    check_alone("DPRandomizedSearch")
    assert current_team().size == 1


def test_all_processes_refuses_other_sources():
    with pytest.raises(ValueError, match="rows must be one of"), all_processes("mine"):
        pass


def test_fits_in_other_threads_of_a_team_are_refused(monkeypatch):
    """They would fit alone in every process, each with a charge."""
    monkeypatch.setattr(jax, "process_count", lambda: 2)

    def ask():
        with ThreadPoolExecutor(1) as threads:
            return threads.submit(current_team).result()

    with all_processes():
        assert current_team().size == 2
        with pytest.raises(PrivacyError, match="in the thread that entered"):
            ask()
    assert ask().size == current_team().size == 1
