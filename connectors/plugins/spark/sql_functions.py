"""Lists the functions that a query may call, since some of Spark's functions load classes.

Each is built in, maps one row, and reads only its arguments. Excluded are regular expressions,
which may take forever; functions whose output can be of any size, such as repeat and sequence; and
functions that take types as text, which Spark reads in more than one way.
"""

from collections.abc import Mapping
from typing import Final

# The names, by subject.
BY_TOPIC: Final[Mapping[str, str]] = {
    "nulls and choices": (
        "coalesce nvl nvl2 ifnull nullif if isnull isnotnull isnan nanvl equal_null greatest least"
        " between"
    ),
    "text": (
        "upper ucase lower lcase trim ltrim rtrim btrim length char_length character_length len"
        " octet_length bit_length concat concat_ws substring substr left right split_part"
        " substring_index instr locate position contains startswith endswith replace translate"
        " reverse initcap ascii chr char soundex"
    ),
    "bytes": (
        "base64 unbase64 hex unhex encode decode md5 sha sha1 sha2 crc32 hash xxhash64 url_encode"
        " url_decode try_url_decode"
    ),
    "numbers": (
        "abs sign signum ceil ceiling floor round bround mod pmod sqrt cbrt exp ln log log2 log10"
        " pow power degrees radians sin cos tan asin acos atan atan2 negative positive bin conv"
        " try_add try_subtract try_multiply try_divide try_mod shiftleft shiftright bit_count"
    ),
    "times": (
        "to_date to_timestamp try_to_timestamp try_to_date date_format date_trunc trunc date_add"
        " dateadd date_sub date_diff datediff add_months months_between last_day next_day year"
        " month day dayofmonth dayofweek dayofyear weekofyear weekday quarter hour minute second"
        " extract date_part datepart from_unixtime unix_timestamp to_unix_timestamp unix_date"
        " unix_seconds unix_millis unix_micros timestamp_seconds timestamp_millis timestamp_micros"
        " from_utc_timestamp to_utc_timestamp convert_timezone make_date make_timestamp"
        " current_date current_timestamp now"
    ),
    "types": (
        "string int bigint smallint tinyint float double decimal boolean binary date timestamp"
        " to_number try_to_number to_char typeof"
    ),
    "arrays, maps and structs": (
        "struct named_struct array map map_from_arrays map_keys map_values map_entries"
        " map_contains_key element_at try_element_at get size cardinality array_size"
        " array_contains array_position array_join array_distinct array_min array_max array_sort"
        " sort_array array_compact array_remove array_append array_prepend array_union"
        " array_intersect array_except arrays_overlap arrays_zip slice flatten transform filter"
        " exists forall transform_values transform_keys map_filter"
    ),
    "several rows of one": "explode explode_outer posexplode posexplode_outer inline inline_outer",
    "JSON": "to_json get_json_object json_array_length json_object_keys",
}
FUNCTIONS: Final = frozenset(name for names in BY_TOPIC.values() for name in names.split())
# Functions that users may expect, with the reason why they are not allowed.
OF_MANY: Final = (
    "any any_value approx_count_distinct avg bool_and bool_or collect_list collect_set corr count"
    " count_if every first first_value last last_value listagg max max_by mean median min min_by"
    " mode percentile percentile_approx row_number rank dense_rank lag lead ntile some std stddev"
    " string_agg sum try_avg try_sum var_pop var_samp variance window session_window"
)
AGGREGATES: Final = frozenset(OF_MANY.split())
