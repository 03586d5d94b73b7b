from __future__ import annotations

import ast

from floodline.leaks._source.excerpt import LONG_TABLE, tree_about

SOURCE = '''
import other

@decorated
@twice
def first():
    keep = 1

def second():
    """Text
at the left edge, with keep in it
    """
    return 2

class Head(keep):
    def nothing(self):
        return 1

class Large:
    """A docstring
    of two lines."""

    @property
    def one(self):
        return self.keep

    def two(self):
        return 2
    keep: int = 3

class Spread(
    Head,
):
    keep = 4

if other:
    pass
else:
    keep = 5
'''


def test_only_the_statements_that_mention_a_word_are_parsed(tmp_path):
    file = tmp_path / "large.py"
    file.write_text(SOURCE, encoding="utf-8")
    tree = tree_about(str(file), "keep")
    names = [getattr(node, "name", type(node).__name__) for node in tree.body]
    assert names == ["first", "second", "Head", "Large", "Spread", "If"]
    large = tree.body[3]
    assert [getattr(node, "name", type(node).__name__) for node in large.body] == [
        "one",
        "AnnAssign",
    ]
    line = SOURCE.splitlines().index("    keep: int = 3") + 1
    assert large.body[1].lineno == line
    assert ast.unparse(tree.body[2]) == "class Head(keep):\n    pass"
    assert tree_about(str(file), "no_such_word").body == []


def test_a_file_that_cannot_be_cut_is_parsed_whole(tmp_path):
    file = tmp_path / "odd.py"
    file.write_text("X = [1,\n2,\n'keep']\nY = 1\n", encoding="utf-8")
    assert len(tree_about(str(file), "keep").body) == 2


def test_the_entries_of_a_long_table_are_left_out(tmp_path):
    file = tmp_path / "tables.py"
    entries = "".join(f"    {i}: 'keep',\n" for i in range(LONG_TABLE))
    call = f"keep = dict(\n{entries.replace(':', ' +')})\n"  # what it calls may matter
    file.write_text(
        f"\nkeep: dict[int, str] = {{\n{entries}}}\n{call}last = keep\n", encoding="utf-8"
    )
    table, called, last = tree_about(str(file), "keep").body
    assert (ast.unparse(table), table.lineno) == ("keep: dict[int, str] = {}", 2)
    assert len(called.value.args) == LONG_TABLE
    assert last.lineno == 2 * LONG_TABLE + 6
