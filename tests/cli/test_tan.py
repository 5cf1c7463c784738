import json

import pytest

IMAGENET = (
    "tan --n 1281167 --batch-size 16384 --noise-multiplier 2.5 --steps 72000 "
    "--delta 8e-7"
).split()


def test_tan_prints_the_settings_of_the_paper(run):
    status, out, _ = run(*IMAGENET, "--factor", 64, "--learning-rate", 8)
    assert status == 0
    assert "epsilon = 7.46" in out
    assert "by Rényi 8.028" in out
    assert "batch size 256, noise multiplier 0.03906" in out
    assert "     32768      18000             32" in out


@pytest.mark.slow
def test_tan_prints_json(run):
    found = json.loads(run(*IMAGENET, "--json")[1])
    assert found["epsilon_closed_form"] == pytest.approx(8.215, abs=1e-3)
    assert found["more_data"]["epsilon"] < 0.55 * found["epsilon"]
    assert found["epsilon_central_limit"] < found["epsilon"]
    assert found["simulation"]["epsilon"] > 4000
    (warning,) = found["warnings"]  # the paper's delta is 1.02 / n
    assert warning.startswith("delta should be well below one over")


@pytest.mark.slow
def test_tan_warns_behind_the_wall(run):
    command = "tan --n 1000 --batch-size 10 --noise-multiplier 0.8 --steps 50".split()
    assert "warning: noise_multiplier should be >= 2" in run(*command)[1]


def test_tan_refuses_a_batch_of_more_than_all(fails):
    command = "tan --n 10 --batch-size 11 --noise-multiplier 2 --steps 5".split()
    assert "--batch-size must be in [1, 10]" in fails(*command)


@pytest.mark.slow
def test_tan_says_what_ten_times_the_records_cost(run):
    """Sander et al. 2023, Table 5: 5,000 records, then all 50,000."""
    few = "tan --n 5000 --batch-size 4096 --noise-multiplier 3 --steps 2500".split()
    found = json.loads(run(*few, "--data-factor", 10, "--json")[1])
    assert found["epsilon_closed_form"] == pytest.approx(150.3, rel=0.01)
    # printed by Rényi, which proves more
    assert 0.85 * 7.1 < found["more_data"]["epsilon"] < 7.1


@pytest.mark.slow
def test_tan_trains_the_simulations_on_public_features(run, fails, features, tmp_path):
    command = (
        "tan --n 900 --batch-size 512 --noise-multiplier 2.5 --steps 16 --factor 8 "
        "--learning-rate 2 --step-factors 1 4 0.01 --quiet"
    )
    search = (*command.split(), "--public", features, "--out", tmp_path / "x.json")
    status, out, _ = run(*search)
    assert status == 0
    assert "best of the simulations: " in out
    found = json.loads(run(*search, "--json")[1])  # nothing is trained again
    assert [one["n_iter"] for one in found["simulated"]] == [16, 64]
    assert max(max(one["accuracies"]) for one in found["simulated"]) > 0.5
    assert found["best"]["epsilon"] == pytest.approx(found["epsilon"], rel=0.1)
    assert f"{found['simulated'][0]['accuracies'][0]:.4f}" in out


@pytest.mark.slow
def test_tan_trains_the_simulations_on_public_images(run, fails, folder):
    command = "tan --n 100 --batch-size 16 --noise-multiplier 2 --steps 2 --factor 2"
    search = (*command.split(), "--step-factors", 1, "--image-size", 8, "--json")
    found = json.loads(run(*search, "--public", folder)[1])
    assert len(found["simulated"]) == 1
    assert "must hold a test split" in fails(*search, "--public", folder / "train")
