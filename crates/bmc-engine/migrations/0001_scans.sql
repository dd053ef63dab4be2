-- Scans and everything they saw. Outcomes and durations of a run are one blob each, by test index.
CREATE TABLE scans (
    id            TEXT PRIMARY KEY,
    started_at    TEXT NOT NULL,
    status        TEXT NOT NULL,
    project_root  BLOB NOT NULL,
    tool_version  TEXT NOT NULL,
    request       TEXT NOT NULL,
    project       TEXT NOT NULL,
    environment   TEXT,
    plan          TEXT,
    problems      TEXT NOT NULL DEFAULT '[]',
    advice        TEXT NOT NULL DEFAULT '[]',
    seconds       REAL NOT NULL DEFAULT 0,
    report        TEXT
) STRICT;
CREATE INDEX scans_by_time ON scans (started_at);

CREATE TABLE tests (
    scan_id     TEXT NOT NULL REFERENCES scans (id) ON DELETE CASCADE,
    idx         INTEGER NOT NULL,
    nodeid      TEXT NOT NULL,
    occurrence  INTEGER NOT NULL,
    PRIMARY KEY (scan_id, idx)
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
    scan_id        TEXT NOT NULL REFERENCES scans (id) ON DELETE CASCADE,
    run            INTEGER NOT NULL,
    conditions     TEXT NOT NULL,
    outcomes       BLOB NOT NULL,
    durations      BLOB NOT NULL,
    seconds        REAL NOT NULL,
    processes      INTEGER NOT NULL,
    remarks        TEXT NOT NULL,
    session_error  TEXT,
    PRIMARY KEY (scan_id, run)
) STRICT;

CREATE TABLE signatures (
    scan_id  TEXT NOT NULL REFERENCES scans (id) ON DELETE CASCADE,
    idx      INTEGER NOT NULL,
    digest   TEXT NOT NULL,
    outcome  TEXT NOT NULL,
    example  TEXT NOT NULL,
    PRIMARY KEY (scan_id, idx)
) STRICT, WITHOUT ROWID;

CREATE TABLE failures (
    scan_id    TEXT NOT NULL REFERENCES scans (id) ON DELETE CASCADE,
    run        INTEGER NOT NULL,
    test       INTEGER NOT NULL,
    signature  INTEGER NOT NULL,
    text       TEXT,
    PRIMARY KEY (scan_id, run, test)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    scan_id  TEXT NOT NULL REFERENCES scans (id) ON DELETE CASCADE,
    seq      INTEGER NOT NULL,
    at_ms    INTEGER NOT NULL,
    body     TEXT NOT NULL,
    PRIMARY KEY (scan_id, seq)
) STRICT, WITHOUT ROWID;
