from __future__ import annotations

import random

from floodline.bounded._entry import Entry
from floodline.bounded._eviction_order import RUN, Order


def entry(number):
    made = Entry()
    made.place = number
    return made


def numbers(order):
    return [e.place for run in order.runs for e in run]


def test_it_stays_sorted_whatever_is_put_in_and_taken_out():
    source = random.Random(7)
    order, inside = Order("place"), {}
    free = list(range(1, 6000))
    source.shuffle(free)
    for step in range(20_000):
        grow = step < 7000 or 12_000 < step < 16_000
        if free and (not inside or source.random() < (0.8 if grow else 0.3)):
            number = free.pop()
            inside[number] = entry(number)
            order.add(number, inside[number])
        else:
            number = source.choice(list(inside)) if source.random() < 0.5 else min(inside)
            order.remove(number, inside.pop(number))
            free.append(number)
        if step % 500 == 0:
            assert numbers(order) == sorted(inside)
            assert all(order.runs) or len(order.runs) == 1
            assert max(map(len, order.runs)) <= RUN
            assert len(order.runs) <= 4 + 8 * len(inside) // RUN
    head = order.head()
    assert head is None or head.place == min(inside)


def test_an_empty_one_has_no_head():
    order = Order("place")
    assert order.head() is None
    one = entry(5)
    order.append(5, one)
    assert order.head() is one
    order.remove(5, one)
    assert order.head() is None
