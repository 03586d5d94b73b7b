"""Probes of proxies, agents, bots and libraries."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import SimpleNamespace as Any
from unittest import mock

from registry import probe


@probe("mitmproxy.addons.dns_resolver.DnsResolver.name_servers")
def mitmproxy_servers() -> Callable[[int], int]:
    from mitmproxy.addons.dns_resolver import DnsResolver

    addon = DnsResolver()

    def step(_: int) -> int:
        with mock.patch(
            "mitmproxy.addons.dns_resolver.ctx", Any(options=Any(dns_name_servers=["1.1.1.1"]))
        ):
            addon.name_servers()
        return DnsResolver.name_servers.cache_info().currsize

    return step


@probe("mitmproxy.addons.dns_resolver.DnsResolver.resolver")
def mitmproxy_resolver() -> Callable[[int], int]:
    from mitmproxy.addons.dns_resolver import DnsResolver

    addon = DnsResolver()
    options = Any(dns_name_servers=["1.1.1.1"], dns_use_hosts_file=False)

    def step(_: int) -> int:
        with mock.patch("mitmproxy.addons.dns_resolver.ctx", Any(options=options)):
            addon.resolver()
        return DnsResolver.resolver.cache_info().currsize

    return step


@probe("mitmproxy.contentviews.http3.ViewHttp3.connections")
def mitmproxy_http3() -> Callable[[int], int]:
    from mitmproxy import tcp
    from mitmproxy.contentviews.http3 import ViewHttp3
    from mitmproxy.test import tflow

    view = ViewHttp3()

    def step(_: int) -> int:
        message = tcp.TCPMessage(True, b"")
        flow = tflow.ttcpflow(messages=[message])
        flow.metadata["quic_is_unidirectional"] = False
        view(b"", flow=flow, tcp_message=message)
        return len(view.connections)

    return step


def _convert(i: int) -> None:
    from mitmproxy.io import compat

    at = {
        "timestamp_start": float(i),
        "address": ["10.0.0.1", i],
        "source_address": ["10.0.0.2", i],
    }
    data = {"client_conn": dict(at), "server_conn": {**at, "via": None}}
    with suppress(KeyError):  # later parts of the old format are missing in the stand-in
        compat.convert_4_5(data)


@probe("mitmproxy.io.compat.client_connections")
def mitmproxy_clients() -> Callable[[int], int]:
    from mitmproxy.io import compat

    def step(i: int) -> int:
        _convert(i)
        return len(compat.client_connections)

    return step


@probe("mitmproxy.io.compat.server_connections")
def mitmproxy_server_connections() -> Callable[[int], int]:
    from mitmproxy.io import compat

    def step(i: int) -> int:
        _convert(i)
        return len(compat.server_connections)

    return step


@probe("mitmproxy.tools.console.flowlist.FlowListWalker._get")
def mitmproxy_flowlist() -> Callable[[int], int]:
    from mitmproxy.tools.console.flowlist import FlowListWalker

    view = Any(inbounds=lambda _: False)
    walker = FlowListWalker(Any(view=view))

    def step(i: int) -> int:
        walker.get_next(i)
        walker.view_changed()  # a new flow came
        return FlowListWalker._get.cache_info().currsize

    return step


@probe("mitmproxy.tools.console.keymap.Keymap.binding_for_help")
def mitmproxy_keymap() -> Callable[[int], int]:
    from mitmproxy.tools.console.keymap import Keymap

    keymap = Keymap(Any())

    def step(i: int) -> int:
        keymap.binding_for_help(f"help {i % 30}")  # texts of the program
        return Keymap.binding_for_help.cache_info().currsize

    return step


@probe("google.adk.tools.pubsub.client._subscriber_client_cache")
def adk_pubsub() -> Callable[[int], int]:
    from google.adk.tools.pubsub import client

    kept = []

    def step(_: int) -> int:
        kept.append(object())  # new credentials for each user
        with mock.patch.object(client.pubsub_v1, "SubscriberClient"):
            client.get_subscriber_client(credentials=kept[-1], user_agent="probe")
        return len(client._subscriber_client_cache)

    return step


@probe("google.adk.cli.agent_test_runner.MockModel.requests")
def adk_mock() -> Callable[[int], int]:
    from google.adk.cli.agent_test_runner import MockModel

    async def ask() -> int:
        model = MockModel.create([None])  # each test makes its own
        async for _ in model.generate_content_async(None):
            break
        return len(model.requests)

    def step(_: int) -> int:
        return asyncio.run(ask())

    return step


@probe("crewai.a2a.auth.utils._AuthStore._store")
def crewai_auth() -> Callable[[int], int]:
    from crewai.a2a.auth import utils

    store = utils._AuthStore()

    def step(i: int) -> int:
        store.set(store.compute_key("bearer", f"token-{i}"), None)  # tokens are renewed
        return len(store._store)

    return step


@probe("crewai.hooks.dispatch._global_hooks")
def crewai_hooks() -> Callable[[int], int]:
    dispatch = import_module("crewai.hooks.dispatch")

    point = next(iter(dispatch._global_hooks))

    def step(_: int) -> int:
        dispatch.register(point, print)
        dispatch.unregister(point, print)
        return len(dispatch._global_hooks[point])

    return step


@probe("crewai.llms.providers.openai.completion._LEARNED_NO_REASONING_EFFORT_MODELS")
def crewai_models() -> Callable[[int], int]:
    from crewai.llms.providers.openai import completion

    kind = next(
        k for k in vars(completion).values() if hasattr(k, "_remember_no_reasoning_effort_model")
    )
    model = Any(model="m", reasoning_effort="low", _reasoning_effort_key=lambda: ("m", "u"))

    def step(_: int) -> int:
        kind._remember_no_reasoning_effort_model(model)
        return len(completion._LEARNED_NO_REASONING_EFFORT_MODELS)

    return step


@probe("crewai.mcp.client._mcp_schema_cache")
def crewai_mcp() -> Callable[[int], int]:
    from crewai.mcp import client

    def step(_: int) -> int:
        made = client.MCPClient.__new__(client.MCPClient)  # one server of the configuration
        made.transport, made.discovery_timeout = Any(transport_type="http"), 1
        made._session = made._initialized = True
        with (
            mock.patch.object(
                client.MCPClient, "_retry_operation", mock.AsyncMock(return_value=[])
            ),
            mock.patch.object(client.MCPClient, "connected", True, create=True),
        ):
            asyncio.run(made.list_tools(use_cache=True))
        return len(client._mcp_schema_cache)

    return step


@probe("twisted.words.protocols.jabber.jid.__internJIDs")
def twisted_jids() -> Callable[[int], int]:
    from twisted.words.protocols.jabber import jid

    def step(i: int) -> int:
        jid.internJID(f"user{i}@example.org")
        return len(vars(jid)["__internJIDs"])

    return step


@probe("twisted.words.xish.xpath.__internedQueries")
def twisted_queries() -> Callable[[int], int]:
    from twisted.words.xish import xpath

    def step(i: int) -> int:
        xpath.internQuery(f"/iq[@id='{i}']")  # as an answer to each question is waited for
        return len(vars(xpath)["__internedQueries"])

    return step


@probe("bson._CODEC_OPTIONS_TYPE_ERROR")
def bson_error() -> Callable[[int], int]:
    import bson

    def step(_: int) -> int:
        with suppress(TypeError):
            bson.decode_all(b"", "no options")
        length, link = 0, bson._CODEC_OPTIONS_TYPE_ERROR.__traceback__
        while link is not None:
            length, link = length + 1, link.tb_next
        return length

    return step


@probe("botbuilder.core.memory_transcript_store.MemoryTranscriptStore.channels")
def botbuilder_transcripts() -> Callable[[int], int]:
    from botbuilder.core import MemoryTranscriptStore
    from botbuilder.schema import Activity, ConversationAccount

    def step(i: int) -> int:
        talk = ConversationAccount(id=f"talk-{i}")
        activity = Activity(type="message", channel_id="web", conversation=talk, id=str(i))
        asyncio.run(MemoryTranscriptStore().log_activity(activity))
        return len(MemoryTranscriptStore.channels["web"])

    return step


@probe("chainlit.chat_context.chat_contexts")
def chainlit_contexts() -> Callable[[int], int]:
    chat_context = import_module("chainlit.chat_context")

    def step(i: int) -> int:
        with mock.patch.object(chat_context, "context", Any(session=Any(id=f"session-{i}"))):
            chat_context.ChatContext().get()
        return len(chat_context.chat_contexts)

    return step


@probe("luigi.contrib.external_daily_snapshot.ExternalDailySnapshot.__cache")
def luigi_snapshots() -> Callable[[int], int]:
    from luigi.contrib.external_daily_snapshot import ExternalDailySnapshot

    class Snapshot(ExternalDailySnapshot):
        def complete(self) -> bool:
            return True

    def step(i: int) -> int:
        day = datetime.date(2026, 1, 1) + datetime.timedelta(days=i)  # one a day
        Snapshot.latest(date=day)
        return len(ExternalDailySnapshot._ExternalDailySnapshot__cache)

    return step


@probe("livekit.agents.voice.background_audio._resource_stack")
def livekit_clips() -> Callable[[int], int]:
    from livekit.agents.voice import background_audio

    def step(_: int) -> int:
        background_audio.BuiltinAudioClip.HOLD_MUSIC.path()
        return len(background_audio._resource_stack._exit_callbacks)

    return step
