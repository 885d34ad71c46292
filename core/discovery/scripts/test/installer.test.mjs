// The installer: every agent × every state of its files × install, install again, edit, uninstall.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { installer, node, scratch, write } from "./kit.mjs";
import { AGENTS, insertJson, Installer, Place, parseFlags, plan } from "../install-agent-hook.mjs";

const windows = process.platform === "win32";

function run(dir, ...args) {
  return node(installer, args, { cwd: dir, env: { HOME: dir + "-home", USERPROFILE: dir + "-home" } });
}

/** A project folder with a home folder beside it. */
function project(t, files = {}) {
  const dir = scratch(t);
  fs.mkdirSync(dir + "-home");
  t.after(() => fs.rmSync(dir + "-home", { recursive: true, force: true }));
  fs.mkdirSync(path.join(dir, ".git"));
  return write(dir, files);
}

/** Every file below a folder with its bytes and mode, links and empty folders included. */
function snapshot(dir) {
  const out = {};
  for (const name of fs.readdirSync(dir, { recursive: true }).map(String).sort()) {
    const stat = fs.lstatSync(path.join(dir, name));
    out[name] = stat.isSymbolicLink() ? "link " + fs.readlinkSync(path.join(dir, name)) : stat.isDirectory() ? "folder" : [fs.readFileSync(path.join(dir, name)).toString("base64"), windows ? 0 : stat.mode & 0o777];
  }
  return out;
}

const wishesOf = (t, agent) => plan(new Place(project(t)), [agent], { ...parseFlags([]), mcp: true }, "linux").filter((w) => w.agent);

const FOREIGN = {
  json: '{\r\n\t"zeta": 1.0, "big": 12345678901234567890,\r\n\t"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}], "stop": [ ], "AfterAgent": [\r\n\t\t{"hooks": []}\r\n\t], "sessionEnd": [], "post_cascade_response": [{"command": "x"}]},\r\n\t"mcpServers": {"other": {"url": "u\\u0041"}}, "servers": {}\r\n}',
  text: "\uFEFF# Mine\r\n\r\nkeep  this \r\nno newline at the end",
};
const STATES = {
  "no file": () => null,
  empty: () => "",
  foreign: (wish) => (wish.kind === "json" ? FOREIGN.json : FOREIGN.text),
};

for (const agent of Object.keys(AGENTS)) {
  for (const [state, make] of Object.entries(STATES)) {
    test(`${agent}, ${state}: install, again, uninstall gives back the original bytes`, (t) => {
      const wishes = wishesOf(t, agent);
      const dir = project(t);
      for (const wish of wishes) {
        const content = wish.kind === "own" ? null : make(wish);
        if (content !== null) write(dir, { [wish.path]: content });
      }
      const before = snapshot(dir);
      const dry = run(dir, `--agents=${agent}`, "--mcp", "--dry-run");
      assert.equal(dry.status, 0, dry.stderr);
      assert.match(dry.stdout, /^\+/m);
      assert.deepEqual(snapshot(dir), before, "--dry-run wrote something");
      assert.equal(run(dir, `--agents=${agent}`, "--mcp", "--check").status, 1);
      const first = run(dir, `--agents=${agent}`, "--mcp");
      assert.equal(first.status, 0, first.stdout + first.stderr);
      const installed = snapshot(dir);
      assert.notDeepEqual(installed, before);
      for (const wish of wishes) {
        const text = fs.readFileSync(path.join(dir, wish.path), "utf8");
        const content = wish.kind === "own" ? null : make(wish);
        if (wish.kind === "json") assert.doesNotThrow(() => JSON.parse(text), wish.path);
        if (content) assert.ok(isSubsequence(content, text), `${wish.path}: foreign bytes changed`);
        if (content) assert.equal(fs.readFileSync(path.join(dir, wish.path + ".bak"), "utf8"), content);
      }
      const second = run(dir, `--agents=${agent}`, "--mcp");
      assert.match(second.stdout, /^already installed/);
      assert.deepEqual(snapshot(dir), installed);
      assert.equal(run(dir, `--agents=${agent}`, "--mcp", "--check").status, 0);
      const undo = run(dir, "--uninstall");
      assert.equal(undo.status, 0, undo.stdout + undo.stderr);
      assert.deepEqual(snapshot(dir), before);
    });
  }

  test(`${agent}: what people add after the installation survives the uninstallation`, (t) => {
    const wishes = wishesOf(t, agent).filter((w) => w.kind !== "own");
    if (!wishes.length) return;
    const dir = project(t);
    for (const wish of wishes) write(dir, { [wish.path]: STATES.foreign(wish) });
    assert.equal(run(dir, `--agents=${agent}`, "--mcp").status, 0);
    for (const wish of wishes) {
      const file = path.join(dir, wish.path);
      const text = fs.readFileSync(file, "utf8");
      fs.writeFileSync(file, wish.kind === "json" ? text.replace('{\r\n\t"zeta"', '{"new": true,\r\n\t"zeta"') : text.replace("# Mine", "# Mine and new") + "after\r\n");
    }
    const undo = run(dir, "--uninstall");
    assert.equal(undo.status, 0, undo.stdout);
    for (const wish of wishes) {
      const text = fs.readFileSync(path.join(dir, wish.path), "utf8");
      assert.equal(text, wish.kind === "json" ? FOREIGN.json.replace('{\r\n\t"zeta"', '{"new": true,\r\n\t"zeta"') : FOREIGN.text.replace("# Mine", "# Mine and new") + "after\r\n");
      assert.match(undo.stdout, /\.bak holds/);
    }
  });

  test(`${agent}: JSON with comments, read-only files, files of the same name: a snippet is printed, nothing touched`, (t) => {
    for (const wish of wishesOf(t, agent)) {
      const dir = project(t, { [wish.path]: wish.kind === "json" ? '{\n  // mine\n  "a": 1,\n}\n' : "mine\n" });
      const file = path.join(dir, wish.path);
      if (wish.kind === "block" || wish.kind === "toml") fs.chmodSync(file, 0o444);
      const before = fs.readFileSync(file);
      const result = run(dir, `--agents=${agent}`, "--mcp");
      assert.equal(result.status, 1);
      assert.match(result.stdout, new RegExp(`left alone ${wish.path.replace(/[.\\]/g, "\\$&")}: `));
      assert.match(result.stdout, /sallyport/);
      assert.deepEqual(fs.readFileSync(file), before);
      assert.equal(fs.existsSync(file + ".bak"), false);
      fs.chmodSync(file, 0o644);
      assert.equal(run(dir, "--uninstall").status, 0);
      assert.deepEqual(fs.readFileSync(file), before);
    }
  });
}

/** Whether all of `part` stands in `whole` in order with one or two insertions: nothing foreign was rewritten. */
function isSubsequence(part, whole) {
  let i = 0;
  for (const ch of whole) if (i < part.length && part.startsWith(ch, i)) i += ch.length;
  return i === part.length;
}

test("an edited block is left and reported, the rest goes", (t) => {
  const dir = project(t, { "AGENTS.md": "# A\n" });
  run(dir, "--agents=agents,claude");
  const file = path.join(dir, "AGENTS.md");
  const edited = fs.readFileSync(file, "utf8").replace("Only a person can approve.", "Ask me.");
  fs.writeFileSync(file, edited);
  const again = run(dir, "--agents=agents");
  assert.equal(again.status, 1);
  assert.match(again.stdout, /changed by hand/);
  const undo = run(dir, "--uninstall");
  assert.equal(undo.status, 1);
  assert.match(undo.stdout, /left alone AGENTS\.md: what was installed has been edited/);
  assert.equal(fs.readFileSync(file, "utf8"), edited);
  assert.equal(fs.existsSync(path.join(dir, ".claude")), false);
  assert.equal(fs.existsSync(path.join(dir, "CLAUDE.md")), false);
});

test("another base URL replaces the old texts; uninstall still restores", (t) => {
  const dir = project(t, { "CLAUDE.md": "# C", ".mcp.json": "{}\n", ".claude/settings.json": '{"a": 1}' });
  const before = snapshot(dir);
  run(dir, "--mcp", "--agents=claude,cursor");
  const result = run(dir, "--mcp", "--agents=claude,cursor", "--base-url=https://sallyport.example.test/x/");
  assert.equal(result.status, 0, result.stdout);
  assert.equal(JSON.parse(fs.readFileSync(path.join(dir, ".mcp.json"))).mcpServers.sallyport.url, "https://sallyport.example.test/x/mcp");
  for (const name of ["CLAUDE.md", ".cursor/rules/sallyport.mdc"]) {
    const text = fs.readFileSync(path.join(dir, name), "utf8");
    assert.ok(text.includes("https://sallyport.example.test/x/repo-context.mjs") && !text.includes("localhost"), name);
    assert.equal(text.match(/BEGIN sallyport/g).length, 1);
  }
  assert.equal(run(dir, "--uninstall").status, 0);
  assert.deepEqual(snapshot(dir), before);
});

test("auto sets up the agents that are there and makes no folder for others", (t) => {
  const dir = project(t, { ".claude/x": "", ".gemini/y": "" });
  const result = run(dir);
  assert.equal(result.status, 0);
  assert.deepEqual(fs.readdirSync(dir).sort(), [".claude", ".gemini", ".git", ".sallyport", "CLAUDE.md", "GEMINI.md"]);
  const bare = project(t);
  assert.match(run(bare).stdout, /no coding agent was found/);
  assert.deepEqual(fs.readdirSync(bare), [".git"]);
  assert.equal(run(bare, "--yes").status, 0);
  assert.deepEqual(fs.readdirSync(bare).sort(), [".git", ".sallyport", "AGENTS.md"]);
  assert.equal(run(bare, "--uninstall").status, 0);
  assert.deepEqual(fs.readdirSync(bare), [".git"]);
});

test("the project is the repository around the current folder", (t) => {
  const dir = project(t, { "AGENTS.md": "", "a/b/c.txt": "" });
  node(installer, [], { cwd: path.join(dir, "a/b"), env: { HOME: dir + "-home" } });
  assert.match(fs.readFileSync(path.join(dir, "AGENTS.md"), "utf8"), /sallyport/);
  assert.equal(fs.existsSync(path.join(dir, "a/b/AGENTS.md")), false);
  const home = node(installer, [], { cwd: dir, env: { HOME: dir, USERPROFILE: dir } });
  assert.equal(home.status, 2);
  assert.match(home.stderr, /--scope=user/);
});

test("user scope writes below the home folder only, and takes it out again", (t) => {
  const dir = project(t);
  const home = dir + "-home";
  write(home, { ".claude/settings.json": '{"model": "x"}\n', ".codex/config.toml": 'model = "y"\n', ".cursor/hooks.json": '{"version":1,"hooks":{}}', ".codeium/windsurf/z": "", ".copilot/config.json": "{}", ".gemini/settings.json": "{}" });
  const before = snapshot(home);
  const result = run(dir, "--scope=user", "--mcp");
  assert.equal(result.status, 0, result.stdout + result.stderr);
  assert.deepEqual(fs.readdirSync(dir), [".git"]);
  const settings = JSON.parse(fs.readFileSync(path.join(home, ".claude/settings.json")));
  assert.equal(settings.model, "x");
  assert.equal(settings.hooks.Stop[0].hooks[0].command, `node "${home.split(path.sep).join("/")}/.sallyport/hook.mjs" sallyport-hook claude`);
  assert.match(fs.readFileSync(path.join(home, ".codex/config.toml"), "utf8"), /^model = "y"\n\n# BEGIN sallyport v1\n\[mcp_servers\.sallyport\]\n/);
  assert.equal(run(dir, "--scope=user", "--uninstall").status, 0);
  assert.deepEqual(snapshot(home), before);
});

test("links: inside the project they are followed and stay links, outside nothing is written", { skip: windows }, (t) => {
  const dir = project(t, { "CLAUDE.md": "# C\n", ".claude/settings.json": "{}" });
  fs.symlinkSync("CLAUDE.md", path.join(dir, "AGENTS.md"));
  const before = snapshot(dir);
  assert.equal(run(dir, "--agents=claude,agents").status, 0);
  assert.ok(fs.lstatSync(path.join(dir, "AGENTS.md")).isSymbolicLink());
  assert.equal(fs.readFileSync(path.join(dir, "CLAUDE.md"), "utf8").match(/BEGIN sallyport/g).length, 1);
  assert.equal(run(dir, "--uninstall").status, 0);
  assert.deepEqual(snapshot(dir), before);

  const outside = write(scratch(t), { "AGENTS.md": "theirs\n", "settings.json": "{}" });
  const linked = project(t);
  fs.symlinkSync(path.join(outside, "AGENTS.md"), path.join(linked, "AGENTS.md"));
  fs.symlinkSync(outside, path.join(linked, ".claude"));
  fs.symlinkSync(path.join(outside, "gone"), path.join(linked, "GEMINI.md"));
  const result = run(linked, "--agents=agents,claude,gemini");
  assert.equal(result.status, 1);
  assert.match(result.stdout, /AGENTS\.md: it is a link to .*outside/);
  assert.match(result.stdout, /\.claude\/settings\.json: its folder is a link/);
  assert.match(result.stdout, /GEMINI\.md: it is a link to nowhere/);
  assert.equal(fs.readFileSync(path.join(outside, "AGENTS.md"), "utf8"), "theirs\n");
  assert.equal(fs.readFileSync(path.join(outside, "settings.json"), "utf8"), "{}");
});

test("modes are kept, an existing .bak is not overwritten, scripts are executable", { skip: windows }, (t) => {
  const dir = project(t, { "AGENTS.md": "# A\n", "AGENTS.md.bak": "older copy" });
  fs.chmodSync(path.join(dir, "AGENTS.md"), 0o600);
  run(dir, "--agents=agents,cline");
  assert.equal(fs.statSync(path.join(dir, "AGENTS.md")).mode & 0o777, 0o600);
  assert.equal(fs.readFileSync(path.join(dir, "AGENTS.md.bak"), "utf8"), "older copy");
  assert.equal(fs.readFileSync(path.join(dir, "AGENTS.md.sallyport.bak"), "utf8"), "# A\n");
  assert.equal(fs.statSync(path.join(dir, ".clinerules/hooks/TaskComplete")).mode & 0o111, 0o111);
  run(dir, "--uninstall");
  assert.deepEqual(fs.readdirSync(dir).sort(), [".git", "AGENTS.md", "AGENTS.md.bak"]);
});

test("another agent added later joins the ledger; a broken ledger stops everything", (t) => {
  const dir = project(t, { "AGENTS.md": "# A\n" });
  const before = snapshot(dir);
  run(dir, "--agents=agents");
  run(dir, "--agents=cursor");
  run(dir, "--agents=gemini", "--mcp");
  assert.equal(run(dir, "--uninstall").status, 0);
  assert.deepEqual(snapshot(dir), before);
  write(dir, { ".sallyport/installed.json": "{ not json" });
  const result = run(dir, "--agents=agents");
  assert.equal(result.status, 1);
  assert.match(result.stderr, /installed\.json cannot be understood; restore it/);
  assert.equal(fs.readFileSync(path.join(dir, "AGENTS.md"), "utf8"), "# A\n");
});

test("the shapes agents expect", (t) => {
  const dir = project(t);
  run(dir, `--agents=${Object.keys(AGENTS).join(",")}`, "--mcp");
  const json = (name) => JSON.parse(fs.readFileSync(path.join(dir, name), "utf8"));
  const auth = (value) => ({ Authorization: `Bearer ${value}` });
  assert.deepEqual(json(".claude/settings.json"), { hooks: { Stop: [{ hooks: [{ type: "command", command: 'node "$CLAUDE_PROJECT_DIR/.sallyport/hook.mjs" sallyport-hook claude', timeout: 5 }] }] } });
  assert.equal(json(".codex/hooks.json").hooks.Stop[0].hooks[0].type, "command");
  assert.deepEqual(json(".cursor/hooks.json"), { version: 1, hooks: { stop: [{ command: windows ? ".sallyport\\hook.cmd sallyport-hook cursor" : "node .sallyport/hook.mjs sallyport-hook cursor" }] } });
  assert.equal(json(".gemini/settings.json").hooks.AfterAgent[0].hooks[0].timeout, 5000);
  assert.deepEqual(json(".github/hooks/sallyport-vscode.json"), { hooks: { Stop: [{ type: "command", command: "node .sallyport/hook.mjs sallyport-hook vscode", timeout: 5 }] } });
  assert.deepEqual(json(".github/hooks/sallyport.json"), { version: 1, hooks: { sessionEnd: [{ type: "command", bash: "node .sallyport/hook.mjs sallyport-hook copilot", powershell: "node .sallyport/hook.mjs sallyport-hook copilot", timeoutSec: 5 }] } });
  assert.deepEqual(json(".windsurf/hooks.json").hooks.post_cascade_response[0].show_output, true);
  assert.deepEqual(json(".mcp.json").mcpServers.sallyport, { type: "http", url: "http://localhost:8080/mcp", headers: auth("${SALLYPORT_API_KEY:-}") });
  assert.deepEqual(json(".cursor/mcp.json").mcpServers.sallyport, { url: "http://localhost:8080/mcp", headers: auth("${env:SALLYPORT_API_KEY}") });
  assert.deepEqual(json(".gemini/settings.json").mcpServers.sallyport, { httpUrl: "http://localhost:8080/mcp", headers: auth("$SALLYPORT_API_KEY") });
  assert.deepEqual(json(".vscode/mcp.json").servers.sallyport.type, "http");
  assert.match(fs.readFileSync(path.join(dir, ".cursor/rules/sallyport.mdc"), "utf8"), /^---\ndescription: .*\nalwaysApply: true\n---\n/);
  assert.match(fs.readFileSync(path.join(dir, ".windsurf/rules/sallyport.md"), "utf8"), /^---\ntrigger: always_on\n---\n/);
  assert.equal(fs.readFileSync(path.join(dir, "AGENTS.md"), "utf8").match(/BEGIN sallyport/g).length, 1);
});

test("AGENTS.override.md and a CLAUDE.md that includes AGENTS.md", (t) => {
  const dir = project(t, { "AGENTS.override.md": "# O\n", "CLAUDE.md": "@AGENTS.md\n", "AGENTS.md": "# A\n" });
  run(dir, "--agents=codex,claude,agents");
  assert.match(fs.readFileSync(path.join(dir, "AGENTS.override.md"), "utf8"), /sallyport/);
  assert.equal(fs.readFileSync(path.join(dir, "CLAUDE.md"), "utf8"), "@AGENTS.md\n");
  assert.match(fs.readFileSync(path.join(dir, "AGENTS.md"), "utf8"), /sallyport/);
});

test("Windows: a .cmd shim for Cursor, no shell script for Cline", (t) => {
  const dir = project(t);
  const paths = plan(new Place(dir), ["cursor", "cline"], parseFlags([]), "win32").map((w) => w.path);
  assert.ok(paths.includes(".sallyport/hook.cmd"));
  assert.ok(!paths.includes(".clinerules/hooks/TaskComplete"));
  const made = new Installer(new Place(dir), parseFlags([]), "win32");
  made.install(["cursor"]);
  assert.match(made.changes.find((c) => c.path === ".cursor/hooks.json").text, /\.sallyport\\\\hook\.cmd sallyport-hook cursor/);
});

test("JSON insertion keeps every other byte", () => {
  for (const [text, want] of [
    ["{}", '{\n  "hooks": {\n    "Stop": [\n      1\n    ]\n  }\n}'],
    ['{"a":1}', '{"a":1, "hooks": {"Stop":[1]}}'],
    ['{\n    "a": "}]\\"",\n    "hooks": {\n        "Stop": [\n            0\n        ]\n    }\n}\n', '{\n    "a": "}]\\"",\n    "hooks": {\n        "Stop": [\n            0,\n            1\n        ]\n    }\n}\n'],
    ['{"hooks":{"Stop":[0]}}', '{"hooks":{"Stop":[0, 1]}}'],
    ['{"hooks":{"Stop":[]}}', '{"hooks":{"Stop":[\n      1\n    ]}}'],
  ]) {
    const made = insertJson(text, ["hooks", "Stop"], undefined, 1);
    assert.equal(made.text, want);
    assert.deepEqual(JSON.parse(made.text).hooks.Stop.slice(-1), [1]);
    assert.equal(made.text.replace(made.added, () => ""), text);
  }
  for (const text of ["[]", '{"hooks": []}', '{"hooks": {"Stop": {}}}']) assert.equal(insertJson(text, ["hooks", "Stop"], undefined, 1), null);
});

test("flags: unknown, nearest, values", (t) => {
  const dir = project(t);
  for (const [args, message] of [
    [["--dryrun"], /Did you mean --dry-run\?[\s\S]*valid flags: --agents/], [["--agents=claud"], /Did you mean claude\?/], [["--agents="], /at least one name/], [["--scope=all"], /project or user/], [["--base-url=ftp://x"], /http\(s\)/],
    [["--base-url=http://u:p@h/"], /without user/], [['--base-url=http://h/"x'], /http\(s\)/], [["--mcp=1"], /takes no value/], [["x"], /every option is a --flag/], [["--check", "--uninstall"], /exclude/],
  ]) {
    const result = run(dir, ...args);
    assert.equal(result.status, 2, args.join(" "));
    assert.match(result.stderr, message);
  }
  assert.match(run(dir, "--help").stdout, /--uninstall/);
  assert.match(run(dir, "--version").stdout, /\d+\.\d+\.\d+/);
  assert.match(run(dir, "--uninstall").stdout, /nothing is installed/);
  assert.deepEqual(fs.readdirSync(dir), [".git"]);
});

test("the line the server rewrites stands once, alone", () => {
  const lines = fs.readFileSync(installer, "utf8").split("\n").filter((l) => l === 'const DEFAULT_BASE_URL = "http://localhost:8080";');
  assert.equal(lines.length, 1);
});
