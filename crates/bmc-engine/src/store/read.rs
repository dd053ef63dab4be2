//! Reading scans back from the trace.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use bmc_types::report::{EnvironmentFacts, PlanFacts, ProjectFacts};
use bmc_types::{Advice, Event, Outcome, Problem, ScanId, ScanReport, ScanStatus, TestId};
use rusqlite::{OptionalExtension, Row, params};
use serde::de::DeserializeOwned;

use super::{Store, StoreError, pack};
use crate::history::{FailureRecord, History, RunRecord, Signature};

/// The row of a scan.
#[derive(Debug, Clone, PartialEq)]
pub struct ScanRow {
    /// Its name.
    pub id: ScanId,
    /// Start, RFC 3339.
    pub started_at: String,
    /// How it ended; `Running` also if its process died.
    pub status: ScanStatus,
    /// Root of the project, byte for byte.
    pub root: PathBuf,
    /// Version of breakmycode.
    pub tool_version: String,
    /// What was asked for, as JSON of the workflow that wrote it.
    pub request: String,
    /// The project.
    pub project: ProjectFacts,
    /// Interpreter, pytest and isolation.
    pub environment: Option<EnvironmentFacts>,
    /// The plan.
    pub plan: Option<PlanFacts>,
    /// Remarks.
    pub problems: Vec<Problem>,
    /// Why there is no result.
    pub advice: Vec<Advice>,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// The stored report, if it was finished.
    pub report: Option<ScanReport>,
    /// How many scan runs are stored.
    pub runs: u32,
}

/// A scan with everything it saw.
#[derive(Debug)]
pub struct StoredScan {
    /// The row.
    pub row: ScanRow,
    /// Tests, runs and failures.
    pub history: History,
}

const COLUMNS: &str = "id, started_at, status, project_root, tool_version, request, project, environment, plan, problems, advice, seconds, report,
     (SELECT count(*) FROM runs WHERE scan_id = scans.id AND conditions ->> 'purpose' = 'scan')";

impl Store {
    /// Finds the scan that a name, a unique prefix (with or without `scan_`) or `latest` means.
    ///
    /// # Errors
    /// No such scan, several, or whatever SQLite says.
    pub fn resolve(&self, name: &str) -> Result<ScanId, StoreError> {
        let none = || StoreError::NoSuchScan {
            name: name.to_owned(),
        };
        if name == "latest" {
            let id: Option<String> = self
                .connection
                .query_row(
                    "SELECT id FROM scans ORDER BY started_at DESC, rowid DESC LIMIT 1",
                    [],
                    |row| row.get(0),
                )
                .optional()
                .map_err(|e| self.sqlite(e))?;
            return id.and_then(|id| ScanId::parse(&id)).ok_or_else(none);
        }
        let digits = name.strip_prefix("scan_").unwrap_or(name);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(none());
        }
        let pattern = format!("scan_{}*", digits.to_ascii_lowercase());
        let mut statement = self
            .connection
            .prepare("SELECT id FROM scans WHERE id GLOB ?1 ORDER BY started_at LIMIT 6")
            .map_err(|e| self.sqlite(e))?;
        let fits: Vec<String> = statement
            .query_map([pattern], |row| row.get(0))
            .and_then(Iterator::collect)
            .map_err(|e| self.sqlite(e))?;
        match fits.as_slice() {
            [] => Err(none()),
            [id] => ScanId::parse(id).ok_or_else(none),
            _ => Err(StoreError::Ambiguous {
                name: name.to_owned(),
                fits,
            }),
        }
    }

    /// The rows of the newest scans, newest first.
    ///
    /// # Errors
    /// Whatever SQLite says; rows that cannot be understood are left out.
    pub fn list(&self, limit: u32) -> Result<Vec<ScanRow>, StoreError> {
        let sql =
            format!("SELECT {COLUMNS} FROM scans ORDER BY started_at DESC, rowid DESC LIMIT ?1");
        let mut statement = self.connection.prepare(&sql).map_err(|e| self.sqlite(e))?;
        let rows: Vec<Option<ScanRow>> = statement
            .query_map([limit], |row| Ok(scan_row(row)))
            .and_then(Iterator::collect)
            .map_err(|e| self.sqlite(e))?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// The row of a scan.
    ///
    /// # Errors
    /// No such scan, a damaged one, or whatever SQLite says.
    pub fn row(&self, id: &ScanId) -> Result<ScanRow, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM scans WHERE id = ?1");
        self.connection
            .query_row(&sql, [id.as_str()], |row| Ok(scan_row(row)))
            .optional()
            .map_err(|e| self.sqlite(e))?
            .ok_or_else(|| StoreError::NoSuchScan {
                name: id.to_string(),
            })?
            .ok_or_else(|| StoreError::Damaged {
                scan: id.to_string(),
                what: "the facts",
            })
    }

    /// A scan with everything it saw.
    ///
    /// # Errors
    /// No such scan, a damaged one, or whatever SQLite says.
    pub fn load(&self, id: &ScanId) -> Result<StoredScan, StoreError> {
        let row = self.row(id)?;
        let mut history = History::default();
        self.load_tests(id, &mut history)?;
        self.load_signatures(id, &mut history)?;
        for run in self.load_runs(id)? {
            history.push(run);
        }
        Ok(StoredScan { row, history })
    }

    /// The stored events of a scan, in order.
    ///
    /// # Errors
    /// Whatever SQLite says; events of a newer version are left out.
    pub fn events(&self, id: &ScanId) -> Result<Vec<Event>, StoreError> {
        let bodies: Vec<String> = self
            .connection
            .prepare_cached("SELECT body FROM events WHERE scan_id = ?1 ORDER BY seq")
            .and_then(|mut statement| {
                statement
                    .query_map([id.as_str()], |row| row.get(0))?
                    .collect()
            })
            .map_err(|e| self.sqlite(e))?;
        Ok(bodies
            .iter()
            .filter_map(|body| serde_json::from_str(body).ok())
            .collect())
    }

    fn load_tests(&self, id: &ScanId, history: &mut History) -> Result<(), StoreError> {
        let tests: Vec<TestId> = self
            .connection
            .prepare_cached("SELECT nodeid, occurrence FROM tests WHERE scan_id = ?1 ORDER BY idx")
            .and_then(|mut statement| {
                statement
                    .query_map([id.as_str()], |row| {
                        Ok(TestId {
                            nodeid: row.get(0)?,
                            occurrence: row.get(1)?,
                        })
                    })?
                    .collect()
            })
            .map_err(|e| self.sqlite(e))?;
        for test in &tests {
            history.intern(test);
        }
        Ok(())
    }

    fn load_signatures(&self, id: &ScanId, history: &mut History) -> Result<(), StoreError> {
        let rows: Vec<(String, String, String)> = self
            .connection
            .prepare_cached(
                "SELECT digest, outcome, example FROM signatures WHERE scan_id = ?1 ORDER BY idx",
            )
            .and_then(|mut statement| {
                statement
                    .query_map([id.as_str()], |row| {
                        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                    })?
                    .collect()
            })
            .map_err(|e| self.sqlite(e))?;
        for (digest, outcome, example) in rows {
            let damaged = || StoreError::Damaged {
                scan: id.to_string(),
                what: "a failure",
            };
            let outcome = Outcome::parse(&outcome).ok_or_else(damaged)?;
            let example = serde_json::from_str(&example).map_err(|_| damaged())?;
            history.add_signature(Signature {
                digest,
                outcome,
                example,
            });
        }
        Ok(())
    }

    fn load_runs(&self, id: &ScanId) -> Result<Vec<RunRecord>, StoreError> {
        let damaged = || StoreError::Damaged {
            scan: id.to_string(),
            what: "a run",
        };
        let mut failures: std::collections::HashMap<u32, Vec<FailureRecord>> =
            std::collections::HashMap::new();
        let mut load = || -> rusqlite::Result<()> {
            let mut statement = self
                .connection
                .prepare_cached("SELECT run, test, signature, text FROM failures WHERE scan_id = ?1 ORDER BY run, test")?;
            let mut rows = statement.query([id.as_str()])?;
            while let Some(row) = rows.next()? {
                let text: Option<String> = row.get(3)?;
                failures
                    .entry(row.get(0)?)
                    .or_default()
                    .push(FailureRecord {
                        test: row.get(1)?,
                        signature: row.get(2)?,
                        text: text.and_then(|t| serde_json::from_str(&t).ok()),
                    });
            }
            Ok(())
        };
        load().map_err(|e| self.sqlite(e))?;
        let mut runs = Vec::new();
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT run, conditions, outcomes, durations, seconds, processes, remarks, session_error FROM runs WHERE scan_id = ?1 ORDER BY rowid",
            )
            .map_err(|e| self.sqlite(e))?;
        let mut rows = statement
            .query(params![id.as_str()])
            .map_err(|e| self.sqlite(e))?;
        while let Some(row) = rows.next().map_err(|e| self.sqlite(e))? {
            let run: u32 = row.get(0).map_err(|e| self.sqlite(e))?;
            let record = run_record(row, failures.remove(&run).unwrap_or_default());
            runs.push(record.map_err(|e| self.sqlite(e))?.ok_or_else(damaged)?);
        }
        Ok(runs)
    }
}

/// `None` if the row holds what this version cannot understand.
fn run_record(row: &Row<'_>, failures: Vec<FailureRecord>) -> rusqlite::Result<Option<RunRecord>> {
    let (conditions, remarks): (String, String) = (row.get(1)?, row.get(6)?);
    let (outcomes, durations): (Vec<u8>, Vec<u8>) = (row.get(2)?, row.get(3)?);
    let (Ok(conditions), Ok(remarks), Some(outcomes)) = (
        serde_json::from_str(&conditions),
        serde_json::from_str(&remarks),
        pack::unpack_outcomes(&outcomes),
    ) else {
        return Ok(None);
    };
    Ok(Some(RunRecord {
        run: row.get(0)?,
        conditions,
        outcomes,
        durations: pack::unpack_durations(&durations),
        failures,
        remarks,
        seconds: row.get(4)?,
        processes: row.get(5)?,
        session_error: row.get(7)?,
    }))
}

/// `None` if the row holds what this version cannot understand.
fn scan_row(row: &Row<'_>) -> Option<ScanRow> {
    fn text<T: DeserializeOwned>(row: &Row<'_>, at: usize) -> Option<T> {
        serde_json::from_str(&row.get::<_, String>(at).ok()?).ok()
    }
    let root: Vec<u8> = row.get(3).ok()?;
    Some(ScanRow {
        id: ScanId::parse(&row.get::<_, String>(0).ok()?)?,
        started_at: row.get(1).ok()?,
        status: ScanStatus::parse(&row.get::<_, String>(2).ok()?)?,
        root: PathBuf::from(OsStr::from_bytes(&root)),
        tool_version: row.get(4).ok()?,
        request: row.get(5).ok()?,
        project: text(row, 6)?,
        environment: text(row, 7),
        plan: text(row, 8),
        problems: text(row, 9).unwrap_or_default(),
        advice: text(row, 10).unwrap_or_default(),
        seconds: row.get(11).ok()?,
        report: text(row, 12),
        runs: row.get(13).ok()?,
    })
}
