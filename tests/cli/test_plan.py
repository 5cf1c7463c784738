import pytest

from privfeat.cli.planning.plan import percent

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
    """It said 2.7 % of 1,200 images with 1,088 features, where half was lost."""
    few = "plan --n 1200 --d 1088 --classes 4 --epsilon 1".split()
    out = run(*few)[1]
    assert "fewer than ten records for each feature: the true loss is larger" in out
    assert " > 2.7% " in out
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
