"""The server on its thread, and what follows it over HTTP."""

from __future__ import annotations

import socket
import sys
import threading
import urllib.request

import pytest

from floodline.errors import ConfigError, ServeFailed
from floodline.web import make_app, serve
from floodline.web._dashboard import server_thread
from floodline.web._terminal.state_sources import Remote, paced
from web_states import Shown, killed, leaking


@pytest.fixture
def served():
    """Serve sources on any free port, and end all of them."""
    running = []

    def start(source, *, token=None, **options):
        running.append(serve(make_app(source, token=token), "127.0.0.1", 0, **options))
        return running[-1]

    yield start
    for serving in running:
        serving.close()


def test_the_server_says_where_it_answers(served):
    serving = served(Shown(leaking()))
    assert serving.url == f"http://127.0.0.1:{serving.port}"
    with urllib.request.urlopen(serving.address(), timeout=100) as page:
        assert b"<title>floodline</title>" in page.read()


def test_the_address_for_a_person_has_the_token(served):
    serving = served(Shown(leaking()), token="a/b")
    assert serving.address("a/b") == f"{serving.url}/?token=a%2Fb"
    assert Remote(serving.address("a/b")).state()["verdict"] == "growing"
    assert Remote(serving.url, "a/b").state()["verdict"] == "growing"


def test_after_closing_nobody_answers_and_closing_twice_is_harmless(served):
    serving = served(Shown(leaking()))
    remote = Remote(serving.url)
    remote.state()
    serving.close()
    serving.close()
    with pytest.raises(ConfigError, match=r"no recorder answers at http://127\.0\.0\.1"):
        remote.state()


def test_a_server_that_is_ended_while_it_starts_leaves_no_port_open():
    door = server_thread.listen("127.0.0.1", 0)
    serve(make_app(Shown(leaking()), token=None), sock=door).close()
    assert door.fileno() == -1


def test_a_taken_port_that_was_asked_for_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ServeFailed, match=f"port {port} of 127.0.0.1 is taken; give another"):
            serve(make_app(Shown(leaking()), token=None), "127.0.0.1", port)


@pytest.mark.parametrize(
    ("host", "port", "why"),
    [("127.0.0.1", 70000, "70000 is not between 0"), ("203.0.113.1", 0, "cannot be listened on")],
)
def test_a_place_that_cannot_be_listened_on_is_an_error(host, port, why):
    with pytest.raises(ServeFailed, match=why):
        serve(make_app(Shown(leaking()), token=None), host, port)


def test_no_answer_waits_for_the_acknowledgement_of_its_first_part():
    """Asyncio sets this only for sockets that name their protocol, which ours do not."""
    with (
        server_thread.listen("127.0.0.1", 0) as door,
        socket.create_connection(door.getsockname(), timeout=100),
    ):
        caller, _ = door.accept()
        with caller:
            assert caller.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_can_be_taken_before_there_is_something_to_serve():
    door = server_thread.listen("127.0.0.1", 0)
    serving = serve(make_app(Shown(leaking()), token=None), sock=door)
    try:
        assert serving.port == door.getsockname()[1]
        assert Remote(serving.url).state()["verdict"] == "growing"
    finally:
        serving.close()


def test_without_a_port_the_next_free_one_is_taken(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        monkeypatch.setattr(server_thread, "PORT", taken)
        monkeypatch.setattr(server_thread, "TRIES", 1)
        serving = serve(make_app(Shown(leaking()), token=None))
        try:
            assert serving.port != taken
        finally:
            serving.close()


def test_without_a_port_a_bad_host_is_still_an_error():
    with pytest.raises(ServeFailed, match=r"203\.0\.113\.1 cannot be listened on"):
        serve(make_app(Shown(leaking()), token=None), "203.0.113.1")


def test_the_usual_port_is_taken_if_it_is_free(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as other:
        free = other.getsockname()[1]
    monkeypatch.setattr(server_thread, "PORT", free)
    monkeypatch.setattr(server_thread, "_bind", lambda host, port: bound.append(port) or "socket")
    bound = []
    assert server_thread.listen("127.0.0.1", None) == "socket"
    assert bound == [free]


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_an_ipv6_address_is_written_in_brackets():
    try:
        serving = serve(make_app(Shown(leaking()), token=None), "::1", 0)
    except ServeFailed:
        pytest.skip("this machine has no IPv6 loopback")
    try:
        assert serving.url == f"http://[::1]:{serving.port}"
        assert Remote(serving.url).state()["verdict"] == "growing"
    finally:
        serving.close()


def test_states_follow_each_other_until_the_program_has_ended(served):
    source = Shown(leaking(60))
    states = Remote(served(source).url).states()
    assert next(states)["closed"] is False
    source.show(killed(60))
    assert next(states)["exit"]["signal"] == "SIGKILL"
    assert next(states, None) is None


def test_a_follower_of_a_recorder_that_goes_away_just_ends(served):
    serving = served(Shown(leaking(60)))
    states = Remote(serving.url).states()
    next(states)
    closing = threading.Thread(target=serving.close)
    closing.start()
    assert [state["closed"] for state in states] in ([], [False])
    closing.join()


def test_a_connection_that_breaks_ends_the_following(monkeypatch):
    class Broken:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def readline(self, _):
            raise ConnectionResetError

    remote = Remote("http://127.0.0.1:1")
    monkeypatch.setattr(remote, "_open", lambda _: Broken())
    assert list(remote.states()) == []


def test_a_refusal_is_passed_on(served):
    serving = served(Shown(leaking()), token="secret")
    with pytest.raises(ConfigError, match=r"refused with status 401: This dashboard needs"):
        Remote(serving.url).state()


@pytest.mark.parametrize("url", ["ftp://127.0.0.1", "http://", "nonsense"])
def test_what_is_no_address_is_said(url):
    with pytest.raises(ConfigError, match="is not an address; give one such as"):
        Remote(url)


@pytest.mark.parametrize(("text", "why"), [(b"<html>", "not JSON"), (b"[]", "has no verdict")])
def test_another_server_is_not_taken_for_a_recorder(text, why):
    from floodline.web._terminal.state_sources import _decoded

    with pytest.raises(ConfigError, match=why):
        _decoded(text)


def test_a_recording_is_replayed_at_its_pace():
    slept = []
    frames = [{"now": 1.0}, {"now": 3.0}, {"now": 3.0}, {"now": 103.0}]
    assert list(paced(iter(frames), 4, sleep=slept.append)) == frames
    assert slept == [0.5, 2.0]


@pytest.mark.parametrize("name", ["app", "server_thread"])
def test_without_the_extra_the_error_says_what_to_install(name, monkeypatch):
    monkeypatch.delitem(sys.modules, f"floodline.web._dashboard.{name}")
    for module in ("starlette.applications", "uvicorn"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"pip install 'floodline\[web\]'"):
        __import__(f"floodline.web._dashboard.{name}")


def test_a_name_that_does_not_exist_is_an_attribute_error():
    import floodline.web as web

    with pytest.raises(AttributeError, match="no attribute 'App'"):
        web.App  # noqa: B018  # the access is what is tested
    assert set(web.__all__) <= set(dir(web))
