// The collector as a whole: flags, history, caps, texts, detection, what it must not open.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { collect, collector, git, node, noise, routeLines, scratch, write } from "./kit.mjs";
import { normalisePath, parseSubject, readableMarkdown, fileKind } from "../repo-context.mjs";

const isRoot = process.getuid?.() === 0;

test("flags: unknown ones name the nearest and all valid ones, and exit 2", () => {
  const result = node(collector, ["--what-chnged=x"]);
  assert.equal(result.status, 2);
  assert.equal(result.stdout, "");
  assert.match(result.stderr, /unknown flag --what-chnged\. Did you mean --what-changed\?/);
  for (const flag of ["--what-changed", "--target-customer", "--goal", "--since", "--root", "--package", "--max-bytes", "--out", "--format", "--no-git", "--check", "--help", "--version"]) {
    assert.ok(result.stderr.includes(flag), flag);
  }
});

for (const [args, message] of [
  [["--format=xml"], /--format is json or pretty/], [["--max-bytes=10"], /4096 to 1048576/], [["--max-bytes=lots"], /whole number/], [["--goal"], /--goal needs a value/],
  [["--no-git=yes"], /takes no value/], [["stray"], /every option is a --flag/], [["--root=/no/such/folder"], /does not exist/], [["--since=-n1"], /--since is a tag/], [["--__proto__=1"], /unknown flag/],
]) {
  test(`flags: ${args[0]} is refused`, () => {
    const result = node(collector, args);
    assert.equal(result.status, 2);
    assert.match(result.stderr, message);
  });
}

test("flags: --help and --version exit 0, values may follow a space", (t) => {
  assert.match(node(collector, ["--help"]).stdout, /--what-changed=TEXT[\s\S]*Exit codes/);
  assert.match(node(collector, ["--version"]).stdout, /repo-context\/1/);
  const dir = write(scratch(t), { "README.md": "# X" });
  const doc = collect(dir, "--what-changed", "Added export", "--target-customer=ops people", "--goal=feedback", "--no-git");
  assert.deepEqual([doc.whatChanged, doc.targetCustomer, doc.launchGoal], ["Added export", "ops people", "feedback"]);
});

test("output: the whole shape of schema repo-context/1", (t) => {
  const doc = collect(write(scratch(t), { "README.md": "# Shop\n\nSells things.\n", "CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-01-02\n\n- Added export\n\n## 1.1.0\n\n- Old\n" }), "--no-git");
  assert.deepEqual(Object.keys(doc), ["schema", "generatedAt", "tool", "project", "whatChanged", "recentCommits", "changedFiles", "routes", "readme", "changelog", "docs", "envExampleKeys", "deploy",
    "analytics", "payments", "auth", "targetCustomer", "launchGoal", "redactions", "truncated", "warnings", "bytes"]);
  assert.equal(doc.schema, "repo-context/1");
  assert.deepEqual(doc.readme, { path: "README.md", headline: "Shop", excerpt: "# Shop\n\nSells things." });
  assert.deepEqual(doc.changelog, { path: "CHANGELOG.md", version: "1.2.0", date: "2026-01-02", excerpt: "## [1.2.0] - 2026-01-02\n\n- Added export" });
  assert.match(doc.generatedAt, /^\d{4}-\d{2}-\d{2}T.*Z$/);
});

test("output: bytes is the size, --out writes a file, pretty is the same document", (t) => {
  const dir = write(scratch(t), { "README.md": "# Größe ☂\n" });
  const env = { SOURCE_DATE_EPOCH: "1700000000" };
  const plain = node(collector, [`--root=${dir}`, "--no-git"], { env });
  assert.equal(JSON.parse(plain.stdout).bytes, Buffer.byteLength(plain.stdout));
  const out = path.join(scratch(t), "with space", "out.json");
  fs.mkdirSync(path.dirname(out));
  const written = node(collector, [`--root=${dir}`, "--no-git", `--out=${out}`, "--format=pretty"], { env });
  assert.equal(written.stdout, "");
  const pretty = fs.readFileSync(out, "utf8");
  assert.match(pretty, /^\{\n {2}"schema"/);
  assert.deepEqual({ ...JSON.parse(pretty), bytes: 0 }, { ...JSON.parse(plain.stdout), bytes: 0 });
  assert.equal(node(collector, [`--root=${dir}`, "--no-git"], { env }).stdout, plain.stdout);
  assert.deepEqual(fs.readdirSync(path.dirname(out)), ["out.json"]);
});

test("git: commits, conventional types, changed files since the last tag, no names or addresses", (t) => {
  const dir = scratch(t, "repo with space");
  git(dir, "init", "-q");
  write(dir, { "src/a.js": "1\n", "README.md": "# A\n" });
  git(dir, "add", "."), git(dir, "commit", "-qm", "chore: first");
  git(dir, "tag", "v1.0.0");
  write(dir, { "src/a.js": "1\n2\n", "src/ü b.js": "x\n" });
  git(dir, "add", "."), git(dir, "commit", "-qm", "feat(export)!: add CSV export\n\nSigned-off-by: Test Person <person@invalid.test>");
  git(dir, "mv", "README.md", "READ ME.md");
  git(dir, "add", "."), git(dir, "commit", "-qm", "docs: ask person@invalid.test");
  write(dir, { "src/new.js": "n\n", "node_modules/x/index.js": "x" });
  const doc = collect(dir);
  assert.deepEqual(doc.recentCommits.map(({ subject, type, scope, filesChanged, userVisible }) => ({ subject, type, scope, filesChanged, userVisible })), [
    { subject: "ask [e-mail]", type: "docs", scope: null, filesChanged: 2, userVisible: false },
    { subject: "add CSV export", type: "feat", scope: "export", filesChanged: 2, userVisible: true },
    { subject: "first", type: "chore", scope: null, filesChanged: 2, userVisible: false },
  ]);
  assert.deepEqual(doc.changedFiles.map((f) => [f.path, f.status, f.additions, f.deletions, f.kind]).sort(), [
    ["READ ME.md", "renamed", 0, 0, "docs"], ["src/a.js", "modified", 1, 0, "code"], ["src/new.js", "untracked", null, null, "code"], ["src/ü b.js", "added", 1, 0, "code"],
  ]);
  assert.equal(doc.whatChanged, "add CSV export");
  assert.doesNotMatch(JSON.stringify(doc), /Test Person|person@/);
  assert.equal(collect(dir, "--since=HEAD~1").recentCommits.length, 1);
  assert.equal(collect(dir, "--since=v1.0.0").recentCommits.length, 2);
  assert.equal(collect(dir, "--since=2d").recentCommits.length, 3);
  assert.equal(node(collector, [`--root=${dir}`, "--since=nowhere"]).status, 2);
});

test("git: settings of the repository start no program", (t) => {
  const dir = scratch(t);
  git(dir, "init", "-q");
  write(dir, { "a.txt": "a", ".gitattributes": "*.txt diff=evil\n" });
  git(dir, "add", "."), git(dir, "commit", "-qm", "feat: a");
  const trap = path.join(dir, "trap.sh");
  fs.writeFileSync(trap, `#!/bin/sh\ntouch "${path.join(dir, "ran")}"\ncat "$1" 2>/dev/null\n`, { mode: 0o755 });
  for (const key of ["core.fsmonitor", "diff.external", "diff.evil.textconv", "diff.evil.command", "core.pager"]) git(dir, "config", key, trap);
  git(dir, "config", "log.showSignature", "true");
  write(dir, { "a.txt": "changed" });
  collect(dir);
  assert.equal(fs.existsSync(path.join(dir, "ran")), false);
});

test("git: no repository, no commit, --no-git: the newest files, with the reason", (t) => {
  const dir = write(scratch(t), { "old.js": "1", "new.js": "2" });
  fs.utimesSync(path.join(dir, "old.js"), 1e9, 1e9);
  const doc = collect(dir, "--no-git");
  assert.deepEqual(doc.changedFiles.map((f) => [f.path, f.status]).sort(), [["new.js", "recent"], ["old.js", "recent"]]);
  assert.deepEqual(doc.recentCommits, []);
  assert.ok(!doc.warnings.some((w) => /git/.test(w)));
  git(dir, "init", "-q");
  assert.ok(collect(dir).warnings.some((w) => /no commit yet/.test(w)));
  const many = scratch(t);
  for (let i = 0; i < 60; i++) write(many, { [`f${i}.js`]: "x" });
  assert.equal(collect(many, "--no-git").changedFiles.length, 50);
});

test("subjects: types, scopes and what a user would notice", () => {
  const visible = (subject, ...paths) => parseSubject(subject, paths).userVisible;
  assert.deepEqual(parseSubject("fix(api): stop double posts", ["a.go"]), { type: "fix", scope: "api", subject: "stop double posts", userVisible: true });
  assert.deepEqual(parseSubject("note: not a type", ["a.go"]), { type: null, scope: null, subject: "note: not a type", userVisible: true });
  assert.equal(visible("feat: x", "a_test.go"), false);
  assert.equal(visible("fix(deps): bump x", "a.go"), false);
  assert.equal(visible("refactor!: drop the old flag", "a.go"), true);
  assert.equal(visible("Bump lodash from 1 to 2", "package.json"), false);
  assert.equal(visible("Add dark mode", "app.css"), true);
  assert.equal(visible("Add dark mode", "README.md"), false);
});

test("paths of all frameworks read the same", () => {
  for (const [from, to] of [["/u/{id}", "/u/:id"], ["/u/{id:[0-9]{2,4}}", "/u/:id"], ["/u/<int:id>", "/u/:id"], ["/f/<path:rest>", "/f/*rest"], ["^a/(?P<y>[0-9]+)/$", "/a/:y"], ["/u/:id(\\d+)", "/u/:id"], ["/u/:id?", "/u/:id"],
    ["x//y/", "/x/y"], ["/f/{p...}", "/f/*p"], ["/{$}", "/"], ["", "/"], ["/u/{user?}", "/u/:user"], ["/c/{**rest}", "/c/*rest"], ["/{p:path}", "/*p"], ["/a?b=1", "/a"]]) {
    assert.equal(normalisePath(from), to, from);
  }
});

test("kinds of files", () => {
  for (const [file, kind] of [["a/b_test.go", "test"], ["src/x.spec.ts", "test"], ["tests/x.py", "test"], ["README.md", "docs"], ["go.sum", "lock"], [".github/workflows/ci.yml", "ci"], ["db/migrate/1_x.rb", "migration"], ["a.css", "style"], ["logo.svg", "asset"], ["main.go", "code"], ["app.vue", "code"], ["package.json", "config"], ["rows.csv", "data"], ["LICENSE", "docs"], ["x.bin", "other"]]) {
    assert.equal(fileKind(file), kind, file);
  }
});

test("readme: badges, images, comments and markup go; the words stay", () => {
  const text = readableMarkdown('---\na: b\n---\n<!-- hidden -->\n<p align="center"><img src="x"></p>\n<h1 align="center">Shop <b>Pro</b></h1>\n\n[![CI](https://b.test/x.svg)](https://b.test)\n![shot](a.png)\n\nSells [things](https://s.test) fast.\n\n\n\n[ref]: https://r.test\n');
  assert.equal(text, "# Shop Pro\n\nSells [things](https://s.test) fast.");
});

test("text: CRLF, byte order mark, zero-width and direction characters", (t) => {
  const doc = collect(write(scratch(t), { "README.md": "\uFEFF# Win\u200Bdows\u202E\r\n\r\nLine one\r\nLine two\r\n", "app.py": "\uFEFFfrom flask import Flask\r\napp = Flask(__name__)\r\n@app.route('/x')\r\ndef x(): ...\r\n" }), "--no-git");
  assert.equal(doc.readme.excerpt, "# Windows\n\nLine one\nLine two");
  assert.deepEqual(routeLines(doc), ["GET /x"]);
  assert.equal(doc.routes[0].line, 3);
});

test("robustness: binary, broken, endless and odd files do not stop it", (t) => {
  const dir = write(scratch(t), {
    "README.md": Buffer.from([0, 1, 2, 255, 254]), "a.js": Buffer.concat([Buffer.from("app.get('/x', "), Buffer.alloc(9000, 0)]), "b.go": "package x\nfunc (((((({{{{ \"`'", "c.py": '"""never closed\n@app.get("/no")\n', "package.json": "{ not json",
    "huge.js": "x".repeat(10 << 20), "long.ts": `const a = ${JSON.stringify("y".repeat(200_000))};\n`, "d.rb": "Rails.application.routes.draw do\nend\nend\nend\n", "e.php": "<?php Route::get(", "f.rs": "r#\"", "g.ex": "use X, :router\nscope \"", "h.ts": "`${`${`",
    "pyproject.toml": "[[[\n=\n", "Cargo.toml": "[workspace]\nmembers = [", "openapi.yaml": "openapi: 3.0.0\npaths:\n  /x\n", "go.work": "use (", "pnpm-workspace.yaml": "packages:\n", "dir with space/é.js": "1",
  });
  const doc = collect(dir, "--no-git");
  assert.deepEqual(doc.routes, []);
  assert.equal(doc.readme, null);
  assert.ok(doc.warnings.some((w) => w.includes("package.json is not valid JSON")));
  assert.ok(doc.changedFiles.some((f) => f.path === "dir with space/é.js"));
});

test("robustness: random bytes in every language", (t) => {
  const pieces = ["app.get('/x', h)", "`", "'", '"', "{", "}", "(", ")", "\n", "//", "/*", "*/", "#", "r.Route(\"/a\", func(r chi.Router) {", "@app.route('/b')", "Route::get('/c'", "resources :d do", "end", ".route(\"/e\", get(h))", "${", "\\", "\0", "import x from './x'", "\"\"\"", "=>", "urlpatterns = [path('f', include(", "\u2028"];
  const dir = scratch(t);
  const at = noise(4000, "0123456789ABCDEFGHIJKLMNOPQ", 99);
  let i = 0;
  for (const ext of ["js", "ts", "go", "py", "rb", "php", "java", "cs", "rs", "ex"]) {
    for (let n = 0; n < 6; n++) {
      let text = "";
      for (let k = 0; k < 60; k++) text += pieces["0123456789ABCDEFGHIJKLMNOPQ".indexOf(at[i++ % at.length]) % pieces.length];
      write(dir, { [`f${n}.${ext}`]: text });
    }
  }
  write(dir, { "package.json": '{"dependencies":{"express":"1"}}' });
  const doc = collect(dir, "--no-git");
  assert.deepEqual(doc.warnings.filter((w) => /could not be read/.test(w)), []);
});

test("forbidden files are not opened, env examples give names only", (t) => {
  const secret = "value-" + noise(12);
  const dir = write(scratch(t), {
    "README.md": "# X", ".env": `A=${secret}`, ".env.local": `A=${secret}`, ".env.example": `API_URL=${secret}\nexport DB_PASSWORD=${secret}\n# OPTIONAL_FLAG=1\nnot a key\n`, "keys/server.pem": secret, "id_rsa": secret, ".npmrc": secret, "terraform.tfstate": secret,
    "credentials.json": `{"name":"${secret}"}`, ".aws/config": secret, "docs/key.md": "# fine", "prod-service-account.json": secret, "config/master.key": secret,
  });
  const doc = collect(dir, "--no-git");
  assert.deepEqual(doc.envExampleKeys, ["API_URL", "DB_PASSWORD", "OPTIONAL_FLAG"]);
  assert.ok(!JSON.stringify(doc).includes(secret));
  // Forbidden files that cannot even be read must not cause a warning: nothing tried.
  if (!isRoot && process.platform !== "win32") {
    fs.chmodSync(path.join(dir, ".env"), 0);
    fs.chmodSync(path.join(dir, "keys/server.pem"), 0);
    assert.deepEqual(collect(dir, "--no-git").warnings, doc.warnings);
  }
});

test("symbolic links are not followed", { skip: process.platform === "win32" }, (t) => {
  const outside = write(scratch(t), { "README.md": "# Outside secret place", "app.py": "from flask import Flask\napp = Flask(__name__)\n@app.route('/outside')\ndef x(): ...\n" });
  const dir = write(scratch(t), { "a.txt": "a" });
  fs.symlinkSync(path.join(outside, "README.md"), path.join(dir, "README.md"));
  fs.symlinkSync(outside, path.join(dir, "linked"));
  fs.symlinkSync(dir, path.join(dir, "loop"));
  const doc = collect(dir, "--no-git");
  assert.equal(doc.readme, null);
  assert.deepEqual(doc.routes, []);
  assert.ok(doc.warnings.some((w) => w.startsWith("3 symbolic links")));
});

test("ignored folders and .gitignore, also nested and negated", (t) => {
  const dir = write(scratch(t), {
    ".gitignore": "*.log\n/only-top.js\ntmp/\n!keep.log\nsub/**/deep.js\n[ab].txt\n\\#odd\n", "x.log": "", "keep.log": "", "only-top.js": "", "sub/only-top.js": "", "tmp/a.js": "", "sub/p/q/deep.js": "", "a.txt": "", "c.txt": "", "sub/.gitignore": "inner.js\n!x.log\n", "sub/inner.js": "", "sub/x.log": "", "node_modules/m/i.js": "", "dist/o.js": "", "vendor/v.go": "",
  });
  assert.deepEqual(collect(dir, "--no-git").changedFiles.map((f) => f.path).sort(), [".gitignore", "c.txt", "keep.log", "sub/.gitignore", "sub/only-top.js", "sub/x.log"]);
});

test("caps: files, routes, commits, README, size; each cut is counted", (t) => {
  const dir = scratch(t);
  git(dir, "init", "-q");
  write(dir, { "a.js": "" });
  git(dir, "add", "."), git(dir, "commit", "-qm", "first");
  for (let i = 0; i < 35; i++) git(dir, "commit", "-q", "--allow-empty", "-m", `feat: step ${i}`);
  git(dir, "tag", "base");
  const files = { "README.md": "# Big\n\n" + "word ☂ ".repeat(5000), "app.py": "from flask import Flask\napp = Flask(__name__)\n" + Array.from({ length: 350 }, (_, i) => `@app.route('/r${i}')\ndef r${i}(): ...\n`).join("") };
  for (let i = 0; i < 260; i++) files[`src/file-${i}.js`] = `x${i}\n`;
  write(dir, files);
  const doc = collect(dir, "--max-bytes=1048576", "--since=base");
  assert.equal(doc.changedFiles.length, 200);
  assert.equal(doc.truncated.changedFiles, 62);
  assert.equal(doc.routes.length, 300);
  assert.equal(doc.truncated.routes, 50);
  assert.ok(Buffer.byteLength(doc.readme.excerpt) <= 8192 && Buffer.byteLength(doc.readme.excerpt) > 8180);
  assert.ok(!doc.readme.excerpt.includes("\uFFFD"));
  assert.ok(doc.truncated.readmeBytes > 0);
  assert.equal(collect(dir).recentCommits.length, 30);
  for (const limit of [4096, 8192, 20000, 65536]) {
    const result = node(collector, [`--root=${dir}`, `--max-bytes=${limit}`, "--what-changed=" + "long ".repeat(600)]);
    assert.ok(Buffer.byteLength(result.stdout) <= limit, `${Buffer.byteLength(result.stdout)} > ${limit}`);
    const small = JSON.parse(result.stdout);
    assert.equal(small.bytes, Buffer.byteLength(result.stdout));
    assert.equal(small.readme.headline, "Big");
    assert.equal(small.routes.length + (small.truncated.routes || 0), 350);
  }
});

test("limits: deep trees and long tool texts", (t) => {
  const deep = Array.from({ length: 12 }, (_, i) => `d${i}`).join("/");
  const doc = collect(write(scratch(t), { [`${deep}/x.js`]: "1", "a.js": "1" }), "--no-git", "--what-changed=" + "é".repeat(3000));
  assert.deepEqual(doc.changedFiles.map((f) => f.path), ["a.js"]);
  assert.equal(doc.truncated.depth, 1);
  assert.equal(doc.whatChanged.length, 2000);
  assert.equal(doc.truncated.whatChanged, 1000);
});

const MONO = {
  pnpm: { "pnpm-workspace.yaml": "packages:\n  - 'apps/*'\n  # note\n  - \"packages/**\"\n  - '!packages/skip'\n", "packages/skip/package.json": "{}" },
  yarn: { "package.json": '{"workspaces":{"packages":["apps/*","packages/*"]}}', "yarn.lock": "" },
  npm: { "package.json": '{"workspaces":["apps/*","packages/ui"]}' },
  lerna: { "lerna.json": '{"packages":["apps/*","packages/*"]}' },
  turbo: { "turbo.json": "{}" },
  nx: { "nx.json": "{}" },
};
for (const [kind, files] of Object.entries(MONO)) {
  test(`monorepo: ${kind}`, (t) => {
    const dir = scratch(t);
    git(dir, "init", "-q");
    write(dir, { ...files, "apps/web/package.json": '{"name":"web","version":"2.0.0","description":"The shop"}', "packages/ui/package.json": '{"name":"ui"}', "apps/web/README.md": "# Web shop", "README.md": "# Root" });
    git(dir, "add", "."), git(dir, "commit", "-qm", "start"), git(dir, "tag", "v1");
    write(dir, { "apps/web/a.js": "1", "apps/web/b.js": "1", "packages/ui/c.js": "1" });
    const doc = collect(dir);
    assert.equal(doc.project.monorepo.kind, kind);
    assert.deepEqual(doc.project.monorepo.packages, [{ path: "apps/web", name: "web", changedFiles: 2 }, { path: "packages/ui", name: "ui", changedFiles: 1 }]);
    assert.equal(doc.project.monorepo.chosen, "apps/web");
    assert.match(doc.project.monorepo.why, /2 of 3/);
    assert.deepEqual([doc.project.name, doc.project.version, doc.project.description, doc.readme.headline], ["web", "2.0.0", "The shop", "Web shop"]);
    const ui = collect(dir, "--package=packages/ui");
    assert.deepEqual([ui.project.name, ui.project.monorepo.why, ui.readme.headline], ["ui", "named by --package", "Root"]);
    assert.equal(node(collector, [`--root=${dir}`, "--package=no/such"]).status, 2);
  });
}

test("monorepo: go.work and cargo", (t) => {
  const go = collect(write(scratch(t), { "go.work": "go 1.22\n\nuse (\n\t./api // main\n\t./tool\n)\n", "api/go.mod": "module example.test/api\n", "tool/go.mod": "module example.test/tool/v2\n", "api/a.go": "package a", "api/b.go": "package a" }), "--no-git");
  assert.deepEqual([go.project.monorepo.kind, go.project.monorepo.chosen, go.project.monorepo.packages.map((p) => p.name)], ["go.work", "api", ["api", "tool"]]);
  const cargo = collect(write(scratch(t), { "Cargo.toml": '[workspace]\nmembers = [\n  "crates/*",\n]\n', "crates/one/Cargo.toml": '[package]\nname = "one"\nversion = "0.3.0"\n', "crates/one/src/lib.rs": "" }), "--no-git");
  assert.deepEqual([cargo.project.monorepo.kind, cargo.project.name, cargo.project.version], ["cargo", "one", "0.3.0"]);
});

test("detection: licence, languages, frameworks, package manager, deploy, services, docs", (t) => {
  const doc = collect(write(scratch(t), {
    "package.json": JSON.stringify({ name: "shop", version: "1.0.0", description: "Sells", homepage: "https://shop.test/", packageManager: "pnpm@9.0.0", dependencies: { next: "15", react: "19", stripe: "1", "@clerk/nextjs": "1", "posthog-js": "1" } }),
    LICENSE: "MIT License\n\nCopyright", "vercel.json": "{}", Dockerfile: "FROM scratch", "app/page.tsx": "export default function P() {}", "app/layout.tsx": '<script src="https://www.googletagmanager.com/gtag/js?id=G-X">', ".github/workflows/release.yml": "run: npm publish",
    "docs/start.md": "---\ntitle: Getting started\n---\ntext", "docs/b.md": "# Second page", CNAME: "www.shop.test\n",
  }), "--no-git");
  assert.deepEqual(doc.project, { name: "shop", version: "1.0.0", description: "Sells", license: "MIT", languages: ["TypeScript"], frameworks: ["Next.js", "React"], packageManager: "pnpm" });
  assert.deepEqual(doc.deploy, { targets: ["Docker", "GitHub Pages", "Vercel", "npm"], urls: ["https://shop.test/", "https://www.shop.test"] });
  assert.deepEqual([doc.analytics, doc.payments, doc.auth], [["Google Analytics", "PostHog"], ["Stripe"], ["Clerk"]]);
  assert.deepEqual(doc.docs, [{ path: "docs/b.md", title: "Second page" }, { path: "docs/start.md", title: "Getting started" }]);
});

for (const [file, text, want] of [
  ["go.mod", "module example.test/me/tool/v3\n\nrequire (\n\tgithub.com/go-chi/chi/v5 v5.0.0\n)\n", { name: "tool", packageManager: "go", frameworks: ["chi"] }],
  ["pyproject.toml", '[project]\nname = "svc"\nversion = "0.1"\ndescription = "Does"\nlicense = {text = "MIT"}\ndependencies = [\n  "fastapi[all]>=0.1",\n  "stripe",\n]\n', { name: "svc", version: "0.1", frameworks: ["FastAPI"], packageManager: "pip" }],
  ["Cargo.toml", '[package]\nname = "rusty"\nversion = "1.0.0"\nlicense = "Apache-2.0"\n[dependencies]\naxum = "0.7"\n', { name: "rusty", license: "Apache-2.0", frameworks: ["Axum"], packageManager: "cargo" }],
  ["composer.json", '{"name":"acme/app","require":{"laravel/framework":"^11"}}', { name: "acme/app", frameworks: ["Laravel"], packageManager: "composer" }],
  ["Gemfile", "gem 'rails', '~> 8'\ngem \"devise\"\n", { frameworks: ["Rails"], packageManager: "bundler" }],
  ["mix.exs", 'def project, do: [app: :shop, version: "0.2.0"]\ndefp deps, do: [{:phoenix, "~> 1.7"}]\n', { name: "shop", version: "0.2.0", frameworks: ["Phoenix"] }],
  ["requirements.txt", "Django==5.0\n", { frameworks: ["Django"], packageManager: "pip" }],
  ["pom.xml", "<project><parent><artifactId>spring-boot-starter-parent</artifactId><version>3</version></parent><artifactId>svc</artifactId><version>1.1</version><dependencies><dependency><artifactId>spring-boot-starter-web</artifactId></dependency></dependencies></project>", { name: "svc", version: "1.1", frameworks: ["Spring Boot"] }],
]) {
  test(`manifest: ${file}`, (t) => {
    const { project } = collect(write(scratch(t), { [file]: text }), "--no-git");
    for (const [key, value] of Object.entries(want)) assert.deepEqual(project[key], value, key);
  });
}

test("speed: a tree of 20,000 files", { timeout: 60_000 }, (t) => {
  const dir = scratch(t);
  for (let d = 0; d < 200; d++) {
    fs.mkdirSync(path.join(dir, `d${d}`));
    for (let f = 0; f < 99; f++) fs.writeFileSync(path.join(dir, `d${d}`, `f${f}.go`), "package x\n\nfunc f() int { return 1 }\n");
  }
  const before = process.hrtime.bigint();
  const doc = collect(dir, "--no-git");
  const seconds = Number(process.hrtime.bigint() - before) / 1e9;
  assert.deepEqual(doc.project.languages, ["Go"]);
  t.diagnostic(`${seconds.toFixed(2)} s`);
});
