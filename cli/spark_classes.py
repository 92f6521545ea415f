"""Stores Spark's classes for Java, as a part of an installation or by itself."""

import os

import click

from spark_integration.jobs import class_archive
from spark_integration.jobs.errors import SparkError


def store_classes() -> str:
    """Store the classes unless they are; return why that failed, or an empty text.

    Without them, Spark only starts slower.
    """
    file = class_archive.wanted_file(os.environ)
    if file is None:
        return ""
    click.echo("storing Spark's classes, which halves its start time; takes half a minute")
    # Whatever runs already goes first.
    os.nice(19)
    try:
        class_archive.make(file, os.environ)
    except SparkError as error:
        return f"Spark will start slower: {error}; retry with `./samsa spark store-classes`"
    return ""
