//! Names of scans and tests.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name of a scan: `scan_` and 12 hexadecimal digits.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct ScanId(String);

impl ScanId {
    /// Makes the name from 6 random bytes.
    pub fn from_bytes(bytes: [u8; 6]) -> Self {
        let mut text = String::with_capacity(17);
        text.push_str("scan_");
        for byte in bytes {
            text.push_str(&format!("{byte:02x}"));
        }
        Self(text)
    }

    /// Reads a stored name back. Anything else than `scan_` and 12 hexadecimal digits is refused.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("scan_")?;
        let good = digits.len() == 12
            && digits
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        good.then(|| Self(text.to_owned()))
    }

    /// The whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ScanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A collected test: pytest's node id, and which of several items with that id it is.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct TestId {
    /// Node id as pytest spells it, escapes included.
    pub nodeid: String,
    /// 0 for the first item with this node id, 1 for the second and so on.
    #[serde(default)]
    pub occurrence: u32,
}

impl TestId {
    /// Names the first item with that node id.
    pub fn new(nodeid: impl Into<String>) -> Self {
        Self {
            nodeid: nodeid.into(),
            occurrence: 0,
        }
    }
}

impl fmt::Display for TestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.nodeid)?;
        if self.occurrence > 0 {
            write!(f, " (item {})", self.occurrence + 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_id_has_twelve_lowercase_hex_digits() {
        let id = ScanId::from_bytes([0x8c, 0x13, 0x04, 0x5d, 0x13, 0x2c]);
        assert_eq!(id.as_str(), "scan_8c13045d132c");
        assert_eq!(ScanId::parse(id.as_str()), Some(id));
        for bad in [
            "",
            "scan_",
            "scan_8c13045d132",
            "scan_8c13045d132cc",
            "scan_8C13045D132C",
            "8c13045d132c",
        ] {
            assert_eq!(ScanId::parse(bad), None, "{bad}");
        }
    }
}
