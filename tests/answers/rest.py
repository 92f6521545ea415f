"""The calls to REST, in this order: version 3, version 2, and our own additions.

`{c}` is the id of the cluster. The sweeps ask each path by every method, for every caller.
"""

from collections.abc import Iterator
from typing import Any, Final

from tests.answers.asking import CALLERS, FEWER, Ask, block, sweep, values
from tests.answers.home import GROUP, AnswersHome

C: Final = "/clusters/{c}"
TOPIC: Final = f"{C}/topics/none-such"
GONE: Final = f"{C}/consumer-groups/none-such"
BROKER: Final = f"{C}/brokers/99"
# Each path of version 3 below its prefix, with names that do not exist.
V3_PATHS: Final = (
    *("/openapi.json", "/clusters", C, "/clusters/another", f"{C}/none-such"),
    *(f"{C}/acls:batch", f"{C}/acls", f"{C}/broker-configs", f"{C}/broker-configs:alter"),
    *(f"{C}/broker-configs/none.such", f"{C}/brokers", f"{C}/brokers/-/configs", BROKER),
    *(f"{BROKER}/configs", f"{BROKER}/configs:alter", f"{BROKER}/configs/none.such"),
    *(f"{BROKER}/partition-replicas", f"{C}/consumer-groups", GONE, f"{GONE}/consumers"),
    *(f"{GONE}/lag-summary", f"{GONE}/lags", f"{GONE}/lags/orders/partitions/0"),
    *(f"{GONE}/consumers/none", f"{GONE}/consumers/none/assignments"),
    f"{GONE}/consumers/none/assignments/orders/partitions/0",
    *(f"{C}/topics", f"{C}/topics/-/configs", f"{C}/topics/-/configs:alter"),
    *(f"{C}/topics/-/partitions/-/reassignment", TOPIC, f"{TOPIC}/configs"),
    *(f"{TOPIC}/configs:alter", f"{TOPIC}/configs/none.such", f"{TOPIC}/partitions"),
    *(f"{TOPIC}/partitions/-/reassignment", f"{TOPIC}/partitions/0"),
    *(f"{TOPIC}/partitions/0/offset", f"{TOPIC}/partitions/0/reassignment"),
    *(f"{TOPIC}/partitions/0/replicas", f"{TOPIC}/partitions/0/replicas/1"),
    *(f"{TOPIC}/records", f"{TOPIC}/records:batch", f"{TOPIC}/none-such"),
)
INSTANCE: Final = "/consumers/none-such/instances/none"
# Below the prefix of version 2, which is empty at the gateway's own port.
V2_PATHS: Final = (
    *("/topics", "/topics/none-such", "/topics/none-such/partitions", "/brokers"),
    *("/topics/none-such/partitions/0", "/topics/none-such/partitions/0/offsets"),
    *("/consumers/none-such", INSTANCE, f"{INSTANCE}/subscription", f"{INSTANCE}/assignments"),
    *(f"{INSTANCE}/records", f"{INSTANCE}/offsets", f"{INSTANCE}/positions"),
    *(f"{INSTANCE}/positions/beginning", f"{INSTANCE}/positions/end", f"{INSTANCE}/none-such"),
    *("/v1/topics/none-such/records", "/v1/none-such"),
)
OTHER_PATHS: Final = ("/sse/v1", "/sse/none-such", "/ws/v1", "/ws/none-such", "/ws/v1/frames.json")
# At the gateway's own port alone.
GATEWAY_PATHS: Final = ("/", "/health", "/none-such", "/login", "/connect/connectors", "/passed")

EMPTY: Final[dict[str, Any]] = {}
MADE: Final = f"/v3{C}/topics/made"
JSON_V2: Final = {"Content-Type": "application/vnd.kafka.json.v2+json"}
BINARY_V2: Final = {"Content-Type": "application/vnd.kafka.binary.v2+json"}
V2: Final = {"Content-Type": "application/vnd.kafka.v2+json"}


def record(home: AnswersHome) -> Iterator[str]:
    masks = home.masks()
    at_gateway, at_web = home.door(home.gateway), home.door(home.web)
    for title, asks in STORIES.items():
        yield from (f"## {title}", "")
        for ask in asks:
            path = ask.path.replace("{c}", home.cluster_id)
            headers = {
                name: value.replace("{c}", home.cluster_id).replace("{gateway}", home.gateway)
                for name, value in ask.headers.items()
            }
            sent = Ask(method=ask.method, path=path, body=ask.body, by=ask.by, headers=headers)
            yield from block(sent, at_gateway.ask(sent), masks)
    v3 = [path.replace("{c}", home.cluster_id) for path in V3_PATHS]
    yield from ("## every path by every method, at the gateway's own port", "")
    paths = [*GATEWAY_PATHS, *(f"/v3{path}" for path in v3), *V2_PATHS, *OTHER_PATHS]
    yield from sweep(at_gateway, paths, CALLERS, masks)
    yield from sweep(at_gateway, [f"/kafka/v3{path}" for path in v3[:6]], FEWER, masks)
    yield from ("", "## the same beside the console", "")
    paths = [*(f"/v3{path}" for path in v3), *(f"/rest{path}" for path in V2_PATHS)]
    yield from sweep(at_web, [*paths, *OTHER_PATHS, "/rest", "/rest/"], FEWER, masks)
    yield from sweep(at_web, [f"/kafka/v3{path}" for path in v3[:6]], FEWER, masks)


def get(path: str, by: str = "admin", **headers: str) -> Ask:
    return Ask(method="GET", path=path, by=by, headers=headers)


def post(path: str, body: Any, by: str = "admin", **headers: str) -> Ask:
    return Ask(method="POST", path=path, body=body, by=by, headers=headers)


def callers() -> Iterator[Ask]:
    """How a caller is recognized, and what is refused before any view."""
    listed = f"/v3{C}/topics"
    for value in ("Basic YTpi", "Bearer", "Bearer ", "Bearer a b", "Bearer none", "bearer none"):
        yield get(listed, "nobody", Authorization=value)
    yield from (get(listed, by) for by in ("stranger", "revoked"))
    yield Ask(method="GET", path=listed, by="nobody", headers={"X-Api-Key": "none"})
    yield get(listed, Accept="text/html")
    yield get(listed, Accept="application/vnd.api+json, */*;q=0.1")
    yield get(listed, Origin="https://pages.example")
    yield get(listed, Host="evil.example")
    preflight = {"Origin": "https://pages.example", "Access-Control-Request-Method": "POST"}
    yield Ask(method="OPTIONS", path=listed, by="nobody", headers=preflight)
    yield get(f"{listed}/", Accept="*/*")
    yield get(f"/v3{C}//topics")
    yield get("/v3/clusters/a%2Fb/topics")
    yield get(f"/v3{C}/topics/%FF")
    yield get("/none%2Fsuch")
    large = {"Content-Length": "99999999", "Content-Type": "application/json"}
    # A caller who is known may stream records as long as they like.
    yield Ask(method="POST", path=f"/v3{C}/topics/orders/records", by="nobody", headers=large)
    for by in ("nobody", "admin"):
        for path in (listed, "/topics/orders", "/consumers/g"):
            yield Ask(method="POST", path=path, by=by, headers=large)
    packed = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    yield Ask(method="POST", path=listed, body=b"no gzip", headers=packed)
    packed = {**packed, "Content-Encoding": "br"}
    yield Ask(method="POST", path=listed, body=b"{}", headers=packed)


def topics() -> Iterator[Ask]:
    listed = f"/v3{C}/topics"
    yield get("/v3/clusters")
    yield get(f"/v3{C}")
    yield get(f"/v3{C}/brokers")
    yield get(f"/v3{C}/brokers/1")
    yield get(f"/v3{C}/brokers/x")
    yield get(f"/v3{C}/brokers/1/partition-replicas")
    for by in ("admin", "reader"):
        yield get(listed, by)
        yield get(f"{listed}?includeAuthorizedOperations=true", by)
        yield get(f"{listed}/orders", by)
        yield get(f"{listed}/quiet", by)
    yield from (post(listed, body) for body in values({}, [], 5, b"{", b"", b"\xff"))
    yield post(listed, b"a=b", **{"Content-Type": "application/x-www-form-urlencoded"})
    yield post(listed, b"{}", **{"Content-Type": "text/plain"})
    wanted: dict[str, Any] = {"topic_name": "made", "partitions_count": 2}
    yield post(listed, wanted, "reader")
    yield post(listed, wanted | {"validate_only": True})
    compact = {"configs": [{"name": "cleanup.policy", "value": "compact"}]}
    yield post(listed, wanted | {"replication_factor": 1} | compact)
    yield post(listed, wanted)
    for change in (
        {"topic_name": "a b"},
        {"topic_name": ""},
        {"partitions_count": 0},
        {"partitions_count": "x"},
        {"replication_factor": 3},
        {"configs": [{"name": "none.such", "value": "1"}]},
        {"configs": [{"name": "retention.ms", "value": "x"}]},
        {"bogus": 1},
        {"replicas_assignments": {"0": [9]}},
    ):
        yield post(listed, wanted | {"topic_name": "other"} | change)
    yield get(MADE)
    for count in (3, 1, "x", None):
        yield Ask(method="PATCH", path=MADE, body={"partitions_count": count})
    yield get(f"{MADE}/partitions")
    for path in ("", "/offset", "/offset?offset_type=EARLIEST", "/offset?offset_type=X"):
        yield get(f"/v3{C}/topics/orders/partitions/0{path}")
    for path in ("/replicas", "/replicas/1", "/replicas/9", "/reassignment"):
        yield get(f"/v3{C}/topics/orders/partitions/0{path}")
    yield get(f"{MADE}/partitions/9")
    yield get(f"{MADE}/partitions/x")
    yield get(f"{listed}/-/partitions/-/reassignment")


def configs() -> Iterator[Ask]:
    yield get(f"{MADE}/configs")
    yield get(f"{MADE}/configs/cleanup.policy")
    yield get(f"{MADE}/configs/none.such")
    for body in values({"value": "delete"}, {"value": "none"}, {}, {"value": None}, []):
        yield Ask(method="PUT", path=f"{MADE}/configs/cleanup.policy", body=body)
    yield Ask(method="PUT", path=f"{MADE}/configs/none.such", body={"value": "1"})
    yield Ask(method="DELETE", path=f"{MADE}/configs/cleanup.policy")
    yield Ask(method="DELETE", path=f"{MADE}/configs/none.such")
    change: list[dict[str, Any]] = [{"name": "retention.ms", "value": "5000"}]
    reset: list[dict[str, Any]] = [{"name": "retention.ms", "operation": "DELETE"}]
    for data in values(change, reset, [], [{"name": "retention.ms", "value": "x"}], [{}]):
        yield post(f"{MADE}/configs:alter", {"data": data})
    yield post(f"{MADE}/configs:alter", {"data": change, "validate_only": True})
    several = [{"topic_name": "made", "configs": change}, {"topic_name": "nope", "configs": change}]
    yield post(f"/v3{C}/topics/-/configs:alter", {"data": several[:1]})
    yield post(f"/v3{C}/topics/-/configs:alter", {"data": several})
    yield get(f"/v3{C}/topics/-/configs?topic=made")
    for where in ("broker-configs", "brokers/1/configs"):
        yield get(f"/v3{C}/{where}")
        yield get(f"/v3{C}/{where}/num.partitions")
        for body in values({"value": "2"}, {"value": "x"}):
            yield Ask(method="PUT", path=f"/v3{C}/{where}/log.retention.ms", body=body)
        yield Ask(method="DELETE", path=f"/v3{C}/{where}/log.retention.ms")
        yield post(f"/v3{C}/{where}:alter", {"data": [{"name": "none.such", "value": "1"}]})
    yield get(f"/v3{C}/brokers/-/configs")


def groups() -> Iterator[Ask]:
    at = f"/v3{C}/consumer-groups"
    for by in ("admin", "reader"):
        yield get(at, by)
        yield get(f"{at}/{GROUP}", by)
    for path in ("consumers", "lag-summary", "lags", "lags/orders/partitions/0"):
        yield get(f"{at}/{GROUP}/{path}")
    yield get(f"{at}/{GROUP}/lags/orders/partitions/9")
    rule = {"resource_type": "TOPIC", "resource_name": "orders", "pattern_type": "LITERAL"}
    rule |= {"principal": "User:a", "host": "*", "operation": "READ", "permission": "ALLOW"}
    yield get(f"/v3{C}/acls")
    yield get(f"/v3{C}/acls?resource_type=NONE")
    for body in values(rule, rule | {"operation": "NONE"}, EMPTY):
        yield post(f"/v3{C}/acls", body)
    yield post(f"/v3{C}/acls:batch", {"data": [rule]})
    one = "resource_type=TOPIC&pattern_type=LITERAL&operation=READ&permission=ALLOW"
    yield Ask(method="DELETE", path=f"/v3{C}/acls?{one}")
    yield Ask(method="DELETE", path=f"/v3{C}/acls")


def produced() -> Iterator[Ask]:
    at = f"{MADE}/records"
    key = {"key": {"type": "STRING", "data": "k"}}
    for kind, data in (
        *(("STRING", "v"), ("JSON", {"a": 1}), ("BINARY", "AAE="), ("BINARY", "%")),
        *(("AVRO", 1), ("NONE", "v"), ("STRING", 5), (None, "v")),
    ):
        yield post(at, key | {"partition_id": 0, "value": {"type": kind, "data": data}})
    value = {"value": {"type": "JSON", "data": 1}}
    moment = {"timestamp": "2026-01-31T12:00:00Z", "headers": [{"name": "h", "value": "AAE="}]}
    yield post(at, key | {"partition_id": 1} | value | moment)
    for change in ({"partition_id": 99}, {"timestamp": "x"}, {"headers": 5}, {"bogus": 1}):
        yield post(at, key | value | change)
    several = b'{"partition_id":0,"value":{"type":"JSON","data":1}}'
    yield post(at, several * 3)
    yield post(at, several + b'{"partition_id":99}' + several)
    yield from (post(at, body) for body in (b"", b"{", b"5", b"\xff", several + b"{"))
    yield post(at, several, **{"Content-Type": "text/plain"})
    yield post(at, several, "reader")
    yield post(f"/v3{C}/topics/written/records", several)
    yield post("/v3/clusters/another/topics/made/records", several)
    entry = {"id": "1", "partition_id": 0} | value
    yield post(f"{at}:batch", {"entries": [entry, entry | {"id": "2", "partition_id": 99}]})
    for entries in ([], [entry, entry], [{"id": "1", "bogus": 1}], 5):
        yield post(f"{at}:batch", {"entries": entries})


def produced_v2() -> Iterator[Ask]:
    at = "/topics/made"
    yield post(at, {"records": [{"value": {"a": 1}, "partition": 0}]}, **JSON_V2)
    yield post(at, {"records": [{"key": "aw==", "value": "AAE=", "partition": 0}]}, **BINARY_V2)
    yield post(at, {"records": [{"value": "%"}]}, **BINARY_V2)
    yield post(f"{at}/partitions/1", {"records": [{"value": 1}, {"value": None}]}, **JSON_V2)
    yield post(f"{at}/partitions/99", {"records": [{"value": 1}]}, **JSON_V2)
    yield post(f"{at}/partitions/x", {"records": [{"value": 1}]}, **JSON_V2)
    for body in values({}, [], {"records": []}, {"records": 5}, {"records": [{"bogus": 1}]}, b"{"):
        yield post(at, body, **JSON_V2)
    for kind in ("application/vnd.kafka.avro.v2+json", "text/plain", "application/json"):
        yield post(at, {"records": [{"value": "AAE=", "partition": 0}]}, **{"Content-Type": kind})
    yield post(at, {"records": [{"value": 1}]}, "reader", **JSON_V2)
    one = {"records": [{"value": 1, "partition": 0}]}
    yield post(at, one, Accept="application/xml", **JSON_V2)
    yield post("/topics/written", {"records": [{"value": 1, "partition": 0}]}, **JSON_V2)
    yield post("/topics/a%20b", {"records": [{"value": 1}]}, **JSON_V2)


def metadata_v2() -> Iterator[Ask]:
    for by in ("admin", "reader"):
        for path in ("/topics", "/topics/orders", "/topics/orders/partitions", "/topics/quiet"):
            yield get(path, by)
        yield get("/topics/orders/partitions/0", by)
        yield get("/topics/orders/partitions/0/offsets", by)
    yield get("/topics/orders/partitions/9")
    yield get("/topics/orders/partitions/x")
    yield get("/brokers")
    yield get("/topics", Accept="application/vnd.kafka.v1+json")


def consumed_v2() -> Iterator[Ask]:
    """A consumer of version 2, from its creation to its end."""
    made = {"name": "c1", "format": "json", "auto.offset.reset": "earliest"}
    slow = {"auto.commit.enable": "false", "fetch.min.bytes": 1}
    for body in values(
        made | slow, made, made | {"name": "b", "format": "avro"}, {"bogus": 1}, b"{", []
    ):
        yield post("/consumers/readers", body, **V2)
    yield post("/consumers/readers", {"auto.offset.reset": "x"}, **V2)
    yield post("/consumers/readers", {"fetch.min.bytes": -5}, **V2)
    yield post("/consumers/readers", made, "reader", **V2)
    at = "/consumers/readers/instances/c1"
    yield get(f"{at}/records", Accept=JSON_V2["Content-Type"])
    place = {"topic": "orders", "partition": 0}
    yield post(f"{at}/assignments", {"partitions": [place]}, **V2)
    yield get(f"{at}/assignments")
    yield get(f"{at}/subscription")
    yield post(f"{at}/subscription", {"topics": ["orders"]}, **V2)
    yield get(f"{at}/records", Accept=JSON_V2["Content-Type"])
    yield get(f"{at}/records", Accept=BINARY_V2["Content-Type"])
    yield get(f"{at}/records", "reader", Accept=JSON_V2["Content-Type"])
    yield post(f"{at}/offsets", {"offsets": [place | {"offset": 1}]}, **V2)
    yield Ask(method="GET", path=f"{at}/offsets", body={"partitions": [place]}, headers=V2)
    for body in values({"offsets": [place]}, {"offsets": 5}, {"bogus": 1}, b"{"):
        yield post(f"{at}/offsets", body, **V2)
    yield post(f"{at}/positions", {"offsets": [place | {"offset": 2}]}, **V2)
    yield get(f"{at}/records", Accept=JSON_V2["Content-Type"])
    yield post(f"{at}/positions/beginning", {"partitions": [place]}, **V2)
    yield post(f"{at}/positions/end", {"partitions": [place]}, **V2)
    yield post(f"{at}/positions/end", {"partitions": [place | {"partition": 1}]}, **V2)
    yield post(f"{at}/assignments", b"{}", **{"Content-Type": "text/plain"})
    yield Ask(method="DELETE", path=f"{at}/subscription", headers=V2)
    yield post(f"{at}/subscription", {"topics": ["a"], "topic_pattern": "b"}, **V2)
    yield post(f"{at}/subscription", {"topic_pattern": "("}, **V2)
    yield post(f"{at}/subscription", {}, **V2)
    yield Ask(method="DELETE", path=at, headers=V2)
    yield Ask(method="DELETE", path=at, headers=V2)


def read() -> Iterator[Ask]:
    at = "/v1/topics/orders/records"
    lines = "application/x-ndjson"
    yield get(at)
    yield get(f"{at}?max=2&partition=0&format=json", "reader")
    yield get(f"{at}?partition=1&from=1&format=binary")
    yield get(f"{at}?from=0:1,1:2")
    yield get(f"{at}?from=end&wait=0")
    yield get(f"{at}?max=2&partition=0&from=beginning", Accept=lines)
    for query in ("max=0", "max=x", "partition=9", "partition=x", "from=x", "wait=99", "bogus=1"):
        yield get(f"{at}?{query}")
    yield get("/v1/topics/none-such/records")
    yield get("/v1/topics/quiet/records", "reader")


def deleted() -> Iterator[Ask]:
    yield Ask(method="DELETE", path=MADE, by="reader")
    yield Ask(method="DELETE", path=MADE)
    yield Ask(method="DELETE", path=MADE)
    # Of calls that make topics.
    yield from (Ask(method="DELETE", path=f"/v3{C}/topics/{name}") for name in ("other", "written"))
    yield Ask(method="DELETE", path=f"/v3{C}/topics/__consumer_offsets")
    yield Ask(method="DELETE", path=f"/v3{C}/topics/none-such?force=true")


STORIES: Final = {
    "callers": tuple(callers()),
    "clusters, brokers and topics": tuple(topics()),
    "configs": tuple(configs()),
    "groups and ACLs": tuple(groups()),
    "produce, version 3": tuple(produced()),
    "produce, version 2": tuple(produced_v2()),
    "metadata, version 2": tuple(metadata_v2()),
    "consumers, version 2": tuple(consumed_v2()),
    "records without a group": tuple(read()),
    "deletion": tuple(deleted()),
}
