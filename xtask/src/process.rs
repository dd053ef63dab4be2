//! Starts other programs and says plainly how they ended. Must not decide what an exit code means.

use std::process::{Command, Stdio};

/// Runs a program that inherits the terminal; an exit code other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    match code(command)? {
        0 => Ok(()),
        code => Err(format!(
            "finish `{}`: it ended with exit code {code}",
            line(command)
        )),
    }
}

/// Runs a program that inherits the terminal and gives its exit code, 128 and more for a signal as a shell does.
pub(crate) fn code(command: &mut Command) -> Result<i32, String> {
    let status = command
        .status()
        .map_err(|error| format!("start `{}`: {error}", line(command)))?;
    Ok(status.code().unwrap_or_else(|| 128 + signal(status)))
}

/// Runs a program without a terminal and gives what it wrote to standard output.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("start `{}`: {error}", line(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "finish `{}`: {}\n{}",
            line(command),
            output.status,
            said.trim_end()
        ));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| format!("read what `{}` printed: it is not UTF-8", line(command)))
}

/// Shows a command as it could be typed in a shell.
pub(crate) fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| quoted(&word.to_string_lossy()))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Quotes a word for a shell where it needs that.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Says whether a program can be found.
pub(crate) fn exists(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

fn signal(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.signal().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_can_be_typed_again() {
        let mut command = Command::new("pytest");
        command.args(["-k", "not slow", "it's", "", "a/b.py::test[1]"]);
        assert_eq!(
            line(&command),
            r"pytest -k 'not slow' 'it'\''s' '' 'a/b.py::test[1]'"
        );
    }

    #[test]
    fn an_exit_code_is_told_and_a_signal_counts_from_128() {
        assert_eq!(code(Command::new("sh").args(["-c", "exit 3"])), Ok(3));
        assert_eq!(code(Command::new("sh").args(["-c", "kill -9 $$"])), Ok(137));
        assert!(
            run(Command::new("sh").args(["-c", "exit 3"]))
                .unwrap_err()
                .ends_with("exit code 3")
        );
        assert!(
            run(&mut Command::new("no-such-program"))
                .unwrap_err()
                .starts_with("start `no-such-program`")
        );
    }

    #[test]
    fn output_is_what_was_printed_and_an_error_shows_what_was_said() {
        assert_eq!(
            output(Command::new("sh").args(["-c", "echo one"])).unwrap(),
            "one\n"
        );
        let problem = output(Command::new("sh").args(["-c", "echo bad >&2; exit 1"])).unwrap_err();
        assert!(problem.ends_with("\nbad"), "{problem}");
    }
}
