from __future__ import annotations

from floodline.leaks._heap.slots import Slots
from floodline.leaks._live.readings import tracks as tracks_module
from floodline.leaks._live.readings.tracks import MAX_POINTS, Track, Tracks


def test_a_track_that_is_full_keeps_every_second_point_and_then_the_newest_half(monkeypatch):
    monkeypatch.setattr(tracks_module, "MAX_SPACING", 2.0)
    track = Track()
    for second in range(400):
        track.add(float(second), (1, second, 0, 0))
    assert len(track) < MAX_POINTS
    assert track.times[-1] > 390
    assert 20 < track.span < 200
    assert track.latest == (1, 399, 0, 0)
    assert track.column(1) == [int(at) for at in track.times]


def test_full_tracks_make_room_by_forgetting_what_does_not_change(monkeypatch):
    monkeypatch.setattr(tracks_module, "MAX_TRACKS", 2)
    tracks = Tracks(Slots())
    tracks.add(1, 0.0, (1, 1, 0, 0))
    tracks.add(2, 0.0, (1, 1, 0, 0))
    tracks.add(2, 1.0, (1, 2, 0, 0))
    tracks.add(3, 2.0, (1, 1, 0, 0))
    assert list(tracks.by_index) == [2, 3]
    tracks.add(3, 3.0, (1, 5, 0, 0))
    tracks.add(4, 4.0, (1, 1, 0, 0))
    assert sorted(tracks.changed()) == [2, 3]
