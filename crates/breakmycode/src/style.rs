//! Meanings of colours and symbols, and how wide the screen is. Never carries information that is not also a word.

use owo_colors::Style;

use crate::text;

/// Below this width nothing sensible can be laid out; narrower screens wrap by themselves.
const LEAST_WIDTH: usize = 40;

/// One style for each meaning. Only the basic colours: the user's terminal theme decides how they look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Styles {
    /// Fails every time.
    pub(crate) fail: Style,
    /// Passes and fails.
    pub(crate) flaky: Style,
    /// Clean.
    pub(crate) ok: Style,
    /// Environment, collection, isolation.
    pub(crate) env: Style,
    /// Less important.
    pub(crate) dim: Style,
    /// Names of things.
    pub(crate) bold: Style,
    /// Files and commands.
    pub(crate) path: Style,
}

impl Styles {
    /// No colours at all.
    pub(crate) const fn plain() -> Self {
        let none = Style::new();
        Self {
            fail: none,
            flaky: none,
            ok: none,
            env: none,
            dim: none,
            bold: none,
            path: none,
        }
    }

    /// The basic ANSI colours.
    pub(crate) const fn coloured() -> Self {
        Self {
            fail: Style::new().red().bold(),
            flaky: Style::new().yellow().bold(),
            ok: Style::new().green().bold(),
            env: Style::new().cyan().bold(),
            dim: Style::new().dimmed(),
            bold: Style::new().bold(),
            path: Style::new().cyan(),
        }
    }
}

impl Default for Styles {
    fn default() -> Self {
        Self::plain()
    }
}

/// How a stream is written to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Look {
    /// Styles of the stream.
    pub(crate) styles: Styles,
    /// Symbols from ASCII only.
    pub(crate) ascii: bool,
    /// Columns.
    pub(crate) width: usize,
}

impl Look {
    /// Plain text with symbols, for a stream of that width.
    #[cfg(test)]
    pub(crate) fn plain(width: usize) -> Self {
        Self {
            styles: Styles::plain(),
            ascii: false,
            width,
        }
    }

    /// Columns to lay out for.
    pub(crate) fn columns(&self) -> usize {
        self.width.max(LEAST_WIDTH)
    }

    /// In front of what fails every time.
    pub(crate) fn cross(&self) -> &'static str {
        if self.ascii { "x" } else { "✗" }
    }

    /// In front of what is good.
    pub(crate) fn tick(&self) -> &'static str {
        if self.ascii { "ok" } else { "✓" }
    }

    /// In front of what changes from run to run.
    pub(crate) fn wave(&self) -> &'static str {
        "~"
    }

    /// In front of what is not about the tests.
    pub(crate) fn bang(&self) -> &'static str {
        "!"
    }

    /// Between equal parts of a line.
    pub(crate) fn dot(&self) -> &'static str {
        if self.ascii { "-" } else { "·" }
    }

    /// For what was left out.
    pub(crate) fn ellipsis(&self) -> &'static str {
        if self.ascii { "..." } else { "…" }
    }

    /// A node id for reading: printable, its path shortened to fit if that is possible.
    pub(crate) fn node_id(&self, id: &str, width: usize) -> String {
        if self.ascii {
            text::shorten_with(id, width, self.ellipsis())
        } else {
            text::shorten_node_id(id, width)
        }
    }

    /// Text cut at the end to fit, with a mark that it was cut.
    pub(crate) fn cut(&self, text: &str, width: usize) -> String {
        text::cut(text, width, self.ellipsis())
    }
}
