"""How tests plant a fault into what is compiled."""

from privfeat.linear import rows, scaling


def plant_clip(monkeypatch, fake):
    """Replace the clip of rows, and let chunks be bounded without compiled code.

    What was compiled before holds the genuine clip, and what is compiled now would
    keep the fault for the tests that follow.
    """
    monkeypatch.setattr(scaling, "clip_rows", fake)
    monkeypatch.setattr(rows, "bounded_rows", rows.bounded_rows.__wrapped__)
