from __future__ import annotations

import ast

import pytest

from floodline._python.assignments import (
    assigned,
    assigned_on_self,
    class_of,
    parameters,
    targets,
)
from floodline._python.constants import Constants

SOURCE = """
LIMIT = 100
HALF: int = LIMIT // 2
TWICE = THRICE = LIMIT * 2
CHANGES = 1
CHANGES = 2
A = B
B = A
D1 = 9
D2 = D1
D3 = D2
D4 = D3
D5 = D4
D6 = D5
D7 = D6
D8 = D7
D9 = D8
DECLARED: int

class Cache:
    MOST = 20
    KIB = 1 << 10
    size: int = MOST

    def __init__(self, max_items=30, /, keep=LIMIT, *, ttl=5, needed):
        self.max_items = max_items
        self.keep: int = keep
        self.ttl = ttl * 2
        self.fixed = 40
        self.needed = needed
        self.set_twice = 1

    def grow(self):
        self.set_twice = 2

class Plain:
    LIMIT = 3
"""
TREE = ast.parse(SOURCE)


def value(text, owner="Cache", made=None):
    call = ast.parse(made, mode="eval").body if made else None
    return Constants(TREE, call).of(ast.parse(text, mode="eval").body, class_of(TREE, owner))


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("7", 7),
        ("LIMIT", 100),
        ("HALF", 50),
        ("THRICE", 200),
        ("LIMIT * 2 - 1", 199),
        ("self.MOST", 20),
        ("cls.MOST", 20),
        ("Cache.KIB", 1024),
        ("Plain.LIMIT", 3),
        ("self.fixed", 40),
        ("self.max_items", 30),
        ("self.keep", 100),
        ("self.ttl + 1", 11),
        ("max_items", 30),
        ("D8", 9),
    ],
)
def test_a_number_is_found_where_the_file_gives_it(text, known):
    assert value(text) == known


@pytest.mark.parametrize(
    "text",
    [
        "CHANGES", "self.set_twice", "A", "D9", "DECLARED", "unknown", "self.needed", "needed",
        "self.nothing", "other.MOST", "self.inner.MOST", "f(LIMIT)", "LIMIT[0]",
    ],
)  # fmt: skip
def test_what_has_several_values_or_none_is_not_known(text):
    assert value(text) is None


SETTINGS = """
import os
import nowhere.config as far
from nowhere import gone
from dataclasses import dataclass, field

TABLE = {"size": 70, other: 1}
ALSO = TABLE
FROM_ENV = int(os.environ.get("SIZE", "80"))
NUMBER_FROM_ENV = int(os.getenv("SIZE", 81))
NO_DEFAULT = os.getenv("SIZE")

class Limits:
    A = 90
    class Inner:
        B = 91

@dataclass
class Config:
    most: int = field(default=92)
    least: int = field(default_factory=int)

class Base:
    KEPT = 93

class Loop(Loop):
    pass

config = Config()
given = Config(most=94)
twice = Config()
twice = Config()

def get_config():
    return config

def either(which):
    if which:
        return config
    return given

class Cache(Base, Loop):
    def __init__(self, size=None, settings=None, keep=95, other=Config(most=96)):
        self.size = size or 97
        self.or_keep = keep or 98
        self.chosen = size if size is not None else 99
        self.turned = 100 if size is None else size
        self.kept = keep if keep else 101
        self.config = settings or Config()
        self.other = other
        self.both = size and 1
        self.odd = 1 if self.what() else 2
        self.free = gone
"""


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("TABLE['size']", 70), ("ALSO['size']", 70), ("TABLE.get('size')", 70),
        ("TABLE['no']", None), ("TABLE[x]", None), ("x['size']", None), ("f()['size']", None),
        ("TABLE.get('no', 5)", None),
        ("FROM_ENV", 80), ("NUMBER_FROM_ENV", 81), ("NO_DEFAULT", None), ("int('x')", None),
        ("Limits.A.value", 90), ("Limits.Inner.B", 91), ("Limits.Nothing.B", None),
        ("config.most", 92), ("config.least", None), ("given.most", 94), ("twice.most", None),
        ("get_config().most", 92), ("either(1).most", None), ("unknown().most", None),
        ("self.KEPT", 93), ("type(self).KEPT", 93), ("self.__class__.KEPT", 93),
        ("self.size", 97), ("self.or_keep", 95), ("self.chosen", 99), ("self.turned", 100),
        ("self.kept", 95), ("self.config.most", 92), ("self.other.most", 96),
        ("self.both", None), ("self.odd", None), ("self.free", None), ("self.free.x", None),
        ("min(3, FROM_ENV)", 3), ("max(self.size, 4)", 97), ("min(3, unknown)", None),
        ("far.MOST", None), ("[1][0]", None), ("(lambda: 1)().x", None), ("Loop.x", None),
    ],
)  # fmt: skip
def test_settings_and_defaults_are_numbers_too(text, known):
    tree = ast.parse(SETTINGS)
    assert Constants(tree).of(ast.parse(text, mode="eval").body, class_of(tree, "Cache")) == known


@pytest.mark.parametrize(
    ("made", "known"), [("Config(most=9)", 9), ("Config()", 92), ("Other(most=9)", 92)]
)
def test_a_dataclass_is_made_by_the_names_of_its_fields(made, known):
    tree = ast.parse(SETTINGS)
    constants = Constants(tree, ast.parse(made, mode="eval").body)
    assert constants.of(ast.parse("self.most", mode="eval").body, class_of(tree, "Config")) == known


def test_a_name_that_a_package_imports_from_itself_is_not_looked_up_forever():
    tree = ast.parse("from . import x")
    constants = Constants(tree, None, lambda name, dots: None if name else constants)
    for text in ("x", "x.y"):
        assert constants.of(ast.parse(text, mode="eval").body, None) is None


def test_self_means_nothing_outside_a_class():
    assert value("self.MOST", owner="Nobody") is None


@pytest.mark.parametrize(
    ("made", "text", "known"),
    [
        ("Cache(9)", "self.max_items", 9),
        ("Cache(9, 8)", "self.keep", 8),
        ("Cache(keep=8)", "self.keep", 8),
        ("Cache(needed=6)", "self.needed", 6),
        ("Cache(ttl=LIMIT)", "self.ttl", 200),
        ("Cache(keep=8)", "self.max_items", 30),
        ("Plain(9)", "self.max_items", 30),
        ("shop.Cache(9)", "self.max_items", 30),
    ],
)
def test_what_an_instance_is_made_with_comes_before_the_default(made, text, known):
    assert value(text, made=made) == known


def test_a_class_without_a_constructor_has_no_parameters():
    assert parameters(class_of(TREE, "Plain")) == {}
    assert list(parameters(class_of(TREE, "Cache"))) == ["max_items", "keep", "ttl", "needed"]


def test_a_nested_class_is_found():
    tree = ast.parse("class A:\n  class B:\n    N = 1")
    assert class_of(tree, "B").name == "B"
    assert class_of(tree, "C") is None


def test_statements_are_found_by_what_they_assign_to():
    tree = ast.parse("a = b = 1\na: int = 2\na: int\na += 3\na.b = 4\nif x:\n  a = 5")
    assert [node.lineno for node in assigned(tree.body, "a")] == [1, 2]
    assert [len(targets(node)) for node in tree.body] == [2, 1, 1, 1, 1, 0]


def test_only_self_has_the_attributes_of_an_instance():
    owner = class_of(ast.parse("class A:\n def f(s, o):\n  o.x = 1\n  self.x = 2\n  x = 3"), "A")
    assert [node.lineno for node in assigned_on_self(owner, "x")] == [4]
