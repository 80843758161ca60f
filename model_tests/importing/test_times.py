"""Is a time in a table the moment that it means, and what is no time none?"""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ackfsm.history.importing.mapping import When
from ackfsm.history.importing.times import nanoseconds

MOMENTS = st.datetimes(datetime(1971, 1, 2), datetime(2200, 1, 1))  # noqa: DTZ001 - a zone is put in

UNTIL_2037 = st.datetimes(datetime(1971, 1, 2), datetime(2036, 12, 31))  # noqa: DTZ001 - as above


def since_1970(moment: datetime) -> int:
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return ((since.days * 86_400 + since.seconds) * 10**6 + since.microseconds) * 1_000


def read(texts: list[str | None], when: When) -> list[int | None]:
    found: list[int | None] = nanoseconds(pa.array(texts, pa.string()), when).to_pylist()
    return found


@given(moment=MOMENTS, zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]))
def test_iso_text_with_its_offset_is_what_python_reads(moment: datetime, zone: str) -> None:
    local = moment.replace(tzinfo=UTC).astimezone(ZoneInfo(zone))
    text = local.isoformat(timespec="microseconds")
    offset = local.utcoffset()
    if offset is not None and offset.seconds % 60 == 0:
        assert read([text], When("c", None, "iso", "UTC")) == [since_1970(local)]


@example(moment=datetime(2026, 10, 25, 2, 30), zone="Europe/Berlin")  # noqa: DTZ001 - the clocks show it twice
@example(moment=datetime(2026, 3, 29, 2, 30), zone="Europe/Berlin")  # noqa: DTZ001 - and this one never
@given(moment=UNTIL_2037, zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]))
def test_text_without_an_offset_is_of_the_zone_unless_that_is_open(moment: datetime, zone: str) -> None:
    where = ZoneInfo(zone)
    early, late = (moment.replace(tzinfo=where, fold=fold) for fold in (0, 1))
    expected = since_1970(early.astimezone(UTC)) if early.utcoffset() == late.utcoffset() else None
    forms = {
        "iso": f"{moment:%Y-%m-%d %H:%M:%S.%f}",
        "%d.%m.%Y %H:%M:%S,%f": f"{moment:%d.%m.%Y %H:%M:%S,%f}",
        "%S.%f %H:%M %d/%m/%Y": f"{moment:%S.%f %H:%M %d/%m/%Y}",
    }
    for form, text in forms.items():
        assert read([text, None], When("c", None, form, zone)) == [expected, None], form


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("1772359200", "s", 1_772_359_200_000_000_000),
        ("1772359200.123456789", "s", 1_772_359_200_123_456_789),
        ("1772359200123", "ms", 1_772_359_200_123_000_000),
        ("1772359200123.5", "ms", 1_772_359_200_123_500_000),
        ("7", "us", 7_000),
        ("7", "ns", 7),
        ("seven", "ns", None),
        ("99999999999999999999", "ns", None),
        ("9999999999999", "s", None),
    ],
)
def test_numbers_are_of_their_unit(text: str, unit: str, expected: int | None) -> None:
    assert read([text, "5"], When("c", unit, None, "UTC"))[0] == expected


def test_numbers_and_timestamps_of_parquet_are_read_as_they_are() -> None:
    when = When("c", "ms", None, "Europe/Berlin")
    assert nanoseconds(pa.array([1, None]), when).to_pylist() == [1_000_000, None]
    assert nanoseconds(pa.array([1.5]), when).to_pylist() == [1_500_000]
    local = pa.array([datetime(2026, 7, 1, 12)], pa.timestamp("us"))  # noqa: DTZ001 - that is the question
    assert nanoseconds(local, when).to_pylist() == [since_1970(datetime(2026, 7, 1, 10, tzinfo=UTC))]
    zoned = pa.array([datetime(2026, 7, 1, 12, tzinfo=UTC)], pa.timestamp("ms", "America/New_York"))
    assert nanoseconds(zoned, when).to_pylist() == [since_1970(datetime(2026, 7, 1, 12, tzinfo=UTC))]


def test_without_a_format_digits_are_nanoseconds_and_other_text_is_iso() -> None:
    assert read(["12"], When("c", None, None, "UTC")) == [12]
    assert read(["1970-01-01T00:00:01Z", "nonsense"], When("c", None, None, "UTC")) == [10**9, None]


def test_what_arrow_knows_no_summer_time_of_is_no_time() -> None:
    assert read(["2038-07-01 12:00:00", "2036-07-01 12:00:00"], When("c", None, "iso", "Europe/Berlin")) == [
        None,
        since_1970(datetime(2036, 7, 1, 10, tzinfo=UTC)),
    ]
