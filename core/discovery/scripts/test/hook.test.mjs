// The installed hook: speaks at most once a day, only after something was released, and never holds the agent.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { git, node, scratch, write } from "./kit.mjs";
import { HOOK_SOURCE } from "../install-agent-hook.mjs";

const MESSAGE = "This looks shipped. Ask me to get users for it; nothing is posted without your approval.";

function repository(t) {
  const dir = scratch(t, "hook repo");
  git(dir, "init", "-q");
  write(dir, { ".sallyport/hook.mjs": HOOK_SOURCE, "package.json": '{"version": "1.0.0"}' });
  git(dir, "add", "package.json"), git(dir, "commit", "-qm", "feat: a");
  return dir;
}

function hook(dir, agent, input = {}, env = {}) {
  const result = node(path.join(dir, ".sallyport/hook.mjs"), ["sallyport-hook", agent], { cwd: dir, input: typeof input === "string" ? input : JSON.stringify(input), env });
  assert.equal(result.status, 0, result.stderr);
  assert.equal(result.stderr, "");
  return result.stdout;
}

/** As if a day had passed since the last suggestion. */
function nextDay(dir) {
  const file = path.join(dir, ".sallyport/hook-state.json");
  fs.writeFileSync(file, JSON.stringify({ ...JSON.parse(fs.readFileSync(file)), suggestedOn: "2000-1-1" }));
}

test("silent on the first run, speaks after a tag, once a day", (t) => {
  const dir = repository(t);
  assert.equal(hook(dir, "claude", { cwd: dir }), "{}\n");
  assert.equal(hook(dir, "claude", { cwd: dir }), "{}\n");
  git(dir, "tag", "v1.0.0");
  assert.deepEqual(JSON.parse(hook(dir, "claude", { cwd: dir })), { systemMessage: MESSAGE });
  git(dir, "commit", "-q", "--allow-empty", "-m", "feat: b"), git(dir, "tag", "v1.1.0");
  assert.equal(hook(dir, "claude", { cwd: dir }), "{}\n");
  nextDay(dir);
  assert.equal(hook(dir, "claude", { cwd: dir }), "{}\n", "the same tag is not news on the next day");
});

test("a new version, a merge and a deploy command count as shipped", (t) => {
  const version = repository(t);
  hook(version, "other");
  write(version, { "package.json": '{"version": "1.1.0"}' });
  assert.equal(hook(version, "other"), MESSAGE + "\n");
  const merge = repository(t);
  hook(merge, "other");
  git(merge, "checkout", "-qb", "side"), git(merge, "commit", "-q", "--allow-empty", "-m", "x"), git(merge, "checkout", "-q", "-"), git(merge, "commit", "-q", "--allow-empty", "-m", "y"), git(merge, "merge", "-q", "--no-ff", "-m", "merge", "side");
  assert.equal(hook(merge, "other"), MESSAGE + "\n");
  for (const command of ["npx vercel deploy --prod", "fly deploy", "npm publish --access public", "git push origin main --tags", "gh release create v1"]) {
    assert.equal(hook(repository(t), "windsurf", { tool_info: { command_line: command } }), MESSAGE + "\n", command);
  }
  for (const command of ["git push origin main", "npm test", "echo deployed", "vercel logs"]) assert.equal(hook(repository(t), "windsurf", { tool_input: { command } }), "", command);
});

test("each agent gets output it can read", (t) => {
  for (const agent of ["claude", "codex", "cursor", "gemini", "vscode"]) {
    assert.deepEqual(JSON.parse(hook(repository(t), agent, { tool_input: { command: "fly deploy" } })), { systemMessage: MESSAGE });
    assert.deepEqual(JSON.parse(hook(repository(t), agent)), {});
  }
  assert.deepEqual(JSON.parse(hook(repository(t), "cline")), { cancel: false, contextModification: "" });
  assert.equal(hook(repository(t), "copilot"), "");
});

test("SALLYPORT_HOOK=off and stop_hook_active keep it silent and leave no trace", (t) => {
  const dir = repository(t);
  assert.equal(hook(dir, "other", { tool_input: { command: "fly deploy" } }, { SALLYPORT_HOOK: "off" }), "");
  assert.equal(hook(dir, "claude", { stop_hook_active: true, tool_input: { command: "fly deploy" } }), "{}\n");
  assert.deepEqual(fs.readdirSync(path.join(dir, ".sallyport")), ["hook.mjs"]);
});

test("bad input, no git, a broken state, a taken lock: exit 0, never a complaint", (t) => {
  const dir = repository(t);
  assert.equal(hook(dir, "other", "{ not json"), "");
  assert.equal(hook(dir, "other", "\uFEFF[1,2]"), "");
  assert.equal(hook(dir, "other", ""), "");
  assert.equal(hook(dir, "other", { cwd: "/no/such/folder" }), "");
  write(dir, { ".sallyport/hook-state.json": "null" });
  assert.equal(hook(dir, "other"), "");
  write(dir, { ".sallyport/hook-state.lock": "" });
  assert.equal(hook(dir, "other", { tool_input: { command: "fly deploy" } }), "");
  fs.utimesSync(path.join(dir, ".sallyport/hook-state.lock"), 1, 1);
  assert.equal(hook(dir, "other", { tool_input: { command: "fly deploy" } }), MESSAGE + "\n");
  assert.equal(hook(dir, "other", {}, { PATH: "" }), "");
});

test("projects are told apart", (t) => {
  const dir = repository(t);
  const other = repository(t);
  hook(dir, "other", { cwd: dir });
  hook(dir, "other", { cwd: other });
  git(other, "tag", "v9");
  assert.equal(hook(dir, "other", { cwd: dir }), "");
  assert.equal(hook(dir, "other", { workspace_roots: [other] }), MESSAGE + "\n");
});

test("an input that never ends does not hold the agent for two seconds", async (t) => {
  const dir = repository(t);
  const before = process.hrtime.bigint();
  const child = spawn(process.execPath, [path.join(dir, ".sallyport/hook.mjs"), "sallyport-hook", "claude"], { cwd: dir, stdio: ["pipe", "pipe", "inherit"] });
  t.after(() => child.kill());
  let out = "";
  child.stdout.on("data", (chunk) => (out += chunk));
  const code = await new Promise((resolve) => child.on("close", resolve));
  const seconds = Number(process.hrtime.bigint() - before) / 1e9;
  assert.equal(code, 0);
  assert.equal(out, "{}\n");
  t.diagnostic(`${seconds.toFixed(2)} s`);
  assert.ok(seconds < 5, `${seconds} s`);
});

test("it cannot send: no network module, one program", () => {
  assert.doesNotMatch(HOOK_SOURCE, /\bfetch\s*\(|node:(?:http|https|net|dgram|tls|dns)|WebSocket|XMLHttpRequest/);
  assert.deepEqual([...HOOK_SOURCE.matchAll(/spawnSync\("(\w+)"/g)].map((m) => m[1]), ["git"]);
});
