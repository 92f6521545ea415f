"""What `./samsa` takes and prints: each command's options, and the outputs of the main verbs."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import click
from click.testing import CliRunner

from cli.commands import main
from tests.answers.home import AnswersHome
from tests.answers.masking import Masks, documents, written

# Wide enough for every table, whatever terminal runs the tests.
WIDTH: Final = "160"
BOTH: Final = ("table", "json")
ID: Final = re.compile(r"^(  id +)\S{22}$")
# In this order: later ones see what earlier ones have made. `{output}` is each form in turn.
READ: Final = (
    "topics list orders",
    "topics describe orders",
    "configs describe topic orders",
    "configs describe topic orders retention.ms",
    "groups members billing",
    "connectors list",
)
ONCE: Final = (
    "--version",
    "none",
    "topics",
    "topics none",
    "topics list --none",
    "topics list a.* --output name",
    "groups list billing --output json",
    "groups list billing --output name",
    "groups describe billing --output json",
    "groups lag billing --output json",
    "connectors plugins --output json",
    "topics create made -p 2 --dry-run",
    "topics create made -p 2 -c retention.ms=7d",
    "topics create made",
    "topics create made --if-not-exists",
    "topics create cli -p 0",
    "topics create cli -c none.such=1",
    "topics alter made --set retention.ms=1d",
    "topics alter made --set retention.ms=x",
    "topics alter none-such --set retention.ms=1d",
    "configs alter topic made --set retention.ms=2d",
    "produce made v -k k -p 0",
    "produce made v -k k -p 0 --output json",
    "produce cli v",
    "produce made v -p 99",
    "consume made -p 0 --exit",
    "consume orders -p 0 --exit --output json",
    "consume orders -p 0 --offset -1 --exit -K =",
    "consume orders -n 1 -p 1",
    "consume cli --exit",
    "consume none-such --exit",
    "topics delete cli --yes",
    "topics delete made",
    "topics delete made --yes --dry-run",
    "topics delete made --yes",
    "topics delete made --yes",
    "topics delete made --yes --if-exists",
    "groups describe none-such",
    "groups delete none-such --yes",
    "groups reset billing --to-offset 1 --topic orders",
    "connectors describe none-such",
    "connectors pause none-such",
    "connectors delete none-such --yes",
    "connectors apply none.json",
    "brokers stop 9",
    "status",
    "tokens create",
)


def record(home: AnswersHome) -> Iterator[str]:
    masks = home.masks()
    yield from ("## commands and their options", "")
    yield from commands(main, "./samsa")
    yield from ("", "## what they print", "")
    for line in READ:
        for output in BOTH:
            yield from run(f"{line} --output {output}", home, masks)
    for line in ONCE:
        yield from run(line, home, masks)


def commands(command: click.Command, name: str) -> Iterator[str]:
    """Write a command and its subcommands, without the sentences of help."""
    context = click.Context(command, info_name=name)
    usage = command.get_usage(context).removeprefix("Usage: ")
    has_example = bool(command.epilog and "Example" in command.epilog)
    yield f"{' '.join(usage.split())}{'' if has_example else ' (no example)'}"
    for parameter in command.get_params(context):
        info = parameter.to_info_dict()
        if "--help" in info["opts"]:
            # Every command has --help, and keeps its names from the first context that used it.
            continue
        names = "/".join([*info["opts"], *info["secondary_opts"]])
        facts = {
            key: info[key]
            for key in ("required", "nargs", "multiple", "is_flag", "envvar", "hidden")
            if info.get(key) not in (None, False, 1)
        }
        default = info.get("default")
        if isinstance(default, str | int) and not isinstance(default, bool):
            facts["default"] = default
        kind = {key: value for key, value in info["type"].items() if key != "param_type"}
        yield f"    {names} {info['type']['param_type']} {plain(kind)} {plain(facts)}".rstrip()
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found is not None
            yield from commands(found, f"{name} {each}")


def plain(facts: Mapping[str, Any]) -> str:
    kept = {key: value for key, value in facts.items() if value not in (None, False, ())}
    return json.dumps(kept, default=str) if kept else ""


def run(line: str, home: AnswersHome, masks: Masks) -> Iterator[str]:
    environment = {
        "SAMSA_HOME": str(home.cluster.folder),
        "SAMSA_BOOTSTRAP": home.cluster.bootstrap,
        "COLUMNS": WIDTH,
        "NO_COLOR": "1",
    }
    done = CliRunner(env=environment).invoke(main, line.split(), input="", prog_name="./samsa")
    assert done.exception is None or isinstance(done.exception, SystemExit), (line, done.exception)
    yield f"$ ./samsa {line}"
    yield f"    exit {done.exit_code}; {len(done.stderr.splitlines())} lines of errors"
    found = documents(done.stdout) if done.stdout[:1] in ("{", "[") else None
    if found is not None:
        lines = [each for value in found for each in written(of_topic(masks.json(value)))]
    else:
        # Components have process ids, and come and go with connectors.
        kept = [each.rstrip() for each in done.stdout.splitlines() if " process " not in each]
        lines = [ID.sub(r"\1{id}", masks.text(each)) for each in kept]
    yield from (f"    {each}" for each in lines)
    yield ""


def of_topic(value: Any) -> Any:
    """Mask the ids of topics, which are the only ones that no name here tells apart."""
    if isinstance(value, list):
        return [of_topic(each) for each in value]
    if isinstance(value, dict) and isinstance(value.get("id"), str):
        return {**value, "id": "{id}"}
    return value
