"""Serves ACLs of the brokers. A cluster without security answers 40002, in the brokers' words."""

from collections.abc import Mapping, Sequence
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from gateway.kafka.acls import AclRule
from gateway.rest.v3.views import V3View


class AclsView(V3View):
    def get(self, _request: Request) -> Response:
        """List the access rules that a filter fits."""
        wanted = rule_of(self.asked)
        with self.clients() as clients:
            found = clients.acls.matching(wanted)
        items = [self.bodies.of_acl(rule) for rule in found]
        return Response(self.bodies.listed("KafkaAcl", items, "acls"))

    def post(self, _request: Request) -> Response:
        """Create an access rule."""
        rule = rule_of(self.asked)
        self._create([rule])
        headers = {"Location": self.bodies.of_acl(rule)["metadata"]["self"]}
        return Response(status=201, headers=headers)

    def delete(self, _request: Request) -> Response:
        """Delete the access rules that a filter fits, and list them."""
        wanted = rule_of(self.asked)
        with self.clients() as clients:
            found = clients.acls.delete(wanted)
        self.note("acls_deleted", "access rules", count=str(len(found)))
        return Response({"data": [self.bodies.of_acl(rule) for rule in found]})

    def _create(self, rules: Sequence[AclRule]) -> None:
        with self.clients() as clients:
            clients.acls.create(rules)
        self.note("acls_created", "access rules", count=str(len(rules)))


class AclBatchView(AclsView):
    http_method_names = ["post"]  # noqa: RUF012 - a list, as the framework has it

    def post(self, _request: Request) -> Response:
        """Create access rules."""
        asked = self.asked["data"]
        self._create([rule_of(one) for one in asked])
        return Response(status=201)


def rule_of(asked: Mapping[str, Any]) -> AclRule:
    return AclRule(
        resource_type=asked["resource_type"],
        resource_name=asked.get("resource_name"),
        pattern_type=asked["pattern_type"],
        principal=asked.get("principal"),
        host=asked.get("host"),
        operation=asked["operation"],
        permission=asked["permission"],
    )
