//! Outcomes and durations as bytes. Outcomes are runs of equal codes, since nearly all tests pass nearly always.

/// Packs outcome codes: pairs of (code, LEB128 length).
pub(super) fn pack_outcomes(codes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = codes;
    while let Some(&code) = rest.first() {
        let length = rest.iter().take_while(|c| **c == code).count();
        out.push(code);
        let mut n = length;
        loop {
            let low = (n & 0x7f) as u8;
            n >>= 7;
            out.push(if n == 0 { low } else { low | 0x80 });
            if n == 0 {
                break;
            }
        }
        rest = &rest[length..];
    }
    out
}

/// Unpacks outcome codes; `None` if the bytes were not packed by us.
pub(super) fn unpack_outcomes(bytes: &[u8]) -> Option<Vec<u8>> {
    /// More tests than any suite has: damage must not become an allocation of gigabytes.
    const LIMIT: usize = 1 << 26;
    let mut out = Vec::new();
    let mut bytes = bytes.iter();
    while let Some(&code) = bytes.next() {
        let mut length = 0usize;
        let mut shift = 0;
        loop {
            let byte = *bytes.next()?;
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
            if shift > 28 {
                return None;
            }
        }
        if length == 0 || out.len() + length > LIMIT {
            return None;
        }
        out.resize(out.len() + length, code);
    }
    Some(out)
}

/// Packs duration codes, little-endian.
pub(super) fn pack_durations(codes: &[u16]) -> Vec<u8> {
    codes.iter().flat_map(|code| code.to_le_bytes()).collect()
}

/// Unpacks duration codes.
pub(super) fn unpack_durations(bytes: &[u8]) -> Vec<u16> {
    bytes
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn outcomes_round_trip(codes in proptest::collection::vec(0u8..11, 0..500)) {
            prop_assert_eq!(unpack_outcomes(&pack_outcomes(&codes)), Some(codes));
        }

        #[test]
        fn durations_round_trip(codes in proptest::collection::vec(any::<u16>(), 0..100)) {
            prop_assert_eq!(unpack_durations(&pack_durations(&codes)), codes);
        }

        #[test]
        fn any_bytes_unpack_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = unpack_outcomes(&bytes);
        }
    }

    #[test]
    fn ten_thousand_equal_outcomes_are_three_bytes() {
        assert_eq!(pack_outcomes(&[0; 10_000]).len(), 3);
    }
}
