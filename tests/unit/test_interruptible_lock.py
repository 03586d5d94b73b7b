from __future__ import annotations

import threading
from collections import deque
from functools import partial

from floodline._interruptible_lock import Guard

PATIENCE = 100.0  # a safety net


def test_work_runs_at_once_when_nobody_is_inside():
    guard, done = Guard(), []
    guard.run(lambda: done.append(guard.busy))
    assert done == [True]
    assert not guard.busy


def test_a_guest_on_the_same_thread_leaves_its_work_for_after_the_section():
    guard, done = Guard(), []

    def section():
        guard.run(lambda: done.append("guest"))
        done.append("host")

    guard.run(section)
    assert done == ["host", "guest"]


def test_guests_of_guests_have_their_turn_too():
    guard, done = Guard(), []

    def guest(n):
        done.append(n)
        if n:
            guard.run(lambda: guest(n - 1))

    guard.run(lambda: guard.run(lambda: guest(3)))
    assert done == [3, 2, 1, 0]
    assert not guard.late


def test_a_section_that_raises_is_left_and_what_guests_left_waits_for_the_next():
    guard, done = Guard(), []

    def section():
        guard.run(lambda: done.append("guest"))
        raise OSError("from inside")

    try:
        guard.run(section)
    except OSError:
        done.append("raised")
    assert not guard.busy
    guard.run(lambda: done.append("next"))
    assert done == ["raised", "next", "guest"]


def test_when_another_thread_was_faster_there_is_nothing_to_do():
    class Emptied(deque):
        def popleft(self):
            self.clear()
            raise IndexError

    guard = Guard()
    guard.late = Emptied([lambda: None])
    guard.run_late()
    assert not guard.late


def test_a_guest_can_know_that_it_is_one():
    guard, found = Guard(), [False]
    assert not guard.is_guest()
    guard.run(lambda: found.append(guard.is_guest()))
    assert found == [False, True]


def test_what_the_collector_asks_for_runs_at_once_and_without_the_lock_when_that_is_free():
    guard, done = Guard(), []
    guard.soon(lambda: done.append(guard.busy))
    assert done == [False]


def test_what_the_collector_asks_for_inside_a_section_runs_after_it():
    guard, done = Guard(), []

    def section():
        guard.soon(lambda: done.append("collected"))
        done.append("section")

    guard.run(section)
    assert done == ["section", "collected"]


def test_the_collector_does_not_wait_for_another_thread_which_does_it_instead():
    guard, done, inside, go_on = Guard(), [], threading.Event(), threading.Event()

    def section():
        inside.set()
        go_on.wait(PATIENCE)

    other = threading.Thread(target=guard.run, args=(section,))
    other.start()
    assert inside.wait(PATIENCE)
    assert not guard.is_guest()
    guard.soon(lambda: done.append(threading.current_thread()))
    assert done == []
    go_on.set()
    other.join(PATIENCE)
    assert done == [other]


def test_late_operations_do_not_nest_however_many_there_are():
    guard, done = Guard(), []

    def operation(n):
        done.append(n)
        if n:
            guard.late.append(partial(operation, n - 1))
            guard.run_late()

    operation(5000)
    assert len(done) == 5001


def test_a_child_starts_with_a_free_lock_and_no_work():
    guard = Guard()
    guard.lock.acquire()
    guard.busy = True
    guard.late.append(lambda: None)
    guard.reset()
    assert not guard.busy
    assert not guard.late
    assert guard.lock.acquire(blocking=False)
    guard.lock.release()
