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


def test_tan_prints_json(run):
    found = json.loads(run(*IMAGENET, "--json")[1])
    assert found["epsilon_closed_form"] == pytest.approx(8.215, abs=1e-3)
    assert found["twice_the_data"]["epsilon"] < 0.55 * found["epsilon"]
    (warning,) = found["warnings"]  # the paper's delta is 1.02 / n
    assert warning.startswith("delta should be well below one over")


def test_tan_warns_behind_the_wall(run):
    command = "tan --n 1000 --batch-size 10 --noise-multiplier 0.8 --steps 50".split()
    assert "warning: noise_multiplier should be >= 2" in run(*command)[1]


def test_tan_refuses_a_batch_of_more_than_all(fails):
    command = "tan --n 10 --batch-size 11 --noise-multiplier 2 --steps 5".split()
    assert "--batch-size must be in [1, 10]" in fails(*command)
