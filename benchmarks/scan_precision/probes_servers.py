"""Probes of servers, queues, crawlers and the like."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace as Any
from unittest import mock

from registry import probe


@probe("locust.stats.EntriesDict")
def locust_entries() -> Callable[[int], int]:
    from locust.stats import RequestStats

    stats = RequestStats()

    def step(i: int) -> int:
        stats.log_request("GET", f"/item/{i}", 1, 1)
        return len(stats.entries)

    return step


@probe("locust.stats.RequestStats.errors")
def locust_errors() -> Callable[[int], int]:
    from locust.stats import RequestStats

    stats = RequestStats()

    def step(i: int) -> int:
        stats.log_error("GET", "/item", ValueError(f"no item {i}"))
        return len(stats.errors)

    return step


@probe("locust.stats.RequestStats.history")
def locust_history() -> Callable[[int], int]:
    from locust.stats import RequestStats, update_stats_history

    stats = RequestStats()
    runner = Any(stats=stats, user_count=1, environment=Any(stats=stats))

    def step(_: int) -> int:
        update_stats_history(runner)
        return len(stats.history)

    return step


@probe("gradio.history._ensured")
def gradio_ensured() -> Callable[[int], int]:
    from gradio import history

    def step(i: int) -> int:
        target = Any(bucket=f"user-{i}/history", token=f"token-{i}")
        with mock.patch.object(history, "HfApi", create=True), mock.patch("huggingface_hub.HfApi"):
            for attempt in (
                lambda: history.ensure_bucket(target),
                lambda: history.ensure_bucket(target, target.token),
                lambda: history.ensure_bucket(Any(), target),
            ):
                try:
                    attempt()
                except (TypeError, AttributeError):
                    continue
                break
        return len(history._ensured)

    return step


@probe("gradio.tunneling.CURRENT_TUNNELS")
def gradio_tunnels() -> Callable[[int], int]:
    from gradio import tunneling

    def step(_: int) -> int:
        made = tunneling.Tunnel("host", 1, "127.0.0.1", 2, "token", None)
        with (
            mock.patch("subprocess.Popen"),
            mock.patch.object(made, "_read_url_from_tunnel_stream"),
        ):
            made._start_tunnel("frpc")  # what each launch of a shared app does
        made.proc = None
        return len(tunneling.CURRENT_TUNNELS)

    return step


@probe("jupyter_server.base.handlers.FileFindHandler._static_paths")
def jupyter_static() -> Callable[[int], int]:
    from jupyter_server.base.handlers import FileFindHandler

    folder = tempfile.mkdtemp()
    (Path(folder) / "page.css").write_text("")

    def step(i: int) -> int:
        FileFindHandler.get_absolute_path([folder], "page.css")
        FileFindHandler.get_absolute_path([folder], f"missing-{i}.css")
        return len(FileFindHandler._static_paths)

    return step


@probe("jupyter_server.traittypes.InstanceFromClasses.importable_klasses")
def jupyter_klasses() -> Callable[[int], int]:
    from jupyter_server.traittypes import InstanceFromClasses

    trait = InstanceFromClasses(klasses=["builtins.dict"])

    def step(_: int) -> int:
        trait._resolve_classes()
        return len(trait.importable_klasses)

    return step


@probe("sanic.headers._HTTP1_STATUSLINES")
def sanic_statuslines() -> Callable[[int], int]:
    from sanic import headers

    def step(i: int) -> int:
        headers.format_http1_response(200, [(b"a", b"%d" % i)])
        return sum(map(len, headers._HTTP1_STATUSLINES))

    return step


@probe("sanic.touchup.service.TouchUp._registry")
def sanic_touchup() -> Callable[[int], int]:
    from sanic import Sanic
    from sanic.touchup.service import TouchUp

    def step(i: int) -> int:
        Sanic(f"app{i}")
        return len(TouchUp._registry)

    return step


def _parse_command() -> Any:
    from scrapy.commands.parse import Command

    return Command


@probe("scrapy.commands.parse.Command.items")
def scrapy_items() -> Callable[[int], int]:
    command = _parse_command()()  # one command, whose depth is an option: 1 unless told

    def step(_: int) -> int:
        command.add_items(1, [])
        return len(command.items)

    return step


@probe("scrapy.commands.parse.Command.requests")
def scrapy_requests() -> Callable[[int], int]:
    command = _parse_command()()

    def step(_: int) -> int:
        command.add_requests(1, [])
        return len(command.requests)

    return step


@probe("slixmpp.plugins.xep_0356.privilege.XEP_0356.granted_privileges")
def slixmpp_privileges() -> Callable[[int], int]:
    from slixmpp.plugins.xep_0356.privilege import XEP_0356

    plugin = XEP_0356.__new__(XEP_0356)

    def step(_: int) -> int:
        message = Any(get_from=lambda: Any(domain="example.org"))
        with suppress(PermissionError):
            XEP_0356.send_privileged_message(plugin, message)
        return len(XEP_0356.granted_privileges)

    return step


@probe("slixmpp.plugins.xep_0223.XEP_0223.node_profiles")
def slixmpp_profiles() -> Callable[[int], int]:
    from slixmpp.plugins.xep_0223 import XEP_0223
    from slixmpp.plugins.xep_0490 import mds

    plugins = {"xep_0163": Any(register_pep=lambda *_: None), "xep_0223": XEP_0223}

    def step(_: int) -> int:
        made = mds.XEP_0490.__new__(mds.XEP_0490)
        made.xmpp = Any(plugin=plugins)
        made.plugin_init()
        return len(XEP_0223.node_profiles)

    return step


@probe("buildbot.process.results.Results")
def buildbot_results() -> Callable[[int], int]:
    from buildbot.clients.tryclient import Try
    from buildbot.process.results import Results

    client = Try.__new__(Try)
    client.buildRequests, client.outstanding = {"a": None}, []
    client.results, client.output = {"a": (0, ["text"])}, print
    client.announce = lambda *_: None

    def step(_: int) -> int:
        with suppress(Exception):  # the reactor that would ask again is not there
            client.printStatus()
        return sum(map(len, Results))

    return step


@probe("buildbot.util.eventual._SimpleCallQueue._flushObservers")
def buildbot_flush() -> Callable[[int], int]:
    from buildbot.util.eventual import _SimpleCallQueue

    queue = _SimpleCallQueue()
    queue._reactor = Any(callLater=lambda *_: None)

    def step(_: int) -> int:
        queue.append(int, (), {})
        queue.flush()
        queue._turn()
        return len(queue._flushObservers)

    return step


@probe("buildbot.worker.libvirt.ServerThreadPool.threads")
def buildbot_libvirt() -> Callable[[int], int]:
    from buildbot.worker.libvirt import ServerThreadPool

    pool = ServerThreadPool()
    pool.ThreadClass = lambda *_: Any(execute_in_thread=lambda *_a, **_k: None)

    def step(_: int) -> int:
        pool.do("qemu:///system", print)  # one worker, one uri of its configuration
        return len(pool.threads)

    return step


@probe("dramatiq.results.backends.stub.StubBackend.results")
def dramatiq_stub() -> Callable[[int], int]:
    from dramatiq import Message
    from dramatiq.results.backends import StubBackend

    backend = StubBackend()

    def step(i: int) -> int:
        backend.store_result(Message("q", "actor", (), {}, {}), i, 1)
        return len(backend.results)

    return step


@probe("distributed.protocol.serialize._cached_allowed_modules")
def distributed_modules() -> Callable[[int], int]:
    serialize = import_module("distributed.protocol.serialize")

    def step(_: int) -> int:
        serialize.import_allowed_module("distributed.protocol")
        return len(serialize._cached_allowed_modules)

    return step
