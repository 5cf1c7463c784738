"""What reaches the hub is the model, its card, and nothing else of the folder."""

import base64
import json

import pytest

from privfeat import DPFC, load, save
from privfeat.exceptions import PrivacyWarning
from privfeat.export import push_to_hub
from privfeat.persistence import ModelFileError
from tests.export.conftest import write_card
from tests.export.hub import stand_in

pytest.importorskip("huggingface_hub", reason="pip install 'privfeat[hub]'")


@pytest.fixture
def folder(fit, tmp_path):
    """Return a model, beside what must not leave."""
    save(fit(DPFC), tmp_path / "model")
    (tmp_path / "model" / "checkpoints").mkdir()
    (tmp_path / "model" / "predictions.csv").write_text("0,secret")
    return tmp_path / "model"


@pytest.fixture
def card(tmp_path, folder):
    return write_card(tmp_path / "card.md", folder)


def push(folder, card, server, **options):
    options = {"token": "hf_test", "endpoint": server.url} | options
    return push_to_hub(folder, "me/flowers", card=card, **options)


def committed(server):
    """Return the files of the one commit."""
    (body,) = (body for _, path, body, _ in server.asked if "/commit/" in path)
    lines = [json.loads(line) for line in body.splitlines()]
    return {
        line["value"]["path"]: base64.b64decode(line["value"]["content"])
        for line in lines
        if line["key"] == "file"
    }


def deleted(server):
    """Return the names of the files that the one commit takes away."""
    (body,) = (body for _, path, body, _ in server.asked if "/commit/" in path)
    lines = [json.loads(line) for line in body.splitlines()]
    return [ln["value"]["path"] for ln in lines if ln["key"] == "deletedFile"]


def test_push_to_hub_sends_the_model_and_its_card_in_one_commit(folder, card):
    with stand_in() as server:
        upload = push(folder, card, server)
    arrays = next(folder.glob("arrays-*.npz"))
    assert committed(server) == upload.files
    assert upload.files == {
        "README.md": card.read_bytes(),
        "model.json": (folder / "model.json").read_bytes(),
        arrays.name: arrays.read_bytes(),
    }
    sent = b"".join(body for _, _, body, _ in server.asked)
    for secret in (b"secret", b"predictions", str(folder).encode()):
        assert secret not in sent


def test_push_to_hub_takes_away_what_an_earlier_model_had(folder, card, evaluate):
    earlier = ("arrays-0.npz", "evaluation.json", "config.json", "model.json")
    for more, gone in ((False, ["arrays-0.npz", "evaluation.json"]), (True, None)):
        if more:
            evaluate(load(folder), folder, epsilon=1.0)
        with stand_in(names=earlier) as server:
            push(folder, card, server)
        assert deleted(server) == (gone or ["arrays-0.npz"])


@pytest.mark.parametrize("private", [True, False])
def test_push_to_hub_makes_a_repository_that_is_as_asked(folder, card, private):
    with stand_in(private=private) as server:
        push(folder, card, server, **({} if private else {"private": False}))
    (body,) = (body for _, path, body, _ in server.asked if path.endswith("/create"))
    asked = json.loads(body)
    told = asked.get("private", asked.get("visibility") == "private")
    assert bool(told) == private


def test_push_to_hub_sends_nothing_to_a_repository_that_everyone_sees(folder, card):
    with stand_in(private=False) as server:
        with pytest.raises(ValueError, match="but everyone sees 'me/flowers'"):
            push(folder, card, server)
    assert not any("/commit/" in path for _, path, _, _ in server.asked)


def test_push_to_hub_connects_to_nothing_in_a_dry_run(folder, card):
    with stand_in() as server:
        upload = push(folder, card, server, dry_run=True)
    assert server.asked == []
    told = str(upload)
    assert "To me/flowers, visible to its owners alone:" in told
    assert f"README.md ({len(card.read_bytes())} bytes)" in told
    assert "epsilon = 5" in told


def test_push_to_hub_warns_of_a_model_whose_noise_has_a_seed(fit, card, tmp_path):
    with pytest.warns(match="random_state"):
        save(fit(DPFC, random_state=1), tmp_path / "seeded")
    write_card(card, tmp_path / "seeded")
    with pytest.warns(PrivacyWarning, match="a model that leaves .* seeded=True"):
        push_to_hub(tmp_path / "seeded", "me/flowers", card=card, dry_run=True)


@pytest.mark.parametrize("options", [{"epsilon": float("inf")}, {"random_state": 1}])
def test_push_to_hub_warns_of_figures_that_are_not_private(
    folder, card, evaluate, options
):
    with pytest.warns(PrivacyWarning):
        evaluate(load(folder), folder, **({"epsilon": 2.0} | options))
    with pytest.warns(PrivacyWarning, match="an evaluation that leaves"):
        push_to_hub(folder, "me/flowers", card=card, dry_run=True)


def test_push_to_hub_says_what_the_evaluation_cost(folder, card, evaluate):
    evaluate(load(folder), folder, epsilon=2.0)
    told = str(push_to_hub(folder, "me/flowers", card=card, dry_run=True))
    assert told.endswith(
        "The statement of the model: epsilon = 5, delta = 1e-05.\n"
        "The statement of the evaluation: epsilon = 2, delta = 1e-05."
    )


def test_push_to_hub_sends_an_evaluation_only_if_it_can_be_read(folder, card):
    (folder / "evaluation.json").write_text("{}")
    with pytest.raises(ModelFileError):
        push_to_hub(folder, "me/flowers", card=card, dry_run=True)


def test_push_to_hub_refuses_a_damaged_model_and_an_empty_card(folder, card):
    card.write_text(" \n")
    with pytest.raises(ValueError, match="card must not be empty"):
        push_to_hub(folder, "me/flowers", card=card, dry_run=True)
    card.write_text("# Flowers")
    document = folder / "model.json"
    document.write_text(document.read_text().replace('"epsilon": 5.0', '"epsilon": 1'))
    with pytest.raises(ModelFileError):
        push_to_hub(folder, "me/flowers", card=card, dry_run=True)


def test_push_to_hub_refuses_the_card_of_another_model(fit, folder, card):
    """Such as the one before the fit was made again: it has another epsilon."""
    save(fit(DPFC), folder, overwrite=True)
    with pytest.raises(ValueError, match="card must be of this model"):
        push_to_hub(folder, "me/flowers", card=card, dry_run=True)
