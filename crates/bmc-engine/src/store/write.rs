//! Writing to the trace, in the order in which things happen.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bmc_types::report::{EnvironmentFacts, PlanFacts, ProjectFacts};
use bmc_types::{Advice, Event, Problem, ScanId, ScanReport, ScanStatus, TestId};
use rusqlite::params;

use super::{Store, StoreError, pack};
use crate::history::{RunRecord, Signature};

fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("our own shapes have string keys and finite numbers")
}

/// A finished run and what is new with it.
#[derive(Debug, Clone, Copy)]
pub struct FinishedRun<'a> {
    /// The run.
    pub run: &'a RunRecord,
    /// Tests that are not in the trace yet, and the index of the first.
    pub tests: (usize, &'a [TestId]),
    /// Signatures that are not in the trace yet, and the index of the first.
    pub signatures: (usize, &'a [Signature]),
    /// Events up to and with the one that tells of this run.
    pub events: &'a [Event],
    /// Seconds since the scan began.
    pub seconds_so_far: f64,
}

fn insert_events(
    transaction: &rusqlite::Transaction<'_>,
    id: &ScanId,
    events: &[Event],
) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(
        "INSERT OR REPLACE INTO events (scan_id, seq, at_ms, body) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for event in events {
        insert.execute(params![
            id.as_str(),
            event.seq as i64,
            event.at_ms as i64,
            json(event)
        ])?;
    }
    Ok(())
}

impl Store {
    /// Notes that a scan began.
    ///
    /// # Errors
    /// Whatever SQLite says.
    pub fn begin_scan(
        &self,
        id: &ScanId,
        started_at: &str,
        root: &Path,
        request: &str,
        project: &ProjectFacts,
    ) -> Result<(), StoreError> {
        self.connection
            .execute(
                "INSERT INTO scans (id, started_at, status, project_root, tool_version, request, project) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![
                    id.as_str(),
                    started_at,
                    ScanStatus::Running.as_str(),
                    root.as_os_str().as_bytes(),
                    env!("CARGO_PKG_VERSION"),
                    request,
                    json(project)
                ],
            )
            .map_err(|e| self.sqlite(e))?;
        Ok(())
    }

    /// Notes interpreter, pytest and isolation.
    ///
    /// # Errors
    /// Whatever SQLite says.
    pub fn set_environment(
        &self,
        id: &ScanId,
        environment: &EnvironmentFacts,
    ) -> Result<(), StoreError> {
        self.connection
            .execute(
                "UPDATE scans SET environment = ?2 WHERE id = ?1",
                params![id.as_str(), json(environment)],
            )
            .map_err(|e| self.sqlite(e))?;
        Ok(())
    }

    /// Notes the plan; again when it changes.
    ///
    /// # Errors
    /// Whatever SQLite says.
    pub fn set_plan(&self, id: &ScanId, plan: &PlanFacts) -> Result<(), StoreError> {
        self.connection
            .execute(
                "UPDATE scans SET plan = ?2 WHERE id = ?1",
                params![id.as_str(), json(plan)],
            )
            .map_err(|e| self.sqlite(e))?;
        Ok(())
    }

    /// Notes the remarks made so far.
    ///
    /// # Errors
    /// Whatever SQLite says.
    pub fn set_problems(
        &self,
        id: &ScanId,
        problems: &[Problem],
        advice: &[Advice],
    ) -> Result<(), StoreError> {
        self.connection
            .execute(
                "UPDATE scans SET problems = ?2, advice = ?3 WHERE id = ?1",
                params![id.as_str(), json(&problems), json(&advice)],
            )
            .map_err(|e| self.sqlite(e))?;
        Ok(())
    }

    /// Notes that a stopped scan goes on.
    ///
    /// # Errors
    /// Whatever SQLite says.
    pub fn reopen(&self, id: &ScanId) -> Result<(), StoreError> {
        self.connection
            .execute(
                "UPDATE scans SET status = 'running', report = NULL WHERE id = ?1",
                params![id.as_str()],
            )
            .map_err(|e| self.sqlite(e))?;
        Ok(())
    }

    /// Writes a finished run with everything it brought, in one transaction.
    ///
    /// # Errors
    /// Whatever SQLite says; then nothing of the run is stored.
    pub fn add_run(&mut self, id: &ScanId, finished: FinishedRun<'_>) -> Result<(), StoreError> {
        let path = self.path.clone();
        self.add_run_inner(id, finished)
            .map_err(|source| StoreError::Sqlite { path, source })
    }

    fn add_run_inner(&mut self, id: &ScanId, finished: FinishedRun<'_>) -> rusqlite::Result<()> {
        let FinishedRun {
            run,
            tests: (first_test, tests),
            signatures: (first_signature, signatures),
            events,
            seconds_so_far,
        } = finished;
        let transaction = self
            .connection
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        {
            let mut insert = transaction
                .prepare_cached("INSERT OR IGNORE INTO tests (scan_id, idx, nodeid, occurrence) VALUES (?1, ?2, ?3, ?4)")?;
            for (offset, test) in tests.iter().enumerate() {
                insert.execute(params![
                    id.as_str(),
                    (first_test + offset) as i64,
                    test.nodeid,
                    test.occurrence
                ])?;
            }
            let mut insert = transaction.prepare_cached(
                "INSERT OR IGNORE INTO signatures (scan_id, idx, digest, outcome, example) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            for (offset, signature) in signatures.iter().enumerate() {
                insert.execute(params![
                    id.as_str(),
                    (first_signature + offset) as i64,
                    signature.digest,
                    signature.outcome.as_str(),
                    json(&signature.example)
                ])?;
            }
            transaction.execute(
                "INSERT INTO runs (scan_id, run, conditions, outcomes, durations, seconds, processes, remarks, session_error)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                params![
                    id.as_str(),
                    run.run,
                    json(&run.conditions),
                    pack::pack_outcomes(&run.outcomes),
                    pack::pack_durations(&run.durations),
                    run.seconds,
                    run.processes,
                    json(&run.remarks),
                    run.session_error
                ],
            )?;
            let mut insert = transaction
                .prepare_cached("INSERT OR REPLACE INTO failures (scan_id, run, test, signature, text) VALUES (?1, ?2, ?3, ?4, ?5)")?;
            for failure in &run.failures {
                insert.execute(params![
                    id.as_str(),
                    run.run,
                    failure.test,
                    failure.signature,
                    failure.text.as_ref().map(json)
                ])?;
            }
            insert_events(&transaction, id, events)?;
            transaction.execute(
                "UPDATE scans SET seconds = ?2 WHERE id = ?1",
                params![id.as_str(), seconds_so_far],
            )?;
        }
        transaction.commit()
    }

    /// Adds events.
    ///
    /// # Errors
    /// Whatever SQLite says.
    pub fn add_events(&mut self, id: &ScanId, events: &[Event]) -> Result<(), StoreError> {
        let path = self.path.clone();
        let mut write = || -> rusqlite::Result<()> {
            let transaction = self
                .connection
                .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            insert_events(&transaction, id, events)?;
            transaction.commit()
        };
        write().map_err(|source| StoreError::Sqlite { path, source })
    }

    /// Writes the report and the final status.
    ///
    /// # Errors
    /// Whatever SQLite says.
    pub fn finish_scan(&self, id: &ScanId, report: &ScanReport) -> Result<(), StoreError> {
        self.connection
            .execute(
                "UPDATE scans SET status = ?2, report = ?3, seconds = ?4 WHERE id = ?1",
                params![
                    id.as_str(),
                    report.status.as_str(),
                    json(report),
                    report.seconds
                ],
            )
            .map_err(|e| self.sqlite(e))?;
        Ok(())
    }
}
