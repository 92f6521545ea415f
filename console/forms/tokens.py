"""Validates the form of a new token. `gateway.access` checks the rights."""

from datetime import timedelta
from typing import Any, Final

from django import forms

from gateway.access.grants import ANY, MAX_PATTERN_CHARS, Grant
from gateway.access.models import MAX_TOKEN_NAME_CHARS
from gateway.access.token_scopes import NAMED, Scope, grants_of, together

# Patterns of one scope; a program that needs more should use a common prefix.
MAX_PATTERNS: Final = 20
NEVER: Final = "0"
# Lifetimes in days, with their labels.
LIVES: Final = (("30", "30 days"), ("90", "90 days"), ("365", "a year"), (NEVER, "never"))


class TokenForm(forms.Form):
    name = forms.CharField(max_length=MAX_TOKEN_NAME_CHARS)
    cluster = forms.CharField(initial=ANY)
    read = forms.CharField(required=False, max_length=MAX_PATTERNS * MAX_PATTERN_CHARS)
    write = forms.CharField(required=False, max_length=MAX_PATTERNS * MAX_PATTERN_CHARS)
    create = forms.CharField(required=False, max_length=MAX_PATTERNS * MAX_PATTERN_CHARS)
    group = forms.CharField(required=False, max_length=MAX_PATTERNS * MAX_PATTERN_CHARS)
    connector = forms.CharField(required=False, max_length=MAX_PATTERNS * MAX_PATTERN_CHARS)
    secret = forms.CharField(required=False, max_length=MAX_PATTERNS * MAX_PATTERN_CHARS)
    file = forms.CharField(required=False, max_length=MAX_PATTERNS * MAX_PATTERN_CHARS)
    admin = forms.BooleanField(required=False)
    life = forms.ChoiceField(choices=LIVES, initial="90")

    def clean(self) -> dict[str, Any]:
        """Refuse more than MAX_PATTERNS patterns in a scope."""
        given: dict[str, Any] = super().clean() or {}
        for scope in NAMED:
            patterns = str(given.get(scope.value, "")).split()
            if len(patterns) > MAX_PATTERNS:
                self.add_error(
                    scope.value, f"{len(patterns)} names are given, {MAX_PATTERNS} are allowed"
                )
        return given

    def grants(self) -> tuple[Grant, ...]:
        given = self.cleaned_data
        if given["admin"]:
            return grants_of(Scope.ADMIN)
        return together(
            grant
            for scope in NAMED
            for pattern in given[scope.value].split()
            for grant in grants_of(scope, pattern, cluster=given["cluster"])
        )

    def duration(self) -> timedelta | None:
        days = self.cleaned_data["life"]
        return None if days == NEVER else timedelta(days=int(days))
