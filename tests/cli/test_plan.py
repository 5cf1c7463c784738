import json

import pytest

from privfeat import DPFC, PublicColumns
from privfeat.cli.planning.plan_words import percent
from privfeat.preprocessing import read_columns

PLAN = "plan --n 50000 --d 768 --classes 100 --epsilon 1".split()


def test_plan_says_noise_loss_and_what_to_use(run):
    status, out, _ = run(*PLAN)
    assert status == 0
    assert "DPFC              20 x gradient" in out
    assert "2 times the records; with them, epsilon 0.4" in out
    assert "8192" in out
    assert "that they are equally common; of a rare class it says too" in out
    last = out.rstrip().splitlines()[-1]
    assert last.startswith("use DPFC: on average the best, or as good, of what was")
    assert "% of cifar10_128 (10 classes)" in last
    assert " > " not in out


def test_plan_says_what_more_records_buy(run):
    status, out, _ = run(*PLAN, "--data-factor", 10)
    assert status == 0
    assert "10 times the records; with them, epsilon 0.0" in out


def test_plan_says_where_its_loss_is_too_small(run):
    """It said 2.7 % of 1,200 images with 1,088 features, where half was lost.

    It says 2.0 since noise is in proportion to a smaller bound on gradients.
    """
    few = "plan --n 1200 --d 1088 --classes 4 --epsilon 1".split()
    out = run(*few)[1]
    assert "fewer than ten records for each feature: the true loss is larger" in out
    assert " > 2.0% " in out
    assert "fewer than ten records" not in run(*PLAN)[1]


@pytest.mark.filterwarnings("ignore")
def test_plan_tries_public_features(run, features):
    status, out, _ = run(
        *"plan --n 5000 --d 5 --classes 4 --epsilon 1 --repeats 1".split(),
        "--public",
        f"{features}:train",
    )
    assert status == 0
    assert "measured on" in out
    assert "points lost" in out
    assert "(logistic regression)" in out
    assert "a model of them alone has about" in out
    assert "the best on the public features" in out


def test_plan_refuses_features_of_another_network(fails, features):
    command = "plan --n 50 --d 6 --classes 4 --epsilon 1 --public".split()
    assert "must have 6 features" in fails(*command, features)


@pytest.mark.parametrize(("n_samples", "warned"), [(40, True), (5000, False)])
def test_plan_says_where_records_are_too_few(run, n_samples, warned):
    status, out, _ = run(
        *f"plan --n {n_samples} --d 20 --classes 2 --epsilon 1".split()
    )
    assert status == 0
    assert ("too few records for this budget" in out) == warned
    assert ("though no estimator learns much" in out) == warned


def test_plan_reads_public_features_before_it_prints(run):
    command = "plan --n 50 --d 6 --classes 4 --epsilon 1 --public none.h5".split()
    status, out, err = run(*command)
    assert (status, out) == (1, "")
    assert "no such file" in err


@pytest.mark.slow
@pytest.mark.parametrize(("n_samples", "warned"), [(100_001, True), (100_000, False)])
def test_plan_and_tan_warn_of_a_large_delta(run, n_samples, warned):
    sentence = "warning: delta should be well below one over the number of records"
    plan = f"plan --n {n_samples} --d 8 --classes 2 --epsilon 1"
    tan = f"tan --n {n_samples} --batch-size 500 --noise-multiplier 2.5 --steps 9"
    for command in (plan, f"{tan} --delta 1e-5"):
        status, out, _ = run(*command.split())
        assert status == 0
        assert (sentence in out) == warned


@pytest.mark.parametrize(
    ("value", "text"), [(-0.0004, "0.0%"), (-0.001, "-0.1%"), (0.25, "25.0%")]
)
def test_percent_has_no_negative_zero(value, text):
    assert percent(value) == text


def test_plan_in_json_is_what_it_prints(run):
    found = json.loads(run(*PLAN, "--json")[1])
    printed = run(*PLAN)[1]
    for row in found["estimators"]:
        assert (
            f"{row['score_noise']:18.4f} {percent(row['expected_loss']):>8}" in printed
        )
        for release in row["releases"]:
            noise = f"{release['noise_stddev']:10.4g}"
            assert f"{release['query']:13} stddev {noise}" in printed
    assert f"use {found['recommended']}: {found['reason']}\n" in printed
    last = found["networks"]["settings"][-1]
    assert (last["batch_size"], last["learning_rate"]) == (8192, 0.64)
    assert found["warnings"] == []


def test_plan_of_few_records_says_so_in_json(run):
    few = "plan --n 1200 --d 1088 --classes 4 --epsilon 1 --json".split()
    (warning,) = json.loads(run(*few)[1])["warnings"]
    assert warning.startswith("fewer than ten records for each feature: the true loss")


def test_plan_of_a_network_in_json_is_what_it_prints(run):
    words = "plan --n 5000 --epsilon 1 --batch 300".split()
    found = json.loads(run(*words, "--json")[1])
    assert (found["estimators"], found["recommended"]) == ([], None)
    more = found["networks"]["more_data"]
    assert more["batch_size"] == 300
    last = f"the same steps of 300 records: epsilon {more['epsilon']:.3g}\n"
    assert run(*words)[1].endswith(last)


@pytest.mark.filterwarnings("ignore")
def test_plan_with_public_features_in_json(run, features):
    words = "plan --n 5000 --d 5 --classes 4 --epsilon 1 --repeats 2 --json".split()
    status, out, err = run(*words, "--public", f"{features}:train")
    found = json.loads(out)
    assert status == 0
    assert "protect none of its rows" in err
    accuracies = {
        row["estimator"]: sum(row["accuracies"])
        for row in found["public"]["estimators"]
    }
    assert found["recommended"] == max(accuracies, key=accuracies.__getitem__)
    assert found["reason"].startswith("the best on the public features without prior")


def test_plan_of_a_number_in_json(run, patients):
    words = "plan --n 500 --target age --epsilon 1 --json --columns".split()
    found = json.loads(run(*words, patients / "columns.toml")[1])
    (row,) = found["estimators"]
    assert found["recommended"] == row["estimator"] == "DPLeastSquaresRegressor"
    assert found["n_classes"] is None
    assert all(release["noise_stddev"] > 0 for release in row["releases"])


def test_plan_takes_the_sizes_of_a_table_from_its_declaration(run, fails, patients):
    sizes = ("--n", 5000, "--epsilon", 1)
    declared = ("--columns", patients / "columns.toml", "--target", "outcome")
    found = run("plan", *sizes, *declared)[1]
    told = run("plan", *sizes, "--d", 5, "--classes", 3)[1]
    assert ("a network by DP-SGD" in told, "DP-SGD" in found) == (True, False)
    assert found.splitlines()[0] in told
    columns = read_columns(patients / "columns.toml")
    columns.pop("outcome")
    clips = {"row_scaling": "clip", "clip_norm": PublicColumns(columns).clip_norm}
    fit = DPFC(epsilon=1, delta=1e-5, classes=range(3), **clips)  # as `fit` makes it
    for release in fit.planned(5).releases:
        assert f"stddev {release.noise_stddev:10.4g}" in found
    assert run("plan", *sizes, *declared, "--batch", 64)[1].count("DP-SGD") == 1
    assert "must be given once" in fails("plan", *sizes, *declared, "--d", 5)
    assert "must be given once" in fails("plan", *sizes, "--d", 5)
    assert "a network by DP-SGD" in run("plan", *sizes)[1]
