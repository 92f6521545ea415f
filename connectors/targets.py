"""Judges the servers that a config names, by the rules of the workers that would connect to them.

A console may run on another host than the workers, so each worker stores its own rules
(`SAMSA_CONNECT_TARGETS`) in its row. A target is refused if no worker allows it. Where no worker is
registered, as before the first connector, the rules are those of this process, since one
environment starts all of a home.
"""

from connectors.models import Worker
from connectors.sdk import outgoing
from connectors.sdk.errors import ConfigError
from connectors.sdk.outgoing import Rule
from connectors.validation import Judge


def judge(cluster: str, *, can_resolve: bool) -> Judge:
    """Return the judge of a cluster's targets. Without `can_resolve`, it knows addresses only."""
    rules: list[Rule] | None = None

    def judged(host: str, port: int) -> str | None:
        nonlocal rules
        if rules is None:
            rules = _rules(cluster)
        return outgoing.refusal(host, port, allowed=rules, can_resolve=can_resolve)

    return judged


def _rules(cluster: str) -> list[Rule]:
    told = Worker.objects.filter(cluster=cluster).order_by("name").values_list("targets", flat=True)
    texts = set(told) or {outgoing.setting()}
    found: list[Rule] = []
    for text in sorted(texts):
        try:
            found += outgoing.parse_rules(text)
        except ConfigError:
            # A worker that cannot read its rules says so in the trace of each task.
            continue
    return found
