"""Answers that are kept while what they rest on stays as it is."""

from collections.abc import Callable

from console.queries.kept import Kept


def made_by(made: list[str], word: str) -> Callable[[], str]:
    def make() -> str:
        made.append(word)
        return word

    return make


def test_an_answer_is_made_once_for_a_key_and_a_step() -> None:
    kept, made = Kept[str](), list[str]()

    for step, key in (("1", "a"), ("1", "a"), ("1", "b"), ("2", "a"), ("2", "a")):
        assert kept.read(step, key, made_by(made, step + key)) == step + key

    assert made == ["1a", "1b", "2a"]


def test_the_oldest_answers_go_first() -> None:
    kept, made = Kept[str](most=2), list[str]()

    for key in "abccba":
        kept.read("1", key, made_by(made, key))

    assert made == ["a", "b", "c", "a"]


def test_nothing_is_kept_where_no_step_is_known() -> None:
    kept, made = Kept[str](), list[str]()

    for _ in range(2):
        kept.read("", "a", made_by(made, "a"))

    assert made == ["a", "a"]
