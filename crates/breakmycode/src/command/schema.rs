//! `breakmycode schema`: JSON Schema of what programs read.

use super::answer;
use crate::args::SchemaChoice;
use crate::failure::Failure;

/// Prints a schema.
pub(crate) fn schema(what: SchemaChoice) -> Result<u8, Failure> {
    let schema = match what {
        SchemaChoice::Scan => schemars::schema_for!(bmc_types::ScanReport),
        SchemaChoice::Event => schemars::schema_for!(bmc_types::Event),
    };
    answer(|out| {
        serde_json::to_writer_pretty(&mut *out, &schema)?;
        out.write_all(b"\n")
    })?;
    Ok(0)
}
