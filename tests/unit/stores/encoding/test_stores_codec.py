from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import http
import math
import time
import uuid
import zoneinfo
from typing import Any, TypedDict

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodline.errors import CodecError, ConfigError, UnreadableRecord
from floodline.stores import Codec, seal, unseal
from floodline.stores._encoding.differences import find_difference


class Thread:
    """A class of the user, with the two hooks."""

    def __init__(self, lines: Any) -> None:
        self.lines = lines

    def __floodline_dump__(self) -> Any:
        return {"lines": self.lines}

    @classmethod
    def __floodline_load__(cls, data: Any) -> Thread:
        return cls(data["lines"])


class Count:
    """Dumps to a number, so that nothing but the hooks can compare it."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __floodline_dump__(self) -> int:
        return self.number

    @classmethod
    def __floodline_load__(cls, data: int) -> Count:
        return cls(data)


class Color(enum.Enum):
    red = "red"


class MyTuple(tuple[int, ...]):
    __slots__ = ()


class Moment(datetime.datetime):
    pass


@dataclasses.dataclass
class Plan:
    title: str
    steps: list[str] = dataclasses.field(default_factory=list)
    thread: Thread | None = None
    count: Count | None = None
    at: datetime.datetime | None = None
    color: Color = Color.red
    extra: Any = None


@dataclasses.dataclass
class SubPlan(Plan):
    more: int = 0


@attrs.define
class Notes:
    lines: list[str]
    tags: set[str] = attrs.field(factory=set)


class Point(msgspec.Struct):
    x: int
    y: float = 0.0


class Typed(TypedDict, total=False):
    name: str
    plans: list[Plan]


def round_trip(codec: Codec, state: Any) -> Any:
    payload = codec.encode(state)
    codec.check(state, payload)
    return codec.decode(payload)


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.integers(-(2**63), 2**63) | st.binary(), inner)
    ),
)


@given(plain)
def test_plain_data_comes_back_the_same(state: Any) -> None:
    assert repr(round_trip(Codec(), state)) == repr(state)


ZURICH = zoneinfo.ZoneInfo("Europe/Zurich")
moments = st.datetimes(timezones=st.none() | st.just(datetime.UTC) | st.just(ZURICH))
hashable = st.recursive(
    st.text() | st.binary() | st.integers(-5, 5) | st.uuids() | moments | st.dates(),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner),
    max_leaves=4,
)
rich = st.recursive(
    plain
    | hashable
    | st.sets(hashable)
    | st.times()
    | st.timedeltas()
    | st.decimals(allow_nan=False),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(hashable, inner)
    ),
    max_leaves=8,
)


@given(rich)
def test_rich_data_comes_back_the_same(state: Any) -> None:
    back = round_trip(Codec(), state)
    assert find_difference(state, back) is None
    assert Codec().encode(back) == Codec().encode(state)


@pytest.mark.parametrize(
    "value",
    [
        (1, 2),
        {1, "a", (2, 3)},
        frozenset({b"x"}),
        b"\x00\xff",
        2**64,
        -(2**63) - 1,
        decimal.Decimal("1.10"),
        decimal.Decimal("NaN"),
        uuid.UUID(int=7),
        datetime.date(2026, 1, 1),
        datetime.time(3, 4, 5, 6, tzinfo=datetime.UTC),
        datetime.timedelta(days=-1, microseconds=3),
        datetime.datetime(2026, 1, 1, 12),
        datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC),
        datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=5))),
        datetime.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZURICH),
    ],
)
@pytest.mark.parametrize("put", [lambda v: v, lambda v: {"x": [v]}, lambda v: {"a": ({"b": v},)}])
def test_what_msgpack_has_no_form_for_comes_back_as_it_was(value: Any, put: Any) -> None:
    state = put(value)
    back = round_trip(Codec(), state)
    assert find_difference(state, back) is None
    assert repr(value) in repr(back) or isinstance(value, set)  # a set has no order to show
    assert unseal(seal(Codec().encode(state), version=1)) == Codec().encode(state)


@pytest.mark.parametrize(
    "key", [(1, 2), 2**70, uuid.UUID(int=1), datetime.date(2026, 1, 1), frozenset()]
)
def test_keys_come_back_as_they_were(key: Any) -> None:
    assert round_trip(Codec(), {"x": {key: 1, "a": 2}}) == {"x": {key: 1, "a": 2}}


@pytest.mark.parametrize(
    "wrap", [lambda key: key, lambda key: (key, 1), lambda key: frozenset([key])]
)
def test_equal_keys_are_the_same_in_whatever_order_their_sets_print(wrap: Any) -> None:
    one, other = frozenset([0, 8]), frozenset([8, 0])  # both in one slot of the hash table
    assert one == other
    assert repr(one) != repr(other)
    assert find_difference({wrap(one): "x"}, {wrap(other): "x"}) is None


def test_a_moment_keeps_its_zone_and_its_fold() -> None:
    at = datetime.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZURICH)
    back = round_trip(Codec(), [at])[0]
    assert (back.tzinfo, back.fold, back.utcoffset()) == (ZURICH, 1, at.utcoffset())


def test_a_moment_of_a_zone_that_is_unknown_here_keeps_its_offset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = datetime.datetime(2026, 7, 1, tzinfo=ZURICH)
    payload = Codec().encode({"at": at})

    def unknown(key: str) -> Any:
        raise zoneinfo.ZoneInfoNotFoundError(key)

    monkeypatch.setattr("floodline.stores._encoding.tags.ZoneInfo", unknown)
    assert Codec().decode(payload) == {"at": at}


@given(plain)
def test_plain_data_is_msgpack_that_anybody_reads(state: Any) -> None:
    payload = Codec().encode(state)
    assert payload == msgspec.msgpack.encode(state)
    assert seal(payload, version=1)[5] == 1


def test_a_record_with_tags_says_so_to_readers_that_know_less() -> None:
    assert seal(Codec().encode({"x": {1}}), version=1)[5] == 2


def test_the_same_set_has_the_same_bytes() -> None:
    names, other = {str(n) for n in range(50)}, {str(n) for n in range(5000)}
    other -= {str(n) for n in range(50, 5000)}
    assert list(names) != list(other)
    assert Codec().encode(names) == Codec().encode(other)


def test_tagged_data_is_read_as_a_type_that_was_given_later() -> None:
    payload = Codec().encode({"title": "a", "at": datetime.datetime(2026, 1, 1), "steps": ()})
    assert Codec(Plan).decode(payload) == Plan("a", at=datetime.datetime(2026, 1, 1))
    assert Codec(Thread).decode(Codec().encode({"lines": (1,)})).lines == (1,)


@pytest.mark.parametrize(
    "ext", [(71, b""), (70, msgspec.msgpack.encode(msgspec.msgpack.Ext(99, b"x")))]
)
def test_an_extension_of_another_time_is_unreadable(ext: Any) -> None:
    payload = msgspec.msgpack.encode(msgspec.msgpack.Ext(*ext))
    with pytest.raises(UnreadableRecord, match="unknown extension"):
        Codec().decode(payload)


@pytest.mark.parametrize("plain_type", [None, dict, list])
def test_builtin_containers_mean_plain_data(plain_type: Any) -> None:
    assert Codec(plain_type).state_type is None


def test_the_order_of_keys_is_kept() -> None:
    assert list(round_trip(Codec(), {"b": 1, "a": 2, 3: 4})) == ["b", "a", 3]


def test_nan_is_the_same_as_nan() -> None:
    assert math.isnan(round_trip(Codec(), {"x": [math.nan]})["x"][0])


@pytest.mark.parametrize(
    ("state", "place"),
    [
        ({"x": (Color.red, 2)}, "$.x[0]: Color came back as str"),
        ({"x": MyTuple((1, 2))}, "$.x: MyTuple came back as list"),
        ({"a-b": [Color.red]}, "$['a-b'][0]: Color came back as str"),
        ({"p": Point(1)}, "$.p: Point came back as dict"),
    ],
)
def test_what_would_come_back_different_is_refused_with_its_place(state: Any, place: str) -> None:
    with pytest.raises(CodecError) as refused:
        Codec().encode(state)
    assert str(refused.value).endswith(place)
    assert "__floodline_dump__" in str(refused.value)
    assert isinstance(refused.value, TypeError)


@pytest.mark.parametrize(
    ("state", "place"),
    [
        ({"x": bytearray(b"x")}, "$.x: bytearray came back as bytes"),
        ({"x": collections.OrderedDict(a=1)}, "$.x: OrderedDict came back as dict"),
        ({"x": {MyTuple((1, 2)): 3}}, "$.x: a key is a MyTuple"),
    ],
)
def test_what_looks_equal_is_found_by_the_check(state: Any, place: str) -> None:
    codec = Codec()
    payload = codec.encode(state)
    with pytest.raises(CodecError) as refused:
        codec.check(state, payload)
    assert str(refused.value).endswith(place)


class MyInt(int):
    pass


@pytest.mark.parametrize(
    ("state", "place"),
    [
        ({"a": [1, {"b": MyInt(2**70)}]}, "$.a[1].b"),
        ({"a": "\ud800"}, "$.a"),
        ({"a": [object()]}, "$.a[0]"),
        ({"a": MyInt(3)}, "$.a"),
        ({"a": [Moment(2026, 1, 1)]}, "$.a[0]"),
        ({"a": {"b": lambda: None}}, "$.a.b"),
    ],
)
def test_what_cannot_be_encoded_is_named_with_its_place(state: Any, place: str) -> None:
    with pytest.raises(CodecError) as refused:
        Codec().encode(state)
    assert str(refused.value).endswith(f": {place}")


def test_a_list_that_contains_itself_is_refused() -> None:
    ring: list[Any] = [1]
    ring.append({"again": ring})
    with pytest.raises(CodecError, match=r"contains itself.*\$\.x\[1\]\.again$"):
        Codec().encode({"x": ring})


def test_what_is_nested_too_deep_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(CodecError, match="nested deeper than 200"):
        Codec().encode({"x": deep})
    while deep:  # or freeing it would recurse
        deep = deep[0]


def test_nesting_that_only_the_comparison_cannot_follow_is_refused() -> None:
    deep: list[Any] = [math.nan]
    for _ in range(250):
        deep = [deep]
    with pytest.raises(CodecError, match="nested deeper than 200"):
        Codec().encode(deep)


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        (Plan, Plan("a", ["b"], at=datetime.datetime(2026, 1, 1), extra={"any": [1]})),
        (Notes, Notes(["x"], {"t"})),
        (Point, Point(1, 2.5)),
        (dict[str, Point], {"a": Point(1)}),
        (tuple[int, ...], (1, 2)),
        (set[int], {1, 2}),
        (Plan | None, Plan("a")),
    ],
)
def test_typed_states_come_back_equal(kind: Any, state: Any) -> None:
    back = round_trip(Codec(kind), state)
    assert back == state
    assert type(back) is type(state)


def test_typed_dicts_hold_typed_parts() -> None:
    state: Typed = {"name": "x", "plans": [Plan("a")]}
    assert round_trip(Codec(Typed), state) == state


def test_a_class_with_hooks_is_a_state() -> None:
    assert round_trip(Codec(Thread), Thread(["a"])).lines == ["a"]
    assert round_trip(Codec(Count), Count(7)).number == 7


def test_a_class_with_hooks_is_a_field() -> None:
    back = round_trip(Codec(Plan), Plan("a", thread=Thread([1]), count=Count(3)))
    assert (back.thread.lines, back.count.number) == ([1], 3)


@pytest.mark.parametrize(
    ("kind", "state", "place"),
    [
        (Plan, Plan("a", extra=(1, 2)), "$.extra: tuple came back as list"),
        (Plan, SubPlan("a", more=1), "$: SubPlan came back as Plan"),
        (Plan, Plan("a", thread=Thread((1,))), "$.thread.lines: tuple came back as list"),
        (Typed, {"name": "x", "unknown": 1}, "$: 2 items came back as 1"),
        (Plan, Plan(3), "$.title"),  # type: ignore[arg-type]  # a wrong annotation is the point
        (Notes, Notes([1]), "$.lines[0]"),  # type: ignore[list-item]  # as above
    ],
)
def test_typed_states_that_come_back_different_are_refused(
    kind: Any, state: Any, place: str
) -> None:
    codec = Codec(kind)
    payload = codec.encode(state)
    with pytest.raises(CodecError) as refused:
        codec.check(state, payload)
    assert place in str(refused.value)


def test_a_key_that_comes_back_as_another_is_refused() -> None:
    codec = Codec(dict[str, int])
    with pytest.raises(CodecError, match=r"\$: \.a came back as \.b"):
        codec.check({"a": 1}, codec.encode({"b": 1}))


def test_a_value_that_comes_back_as_another_is_refused() -> None:
    codec = Codec()
    with pytest.raises(CodecError, match=r"\$\.a: 1 came back as 2$"):
        codec.check({"a": 1}, codec.encode({"a": 2}))


def test_what_the_hooks_dump_is_compared_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("floodline.stores._encoding.codec.find_difference", None)  # slow
    codec = Codec(Thread)
    state = Thread([{"role": "user", "content": "hello"}])
    codec.check(state, codec.encode(state))


@pytest.mark.parametrize("lines", [(1, 2), [http.HTTPStatus.OK]], ids=["tuple", "enum"])
def test_what_the_hooks_dump_comes_back_in_its_type(lines: Any) -> None:
    codec = Codec(Thread)
    with pytest.raises(CodecError, match=r"\$\.lines.* came back as "):
        codec.check(Thread(lines), codec.encode(Thread(lines)))


def test_hooks_that_raise_are_told() -> None:
    class Broken:
        def __floodline_dump__(self) -> Any:
            raise KeyError("inside")

    with pytest.raises(CodecError, match="inside"):
        Codec(Plan).encode(Plan("a", extra=Broken()))


def test_the_state_of_a_hooked_type_needs_the_hooks() -> None:
    with pytest.raises(CodecError, match="a dict has no encoding"):
        Codec(Thread).encode({})


def test_bytes_that_do_not_fit_the_type_are_unreadable() -> None:
    payload = Codec().encode({"title": 3})
    with pytest.raises(UnreadableRecord, match=r"Plan.*Expected `str`, got `int`.*\$\.title"):
        Codec(Plan).decode(payload)
    with pytest.raises(UnreadableRecord, match="plain data"):
        Codec().decode(b"\xc1")
    with pytest.raises(UnreadableRecord, match="lines"):
        Codec(Thread).decode(payload)


def test_a_type_without_a_way_back_is_unreadable() -> None:
    class Opaque:
        pass

    with pytest.raises(UnreadableRecord, match="no __floodline_load__"):
        Codec(Opaque).decode(Codec().encode({}))


def test_too_little_memory_is_not_a_damaged_record(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hungry:
        def __floodline_dump__(self) -> Any:
            raise MemoryError

        @classmethod
        def __floodline_load__(cls, data: Any) -> Any:
            raise MemoryError

    with pytest.raises(MemoryError):
        Codec(Hungry).encode(Hungry())
    with pytest.raises(MemoryError):
        Codec(Hungry).decode(Codec().encode({}))


def test_a_type_that_cannot_be_decoded_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="cannot be decoded"):
        Codec(Plan | Notes)


def test_a_record_imports_nothing() -> None:
    """A record that names a type comes back as the plain data that it is."""
    state = {"py/object": "os.system", "__class__": "subprocess.Popen", "args": [time.asctime()]}
    assert round_trip(Codec(), state) == state


class Note(pydantic.BaseModel):
    """Fields of the kinds that msgpack has no types for."""

    model_config = pydantic.ConfigDict(strict=True)

    key: uuid.UUID = uuid.UUID(int=7)
    tags: set[str] = {"a"}
    pair: tuple[int, str] = (1, "x")
    when: datetime.datetime = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    raw: bytes = b"\xff\x00"
    price: decimal.Decimal = decimal.Decimal("1.10")
    renamed: int = pydantic.Field(3, alias="camelCase")


class Pages(pydantic.BaseModel):
    notes: list[Note] = []
    _cursor: int = 0


@dataclasses.dataclass
class Shelf:
    pages: Pages


@pytest.mark.parametrize(
    ("state_type", "state"),
    [
        (Note, Note(camelCase=5)),
        (Pages, Pages(notes=[Note(), Note(tags=set())])),
        (Shelf, Shelf(Pages(notes=[Note()]))),
    ],
)
def test_pydantic_models_come_back_equal(state_type: Any, state: Any) -> None:
    codec = Codec(state_type)
    payload = codec.encode(state)
    codec.check(state, payload)
    back = codec.decode(payload)
    assert back == state
    assert type(back) is state_type


def test_a_pydantic_model_that_would_lose_something_is_refused() -> None:
    class Secret(pydantic.BaseModel):
        token: str = pydantic.Field("", exclude=True)

    codec = Codec(Secret)
    state = Secret(token="t")
    with pytest.raises(CodecError, match="came back different"):
        codec.check(state, codec.encode(state))


def test_a_record_that_is_no_such_model_is_unreadable() -> None:
    with pytest.raises(UnreadableRecord, match="notes"):
        Codec(Pages).decode(msgspec.msgpack.encode({"notes": 3}))
