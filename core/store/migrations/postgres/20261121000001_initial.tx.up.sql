-- All times are microseconds since 1970 in UTC; documents are kept as the text they came in.

-- Text is compared by bytes (COLLATE "C"), so that identifiers sort as they do in Go.

CREATE TABLE IF NOT EXISTS instance (
    key   TEXT COLLATE "C" NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (key)
);

CREATE TABLE IF NOT EXISTS hosts (
    id           TEXT COLLATE "C" NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    pid          BIGINT NOT NULL,
    started_at   BIGINT,
    heartbeat_at BIGINT,
    stopped_at   BIGINT,
    PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS workspaces (
    id         TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    plan       TEXT NOT NULL,
    policy     TEXT,
    frozen     BOOLEAN NOT NULL,
    created_at BIGINT,
    updated_at BIGINT,
    version    BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS users (
    id            TEXT COLLATE "C" NOT NULL,
    email         TEXT COLLATE "C" NOT NULL,
    name          TEXT COLLATE "C" NOT NULL,
    password_hash TEXT NOT NULL,
    disabled      BOOLEAN NOT NULL,
    created_at    BIGINT,
    updated_at    BIGINT,
    version       BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS memberships (
    workspace_id TEXT COLLATE "C" NOT NULL,
    user_id      TEXT COLLATE "C" NOT NULL,
    role         TEXT NOT NULL,
    created_at   BIGINT,
    PRIMARY KEY (workspace_id, user_id)
);

CREATE TABLE IF NOT EXISTS sessions (
    id           TEXT COLLATE "C" NOT NULL,
    token_hash   BYTEA,
    user_id      TEXT NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL,
    auth_time    BIGINT,
    last_seen_at BIGINT,
    expires_at   BIGINT,
    revoked_at   BIGINT,
    user_agent   TEXT NOT NULL,
    ip           TEXT NOT NULL,
    created_at   BIGINT,
    PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS setup_tokens (
    hash       BYTEA NOT NULL,
    expires_at BIGINT,
    used_at    BIGINT,
    created_at BIGINT,
    PRIMARY KEY (hash)
);

CREATE TABLE IF NOT EXISTS refresh_tokens (
    hash         BYTEA NOT NULL,
    family       TEXT NOT NULL,
    user_id      TEXT NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL,
    client       TEXT NOT NULL,
    scopes       TEXT NOT NULL,
    auth_time    BIGINT,
    expires_at   BIGINT,
    used_at      BIGINT,
    revoked_at   BIGINT,
    created_at   BIGINT,
    PRIMARY KEY (hash)
);

CREATE TABLE IF NOT EXISTS throttles (
    key           TEXT COLLATE "C" NOT NULL,
    count         BIGINT NOT NULL,
    window_start  BIGINT,
    blocked_until BIGINT,
    PRIMARY KEY (key)
);

CREATE TABLE IF NOT EXISTS api_keys (
    id           TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    kind         TEXT NOT NULL,
    scopes       TEXT NOT NULL,
    prefix       TEXT NOT NULL,
    hash         BYTEA,
    owner_id     TEXT NOT NULL,
    lifted_to    TEXT NOT NULL,
    expires_at   BIGINT,
    last_used_at BIGINT,
    revoked_at   BIGINT,
    created_at   BIGINT,
    version      BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS signing_keys (
    kid        TEXT COLLATE "C" NOT NULL,
    purpose    TEXT NOT NULL,
    public     BYTEA,
    secret_id  TEXT NOT NULL,
    retired_at BIGINT,
    created_at BIGINT,
    PRIMARY KEY (kid)
);

CREATE TABLE IF NOT EXISTS secrets (
    id           TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL,
    class        TEXT NOT NULL,
    subject      TEXT NOT NULL,
    format       BIGINT NOT NULL,
    key_id       TEXT NOT NULL,
    wrapped_key  BYTEA,
    sealed       BYTEA,
    created_at   BIGINT,
    PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS runs (
    id            TEXT COLLATE "C" NOT NULL,
    workspace_id  TEXT COLLATE "C" NOT NULL,
    project_id    TEXT NOT NULL,
    operator      TEXT NOT NULL,
    goal          TEXT NOT NULL,
    phase         TEXT NOT NULL,
    phase_reason  TEXT NOT NULL,
    status        TEXT NOT NULL,
    intent        TEXT NOT NULL,
    skills        TEXT NOT NULL,
    next          TEXT,
    credits       DOUBLE PRECISION NOT NULL,
    cost_micros   BIGINT NOT NULL,
    currency      TEXT NOT NULL,
    created_by    TEXT NOT NULL,
    created_by_id TEXT NOT NULL,
    origin_tool   TEXT NOT NULL,
    origin_args   TEXT,
    work          TEXT NOT NULL,
    work_tries    BIGINT NOT NULL,
    lease_owner   TEXT NOT NULL,
    lease_until   BIGINT,
    created_at    BIGINT,
    updated_at    BIGINT,
    version       BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS assets (
    id              TEXT COLLATE "C" NOT NULL,
    workspace_id    TEXT COLLATE "C" NOT NULL,
    run_id          TEXT COLLATE "C" NOT NULL,
    skill           TEXT NOT NULL,
    kind            TEXT NOT NULL,
    channel         TEXT NOT NULL,
    title           TEXT NOT NULL,
    status          TEXT NOT NULL,
    digest          TEXT NOT NULL,
    revision        BIGINT NOT NULL,
    parent_revision BIGINT NOT NULL,
    genericity      DOUBLE PRECISION NOT NULL,
    data            TEXT,
    created_at      BIGINT,
    version         BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS evidence (
    workspace_id TEXT COLLATE "C" NOT NULL,
    id           TEXT COLLATE "C" NOT NULL,
    ord          TEXT COLLATE "C" NOT NULL,
    run_id       TEXT COLLATE "C" NOT NULL,
    kind         TEXT NOT NULL,
    source       TEXT NOT NULL,
    digest       TEXT NOT NULL,
    data         TEXT,
    captured_at  BIGINT,
    PRIMARY KEY (workspace_id, id)
);

CREATE TABLE IF NOT EXISTS actions (
    id              TEXT COLLATE "C" NOT NULL,
    workspace_id    TEXT COLLATE "C" NOT NULL,
    run_id          TEXT COLLATE "C" NOT NULL,
    status          TEXT NOT NULL,
    status_reason   TEXT NOT NULL,
    executor        TEXT NOT NULL,
    revision        BIGINT NOT NULL,
    version         BIGINT NOT NULL,
    digest          TEXT NOT NULL,
    tool            TEXT NOT NULL,
    plugin          TEXT NOT NULL,
    connector       TEXT NOT NULL,
    channel         TEXT NOT NULL,
    kind            TEXT NOT NULL,
    input           TEXT,
    sealed          TEXT,
    endpoints       TEXT,
    plugin_digest   TEXT NOT NULL,
    manifest_digest TEXT NOT NULL,
    tool_digest     TEXT NOT NULL,
    connection_id   TEXT NOT NULL,
    connection      TEXT,
    account         TEXT NOT NULL,
    asset_refs      TEXT NOT NULL,
    evidence_ids    TEXT NOT NULL,
    depends_on      TEXT NOT NULL,
    cost_micros     BIGINT NOT NULL,
    currency        TEXT NOT NULL,
    credits         DOUBLE PRECISION NOT NULL,
    not_before      BIGINT,
    expires_at      BIGINT,
    proof           TEXT NOT NULL,
    needed          BIGINT NOT NULL,
    title           TEXT NOT NULL,
    target_account  TEXT NOT NULL,
    target_label    TEXT NOT NULL,
    preview         TEXT,
    content_sha256  TEXT NOT NULL,
    reversibility   TEXT NOT NULL,
    reach           BIGINT NOT NULL,
    supersedes      TEXT NOT NULL,
    superseded_by   TEXT NOT NULL,
    created_by      TEXT NOT NULL,
    created_by_id   TEXT NOT NULL,
    edited_by       TEXT NOT NULL,
    edited_by_id    TEXT NOT NULL,
    generation      BIGINT NOT NULL,
    claimed_once    BOOLEAN NOT NULL,
    lease_owner     TEXT NOT NULL,
    lease_until     BIGINT,
    connect_tries   BIGINT NOT NULL,
    next_try_at     BIGINT,
    approved_at     BIGINT,
    execute_at      BIGINT,
    attempt         BIGINT NOT NULL,
    idempotency_key TEXT NOT NULL,
    steps_done      BIGINT NOT NULL,
    steps           TEXT,
    started_at      BIGINT,
    sending_at      BIGINT,
    finished_at     BIGINT,
    outcome         TEXT NOT NULL,
    external_id     TEXT NOT NULL,
    external_url    TEXT NOT NULL,
    sent_sha256     TEXT NOT NULL,
    exec_error      TEXT,
    created_at      BIGINT,
    updated_at      BIGINT,
    PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS action_revisions (
    action_id       TEXT COLLATE "C" NOT NULL,
    revision        BIGINT NOT NULL,
    workspace_id    TEXT COLLATE "C" NOT NULL,
    digest          TEXT NOT NULL,
    input           TEXT,
    sealed          TEXT,
    preview         TEXT,
    content_sha256  TEXT NOT NULL,
    plugin_digest   TEXT NOT NULL,
    manifest_digest TEXT NOT NULL,
    tool_digest     TEXT NOT NULL,
    connection_id   TEXT NOT NULL,
    by_actor        TEXT NOT NULL,
    at              BIGINT,
    PRIMARY KEY (action_id, revision)
);

CREATE TABLE IF NOT EXISTS decisions (
    id              TEXT COLLATE "C" NOT NULL,
    workspace_id    TEXT COLLATE "C" NOT NULL,
    action_id       TEXT COLLATE "C" NOT NULL,
    run_id          TEXT COLLATE "C" NOT NULL,
    revision        BIGINT NOT NULL,
    digest          TEXT NOT NULL,
    decision        TEXT NOT NULL,
    by_actor        TEXT NOT NULL,
    by_id           TEXT NOT NULL,
    proof           TEXT NOT NULL,
    auth_time       BIGINT,
    session_id      TEXT NOT NULL,
    channel         TEXT NOT NULL,
    reason          TEXT NOT NULL,
    proof_url       TEXT NOT NULL,
    via_service_key BOOLEAN NOT NULL,
    sole_approver   BOOLEAN NOT NULL,
    mac             BYTEA,
    void            BOOLEAN NOT NULL,
    at              BIGINT,
    PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS deliveries (
    workspace_id TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    run_id       TEXT COLLATE "C" NOT NULL,
    pack_digest  TEXT NOT NULL,
    actions      TEXT NOT NULL,
    at           BIGINT,
    PRIMARY KEY (workspace_id, principal_id, run_id)
);

CREATE TABLE IF NOT EXISTS connections (
    id               TEXT COLLATE "C" NOT NULL,
    workspace_id     TEXT COLLATE "C" NOT NULL,
    provider         TEXT COLLATE "C" NOT NULL,
    name             TEXT COLLATE "C" NOT NULL,
    account          TEXT NOT NULL,
    address          TEXT NOT NULL,
    fields           TEXT NOT NULL,
    audiences        TEXT,
    scopes           TEXT NOT NULL,
    secret_id        TEXT NOT NULL,
    status           TEXT NOT NULL,
    status_reason    TEXT NOT NULL,
    binding_digest   TEXT NOT NULL,
    last_snapshot_at BIGINT,
    created_by       TEXT NOT NULL,
    created_at       BIGINT,
    updated_at       BIGINT,
    version          BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS oauth_states (
    hash         BYTEA NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL,
    provider     TEXT COLLATE "C" NOT NULL,
    user_id      TEXT NOT NULL,
    session_id   TEXT NOT NULL,
    secret_id    TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    expires_at   BIGINT,
    used_at      BIGINT,
    created_at   BIGINT,
    PRIMARY KEY (hash)
);

CREATE TABLE IF NOT EXISTS snapshots (
    id            TEXT COLLATE "C" NOT NULL,
    workspace_id  TEXT COLLATE "C" NOT NULL,
    provider      TEXT COLLATE "C" NOT NULL,
    connection_id TEXT NOT NULL,
    source        TEXT NOT NULL,
    digest        TEXT NOT NULL,
    data          TEXT,
    captured_at   BIGINT,
    PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS datasets (
    id           TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    columns      TEXT NOT NULL,
    row_count    BIGINT NOT NULL,
    bytes        BIGINT NOT NULL,
    digest       TEXT NOT NULL,
    created_by   TEXT NOT NULL,
    created_at   BIGINT,
    PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS dataset_rows (
    dataset_id TEXT COLLATE "C" NOT NULL,
    n          BIGINT NOT NULL,
    data       TEXT,
    PRIMARY KEY (dataset_id, n)
);

CREATE TABLE IF NOT EXISTS log_head (
    id         BIGINT NOT NULL,
    audit_size BIGINT NOT NULL,
    frontier   BYTEA,
    event_seq  BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS audit_entries (
    seq             BIGINT NOT NULL,
    workspace_id    TEXT COLLATE "C" NOT NULL,
    at              BIGINT,
    actor_kind      TEXT NOT NULL,
    actor_id        TEXT NOT NULL,
    on_behalf_of    TEXT NOT NULL,
    action          TEXT NOT NULL,
    target          TEXT NOT NULL,
    outcome         TEXT NOT NULL,
    request_id      TEXT NOT NULL,
    trace_id        TEXT NOT NULL,
    details         TEXT,
    details_salt    BYTEA,
    details_commit  BYTEA,
    personal        TEXT,
    personal_salt   BYTEA,
    personal_commit BYTEA,
    leaf            BYTEA,
    leaf_hash       BYTEA,
    prev_root       BYTEA,
    PRIMARY KEY (seq)
);

CREATE TABLE IF NOT EXISTS audit_hashes (
    idx  BIGINT NOT NULL,
    hash BYTEA,
    PRIMARY KEY (idx)
);

CREATE TABLE IF NOT EXISTS audit_checkpoints (
    tree_size BIGINT NOT NULL,
    root      BYTEA,
    note      TEXT NOT NULL,
    at        BIGINT,
    PRIMARY KEY (tree_size)
);

CREATE TABLE IF NOT EXISTS events (
    seq          BIGINT NOT NULL,
    id           TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL,
    run_id       TEXT COLLATE "C" NOT NULL,
    action_id    TEXT COLLATE "C" NOT NULL,
    type         TEXT NOT NULL,
    data         TEXT,
    at           BIGINT,
    PRIMARY KEY (seq)
);

CREATE TABLE IF NOT EXISTS webhooks (
    id           TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL,
    url          TEXT NOT NULL,
    events       TEXT NOT NULL,
    secret_id    TEXT NOT NULL,
    disabled     BOOLEAN NOT NULL,
    created_by   TEXT NOT NULL,
    created_at   BIGINT,
    version      BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS webhook_deliveries (
    id           TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL,
    webhook_id   TEXT NOT NULL,
    event_seq    BIGINT NOT NULL,
    status       TEXT NOT NULL,
    attempt      BIGINT NOT NULL,
    next_try_at  BIGINT,
    reply_status BIGINT NOT NULL,
    error        TEXT NOT NULL,
    created_at   BIGINT,
    version      BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS usage_counts (
    workspace_id TEXT COLLATE "C" NOT NULL,
    period       TEXT COLLATE "C" NOT NULL,
    tool         TEXT COLLATE "C" NOT NULL,
    calls        BIGINT NOT NULL,
    errors       BIGINT NOT NULL,
    credits      DOUBLE PRECISION NOT NULL,
    cost_micros  BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, period, tool)
);

CREATE TABLE IF NOT EXISTS memory (
    workspace_id TEXT COLLATE "C" NOT NULL,
    key          TEXT COLLATE "C" NOT NULL,
    value        TEXT,
    updated_by   TEXT NOT NULL,
    updated_at   BIGINT,
    PRIMARY KEY (workspace_id, key)
);

CREATE TABLE IF NOT EXISTS idempotency (
    workspace_id TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    key          TEXT COLLATE "C" NOT NULL,
    body_hash    TEXT NOT NULL,
    done         BOOLEAN NOT NULL,
    status       BIGINT NOT NULL,
    headers      TEXT NOT NULL,
    body         BYTEA,
    at           BIGINT,
    PRIMARY KEY (workspace_id, principal_id, key)
);

CREATE TABLE IF NOT EXISTS mcp_sessions (
    id           TEXT COLLATE "C" NOT NULL,
    host_id      TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    ended_at     BIGINT,
    created_at   BIGINT,
    PRIMARY KEY (id)
);

CREATE UNIQUE INDEX IF NOT EXISTS users_email ON users (email);
CREATE INDEX IF NOT EXISTS memberships_user ON memberships (user_id);
CREATE UNIQUE INDEX IF NOT EXISTS sessions_token ON sessions (token_hash);
CREATE INDEX IF NOT EXISTS sessions_user ON sessions (user_id);
CREATE INDEX IF NOT EXISTS refresh_tokens_family ON refresh_tokens (family);
CREATE INDEX IF NOT EXISTS api_keys_list ON api_keys (workspace_id, id);
CREATE INDEX IF NOT EXISTS secrets_key ON secrets (key_id);
CREATE INDEX IF NOT EXISTS runs_list ON runs (workspace_id, id);
CREATE INDEX IF NOT EXISTS runs_status ON runs (workspace_id, status, id);
CREATE INDEX IF NOT EXISTS runs_work ON runs (work, id) WHERE work IN ('wanted', 'running');
CREATE INDEX IF NOT EXISTS runs_measuring ON runs (updated_at) WHERE status = 'measuring';
CREATE INDEX IF NOT EXISTS assets_list ON assets (workspace_id, id);
CREATE INDEX IF NOT EXISTS assets_run ON assets (run_id, id);
CREATE UNIQUE INDEX IF NOT EXISTS evidence_ord ON evidence (workspace_id, ord);
CREATE INDEX IF NOT EXISTS evidence_run ON evidence (run_id, ord);
CREATE INDEX IF NOT EXISTS actions_list ON actions (workspace_id, id);
CREATE INDEX IF NOT EXISTS actions_status ON actions (workspace_id, status, id);
CREATE INDEX IF NOT EXISTS actions_run ON actions (run_id, id);
CREATE INDEX IF NOT EXISTS actions_due ON actions (execute_at) WHERE status = 'approved';
CREATE INDEX IF NOT EXISTS actions_leases ON actions (lease_until) WHERE status IN ('claimed', 'sending');
CREATE INDEX IF NOT EXISTS actions_deadline ON actions (expires_at) WHERE status IN ('proposed', 'pending', 'approved');
CREATE INDEX IF NOT EXISTS decisions_action ON decisions (action_id, id);
CREATE UNIQUE INDEX IF NOT EXISTS connections_name ON connections (workspace_id, provider, name);
CREATE INDEX IF NOT EXISTS connections_list ON connections (workspace_id, id);
CREATE INDEX IF NOT EXISTS snapshots_list ON snapshots (workspace_id, id);
CREATE INDEX IF NOT EXISTS snapshots_provider ON snapshots (workspace_id, provider, id);
CREATE INDEX IF NOT EXISTS datasets_list ON datasets (workspace_id, id);
CREATE INDEX IF NOT EXISTS audit_entries_list ON audit_entries (workspace_id, seq);
CREATE INDEX IF NOT EXISTS audit_entries_target ON audit_entries (workspace_id, target, seq);
CREATE UNIQUE INDEX IF NOT EXISTS events_id ON events (id);
CREATE INDEX IF NOT EXISTS events_list ON events (workspace_id, seq);
CREATE INDEX IF NOT EXISTS events_run ON events (run_id, seq);
CREATE INDEX IF NOT EXISTS webhooks_list ON webhooks (workspace_id, id);
CREATE INDEX IF NOT EXISTS webhook_deliveries_due ON webhook_deliveries (next_try_at) WHERE status = 'pending';
CREATE INDEX IF NOT EXISTS webhook_deliveries_hook ON webhook_deliveries (webhook_id);
CREATE INDEX IF NOT EXISTS idempotency_at ON idempotency (at);

INSERT INTO log_head (id, audit_size, event_seq) VALUES (1, 0, 0) ON CONFLICT (id) DO NOTHING;
