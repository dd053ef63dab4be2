//! The trace: one SQLite file with every scan. Opens, migrates, writes as things happen, reads back.
//!
//! A finished run is one transaction, so that after a crash at any moment the database opens and all finished runs are in it.

mod pack;
mod read;
mod write;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

pub use read::{ScanRow, StoredScan};
pub use write::FinishedRun;

/// The migrations in order; their count is the version of the database.
const MIGRATIONS: &[&str] = &[include_str!("../../migrations/0001_scans.sql")];

/// How long one scan waits for another that is writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(20);

/// What can go wrong with the trace.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder for the database cannot be made.
    #[error("make the folder {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// SQLite refused.
    #[error("use the database {}", path.display())]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// Another version of breakmycode has been here.
    #[error("write to the database {}: it has version {found}, this breakmycode knows version {known}", path.display())]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version known here.
        known: u32,
    },
    /// What is stored makes no sense.
    #[error("read {what} of {scan} from the trace")]
    Damaged {
        /// The scan.
        scan: String,
        /// Which part.
        what: &'static str,
    },
    /// Nothing of that name.
    #[error("find the scan {name:?}")]
    NoSuchScan {
        /// What was asked for.
        name: String,
    },
    /// A prefix of several names.
    #[error("tell which scan {name:?} means: it fits {}", fits.join(", "))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// The names it fits.
        fits: Vec<String>,
    },
}

/// The open trace.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

impl Store {
    /// Opens the database for writing, makes it if it is not there, and migrates an older one.
    ///
    /// # Errors
    /// A folder or file that cannot be made or written, and a database from a newer version.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|source| StoreError::Folder {
                path: folder.to_owned(),
                source,
            })?;
        }
        let sqlite = |source| StoreError::Sqlite {
            path: path.to_owned(),
            source,
        };
        let mut connection = Connection::open(path).map_err(sqlite)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(sqlite)?;
        let found = version(&connection).map_err(sqlite)?;
        let known = MIGRATIONS.len() as u32;
        if found > known {
            return Err(StoreError::Newer {
                path: path.to_owned(),
                found,
                known,
            });
        }
        connection
            .pragma_update(None, "journal_mode", "wal")
            .map_err(sqlite)?;
        // WAL with NORMAL survives a killed process; only a power cut can lose the last transactions, never the file.
        connection
            .pragma_update(None, "synchronous", "normal")
            .map_err(sqlite)?;
        connection
            .pragma_update(None, "foreign_keys", true)
            .map_err(sqlite)?;
        if found < known {
            migrate(&mut connection).map_err(sqlite)?;
        }
        Ok(Self {
            connection,
            path: path.to_owned(),
        })
    }

    /// Opens an existing database for reading only; one from a newer version as well.
    ///
    /// # Errors
    /// A file that is not there or is no database.
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        let sqlite = |source| StoreError::Sqlite {
            path: path.to_owned(),
            source,
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(sqlite)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(sqlite)?;
        if version(&connection).map_err(sqlite)? < MIGRATIONS.len() as u32 {
            drop(connection);
            return Self::open(path);
        }
        Ok(Self {
            connection,
            path: path.to_owned(),
        })
    }

    /// Where the database is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn sqlite(&self, source: rusqlite::Error) -> StoreError {
        StoreError::Sqlite {
            path: self.path.clone(),
            source,
        }
    }
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    // IMMEDIATE: of two scans that start at once, the second waits and then finds the work done.
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let from = version(&transaction)? as usize;
    for sql in MIGRATIONS.iter().skip(from) {
        transaction.execute_batch(sql)?;
    }
    if from < MIGRATIONS.len() {
        transaction.pragma_update(None, "user_version", MIGRATIONS.len() as u32)?;
    }
    transaction.commit()
}

#[cfg(test)]
mod tests;
