//! Frames between the runner and the pytest plugin, as PROTOCOL.md describes them.
//!
//! Reads what a stranger's process wrote: every size is bounded and nothing here panics or guesses.

use std::io::{self, Read};

use bmc_types::{Failure, Outcome};
use serde::de::{self, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::diagnose::CollectError;

/// Version of the protocol.
pub const VERSION: u32 = 1;

/// Longest frame either side may send, in bytes.
pub const MAX_FRAME: usize = 1 << 20;

/// Name of the variable that carries the number of the inherited descriptor.
pub const FD_VARIABLE: &str = "BREAKMYCODE_FD";

/// What the plugin should do after it has collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Report and exit.
    Collect,
    /// Wait for `go`, run, exit.
    Run,
    /// Serve `fork`, `go` and `quit`.
    Server,
}

/// First frame to the plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Config {
    /// Protocol version.
    pub v: u32,
    /// What to do.
    pub mode: Mode,
    /// Seed for `random`, set before any project code is imported.
    pub seed: u64,
    /// `PYTHONHASHSEED` of the process, for the records.
    pub hash_seed: u32,
    /// Number of the fresh start.
    pub start: u32,
    /// Number of the run; absent in server mode.
    pub run: Option<u32>,
    /// Tests to keep, as (node id, occurrence).
    pub select: Option<Vec<(String, u32)>>,
    /// Order to run in.
    pub order: Option<Vec<(String, u32)>>,
    /// Longest `longrepr` in characters.
    pub longrepr_limit: u32,
    /// Signal on which stacks are written to descriptor 2; 0 = none.
    pub stack_signal: i32,
    /// Switch off what hides or disturbs repetition.
    pub neutralise: bool,
    /// Go on when some files cannot be collected.
    pub continue_on_collection_errors: bool,
}

/// Frames to the plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "t", rename_all = "lowercase")]
pub enum ToPlugin {
    /// First frame.
    Config(Config),
    /// Run in this process.
    Go {
        /// Positions in the collected list; absent = all.
        indices: Option<Vec<u32>>,
    },
    /// Run in a forked child.
    Fork {
        /// Number of the run.
        run: u32,
        /// Seed of the run.
        seed: u64,
        /// Positions in the collected list; absent = all.
        indices: Option<Vec<u32>>,
        /// Variables to set in the child.
        env: std::collections::BTreeMap<String, String>,
        /// Names of the namespaces whose descriptors ride along.
        namespaces: Vec<String>,
        /// Names of the capabilities that the child keeps, such as `chown`.
        keep_caps: Vec<String>,
        /// Signal on which stacks are written.
        stack_signal: i32,
    },
    /// Exit without running.
    Quit,
}

/// Encodes a frame.
///
/// # Errors
/// A frame above [`MAX_FRAME`]; a list of that many tests has to be sent in parts.
pub fn encode(frame: &ToPlugin) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, frame)?;
    let length = bytes.len() - 4;
    if length > MAX_FRAME {
        return Err(io::Error::other(format!(
            "a frame of {length} bytes is above the limit of {MAX_FRAME}"
        )));
    }
    bytes[..4].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(bytes)
}

/// First frame of the plugin.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Hello {
    /// Protocol version.
    pub v: u32,
    /// Process id as the process sees it.
    pub pid: i64,
    /// Version of Python.
    pub python: String,
    /// `cpython`, `pypy`, …
    #[serde(default)]
    pub implementation: String,
    /// Version of pytest.
    pub pytest: String,
    /// pytest's root directory.
    #[serde(default)]
    pub rootdir: String,
    /// Configuration file, if any.
    #[serde(default)]
    pub inifile: Option<String>,
    /// Loaded plugins and versions.
    #[serde(default)]
    pub plugins: Vec<(String, String)>,
    /// What was switched off, and why.
    #[serde(default)]
    pub switched_off: Vec<(String, String)>,
}

/// A part of the list of collected tests.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Collected {
    /// Node ids, in order.
    pub ids: Vec<String>,
    /// Whether another part follows.
    pub more: bool,
    /// Tests that pytest or the selection left out.
    #[serde(default)]
    pub deselected: u64,
    /// Selected tests that do not exist.
    #[serde(default)]
    pub missing: Vec<(String, u32)>,
    /// Seconds of collection.
    #[serde(default)]
    pub collect_s: f64,
}

/// The process is ready to run or fork.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Ready {
    /// What makes forked children unlike fresh processes: (kind, text).
    #[serde(default)]
    pub hazards: Vec<(String, String)>,
    /// Project code seeded `random` while it was imported.
    #[serde(default)]
    pub random_seeded: bool,
    /// The same for numpy, where it can be known.
    #[serde(default)]
    pub numpy_seeded: Option<bool>,
}

/// A forked child ended.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Exited {
    /// Number of the run.
    pub run: u32,
    /// Exit code, unless a signal ended it.
    #[serde(default)]
    pub code: Option<i32>,
    /// The signal.
    #[serde(default)]
    pub signal: Option<i32>,
    /// Peak resident memory.
    #[serde(default)]
    pub maxrss_kb: u64,
    /// CPU seconds in user mode.
    #[serde(default)]
    pub user_s: f64,
    /// CPU seconds in the kernel.
    #[serde(default)]
    pub system_s: f64,
}

/// A remark about a test.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Remark {
    /// Stable word.
    pub kind: String,
    /// For `scope_teardown`: `module`, `class`, `session`, `package`.
    #[serde(default)]
    pub scope: String,
    /// In words.
    #[serde(default)]
    pub message: String,
}

/// Frames from the plugin.
#[derive(Debug, Clone, PartialEq)]
pub enum FromPlugin {
    /// See [`Hello`].
    Hello(Hello),
    /// A test file is about to be imported.
    File(String),
    /// A file or class could not be collected.
    CollectError(Box<CollectError>),
    /// See [`Collected`].
    Collected(Collected),
    /// See [`Ready`].
    Ready(Ready),
    /// A child for this run exists.
    Forked {
        /// Number of the run.
        run: u32,
    },
    /// A child could not be made.
    ForkFailed {
        /// Number of the run.
        run: u32,
        /// Why.
        message: String,
    },
    /// See [`Exited`].
    Exited(Exited),
    /// A test is about to start.
    Started(u32),
    /// A test is over.
    Done {
        /// Position in the collected list.
        index: u32,
        /// Its outcome.
        outcome: Outcome,
        /// Setup, call and teardown together.
        duration_us: u64,
        /// How it failed, or why it was skipped (in `message`).
        detail: Option<Box<Failure>>,
    },
    /// See [`Remark`].
    Remark(u32, Remark),
    /// The session is over.
    Finish {
        /// pytest's exit status.
        exitstatus: i64,
        /// What went wrong in the session itself.
        message: Option<String>,
    },
    /// The plugin itself failed.
    InternalError(String),
}

#[derive(Deserialize)]
#[serde(tag = "t", rename_all = "snake_case")]
enum ObjectFrame {
    Hello(Hello),
    File {
        path: String,
    },
    CollectError(Box<CollectError>),
    Collected(Collected),
    Ready(Ready),
    Forked {
        run: u32,
    },
    ForkFailed {
        run: u32,
        #[serde(default)]
        message: String,
    },
    Exited(Exited),
    Finish {
        exitstatus: i64,
        #[serde(default)]
        message: Option<String>,
    },
    InternalError {
        #[serde(default)]
        message: String,
    },
}

impl From<ObjectFrame> for FromPlugin {
    fn from(frame: ObjectFrame) -> Self {
        match frame {
            ObjectFrame::Hello(hello) => FromPlugin::Hello(hello),
            ObjectFrame::File { path } => FromPlugin::File(path),
            ObjectFrame::CollectError(error) => FromPlugin::CollectError(error),
            ObjectFrame::Collected(collected) => FromPlugin::Collected(collected),
            ObjectFrame::Ready(ready) => FromPlugin::Ready(ready),
            ObjectFrame::Forked { run } => FromPlugin::Forked { run },
            ObjectFrame::ForkFailed { run, message } => FromPlugin::ForkFailed { run, message },
            ObjectFrame::Exited(exited) => FromPlugin::Exited(exited),
            ObjectFrame::Finish {
                exitstatus,
                message,
            } => FromPlugin::Finish {
                exitstatus,
                message,
            },
            ObjectFrame::InternalError { message } => FromPlugin::InternalError(message),
        }
    }
}

struct HotFrame(FromPlugin);

impl<'de> Deserialize<'de> for HotFrame {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Hot;
        impl<'de> Visitor<'de> for Hot {
            type Value = HotFrame;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an array starting with \"s\", \"o\" or \"m\"")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<HotFrame, A::Error> {
                fn need<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(
                    seq: &mut A,
                    at: usize,
                ) -> Result<T, A::Error> {
                    seq.next_element()?
                        .ok_or_else(|| de::Error::invalid_length(at, &"more elements"))
                }
                let tag: String = need(&mut seq, 0)?;
                let index: u32 = need(&mut seq, 1)?;
                let frame = match tag.as_str() {
                    "s" => FromPlugin::Started(index),
                    "o" => {
                        let word: String = need(&mut seq, 2)?;
                        let outcome = Outcome::parse(&word).ok_or_else(|| {
                            de::Error::custom(format_args!("unknown outcome {word:?}"))
                        })?;
                        let duration_us: u64 = need(&mut seq, 3)?;
                        let detail: Option<Box<Failure>> =
                            seq.next_element::<Option<Box<Failure>>>()?.flatten();
                        FromPlugin::Done {
                            index,
                            outcome,
                            duration_us,
                            detail,
                        }
                    }
                    "m" => FromPlugin::Remark(index, need(&mut seq, 2)?),
                    other => {
                        return Err(de::Error::custom(format_args!("unknown frame {other:?}")));
                    }
                };
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(HotFrame(frame))
            }
        }
        deserializer.deserialize_seq(Hot)
    }
}

/// Reads the body of one frame.
///
/// # Errors
/// Says what is wrong with it; the connection cannot be trusted any more.
pub fn decode(body: &[u8]) -> Result<FromPlugin, String> {
    let result = match body.first() {
        Some(b'[') => serde_json::from_slice::<HotFrame>(body).map(|hot| hot.0),
        _ => serde_json::from_slice::<ObjectFrame>(body).map(FromPlugin::from),
    };
    result.map_err(|error| error.to_string())
}

/// Takes frames out of a stream of bytes.
#[derive(Debug)]
pub struct FrameReader<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
}

/// What a [`FrameReader`] found.
#[derive(Debug)]
pub enum Read1 {
    /// A frame.
    Frame(FromPlugin),
    /// The other side closed between two frames, or inside one: what is left over is no frame.
    End,
    /// What came is not this protocol.
    Violation(String),
}

impl<R: Read> FrameReader<R> {
    /// Reads from `source`.
    pub fn new(source: R) -> Self {
        Self {
            source,
            buffer: Vec::with_capacity(1 << 16),
            start: 0,
        }
    }

    /// Waits for the next frame.
    ///
    /// # Errors
    /// Passes on errors of the source other than interruption; a reset connection is an end.
    pub fn next_frame(&mut self) -> io::Result<Read1> {
        loop {
            let have = self.buffer.len() - self.start;
            if have >= 4 {
                let head = &self.buffer[self.start..self.start + 4];
                let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
                if length > MAX_FRAME {
                    return Ok(Read1::Violation(format!(
                        "a frame of {length} bytes is above the limit of {MAX_FRAME}"
                    )));
                }
                if have >= 4 + length {
                    let body = &self.buffer[self.start + 4..self.start + 4 + length];
                    let found = match decode(body) {
                        Ok(frame) => Read1::Frame(frame),
                        Err(error) => Read1::Violation(error),
                    };
                    self.start += 4 + length;
                    return Ok(found);
                }
            }
            if self.start > 0 {
                self.buffer.drain(..self.start);
                self.start = 0;
            }
            let old = self.buffer.len();
            self.buffer.resize(old + (1 << 16), 0);
            let got = match self.source.read(&mut self.buffer[old..]) {
                Ok(got) => got,
                Err(error) => {
                    self.buffer.truncate(old);
                    match error.kind() {
                        io::ErrorKind::Interrupted => continue,
                        io::ErrorKind::ConnectionReset => 0,
                        _ => return Err(error),
                    }
                }
            };
            self.buffer.truncate(old + got);
            if got == 0 {
                return Ok(Read1::End);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bmc_types::Phase;
    use proptest::prelude::*;

    fn frame(body: &str) -> Vec<u8> {
        let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
        bytes.extend_from_slice(body.as_bytes());
        bytes
    }

    #[test]
    fn hot_frames_are_read() {
        assert_eq!(decode(br#"["s",17]"#), Ok(FromPlugin::Started(17)));
        assert_eq!(
            decode(br#"["o",17,"passed",1234]"#),
            Ok(FromPlugin::Done {
                index: 17,
                outcome: Outcome::Passed,
                duration_us: 1234,
                detail: None
            })
        );
        let failed = decode(br#"["o",1,"failed",5,{"phase":"call","type":"ValueError","message":"x","path":"a.py","line":3,"longrepr":"t","extra":[]}]"#);
        let Ok(FromPlugin::Done {
            detail: Some(detail),
            ..
        }) = failed
        else {
            panic!("{failed:?}")
        };
        assert_eq!(
            (detail.phase, detail.kind.as_str(), detail.line),
            (Some(Phase::Call), "ValueError", Some(3))
        );
    }

    #[test]
    fn unknown_frames_and_outcomes_are_refused() {
        for bad in [
            "",
            "[]",
            "[\"s\"]",
            "[\"s\",-1]",
            "[\"x\",1]",
            "[\"o\",1,\"great\",1]",
            "{}",
            "{\"t\":\"nope\"}",
            "7",
            "{\"t\":\"hello\"",
            "[\"o\",1,\"passed\"]",
        ] {
            assert!(decode(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn frames_survive_any_cut_of_the_stream() {
        struct Bytewise(Vec<u8>, usize);
        impl Read for Bytewise {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                let Some(byte) = self.0.get(self.1) else {
                    return Ok(0);
                };
                into[0] = *byte;
                self.1 += 1;
                Ok(1)
            }
        }
        let mut bytes = frame(r#"["s",1]"#);
        bytes.extend(frame(r#"["o",1,"skipped",9,{"message":"no"}]"#));
        bytes.extend(&frame(r#"["s",2]"#)[..6]);
        let mut reader = FrameReader::new(Bytewise(bytes, 0));
        assert!(matches!(
            reader.next_frame().unwrap(),
            Read1::Frame(FromPlugin::Started(1))
        ));
        assert!(matches!(
            reader.next_frame().unwrap(),
            Read1::Frame(FromPlugin::Done {
                outcome: Outcome::Skipped,
                ..
            })
        ));
        assert!(matches!(reader.next_frame().unwrap(), Read1::End));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic_and_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut reader = FrameReader::new(&bytes[..]);
            let mut frames = 0;
            while let Read1::Frame(_) | Read1::Violation(_) = reader.next_frame().unwrap() {
                frames += 1;
                // A violation with an absurd length stays where it is; callers stop at the first.
                if frames > 400 {
                    break;
                }
            }
        }

        #[test]
        fn any_array_is_a_frame_or_an_error(index in any::<i64>(), word in ".{0,12}", tail in ".{0,20}") {
            let body = serde_json::json!(["o", index, word, 5, {"message": tail}]).to_string();
            let known = Outcome::parse(&word).is_some() && u32::try_from(index).is_ok();
            prop_assert_eq!(decode(body.as_bytes()).is_ok(), known);
        }
    }

    #[test]
    fn a_length_above_the_limit_is_a_violation_and_allocates_nothing() {
        let mut reader = FrameReader::new(&[0xff, 0xff, 0xff, 0xff, b'['][..]);
        assert!(matches!(reader.next_frame().unwrap(), Read1::Violation(_)));
    }

    #[test]
    fn an_own_frame_has_its_length_in_front() {
        let bytes = encode(&ToPlugin::Go {
            indices: Some(vec![3, 1]),
        })
        .unwrap();
        assert_eq!(&bytes[4..], br#"{"t":"go","indices":[3,1]}"#);
        assert_eq!(bytes[..4], 26u32.to_le_bytes());
    }
}
