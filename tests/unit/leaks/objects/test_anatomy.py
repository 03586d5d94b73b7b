from __future__ import annotations

import io

import pytest

from floodline.leaks._objects.anatomy import Anatomy, is_standard, label_of


def test_a_container_that_another_thread_changes_is_read_again():
    plan = Anatomy(dict)
    assert plan.items({"a": 1}) == [1]

    class Never(dict):
        pass

    changing = Never(a=1)
    shaky = Anatomy(Never)
    shaky.base = set
    monkey = {"left": 2}

    def iterate(_):
        if monkey["left"]:
            monkey["left"] -= 1
            raise RuntimeError
        return iter([9])

    import floodline.leaks._objects.anatomy as anatomy

    kept = anatomy._ITEMS[set]
    anatomy._ITEMS[set] = iterate
    try:
        assert shaky.items(changing) == [9]
        monkey["left"] = 5
        assert shaky.items(changing) == []
    finally:
        anatomy._ITEMS[set] = kept


def test_a_class_without_a_module_has_some_label():
    names = {"type": type}
    exec("Odd = type('Odd', (), {})", names)
    assert label_of(names["Odd"]) == "?"
    assert label_of(int) == "int"


@pytest.mark.parametrize(
    ("label", "standard"),
    [("json.decoder", True), ("dict", True), ("app.x", False), ("app", False)],
)
def test_names_of_the_library_are_known(label, standard):
    assert is_standard(label) is standard


def test_a_closed_buffer_holds_nothing():
    closed = io.BytesIO(b"123")
    closed.close()
    assert Anatomy(io.BytesIO).length(closed) == 0
