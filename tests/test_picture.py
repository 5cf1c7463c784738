"""The picture of the house is that of the code, and has no circle."""

from graphlib import TopologicalSorter

from tests.picture import PAGE, needed, page, rooms


def test_the_page_has_the_picture_of_the_code():
    """``python tests/picture.py`` draws it anew."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_no_two_rooms_use_each_other():
    arrows = rooms()
    assert len(arrows) > 12
    order = list(TopologicalSorter(arrows).static_order())
    assert order.index("privfeat.core.bounds") < order.index("privfeat.core.ledger")


def test_arrows_that_follow_from_others_are_left_out():
    assert needed({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {
        "a": {"b"},
        "b": {"c"},
        "c": set(),
    }


def test_every_room_is_explained():
    table = PAGE.read_text(encoding="utf-8")
    for room in rooms():
        name = room.removeprefix("privfeat.").replace(".", "/")
        assert f"| `{name}" in table or name == "core", name
