// Credentials of every format, put together at run time so that none stands in the repository.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { collect, collector, git, node, noise, scratch, scripts, write } from "./kit.mjs";
import { entropy, Redactor, secretRuleCount } from "../repo-context.mjs";

const LOW = "abcdefghijklmnopqrstuvwxyz0123456789";
const HEX = "0123456789abcdef";
const UP = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const uuid = () => [8, 4, 4, 4, 12].map((n, i) => (i === 2 ? "4" : i === 3 ? "a" : "") + noise(i === 2 || i === 3 ? n - 1 : n, HEX, n)).join("-");
const dash = "-".repeat(5);

// Rule → a credential of that format.
const SAMPLES = {
  "private-key": `${dash}BEGIN RSA PRIVATE ${"KEY"}${dash}\n${noise(64)}\n${noise(64)}\n${dash}END RSA PRIVATE ${"KEY"}${dash}`,
  "url-userinfo": "postgres://admin:" + noise(9) + "@db.test:5432/x", jwt: ["eyJ" + noise(30), "eyJ" + noise(40), noise(43)].join("."), jwe: ["eyJ" + noise(30), "", noise(20), noise(30), noise(22)].join("."),
  "aws-access-key-id": "AKIA" + noise(16, UP), "aws-bedrock-key": "ABSK" + noise(120), "gcp-api-key": "AIza" + noise(35), "google-oauth-secret": "GOCSPX-" + noise(28), "google-access-token": "ya29." + noise(60), "google-refresh-token": "1//0" + noise(60),
  "azure-storage-key": "AccountKey=" + noise(86) + "==", "azure-sas-signature": "https://x.test/?sv=1&sig=" + noise(43) + "%3D", "azure-client-secret": noise(3) + "8Q~" + noise(34), "alibaba-access-key": "LTAI" + noise(20), "tencent-secret-id": "AKID" + noise(32),
  "yandex-token": "t1." + noise(60) + "." + noise(86), "yandex-api-key": "AQVN" + noise(36), "digitalocean-token": "dop_v1_" + noise(64, HEX), "defined-networking-token": "dnkey-" + noise(26, LOW) + "-" + noise(52, LOW), "heroku-key": "HRKU-" + noise(60), "fly-token": "fo1_" + noise(43), "netlify-token": "nfp_" + noise(40), "vercel-token": "vcp_" + noise(40),
  "cloudflare-origin-ca": "v1.0-" + noise(24, HEX) + "-" + noise(146, HEX), "github-token": "ghp_" + noise(36), "github-fine-grained-token": "github_pat_" + noise(82), "gitlab-token": "glpat-" + noise(20), "gitlab-runner-registration": "GR1348941" + noise(20), "bitbucket-token": "ATBB" + noise(32), "atlassian-token": "ATATT3x" + noise(180),
  "slack-token": "xoxb-" + noise(12, "123456789") + "-" + noise(24), "slack-app-token": "xapp-1-" + noise(11, UP) + "-" + noise(13, "123456789") + "-" + noise(64, HEX), "slack-webhook": "https://hooks.slack.com/services/" + noise(9) + "/" + noise(9) + "/" + noise(24), "discord-webhook": "https://discord.com/api/webhooks/" + noise(18, "123456789") + "/" + noise(68),
  "discord-bot-token": "M" + noise(25) + "." + noise(6) + "." + noise(38), "teams-webhook": "https://acme.webhook.office.com/webhookb2/" + uuid() + "@" + uuid(), "telegram-bot-token": noise(10, "123456789") + ":AA" + noise(33), "stripe-key": "sk_live_" + noise(24), "stripe-webhook-secret": "whsec_" + noise(32), "square-token": "sq0atp-" + noise(22),
  "braintree-token": "access_token$production$" + noise(16, LOW) + "$" + noise(32, HEX), "flutterwave-key": "FLWSECK_TEST-" + noise(32, HEX) + "-X", "plaid-token": "access-production-" + uuid(), "shopify-token": "shpat_" + noise(32, HEX), "openai-key": "sk-proj-" + noise(80), "openai-legacy-key": "sk-" + noise(20) + "T3BlbkFJ" + noise(20), "anthropic-key": "sk-ant-api03-" + noise(90),
  "openrouter-key": "sk-or-v1-" + noise(64, HEX), "generic-sk-key": "sk-" + noise(40), "hugging-face-token": "hf_" + noise(34, LETTERS), "replicate-token": "r8_" + noise(37), "groq-key": "gsk_" + noise(52), "xai-key": "xai-" + noise(80), "perplexity-key": "pplx-" + noise(48), "sendgrid-key": "SG." + noise(22) + "." + noise(43), "mailgun-key": "key-" + noise(32, HEX), "mailchimp-key": noise(32, HEX) + "-us12",
  "brevo-key": "xkeysib-" + noise(64, HEX) + "-" + noise(16), "resend-key": "re_" + noise(8) + "_" + noise(24), "twilio-key": "SK" + noise(32, HEX), "npm-token": "npm_" + noise(36), "pypi-token": "pypi-AgE" + noise(90), "rubygems-key": "rubygems_" + noise(48, HEX), "crates-io-token": "cio" + noise(32), "nuget-key": "oy2" + noise(43, LOW), "docker-token": "dckr_pat_" + noise(27), "clojars-token": "CLOJARS_" + noise(60, LOW),
  "artifactory-key": "AKCp" + noise(69), "doppler-token": "dp.pt." + noise(43), "vault-token": "hvs." + noise(90), "terraform-cloud-token": noise(14) + ".atlasv1." + noise(67), "pulumi-token": "pul-" + noise(40, HEX), "1password-token": "ops_eyJ" + noise(200), "age-secret-key": "AGE-SECRET-KEY-1" + noise(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"), "linear-key": "lin_api_" + noise(40), "notion-token": "ntn_" + noise(46),
  "airtable-token": "pat" + noise(14) + "." + noise(64, HEX), "figma-token": "figd_" + noise(40), "postman-key": "PMAK-" + noise(24, HEX) + "-" + noise(34, HEX), "databricks-token": "dapi" + noise(32, HEX), "planetscale-token": "pscale_tkn_" + noise(43), "supabase-key": "sbp_" + noise(40, HEX), "new-relic-key": "NRAK-" + noise(27, UP), "sentry-token": "sntrys_" + noise(80), "grafana-token": "glsa_" + noise(32) + "_" + noise(8, HEX),
  "dynatrace-token": "dt0c01." + noise(24, UP) + "." + noise(64, UP), "launchdarkly-key": "sdk-" + uuid(), "posthog-personal-key": "phx_" + noise(43), "facebook-token": "EAACEdEose0cBA" + noise(60), "twitter-bearer": "A".repeat(22) + noise(60), "contentful-token": "CFPAT-" + noise(43), "adobe-secret": "p8e-" + noise(32), "easypost-key": "EZAK" + noise(54), "shippo-key": "shippo_live_" + noise(40, HEX),
  "duffel-key": "duffel_live_" + noise(43), "typeform-token": "tfp_" + noise(59), "prefect-key": "pnu_" + noise(36), "readme-key": "rdme_" + noise(70, LOW), "octopus-key": "API-" + noise(26, UP), "openshift-token": "sha256~" + noise(43), "sallyport-key": "spk_agent_" + noise(10) + "_" + noise(32), "authorization-header": "Authorization: Bearer " + noise(30), "api-key-header": "x-api-key: " + noise(24, LOW),
};

// What must not survive: the sample without the part that only says what it is.
const core = (sample) => sample.replace(/^(?:postgres:\/\/|AccountKey=|https:\/\/\S+?(?:sig=|services\/|webhooks\/|webhookb2\/)|Authorization: Bearer |x-api-key: )/, "").split("@db.test")[0];

test("every rule removes its own format, in every place text comes from", () => {
  const names = new Set();
  for (const [rule, sample] of Object.entries(SAMPLES)) {
    for (const around of [(s) => s, (s) => `see ${s} for it`, (s) => `"${s}"`, (s) => `(${s})`, (s) => `${s}\nnext`]) {
      const redactor = new Redactor();
      const out = redactor.text(around(sample));
      assert.ok(!out.includes(core(sample)), `${rule}: ${out}`);
      assert.match(out, /\[REDACTED:[a-z0-9-]+\]/);
      redactor.report().forEach((r) => names.add(r.rule));
    }
  }
  assert.ok(Object.keys(SAMPLES).length >= 60);
  assert.ok(secretRuleCount >= 60);
  for (const rule of Object.keys(SAMPLES)) assert.ok(names.has(rule) || ["jwe", "openai-legacy-key"].includes(rule), `${rule} never named a hit; found ${[...names].sort()}`);
});

test("assignments: irregular values of telling names, hex keys, passwords", () => {
  const out = (text) => new Redactor().text(text);
  const strong = noise(28);
  for (const line of [`API_KEY=${strong}`, `api_key: "${strong}"`, `const clientSecret = '${strong}';`, `"privateKey": "${strong}"`, `auth_token => ${strong}`, `SESSION_SECRET=${noise(32, HEX)}`, `DB_PASSWORD=${noise(7)}4x`, `password: "${noise(8)}9"`, `x = "${noise(44)}"`]) {
    assert.match(out(line), /\[REDACTED:/, line);
  }
  for (const line of ["token: request.headers.authorization", "const token = getToken(user, session)", "API_KEY=your-api-key-goes-here-please", "password: string", "api_key: ${API_KEY_FROM_ENVIRONMENT}", "secret = process.env.SOME_SECRET_VALUE_2", "token_endpoint: https://login.example.test/oauth2/token", "PASSWORD=changeme-1234567890abc",
    "tokenizer = AutoTokenizer.from_pretrained(name)", "integrity: sha512-" + noise(86) + "==", "commit " + noise(40, HEX), "author_keywords: [a, b]"]) {
    assert.equal(out(line), line);
  }
});

test("redaction is counted, idempotent, and before cutting", (t) => {
  const redactor = new Redactor();
  const once = redactor.text(`a ${SAMPLES["github-token"]} b ${SAMPLES["github-token"]}`);
  assert.equal(redactor.text(once), once);
  assert.deepEqual(redactor.report(), [{ rule: "github-token", count: 2 }]);
  const key = SAMPLES["github-token"];
  const doc = collect(write(scratch(t), { "README.md": "# A\n" + "x".repeat(8192 - 30) + " " + key }), "--no-git");
  assert.ok(!doc.readme.excerpt.includes(key.slice(0, 8)));
  assert.deepEqual(doc.redactions, [{ rule: "github-token", count: 1 }]);
});

test("a credential hidden by zero-width characters is still one", (t) => {
  const key = SAMPLES["stripe-key"];
  const doc = collect(write(scratch(t), { "README.md": `# A ${key.slice(0, 12)}\u200B${key.slice(12)}` }), "--no-git");
  assert.ok(!JSON.stringify(doc).includes(key.slice(12)));
});

test("--check: exit 3 when something was removed, 0 when clean; the output is printed either way", (t) => {
  const dir = scratch(t);
  git(dir, "init", "-q");
  write(dir, { "README.md": "# Clean" });
  git(dir, "add", "."), git(dir, "commit", "-qm", "feat: clean");
  assert.equal(node(collector, [`--root=${dir}`, "--check"]).status, 0);
  git(dir, "commit", "-q", "--allow-empty", "-m", `fix: rotate ${SAMPLES["slack-token"]}`);
  write(dir, { "docs/a.md": `# T ${SAMPLES.jwt}`, ["b-" + SAMPLES["aws-access-key-id"] + ".js"]: "1" });
  const result = node(collector, [`--root=${dir}`, "--check", `--what-changed=uses ${SAMPLES["npm-token"]}`]);
  assert.equal(result.status, 3);
  assert.match(result.stderr, /slack-token ×\d/);
  const doc = JSON.parse(result.stdout);
  for (const name of ["slack-token", "jwt", "aws-access-key-id", "npm-token"]) {
    assert.ok(!result.stdout.includes(SAMPLES[name]), name);
    assert.ok(doc.redactions.some((r) => r.rule === name), name);
  }
  assert.equal(node(collector, [`--root=${dir}`]).status, 0);
});

test("ordinary source is left alone: at most one line in a hundred", (t) => {
  const root = path.resolve(scripts, "../../..");
  const files = fs.readdirSync(root, { recursive: true }).map(String).filter((f) => /\.(?:go|mjs|md|json)$/.test(f) && !/(^|[\\/])(?:node_modules|\.git|var)[\\/]/.test(f));
  let lines = 0;
  let touched = 0;
  for (const file of files) {
    const text = fs.readFileSync(path.join(root, file), "utf8");
    const redactor = new Redactor();
    const out = redactor.text(text).split("\n");
    text.split("\n").forEach((line, i) => { if (line !== out[i]) touched++; });
    lines += out.length;
  }
  assert.ok(lines > 5000, `${lines} lines`);
  t.diagnostic(`${touched} of ${lines} lines`);
  assert.ok(touched <= lines / 100, `${touched} of ${lines}`);
});

test("entropy is Shannon's", () => {
  assert.equal(entropy("aaaa"), 0);
  assert.equal(entropy("abcd"), 2);
});
