"""Where each key was written last."""

from hypothesis import given
from hypothesis import strategies as st

from brokers.storage.key_map import KeyMap


@given(st.lists(st.binary(max_size=3), max_size=40), st.integers(0, 45), st.integers(0, 5))
def test_the_last_offset_of_each_key_survives_and_no_other(
    keys: list[bytes], first: int, length: int
) -> None:
    made = KeyMap()
    for offset, key in enumerate(keys):
        assert made.note(key, offset)
    last = {key: offset for offset, key in enumerate(keys)}

    assert len(made) == len(last)
    assert [made.is_last(key, offset) for offset, key in enumerate(keys)] == [
        last[key] == offset for offset, key in enumerate(keys)
    ]
    within = any(first <= offset <= first + length for offset in last.values())
    assert made.survivors().are_within(first, first + length) == within


def test_a_key_that_was_never_noted_has_nothing_behind_it() -> None:
    assert KeyMap().is_last(b"key", 0)


def test_a_full_map_takes_known_keys_only() -> None:
    made = KeyMap(max_keys=2)

    assert [made.note(key, 1) for key in (b"a", b"b", b"c", b"a")] == [True, True, False, True]
    assert made.is_last(b"c", 0)
