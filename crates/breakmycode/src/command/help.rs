//! `breakmycode help [CODE]`: the long text of an error code, or the general help.

use clap::CommandFactory;

use super::answer;
use crate::args::Cli;
use crate::failure::Failure;

/// Explains.
pub(crate) fn help(topic: Option<&str>) -> Result<u8, Failure> {
    let mut command = Cli::command();
    let Some(topic) = topic else {
        let text = command.render_help().to_string();
        answer(|out| out.write_all(text.as_bytes()))?;
        return Ok(0);
    };
    if let Some(sub) = command.find_subcommand_mut(topic) {
        let text = sub.render_help().to_string();
        answer(|out| out.write_all(text.as_bytes()))?;
        return Ok(0);
    }
    let code = topic.to_ascii_uppercase();
    let code = code.strip_prefix("BMC-").unwrap_or(&code);
    match bmc_pytest::diagnose::explain(code).or_else(|| own(code)) {
        Some(text) => {
            answer(|out| writeln!(out, "{}", text.trim_end()))?;
            Ok(0)
        }
        None => Err(Failure::usage(
            format!("there is no error code or sub-command {topic:?}"),
            &["breakmycode help E021", "breakmycode --help"],
        )),
    }
}

/// Codes of the surface and the engine; those of the environment are in `bmc-pytest`.
fn own(code: &str) -> Option<&'static str> {
    Some(match code {
        "E050" => include_str!("../help/E050.md"),
        "E060" => include_str!("../help/E060.md"),
        "E061" => include_str!("../help/E061.md"),
        "E062" => include_str!("../help/E062.md"),
        "E063" => include_str!("../help/E063.md"),
        "E064" => include_str!("../help/E064.md"),
        _ => return None,
    })
}
