#!/usr/bin/env node
// repo-context describes a repository as facts that a launch can be prepared from.
//
// It reads files and git history below one folder and prints one JSON document. It sends nothing, starts no
// program but `git`, writes nothing unless --out names a file, never opens files that usually hold credentials,
// and replaces whatever still looks like a credential before anything is printed.
//
// Node 18 or newer, no dependencies. `node repo-context.mjs --help` lists the flags.

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const SCHEMA = "repo-context/1";
const VERSION = "1.0.0";

const LIMITS = {
  depth: 8,
  entries: 20_000,
  fileBytes: 256 * 1024,
  sourceFiles: 5_000,
  sourceBytes: 24 * 1024 * 1024,
  commits: 30,
  changedFiles: 200,
  newestFiles: 50,
  routes: 300,
  readmeBytes: 8 * 1024,
  changelogBytes: 4 * 1024,
  docs: 60,
  textField: 2_000,
  packages: 60,
};

// ---------------------------------------------------------------------------------------------------------------
// Flags
// ---------------------------------------------------------------------------------------------------------------

const FLAGS = {
  "what-changed": { value: "TEXT", help: "what you built or changed, in your own words" },
  "target-customer": { value: "TEXT", help: "who it is for" },
  goal: { value: "TEXT", help: "what the launch is to bring: users, revenue, feedback or waitlist" },
  since: { value: "REF|14d", help: "history to report: a tag, branch or commit, or an age such as 36h, 14d, 6w" },
  root: { value: "DIR", help: "folder to describe (default: the repository around the current folder)" },
  package: { value: "PATH", help: "package of a monorepo to describe (default: the one with most changes)" },
  "max-bytes": { value: "N", help: "upper bound of the output in bytes, 4096 to 1048576 (default 65536)" },
  out: { value: "FILE", help: "where to write; - is standard output (default -)" },
  format: { value: "json|pretty", help: "one line or indented (default json)" },
  "no-git": { help: "do not use git; report the newest files instead" },
  check: { help: "exit 3 when a credential had to be removed from the output" },
  help: { help: "print this text" },
  version: { help: "print the version" },
};

class UsageError extends Error {}

function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[b.length];
}

function unknownFlag(name) {
  const names = Object.keys(FLAGS);
  const near = names.map((n) => [distance(name, n), n]).sort((a, b) => a[0] - b[0])[0];
  const hint = near[0] <= Math.max(2, Math.floor(name.length / 3)) ? ` Did you mean --${near[1]}?` : "";
  return new UsageError(`unknown flag --${name}.${hint}\nvalid flags: ${names.map((n) => "--" + n).join(" ")}`);
}

export function parseFlags(argv) {
  const given = {};
  for (let i = 0; i < argv.length; i++) {
    const match = /^--([^=]+)(?:=([\s\S]*))?$/.exec(argv[i]);
    if (!match) throw new UsageError(`unexpected argument ${JSON.stringify(argv[i])}; every option is a --flag`);
    const [, name, inline] = match;
    const flag = Object.hasOwn(FLAGS, name) ? FLAGS[name] : null;
    if (!flag) throw unknownFlag(name);
    if (!flag.value) {
      if (inline !== undefined) throw new UsageError(`--${name} takes no value`);
      given[name] = true;
      continue;
    }
    if (inline === undefined && (i + 1 >= argv.length || argv[i + 1].startsWith("--"))) {
      throw new UsageError(`--${name} needs a value: --${name}=${flag.value}`);
    }
    given[name] = inline === undefined ? argv[++i] : inline;
  }
  return checkFlags(given);
}

function checkFlags(given) {
  const options = { format: "json", out: "-", "max-bytes": "65536", ...given };
  if (!["json", "pretty"].includes(options.format)) {
    throw new UsageError(`--format is json or pretty, not ${JSON.stringify(options.format)}`);
  }
  const bytes = Number(options["max-bytes"]);
  if (!Number.isInteger(bytes) || bytes < 4096 || bytes > 1048576) {
    throw new UsageError(`--max-bytes is a whole number from 4096 to 1048576, not ${JSON.stringify(options["max-bytes"])}`);
  }
  if (options.since !== undefined && (options.since === "" || options.since.startsWith("-"))) {
    throw new UsageError("--since is a tag, branch or commit, or an age such as 14d");
  }
  if (options.out === "") throw new UsageError("--out needs a file name or -");
  return { ...options, maxBytes: bytes };
}

function helpText() {
  const rows = Object.entries(FLAGS).map(([name, flag]) => {
    const left = `  --${name}${flag.value ? "=" + flag.value : ""}`;
    return left.padEnd(28) + flag.help;
  });
  return [
    "Usage: node repo-context.mjs [flags]",
    "",
    "Prints a JSON description of a repository (schema repo-context/1): what changed, commits, changed files,",
    "routes, README. Reads only; sends nothing; removes credentials.",
    "",
    ...rows,
    "",
    "Exit codes: 0 printed, 1 could not run, 2 wrong flags, 3 --check found a credential.",
    "",
  ].join("\n");
}

// ---------------------------------------------------------------------------------------------------------------
// Redaction
// ---------------------------------------------------------------------------------------------------------------

// Each rule is a credential format recognised by its shape. Rules with a named group `keep` replace only what
// follows that group, so that the text still says what the value was for.
const SECRET_RULES = [
  ["private-key", /-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|$)/g],
  ["url-userinfo", /(?<keep>\b[a-z][a-z0-9+.-]{1,30}:\/\/)[^\s\/@:"'<>`]{0,200}:[^\s\/@"'<>`]{1,300}(?=@)/gi],
  ["jwt", /\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{8,}/g],
  ["jwe", /\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+/g],
  ["aws-access-key-id", /\b(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z2-7]{16}\b/g],
  ["aws-bedrock-key", /\bABSK[A-Za-z0-9+\/]{100,}={0,2}/g],
  ["gcp-api-key", /\bAIza[A-Za-z0-9_-]{35}/g],
  ["google-oauth-secret", /\bGOCSPX-[A-Za-z0-9_-]{24,}/g],
  ["google-access-token", /\bya29\.[A-Za-z0-9_-]{20,}/g],
  ["google-refresh-token", /\b1\/\/0[A-Za-z0-9_-]{30,}/g],
  ["azure-storage-key", /(?<keep>\bAccountKey=)[A-Za-z0-9+\/]{40,}={0,2}/gi],
  ["azure-sas-signature", /(?<keep>[?&]sig=)[A-Za-z0-9%+\/]{30,}={0,2}/g],
  ["azure-client-secret", /\b[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}/g],
  ["alibaba-access-key", /\bLTAI[A-Za-z0-9]{12,26}\b/g],
  ["tencent-secret-id", /\bAKID[A-Za-z0-9]{28,36}\b/g],
  ["yandex-token", /\bt1\.[A-Za-z0-9_-]{20,}={0,2}\.[A-Za-z0-9_-]{40,}/g],
  ["yandex-api-key", /\bAQVN[A-Za-z0-9_-]{35,38}/g],
  ["digitalocean-token", /\bdo[opr]_v1_[a-f0-9]{64}\b/g],
  ["defined-networking-token", /\bdnkey-[a-z0-9=_-]{26,}-[a-z0-9=_-]{52,}/gi],
  ["heroku-key", /\bHRKU-[A-Za-z0-9_-]{30,}/g],
  ["fly-token", /\b(?:fo1_[A-Za-z0-9_-]{40,}|fm[12][ar]?_[A-Za-z0-9+\/=_-]{60,})/g],
  ["netlify-token", /\bnfp_[A-Za-z0-9]{36,}/g],
  ["vercel-token", /\bvc[apikr]_[A-Za-z0-9]{24,}/g],
  ["cloudflare-origin-ca", /\bv1\.0-[a-f0-9]{24}-[a-f0-9]{100,}/g],
  ["github-token", /\bgh[pousr]_[A-Za-z0-9]{36,255}/g],
  ["github-fine-grained-token", /\bgithub_pat_[A-Za-z0-9_]{50,255}/g],
  ["gitlab-token", /\bgl(?:pat|dt|rt|ptt|cbt|ft|soat|agent|imt|oas|ffct|rtr)-[A-Za-z0-9_.=-]{18,}/g],
  ["gitlab-runner-registration", /\bGR1348941[A-Za-z0-9_-]{20,}/g],
  ["bitbucket-token", /\bATBB[A-Za-z0-9]{28,36}\b/g],
  ["atlassian-token", /\bAT(?:ATT|CTT)3x[A-Za-z0-9_=-]{60,}/g],
  ["slack-token", /\bxox[abcdeoprs]-(?:\d+-)?[A-Za-z0-9-]{10,}/g],
  ["slack-app-token", /\bxapp-\d-[A-Z0-9]+-\d+-[a-z0-9]{20,}/gi],
  ["slack-webhook", /(?<keep>hooks\.slack(?:-gov)?\.com\/)(?:services|workflows|triggers)\/[A-Za-z0-9+\/]{20,}/g],
  ["discord-webhook", /(?<keep>discord(?:app)?\.com\/api\/webhooks\/)\d{15,22}\/[A-Za-z0-9_-]{50,}/g],
  ["discord-bot-token", /\b[MNO][A-Za-z\d_-]{23,27}\.[A-Za-z\d_-]{6}\.[A-Za-z\d_-]{27,45}/g],
  ["teams-webhook", /(?<keep>\.webhook\.office\.com\/webhookb2\/)[A-Za-z0-9@\/-]{60,}/g],
  ["telegram-bot-token", /\b\d{8,10}:AA[A-Za-z0-9_-]{32,34}\b/g],
  ["stripe-key", /\b(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{10,}/g],
  ["stripe-webhook-secret", /\bwhsec_[A-Za-z0-9+\/=]{24,}/g],
  ["square-token", /\b(?:sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,}|EAAA[A-Za-z0-9_-]{60})/g],
  ["braintree-token", /\baccess_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}/g],
  ["flutterwave-key", /\bFLWSECK(?:_TEST)?-[a-zA-Z0-9]{12,}(?:-X)?/g],
  ["plaid-token", /\baccess-(?:sandbox|development|production)-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}/g],
  ["shopify-token", /\bshp(?:at|ca|pa|ss|ua)_[a-fA-F0-9]{32}/g],
  ["openai-key", /\bsk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}/g],
  ["openai-legacy-key", /\bsk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}/g],
  ["anthropic-key", /\bsk-ant-[A-Za-z0-9_-]{20,}/g],
  ["openrouter-key", /\bsk-or-(?:v1-)?[A-Za-z0-9]{32,}/g],
  ["generic-sk-key", /\bsk-[A-Za-z0-9]{32,}\b/g],
  ["hugging-face-token", /\b(?:hf|api_org)_[A-Za-z]{34}\b/g],
  ["replicate-token", /\br8_[A-Za-z0-9]{37}\b/g],
  ["groq-key", /\bgsk_[A-Za-z0-9]{40,}/g],
  ["xai-key", /\bxai-[A-Za-z0-9]{60,}/g],
  ["perplexity-key", /\bpplx-[A-Za-z0-9]{40,}/g],
  ["sendgrid-key", /\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,64}/g],
  ["mailgun-key", /\bkey-[a-f0-9]{32}\b/g],
  ["mailchimp-key", /\b[a-f0-9]{32}-us\d{1,2}\b/g],
  ["brevo-key", /\bx(?:keysib|smtpsib)-[a-f0-9]{64}(?:-[A-Za-z0-9]{16})?/g],
  ["resend-key", /\bre_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}\b/g],
  ["twilio-key", /\b(?:SK|AC)[a-f0-9]{32}\b/g],
  ["npm-token", /\bnpm_[A-Za-z0-9]{36}\b/g],
  ["pypi-token", /\bpypi-AgE[A-Za-z0-9_-]{50,}/g],
  ["rubygems-key", /\brubygems_[a-f0-9]{48}\b/g],
  ["crates-io-token", /\bcio[A-Za-z0-9]{32}\b/g],
  ["nuget-key", /\boy2[a-z0-9]{43}\b/g],
  ["docker-token", /\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{24,}/g],
  ["clojars-token", /\bCLOJARS_[A-Za-z0-9]{60}\b/gi],
  ["artifactory-key", /\b(?:AKCp[A-Za-z0-9]{60,}|cmVmdGtu[A-Za-z0-9]{50,})/g],
  ["doppler-token", /\bdp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]+\.)?[A-Za-z0-9]{40,44}/g],
  ["vault-token", /\bhv[sbr]\.[A-Za-z0-9_-]{24,}/g],
  ["terraform-cloud-token", /\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}/g],
  ["pulumi-token", /\bpul-[a-f0-9]{40}\b/g],
  ["1password-token", /\bops_eyJ[A-Za-z0-9+\/=_-]{80,}/g],
  ["age-secret-key", /\bAGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}/g],
  ["linear-key", /\blin_(?:api|oauth)_[A-Za-z0-9]{32,}/g],
  ["notion-token", /\b(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43})\b/g],
  ["airtable-token", /\bpat[A-Za-z0-9]{14}\.[a-f0-9]{64}\b/g],
  ["figma-token", /\bfig(?:d|or|u)_[A-Za-z0-9_-]{36,}/g],
  ["postman-key", /\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}\b/g],
  ["databricks-token", /\bdapi[a-f0-9]{32}(?:-\d)?\b/g],
  ["planetscale-token", /\bpscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=.-]{30,}/g],
  ["supabase-key", /\b(?:sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{20,})/g],
  ["new-relic-key", /\bNR(?:AK|IQ|AL|JS|II|BR|SP)-[A-Za-z0-9_-]{19,}/g],
  ["sentry-token", /\bsntry[su]_[A-Za-z0-9+\/=_-]{40,}/g],
  ["grafana-token", /\bgl(?:sa_[A-Za-z0-9]{32}_[a-f0-9]{8}|c_[A-Za-z0-9+\/]{32,}={0,2})/g],
  ["dynatrace-token", /\bdt0[a-z]\d{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}/g],
  ["launchdarkly-key", /\b(?:api|sdk|mob)-[a-f0-9]{8}-[a-f0-9]{4}-4[a-f0-9]{3}-[89ab][a-f0-9]{3}-[a-f0-9]{12}\b/g],
  ["posthog-personal-key", /\bph[xs]_[A-Za-z0-9]{40,}/g],
  ["facebook-token", /\bEAA(?:CEdEose0cBA|M)[A-Za-z0-9]{20,}/g],
  ["twitter-bearer", /\bA{22}[A-Za-z0-9%]{50,}/g],
  ["contentful-token", /\bCFPAT-[A-Za-z0-9_-]{40,}/g],
  ["adobe-secret", /\bp8e-[A-Za-z0-9]{32}\b/g],
  ["easypost-key", /\bEZ[AT]K[A-Za-z0-9]{54}\b/g],
  ["shippo-key", /\bshippo_(?:live|test)_[a-f0-9]{40}\b/g],
  ["duffel-key", /\bduffel_(?:live|test)_[A-Za-z0-9_=-]{43}/g],
  ["typeform-token", /\btfp_[A-Za-z0-9_.=-]{40,}/g],
  ["prefect-key", /\bpn[bu]_[A-Za-z0-9]{36}\b/g],
  ["readme-key", /\brdme_[a-z0-9]{70}\b/g],
  ["octopus-key", /\bAPI-[A-Z0-9]{25,27}\b/g],
  ["openshift-token", /\bsha256~[A-Za-z0-9_-]{43}\b/g],
  ["sallyport-key", /\bspk_[a-z]+_[A-Za-z0-9]+_[A-Za-z0-9_-]{8,}/g],
  ["authorization-header", /(?<keep>\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+)[A-Za-z0-9+\/_.~=-]{12,}/gi],
  ["api-key-header", /(?<keep>\bx-api-key["']?\s*[:=]\s*["']?)[A-Za-z0-9+\/_.~=-]{12,}/gi],
];

const SECRET_NAME = "secret|token|passw(?:or)?d|passphrase|pwd|api[_-]?key|apikey|access[_-]?key|auth[_-]?key|account[_-]?key|credential|private[_-]?key|signing[_-]?key|encryption[_-]?key|master[_-]?key|cookie[_-]?key|dsn|salt";
const NAMED_ASSIGNMENT = new RegExp(
  `(?<keep>\\b[\\w.-]{0,60}(?:${SECRET_NAME})[\\w-]{0,40}["'\`]?\\s{0,4}(?:=>|:=|=|:)\\s{0,4}["'\`]?)(?<value>[A-Za-z0-9+/_=.~!@#$%^&*-]{8,400})`, "gi");
const PLAIN_ASSIGNMENT = /(?<keep>\b[A-Za-z_][\w.-]{0,60}["'`]?\s{0,4}(?:=>|:=|=|:)\s{0,4}["'`]?)(?<value>[A-Za-z0-9+\/_=-]{32,400})/g;
const PLACEHOLDER = /example|placeholder|change[-_]?me|your[-_]|dummy|sample|redacted|xxxx|\.\.\.|0000000|1234567|process\.env|import\.meta|os\.environ|getenv|\$\{|^\$[A-Z_(]|^<|^%[A-Z_]+%/i;

export function entropy(text) {
  const counts = new Map();
  for (const ch of text) counts.set(ch, (counts.get(ch) || 0) + 1);
  let bits = 0;
  for (const n of counts.values()) bits -= (n / text.length) * Math.log2(n / text.length);
  return bits;
}

// A value assigned to a name that speaks of secrets: long and irregular, or a hex key, or a password with digits
// in it. Code such as `token: request.headers.token` must survive, so calls, paths and plain words do not count.
function namedValueIsSecret(name, value) {
  if (PLACEHOLDER.test(value) || /^[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)+$/.test(value)) return false;
  if (/^[a-f0-9]{32,}$/i.test(value)) return entropy(value) >= 2.8;
  if (value.length >= 20) return entropy(value) >= 4.0 && /\d/.test(value) && /[A-Za-z]/.test(value);
  const isPassword = /passw|pwd|passphrase|secret/i.test(name);
  return isPassword && /\d/.test(value) && /[A-Za-z]/.test(value) && entropy(value) >= 2.5;
}

function plainValueIsSecret(value) {
  if (PLACEHOLDER.test(value) || /^sha(?:1|256|384|512)-/.test(value)) return false;
  if ((value.match(/[\/_-]/g) || []).length > value.length / 10) return false;
  return entropy(value) >= 4.5 && /\d/.test(value) && /[a-z]/.test(value) && /[A-Z]/.test(value);
}

export class Redactor {
  constructor() {
    this.counts = new Map();
  }

  #hit(rule) {
    this.counts.set(rule, (this.counts.get(rule) || 0) + 1);
    return `[REDACTED:${rule}]`;
  }

  text(input) {
    let out = input;
    for (const [rule, pattern] of SECRET_RULES) {
      out = out.replace(pattern, (...args) => {
        const groups = args[args.length - 1];
        return (typeof groups === "object" && groups ? groups.keep || "" : "") + this.#hit(rule);
      });
    }
    out = out.replace(NAMED_ASSIGNMENT, (all, keep, value) =>
      namedValueIsSecret(keep, value) ? keep + this.#hit("named-assignment") : all);
    return out.replace(PLAIN_ASSIGNMENT, (all, keep, value) =>
      plainValueIsSecret(value) ? keep + this.#hit("high-entropy-assignment") : all);
  }

  // Every string of a document, so that no field can be forgotten.
  deep(value) {
    if (typeof value === "string") return this.text(value);
    if (Array.isArray(value)) return value.map((v) => this.deep(v));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, this.deep(v)]));
    }
    return value;
  }

  report() {
    return [...this.counts].map(([rule, count]) => ({ rule, count })).sort((a, b) => compare(a.rule, b.rule));
  }
}

export const secretRuleCount = SECRET_RULES.length + 2;

// ---------------------------------------------------------------------------------------------------------------
// Text
// ---------------------------------------------------------------------------------------------------------------

// Code-unit order: the same on every machine, unlike localeCompare.
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

// Control, bidirectional and zero-width characters can hide text from the person who reviews it.
export function plain(text) {
  return text
    .replace(/^\uFEFF/, "")
    .replace(/\r\n?/g, "\n")
    .replace(/[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F\u00AD\u061C\u180E\u200B-\u200F\u202A-\u202E\u2060-\u2069\uFEFF\uFFF9-\uFFFB]/g, "")
    .replace(/[\u{E0000}-\u{E007F}]/gu, "");
}

function cutBytes(text, limit) {
  const buffer = Buffer.from(text, "utf8");
  if (buffer.length <= limit) return { text, cut: 0 };
  let end = limit;
  while (end > 0 && (buffer[end] & 0xc0) === 0x80) end--;
  return { text: buffer.subarray(0, end).toString("utf8"), cut: buffer.length - end };
}

const oneLine = (text) => text.replace(/\s+/g, " ").trim();
const unique = (list) => [...new Set(list)];

// ---------------------------------------------------------------------------------------------------------------
// Files
// ---------------------------------------------------------------------------------------------------------------

const IGNORED_DIRS = new Set((".git .hg .svn node_modules bower_components vendor dist build .next .nuxt .output .svelte-kit " +
  ".vercel .netlify .turbo .cache .parcel-cache .astro .terraform target venv .venv __pycache__ .tox .mypy_cache .pytest_cache " +
  ".gradle .idea coverage Pods DerivedData .sallyport storybook-static").split(" "));

const FORBIDDEN_FILE = new RegExp([
  "^\\.env(?:$|\\..*|rc$)", "\\.(?:env|pem|key|p12|pfx|pkcs12|jks|keystore|kdbx?|ppk|asc|gpg|p8|ovpn|tfstate|tfvars)(?:$|\\.)",
  "^id_[a-z0-9]+", "^\\.(?:npmrc|yarnrc|netrc|pypirc|pgpass|my\\.cnf|dockercfg|git-credentials|htpasswd|s3cfg|boto|vault-token)$",
  "^_netrc$", "^\\.yarnrc\\.yml$", "^(?:credentials|application_default_credentials)(?:\\.(?:json|ya?ml|toml|ini|db))?$",
  "service[-_]?account.*\\.json$", "^(?:secrets?|vault)\\.(?:json|ya?ml|toml|ini|txt)$", "^kubeconfig", "^gcloud.*\\.json$", "^master\\.key$",
].join("|"), "i");
const FORBIDDEN_DIR = /^\.(?:aws|azure|ssh|gnupg|kube|docker|gcloud)$/i;
const ENV_EXAMPLE = /^(?:\.env\.(?:example|sample|template|dist|defaults)|(?:example|sample)\.env|env\.(?:example|sample))$/i;

const baseName = (p) => p.slice(p.lastIndexOf("/") + 1);
const dirName = (p) => (p.includes("/") ? p.slice(0, p.lastIndexOf("/")) : "");
const joinPath = (dir, rest) => path.posix.normalize(dir ? `${dir}/${rest}` : rest).replace(/^\.\/?$/, "");
const forbidden = (p) => FORBIDDEN_FILE.test(baseName(p)) || p.split("/").some((part) => FORBIDDEN_DIR.test(part));

// One .gitignore line as a test on a path relative to the file's folder.
function ignoreRule(line) {
  let glob = line.replace(/(?<!\\)\s+$/, "");
  if (!glob || glob.startsWith("#")) return null;
  const negate = glob.startsWith("!");
  if (negate) glob = glob.slice(1);
  glob = glob.replace(/^\\([#!])/, "$1");
  const dirOnly = glob.endsWith("/");
  glob = glob.replace(/\/+$/, "");
  const anchored = glob.includes("/");
  glob = glob.replace(/^\//, "");
  let source = "";
  for (let i = 0; i < glob.length; i++) {
    const ch = glob[i];
    if (ch === "*" && glob[i + 1] === "*") {
      const slash = glob[i + 2] === "/";
      source += slash ? "(?:.*/)?" : ".*";
      i += slash ? 2 : 1;
    } else if (ch === "*") source += "[^/]*";
    else if (ch === "?") source += "[^/]";
    else if (ch === "[" && glob.indexOf("]", i + 2) > 0) {
      const end = glob.indexOf("]", i + 2);
      source += "[" + glob.slice(i + 1, end).replace(/^!/, "^").replace(/\\/g, "\\\\") + "]";
      i = end;
    } else if (ch === "\\" && i + 1 < glob.length) source += glob[++i].replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    else source += ch.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  }
  try {
    return { test: new RegExp((anchored ? "^" : "(?:^|/)") + source + "$"), negate, dirOnly };
  } catch {
    return null;
  }
}

class Tree {
  constructor(root) {
    this.root = root;
    this.files = [];
    this.sizes = new Map();
    this.warnings = [];
    this.truncated = {};
    this.cache = new Map();
    this.links = 0;
  }

  #ignored(layers, rel, isDir) {
    let hit = false;
    for (const { base, rules } of layers) {
      const local = base ? rel.slice(base.length + 1) : rel;
      for (const rule of rules) {
        if ((!rule.dirOnly || isDir) && rule.test.test(local)) hit = !rule.negate;
      }
    }
    return hit;
  }

  walk() {
    let entries = 0;
    let tooDeep = 0;
    const queue = [{ rel: "", depth: 0, layers: [] }];
    for (let at = 0; at < queue.length; at++) {
      const { rel, depth, layers: parents } = queue[at];
      let list;
      try {
        list = fs.readdirSync(path.join(this.root, rel), { withFileTypes: true });
      } catch (error) {
        this.warnings.push(`folder ${rel || "."} could not be read (${error.code}); its files are left out`);
        continue;
      }
      list.sort((a, b) => compare(a.name, b.name));
      let layers = parents;
      if (list.some((e) => e.name === ".gitignore" && e.isFile())) {
        const text = this.read(rel ? `${rel}/.gitignore` : ".gitignore") || "";
        layers = [...parents, { base: rel, rules: text.split("\n").map(ignoreRule).filter(Boolean) }];
      }
      for (const entry of list) {
        if (++entries > LIMITS.entries) {
          this.truncated.entries = 1;
          this.warnings.push(`more than ${LIMITS.entries} entries; the rest of the tree was not read. Name a --package or a smaller --root`);
          return this;
        }
        const child = rel ? `${rel}/${entry.name}` : entry.name;
        if (entry.isSymbolicLink()) this.links++;
        else if (entry.isDirectory()) {
          if (IGNORED_DIRS.has(entry.name) || FORBIDDEN_DIR.test(entry.name) || this.#ignored(layers, child, true)) continue;
          if (depth + 1 > LIMITS.depth) tooDeep++;
          else queue.push({ rel: child, depth: depth + 1, layers });
        } else if (entry.isFile() && !this.#ignored(layers, child, false)) this.files.push(child);
      }
    }
    if (tooDeep) {
      this.truncated.depth = tooDeep;
      this.warnings.push(`${tooDeep} folders lie deeper than ${LIMITS.depth} levels and were not read`);
    }
    this.files.sort(compare);
    return this;
  }

  // Text of a file, or null when it may not be opened, is binary, too large, or not an ordinary file.
  read(rel) {
    if (this.cache.has(rel)) return this.cache.get(rel);
    const text = this.#open(rel);
    this.cache.set(rel, text);
    return text;
  }

  #open(rel) {
    if (forbidden(rel) && !ENV_EXAMPLE.test(baseName(rel))) return null;
    const full = path.join(this.root, rel);
    try {
      const stat = fs.lstatSync(full);
      if (!stat.isFile()) return null;
      if (stat.size > LIMITS.fileBytes) {
        this.truncated.largeFiles = (this.truncated.largeFiles || 0) + 1;
        return null;
      }
      const buffer = fs.readFileSync(full);
      return buffer.subarray(0, 8192).includes(0) ? null : plain(buffer.toString("utf8"));
    } catch (error) {
      if (error.code !== "ENOENT") this.warnings.push(`file ${rel} could not be read (${error.code})`);
      return null;
    }
  }

  has(rel) {
    if (!this.set || this.set.size !== this.files.length) this.set = new Set(this.files);
    return this.set.has(rel);
  }

  json(rel) {
    const text = this.read(rel);
    if (!text) return null;
    try {
      const value = JSON.parse(text);
      return value && typeof value === "object" ? value : null;
    } catch {
      this.warnings.push(`${rel} is not valid JSON; what it says was left out`);
      return null;
    }
  }

  under(dir) {
    return dir ? this.files.filter((f) => f.startsWith(dir + "/")) : this.files;
  }
}

// The TOML that manifests use: tables, strings and arrays of strings. Anything else is skipped.
function readToml(text) {
  const out = {};
  let table = out;
  const lines = (text || "").split("\n");
  for (let i = 0; i < lines.length; i++) {
    const head = /^\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$/.exec(lines[i]);
    if (head) {
      table = out;
      for (const part of head[1].split(".").map((p) => p.trim().replace(/^["']|["']$/g, ""))) {
        if (!Object.hasOwn(table, part) || typeof table[part] !== "object" || Array.isArray(table[part])) table[part] = {};
        table = table[part];
      }
      continue;
    }
    const pair = /^\s*("[^"]+"|'[^']+'|[\w.-]+)\s*=\s*(.*)$/.exec(lines[i]);
    if (!pair || pair[1] === "__proto__") continue;
    const key = pair[1].replace(/^["']|["']$/g, "");
    let value = pair[2];
    if (value.startsWith("[")) {
      while (!/\]\s*(?:#.*)?$/.test(value) && i + 1 < lines.length) value += "\n" + lines[++i];
      table[key] = [...value.matchAll(/"([^"\n]*)"|'([^'\n]*)'/g)].map((m) => m[1] ?? m[2]);
    } else {
      const text1 = /^"((?:[^"\\]|\\.)*)"|^'([^']*)'/.exec(value);
      table[key] = text1 ? (text1[1] ?? text1[2]) : value.replace(/\s*#.*$/, "");
    }
  }
  return out;
}

// ---------------------------------------------------------------------------------------------------------------
// Git
// ---------------------------------------------------------------------------------------------------------------

// Settings of a repository can name programs to run (fsmonitor, external diffs, signature checks); all are off.
const GIT_SAFE = ["--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.quotepath=false", "-c", "log.showSignature=false",
  "-c", "core.hooksPath=/dev/null", "-c", "color.ui=false"];

class Git {
  constructor(root) {
    this.root = root;
  }

  run(...args) {
    try {
      return execFileSync("git", [...GIT_SAFE, "-C", this.root, ...args], {
        encoding: "utf8", maxBuffer: 32 * 1024 * 1024, timeout: 15_000, windowsHide: true, stdio: ["ignore", "pipe", "pipe"],
        env: { ...process.env, LC_ALL: "C", GIT_TERMINAL_PROMPT: "0", GIT_OPTIONAL_LOCKS: "0" },
      });
    } catch (error) {
      this.error = error.code === "ENOENT" ? "git is not installed" : oneLine(String(error.stderr || error.message)).slice(0, 200);
      return null;
    }
  }

  commit(ref) {
    const out = this.run("rev-parse", "--verify", "--quiet", ref + "^{commit}");
    return out ? out.trim() : null;
  }
}

const CONVENTIONAL = /^(?<type>[a-z]{2,12})(?:\((?<scope>[^()\n]{1,60})\))?(?<bang>!)?:\s+(?<subject>\S.*)$/i;
const TYPES_SHOWN = new Set(["feat", "feature", "fix", "perf", "revert", "security", "hotfix"]);
const TYPES_HIDDEN = new Set(["build", "chore", "ci", "docs", "doc", "refactor", "style", "test", "tests", "deps", "release", "wip", "lint"]);
const INTERNAL_SCOPE = /^(?:ci|deps?|build|tests?|lint|internal|dev|release|docs?)$/i;
const INTERNAL_WORDS = /\b(?:bump|refactor|lint|typos?|tests?|ci|wip|clean ?up|reformat|gofmt|prettier|eslint|dependabot|dependenc(?:y|ies)|merge|changelog|tidy|rename)\b/i;

export function parseSubject(subject, paths = []) {
  const match = CONVENTIONAL.exec(subject);
  const type = match ? match.groups.type.toLowerCase() : null;
  const known = type && (TYPES_SHOWN.has(type) || TYPES_HIDDEN.has(type));
  const scope = known ? match.groups.scope || null : null;
  const touchesProduct = paths.length === 0 || paths.some((p) => ["code", "style", "asset", "migration"].includes(fileKind(p)));
  let userVisible;
  if (known && match.groups.bang) userVisible = true;
  else if (known) userVisible = TYPES_SHOWN.has(type) && touchesProduct && !(scope && INTERNAL_SCOPE.test(scope));
  else userVisible = paths.length > 0 && touchesProduct && !INTERNAL_WORDS.test(subject);
  return { type: known ? type : null, scope, subject: known ? match.groups.subject : subject, userVisible };
}

export function fileKind(p) {
  const name = baseName(p).toLowerCase();
  if (/(^|\/)(?:tests?|__tests__|specs?|e2e|testdata|__mocks__|fixtures?|cypress)\//i.test(p) || /(?:[._-](?:test|spec)s?\.[a-z]+|_test\.[a-z]+)$|^(?:test_.*\.py|conftest\.py)$/.test(name)) return "test";
  if (/^(?:package-lock\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?|go\.sum|cargo\.lock|poetry\.lock|uv\.lock|composer\.lock|gemfile\.lock)$/.test(name)) return "lock";
  if (/(^|\/)(?:\.github\/workflows|\.circleci|\.gitlab|\.ci|\.buildkite)\//.test(p) || /^(?:\.gitlab-ci\.ya?ml|jenkinsfile|azure-pipelines\.ya?ml|\.travis\.yml)$/.test(name)) return "ci";
  if (/(^|\/)(?:migrations?|db\/migrate)\//.test(p)) return "migration";
  if (/\.(?:md|mdx|rst|adoc|txt)$/.test(name) || /(^|\/)docs?\//.test(p) || /^(?:license|notice|authors|codeowners)/.test(name)) return "docs";
  if (/\.(?:css|scss|sass|less|styl)$/.test(name)) return "style";
  if (/\.(?:png|jpe?g|gif|svg|webp|avif|ico|woff2?|ttf|otf|mp[34]|webm|pdf)$/.test(name)) return "asset";
  if (languageOf(p) || /\.(?:html?|vue|svelte|astro|erb|haml|slim|blade\.php|twig|ejs|hbs|jinja2?|j2|heex|eex|templ|tmpl|gotmpl|graphql|proto|sql)$/.test(name)) return "code";
  if (/\.(?:csv|tsv|ndjson|jsonl|parquet|db|sqlite3?)$/.test(name)) return "data";
  if (/\.(?:json|ya?ml|toml|ini|cfg|conf|xml|properties|lock|tf|hcl|env.*)$/.test(name) || name.startsWith(".") || /^(?:makefile|dockerfile|procfile|rakefile|gemfile|justfile|go\.mod)/.test(name)) return "config";
  return "other";
}

// Where "what changed" starts: the ref asked for, else the last tag (the one before, when the newest release is all
// there is), else the fork point from the main branch, else the oldest commit reported.
function diffBase(git, since, oldest) {
  if (since && !AGE.test(since)) return git.commit(since);
  if (!since) {
    const head = git.commit("HEAD");
    const edited = Boolean(git.run("status", "--porcelain", "--untracked-files=normal"));
    for (const from of ["HEAD", "HEAD^"]) {
      const tag = (git.run("describe", "--tags", "--abbrev=0", from) || "").trim();
      const at = tag && git.commit(tag);
      if (at && (at !== head || edited)) return at;
    }
    for (const main of ["origin/HEAD", "origin/main", "origin/master", "main", "master"]) {
      const at = git.commit(main) && (git.run("merge-base", "HEAD", main) || "").trim();
      if (at && at !== head) return at;
    }
  }
  if (!oldest) return git.commit("HEAD");
  return git.commit(oldest + "^") || "4b825dc642cb6eb9a060e54bf8d69288fbee4904"; // the empty tree
}

const AGE = /^(\d{1,4})([hdwmy])$/;
const AGE_UNIT = { h: "hours", d: "days", w: "weeks", m: "months", y: "years" };

function readCommits(git, since, scope) {
  const range = [];
  const age = since && AGE.exec(since);
  if (age) range.push(`--since=${age[1]} ${AGE_UNIT[age[2]]} ago`, "HEAD");
  else if (since) range.push(`${git.commit(since)}..HEAD`);
  else range.push("HEAD");
  const log = git.run("log", "-n", String(LIMITS.commits), "--no-merges", "--no-ext-diff", "--no-textconv", "--no-renames", "--numstat",
    "--format=%x1e%H%x1f%cI%x1f%s%x1f", ...range, "--", ...(scope ? [scope] : []));
  if (log === null) return null;
  return log.split("\x1e").slice(1).map((record) => {
    const [sha, date, raw, rest] = record.split("\x1f");
    const paths = rest.split("\n").map((l) => l.split("\t")[2]).filter(Boolean);
    const subject = oneLine(plain(raw)).replace(/[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g, "[e-mail]").slice(0, 200);
    const parsed = parseSubject(subject, paths);
    return { sha, date: new Date(date).toISOString(), subject: parsed.subject, type: parsed.type, scope: parsed.scope,
      filesChanged: paths.length, userVisible: parsed.userVisible };
  });
}

const STATUS = { A: "added", M: "modified", D: "deleted", R: "renamed", C: "copied", T: "modified" };

function readChanges(git, base, scope) {
  const where = ["--no-ext-diff", "--no-textconv", "-M", "-z", base, "--", ...(scope ? [scope] : ["."])];
  const numbers = git.run("diff", "--numstat", "--relative", ...where);
  const names = git.run("diff", "--name-status", "--relative", ...where);
  if (numbers === null || names === null) return null;
  const changes = new Map();
  const status = names.split("\0");
  for (let i = 0; i + 1 < status.length;) {
    const code = status[i++][0];
    if (code === "R" || code === "C") i++;
    changes.set(status[i++], { status: STATUS[code] || "modified", additions: null, deletions: null });
  }
  const stat = numbers.split("\0");
  for (let i = 0; i < stat.length; i++) {
    const [added, deleted, name] = stat[i].split("\t");
    if (name === undefined) continue;
    const file = name === "" ? stat[(i += 2)] : name;
    const change = changes.get(file);
    if (change && added !== "-") Object.assign(change, { additions: Number(added), deletions: Number(deleted) });
  }
  for (const file of (git.run("ls-files", "--others", "--exclude-standard", "-z", "--", ...(scope ? [scope] : ["."])) || "").split("\0")) {
    if (file && !changes.has(file) && !file.split("/").some((part) => IGNORED_DIRS.has(part))) changes.set(file, { status: "untracked", additions: null, deletions: null });
  }
  return [...changes].map(([file, change]) => ({ path: file, ...change, kind: fileKind(file) }));
}

// Without history the newest files are the best guess at what was worked on.
function newestFiles(tree) {
  const dated = [];
  for (const file of tree.files) {
    try {
      dated.push({ file, at: Math.floor(fs.lstatSync(path.join(tree.root, file)).mtimeMs) });
    } catch {
      // Gone since the walk: nothing to report.
    }
  }
  dated.sort((a, b) => b.at - a.at || compare(a.file, b.file));
  return dated.slice(0, LIMITS.newestFiles)
    .map(({ file }) => ({ path: file, status: "recent", additions: null, deletions: null, kind: fileKind(file) }));
}

function readHistory(tree, options) {
  const none = (warning) => ({ commits: [], changes: newestFiles(tree), warnings: warning ? [warning] : [], git: null });
  if (options["no-git"]) return none();
  const git = new Git(tree.root);
  if (git.run("rev-parse", "--is-inside-work-tree") === null) return none(`no git history (${git.error}); the newest files are reported instead`);
  if (!git.commit("HEAD")) return none("the repository has no commit yet; the newest files are reported instead");
  if (options.since && !AGE.test(options.since) && !git.commit(options.since)) {
    throw new UsageError(`--since=${options.since} is neither an age such as 14d nor a tag, branch or commit of this repository`);
  }
  const commits = readCommits(git, options.since, options.package) || [];
  const base = diffBase(git, options.since, commits.length ? commits[commits.length - 1].sha : null);
  const changes = base ? readChanges(git, base, options.package) : null;
  const warnings = [];
  if ((git.run("rev-parse", "--is-shallow-repository") || "").trim() === "true") warnings.push("the clone is shallow; older commits and tags are missing");
  if (!changes) warnings.push(`changed files could not be read (${git.error})`);
  return { commits: commits.map((c) => ({ ...c, sha: c.sha.slice(0, 12) })), changes: changes || [], warnings, git };
}

// ---------------------------------------------------------------------------------------------------------------
// Source text: a lexer that knows comments and strings, nothing more
// ---------------------------------------------------------------------------------------------------------------

const C_BLOCK = ["/*", "*/"];
const LANGUAGES = {
  js: { name: "JavaScript", line: ["//"], block: C_BLOCK, quotes: "'\"", template: true, regex: true },
  go: { name: "Go", line: ["//"], block: C_BLOCK, quotes: '"', raw: "`", char: true },
  py: { name: "Python", line: ["#"], quotes: "'\"", triple: true },
  rb: { name: "Ruby", line: ["#"], quotes: "'\"`" },
  php: { name: "PHP", line: ["//", "#"], block: C_BLOCK, quotes: "'\"", multiline: true },
  java: { name: "Java", line: ["//"], block: C_BLOCK, quotes: '"', triple: true, char: true },
  cs: { name: "C#", line: ["//"], block: C_BLOCK, quotes: '"', triple: true, char: true },
  rs: { name: "Rust", line: ["//"], block: C_BLOCK, quotes: '"', hashRaw: true, char: true, multiline: true },
  ex: { name: "Elixir", line: ["#"], quotes: '"', triple: true },
};
const EXTENSIONS = {
  js: "js", jsx: "js", mjs: "js", cjs: "js", ts: "js", tsx: "js", mts: "js", cts: "js", go: "go", py: "py", rb: "rb", ru: "rb", php: "php",
  java: "java", kt: "java", kts: "java", scala: "java", cs: "cs", rs: "rs", ex: "ex", exs: "ex",
};
const LANGUAGE_NAMES = {
  js: "JavaScript", jsx: "JavaScript", mjs: "JavaScript", cjs: "JavaScript", ts: "TypeScript", tsx: "TypeScript", mts: "TypeScript", cts: "TypeScript",
  go: "Go", py: "Python", rb: "Ruby", php: "PHP", java: "Java", kt: "Kotlin", kts: "Kotlin", scala: "Scala", cs: "C#", fs: "F#", rs: "Rust",
  ex: "Elixir", exs: "Elixir", erl: "Erlang", c: "C", h: "C", cc: "C++", cpp: "C++", hpp: "C++", swift: "Swift", dart: "Dart", lua: "Lua",
  vue: "Vue", svelte: "Svelte", astro: "Astro", html: "HTML", css: "CSS", scss: "CSS", sh: "Shell", ps1: "PowerShell", zig: "Zig", clj: "Clojure",
  hs: "Haskell", ml: "OCaml", r: "R", jl: "Julia", sql: "SQL",
};
const extension = (p) => {
  const name = baseName(p);
  return name.lastIndexOf(".") > 0 ? name.slice(name.lastIndexOf(".") + 1).toLowerCase() : "";
};
const languageOf = (p) => LANGUAGE_NAMES[extension(p)] || null;

const ESCAPES = { n: "\n", t: "\t", r: "\r" };
const unescapeText = (text) => text.replace(/\\([\s\S])/g, (_, ch) => ESCAPES[ch] ?? ch);

// Finds the end of the literal that opens at `at`, or -1 when what looks like a quote is not one.
function closeQuote(src, at, quote, { multiline, escapes }) {
  for (let i = at; i < src.length; i++) {
    if (escapes && src[i] === "\\") i++;
    else if (src.startsWith(quote, i)) return i;
    else if (src[i] === "\n" && !multiline) return -1;
  }
  return multiline ? src.length : -1;
}

function closeTemplate(src, at) {
  for (let i = at; i < src.length; i++) {
    if (src[i] === "\\") i++;
    else if (src[i] === "`") return i;
    else if (src[i] === "$" && src[i + 1] === "{") {
      let depth = 1;
      for (i += 2; i < src.length && depth; i++) {
        if (src[i] === "{") depth++;
        else if (src[i] === "}") depth--;
        else if (src[i] === "`") i = closeTemplate(src, i + 1);
      }
      i--;
    }
  }
  return src.length;
}

function literalAt(src, i, lang) {
  const ch = src[i];
  if (lang.triple && (src.startsWith('"""', i) || (src.startsWith("'''", i) && lang === LANGUAGES.py))) {
    const quote = src.slice(i, i + 3);
    return { from: i + 3, to: closeQuote(src, i + 3, quote, { multiline: true, escapes: true }), width: 3 };
  }
  if (lang.template && ch === "`") return { from: i + 1, to: closeTemplate(src, i + 1), width: 1, dynamic: "js" };
  if (lang.raw === ch) return { from: i + 1, to: closeQuote(src, i + 1, ch, { multiline: true }), width: 1, raw: true };
  if (lang.hashRaw && ch === "r" && /^r#{0,3}"/.test(src.slice(i, i + 5)) && !/[\w]/.test(src[i - 1] || "")) {
    const open = /^r(#*)"/.exec(src.slice(i, i + 5));
    return { from: i + open[0].length, to: closeQuote(src, i + open[0].length, '"' + open[1], { multiline: true }), width: 1 + open[1].length, raw: true };
  }
  if (lang.char && ch === "'") {
    const end = /^'(?:\\[^\n]{1,8}|[^\\'\n]{1,2})'/.exec(src.slice(i, i + 12));
    return end ? { from: i + 1, to: i + end[0].length - 1, width: 1 } : null;
  }
  if (!lang.quotes.includes(ch)) return null;
  return { from: i + 1, to: closeQuote(src, i + 1, ch, { multiline: lang.multiline, escapes: true }), width: 1 };
}

const REGEX_BEFORE = /(?:^|[(,=:[!&|?{};+\-*%~^<>]|\b(?:return|typeof|case|in|of|delete|void|throw|await|yield))$/;

function regexEnd(src, at, before) {
  if (!REGEX_BEFORE.test(before)) return -1;
  let inClass = false;
  for (let i = at + 1; i < src.length && src[i] !== "\n"; i++) {
    if (src[i] === "\\") i++;
    else if (src[i] === "[") inClass = true;
    else if (src[i] === "]") inClass = false;
    else if (src[i] === "/" && !inClass) return i;
  }
  return -1;
}

const blank = (text) => text.replace(/[^\n]/g, " ");

// Source is a file with its comments and the insides of its strings blanked out (`code`, same length as the
// text), and the strings by the position of their opening quote.
class Source {
  constructor(file, text, langKey) {
    Object.assign(this, { file, text, lang: LANGUAGES[langKey], langKey, strings: new Map(), comments: [] });
    this.code = this.#lex();
    this.pairs = this.#pair();
    this.lines = null;
  }

  #lex() {
    const { text: src, lang } = this;
    const parts = [];
    let kept = 0;
    const hide = (from, to) => {
      parts.push(src.slice(kept, from), blank(src.slice(from, to)));
      kept = to;
    };
    const stops = lang.line.join("") + "/" + lang.quotes + "'\"`" + (lang.hashRaw ? "r" : "");
    for (let i = 0; i < src.length; i++) {
      const ch = src[i];
      if (!stops.includes(ch)) continue;
      if (lang.block && src.startsWith("/*", i)) {
        const end = src.indexOf("*/", i + 2);
        const to = end < 0 ? src.length : end + 2;
        this.comments.push([i, to]);
        hide(i, to);
        i = to - 1;
        continue;
      }
      const mark = lang.line.find((m) => src.startsWith(m, i));
      if (mark && !(mark === "#" && lang === LANGUAGES.php && src[i + 1] === "[") && !(mark === "#" && lang === LANGUAGES.rb && /["'%]/.test(src[i - 1] || ""))) {
        const end = src.indexOf("\n", i);
        const to = end < 0 ? src.length : end;
        this.comments.push([i, to]);
        hide(i, to);
        i = to - 1;
        continue;
      }
      const literal = literalAt(src, i, lang);
      if (literal && literal.to >= 0) {
        const value = src.slice(literal.from, literal.to);
        this.strings.set(i, { value, raw: literal.raw, dynamic: literal.dynamic, end: Math.min(src.length, literal.to + literal.width) });
        hide(literal.from, literal.to);
        i = literal.to + literal.width - 1;
        continue;
      }
      if (lang.regex && ch === "/") {
        const end = regexEnd(src, i, src.slice(Math.max(0, i - 12), i).trimEnd());
        if (end > 0) {
          hide(i + 1, end);
          i = end;
        }
      }
    }
    parts.push(src.slice(kept));
    return parts.join("");
  }

  #pair() {
    const pairs = new Map();
    const stack = [];
    const open = { ")": "(", "]": "[", "}": "{" };
    for (let i = 0; i < this.code.length; i++) {
      const ch = this.code[i];
      if (ch === "(" || ch === "[" || ch === "{") stack.push(i);
      else if (open[ch]) {
        let at = stack.length - 1;
        while (at >= 0 && this.code[stack[at]] !== open[ch]) at--;
        if (at < 0) continue;
        pairs.set(stack[at], i);
        pairs.set(i, stack[at]);
        stack.length = at;
      }
    }
    return pairs;
  }

  line(pos) {
    if (!this.lines) {
      this.lines = [0];
      for (let i = this.text.indexOf("\n"); i >= 0; i = this.text.indexOf("\n", i + 1)) this.lines.push(i + 1);
    }
    let low = 0;
    let high = this.lines.length;
    while (high - low > 1) {
      const mid = (low + high) >> 1;
      if (this.lines[mid] <= pos) low = mid;
      else high = mid;
    }
    return low + 1;
  }

  indent(pos) {
    const start = this.text.lastIndexOf("\n", pos - 1) + 1;
    return /^[ \t]*/.exec(this.text.slice(start, pos))[0].length;
  }

  // The smallest brace block around a position, as [open, close].
  block(pos) {
    let depth = 0;
    for (let i = pos - 1; i >= 0; i--) {
      if (this.code[i] === "}") {
        const at = this.pairs.get(i);
        if (at === undefined) depth++;
        else i = at;
      } else if (this.code[i] === "{") {
        if (depth === 0) return [i, this.pairs.get(i) ?? this.code.length];
        depth--;
      }
    }
    return [-1, this.code.length];
  }

  // Top-level arguments of the call whose parenthesis opens at `open`, as [from, to] ranges without blanks.
  args(open) {
    const close = this.pairs.get(open);
    if (close === undefined) return [];
    const out = [];
    let from = open + 1;
    for (let i = open + 1; i <= close; i++) {
      if ("([{".includes(this.code[i]) && this.pairs.has(i)) i = this.pairs.get(i);
      else if (i === close || this.code[i] === ",") {
        const part = this.code.slice(from, i);
        if (part.trim()) out.push([from + part.length - part.trimStart().length, from + part.trimEnd().length]);
        from = i + 1;
      }
    }
    return out;
  }

  slice([from, to]) {
    return this.code.slice(from, to);
  }

  // The string that an expression stands for when it is made of literals and constants, else null.
  value(pos, consts, depth = 0) {
    let out = null;
    let at = pos;
    for (let terms = 0; terms < 12; terms++) {
      at += /^\s*/.exec(this.code.slice(at, at + 200))[0].length;
      const term = this.#term(at, consts, depth);
      if (!term) return null;
      out = (out ?? "") + term.value;
      at = term.end;
      const next = (this.langKey === "php" ? /^\s*\.(?!\d)/ : /^\s*\+(?!\+)/).exec(this.code.slice(at, at + 200));
      if (!next) return /^\s*\.\s*\w/.test(this.code.slice(at, at + 40)) && this.langKey !== "php" ? null : out;
      at += next[0].length;
    }
    return null;
  }

  #term(pos, consts, depth) {
    let at = pos;
    const prefix = this.langKey === "py" ? /^[rRbBuUfF]{1,2}(?=["'])/.exec(this.code.slice(at, at + 4)) : /^[@$]{1,2}(?=")/.exec(this.code.slice(at, at + 4));
    if (prefix) at += prefix[0].length;
    const literal = this.strings.get(at);
    if (literal) {
      const raw = literal.raw || (prefix && /[rR@]/.test(prefix[0]));
      const format = literal.dynamic || (prefix && /[fF$]/.test(prefix[0]) ? "braces" : null);
      let value = raw ? literal.value : unescapeText(literal.value);
      if (format) value = this.#fill(value, format, consts, depth);
      return value === null ? null : { value, end: literal.end };
    }
    const name = /^[A-Za-z_$][\w$]*(?:\s*(?:\.|::|->)\s*[A-Za-z_$][\w$]*)*/.exec(this.code.slice(at, at + 200));
    if (!name || depth > 4) return null;
    const value = consts ? consts(this, name[0].replace(/\s/g, ""), at, depth + 1) : null;
    return value === null ? null : { value, end: at + name[0].length };
  }

  #fill(text, format, consts, depth) {
    let known = true;
    const doubled = format === "js" ? text : text.replace(/\{\{/g, "\u0001").replace(/\}\}/g, "\u0002");
    const filled = doubled.replace(format === "js" ? /\$\{([^{}]*)\}/g : /\{([^{}]*)\}/g, (_, expr) => {
      const value = /^\s*[\w$.]+\s*$/.test(expr) && consts && depth < 4 ? consts(this, expr.trim(), 0, depth + 1) : null;
      if (value === null) known = false;
      return value ?? "";
    });
    return known ? filled.replace(/\u0001/g, "{").replace(/\u0002/g, "}") : null;
  }

  // The strings in an argument: one, or those of an array.
  values(range, consts) {
    const [from, to] = range;
    if (/^(?:\[|\[\]string\s*\{|array\s*\(|\{|\(|new\s*\[\]|listOf\()/.test(this.code.slice(from, to))) {
      const open = from + this.code.slice(from, to).search(/[[{(](?!\])/);
      return this.args(open).map(([a]) => this.value(a, consts)).filter((v) => v !== null);
    }
    const one = this.value(from, consts);
    return one === null ? [] : [one];
  }
}

// Constants of all sources: a name is followed within its file, and across files when only one file defines it.
class Constants {
  constructor() {
    this.own = new Map();
    this.everywhere = new Map();
  }

  add(source) {
    const own = new Map();
    for (const m of source.code.matchAll(/(?<![\w$.])([A-Za-z_$][\w$]*)\s*(?::\s*[\w&'<>[\] ]+)?\s*(?::=|=(?![=>~]))\s*(?=[rRbBuUfF$@]{0,2}["'`]|[A-Za-z_$][\w$.]*\s*\+|[A-Z][A-Z0-9_]+\b)/g)) {
      const at = m.index + m[0].length;
      own.set(m[1], own.has(m[1]) ? -1 : at);
    }
    this.own.set(source, own);
    for (const [name, at] of own) {
      this.everywhere.set(name, this.everywhere.has(name) ? null : { source, at });
    }
  }

  resolve = (source, name, pos, depth) => {
    const last = name.split(/\.|::|->/).pop();
    const own = this.own.get(source)?.get(last);
    if (own !== undefined) return own < 0 ? null : source.value(own, this.resolve, depth);
    const other = this.everywhere.get(last);
    return other && other.at >= 0 ? other.source.value(other.at, this.resolve, depth) : null;
  };
}

// ---------------------------------------------------------------------------------------------------------------
// Routes: the graph of routers
// ---------------------------------------------------------------------------------------------------------------

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
const METHOD_SET = new Set([...METHODS, "CONNECT", "TRACE", "ANY"]);

// One spelling for all frameworks: /users/:id for a parameter, /files/*path for the rest of a path.
export function normalisePath(input) {
  let p = input.trim().replace(/^\^/, "").replace(/(?:\\[zZ]|\$)$/, "").replace(/\?[\w-]+=.*$/, "");
  p = p.replace(/\(\?P?<(\w+)>(?:[^()]|\([^()]*\))*\)/g, ":$1");
  p = p.replace(/<(?:[^<>:]*:)?\s*([\w-]+)>/g, (all, name) => (/^<path:/.test(all) ? "*" : ":") + name);
  p = p.replace(/\{\s*\*{1,2}([\w-]+)\s*\}/g, "*$1").replace(/\{([\w-]+)\.\.\.\}/g, "*$1").replace(/\{([\w-]+):(?:path|\.\*|\.\+)\}/g, "*$1");
  p = p.replace(/\{\$\}$/, "").replace(/\{\s*([\w-]+)\s*(?:[:=](?:[^{}]|\{[^{}]*\})*)?\??\s*\}/g, ":$1");
  p = p.replace(/(:[\w-]+)\((?:[^()]|\([^()]*\))*\)/g, "$1").replace(/(:[\w-]+)[?+*]?(?=\/|$|\.)/g, "$1").replace(/\(\/?\)\??/g, "");
  p = "/" + p.replace(/\\\//g, "/").replace(/\\/g, "");
  p = p.replace(/\/{2,}/g, "/");
  return p.length > 1 ? p.replace(/\/$/, "") : p;
}

const joinRoute = (...parts) => parts.filter((p) => p !== "").join("/");

class Graph {
  constructor() {
    this.routes = [];
    this.edges = [];
    this.links = new Map();
    this.own = new Map();
    this.frameworks = new Map();
    this.known = new Set();
  }

  node(key, framework, own) {
    this.known.add(key);
    if (framework) this.frameworks.set(key, framework);
    if (own) this.own.set(key, own);
    return key;
  }

  link(name, node) {
    if (name !== node && !this.links.has(name)) this.links.set(name, node);
  }

  mount(parent, prefix, child, replacesOwn = false) {
    if (parent !== child) this.edges.push({ parent, prefix: prefix || "", child, replacesOwn });
  }

  add(node, route) {
    this.routes.push({ node, kind: "api", ...route });
  }

  resolve(node) {
    for (let hops = 0; hops < 8 && this.links.has(node); hops++) node = this.links.get(node);
    return node;
  }

  framework(node, seen = 0) {
    const at = this.resolve(node);
    if (this.frameworks.has(at) || seen > 6) return this.frameworks.get(at) || null;
    const up = this.edges.find((e) => this.resolve(e.child) === at);
    return up ? this.framework(up.parent, seen + 1) : null;
  }

  prefixes(node, seen = new Set()) {
    const at = this.resolve(node);
    const own = this.own.get(at) || "";
    if (seen.has(at) || seen.size > 8) return [];
    const inner = new Set(seen).add(at);
    const out = new Set();
    for (const edge of this.incoming.get(at) || []) {
      for (const before of this.prefixes(edge.parent, inner)) {
        out.add(joinRoute(before, edge.prefix, edge.replacesOwn ? "" : own));
      }
    }
    return out.size ? [...out].slice(0, 6) : [own];
  }

  // Routes with their full paths, one entry for each way a router is mounted.
  expand() {
    this.incoming = new Map();
    for (const edge of this.edges) {
      const child = this.resolve(edge.child);
      if (!this.incoming.has(child)) this.incoming.set(child, []);
      this.incoming.get(child).push(edge);
    }
    const out = [];
    for (const { node, needsRouter, ...route } of this.routes) {
      if (needsRouter && !this.known.has(this.resolve(node))) continue;
      for (const prefix of this.prefixes(node)) {
        out.push({ ...route, framework: route.framework || this.framework(node) || "unknown", path: normalisePath(joinRoute(prefix, route.path)) });
      }
    }
    return out;
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Routes: frameworks in which a router object has methods (Go, JavaScript, C#, Rust)
// ---------------------------------------------------------------------------------------------------------------

const IDENT = "[A-Za-z_$][\\w$]*";
const words = (text) => new Set(text.split(" "));

// Follows router objects through one file. A profile says how its language and frameworks spell things.
class RouterFile {
  constructor(source, project, profile) {
    Object.assign(this, { source, project, profile, graph: project.graph, code: source.code });
    this.consts = project.constants.resolve;
    this.bindings = [];
  }

  bind(name, from, to, node) {
    this.bindings.push({ name, from, to, node });
    return node;
  }

  lookup(name, pos) {
    let best = null;
    for (const b of this.bindings) {
      if (b.name === name && b.from <= pos && pos < b.to && (!best || b.from >= best.from)) best = b;
    }
    return best ? best.node : null;
  }

  text(range) {
    return range ? this.source.value(range[0], this.consts) : null;
  }

  where(pos) {
    return { file: this.source.file, line: this.source.line(pos) };
  }

  // Start of the call chain that ends at the dot before a method name.
  chainStart(dot) {
    let i = dot - 1;
    for (let hops = 0; hops < 400; hops++) {
      while (i >= 0 && /[\s!?]/.test(this.code[i])) i--;
      if (this.code[i] === ")" || this.code[i] === "}" || this.code[i] === "]") {
        const open = this.source.pairs.get(i);
        if (open === undefined || (this.code[i] === "}" && !/[\w]/.test(this.code[open - 1] || ""))) return i + 1;
        i = open - 1;
        if (this.code[i] === ">") {
          const angle = this.code.lastIndexOf("<", i);
          if (angle > 0 && i - angle < 80) i = angle - 1;
        }
        continue;
      }
      const from = i;
      while (i >= 0 && /[\w$]/.test(this.code[i])) i--;
      if (from === i) return i + 1;
      const start = i + 1;
      let back = i;
      while (back >= 0 && /\s/.test(this.code[back])) back--;
      if (this.code[back] === ".") i = back - 1;
      else if (this.code[back] === ":" && this.code[back - 1] === ":") i = back - 2;
      else return start;
    }
    return dot;
  }

  // The router that the expression between `pos` and `end` stands for, or null.
  router(pos, end = this.code.length) {
    const lead = /^\s*(?:(?:await|new|return)\s+|&|\*)*/.exec(this.code.slice(pos, Math.min(end, pos + 100)))[0].length;
    let at = pos + lead;
    const head = this.primary(at, end);
    if (!head) return null;
    let node = head.node;
    at = head.end;
    while (at < end) {
      const next = /^\s*[!?]?\.\s*([A-Za-z_]\w*)\s*(?:<[\w\s,.<>[\]{}:;|]*>)?\s*(\()?/.exec(this.code.slice(at, Math.min(end, at + 400)));
      if (!next) break;
      if (!next[2]) return null;
      const open = at + next[0].length - 1;
      const close = this.source.pairs.get(open);
      if (close === undefined || close > end) break;
      node = this.step(node, next[1], open);
      if (!node) return null;
      at = close + 1;
    }
    return node;
  }

  step(node, method, open) {
    const { children, through } = this.profile;
    if (children.has(method)) {
      const args = this.source.args(open);
      const key = `${this.source.file}@${open}`;
      const prefix = args.length ? this.text(args[0]) : null;
      if (!this.graph.known.has(key)) {
        this.graph.node(key);
        this.graph.mount(node, prefix || "", key);
      }
      return key;
    }
    return through.test(method) ? node : null;
  }

  primary(at, end) {
    const name = new RegExp(`^${IDENT}(?:\\s*(?:\\.|::)\\s*${IDENT})*`).exec(this.code.slice(at, Math.min(end, at + 200)));
    if (!name) return null;
    const parts = name[0].replace(/\s/g, "").split(/(\.|::)/);
    const tail = /^\s*(?:::)?(?:<[^()]{0,80}>)?\s*\(/.exec(this.code.slice(at + name[0].length, at + name[0].length + 120));
    const whole = parts.join("");
    if (tail) {
      const open = at + name[0].length + tail[0].length - 1;
      const built = this.profile.construct(this, whole, at, open);
      if (built) return { node: built, end: (this.source.pairs.get(open) ?? open) + 1 };
    }
    for (let n = parts.length; n > 0; n -= 2) {
      const dotted = parts.slice(0, n).join("");
      const node = this.lookup(dotted, at) || (n === parts.length && tail ? null : this.profile.external(this, dotted, at));
      if (node) {
        let stop = at;
        for (let seen = 0; seen < dotted.length; stop++) if (!/\s/.test(this.code[stop])) seen++;
        return { node, end: stop };
      }
    }
    if (parts.length > 2 && this.profile.loose && this.profile.children.has(parts[parts.length - 1])) {
      const text = parts.slice(0, -2).join("");
      const node = this.profile.loose(this, text, at);
      if (node) return { node, end: at + this.code.slice(at, end).search(new RegExp(`\\s*\\.\\s*${parts[parts.length - 1]}\\s*(?:<[^()]*>)?\\(`)) };
    }
    return null;
  }

  // The router a method is called on; with `loose`, an undeclared name that reads like a router will do.
  receiver(dot) {
    const start = this.chainStart(dot);
    const node = this.router(start, dot);
    if (node) return node;
    return this.profile.loose ? this.profile.loose(this, this.code.slice(start, dot).trim(), start) : null;
  }

  // Binds the parameter of a function literal in an argument, for `Route("/x", func(r chi.Router) {…})` and its kin.
  closure(ranges, node) {
    for (const [from, to] of ranges) {
      const match = this.profile.closure.exec(this.code.slice(from, to));
      if (!match || !match[1]) continue;
      const open = this.code.indexOf("{", from + match[0].length - 1);
      if (open >= 0 && open < to) this.bind(match[1], open, this.source.pairs.get(open) ?? to, node);
      else this.bind(match[1], from, to, node);
      return true;
    }
    return false;
  }

  run() {
    this.profile.prepare(this);
    const events = [];
    for (const m of this.code.matchAll(this.profile.assignment)) {
      events.push({ at: m.index + m[0].length - 0.5, assign: m[1].replace(/\s/g, ""), pos: m.index + m[0].length });
    }
    for (const m of this.code.matchAll(this.profile.call)) {
      events.push({ at: m.index, method: m[1], dot: m.index, open: m.index + m[0].length - 1 });
    }
    events.sort((a, b) => a.at - b.at);
    for (const event of events) {
      if (event.assign !== undefined) this.assign(event);
      else this.profile.visit(this, event);
    }
    this.profile.finish(this);
  }

  assign({ assign, pos }) {
    const end = this.statementEnd(pos);
    const node = this.router(pos, end);
    if (!node) {
      if (this.lookup(assign, pos)) this.bind(assign, pos, this.source.block(pos)[1], null);
      return;
    }
    const dotted = assign.includes(".");
    const [, to] = dotted ? [0, this.code.length] : this.source.block(pos);
    this.bind(assign, dotted ? 0 : pos, to, node);
    if (dotted && this.profile.field) this.graph.link(this.profile.field(this, assign), node);
  }

  statementEnd(pos) {
    for (let i = pos; i < this.code.length; i++) {
      const ch = this.code[i];
      if ("([{".includes(ch) && this.source.pairs.has(i)) i = this.source.pairs.get(i);
      else if (ch === ";" || ch === ")" || ch === "}" || ch === ",") return i;
      else if (ch === "\n" && !/^\s*\./.test(this.code.slice(i + 1, i + 200)) && !/[.=(,+]\s*$/.test(this.code.slice(Math.max(0, i - 40), i))) return i;
    }
    return this.code.length;
  }
}

// --- Go ---

const GO_IMPORTS = [["chi", /go-chi\/chi/], ["gin", /gin-gonic\/gin/], ["echo", /labstack\/echo/], ["fiber", /gofiber\/fiber/], ["gorilla/mux", /gorilla\/mux|tigerwill90\/mux/],
  ["httprouter", /julienschmidt\/httprouter/], ["hertz", /cloudwego\/hertz/], ["go-http", /^net\/http$/]];
const GO_NEW = /^(?:chi\.NewRouter|chi\.NewMux|gin\.(?:Default|New)|echo\.New|fiber\.New|mux\.NewRouter|http\.NewServeMux|httprouter\.New|server\.(?:Default|New|Hertz))$/;
const GO_ROUTER_TYPE = /(?:Router|Engine|RouterGroup|IRoutes?|Mux|Echo|echo\.Group|fiber\.App|Hertz)\b/;

function goFramework(file) {
  const imports = [...file.source.strings.values()].map((s) => s.value);
  return GO_IMPORTS.filter(([, re]) => imports.some((i) => re.test(i))).map(([name]) => name);
}

// Functions of all Go files that take or return a router, by name.
function goFunctions(project, sources) {
  const index = new Map();
  project.goFunctionsIn = new Map();
  for (const source of sources) {
    const own = [];
    project.goFunctionsIn.set(source, own);
    for (const m of source.code.matchAll(/\bfunc\s*(?:\(\s*(?:\w+\s+)?\*?(\w+)[^)]*\)\s*)?(\w+)\s*(?:\[[^\]]*\])?\(/g)) {
      const open = m.index + m[0].length - 1;
      const close = source.pairs.get(open);
      if (close === undefined) continue;
      const bodyAt = source.code.slice(close, close + 300).search(/\{(?!\s*\})/);
      const result = source.code.slice(close + 1, bodyAt < 0 ? close + 1 : close + bodyAt);
      if (result.includes("\n") && !result.includes("(")) continue;
      const body = bodyAt < 0 ? null : [close + bodyAt, source.pairs.get(close + bodyAt) ?? source.code.length];
      let params = source.args(open).map((range) => /^(\w+)(?:\s+([\s\S]+))?$/.exec(source.slice(range).trim())).map((p) => p && { name: p[1], type: p[2] || "" });
      for (let i = params.length - 2; i >= 0; i--) if (params[i] && !params[i].type && params[i + 1]) params[i].type = params[i + 1].type;
      params = params.map((p) => (p && GO_ROUTER_TYPE.test(p.type) ? p.name : null));
      const entry = { source, dir: dirName(source.file), type: m[1] || null, name: m[2], params, body, returns: /Router|Handler|Mux|Engine|Echo|App/.test(result),
        key: `go:${dirName(source.file)}:${m[1] || ""}.${m[2]}` };
      own.push(entry);
      if (!index.has(m[2])) index.set(m[2], []);
      index.get(m[2]).push(entry);
    }
  }
  project.goFunctions = index;
}

function goCandidates(file, name, qualifier, pos, wants) {
  let list = (file.project.goFunctions.get(name) || []).filter(wants);
  if (!list.length) return null;
  const dir = dirName(file.source.file);
  if (!qualifier) list = list.filter((f) => f.dir === dir && !f.type);
  else {
    const byPackage = list.filter((f) => !f.type && baseName(f.dir) === qualifier);
    if (byPackage.length === 1) return byPackage[0];
    const type = goTypeOf(file, qualifier, pos);
    const typed = list.filter((f) => f.type && (f.type === type || f.type === qualifier));
    if (typed.length) list = typed;
    if (list.length > 1) list = list.filter((f) => f.type && f.type.toLowerCase().includes(qualifier.toLowerCase()));
  }
  return list.length === 1 ? list[0] : null;
}

function goTypeOf(file, variable, pos) {
  const re = new RegExp(`\\b${variable.split(".").pop().replace(/\$/g, "\\$")}\\s*(?::=|=|:)\\s*&?(?:\\w+\\.)?(?:New)?(\\w+)\\s*[({]`, "g");
  let type = null;
  for (const m of file.code.slice(0, pos).matchAll(re)) type = m[1];
  return type;
}

const GO = {
  langKey: "go",
  children: words("Group Route PathPrefix Party Path Host"),
  through: /^(?:With|Use|Subrouter|Methods|Schemes|StrictSlash|Name|UseEncodedPath|SkipClean|Get|Post|Put|Patch|Delete|GET|POST|PUT|PATCH|DELETE|HandleFunc|Handle|Headers|Queries)$/,
  closure: /^\s*func\s*\(\s*(\w+)[^)]*\)\s*\{/,
  assignment: /(?:^|[\n;{,(]|\bvar\b)[ \t]*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\s+[\w.*]+)?(?:\s*,\s*\w+)?\s*:?=(?!=)[ \t]*(?=[A-Za-z_&])/g,
  call: /\.\s*([A-Z]\w*)\s*\(/g,

  prepare(file) {
    file.frameworks = goFramework(file);
    for (const fn of file.project.goFunctionsIn.get(file.source)) {
      fn.params.forEach((name, i) => {
        if (name && fn.body) file.bind(name, fn.body[0], fn.body[1], file.graph.node(`${fn.key}/${i}`));
      });
    }
    goCalls(file);
  },

  construct(file, name, at, open) {
    if (GO_NEW.test(name)) {
      const key = file.graph.node(`${file.source.file}@${open}`, GO_IMPORTS.find(([f]) => f === { http: "go-http", mux: "gorilla/mux", server: "hertz" }[name.split(".")[0]] || f === name.split(".")[0])?.[0]);
      const fn = file.project.goFunctionsIn.get(file.source).find((f) => f.returns && f.body && f.body[0] < at && at < f.body[1]);
      if (fn) file.graph.link(fn.key, key);
      return key;
    }
    const parts = name.split(".");
    const fn = goCandidates(file, parts.pop(), parts.join("."), at, (f) => f.returns && !GO.children.has(f.name));
    return fn && !file.lookup(name.split(".")[0], at) ? fn.key : null;
  },

  external(file, dotted, at) {
    if (dotted === "http" && file.frameworks.includes("go-http")) return file.graph.node(`${file.source.file}#http`, "go-http");
    return dotted.includes(".") && file.graph.known.has(GO.field(file, dotted)) ? GO.field(file, dotted) : null;
  },

  field: (file, dotted) => file.graph.node(`go:${dirName(file.source.file)}#${dotted.split(".").pop()}`),

  // Struct fields and package variables are often set in one file and used in another.
  loose(file, text, start) {
    const name = /^[a-z_]\w*(?:\.\w+)?$/i.test(text) ? text : null;
    if (!name || !file.frameworks.length) return null;
    if (/(?:^|\.)(?:r|e|g|app|api|router|mux|engine|echo|rg|group|v\d+|server|srv|smux|m)$|(?:Router|Mux|Group|Engine|App)$|^(?:r|router|mux|app|engine|e|g)\w?$/.test(name)) {
      return name.includes(".") ? GO.field(file, name) : file.graph.node(`${file.source.file}#${name}`);
    }
    return null;
  },

  visit(file, event) {
    goVisit(file, event);
  },

  finish(file) {
    for (const call of file.pendingCalls) goHandOver(file, call);
  },
};

const GO_VERBS = { Get: "GET", Post: "POST", Put: "PUT", Patch: "PATCH", Delete: "DELETE", Head: "HEAD", Options: "OPTIONS", All: "ANY", Any: "ANY" };
for (const verb of METHODS) GO_VERBS[verb] = verb;

// Calls that hand a router to a function of this project: `registerUsers(api)`.
function goCalls(file) {
  file.pendingCalls = [...file.code.matchAll(/(?<![\w.])((?:[A-Za-z_]\w*\.){0,2})([A-Za-z_]\w*)\s*\(/g)]
    .filter((m) => file.project.goFunctions.get(m[2])?.some((f) => f.params.some(Boolean)) && !/\bfunc\s*(?:\([^)]*\)\s*)?$/.test(file.code.slice(Math.max(0, m.index - 80), m.index)))
    .map((m) => ({ at: m.index, name: m[2], qualifier: m[1].replace(/\.$/, ""), open: m.index + m[0].length - 1 }));
}

function goHandOver(file, call) {
  const fn = goCandidates(file, call.name, call.qualifier, call.at, (f) => f.params.some(Boolean));
  if (!fn) return;
  const args = file.source.args(call.open);
  fn.params.forEach((name, i) => {
    const node = name && args[i] ? file.router(args[i][0], args[i][1]) : null;
    if (node) file.graph.mount(node, "", `${fn.key}/${i}`);
  });
}

function goVisit(file, { method, dot, open }) {
  const args = file.source.args(open);
  if (GO.children.has(method)) {
    const parent = file.receiver(dot);
    if (!parent) return;
    const node = file.step(parent, method, open);
    if (args.length > 1 || method === "Group") file.closure(args, node);
    if (method === "Path" && /\.\s*Handler(?:Func)?\s*\(/.test(file.code.slice(open, file.statementEnd(open)))) goRoute(file, node, "", goMethods(file, dot, open), open);
    return;
  }
  if (method === "Mount" && args.length === 2) {
    const parent = file.receiver(dot);
    const prefix = file.text(args[0]);
    const child = file.router(args[1][0], args[1][1]);
    if (parent && child && prefix !== null) file.graph.mount(parent, prefix, child);
    return;
  }
  const isVerb = Object.hasOwn(GO_VERBS, method);
  if (!isVerb && !/^(?:HandleFunc|HandlerFunc|Handle|Handler|Method|MethodFunc|Add|Match)$/.test(method)) return;
  if (args.length < 2 || !(isVerb || file.frameworks.length)) return;
  const parent = file.receiver(dot);
  if (!parent) return;
  goVerb(file, parent, method, args, dot, open);
}

function goVerb(file, parent, method, args, dot, open) {
  if (Object.hasOwn(GO_VERBS, method)) {
    const p = file.text(args[0]);
    // gin and echo put the slash themselves, so a bare word is a path there; elsewhere it would be any other Get("x").
    const bare = file.graph.known.has(file.graph.resolve(parent)) && /^(?:gin|echo|hertz)$/.test(file.graph.framework(parent) || file.frameworks[0]) && /^[\w:*.\/-]+$/.test(p || "");
    if (p !== null && (p === "" || p.startsWith("/") || p === "*" || bare)) goRoute(file, parent, p, [GO_VERBS[method]], open);
    return;
  }
  const verb = goMethodName(file, args[0]);
  if (verb.length && args.length >= 3) {
    const p = file.text(args[1]);
    if (p !== null) goRoute(file, parent, p, verb, open);
    return;
  }
  const raw = file.text(args[0]);
  const pattern = raw === null ? null : /^(?:([A-Z]+)\s+)?([^\s\/]*)(\/.*)?$/.exec(raw);
  if (!pattern || !/^Handle/.test(method) || (pattern[3] === undefined && raw !== "")) return;
  const inner = /^\s*http\.StripPrefix\s*\(/.exec(file.code.slice(...args[1]));
  const target = inner ? file.source.args(args[1][0] + inner[0].length - 1)[1] : args[1];
  const child = target && method === "Handle" ? file.router(target[0], target[1]) : null;
  if (child && child !== parent) {
    file.graph.mount(parent, inner ? pattern[3] : "", child);
    return;
  }
  const methods = pattern[1] ? [pattern[1]] : goMethods(file, dot, open);
  goRoute(file, parent, pattern[3] || "", methods, open);
}

function goMethodName(file, range) {
  const token = file.code.slice(range[0], range[1]).trim();
  const named = /^(?:http|fiber)\.Method(\w+)$/.exec(token);
  const list = named ? [named[1]] : file.source.values(range, file.consts);
  const upper = list.map((v) => v.toUpperCase());
  return upper.every((v) => METHOD_SET.has(v)) && (named || /^[A-Z]*$/.test(list.join(""))) ? upper : [];
}

// `.Methods("GET", http.MethodPost)` before or after the handler, as gorilla/mux has it.
function goMethods(file, dot, open) {
  const start = file.chainStart(dot);
  const text = [start, file.statementEnd(open)];
  const found = /\.\s*Methods\s*\(/.exec(file.code.slice(...text));
  if (!found) return ["ANY"];
  const methods = file.source.args(text[0] + found.index + found[0].length - 1).flatMap((r) => goMethodName(file, r));
  return methods.length ? methods : ["ANY"];
}

function goRoute(file, node, p, methods, pos) {
  const framework = file.graph.framework(node) || (/^[a-z]/.test(file.frameworks[0] || "") ? file.frameworks[0] : null);
  file.graph.add(node, { path: p, methods, framework, ...file.where(pos) });
}

// --- JavaScript and TypeScript ---

const JS_PACKAGES = { express: "express", "express-promise-router": "express", fastify: "fastify", koa: "koa", "@koa/router": "koa", "koa-router": "koa", hono: "hono",
  "@hono/zod-openapi": "hono", "hono/tiny": "hono", "hono/quick": "hono", polka: "polka", elysia: "elysia", restify: "restify" };
const JS_EXTENSIONS = ["", ".ts", ".tsx", ".js", ".mjs", ".cjs", ".jsx", "/index.ts", "/index.js", "/index.mjs", "/index.tsx"];
const JS_LOOSE = /^(?:app|router|server|fastify|instance|api|routes?|f|r)$|(?:Router|App|Routes|Server)$/;

function resolveModule(project, from, spec) {
  const bases = spec.startsWith(".") ? [joinPath(dirName(from), spec)] : /^[@~]\//.test(spec) ? [joinPath("src", spec.slice(2)), spec.slice(2)] : [];
  for (const base of bases) {
    const stem = base.replace(/\.(?:m|c)?js$/, "");
    for (const ext of JS_EXTENSIONS) {
      if (project.tree.has(base + ext)) return base + ext;
      if (stem !== base && project.tree.has(stem + ext)) return stem + ext;
    }
  }
  return null;
}

// Local name → where it comes from.
function jsImports(file) {
  const imports = new Map();
  const specAt = (pos) => file.source.strings.get(pos)?.value;
  const add = (clause, spec, at) => {
    if (!spec) return;
    const target = resolveModule(file.project, file.source.file, spec);
    const entry = (name) => ({ spec, file: target, name, at });
    const braces = /\{([^}]*)\}/.exec(clause);
    if (braces) {
      for (const part of braces[1].split(",")) {
        const m = /^\s*(?:type\s+)?([\w$]+)(?:\s*(?:as|:)\s*([\w$]+))?\s*$/.exec(part);
        if (m) imports.set(m[2] || m[1], entry(m[1]));
      }
    }
    const rest = clause.replace(/\{[^}]*\}/, "").replace(/\btype\b/, "");
    const star = /\*\s*as\s+([\w$]+)/.exec(rest);
    if (star) imports.set(star[1], entry("*"));
    const plainName = /^\s*([\w$]+)/.exec(rest);
    if (plainName && !star) imports.set(plainName[1], entry("default"));
  };
  for (const m of file.code.matchAll(/\bimport\s+([\w$\s{},*]+?)\s+from\s*(?=["'])/g)) add(m[1], specAt(m.index + m[0].length), m.index);
  for (const m of file.code.matchAll(/\b(?:const|let|var)\s+([\w$]+|\{[^}]*\})\s*=\s*(?:await\s+import|require)\s*\(\s*(?=["'])/g)) {
    const at = m.index + m[0].length;
    const after = file.code.slice(specAt(at) === undefined ? at : file.source.strings.get(at).end).match(/^\s*\)\s*\.\s*([\w$]+)\s*(?![\w$(])/);
    if (after && /^[\w$]+$/.test(m[1])) add(`{ ${after[1]}: ${m[1]} }`, specAt(at), m.index);
    else add(m[1], specAt(at), m.index);
  }
  return imports;
}

// `require("./routes/users")` written in place, as a node of that file.
function jsInlineRequire(file, range) {
  const m = /^\s*(?:await\s+)?(?:\(\s*await\s+)?(?:require|import)\s*\(\s*/.exec(file.code.slice(range[0], range[1]));
  const spec = m && file.source.strings.get(range[0] + m[0].length)?.value;
  const target = spec && resolveModule(file.project, file.source.file, spec);
  const member = m && /\)\s*\.\s*([\w$]+)\s*$/.exec(file.code.slice(range[0], range[1]));
  return target ? { node: `js:${target}#${member ? member[1] : "default"}`, fn: `jsfn:${target}#${member ? member[1] : "default"}` } : null;
}

const JS = {
  langKey: "js",
  children: words("route group basePath"),
  through: /^(?:use|get|post|put|patch|delete|del|all|options|head|routes|middleware|register|prefix|param|set|openapi|withTypeProvider|setErrorHandler|on|onError|notFound|callback|decorate|mount|plugin)$/,
  closure: /^\s*(?:async\s+)?(?:function\s*[\w$]*\s*)?\(?\s*([A-Za-z_$][\w$]*)[^()]*(?:\([^)]*\))?[^()]*\)?\s*(?::\s*[\w<>]+\s*)?(?:=>\s*\{?|\{)/,
  assignment: /(?<![\w$.=!<>])((?:this\s*\.\s*)?[A-Za-z_$][\w$]*(?:\s*\.\s*[A-Za-z_$][\w$]*)*)\s*(?::\s*[\w$.<>[\]{}, |]+?)?\s*=(?![=>])\s*(?=[A-Za-z_$(])/g,
  call: /[!?]?\.\s*(get|post|put|patch|delete|del|options|head|all|any|use|route|register|on|group|basePath|openapi|mount)\s*(?:<[^;()]*>)?\s*\(/g,

  prepare(file) {
    file.imports = jsImports(file);
    file.declared = new Set([...file.code.matchAll(/\b(?:const|let|var|class|function)\s+([\w$]+)/g)].map((m) => m[1]));
    file.main = [...file.imports.values()].map((i) => JS_PACKAGES[i.spec]).find(Boolean) || file.project.jsFramework;
    jsFunctions(file);
    for (const m of file.code.matchAll(/\b(?:const|let|var)\s+([\w$]+)\s*=\s*require\s*\(\s*(["'])[ ]*\2\s*\)\s*(?:\.\s*Router\s*)?\(/g)) {
      const framework = JS_PACKAGES[file.source.strings.get(m.index + m[0].indexOf(m[2]))?.value];
      if (framework) file.bind(m[1], m.index, file.source.block(m.index)[1], file.graph.node(`${file.source.file}@${m.index}`, framework));
    }
  },

  construct(file, name, at, open) {
    const root = name.split(".")[0];
    const from = file.imports.get(root);
    let framework = from && JS_PACKAGES[from.spec];
    if (!framework && !from && /^(?:Router|express\.Router|Hono|OpenAPIHono|Elysia)$/.test(name) && file.project.jsFramework) framework = file.project.jsFramework;
    const member = name.split(".").pop();
    if (!framework || !(name === root || /^(?:Router|default|Hono|OpenAPIHono|createServer)$/.test(member))) return null;
    const args = file.source.args(open);
    const options = args.map((r) => /(?:\bprefix|\bbasePath)\s*:\s*/.exec(file.code.slice(...r)) && [r[0] + /(?:\bprefix|\bbasePath)\s*:\s*/.exec(file.code.slice(...r)).index, r]).find(Boolean);
    const own = options ? file.source.value(options[0] + /^(?:prefix|basePath)\s*:\s*/.exec(file.code.slice(options[0]))[0].length, file.consts) : null;
    return file.graph.node(`${file.source.file}@${open}`, framework, own);
  },

  external(file, dotted) {
    const parts = dotted.split(".");
    const from = file.imports.get(parts[0]);
    if (from?.file) return `js:${from.file}#${parts.length > 1 && from.name === "*" ? parts[1] : parts.length > 1 ? parts[parts.length - 1] : from.name}`;
    return null;
  },

  field: (file, dotted) => file.graph.node(`jsfield:${file.source.file}#${dotted}`),

  loose(file, text, start) {
    const name = /^(?:this\s*\.\s*)?([A-Za-z_$][\w$]*)$/.exec(text)?.[1];
    if (!name || !file.main || !JS_LOOSE.test(name) || file.imports.has(name) || (file.declared.has(name) && !text.startsWith("this"))) return null;
    return file.graph.node(`${file.source.file}#${name}`, file.main);
  },

  visit(file, event) {
    jsVisit(file, event);
  },

  finish(file) {
    jsExports(file);
    for (const m of file.code.matchAll(/(?<![\w$.])([A-Za-z_$][\w$]*|require\s*\(\s*["'][ ]*["']\s*\)(?:\.\w+)?)\s*\(\s*(?=[A-Za-z_$])/g)) {
      const open = m.index + m[0].trimEnd().length - 1;
      const args = file.source.args(open);
      if (!args.length) continue;
      const inline = m[1].startsWith("require") ? jsInlineRequire(file, [m.index, m.index + m[1].length]) : null;
      const from = file.imports.get(m[1]);
      const key = inline ? inline.fn : from?.file ? `jsfn:${from.file}#${from.name}` : file.declared.has(m[1]) ? `jsfn:${file.source.file}#${m[1]}` : null;
      const node = key ? file.router(args[0][0], args[0][1]) : null;
      if (node) file.graph.mount(node, "", key);
    }
  },
};

// Functions whose first parameter is a router: plugins and `module.exports = (app) => {…}`.
function jsFunctions(file) {
  const re = /(?:\b(export\s+default|module\s*\.\s*exports\s*=|exports\s*\.\s*[\w$]+\s*=|export)\s+)?(?:\b(?:const|let|var)\s+([\w$]+)\s*(?::\s*[\w$.<>]+\s*)?=\s*)?(?:async\s+)?(?:function\s*([\w$]*)\s*)?\(\s*([\w$]+)\s*(\??\s*:\s*[\w$.<>]+)?[^()]*(?:\([^()]*\)[^()]*)?\)\s*(?::\s*[\w$<>[\]. ]+?\s*)?(?:=>)?\s*\{/g;
  for (const m of file.code.matchAll(re)) {
    const param = m[4];
    if (!(JS_LOOSE.test(param) || /Express|Router|Fastify|Hono|Application|Koa/.test(m[5] || "")) || (!m[3] && !/=>|function/.test(m[0]))) continue;
    const open = m.index + m[0].length - 1;
    const exported = (m[1] || "").replace(/\s/g, "");
    const named = /^exports\.([\w$]+)=/.exec(exported);
    const name = m[2] || m[3] || (named ? named[1] : /default|module\.exports/.test(exported) ? "default" : `@${open}`);
    const node = file.graph.node(`jsfn:${file.source.file}#${name}`, file.project.jsFramework ? file.main : null);
    if (/default|module\.exports/.test(exported) && name !== "default") file.graph.link(`jsfn:${file.source.file}#default`, node);
    file.bind(param, open, file.source.pairs.get(open) ?? file.code.length, node);
  }
}

function jsExports(file) {
  const own = file.source.file;
  const end = file.code.length - 1;
  const nodeOf = (name) => file.lookup(name, end) || JS.external(file, name);
  const publish = (as, name) => {
    const node = nodeOf(name);
    if (node) file.graph.link(`js:${own}#${as}`, node);
    file.graph.link(`jsfn:${own}#${as}`, file.imports.get(name)?.file ? `jsfn:${file.imports.get(name).file}#${file.imports.get(name).name}` : `jsfn:${own}#${name}`);
  };
  for (const m of file.code.matchAll(/(?:\bexport\s+default|\bmodule\s*\.\s*exports\s*=)\s+([\w$]+)\s*(?=[;\n]|$)/g)) publish("default", m[1]);
  for (const m of file.code.matchAll(/(?:\bexport\s+default|\bmodule\s*\.\s*exports\s*=)\s+(?:fp|fastifyPlugin)\s*\(\s*([\w$]+)/g)) publish("default", m[1]);
  for (const m of file.code.matchAll(/(?:\bexport|\bmodule\s*\.\s*exports\s*=)\s*\{([^{}]*)\}/g)) {
    for (const part of m[1].split(",")) {
      const p = /^\s*([\w$]+)(?:\s*(as|:)\s*([\w$]+))?\s*$/.exec(part);
      if (p) publish(p[2] === "as" ? p[3] : p[1], p[2] === ":" ? p[3] : p[1]);
    }
  }
  for (const m of file.code.matchAll(/\bexports\s*\.\s*([\w$]+)\s*=\s*([\w$]+)/g)) publish(m[1], m[2]);
  for (const m of file.code.matchAll(/\bexport\s+(?:const|let|var|function|async\s+function)\s+([\w$]+)/g)) publish(m[1], m[1]);
  for (const m of file.code.matchAll(/(?:\bexport\s+default|\bmodule\s*\.\s*exports\s*=)\s+(?=(?:new\s+)?[\w$]+(?:\.\w+)*\s*(?:<[^()]*>)?\()/g)) {
    const at = m.index + m[0].length;
    const node = file.router(at, file.statementEnd(at));
    if (node) file.graph.link(`js:${own}#default`, node);
  }
}

function jsTarget(file, range) {
  const inline = jsInlineRequire(file, range);
  if (inline) return inline;
  const text = file.code.slice(range[0], range[1]).trim();
  const wrapped = /^(?:fp|fastifyPlugin|asyncHandler)\s*\(\s*([\w$]+)\s*\)$/.exec(text);
  const name = wrapped ? wrapped[1] : text;
  const node = wrapped ? null : file.router(range[0], range[1]);
  if (!/^[\w$]+(?:\.[\w$]+)*$/.test(name)) return node ? { node } : null;
  const from = file.imports.get(name.split(".")[0]);
  if (from?.file) return { node: node || JS.external(file, name), fn: `jsfn:${from.file}#${from.name}` };
  return { node, fn: file.declared.has(name) ? `jsfn:${file.source.file}#${name}` : null };
}

function jsMount(file, parent, prefix, range) {
  const target = jsTarget(file, range);
  if (!target) return;
  if (target.node) file.graph.mount(parent, prefix, target.node);
  if (target.fn) file.graph.mount(parent, prefix, target.fn);
}

function jsOption(file, range, name) {
  const m = new RegExp(`\\b${name}\\s*:\\s*`).exec(file.code.slice(range[0], range[1]));
  return m ? range[0] + m.index + m[0].length : -1;
}

const looksLikeHandler = (text) => !/^(?:\{|\[|["'`]|\d|true\b|false\b|null\b|undefined\b|JSON\.)/.test(text.trim());

function jsVisit(file, { method, dot, open }) {
  const args = file.source.args(open);
  const parent = file.receiver(dot);
  if (!parent) return;
  if (method === "use" || method === "mount") {
    const prefix = args.length > 1 ? file.text(args[0]) : "";
    if (prefix === null) return;
    for (const range of args.length > 1 && file.source.strings.has(args[0][0]) ? args.slice(1) : args) jsMount(file, parent, prefix, range);
  } else if (method === "register") {
    const at = args[1] ? jsOption(file, args[1], "prefix") : -1;
    const prefix = at >= 0 ? file.source.value(at, file.consts) : "";
    if (prefix === null || !args[0]) return;
    const key = file.graph.node(`${file.source.file}@${open}`);
    file.graph.mount(parent, prefix, key);
    if (!file.closure([args[0]], key)) jsMount(file, parent, prefix, args[0]);
  } else if (method === "route") jsRoute(file, parent, args, open);
  else if (method === "group" || method === "basePath") {
    const node = file.step(parent, method, open);
    file.closure(args.slice(1), node);
  } else if (method === "on") {
    const methods = args[0] ? file.source.values(args[0], file.consts) : [];
    if (args.length < 3 || !methods.length || !methods.every((m) => METHOD_SET.has(m.toUpperCase()))) return;
    for (const p of file.source.values(args[1], file.consts)) file.graph.add(parent, { path: p, methods: methods.map((m) => m.toUpperCase()), ...file.where(open) });
  } else if (method === "openapi") jsObjectRoute(file, parent, args, open);
  else jsVerb(file, parent, method, args, dot, open);
}

// `route({method, url})` of Fastify, `route("/x", sub)` of Hono, `route("/x").get(…)` of Express.
function jsRoute(file, parent, args, open) {
  if (!args.length) return;
  if (file.code[args[0][0]] === "{") jsObjectRoute(file, parent, args, open);
  else if (args.length === 2) {
    const prefix = file.text(args[0]);
    if (prefix !== null) jsMount(file, parent, prefix, args[1]);
  } else file.step(parent, "route", open);
}

function jsObjectRoute(file, parent, args, open) {
  const methodAt = jsOption(file, args[0], "method");
  const pathAt = ["url", "path"].map((n) => jsOption(file, args[0], n)).find((n) => n >= 0) ?? -1;
  if (methodAt < 0 || pathAt < 0) return;
  const until = file.code.slice(methodAt).search(/[,}\]]/) + methodAt + (file.code[methodAt] === "[" ? file.source.pairs.get(methodAt) - methodAt : 0);
  const methods = file.source.values([methodAt, until + 1], file.consts).map((m) => m.toUpperCase()).filter((m) => METHOD_SET.has(m));
  const p = file.source.value(pathAt, file.consts);
  if (p !== null && methods.length) file.graph.add(parent, { path: p, methods, ...file.where(open) });
}

function jsVerb(file, parent, method, args, dot, open) {
  const verb = { del: "DELETE", all: "ANY", any: "ANY" }[method] || method.toUpperCase();
  const chained = /\.\s*route\s*\(/.test(file.code.slice(file.chainStart(dot), dot));
  const needsRouter = parent.startsWith("js:");
  const add = (p) => file.graph.add(parent, { path: p, methods: [verb], needsRouter, ...file.where(open) });
  const paths = args.length ? file.source.values(args[0], file.consts) : [];
  if (!paths.length) {
    if (chained && args.length && looksLikeHandler(file.code.slice(...args[0]))) add("");
    return;
  }
  if (args.length < 2 || !looksLikeHandler(file.code.slice(...args[args.length - 1]))) return;
  for (const p of paths) if (p === "" || /^[\/*:]/.test(p)) add(p);
}

// --- C# ---

const CS = {
  langKey: "cs",
  children: words("MapGroup"),
  through: /^(?:Map\w+|With\w+|Require\w+|Add\w+|Use\w+|Build)$/,
  closure: /^\s*()$/,
  assignment: /(?:^|[\n;{(])\s*(?:var|[\w<>?]+)\s+([A-Za-z_]\w*)\s*=(?![=>])\s*(?=[A-Za-z_(])/g,
  call: /\.\s*(MapGet|MapPost|MapPut|MapPatch|MapDelete|MapMethods|Map|MapGroup)\s*(?:<[^()]*>)?\s*\(/g,
  prepare() {},
  construct: () => null,
  external: () => null,
  field: null,
  loose: (file, text) => (/^[\w.]+$/.test(text) ? file.graph.node(`${file.source.file}#${text}`, "aspnet") : null),
  visit(file, { method, dot, open }) {
    const args = file.source.args(open);
    const parent = file.receiver(dot);
    if (!parent || !args.length) return;
    if (method === "MapGroup") return void file.step(parent, method, open);
    const p = file.text(args[0]);
    if (p === null || args.length < 2) return;
    const methods = method === "MapMethods" ? file.source.values(args[1], file.consts).map((m) => m.toUpperCase()) : [method === "Map" ? "ANY" : method.slice(3).toUpperCase()];
    file.graph.add(parent, { path: p, methods: methods.filter((m) => METHOD_SET.has(m)), framework: "aspnet", ...file.where(open) });
  },
  finish() {},
};

// --- Rust ---

const RUST_NEW = /^(?:(?:axum::)?Router::(?:new|with_state)|App::new|web::scope|web::resource|actix_web::App::new|OpenApiRouter::new)$/;

const RUST = {
  langKey: "rs",
  children: words(""),
  through: /^(?!into_make_service)\w+$/,
  closure: /^\s*()$/,
  assignment: /\blet\s+(?:mut\s+)?([a-z_]\w*)\s*(?::\s*[\w:<>, ]+?)?\s*=(?![=>])\s*(?=[A-Za-z_])/g,
  call: /\.\s*(route|nest|nest_service|merge|service|configure)\s*\(/g,

  prepare(file) {
    file.framework = /\bactix_web\b/.test(file.source.code) ? "actix" : "axum";
    for (const m of file.code.matchAll(/\bfn\s+(\w+)\s*(?:<[^(]*>)?\(([^)]*)\)/g)) {
      const param = /(\w+)\s*:\s*&mut\s+(?:web::)?ServiceConfig/.exec(m[2]);
      const open = file.code.indexOf("{", m.index + m[0].length);
      if (param && open > 0) file.bind(param[1], open, file.source.pairs.get(open) ?? file.code.length, file.graph.node(rustFn(file.source.file, m[1]), "actix"));
    }
    rustAttributes(file);
  },

  construct(file, name, at, open) {
    if (RUST_NEW.test(name)) {
      const own = /^web::/.test(name) ? file.text(file.source.args(open)[0] || null) : null;
      const key = file.graph.node(`${file.source.file}@${open}`, /^web::|App::/.test(name) ? "actix" : "axum", own);
      const fns = [...file.code.slice(0, at).matchAll(/\bfn\s+(\w+)/g)];
      if (fns.length && !name.startsWith("web::")) file.graph.link(rustFn(file.source.file, fns[fns.length - 1][1]), key);
      return key;
    }
    return null;
  },

  external: () => null,
  loose: null,

  visit(file, { method, dot, open }) {
    const args = file.source.args(open);
    const parent = file.receiver(dot);
    if (!parent || !args.length) return;
    if (method === "route") return void rustRoute(file, parent, args, open);
    if (method === "nest" || method === "nest_service") {
      const prefix = file.text(args[0]);
      if (prefix !== null && args[1]) rustMount(file, parent, prefix, args[1]);
      return;
    }
    rustMount(file, parent, "", args[0]);
  },
  finish() {},
};

const rustModule = (file) => (baseName(file) === "mod.rs" ? baseName(dirName(file)) : baseName(file).replace(/\.rs$/, ""));
const rustFn = (file, name) => `rs:${rustModule(file)}::${name}`;

function rustMount(file, parent, prefix, range) {
  const text = file.code.slice(...range).trim();
  const node = file.router(range[0], range[1]);
  if (node) return file.graph.mount(parent, prefix, node);
  const call = /^((?:\w+::)*)(\w+)(?:\s*\(|$)/.exec(text);
  if (!call) return undefined;
  const module = call[1].split("::").filter((m) => m && !/^(?:crate|self|super)$/.test(m)).pop();
  file.graph.mount(parent, prefix, module ? `rs:${module}::${call[2]}` : rustFn(file.source.file, call[2]));
  if (!module) {
    const use = new RegExp(`\\buse\\s+(?:[\\w:]*::)?(\\w+)::(?:\\{[^}]*\\b)?${call[2]}\\b`).exec(file.code);
    if (use) file.graph.mount(parent, prefix, `rs:${use[1]}::${call[2]}`);
  }
  return undefined;
}

function rustRoute(file, parent, args, open) {
  const isResource = args.length === 1;
  const p = isResource ? "" : file.text(args[0]);
  if (p === null) return;
  const handler = file.code.slice(...args[args.length - 1]);
  const methods = unique([...handler.matchAll(/(?:^|[^\w])(get|post|put|patch|delete|head|options|any|trace)(?:_service)?\s*(?:::<[^()]*>\s*)?\(/g)].map((m) => m[1].toUpperCase()));
  file.graph.add(parent, { path: p, methods: methods.length ? methods : ["ANY"], framework: file.graph.framework(parent) || file.framework, ...file.where(open) });
}

function rustAttributes(file) {
  for (const m of file.code.matchAll(/#\[\s*(?:\w+::)?(get|post|put|patch|delete|head|options|route)\s*\(/g)) {
    const open = m.index + m[0].length - 1;
    const args = file.source.args(open);
    const p = args.length ? file.text(args[0]) : null;
    if (p === null || !p.startsWith("/")) continue;
    const fn = /^[\s\S]{0,400}?\bfn\s+(\w+)/.exec(file.code.slice(open));
    const extra = args.slice(1).map((r) => /^\s*method\s*=\s*/.exec(file.code.slice(...r)) && file.source.value(r[0] + /^\s*method\s*=\s*/.exec(file.code.slice(...r))[0].length)).filter(Boolean);
    const node = file.graph.node(fn ? rustFn(file.source.file, fn[1]) : `${file.source.file}@${open}`, /\brocket\b/.test(file.code) ? "rocket" : "actix");
    file.graph.add(node, { path: p.replace(/<(\w+)\.\.>/g, "*$1"), methods: m[1] === "route" ? (extra.length ? extra : ["ANY"]) : [m[1].toUpperCase()], ...file.where(open) });
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Routes: Python
// ---------------------------------------------------------------------------------------------------------------

const pyModule = (file) => file.replace(/\.py$/, "").replace(/\/__init__$/, "").replace(/\//g, ".");

// The file a dotted module name stands for: exact from the root, else the only file that ends so.
function pyFile(project, module, from) {
  let name = module;
  const dots = /^\.+/.exec(module);
  if (dots) {
    let dir = dirName(from);
    for (let i = 1; i < dots[0].length; i++) dir = dirName(dir);
    name = [dir.replace(/\//g, "."), module.slice(dots[0].length)].filter(Boolean).join(".");
  }
  const tail = name.replace(/\./g, "/");
  for (const candidate of [`${tail}.py`, `${tail}/__init__.py`]) if (project.tree.has(candidate)) return candidate;
  const ends = project.tree.files.filter((f) => f.endsWith(`/${tail}.py`) || f.endsWith(`/${tail}/__init__.py`));
  return ends.length === 1 ? ends[0] : ends.find((f) => dirName(f).startsWith(dirName(from))) || null;
}

function pyImports(source, project) {
  const imports = new Map();
  for (const m of source.code.matchAll(/^[ \t]*from\s+([\w.]+)\s+import\s+(?:\(([^)]*)\)|([^\n]+))/gm)) {
    for (const part of (m[2] ?? m[3]).split(",")) {
      const p = /^\s*(\w+)(?:\s+as\s+(\w+))?\s*$/.exec(part);
      if (!p) continue;
      const asModule = pyFile(project, `${m[1].replace(/\.$/, ".")}${m[1].endsWith(".") ? "" : "."}${p[1]}`, source.file);
      const inModule = pyFile(project, m[1], source.file);
      imports.set(p[2] || p[1], asModule ? { file: asModule } : { file: inModule, name: p[1] });
    }
  }
  for (const m of source.code.matchAll(/^[ \t]*import\s+([\w.]+)(?:\s+as\s+(\w+))?/gm)) {
    const file = pyFile(project, m[1], source.file);
    if (file) imports.set(m[2] || m[1], { file });
  }
  return imports;
}

class PythonFile {
  constructor(source, project) {
    Object.assign(this, { source, project, graph: project.graph, code: source.code, consts: project.constants.resolve });
    this.imports = pyImports(source, project);
  }

  node(name) {
    const parts = name.split(".");
    const whole = this.imports.get(parts.slice(0, -1).join("."));
    if (parts.length > 1 && whole?.file && !whole.name) return `py:${whole.file}#${parts[parts.length - 1]}`;
    const from = this.imports.get(parts[0]);
    if (from?.file) return `py:${from.file}#${from.name || parts[parts.length - 1]}`;
    return `py:${this.source.file}#${parts[parts.length - 1]}`;
  }

  keyword(args, name) {
    for (const [from, to] of args) {
      const m = new RegExp(`^${name}\\s*=\\s*`).exec(this.code.slice(from, to));
      if (m) return [from + m[0].length, to];
    }
    return null;
  }

  keywordText(args, name) {
    const range = this.keyword(args, name);
    return range ? this.source.value(range[0], this.consts) : null;
  }

  where(pos) {
    return { file: this.source.file, line: this.source.line(pos) };
  }

  run() {
    for (const m of this.code.matchAll(/(?:^|\n)[ \t]*([\w.]+)\s*(?::\s*[\w.]+\s*)?=\s*(?:\w+\.)*(Flask|Blueprint|APIBlueprint|FastAPI|APIRouter|Quart|Sanic|Starlette)\s*\(/g)) {
      const args = this.source.args(m.index + m[0].length - 1);
      const framework = /FastAPI|APIRouter/.test(m[2]) ? "fastapi" : m[2] === "Starlette" ? "starlette" : "flask";
      this.graph.node(`py:${this.source.file}#${m[1].split(".").pop()}`, framework, this.keywordText(args, framework === "fastapi" ? "prefix" : "url_prefix"));
    }
    for (const [name, from] of this.imports) {
      if (from.file && from.name) this.graph.link(`py:${this.source.file}#${name}`, `py:${from.file}#${from.name}`);
    }
    this.mounts();
    this.decorators();
    this.tables();
    if (/\burlpatterns\b|\brouter\s*\.\s*register\s*\(/.test(this.code)) this.django();
  }

  mounts() {
    for (const m of this.code.matchAll(/([\w.]+)\s*\.\s*(include_router|register_blueprint|mount|init_app)\s*\(/g)) {
      const args = this.source.args(m.index + m[0].length - 1);
      const isMount = m[2] === "mount";
      const target = isMount ? args[1] : args[0];
      const prefix = isMount ? (args[0] ? this.source.value(args[0][0], this.consts) : null) : this.keywordText(args, m[2] === "include_router" ? "prefix" : "url_prefix");
      const name = target && /^(?:app\s*=\s*)?([\w.]+)$/.exec(this.source.slice(target).trim());
      if (name) this.graph.mount(this.node(m[1].replace(/^self\./, "")), prefix || "", this.node(name[1]), m[2] === "register_blueprint" && prefix !== null);
    }
  }

  decorators() {
    for (const m of this.code.matchAll(/@\s*([\w.]+)\s*\.\s*(route|get|post|put|patch|delete|head|options|api_route|websocket|trace)\s*\(/g)) {
      const args = this.source.args(m.index + m[0].length - 1);
      const range = this.keyword(args, "(?:path|rule|uri)") || args[0];
      const p = range ? this.source.value(range[0], this.consts) : null;
      if (p === null || (p !== "" && !p.startsWith("/"))) continue;
      const listed = this.keyword(args, "methods");
      const methods = m[2] === "route" || m[2] === "api_route" ? (listed ? this.source.values(listed, this.consts).map((v) => v.toUpperCase()) : ["GET"]) : m[2] === "websocket" ? ["GET"] : [m[2].toUpperCase()];
      const node = this.node(m[1]);
      const framework = this.graph.framework(node) || (this.project.pyFramework === "fastapi" && m[2] !== "route" ? "fastapi" : this.project.pyFramework);
      if (framework) this.graph.add(node, { path: p, methods, framework: this.graph.frameworks.get(node) ? null : framework, ...this.where(m.index) });
    }
  }

  tables() {
    for (const m of this.code.matchAll(/([\w.]+)\s*\.\s*add_(?:url_rule|api_route)\s*\(/g)) {
      const args = this.source.args(m.index + m[0].length - 1);
      const p = args[0] ? this.source.value(args[0][0], this.consts) : null;
      const listed = this.keyword(args, "methods");
      const view = /(\w+)\s*\.\s*as_view\b/.exec(this.code.slice(m.index, this.source.pairs.get(m.index + m[0].length - 1) ?? m.index));
      const methods = listed ? this.source.values(listed, this.consts).map((v) => v.toUpperCase()) : view ? this.classMethods(view[1]) : ["GET"];
      if (p !== null) this.graph.add(this.node(m[1]), { path: p, methods, framework: this.project.pyFramework || "flask", ...this.where(m.index) });
    }
    for (const m of this.code.matchAll(/([\w.]+)\s*\.\s*add_resource\s*\(/g)) {
      const args = this.source.args(m.index + m[0].length - 1);
      const cls = args[0] ? this.source.slice(args[0]).trim() : "";
      for (const range of args.slice(1)) {
        const p = this.source.strings.has(range[0]) ? this.source.value(range[0], this.consts) : null;
        if (p !== null) this.graph.add(this.node(m[1]), { path: p, methods: this.classMethods(cls), framework: "flask", ...this.where(m.index) });
      }
    }
    for (const m of this.code.matchAll(/\b(?:web\.)?Route\s*\(\s*(?=["'])/g)) {
      if (!/\bstarlette\b/.test(this.code)) break;
      const args = this.source.args(m.index + m[0].trimEnd().length - 1);
      const listed = this.keyword(args, "methods");
      const p = args[0] ? this.source.value(args[0][0], this.consts) : null;
      if (p !== null) this.graph.add(`py:${this.source.file}#routes`, { path: p, methods: listed ? this.source.values(listed, this.consts) : ["GET"], framework: "starlette", ...this.where(m.index) });
    }
  }

  // HTTP methods that a class view answers, wherever the class is written.
  classMethods(name) {
    const last = name.split(".").pop();
    for (const source of this.project.sources.py || []) {
      const at = new RegExp(`^([ \\t]*)class\\s+${last.replace(/\W/g, "")}\\b`, "m").exec(source.code);
      if (!at) continue;
      const rest = source.code.slice(at.index + at[0].length);
      const end = rest.search(/\n(?=[^\s#)])/);
      const body = end < 0 ? rest : rest.slice(0, end);
      const found = unique([...body.matchAll(/^[ \t]+(?:async\s+)?def\s+(get|post|put|patch|delete|head|options)\s*\(/gm)].map((m) => m[1].toUpperCase()));
      if (found.length) return found;
      const generic = /\b(List|Detail|Retrieve|Create|Update|Delete|Destroy|Template|Redirect|Form)/.exec(rest.slice(0, 120));
      if (generic) return { Create: ["GET", "POST"], Update: ["GET", "POST"], Delete: ["GET", "POST"], Form: ["GET", "POST"], Destroy: ["DELETE"] }[generic[1]] || ["GET"];
    }
    return ["GET"];
  }

  functionMethods(name) {
    const last = name.split(".").pop().replace(/\W/g, "");
    for (const source of this.project.sources.py || []) {
      const m = new RegExp(`((?:^[ \\t]*@[^\\n]*\\n)+)[ \\t]*(?:async\\s+)?def\\s+${last}\\b`, "m").exec(source.code);
      const decorator = m && /@(?:api_view|require_http_methods)\s*\(/.exec(m[1]);
      if (decorator) return source.values(source.args(m.index + decorator.index + decorator[0].length - 1)[0] || [0, 0], this.consts).map((v) => v.toUpperCase());
      if (m) {
        const only = /@require_(GET|POST|safe)\b/.exec(m[1]);
        if (only) return [only[1] === "safe" ? "GET" : only[1]];
      }
    }
    return null;
  }

  django() {
    const file = this.source.file;
    const lists = [...this.code.matchAll(/\b(\w*urlpatterns|\w+_(?:urls|patterns))\s*(?::[^=\n]+)?\+?=\s*(?:\w+\(\s*)?\[/g)].map((m) => {
      const open = m.index + m[0].length - 1;
      return { name: m[1], from: open, to: this.source.pairs.get(open) ?? this.code.length };
    });
    const nodeAt = (pos) => `py:${file}#${lists.find((l) => l.from < pos && pos < l.to)?.name || "urlpatterns"}`;
    this.graph.link(`py:${file}#urls`, `py:${file}#urlpatterns`);
    for (const m of this.code.matchAll(/(?<![\w.])(?:re_)?(?:path|url)\s*\(|\bre_path\s*\(/g)) {
      const args = this.source.args(m.index + m[0].length - 1);
      const p = args[0] ? this.source.value(args[0][0], this.consts) : null;
      if (p === null || args.length < 2) continue;
      const view = this.source.slice(args[1]).trim();
      const include = /^include\s*\(/.exec(view);
      if (!include) {
        if (/^admin\.site\.urls$/.test(view)) this.graph.add(nodeAt(m.index), { path: p, methods: ["ANY"], framework: "django", kind: "page", ...this.where(m.index) });
        else this.graph.add(nodeAt(m.index), { path: p, methods: this.viewMethods(view), framework: "django", ...this.where(m.index) });
        continue;
      }
      this.djangoInclude(nodeAt(m.index), p, args[1][0] + include[0].length - 1);
    }
    for (const m of this.code.matchAll(/(\w+)\s*\.\s*register\s*\(/g)) {
      const args = this.source.args(m.index + m[0].length - 1);
      const p = args[0] && this.source.strings.size ? this.source.value(args[0][0], this.consts) : null;
      if (p === null || args.length < 2 || !/\b(?:Default|Simple|Nested\w*)Router\b/.test(this.code)) continue;
      const readOnly = /ReadOnly/.test(this.classHead(this.source.slice(args[1]).trim()));
      const where = { framework: "django", ...this.where(m.index) };
      this.graph.add(`py:${file}#${m[1]}`, { path: p, methods: readOnly ? ["GET"] : ["GET", "POST"], ...where });
      this.graph.add(`py:${file}#${m[1]}`, { path: `${p}/{pk}`, methods: readOnly ? ["GET"] : ["GET", "PUT", "PATCH", "DELETE"], ...where });
    }
  }

  djangoInclude(node, prefix, open) {
    const inner = this.source.args(open)[0];
    if (!inner) return;
    const module = this.source.strings.has(inner[0]) ? this.source.value(inner[0], this.consts) : null;
    const name = this.source.slice(inner).trim().replace(/^\(\s*/, "");
    if (module !== null) {
      const target = pyFile(this.project, module, this.source.file);
      if (target) this.graph.mount(node, prefix, `py:${target}#urlpatterns`);
      return;
    }
    const ident = /^([\w.]+)/.exec(name);
    if (!ident) return;
    if (ident[1].endsWith(".urls")) this.graph.mount(node, prefix, this.node(ident[1].slice(0, -5)));
    const from = this.imports.get(ident[1]);
    this.graph.mount(node, prefix, from?.file && !from.name ? `py:${from.file}#urlpatterns` : this.node(ident[1]));
  }

  viewMethods(view) {
    const cls = /(\w+)\s*\.\s*as_view\s*\(/.exec(view);
    if (cls) return this.classMethods(cls[1]);
    const name = /^[\w.]+/.exec(view);
    return (name && this.functionMethods(name[0])) || ["GET"];
  }

  classHead(name) {
    for (const source of this.project.sources.py || []) {
      const m = new RegExp(`\\bclass\\s+${name.split(".").pop().replace(/\W/g, "")}\\s*\\(([^)]*)\\)`).exec(source.code);
      if (m) return m[1];
    }
    return "";
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Routes: Ruby
// ---------------------------------------------------------------------------------------------------------------

const RAILS_ALL = { index: [["GET", ""]], create: [["POST", ""]], new: [["GET", "/new"]], show: [["GET", "/:id"]], edit: [["GET", "/:id/edit"]],
  update: [["PATCH", "/:id"], ["PUT", "/:id"]], destroy: [["DELETE", "/:id"]] };

const rubyNames = (text) => [...text.matchAll(/%[iw]\[([^\]]*)\]|:(\w+)|["']([\w\/-]+)["']/g)].flatMap((m) => (m[1] !== undefined ? m[1].trim().split(/\s+/) : [m[2] ?? m[3]]));

function rubyOption(line, name) {
  const m = new RegExp(`(?:\\b${name}:|:${name}\\s*=>)\\s*(\\[[^\\]]*\\]|%[iw]\\[[^\\]]*\\]|:\\w+|["'][^"']*["']|nil|false|true)`).exec(line);
  return m ? m[1] : null;
}

const rubyText = (value) => (value === null || value === "nil" ? null : value.replace(/^[:"']|["']$/g, ""));
const singular = (word) => word.replace(/ies$/, "y").replace(/(ss|sh|ch|x)es$/, "$1").replace(/([^s])s$/, "$1");

// Logical lines of a routes file: comments gone, continued lines joined.
function rubyLines(source) {
  let text = "";
  let kept = 0;
  for (const [from, to] of source.comments) {
    text += source.text.slice(kept, from);
    kept = to;
  }
  text += source.text.slice(kept);
  const out = [];
  let open = null;
  text.split("\n").forEach((raw, i) => {
    const line = raw.trim();
    if (!line) return;
    const inBraces = open ? null : /^((?:member|collection|namespace|scope|resources?|constraints|with_options)\b[^{]*)\{\s*([^{}|:=]*:?[^{}|=]*?)\s*\}$/.exec(line);
    if (inBraces) {
      for (const text of [inBraces[1] + " do", ...inBraces[2].split(/\s*;\s*/), "end"]) out.push({ text, line: i + 1 });
      return;
    }
    if (open) open.text += " " + line;
    else out.push((open = { text: line, line: i + 1 }));
    if (!/[,\\]$|=>$/.test(line)) open = null;
  });
  return out;
}

class RailsRoutes {
  constructor(source, project) {
    Object.assign(this, { source, graph: project.graph });
    this.stack = [{ path: "", kind: "root" }];
    this.concerns = new Map();
  }

  add(method, p, line) {
    const page = method === "GET" && !/^\/api\b/.test(p);
    this.graph.add(`rails:${this.source.file}`, { path: p, methods: [method], framework: "rails", kind: page ? "page" : "api", file: this.source.file, line });
  }

  run() {
    this.graph.node(`rails:${this.source.file}`, "rails");
    for (const { text, line } of rubyLines(this.source)) this.line(text, line);
  }

  line(text, line) {
    const opens = /\bdo\s*(?:\|[^|]*\|)?\s*$/.test(text) || /\{\s*$/.test(text) || /^(?:if|unless|case|begin|def|class|module)\b/.test(text);
    if (/^(?:end\b|\})/.test(text)) {
      if (this.stack.length > 1) this.stack.pop();
      return;
    }
    const skip = this.stack.some((s) => s.kind === "concern");
    const scope = skip ? { path: "", kind: "other" } : this.statement(text, line) || { path: "", kind: "other" };
    if (/^concern\b/.test(text)) scope.kind = "concern";
    if (opens) this.stack.push(scope);
  }

  statement(text, line) {
    const m = /^([a-z_!]+)\b\s*\(?\s*(.*?)\)?\s*(?:\bdo\b.*|\{)?$/.exec(text);
    if (!m) return null;
    const [, word, rest] = m;
    const first = rubyNames(rest)[0];
    if (word === "namespace") return { path: rubyText(rubyOption(rest, "path")) ?? first ?? "", kind: "scope" };
    if (word === "scope") {
      const named = rubyText(rubyOption(rest, "path"));
      const literal = /^(?:["']([^"']*)["']|:(\w+)(?!\s*=>)\b)/.exec(rest);
      return { path: named ?? (literal ? literal[1] ?? literal[2] : ""), kind: "scope" };
    }
    if (word === "resources" || word === "resource") return this.resources(word, rest, line);
    if (word === "member") return { path: "", kind: "member" };
    if (word === "collection") return { path: "", kind: "collection" };
    if (word === "root") this.add("GET", this.here("") || "/", line);
    else if (/^(?:get|post|put|patch|delete|match)$/.test(word)) this.verb(word, rest, line);
    else if (word === "mount") {
      const at = /(?:=>|\bat:)\s*["']([^"']+)["']/.exec(rest);
      if (at) this.add("GET", this.here(at[1]), line);
    } else if (word === "devise_for" && first) {
      const base = rubyText(rubyOption(rest, "path")) ?? first;
      for (const [method, p] of [["GET", "sign_in"], ["POST", "sign_in"], ["DELETE", "sign_out"], ["GET", "sign_up"], ["POST", ""], ["GET", "password/new"]]) this.add(method, this.here(joinRoute(base, p)), line);
    }
    return null;
  }

  // The path of a statement here. Inside `resources` it sits under the parent's id, in `member` under `:id`,
  // in `collection` beside it.
  here(p, on) {
    const items = [...this.stack, ...(on ? [{ path: "", kind: on }] : [])].filter((s) => s.kind !== "other");
    const parts = [];
    items.forEach((s, i) => {
      parts.push(s.path);
      if (s.kind !== "resources" || items[i + 1]?.kind === "collection") return;
      parts.push(items[i + 1]?.kind === "member" ? ":id" : `:${s.param}`);
    });
    return "/" + joinRoute(...parts, p.replace(/^\//, ""));
  }

  verb(word, rest, line) {
    const paths = [];
    const literal = /^(?:["']([^"']*)["']|:(\w+[?!]?))/.exec(rest);
    if (!literal) return;
    const lead = /^((?::\w+\s*,\s*)+:\w+)\s*(?:,\s*\w+:|$)/.exec(rest);
    if (lead) paths.push(...rubyNames(lead[1]));
    else paths.push(literal[1] ?? literal[2]);
    const via = word === "match" ? rubyNames(rubyOption(rest, "via") || ":get").map((v) => v.toUpperCase()) : [word.toUpperCase()];
    const on = rubyText(rubyOption(rest, "on"));
    for (const p of paths) {
      for (const method of via) this.add(method === "ALL" ? "ANY" : method, this.here(p.replace(/\(\.:?format\)/, ""), on === "new" ? null : on), line);
    }
  }

  resources(word, rest, line) {
    const names = rubyNames(rest.replace(/,\s*(?:\w+:|:\w+\s*=>)[\s\S]*$/, ""));
    const only = rubyOption(rest, "only");
    const except = rubyOption(rest, "except");
    const plural = word === "resources";
    const actions = Object.keys(RAILS_ALL).filter((a) => (plural || a !== "index") && (!only || rubyNames(only).includes(a)) && (!except || !rubyNames(except).includes(a)));
    const param = rubyText(rubyOption(rest, "param"));
    let last = null;
    for (const name of names) {
      const base = this.here(rubyText(rubyOption(rest, "path")) ?? name);
      for (const action of actions) {
        for (const [method, tail] of RAILS_ALL[action]) this.add(method, base + (plural ? tail.replace(":id", `:${param || "id"}`) : tail.replace("/:id", "")), line);
      }
      last = { path: rubyText(rubyOption(rest, "path")) ?? name, kind: plural ? "resources" : "resource", param: param || `${singular(name)}_id` };
    }
    return last;
  }
}

function sinatraRoutes(source, project) {
  if (!/\bSinatra\b|\bGrape::API\b/.test(source.code) && ![...source.strings.values()].some((s) => /^sinatra/.test(s.value))) return;
  const node = project.graph.node(`sinatra:${source.file}`, "sinatra");
  const regions = [];
  for (const m of source.code.matchAll(/^[ \t]*namespace\s+(?=["'])/gm)) {
    const p = source.value(m.index + m[0].length, null);
    const end = source.code.slice(m.index).search(new RegExp(`\\n[ \\t]{${source.indent(m.index + m[0].search(/\S/))}}end\\b`));
    if (p) regions.push({ from: m.index, to: end < 0 ? source.code.length : m.index + end, prefix: p });
  }
  for (const m of source.code.matchAll(/^[ \t]*(get|post|put|patch|delete|options|head)\s*\(?\s*(?=["'])/gm)) {
    const p = source.value(m.index + m[0].length, null);
    const rest = source.code.slice(m.index, source.code.indexOf("\n", m.index) < 0 ? undefined : source.code.indexOf("\n", m.index));
    if (p === null || !/\bdo\b|\{/.test(rest) || !/^[\/*]/.test(p)) continue;
    const prefix = regions.filter((r) => r.from < m.index && m.index < r.to).map((r) => r.prefix);
    project.graph.add(node, { path: joinRoute(...prefix, p), methods: [m[1].toUpperCase()], framework: "sinatra", kind: m[1] === "get" ? "page" : "api", file: source.file, line: source.line(m.index + m[0].search(/\S/)) });
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Routes: PHP and Elixir, where blocks carry the prefix
// ---------------------------------------------------------------------------------------------------------------

const prefixesAt = (regions, pos) => regions.filter((r) => r.from < pos && pos < r.to).sort((a, b) => a.from - b.from).map((r) => r.prefix);

function laravelChain(source, start, end, consts) {
  const prefix = [];
  for (const m of source.code.slice(start, end).matchAll(/(?:::|->)\s*prefix\s*\(/g)) {
    const args = source.args(start + m.index + m[0].length - 1);
    const p = args[0] ? source.value(args[0][0], consts) : null;
    if (p !== null) prefix.push(p);
  }
  return joinRoute(...prefix);
}

function laravelRoutes(source, project) {
  const { graph, constants: { resolve: consts } } = project;
  if (!/\bRoute\s*::/.test(source.code)) return;
  const base = /(^|\/)routes\/api\.php$/.test(source.file) ? "api" : "";
  const node = graph.node(`laravel:${source.file}`, "laravel", base);
  const regions = [];
  for (const m of source.code.matchAll(/\bRoute\s*::\s*\w+/g)) {
    const end = statementEnd(source, m.index);
    const group = /(?:->|::)\s*group\s*\(/.exec(source.code.slice(m.index, end));
    if (!group) continue;
    const open = m.index + group.index + group[0].length - 1;
    const args = source.args(open);
    const option = args[0] && /^(?:\[|array\s*\()/.test(source.slice(args[0])) ? phpOption(source, args[0], "prefix", consts) : null;
    const prefix = joinRoute(laravelChain(source, m.index, open, consts), option || "");
    if (prefix) regions.push({ from: open, to: source.pairs.get(open) ?? end, prefix });
  }
  for (const m of source.code.matchAll(/(?:\bRoute\s*::|->)\s*(get|post|put|patch|delete|options|any|match|view|redirect|resource|apiResource|resources|apiResources|singleton)\s*\(/g)) {
    const start = source.code.lastIndexOf("Route", m.index + 5);
    if (start < 0 || !/^Route\s*::[\s\S]*$/.test(source.code.slice(start)) || statementEnd(source, start) < m.index) continue;
    const open = m.index + m[0].length - 1;
    const args = source.args(open);
    const prefix = joinRoute(...prefixesAt(regions, m.index), laravelChain(source, start, m.index + 1, consts));
    for (const [method, p] of laravelPaths(source, m[1], args, open, consts)) {
      graph.add(node, { path: joinRoute(prefix, p), methods: [method], framework: "laravel", kind: method === "GET" && !base ? "page" : "api", file: source.file, line: source.line(m.index) });
    }
  }
}

function statementEnd(source, pos) {
  for (let i = pos; i < source.code.length; i++) {
    if ("([{".includes(source.code[i]) && source.pairs.has(i)) i = source.pairs.get(i);
    else if (source.code[i] === ";" || source.code[i] === "}") return i;
  }
  return source.code.length;
}

function phpOption(source, [from, to], name, consts) {
  for (const [at, literal] of source.strings) {
    if (at < from || at >= to || literal.value !== name) continue;
    const arrow = /^\s*=>\s*/.exec(source.code.slice(literal.end, literal.end + 20));
    if (arrow) return source.value(literal.end + arrow[0].length, consts);
  }
  return null;
}

function laravelPaths(source, verb, args, open, consts) {
  const p = args[0] ? source.value(args[0][0], consts) : null;
  if (verb === "match") {
    const methods = args[0] ? source.values(args[0], consts).map((m) => m.toUpperCase()) : [];
    const at = args[1] ? source.value(args[1][0], consts) : null;
    return at === null ? [] : methods.filter((m) => METHOD_SET.has(m)).map((m) => [m, at]);
  }
  if (/esources?$|singleton/.test(verb)) {
    const names = verb.endsWith("s") && args[0] ? [...source.strings].filter(([at, s]) => at > args[0][0] && at < args[0][1] && /^\s*=>/.test(source.code.slice(s.end, s.end + 6))).map(([, s]) => s.value) : p === null ? [] : [p];
    return names.flatMap((name) => laravelResource(source, name, verb.startsWith("api"), open, consts));
  }
  if (p === null) return [];
  return [[{ any: "ANY", view: "GET", redirect: "GET" }[verb] || verb.toUpperCase(), p]];
}

function laravelResource(source, name, api, open, consts) {
  const end = statementEnd(source, open);
  const tail = source.code.slice(open, end);
  const list = (word) => {
    const m = new RegExp(`->\\s*${word}\\s*\\(`).exec(tail);
    return m ? source.args(open + m.index + m[0].length - 1).flatMap((r) => source.values(r, consts)) : null;
  };
  const only = list("only");
  const except = list("except");
  const base = name.split(".").map((part, i, all) => (i < all.length - 1 ? `${part}/{${singular(part)}}` : part)).join("/");
  const id = `{${singular(name.split(".").pop().split("/").pop()).replace(/-/g, "_")}}`;
  const all = { index: [["GET", base]], create: [["GET", `${base}/create`]], store: [["POST", base]], show: [["GET", `${base}/${id}`]],
    edit: [["GET", `${base}/${id}/edit`]], update: [["PUT", `${base}/${id}`], ["PATCH", `${base}/${id}`]], destroy: [["DELETE", `${base}/${id}`]] };
  return Object.entries(all).filter(([a]) => !(api && /^(?:create|edit)$/.test(a)) && (!only || only.includes(a)) && (!except || !except.includes(a))).flatMap(([, list1]) => list1);
}

function phoenixRoutes(source, project) {
  if (!/\buse\s+[\w.]+,\s*:router\b|\bPhoenix\.Router\b/.test(source.code)) return;
  const node = project.graph.node(`phoenix:${source.file}`, "phoenix");
  const blocks = (re) => [...source.code.matchAll(re)].map((m) => {
    const at = m.index + m[0].search(/\S/);
    const end = source.code.slice(at).search(new RegExp(`\\n[ \\t]{${source.indent(at)}}end\\b`));
    return { m, at, open: m.index + m[0].length, to: end < 0 ? source.code.length : at + end };
  });
  const regions = blocks(/^[ \t]*(?:scope|forward)\s*\(?\s*(?=")/gm).map((b) => ({ from: b.at, to: b.to, prefix: source.value(b.open, null) || "" }));
  for (const b of blocks(/^[ \t]*resources\s*\(?\s*(?=")/gm)) {
    const lineEnd = source.code.indexOf("\n", b.at);
    const p = source.value(b.open, null);
    if (p !== null && /\bdo\s*$/.test(source.code.slice(b.at, lineEnd))) regions.push({ from: lineEnd, to: b.to, prefix: `${p}/:${singular(p.split("/").pop())}_id` });
  }
  const add = (pos, method, p, kind) => project.graph.add(node, { path: joinRoute(...prefixesAt(regions, pos), p), methods: [method], framework: "phoenix", kind, file: source.file, line: source.line(pos) });
  for (const m of source.code.matchAll(/^[ \t]*(get|post|put|patch|delete|options|head|live|resources)\s*\(?\s*(?=")/gm)) {
    const p = source.value(m.index + m[0].length, null);
    const pos = m.index + m[0].search(/\S/);
    if (p === null) continue;
    if (m[1] !== "resources") add(pos, m[1] === "live" ? "GET" : m[1].toUpperCase(), p, m[1] === "live" || (m[1] === "get" && !/api/.test(prefixesAt(regions, pos).join("/"))) ? "page" : "api");
    else {
      const line = source.text.slice(pos, source.text.indexOf("\n", pos));
      const list = (name) => { const o = new RegExp(`\\b${name}:\\s*\\[([^\\]]*)\\]`).exec(line); return o ? rubyNames(o[1]) : null; };
      const [only, except] = [list("only"), list("except")];
      for (const [action, entries] of Object.entries({ ...RAILS_ALL, delete: RAILS_ALL.destroy, destroy: [] })) {
        if ((only && !only.includes(action)) || except?.includes(action)) continue;
        for (const [method, tail] of entries) add(pos, method, p + tail, "api");
      }
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Routes: annotations on classes and methods (Spring, NestJS, Symfony, ASP.NET controllers)
// ---------------------------------------------------------------------------------------------------------------

const ANNOTATIONS = {
  java: { framework: "spring", gate: /@(?:Rest)?Controller\b|@RequestMapping\b|@FeignClient/, re: /@(RequestMapping|GetMapping|PostMapping|PutMapping|PatchMapping|DeleteMapping)\b\s*(\()?/g, prefix: /^RequestMapping$/ },
  js: { framework: "nestjs", gate: /@Controller\s*\(/, re: /@(Controller|Get|Post|Put|Patch|Delete|Head|Options|All|Sse)\s*(\()/g, prefix: /^Controller$/ },
  php: { framework: "symfony", gate: /#\[\s*(?:\w+\\)*Route\b/, re: /#\[\s*(?:\w+\\)*(Route|Get|Post|Put|Delete)\s*(\()/g, prefix: /^Route$/ },
  cs: { framework: "aspnet", gate: /\[\s*(?:ApiController|Route|Http(?:Get|Post|Put|Patch|Delete))\b/, re: /\[\s*(Route|HttpGet|HttpPost|HttpPut|HttpPatch|HttpDelete)\b\s*(\()?/g, prefix: /^Route$/ },
};

class AnnotationFile {
  constructor(source, project) {
    Object.assign(this, { source, project, code: source.code, rule: ANNOTATIONS[source.langKey] });
  }

  // What the annotation stands on: a class (its prefix holds for the body) or a method.
  target(pos) {
    let at = pos;
    for (let i = 0; i < 30; i++) {
      const skip = /^(?:\s+|@[\w.]+|\]|,|#\[|\[)/.exec(this.code.slice(at, at + 400));
      if (skip) at += skip[0].length;
      else if (this.code[at] === "(" && this.source.pairs.has(at)) at = this.source.pairs.get(at) + 1;
      else {
        const modifier = /^(?:public|private|protected|internal|abstract|final|sealed|static|partial|open|export|default|async|readonly|override|data)\b/.exec(this.code.slice(at, at + 20));
        if (modifier) at += modifier[0].length;
        else if (/^[A-Z]\w*(?=\s*[(\],])/.test(this.code.slice(at, at + 80)) && /[[,]\s*$/.test(this.code.slice(0, at))) at += /^\w+/.exec(this.code.slice(at))[0].length;
        else break;
      }
    }
    const cls = /^(?:class|interface|record)\s+(\w+)/.exec(this.code.slice(at, at + 200));
    if (!cls) return { method: /(\w+)\s*\(/.exec(this.code.slice(at, at + 300))?.[1] };
    const open = this.code.indexOf("{", at);
    return { cls: cls[1], from: open, to: this.source.pairs.get(open) ?? this.code.length };
  }

  read(match) {
    const open = match[2] ? match.index + match[0].length - 1 : -1;
    const args = open >= 0 ? this.source.args(open) : [];
    const consts = this.project.constants.resolve;
    let paths = null;
    let methods = [];
    for (const range of args) {
      const named = /^(\w+)\s*[=:](?!:)\s*/.exec(this.code.slice(...range));
      const inner = named ? [range[0] + named[0].length, range[1]] : range;
      if (!named || /^(?:value|path)$/.test(named[1])) {
        if (this.code[inner[0]] === "{" && !named && this.source.langKey === "js") {
          const at = jsOption({ code: this.code }, inner, "path");
          paths = at >= 0 ? this.source.values([at, inner[1]], consts) : [""];
        } else if (paths === null) paths = this.source.values(inner, consts);
      } else if (/^methods?$/.test(named[1])) {
        methods = [...this.code.slice(...inner).matchAll(/RequestMethod\.(\w+)/g)].map((m) => m[1]);
        if (!methods.length) methods = this.source.values(inner, consts);
      }
    }
    const verb = /^(?:Http)?(Get|Post|Put|Patch|Delete|Head|Options)(?:Mapping)?$/.exec(match[1]);
    if (verb) methods = [verb[1].toUpperCase()];
    else if (match[1] === "Sse") methods = ["GET"];
    return { paths: paths && paths.length ? paths : paths === null ? [""] : [], methods: methods.map((m) => m.toUpperCase()).filter((m) => METHOD_SET.has(m)), end: open >= 0 ? (this.source.pairs.get(open) ?? open) + 1 : match.index + match[0].length };
  }

  run() {
    if (!this.rule || !this.rule.gate.test(this.code)) return;
    const classes = [];
    const found = [];
    for (const m of this.code.matchAll(this.rule.re)) {
      const data = this.read(m);
      const target = this.target(data.end);
      if (target.cls) classes.push({ ...target, ...data });
      else found.push({ ...data, name: m[1], method: target.method, at: m.index });
    }
    const used = new Set();
    for (const f of found) {
      const sameMethod = this.source.langKey === "cs" && f.name === "Route" ? found.find((o) => o !== f && o.method === f.method && Math.abs(o.at - f.at) < 300 && o.name !== "Route") : null;
      if (sameMethod && sameMethod.paths.includes("")) {
        sameMethod.paths = f.paths;
        used.add(f);
      }
    }
    for (const f of found) {
      if (used.has(f)) continue;
      const owner = classes.filter((c) => c.from < f.at && f.at < c.to).pop();
      this.emit(f, owner);
    }
  }

  emit(f, owner) {
    const { graph } = this.project;
    const controller = owner ? owner.cls.replace(/Controller$/, "").toLowerCase() : "";
    for (const before of owner?.paths?.length ? owner.paths : [""]) {
      for (const p of f.paths) {
        const absolute = this.source.langKey === "cs" && /^[~\/]/.test(p);
        const full = (absolute ? p.replace(/^~/, "") : joinRoute(before, p)).replace(/\[controller\]/gi, controller).replace(/\[action\]/gi, f.method || "");
        const node = graph.node(`${this.rule.framework}:app`, this.rule.framework, this.source.langKey === "js" ? this.project.nestPrefix : "");
        graph.add(node, { path: full, methods: f.methods.length ? f.methods : owner?.methods?.length ? owner.methods : ["ANY"], framework: this.rule.framework, file: this.source.file, line: this.source.line(f.at) });
      }
    }
  }
}

// Older Symfony code keeps its routes in doc comments.
function symfonyComments(source, project) {
  for (const [from, to] of source.comments) {
    const m = /@Route\(\s*"([^"]*)"([^)]*)/.exec(source.text.slice(from, to));
    if (!m) continue;
    const after = source.code.slice(to, to + 200);
    if (/^\s*(?:final\s+|abstract\s+)?class\b/.test(after)) continue;
    const cls = source.comments.find(([a, b]) => b < from && /^\s*(?:final\s+|abstract\s+)?class\b/.test(source.code.slice(b, b + 200)));
    const before = cls ? /@Route\(\s*"([^"]*)"/.exec(source.text.slice(...cls))?.[1] || "" : "";
    const methods = /methods\s*=\s*\{?([^}]*)/.exec(m[2]);
    project.graph.add("symfony:app", { path: joinRoute(before, m[1]), methods: methods ? rubyNames(methods[1]) : ["ANY"], framework: "symfony", file: source.file, line: source.line(from) });
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Routes: file systems
// ---------------------------------------------------------------------------------------------------------------

const PAGE_EXT = "(?:tsx|ts|jsx|js|mdx|md)";
const SEGMENT = (s) => s.replace(/^\[\[\.\.\.([^\]]+)\]\]$/, "*$1").replace(/\[\.\.\.([^\]]+)\]/g, "*$1").replace(/\[\[([^\]]+)\]\]/g, ":$1").replace(/\[([^\]=]+)(?:=[^\]]*)?\]/g, ":$1");
const segments = (p) => p.split("/").map(SEGMENT).filter(Boolean).join("/");
const visible = (p) => p.split("/").filter((s) => !/^\(.*\)$/.test(s) && !s.startsWith("@")).join("/");

function exportedMethods(project, file, fallback) {
  const source = project.source(file);
  if (!source) return fallback;
  const found = METHODS.filter((m) => new RegExp(`\\bexport\\s+(?:async\\s+)?(?:function|const|let)\\s+${m}\\b|\\bexport\\s*\\{[^}]*\\b${m}\\b`).test(source.code));
  if (found.length) return found;
  if (/\bexport\s+(?:async\s+)?(?:function|const|let)\s+(?:ALL|fallback)\b/.test(source.code)) return ["ANY"];
  return fallback;
}

// Methods a Next.js pages/api handler tells apart by itself.
function handlerMethods(project, file) {
  const source = project.source(file);
  const found = source ? METHODS.filter((m) => [...source.strings].some(([at, s]) => s.value === m && /(?:method\s*[!=]==?\s*|\bcase\s+)$/.test(source.code.slice(0, at)))) : [];
  return found.length ? found : ["ANY"];
}

function nextRoutes(project, base, files, add) {
  for (const f of files) {
    const rel = base ? f.slice(base.length + 1) : f;
    const app = new RegExp(`^(?:src/)?app/((?:.+/)?)(page|route)\\.${PAGE_EXT}$`).exec(rel);
    if (app) {
      if (/(^|\/)_/.test(app[1]) || /(^|\/)\(\.{1,3}\)/.test(app[1])) continue;
      const route = "/" + segments(visible(app[1].replace(/%5F/gi, "_")));
      add(f, route, app[2] === "page" ? ["GET"] : exportedMethods(project, f, ["GET"]), app[2] === "page" ? "page" : "api", "nextjs");
      continue;
    }
    const pages = new RegExp(`^(?:src/)?pages/(.+)\\.${PAGE_EXT}$`).exec(rel);
    if (!pages || /(^|\/)_(?:app|document|error|middleware)$/.test(pages[1]) || /\.(?:test|spec|stories|d)$/.test(pages[1]) || /^(?:404|500)$/.test(pages[1])) continue;
    const route = "/" + segments(pages[1].replace(/(^|\/)index$/, ""));
    add(f, route, pages[1].startsWith("api/") ? handlerMethods(project, f) : ["GET"], pages[1].startsWith("api/") ? "api" : "page", "nextjs");
  }
}

function nuxtRoutes(project, base, files, add) {
  for (const f of files) {
    const rel = base ? f.slice(base.length + 1) : f;
    const page = /^(?:src\/|app\/)?pages\/(.+)\.(?:vue|tsx|jsx)$/.exec(rel);
    if (page) {
      const route = segments(page[1].split("/").filter((s) => !/^\(.*\)$/.test(s)).join("/").replace(/(^|\/)index$/, "")).replace(/(^|\/)_(\w+)/g, "$1:$2");
      add(f, "/" + route, ["GET"], "page", "nuxt");
    } else serverRoutes(rel, f, add, "nuxt", project);
  }
}

function serverRoutes(rel, f, add, framework, project) {
  const m = framework === "nuxt" ? /^(?:src\/)?server\/(api|routes)\/(.+)\.(?:ts|js|mjs)$/.exec(rel) : /^(?:src\/|server\/)?(api|routes)\/(.+)\.(?:ts|js|mjs)$/.exec(rel);
  if (!m || /\.(?:test|spec|d)$/.test(m[2])) return;
  const verb = /\.(get|post|put|patch|delete|head|options)$/.exec(m[2]);
  const stem = m[2].replace(/\.(?:get|post|put|patch|delete|head|options)$/, "").replace(/(^|\/)index$/, "");
  const methods = verb ? [verb[1].toUpperCase()] : handlerMethods(project, f);
  add(f, "/" + joinRoute(m[1] === "api" ? "api" : "", segments(stem.split("/").filter((s) => !/^\(.*\)$/.test(s)).join("/")).replace(/\*\*$/, "*path")), methods, "api", framework);
}

function svelteRoutes(project, base, files, add) {
  for (const f of files) {
    const rel = base ? f.slice(base.length + 1) : f;
    const m = /^(?:src\/)?routes\/((?:.+\/)?)\+(page|server|page\.server)(?:@[^.]*)?\.(svelte|md|svx|ts|js)$/.exec(rel);
    if (!m || (m[2] === "page" && m[3].length === 2 && m[3] !== "md")) continue;
    const route = "/" + segments(visible(m[1]));
    if (m[2] === "page.server") {
      if (/\bexport\s+const\s+actions\b/.test(project.source(f)?.code || "")) add(f, route, ["POST"], "page", "sveltekit");
    } else add(f, route, m[2] === "server" ? exportedMethods(project, f, ["GET"]) : ["GET"], m[2] === "server" ? "api" : "page", "sveltekit");
  }
}

function astroRoutes(project, base, files, add) {
  for (const f of files) {
    const rel = base ? f.slice(base.length + 1) : f;
    const m = /^src\/pages\/(.+)\.(astro|md|mdx|markdown|html|ts|js|mts|mjs)$/.exec(rel);
    if (!m || /(^|\/)_/.test(m[1]) || /\.(?:test|spec|d)$/.test(m[1])) continue;
    const endpoint = /^m?[tj]s$/.test(m[2]);
    add(f, "/" + segments(m[1].replace(/(^|\/)index$/, "")), endpoint ? exportedMethods(project, f, ["GET"]) : ["GET"], endpoint ? "api" : "page", "astro");
  }
}

// Flat file names of Remix and React Router: dots are slashes, `_x` hides, `$x` is a parameter.
function remixPath(name) {
  const parts = [];
  let rest = name;
  while (rest) {
    const m = /^((?:\[[^\]]*\]|[^./[])+)[./]?/.exec(rest);
    if (!m) break;
    parts.push(m[1]);
    rest = rest.slice(m[0].length);
  }
  return parts.filter((p) => !/^_(?!$)/.test(p) && p !== "_index" && p !== "index" && p !== "route").map((p) => {
    const open = p.replace(/_$/, "").replace(/^\((.*)\)$/, "$1");
    if (open === "$") return "*path";
    return open.replace(/^\$(.+)$/, ":$1").replace(/\[([^\]]*)\]/g, "$1");
  }).join("/");
}

function remixRoutes(project, base, files, add) {
  for (const f of files) {
    const rel = base ? f.slice(base.length + 1) : f;
    const m = /^(?:app|src)\/routes\/(.+)\.(?:tsx|ts|jsx|js|mdx|md)$/.exec(rel);
    if (!m || /\.(?:test|spec|d|server|client)$/.test(m[1]) || !/^(?:[^/]+|.*\/(?:route|index|_index|[^/]+))$/.test(m[1])) continue;
    const [folder, file] = [dirName(m[1]), baseName(m[1])];
    const source = project.source(f);
    if (folder && file !== "route" && file !== "index" && source && !/\bexport\b/.test(source.code)) continue;
    const has = (what) => source && new RegExp(`\\bexport\\s+(?:async\\s+)?(?:function|const|let)\\s+${what}\\b|\\bexport\\s*\\{[^}]*\\b${what}\\b`).test(source.code);
    const page = !source || /\bexport\s+default\b/.test(source.code) || /\.mdx?$/.test(f);
    if (/^(?:_(?!index)[^.]*|root)$/.test(file) && !folder) continue;
    const methods = [...(page || has("loader") ? ["GET"] : []), ...(has("action") ? ["POST"] : [])];
    add(f, "/" + remixPath(m[1].replace(/\/route$/, "")), methods.length ? methods : ["GET"], page ? "page" : "api", "remix");
  }
  const config = files.find((f) => /(^|\/)app\/routes\.(?:ts|js|mts|mjs)$/.test(f));
  if (config) remixConfig(project, config, add);
}

function remixConfig(project, file, add) {
  const source = project.source(file);
  if (!source) return;
  const regions = [];
  const consts = project.constants.resolve;
  for (const m of source.code.matchAll(/(?<![\w$])(?<!(?:^|[^.])\.)(route|index|prefix|layout)\s*\(/g)) {
    const open = m.index + m[0].length - 1;
    const args = source.args(open);
    const first = args[0] ? source.value(args[0][0], consts) : null;
    if (first === null) continue;
    const at = joinRoute(...prefixesAt(regions, m.index));
    if (m[1] === "route") add(file, "/" + joinRoute(at, first).replace(/\*$/, "*path"), ["GET"], "page", "remix", source.line(m.index));
    else if (m[1] === "index") add(file, "/" + at, ["GET"], "page", "remix", source.line(m.index));
    if (m[1] === "prefix" || m[1] === "route") regions.push({ from: open, to: source.pairs.get(open) ?? open, prefix: first });
  }
}

function tanstackRoutes(project, base, files, add) {
  for (const f of files) {
    const source = /\.[jt]sx?$/.test(f) && /createFileRoute|createServerFileRoute|createAPIFileRoute/.test(project.tree.read(f) || "") ? project.source(f) : null;
    for (const m of source ? source.code.matchAll(/\bcreate(Server|API)?FileRoute\s*\(\s*(?=["'`])/g) : []) {
      const p = source.strings.get(m.index + m[0].length)?.value;
      if (p === undefined) continue;
      const route = p.split("/").filter((s) => !/^_(?!$)|^\(.*\)$/.test(s)).map((s) => (s === "$" ? "*path" : s.replace(/^\$/, ":").replace(/_$/, ""))).join("/");
      add(f, "/" + route, m[1] ? exportedMethods(project, f, ["ANY"]) : ["GET"], m[1] ? "api" : "page", "tanstack", source.line(m.index));
    }
  }
}

function solidRoutes(project, base, files, add) {
  for (const f of files) {
    const rel = base ? f.slice(base.length + 1) : f;
    const m = /^src\/routes\/(.+)\.(?:tsx|ts|jsx|js|mdx)$/.exec(rel);
    if (!m) continue;
    const source = project.source(f);
    const page = /\bexport\s+default\b/.test(source?.code || "");
    const methods = exportedMethods(project, f, []);
    if (page || methods.length) add(f, "/" + segments(m[1].replace(/(^|\/)\([^/)]*\)(?=\/|$)/g, "$1").replace(/(^|\/)index$/, "")), page ? ["GET"] : methods, page ? "page" : "api", "solidstart");
  }
}

function gatsbyRoutes(project, base, files, add) {
  for (const f of files) {
    const rel = base ? f.slice(base.length + 1) : f;
    const page = /^src\/pages\/(.+)\.(?:tsx|ts|jsx|js|mdx|md)$/.exec(rel);
    const api = /^src\/api\/(.+)\.(?:ts|js)$/.exec(rel);
    if (page && !/^404$/.test(page[1])) add(f, "/" + page[1].replace(/(^|\/)index$/, "").replace(/\{[^}]*\.([^}]*)\}/g, (_, n) => ":" + n.replace(/.*__/, "")).replace(/\[\.\.\.([^\]]*)\]/g, (_, n) => "*" + (n || "path")).replace(/\[([^\]]+)\]/g, ":$1"), ["GET"], "page", "gatsby");
    else if (api) add(f, "/api/" + segments(api[1].replace(/(^|\/)index$/, "")), ["ANY"], "api", "gatsby");
  }
}

// Which file-system routers a folder with a package.json uses; a sign in the tree stands in for a missing manifest.
const FILE_ROUTERS = [
  { deps: ["next"], sign: /(^|\/)next\.config\.(?:m?js|ts|cjs)$/, run: nextRoutes },
  { deps: ["nuxt", "nuxt3"], sign: /(^|\/)nuxt\.config\.(?:ts|js|mjs)$/, run: nuxtRoutes },
  { deps: ["@sveltejs/kit"], sign: /(^|\/)routes\/(?:.*\/)?\+page\.svelte$/, run: svelteRoutes },
  { deps: ["astro"], sign: /(^|\/)(?:astro\.config\.\w+|src\/pages\/.*\.astro)$/, run: astroRoutes },
  { deps: ["@remix-run/react", "@remix-run/node", "@remix-run/dev", "@react-router/dev", "@react-router/node"], sign: /(^|\/)(?:remix\.config\.\w+|react-router\.config\.\w+)$/, run: remixRoutes },
  { deps: ["@tanstack/react-router", "@tanstack/react-start", "@tanstack/solid-router", "@tanstack/start"], sign: /(^|\/)tsr\.config\.json$/, run: tanstackRoutes },
  { deps: ["@solidjs/start", "solid-start"], sign: /(?!)/, run: solidRoutes },
  { deps: ["gatsby"], sign: /(^|\/)gatsby-config\.\w+$/, run: gatsbyRoutes },
  { deps: ["nitropack", "nitro"], sign: /(^|\/)nitro\.config\.\w+$/, run: (project, base, files, add) => {
    for (const f of files) serverRoutes(base ? f.slice(base.length + 1) : f, f, add, "nitro", project);
  } },
];

function fileRoutes(project, files) {
  const out = [];
  const add = (file, p, methods, kind, framework, line = 1) => out.push({ path: normalisePath(p), methods, kind, framework, file, line });
  const bases = new Set(files.filter((f) => baseName(f) === "package.json").map(dirName));
  for (const router of FILE_ROUTERS) {
    const used = new Set();
    for (const base of bases) {
      const manifest = project.tree.json(joinPath(base, "package.json")) || {};
      const deps = { ...manifest.dependencies, ...manifest.devDependencies };
      if (router.deps.some((d) => Object.hasOwn(deps, d))) used.add(base);
    }
    for (const f of files) {
      if (!router.sign.test(f)) continue;
      const base = /\/?src\/(?:pages|routes)\//.test(f) ? f.slice(0, f.search(/\/?src\/(?:pages|routes)\//)) : /(?:^|\/)routes\//.test(f) ? f.slice(0, f.search(/(?:^|\/)routes\//)) : dirName(f);
      if (![...used].some((u) => u === base || u === "" || base.startsWith(u + "/"))) used.add(base);
    }
    for (const base of used) router.run(project, base, base ? files.filter((f) => f.startsWith(base + "/")) : files, add);
  }
  return out;
}

// ---------------------------------------------------------------------------------------------------------------
// Routes: OpenAPI documents and command lines
// ---------------------------------------------------------------------------------------------------------------

const OPENAPI_FILE = /(?:^|[\/._-])(?:openapi|swagger)(?:[._-][\w.-]*)?\.(?:json|ya?ml)$/i;

const isOpenapi = (text, head) => /["']?(?:openapi|swagger)["']?\s*:\s*["']?[23]/.test(text.slice(0, head));

function openapiRoutes(project, files) {
  const out = [];
  for (const file of files.filter((f) => OPENAPI_FILE.test(f))) {
    const text = project.tree.read(file);
    if (!text || !isOpenapi(text, 20_000)) continue;
    const add = (p, methods, line) => methods.length && out.push({ path: normalisePath(p), methods, kind: "api", framework: "openapi", file, line });
    if (file.endsWith(".json")) {
      const doc = project.tree.json(file);
      const base = typeof doc?.basePath === "string" ? doc.basePath : serverPath(doc?.servers?.[0]?.url);
      for (const [p, item] of Object.entries(doc?.paths || {})) {
        const at = text.indexOf(JSON.stringify(p));
        add(joinRoute(base, p), METHODS.filter((m) => item && Object.hasOwn(item, m.toLowerCase())), at < 0 ? 1 : text.slice(0, at).split("\n").length);
      }
    } else yamlPaths(text, add);
  }
  return out;
}

function serverPath(url) {
  const m = typeof url === "string" ? /^(?:https?:\/\/[^\/]+)?(\/[^?#{}]*)$/.exec(url) : null;
  return m ? m[1].replace(/\/$/, "") : "";
}

// `paths:` of a YAML document by indentation; nothing else of YAML is needed.
function yamlPaths(text, add) {
  const base = serverPath(/^servers:\s*\n\s*-\s*url:\s*["']?([^\s"'#]+)/m.exec(text)?.[1]) || /^basePath:\s*["']?([^\s"'#]+)/m.exec(text)?.[1] || "";
  let inPaths = false;
  let step = 0;
  let current = null;
  const flush = () => current && add(joinRoute(base, current.path), current.methods, current.line);
  text.split("\n").forEach((raw, i) => {
    if (!raw.trim() || raw.trim().startsWith("#")) return;
    const indent = raw.length - raw.trimStart().length;
    if (indent === 0) {
      inPaths = /^["']?paths["']?:\s*(?:#.*)?$/.test(raw);
      return;
    }
    if (!inPaths) return;
    const key = /^\s*["']?(\/[^"':]*(?::[^"'\s:]+)*|[a-z]+)["']?:(?:\s|$)/.exec(raw);
    if (!key) return;
    if (key[1].startsWith("/") && (!step || indent === step)) {
      flush();
      step = indent;
      current = { path: key[1], methods: [], line: i + 1 };
    } else if (current && indent > step && METHODS.includes(key[1].toUpperCase())) {
      current.child ??= indent;
      if (indent === current.child) current.methods.push(key[1].toUpperCase());
    } else if (current && indent > step) current.child ??= indent;
  });
  flush();
}

// Cobra commands with their parents: `root.AddCommand(serve)`, by variable or by the function that builds one.
function cobraCommands(project) {
  const commands = new Map();
  const parents = new Map();
  for (const source of project.sources.go || []) {
    if (!/\bcobra\.Command\b/.test(source.code)) continue;
    const dir = dirName(source.file);
    const fnAt = (pos) => [...source.code.slice(0, pos).matchAll(/\bfunc\s+(?:\([^)]*\)\s*)?(\w+)\s*\(/g)].pop();
    for (const m of source.code.matchAll(/(?:(\w+)\s*(?::=|=)\s*|\breturn\s+)?&?(?<!\*)cobra\.Command\s*\{/g)) {
      const open = m.index + m[0].length - 1;
      const use = jsOption({ code: source.code }, [open, Math.min(source.pairs.get(open) ?? open, open + 4000)], "Use");
      const text = use >= 0 ? source.value(use, project.constants.resolve) : null;
      if (!text) continue;
      const fn = source.block(m.index)[0] >= 0 ? fnAt(m.index)?.[1] : null;
      const key = fn && m[1] ? `${dir}#${fn}/${m[1]}` : `${dir}#${m[1] || `${source.file}@${open}`}`;
      const record = { name: text.trim().split(/\s+/)[0], file: source.file, line: source.line(m.index), open };
      commands.set(key, record);
      if (fn && (m[0].startsWith("return") || m[1] && new RegExp(`\\breturn\\s+${m[1]}\\b`).test(source.code.slice(m.index)))) commands.set(`${dir}#${fn}`, record);
      if (m[1]) commands.set(`${dir}#${m[1]}`, commands.get(`${dir}#${m[1]}`) || record);
    }
  }
  const find = (dir, fn, name) => commands.get(`${dir}#${fn}/${name}`) || commands.get(`${dir}#${name}`);
  for (const source of project.sources.go || []) {
    const dir = dirName(source.file);
    for (const m of source.code.matchAll(/(\w+)(?:\(\))?\s*\.\s*AddCommand\s*\(/g)) {
      const fn = [...source.code.slice(0, m.index).matchAll(/\bfunc\s+(?:\([^)]*\)\s*)?(\w+)\s*\(/g)].pop()?.[1];
      const parent = find(dir, fn, m[1]);
      for (const range of source.args(m.index + m[0].length - 1)) {
        const name = /^(?:(\w+)\.)?(\w+)/.exec(source.slice(range));
        const inline = /^&?cobra\.Command\s*\{/.test(source.slice(range)) && [...commands.values()].find((c) => c.file === source.file && range[0] < c.open && c.open < range[1]);
        // `users.NewCmd()` is another package's, `a.newCmd()` a method of this one.
        const other = name?.[1] && [...commands].find(([k]) => k.endsWith(`#${name[2]}`) && baseName(k.split("#")[0]) === name[1]);
        const child = inline || (other ? other[1] : name && find(dir, fn, name[2]));
        if (child && parent && child !== parent) parents.set(child, parent);
      }
    }
  }
  const full = (record, depth = 0) => (parents.has(record) && depth < 6 ? `${full(parents.get(record), depth + 1)} ${record.name}` : record.name);
  return [...new Set(commands.values())].map((r) => ({ path: full(r), methods: [], kind: "cli", framework: "cobra", file: r.file, line: r.line }));
}

function simpleCommands(project, binary) {
  const out = [];
  const add = (source, pos, name, framework) => {
    const word = name.trim().split(/[\s<[]/)[0];
    if (word && /^[\w:.-]+$/.test(word)) out.push({ path: [binary, word].filter(Boolean).join(" "), methods: [], kind: "cli", framework, file: source.file, line: source.line(pos) });
  };
  for (const source of project.sources.js || []) {
    const imports = [...source.strings.values()].map((s) => s.value);
    const framework = ["commander", "yargs", "cac", "sade"].find((n) => imports.includes(n) || imports.some((i) => i.startsWith(n + "/")));
    if (!framework) continue;
    for (const m of source.code.matchAll(/\.\s*command\s*\(\s*(?=["'`[])/g)) {
      const value = source.values(source.args(m.index + m[0].trimEnd().length - 1)[0] || [0, 0], null)[0];
      if (value && !/^[$*]/.test(value)) add(source, m.index, value, framework);
    }
  }
  for (const source of project.sources.py || []) {
    if (/\b(?:click|typer)\b/.test(source.code)) {
      for (const m of source.code.matchAll(/@\s*\w+\s*\.\s*command\s*\(([^)]*)\)[\s\S]{0,600}?\bdef\s+(\w+)/g)) {
        const open = m.index + m[0].indexOf("(");
        const named = source.args(open).map((r) => source.value(/^name\s*=\s*/.test(source.slice(r)) ? r[0] + /^name\s*=\s*/.exec(source.slice(r))[0].length : r[0], null)).find(Boolean);
        add(source, m.index, named || m[2].replace(/_/g, "-"), /\btyper\b/.test(source.code) ? "typer" : "click");
      }
    }
    for (const m of source.code.matchAll(/\.\s*add_parser\s*\(\s*(?=["'])/g)) add(source, m.index, source.strings.get(m.index + m[0].length)?.value || "", "argparse");
  }
  for (const source of project.sources.rs || []) rustCommands(source, (pos, name) => add(source, pos, name, "clap"));
  return out;
}

function rustCommands(source, add) {
  if (!/\bclap\b|\bSubcommand\b/.test(source.code)) return;
  for (const m of source.code.matchAll(/#\[derive\([^\]]*\bSubcommand\b[^\]]*\)\][\s\S]{0,200}?\benum\s+\w+\s*\{/g)) {
    const open = m.index + m[0].length - 1;
    const close = source.pairs.get(open) ?? open;
    for (let i = open + 1; i < close; i++) {
      if ("([{".includes(source.code[i]) && source.pairs.has(i)) i = source.pairs.get(i);
      else {
        const variant = /^[A-Z]\w*/.exec(source.code.slice(i, i + 60));
        if (variant) {
          add(i, variant[0].replace(/([a-z0-9])([A-Z])/g, "$1-$2").toLowerCase());
          i += variant[0].length - 1;
        }
      }
    }
  }
  for (const m of source.code.matchAll(/\.\s*subcommand\s*\(\s*(?:clap::)?(?:Command|App|SubCommand)::(?:new|with_name)\s*\(\s*(?=")/g)) add(m.index, source.strings.get(m.index + m[0].length)?.value || "");
}

// ---------------------------------------------------------------------------------------------------------------
// Routes: all together
// ---------------------------------------------------------------------------------------------------------------

const NOT_PRODUCT = /(^|\/)(?:tests?|__tests__|specs?|testdata|__mocks__|mocks|__fixtures__|fixtures|e2e|cypress|integration(?:[_-]tests?)?|interop|test[_-]\w+|examples?|_examples?|samples?|benchmarks?|stories|docs?)\/|(?:[._-](?:test|spec|stories|bench|e2e)\.[a-z]+|_test\.\w+|\.d\.ts|\.min\.js)$|(^|\/)(?:test_[^/]*|conftest)\.py$/i;
const ROUTE_HINT = {
  js: /\.\s*(?:get|post|put|patch|delete|all|use|route|register|command|on|mount|group|openapi|del)\s*[(<]|@Controller|setGlobalPrefix|\b(?:exports|export)\b/,
  go: /\.\s*(?:Get|Post|GET|POST|PUT|DELETE|PATCH|Any|Handle|HandleFunc|Route|Group|Mount|Method|Add|PathPrefix|Path|Put|Delete|Patch|AddCommand|All|HandlerFunc|Match)\s*\(|Router|ServeMux|cobra\.Command|gin\.|echo\.|chi\.|fiber\./,
  py: /@[\w.]+\.(?:route|get|post|put|patch|delete|api_route|command|websocket)\b|urlpatterns|add_(?:url_rule|resource|parser|api_route)|include_router|APIRouter|Blueprint|\.register\(|\bclass\s+\w+.*(?:View|Resource|MethodView)|\bRoute\(|api_view|require_http_methods|^\w+\s*=\s*["']/m,
  rb: /routes\.draw|resources?\b|sinatra|Sinatra|Grape/, php: /\bRoute\b/, java: /@\w*Mapping\b|@(?:Rest)?Controller|static\s+final\s+String/,
  cs: /\.Map(?:Get|Post|Put|Patch|Delete|Methods|Group|\()|\[\s*(?:Http|Route)/, rs: /\.\s*(?:route|nest|service|subcommand)\s*\(|#\[\s*\w*:*\w*(?:get|post|put|delete|patch|route)\s*\(|Subcommand|const\s+\w+:\s*&/,
  ex: /:router\b|Phoenix\.Router/,
};

class Project {
  constructor(tree, files) {
    this.tree = tree;
    this.files = files;
    this.graph = new Graph();
    this.constants = new Constants();
    this.sources = {};
    this.parsed = new Map();
    this.skipped = 0;
  }

  source(file) {
    if (this.parsed.has(file)) return this.parsed.get(file);
    const langKey = EXTENSIONS[extension(file)];
    const text = langKey ? this.tree.read(file) : null;
    const source = text ? new Source(file, text, langKey) : null;
    this.parsed.set(file, source);
    return source;
  }

  load() {
    let count = 0;
    let bytes = 0;
    for (const file of this.files) {
      const langKey = EXTENSIONS[extension(file)];
      if (!langKey || NOT_PRODUCT.test(file)) continue;
      if (count >= LIMITS.sourceFiles || bytes >= LIMITS.sourceBytes) {
        this.skipped++;
        continue;
      }
      const text = this.tree.read(file);
      if (!text) continue;
      count++;
      bytes += text.length;
      if (!ROUTE_HINT[langKey].test(text) || longLines(text)) continue;
      (this.sources[langKey] ??= []).push(this.source(file));
    }
    for (const list of Object.values(this.sources)) for (const source of list) this.constants.add(source);
    this.frameworks();
  }

  // Which frameworks the manifests name; they decide whether `app.get("/x", …)` without an import is a route.
  frameworks() {
    const deps = new Set();
    for (const file of this.files.filter((f) => baseName(f) === "package.json")) {
      const manifest = this.tree.json(file) || {};
      for (const name of Object.keys({ ...manifest.dependencies, ...manifest.devDependencies })) deps.add(name);
    }
    const first = Object.keys(JS_PACKAGES).find((name) => deps.has(name));
    const imported = (this.sources.js || []).flatMap((s) => [...s.strings.values()]).map((s) => JS_PACKAGES[s.value]).find(Boolean);
    this.jsFramework = first ? JS_PACKAGES[first] : imported || null;
    const python = (this.sources.py || []).map((s) => /\b(?:from|import)\s+(fastapi|flask|quart|sanic|starlette|django)\b/.exec(s.code)?.[1]).filter(Boolean);
    this.pyFramework = python.includes("fastapi") ? "fastapi" : python.includes("flask") ? "flask" : python[0] || null;
    this.nestPrefix = "";
    for (const source of this.sources.js || []) {
      const m = /\.\s*setGlobalPrefix\s*\(/.exec(source.code);
      const args = m ? source.args(m.index + m[0].length - 1) : [];
      if (args.length) this.nestPrefix = source.value(args[0][0], this.constants.resolve) || "";
    }
  }

  guard(source, run) {
    try {
      run();
    } catch (error) {
      this.tree.warnings.push(`routes of ${source.file} could not be read (${oneLine(String(error.message)).slice(0, 100)})`);
    }
  }

  routes(binary) {
    this.load();
    goFunctions(this, this.sources.go || []);
    for (const [profile, langKey] of [[GO, "go"], [JS, "js"], [CS, "cs"], [RUST, "rs"]]) {
      for (const source of this.sources[langKey] || []) this.guard(source, () => new RouterFile(source, this, profile).run());
    }
    for (const source of this.sources.py || []) this.guard(source, () => new PythonFile(source, this).run());
    for (const langKey of Object.keys(ANNOTATIONS)) {
      for (const source of this.sources[langKey] || []) this.guard(source, () => new AnnotationFile(source, this).run());
    }
    for (const source of this.sources.rb || []) {
      this.guard(source, () => {
        if (/(^|\/)config\/routes(?:\.rb|\/.*\.rb)$/.test(source.file) || /\.routes\.draw\b/.test(source.code)) new RailsRoutes(source, this).run();
        else sinatraRoutes(source, this);
      });
    }
    for (const source of this.sources.php || []) this.guard(source, () => { laravelRoutes(source, this); symfonyComments(source, this); });
    for (const source of this.sources.ex || []) this.guard(source, () => phoenixRoutes(source, this));
    const files = this.files.filter((f) => !NOT_PRODUCT.test(f) || /(^|\/)(?:pages|routes|app)\//.test(f) && !/(?:[._-](?:test|spec|stories)\.[a-z]+|\.d\.ts)$/.test(f));
    const found = [...fileRoutes(this, files), ...this.graph.expand()];
    return mergeRoutes(openapiRoutes(this, this.files.filter((f) => !/(^|\/)(?:tests?|test[_-]\w+|testdata|fixtures|examples?)\//.test(f))), [...found, ...cobraCommands(this), ...simpleCommands(this, binary)]);
  }
}

// Generated and minified files have lines no person writes.
const longLines = (text) => text.length > 2000 && text.length / (text.split("\n").length) > 400;

// Server-rendered frameworks answer GET with a page unless the path says otherwise.
const PAGE_FRAMEWORKS = new Set(["django", "flask", "sinatra"]);

// One entry for each path of a kind, with all methods; an OpenAPI document has the last word on the paths it names.
function mergeRoutes(documented, found) {
  const merged = new Map();
  const shape = (p) => p.replace(/[:*][\w-]+/g, ":");
  const fromDocument = new Set(documented.map((r) => shape(r.path)));
  for (const route of [...documented, ...found]) {
    if (route.framework !== "openapi" && route.kind === "api" && fromDocument.has(shape(route.path))) continue;
    let kind = route.kind;
    if (kind === "api" && PAGE_FRAMEWORKS.has(route.framework) && route.methods.every((m) => m === "GET") && !/^\/api\b|\.json$/.test(route.path)) kind = "page";
    const key = `${kind === "cli" ? "cli" : "web"} ${route.path}`;
    const seen = merged.get(key);
    if (!seen) merged.set(key, { path: route.path, methods: [...route.methods], kind, framework: route.framework, file: route.file, line: route.line });
    else {
      seen.methods = unique([...seen.methods, ...route.methods]);
      if (kind === "page") seen.kind = "page";
    }
  }
  for (const route of merged.values()) {
    route.methods.sort((a, b) => METHODS.indexOf(a) - METHODS.indexOf(b));
    if (route.methods.includes("ANY")) route.methods = ["ANY"];
  }
  const rank = { page: 0, api: 1, cli: 2 };
  return [...merged.values()].sort((a, b) => rank[a.kind] - rank[b.kind] || compare(a.path, b.path));
}

// ---------------------------------------------------------------------------------------------------------------
// The project: manifests, packages, README and friends
// ---------------------------------------------------------------------------------------------------------------

const MANIFESTS = ["package.json", "go.mod", "pyproject.toml", "Cargo.toml", "composer.json", "mix.exs", "pubspec.yaml", "setup.cfg", "deno.json"];

// Dependencies by name, over every ecosystem; enough to tell which frameworks and services a project uses.
function readManifest(tree, dir) {
  const at = (name) => joinPath(dir, name);
  const out = { name: null, version: null, description: null, license: null, homepage: null, deps: new Set(), bin: null, found: false };
  const take = (fields) => {
    for (const [k, v] of Object.entries(fields)) if (out[k] === null && typeof v === "string" && v.trim()) out[k] = oneLine(v).slice(0, 300);
  };
  const here = (name) => tree.has(at(name)) && (out.found = true);
  const deps = (names) => names.forEach((n) => out.deps.add(n.toLowerCase()));
  if (here("package.json")) {
    const m = tree.json(at("package.json")) || {};
    take({ name: m.name, version: m.version, description: m.description, license: typeof m.license === "object" ? m.license?.type : m.license, homepage: m.homepage });
    deps(Object.keys({ ...m.dependencies, ...m.devDependencies, ...m.peerDependencies }));
    out.bin = typeof m.bin === "string" ? (m.name || "").split("/").pop() : m.bin && typeof m.bin === "object" ? Object.keys(m.bin)[0] || null : null;
  }
  if (here("go.mod")) {
    const text = tree.read(at("go.mod")) || "";
    take({ name: /^module\s+(\S+)/m.exec(text)?.[1]?.replace(/\/v\d+$/, "").split("/").pop() });
    deps([...text.matchAll(/^\s*(?:require\s+)?([\w.-]+\.[\w.-]+\/\S+)\s+v\S+(?!.*\/\/ indirect)/gm)].map((m) => m[1]));
  }
  if (here("pyproject.toml")) {
    const m = readToml(tree.read(at("pyproject.toml")));
    const p = m.project || m.tool?.poetry || {};
    take({ name: p.name, version: p.version, description: p.description, license: typeof p.license === "string" ? p.license : p.license?.text, homepage: p.urls?.Homepage || p.urls?.homepage || p.homepage });
    deps([...(Array.isArray(p.dependencies) ? p.dependencies : Object.keys(p.dependencies || {}))].map((d) => /^[\w.-]+/.exec(d)?.[0] || d));
    out.bin ??= Object.keys(p.scripts || {})[0] || null;
  }
  if (here("Cargo.toml")) {
    const m = readToml(tree.read(at("Cargo.toml")));
    take({ name: m.package?.name, version: m.package?.version, description: m.package?.description, license: m.package?.license, homepage: m.package?.homepage });
    deps(Object.keys({ ...m.dependencies, ...m.workspace?.dependencies }));
    out.bin ??= m.package && tree.has(at("src/main.rs")) ? m.package.name || null : null;
  }
  if (here("composer.json")) {
    const m = tree.json(at("composer.json")) || {};
    take({ name: m.name, version: m.version, description: m.description, license: typeof m.license === "string" ? m.license : null, homepage: m.homepage });
    deps(Object.keys({ ...m.require, ...m["require-dev"] }));
  }
  if (here("mix.exs")) {
    const text = tree.read(at("mix.exs")) || "";
    take({ name: /\bapp:\s*:(\w+)/.exec(text)?.[1], version: /\bversion:\s*"([^"]+)"/.exec(text)?.[1], description: /\bdescription:\s*"([^"]+)"/.exec(text)?.[1] });
    deps([...text.matchAll(/\{:(\w+),/g)].map((m) => m[1]));
  }
  for (const name of ["requirements.txt", "setup.py", "setup.cfg", "Pipfile", "Gemfile", "build.gradle", "build.gradle.kts", "pom.xml", "pubspec.yaml"]) if (here(name)) looseManifest(tree.read(at(name)) || "", name, take, deps);
  for (const f of tree.files) {
    if (dirName(f) !== dir || !/\.(?:csproj|gemspec)$/.test(f)) continue;
    out.found = true;
    looseManifest(tree.read(f) || "", baseName(f), take, deps);
  }
  return out;
}

function looseManifest(text, name, take, deps) {
  if (name === "requirements.txt") deps([...text.matchAll(/^\s*([A-Za-z][\w.-]*)/gm)].map((m) => m[1]));
  else if (name === "Gemfile") deps([...text.matchAll(/^\s*gem\s+["']([\w-]+)["']/gm)].map((m) => m[1]));
  else if (name === "pom.xml") {
    const own = text.replace(/<(parent|dependencies|build|plugins)>[\s\S]*?<\/\1>/g, "");
    take({ name: /<name>([^<]+)</.exec(own)?.[1] || /<artifactId>([^<]+)</.exec(own)?.[1], version: /<version>([^<$]+)</.exec(own)?.[1], description: /<description>([^<]+)</.exec(own)?.[1] });
    deps([...text.matchAll(/<artifactId>([^<]+)</g)].map((m) => m[1]));
  } else if (name === "pubspec.yaml") take({ name: /^name:\s*(\S+)/m.exec(text)?.[1], version: /^version:\s*(\S+)/m.exec(text)?.[1], description: /^description:\s*["']?(.+?)["']?$/m.exec(text)?.[1] });
  else if (name.endsWith(".csproj")) {
    take({ name: name.replace(/\.csproj$/, ""), version: /<Version>([^<]+)</.exec(text)?.[1], description: /<Description>([^<]+)</.exec(text)?.[1] });
    deps([...text.matchAll(/PackageReference\s+Include="([^"]+)"/g)].map((m) => m[1]));
  } else if (name.endsWith(".gemspec")) take({ name: /\.name\s*=\s*["']([^"']+)/.exec(text)?.[1], description: /\.summary\s*=\s*["']([^"']+)/.exec(text)?.[1], license: /\.licenses?\s*=\s*\[?["']([^"']+)/.exec(text)?.[1] });
  else if (/^(?:setup\.|Pipfile)/.test(name)) {
    take({ name: /^\s*name\s*=\s*["']?([\w.-]+)/m.exec(text)?.[1], version: /^\s*version\s*=\s*["']?([\w.-]+)/m.exec(text)?.[1], description: /^\s*description\s*=\s*["']?([^"'\n]+)/m.exec(text)?.[1] });
    deps([...text.matchAll(/^\s*["']?([A-Za-z][\w.-]+)["']?\s*(?:[=<>~!]=|>|<|=\s*["{*])/gm)].map((m) => m[1]));
  } else deps([...text.matchAll(/["'][\w.-]+:([\w.-]+)(?::[^"']*)?["']/g)].map((m) => m[1]));
}

const FRAMEWORK_DEPS = {
  "Next.js": /^next$/, Nuxt: /^nuxt3?$/, SvelteKit: /^@sveltejs\/kit$/, Remix: /^@remix-run\//, "React Router": /^@react-router\/|^react-router(?:-dom)?$/, Astro: /^astro$/,
  SolidStart: /^@solidjs\/start$|^solid-start$/, Gatsby: /^gatsby$/, TanStack: /^@tanstack\/(?:react-)?(?:router|start)$/, React: /^react$/, Vue: /^vue$/, Svelte: /^svelte$/,
  Angular: /^@angular\/core$/, Solid: /^solid-js$/, Electron: /^electron$/, Tauri: /^tauri$|^@tauri-apps\//, "React Native": /^react-native$/, Expo: /^expo$/, Express: /^express$/,
  Fastify: /^fastify$/, Koa: /^koa$/, Hono: /^hono$/, NestJS: /^@nestjs\/core$/, Elysia: /^elysia$/, FastAPI: /^fastapi$/, Flask: /^flask$/, Django: /^django$/, Starlette: /^starlette$/,
  Streamlit: /^streamlit$/, Gradio: /^gradio$/, Rails: /^rails$/, Sinatra: /^sinatra$/, Laravel: /^laravel\/framework$/, Symfony: /^symfony\/(?:framework-bundle|symfony)$/,
  "Spring Boot": /^spring-boot-starter/, "ASP.NET": /^microsoft\.aspnetcore/, Phoenix: /^phoenix$/, chi: /go-chi\/chi/, Gin: /gin-gonic\/gin/, Echo: /labstack\/echo/, Fiber: /gofiber\/fiber/,
  "gorilla/mux": /gorilla\/mux/, Cobra: /spf13\/cobra/, Axum: /^axum$/, Actix: /^actix-web$/, Rocket: /^rocket$/, clap: /^clap$/, Click: /^click$/, Typer: /^typer$/,
  "Tailwind CSS": /^tailwindcss$/, Flutter: /^flutter$/, MCP: /modelcontextprotocol/, LangChain: /^(?:@langchain\/|langchain)/,
};
const SERVICES = {
  analytics: { "Google Analytics": /^(?:react-ga4?|gtag|@next\/third-parties|vue-gtag|ga-4-react)$/, PostHog: /^posthog(?:-js|-node|-ruby|-react-native)?$|posthog-go/, Plausible: /plausible/, Mixpanel: /mixpanel/,
    Amplitude: /amplitude/, Segment: /^(?:@segment\/|analytics-node$|analytics-python$)|segmentio\/analytics/, "Vercel Analytics": /^@vercel\/analytics$/, Umami: /umami/, Fathom: /^fathom-client$/,
    Matomo: /matomo/, Sentry: /^@sentry\/|^sentry-(?:sdk|ruby|rails)$|getsentry\/sentry-go/, Datadog: /^@datadog\/|^ddtrace$/, June: /^@june-so\// },
  payments: { Stripe: /^(?:@stripe\/.*|stripe)$|stripe\/stripe-(?:go|php)|^stripe\.net$/, Paddle: /paddle/, "Lemon Squeezy": /lemonsqueezy/, PayPal: /paypal/, Braintree: /braintree/, Square: /^square$|^squareup$/,
    Polar: /^@polar-sh\//, RevenueCat: /revenuecat|react-native-purchases/, Razorpay: /razorpay/, Mollie: /mollie/, Adyen: /adyen/, Chargebee: /chargebee/, Cashier: /^laravel\/cashier/ },
  auth: { "Auth.js": /^(?:next-auth|@auth\/.*)$/, Clerk: /^@clerk\//, Auth0: /auth0/, "Supabase Auth": /^@supabase\/(?:auth-helpers|ssr|supabase-js)/, Firebase: /^firebase(?:-admin)?$/, Passport: /^passport$/,
    Lucia: /^lucia$/, "Better Auth": /^better-auth$/, WorkOS: /workos/, Devise: /^devise$/, "django-allauth": /^django-allauth$/, "Laravel Sanctum": /^laravel\/sanctum$/, Keycloak: /keycloak/,
    SimpleWebAuthn: /simplewebauthn|go-webauthn/, Okta: /okta/, Stytch: /stytch/, JWT: /^jsonwebtoken$|^jose$|golang-jwt\/jwt|^pyjwt$|^python-jose$/, OAuth: /golang\.org\/x\/oauth2|^authlib$|^omniauth/ },
};
const TAGS = {
  analytics: { "Google Analytics": /googletagmanager\.com\/gtag|google-analytics\.com/, "Google Tag Manager": /googletagmanager\.com\/gtm/, Plausible: /plausible\.io\/js/, PostHog: /posthog\.init\s*\(/, Umami: /data-website-id=/,
    Fathom: /cdn\.usefathom\.com/, "Meta Pixel": /connect\.facebook\.net\/[\w-]+\/fbevents/, Hotjar: /static\.hotjar\.com/, "Cloudflare Web Analytics": /static\.cloudflareinsights\.com/, "Simple Analytics": /simpleanalyticscdn\.com/ },
  payments: { Stripe: /js\.stripe\.com|buy\.stripe\.com/, Paddle: /cdn\.paddle\.com/, "Lemon Squeezy": /lemonsqueezy\.com\/(?:buy|checkout)|assets\.lemonsqueezy\.com/, PayPal: /paypal\.com\/sdk\/js/, Gumroad: /gumroad\.com\/(?:js|l)\// },
  auth: {},
};

function detectServices(tree, files, deps) {
  const out = {};
  const pages = files.filter((f) => /\.(?:html?|vue|svelte|astro|erb|heex|tsx|jsx|blade\.php|twig|ejs|hbs|liquid|tmpl|gohtml)$/.test(f) && !NOT_PRODUCT.test(f)).slice(0, 400);
  for (const [kind, names] of Object.entries(SERVICES)) {
    const found = new Set(Object.entries(names).filter(([, re]) => [...deps].some((d) => re.test(d))).map(([n]) => n));
    for (const [name, re] of Object.entries(TAGS[kind])) if (!found.has(name) && pages.some((f) => re.test(tree.read(f) || ""))) found.add(name);
    out[kind] = [...found].sort(compare);
  }
  return out;
}

// --- Monorepos ---

const globToTest = (glob) => ignoreRule(glob.replace(/^\.\//, "").replace(/\/$/, "").replace(/^(?!\/)/, "/"))?.test || /(?!)/;

function workspaceGlobs(tree) {
  const manifest = tree.json("package.json") || {};
  const kinds = [];
  const pnpm = tree.has("pnpm-workspace.yaml") ? tree.read("pnpm-workspace.yaml") || "" : "";
  const fromPnpm = [...(/^packages:\s*\n((?:\s*(?:-.*|#.*)?\n?)+)/m.exec(pnpm + "\n")?.[1] || "").matchAll(/-\s*["']?([^"'\n#]+)/g)].map((m) => m[1].trim());
  if (fromPnpm.length) kinds.push(["pnpm", fromPnpm, "package.json"]);
  const list = Array.isArray(manifest.workspaces) ? manifest.workspaces : manifest.workspaces?.packages;
  if (Array.isArray(list)) kinds.push([tree.has("yarn.lock") ? "yarn" : tree.has("bun.lockb") || tree.has("bun.lock") ? "bun" : "npm", list.filter((g) => typeof g === "string"), "package.json"]);
  const lerna = tree.has("lerna.json") ? tree.json("lerna.json") : null;
  if (lerna) kinds.push(["lerna", Array.isArray(lerna.packages) ? lerna.packages : ["packages/*"], "package.json"]);
  if (tree.has("nx.json")) kinds.push(["nx", ["apps/*", "packages/*", "libs/*"], "(?:package|project).json"]);
  if (tree.has("turbo.json")) kinds.push(["turbo", ["apps/*", "packages/*"], "package.json"]);
  if (tree.has("go.work")) kinds.push(["go.work", [...(tree.read("go.work") || "").replace(/\/\/.*/g, "").matchAll(/^\s*(?:use\s+)?(\.\.?\/[^\s()]+|\.)\s*$/gm)].map((m) => m[1]), "go.mod"]);
  const cargo = tree.has("Cargo.toml") ? readToml(tree.read("Cargo.toml")).workspace : null;
  if (Array.isArray(cargo?.members)) kinds.push(["cargo", cargo.members, "Cargo.toml"]);
  return kinds;
}

export function findPackages(tree) {
  for (const [kind, globs, manifest] of workspaceGlobs(tree)) {
    const yes = globs.filter((g) => !g.startsWith("!")).map(globToTest);
    const no = globs.filter((g) => g.startsWith("!")).map((g) => globToTest(g.slice(1)));
    const name = new RegExp(`^${manifest.replace(".", "\\.")}$`);
    const dirs = unique(tree.files.filter((f) => name.test(baseName(f)) && f.includes("/")).map(dirName))
      .filter((d) => yes.some((re) => re.test(d)) && !no.some((re) => re.test(d)));
    if (dirs.length) return { kind, dirs: dirs.sort(compare) };
  }
  return null;
}

// The package to describe: the one asked for, else the one with most changed files.
function chooseDir(tree, history, options) {
  const found = findPackages(tree);
  const asked = options.package === undefined ? null : joinPath("", options.package.replace(/\\/g, "/").replace(/^\.\//, "").replace(/\/$/, ""));
  if (asked !== null && asked !== "" && !tree.under(asked).length) throw new UsageError(`--package=${options.package} is not a folder with files below ${tree.root}`);
  if (!found) return { dir: asked || "", monorepo: undefined };
  const packages = found.dirs.map((dir) => ({ path: dir, name: readManifest(tree, dir).name || baseName(dir), changedFiles: history.changes.filter((c) => c.path.startsWith(dir + "/")).length }));
  const best = [...packages].sort((a, b) => b.changedFiles - a.changedFiles || compare(a.path, b.path))[0];
  const outside = history.changes.length - packages.reduce((sum, p) => sum + p.changedFiles, 0);
  let dir = best.path;
  let why = `most changed files (${best.changedFiles} of ${history.changes.length})`;
  if (asked !== null) [dir, why] = [asked, "named by --package"];
  else if (best.changedFiles === 0 || outside > best.changedFiles) [dir, why] = ["", `most changed files lie outside the packages (${outside} of ${history.changes.length}), so the whole repository is described`];
  return { dir, monorepo: { kind: found.kind, packages: packages.slice(0, LIMITS.packages), chosen: dir || ".", why }, dropped: Math.max(0, packages.length - LIMITS.packages) };
}

// --- Text files ---

const LICENSES = [["MIT", /\bMIT License\b|Permission is hereby granted, free of charge/], ["Apache-2.0", /Apache License[\s\S]{0,80}Version 2\.0/], ["AGPL-3.0", /GNU AFFERO GENERAL PUBLIC LICENSE/i],
  ["LGPL", /GNU LESSER GENERAL PUBLIC LICENSE/i], ["GPL-3.0", /GNU GENERAL PUBLIC LICENSE[\s\S]{0,80}Version 3/i], ["GPL-2.0", /GNU GENERAL PUBLIC LICENSE[\s\S]{0,80}Version 2/i], ["MPL-2.0", /Mozilla Public License[\s\S]{0,40}2\.0/i],
  ["BSD-3-Clause", /Redistribution and use[\s\S]{0,1500}Neither the name/], ["BSD-2-Clause", /Redistribution and use in source and binary forms/], ["ISC", /\bISC License\b/], ["Unlicense", /free and unencumbered software/i],
  ["BUSL-1.1", /Business Source License 1\.1/i], ["Elastic-2.0", /Elastic License 2\.0/i]];

function findFile(tree, dirs, pattern) {
  for (const dir of dirs) {
    const found = tree.files.filter((f) => dirName(f) === dir && pattern.test(baseName(f)));
    if (found.length) return found.sort((a, b) => Number(!/\.md$/i.test(a)) - Number(!/\.md$/i.test(b)) || compare(a, b))[0];
  }
  return null;
}

// Markdown as a reader sees it: no badges, images, comments or markup.
export function readableMarkdown(text) {
  const body = text.replace(/^---\n[\s\S]*?\n---\n/, "").replace(/<!--[\s\S]*?-->/g, "").replace(/\[!\[[^\]]*\]\([^)]*\)\]\([^)]*\)/g, "").replace(/\[!\[[^\]]*\]\[[^\]]*\]\]\[[^\]]*\]/g, "")
    .replace(/!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])/g, "").replace(/<(script|style|svg|picture|video)\b[\s\S]*?<\/\1>/gi, "").replace(/<h([1-3])[^>]*>([\s\S]*?)<\/h\1>/gi, (_, level, t) => "\n" + "#".repeat(Number(level)) + " " + oneLine(t.replace(/<[^>]+>/g, "")) + "\n")
    .replace(/<br\s*\/?>/gi, "\n").replace(/<\/?[a-zA-Z][^<>\n]{0,500}>/g, "").replace(/^\[[^\]]+\]:\s+\S+.*$/gm, "");
  return body.split("\n").map((l) => l.trimEnd()).join("\n").replace(/\n{3,}/g, "\n\n").trim();
}

function headlineOf(text) {
  const fenced = text.replace(/^```[\s\S]*?^```/gm, "");
  const atx = /^#\s+(.+?)\s*#*\s*$/m.exec(fenced);
  const setext = /^(?!\s*[-*#>|`])(\S.*)\n={3,}\s*$/m.exec(fenced);
  const pick = atx && setext ? (atx.index < setext.index ? atx[1] : setext[1]) : atx?.[1] ?? setext?.[1] ?? /^#{2,3}\s+(.+)$/m.exec(fenced)?.[1];
  return pick ? oneLine(pick.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[*_`]/g, "")).slice(0, 200) : null;
}

function readReadme(tree, dirs, redactor, truncated) {
  const file = findFile(tree, dirs, /^readme(?:\.(?:md|mdx|markdown|rst|txt|adoc))?$/i);
  const raw = file ? tree.read(file) : null;
  if (!raw) return null;
  // Credentials go before anything is cut: half a credential is not recognised any more.
  const text = readableMarkdown(redactor.text(raw));
  const { text: excerpt, cut } = cutBytes(text, LIMITS.readmeBytes);
  if (cut) truncated.readmeBytes = cut;
  return { path: file, headline: headlineOf(text), excerpt };
}

function readChangelog(tree, dirs, redactor, truncated) {
  const file = findFile(tree, dirs, /^(?:changelog|changes|history|release[-_]?notes|news)(?:\.(?:md|rst|txt))?$/i);
  const raw = file ? tree.read(file) : null;
  if (!raw) return undefined;
  const lines = readableMarkdown(redactor.text(raw)).split("\n");
  const heads = lines.map((l, i) => [i, /^(?:#{1,3}\s+)?\[?v?(\d+\.\d+[\w.+-]*|unreleased)\]?(.*)$/i.exec(l)]).filter(([, m]) => m);
  const filled = heads.find(([i], n) => lines.slice(i + 1, heads[n + 1]?.[0] ?? lines.length).some((l) => l.trim() && !/^#/.test(l)));
  const from = filled ? filled[0] : 0;
  const after = filled ? heads.find(([i]) => i > from)?.[0] ?? lines.length : lines.length;
  const { text: excerpt, cut } = cutBytes(lines.slice(from, after).join("\n").trim(), LIMITS.changelogBytes);
  if (cut) truncated.changelogBytes = cut;
  return { path: file, version: filled ? filled[1][1] : null, date: filled ? /\d{4}-\d{2}-\d{2}/.exec(filled[1][2])?.[0] ?? null : null, excerpt };
}

function readDocs(tree, dir, redactor, truncated) {
  const files = tree.under(dir).filter((f) => /\.(?:md|mdx|rst|adoc)$/i.test(f) && /(^|\/)(?:docs?|documentation|guides?|wiki|content\/docs)\//i.test(f) && !/(^|\/)(?:testdata|fixtures)\//.test(f));
  if (files.length > LIMITS.docs) truncated.docs = files.length - LIMITS.docs;
  return files.slice(0, LIMITS.docs).map((file) => {
    const text = redactor.text((tree.read(file) || "").slice(0, 20_000));
    return { path: file, title: /^title:\s*["']?(.+?)["']?\s*$/m.exec(/^---\n([\s\S]*?)\n---/.exec(text)?.[1] || "")?.[1]?.slice(0, 200) || headlineOf(readableMarkdown(text)) };
  });
}

function readEnvKeys(tree, dir) {
  const keys = [];
  for (const file of tree.under(dir).filter((f) => ENV_EXAMPLE.test(baseName(f)))) {
    for (const m of (tree.read(file) || "").matchAll(/^\s*#?\s*(?:export\s+)?([A-Z][A-Z0-9_]{1,80})\s*=/gm)) keys.push(m[1]);
  }
  return unique(keys).sort(compare).slice(0, 200);
}

const DEPLOY_FILES = [["Vercel", /^(?:vercel|now)\.json$/], ["Netlify", /^netlify\.toml$/], ["Fly.io", /^fly(?:\.\w+)?\.toml$/], ["Render", /^render\.ya?ml$/], ["Railway", /^railway\.(?:json|toml)$/], ["Cloudflare", /^wrangler\.(?:toml|jsonc?)$/],
  ["Docker", /^(?:Dockerfile(?:\..+)?|Containerfile)$/], ["Docker Compose", /^(?:docker-)?compose(?:\.[\w-]+)?\.ya?ml$/], ["Heroku", /^Procfile$/], ["Firebase", /^firebase\.json$/], ["Serverless Framework", /^serverless\.ya?ml$/], ["AWS SAM", /^samconfig\.toml$/],
  ["AWS CDK", /^cdk\.json$/], ["AWS Amplify", /^amplify\.yml$/], ["Google App Engine", /^app\.ya?ml$/], ["Google Cloud Build", /^cloudbuild\.ya?ml$/], ["Helm", /^Chart\.yaml$/], ["Kubernetes", /^kustomization\.ya?ml$/], ["Terraform", /\.tf$/],
  ["GoReleaser", /^\.goreleaser\.ya?ml$/], ["Deno Deploy", /^deployctl\.json$/], ["Kamal", /^deploy\.yml$/], ["Expo EAS", /^eas\.json$/], ["DigitalOcean App Platform", /^do-app\.ya?ml$/]];
const WORKFLOW_TARGETS = [["GitHub Pages", /actions\/deploy-pages|peaceiris\/actions-gh-pages|JamesIves\/github-pages/], ["Vercel", /vercel(?:-action|\s+(?:deploy|--prod))/], ["Netlify", /netlify(?:-cli|\/actions)/], ["Fly.io", /superfly\/|flyctl deploy/],
  ["Cloudflare", /cloudflare\/(?:wrangler|pages)-action/], ["npm", /npm publish|JS-DevTools\/npm-publish/], ["PyPI", /pypa\/gh-action-pypi-publish|twine upload|uv publish/], ["crates.io", /cargo publish/], ["GitHub Releases", /softprops\/action-gh-release|gh release create|goreleaser/],
  ["Container registry", /docker\/build-push-action/], ["Heroku", /heroku/], ["Google Cloud Run", /deploy-cloudrun/], ["AWS", /aws-actions\//], ["Azure", /azure\/webapps-deploy/]];

function readDeploy(tree, files, manifest) {
  const targets = new Set();
  const urls = new Set();
  const url = (text) => {
    const m = /^https?:\/\/[^\s"'<>)\]]+/.exec(text || "");
    if (m && !/localhost|127\.0\.0\.1|example\.(?:com|org)|github\.com|gitlab\.com|bitbucket\.org/.test(m[0])) urls.add(m[0].replace(/[.,;]$/, ""));
  };
  for (const f of files) {
    if (/(^|\/)(?:testdata|fixtures|examples?)\//.test(f)) continue;
    const name = baseName(f);
    for (const [target, re] of DEPLOY_FILES) if (re.test(name) && (target !== "Kamal" || /(^|\/)config\/deploy\.yml$/.test(f)) && (target !== "Google App Engine" || /^runtime:/m.test(tree.read(f) || ""))) targets.add(target);
    if (/(^|\/)\.github\/workflows\/.+\.ya?ml$/.test(f)) for (const [target, re] of WORKFLOW_TARGETS) if (re.test(tree.read(f) || "")) targets.add(target);
    if (name === "CNAME" && /^(?:CNAME|docs\/CNAME|public\/CNAME|static\/CNAME)$/.test(f)) {
      const host = (tree.read(f) || "").trim();
      if (/^[\w.-]+\.[a-z]{2,}$/i.test(host)) url(`https://${host}`);
      targets.add("GitHub Pages");
    }
    if (/^wrangler\.toml$/.test(name)) for (const m of (tree.read(f) || "").matchAll(/pattern\s*=\s*["']([\w.-]+\.[a-z]{2,})/g)) url(`https://${m[1]}`);
  }
  url(manifest.homepage);
  return { targets: [...targets].sort(compare), urls: [...urls].sort(compare) };
}

const LOCKFILES = [["pnpm", "pnpm-lock.yaml"], ["yarn", "yarn.lock"], ["bun", "bun.lockb"], ["bun", "bun.lock"], ["npm", "package-lock.json"], ["deno", "deno.lock"], ["uv", "uv.lock"], ["poetry", "poetry.lock"], ["pipenv", "Pipfile.lock"],
  ["cargo", "Cargo.lock"], ["cargo", "Cargo.toml"], ["composer", "composer.json"], ["bundler", "Gemfile"], ["go", "go.mod"], ["mix", "mix.exs"], ["maven", "pom.xml"], ["gradle", "build.gradle"], ["gradle", "build.gradle.kts"], ["npm", "package.json"], ["pip", "requirements.txt"], ["pip", "pyproject.toml"]];

function packageManager(tree, dir) {
  for (const d of unique([dir, ""])) {
    const declared = tree.has(joinPath(d, "package.json")) ? tree.json(joinPath(d, "package.json"))?.packageManager : null;
    if (typeof declared === "string") return declared.split("@")[0];
    const found = LOCKFILES.find(([, f]) => tree.has(joinPath(d, f)));
    if (found) return found[0];
  }
  return null;
}

function languages(files) {
  const counts = new Map();
  for (const f of files) {
    const name = languageOf(f);
    if (name && !/\.min\.|(^|\/)testdata\//.test(f)) counts.set(name, (counts.get(name) || 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1] || compare(a[0], b[0])).slice(0, 8).map(([name]) => name);
}

function describeProject(tree, dir, files) {
  const own = readManifest(tree, dir);
  const root = dir ? readManifest(tree, "") : own;
  for (const key of ["version", "description", "license", "homepage"]) own[key] ??= root[key];
  const deps = new Set([...own.deps, ...root.deps]);
  for (const f of files) if (MANIFESTS.includes(baseName(f)) && f.split("/").length <= (dir ? dir.split("/").length : 0) + 3 && !NOT_PRODUCT.test(f) && dirName(f) !== dir) for (const d of readManifest(tree, dirName(f)).deps) deps.add(d);
  const licence = findFile(tree, unique([dir, ""]), /^(?:licen[cs]e|copying)(?:\.(?:md|txt))?$/i);
  if (!own.license && licence) own.license = LICENSES.find(([, re]) => re.test(tree.read(licence) || ""))?.[0] ?? null;
  return { manifest: own, deps, project: { name: own.name || baseName(dir) || path.basename(tree.root), version: own.version, description: own.description, license: own.license, languages: languages(files),
    frameworks: Object.entries(FRAMEWORK_DEPS).filter(([, re]) => [...deps].some((d) => re.test(d))).map(([n]) => n), packageManager: packageManager(tree, dir) } };
}

// ---------------------------------------------------------------------------------------------------------------
// The document
// ---------------------------------------------------------------------------------------------------------------

function now() {
  const epoch = Number(process.env.SOURCE_DATE_EPOCH);
  return (process.env.SOURCE_DATE_EPOCH && Number.isFinite(epoch) ? new Date(epoch * 1000) : new Date()).toISOString();
}

function textFlag(value, name, doc) {
  if (value === undefined || value.trim() === "") return null;
  const text = plain(value).trim();
  if (text.length <= LIMITS.textField) return text;
  doc.truncated[name] = text.length - LIMITS.textField;
  return text.slice(0, LIMITS.textField);
}

const CHANGE_RANK = { code: 0, style: 1, asset: 2, migration: 1, docs: 3, config: 4, data: 5, other: 5, ci: 6, test: 6, lock: 7 };

function capChanges(changes, truncated) {
  const ranked = [...changes].sort((a, b) => CHANGE_RANK[a.kind] - CHANGE_RANK[b.kind] || (b.additions || 0) + (b.deletions || 0) - (a.additions || 0) - (a.deletions || 0) || compare(a.path, b.path));
  if (ranked.length > LIMITS.changedFiles) truncated.changedFiles = ranked.length - LIMITS.changedFiles;
  return ranked.slice(0, LIMITS.changedFiles);
}

// Without a text from the caller, the newest commits a user would notice speak for themselves.
function whatChanged(given, commits, warnings) {
  if (given) return given;
  const subjects = commits.filter((c) => c.userVisible).slice(0, 5).map((c) => c.subject);
  if (!subjects.length) {
    warnings.push("whatChanged is empty: pass --what-changed=\"…\" with one sentence on what you built");
    return null;
  }
  warnings.push("whatChanged was filled from commit subjects; --what-changed=\"…\" says it better");
  return subjects.join("; ");
}

export function collect(root, options) {
  const redactor = new Redactor();
  const tree = new Tree(root).walk();
  const history = readHistory(tree, options);
  const { dir, monorepo, dropped } = chooseDir(tree, history, options);
  const truncated = tree.truncated;
  if (dropped) truncated.packages = dropped;
  const files = tree.under(dir);
  const { manifest, deps, project } = describeProject(tree, dir, files);
  const warnings = [...history.warnings];
  const commits = history.commits;
  const routes = findRoutes(tree, dir, files, manifest, warnings);
  if (routes.length > LIMITS.routes) truncated.routes = routes.length - LIMITS.routes;
  const doc = { truncated };
  const given = { what: textFlag(options["what-changed"], "whatChanged", doc), customer: textFlag(options["target-customer"], "targetCustomer", doc), goal: textFlag(options.goal, "launchGoal", doc) };
  if (given.goal && !/^(?:users|revenue|feedback|waitlist)$/.test(given.goal)) warnings.push("launchGoal is not one of users, revenue, feedback, waitlist; it was passed on as written");
  if (tree.links) warnings.push(`${tree.links} symbolic links were not followed`);
  const readme = readReadme(tree, unique([dir, "", ".github", "docs"]), redactor, truncated);
  if (!readme) warnings.push("no README was found");
  const changelog = readChangelog(tree, unique([dir, ""]), redactor, truncated);
  const document = {
    schema: SCHEMA, generatedAt: now(), tool: `repo-context.mjs/${VERSION}`,
    project: { ...project, ...(monorepo ? { monorepo } : {}) },
    whatChanged: whatChanged(given.what, commits, warnings),
    recentCommits: commits, changedFiles: capChanges(history.changes, truncated), routes: routes.slice(0, LIMITS.routes),
    readme, ...(changelog ? { changelog } : {}), docs: readDocs(tree, dir, redactor, truncated), envExampleKeys: readEnvKeys(tree, dir),
    deploy: readDeploy(tree, files, manifest), ...detectServices(tree, files, deps),
    targetCustomer: given.customer, launchGoal: given.goal,
    redactions: [], truncated, warnings: unique([...warnings, ...tree.warnings]).slice(0, 40), bytes: 0,
  };
  const clean = redactor.deep(document);
  clean.redactions = redactor.report();
  return clean;
}

function findRoutes(tree, dir, files, manifest, warnings) {
  const binary = manifest.bin || (manifest.name || "").split("/").pop() || null;
  const project = new Project(tree, files);
  const routes = project.routes(binary);
  if (project.skipped) warnings.push(`${project.skipped} source files were not searched for routes; name a --package to search less`);
  return routes;
}

// Shrinks the longest lists first until the document fits, and says what went.
export function fit(doc, maxBytes, pretty) {
  const render = () => {
    let text = "";
    for (let i = 0; i < 4; i++) {
      text = JSON.stringify(doc, null, pretty ? 2 : 0) + "\n";
      const size = Buffer.byteLength(text);
      if (size === doc.bytes) break;
      doc.bytes = size;
    }
    return text;
  };
  const lists = [["docs", 10], ["changedFiles", 60], ["routes", 80], ["envExampleKeys", 30], ["recentCommits", 15], ["changedFiles", 20], ["routes", 30], ["docs", 0], ["recentCommits", 5], ["envExampleKeys", 0], ["changedFiles", 0], ["routes", 0], ["recentCommits", 0], ["warnings", 5]];
  let text = render();
  const drop = (name, least) => {
    while (Buffer.byteLength(text) > maxBytes && doc[name].length > least) {
      const over = (Buffer.byteLength(text) - maxBytes) / Buffer.byteLength(text);
      const n = Math.max(1, Math.min(doc[name].length - least, Math.floor(doc[name].length * over)));
      doc[name].splice(doc[name].length - n, n);
      doc.truncated[name] = (doc.truncated[name] || 0) + n;
      text = render();
    }
  };
  for (const [name, least] of lists.slice(0, 5)) drop(name, least);
  for (const [owner, key] of [[doc.changelog, "changelogBytes"], [doc.readme, "readmeBytes"]]) {
    while (owner && Buffer.byteLength(text) > maxBytes && owner.excerpt.length > 400) {
      const before = Buffer.byteLength(owner.excerpt);
      owner.excerpt = cutBytes(owner.excerpt, Math.max(400, Math.floor(before / 2))).text;
      doc.truncated[key] = (doc.truncated[key] || 0) + before - Buffer.byteLength(owner.excerpt);
      text = render();
    }
  }
  for (const [name, least] of lists.slice(5)) drop(name, least);
  while (doc.project.monorepo?.packages.length && Buffer.byteLength(text) > maxBytes) {
    doc.project.monorepo.packages.pop();
    doc.truncated.packages = (doc.truncated.packages || 0) + 1;
    text = render();
  }
  for (const key of ["whatChanged", "targetCustomer", "launchGoal"]) {
    if (Buffer.byteLength(text) <= maxBytes || !doc[key] || doc[key].length <= 200) continue;
    doc.truncated[key] = (doc.truncated[key] || 0) + doc[key].length - 200;
    doc[key] = doc[key].slice(0, 200);
    text = render();
  }
  return text;
}

// ---------------------------------------------------------------------------------------------------------------
// Command
// ---------------------------------------------------------------------------------------------------------------

function rootFolder(options) {
  const start = path.resolve(options.root === undefined ? "." : options.root);
  let stat = null;
  try {
    stat = fs.statSync(start);
  } catch {
    throw new UsageError(`--root=${start} does not exist`);
  }
  if (!stat.isDirectory()) throw new UsageError(`--root=${start} is not a folder`);
  if (options.root !== undefined || options["no-git"]) return fs.realpathSync(start);
  const top = new Git(start).run("rev-parse", "--show-toplevel");
  return top && top.trim() ? path.resolve(top.trim()) : fs.realpathSync(start);
}

function write(text, out) {
  if (out === "-") {
    process.stdout.write(text);
    return;
  }
  const temp = `${path.resolve(out)}.${process.pid}.tmp`;
  fs.writeFileSync(temp, text, { flag: "wx" });
  fs.renameSync(temp, path.resolve(out));
}

function main(argv) {
  try {
    const options = parseFlags(argv);
    if (options.help) return void process.stdout.write(helpText());
    if (options.version) return void process.stdout.write(`repo-context.mjs ${VERSION} (${SCHEMA})\n`);
    const doc = collect(rootFolder(options), options);
    const text = fit(doc, options.maxBytes, options.format === "pretty");
    write(text, options.out);
    if (!options.check) return undefined;
    const left = new Redactor();
    left.text(text);
    const found = [...doc.redactions, ...left.report()];
    if (!found.length) return undefined;
    process.stderr.write(`credentials were found and removed from the output: ${found.map((r) => `${r.rule} ×${r.count}`).join(", ")}\nremove them from the repository and revoke them, then run again\n`);
    process.exitCode = 3;
  } catch (error) {
    process.stderr.write(`repo-context: ${error.message}\n${error instanceof UsageError ? "run with --help for the flags\n" : ""}`);
    process.exitCode = error instanceof UsageError ? 2 : 1;
  }
  return undefined;
}

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

if (!isImported()) main(process.argv.slice(2));
