"""AlterConfigs: replaces all configs that are set for a resource.

The older of two requests: keys that it does not name return to their defaults.
"""

from typing import Final

from brokers.cluster.proposals import ConfigOperation
from brokers.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from brokers.server.call import Call
from brokers.server.config_resources import Alteration, Edit, alter
from brokers.server.context import Context
from brokers.server.served_api import Served

SERVED: Final = Served(key=33, waits=True)


async def handle(
    context: Context, call: Call, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    alterations = [
        Alteration(
            kind=resource.resource_type,
            name=resource.resource_name,
            edits=[
                Edit(key=config.name, operation=ConfigOperation.SET, value=config.value)
                for config in resource.configs
            ],
            replaces_all=True,
        )
        for resource in request.resources
    ]
    responses = await alter(
        context,
        call,
        alterations,
        AlterConfigsResourceResponse,
        validate_only=request.validate_only,
    )
    return AlterConfigsResponse(responses=responses)
