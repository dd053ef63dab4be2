//! Tells who manages a project's packages, and how to say things in that tool's words. Must not start any of these tools.

/// The tool that looks after a project's environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Manager {
    /// uv (`uv.lock`, `[tool.uv]`).
    Uv,
    /// Poetry (`poetry.lock`, `[tool.poetry]`).
    Poetry,
    /// PDM (`pdm.lock`, `[tool.pdm]`).
    Pdm,
    /// Pipenv (`Pipfile`).
    Pipenv,
    /// Hatch (`[tool.hatch.envs]`, `hatch.toml`).
    Hatch,
    /// Pixi (`pixi.toml`, `pixi.lock`).
    Pixi,
    /// Conda (`environment.yml`).
    Conda,
    /// Nothing says otherwise.
    Pip,
}
