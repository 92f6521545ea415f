"""The name that a user types to confirm a change."""

import pytest
from django.http import QueryDict

from console.forms.typed_names import check_typed_name


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("orders", "orders"),
        ("orders", " orders "),
        # As a name that cannot be typed is shown.
        ("a\x00b", "a\\u0000b"),
        (" a", " a"),
    ],
)
def test_typed_name_confirms_as_it_is_or_as_it_is_shown(name: str, typed: str) -> None:
    post = QueryDict(mutable=True)
    post["typed"] = typed

    assert not check_typed_name(post, name, subject="group")


@pytest.mark.parametrize("text", ["", "typed=", "typed=Orders", "typed=order", "name=orders"])
def test_other_name_does_not_confirm(text: str) -> None:
    wrong = check_typed_name(QueryDict(text), "orders", subject="topic")

    assert wrong == "The typed name is not the name of the topic: type orders, or cancel."
