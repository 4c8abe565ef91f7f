from conftest import Visitor


def test_a(ann: Visitor) -> None:
    r = ann.say("hello")
    assert r["comment"]["user_id"] == 1
    ann.say("bad", status=404, parent_id=99)
    assert ann.listing()["total"] == 1
