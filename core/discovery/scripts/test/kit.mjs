// What the tests of both scripts share: scratch folders, running a script, comparing route lists.

import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const scripts = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
export const collector = path.join(scripts, "repo-context.mjs");
export const installer = path.join(scripts, "install-agent-hook.mjs");

/** A folder that is removed when the test ends. */
export function scratch(t, name = "sallyport") {
  const dir = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), name + "-")));
  t.after(() => fs.rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** Writes files given as { "a/b.txt": "text" | Buffer }. */
export function write(dir, files) {
  for (const [name, content] of Object.entries(files)) {
    const full = path.join(dir, name);
    fs.mkdirSync(path.dirname(full), { recursive: true });
    fs.writeFileSync(full, content);
  }
  return dir;
}

export function node(script, args, { cwd, env, input } = {}) {
  const result = spawnSync(process.execPath, [script, ...args], { cwd, input: input ?? "", encoding: "utf8", maxBuffer: 64 << 20, env: { ...process.env, ...env } });
  if (result.error) throw result.error;
  return result;
}

/** Runs the collector without git and parses what it prints. */
export function collect(dir, ...args) {
  const result = node(collector, [`--root=${dir}`, ...args]);
  if (result.status !== 0) throw new Error(`exit ${result.status}: ${result.stderr}`);
  return JSON.parse(result.stdout);
}

export const routeLines = (doc, kind) =>
  doc.routes.filter((r) => !kind || r.kind === kind).map((r) => `${r.methods.join(",") || r.kind} ${r.path}`).sort();

export function git(dir, ...args) {
  const result = spawnSync("git", ["-c", "user.name=Test Person", "-c", "user.email=person@invalid.test", "-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main", ...args], {
    cwd: dir, encoding: "utf8", env: { ...process.env, GIT_CONFIG_GLOBAL: os.devNull, GIT_CONFIG_SYSTEM: os.devNull },
  });
  if (result.status !== 0) throw new Error(`git ${args.join(" ")}: ${result.stderr}`);
  return result.stdout;
}

/** Letters and digits without a pattern, the same on every run; secrets for tests are built from it. */
export function noise(length, alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", seed = 7) {
  let state = seed;
  let out = "";
  while (out.length < length) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    out += alphabet[(state >>> 16) % alphabet.length];
  }
  return out;
}
