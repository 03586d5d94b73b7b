from __future__ import annotations

import json

from floodline.soak import Answer


def test_the_words_of_an_answer_say_what_to_do(suspect):
    answer = Answer(verdict="growing", where="python", rounds=240, warmup=0, suspects=(suspect,))
    assert answer.text().splitlines() == [
        "GROWING  +1.0 item/round, +3.91 KiB/round over 240 rounds  (python)",
        "  app.plans.PlanService._memory_services   dict, 271 items",
        "    reached by  app.main.SERVICE._memory_services",
        "    fed at      app/plans.py:455  get_memory_service",
        "    holds       MemoryService ×271",
        "    echoed by   weakref.X",
    ]
    bare = suspect.but(file=None, holds="", echoes=(), per_round=2.0)
    static = suspect.but(line_source="static")
    text = Answer(
        verdict="growing", where="native", rounds=9, warmup=0, suspects=(bare, static), why="so"
    ).text()
    assert "+2.0 items/round" in text
    assert "(static)" in text
    calm = Answer(verdict="bounded", where=None, rounds=9, warmup=1, rss_per_round=-5.0)
    assert calm.text() == "BOUNDED  -5 B/round resident over 8 rounds"
    assert str(answer) == answer.text()
    assert repr(calm) == "<Answer: BOUNDED  -5 B/round resident over 8 rounds>"
    leak = Answer(
        verdict="growing", where="native", rounds=9, warmup=1, memory={"malloc_used_per_round": 99}
    )
    assert "+99 B/round" in leak.text()


def test_the_record_has_the_fields_of_the_design(suspect):
    record = Answer(
        verdict="growing", where="python", rounds=9, warmup=1, suspects=(suspect,)
    ).as_dict()
    wanted = "schema tool python errors verdict where rounds warmup bytes_per_round"
    wanted += " objects_per_round rss_per_round suspects needed"
    assert set(wanted.split()) <= record.keys()
    fields = "rank verdict owner defined_in path type holds len per_round bytes_per_round"
    fields += " file line line_source echoes"
    assert list(record["suspects"][0]) == fields.split()
    assert json.loads(json.dumps(record)) == record
