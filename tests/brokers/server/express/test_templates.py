"""What lanes have learned stays bounded, and costs little where more is in use than fits."""

from brokers.server.express.templates import FORGET_SECONDS, MAX_TEMPLATES, Templates


def filled(now: float) -> Templates[int]:
    templates: Templates[int] = Templates()
    for number in range(MAX_TEMPLATES):
        assert templates.has_room(now)
        templates.keep(b"%d" % number, number)
    return templates


def test_when_there_is_no_room_for_one_more_all_are_forgotten() -> None:
    templates = filled(now=5.0)

    assert templates.has_room(5.0)

    assert len(templates) == 0
    templates.keep(b"new", 1)
    assert templates.get(b"new") == 1


def test_all_are_forgotten_no_more_than_once_in_a_while() -> None:
    templates = filled(now=5.0)
    assert templates.has_room(5.0)
    for number in range(MAX_TEMPLATES):
        templates.keep(b"%d" % number, number)

    assert not templates.has_room(5.0)
    assert not templates.has_room(5.0 + FORGET_SECONDS / 2)
    assert len(templates) == MAX_TEMPLATES
    assert templates.has_room(5.0 + FORGET_SECONDS)
