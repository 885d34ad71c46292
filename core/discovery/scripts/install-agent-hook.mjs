#!/usr/bin/env node
// install-agent-hook tells coding agents about Sallyport and adds a small hook that suggests a launch after a release.
//
// It writes only inside the project (or, with --scope=user, the home folder), only by inserting text, and can take
// every insertion out again. It sends nothing and starts no program. Look first: `--dry-run` prints each change.
//
// Node 18 or newer, no dependencies. `node install-agent-hook.mjs --help` lists the flags.

import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import readline from "node:readline";
import { fileURLToPath } from "node:url";

const DEFAULT_BASE_URL = "http://localhost:8080";
const VERSION = "1.0.0";
const LEDGER_SCHEMA = "sallyport-installed/1";
const MARK = "sallyport-hook";
const BLOCK = /<!-- BEGIN sallyport v(\d+) -->[\s\S]*?<!-- END sallyport -->/;

// ---------------------------------------------------------------------------------------------------------------
// The hook that is installed
// ---------------------------------------------------------------------------------------------------------------

// Kept free of backquotes and dollar-braces because it is a template literal here and a file of its own there.
const HOOK_SOURCE = String.raw`#!/usr/bin/env node
// Suggests, at most once a day, to announce what was just released. Reads the agent's JSON on standard input and
// the repository's tag and version; sends nothing, blocks nothing, always exits 0. SALLYPORT_HOOK=off silences it.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const MESSAGE = "This looks shipped. Ask me to get users for it; nothing is posted without your approval.";
const DEPLOY = /\b(?:vercel\b[^|;&]*(?:--prod|\bdeploy\b)|netlify\s+deploy|fly(?:ctl)?\s+deploy|wrangler\s+(?:pages\s+)?deploy|railway\s+up|firebase\s+deploy|gcloud\s+(?:app|run)\s+deploy|serverless\s+deploy|sst\s+deploy|cdk\s+deploy|heroku\s+\S*release|git\s+push\s+heroku|kamal\s+deploy|eas\s+(?:submit|update)|gh\s+release\s+create|(?:npm|pnpm|yarn|bun|cargo|uv)\s+publish|twine\s+upload|goreleaser\s+release|helm\s+upgrade|kubectl\s+apply|git\s+push\b[^|;&]*--tags)/;
const here = path.dirname(fileURLToPath(import.meta.url));
const agent = process.argv[3] || "other";
const wantsJson = ["claude", "codex", "cursor", "gemini", "vscode", "cline"].includes(agent);

// The agent waits for this process, so nothing may hold it.
setTimeout(() => process.exit(0), 1700).unref();

function finish(message) {
  if (agent === "cline") process.stdout.write(JSON.stringify({ cancel: false, contextModification: message || "" }) + "\n");
  else if (wantsJson) process.stdout.write(JSON.stringify(message ? { systemMessage: message } : {}) + "\n");
  else if (message) process.stdout.write(message + "\n");
  process.exitCode = 0;
}

function readInput() {
  return new Promise((resolve) => {
    if (process.stdin.isTTY) return resolve({});
    const chunks = [];
    let size = 0;
    let done = false;
    const end = () => {
      if (done) return;
      done = true;
      process.stdin.destroy();
      try {
        const value = JSON.parse(Buffer.concat(chunks).toString("utf8").replace(/^\uFEFF/, ""));
        resolve(value && typeof value === "object" ? value : {});
      } catch {
        resolve({});
      }
    };
    process.stdin.on("data", (chunk) => {
      size += chunk.length;
      if (size <= 4 << 20) chunks.push(chunk);
    });
    process.stdin.on("end", end);
    process.stdin.on("error", end);
    setTimeout(end, 500);
  });
}

function git(cwd, args) {
  const result = spawnSync("git", ["--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false", ...args], { cwd, encoding: "utf8", timeout: 300, windowsHide: true, stdio: ["ignore", "pipe", "ignore"] });
  return result.status === 0 ? result.stdout.trim() : "";
}

function version(root) {
  const read = (name) => {
    try {
      return fs.readFileSync(path.join(root, name), "utf8").slice(0, 65536);
    } catch {
      return "";
    }
  };
  const json = /"version"\s*:\s*"([^"]+)"/.exec(read("package.json"));
  const toml = /^version\s*=\s*"([^"]+)"/m.exec(read("Cargo.toml") || read("pyproject.toml"));
  return json ? json[1] : toml ? toml[1] : "";
}

// Commands that the agent ran, wherever its input puts them.
function ranDeploy(value, depth) {
  if (!value || typeof value !== "object" || depth > 5) return false;
  return Object.entries(value).some(([key, inner]) =>
    typeof inner === "string" ? /^(?:command|command_line|commandLine|cmd)$/.test(key) && DEPLOY.test(inner) : ranDeploy(inner, depth + 1));
}

function facts(root) {
  return { tag: git(root, ["describe", "--tags", "--abbrev=0"]), merge: git(root, ["log", "-1", "--merges", "--format=%H"]), version: version(root) };
}

// Two hooks at the same moment must not both speak: the lock is taken by whoever creates the file.
function locked(work) {
  const lock = path.join(here, "hook-state.lock");
  try {
    if (Date.now() - fs.statSync(lock).mtimeMs > 10000) fs.unlinkSync(lock);
  } catch {
    // No lock is the ordinary case.
  }
  try {
    fs.closeSync(fs.openSync(lock, "wx"));
  } catch {
    return "";
  }
  try {
    return work();
  } finally {
    fs.rmSync(lock, { force: true });
  }
}

function decide(input, root) {
  const file = path.join(here, "hook-state.json");
  let state = {};
  try {
    state = JSON.parse(fs.readFileSync(file, "utf8"));
  } catch {
    // First run, or a state that cannot be read: start again.
  }
  if (!state || typeof state !== "object" || !state.projects || typeof state.projects !== "object") state = { projects: {} };
  const key = createHash("sha256").update(root).digest("hex").slice(0, 16);
  const before = state.projects[key];
  const current = facts(root);
  const shipped = ranDeploy(input, 0) || (before && ["tag", "merge", "version"].some((k) => current[k] && current[k] !== before[k]));
  const now = new Date();
  const today = now.getFullYear() + "-" + (now.getMonth() + 1) + "-" + now.getDate();
  const speak = Boolean(shipped) && state.suggestedOn !== today;
  const kept = Object.entries(state.projects).filter(([k]) => k !== key).slice(-49);
  const next = { projects: Object.fromEntries([...kept, [key, current]]), suggestedOn: speak ? today : state.suggestedOn };
  const temp = file + "." + process.pid + ".tmp";
  fs.writeFileSync(temp, JSON.stringify(next) + "\n");
  fs.renameSync(temp, file);
  return speak ? MESSAGE : "";
}

async function main() {
  if (/^(?:off|0|false|no)$/i.test(process.env.SALLYPORT_HOOK || "")) return finish("");
  const input = await readInput();
  if (input.stop_hook_active === true) return finish("");
  const roots = Array.isArray(input.workspace_roots) ? input.workspace_roots : Array.isArray(input.workspaceRoots) ? input.workspaceRoots : [];
  const root = [input.cwd, roots[0], process.cwd()].find((p) => typeof p === "string" && p && fs.existsSync(p));
  return finish(locked(() => decide(input, root)));
}

main().catch(() => finish(""));
`;

// ---------------------------------------------------------------------------------------------------------------
// What is installed for each agent
// ---------------------------------------------------------------------------------------------------------------

const guideLines = (base) => [
  "## After building or shipping: Sallyport",
  "",
  "When the user asks to launch what was built, to get users or customers for it, for a launch post, e-mail or announcement, or how a launch went:",
  "",
  `1. Collect facts. Download ${base}/repo-context.mjs, then run \`node repo-context.mjs --what-changed="one sentence"\`. It only reads, sends nothing and removes credentials.`,
  `2. Call the tool \`platform_get_users_after_build\` of the MCP server ${base}/mcp with whatChanged, recentCommits, changedFiles, routes, readme, targetCustomer and launchGoal from that output.`,
  "3. Show the user `agentGuide.userMessage` and `reviewUrl`, then wait. Only a person can approve.",
  "4. Do not publish, send, submit or spend anything yourself. After the approval, resume with `mkt_continue_launch_loop` and the runId.",
  "",
  `More: ${base}/agents.txt`,
];

const guideBlock = (base) => ["<!-- BEGIN sallyport v1 -->", ...guideLines(base), "<!-- END sallyport -->"].join("\n");
const ownGuide = (front, base) => ["---", ...front, "---", "", guideBlock(base), ""].join("\n");

const KEY_VARIABLE = "SALLYPORT_API_KEY";

// Where files live: `p` below the project, `u` below the home folder; null means that scope has no such file.
const AGENTS = {
  claude: {
    title: "Claude Code", signs: { p: [".claude", "CLAUDE.md"], u: [".claude"] },
    guide: { kind: "block", p: "CLAUDE.md", u: ".claude/CLAUDE.md" },
    hook: { p: ".claude/settings.json", u: ".claude/settings.json", at: ["hooks", "Stop"], item: (c) => ({ hooks: [{ type: "command", command: c.shell("$CLAUDE_PROJECT_DIR"), timeout: 5 }] }) },
    mcp: { p: ".mcp.json", u: null, at: ["mcpServers"], item: (c) => ({ type: "http", url: c.mcpUrl, headers: { Authorization: `Bearer \${${KEY_VARIABLE}:-}` } }) },
  },
  codex: {
    title: "Codex CLI", signs: { p: [".codex"], u: [".codex"] },
    guide: { kind: "block", p: "AGENTS.md", u: ".codex/AGENTS.md", instead: "AGENTS.override.md" },
    hook: { p: ".codex/hooks.json", u: ".codex/hooks.json", at: ["hooks", "Stop"], item: (c) => ({ hooks: [{ type: "command", command: c.shell(c.windows ? null : "$(git rev-parse --show-toplevel 2>/dev/null || pwd)"), timeout: 5 }] }) },
    toml: { p: ".codex/config.toml", u: ".codex/config.toml" },
    note: "Codex runs a new hook only after you trust it: open /hooks in Codex.",
  },
  cursor: {
    title: "Cursor", signs: { p: [".cursor"], u: [".cursor"] },
    guide: { kind: "own", p: ".cursor/rules/sallyport.mdc", u: null, text: (base) => ownGuide(["description: Launching what was built, with Sallyport", "alwaysApply: true"], base) },
    hook: { p: ".cursor/hooks.json", u: ".cursor/hooks.json", at: ["hooks", "stop"], fresh: { version: 1 }, item: (c) => ({ command: c.windows ? c.shim() : c.shell(null) }) },
    mcp: { p: ".cursor/mcp.json", u: ".cursor/mcp.json", at: ["mcpServers"], item: (c) => ({ url: c.mcpUrl, headers: { Authorization: `Bearer \${env:${KEY_VARIABLE}}` } }) },
  },
  gemini: {
    title: "Gemini CLI", signs: { p: [".gemini", "GEMINI.md"], u: [".gemini"] },
    guide: { kind: "block", p: "GEMINI.md", u: ".gemini/GEMINI.md" },
    hook: { p: ".gemini/settings.json", u: ".gemini/settings.json", at: ["hooks", "AfterAgent"], item: (c) => ({ hooks: [{ type: "command", command: c.shell("$GEMINI_PROJECT_DIR"), timeout: 5000 }] }) },
    mcp: { p: ".gemini/settings.json", u: ".gemini/settings.json", at: ["mcpServers"], item: (c) => ({ httpUrl: c.mcpUrl, headers: { Authorization: `Bearer $${KEY_VARIABLE}` } }) },
  },
  vscode: {
    title: "VS Code", signs: { p: [".github/copilot-instructions.md", ".github/hooks", ".github/instructions", ".vscode/mcp.json"], u: [] },
    guide: { kind: "block", p: ".github/copilot-instructions.md", u: null },
    hook: { p: ".github/hooks/sallyport-vscode.json", u: null, at: ["hooks", "Stop"], item: (c) => ({ type: "command", command: c.shell(null), timeout: 5 }) },
    mcp: { p: ".vscode/mcp.json", u: null, at: ["servers"], item: (c) => ({ type: "http", url: c.mcpUrl, headers: { Authorization: `Bearer \${env:${KEY_VARIABLE}}` } }) },
  },
  copilot: {
    title: "GitHub Copilot CLI and cloud agent", signs: { p: [".github/copilot-instructions.md", ".github/hooks", ".github/instructions"], u: [".copilot"] },
    guide: { kind: "block", p: ".github/copilot-instructions.md", u: null },
    hook: { p: ".github/hooks/sallyport.json", u: ".copilot/hooks/sallyport.json", at: ["hooks", "sessionEnd"], fresh: { version: 1 }, item: (c) => ({ type: "command", bash: c.shell(null), powershell: c.shell(null), timeoutSec: 5 }) },
    mcp: { p: null, u: ".copilot/mcp-config.json", at: ["mcpServers"], item: (c) => ({ type: "http", url: c.mcpUrl, headers: { Authorization: `Bearer \${${KEY_VARIABLE}}` }, tools: ["*"] }) },
  },
  windsurf: {
    title: "Windsurf", signs: { p: [".windsurf"], u: [".codeium/windsurf"] },
    guide: { kind: "own", p: ".windsurf/rules/sallyport.md", u: null, text: (base) => ownGuide(["trigger: always_on"], base) },
    hook: { p: ".windsurf/hooks.json", u: ".codeium/windsurf/hooks.json", at: ["hooks", "post_cascade_response"], item: (c) => ({ command: c.shell(null), powershell: c.shell(null), show_output: true }) },
    mcp: { p: null, u: ".codeium/windsurf/mcp_config.json", at: ["mcpServers"], item: (c) => ({ serverUrl: c.mcpUrl, headers: { Authorization: `Bearer \${env:${KEY_VARIABLE}}` } }) },
  },
  cline: {
    title: "Cline", signs: { p: [".clinerules"], u: [] },
    guide: { kind: "own", p: ".clinerules/sallyport.md", u: null, text: (base) => guideBlock(base) + "\n" },
    script: { p: ".clinerules/hooks/TaskComplete", u: null },
  },
  agents: {
    title: "other agents that read AGENTS.md (OpenCode, Amp, Junie, Zed, …)", signs: { p: ["AGENTS.md"], u: [] },
    guide: { kind: "block", p: "AGENTS.md", u: null },
  },
};

// ---------------------------------------------------------------------------------------------------------------
// Flags
// ---------------------------------------------------------------------------------------------------------------

const FLAGS = {
  agents: { value: "auto|LIST", help: `agents to set up, comma separated (default auto: those found). Known: ${Object.keys(AGENTS).join(", ")}` },
  scope: { value: "project|user", help: "the repository around the current folder, or your home folder (default project)" },
  "base-url": { value: "URL", help: `where Sallyport answers (default ${DEFAULT_BASE_URL})` },
  mcp: { help: `also add the MCP server; its key is read from ${KEY_VARIABLE}` },
  "dry-run": { help: "print every change and write nothing" },
  check: { help: "say what is installed; exit 1 unless all of it is in place" },
  uninstall: { help: "take out what was installed" },
  yes: { help: "create AGENTS.md without asking when no agent reads another file" },
  help: { help: "print this text" },
  version: { help: "print the version" },
};

class UsageError extends Error {}

function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
    row = next;
  }
  return row[b.length];
}

function nearest(word, names) {
  const [d, name] = names.map((n) => [distance(word, n), n]).sort((a, b) => a[0] - b[0])[0];
  return d <= Math.max(2, Math.floor(word.length / 3)) ? name : null;
}

function parseFlags(argv) {
  const options = { agents: "auto", scope: "project", "base-url": DEFAULT_BASE_URL };
  for (let i = 0; i < argv.length; i++) {
    const match = /^--([^=]+)(?:=([\s\S]*))?$/.exec(argv[i]);
    if (!match) throw new UsageError(`unexpected argument ${JSON.stringify(argv[i])}; every option is a --flag`);
    const [, name, inline] = match;
    if (!Object.hasOwn(FLAGS, name)) {
      const near = nearest(name, Object.keys(FLAGS));
      throw new UsageError(`unknown flag --${name}.${near ? ` Did you mean --${near}?` : ""}\nvalid flags: ${Object.keys(FLAGS).map((n) => "--" + n).join(" ")}`);
    }
    if (!FLAGS[name].value && inline !== undefined) throw new UsageError(`--${name} takes no value`);
    if (FLAGS[name].value && inline === undefined && (i + 1 >= argv.length || argv[i + 1].startsWith("--"))) throw new UsageError(`--${name} needs a value: --${name}=${FLAGS[name].value}`);
    options[name] = FLAGS[name].value ? inline ?? argv[++i] : true;
  }
  return checkFlags(options);
}

function checkFlags(options) {
  if (!["project", "user"].includes(options.scope)) throw new UsageError(`--scope is project or user, not ${JSON.stringify(options.scope)}`);
  if (options.uninstall && options.check) throw new UsageError("--uninstall and --check exclude each other");
  let url = null;
  try {
    url = new URL(options["base-url"]);
  } catch {
    throw new UsageError(`--base-url is not a URL: ${JSON.stringify(options["base-url"])}`);
  }
  const plain = /^https?:\/\/[\w.:[\]-]+(?:\/[\w.~/-]*)?$/.test(options["base-url"]);
  if (!plain || url.username || url.password) throw new UsageError("--base-url is http(s)://host[:port][/path], without user, query or fragment");
  const list = options.agents === "auto" ? null : options.agents.split(",").map((a) => a.trim()).filter(Boolean);
  if (list && !list.length) throw new UsageError("--agents needs at least one name");
  for (const name of list || []) {
    if (Object.hasOwn(AGENTS, name)) continue;
    const near = nearest(name, Object.keys(AGENTS));
    throw new UsageError(`unknown agent ${JSON.stringify(name)}.${near ? ` Did you mean ${near}?` : ""}\nknown agents: ${Object.keys(AGENTS).join(" ")}`);
  }
  return { ...options, list, base: options["base-url"].replace(/\/+$/, "") };
}

function helpText() {
  const rows = Object.entries(FLAGS).map(([name, flag]) => `  --${name}${flag.value ? "=" + flag.value : ""}`.padEnd(24) + flag.help);
  return ["Usage: node install-agent-hook.mjs [flags]", "", "Tells coding agents how to prepare a launch with Sallyport and adds a hook that suggests it, at most once a day.",
    "Writes only what --dry-run shows; --uninstall takes it out again.", "", ...rows, "", "Exit codes: 0 done, 1 something was left for you or --check found a difference, 2 wrong flags.", ""].join("\n");
}

// ---------------------------------------------------------------------------------------------------------------
// JSON by insertion
// ---------------------------------------------------------------------------------------------------------------

const digest = (text) => createHash("sha256").update(text).digest("hex");

// Positions of the values of a document that JSON.parse has accepted.
function positions(text) {
  let i = 0;
  const space = () => {
    while (/[\s\uFEFF]/.test(text[i] ?? "")) i++;
  };
  const string = () => {
    const from = i++;
    while (text[i] !== '"') i += text[i] === "\\" ? 2 : 1;
    return JSON.parse(text.slice(from, ++i));
  };
  const value = () => {
    space();
    const start = i;
    const kind = text[i] === "{" ? "object" : text[i] === "[" ? "array" : "scalar";
    const parts = [];
    if (kind === "scalar") {
      if (text[i] === '"') string();
      else while (i < text.length && !/[\s,\]}]/.test(text[i])) i++;
      return { kind, start, end: i, parts };
    }
    i++;
    for (space(); text[i] !== "}" && text[i] !== "]"; space()) {
      if (text[i] === ",") {
        i++;
        continue;
      }
      let key = null;
      if (kind === "object") {
        key = string();
        space();
        i++;
      }
      parts.push({ key, value: value() });
    }
    return { kind, start, end: ++i, parts };
  };
  return value();
}

// Inserts a value at a path without touching another byte. The last step of the path is a list that gets one more
// item, or with `key` an object that gets one more member. Returns the new text and what was inserted.
function insertJson(text, steps, key, item) {
  const eol = /\r\n/.test(text) ? "\r\n" : "\n";
  const unit = /\n([ \t]+)"/.exec(text)?.[1] ?? "  ";
  let node = positions(text);
  if (node.kind !== "object") return null;
  let depth = 0;
  let rest = [...steps];
  while (rest.length) {
    const found = node.parts.filter((p) => p.key === rest[0]).pop();
    if (!found) break;
    node = found.value;
    rest = rest.slice(1);
    depth++;
    if (node.kind !== (rest.length || key ? "object" : "array")) return null;
  }
  let fresh = key ? { [key]: item } : [item];
  for (const step of rest.reverse()) fresh = { [step]: fresh };
  const [member, inner] = node.kind === "object" ? Object.entries(fresh)[0] : [null, item];
  const single = node.parts.length > 0 && !text.slice(node.start, node.end).includes("\n");
  const label = member === null ? "" : JSON.stringify(member) + ": ";
  const body = single ? JSON.stringify(inner) : JSON.stringify(inner, null, unit).split("\n").join(eol + unit.repeat(depth + 1));
  const added = single ? `, ${label}${body}` : `${node.parts.length ? "," : ""}${eol}${unit.repeat(depth + 1)}${label}${body}${node.parts.length ? "" : eol + unit.repeat(depth)}`;
  const at = node.parts.length ? node.parts[node.parts.length - 1].value.end : node.start + 1;
  return { text: text.slice(0, at) + added + text.slice(at), added };
}

function parseStrict(text) {
  try {
    return { value: JSON.parse(text.replace(/^\uFEFF/, "")) };
  } catch (error) {
    return { error: error.message };
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Files
// ---------------------------------------------------------------------------------------------------------------

class Place {
  constructor(root) {
    this.root = root;
    this.real = fs.realpathSync(root);
  }

  // Where a file really is, whether it exists, and why it may not be written (if so).
  look(rel) {
    const full = path.join(this.root, rel);
    const out = { rel, full, target: full, text: null, mode: null, problem: null };
    try {
      let dir = path.dirname(full);
      while (!fs.existsSync(dir)) dir = path.dirname(dir);
      const realDir = fs.realpathSync(dir);
      if (!this.inside(realDir)) return { ...out, problem: `its folder is a link to ${realDir}, outside ${this.root}` };
      if (!fs.statSync(dir).isDirectory()) return { ...out, problem: `${path.relative(this.root, dir)} is a file, not a folder` };
      const link = fs.lstatSync(full, { throwIfNoEntry: false });
      if (!link) return out;
      if (link.isSymbolicLink()) {
        if (!fs.existsSync(full)) return { ...out, problem: "it is a link to nowhere" };
        out.target = fs.realpathSync(full);
        if (!this.inside(out.target)) return { ...out, problem: `it is a link to ${out.target}, outside ${this.root}` };
      }
      const stat = fs.statSync(out.target);
      if (!stat.isFile()) return { ...out, problem: "it is not an ordinary file" };
      const bytes = fs.readFileSync(out.target);
      out.text = bytes.toString("utf8");
      out.mode = stat.mode & 0o777;
      if (!Buffer.from(out.text, "utf8").equals(bytes)) out.problem = "it is not UTF-8 text";
      else if ((stat.mode & 0o222) === 0) out.problem = "it is read-only";
      return out;
    } catch (error) {
      return { ...out, problem: `it could not be read (${error.code || error.message})` };
    }
  }

  inside(full) {
    return full === this.real || full.startsWith(this.real + path.sep);
  }

  // Writes beside the file and renames, so that a reader never sees half of it. Returns the folders it made.
  write(file, text, mode) {
    const made = [];
    for (let dir = path.dirname(file); !fs.existsSync(dir); dir = path.dirname(dir)) made.push(dir);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    const temp = `${file}.${process.pid}.tmp`;
    try {
      fs.writeFileSync(temp, text, { flag: "wx", mode: mode ?? 0o644 });
      if (mode !== null && mode !== undefined && process.platform !== "win32") fs.chmodSync(temp, mode);
      fs.renameSync(temp, file);
    } catch (error) {
      fs.rmSync(temp, { force: true });
      throw error;
    }
    return made.map((dir) => path.relative(this.root, dir).split(path.sep).join("/"));
  }

  backup(file) {
    const name = [".bak", ".sallyport.bak"].map((end) => file + end).find((f) => !fs.existsSync(f));
    if (!name) return null;
    fs.copyFileSync(file, name, fs.constants.COPYFILE_EXCL);
    return path.relative(this.root, name).split(path.sep).join("/");
  }
}

class Ledger {
  constructor(place) {
    this.place = place;
    this.file = ".sallyport/installed.json";
    const { text } = place.look(this.file);
    const parsed = text ? parseStrict(text).value : null;
    if (text !== null && (!parsed || parsed.schema !== LEDGER_SCHEMA || !Array.isArray(parsed.files))) {
      throw new Error(`${this.file} cannot be understood; restore it from version control, or delete it and remove the sallyport entries by hand`);
    }
    this.files = parsed ? parsed.files.filter((f) => f && typeof f.path === "string" && Array.isArray(f.inserts)) : [];
  }

  get(rel) {
    return this.files.find((f) => f.path === rel) || null;
  }

  text() {
    const files = [...this.files].sort((a, b) => (a.path < b.path ? -1 : 1));
    return JSON.stringify({ schema: LEDGER_SCHEMA, installer: VERSION, files }, null, 2) + "\n";
  }
}

// ---------------------------------------------------------------------------------------------------------------
// The plan: what each file is to hold
// ---------------------------------------------------------------------------------------------------------------

function commands(options, root, platform) {
  const windows = platform === "win32";
  const user = options.scope === "user";
  const slashes = (p) => p.split(path.sep).join("/");
  return {
    windows, mcpUrl: `${options.base}/mcp`,
    // `base` is what the agent's shell replaces by the project folder; null means the agent starts hooks there.
    shell: (base) => (agent) => {
      const file = user ? `${slashes(root)}/.sallyport/hook.mjs` : base ? `${base}/.sallyport/hook.mjs` : ".sallyport/hook.mjs";
      return `node ${user || base ? `"${file}"` : file} ${MARK} ${agent}`;
    },
    shim: () => (agent) => `${user ? `"${path.join(root, ".sallyport", "hook.cmd")}"` : ".sallyport\\hook.cmd"} ${MARK} ${agent}`,
  };
}

// Commands are functions of the agent's name until an item is built for one agent.
function forAgent(value, agent) {
  if (typeof value === "function") return value(agent);
  if (Array.isArray(value)) return value.map((v) => forAgent(v, agent));
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, forAgent(v, agent)]));
  return value;
}

function detect(place, options) {
  if (options.list) return options.list;
  const key = options.scope === "user" ? "u" : "p";
  return Object.keys(AGENTS).filter((name) => AGENTS[name].signs[key].some((sign) => fs.existsSync(path.join(place.root, sign))));
}

function guidePath(place, agent, key, names) {
  const { guide } = AGENTS[agent];
  if (key === "p" && guide.instead && fs.existsSync(path.join(place.root, guide.instead))) return guide.instead;
  // CLAUDE.md that includes AGENTS.md needs no second copy.
  if (key === "p" && agent === "claude" && names.some((n) => ["codex", "agents"].includes(n)) && /^@(?:\.\/)?AGENTS\.md\s*$/m.test(place.look("CLAUDE.md").text || "")) return "AGENTS.md";
  return guide[key];
}

// Wishes: { path, kind, … } in the order in which they are carried out.
function plan(place, names, options, platform) {
  const key = options.scope === "user" ? "u" : "p";
  const c = commands(options, place.root, platform);
  const wishes = [];
  let hooks = false;
  for (const agent of names) {
    const spec = AGENTS[agent];
    const legacy = agent === "cline" && fs.statSync(path.join(place.root, ".clinerules"), { throwIfNoEntry: false })?.isFile();
    const guide = legacy ? ".clinerules" : guidePath(place, agent, key, names);
    if (guide) wishes.push(spec.guide.kind === "own" && !legacy ? { path: guide, agent, kind: "own", text: spec.guide.text(options.base) } : { path: guide, agent, kind: "block", text: guideBlock(options.base) });
    if (spec.hook?.[key]) {
      hooks = true;
      wishes.push({ path: spec.hook[key], agent, kind: "json", at: spec.hook.at, fresh: spec.hook.fresh, item: forAgent(spec.hook.item(c), agent), mine: MARK });
    }
    if (spec.script?.[key] && !legacy && !c.windows) {
      hooks = true;
      wishes.push({ path: spec.script[key], agent, kind: "own", executable: true, text: `#!/bin/sh\n# ${MARK}\nexec node "$(dirname "$0")/../../.sallyport/hook.mjs" ${MARK} ${agent}\n` });
    }
    if (options.mcp) wishes.push(...mcpWishes(agent, spec, key, c));
  }
  const own = [];
  if (hooks) {
    own.push({ path: ".sallyport/hook.mjs", agent: null, kind: "own", text: HOOK_SOURCE }, { path: ".sallyport/.gitignore", agent: null, kind: "own", text: "hook-state.*\n" });
    if (c.windows && names.includes("cursor")) own.push({ path: ".sallyport/hook.cmd", agent: null, kind: "own", text: '@node "%~dp0hook.mjs" %*\r\n' });
  }
  return [...own, ...wishes];
}

function mcpWishes(agent, spec, key, c) {
  if (spec.mcp?.[key]) return [{ path: spec.mcp[key], agent, kind: "json", at: spec.mcp.at, key: "sallyport", item: forAgent(spec.mcp.item(c), agent), mine: c.mcpUrl }];
  if (spec.toml?.[key]) return [{ path: spec.toml[key], agent, kind: "toml", text: ["# BEGIN sallyport v1", "[mcp_servers.sallyport]", `url = "${c.mcpUrl}"`, `bearer_token_env_var = "${KEY_VARIABLE}"`, "# END sallyport"].join("\n") }];
  return [];
}

// ---------------------------------------------------------------------------------------------------------------
// Carrying out
// ---------------------------------------------------------------------------------------------------------------

const withEol = (text, like) => (like && /\r\n/.test(like) ? text.replace(/\r?\n/g, "\r\n") : text);

// The file's text with the wish fulfilled: { text, added } to write, { done } when nothing is to do, { problem, snippet }.
function fulfil(wish, text) {
  if (wish.kind === "own") {
    if (text === null) return { text: wish.text, added: wish.text };
    return text === wish.text ? { done: true } : { problem: "a file of this name is there already", snippet: wish.text };
  }
  if (wish.kind === "block" || wish.kind === "toml") return fulfilBlock(wish, text);
  const parsed = text === null || text.replace(/^\uFEFF/, "").trim() === "" ? { value: null } : parseStrict(text);
  const snippet = JSON.stringify(nest(wish.at, wish.key ? { [wish.key]: wish.item } : [wish.item]), null, 2);
  if (parsed.error) return { problem: "it has comments or is not valid JSON, so it was not touched", snippet };
  if (parsed.value === null) {
    const added = JSON.stringify({ ...wish.fresh, ...nest(wish.at, wish.key ? { [wish.key]: wish.item } : [wish.item]) }, null, 2) + "\n";
    return { text: (text ?? "") + added, added };
  }
  const inner = wish.at.reduce((value, step) => (value && typeof value === "object" ? value[step] : undefined), parsed.value);
  if (wish.key && inner && typeof inner === "object" && Object.hasOwn(inner, wish.key)) {
    return JSON.stringify(inner[wish.key]) === JSON.stringify(wish.item) ? { done: true } : { problem: `it has another ${wish.at.join(".")}.${wish.key}`, snippet };
  }
  if (!wish.key && JSON.stringify(inner ?? null).includes(wish.mine)) {
    return Array.isArray(inner) && inner.some((item) => JSON.stringify(item) === JSON.stringify(wish.item)) ? { done: true } : { problem: `its ${MARK} entry was changed by hand`, snippet };
  }
  const result = insertJson(text, wish.at, wish.key, wish.item);
  return result || { problem: `${wish.at.join(".")} has another shape than expected`, snippet };
}

const nest = (steps, value) => [...steps].reverse().reduce((inner, step) => ({ [step]: inner }), value);

function fulfilBlock(wish, text) {
  const block = withEol(wish.text, text);
  if (text === null) return { text: block + "\n", added: block + "\n" };
  if (text.includes(block)) return { done: true };
  const theirs = wish.kind === "toml" ? /^\s*\[\s*mcp_servers\s*\.\s*"?sallyport"?\s*\]/m.test(text) : BLOCK.test(text);
  if (theirs) return { problem: wish.kind === "toml" ? "it has another [mcp_servers.sallyport]" : "its sallyport block was changed by hand", snippet: wish.text };
  const eol = /\r\n/.test(text) ? "\r\n" : "\n";
  const gap = text === "" ? "" : text.endsWith("\n") ? eol : eol + eol;
  const added = gap + block + eol;
  return { text: text + added, added };
}

class Installer {
  constructor(place, options, platform = process.platform) {
    Object.assign(this, { place, options, platform, ledger: new Ledger(place), changes: [], left: [], notes: [] });
    this.texts = new Map();
  }

  // The file as it will be after the changes planned so far.
  current(rel) {
    const file = this.place.look(rel);
    const pending = this.texts.get(file.target);
    return pending ? { ...file, text: pending.text, before: pending.before } : { ...file, before: file.text };
  }

  leave(wish, problem, snippet) {
    this.left.push({ path: wish.path, problem, snippet });
  }

  install(names) {
    for (const wish of plan(this.place, names, this.options, this.platform)) {
      const file = this.current(wish.path);
      if (file.problem && file.problem !== "it is read-only") {
        this.leave(wish, file.problem, fulfil(wish, null).added);
        continue;
      }
      const entry = this.ledger.get(wish.path);
      const base = this.withoutOld(wish, entry, file.text);
      const result = fulfil(wish, base.text);
      if (result.done) continue;
      if (file.problem) this.leave(wish, file.problem, result.added);
      else if (result.problem) this.leave(wish, result.problem, result.snippet);
      else if (result.text !== file.text) this.stage(wish, file, result, base.dropped);
    }
  }

  // An insertion of an earlier version, or for another base URL, makes room for the new one.
  withoutOld(wish, entry, text) {
    if (!entry || text === null) return { text };
    for (const insert of entry.inserts) {
      if (insert.wish !== wishName(wish) || !text.includes(insert.text)) continue;
      const without = removeOnce(text, insert.text);
      if (wish.kind === "own") return without === "" ? { text: null, dropped: insert } : { text };
      const again = fulfil(wish, without === "" && entry.created ? null : without);
      if (!again.problem && again.text !== text) return { text: without === "" && entry.created ? null : without, dropped: insert };
    }
    return { text };
  }

  stage(wish, file, result, dropped) {
    this.texts.set(file.target, { text: result.text, before: file.before });
    const existing = this.changes.find((c) => c.file.target === file.target);
    const change = existing || { path: wish.path, file, inserts: [], dropped: [], executable: wish.executable };
    change.inserts.push({ wish: wishName(wish), text: result.added });
    if (dropped) change.dropped.push(dropped);
    change.text = result.text;
    if (!existing) this.changes.push(change);
  }

  apply() {
    for (const change of this.changes) {
      const { file } = change;
      const old = this.ledger.get(change.path);
      const entry = old || { path: change.path, created: file.before === null, inserts: [], backup: null, folders: [] };
      if (!old) this.ledger.files.push(entry);
      entry.inserts = [...entry.inserts.filter((i) => !change.dropped.includes(i)), ...change.inserts];
      if (!old && file.before !== null) entry.backup = this.place.backup(file.target);
      const made = this.place.write(file.target, change.text, change.executable ? 0o755 : file.mode);
      entry.folders = [...new Set([...entry.folders, ...made])];
      entry.sha256 = digest(change.text);
    }
    if (this.changes.length) this.saveLedger();
  }

  saveLedger() {
    const file = this.place.look(this.ledger.file);
    if (this.ledger.files.length) {
      if (file.text !== this.ledger.text()) this.place.write(file.target, this.ledger.text(), null);
      return;
    }
    fs.rmSync(file.full, { force: true });
    for (const name of ["hook-state.json", "hook-state.lock"]) fs.rmSync(path.join(this.place.root, ".sallyport", name), { force: true });
    this.dropFolder(".sallyport");
  }

  dropFolder(rel) {
    try {
      fs.rmdirSync(path.join(this.place.root, rel));
    } catch {
      // Not empty or already gone: somebody else's files stay.
    }
  }

  uninstall() {
    const keep = [];
    this.folders = new Set();
    for (const entry of this.ledger.files) {
      const file = this.place.look(entry.path);
      if (file.text === null && !file.problem) {
        this.notes.push(`${entry.path} is gone already`);
        for (const folder of entry.folders || []) this.folders.add(folder);
        this.dropBackup(entry);
        continue;
      }
      if (file.problem) {
        this.left.push({ path: entry.path, problem: file.problem });
        keep.push(entry);
        continue;
      }
      this.takeOut(entry, file, keep);
    }
    if (this.options["dry-run"]) return;
    for (const folder of [...this.folders].sort((a, b) => b.length - a.length)) this.dropFolder(folder);
    this.ledger.files = keep;
    this.saveLedger();
  }

  takeOut(entry, file, keep) {
    let text = file.text;
    const stuck = [];
    for (const insert of [...entry.inserts].reverse()) {
      const without = removeOnce(text, insert.text);
      const broken = without !== null && insert.wish.startsWith("json") && without.trim() !== "" && parseStrict(text).value !== undefined && parseStrict(without).error;
      if (without === null || broken) stuck.push(insert);
      else text = without;
    }
    if (stuck.length) {
      this.left.push({ path: entry.path, problem: "what was installed has been edited since; that part was left in place" });
      keep.push({ ...entry, inserts: stuck });
    }
    if (text === file.text) return;
    const gone = entry.created && text === "" && !stuck.length;
    this.changes.push({ path: entry.path, file: { ...file, before: file.text }, text: gone ? null : text });
    if (this.options["dry-run"]) return;
    if (gone) {
      fs.rmSync(file.target);
      for (const folder of entry.folders) this.folders.add(folder);
    } else this.place.write(file.target, text, file.mode);
    if (!stuck.length) this.dropBackup(entry, gone ? null : text);
  }

  // The copy made at the first touch goes once the file is back to it; an edited file keeps its copy.
  dropBackup(entry, text = null) {
    if (!entry.backup || this.options["dry-run"]) return;
    const copy = this.place.look(entry.backup);
    if (copy.text !== null && (copy.text === text || text === null)) fs.rmSync(copy.full, { force: true });
    else if (copy.text !== null) this.notes.push(`${entry.backup} holds ${entry.path} as it was before the installation`);
  }

  check(names) {
    this.install(names);
    const differ = this.changes.map((c) => `${c.path}: ${c.file.before === null ? "missing" : "not installed or of another version"}`);
    return [...differ, ...this.left.map((l) => `${l.path}: ${l.problem}`)];
  }
}

const wishName = (wish) => [wish.kind, wish.agent || "sallyport", ...(wish.at || []), ...(wish.key ? [wish.key] : [])].join(" ");

// Takes `part` out of `text` when it stands there exactly once, else null.
function removeOnce(text, part) {
  const at = text.indexOf(part);
  if (at < 0 || text.indexOf(part, at + 1) >= 0) return null;
  return text.slice(0, at) + text.slice(at + part.length);
}

// ---------------------------------------------------------------------------------------------------------------
// Command
// ---------------------------------------------------------------------------------------------------------------

// The lines that differ, between three lines of context.
function diff(before, after, name) {
  const a = before === null ? [] : before.split(/\r?\n/);
  const b = after === null ? [] : after.split(/\r?\n/);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const from = Math.max(0, head - 3);
  return [`--- ${before === null ? "(no file)" : name}`, `+++ ${after === null ? "(no file)" : name}`, `@@ line ${head + 1} @@`,
    ...a.slice(from, head).map((l) => " " + l), ...a.slice(head, a.length - tail).map((l) => "-" + l), ...b.slice(head, b.length - tail).map((l) => "+" + l), ...b.slice(b.length - tail, b.length - tail + 3).map((l) => " " + l)].join("\n");
}

function projectRoot() {
  const start = fs.realpathSync(process.cwd());
  const home = fs.realpathSync(os.homedir());
  let dir = start;
  while (!fs.existsSync(path.join(dir, ".git"))) {
    const up = path.dirname(dir);
    if (up === dir) {
      dir = start;
      break;
    }
    dir = up;
  }
  if (dir === home) throw new UsageError("this is your home folder, not a project; go into the project, or use --scope=user");
  return dir;
}

function ask(question) {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return Promise.resolve(false);
  const io = readline.createInterface({ input: process.stdin, output: process.stdout });
  return new Promise((resolve) => io.question(question, (answer) => {
    io.close();
    resolve(/^y(?:es)?$/i.test(answer.trim()));
  }));
}

async function chooseAgents(place, options) {
  const names = detect(place, options);
  if (options.list || options.scope === "user" || names.includes("agents") || options.check) return names;
  const wanted = options.yes || (!options["dry-run"] && (await ask(`Create AGENTS.md in ${place.root}, which most agents read? [y/N] `)));
  return wanted ? [...names, "agents"] : names;
}

const say = (line) => process.stdout.write(line + "\n");

function report(installer, verb) {
  for (const change of installer.changes) say(`${verb} ${change.path}`);
  for (const { path: name, problem, snippet } of installer.left) {
    say(`left alone ${name}: ${problem}`);
    if (snippet) say(`  add this yourself if you want it:\n${snippet.replace(/\s+$/, "").replace(/^/gm, "    ")}`);
  }
  for (const note of installer.notes) say(note);
}

async function run(options) {
  const place = new Place(options.scope === "user" ? fs.realpathSync(os.homedir()) : projectRoot());
  const installer = new Installer(place, options);
  if (options.uninstall) {
    if (!installer.ledger.files.length) say(`nothing is installed in ${place.root}`);
    installer.uninstall();
    if (options["dry-run"]) installer.changes.forEach((c) => say(diff(c.file.before, c.text, c.path)));
    report(installer, options["dry-run"] ? "would restore" : "restored");
    return installer.left.length && !options["dry-run"] ? 1 : 0;
  }
  const names = await chooseAgents(place, options);
  if (!names.length) {
    say(`no coding agent was found in ${place.root}. Name one with --agents=${Object.keys(AGENTS).join("|")}, or use --yes to create AGENTS.md.`);
    return options.check ? 1 : 0;
  }
  if (options.check) {
    const differ = installer.check(names);
    say(differ.length ? differ.join("\n") : `installed for ${names.join(", ")}`);
    return differ.length ? 1 : 0;
  }
  installer.install(names);
  if (options["dry-run"]) {
    installer.changes.forEach((c) => say(diff(c.file.before, c.text, c.path)));
    report(installer, "would write");
    if (!installer.changes.length && !installer.left.length) say("nothing to do");
    return 0;
  }
  installer.apply();
  for (const name of names) if (AGENTS[name].note && installer.changes.some((c) => c.path === AGENTS[name].hook?.[options.scope === "user" ? "u" : "p"])) installer.notes.push(AGENTS[name].note);
  report(installer, "wrote");
  if (!installer.changes.length && !installer.left.length) say(`already installed for ${names.join(", ")}`);
  return installer.left.length ? 1 : 0;
}

async function main(argv) {
  try {
    const options = parseFlags(argv);
    if (options.help) return void process.stdout.write(helpText());
    if (options.version) return void say(`install-agent-hook.mjs ${VERSION}`);
    process.exitCode = await run(options);
  } catch (error) {
    process.stderr.write(`install-agent-hook: ${error.message}\n${error instanceof UsageError ? "run with --help for the flags\n" : ""}`);
    process.exitCode = error instanceof UsageError ? 2 : 1;
  }
  return undefined;
}

export { AGENTS, HOOK_SOURCE, Installer, Place, insertJson, parseFlags, plan };

// Imported by a test the file only defines; started, or piped into node, it runs.
function isImported() {
  const started = process.argv[1];
  if (!started || started === "-") return false;
  try {
    return fs.realpathSync(started) !== fs.realpathSync(fileURLToPath(import.meta.url));
  } catch {
    return false;
  }
}

if (!isImported()) await main(process.argv.slice(2));
