"""`openai` for Node as a client: needs Node and the npm registry."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

SCRIPT = """
import OpenAI, { NotFoundError } from "openai";
import assert from "node:assert";

const client = new OpenAI({ baseURL: process.argv[2] + "/v1", apiKey: "any" });
const chat = await client.conversations.create({ metadata: { topic: "demo" } });
for (let first = 0; first < 1000; first += 20) {
  const items = [];
  for (let n = first; n < first + 20; n++) {
    items.push({ id: `m${n}`, type: "message", role: "user", content: String(n) });
  }
  await client.conversations.items.create(chat.id, { items });
  if (first === 40) await client.conversations.items.create(chat.id, { items });  // a repetition
}
const seen = [];
for await (const item of client.conversations.items.list(chat.id, { order: "asc", limit: 100 })) {
  seen.push(item.content[0].text);
}
const changed = await client.conversations.update(chat.id, { metadata: { topic: "other" } });
await client.conversations.items.delete("m7", { conversation_id: chat.id });
await assert.rejects(
  client.conversations.items.retrieve("m7", { conversation_id: chat.id }), NotFoundError);
const gone = await client.conversations.delete(chat.id);
await assert.rejects(client.conversations.retrieve(chat.id), NotFoundError);
console.log(JSON.stringify({ seen, topic: changed.metadata.topic, deleted: gone.deleted }));
"""


def test_openai_for_node_works_with_a_base_url(serving, tmp_path):
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("Node is not installed")
    words = ["npm", "install", "openai", "--no-audit", "--no-fund", "--silent"]
    if subprocess.run(words, cwd=tmp_path, timeout=300).returncode:
        pytest.skip("npm cannot install openai")
    (tmp_path / "client.mjs").write_text(SCRIPT)
    with serving() as (_process, url):
        done = subprocess.run(
            ["node", "client.mjs", url], cwd=tmp_path, capture_output=True, text=True, timeout=300
        )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said == {"seen": [str(n) for n in range(1000)], "topic": "other", "deleted": True}
