"""Declares the bodies of version 2 that views answer with."""

from typing import Any

from rest_framework.serializers import (
    BooleanField,
    CharField,
    DictField,
    IntegerField,
    ListField,
    Serializer,
)

Shape = Serializer[Any]


class Replica(Shape):
    broker = IntegerField()
    leader = BooleanField()
    in_sync = BooleanField()


class PartitionV2(Shape):
    partition = IntegerField()
    leader = IntegerField()
    replicas = ListField(child=Replica())


class TopicV2(Shape):
    name = CharField()
    configs = DictField(child=CharField(allow_null=True))
    partitions = ListField(child=PartitionV2())


class Offsets(Shape):
    beginning_offset = IntegerField()
    end_offset = IntegerField()


class Brokers(Shape):
    brokers = ListField(child=IntegerField())
