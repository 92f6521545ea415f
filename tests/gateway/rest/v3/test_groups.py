"""What the calls about groups show of topics that their caller may not see."""

import pytest

from gateway.access.grants import ANY, Grant, Rights
from gateway.access.operations import Kind, Operation
from tests.gateway.rest.asking import CLUSTER, Api

pytestmark = pytest.mark.slow
BILLING = "consumer-groups/billing"


def may_view(kind: Kind, pattern: str) -> Grant:
    return Grant(role=None, operation=Operation.VIEW, cluster=CLUSTER, kind=kind, pattern=pattern)


@pytest.fixture
def rights() -> Rights:
    return Rights([may_view(Kind.GROUP, ANY), may_view(Kind.TOPIC, "clicks")])


@pytest.mark.parametrize("address", ["lags", "consumers/m-1/assignments"])
def test_lists_leave_out_topics_that_the_caller_may_not_see(api: Api, address: str) -> None:
    assert api.get(f"{BILLING}/{address}")["data"] == []


@pytest.mark.parametrize(
    "address",
    [
        "lags/orders/partitions/0",
        "lags/nowhere/partitions/0",
        "consumers/m-1/assignments/orders/partitions/0",
    ],
)
def test_a_topic_that_the_caller_may_not_see_is_refused_by_name(api: Api, address: str) -> None:
    answer = api("GET", f"{BILLING}/{address}")

    assert (answer.status_code, answer.json()["error_code"]) == (403, 40301)


def test_a_summary_counts_no_topic_that_the_caller_may_not_see(api: Api) -> None:
    answer = api("GET", f"{BILLING}/lag-summary")

    assert answer.status_code == 404
    assert "orders" not in answer.content.decode()
