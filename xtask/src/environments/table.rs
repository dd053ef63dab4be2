//! The environments that tests run in, with the version of every package: the one place that pins them. Data only.

/// An environment for tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Its name, which is also its folder.
    pub(crate) name: &'static str,
    /// The Python it is for.
    pub(crate) python: (u32, u32),
    /// Without that Python, make it with the `python3` there is.
    pub(crate) or_any: bool,
    /// What is installed, as pip reads it. The markers are for a `python3` of another version.
    pub(crate) requirements: &'static [&'static str],
}

const NEWEST_PYTEST: &str = "pytest==9.2.0; python_version >= '3.10'";
const OLDER_PYTEST: &str = "pytest==8.3.5; python_version < '3.10'";

/// All of them: the oldest Python with the oldest pytest, the newest with the newest, and what people have installed besides.
pub(crate) const WANTED: &[Wanted] = &[
    Wanted {
        name: "py38-pytest70",
        python: (3, 8),
        or_any: false,
        requirements: &["pytest==7.0.1"],
    },
    Wanted {
        name: "py38-pytest83",
        python: (3, 8),
        or_any: false,
        requirements: &["pytest==8.3.5", "pytest-subtests==0.13.1"],
    },
    Wanted {
        name: "py311-plugins",
        python: (3, 11),
        or_any: true,
        requirements: &[
            NEWEST_PYTEST,
            OLDER_PYTEST,
            "flaky==3.8.1",
            "pytest-asyncio==1.5.0; python_version >= '3.10'",
            "pytest-cov==7.1.0; python_version >= '3.10'",
            "pytest-cov==5.0.0; python_version < '3.10'",
            "pytest-flakefinder==1.1.0",
            "pytest-forked==1.7.5; python_version >= '3.10'",
            "pytest-forked==1.6.0; python_version < '3.10'",
            "pytest-order==1.5.0; python_version >= '3.10'",
            "pytest-order==1.3.0; python_version < '3.10'",
            "pytest-random-order==1.2.0",
            "pytest-randomly==5.1.0; python_version >= '3.10'",
            "pytest-randomly==3.15.0; python_version < '3.10'",
            "pytest-repeat==0.9.4",
            "pytest-rerunfailures==16.7; python_version >= '3.10'",
            "pytest-rerunfailures==14.0; python_version < '3.10'",
            "pytest-timeout==2.4.0",
            "pytest-xdist==3.8.0; python_version >= '3.10'",
            "pytest-xdist==3.6.1; python_version < '3.10'",
        ],
    },
    Wanted {
        name: "py311-plain",
        python: (3, 11),
        or_any: true,
        requirements: &[
            NEWEST_PYTEST,
            OLDER_PYTEST,
            "numpy==2.4.6; python_version >= '3.11'",
            "numpy==1.26.4; python_version >= '3.9' and python_version < '3.11'",
            "numpy==1.24.4; python_version < '3.9'",
        ],
    },
    Wanted {
        name: "py313-pytest92",
        python: (3, 13),
        or_any: false,
        requirements: &["pytest==9.2.0"],
    },
];

/// What checks the Python side. Not a place where tests run.
pub(crate) const TOOLS: Wanted = Wanted {
    name: "tools",
    python: (3, 11),
    or_any: true,
    requirements: &[NEWEST_PYTEST, OLDER_PYTEST, "mypy==2.4.1", "ruff==0.17.6"],
};

/// The environment that `cargo xtask demo` scans the example with.
pub(crate) const DEMO: Wanted = Wanted {
    name: "venv",
    python: (3, 11),
    or_any: true,
    requirements: &[NEWEST_PYTEST, OLDER_PYTEST],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_is_pinned_and_every_name_is_there_once() {
        let all: Vec<Wanted> = WANTED.iter().copied().chain([TOOLS]).collect();
        for wanted in &all {
            for requirement in wanted.requirements {
                assert!(
                    requirement.contains("=="),
                    "{requirement} of {}",
                    wanted.name
                );
            }
            assert_eq!(
                all.iter().filter(|other| other.name == wanted.name).count(),
                1,
                "{}",
                wanted.name
            );
        }
    }
}
