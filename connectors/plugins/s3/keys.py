"""Defines the keys of the S3 sink, with the names and defaults of Confluent's."""

from collections.abc import Mapping
from typing import Any, Final
from zoneinfo import ZoneInfo

from connectors.plugins.s3.chunks import Rules
from connectors.plugins.s3.formats import PARQUET_CODECS, Format, JsonLines, Parquet
from connectors.plugins.s3.partitioners import (
    DAILY,
    DAY_MS,
    HOUR_MS,
    HOURLY,
    ByField,
    ByPartition,
    ByTime,
    Partitioner,
    time_pattern,
)
from connectors.plugins.s3.signing import Credentials
from connectors.plugins.s3.store import Bucket
from connectors.sdk.checks import all_of, in_range, non_empty, one_of, one_of_ignoring_case
from connectors.sdk.configs import Check, Definition, Importance, Key, Kind
from connectors.sdk.errors import ConfigError
from connectors.sdk.exchanges import split
from connectors.sdk.fixed_keys import fixed_key

BUCKET: Final = "s3.bucket.name"
REGION: Final = "s3.region"
STORE_URL: Final = "store.url"
FORMAT: Final = "format.class"
PARTITIONER: Final = "partitioner.class"
FIELD_NAMES: Final = "partition.field.name"
PATH_FORMAT: Final = "path.format"
TIMEZONE: Final = "timezone"
EXTRACTOR: Final = "timestamp.extractor"
TIME_FIELD: Final = "timestamp.field"

_STORAGE: Final = "io.confluent.connect.storage"
JSON, PARQUET = "json", "parquet"
FORMATS: Final[Mapping[str, str]] = {
    JSON: JSON,
    "io.confluent.connect.s3.format.json.JsonFormat": JSON,
    PARQUET: PARQUET,
    "io.confluent.connect.s3.format.parquet.ParquetFormat": PARQUET,
}
PARTITIONERS: Final[Mapping[str, str]] = {
    **{short: short for short in ("default", "field", "time", "daily", "hourly")},
    f"{_STORAGE}.partitioner.DefaultPartitioner": "default",
    f"{_STORAGE}.partitioner.FieldPartitioner": "field",
    f"{_STORAGE}.partitioner.TimeBasedPartitioner": "time",
    f"{_STORAGE}.partitioner.DailyPartitioner": "daily",
    f"{_STORAGE}.partitioner.HourlyPartitioner": "hourly",
}
# S3's limits: parts have at least 5 MiB; chunks are far below the maximum.
MIN_PART_BYTES: Final = 5 * 1024 * 1024
MAX_PART_BYTES: Final = 2**31 - 1
PART_BYTES: Final = 25 * 1024 * 1024
ACLS: Final = (
    *("private", "public-read", "public-read-write", "authenticated-read", "log-delivery-write"),
    *("bucket-owner-read", "bucket-owner-full-control", "aws-exec-read"),
)


def _key(name: str, kind: Kind, doc: str, group: str, default: Any = None, **more: Any) -> Key:
    importance = more.pop("importance", Importance.MEDIUM)
    return Key(
        name=name, kind=kind, doc=doc, group=group, default=default, importance=importance, **more
    )


def _required(name: str, kind: Kind, doc: str, group: str, check: Check) -> Key:
    return Key(name=name, kind=kind, doc=doc, group=group, check=check, importance=Importance.HIGH)


def _targets(value: str | None, values: Mapping[str, Any]) -> list[tuple[str, int]]:
    if not value:
        return []
    origin, _ = split(value)
    is_path_style = values["s3.path.style.access.enabled"]
    return [(origin.host if is_path_style else f"{values[BUCKET]}.{origin.host}", origin.port)]


def _check_url(value: Any) -> str | None:
    if not value:
        return None
    try:
        _, target = split(value)
    except ConfigError as error:
        return str(error)
    return None if target == "/" else "Give the server only, as https://s3.example.com"


def _check_bucket(value: Any) -> str | None:
    text = value or ""
    fits = 3 <= len(text) <= 63 and text.isascii() and not set(text) - _BUCKET_CHARS
    return None if fits else "A bucket has 3 to 63 small letters, digits, dots and hyphens"


_BUCKET_CHARS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-")


def _check_region(value: Any) -> str | None:
    fits = value and value.isascii() and value.replace("-", "").isalnum() and len(value) <= 32
    return None if fits else "A region is a word as us-west-2"


def _check_folder(value: Any) -> str | None:
    text = value or ""
    if not text or text.startswith("/") or text.endswith("/") or len(text) > 512:
        return "Give a folder without a slash at either end, of at most 512 characters"
    if any(part in {"", ".", ".."} for part in text.split("/")) or not text.isprintable():
        return "Each part of it must be a name"
    return None


def _check_zone(value: Any) -> str | None:
    try:
        ZoneInfo(value or "UTC")
    except (KeyError, OSError, ValueError):
        return "It is not a time zone; they are named as Europe/Berlin"
    return None


def _check_path_format(value: Any) -> str | None:
    try:
        time_pattern(value or "")
    except ConfigError as error:
        return str(error)
    return None


def _is_by_time(values: Mapping[str, Any]) -> bool:
    kind = PARTITIONERS.get(values.get(PARTITIONER) or "", "")
    return kind in {"time", "daily", "hourly"}


KEYS: Final = (
    _required(BUCKET, Kind.STRING, "The bucket, which must be there.", "Bucket", _check_bucket),
    _key(
        REGION,
        Kind.STRING,
        "The region of the bucket.",
        "Bucket",
        "us-west-2",
        check=_check_region,
        importance=Importance.HIGH,
    ),
    _key(
        STORE_URL,
        Kind.STRING,
        "The address of a store with the API of S3, such as https://minio.example.com:9000. "
        "Default: AWS. It must honour If-None-Match on writes, or files may come twice.",
        "Bucket",
        check=_check_url,
        targets=_targets,
    ),
    _key(
        "s3.path.style.access.enabled",
        Kind.BOOLEAN,
        "Whether requests name the bucket in the path instead of in the host name.",
        "Bucket",
        default=True,
        importance=Importance.LOW,
    ),
    _required("aws.access.key.id", Kind.PASSWORD, "The id of the access key.", "Access", non_empty),
    _required(
        "aws.secret.access.key", Kind.PASSWORD, "The secret of the key.", "Access", non_empty
    ),
    _key(
        "aws.session.token",
        Kind.PASSWORD,
        "The token that goes with a key for a limited time.",
        "Access",
        importance=Importance.LOW,
    ),
    _key(
        "s3.ssea.name",
        Kind.STRING,
        "The encryption of objects by S3: AES256 or aws:kms. Default: the one of S3.",
        "Access",
        "",
        check=one_of("", "AES256", "aws:kms"),
        importance=Importance.LOW,
    ),
    _key(
        "s3.sse.kms.key.id",
        Kind.STRING,
        "The key that aws:kms uses.",
        "Access",
        "",
        importance=Importance.LOW,
    ),
    _key(
        "s3.acl.canned",
        Kind.STRING,
        "The ACL of the objects. Default: that of the bucket.",
        "Access",
        check=lambda value: one_of(*ACLS)(value) if value else None,
        importance=Importance.LOW,
    ),
    _required(
        FORMAT,
        Kind.CLASS,
        "The format of the files: JSON lines or Parquet.",
        "Files",
        one_of(*FORMATS),
    ),
    _required(
        "flush.size",
        Kind.INT,
        "The number of records in a file; a file is closed earlier at 32 MiB.",
        "Files",
        in_range(1),
    ),
    _key(
        "rotate.interval.ms",
        Kind.LONG,
        "A file ends at a record that is this much younger than its first one; -1 for never.",
        "Files",
        -1,
        check=in_range(-1),
        importance=Importance.HIGH,
    ),
    _key(
        "rotate.schedule.interval.ms",
        Kind.LONG,
        "Files end each time the clock has gone on by this much, counted from midnight in "
        "`timezone`; -1 for never. Without it the last records wait for the next ones.",
        "Files",
        -1,
        check=in_range(-1),
        importance=Importance.HIGH,
    ),
    _key(
        "s3.compression.type",
        Kind.STRING,
        "The compression of JSON: none or gzip.",
        "Files",
        "none",
        check=one_of("none", "gzip"),
    ),
    _key(
        "s3.compression.level",
        Kind.INT,
        "The gzip level, from 0 (none) to 9 (smallest and slowest); -1 for gzip's default.",
        "Files",
        -1,
        check=in_range(-1, 9),
        importance=Importance.LOW,
    ),
    _key(
        "parquet.codec",
        Kind.STRING,
        f"The compression of Parquet: {', '.join(PARQUET_CODECS)}.",
        "Files",
        "snappy",
        check=one_of(*PARQUET_CODECS),
        importance=Importance.LOW,
    ),
    _key(
        "s3.part.size",
        Kind.INT,
        "Larger files are sent in parts of so many bytes.",
        "Files",
        PART_BYTES,
        check=in_range(MIN_PART_BYTES, MAX_PART_BYTES),
        importance=Importance.LOW,
        unit="B",
    ),
    _key(
        "behavior.on.null.values",
        Kind.STRING,
        "The handling of records without a value: fail, or skip them (ignore).",
        "Files",
        "fail",
        check=one_of_ignoring_case("fail", "ignore"),
    ),
    _key(
        "topics.dir",
        Kind.STRING,
        "The folder in the bucket.",
        "Names",
        "topics",
        check=_check_folder,
        importance=Importance.HIGH,
    ),
    _key(
        "file.delim",
        Kind.STRING,
        "The text between topic, partition and offset in a file name.",
        "Names",
        "+",
        check=one_of("+", "-", "_", "."),
        importance=Importance.LOW,
    ),
    _key(
        "filename.offset.zero.pad.width",
        Kind.INT,
        "The minimum number of digits of an offset in a file name.",
        "Names",
        10,
        check=in_range(0, 20),
        importance=Importance.LOW,
    ),
    _key(
        PARTITIONER,
        Kind.CLASS,
        "The partitioner, which assigns records to folders: by partition (default), field, time, "
        "daily, hourly.",
        "Folders",
        "default",
        check=one_of(*PARTITIONERS),
        importance=Importance.HIGH,
        dependents=(FIELD_NAMES, PATH_FORMAT, "partition.duration.ms", EXTRACTOR, TIME_FIELD),
    ),
    _key(
        FIELD_NAMES,
        Kind.LIST,
        "The fields of the value by which folders are named; dots lead into structs.",
        "Folders",
        [],
        visible=lambda values: PARTITIONERS.get(values.get(PARTITIONER) or "") == "field",
    ),
    _key(
        "partition.field.format.path",
        Kind.BOOLEAN,
        "Whether such a folder is named as name=value.",
        "Folders",
        default=True,
        importance=Importance.LOW,
    ),
    _key(
        PATH_FORMAT,
        Kind.STRING,
        f"The pattern of names of time folders, such as {HOURLY}.",
        "Folders",
        "",
        check=_check_path_format,
        visible=_is_by_time,
    ),
    _key(
        "partition.duration.ms",
        Kind.LONG,
        "The time span of a folder in milliseconds, with the partitioner `time`.",
        "Folders",
        -1,
        check=in_range(-1),
        visible=_is_by_time,
    ),
    _key(TIMEZONE, Kind.STRING, "The time zone of time folders.", "Folders", "", check=_check_zone),
    _key(
        "locale",
        Kind.STRING,
        "Accepted without effect: names of time folders have only numbers.",
        "Folders",
        "",
        importance=Importance.LOW,
        visible=lambda _values: False,
    ),
    _key(
        EXTRACTOR,
        Kind.STRING,
        "The source of a record's time: Record, or RecordField.",
        "Folders",
        "Record",
        check=all_of(
            lambda value: (
                "The clock of the worker would put a record elsewhere when it is written "
                "again: use Record or RecordField"
                if value == "Wallclock"
                else None
            ),
            one_of("Record", "RecordField"),
        ),
        visible=_is_by_time,
    ),
    _key(
        TIME_FIELD,
        Kind.STRING,
        "The field of the value that has the time.",
        "Folders",
        "timestamp",
        visible=_is_by_time,
    ),
    fixed_key(
        "storage.class",
        Kind.CLASS,
        "io.confluent.connect.s3.storage.S3Storage",
        "there is one kind of store",
    ),
    fixed_key(
        "schema.generator.class",
        Kind.CLASS,
        f"{_STORAGE}.hive.schema.DefaultSchemaGenerator",
        "Hive is not notified",
        also=(f"{_STORAGE}.hive.schema.TimeBasedSchemaGenerator",),
    ),
    fixed_key(
        "schema.compatibility", Kind.STRING, "NONE", "a Parquet file ends where the schema changes"
    ),
    fixed_key("directory.delim", Kind.STRING, "/", "folders are parted by slashes"),
    fixed_key("s3.wan.mode", Kind.BOOLEAN, False, "give the accelerated endpoint as store.url"),
    fixed_key("s3.object.tagging", Kind.BOOLEAN, False, "objects carry metadata instead"),
    fixed_key("s3.part.retries", Kind.INT, 3, "the framework repeats, see errors.retry.timeout"),
    fixed_key("s3.retry.backoff.ms", Kind.LONG, 200, "the framework chooses its waits"),
    fixed_key("s3.elastic.buffer.enable", Kind.BOOLEAN, False, "a file is held in memory"),
    fixed_key("store.kafka.keys", Kind.BOOLEAN, False, "values only are written"),
    fixed_key("store.kafka.headers", Kind.BOOLEAN, False, "values only are written"),
    fixed_key("json.decimal.format", Kind.STRING, "BASE64", "decimals are written as Connect does"),
    fixed_key(
        "format.bytearray.extension", Kind.STRING, ".bin", "the format for bytes is not supported"
    ),
    fixed_key("avro.codec", Kind.STRING, "null", "Avro is not supported"),
)
DEFINITION: Final = Definition(KEYS)
# Keys of Java's sinks that are not supported, with the reason.
REFUSED: Final[Mapping[str, str]] = {
    "s3.credentials.provider.class": "no class is loaded by its name",
    "s3.sse.key": "keys of customers are not sent",
    "s3.proxy.url": "connections go to the store itself",
    "s3.proxy.user": "connections go to the store itself",
    "s3.proxy.password": "connections go to the store itself",
    "keys.format.class": "values only are written",
    "headers.format.class": "values only are written",
    "format.bytearray.separator": "the format for bytes is not supported",
}


def problems(parsed: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the keys that conflict with others, each with the problem."""
    wrong = []
    kind = PARTITIONERS.get(parsed.get(PARTITIONER) or "")
    if kind == "field" and not parsed.get(FIELD_NAMES):
        wrong.append((FIELD_NAMES, "The partitioner needs the names of fields"))
    if kind == "time" and not parsed.get(PATH_FORMAT):
        wrong.append((PATH_FORMAT, f"The partitioner needs it, as {DAILY}"))
    if kind == "time" and (parsed.get("partition.duration.ms") or -1) <= 0:
        wrong.append(("partition.duration.ms", "The partitioner needs the time of a folder"))
    if parsed.get("s3.sse.kms.key.id") and parsed.get("s3.ssea.name") != "aws:kms":
        wrong.append(("s3.sse.kms.key.id", "It is used with s3.ssea.name=aws:kms only"))
    return wrong


def make_bucket(parsed: Mapping[str, Any]) -> Bucket:
    region = parsed[REGION]
    ending = "com.cn" if region.startswith("cn-") else "com"
    origin, _ = split(parsed[STORE_URL] or f"https://s3.{region}.amazonaws.{ending}")
    token = parsed["aws.session.token"]
    headers = {
        "x-amz-server-side-encryption": parsed["s3.ssea.name"],
        "x-amz-server-side-encryption-aws-kms-key-id": parsed["s3.sse.kms.key.id"],
        "x-amz-acl": parsed["s3.acl.canned"],
    }
    return Bucket(
        origin=origin,
        name=parsed[BUCKET],
        region=region,
        is_path_style=parsed["s3.path.style.access.enabled"],
        credentials=Credentials(
            key_id=parsed["aws.access.key.id"].reveal(),
            secret=parsed["aws.secret.access.key"].reveal(),
            session_token=token.reveal() if token else "",
        ),
        headers={name: value for name, value in headers.items() if value},
    )


def make_format(parsed: Mapping[str, Any]) -> Format:
    if FORMATS[parsed[FORMAT]] == PARQUET:
        return Parquet(codec=parsed["parquet.codec"])
    if parsed["s3.compression.type"] == "none":
        return JsonLines(gzip_level=None)
    level = parsed["s3.compression.level"]
    # gzip's default level in zlib.
    return JsonLines(gzip_level=6 if level < 0 else level)


def make_partitioner(parsed: Mapping[str, Any]) -> Partitioner:
    kind = PARTITIONERS[parsed[PARTITIONER]]
    if kind == "default":
        return ByPartition()
    if kind == "field":
        return ByField(parsed[FIELD_NAMES], shows_names=parsed["partition.field.format.path"])
    named, duration_ms = {
        "daily": (DAILY, DAY_MS),
        "hourly": (HOURLY, HOUR_MS),
        "time": ("", parsed["partition.duration.ms"]),
    }[kind]
    return ByTime(
        parsed[PATH_FORMAT] or named,
        duration_ms=duration_ms,
        zone=parsed[TIMEZONE] or "UTC",
        field=parsed[TIME_FIELD] if parsed[EXTRACTOR] == "RecordField" else "",
    )


def make_rules(parsed: Mapping[str, Any], *, zone_shift_ms: int) -> Rules:
    return Rules(
        flush_size=parsed["flush.size"],
        rotate_interval_ms=parsed["rotate.interval.ms"],
        rotate_schedule_ms=parsed["rotate.schedule.interval.ms"],
        zone_shift_ms=zone_shift_ms,
    )
