"""A real Kafka for the bench: refused in one line where it cannot be had."""

import shutil

import pytest

from bench import kafka
from bench.measure import NoPeer
from cli.installer import InstallError
from tests.suite.maven import KafkaJars


def test_without_java_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _program: None)

    with pytest.raises(NoPeer, match="java is not installed"):
        kafka.jars_of_kafka()


def test_where_maven_does_not_answer_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_jars: KafkaJars) -> None:
        raise InstallError("mvn failed: the registry did not answer")

    monkeypatch.setattr(shutil, "which", lambda _program: "/usr/bin/java")
    monkeypatch.setattr(KafkaJars, "ensure", refuse)

    with pytest.raises(NoPeer, match="the registry did not answer"):
        kafka.jars_of_kafka()
