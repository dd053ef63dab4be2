//! The sub-commands, one a file. Each takes typed arguments and gives the exit code.

pub(crate) mod doctor;
pub(crate) mod help;
pub(crate) mod list;
pub(crate) mod replay;
pub(crate) mod scan;
pub(crate) mod schema;
pub(crate) mod show;

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use crate::args::{Cli, ColorChoice, Command, GlobalArgs};
use crate::failure::Failure;
use crate::settings;
use crate::style::{Look, Styles};

/// What every command gets.
pub(crate) struct Surface {
    pub(crate) global: GlobalArgs,
    pub(crate) interrupt: Arc<AtomicU8>,
}

impl Surface {
    /// How standard output looks.
    pub(crate) fn stdout_look(&self) -> Look {
        self.look(io::stdout().is_terminal())
    }

    /// How standard error looks.
    pub(crate) fn stderr_look(&self) -> Look {
        self.look(io::stderr().is_terminal())
    }

    fn look(&self, terminal: bool) -> Look {
        let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty() && v != "0");
        let coloured = match self.global.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto if set("NO_COLOR") => false,
            ColorChoice::Auto if set("CLICOLOR_FORCE") || set("FORCE_COLOR") => true,
            ColorChoice::Auto => terminal && std::env::var_os("TERM").is_none_or(|t| t != "dumb"),
        };
        let width = match rustix::termios::tcgetwinsize(io::stderr()) {
            Ok(size) if terminal && size.ws_col > 0 => usize::from(size.ws_col).clamp(60, 120),
            _ => 100,
        };
        Look {
            styles: if coloured {
                Styles::coloured()
            } else {
                Styles::plain()
            },
            ascii: self.global.ascii,
            width,
        }
    }
}

/// Runs what was typed.
pub(crate) fn run(cli: Cli, interrupt: Arc<AtomicU8>) -> Result<u8, Failure> {
    let surface = Surface {
        global: cli.global,
        interrupt,
    };
    match cli.command {
        None => scan::scan(&cli.scan, &surface),
        Some(Command::Scan(args)) => scan::scan(&args, &surface),
        Some(Command::Resume(args)) => scan::resume(&args, &surface),
        Some(Command::Show(args)) => show::show(&args, &surface),
        Some(Command::List(args)) => list::list(&args, &surface),
        Some(Command::Replay(args)) => replay::replay(&args, &surface),
        Some(Command::Doctor(args)) => doctor::doctor(&args, &surface),
        Some(Command::Schema(args)) => schema::schema(args.what),
        Some(Command::Help(args)) => help::help(args.topic.as_deref()),
    }
}

/// Writes the answer to standard output. A reader that has gone away is not an error.
pub(crate) fn answer(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let stdout = io::stdout().lock();
    let mut out = io::BufWriter::new(stdout);
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            // Nothing is left to be written when the buffer is dropped.
            let _ = out.into_parts();
            Ok(())
        }
        Err(error) => Err(Failure::usage(
            format!("cannot write the answer to standard output: {error}"),
            &[],
        )),
        Ok(()) => Ok(()),
    }
}

/// Opens the trace for reading; says so if there is none yet.
pub(crate) fn trace(surface: &Surface) -> Result<bmc_engine::store::Store, Failure> {
    let setting = settings::setting(&surface.global, surface.interrupt.clone())?;
    let path = &setting.directories.database;
    if !path.exists() {
        return Err(Failure::usage(
            format!("there is no scan yet: {} does not exist", path.display()),
            &["breakmycode PATH   makes the first one"],
        ));
    }
    Ok(bmc_engine::store::Store::open_read_only(path)?)
}
