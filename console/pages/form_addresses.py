"""Leads a visitor who opens the address of a form's action to the page of the form.

Some addresses only take forms, and have nothing to show. Users open them nevertheless: after they
have signed in again, by a bookmark, or from the history of a browser.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseNotAllowed, HttpResponseRedirect

from console import kept_forms

View = TypeVar("View", bound=Callable[..., HttpResponseBase])
METHODS: Final = ("GET", "HEAD", "POST")
NOTHING_DONE: Final = (
    "Nothing was done: the address that you opened only takes a form. Begin again on this page."
)


def takes_forms(page_of: Callable[..., str]) -> Callable[[View], View]:
    """Admit forms, and those that `console.kept_forms` brings back; lead others to a page.

    `page_of` returns its address, from the request and the parts of the form's address.
    """

    def wrap(view: View) -> View:
        @wraps(view)
        def answer(request: HttpRequest, *args: object, **parts: Any) -> HttpResponseBase:  # noqa: ANN401 - as Django passes them
            if request.method not in METHODS:
                return HttpResponseNotAllowed(METHODS)
            if kept_forms.typed_in(request) is not None:
                return view(request, *args, **parts)
            messages.info(request, NOTHING_DONE)
            return HttpResponseRedirect(page_of(request, **parts))

        return cast("View", answer)

    return wrap
