"""Checks the name that a user types to confirm a change; `typed_name.html` is its field."""

from django.http import QueryDict

from gateway.kafka.shown_names import shown


def check_typed_name(post: QueryDict, name: str, *, subject: str) -> str:
    """Return what is wrong with the typed name of a user, topic or the like; empty if it is right.

    A name that cannot be typed is typed as it is shown; one may begin or end with a space.
    """
    typed = post.get("typed", "")
    if {typed, typed.strip()} & {name, shown(name)}:
        return ""
    return f"The typed name is not the name of the {subject}: type {shown(name)}, or cancel."
